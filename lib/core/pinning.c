/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Turn a target into the mask to enforce: as wide as pin says, without CPUs that are exclusive to other threads. Threads of a crowd
 * may also use the CPUs that light threads leave idle for part of the time.
 */
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
    size_t n_sets;
    uint16_t set_of[ASYM_MAX_CPUS];
    float demand[ASYM_MAX_CPUS]; /* per CPU: the duties of the threads planned on it that do not hold it */
    struct asym_mask one, reserved, spare, shared, crowded; /* reserved: held by a thread, or spare */
    struct asym_mask busy;                                  /* of threads that are not light */
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
    p->n_sets = n;
    return 0;
}

/* Not the width of a policy: the CPU, and those of its type that have light threads only, or none. */
#define ROAMS ASYM_PIN_EACH

static const struct asym_mask *pin_set(struct pins *p, enum asym_pin width, int32_t cpu)
{
    switch (width) {
    case ASYM_PIN_ALL:
        return &p->machine->usable;
    case ROAMS:
        p->one = asym_mask_minus(&p->machine->types[p->machine->cpus[cpu].type].cpus, &p->busy);
        asym_mask_set(&p->one, (unsigned)cpu);
        return &p->one;
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

/* --- crowds --- */

/* A set of CPUs is crowded from this demand above its CPUs on. It stays crowded as long as there is more demand than CPUs. */
#define CROWDED_FROM 0.25

static bool has_alone(const struct asym_step *st, const struct asym_policy_app *app)
{
    for (uint32_t i = 0; i < app->n_threads; i++)
        if (st->policy_threads[app->first_thread + i].alone)
            return true;
    return false;
}

/*
 * Add up what the threads of an application need that hold no CPU. While one of them is alone the others sleep, whatever they did
 * in the second before.
 */
static void add_demand_of(const struct asym_step *st, struct pins *p, const struct asym_policy_app *app,
                          struct asym_mask *ret_used)
{
    const bool others_sleep = has_alone(st, app);
    for (size_t i = app->first_thread; i < app->first_thread + app->n_threads; i++) {
        const struct asym_plan_task *out = &st->tasks[st->policy_refs[i].task];
        const struct asym_policy_thread *thread = &st->policy_threads[i];
        if (out->target < 0 || out->exclusive)
            continue;
        p->demand[out->target] += others_sleep && !thread->alone ? 0 : (float)thread->duty;
        asym_mask_set(ret_used, (unsigned)out->target);
    }
}

/* Light threads that sleep now keep their CPUs shared. */
static void add_demand(const struct asym_step *st, struct pins *p, struct asym_mask *ret_used)
{
    const struct asym_engine *e = st->e;
    memset(p->demand, 0, p->machine->n_cpus * sizeof p->demand[0]);
    for (size_t i = 0; i < st->n_policy_apps; i++)
        add_demand_of(st, p, &st->policy_apps[i], ret_used);
    for (uint32_t i = 0; i < e->threads.n && asym_step_has_unlisted(st); i++) {
        const struct asym_thread_state *m = asym_table_at(&e->threads, i);
        if (m->state == ASYM_AFFINITY_STEERED && m->seen != e->step && m->given >= 0)
            asym_mask_set(ret_used, (unsigned)m->given);
    }
}

static void find_crowd(const struct asym_engine *e, struct pins *p, const struct asym_mask *cpus)
{
    const struct asym_mask open = asym_mask_minus(cpus, &p->reserved);
    double demand = 0;
    ASYM_MASK_FOREACH (c, &open)
        demand += (double)p->demand[c];
    const double above = demand - asym_mask_count(&open);
    if (above >= CROWDED_FROM || (above > 0 && asym_mask_within(&open, &e->crowded)))
        p->crowded = asym_mask_or(&p->crowded, &open);
}

static void find_crowds(const struct asym_engine *e, struct pins *p)
{
    const struct asym_machine *m = p->machine;
    ASYM_MASK_FOREACH (c, &m->usable) {
        const double above = (double)p->demand[c] - 1;
        if (above >= CROWDED_FROM || (above > 0 && asym_mask_has(&e->crowded, c)))
            asym_mask_set(&p->crowded, (unsigned)c);
    }
    for (unsigned t = 0; p->pin == ASYM_PIN_TYPE && t < m->n_types; t++)
        find_crowd(e, p, &m->types[t].cpus);
    for (size_t i = 0; p->pin == ASYM_PIN_LLC && i < p->n_sets; i++)
        find_crowd(e, p, &p->sets[i].cpus);
}

/*
 * A CPU is shared if no thread holds it and its threads need less of it than one that may hold it. It stays shared until they need
 * more than that by the hysteresis of light threads.
 */
static void find_shared(struct asym_step *st, struct pins *p)
{
    struct asym_engine *e = st->e;
    const double limit = e->config.enforce.exclusive_from / ASYM_DUTY_STAYS;
    struct asym_mask used = {0};
    add_demand(st, p, &used);
    used = asym_mask_and(&used, &p->machine->usable);
    used = asym_mask_minus(&used, &p->reserved);
    ASYM_MASK_FOREACH (c, &used)
        if (asym_duty_is_light((double)p->demand[c], asym_mask_has(&e->shared, c), limit))
            asym_mask_set(&p->shared, (unsigned)c);
    e->shared = p->shared;
    if (!asym_mask_empty(&p->shared))
        find_crowds(e, p);
    e->crowded = p->crowded;
    if (asym_mask_empty(&p->crowded))
        p->shared = p->crowded;
}

/* --- masks --- */

/* The use that a thread makes of the CPUs of others. */
enum use {
    USE_OPEN,  /* it keeps off the reserved CPUs */
    USE_HELD,  /* it holds its CPU */
    USE_CROWD, /* it may also use the shared ones */
    USE_STEADY, /* it keeps off these, too: else it might sit on one of them, where a crowd may not take its place elsewhere */
    N_USES,
};

/* In a monitoring turn a thread keeps to the core type that it is measured on. */
static bool is_measured(const struct asym_plan_task *out)
{
    return out->counted && out->reason->rotates;
}

static enum use use_of(const struct pins *p, const struct asym_plan_task *out)
{
    if (out->exclusive)
        return USE_HELD;
    if (asym_mask_has(&p->crowded, out->target) && !is_measured(out))
        return USE_CROWD;
    return out->light || asym_mask_has(&p->shared, out->target) ? USE_OPEN : USE_STEADY;
}

/* Two light threads that wake at the same time must not wait for one CPU while another one is idle. */
static enum asym_pin width_of(const struct asym_step *st, const struct pins *p, size_t i,
                              const struct asym_plan_task *out)
{
    const enum asym_pin width = p->pin == ASYM_PIN_EACH ? st->policy_refs[i].width : p->pin;
    const bool roams = out->light && !out->exclusive && !st->e->config.policy->apart;
    return roams && width == ASYM_PIN_CPU ? ROAMS : width;
}

/* CPUs with equal keys have equal pin sets, and are used alike. */
static uint32_t pin_key(const struct pins *p, enum asym_pin width, int32_t cpu, enum use use)
{
    int32_t set = 0;
    if (width == ASYM_PIN_CPU || width == ROAMS)
        set = cpu;
    else if (width == ASYM_PIN_LLC)
        set = p->set_of[cpu];
    else if (width == ASYM_PIN_TYPE)
        set = p->machine->cpus[cpu].type;
    return ((uint32_t)set * (ROAMS + 1) + (uint32_t)width) * N_USES + use;
}

/* Exclusive threads share the reserved CPUs of the set; all others keep off them (docs/policies.md, rule 2). */
static struct asym_mask mask_for(const struct pins *p, const struct asym_mask *may, const struct asym_mask *set,
                                 enum use use)
{
    const struct asym_mask all = asym_mask_and(may, set);
    const struct asym_mask held = asym_mask_minus(&p->reserved, &p->spare);
    struct asym_mask part = use == USE_HELD ? asym_mask_and(&all, &held) : asym_mask_minus(&all, &p->reserved);
    if (asym_mask_empty(&part) && use != USE_HELD)
        part = asym_mask_minus(&all, &held);
    if (asym_mask_empty(&part))
        return all;
    const struct asym_mask shared = asym_mask_and(may, &p->shared), rest = asym_mask_minus(&part, &shared);
    if (use == USE_CROWD)
        return asym_mask_or(&part, &shared);
    /* The rest is empty if another thread holds its own CPU, and light threads have all others. */
    return use == USE_STEADY && !asym_mask_empty(&rest) ? rest : part;
}

static uint32_t narrow(struct pins *p, struct asym_mask_table *masks, uint32_t allowed, int32_t cpu,
                       enum asym_pin width, enum use use)
{
    const uint32_t key = pin_key(p, width, cpu, use);
    const size_t slot = (allowed * 61 + key) & (p->n_slots - 1);
    if (p->cache[slot].set == key + 1 && p->cache[slot].allowed == allowed)
        return p->cache[slot].mask;
    const struct asym_mask mask = mask_for(p, asym_mask_table_at(masks, allowed), pin_set(p, width, cpu), use);
    p->cache[slot].set = key + 1;
    p->cache[slot].allowed = allowed;
    p->cache[slot].mask = asym_mask_table_id(masks, &mask);
    return p->cache[slot].mask;
}

int8_t asym_nice_by_rule(const struct asym_thread_state *m, const struct asym_proc *proc, bool keep)
{
    const bool lends = proc->rule_facts && proc->rule_facts->has_nice && !m->nice_foreign && !keep;
    return lends ? proc->rule_facts->nice : m->original_nice;
}

int8_t asym_planned_nice(const struct asym_task_ref *ref, bool keep, bool steers)
{
    const struct asym_thread_state *m = ref->thread_state;
    const int delta = steers ? m->assignment.nice_delta : 0;
    if (m->nice_foreign || keep)
        return m->boosted ? m->original_nice : ref->seen.task->nice;
    const int nice = asym_nice_by_rule(m, ref->seen.proc, false) + delta;
    return (int8_t)ASYM_MAX(-20, ASYM_MIN(19, nice));
}

int asym_step_masks(struct asym_step *st)
{
    const struct asym_engine_config *config = &st->e->config;
    struct pins pins; /* most of it is set_of, which find_llc_sets sets where a mask can have that width */
    pins.pin = config->enforce.pin < 0 ? config->policy->pin : (enum asym_pin)config->enforce.pin;
    pins.machine = st->s->machine;
    pins.busy = st->busy;
    pins.spare = st->e->spare;
    pins.reserved = asym_mask_or(&st->held, &st->e->spare);
    const bool by_llc = pins.pin == ASYM_PIN_LLC || pins.pin == ASYM_PIN_EACH;
    if (make_cache(st->e, &pins, st->n_policy_threads) < 0 || (by_llc && find_llc_sets(st->e, &pins) < 0))
        return -ENOMEM;
    pins.shared = pins.crowded = (struct asym_mask){0};
    if (!config->policy->apart && pins.pin != ASYM_PIN_EACH)
        find_shared(st, &pins);
    else
        st->e->shared = st->e->crowded = (struct asym_mask){0};
    for (size_t i = 0; i < st->n_policy_threads; i++) {
        struct asym_plan_task *out = &st->tasks[st->policy_refs[i].task];
        struct asym_task_ref *ref = &st->refs[st->policy_refs[i].task];
        if (out->target < 0)
            continue;
        if (out->reason != &asym_reason_rule) /* else asym_step_plan has set plan_mask */
            ref->plan_mask = narrow(&pins, &st->e->masks, st->policy_refs[i].allowed, out->target,
                                    width_of(st, &pins, i, out), use_of(&pins, out));
        out->mask = asym_mask_table_at(&st->e->masks, ref->plan_mask);
        /* If the new mask holds its CPU, the kernel decides whether the thread stays. */
        out->moves = !asym_mask_has(out->mask, ref->seen.task->cpu);
        st->e->result.n_moves += out->moves;
    }
    return st->e->masks.failed ? -ENOMEM : 0;
}

/*
 * Choose a transit CPU for a running thread whose new mask excludes the CPU it runs on. The kernel sends it to any CPU of
 * that mask, busy or not, and later ticks have to part the two threads (cpumask_any_and_distribute in
 * __set_cpus_allowed_ptr).
 * A trace shows the cost: a thread made room for the serial thread of its program, and the kernel put it beside a third
 * thread. The CPU that the serial thread had left stayed idle. The two shared a CPU for 320 ms of a slow guest's clock
 * while a barrier waited for them.
 *
 * A thread that sleeps needs no help: when it wakes, the kernel looks for an idle CPU.
 */

struct occupancy {
    const struct asym_machine *machine;
    struct asym_mask busy, busy_cores;
    struct asym_mask own; /* CPUs of asymd, which runs at every sample and at no other time */
};

static void occupy(struct occupancy *w, int32_t cpu)
{
    if (!asym_mask_has(&w->machine->usable, cpu))
        return; /* the core of an offline CPU is not known */
    asym_mask_set(&w->busy, (unsigned)cpu);
    asym_mask_set(&w->busy_cores, (unsigned)w->machine->cpus[cpu].core);
}

/* With one CPU in its mask the thread needs no transit CPU. */
static bool has_choice(const struct asym_step *st, const struct asym_task_ref *ref)
{
    return asym_mask_count(asym_mask_table_at(&st->e->masks, ref->plan_mask)) > 1;
}

/*
 * True when the new mask sends the thread away from its CPU. A refresh does not read the CPU again, so the CPU may be one
 * that the thread's present mask already leaves out.
 */
static bool must_move(const struct asym_step *st, size_t i)
{
    return st->tasks[i].moves && st->refs[i].plan_mask != st->refs[i].seen.mask;
}

/* Mark the CPUs of threads that run and stay, and of threads that have only one CPU to go to. */
static void note_busy(const struct asym_step *st, struct occupancy *w, size_t i)
{
    const struct asym_task *task = &st->s->tasks[i];
    const bool self = (st->s->procs[task->proc].flags & ASYM_PROC_SELF) != 0;
    if (self && asym_mask_has(&w->machine->usable, task->cpu))
        asym_mask_set(&w->own, (unsigned)task->cpu);
    if (self)
        return;
    if (!must_move(st, i) && task->state == 'R')
        occupy(w, asym_mask_has(task->mask, task->cpu) ? task->cpu : st->tasks[i].target);
    else if (must_move(st, i) && !has_choice(st, &st->refs[i]))
        occupy(w, st->tasks[i].target);
}

/* Lower is better. Prefers, in this order: an idle core, a CPU without asymd, the target, the same LLC, a favoured CPU. */
static unsigned cost_of(const struct occupancy *w, int32_t cpu, int32_t target, int32_t from)
{
    const struct asym_cpu *to = &w->machine->cpus[cpu];
    const bool far = !asym_mask_has(&w->machine->usable, from) || to->llc != w->machine->cpus[from].llc;
    const unsigned first = asym_mask_has(&w->busy_cores, to->core) * 8u + asym_mask_has(&w->own, cpu) * 4u +
                           (cpu != target) * 2u + far;
    return first << 8 | to->rank;
}

/* Returns the idle CPU of the mask with the lowest cost, plus 1; 0: no CPU of the mask is idle. */
static uint32_t choose(const struct occupancy *w, const struct asym_mask *mask, int32_t target, int32_t from)
{
    const struct asym_mask idle = asym_mask_minus(mask, &w->busy);
    unsigned least = UINT32_MAX;
    uint32_t best = 0;
    ASYM_MASK_FOREACH (c, &idle) {
        const unsigned cost = cost_of(w, c, target, from);
        if (cost < least) {
            least = cost;
            best = (uint32_t)c + 1;
        }
    }
    return best;
}

void asym_step_idle_placement(struct asym_step *st)
{
    struct occupancy w = {.machine = st->s->machine};
    if (st->e->result.n_moves == 0)
        return;
    for (size_t i = 0; i < st->s->n_tasks; i++)
        note_busy(st, &w, i);
    for (size_t i = 0; i < st->s->n_tasks; i++) {
        const struct asym_task *task = &st->s->tasks[i];
        struct asym_task_ref *ref = &st->refs[i];
        if (!must_move(st, i) || task->state != 'R' || !has_choice(st, ref))
            continue;
        ref->transit_cpu = choose(&w, asym_mask_table_at(&st->e->masks, ref->plan_mask), st->tasks[i].target,
                                  task->cpu);
        occupy(&w, (int32_t)ref->transit_cpu - 1);
    }
}
