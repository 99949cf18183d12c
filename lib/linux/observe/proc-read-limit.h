/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Limits the CPU time that asymd spends on reading the processes of each user. Pure: the caller passes the time.
 *
 * Each user has a token bucket of CPU time, and all users share a common one. Both fill at a constant rate. Root's processes draw
 * on the common bucket alone, and other users leave half of it to them. Root's own bucket pays for hangs only: when it is empty,
 * processes that may make a reader hang wait, and no other process of root does. A reading is charged its estimated cost; when the
 * real cost is known, the charge is corrected. The correction may overdraw a bucket, which then has to fill up before more is
 * read; it overdraws the common one by the price of one hang at most.
 *
 * Users who wait for the common bucket take turns: it is no gain to ask first.
 */
#ifndef ASYM_LINUX_OBSERVE_PROC_READ_LIMIT_H
#define ASYM_LINUX_OBSERVE_PROC_READ_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

#include "base/token-bucket.h"

/** Number of users with a bucket. When there are more, the bucket that was used least recently goes to the new user. */
#define ASYM_READ_LIMIT_USERS 64
/** The most that a bucket holds, in us of CPU time. */
#define ASYM_READ_LIMIT_BURST      200000.0
#define ASYM_READ_LIMIT_USER_BURST 100000.0
/**
 * The price of a hang, in us: a tenth of the time that a hanging reader delays all other readings. A slow answer costs the same
 * share (linux/observe/proc-reader.h).
 */
#define ASYM_READ_LIMIT_HANG_COST 20000.0
/**
 * A user is refused for ASYM_READ_LIMIT_REFUSED when its processes have made readers hang ASYM_READ_LIMIT_HANGS times, each
 * less than that time after the one before. Only a process that made a reader hang before counts: a slow disk delays a reading
 * once.
 */
#define ASYM_READ_LIMIT_HANGS   3
#define ASYM_READ_LIMIT_REFUSED (600 * ASYM_SEC)

/**
 * When root's bucket is empty, a process of root that was never read waits until the last hang was this long ago. So hangs over
 * one such process after the other delay other readings for at most a tenth of the time. A process that was read before may
 * hang a reader once without that pause.
 */
#define ASYM_READ_LIMIT_ROOT_PAUSE (2 * ASYM_SEC)

/** A user who was refused for want of common tokens keeps its turn for this long without asking again. */
#define ASYM_READ_LIMIT_WAITS (10 * ASYM_SEC)
/** So many of the users who wait for longer have a reserve. For more the common bucket has no room. */
#define ASYM_READ_LIMIT_BEFORE 4U

/** The result of earlier readings of the process. */
enum asym_read_limit_record {
    ASYM_READ_LIMIT_UNREAD, /**< there was none */
    ASYM_READ_LIMIT_READ,   /**< they ended in time */
    ASYM_READ_LIMIT_HUNG,   /**< one made a reader hang */
};

struct asym_read_limit_user {
    uint32_t uid;
    unsigned hangs;
    struct asym_token_bucket bucket; /**< us of CPU time; all zero: never used. Root's: for hangs only */
    asym_usec refused_until;         /**< 0: the user is not refused */
    asym_usec hung_at;               /**< when the last hang that counted was; root's: the last hang */
    uint64_t turn;                   /**< a user with a lower turn waits for longer; 0: it does not wait */
};

struct asym_read_limit {
    struct asym_token_bucket common; /**< us of CPU time, of all users */
    struct asym_read_limit_user users[ASYM_READ_LIMIT_USERS];
    uint64_t last_turn; /**< that a user got */
};

/** Start with full buckets, and a limit of 0. now: above 0, monotonic, us; the same holds for all calls. */
void asym_read_limit_init(struct asym_read_limit *r, asym_usec now);

/** Set the limit for all users together, in percent of one CPU in the long run. A single user gets half of it. */
void asym_read_limit_set(struct asym_read_limit *r, double percent);

/**
 * Charge cost, in us, for the reading of a process with this record. 0: the caller settles the charge once, when it knows the real
 * cost; -EAGAIN: too little is left, try later; -EPERM: the user is refused, as its processes made readers hang.
 */
int asym_read_limit_charge(struct asym_read_limit *r, uint32_t uid, enum asym_read_limit_record record, double cost,
                           asym_usec now);

/**
 * Returns until when the user is refused. A time that is over, or 0: the user is not refused. After asym_read_limit_charge() has
 * returned -EPERM, this is the time at which it no longer does.
 */
asym_usec asym_read_limit_refused_until(const struct asym_read_limit *r, uint32_t uid);

/** Correct an earlier charge of charged us to the real cost, in us. */
void asym_read_limit_settle(struct asym_read_limit *r, uint32_t uid, double charged, double cost);

/**
 * Charge a hang of a reader, and count it if the same process made a reader hang before (repeated). Root is never refused: a
 * process of root mostly hangs because a disk is slow. Its bucket owes one hang at most, so that no process of root waits for
 * longer than the bucket needs to earn that. Returns whether the user is refused from now on.
 */
bool asym_read_limit_hung(struct asym_read_limit *r, uint32_t uid, bool repeated, asym_usec now);

#endif
