/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The observer bpf: a source around procfs. It follows the applications of several threads that procfs lists, and replaces what
 * procfs sampled by what the kernel counted (phases-kernel.h): how long each thread ran, how long it was runnable, and for which
 * share the others waited for it (critical). It also knows when an application has come down to one runnable thread.
 *
 * The kernel has places for some programs and threads only. When they are full, a user who has few takes them from the one who has
 * most.
 *
 * A thread that is the only runnable one of its application has ASYM_TASK_ALONE from the moment that the kernel says so, which
 * needs no sample: the caller waits for the descriptor, takes the events, and refreshes the source.
 */
#ifndef ASYM_LINUX_OBSERVE_BPF_H
#define ASYM_LINUX_OBSERVE_BPF_H

#include <stdbool.h>
#include <stdint.h>

#include <asym/port.h>

#include "config/settings.h"

struct asym_phases;

/** Readable when an application has changed to one runnable thread, or from it, and at the end of a doze. Borrowed. */
int asym_bpf_fd(const struct asym_source *source);

/** Take the events. Returns whether the next snapshot has another thread alone than the last one. */
bool asym_bpf_take(struct asym_source *source);

/**
 * Charge the CPU time of the last take and of the answer to it, in equal parts, to the users whose applications the events came
 * from. Each user has a share of asymd.cpu_budget. While he has overdrawn it, nothing is told of his programs.
 */
void asym_bpf_charge(struct asym_source *source, asym_usec cost);

/** The events of serial phases that the caller wants to hear of. */
enum asym_bpf_hears {
    ASYM_BPF_NOTHING, /**< it does not wait for the descriptor, and the kernel tells of none */
    ASYM_BPF_PHASES,  /**< their begins and their ends */
    ASYM_BPF_BEGINS,  /**< their begins; where the same thread is alone again, not before the next sample */
};

/** Use the limits of these settings, and divide the budget anew; about once a second. */
void asym_bpf_set(struct asym_source *source, const struct asym_daemon_settings *settings, enum asym_bpf_hears hears);

/** Call it about once a second: puts counts right that the kernel missed. Returns whether it follows a process. */
bool asym_bpf_housekeeping(struct asym_source *source);

/** The programs of the kernel; borrowed. */
struct asym_phases *asym_bpf_kernel(const struct asym_source *source);

/** Returns the number by which they know the application (asym_app.id); 0: they do not follow it. */
uint32_t asym_bpf_number(const struct asym_source *source, const struct asym_taskid *app);

#endif
