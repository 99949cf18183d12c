/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Helpers of the attack tests. A failure ends in an assertion; in asym_attack_become_stranger it ends the process. */
#ifndef ASYM_TESTS_SUPPORT_ATTACK_H
#define ASYM_TESTS_SUPPORT_ATTACK_H

#include <stdbool.h>
#include <sys/types.h>

#include "support/live.h"

/**
 * Call this in a child of asym_process_fork. The child ends with its parent, or after so many seconds. If the parent is root,
 * the child changes its user.
 */
void asym_attack_become_stranger(unsigned seconds);

/**
 * Start an attack in a process group of its own. Returns its leader when the attack has written a byte to ready. Fails if it ends
 * before that.
 */
pid_t asym_attack_start(void (*attack)(void *arg, int ready), void *arg);

/** Returns the CPU time of a process and of its children, living and ended, in seconds. */
double asym_attack_cpu(pid_t pid);

/**
 * Returns the share of one CPU that the process uses in so many available seconds (support/live.h), 0..n: its CPU time by the
 * seconds of the clock, as asymd's budget counts it. If it is not below most, the function measures up to ASYM_ATTACK_PERIODS
 * times and returns the least. New processes of other programs cost asymd time for a while; a defect costs it all the time.
 */
#define ASYM_ATTACK_PERIODS 3
double asym_attack_share(pid_t pid, double seconds, double most);

/**
 * Wait until the process uses less than most of a CPU for a second: it has started, and has lengthened its interval. Waits for so
 * many available seconds at most.
 */
void asym_attack_settle(pid_t pid, double most, double seconds);

/** The seconds after which an attack ends that is measured by asym_attack_share() after settle available seconds. */
#define ASYM_ATTACK_LIFETIME(settle, period) (60 + ASYM_LIVE_STRETCH_MOST * ((settle) + ASYM_ATTACK_PERIODS * (period)))

/**
 * Send SIGTERM. Returns the available seconds until the process has ended; or -1 after most of them: then it is killed, and not
 * reaped.
 */
double asym_attack_stop(pid_t pid, double most);

/** Use the CPU for so many microseconds. The threads and processes of an attack call this. */
void asym_attack_run(long us);

#endif
