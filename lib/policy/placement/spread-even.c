/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Even placement: places sets of threads with equal masks one after the other, the set with the fewest choices first. */
#include "policy/placement/spread.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/sort.h"

/* A set of threads with equal masks, which are placed on the same CPUs. */
struct group {
    uint32_t *threads;
    size_t n;
    struct asym_mask cpus;
};

static size_t fits_below(const struct asym_spread *sp, const struct asym_mask *cpus, uint32_t level)
{
    size_t n = 0;
    ASYM_MASK_FOREACH (c, cpus)
        n += sp->load[c] < level ? level - sp->load[c] : 0;
    return n;
}

/* Returns the highest level up to which the group can fill all its CPUs. */
static uint32_t find_level(const struct asym_spread *sp, const struct group *g)
{
    uint32_t lo = 0, hi = 1;
    while (fits_below(sp, &g->cpus, hi) <= g->n)
        hi *= 2;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (fits_below(sp, &g->cpus, mid) <= g->n)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* A thread stays on its preferred CPU below the level. The rest of the group has no place yet. */
static void stay_below_level(struct asym_spread *sp, struct group *g)
{
    const uint32_t level = find_level(sp, g);
    size_t left = 0;
    for (size_t i = 0; i < g->n; i++) {
        const uint32_t t = g->threads[i];
        const int32_t preferred_cpu = sp->in->threads[t].preferred_cpu;
        if (asym_mask_has(&g->cpus, preferred_cpu) && sp->load[preferred_cpu] < level)
            asym_spread_put(sp, t, preferred_cpu);
        else
            g->threads[left++] = t;
    }
    g->n = left;
}

/* A larger group goes by levels first: else each plan would look for a place on all CPUs for each of thousands of threads. */
#define FEW 16

/* Returns the least loaded CPU of the group; on a tie the best seat, then one that a thread prefers, then one under the LLC of
 * such a CPU. */
static int least_loaded(const struct asym_spread *sp, const struct group *g)
{
    uint64_t least = UINT64_MAX;
    int best = -1;
    ASYM_MASK_FOREACH (c, &g->cpus) {
        const struct asym_machine *m = sp->in->machine;
        if (best >= 0 && sp->load[c] > sp->load[best])
            continue;
        const uint32_t beside = asym_spread_beside(sp, c, sp->load[c]);
        const bool is_wanted = sp->want[c] > 0, is_near = sp->cursor[m->cpus[c].llc] > 0;
        uint64_t cost = (uint64_t)sp->load[c] << 36 | (uint64_t)asym_machine_row(m, c, beside > 0) << 26 |
                        (uint64_t)ASYM_MIN(beside, 0xffu) << 18 | (uint64_t)!is_wanted << 17 |
                        (uint64_t)!is_near << 16 | m->cpus[c].rank;
        if (cost < least) {
            least = cost;
            best = c;
        }
    }
    return best;
}

/* Count the threads that prefer each CPU, and mark the LLCs of these CPUs. */
static void note_preferred_cpus(struct asym_spread *sp, const struct group *g)
{
    memset(sp->cursor, 0, sp->in->machine->n_llcs * sizeof *sp->cursor);
    for (size_t i = 0; i < g->n; i++) {
        int preferred_cpu = sp->in->threads[g->threads[i]].preferred_cpu;
        if (preferred_cpu < 0)
            continue;
        sp->cursor[sp->in->machine->cpus[preferred_cpu].llc] = 1;
        sp->want[preferred_cpu]++;
    }
}

static void place(struct asym_spread *sp, struct group *g)
{
    note_preferred_cpus(sp, g);
    for (size_t i = 0; i < g->n; i++) {
        const int cpu = least_loaded(sp, g);
        sp->places[i] = cpu;
        sp->want[cpu] -= sp->want[cpu] > 0;
        sp->load[cpu]++;
    }
    asym_spread_hand_out(sp, g->threads, g->n);
    for (size_t i = 0; i < g->n; i++)
        if (sp->in->threads[g->threads[i]].preferred_cpu >= 0)
            sp->want[sp->in->threads[g->threads[i]].preferred_cpu] = 0;
}

/* Sort the threads that are not placed yet by set, with a counting sort. set_mark[s] becomes the end of set s. */
static size_t collect(struct asym_spread *sp, const uint32_t *list, size_t n)
{
    memset(sp->set_mark, 0, (sp->n_sets + 1) * sizeof *sp->set_mark);
    for (size_t i = 0; i < n; i++)
        if (sp->ret[list[i]].cpu < 0)
            sp->set_mark[sp->set_of[list[i]] + 1]++;
    for (uint32_t s = 1; s <= sp->n_sets; s++)
        sp->set_mark[s] += sp->set_mark[s - 1];
    size_t left = sp->set_mark[sp->n_sets];
    for (size_t i = 0; i < n; i++)
        if (sp->ret[list[i]].cpu < 0)
            sp->list[sp->set_mark[sp->set_of[list[i]]]++] = list[i];
    return left;
}

void asym_spread_even(struct asym_spread *sp, const uint32_t *list, size_t n, const struct asym_mask *cpus)
{
    size_t left = collect(sp, list, n);
    for (size_t first = 0, end; first < left; first = end) {
        uint32_t set = sp->set_of[sp->list[first]];
        end = sp->set_mark[set];
        struct group g = {.threads = sp->list + first, .n = end - first};
        g.cpus = asym_mask_and(sp->sets[set], cpus);
        if (asym_mask_empty(&g.cpus))
            g.cpus = *sp->sets[set];
        if (g.n > FEW)
            stay_below_level(sp, &g);
        place(sp, &g);
    }
}

void asym_spread_give_siblings(struct asym_spread *sp, const uint32_t *list, size_t n, struct asym_mask *free_fast)
{
    const struct asym_mask seats = asym_mask_or(&sp->in->machine->slow, free_fast);
    if (collect(sp, list, n) > asym_mask_count(&seats))
        asym_spread_give(sp, list, n, true, free_fast);
}

void asym_spread_rest(struct asym_spread *sp, const uint32_t *list, size_t n, const struct asym_mask *free_fast)
{
    const struct asym_mask rest = asym_mask_or(&sp->in->machine->slow, free_fast);
    asym_spread_even(sp, list, n, &rest);
    asym_spread_fill_seats(sp);
}

void asym_spread_by_rank(struct asym_spread *sp, const uint32_t *list, size_t n_ranked, size_t n)
{
    const struct asym_machine *m = sp->in->machine;
    struct asym_mask free_fast = m->fast;
    asym_spread_give_rows(sp, list, n_ranked, &m->usable, m->types[m->n_types - 1].row[0], false);
    ASYM_MASK_FOREACH (c, &m->fast)
        if (sp->load[c] > 0)
            asym_mask_clear(&free_fast, (unsigned)c);
    asym_spread_give_siblings(sp, list, n, &free_fast);
    asym_spread_rest(sp, list, n, &free_fast);
}

const struct asym_reason asym_spread_no_fast = {.text = "none of its CPUs is fast",
                                                .sentence = "may run on slow CPUs only"};
const struct asym_reason asym_spread_only_fast = {.text = "all of its CPUs are fast",
                                                  .sentence = "may run on fast CPUs only"};
const struct asym_reason asym_spread_spinning = {.text = "spins at a barrier: comes last",
                                                 .sentence = "spins at a barrier, so all other threads come before it"};

static const struct asym_reason alike = {
    .text = "no CPU is known to be faster: threads are only spread",
    .sentence = "has a CPU like all others as far as asymd knows: the policy only spreads the threads"};

void asym_spread_alike(struct asym_spread *sp, const uint32_t *list, size_t n)
{
    asym_spread_even(sp, list, n, &sp->in->machine->usable);
    for (size_t i = 0; i < n; i++)
        sp->ret[list[i]].reason = &alike;
}

int asym_spread_begin(struct asym_spread *sp, const uint32_t *list)
{
    if (asym_arena_is_short(sp->in->arena))
        return -ENOBUFS;
    if (asym_machine_is_asymmetric(sp->in->machine))
        return 1;
    asym_spread_alike(sp, list, sp->in->n_threads);
    return 0;
}

/* --- by gain --- */

/* Gains are compared in hundredths, so that noise moves no thread. No core is 100 times as fast as another. */
#define GAIN_UNITS 100
#define GAIN_MOST  10000

/* A key: the least gain goes last; on a tie a thread that had no seat by its rank, then the one on the slower core type. */
enum { KEY_SEAT_SHIFT = 6, KEY_GAIN_SHIFT = 14 };
_Static_assert(ASYM_MAX_TYPES < 1 << KEY_SEAT_SHIFT, "the core type is the lowest part of the key");

void asym_ranked_init(struct asym_ranked *r, struct asym_spread *sp)
{
    struct asym_arena *arena = sp->in->arena;
    const size_t n = sp->in->n_threads + 1;
    *r = (struct asym_ranked){
        .sp = sp,
        .gain = asym_arena_take(arena, n, sizeof *r->gain),
        .holds = asym_arena_take(arena, n, sizeof *r->holds),
        .keys = asym_arena_take(arena, n, sizeof *r->keys),
        .order = asym_spread_all(sp->in),
        .scratch = asym_arena_take(arena, n, sizeof *r->scratch),
    };
}

static uint32_t key_of(const struct asym_ranked *r, size_t t)
{
    const struct asym_policy_input *in = r->sp->in;
    const uint32_t gain = (uint32_t)(ASYM_MIN(r->gain[t] * GAIN_UNITS, (float)GAIN_MOST) + 0.5f);
    const int32_t cpu = in->threads[t].preferred_cpu;
    return (GAIN_MOST - ASYM_MIN(gain, (uint32_t)GAIN_MOST)) << KEY_GAIN_SHIFT |
           (uint32_t)asym_spread_place(r->holds[t]) << KEY_SEAT_SHIFT |
           (cpu >= 0 ? (uint32_t)in->machine->cpus[cpu].type : ASYM_MAX_TYPES);
}

static int by_key(uint32_t a, uint32_t b, const void *ctx)
{
    const uint32_t *keys = ctx;
    return keys[a] < keys[b] ? -1 : keys[a] > keys[b];
}

void asym_ranked_place(struct asym_ranked *r)
{
    struct asym_spread *sp = r->sp;
    const size_t n = sp->in->n_threads;
    for (size_t t = 0; t < n; t++) {
        r->keys[t] = key_of(r, t);
        r->holds[t] = sp->ret[t].cpu >= 0 ? r->holds[t] : 0;
    }
    asym_sort_index(r->order, n, r->scratch, by_key, r->keys);
    asym_spread_by_rank(sp, r->order, n, n);
    for (size_t t = 0; t < n; t++)
        r->holds[t] = sp->holds[t] > 0 ? sp->holds[t] : r->holds[t];
}

static const struct asym_reason gains = {.text = "%.2f times as fast on a fast CPU: holds one",
                                         .sentence = "is %.2f times as fast on a fast CPU, so it holds one"};
static const struct asym_reason gains_less = {
    .text = "%.2f times as fast on a fast CPU: others gain more",
    .sentence = "is %.2f times as fast on a fast CPU, but other threads gain more"};

void asym_ranked_explain(const struct asym_ranked *r, size_t t, const struct asym_reason *unknown)
{
    struct asym_assignment *a = &r->sp->ret[t];
    const unsigned reach = asym_spread_reach(r->sp, t);
    a->figure[0] = (double)r->gain[t];
    if (!(reach & ASYM_REACH_FAST))
        a->reason = &asym_spread_no_fast;
    else if (!(reach & ASYM_REACH_SLOW))
        a->reason = &asym_spread_only_fast;
    else if (r->sp->in->threads[t].spinning)
        a->reason = &asym_spread_spinning;
    else if (!(r->gain[t] > 0))
        a->reason = unknown;
    else
        a->reason = asym_mask_has(&r->sp->in->machine->fast, a->cpu) ? &gains : &gains_less;
}

/* --- the boost of light threads --- */

const struct asym_option asym_boost_options[] = {
    ASYM_OPTION(
        struct asym_boost_params, NICE, sp_boost, .def = "-5", .min = -20, .max = 19,
        .help =
            "While all CPUs are busy, asymd adds this to the nice value of a thread that shares a fast CPU because it "
            "sleeps much, and is in a serial phase or belongs to a serial program; the source changes no nice "
            "value."),
    {.key = NULL},
};

/* Less than one CPU is left. */
static bool is_busy(const struct asym_policy_input *in)
{
    double duties = 0;
    for (size_t t = 0; t < in->n_threads; t++)
        duties += in->threads[t].duty;
    return duties > (double)asym_mask_count(&in->machine->usable) - 1;
}

static bool is_serial(const struct asym_policy_input *in, const struct asym_policy_thread *thread)
{
    return thread->class == ASYM_CLASS_SP || thread->master || in->apps[thread->app].phase == ASYM_PHASE_SERIAL;
}

void asym_boost_light(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    const struct asym_boost_params *params = in->params;
    if (!is_busy(in))
        return;
    for (size_t t = 0; t < in->n_threads; t++)
        if (in->threads[t].light && ret[t].cpu >= 0 && asym_mask_has(&in->machine->fast, ret[t].cpu) &&
            is_serial(in, &in->threads[t]))
            ret[t].nice_delta = (int8_t)params->sp_boost;
}
