/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Load balancing by the number of threads, or by the number of threads per speed if the scheduler knows the speeds. */
#include "base/macro.h"
#include "base/mask.h"
#include "sim/sim-internal.h"

/* Returns whether a and b are at exactly that distance: nearer CPUs were searched before. */
static bool reaches(const struct asym_sim *s, uint32_t a, uint32_t b, enum sim_reach reach)
{
    const enum sim_reach nearest = s->cpus[a].llc == s->cpus[b].llc     ? SIM_REACH_LLC
                                   : s->cpus[a].node == s->cpus[b].node ? SIM_REACH_NODE
                                                                        : SIM_REACH_ALL;
    return nearest == reach;
}

/* Returns whether the queue may have a thread for cpu; others > 0 does not tell. */
static bool any_movable(const struct asym_sim *s, const struct sim_census *census, uint32_t cpu)
{
    bool any = census->others > 0;
    for (unsigned i = 0; i < SIM_CENSUS && !any; i++)
        any = census->n[i] > 0 && asym_mask_has(sim_masks_at(s->masks, census->mask[i]), (int)cpu);
    return any;
}

/* The first thread of the queue that may run on cpu: like Linux, the one that has not run for longest, whose cache is cold. */
static uint32_t movable(const struct asym_sim *s, uint32_t from, uint32_t cpu)
{
    /* Most waiting threads of a CPU have the same mask, so the last refused mask saves most tests. */
    uint32_t refused = SIM_NONE;
    if (!any_movable(s, &s->cpus[from].census, cpu))
        return SIM_NONE;
    for (uint32_t t = s->cpus[from].head; t != SIM_NONE; t = s->threads[t].next) {
        if (s->threads[t].mask == refused)
            continue;
        if (asym_mask_has(sim_masks_at(s->masks, s->threads[t].mask), (int)cpu))
            return t;
        refused = s->threads[t].mask;
    }
    return SIM_NONE;
}

struct search {
    uint32_t cpu, most, best, thread;
    enum sim_reach reach;
};

static void consider(const struct asym_sim *s, struct search *f, uint32_t from)
{
    const uint32_t n = sim_count(s, from);
    if (from == f->cpu || n <= f->most || !reaches(s, f->cpu, from, f->reach))
        return;
    const uint32_t thread = movable(s, from, f->cpu);
    if (thread == SIM_NONE)
        return;
    f->best = from;
    f->most = n;
    f->thread = thread;
}

/*
 * Searches the overloaded CPUs of a level from first to end - 1, by words: most sets are small, while a mask has room for the
 * largest machine. All CPUs of a level have equally many threads, except at the last level, so the first CPU with a thread to
 * pull ends the search.
 */
static void search(const struct asym_sim *s, struct search *f, uint32_t level, uint32_t first, uint32_t end)
{
    uint64_t from_first = ~UINT64_C(0) << first % 64;
    for (uint32_t word = first / 64; word * 64 < end; word++, from_first = ~UINT64_C(0)) {
        for (uint64_t bits = s->levels[level].w[word] & s->overloaded.w[word] & from_first; bits; bits &= bits - 1) {
            const uint32_t cpu = word * 64 + (uint32_t)__builtin_ctzll(bits);
            if (cpu >= end || (f->best != SIM_NONE && level < SIM_LAST_LEVEL))
                return;
            consider(s, f, cpu);
        }
    }
}

static bool may_exceed(uint32_t level, uint32_t least)
{
    return level > least || level == SIM_LAST_LEVEL;
}

uint32_t sim_busiest(const struct asym_sim *s, uint32_t cpu, enum sim_reach reach, uint32_t least, uint32_t *ret_thread)
{
    struct search f = {.cpu = cpu, .most = least, .best = SIM_NONE, .thread = SIM_NONE, .reach = reach};
    uint32_t first, end, near_first, near_end;
    sim_span(s, cpu, reach, &first, &end);
    sim_span(s, cpu, reach == SIM_REACH_LLC ? reach : reach - 1, &near_first, &near_end);
    if (reach != SIM_REACH_LLC && first == near_first && end == near_end)
        return SIM_NONE;
    for (uint32_t level = s->top_level; f.best == SIM_NONE && may_exceed(level, least); level--) {
        if (s->at_level[level] == 0)
            continue;
        search(s, &f, level, cpu + 1, end);
        search(s, &f, level, first, cpu);
    }
    if (f.best != SIM_NONE)
        *ret_thread = f.thread;
    return f.best;
}

/* Returns the most loaded CPU at that distance with a thread to pull that makes cpu less loaded than that CPU was. */
static uint32_t most_loaded(const struct asym_sim *s, uint32_t cpu, enum sim_reach reach, uint32_t *ret_thread)
{
    uint32_t best = SIM_NONE;
    double most = sim_load(s, cpu, 1) * (1 + 1e-9);
    for (uint32_t i = 1; i < s->n_cpus; i++) {
        const uint32_t from = (cpu + i) % s->n_cpus;
        if (sim_load(s, from, 0) <= most || !reaches(s, cpu, from, reach))
            continue;
        const uint32_t thread = movable(s, from, cpu);
        if (thread == SIM_NONE)
            continue;
        best = from;
        most = sim_load(s, from, 0);
        *ret_thread = thread;
    }
    return best;
}

static bool pull_by_load(struct asym_sim *s, uint32_t cpu)
{
    uint32_t thread = SIM_NONE;
    for (int reach = SIM_REACH_LLC; reach < SIM_N_REACHES; reach++) {
        if (most_loaded(s, cpu, (enum sim_reach)reach, &thread) == SIM_NONE)
            continue;
        s->totals.events++;
        sim_move(s, thread, cpu);
        return true;
    }
    return false;
}

/* Linux's capacity_greater: a difference in speed of 5 % or less is no reason to move a running thread. */
#define CAPACITY_MARGIN (1078.0 / 1024)

/* Active balancing: an idle CPU takes over the running thread of the slowest CPU that is slower. */
static void take_over(struct asym_sim *s, uint32_t cpu)
{
    uint32_t best = SIM_NONE;
    double slowest = s->machine->cpus[cpu].speed / CAPACITY_MARGIN;
    for (uint32_t i = 1; i < s->n_cpus; i++) {
        const uint32_t from = (cpu + i) % s->n_cpus, thread = s->cpus[from].running;
        if (thread == SIM_NONE || s->machine->cpus[from].speed >= slowest ||
            !asym_mask_has(sim_masks_at(s->masks, s->threads[thread].mask), (int)cpu))
            continue;
        best = thread;
        slowest = s->machine->cpus[from].speed;
    }
    if (best != SIM_NONE)
        sim_move(s, best, cpu);
}

/* Returns whether a sibling of this CPU runs a thread, too. */
static bool shares_core(const struct asym_sim *s, uint32_t cpu)
{
    const struct sim_core *core = &s->cores[s->cpus[cpu].core];
    for (uint32_t c = core->first; c < core->first + core->n; c++)
        if (c != cpu && s->cpus[c].running != SIM_NONE)
            return true;
    return false;
}

/* Active balancing of SMT: a CPU whose core is idle takes over one of two threads that share a core; the nearest first. */
static void take_from_siblings(struct asym_sim *s, uint32_t cpu)
{
    if (s->scenario->machine.most_smt < 2 || sim_count(s, cpu) > 0 || !sim_core_is_idle(s, cpu))
        return;
    for (int reach = SIM_REACH_LLC; reach < SIM_N_REACHES; reach++) {
        for (uint32_t i = 1; i < s->n_cpus; i++) {
            const uint32_t from = (cpu + i) % s->n_cpus, thread = s->cpus[from].running;
            if (thread == SIM_NONE || !reaches(s, cpu, from, (enum sim_reach)reach) || !shares_core(s, from) ||
                !asym_mask_has(sim_masks_at(s->masks, s->threads[thread].mask), (int)cpu))
                continue;
            sim_move(s, thread, cpu);
            return;
        }
    }
}

static void balance_by_load(struct asym_sim *s, uint32_t cpu)
{
    while (pull_by_load(s, cpu))
        ;
    if (s->scenario->scheduler.capacity == ASYM_SIM_CAPACITY_ACTIVE && sim_count(s, cpu) == 0)
        take_over(s, cpu);
}

bool sim_pull(struct asym_sim *s, uint32_t cpu)
{
    uint32_t thread = SIM_NONE;
    if (!sim_masks_any_waits(s->masks, cpu))
        return false;
    if (s->scenario->scheduler.capacity != ASYM_SIM_CAPACITY_IGNORED)
        return pull_by_load(s, cpu);
    for (int reach = SIM_REACH_LLC; reach < SIM_N_REACHES; reach++) {
        if (sim_busiest(s, cpu, (enum sim_reach)reach, 1, &thread) == SIM_NONE)
            continue;
        s->totals.events++;
        sim_move(s, thread, cpu);
        return true;
    }
    return false;
}

static void balance_by_count(struct asym_sim *s, uint32_t cpu)
{
    uint32_t thread = SIM_NONE;
    if (!may_exceed(s->top_level, sim_count(s, cpu) + 1) || !sim_masks_any_waits(s->masks, cpu))
        return;
    for (int reach = SIM_REACH_LLC; reach < SIM_N_REACHES; reach++) {
        const uint32_t here = sim_count(s, cpu);
        /* Moving half of the difference makes the counts equal. */
        const uint32_t from = sim_busiest(s, cpu, (enum sim_reach)reach, here + 1, &thread);
        if (from == SIM_NONE)
            continue;
        for (uint32_t n = (sim_count(s, from) - here) / 2; n > 0 && thread != SIM_NONE; n--) {
            sim_move(s, thread, cpu);
            thread = movable(s, from, cpu);
        }
    }
}

void sim_balance(struct asym_sim *s, uint32_t cpu)
{
    if (s->scenario->scheduler.capacity != ASYM_SIM_CAPACITY_IGNORED) {
        balance_by_load(s, cpu);
        return;
    }
    balance_by_count(s, cpu);
    take_from_siblings(s, cpu);
}

void sim_kick(struct asym_sim *s)
{
    const uint64_t tick = s->scenario->scheduler.tick;
    if (s->kick_at != SIM_NEVER || s->n_waiting == 0 || asym_mask_empty(&s->idle))
        return;
    s->kick_at = (s->now / tick + 1) * tick;
    sim_heap_set(&s->heap, sim_slot_kick(s), s->kick_at);
}

void sim_kicked(struct asym_sim *s)
{
    const struct asym_mask idle = s->idle;
    s->kick_at = SIM_NEVER;
    if (asym_mask_empty(&s->overloaded))
        return;
    ASYM_MASK_FOREACH (c, &idle)
        if (s->cpus[c].running == SIM_NONE)
            sim_pend(s, (uint32_t)c, false);
}
