/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Starting programs of the build tree, and looking at their threads. Everything ends with an assertion on failure. */
#ifndef ASYM_TESTS_LIVE_H
#define ASYM_TESTS_LIVE_H

#include <stddef.h>
#include <sys/types.h>

/** Start argv[0] (in the build tree unless absolute). out: -1, or a descriptor that becomes its standard output. */
pid_t asym_live_start(const char *const *argv, int out);

/** Wait for it; its exit status, or 128 + signal. */
int asym_live_wait(pid_t pid);

/** Run to the end: exit status, and what it printed on standard output and error, NUL-terminated and cut to size. */
int asym_live_run(const char *const *argv, char *text, size_t size);

/** Signal a process that was started and not reaped; one that never was started is refused, see support/process.h. */
void asym_live_signal(pid_t pid, int signal);

/** Signal it and reap it. */
void asym_live_end(pid_t pid, int signal);

/**
 * How many threads of the process have another number of allowed CPUs than cpus, or another nice value than nice above
 * the one of this test.
 */
int asym_live_odd_threads(pid_t pid, int cpus, int nice);

/** Threads of the process with fewer allowed CPUs than cpus. */
int asym_live_narrow_threads(pid_t pid, int cpus);

/** Wait until condition(pid, cpus) is at least n, at most so many seconds. Returns whether it came true. */
int asym_live_await(int (*condition)(pid_t pid, int cpus), pid_t pid, int cpus, int n, double seconds);

int asym_live_cpus(void);
void asym_live_sleep(double seconds);
double asym_live_now(void);

#endif
