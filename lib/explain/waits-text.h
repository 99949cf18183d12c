/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Says in sentences which thread waits for which. Pure. */
#ifndef ASYM_EXPLAIN_WAITS_TEXT_H
#define ASYM_EXPLAIN_WAITS_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

enum { ASYM_EXPLAIN_WAITS_FOR = 7 };

/** A wait that is a shorter part of the measured time has no sentence. */
#define ASYM_EXPLAIN_WAITS_LEAST 0.02

/** A thread that another one has waited for. */
struct asym_explain_waited_for {
    int32_t tid;
    char comm[ASYM_COMM_LEN]; /**< raw bytes, NUL-terminated */
    asym_usec time;
};

/** A thread, and what it has waited for while it slept. */
struct asym_explain_wait {
    int32_t tid, pid;
    char comm[ASYM_COMM_LEN];
    asym_usec slept;   /**< in all, also while the thread slept that woke it in the end */
    asym_usec kernel;  /**< a timer, a device or a thread of the kernel woke it */
    asym_usec outside; /**< threads of other programs woke it */
    asym_usec rest;    /**< other threads of the program than those that follow */
    asym_usec asleep;  /**< it sleeps now, for so long */
    size_t n;
    struct asym_explain_waited_for waits[ASYM_EXPLAIN_WAITS_FOR]; /**< the longest first */
};

struct asym_explain_waits {
    asym_usec measured;
    int32_t tid; /**< the question was about this thread; 0: about the program */
    const struct asym_explain_wait *list;
    size_t n;
};

/** Returns for how long the thread has waited for threads of its program. */
asym_usec asym_explain_waited(const struct asym_explain_wait *wait);

/** Call say for each sentence. A negative return ends it. Returns 0, or that. */
int asym_explain_waits(const struct asym_explain_waits *w, int (*say)(void *ctx, const char *sentence), void *ctx);

#endif
