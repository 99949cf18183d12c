/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Whether the CPUs have changed: hotplug, resume, the cpuset of the machine or container. udev tells of the first two at
 * once where it runs; the rest, and everything where it does not, is found by asking.
 */
#ifndef ASYM_DAEMON_WATCH_H
#define ASYM_DAEMON_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include <asym/machine.h>

#include "linux/root.h"

struct asym_watch;

/**
 * Call fn(userdata) from the event loop whenever udev says that a CPU has come or gone. 0; -errno: there is no udev to
 * listen to, and asking is all there is. Free it before the event loop.
 */
int asym_watch_new(sd_event *event, void (*fn)(void *userdata), void *userdata, struct asym_watch **ret_watch);
void asym_watch_free(struct asym_watch *w);

/** Are the CPUs online and usable now others than the machine has? False where they cannot be read. */
bool asym_watch_changed(const struct asym_root *root, const struct asym_machine *m);

/**
 * A number that differs when what CPUs can do was changed by others: boost or turbo switched, another driver or mode of it,
 * another maximum. Not their limits, which say nothing of what they can do.
 */
uint64_t asym_watch_abilities(const struct asym_root *root);

#endif
