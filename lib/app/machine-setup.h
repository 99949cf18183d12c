/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Sets up the machine of a run: its topology and speeds, as changed by the configuration. Notices when its CPUs change. */
#ifndef ASYM_APP_MACHINE_SETUP_H
#define ASYM_APP_MACHINE_SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include <asym/types.h>
#include <asym/machine.h>

#include "app/run.h"
#include "base/token-bucket.h"
#include "linux/sys/root.h"

/** All cap methods, then NULL. */
extern const struct asym_cap_method *const asym_speed_methods[];

/** Returns the configured method; NULL: the configuration names none, so asymd slows no CPU. */
const struct asym_cap_method *asym_speed_method(const struct asym_settings *s);

/** Returns true if those CPUs have the configured speed now, set by this asymd or another. */
bool asym_speeds_are_in_force(const struct asym_run *run, const struct asym_mask *slow);

/**
 * Read the machine, and mark the configured CPUs as slow. chooses false, after hotplug: keep the choice of slow CPUs; one that is
 * offline is no error. Returns 0; -errno with err, and changes nothing.
 */
int asym_run_machine(struct asym_run *run, bool chooses, struct asym_error *err);

/**
 * Returns true if the online or usable CPUs differ from those of the machine: after hotplug, or a change of the cpuset of the
 * machine or container. False if they cannot be read.
 */
bool asym_watch_changed(const struct asym_root *root, const struct asym_machine *m);

/**
 * A hash of the abilities of the machine. It changes if another program switches boost or turbo or changes the mode of the
 * driver, and with the isolated CPUs.
 */
uint64_t asym_watch_abilities(const struct asym_root *root);

/**
 * A hash of what each CPU can do: its capacity, its rank among favoured cores, its highest frequency, its driver. These change
 * while the machine runs, for example when a game starts on an X3D. Limits such as scaling_max_freq are left out, since they do
 * not change what a CPU can do.
 */
struct asym_cpu_facts {
    uint64_t of[ASYM_MAX_CPUS];
    int next;                         /**< the CPU that the next look begins with */
    struct asym_token_bucket changes; /**< one token for each change that the caller acts on */
};

/** Read the facts of all these CPUs. */
void asym_watch_read_facts(struct asym_cpu_facts *facts, const struct asym_root *root, const struct asym_mask *cpus,
                           asym_usec now);

/**
 * Look at a few of these CPUs, in turns: at 16 of them, which takes 0.3 ms. Returns true if one of them has changed; the facts
 * are then those of now. Figures that keep changing bring true three times at once, then every 10 s at most.
 */
bool asym_watch_facts_changed(struct asym_cpu_facts *facts, const struct asym_root *root, const struct asym_mask *cpus,
                              asym_usec now);

#endif
