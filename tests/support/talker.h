/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A program that alternates serial and parallel phases on four threads (tests/load/talker.c, tests/omp/talker.c). A phase takes
 * 60 ms unless the test sets another time. All threads wait by spinning, so that the kernel alone cannot detect the serial
 * phases. The test counts the serial phases to which asymd reacts. A failure ends in an assertion.
 */
#ifndef ASYM_TESTS_SUPPORT_TALKER_H
#define ASYM_TESTS_SUPPORT_TALKER_H

#include <stdio.h>
#include <sys/types.h>

struct asym_talker {
    pid_t pid;
    FILE *said;
};

/**
 * Start command, NULL-terminated, for the asymd of this test. The function appends the arguments of the program. It returns
 * after the first serial phase.
 */
struct asym_talker asym_talker_start(const char *const *command);

/** The same with phases of these milliseconds. */
struct asym_talker asym_talker_start_with(const char *const *command, const char *serial_ms, const char *parallel_ms);

/** The number of serial phases that the test evaluates. */
#define ASYM_TALKER_LAST 20

/** Returns in how many of the last serial phases the master thread got CPUs for itself, and the longest time that this took. */
int asym_talker_answered(struct asym_talker *t, double *ret_worst_ms);

void asym_talker_end(struct asym_talker *t);

#endif
