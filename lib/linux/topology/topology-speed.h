/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The figures of a source of speeds, and what they say. */
#ifndef ASYM_LINUX_TOPOLOGY_TOPOLOGY_SPEED_H
#define ASYM_LINUX_TOPOLOGY_TOPOLOGY_SPEED_H

#include <stdbool.h>

#include "linux/topology/topology-internal.h"

/** Fills ret->value from the file at path (as in asym_speed_source) of each of cpus; 0: the file has no integer. */
void asym_speed_read_file(const struct asym_root *root, const char *path, const struct asym_mask *cpus,
                          struct asym_figures *ret);

/** Returns whether the figures of cpus of one kind go down in small steps, without a gap that would end the kind. */
bool asym_speed_is_staircase(const struct asym_figures *f, const struct asym_machine *m, const struct asym_mask *cpus);

/**
 * An asym_speed_source.ranks for frequencies: steps of a boost that AMD's firmware gives to preferred cores are no speeds. The
 * kernel multiplies the nominal frequency by CPPC's ratio, so that 32 equal cores have 5.4 to 7.8 GHz in their files.
 */
const char *asym_speed_boost_steps(const struct asym_root *root, const struct asym_figures *f,
                                   const struct asym_machine *m);

/** Returns whether cpus have two different figures above 0. */
bool asym_speed_differs(const struct asym_figures *f, const struct asym_mask *cpus);

#endif
