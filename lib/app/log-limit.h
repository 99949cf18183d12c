/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Limits how often messages of one kind are written: other users can provoke some messages as often as they like. Pure: the
 * caller passes the time.
 */
#ifndef ASYM_APP_LOG_LIMIT_H
#define ASYM_APP_LOG_LIMIT_H

#include <stdbool.h>

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

#endif
