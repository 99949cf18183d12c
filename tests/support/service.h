/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * An asymd of the build tree that steers what a test has started and nothing else, with half of the CPUs taken for slow
 * and a state directory of its own. Everything ends with an assertion on failure.
 */
#ifndef ASYM_TESTS_SERVICE_H
#define ASYM_TESTS_SERVICE_H

#include <stddef.h>
#include <sys/types.h>

#define ASYM_SERVICE "daemon/asymd"

/** For cmocka: a state directory. One CPU leaves nothing to steer, so that two are needed. */
int asym_service_set_up(void **state);
int asym_service_tear_down(void **state);

/** The state directory of this test; files put there are removed with it. */
const char *asym_service_dir(void);

/** Start it for target and its descendants, looking every 50 ms; more: further arguments, NULL-terminated, or NULL. */
pid_t asym_service_start(pid_t target, const char *const *more);

/** As above, with no CPU taken for slow. */
pid_t asym_service_start_alike(pid_t target, const char *const *more);

/** The same; what it says goes to the descriptor. */
pid_t asym_service_start_to(pid_t target, const char *const *more, int out);

/** asymd --once, the same way. Its exit status. */
int asym_service_once(pid_t target);

/** asymd --restore: exit status, and what it said. */
int asym_service_restore(char *text, size_t size);

/** A program with that many threads that do nothing but work, for two minutes at most. */
pid_t asym_service_spin(const char *threads);

#endif
