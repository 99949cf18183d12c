/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The actuator for a live machine: affinity by sched_setaffinity, nice by sched_setattr with
 * SCHED_FLAG_RESET_ON_FORK, each written down in the ledger first.
 */
#ifndef ASYM_LINUX_ACTUATOR_H
#define ASYM_LINUX_ACTUATOR_H

#include <asym/error.h>
#include <asym/port.h>

#include "linux/births.h"
#include "linux/ledger.h"

/** Ledger: borrowed for the actuator's life. */
int asym_actuator_linux_new(struct asym_ledger *ledger, struct asym_actuator **ret_actuator);

/**
 * Guard against inheritance: give it to asym_births_watch as hook with the ledger as ctx. On the birth of a process whose
 * creator is of a steered process: the child gets the creator's original mask and nice, then every steered thread of
 * the creator's process is released (fork hold-off), all at once and in the calling thread. On the birth of a thread
 * in a steered process: a new thread that carries what a steered one was given gets that one's original mask and nice.
 * On an exec in a steered process the same for the new image, and the process is released. After it, actions on a thread
 * that was released here end in RETRY, not in HANDS_OFF.
 */
void asym_guard_on_birth(void *ledger, const struct asym_birth *event);

#endif
