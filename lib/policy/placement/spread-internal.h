/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Helpers of spread, also used by balance, eshmp, ipc-driven and priority. */
#ifndef ASYM_POLICY_PLACEMENT_SPREAD_INTERNAL_H
#define ASYM_POLICY_PLACEMENT_SPREAD_INTERNAL_H

#include "base/macro.h"
#include "base/mask.h"
#include "policy/placement/spread.h"

static inline enum asym_nearness asym_nearness(const struct asym_machine *m, int preferred_cpu, int cpu)
{
    if (cpu == preferred_cpu)
        return ASYM_AT_PREFERRED;
    if (preferred_cpu < 0)
        return ASYM_ANYWHERE;
    const struct asym_cpu *h = &m->cpus[preferred_cpu], *c = &m->cpus[cpu];
    return h->llc == c->llc ? ASYM_SAME_LLC : h->node == c->node ? ASYM_SAME_NODE : ASYM_ANYWHERE;
}

static inline void asym_spread_put(struct asym_spread *sp, uint32_t t, int32_t cpu)
{
    sp->ret[t].cpu = cpu;
    sp->load[cpu]++;
    sp->core_load[sp->in->machine->cpus[cpu].core]++;
}

static inline uint32_t asym_most_siblings(const struct asym_machine *m, const struct asym_mask *cpus)
{
    uint32_t most = 1;
    ASYM_MASK_FOREACH (c, cpus)
        most = ASYM_MAX(most, m->cpus[c].smt_rank + 1u);
    return most;
}

#endif
