/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Describes CPUs beyond their speed. */
#ifndef ASYM_REPORT_CPU_DESCRIPTION_H
#define ASYM_REPORT_CPU_DESCRIPTION_H

#include <stdbool.h>
#include <stddef.h>

#include <asym/machine.h>

#include "core/machine-situation.h"
#include "linux/topology/topology.h"

/** Said where CPUs differ in speed, and none is slow. */
#define ASYM_NO_SLOW_CPU                                                                                               \
    "no CPU is slow: every core type reaches the share machine.fast_from of the fastest one's speed"

/** Returns asym_situation_alike() for this machine. notes: NULL: none. */
const struct asym_alike *asym_describe_alike(const struct asym_machine *m, const struct asym_topology_notes *notes);

/** Write "L3: 96 MiB on 0-7, 32 MiB on 8-15". Returns false, and writes nothing, if all CPUs have the same L3 size. */
bool asym_describe_l3(const struct asym_machine *m, char *buf, size_t size);

/** Write the favoured CPUs of a core type, "8-11". Returns false, and writes nothing, if all its CPUs are equal. */
bool asym_describe_favoured(const struct asym_machine *m, unsigned type, char *buf, size_t size);

#endif
