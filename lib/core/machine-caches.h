/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Cores of one type whose last-level caches differ in size, as on the two dies of an X3D. Pure. */
#ifndef ASYM_CORE_MACHINE_CACHES_H
#define ASYM_CORE_MACHINE_CACHES_H

#include <stdbool.h>

#include <asym/machine.h>

/**
 * Finds the CPUs of the fastest core type that have its largest L3, and the others of that type. The others reach a higher clock:
 * the stacked cache costs some. Returns false, and two empty masks, if all caches of the type are of one size.
 */
bool asym_machine_caches_differ(const struct asym_machine *m, struct asym_mask *ret_big_cache,
                                struct asym_mask *ret_high_clock);

#endif
