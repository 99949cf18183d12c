/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Closes descriptors whose close may sleep: a child process (a closer) closes them by its exit. An exiting process does not
 * linger in the close of a TCP socket. If another file makes it sleep, only the child sleeps. Used by one thread of one process
 * that has no other children.
 *
 * fork(2) gives a closer a copy of every descriptor. The parent keeps all its descriptors open until the closer has closed
 * those of other users. So a closer never holds the last reference to a file of another user.
 *
 * Each user has an account. A user is refused as soon as one of its closers hangs, or too many of its descriptors wait for a
 * closer. The refusal lasts until nothing is left to close for the user, and at least ASYM_RTXD_REFUSED_MS. Descriptors of one
 * user never wait for the closer of another user.
 */
#ifndef ASYM_LINUX_RTX_CLOSER_H
#define ASYM_LINUX_RTX_CLOSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/** Closers at a time. */
#define ASYM_RTXD_MAX_CLOSERS 64
/**
 * Closers of one user at a time. The second one starts ASYM_RTXD_SECOND_MS after the user was refused: by then the connections
 * in the queue have been accepted. It needs half of the places to be free. It closes the descriptors that came after the first.
 */
#define ASYM_RTXD_MAX_CLOSERS_OF_USER 2
#define ASYM_RTXD_SECOND_MS           2000
/**
 * Longest wait of one call, seconds, for new closers to close their copies of the other descriptors. A closer that takes longer
 * is killed, and the next call tries again. asymd waits longer for an answer to its ping (ASYM_RTXD_MAX_SILENT).
 */
#define ASYM_RTXD_COPIES_SEC 1
/**
 * A closer hangs when its CPU time has not grown for ASYM_RTXD_HUNG_MS (rtx-orders.h), or when it is older than
 * ASYM_RTXD_LONGEST_MS. A call of asym_rtxd_close_doomed() adds the time since the last call to both, but at most
 * ASYM_RTXD_STEP_MS: while this process waits for a CPU, its closers may wait for one, too. The state of a process would say
 * more, but the helper may not open files.
 */
#define ASYM_RTXD_STEP_MS    100
#define ASYM_RTXD_LONGEST_MS 3000
/** Minimum duration of a refusal, milliseconds. */
#define ASYM_RTXD_REFUSED_MS 10000
/** A user with this many descriptors waiting is refused: more than one user has when all its connections end at once. */
#define ASYM_RTXD_STOCK 1536
/** Users with an account of their own. Further users share one account, for which no user is refused. */
#define ASYM_RTXD_MAX_ACCOUNTS 256
/** With this many descriptors waiting for a closer, no further connection is accepted. */
#define ASYM_RTXD_DOOMED_FULL 131072
/** Maximum: every accepted connection may still end, with its socket, a duplicate of it, and two references to its eventfd. */
#define ASYM_RTXD_MAX_DOOMED (ASYM_RTXD_DOOMED_FULL + 4 * 496)

/** Owner of descriptors whose user is not known. It is never refused. */
#define ASYM_RTXD_UNKNOWN_USER ((uid_t)-1)

struct asym_rtxd_closer {
    pid_t pid;
    uid_t uid;           /**< user of the account */
    long long idle, age; /**< milliseconds since its CPU time last grew, and since its start: see ASYM_RTXD_STEP_MS */
    long long cpu;       /**< its CPU time so far, microseconds */
};

struct asym_rtxd_doomed {
    int fd;
    bool is_emptied; /**< see asym_rtxd_empty() */
};

struct asym_rtxd_account {
    uid_t uid;
    size_t first, n;      /**< head and length of the list of descriptors that wait for a closer */
    long long refused_at; /**< milliseconds; 0: the user is not refused */
};

struct asym_rtxd_closers {
    struct asym_rtxd_closer running[ASYM_RTXD_MAX_CLOSERS];
    size_t n_running;
    long long passed_at;   /**< last call of asym_rtxd_close_doomed(), milliseconds; 0: none */
    _Atomic uint32_t *own; /**< shared with the closers: not 0 when the new closer has closed its copies */
    struct timespec until; /**< end of the present call's wait for new closers, CLOCK_MONOTONIC */
    struct asym_rtxd_account shared, accounts[ASYM_RTXD_MAX_ACCOUNTS];
    size_t n_accounts;
    struct {
        struct asym_rtxd_doomed of;
        size_t next; /**< next of the same account, or next free place: index plus 1; 0: none */
    } doomed[ASYM_RTXD_MAX_DOOMED];
    size_t n_doomed, n_touched, first_free;
    struct asym_rtxd_doomed batch[ASYM_RTXD_MAX_DOOMED];
};

struct asym_rtxd_standing {
    uid_t uid;
    bool refused;
};

/** Prepare a zeroed object: map the memory that it shares with its closers. 0; -errno. */
int asym_rtxd_closers_init(struct asym_rtxd_closers *c);

/**
 * Release what asym_rtxd_closers_init() has made. No closer may be running. The helper does not call it, as its process ends
 * with the memory; tests, which make many, do.
 */
void asym_rtxd_closers_done(struct asym_rtxd_closers *c);

/** Queue a descriptor to be closed on behalf of a user. -1 is ignored. If the queue is full, the process exits. */
void asym_rtxd_doom(struct asym_rtxd_closers *c, int fd, uid_t uid);

/**
 * Empty the queue of a socket that stays open and that is shut down. This duplicates the descriptor and queues the duplicate: a
 * closer receives the messages, and its exit closes the files that they carry. Without a free descriptor it does nothing.
 */
void asym_rtxd_empty(struct asym_rtxd_closers *c, int fd, uid_t uid);

/** Reap the closers that have exited and start new ones. It waits at most ASYM_RTXD_COPIES_SEC. now: milliseconds, above 0. */
void asym_rtxd_close_doomed(struct asym_rtxd_closers *c, long long now);

/** Returns one change per call: a user is now refused, or no longer. false: no further change. */
bool asym_rtxd_next_standing(struct asym_rtxd_closers *c, long long now, struct asym_rtxd_standing *ret);

/** Returns whether the user is refused, as asym_rtxd_next_standing() last reported it. */
bool asym_rtxd_is_refused(const struct asym_rtxd_closers *c, uid_t uid);

/** Returns whether the queue has room. If not, the caller must not accept connections. */
bool asym_rtxd_may_doom(const struct asym_rtxd_closers *c);

/** Returns whether work is left: the caller calls asym_rtxd_close_doomed() again within some milliseconds. */
bool asym_rtxd_is_closing(const struct asym_rtxd_closers *c);

#endif
