/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turn a target into the mask to enforce: as wide as pin says, without CPUs that are exclusive to other threads. */
#include "core/engine-internal.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"

/* CPUs of one core type under one LLC. A step finds them once: a plan for 10,000 threads uses them 10,000 times. */
struct llc_set {
    int16_t type, llc;
    struct asym_mask cpus;
};

struct pins {
    enum asym_pin pin;
    const struct asym_machine *machine;
    struct llc_set *sets;
    uint16_t set_of[ASYM_MAX_CPUS];
    struct asym_mask one, reserved;
    struct narrowed {
        uint32_t allowed, set; /* set: pin_key + 1; 0: free */
        uint32_t mask;
    } * cache;
    size_t n_slots; /* a power of two */
};

enum { CACHE_LEAST = 16, CACHE_MOST = 1024 };

/* Size the cache by the plan: most steps have a few threads, and each step clears the whole cache. */
static int make_cache(struct asym_engine *e, struct pins *p, size_t n_threads)
{
    p->n_slots = CACHE_LEAST;
    while (p->n_slots < CACHE_MOST && p->n_slots < 2 * n_threads)
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

/* CPUs with equal keys have equal pin sets and agree on exclusive. */
static uint32_t pin_key(const struct pins *p, int32_t cpu, bool exclusive)
{
    int32_t set = cpu;
    if (p->pin == ASYM_PIN_TYPE)
        set = p->machine->cpus[cpu].type;
    else if (p->pin == ASYM_PIN_LLC)
        set = p->set_of[cpu];
    return (uint32_t)set * 2 + exclusive;
}

/* Exclusive threads share the reserved CPUs of the set; all others keep off them (docs/policies.md, rule 2). */
static uint32_t narrow(struct pins *p, struct asym_mask_table *masks, uint32_t allowed, int32_t cpu, bool exclusive)
{
    const uint32_t key = pin_key(p, cpu, exclusive);
    const size_t slot = (allowed * 61 + key) & (p->n_slots - 1);
    if (p->cache[slot].set == key + 1 && p->cache[slot].allowed == allowed)
        return p->cache[slot].mask;
    const struct asym_mask all = asym_mask_and(asym_mask_table_at(masks, allowed), pin_set(p, cpu));
    const struct asym_mask part = exclusive ? asym_mask_and(&all, &p->reserved) : asym_mask_minus(&all, &p->reserved);
    p->cache[slot].set = key + 1;
    p->cache[slot].allowed = allowed;
    p->cache[slot].mask = asym_mask_table_id(masks, asym_mask_empty(&part) ? &all : &part);
    return p->cache[slot].mask;
}

int8_t asym_nice_by_rule(const struct asym_thread_state *m, const struct asym_proc *proc, bool keep)
{
    const bool lends = proc->rule_facts && proc->rule_facts->has_nice && !m->nice_foreign && !keep;
    return lends ? proc->rule_facts->nice : m->original_nice;
}

/* Adds the policy's nice delta only if the policy steers the thread. */
static int8_t planned_nice(const struct asym_task_ref *ref, bool keep, bool steers)
{
    const struct asym_thread_state *m = ref->thread_state;
    const int delta = steers ? m->assignment.nice_delta : 0;
    if (m->nice_foreign || keep)
        return m->boosted ? m->original_nice : ref->seen.task->nice;
    return (int8_t)ASYM_MAX(-20, ASYM_MIN(19, asym_nice_by_rule(m, ref->seen.proc, false) + delta));
}

int asym_step_masks(struct asym_step *st)
{
    const struct asym_engine_config *config = &st->e->config;
    struct pins pins; /* only ASYM_PIN_LLC reads set_of, most of the struct: find_llc_sets sets it */
    pins.pin = config->enforce.pin < 0 ? config->policy->pin : (enum asym_pin)config->enforce.pin;
    pins.machine = st->s->machine;
    pins.reserved = (struct asym_mask){0};
    if (make_cache(st->e, &pins, st->n_policy_threads) < 0 ||
        (pins.pin == ASYM_PIN_LLC && find_llc_sets(st->e, &pins) < 0))
        return -ENOMEM;
    for (size_t i = 0; i < st->n_policy_threads; i++) {
        const struct asym_plan_task *out = &st->tasks[st->policy_refs[i].task];
        if (out->exclusive)
            asym_mask_set(&pins.reserved, (unsigned)out->target);
    }
    for (size_t i = 0; i < st->n_policy_threads; i++) {
        struct asym_plan_task *out = &st->tasks[st->policy_refs[i].task];
        struct asym_task_ref *ref = &st->refs[st->policy_refs[i].task];
        if (out->target < 0)
            continue;
        const bool steers = out->reason != &asym_reason_rule; /* else asym_step_plan has set plan_mask */
        if (steers)
            ref->plan_mask = narrow(&pins, &st->e->masks, st->policy_refs[i].allowed, out->target, out->exclusive);
        out->nice = planned_nice(ref, config->keep_nice, steers);
        /* If the new mask holds its CPU, the kernel decides whether the thread stays. */
        out->moves = !asym_mask_has(asym_mask_table_at(&st->e->masks, ref->plan_mask), ref->seen.task->cpu);
        st->e->result.n_moves += out->moves;
    }
    return st->e->masks.failed ? -ENOMEM : 0;
}
