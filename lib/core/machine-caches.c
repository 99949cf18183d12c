/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/machine-caches.h"

#include "base/macro.h"
#include "base/mask.h"

bool asym_machine_caches_differ(const struct asym_machine *m, struct asym_mask *ret_big_cache,
                                struct asym_mask *ret_high_clock)
{
    const struct asym_mask *cpus = &m->types[0].cpus;
    uint32_t most = 0;
    *ret_big_cache = *ret_high_clock = (struct asym_mask){0};
    ASYM_MASK_FOREACH (c, cpus)
        most = ASYM_MAX(most, m->cpus[c].l3_kib);
    ASYM_MASK_FOREACH (c, cpus)
        if (m->cpus[c].l3_kib < most)
            asym_mask_set(ret_high_clock, (unsigned)c);
    if (asym_mask_empty(ret_high_clock))
        return false;
    *ret_big_cache = asym_mask_minus(cpus, ret_high_clock);
    return true;
}
