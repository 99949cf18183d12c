/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * How often messages of one kind are written: strangers can provoke some of them as often as they like. Pure: the caller says
 * what time it is.
 */
#ifndef ASYM_DAEMON_LOG_LIMIT_H
#define ASYM_DAEMON_LOG_LIMIT_H

#include <stdbool.h>
#include <stddef.h>

#include <asym/types.h>

/** Messages of one kind that are written in a period; the others are counted. */
#define ASYM_LOG_LIMIT_MESSAGES 5
#define ASYM_LOG_LIMIT_PERIOD   (60 * ASYM_SEC)
/** Kinds that are told apart; further ones share the last place. */
#define ASYM_LOG_LIMIT_KINDS 64

struct asym_log_kind {
    const void *kind; /**< NULL: free */
    asym_usec since;  /**< begin of its period */
    unsigned n;       /**< messages in it, written or not */
    int priority;
    char last[120]; /**< the last one that was left out */
};

/** All zero to begin with. */
struct asym_log_limit {
    struct asym_log_kind kinds[ASYM_LOG_LIMIT_KINDS];
};

/** May a message of this kind (an address that stands for it) be written at this time? It counts in either case. */
struct asym_log_kind *asym_log_limit_count(struct asym_log_limit *l, const void *kind, int priority, asym_usec now,
                                           bool *ret_write);

/**
 * The next kind of which messages were left out in a period that is over, and how many; it begins anew. last: whose period is
 * over in any case, as asymd ends. NULL: there is none.
 */
const struct asym_log_kind *asym_log_limit_due(struct asym_log_limit *l, asym_usec now, bool last, unsigned *ret_n);

#endif
