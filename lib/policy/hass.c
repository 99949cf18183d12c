/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread is assigned once, when it appears, to the core type with the shortest estimated run time, and stays there. The
 * policy does not monitor and does not react to phases (HASS: Shelepov 2009, as described in Nie & Duan 2012, 2).
 *
 * The estimate uses the profile of the executable (its architectural signature). For each instruction it adds the time that
 * shrinks with the speed of the core and the stall time of cache misses, which does not. It takes the measurement on the
 * fastest type that was measured for all types. A type with fewer threads than cores goes before one whose cores are busy, and
 * that before a full one, so no new thread shares a core, or a CPU, while one of another type is idle. If all types are full,
 * each thread takes longer in proportion to the threads on its type. Threads that appear together go to the fast CPUs in the
 * order of their gain. Without a profile the estimate uses the speed of the core only.
 *
 * The policy obeys rule 3: if a fast CPU would be idle while a slow one has two threads, one of them is assigned again.
 */
#include <asym/policy.h>

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"
#include "policy/placement/spread.h"

struct params {
    double miss_ns;
};

struct thread_state {
    uint8_t type;        /* it is assigned to core type type - 1; 0: it is new */
    uint64_t generation; /* generation of the machine that defines the core types */
};

/* Seconds per instruction, on the slowest core, of a program without a profile. Only ratios matter. */
#define UNKNOWN_SECONDS 1e-9

struct estimate {
    double exec; /* seconds per instruction at speed 1 */
    double stall;
};

struct queue {
    const struct asym_policy_input *in;
    struct estimate *estimates;
    double *gain; /* per new thread: estimated time on the slowest core type / time on the fastest */
    uint32_t *fresh, *old, *scratch;
    size_t n_fresh, n_old;
    uint32_t n_on[ASYM_MAX_TYPES], n_cpus[ASYM_MAX_TYPES], n_cores[ASYM_MAX_TYPES];
};

static struct thread_state *state_of(const struct asym_policy_input *in, size_t t)
{
    return in->threads[t].state;
}

static struct estimate estimate_of(const struct asym_machine *m, const struct asym_profile *p, double miss_seconds)
{
    for (unsigned type = 0; p && type < m->n_types; type++) {
        if (!(p->ips[type] > 0))
            continue;
        const double whole = 1 / p->ips[type];
        /* Limit the stall time: misses overlap, and miss_ns is a setting, so the product may exceed the whole time. */
        const double stall = p->mpki[type] > 0 ? ASYM_MIN(p->mpki[type] / 1000 * miss_seconds, 0.95 * whole) : 0;
        return (struct estimate){.exec = (whole - stall) * m->types[type].speed, .stall = stall};
    }
    return (struct estimate){.exec = UNKNOWN_SECONDS};
}

static double time_on(const struct queue *q, size_t t, unsigned type)
{
    return q->estimates[t].exec / q->in->machine->types[type].speed + q->estimates[t].stall;
}

static bool may_be_on(const struct queue *q, size_t t, unsigned type)
{
    return asym_mask_meets(q->in->threads[t].allowed, &q->in->machine->types[type].cpus);
}

/* Returns the row of the next seat of a type with n threads; a number above all rows if the type is full. */
static unsigned next_row(const struct queue *q, unsigned type, uint32_t n)
{
    const struct asym_core_type *t = &q->in->machine->types[type];
    return n < q->n_cores[type] ? 0 : n < q->n_cpus[type] ? 1u + t->row[1] : UINT32_MAX;
}

/*
 * Returns the core type with the shortest estimated run time beside the threads assigned there; on a tie the fastest. Types
 * with an idle core go first, then those with an idle CPU in the order of what it adds: the estimate of a full type says nothing
 * of the threads that end there later.
 */
static unsigned choose(const struct queue *q, size_t t)
{
    double least = 0;
    unsigned best = UINT32_MAX, best_row = UINT32_MAX;
    for (unsigned type = 0; type < q->in->machine->n_types; type++) {
        if (!may_be_on(q, t, type))
            continue;
        const double thread_count = ASYM_MAX(1.0, (q->n_on[type] + 1.0) / q->n_cpus[type]);
        const double time = time_on(q, t, type) * thread_count;
        const unsigned row = next_row(q, type, q->n_on[type]);
        if (best == UINT32_MAX || (row == best_row ? time < least : row < best_row)) {
            least = time;
            best = type;
            best_row = row;
        }
    }
    return best;
}

static int by_gain(uint32_t a, uint32_t b, const void *ctx)
{
    const double *gain = ctx;
    return gain[a] > gain[b] ? -1 : gain[a] < gain[b];
}

/* A thread is new if the machine has changed, because core types of two machines do not correspond, or if it may no longer
 * run on the type that it was assigned to. */
static void find_new(struct queue *q)
{
    const struct asym_machine *m = q->in->machine;
    const double miss_seconds = ((const struct params *)q->in->params)->miss_ns / 1e9;
    for (unsigned type = 0; type < m->n_types; type++) {
        const struct asym_mask cores = asym_machine_cores(m, &m->types[type].cpus);
        q->n_cores[type] = asym_mask_count(&cores);
        q->n_cpus[type] = ASYM_MAX(asym_mask_count(&m->types[type].cpus), 1u);
    }
    for (size_t t = 0; t < q->in->n_threads; t++) {
        struct thread_state *s = state_of(q->in, t);
        if (s->generation != m->generation)
            *s = (struct thread_state){.generation = m->generation};
        const unsigned type = s->type;
        q->estimates[t] = estimate_of(m, q->in->threads[t].profile, miss_seconds);
        if (type > 0 && type <= m->n_types && may_be_on(q, t, type - 1)) {
            q->n_on[type - 1]++;
            q->old[q->n_old++] = (uint32_t)t;
        } else {
            q->gain[t] = time_on(q, t, m->n_types - 1) / time_on(q, t, 0);
            q->fresh[q->n_fresh++] = (uint32_t)t;
        }
    }
}

static void assign(struct queue *q)
{
    asym_sort_index(q->fresh, q->n_fresh, q->scratch, by_gain, q->gain);
    for (size_t i = 0; i < q->n_fresh; i++) {
        const unsigned type = choose(q, q->fresh[i]);
        state_of(q->in, q->fresh[i])->type = (uint8_t)(type + 1);
        q->n_on[type]++;
        q->old[q->n_old++] = q->fresh[i];
    }
}

static int by_type(uint32_t a, uint32_t b, const void *ctx)
{
    return state_of(ctx, a)->type - state_of(ctx, b)->type;
}

static void place(struct queue *q, struct asym_spread *sp)
{
    asym_sort_index(q->old, q->n_old, q->scratch, by_type, q->in);
    for (size_t first = 0, n; first < q->n_old; first += n) {
        const unsigned type = state_of(q->in, q->old[first])->type;
        for (n = 1; first + n < q->n_old && state_of(q->in, q->old[first + n])->type == type;)
            n++;
        asym_spread_even(sp, q->old + first, n, &q->in->machine->types[type - 1].cpus);
    }
    asym_spread_fill_fast(sp);
}

static void take_memory(const struct asym_policy_input *in, struct queue *q)
{
    const size_t n = in->n_threads + 1;
    *q = (struct queue){
        .in = in,
        .estimates = asym_arena_take(in->arena, n, sizeof *q->estimates),
        .gain = asym_arena_take(in->arena, n, sizeof *q->gain),
        .fresh = asym_arena_take(in->arena, n, sizeof *q->fresh),
        .old = asym_spread_all(in),
        .scratch = asym_arena_take(in->arena, n, sizeof *q->scratch),
    };
}

static const struct asym_reason estimated = {
    .text = "assigned once: %.2f times as fast on a fast CPU, %.0f threads here",
    .sentence = "got its CPU when it began: it is %.2f times as fast on a fast CPU, and %.0f threads share its CPU"};
static const struct asym_reason no_profile = {
    .text = "no profile of its program: assigned by the speed of the CPUs",
    .sentence = "got its CPU by the speed of the CPUs, because its program has no profile"};

static void explain(const struct queue *q, const struct asym_spread *sp, size_t t)
{
    struct asym_assignment *a = &sp->ret[t];
    const unsigned type = (unsigned)q->in->machine->cpus[a->cpu].type, slowest = q->in->machine->n_types - 1;
    state_of(q->in, t)->type = (uint8_t)(type + 1);
    a->reason = q->in->threads[t].profile ? &estimated : &no_profile;
    a->figure[0] = time_on(q, t, slowest) / time_on(q, t, 0);
    a->figure[1] = q->n_on[type];
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_spread sp;
    struct queue q;
    take_memory(in, &q);
    asym_spread_init(&sp, in, ret);
    if (asym_arena_is_short(in->arena))
        return -ENOBUFS;
    if (in->machine->n_types < 2) {
        asym_spread_alike(&sp, q.old, in->n_threads);
        return 0;
    }
    find_new(&q);
    assign(&q);
    place(&q, &sp);
    for (size_t t = 0; t < in->n_threads; t++)
        explain(&q, &sp, t);
    return 0;
}

static const struct asym_option options[] = {
    ASYM_OPTION(
        struct params, NUMBER, miss_ns, .def = "80", .min = 0, .max = 10000,
        .help = "The estimate assumes that a miss of the last-level cache stalls the core for this many nanoseconds."),
    {.key = NULL},
};

const struct asym_policy asym_policy_hass = {
    .name = "hass",
    .summary = "each thread is assigned once, to the core type where its profile predicts the shortest run time",
    .source = "Nie & Duan 2012, 2 (HASS, Shelepov 2009)",
    .needs = 1u << ASYM_SIGNAL_PROFILE,
    .pin = ASYM_PIN_TYPE,
    .params_size = sizeof(struct params),
    .task_state_size = sizeof(struct thread_state),
    .options = options,
    .plan = plan,
};
