/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The only file that logs: to the journal with fields if stderr is connected to it, else to stderr. */
#ifndef ASYM_APP_LOG_H
#define ASYM_APP_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>
#include <syslog.h>

#include <asym/plan.h>
#include <asym/snapshot.h>
#include <asym/types.h>

/** The log writes this many messages of a kind in a period, and counts the others. */
#define ASYM_LOG_LIMIT_MESSAGES 5
#define ASYM_LOG_LIMIT_PERIOD   (60 * ASYM_SEC)
/** The number of kinds; further kinds share the last place. */
#define ASYM_LOG_LIMIT_KINDS 64

struct asym_log_kind {
    const void *kind; /**< NULL: free */
    asym_usec since;  /**< when its period began, microseconds */
    unsigned n;       /**< messages in it, written or not */
    int priority;
    char last[120]; /**< the last message that was left out */
};

/** All zero at the start. */
struct asym_log_limit {
    struct asym_log_kind kinds[ASYM_LOG_LIMIT_KINDS];
};

/** Count a message of this kind (an address identifies it). *ret_write: whether the log may write it. */
struct asym_log_kind *asym_log_limit_count(struct asym_log_limit *l, const void *kind, int priority, asym_usec now,
                                           bool *ret_write);

/**
 * Returns the next kind that left out messages in a period that is over, and their number in *ret_n, and starts a new period
 * for it; NULL: there is none. final: asymd ends, so every period counts as over.
 */
const struct asym_log_kind *asym_log_limit_due(struct asym_log_limit *l, asym_usec now, bool final, unsigned *ret_n);

struct asym_log_sink;

/** Write to the socket of journald at this path, which need not exist yet. Returns NULL without memory or descriptors. */
struct asym_log_sink *asym_log_sink_journal(const char *path);

/** Write to stderr, and wait for its reader. Returns NULL without memory. */
struct asym_log_sink *asym_log_sink_stderr(void);

/**
 * For a program that must not stop: from now on, wait for no reader of stderr either, but lose messages and count them. Other
 * processes that have the same file do not notice. NULL is accepted.
 */
void asym_log_sink_nonblocking(struct asym_log_sink *sink);

/**
 * Write a message. fields: n fields of the form KEY=VALUE, at most ASYM_LOG_SINK_FIELDS; the first is the message. stderr gets only
 * that one. Returns whether it was written; else it is counted.
 */
bool asym_log_sink_put(struct asym_log_sink *sink, int priority, const struct iovec *fields, size_t n);

/** NULL is accepted. */
void asym_log_sink_free(struct asym_log_sink *sink);

struct asym_log {
    struct asym_log_sink *sink;   /* owned: the journal where stderr is its stream; NULL: stderr */
    int level;                    /* messages less urgent than this are dropped */
    struct asym_log_limit *limit; /* owned; NULL: every message is written */
};

/**
 * Set up the log, for messages that are LOG_INFO or more urgent. The log writes a few messages of a kind (a format) in a minute;
 * asym_log_housekeeping reports how many more there were. Messages for LOG_DEBUG, and asym_log_event, have no such limit.
 */
void asym_log_init(struct asym_log *log);

/** Write messages of this level of [asymd] log_level, and more urgent ones. 0: error, 4: debug. */
void asym_log_set_level(struct asym_log *log, int level);

/** Log how many messages were left out, and free the log. */
void asym_log_done(struct asym_log *log);

/** Call this about every second: it logs how many messages of each kind were left out in the last minute. */
void asym_log_housekeeping(const struct asym_log *log, asym_usec now);

/** Log a line. priority: LOG_ERR to LOG_DEBUG. */
void asym_log_say(const struct asym_log *log, int priority, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** The thread that a log line is about. */
struct asym_log_thread {
    const struct asym_task *task;
    const char *policy;
    enum asym_class class;
    const struct asym_reason *reason; /**< NULL: none */
    double figure[2];
    int32_t cpu;                  /**< the CPU that the plan gives it; -1: none */
    const struct asym_mask *mask; /**< the CPUs that it may use; NULL: not known */
};

/** The journal's fields of a line about a thread, and the bytes of one. */
enum { ASYM_LOG_FIELDS = 8, ASYM_LOG_FIELD_SIZE = 192 };

/**
 * Write the fields of the thread: ASYM_PID, ASYM_TID, ASYM_COMM, ASYM_CLASS and, where they are known, ASYM_POLICY, ASYM_REASON,
 * ASYM_CPU and ASYM_MASK. Returns their number.
 */
size_t asym_log_fields(const struct asym_log_thread *t, char ret[ASYM_LOG_FIELDS][ASYM_LOG_FIELD_SIZE]);

/** Log "WHAT: thread TID of PID (COMM): REASON" with the fields of the thread. what is the kind of the message. */
void asym_log_thread(const struct asym_log *log, int priority, const struct asym_log_thread *t, const char *what);

/** Log a line with the fields of the thread. It has no limit: the caller bounds the number of its lines. */
void asym_log_event(const struct asym_log *log, int priority, const struct asym_log_thread *t, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
