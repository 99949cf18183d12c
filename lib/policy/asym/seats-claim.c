/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Step 7 of asym: who ranks above the crowd, and what they may keep to themselves. A claim keeps work off a CPU, or off its
 * siblings. All claims together cost the machine at most the budget, a share of its speed.
 */
#include "policy/asym/seats-internal.h"

#include "base/mask.h"

/* A thread that has a claim keeps it before one that ranks higher by less than this: each change rewrites all wide masks. */
#define HOLDER 2

/* A new claim leaves a tenth of what is left of the budget: a duty that varies at its edge would grant and end it in turns. */
#define NEW_FROM_LEFT 0.9

/*
 * Where threads outnumber CPUs and some sleep, one has no seat now and then. Each begin and each end of a crowd writes all masks,
 * so it lasts for this time.
 */
#define CROWD_LASTS (10 * ASYM_SEC)

/* Threads that asymd does not steer come and go, as the compilers of a build. Each change would write nice values. */
#define STRANGERS_LAST (3 * ASYM_SEC)

/* Unsteered threads that need less than one CPU between them are no crowd. */
#define PRESSES_FROM 1.0

static double machine_speed(const struct asym_seats *q)
{
    const struct asym_mask cpus = asym_machine_ordinary(q->in->machine);
    double sum = 0;
    ASYM_MASK_FOREACH (c, &cpus)
        sum += q->speed[c] * (q->in->machine->cpus[c].smt_rank > 0 ? q->in->machine->smt_gain : 1);
    return sum;
}

/* Noise at a limit changes no mask. */
static bool is_passed(const struct asym_seats *q, bool passes, asym_usec *until)
{
    if (passes)
        *until = ASYM_MAX(*until, asym_seats_until(q));
    return q->in->now < *until;
}

/*
 * Threads that a cpuset or a mask confines to half of the CPUs or less would pay for a claim there more than all pay together. All
 * count while a crowd lasts, also those that have a seat in this plan: in the next they may have none.
 */
static void note_narrow(struct asym_seats *q, const struct asym_mask *all)
{
    const struct asym_mask *last = NULL; /* equal sets have equal addresses */
    for (size_t t = 0; t < q->in->n_threads && q->crowded; t++) {
        const struct asym_mask *allowed = q->of[t].allowed;
        if (allowed != last && 2 * asym_mask_count(allowed) <= asym_mask_count(all))
            q->narrow = asym_mask_or(&q->narrow, allowed);
        last = allowed;
    }
}

/*
 * The threads before which others may run: while there is a crowd, it and its equals in seats; without one, all that share a CPU
 * with one that is waited for more.
 */
static void note_group(struct asym_seats *q, size_t t)
{
    const struct asym_seats_brief *b = &q->of[t];
    if (!b->counts || (q->crowded ? b->above : b->cpu < 0 || q->density[t] >= q->top[b->cpu]))
        return;
    uint32_t *of = &q->groups[q->in->threads[t].nice_group];
    *of = *of == 0 || *of == b->app + 1 ? b->app + 1 : ASYM_SEATS_SEVERAL;
}

static void find_light(struct asym_seats *q)
{
    struct asym_seats_state *state = q->in->state;
    const struct asym_mask cpus = asym_machine_ordinary(q->in->machine);
    double sitting = 0;
    for (size_t t = 0; t < q->in->n_threads; t++)
        sitting += q->of[t].counts;
    const bool presses = q->in->unsteered >= PRESSES_FROM && sitting + q->in->unsteered > asym_mask_count(&cpus);
    const bool outnumbers = sitting > asym_mask_count(&cpus);
    is_passed(q, outnumbers, &state->outnumbered_until);
    if (q->in->unsteered >= PRESSES_FROM)
        state->strangers_until = q->in->now + STRANGERS_LAST;
    q->strangers = q->in->now < state->strangers_until;
    if (q->n_open > 0)
        state->crowd_ends = q->in->now + CROWD_LASTS;
    q->crowded = is_passed(q, q->n_open > 0 || (outnumbers && q->in->now < state->crowd_ends), &state->crowded_until);
    q->flooded = is_passed(q, q->needed > q->p->flood * asym_mask_count(&cpus), &state->flooded_until);
    q->presses = is_passed(q, presses, &state->presses_until) && !q->crowded;
    q->light = q->presses ? q->in->unsteered_weight : 0;
    for (size_t i = 0; i < q->n_open; i++)
        q->light = ASYM_MAX(q->light, q->density[q->open[i]]);
    if ((q->crowded && q->n_open == 0) || (q->presses && !presses))
        q->light = ASYM_MAX(q->light, state->light);
    state->light = q->light;
    note_narrow(q, &cpus);
}

/* The siblings of its CPU that no thread has: returns what they would add to the machine; 0: a thread has one, or there is none. */
static double cost_of_siblings(const struct asym_seats *q, int cpu)
{
    const struct asym_machine *m = q->in->machine;
    double cost = 0;
    for (int s = m->cpus[cpu].sibling; s != cpu; s = m->cpus[s].sibling) {
        if (q->n_on[s] > 0 || asym_mask_has(&q->narrow, s))
            return 0;
        cost += m->smt_gain * q->speed[cpu];
    }
    return cost;
}

/*
 * Returns whether t is alone on its CPU, or with one thread that is waited for less by heavy, and is of the crowd by its density:
 * that one can go there.
 */
static bool may_be_alone(const struct asym_seats *q, uint32_t t)
{
    const int cpu = q->of[t].cpu;
    return q->n_on[cpu] == 1 || (q->n_on[cpu] == 2 && q->density[t] >= q->p->heavy * q->least[cpu] &&
                                 q->least[cpu] < q->p->heavy * ASYM_SEATS_STAYS * q->light);
}

static void clear_cpu(struct asym_seats *q, uint32_t t)
{
    const int cpu = q->of[t].cpu;
    for (uint32_t u = 0; q->n_on[cpu] > 1 && u < q->in->n_threads; u++) {
        if (u == t || q->of[u].cpu != cpu)
            continue;
        q->n_on[cpu]--;
        q->used[cpu] -= (double)q->of[u].duty;
        q->of[u].cpu = -1;
        q->open[q->n_open++] = u;
    }
    q->top[cpu] = q->least[cpu] = q->density[t];
}

/*
 * Returns what the claim costs the machine; below 0: the thread has none. A light thread shares its CPU, and runs there first by
 * its nice value. Where that has no effect, it may have the CPU alone.
 */
static double cost_of(const struct asym_seats *q, uint32_t t, uint8_t claim)
{
    const struct asym_policy_thread *thread = &q->in->threads[t];
    const int cpu = q->of[t].cpu;
    if (cpu < 0 || asym_mask_has(&q->narrow, cpu))
        return -1;
    if (claim == ASYM_CLAIM_CPU) {
        const bool may = thread->light ? !asym_seats_nice_counts(q, t) && may_be_alone(q, t) : q->n_on[cpu] == 1;
        return may ? (1 - ASYM_MIN(thread->duty, 1)) * q->speed[cpu] : -1;
    }
    const double siblings = cost_of_siblings(q, cpu);
    return siblings > 0 ? siblings : -1;
}

/* Grant this claim to those of list who have it, by rank, as far as the budget lasts. Returns what is left. */
static double grant(struct asym_seats *q, size_t n, uint8_t claim, double left)
{
    for (size_t i = 0; i < n; i++) {
        const struct asym_seats_thread *s = asym_seats_of(q, q->list[i]);
        q->key[q->list[i]] = q->weight[q->list[i]] / s->rate * (s->claims & claim ? HOLDER : 1);
    }
    asym_seats_sort(q, q->list, n, n);
    for (size_t i = 0; i < n; i++) {
        const double cost = cost_of(q, q->list[i], claim);
        const bool holds = asym_seats_of(q, q->list[i])->claims & claim;
        if (cost < 0 || cost > left * (holds ? 1 : NEW_FROM_LEFT))
            continue;
        q->claim[q->list[i]] |= claim;
        if (claim == ASYM_CLAIM_CPU) {
            clear_cpu(q, q->list[i]);
            q->holds[q->of[q->list[i]].app] |= !asym_seats_nice_counts(q, q->list[i]);
        }
        left -= cost;
    }
    return left;
}

static size_t list_claimants(struct asym_seats *q)
{
    size_t n = 0;
    for (uint32_t t = 0; t < q->in->n_threads; t++) {
        struct asym_seats_brief *b = &q->of[t];
        const bool sits = (q->crowded || q->presses) && b->cpu >= 0;
        b->above = sits && asym_seats_passes(q->density[t], b->above, q->p->heavy * q->light);
        b->pins = asym_seats_passes((double)b->slow, b->pins, q->p->narrow);
        b->busy = asym_seats_passes((double)b->slow, b->busy, q->p->fluid);
        if (b->above && b->pins && !q->flooded)
            q->list[n++] = t;
        note_group(q, t);
    }
    return n;
}

struct asym_mask asym_seats_claim(struct asym_seats *q)
{
    const struct asym_machine *m = q->in->machine;
    struct asym_mask open = m->usable;
    find_light(q);
    const size_t n = list_claimants(q);
    const double budget = n > 0 ? q->p->budget * machine_speed(q) : 0;
    grant(q, n, ASYM_CLAIM_SIBLINGS, grant(q, n, ASYM_CLAIM_CPU, budget));
    for (size_t i = 0; i < n; i++) {
        const uint32_t t = q->list[i];
        const int cpu = q->of[t].cpu;
        if (q->claim[t] == 0)
            continue;
        if (q->claim[t] & ASYM_CLAIM_CPU)
            asym_mask_clear(&open, (unsigned)cpu);
        for (int s = m->cpus[cpu].sibling; s != cpu && q->claim[t] & ASYM_CLAIM_SIBLINGS; s = m->cpus[s].sibling) {
            asym_mask_clear(&open, (unsigned)s);
            asym_mask_set(q->in->spare, (unsigned)s);
        }
    }
    return open;
}
