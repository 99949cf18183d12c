/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whenever a new phase of a thread is seen, it runs for a monitoring turn on each core type, and the ratio of the
 * instructions per second it had on the fastest and on the slowest says who holds the fast CPUs (Becchi & Crowley, as
 * described in Saez 2010, 2.3, and Nie & Duan 2012, 2 and 4.1). The cost grows with the number of core types: that is
 * what it is compared for.
 *
 * Every thread is counted all the time, since a phase shows as instructions per cycle that differ from those measured on
 * the same core type. A new thread is a new phase as soon as there is a first count of it; one that cannot be counted
 * takes no turns. As many threads are in turns on a core type at a time as it has CPUs; the others run on meanwhile.
 *
 * In its turn a thread may leave a fast CPU idle, or be on a slow one while a fast one is idle (rule 3's exception).
 */
#include <asym/policy.h>

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"
#include "policy/ranked.h"
#include "policy/spread-internal.h"

/* More core types than this are not told apart: those behind are not measured. */
#define TYPES 16

/* Less time on a CPU than this says nothing about a phase. */
#define LEAST_SECONDS 0.001

struct params {
    asym_usec tick;
    unsigned monitor_ticks;
    double phase_change;
};

struct state {
    asym_usec last; /* plan: asked twice at the same time, what was counted counts once, and all stay */
};

struct thread_state {
    float ips[TYPES], ipc[TYPES]; /* measured on that core type; 0: not yet */
    double seconds, instructions, cycles;
    asym_usec since; /* its turn began, or it began to wait for one */
    float gain;
    uint8_t turn;        /* on core type turn - 1; 0: none */
    bool waits;          /* for its first turn of a new phase */
    bool placed;         /* where its turn is, since then */
    uint64_t generation; /* of the machine that the core types are of */
    bool held;
};

struct turns {
    const struct asym_policy_input *in;
    const struct params *params;
    struct asym_ranked ranked;
    uint32_t *list, *scratch; /* threads that want a turn */
    uint8_t *type;            /* of each of those: on that core type */
    size_t n;
};

static struct thread_state *state_of(const struct asym_policy_input *in, size_t t)
{
    return in->threads[t].state;
}

/* The next core type from k on that the thread may run on; -1: none. */
static int next_type(const struct asym_policy_input *in, size_t t, unsigned k)
{
    for (; k < ASYM_MIN(in->machine->n_types, TYPES); k++)
        if (asym_mask_meets(in->threads[t].may, &in->machine->types[k].cpus))
            return (int)k;
    return -1;
}

/* How many times as fast it was on the fastest type as on the slowest. */
static float gain_of(const struct thread_state *s)
{
    int first = 0, last = TYPES - 1;
    while (first < TYPES - 1 && !(s->ips[first] > 0))
        first++;
    while (last > first && !(s->ips[last] > 0))
        last--;
    return last > first ? s->ips[first] / s->ips[last] : 0;
}

static void begin_turn(struct thread_state *s, int type, asym_usec now)
{
    s->turn = (uint8_t)(type + 1);
    s->since = now;
    s->seconds = s->instructions = s->cycles = 0;
    s->waits = s->placed = false;
}

static void end_turn(const struct asym_policy_input *in, size_t t, struct thread_state *s)
{
    const unsigned type = s->turn - 1u;
    if (s->seconds >= LEAST_SECONDS) {
        s->ips[type] = (float)(s->instructions / s->seconds);
        s->ipc[type] = s->cycles > 0 ? (float)(s->instructions / s->cycles) : 0;
    }
    const int next = next_type(in, t, type + 1);
    if (next >= 0) {
        begin_turn(s, next, in->now);
        return;
    }
    s->turn = 0;
    s->placed = false;
    s->gain = gain_of(s);
}

/* Of a type that was not measured, or no longer as it was. */
static bool is_new_phase(const struct thread_state *s, const struct asym_sample *sample, unsigned type, double change)
{
    if (sample->seconds < LEAST_SECONDS || !(sample->cycles > 0))
        return false;
    const double ipc = sample->instructions / sample->cycles, before = (double)s->ipc[type];
    return !(before > 0) || ipc > before * (1 + change) || ipc < before * (1 - change);
}

static void take_sample(const struct turns *q, size_t t)
{
    const struct asym_policy_thread *thread = &q->in->threads[t];
    const struct asym_sample *sample = thread->sample;
    struct thread_state *s = thread->state;
    const bool counted = sample && thread->sampled_on >= 0 && thread->sampled_on < TYPES && sample->instructions >= 0;
    if (counted && s->turn == thread->sampled_on + 1) {
        s->seconds += sample->seconds;
        s->instructions += sample->instructions;
        s->cycles += ASYM_MAX(sample->cycles, 0);
    }
    if (s->turn > 0 && s->placed && q->in->now - s->since >= q->params->monitor_ticks * q->params->tick)
        end_turn(q->in, t, s);
    if (!counted || s->turn > 0 || s->waits || q->in->machine->n_types < 2)
        return;
    s->waits = is_new_phase(s, sample, (unsigned)thread->sampled_on, q->params->phase_change);
    if (s->waits)
        s->since = q->in->now;
}

/* By core type; on one, those that are there, then those whose turn it is, then those that have waited longest. */
static int by_turn(uint32_t a, uint32_t b, const void *ctx)
{
    const struct turns *q = ctx;
    const struct thread_state *x = state_of(q->in, a), *y = state_of(q->in, b);
    if (q->type[a] != q->type[b])
        return q->type[a] - q->type[b];
    if (x->placed != y->placed)
        return x->placed ? -1 : 1;
    if ((x->turn > 0) != (y->turn > 0))
        return x->turn > 0 ? -1 : 1;
    return x->since < y->since ? -1 : x->since > y->since;
}

/* A new phase begins on the fastest type that its thread may run on. */
static void want_turn(struct turns *q, size_t t)
{
    const struct thread_state *s = state_of(q->in, t);
    const int type = s->turn > 0 ? s->turn - 1 : s->waits ? next_type(q->in, t, 0) : -1;
    if (type < 0)
        return;
    q->type[t] = (uint8_t)type;
    q->list[q->n++] = (uint32_t)t;
}

/* Give the threads of list[0..n) CPUs of that type, as far as they go. The rest wait: their turn begins when they have one. */
static void give_type(struct turns *q, uint32_t *list, size_t n, unsigned type)
{
    struct asym_spread *sp = q->ranked.sp;
    struct asym_mask avail = q->in->machine->types[type].cpus;
    asym_spread_give(sp, list, asym_spread_able(sp, list, n, &avail), &avail);
    for (size_t i = 0; i < n; i++) {
        struct thread_state *s = state_of(q->in, list[i]);
        const bool placed = sp->ret[list[i]].cpu >= 0;
        if (placed && s->turn == 0)
            begin_turn(s, (int)type, q->in->now);
        if (placed && !s->placed)
            s->since = q->in->now;
        s->placed = placed;
    }
}

static void give_turns(struct turns *q)
{
    asym_sort_index(q->list, q->n, q->scratch, by_turn, q);
    for (size_t first = 0, n; first < q->n; first += n) {
        const unsigned type = q->type[q->list[first]];
        for (n = 1; first + n < q->n && q->type[q->list[first + n]] == type;)
            n++;
        give_type(q, q->list + first, n, type);
    }
}

static int take_memory(const struct asym_policy_input *in, struct asym_spread *sp, struct asym_assignment *ret,
                       struct turns *q)
{
    int r = asym_spread_init(sp, in, ret);
    *q = (struct turns){.in = in, .params = in->params};
    q->list = asym_arena_take(in->arena, in->n_threads + 1, sizeof *q->list);
    q->scratch = asym_arena_take(in->arena, in->n_threads + 1, sizeof *q->scratch);
    q->type = asym_arena_take(in->arena, in->n_threads + 1, sizeof *q->type);
    return asym_ranked_init(&q->ranked, sp) < 0 || !q->list || !q->scratch || !q->type || r < 0 ? -ENOBUFS : 0;
}

static void explain(const struct turns *q, size_t t)
{
    struct thread_state *s = state_of(q->in, t);
    struct asym_assignment *a = &q->ranked.sp->ret[t];
    s->held = q->ranked.held[t] && s->turn == 0;
    a->monitor = true;
    if (s->turn == 0 || !asym_mask_has(&q->in->machine->types[s->turn - 1].cpus, a->cpu)) {
        asym_ranked_explain(&q->ranked, t, ASYM_WHY_NOT_MEASURED);
        return;
    }
    a->reason = ASYM_WHY_MONITORED;
    a->figure[0] = (double)(q->in->now - s->since) / ASYM_MSEC;
    a->figure[1] = (double)(q->params->monitor_ticks * q->params->tick) / ASYM_MSEC;
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_spread sp;
    struct turns q;
    if (take_memory(in, &sp, ret, &q) < 0)
        return -ENOBUFS;
    if (!asym_machine_is_asymmetric(in->machine)) {
        asym_spread_alike(&sp, q.ranked.order, in->n_threads);
        return 0;
    }
    struct state *state = in->state;
    for (size_t t = 0; t < in->n_threads; t++) {
        struct thread_state *s = state_of(in, t);
        if (s->generation != in->machine->generation)
            *s = (struct thread_state){.generation = in->machine->generation};
        if (in->now != state->last)
            take_sample(&q, t);
        else if (in->threads[t].home >= 0)
            asym_spread_put(&sp, (uint32_t)t, in->threads[t].home);
        want_turn(&q, t);
        q.ranked.gain[t] = s->gain;
        q.ranked.held[t] = s->held;
    }
    state->last = in->now;
    give_turns(&q);
    struct asym_mask fast = in->machine->fast;
    ASYM_MASK_FOREACH (c, &in->machine->fast)
        if (sp.load[c] > 0)
            asym_mask_clear(&fast, (unsigned)c);
    asym_ranked_place(&q.ranked, &fast);
    for (size_t t = 0; t < in->n_threads; t++)
        explain(&q, t);
    return 0;
}

static const struct asym_option options[] = {
    {NULL, "tick", ASYM_OPTION_DURATION, offsetof(struct params, tick), "10ms", 1000, 1e6, 0, NULL,
     "The unit of the monitoring turn (Nie & Duan 2012, 4.1). A turn ends at a look: the interval rounds it up."},
    {NULL, "monitor_ticks", ASYM_OPTION_COUNT, offsetof(struct params, monitor_ticks), "5", 1, 1000, 0, NULL,
     "Ticks of a monitoring turn on one core type (Nie & Duan 2012, 4.1)."},
    {NULL, "phase_change", ASYM_OPTION_NUMBER, offsetof(struct params, phase_change), "0.1", 0.01, 10, 0, NULL,
     "A new phase: instructions per cycle differ by more than this share."},
    {.key = NULL},
};

extern const struct asym_policy asym_policy_ipc_driven;
const struct asym_policy asym_policy_ipc_driven = {
    .name = "ipc-driven",
    .summary = "fast CPUs to the threads that gain most, measured on each core type whenever a new phase is seen",
    .source = "Saez 2010, 2.3; Nie & Duan 2012, 2 and 4.1 (Becchi & Crowley)",
    .needs = 1u << ASYM_SIGNAL_IPC,
    .pin = ASYM_PIN_CPU,
    .own_period = true,
    .params_size = sizeof(struct params),
    .state_size = sizeof(struct state),
    .task_state_size = sizeof(struct thread_state),
    .options = options,
    .plan = plan,
};
