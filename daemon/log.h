/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The only place that logs: to the journal with structured fields when stderr is the journal's, else to stderr. */
#ifndef ASYM_DAEMON_LOG_H
#define ASYM_DAEMON_LOG_H

#include <stdbool.h>
#include <syslog.h>

#include <asym/plan.h>
#include <asym/snapshot.h>

#include "daemon/log-limit.h"

struct asym_log {
    bool journal;                 /* stderr is the journal's stream (JOURNAL_STREAM names its device and inode) */
    int level;                    /* messages less urgent than this are dropped on a stderr that is not the journal's */
    struct asym_log_limit *limit; /* owned; NULL: every message is written */
};

/**
 * LOG_INFO and up on stderr; the journal gets everything and filters by itself. Of one kind (one format) a few messages a minute
 * are written, and asym_log_tend says how many more there were.
 */
void asym_log_init(struct asym_log *log);

/** Says what is left out, and frees. */
void asym_log_done(struct asym_log *log);

/** About every second: say how many messages of each kind were left out in the minute that is over. */
void asym_log_tend(const struct asym_log *log, asym_usec now);

/** One line. priority: LOG_ERR ... LOG_DEBUG. */
void asym_log_say(const struct asym_log *log, int priority, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** One line about a thread, with ASYM_PID, ASYM_TID, ASYM_COMM, ASYM_POLICY, ASYM_CLASS and ASYM_REASON as journal fields. */
struct asym_log_thread {
    const struct asym_task *task;
    const char *policy;
    enum asym_class class;
    enum asym_reason reason;
    double figure[2];
};
void asym_log_thread(const struct asym_log *log, int priority, const struct asym_log_thread *t, const char *what);

#endif
