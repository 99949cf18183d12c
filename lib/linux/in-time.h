/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A bound on the time of one system call that waits interruptibly, where nothing better can be had. */
#ifndef ASYM_LINUX_IN_TIME_H
#define ASYM_LINUX_IN_TIME_H

#include <signal.h>
#include <stdbool.h>
#include <time.h>

#include <asym/types.h>

struct asym_in_time {
    timer_t timer;
    struct sigaction action;
    sigset_t mask;
    bool armed;
};

/**
 * After this time SIGALRM interrupts what the calling thread waits in, and again every 10 ms: the call ends in EINTR. Signals of
 * that number have another meaning nowhere in asymd. 0; -errno: then nothing is armed, and end may be called all the same.
 */
int asym_in_time_begin(struct asym_in_time *t, asym_usec time);

/** Keeps errno. */
void asym_in_time_end(struct asym_in_time *t);

#endif
