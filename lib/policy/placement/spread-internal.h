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
}

/* Returns the siblings of cpu that have more than `least` threads. One that is reserved counts twice. */
static inline uint32_t asym_spread_beside(const struct asym_spread *sp, int cpu, uint32_t least)
{
    const struct asym_cpu *cpus = sp->in->machine->cpus;
    uint32_t n = 0;
    for (int s = cpus[cpu].sibling; s != cpu; s = cpus[s].sibling)
        n += sp->load[s] > least ? 1u + asym_mask_has(&sp->reserved, s) : 0;
    return n;
}

/* Returns whether no CPU of the core of cpu has a thread. */
static inline bool asym_spread_core_is_idle(const struct asym_spread *sp, int cpu)
{
    return sp->load[cpu] == 0 && asym_spread_beside(sp, cpu, 0) == 0;
}

#endif
