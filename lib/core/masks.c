/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a target to the mask that is enforced: as wide as pin says, and off the CPUs that others hold. */
#include "core/engine-internal.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"

/* CPUs of one core type under one LLC. Found once a step: a plan for 10,000 threads asks as often. */
struct llc_set {
    int16_t type, llc;
    struct asym_mask cpus;
};

struct pins {
    enum asym_pin pin;
    const struct asym_machine *machine;
    struct llc_set *sets;
    uint16_t set_of[ASYM_MAX_CPUS];
    struct asym_mask one, claimed;
    struct narrowed {
        uint32_t may, set; /* set: by what pin_key says, + 1; 0: free */
        uint32_t mask;
    } * cache;
    size_t n_slots; /* a power of two */
};

enum { CACHE_LEAST = 16, CACHE_MOST = 1024 };

/* As large as the plan can make use of: most steps have a few threads, and all of it is cleared. */
static int make_cache(struct asym_engine *e, struct pins *p, size_t n_views)
{
    p->n_slots = CACHE_LEAST;
    while (p->n_slots < CACHE_MOST && p->n_slots < 2 * n_views)
        p->n_slots *= 2;
    p->cache = asym_pool_reserve(&e->pools.narrowed, p->n_slots, sizeof *p->cache);
    if (!p->cache)
        return -ENOMEM;
    memset(p->cache, 0, p->n_slots * sizeof *p->cache);
    return 0;
}

static int find_llc_sets(struct asym_engine *e, struct pins *p)
{
    const struct asym_machine *m = p->machine;
    size_t n = 0;
    p->sets = asym_pool_reserve(&e->pools.llcs, m->n_cpus, sizeof *p->sets);
    if (!p->sets)
        return -ENOMEM;
    ASYM_MASK_FOREACH (c, &m->usable) {
        const struct asym_cpu *cpu = &m->cpus[c];
        size_t i = 0;
        while (i < n && (p->sets[i].type != cpu->type || p->sets[i].llc != cpu->llc))
            i++;
        if (i == n)
            p->sets[n++] = (struct llc_set){.type = cpu->type, .llc = cpu->llc};
        asym_mask_set(&p->sets[i].cpus, (unsigned)c);
        p->set_of[c] = (uint16_t)i;
    }
    return 0;
}

static const struct asym_mask *pin_set(struct pins *p, int32_t cpu)
{
    switch (p->pin) {
    case ASYM_PIN_TYPE:
        return &p->machine->types[p->machine->cpus[cpu].type].cpus;
    case ASYM_PIN_LLC:
        return &p->sets[p->set_of[cpu]].cpus;
    case ASYM_PIN_CPU:
        break;
    }
    memset(&p->one, 0, sizeof p->one);
    asym_mask_set(&p->one, (unsigned)cpu);
    return &p->one;
}

/* CPUs with equal keys have equal pin sets; the claim belongs to it. */
static uint32_t pin_key(const struct pins *p, int32_t cpu, bool claim)
{
    int32_t set = cpu;
    if (p->pin == ASYM_PIN_TYPE)
        set = p->machine->cpus[cpu].type;
    else if (p->pin == ASYM_PIN_LLC)
        set = p->set_of[cpu];
    return (uint32_t)set * 2 + claim;
}

/* A claim is exclusive (policies.md, rule 2): claimers share the claimed CPUs of the set, all others keep off them. */
static uint32_t narrow(struct pins *p, struct asym_masks *masks, uint32_t may, int32_t cpu, bool claim)
{
    const uint32_t key = pin_key(p, cpu, claim);
    const size_t slot = (may * 61 + key) & (p->n_slots - 1);
    if (p->cache[slot].set == key + 1 && p->cache[slot].may == may)
        return p->cache[slot].mask;
    const struct asym_mask all = asym_mask_and(asym_masks_at(masks, may), pin_set(p, cpu));
    const struct asym_mask part = claim ? asym_mask_and(&all, &p->claimed) : asym_mask_minus(&all, &p->claimed);
    p->cache[slot].set = key + 1;
    p->cache[slot].may = may;
    p->cache[slot].mask = asym_masks_id(masks, asym_mask_empty(&part) ? &all : &part);
    return p->cache[slot].mask;
}

static int8_t planned_nice(const struct asym_thread_memory *m, const struct asym_task *task, bool keep)
{
    if (m->nice_foreign || keep)
        return m->boosted ? m->original_nice : task->nice;
    return (int8_t)ASYM_MAX(-20, ASYM_MIN(19, m->original_nice + m->assignment.nice_delta));
}

int asym_step_masks(struct asym_step *st)
{
    const struct asym_engine_config *config = &st->e->config;
    struct pins pins; /* set_of, which is most of it, is set where it is asked for */
    pins.pin = config->enforce.pin < 0 ? config->policy->pin : (enum asym_pin)config->enforce.pin;
    pins.machine = st->s->machine;
    pins.claimed = (struct asym_mask){0};
    if (make_cache(st->e, &pins, st->n_views) < 0 || (pins.pin == ASYM_PIN_LLC && find_llc_sets(st->e, &pins) < 0))
        return -ENOMEM;
    for (size_t v = 0; v < st->n_views; v++) {
        const struct asym_plan_task *out = &st->tasks[st->view_refs[v].task];
        if (out->claim)
            asym_mask_set(&pins.claimed, (unsigned)out->target);
    }
    for (size_t v = 0; v < st->n_views; v++) {
        struct asym_plan_task *out = &st->tasks[st->view_refs[v].task];
        struct asym_task_ref *ref = &st->refs[st->view_refs[v].task];
        if (out->target < 0)
            continue;
        ref->plan_mask = narrow(&pins, &st->e->masks, st->view_refs[v].may, out->target, out->claim);
        out->nice = planned_nice(ref->memory, ref->seen.task, config->keep_nice);
        /* What the new mask lets it stay on is the kernel's to choose. */
        out->moves = !asym_mask_has(asym_masks_at(&st->e->masks, ref->plan_mask), ref->seen.task->cpu);
        st->e->result.n_moves += out->moves;
    }
    return st->e->masks.failed ? -ENOMEM : 0;
}
