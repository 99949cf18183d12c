/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/placement/balance.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/nice.h"
#include "policy/placement/spread-even.h"
#include "policy/placement/spread-internal.h"

struct asym_balance_group {
    uint32_t first, n; /* in threads */
    uint32_t weight;
    uint32_t domain; /* the node or the LLC within which its threads are pulled now; 0: the machine */
    struct asym_mask cpus;
};

/* The first pulls of a group, up to this number, search for the nearest of equal CPUs. With more, many threads move anyway. */
#define NEAR_PULLS 16

/* Pulls never reach this limit, because the costs fall with each. It makes a policy end even if its rule is wrong. */
#define MOST_PULLS(n_threads, n_cpus) (16 * ((n_threads) + (n_cpus)))

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

static enum asym_seat_state find_state(const struct asym_balance *b, int cpu, uint32_t load)
{
    const struct asym_cpu *cpus = b->sp->in->machine->cpus;
    uint32_t busy = 0, idle = 0;
    for (int s = cpus[cpu].sibling; s != cpu; s = cpus[s].sibling) {
        busy += b->sp->load[s] > 0;
        idle += b->sp->load[s] == 0;
    }
    if (load == 0)
        return busy == 0 ? ASYM_SEAT_CORE : ASYM_SEAT_BESIDE;
    return idle > 0 ? ASYM_SEAT_QUEUE : ASYM_SEAT_FULL;
}

/*
 * Returns the speed that the costs use for a seat on cpu: of its core if no sibling is busy; that of a full core if the thread
 * shares the CPU and all siblings are busy. Without SMT that is the speed of the core type in each state.
 */
static double seat_speed(const struct asym_balance *b, int cpu, enum asym_seat_state state)
{
    const struct asym_machine *m = b->sp->in->machine;
    const int type = m->cpus[cpu].type;
    return state == ASYM_SEAT_CORE ? m->types[type].speed : state == ASYM_SEAT_FULL ? b->full[type] : b->beside[type];
}

double asym_balance_speed_now(const struct asym_balance *b, int cpu)
{
    const struct asym_machine *m = b->sp->in->machine;
    const uint32_t busy = asym_spread_beside(b->sp, cpu, 0);
    return m->types[m->cpus[cpu].type].speed * (1 + m->smt_gain * busy) / (1 + busy);
}

static double enter_cost(const struct asym_balance *b, int cpu, double weight)
{
    return b->rule->enter(b->load[cpu], weight, seat_speed(b, cpu, find_state(b, cpu, b->sp->load[cpu])));
}

static double leave_cost(const struct asym_balance *b, int cpu, double weight)
{
    return b->rule->leave(b->load[cpu], weight, seat_speed(b, cpu, find_state(b, cpu, b->sp->load[cpu] - 1)), b->near);
}

static int find_domains(struct asym_balance *b)
{
    const struct asym_machine *m = b->sp->in->machine;
    b->nodes = asym_arena_take(b->sp->in->arena, m->n_nodes, sizeof *b->nodes);
    b->llcs = asym_arena_take(b->sp->in->arena, m->n_llcs, sizeof *b->llcs);
    if (!b->nodes || !b->llcs)
        return -ENOBUFS;
    ASYM_MASK_FOREACH (c, &m->usable) {
        asym_mask_set(&b->nodes[m->cpus[c].node], (unsigned)c);
        asym_mask_set(&b->llcs[m->cpus[c].llc], (unsigned)c);
    }
    return 0;
}

int asym_balance_init(struct asym_balance *b, struct asym_spread *sp, const struct asym_balance_rule *rule)
{
    struct asym_arena *arena = sp->in->arena;
    const size_t n = sp->in->n_threads, n_cpus = sp->in->machine->n_cpus;
    *b = (struct asym_balance){.sp = sp, .rule = rule, .near = ASYM_ANYWHERE, .pulls_left = MOST_PULLS(n, n_cpus)};
    uint32_t **const fields[] = {&b->have, &b->tie, &b->cpus, &b->leaf, &b->best_in, &b->best_out};
    double **const numbers[] = {&b->load, &b->enter, &b->leave};
    int r = 0;
    for (size_t i = 0; i < ASYM_LENGTH(fields); i++)
        if (!(*fields[i] = asym_arena_take(arena, 2 * n_cpus, sizeof **fields[i])))
            r = -ENOBUFS;
    for (size_t i = 0; i < ASYM_LENGTH(numbers); i++)
        if (!(*numbers[i] = asym_arena_take(arena, n_cpus, sizeof **numbers[i])))
            r = -ENOBUFS;
    b->known = asym_arena_take(arena, n + 1, sizeof *b->known);
    b->threads = asym_arena_take(arena, n + 1, sizeof *b->threads);
    b->loose = asym_arena_take(arena, n + 1, sizeof *b->loose);
    b->sorted = asym_arena_take(arena, n + 1, sizeof *b->sorted);
    b->groups = asym_arena_take(arena, n + 1, sizeof *b->groups);
    find_speeds(b);
    if (rule->by_distance && find_domains(b) < 0)
        r = -ENOBUFS;
    return b->known && b->threads && b->loose && b->sorted && b->groups ? r : -ENOBUFS;
}

static void add(struct asym_balance *b, int cpu, double weight, int count)
{
    b->changes++;
    b->load[cpu] += weight * count;
    b->sp->load[cpu] += (uint32_t)count;
    b->have[cpu] += (uint32_t)count;
}

/* --- groups --- */

static uint32_t level_of(const struct asym_balance *b, uint32_t t)
{
    return b->rule->weighted ? asym_nice_level(b->sp->in->threads[t].nice) : 0;
}

/* Sort by set, fewest choices first; within a set heavy threads come first, so that the light ones even out the rest. */
static void sort_threads(struct asym_balance *b, const uint32_t *list, size_t n)
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
    uint32_t left = ends[ASYM_NICE_LEVELS];
    for (size_t i = 0; i < n; i++)
        if (sp->ret[list[i]].cpu < 0)
            b->loose[ends[level_of(b, list[i])]++] = list[i];
    for (uint32_t i = 0; i < left; i++)
        b->sorted[sp->set_mark[sp->set_of[b->loose[i]]]++] = b->loose[i];
    b->n_sorted = left;
}

/* Returns the node or the LLC within which the thread may be pulled now. */
static uint32_t domain_of(const struct asym_balance *b, uint32_t t)
{
    if (b->near == ASYM_ANYWHERE)
        return 0;
    const struct asym_cpu *c = &b->sp->in->machine->cpus[b->sp->ret[t].cpu];
    return (uint32_t)(b->near == ASYM_SAME_NODE ? c->node : c->llc);
}

/* Order the threads by domain, and within a domain as they are sorted. */
static void sort_by_domain(struct asym_balance *b)
{
    const struct asym_machine *m = b->sp->in->machine;
    const size_t n_domains = ASYM_MAX(m->n_llcs, m->n_nodes);
    uint32_t *const begin = b->sp->cursor, sum = 0;
    memset(begin, 0, n_domains * sizeof *begin);
    for (uint32_t i = 0; i < b->n_sorted; i++)
        begin[domain_of(b, b->sorted[i])]++;
    for (size_t d = 0; d < n_domains; d++) {
        const uint32_t n = begin[d];
        begin[d] = sum;
        sum += n;
    }
    for (uint32_t i = 0; i < b->n_sorted; i++)
        b->threads[begin[domain_of(b, b->sorted[i])]++] = b->sorted[i];
}

static void make_groups(struct asym_balance *b)
{
    const struct asym_spread *sp = b->sp;
    b->n_groups = 0;
    for (uint32_t i = 0; i < b->n_sorted; i++) {
        const uint32_t t = b->threads[i], before = i > 0 ? b->threads[i - 1] : t, domain = domain_of(b, t);
        if (i == 0 || sp->set_of[t] != sp->set_of[before] || level_of(b, t) != level_of(b, before) ||
            domain != b->groups[b->n_groups - 1].domain)
            b->groups[b->n_groups++] = (struct asym_balance_group){.first = i, .domain = domain};
        b->groups[b->n_groups - 1].n++;
    }
}

static void describe_groups(struct asym_balance *b, const struct asym_mask *open)
{
    for (uint32_t i = 0; i < b->n_groups; i++) {
        struct asym_balance_group *g = &b->groups[i];
        const uint32_t t = b->threads[g->first];
        const struct asym_mask *allowed = b->sp->sets[b->sp->set_of[t]];
        g->cpus = asym_mask_and(allowed, open);
        if (asym_mask_empty(&g->cpus))
            g->cpus = *allowed;
        if (b->near != ASYM_ANYWHERE)
            g->cpus = asym_mask_and(&g->cpus, b->near == ASYM_SAME_NODE ? &b->nodes[g->domain] : &b->llcs[g->domain]);
        g->weight = b->rule->weighted ? asym_nice_weight(b->sp->in->threads[t].nice) : 1;
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
            b->sp->ret[t].cpu = threads[t].preferred_cpu;
            add(b, threads[t].preferred_cpu, g->weight, 1);
        }
    }
}

/* --- the current group --- */

static void set_keys(struct asym_balance *b, const struct asym_balance_group *g, uint32_t cpu)
{
    b->enter[cpu] = enter_cost(b, (int)cpu, g->weight);
    b->leave[cpu] = b->have[cpu] > 0 ? leave_cost(b, (int)cpu, g->weight) : -HUGE_VAL;
}

static void begin_group(struct asym_balance *b, const struct asym_balance_group *g)
{
    const struct asym_machine *m = b->sp->in->machine;
    memset(b->have, 0, m->n_cpus * sizeof *b->have);
    for (uint32_t k = g->first; k < g->first + g->n; k++)
        if (b->sp->ret[b->threads[k]].cpu >= 0)
            b->have[b->sp->ret[b->threads[k]].cpu]++;
    b->n_cpus = 0;
    ASYM_MASK_FOREACH (c, &g->cpus) {
        b->leaf[c] = b->n_cpus;
        b->cpus[b->n_cpus++] = (uint32_t)c;
        set_keys(b, g, (uint32_t)c);
    }
}

/* Returns a 16-bit key: the faster type, then favour. */
static uint32_t tie_by_cpu(const struct asym_cpu *c)
{
    return (uint32_t)c->type << 11 | c->rank;
}

/* Returns the siblings with more threads: of two equal CPUs the one on the core with fewer threads comes first. */
static uint32_t crowd_of(const struct asym_balance *b, int cpu)
{
    return ASYM_MIN(asym_spread_beside(b->sp, cpu, b->sp->load[cpu]), 0xfffu);
}

/* The order at equal cost: less crowded siblings, then a CPU near one that a thread not placed yet prefers, then the faster
 * type. */
static uint32_t tie_of(const struct asym_balance *b, uint32_t cpu)
{
    const struct asym_spread *sp = b->sp;
    const struct asym_cpu *c = &sp->in->machine->cpus[cpu];
    const uint32_t far = sp->want[cpu] > 0 ? 0 : sp->cursor[c->llc] > 0 ? 1 : 2;
    return crowd_of(b, (int)cpu) << 20 | far << 16 | tie_by_cpu(c);
}

static uint32_t better_in(const struct asym_balance *b, uint32_t x, uint32_t y)
{
    if (b->enter[x] != b->enter[y])
        return b->enter[x] < b->enter[y] ? x : y;
    if (b->tie[x] != b->tie[y])
        return b->tie[x] < b->tie[y] ? x : y;
    return b->leaf[x] < b->leaf[y] ? x : y;
}

static uint32_t better_out(const struct asym_balance *b, uint32_t x, uint32_t y)
{
    if (b->leave[x] != b->leave[y])
        return b->leave[x] > b->leave[y] ? x : y;
    return b->leaf[x] < b->leaf[y] ? x : y;
}

typedef uint32_t better_fn(const struct asym_balance *b, uint32_t x, uint32_t y);

static void build(const struct asym_balance *b, uint32_t *tree, better_fn *better)
{
    memcpy(tree + b->n_cpus, b->cpus, b->n_cpus * sizeof *tree);
    for (uint32_t i = b->n_cpus - 1; i > 0; i--)
        tree[i] = better(b, tree[2 * i], tree[2 * i + 1]);
}

static void update(const struct asym_balance *b, uint32_t *tree, better_fn *better, uint32_t cpu)
{
    for (uint32_t i = (b->n_cpus + b->leaf[cpu]) / 2; i > 0; i /= 2)
        tree[i] = better(b, tree[2 * i], tree[2 * i + 1]);
}

/* Compute the keys of a CPU and its siblings anew, after a change of its load. best_out: NULL: it is not in use. */
static void refresh(struct asym_balance *b, const struct asym_balance_group *g, uint32_t cpu, uint32_t *best_out)
{
    const struct asym_cpu *cpus = b->sp->in->machine->cpus;
    uint32_t c = cpu;
    do {
        if (asym_mask_has(&g->cpus, (int)c)) {
            set_keys(b, g, c);
            b->tie[c] = tie_of(b, c);
            update(b, b->best_in, better_in, c);
            if (best_out)
                update(b, best_out, better_out, c);
        }
        c = (uint32_t)cpus[c].sibling;
    } while (c != cpu);
}

/* Returns a CPU that still has a place, at most as far as `near` from preferred_cpu; -1 if there is none. Places only become
 * fewer, so the cursors never go back. */
static int near_place(const struct asym_balance *b, int preferred_cpu, enum asym_nearness near)
{
    struct asym_spread *sp = b->sp;
    const struct asym_machine *m = sp->in->machine;
    uint32_t first = 0, *cursor = &sp->cursor[0];
    if (near == ASYM_AT_PREFERRED)
        return preferred_cpu >= 0 && b->have[preferred_cpu] > 0 ? preferred_cpu : -1;
    if (near != ASYM_ANYWHERE && preferred_cpu < 0)
        return -1;
    if (near == ASYM_SAME_LLC) {
        cursor = &sp->cursor[m->cpus[preferred_cpu].llc];
        first = sp->llc_first[m->cpus[preferred_cpu].llc];
    } else if (near == ASYM_SAME_NODE) {
        cursor = &sp->cursor[m->cpus[preferred_cpu].node];
        first = sp->node_first[m->cpus[preferred_cpu].node];
    }
    for (uint32_t i = first + *cursor; i < sp->n_order; i = first + ++*cursor) {
        const int cpu = (int)sp->order[i];
        if (near != ASYM_ANYWHERE && asym_nearness(m, preferred_cpu, cpu) > near)
            return -1;
        if (b->have[cpu] > 0)
            return cpu;
    }
    return -1;
}

/* Distribute the group: each CPU gets have[cpu] threads. Threads on it stay as long as there is room; the rest goes to the
 * nearest CPU with a place. */
static void distribute(struct asym_balance *b, const struct asym_balance_group *g)
{
    struct asym_spread *sp = b->sp;
    size_t n_loose = 0;
    for (uint32_t k = g->first; k < g->first + g->n; k++) {
        int32_t *cpu = &sp->ret[b->threads[k]].cpu;
        if (*cpu >= 0 && b->have[*cpu] > 0) {
            b->have[*cpu]--;
            continue;
        }
        *cpu = -1;
        b->loose[n_loose++] = b->threads[k];
    }
    const size_t n_cursors = ASYM_MAX(sp->in->machine->n_llcs, sp->in->machine->n_nodes);
    for (enum asym_nearness near = ASYM_AT_PREFERRED; near <= ASYM_ANYWHERE && n_loose > 0; near++) {
        size_t kept = 0;
        memset(sp->cursor, 0, n_cursors * sizeof *sp->cursor);
        for (size_t i = 0; i < n_loose; i++) {
            const int cpu = near_place(b, sp->in->threads[b->loose[i]].preferred_cpu, near);
            sp->ret[b->loose[i]].cpu = cpu;
            if (cpu >= 0)
                b->have[cpu]--;
            else
                b->loose[kept++] = b->loose[i];
        }
        n_loose = kept;
    }
}

/* --- small groups: a loop over all CPUs is cheaper than the tournaments; thousands of threads may all differ --- */

#define FEW_TO_PLACE 2
#define FEW_TO_PULL  16
#define NO_CPU       UINT32_MAX

/* Find the CPU of each core type and state with the least load: it is the cheapest to enter, whatever the thread's weight. */
static void find_least(struct asym_balance *b, const struct asym_balance_group *g)
{
    const struct asym_machine *m = b->sp->in->machine;
    const uint32_t set = b->sp->set_of[b->threads[g->first]];
    if (b->least_set == set && b->least_domain == g->domain && b->least_changes == b->changes)
        return;
    b->least_set = set;
    b->least_domain = g->domain;
    b->least_changes = b->changes;
    for (unsigned t = 0; t < m->n_types; t++)
        for (unsigned k = 0; k < ASYM_SEAT_STATES; k++)
            b->least[t][k] = NO_CPU;
    ASYM_MASK_FOREACH (c, &g->cpus) {
        uint32_t *least = &b->least[m->cpus[c].type][find_state(b, c, b->sp->load[c])];
        if (*least == NO_CPU || b->load[c] < b->load[*least])
            *least = (uint32_t)c;
    }
}

/* Returns the least cost of entering any CPU. */
static double cost_of_entering(struct asym_balance *b, const struct asym_balance_group *g)
{
    const struct asym_machine *m = b->sp->in->machine;
    double least = HUGE_VAL;
    find_least(b, g);
    for (unsigned i = 0; i < m->n_types * ASYM_SEAT_STATES; i++) {
        const unsigned t = i / ASYM_SEAT_STATES, k = i % ASYM_SEAT_STATES;
        if (b->least[t][k] == NO_CPU)
            continue;
        b->cost[t][k] = enter_cost(b, (int)b->least[t][k], g->weight);
        least = fmin(least, b->cost[t][k]);
    }
    return least;
}

/* Returns the highest cost of staying in the group, and the thread that has it. */
static double cost_of_staying(const struct asym_balance *b, const struct asym_balance_group *g, uint32_t *ret_thread)
{
    double most = -HUGE_VAL;
    *ret_thread = b->threads[g->first];
    for (uint32_t k = g->first, before = NO_CPU; k < g->first + g->n; k++) {
        const uint32_t cpu = (uint32_t)b->sp->ret[b->threads[k]].cpu;
        if (cpu == before)
            continue;
        before = cpu;
        const double cost = leave_cost(b, (int)cpu, g->weight);
        if (cost > most) {
            most = cost;
            *ret_thread = b->threads[k];
        }
    }
    return most;
}

/* Returns the best CPU of that cost: first one with less crowded siblings, then the preferred CPU of the thread, then the nearest
 * CPU that no other thread prefers. */
static int nearest_at(const struct asym_balance *b, const struct asym_balance_group *g, uint32_t t, double cost)
{
    const struct asym_spread *sp = b->sp;
    const struct asym_machine *m = sp->in->machine;
    uint32_t least = UINT32_MAX;
    int best = -1;
    ASYM_MASK_FOREACH (c, &g->cpus) {
        const struct asym_cpu *cpu = &m->cpus[c];
        const enum asym_seat_state state = find_state(b, c, sp->load[c]);
        if (b->cost[cpu->type][state] != cost || b->load[c] != b->load[b->least[cpu->type][state]])
            continue;
        const enum asym_nearness near = asym_nearness(m, sp->in->threads[t].preferred_cpu, c);
        const uint32_t far = near == ASYM_AT_PREFERRED ? 0 : near + (sp->want[c] > 0 ? 4 : 0);
        const uint32_t tie = crowd_of(b, c) << 20 | far << 16 | tie_by_cpu(cpu);
        if (tie < least) {
            least = tie;
            best = c;
        }
    }
    return best;
}

static void arrive_few(struct asym_balance *b, const struct asym_balance_group *g)
{
    struct asym_spread *sp = b->sp;
    for (uint32_t k = g->first; k < g->first + g->n; k++) {
        const uint32_t t = b->threads[k];
        const int preferred_cpu = sp->in->threads[t].preferred_cpu;
        if (sp->ret[t].cpu >= 0)
            continue;
        sp->ret[t].cpu = nearest_at(b, g, t, cost_of_entering(b, g));
        add(b, sp->ret[t].cpu, g->weight, 1);
        if (preferred_cpu >= 0)
            sp->want[preferred_cpu]--;
    }
}

static bool pull_few(struct asym_balance *b, const struct asym_balance_group *g)
{
    bool pulled = false;
    for (; b->pulls_left > 0; b->pulls_left--, pulled = true) {
        uint32_t t;
        const double cost = cost_of_entering(b, g);
        if (!(cost < cost_of_staying(b, g, &t)))
            break;
        const int to = nearest_at(b, g, t, cost);
        add(b, b->sp->ret[t].cpu, g->weight, -1);
        add(b, to, g->weight, 1);
        b->sp->ret[t].cpu = to;
    }
    return pulled;
}

/* --- arrivals --- */

/* Count the new threads; mark their preferred CPUs and the LLCs of these. Returns how many threads are new. */
static uint32_t count_new(struct asym_balance *b, const struct asym_balance_group *g)
{
    struct asym_spread *sp = b->sp;
    const struct asym_machine *m = sp->in->machine;
    uint32_t n = 0;
    for (uint32_t k = g->first; k < g->first + g->n; k++)
        n += sp->ret[b->threads[k]].cpu < 0;
    if (n == 0)
        return 0;
    memset(sp->want, 0, m->n_cpus * sizeof *sp->want);
    memset(sp->cursor, 0, m->n_llcs * sizeof *sp->cursor);
    for (uint32_t k = g->first; k < g->first + g->n; k++) {
        const int preferred_cpu = sp->in->threads[b->threads[k]].preferred_cpu;
        if (sp->ret[b->threads[k]].cpu >= 0 || preferred_cpu < 0)
            continue;
        sp->want[preferred_cpu]++;
        sp->cursor[m->cpus[preferred_cpu].llc] = 1;
    }
    return n;
}

/* Ties only become worse while threads arrive, so it is enough to check the tie of the winner again. */
static uint32_t cheapest(struct asym_balance *b)
{
    for (;;) {
        const uint32_t cpu = b->best_in[1], tie = tie_of(b, cpu);
        if (tie == b->tie[cpu])
            return cpu;
        b->tie[cpu] = tie;
        update(b, b->best_in, better_in, cpu);
    }
}

static void arrive(struct asym_balance *b, const struct asym_balance_group *g)
{
    const uint32_t n = count_new(b, g);
    if (n <= FEW_TO_PLACE) {
        arrive_few(b, g);
        return;
    }
    begin_group(b, g);
    for (uint32_t i = 0; i < b->n_cpus; i++)
        b->tie[b->cpus[i]] = tie_of(b, b->cpus[i]);
    build(b, b->best_in, better_in);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t cpu = cheapest(b);
        add(b, (int)cpu, g->weight, 1);
        b->sp->want[cpu] -= b->sp->want[cpu] > 0;
        refresh(b, g, cpu, NULL);
    }
    distribute(b, g);
}

/* --- pulls --- */

/* Returns the CPU nearest to `from` among those as good as `to`. */
static uint32_t nearest_equal(const struct asym_balance *b, uint32_t from, uint32_t to)
{
    const struct asym_machine *m = b->sp->in->machine;
    enum asym_nearness least = asym_nearness(m, (int)from, (int)to);
    for (uint32_t i = 0; i < b->n_cpus && least > ASYM_SAME_LLC; i++) {
        const uint32_t cpu = b->cpus[i];
        const enum asym_nearness near = asym_nearness(m, (int)from, (int)cpu);
        if (b->enter[cpu] != b->enter[to] || b->tie[cpu] >> 20 != b->tie[to] >> 20 || near >= least)
            continue;
        least = near;
        to = cpu;
    }
    return to;
}

static bool pull(struct asym_balance *b, const struct asym_balance_group *g)
{
    uint32_t thread;
    if (g->n <= FEW_TO_PULL)
        return pull_few(b, g);
    if (!(cost_of_entering(b, g) < cost_of_staying(b, g, &thread)))
        return false;
    begin_group(b, g);
    memset(b->sp->cursor, 0, b->sp->in->machine->n_llcs * sizeof *b->sp->cursor);
    for (uint32_t i = 0; i < b->n_cpus; i++)
        b->tie[b->cpus[i]] = tie_of(b, b->cpus[i]);
    build(b, b->best_in, better_in);
    build(b, b->best_out, better_out);
    for (size_t n = 0; b->pulls_left > 0; n++, b->pulls_left--) {
        const uint32_t from = b->best_out[1];
        uint32_t to = b->best_in[1];
        if (!(b->enter[to] < b->leave[from]))
            break;
        if (n < NEAR_PULLS)
            to = nearest_equal(b, from, to);
        const uint32_t both[] = {from, to};
        for (size_t i = 0; i < 2; i++) {
            add(b, (int)both[i], g->weight, i == 0 ? -1 : 1);
            refresh(b, g, both[i], b->best_out);
        }
    }
    distribute(b, g);
    return true;
}

static void group(struct asym_balance *b, enum asym_nearness near, const struct asym_mask *open)
{
    b->near = near;
    b->least_set = UINT32_MAX;
    sort_by_domain(b);
    make_groups(b);
    describe_groups(b, open);
}

static void pull_all(struct asym_balance *b)
{
    uint32_t quiet = 0;
    for (uint32_t i = 0; quiet < b->n_groups && b->pulls_left > 0; i = (i + 1) % b->n_groups)
        quiet = pull(b, &b->groups[i]) ? 1 : quiet + 1;
}

/* A short way asks less of a pull, so the pulls of a long way are among those of each shorter way that includes it. */
static void pull_by_distance(struct asym_balance *b, const struct asym_mask *open)
{
    const struct asym_machine *m = b->sp->in->machine;
    const enum asym_nearness far = m->n_nodes > 1 ? ASYM_ANYWHERE : m->n_llcs > 1 ? ASYM_SAME_NODE : ASYM_SAME_LLC;
    size_t before;
    do {
        before = b->pulls_left;
        for (enum asym_nearness near = far; near >= ASYM_SAME_LLC; near--) {
            group(b, near, open);
            pull_all(b);
        }
    } while (b->pulls_left != before);
    b->near = ASYM_ANYWHERE;
}

void asym_balance_place(struct asym_balance *b, const uint32_t *list, size_t n, const struct asym_mask *open)
{
    sort_threads(b, list, n);
    group(b, ASYM_ANYWHERE, open);
    place_known(b);
    for (uint32_t i = 0; i < b->n_groups; i++)
        arrive(b, &b->groups[i]);
    memset(b->sp->want, 0, b->sp->in->machine->n_cpus * sizeof *b->sp->want);
    if (b->rule->by_distance)
        pull_by_distance(b, open);
    else
        pull_all(b);
}

int asym_balance_plan(const struct asym_policy_input *in, struct asym_assignment *ret,
                      const struct asym_balance_rule *rule, void (*explain)(const struct asym_balance *b))
{
    struct asym_spread sp;
    struct asym_balance b;
    const uint32_t *all = asym_spread_all(in);
    int r = asym_spread_init(&sp, in, ret);
    if (asym_balance_init(&b, &sp, rule) < 0 || r < 0 || !all)
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
