/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/placement/neighbours.h"

#include <errno.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "policy/placement/balance.h"
#include "policy/placement/spread-internal.h"

#define NO_THREAD UINT32_MAX

/* The threads that were on a CPU before the pulls are the part from first to end of `threads`, the highest priority first. */
struct row {
    uint32_t first, end;
};

struct rows {
    struct asym_spread *sp;
    struct row *of_cpu;
    uint32_t *threads;
    bool *moved; /* per thread */
};

static int take_memory(struct rows *r, struct asym_spread *sp)
{
    const struct asym_policy_input *in = sp->in;
    r->sp = sp;
    r->of_cpu = asym_arena_take(in->arena, in->machine->n_cpus, sizeof *r->of_cpu);
    r->threads = asym_arena_take(in->arena, in->n_threads + 1, sizeof *r->threads);
    r->moved = asym_arena_take(in->arena, in->n_threads + 1, sizeof *r->moved);
    return r->of_cpu && r->threads && r->moved ? 0 : -ENOBUFS;
}

/* Returns the CPU that leaves the thread the most speed; on a tie the first. */
static int most_speed(const struct asym_spread *sp, uint32_t t)
{
    const struct asym_machine *m = sp->in->machine;
    double most = 0;
    int best = -1;
    ASYM_MASK_FOREACH (c, sp->in->threads[t].allowed) {
        const double speed = asym_balance_speed(m, c) / (sp->load[c] + 1);
        if (speed > most) {
            most = speed;
            best = c;
        }
    }
    return best;
}

static void stay(struct asym_spread *sp, const uint32_t *order)
{
    const struct asym_policy_input *in = sp->in;
    for (size_t i = 0; i < in->n_threads; i++)
        if (in->threads[order[i]].preferred_cpu >= 0)
            asym_spread_put(sp, order[i], in->threads[order[i]].preferred_cpu);
    for (size_t i = 0; i < in->n_threads; i++)
        if (sp->ret[order[i]].cpu < 0)
            asym_spread_put(sp, order[i], most_speed(sp, order[i]));
}

static void make_rows(struct rows *r, const uint32_t *order)
{
    const struct asym_policy_input *in = r->sp->in;
    uint32_t sum = 0;
    ASYM_MASK_FOREACH (c, &in->machine->usable) {
        r->of_cpu[c] = (struct row){.first = sum, .end = sum};
        sum += r->sp->load[c];
    }
    for (size_t i = 0; i < in->n_threads; i++)
        r->threads[r->of_cpu[r->sp->ret[order[i]].cpu].end++] = order[i];
}

static bool fits(const struct rows *r, uint32_t t, int cpu)
{
    return !r->moved[t] && asym_mask_has(r->sp->in->threads[t].allowed, cpu);
}

/* Returns the index in threads of the highest thread of a CPU that may go to another. */
static uint32_t highest(const struct rows *r, int from, int to)
{
    for (uint32_t i = r->of_cpu[from].first; i < r->of_cpu[from].end; i++)
        if (fits(r, r->threads[i], to))
            return i;
    return NO_THREAD;
}

static uint32_t lowest(const struct rows *r, int from, int to)
{
    for (uint32_t i = r->of_cpu[from].end; i-- > r->of_cpu[from].first;)
        if (fits(r, r->threads[i], to))
            return i;
    return NO_THREAD;
}

static void move(struct rows *r, uint32_t i, int to)
{
    const uint32_t t = r->threads[i];
    const int from = r->sp->ret[t].cpu;
    r->sp->load[from]--;
    asym_spread_put(r->sp, t, to);
    r->moved[t] = true;
}

/* rank: per thread, its place in the order of priority. */
static void balance_pair(struct rows *r, const uint32_t *rank, int fast, int slow)
{
    const struct asym_machine *m = r->sp->in->machine;
    const uint32_t n_fast = r->sp->load[fast], n_slow = r->sp->load[slow];
    const uint64_t ratio = asym_neighbours_ratio(asym_balance_speed(m, fast), asym_balance_speed(m, slow));
    const uint32_t up = highest(r, slow, fast), down = lowest(r, fast, slow);
    if (n_fast > ASYM_MAX(1, ratio * n_slow)) {
        if (down != NO_THREAD)
            move(r, down, slow);
        return;
    }
    if (up == NO_THREAD)
        return;
    if (n_fast + 1 <= ASYM_MAX(1, ratio * (n_slow - 1))) {
        move(r, up, fast);
    } else if (down != NO_THREAD && rank[r->threads[up]] < rank[r->threads[down]]) {
        move(r, up, fast);
        move(r, down, slow);
    }
}

int asym_neighbours_place(struct asym_spread *sp, const uint32_t *order, bool pull)
{
    const struct asym_machine *m = sp->in->machine;
    struct rows r = {0};
    uint32_t *const rank = asym_arena_take(sp->in->arena, sp->in->n_threads + 1, sizeof *rank);
    if (take_memory(&r, sp) < 0 || !rank)
        return -ENOBUFS;
    stay(sp, order);
    if (!pull)
        return 0;
    make_rows(&r, order);
    for (uint32_t i = 0; i < sp->in->n_threads; i++)
        rank[order[i]] = i;
    int faster = -1;
    for (unsigned t = 0; t < m->n_types; t++) {
        ASYM_MASK_FOREACH (c, &m->types[t].cpus) {
            if (faster >= 0)
                balance_pair(&r, rank, faster, c);
            faster = c;
        }
    }
    return 0;
}
