/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A ledger and an actuator on live threads of the test, which needs two CPUs and fails with a message on one. */
#ifndef ASYM_TESTS_SUPPORT_STEERED_H
#define ASYM_TESTS_SUPPORT_STEERED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "linux/enforce/enforce.h"

/** The CPUs of the test, and two of them. */
extern struct asym_mask all_cpus, first, last;
extern struct asym_ledger *ledger;
extern struct asym_actuator *actuator;

/** Find the CPUs and make the ledger's directory. The tests count from nice 0, and may run under nice(1). */
int steered_set_up(void **state);

/** Close the ledger and remove its directory. */
int steered_tear_down(void **state);

void open_ledger(void);
void close_ledger(void);

/** Restore, and assert that nothing failed and nothing is left on record. */
struct asym_restore_report restore(void);

/** An action that plans no nice value. The test reads the start time itself: the code under test has its own reader. */
struct asym_action action(enum asym_action_kind kind, pid_t tgid, pid_t tid, const struct asym_mask *expect,
                          const struct asym_mask *mask);

/** Returns the error of the action's outcome. */
int apply(const struct asym_action *a);

/** Apply an action ASYM_ACTION_STEER. */
int steer(pid_t tgid, pid_t tid, const struct asym_mask *expect, const struct asym_mask *mask);

bool has(pid_t tid, const struct asym_mask *mask);

/** Wait until what is at least value. */
void await(const atomic_int *what, int value);

#endif
