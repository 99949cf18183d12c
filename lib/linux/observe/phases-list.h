/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Reads the followed threads from the memory that the BPF programs write, while they write it. It makes no system call. */
#ifndef ASYM_LINUX_OBSERVE_PHASES_LIST_H
#define ASYM_LINUX_OBSERVE_PHASES_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "linux/observe/phases-shared.h"
#include "linux/observe/phases-types.h"

struct asym_phases_list;

/** shared must outlive the list, and has one list at a time. Returns NULL if no memory is left. */
struct asym_phases_list *asym_phases_list_new(struct asym_phases_shared *shared);

/** Accepts NULL. */
void asym_phases_list_free(struct asym_phases_list *l);

/**
 * The functions behind asym_phases_list(). The first notes in shared->listed which places the second reads, and returns how many
 * there are. Times until now_ns (CLOCK_MONOTONIC). No time is less than in the call before. has_settings: the program has compared
 * the settings of those that are listed.
 */
uint32_t asym_phases_list_find(struct asym_phases_shared *shared);
void asym_phases_list_read(struct asym_phases_list *l, uint64_t now_ns, bool has_settings,
                           const struct asym_phases_thread **ret_threads, const uint32_t **ret_slots);

/** The functions behind those of phases-kernel.h with these names. */
void asym_phases_list_begin_interval(struct asym_phases_shared *shared);
bool asym_phases_list_slept(struct asym_phases_shared *shared, int32_t tgid);
bool asym_phases_list_doze(struct asym_phases_shared *shared);
uint32_t asym_phases_list_runnable(const struct asym_phases_shared *shared, uint32_t app, int32_t *ret_tid);

/**
 * Returns the next slot behind slot whose thread seems to be runnable, and has not changed for half a second; 0: no more. If an
 * event is lost, this is what remains: a lost wake-up is found by the next switch, a lost switch or end by nothing.
 */
uint32_t asym_phases_list_old(const struct asym_phases_shared *shared, uint32_t slot, uint64_t now_ns);

#endif
