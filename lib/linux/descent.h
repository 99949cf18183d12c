/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Ancestors of processes of the live machine, each process looked up once. */
#ifndef ASYM_LINUX_DESCENT_H
#define ASYM_LINUX_DESCENT_H

#include <stddef.h>
#include <stdint.h>

/** A longer chain of parents is none that asymd's steering has made. */
#define ASYM_ANCESTORS_MAX 64

/** Something that a process comes from: an ancestor, the process itself, or a session without its leader. */
struct asym_origin {
    int32_t number; /**< of the process or session */
    uint64_t start; /**< of the process or of the session's leader, clock ticks since boot; 0: the leader has gone */
    uint64_t
        oldest; /**< least start of all between it and the process, that one included; UINT64_MAX: it is the process */
};

struct asym_line {
    struct asym_origin processes[ASYM_ANCESTORS_MAX + 1]; /**< from the process upwards, init left out */
    size_t n;
    /**
     * The session of the process if the process may be an orphan, else number 0. A chain of parents that reaches init
     * without the leader of the session has lost a process, and only the session still tells which one it came from. The
     * child of a live leader is no orphan: a shell whose children choose their own masks looks the same.
     */
    struct asym_origin session;
};

struct asym_descent;

/** 0; -ENOMEM. */
int asym_descent_new(struct asym_descent **ret_descent);
/** NULL is accepted. */
void asym_descent_free(struct asym_descent *d);

/** Forget what was looked up: processes may have other parents by now, and numbers other processes. */
void asym_descent_forget(struct asym_descent *d);

/** Find the origins of the process. The line of a process that has gone is empty; it ends below an ancestor that has gone. */
void asym_descent_of(struct asym_descent *d, int32_t pid, struct asym_line *ret);

#endif
