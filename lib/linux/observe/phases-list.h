/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Reads the followed threads from the memory that the BPF programs write, while they write it. It makes no system call. */
#ifndef ASYM_LINUX_OBSERVE_PHASES_LIST_H
#define ASYM_LINUX_OBSERVE_PHASES_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "linux/observe/phases-shared.h"
#include "linux/observe/phases-types.h"

struct asym_phases_list;

/** shared must outlive the list. Returns NULL if no memory is left. */
struct asym_phases_list *asym_phases_list_new(const struct asym_phases_shared *shared);

/** Accepts NULL. */
void asym_phases_list_free(struct asym_phases_list *l);

/**
 * Read all threads, in ascending order of tid; times until now_ns (CLOCK_MONOTONIC). Valid until the next call. Returns their
 * number. No time of a thread is less than in the call before.
 */
size_t asym_phases_list_read(struct asym_phases_list *l, uint64_t now_ns, const struct asym_phases_thread **ret);

/** The functions behind asym_phases_runnable() and asym_phases_stats(). */
uint32_t asym_phases_list_runnable(const struct asym_phases_shared *shared, uint32_t app, int32_t *ret_tid);
struct asym_phases_stats asym_phases_list_stats(const struct asym_phases_shared *shared);

/** Returns a slot that is in use and that the reconciliation of this round has not met: its thread is gone. 0: none. */
uint32_t asym_phases_list_stale(const struct asym_phases_shared *shared, uint32_t round);

#endif
