/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Detects changes of CPUs: hotplug, resume, the cpuset of the machine or container. If udev runs, it reports the first two at
 * once. The service polls for the rest.
 */
#ifndef ASYM_APP_CPU_WATCH_H
#define ASYM_APP_CPU_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include <asym/machine.h>

#include "linux/sys/root.h"

struct asym_watch;

/**
 * Call fn(userdata) from the event loop whenever udev reports that a CPU was added or removed. Returns 0; -errno: udev does not
 * run, and the caller has to poll. Free it before the event loop.
 */
int asym_watch_new(sd_event *event, void (*fn)(void *userdata), void *userdata, struct asym_watch **ret_watch);
void asym_watch_free(struct asym_watch *w);

/** Returns true if the online or usable CPUs differ from those of the machine. False if they cannot be read. */
bool asym_watch_changed(const struct asym_root *root, const struct asym_machine *m);

/**
 * A hash of the abilities of CPUs. It changes if another program switches boost or turbo, changes the driver or its mode, or
 * changes the maximum frequency. It leaves out limits such as scaling_max_freq, which do not change what a CPU can do.
 */
uint64_t asym_watch_abilities(const struct asym_root *root);

#endif
