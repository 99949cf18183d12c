/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * An asymd of the build tree that steers only processes that a test has started. It assumes that half of the CPUs are slow, and
 * has its own state directory. Its policy is pa, if the test does not name another or a configuration. A failure ends in an
 * assertion.
 */
#ifndef ASYM_TESTS_SUPPORT_SERVICE_H
#define ASYM_TESTS_SUPPORT_SERVICE_H

#include <stddef.h>
#include <sys/types.h>

#define ASYM_SERVICE "daemon/asymd"

/**
 * For cmocka: make a state directory, and remove it. The machine needs two CPUs, because asymd cannot steer on one. The tear-down
 * ends what these functions have started in the test and what still runs, the last one first.
 */
int asym_service_set_up(void **state);
int asym_service_tear_down(void **state);

/** Returns the state directory of this test. The tear-down removes it with all its files. */
const char *asym_service_dir(void);

/** Returns the option that names it. */
const char *asym_service_dir_option(void);

/** Programs of this test find the bus of this asymd (ASYMD_BUS), until the tear-down. */
void asym_service_export_bus(void);

/**
 * Start asymd for target and its descendants, with a 50 ms interval. more has further arguments, NULL-terminated, or is NULL.
 */
pid_t asym_service_start(pid_t target, const char *const *more);

/** The same, but all CPUs count as fast. */
pid_t asym_service_start_alike(pid_t target, const char *const *more);

/** Like asym_service_start; asymd writes its output to out. */
pid_t asym_service_start_to(pid_t target, const char *const *more, int out);

/** Run asymd --restore. Returns its exit status, and writes its output to text. */
int asym_service_restore(char *text, size_t size);

/** Start a program with this many busy threads. It ends after two minutes at most. */
pid_t asym_service_spin(const char *threads);

/** The same, and an asymd that steers it. Returns the program. */
pid_t asym_service_steer(const char *threads, const char *const *more);

/** The same with four threads, which asymd has steered when it is killed. Returns the program. */
pid_t asym_service_leave_steered(const char *const *more);

#endif
