/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Closing what may sleep: in a child process that ends with it. A process that is ending does not linger in the close of a
 * TCP socket; where something else makes it sleep, it sleeps alone. For one thread of one process, which has no other
 * children.
 */
#ifndef ASYM_LINUX_RTX_CLOSER_H
#define ASYM_LINUX_RTX_CLOSER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** Closers at a time; of one user at most one, which takes all that is to be closed for it. */
#define ASYM_RTX_MAX_CLOSERS 32
/** Descriptors that wait for a closer, when no further connection is accepted. */
#define ASYM_RTX_DOOMED_FULL 512
/** ... and at most, as every connection that was accepted may still end: its socket and two references to its eventfd. */
#define ASYM_RTX_MAX_DOOMED 1664

struct asym_rtx_closer {
    pid_t pid;
    uid_t uid;
    long long since; /**< milliseconds */
    bool hung;       /**< for longer than ASYM_RTX_HUNG_MS */
};

struct asym_rtx_closers {
    struct asym_rtx_closer running[ASYM_RTX_MAX_CLOSERS];
    size_t n_running;
    struct {
        int fd;
        uid_t uid;
    } doomed[ASYM_RTX_MAX_DOOMED];
    size_t n_doomed;
};

/** The descriptor is to be closed on behalf of a user; -1: nothing is. Where there is no room the process ends. */
void asym_rtx_doom(struct asym_rtx_closers *c, int fd, uid_t uid);

/** Collect the closers that have ended, and start those that are wanted. now: milliseconds. */
void asym_rtx_close_doomed(struct asym_rtx_closers *c, long long now);

/** A closer that has run for longer than ASYM_RTX_HUNG_MS and was not returned before; NULL: there is none. */
const struct asym_rtx_closer *asym_rtx_newly_hung(struct asym_rtx_closers *c, long long now);

/** A close on behalf of this user hangs. */
bool asym_rtx_is_hung(const struct asym_rtx_closers *c, uid_t uid);

/** Room for some more; where there is none, no connections may be accepted. */
bool asym_rtx_may_doom(const struct asym_rtx_closers *c);

/** There is something to do later: call asym_rtx_close_doomed() again within some milliseconds. */
bool asym_rtx_is_closing(const struct asym_rtx_closers *c);

#endif
