/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Helpers that start programs of the build tree and read the state of their threads. A failure ends in an assertion. */
#ifndef ASYM_TESTS_SUPPORT_LIVE_H
#define ASYM_TESTS_SUPPORT_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/**
 * The seconds that a test waits for an event. It comes within a second on an idle machine; a machine that runs many other
 * programs may need twenty times as long. So no test asserts a shorter time.
 */
#define ASYM_LIVE_PATIENCE 30.0

/** Start argv[0] (in the build tree unless absolute). out: -1, or a descriptor that becomes its standard output. */
pid_t asym_live_start(const char *const *argv, int out);

/** The same; ret_output gets the reading end of a pipe, which is its standard output and error. */
pid_t asym_live_start_piped(const char *const *argv, int *ret_output);

/** Returns a text for the arguments of a program. It lives until 16 later calls. */
const char *asym_live_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Returns the option by which asymd and asymctl follow this process only. */
const char *asym_live_pid_option(pid_t pid);

/** Wait for the process. Returns its exit status, or 128 + signal. The test fails after 250 s, before ctest ends it. */
int asym_live_wait(pid_t pid);

/** The same, but the test fails after so many seconds: it prints the state of each thread of the process, and kills it. */
int asym_live_wait_for(pid_t pid, double seconds);

/**
 * Run a program to its end. Returns its exit status. text gets its standard output and error, NUL-terminated and cut to size.
 * The time limit is that of asym_live_wait.
 */
int asym_live_run(const char *const *argv, char *text, size_t size);

/** Signal a process that was started and not reaped. The test fails if pid was never started, see support/process.h. */
void asym_live_signal(pid_t pid, int signal);

/** Signal a process and reap it. The test fails if that takes a minute. */
void asym_live_end(pid_t pid, int signal);

/**
 * Returns how many threads of the process have a number of allowed CPUs other than cpus, or a nice value other than that of
 * this test + nice.
 */
int asym_live_odd_threads(pid_t pid, int cpus, int nice);

/** Returns how many threads of the process have fewer allowed CPUs than cpus. */
int asym_live_narrow_threads(pid_t pid, int cpus);

/** Returns how many threads of the process have run. For asym_live_await; for a process that the test has forked. */
int asym_live_ran_threads(pid_t pid, int unused);

/** Wait until a program of tests/load has n threads that have run. */
void asym_live_await_load(pid_t pid, int n);

/** asymd leaves a new thread alone for 0.5 s, and takes its age from a clock of 10 ms. */
#define ASYM_LIVE_SETTLE 0.7

/** The same, and then until asymd may steer them: asymd leaves a new thread alone for half a second (settle). */
void asym_live_settle(pid_t pid, int n);

/** Wait until condition(pid, cpus) is at least n, for at most so many seconds. Returns 1 if it is, else 0. */
int asym_live_await(int (*condition)(pid_t pid, int cpus), pid_t pid, int cpus, int n, double seconds);

/** Wait until the condition holds, for ASYM_LIVE_PATIENCE at most. An assertion behind it says what did not come. */
#define ASYM_LIVE_AWAIT(condition)                                                                                     \
    for (double end_ = asym_live_now() + ASYM_LIVE_PATIENCE; !(condition) && asym_live_now() < end_;)                  \
    asym_live_sleep(0.002)

/** Returns zeroed memory that the test shares with its children, to its end. */
void *asym_live_share(size_t size);

int asym_live_cpus(void);

/** Returns whether the numbers of processes here are those of the kernel, by which its programs mark processes. */
bool asym_live_is_in_initial_pid_namespace(void);

void asym_live_sleep(double seconds);
double asym_live_now(void);

/** A stretch of time, for asym_live_stolen(). */
struct asym_live_stretch {
    double begin, stolen;
};

struct asym_live_stretch asym_live_begin(void);

/**
 * Returns the share of the CPUs' time since the stretch began that the host of this virtual machine gave to others (steal of
 * /proc/stat), 0 to 1. A test of shares and of reactions says nothing about asymd in a stretch of which the host has taken much.
 */
double asym_live_stolen(const struct asym_live_stretch *stretch);

/** Returns the seconds since the stretch began without the stolen ones: the time that the host has left to this machine. */
double asym_live_available(const struct asym_live_stretch *stretch);

/** The most by which a sleep of available seconds is longer than on a machine of its own. */
#define ASYM_LIVE_STRETCH_MOST 4

/** Sleep until so many seconds were available; at most ASYM_LIVE_STRETCH_MOST times as many seconds of the clock. */
void asym_live_sleep_available(double seconds);

/** Above this share of stolen time, a test measures again. */
#define ASYM_LIVE_STOLEN_MOST 0.05

#endif
