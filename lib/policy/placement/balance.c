/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/placement/balance.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/nice.h"

struct asym_balance_group {
    uint32_t first, n; /* in threads */
    uint32_t weight;
    struct asym_mask cpus;
};

/* Pulls never reach this limit, because the costs fall with each. It makes a policy end even if its rule is wrong. */
#define MOST_PULLS(n_threads, n_cpus) (16 * ((n_threads) + (n_cpus)))

#define NO_THREAD                     UINT32_MAX

/* The CPU that a thread enters is on an idle core; or idle, with busy siblings; or busy, with idle siblings or without. */
enum seat_state { SEAT_CORE, SEAT_BESIDE, SEAT_QUEUE, SEAT_FULL };

/* An idle CPU beside a busy sibling counts this share of the slowest core that comes before it: see seat_speed. */
#define BESIDE 0.75

/* Returns the speed of the slowest core whose seat comes before those beside a busy sibling of this type. */
static double slowest_before(const struct asym_machine *m, unsigned type)
{
    double before = m->types[type].speed;
    for (unsigned i = 0; i < m->types[type].row[1]; i++)
        if (!m->rows[i].is_beside)
            before = m->rows[i].speed;
    return before;
}

/*
 * Find the speeds of seats that are not on idle cores. A thread beside a busy sibling has the speed of a full core at most, and
 * slows the sibling. So such a seat costs more than any idle core that adds more, and less than a second thread on such a core;
 * and a second thread on a CPU costs more than the idle sibling of that CPU. A rule that weighs queues against idle CPUs cannot
 * have that order on every machine: there a seat costs what its speed is, and on a tie an idle core comes first.
 */
static void find_speeds(struct asym_balance *b)
{
    const struct asym_machine *m = b->sp->in->machine;
    for (unsigned t = 0; t < m->n_types; t++) {
        b->full[t] = b->beside[t] = asym_balance_speed(m, asym_mask_next(&m->types[t].cpus, 0));
        if (m->types[t].siblings < 2)
            continue;
        b->beside[t] = b->rule->by_distance ? b->full[t] : fmin(b->full[t], BESIDE * slowest_before(m, t));
        b->full[t] = fmin(b->full[t], 1.9 * b->beside[t]);
    }
}

static enum seat_state find_state(const struct asym_balance *b, int cpu, uint32_t load)
{
    const struct asym_cpu *cpus = b->sp->in->machine->cpus;
    uint32_t busy = 0, idle = 0;
    for (int s = cpus[cpu].sibling; s != cpu; s = cpus[s].sibling) {
        busy += b->sp->load[s] > 0;
        idle += b->sp->load[s] == 0;
    }
    if (load == 0)
        return busy == 0 ? SEAT_CORE : SEAT_BESIDE;
    return idle > 0 ? SEAT_QUEUE : SEAT_FULL;
}

/*
 * Returns the speed that the costs use for a seat on cpu: of its core if no sibling is busy; that of a full core if the thread
 * shares the CPU and all siblings are busy. Without SMT that is the speed of the core type in each state.
 */
static double seat_speed(const struct asym_balance *b, int cpu, enum seat_state state)
{
    const struct asym_machine *m = b->sp->in->machine;
    const int type = m->cpus[cpu].type;
    return state == SEAT_CORE ? m->types[type].speed : state == SEAT_FULL ? b->full[type] : b->beside[type];
}

double asym_balance_speed_now(const struct asym_balance *b, int cpu)
{
    const struct asym_machine *m = b->sp->in->machine;
    const uint32_t busy = asym_spread_beside(b->sp, cpu, 0);
    return m->types[m->cpus[cpu].type].speed * (1 + m->smt_gain * busy) / (1 + busy);
}

void asym_balance_init(struct asym_balance *b, struct asym_spread *sp, const struct asym_balance_rule *rule)
{
    struct asym_arena *arena = sp->in->arena;
    const size_t n = sp->in->n_threads + 1, n_cpus = sp->in->machine->n_cpus;
    *b = (struct asym_balance){
        .sp = sp,
        .rule = rule,
        .near = ASYM_ANYWHERE,
        .pulls_left = MOST_PULLS(sp->in->n_threads, n_cpus),
        .load = asym_arena_take(arena, n_cpus, sizeof *b->load),
        .enter = asym_arena_take(arena, n_cpus, sizeof *b->enter),
        .leave = asym_arena_take(arena, n_cpus, sizeof *b->leave),
        .have = asym_arena_take(arena, n_cpus, sizeof *b->have),
        .came = asym_arena_take(arena, n_cpus, sizeof *b->came),
        .known = asym_arena_take(arena, n, sizeof *b->known),
        .threads = asym_arena_take(arena, n, sizeof *b->threads),
        .loose = asym_arena_take(arena, n, sizeof *b->loose),
        .groups = asym_arena_take(arena, n, sizeof *b->groups),
    };
    find_speeds(b);
}

/* --- groups --- */

static uint32_t level_of(const struct asym_balance *b, uint32_t t)
{
    return b->rule->weighted ? asym_nice_level(b->sp->in->threads[t].nice) : 0;
}

/*
 * Sort the threads that are not placed yet by set, fewest choices first; within a set heavy threads come first, so that the light
 * ones even out the rest. Returns how many there are.
 */
static uint32_t sort_threads(struct asym_balance *b, const uint32_t *list, size_t n)
{
    struct asym_spread *sp = b->sp;
    uint32_t ends[ASYM_NICE_LEVELS + 1] = {0};
    memset(sp->set_mark, 0, (sp->n_sets + 1) * sizeof *sp->set_mark);
    for (size_t i = 0; i < n; i++) {
        if (sp->ret[list[i]].cpu >= 0)
            continue;
        ends[level_of(b, list[i]) + 1]++;
        sp->set_mark[sp->set_of[list[i]] + 1]++;
    }
    for (uint32_t k = 1; k <= ASYM_NICE_LEVELS; k++)
        ends[k] += ends[k - 1];
    for (uint32_t s = 1; s <= sp->n_sets; s++)
        sp->set_mark[s] += sp->set_mark[s - 1];
    const uint32_t left = ends[ASYM_NICE_LEVELS];
    for (size_t i = 0; i < n; i++)
        if (sp->ret[list[i]].cpu < 0)
            b->loose[ends[level_of(b, list[i])]++] = list[i];
    for (uint32_t i = 0; i < left; i++)
        b->threads[sp->set_mark[sp->set_of[b->loose[i]]]++] = b->loose[i];
    return left;
}

static void begin_group(struct asym_balance *b, uint32_t first, const struct asym_mask *open)
{
    struct asym_balance_group *g = &b->groups[b->n_groups++];
    const uint32_t t = b->threads[first];
    const struct asym_mask *allowed = b->sp->sets[b->sp->set_of[t]];
    *g = (struct asym_balance_group){.first = first, .cpus = asym_mask_and(allowed, open)};
    if (asym_mask_empty(&g->cpus))
        g->cpus = *allowed;
    g->weight = b->rule->weighted ? asym_nice_weight(b->sp->in->threads[t].nice) : 1;
}

static void make_groups(struct asym_balance *b, uint32_t n, const struct asym_mask *open)
{
    const struct asym_spread *sp = b->sp;
    b->n_groups = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t t = b->threads[i], before = b->threads[i > 0 ? i - 1 : 0];
        if (i == 0 || sp->set_of[t] != sp->set_of[before] || level_of(b, t) != level_of(b, before))
            begin_group(b, i, open);
        b->groups[b->n_groups - 1].n++;
    }
}

/* Put each known thread on its preferred CPU, before the pulls. */
static void place_known(struct asym_balance *b)
{
    const struct asym_policy_thread *threads = b->sp->in->threads;
    for (uint32_t i = 0; i < b->n_groups; i++) {
        const struct asym_balance_group *g = &b->groups[i];
        for (uint32_t k = g->first; k < g->first + g->n; k++) {
            const uint32_t t = b->threads[k];
            if (!b->known[t] || !asym_mask_has(&g->cpus, threads[t].preferred_cpu))
                continue;
            asym_spread_put(b->sp, t, threads[t].preferred_cpu);
            b->load[threads[t].preferred_cpu] += g->weight;
        }
    }
}

/* --- costs of the current group --- */

static void set_costs(struct asym_balance *b, const struct asym_balance_group *g, int cpu)
{
    const uint32_t load = b->sp->load[cpu];
    b->enter[cpu] = b->rule->enter(b->load[cpu], g->weight, seat_speed(b, cpu, find_state(b, cpu, load)));
    b->leave[cpu] = -HUGE_VAL;
    if (b->have[cpu] > 0)
        b->leave[cpu] = b->rule->leave(b->load[cpu], g->weight, seat_speed(b, cpu, find_state(b, cpu, load - 1)),
                                       b->near);
}

/* Find the costs of cpus; have becomes how many threads of the group each of them has. */
static void find_costs(struct asym_balance *b, const struct asym_balance_group *g, const struct asym_mask *cpus)
{
    memset(b->have, 0, b->sp->in->machine->n_cpus * sizeof *b->have);
    for (uint32_t k = g->first; k < g->first + g->n; k++)
        if (asym_mask_has(cpus, b->sp->ret[b->threads[k]].cpu))
            b->have[b->sp->ret[b->threads[k]].cpu]++;
    ASYM_MASK_FOREACH (c, cpus)
        set_costs(b, g, c);
}

/* Add threads of the group to a CPU. That changes the costs of its siblings, too. */
static void add_threads(struct asym_balance *b, const struct asym_balance_group *g, int cpu, int count)
{
    const struct asym_cpu *cpus = b->sp->in->machine->cpus;
    b->load[cpu] += (double)g->weight * count;
    b->sp->load[cpu] += (uint32_t)count;
    b->have[cpu] += (uint32_t)count;
    int c = cpu;
    do
        set_costs(b, g, c);
    while ((c = cpus[c].sibling) != cpu);
}

/*
 * The order at equal cost: less crowded siblings, then what is nearer, then the faster type, then favour. A CPU on a core
 * with fewer threads comes before an equal one.
 */
static uint32_t tie_of(const struct asym_balance *b, int cpu, uint32_t far)
{
    const struct asym_cpu *c = &b->sp->in->machine->cpus[cpu];
    const uint32_t crowd = asym_spread_beside(b->sp, cpu, b->sp->load[cpu]);
    return ASYM_MIN(crowd, 0xfffu) << 20 | far << 16 | (uint32_t)c->type << 11 | c->rank;
}

/* Returns the CPU of least cost. far says how far a CPU is from t, or from any thread that has no CPU yet. */
static int cheapest(const struct asym_balance *b, const struct asym_mask *cpus, uint32_t t,
                    uint32_t (*far)(const struct asym_balance *b, uint32_t t, int cpu))
{
    uint32_t least = 0;
    int best = -1;
    ASYM_MASK_FOREACH (c, cpus) {
        if (best >= 0 && b->enter[c] > b->enter[best])
            continue;
        const uint32_t tie = tie_of(b, c, far(b, t, c));
        if (best < 0 || b->enter[c] < b->enter[best] || tie < least) {
            least = tie;
            best = c;
        }
    }
    return best;
}

/* --- arrivals --- */

/* Count the new threads; mark their preferred CPUs and the LLCs of these. Returns how many threads are new. */
static uint32_t count_new(struct asym_balance *b, const struct asym_balance_group *g)
{
    struct asym_spread *sp = b->sp;
    const struct asym_machine *m = sp->in->machine;
    uint32_t n = 0;
    for (uint32_t k = g->first; k < g->first + g->n; k++)
        if (sp->ret[b->threads[k]].cpu < 0)
            b->loose[n++] = b->threads[k];
    if (n == 0)
        return 0;
    memset(sp->want, 0, m->n_cpus * sizeof *sp->want);
    memset(sp->cursor, 0, m->n_llcs * sizeof *sp->cursor);
    for (uint32_t i = 0; i < n; i++) {
        const int preferred_cpu = sp->in->threads[b->loose[i]].preferred_cpu;
        if (preferred_cpu < 0)
            continue;
        sp->want[preferred_cpu]++;
        sp->cursor[m->cpus[preferred_cpu].llc] = 1;
    }
    return n;
}

static uint32_t far_from_new(const struct asym_balance *b, uint32_t t, int cpu)
{
    const struct asym_spread *sp = b->sp;
    (void)t;
    return sp->want[cpu] > 0 ? 0 : sp->cursor[sp->in->machine->cpus[cpu].llc] > 0 ? 1 : 2;
}

static void arrive(struct asym_balance *b, const struct asym_balance_group *g)
{
    const uint32_t n = count_new(b, g);
    if (n == 0)
        return;
    find_costs(b, g, &g->cpus);
    for (uint32_t i = 0; i < n; i++) {
        const int cpu = cheapest(b, &g->cpus, b->loose[i], far_from_new);
        add_threads(b, g, cpu, 1);
        b->came[cpu]++;
        b->sp->want[cpu] -= b->sp->want[cpu] > 0;
    }
    uint32_t k = 0;
    ASYM_MASK_FOREACH (c, &g->cpus)
        for (; b->came[c] > 0; b->came[c]--)
            b->sp->places[k++] = c;
    asym_spread_hand_out(b->sp, b->loose, n);
}

/* --- pulls --- */

static uint32_t far_from_thread(const struct asym_balance *b, uint32_t t, int cpu)
{
    return asym_nearness(b->sp->in->machine, b->sp->in->threads[t].preferred_cpu, cpu);
}

/* Returns the thread of the group for which it costs most to stay on one of cpus; NO_THREAD if none is there. */
static uint32_t worst_off(const struct asym_balance *b, const struct asym_balance_group *g,
                          const struct asym_mask *cpus)
{
    double most = -HUGE_VAL;
    uint32_t worst = NO_THREAD;
    for (uint32_t k = g->first; k < g->first + g->n; k++) {
        const int cpu = b->sp->ret[b->threads[k]].cpu;
        if (!asym_mask_has(cpus, cpu) || !(b->leave[cpu] > most))
            continue;
        most = b->leave[cpu];
        worst = b->threads[k];
    }
    return worst;
}

/* Pull threads of the group from CPU to CPU of the domain. Returns whether it pulled any. */
static bool pull(struct asym_balance *b, const struct asym_balance_group *g, const struct asym_mask *domain)
{
    const struct asym_mask cpus = asym_mask_and(&g->cpus, domain);
    bool pulled = false;
    find_costs(b, g, &cpus);
    for (; b->pulls_left > 0; b->pulls_left--, pulled = true) {
        const uint32_t t = worst_off(b, g, &cpus);
        if (t == NO_THREAD)
            break;
        const int from = b->sp->ret[t].cpu, to = cheapest(b, &cpus, t, far_from_thread);
        if (!(b->enter[to] < b->leave[from]))
            break;
        add_threads(b, g, from, -1);
        add_threads(b, g, to, 1);
        b->sp->ret[t].cpu = to;
    }
    return pulled;
}

static void pull_within(struct asym_balance *b, const struct asym_mask *domain)
{
    uint32_t quiet = 0;
    for (uint32_t i = 0; quiet < b->n_groups && b->pulls_left > 0; i = (i + 1) % b->n_groups)
        quiet = pull(b, &b->groups[i], domain) ? 1 : quiet + 1;
}

/* Pull within each domain of that size: the machine, each node, or each LLC. */
static void pull_near(struct asym_balance *b, enum asym_nearness near)
{
    const struct asym_machine *m = b->sp->in->machine;
    const unsigned n = near == ASYM_ANYWHERE ? 1 : near == ASYM_SAME_NODE ? m->n_nodes : m->n_llcs;
    b->near = near;
    for (unsigned d = 0; d < n; d++) {
        struct asym_mask domain = {0};
        ASYM_MASK_FOREACH (c, &m->usable)
            if (n == 1 || (near == ASYM_SAME_NODE ? m->cpus[c].node : m->cpus[c].llc) == (int)d)
                asym_mask_set(&domain, (unsigned)c);
        pull_within(b, &domain);
    }
}

/* A short way asks less of a pull, so the pulls of a long way are among those of each shorter way that includes it. */
static void pull_by_distance(struct asym_balance *b)
{
    const struct asym_machine *m = b->sp->in->machine;
    const enum asym_nearness far = m->n_nodes > 1 ? ASYM_ANYWHERE : m->n_llcs > 1 ? ASYM_SAME_NODE : ASYM_SAME_LLC;
    size_t before;
    do {
        before = b->pulls_left;
        for (enum asym_nearness near = far; near >= ASYM_SAME_LLC; near--)
            pull_near(b, near);
    } while (b->pulls_left != before);
    b->near = ASYM_ANYWHERE;
}

void asym_balance_place(struct asym_balance *b, const uint32_t *list, size_t n, const struct asym_mask *open)
{
    make_groups(b, sort_threads(b, list, n), open);
    place_known(b);
    for (uint32_t i = 0; i < b->n_groups; i++)
        arrive(b, &b->groups[i]);
    memset(b->sp->want, 0, b->sp->in->machine->n_cpus * sizeof *b->sp->want);
    if (b->rule->by_distance)
        pull_by_distance(b);
    else
        pull_near(b, ASYM_ANYWHERE);
}

int asym_balance_plan(const struct asym_policy_input *in, struct asym_assignment *ret,
                      const struct asym_balance_rule *rule, void (*explain)(const struct asym_balance *b))
{
    struct asym_spread sp;
    struct asym_balance b;
    const uint32_t *all = asym_spread_all(in);
    asym_spread_init(&sp, in, ret);
    asym_balance_init(&b, &sp, rule);
    if (asym_arena_is_short(in->arena))
        return -ENOBUFS;
    /* Test the number of types, not asymmetry (fast and slow): the rule uses all speeds. */
    if (in->machine->n_types < 2) {
        asym_spread_alike(&sp, all, in->n_threads);
        return 0;
    }
    for (size_t t = 0; t < in->n_threads; t++) {
        struct asym_balance_thread *s = in->threads[t].state;
        b.known[t] = s->known;
        s->known = true;
    }
    asym_balance_place(&b, all, in->n_threads, &in->machine->usable);
    asym_spread_fill_fast(&sp);
    explain(&b);
    return 0;
}

/* --- in proportion to speed --- */

/* A pull must gain this part of a thread, so that the current split stays if another is as good. */
#define MARGIN 0.125

/* Returns the share of a CPU, in threads, that is as near to n as to n + 1: their harmonic mean. */
static double between(double n)
{
    return 2 * n * (n + 1) / (2 * n + 1);
}

/* Idle CPUs come before all others; among them the fastest comes first. */
static double enter(double load, double weight, double speed)
{
    (void)weight;
    return load < 1 ? -speed : between(load) / speed;
}

static double leave(double load, double weight, double speed, enum asym_nearness near)
{
    (void)weight;
    (void)near;
    return load < 2 ? -speed : (between(load - 1) - MARGIN) / speed;
}

const struct asym_balance_rule asym_proportion_rule = {.enter = enter, .leave = leave};

double asym_proportion_total(const struct asym_machine *m, const struct asym_mask *cpus)
{
    double sum = 0;
    ASYM_MASK_FOREACH (c, cpus)
        sum += asym_balance_speed(m, c);
    return sum;
}

static const struct asym_reason own_cpu = {
    .text = "a CPU to itself: no CPU idles before another has two threads",
    .sentence = "has a CPU to itself, because no CPU gets two threads while another is idle"};
static const struct asym_reason by_speed = {
    .text = "every CPU is busy: %.0f threads share this one; its speed entitles it to %.1f",
    .sentence = "shares its CPU, because every CPU is busy: %.0f threads are on it, and its speed entitles it to %.1f"};

void asym_proportion_explain(const struct asym_balance *b, size_t t, size_t n, double total)
{
    const struct asym_machine *m = b->sp->in->machine;
    struct asym_assignment *a = &b->sp->ret[t];
    if (asym_machine_is_asymmetric(m) && !(asym_spread_reach(b->sp, t) & ASYM_REACH_FAST)) {
        a->reason = &asym_spread_no_fast;
    } else if (b->sp->load[a->cpu] < 2) {
        a->reason = &own_cpu;
    } else {
        a->reason = &by_speed;
        a->figure[0] = b->sp->load[a->cpu];
        a->figure[1] = total > 0 ? (double)n * asym_balance_speed(m, a->cpu) / total : 0;
    }
}
