/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/balance.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "policy/spread-internal.h"
#include "policy/weight.h"

struct asym_balance_group {
    uint32_t first, n; /* in threads */
    uint32_t weight;
    struct asym_mask cpus;
};

/* So many pulls of a group look for the nearest of equal CPUs; when there are more, the machine is in upheaval anyway. */
#define NEAR_PULLS 16

/* It gets nowhere near: the costs fall with each pull. But a policy must end, whatever its rule. */
#define MOST_PULLS(n_threads, n_cpus) (16 * ((n_threads) + (n_cpus)))

int asym_balance_init(struct asym_balance *b, struct asym_spread *sp, const struct asym_balance_rule *rule)
{
    struct asym_arena *arena = sp->in->arena;
    const size_t n = sp->in->n_threads, n_cpus = sp->in->machine->n_cpus;
    *b = (struct asym_balance){.sp = sp, .rule = rule, .pulls_left = MOST_PULLS(n, n_cpus)};
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
    b->groups = asym_arena_take(arena, n + 1, sizeof *b->groups);
    return b->known && b->threads && b->loose && b->groups ? r : -ENOBUFS;
}

static void add(struct asym_balance *b, int cpu, double weight, int count)
{
    const struct asym_machine *m = b->sp->in->machine;
    b->changes++;
    b->load[cpu] += weight * count;
    b->sp->load[cpu] += (uint32_t)count;
    b->sp->core_load[m->cpus[cpu].core] += (uint32_t)count;
    b->have[cpu] += (uint32_t)count;
}

/* --- groups --- */

static uint32_t level_of(const struct asym_balance *b, uint32_t t)
{
    return b->rule->weighted ? asym_nice_level(b->sp->in->threads[t].nice) : 0;
}

/* By set, fewest choices first; of a set the heavy ones first: the light ones then even out what is left. */
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
        b->threads[sp->set_mark[sp->set_of[b->loose[i]]]++] = b->loose[i];
    b->n_groups = 0;
    for (uint32_t i = 0; i < left; i++) {
        const uint32_t t = b->threads[i], before = i > 0 ? b->threads[i - 1] : t;
        if (i == 0 || sp->set_of[t] != sp->set_of[before] || level_of(b, t) != level_of(b, before))
            b->groups[b->n_groups++] = (struct asym_balance_group){.first = i};
        b->groups[b->n_groups - 1].n++;
    }
}

static void describe_groups(struct asym_balance *b, const struct asym_mask *open)
{
    for (uint32_t i = 0; i < b->n_groups; i++) {
        struct asym_balance_group *g = &b->groups[i];
        const uint32_t t = b->threads[g->first];
        const struct asym_mask *may = b->sp->sets[b->sp->set_of[t]];
        g->cpus = asym_mask_and(may, open);
        if (asym_mask_empty(&g->cpus))
            g->cpus = *may;
        g->weight = b->rule->weighted ? asym_nice_weight(b->sp->in->threads[t].nice) : 1;
    }
}

/* Who is known stays at home, for now. */
static void settle(struct asym_balance *b)
{
    const struct asym_policy_thread *threads = b->sp->in->threads;
    for (uint32_t i = 0; i < b->n_groups; i++) {
        const struct asym_balance_group *g = &b->groups[i];
        for (uint32_t k = g->first; k < g->first + g->n; k++) {
            const uint32_t t = b->threads[k];
            if (!b->known[t] || !asym_mask_has(&g->cpus, threads[t].home))
                continue;
            b->sp->ret[t].cpu = threads[t].home;
            add(b, threads[t].home, g->weight, 1);
        }
    }
}

/* --- the group at hand --- */

static void set_keys(struct asym_balance *b, const struct asym_balance_group *g, uint32_t cpu)
{
    const double speed = asym_balance_speed(b->sp->in->machine, (int)cpu);
    b->enter[cpu] = b->rule->enter(b->load[cpu], g->weight, speed);
    b->leave[cpu] = b->have[cpu] > 0 ? b->rule->leave(b->load[cpu], g->weight, speed) : -HUGE_VAL;
}

static void take_up(struct asym_balance *b, const struct asym_balance_group *g)
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

/* The faster type, then the first sibling, then favour: 16 bits. No core has more than eight siblings. */
static uint32_t tie_by_cpu(const struct asym_cpu *c)
{
    return (uint32_t)c->type << 11 | ASYM_MIN(c->smt_rank, 7u) << 8 | c->rank;
}

/* Of equal costs: a core whose siblings idle, then near the home of one that is to be placed, then the faster type. */
static uint32_t tie_of(const struct asym_balance *b, uint32_t cpu)
{
    const struct asym_spread *sp = b->sp;
    const struct asym_cpu *c = &sp->in->machine->cpus[cpu];
    const uint32_t siblings = ASYM_MIN(sp->core_load[c->core] - sp->load[cpu], 0xfffu);
    const uint32_t far = sp->want[cpu] > 0 ? 0 : sp->cursor[c->llc] > 0 ? 1 : 2;
    return siblings << 20 | far << 16 | tie_by_cpu(c);
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

/* A CPU that still has a place, as near to home as said. Places only become fewer: the cursors never go back. */
static int near_place(const struct asym_balance *b, int home, enum asym_nearness near)
{
    struct asym_spread *sp = b->sp;
    const struct asym_machine *m = sp->in->machine;
    uint32_t first = 0, *cursor = &sp->cursor[0];
    if (near == ASYM_AT_HOME)
        return home >= 0 && b->have[home] > 0 ? home : -1;
    if (near != ASYM_ANYWHERE && home < 0)
        return -1;
    if (near == ASYM_SAME_LLC) {
        cursor = &sp->cursor[m->cpus[home].llc];
        first = sp->llc_first[m->cpus[home].llc];
    } else if (near == ASYM_SAME_NODE) {
        cursor = &sp->cursor[m->cpus[home].node];
        first = sp->node_first[m->cpus[home].node];
    }
    for (uint32_t i = first + *cursor; i < sp->n_order; i = first + ++*cursor) {
        const int cpu = (int)sp->order[i];
        if (near != ASYM_ANYWHERE && asym_nearness(m, home, cpu) > near)
            return -1;
        if (b->have[cpu] > 0)
            return cpu;
    }
    return -1;
}

/* have says how many each CPU gets: who is there stays as long as there is room, the rest goes where it is nearest. */
static void hand_out(struct asym_balance *b, const struct asym_balance_group *g)
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
    for (enum asym_nearness near = ASYM_AT_HOME; near <= ASYM_ANYWHERE && n_loose > 0; near++) {
        size_t kept = 0;
        memset(sp->cursor, 0, n_cursors * sizeof *sp->cursor);
        for (size_t i = 0; i < n_loose; i++) {
            const int cpu = near_place(b, sp->in->threads[b->loose[i]].home, near);
            sp->ret[b->loose[i]].cpu = cpu;
            if (cpu >= 0)
                b->have[cpu]--;
            else
                b->loose[kept++] = b->loose[i];
        }
        n_loose = kept;
    }
}

/* --- a few threads: looking at each CPU is cheaper than the tournaments, and thousands of threads may all differ --- */

#define FEW_TO_PLACE 2
#define FEW_TO_PULL  16
#define NO_CPU       UINT32_MAX

/* Of each core type the CPU that costs least to enter, whatever a thread weighs. */
static void find_least(struct asym_balance *b, const struct asym_balance_group *g)
{
    const struct asym_machine *m = b->sp->in->machine;
    const uint32_t set = b->sp->set_of[b->threads[g->first]];
    if (b->least_set == set && b->least_changes == b->changes)
        return;
    b->least_set = set;
    b->least_changes = b->changes;
    for (unsigned t = 0; t < m->n_types; t++)
        b->least[t] = NO_CPU;
    ASYM_MASK_FOREACH (c, &g->cpus) {
        uint32_t *least = &b->least[m->cpus[c].type];
        if (*least == NO_CPU || b->load[c] < b->load[*least])
            *least = (uint32_t)c;
    }
}

/* The least that entering costs anywhere. */
static double cost_of_entering(struct asym_balance *b, const struct asym_balance_group *g)
{
    const struct asym_machine *m = b->sp->in->machine;
    double least = HUGE_VAL;
    find_least(b, g);
    for (unsigned t = 0; t < m->n_types; t++) {
        if (b->least[t] == NO_CPU)
            continue;
        b->cost[t] = b->rule->enter(b->load[b->least[t]], g->weight, m->types[t].speed);
        least = fmin(least, b->cost[t]);
    }
    return least;
}

/* The most that staying costs any of the group, and whom. */
static double cost_of_staying(const struct asym_balance *b, const struct asym_balance_group *g, uint32_t *ret_who)
{
    const struct asym_machine *m = b->sp->in->machine;
    double most = -HUGE_VAL;
    *ret_who = b->threads[g->first];
    for (uint32_t k = g->first, before = NO_CPU; k < g->first + g->n; k++) {
        const uint32_t cpu = (uint32_t)b->sp->ret[b->threads[k]].cpu;
        if (cpu == before)
            continue;
        before = cpu;
        const double cost = b->rule->leave(b->load[cpu], g->weight, asym_balance_speed(m, (int)cpu));
        if (cost > most) {
            most = cost;
            *ret_who = b->threads[k];
        }
    }
    return most;
}

/* Of the CPUs that cost this: a core whose siblings idle, then home, then the nearest that is nobody else's home. */
static int nearest_at(const struct asym_balance *b, const struct asym_balance_group *g, uint32_t t, double cost)
{
    const struct asym_spread *sp = b->sp;
    const struct asym_machine *m = sp->in->machine;
    uint32_t least = UINT32_MAX;
    int best = -1;
    ASYM_MASK_FOREACH (c, &g->cpus) {
        const struct asym_cpu *cpu = &m->cpus[c];
        if (b->cost[cpu->type] != cost || b->load[c] != b->load[b->least[cpu->type]])
            continue;
        const enum asym_nearness near = asym_nearness(m, sp->in->threads[t].home, c);
        const uint32_t siblings = ASYM_MIN(sp->core_load[cpu->core] - sp->load[c], 0xfffu);
        const uint32_t far = near == ASYM_AT_HOME ? 0 : near + (sp->want[c] > 0 ? 4 : 0);
        const uint32_t tie = siblings << 20 | far << 16 | tie_by_cpu(cpu);
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
        const int home = sp->in->threads[t].home;
        if (sp->ret[t].cpu >= 0)
            continue;
        sp->ret[t].cpu = nearest_at(b, g, t, cost_of_entering(b, g));
        add(b, sp->ret[t].cpu, g->weight, 1);
        if (home >= 0)
            sp->want[home]--;
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

/* Count the newcomers, their homes, and the LLCs of those. */
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
        const int home = sp->in->threads[b->threads[k]].home;
        if (sp->ret[b->threads[k]].cpu >= 0 || home < 0)
            continue;
        sp->want[home]++;
        sp->cursor[m->cpus[home].llc] = 1;
    }
    return n;
}

/* Ties only become worse while threads arrive: it is enough to look again at who wins. */
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
    take_up(b, g);
    for (uint32_t i = 0; i < b->n_cpus; i++)
        b->tie[b->cpus[i]] = tie_of(b, b->cpus[i]);
    build(b, b->best_in, better_in);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t cpu = cheapest(b);
        add(b, (int)cpu, g->weight, 1);
        b->sp->want[cpu] -= b->sp->want[cpu] > 0;
        set_keys(b, g, cpu);
        b->tie[cpu] = tie_of(b, cpu);
        update(b, b->best_in, better_in, cpu);
    }
    hand_out(b, g);
}

/* --- pulls --- */

/* Of CPUs as good as to, the nearest to from. */
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
    uint32_t who;
    if (g->n <= FEW_TO_PULL)
        return pull_few(b, g);
    if (!(cost_of_entering(b, g) < cost_of_staying(b, g, &who)))
        return false;
    take_up(b, g);
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
            set_keys(b, g, both[i]);
            b->tie[both[i]] = tie_of(b, both[i]);
            update(b, b->best_in, better_in, both[i]);
            update(b, b->best_out, better_out, both[i]);
        }
    }
    hand_out(b, g);
    return true;
}

void asym_balance_place(struct asym_balance *b, const uint32_t *list, size_t n, const struct asym_mask *open)
{
    sort_threads(b, list, n);
    describe_groups(b, open);
    b->least_set = UINT32_MAX;
    settle(b);
    for (uint32_t i = 0; i < b->n_groups; i++)
        arrive(b, &b->groups[i]);
    memset(b->sp->want, 0, b->sp->in->machine->n_cpus * sizeof *b->sp->want);
    uint32_t quiet = 0;
    for (uint32_t i = 0; quiet < b->n_groups && b->pulls_left > 0; i = (i + 1) % b->n_groups)
        quiet = pull(b, &b->groups[i]) ? 1 : quiet + 1;
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
    /* By types and not by fast and slow: the rule knows all speeds. */
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
    asym_spread_mend(&sp);
    explain(&b);
    return 0;
}
