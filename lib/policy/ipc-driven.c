/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread runs for a monitoring turn on each core type. The ratio of its instructions per second on the fastest type to those
 * on the slowest ranks the threads over all types: "the thread that has the greatest fast-to-slow core speedup ratio has the
 * highest priority to run on the fastest core" (Nie & Duan 2012, 1; Becchi & Crowley, as described there and in Saez 2010, 2.3).
 * The cost grows with the number of core types; the papers compare it with other policies for this reason. A thread that cannot
 * be counted takes no turns. The option `monitoring` says when a thread takes its turns:
 *
 * - triggered: in each new phase (Saez 2010, 2.3). asymd counts every thread all the time: a new phase shows as instructions
 *   per cycle that differ from those measured on the same core type. A new thread begins a new phase with its first count. A
 *   core type takes as many threads in turns at a time as it has cores; the others run on meanwhile.
 * - periodic: again and again, after execution_ticks of execution, whatever its phase ("periodically performs monitoring on
 *   all core types", Nie & Duan 2012, 1). Threads in turns on the same type share its CPUs: "cores of small core type have
 *   more threads running on them for monitoring purpose" (4.3). The source leaves three things open. Here each thread has its own
 *   period, which begins with its first count; every round begins on the fastest type; and a fast CPU stays idle while threads
 *   in turns crowd slow ones.
 *
 * In its turn a thread may leave a fast CPU idle, or be on a slow CPU while a fast one is idle (the exception to rule 3).
 */
#include <asym/policy.h>

#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"
#include "policy/monitoring.h"
#include "policy/placement/spread.h"

/* The policy measures at most this many core types, the fastest ones. */
#define TYPES 16

/* A sample with less time on a CPU than this is too short to show a phase. */
#define LEAST_SECONDS 0.001

/* A thread takes its turns after a phase change, or periodically. */
enum trigger { TRIGGERED, PERIODIC };

struct params {
    struct asym_monitoring monitoring;
    int trigger; /* enum trigger */
    double phase_change;
};

struct state {
    asym_usec last; /* time of the last plan: a second plan at the same time adds no counts and moves no thread */
};

struct thread_state {
    float ips[TYPES], ipc[TYPES]; /* per core type; 0: not measured yet */
    double seconds, instructions, cycles;
    asym_usec since; /* when its turn, its wait for one, or its execution after the last one began */
    float gain;
    uint8_t left;        /* turns of its round that have not ended */
    uint8_t turn;        /* it is in its turn on core type turn - 1; 0: none */
    bool waits;          /* it waits for its first turn of a new phase */
    bool placed;         /* it has been on a CPU of that core type since its turn began */
    uint64_t generation; /* generation of the machine that defines the core types */
    uint8_t holds;       /* as in struct asym_spread, of the last plan */
};

struct turns {
    const struct asym_policy_input *in;
    const struct params *params;
    struct asym_ranked ranked;
    uint32_t *list, *scratch; /* threads that want a turn */
    uint8_t *type;            /* per thread that wants a turn: the core type */
    bool *stays;              /* per thread: it shares the CPUs of its turn */
    size_t n;
};

static struct thread_state *state_of(const struct asym_policy_input *in, size_t t)
{
    return in->threads[t].state;
}

/* Returns the next core type from k on that the thread may run on; -1 if there is none. */
static int next_type(const struct asym_policy_input *in, size_t t, unsigned k)
{
    for (; k < ASYM_MIN(in->machine->n_types, TYPES); k++)
        if (asym_mask_meets(in->threads[t].allowed, &in->machine->types[k].cpus))
            return (int)k;
    return -1;
}

/* The same, but continues with the fastest type after the slowest. */
static int next_type_round(const struct asym_policy_input *in, size_t t, unsigned k)
{
    const int type = next_type(in, t, k);
    return type >= 0 ? type : next_type(in, t, 0);
}

static unsigned count_types(const struct asym_policy_input *in, size_t t)
{
    unsigned n = 0;
    for (int type = next_type(in, t, 0); type >= 0; type = next_type(in, t, (unsigned)type + 1))
        n++;
    return n;
}

/* Returns how many times as fast the thread was on the fastest type as on the slowest; 0 if it is not known. */
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
    s->left--;
    const int next = s->left > 0 ? next_type_round(in, t, type + 1) : -1;
    if (next >= 0) {
        begin_turn(s, next, in->now);
        return;
    }
    s->turn = 0;
    s->since = in->now;
    s->placed = false;
    s->gain = gain_of(s);
}

/* Returns true if the core type of the sample was not measured, or if the IPC on it has changed. */
static bool is_new_phase(const struct thread_state *s, const struct asym_sample *sample, unsigned type, double change)
{
    if (sample->seconds < LEAST_SECONDS || !(sample->cycles > 0))
        return false;
    const double ipc = sample->instructions / sample->cycles, before = (double)s->ipc[type];
    return !(before > 0) || ipc > before * (1 + change) || ipc < before * (1 - change);
}

/* Returns true if the thread is to take a turn on each core type. A new thread has never taken one. */
static bool is_due(const struct turns *q, const struct thread_state *s, const struct asym_sample *sample, unsigned type)
{
    if (q->params->trigger == PERIODIC)
        return q->in->now - s->since >= asym_monitoring_execution(&q->params->monitoring);
    return is_new_phase(s, sample, type, q->params->phase_change);
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
    /* Its turn does not pass while it spins. */
    if (thread->spinning && s->turn > 0)
        s->since = ASYM_MIN(s->since + q->in->interval, q->in->now);
    if (s->turn > 0 && s->placed && q->in->now - s->since >= asym_monitoring_turn(&q->params->monitoring))
        end_turn(q->in, t, s);
    if (!counted || s->turn > 0 || s->waits || q->in->machine->n_types < 2)
        return;
    s->waits = is_due(q, s, sample, (unsigned)thread->sampled_on);
    if (s->waits)
        s->since = q->in->now;
}

/* Sort by core type; within a type, placed threads first, then threads in their turn, then the longest wait. */
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

/* A round begins on the fastest type. */
static void want_turns(struct turns *q)
{
    for (size_t t = 0; t < q->in->n_threads; t++) {
        const struct thread_state *s = state_of(q->in, t);
        const int type = s->turn > 0 ? s->turn - 1 : s->waits ? next_type(q->in, t, 0) : -1;
        if (type < 0 || q->in->threads[t].spinning)
            continue;
        q->type[t] = (uint8_t)type;
        q->list[q->n++] = (uint32_t)t;
    }
}

/* The threads stay on the type of their turn, even if fast CPUs are idle: this is the exception to rule 3. */
static void share_type(struct turns *q, const uint32_t *list, size_t n, unsigned type)
{
    asym_spread_even(q->ranked.sp, list, n, &q->in->machine->types[type].cpus);
    for (size_t i = 0; i < n; i++)
        q->stays[list[i]] = true;
}

/*
 * Give the threads of list[0..n) a core of that type each, as long as there are any: beside a busy sibling it would not show what
 * the core can do. The turn of the rest begins later if a change of phase triggers turns; else the rest share these CPUs.
 */
static void give_type(struct turns *q, uint32_t *list, size_t n, unsigned type)
{
    struct asym_spread *sp = q->ranked.sp;
    struct asym_mask avail = q->in->machine->types[type].cpus;
    asym_spread_give(sp, list, asym_spread_able(sp, list, n, &avail), false, &avail);
    if (q->params->trigger == PERIODIC)
        share_type(q, list, n, type);
    for (size_t i = 0; i < n; i++) {
        struct thread_state *s = state_of(q->in, list[i]);
        const bool placed = sp->ret[list[i]].cpu >= 0;
        if (placed && s->turn == 0) {
            s->left = (uint8_t)count_types(q->in, list[i]);
            begin_turn(s, (int)type, q->in->now);
        }
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

static void take_memory(const struct asym_policy_input *in, struct asym_spread *sp, struct asym_assignment *ret,
                        struct turns *q)
{
    asym_spread_init(sp, in, ret);
    *q = (struct turns){.in = in, .params = in->params};
    q->list = asym_arena_take(in->arena, in->n_threads + 1, sizeof *q->list);
    q->scratch = asym_arena_take(in->arena, in->n_threads + 1, sizeof *q->scratch);
    q->type = asym_arena_take(in->arena, in->n_threads + 1, sizeof *q->type);
    sp->stays = q->stays = asym_arena_take(in->arena, in->n_threads + 1, sizeof *q->stays);
    asym_ranked_init(&q->ranked, sp);
}

static void explain(const struct turns *q, size_t t)
{
    struct thread_state *s = state_of(q->in, t);
    struct asym_assignment *a = &q->ranked.sp->ret[t];
    s->holds = s->turn == 0 ? q->ranked.holds[t] : 0;
    a->counted = true;
    if (s->turn == 0 || q->in->threads[t].spinning ||
        !asym_mask_has(&q->in->machine->types[s->turn - 1].cpus, a->cpu)) {
        asym_ranked_explain(&q->ranked, t, &asym_monitoring_not_measured);
        return;
    }
    asym_monitoring_explain(&q->params->monitoring, q->in->now - s->since, a);
}

static void read_threads(struct turns *q)
{
    const struct asym_policy_input *in = q->in;
    const bool is_new = in->now != ((struct state *)in->state)->last;
    if (!is_new)
        asym_spread_stay(q->ranked.sp);
    for (size_t t = 0; t < in->n_threads; t++) {
        struct thread_state *s = state_of(in, t);
        if (s->generation != in->machine->generation)
            *s = (struct thread_state){.generation = in->machine->generation};
        if (is_new)
            take_sample(q, t);
        q->ranked.gain[t] = s->gain;
        q->ranked.holds[t] = s->holds;
    }
    ((struct state *)in->state)->last = in->now;
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_spread sp;
    struct turns q;
    take_memory(in, &sp, ret, &q);
    const int r = asym_spread_begin(&sp, q.ranked.order);
    if (r <= 0)
        return r;
    read_threads(&q);
    want_turns(&q);
    give_turns(&q);
    asym_ranked_place(&q.ranked);
    for (size_t t = 0; t < in->n_threads; t++)
        explain(&q, t);
    return 0;
}

static const struct asym_option options[] = {
    ASYM_MONITORING_OPTIONS,
    {.key = "monitoring",
     .type = ASYM_OPTION_ENUM,
     .offset = offsetof(struct params, trigger),
     .def = "triggered",
     .values = ASYM_OPTION_VALUES("triggered", "periodic"),
     .help = "A thread takes its turns in each new phase (triggered: Becchi & Crowley, as in Saez 2010, 2.3), or again "
             "after execution_ticks, and then shares the CPUs of a type with all threads in turns there (periodic: Nie "
             "& Duan 2012, 1 and 4.3)."},
    ASYM_OPTION(struct params, NUMBER, phase_change, .def = "0.1", .min = 0.01, .max = 10,
                .help = "A new phase begins when the instructions per cycle differ by more than this share."),
    {.key = NULL},
};

const struct asym_policy asym_policy_ipc_driven = {
    .name = "ipc-driven",
    .summary = "the threads that gain most get the fast CPUs; each new phase is measured on every core type",
    .source = "Saez 2010, 2.3; Nie & Duan 2012, 2 and 4.1 (Becchi & Crowley)",
    .needs = 1u << ASYM_SIGNAL_IPC,
    .pin = ASYM_PIN_CPU,
    .every_snapshot = true,
    .params_size = sizeof(struct params),
    .state_size = sizeof(struct state),
    .task_state_size = sizeof(struct thread_state),
    .options = options,
    .plan = plan,
};
