/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A program with serial and parallel phases, of 60 ms each unless another time is said, on four threads, all of which wait by spinning, so that the kernel
 * alone cannot tell its serial phases; and how many of these are answered (tests/load/talker.c, tests/omp/talker.c).
 * Everything ends with an assertion on failure.
 */
#ifndef ASYM_TESTS_TALKER_H
#define ASYM_TESTS_TALKER_H

#include <stdio.h>
#include <sys/types.h>

struct asym_talker {
    pid_t pid;
    FILE *said;
};

/**
 * Start it for the service of this test: command, which its arguments are appended to, NULL-terminated. Returns when it has
 * been in its first serial phase.
 */
struct asym_talker asym_talker_start(const char *const *command);

/** The same with phases of so many ms. */
struct asym_talker asym_talker_start_with(const char *const *command, const char *serial_ms, const char *parallel_ms);

/** Serial phases that are looked at. */
#define ASYM_TALKER_LAST 20

/** Of the last serial phases, once it has settled, those in which its master had CPUs to itself, and the worst of these. */
int asym_talker_answered(struct asym_talker *t, double *ret_worst_ms);

void asym_talker_end(struct asym_talker *t);

#endif
