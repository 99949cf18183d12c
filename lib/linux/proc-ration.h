/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * How much CPU time may go into reading what belongs to each user's processes. Pure: the caller says what time it is.
 *
 * Each user has an account of CPU time, and all users together have one. Both fill up steadily. Root's processes draw on the
 * common account alone, and half of that is kept for them. A reading is charged with what it may cost, and corrected when its
 * cost is known; an account may be overdrawn by that, and fills up again before more is read.
 */
#ifndef ASYM_LINUX_PROC_RATION_H
#define ASYM_LINUX_PROC_RATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

/** Accounts. With more users than that the one that was used least lately is given to another. */
#define ASYM_RATION_USERS 64
/** What an account holds at most, in us of CPU time. */
#define ASYM_RATION_BURST      200000.0
#define ASYM_RATION_USER_BURST 100000.0
/** A user whose processes have made so many readers hang, each within the time below of the one before, is refused for it. */
#define ASYM_RATION_HANGS   3
#define ASYM_RATION_REFUSED (600 * ASYM_SEC)

struct asym_ration_user {
    uint32_t uid;
    unsigned hangs;
    double left;             /**< us of CPU time; may be negative */
    asym_usec filled_at;     /**< 0: this account was never used */
    asym_usec refused_until; /**< 0: is not refused */
    asym_usec hung_at;       /**< when a reader hung last */
};

struct asym_ration {
    double rate; /**< us of CPU time that come in per us */
    double left; /**< of the common account */
    asym_usec filled_at;
    struct asym_ration_user users[ASYM_RATION_USERS];
};

/** Full accounts. now: above 0, monotonic, as in all calls. */
void asym_ration_init(struct asym_ration *r, asym_usec now);

/** percent: of one CPU, that all users' processes together may cost in the long run; a user gets half of it. */
void asym_ration_set(struct asym_ration *r, double percent);

/** 0: charged with cost us; -EAGAIN: later; -EPERM: this user's processes made readers hang, and are not read for now. */
int asym_ration_charge(struct asym_ration *r, uint32_t uid, double cost, asym_usec now);

/** What was charged as charged has really cost cost. */
void asym_ration_settle(struct asym_ration *r, uint32_t uid, double charged, double cost);

/** A process of this user made a reader hang. Returns whether the user is refused from now on. */
bool asym_ration_hung(struct asym_ration *r, uint32_t uid, asym_usec now);

#endif
