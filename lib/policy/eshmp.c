/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads that stall little hold the fast CPUs (ESHMP: Nie & Duan 2012, 3). The policy measures the stall time per
 * instruction (ASTPI) at the beginning of every period, on the core where the thread is. A period is 5 ticks of monitoring
 * and 10 of execution. With M CPUs and n threads in the order of priority, the first min(n, M) are monitored, one on each
 * CPU. Then they are sorted by ASTPI, the least first, and get the CPUs in decreasing speed:
 *
 *     MIPS  = max IPC of the core type * its measured frequency
 *     IPS   = instructions / time on CPU, in the monitoring turn
 *     ASTPI = (MIPS - IPS) / (IPS * MIPS)     seconds; 0 if IPS exceeds MIPS
 *
 * Deviations from the source:
 * - It monitors t_i on the i-th CPU of a period (Algorithm 1). ASTPI hardly depends on the core type (its variance across types
 *   is at most 4 %, 4.2), so a thread that has a CPU is monitored on it by default. This saves migrations, which is the source's
 *   own aim. `monitor_on = ordered` does as the source.
 * - Its other threads wait until it is their turn. asymd stops no thread, so they share the CPUs meanwhile.
 *
 * The turn of the threads comes in this order, so that no thread starves: the longest wait first, then the least nice
 * value, then the earliest start.
 */
#include <asym/policy.h>

#include <errno.h>
#include <math.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"
#include "base/speedup.h"
#include "policy/monitoring.h"
#include "policy/placement/spread.h"

/* ASTPI is sorted in steps of this share. A smaller difference is noise and moves no thread. */
#define STEP 0.05

/* A thread is monitored on the CPU that it has, or the i-th thread is monitored on the i-th CPU. */
enum monitor_on { OWN, ORDERED };

struct params {
    struct asym_monitoring monitoring;
    int monitor_on; /* enum monitor_on */
    double max_ipc, max_ipc_slow;
};

struct state {
    asym_usec last; /* time of the last plan: a second plan at the same time moves no thread and counts nothing twice */
    asym_usec since; /* when monitoring, or execution, began */
    uint64_t period; /* number of the period; 0: none yet */
    bool executing;
    double hz
        [ASYM_MAX_TYPES]; /* measured frequency of each core type, of the last period in which it was measured; 0: none yet */
};

struct thread_state {
    uint64_t period;                                    /* the last period in which it was chosen */
    double seconds, instructions, cycles, mips_seconds; /* in the monitoring turn; mips_seconds: MIPS times seconds */
    double astpi;                                       /* seconds; < 0: not known */
    double sf;                                          /* how many times as fast it is on the fastest type, by astpi */
    uint8_t type;                                       /* core type of the last sample */
    uint8_t holds;                                      /* as in struct asym_spread, of the last plan */
};

/* In this order the threads get CPUs. */
enum turn { CHOSEN, WAITS, SPINS, N_TURNS };

struct queue {
    const struct asym_policy_input *in;
    const struct params *params;
    struct state *state;
    uint32_t *order, *scratch;
    int *rank;           /* per thread, by ASTPI */
    size_t end[N_TURNS]; /* of each turn in order */
};

static struct thread_state *state_of(const struct asym_policy_input *in, size_t t)
{
    return in->threads[t].state;
}

static bool is_chosen(const struct queue *q, size_t t)
{
    return state_of(q->in, t)->period == q->state->period;
}

static double max_ipc_of(const struct params *params, unsigned type)
{
    return type == 0 || !(params->max_ipc_slow > 0) ? params->max_ipc : params->max_ipc_slow;
}

/* Add a sample that was taken on one core type only: frequency and maximum IPC differ between types. */
static void take_sample(const struct queue *q, size_t t)
{
    const struct asym_policy_thread *thread = &q->in->threads[t];
    const struct asym_sample *sample = thread->sample;
    struct thread_state *s = thread->state;
    if (!sample || thread->sampled_on < 0 || !(sample->instructions > 0) || !(sample->seconds > 0) ||
        !(sample->cycles > 0))
        return;
    s->seconds += sample->seconds;
    s->instructions += sample->instructions;
    s->cycles += sample->cycles;
    s->type = (uint8_t)thread->sampled_on;
    s->mips_seconds += max_ipc_of(q->params, s->type) * sample->cycles;
}

/*
 * Returns the most instructions per second of a type, relative to others. The frequency is the measured one. Until every type
 * has one, the speed is used, which may include the IPC.
 */
static double mips_of(const struct queue *q, unsigned type)
{
    const struct asym_machine *m = q->in->machine;
    bool measured = true;
    for (unsigned k = 0; k < m->n_types; k++)
        measured &= q->state->hz[k] > 0;
    return max_ipc_of(q->params, type) * (measured ? q->state->hz[type] : m->types[type].speed);
}

static void end_turn(const struct queue *q, struct thread_state *s)
{
    if (!(s->seconds > 0) || s->type >= q->in->machine->n_types)
        return;
    const double ips = s->instructions / s->seconds, mips = s->mips_seconds / s->seconds;
    s->astpi = ASYM_MAX(0.0, (mips - ips) / (ips * mips));
    q->state->hz[s->type] = s->cycles / s->seconds;
}

/* The speedup factor has the frequencies of all types, so it follows when all turns have ended. */
static void weigh(const struct queue *q, struct thread_state *s)
{
    const unsigned n_types = q->in->machine->n_types;
    if (!(s->seconds > 0) || s->type >= n_types)
        return;
    const double scale = s->mips_seconds / s->seconds / mips_of(q, s->type);
    s->sf = asym_speedup_by_stall(s->astpi, scale * mips_of(q, 0), scale * mips_of(q, n_types - 1));
}

static void end_monitoring(const struct queue *q)
{
    for (size_t t = 0; t < q->in->n_threads; t++)
        if (is_chosen(q, t))
            end_turn(q, state_of(q->in, t));
    for (size_t t = 0; t < q->in->n_threads; t++)
        if (is_chosen(q, t))
            weigh(q, state_of(q->in, t));
}

static int by_turn(uint32_t a, uint32_t b, const void *ctx)
{
    const struct asym_policy_thread *x = &((const struct asym_policy_input *)ctx)->threads[a];
    const struct asym_policy_thread *y = &((const struct asym_policy_input *)ctx)->threads[b];
    const struct thread_state *s = x->state, *u = y->state;
    if (x->spinning != y->spinning)
        return x->spinning - y->spinning;
    if (s->period != u->period)
        return s->period < u->period ? -1 : 1;
    if (x->nice != y->nice)
        return x->nice - y->nice;
    if (x->id.start != y->id.start)
        return x->id.start < y->id.start ? -1 : 1;
    return x->id.tid - y->id.tid;
}

/* Choose as many threads as there are CPUs. */
static void begin_period(struct queue *q)
{
    const size_t n = ASYM_MIN(q->in->n_threads, (size_t)asym_mask_count(&q->in->machine->usable));
    q->state->period++;
    q->state->since = q->in->now;
    q->state->executing = false;
    asym_sort_least(q->order, q->in->n_threads, n, by_turn, q->in);
    for (size_t i = 0; i < n; i++) {
        struct thread_state *s = state_of(q->in, q->order[i]);
        if (s->period == 0)
            s->astpi = -1;
        s->period = q->state->period;
        s->seconds = s->instructions = s->cycles = s->mips_seconds = 0;
    }
}

static void advance(struct queue *q)
{
    struct state *state = q->state;
    const asym_usec age = q->in->now - state->since;
    /* Two steps never happen at the same time, however short they are. */
    if (state->period > 0 && age == 0)
        return;
    if (state->period > 0 && !state->executing) {
        for (size_t t = 0; t < q->in->n_threads; t++)
            if (is_chosen(q, t))
                take_sample(q, t);
        if (age < asym_monitoring_turn(&q->params->monitoring))
            return;
        end_monitoring(q);
        state->executing = true;
        state->since = q->in->now; /* however long the monitoring took */
        return;
    }
    if (state->period == 0 || age >= asym_monitoring_execution(&q->params->monitoring))
        begin_period(q);
}

/* Returns ASTPI in steps of STEP, from 1 ps up; 0 if it is less. A thread that is not measured ranks last. */
static int rank_of(const struct thread_state *s)
{
    if (s->astpi < 0)
        return INT32_MAX;
    return s->astpi > 1e-12 ? 1 + (int)(log(s->astpi / 1e-12) / STEP) : 0;
}

static int preferred_type(const struct queue *q, size_t t)
{
    const int32_t preferred_cpu = q->in->threads[t].preferred_cpu;
    return preferred_cpu < 0 ? ASYM_MAX_TYPES : q->in->machine->cpus[preferred_cpu].type;
}

/* Returns true if the CPUs go to the threads in their order now. If not, a thread stays where it is. */
static bool is_ordered(const struct queue *q)
{
    return q->state->executing || q->params->monitor_on == ORDERED;
}

/* Chosen threads are ordered by ASTPI during execution only. */
static int by_rank(uint32_t a, uint32_t b, const void *ctx)
{
    const struct queue *q = ctx;
    if (!q->state->executing && is_ordered(q))
        return by_turn(a, b, q->in);
    if (q->state->executing && q->rank[a] != q->rank[b])
        return q->rank[a] < q->rank[b] ? -1 : 1;
    const int seats = asym_spread_place(state_of(q->in, a)->holds) - asym_spread_place(state_of(q->in, b)->holds);
    if (seats != 0)
        return seats;
    return q->state->executing ? preferred_type(q, a) - preferred_type(q, b) : 0;
}

/* Whatever was chosen at the start of the period: a thread that spins by now has no seat before one that works. */
static enum turn turn_of(const struct queue *q, size_t t)
{
    return q->in->threads[t].spinning ? SPINS : is_chosen(q, t) ? CHOSEN : WAITS;
}

/* Put the chosen threads in front, by rank. The others stay unsorted behind them, because they may be many more. */
static void line_up(struct queue *q)
{
    size_t n = 0;
    for (enum turn turn = CHOSEN; turn < N_TURNS; turn++) {
        for (size_t t = 0; t < q->in->n_threads; t++)
            if (turn_of(q, t) == turn)
                q->order[n++] = (uint32_t)t;
        q->end[turn] = n;
    }
    for (size_t i = 0; i < q->end[CHOSEN]; i++)
        q->rank[q->order[i]] = rank_of(state_of(q->in, q->order[i]));
    asym_sort_index(q->order, q->end[CHOSEN], q->scratch, by_rank, q);
}

/* Give the seats in decreasing speed, one row at a time. A thread that already has a seat of that row keeps it. */
static void place(struct queue *q, struct asym_spread *sp)
{
    const struct asym_machine *m = q->in->machine;
    if (is_ordered(q))
        asym_spread_give_rows(sp, q->order, q->end[CHOSEN], &m->usable, m->n_rows, false);
    else
        asym_spread_even(sp, q->order, q->end[CHOSEN], &m->usable);
    for (size_t t = 0; t < q->in->n_threads; t++)
        state_of(q->in, t)->holds = sp->holds[t] ? sp->holds[t] : sp->ret[t].cpu >= 0;
    for (enum turn turn = WAITS; turn < N_TURNS; turn++)
        asym_spread_even(sp, q->order, q->end[turn], &m->usable);
    asym_spread_fill_seats(sp);
}

static void take_memory(const struct asym_policy_input *in, struct queue *q)
{
    *q = (struct queue){
        .in = in,
        .params = in->params,
        .state = in->state,
        .order = asym_spread_all(in),
        .scratch = asym_arena_take(in->arena, in->n_threads + 1, sizeof *q->scratch),
        .rank = asym_arena_take(in->arena, in->n_threads + 1, sizeof *q->rank),
    };
}

static const struct asym_reason stalls = {.text = "stalls %.3f ns per instruction, so %.2f times as fast on a fast CPU",
                                          .sentence = "stalls %.3f ns per instruction, so a fast CPU makes it %.2f "
                                                      "times as fast, and the threads that stall least get those"};
static const struct asym_reason waits = {.text = "shares a CPU until its turn: %.0f threads want %.0f CPUs",
                                         .sentence = "shares a CPU until its turn: %.0f threads want %.0f CPUs",
                                         .rotates = true};

static void explain(const struct queue *q, struct asym_assignment *a, size_t t, unsigned n_cpus)
{
    const struct thread_state *s = state_of(q->in, t);
    a->counted = is_chosen(q, t) && !q->state->executing;
    if (q->in->threads[t].spinning) {
        a->reason = &asym_spread_spinning;
    } else if (!is_chosen(q, t)) {
        a->reason = &waits;
        a->figure[0] = (double)q->in->n_threads;
        a->figure[1] = n_cpus;
    } else if (!q->state->executing) {
        asym_monitoring_explain(&q->params->monitoring, q->in->now - q->state->since, a);
    } else if (s->astpi < 0) {
        a->reason = &asym_monitoring_not_measured;
    } else {
        a->reason = &stalls;
        a->figure[0] = s->astpi * 1e9;
        a->figure[1] = s->sf;
    }
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_spread sp;
    struct queue q;
    take_memory(in, &q);
    asym_spread_init(&sp, in, ret);
    if (asym_arena_is_short(in->arena))
        return -ENOBUFS;
    if (q.state->period == 0 || in->now != q.state->last)
        advance(&q);
    else
        asym_spread_stay(&sp);
    q.state->last = in->now;
    line_up(&q);
    place(&q, &sp);
    const unsigned n_cpus = asym_mask_count(&in->machine->usable);
    for (size_t t = 0; t < in->n_threads; t++)
        explain(&q, &ret[t], t, n_cpus);
    return 0;
}

static const struct asym_option options[] = {
    ASYM_MONITORING_OPTIONS,
    ASYM_OPTION(struct params, NUMBER, max_ipc, .def = "4", .min = 0.1, .max = 64,
                .help = "Instructions per cycle that a core of the fastest type can complete at most."),
    ASYM_OPTION(struct params, NUMBER, max_ipc_slow, .def = "0", .min = 0, .max = 64,
                .help = "The same for cores of the other types; 0 means the value of the fastest type."),
    ASYM_OPTION(
        struct params, ENUM, monitor_on, .def = "own", .values = ASYM_OPTION_VALUES("own", "ordered"),
        .help =
            "A thread is monitored on the CPU that it has (own), or the i-th thread on the i-th CPU, the fastest first "
            "(ordered: Nie & Duan 2012, Algorithm 1), which moves more threads."),
    {.key = NULL},
};

const struct asym_policy asym_policy_eshmp = {
    .name = "eshmp",
    .summary = "the threads that stall least per instruction get the fast CPUs; measured every period",
    .source = "Nie & Duan 2012, 3 (ESHMP, ASTPI)",
    .needs = 1u << ASYM_SIGNAL_IPC,
    .pin = ASYM_PIN_CPU,
    .every_snapshot = true,
    .params_size = sizeof(struct params),
    .state_size = sizeof(struct state),
    .task_state_size = sizeof(struct thread_state),
    .options = options,
    .plan = plan,
};
