/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * asymd's own policy: one rule for machines and loads of all kinds. It gives the best seat to the thread for which weight * gain /
 * progress is largest, which maximises the sum over the threads of weight * log(progress). The weight is the share of the time for
 * which the program waits for this thread (MinTLP, PA and the serial phases of Saez 2010 and Morad 2008 by one number), the gain is
 * what the seat adds (Static-IPC, ASTPI), and progress makes threads of equal weight take turns (RR).
 *
 * The exceptions to rule 3 of docs/policies.md: a thread that ranks above a crowd may hold its CPU, or keep its siblings idle. What
 * that costs the machine stays within budget. If it shares its CPU, it stays and runs there first, even if a fast CPU beside a busy
 * sibling is idle: there it would have less, and slow the sibling.
 */
#include <errno.h>

#include "base/arena.h"
#include "base/mask.h"
#include "policy/asym/seats-internal.h"

/* --- reasons --- */

/* A policy does not know the cause: CPUs alike, others isolated, or speeds that no source gives. */
static const struct asym_reason alike = {
    .text = "no CPU is known to be faster for it",
    .sentence = "runs where the kernel puts it, because no CPU is known to be faster for it",
    .kind = ASYM_REASON_UNSTEERED};
static const struct asym_reason of_its_own = {
    .text = "waited for %.0f %% of its time: CPU %.0f of its own",
    .sentence = "is waited for during %.0f %% of its time, so it has CPU %.0f to itself",
    .several = "waited for most of the time: CPUs of their own"};
static const struct asym_reason of_its_own_apart = {
    .text = "waited for %.0f %% of its time: CPU %.0f of its own, as nice does not count",
    .sentence = "is waited for during %.0f %% of its time, and its nice value does not count against the others here "
                "(autogroup or cgroup), so it has CPU %.0f to itself",
    .several = "waited for most of the time, and nice does not count: CPUs of their own",
    .holds_core = true};
static const struct asym_reason of_its_own_core = {
    .text = "waited for %.0f %% of its time: the core of CPU %.0f of its own",
    .sentence = "is waited for during %.0f %% of its time, so it has the core of CPU %.0f to itself",
    .several = "waited for most of the time: cores of their own",
    .holds_core = true};
static const struct asym_reason with_siblings = {
    .text = "waited for %.0f %% of its time: CPU %.0f, and no thread on its siblings",
    .sentence = "is waited for during %.0f %% of its time, so it has CPU %.0f, whose siblings stay idle",
    .several = "waited for most of the time: no thread on the siblings of their CPUs",
    .holds_core = true};
static const struct asym_reason runs_first = {
    .text = "waited for %.0f %% of its time: shares CPU %.0f and runs there first",
    .sentence = "is waited for during %.0f %% of its time, so it runs first on CPU %.0f, which it shares",
    .several = "waited for most of the time: run first where they share CPUs"};
static const struct asym_reason sleeps = {
    .text = "sleeps %.0f %% of the time: shares CPU %.0f and runs there first",
    .sentence = "sleeps %.0f %% of the time, so it shares CPU %.0f, and runs there before the others when it wakes",
    .several = "sleep most of the time: share CPUs and run there first"};
static const struct asym_reason takes_share = {
    .text = "a thread of its program has a CPU alone: gets that one's share of the session or cgroup",
    .sentence = "gets the share of its session or cgroup that another thread of it does not need, because "
                "that one has a CPU to itself",
    .several = "another thread of the program has a CPU alone: they get its share of the session or cgroup"};
static const struct asym_reason fast_cpu = {
    .text = "waited for %.0f %%, has had %.0f %% of a fast CPU: a fast CPU",
    .sentence = "is waited for during %.0f %% of its time and had %.0f %% of a fast CPU lately, so it has one of the "
                "best CPUs",
    .several = "waited for more than others, or behind them: fast CPUs"};
static const struct asym_reason slower_cpu = {
    .text = "waited for %.0f %%, has had %.0f %% of a fast CPU: a slower CPU",
    .sentence = "is waited for during %.0f %% of its time and had %.0f %% of a fast CPU lately, so others have the "
                "best CPUs until it is behind them",
    .several = "waited for less than others, or ahead of them: slower CPUs",
    .rotates = true};
static const struct asym_reason takes_turn = {
    .text = "all threads of its program are waited for (%.0f %%), had %.0f %%: they take turns",
    .sentence = "belongs to a program that waits for all of its threads (%.0f %%): it had %.0f %% of a fast CPU "
                "lately, and they take turns on the best CPUs",
    .several = "their program waits for all of its threads: they take turns on the best CPUs",
    .rotates = true};
static const struct asym_reason rests = {
    .text = "waited for %.0f %% of its time, for too short to take turns: any CPU",
    .sentence = "is waited for during %.0f %% of its time; the threads of its program wait for each other so often "
                "that turns gain nothing, so it may use any CPU",
    .several = "their program waits for all of its threads, for too short to take turns: any CPU"};
static const struct asym_reason shares = {
    .text = "waited for %.0f %%, has had %.0f %% of a fast CPU: shares CPUs with others",
    .sentence = "is waited for during %.0f %% of its time and had %.0f %% of a fast CPU lately; there are more threads "
                "than CPUs, so it shares CPUs with others",
    .several = "more threads than CPUs: they share CPUs",
    .rotates = true};

static const struct asym_reason any_cpu = {
    .text = "waited for %.0f %% of its time: shares all CPUs with others",
    .sentence = "is waited for during %.0f %% of its time; threads need more than the CPUs that are theirs, so it "
                "shares all of them with others",
    .several = "threads need more than their CPUs: they share all of them"};

static const struct asym_reason kernel_does = {
    .text = "waited for %.0f %%, has had %.0f %% of a fast CPU: the kernel finds it one",
    .sentence = "is waited for during %.0f %% of its time and had %.0f %% of a fast CPU lately; there is a fast CPU "
                "for each thread, and the kernel knows which CPUs are fast, so asymd leaves it alone",
    .several = "fast CPUs for all, and the kernel knows which are fast: asymd leaves them alone",
    .kind = ASYM_REASON_UNSTEERED};

static const struct asym_reason seldom = {.text = "needs %.0f %% of a CPU: where there is room",
                                          .sentence = "needs %.0f %% of a CPU, so it runs where there is room",
                                          .several = "need little of a CPU: where there is room"};

/* --- the answer --- */

/* Shares its CPU without a crowd, and has the largest density there, heavy times the least. Equals have no boost. */
static bool leads_its_cpu(const struct asym_seats *q, size_t t)
{
    const int cpu = q->of[t].cpu;
    return !q->crowded && q->n_on[cpu] > 1 && q->density[t] >= q->top[cpu] &&
           q->density[t] >= q->p->heavy * q->least[cpu];
}

static enum asym_pin width_of(const struct asym_seats *q, size_t t)
{
    const struct asym_seats_brief *b = &q->of[t];
    if (b->first) {
        /* Where a boost has no effect, one that has no claim must be able to leave a CPU that others have entered. */
        const bool has_boost = asym_seats_nice_counts(q, t) && (q->crowded ? !q->in->threads[t].light : b->pins);
        return q->claim[t] != 0 || has_boost ? ASYM_PIN_CPU : ASYM_PIN_TYPE;
    }
    if (b->rests)
        return ASYM_PIN_ALL;
    if (!q->crowded && !q->presses)
        return ASYM_PIN_CPU;
    /* Threads that get another type while they sleep often wake on its first CPU: those of a round would share it. */
    if (b->coupled && b->kind != 0 && q->n_on[b->cpu] == 1 && !q->presses && !q->flooded)
        return ASYM_PIN_CPU;
    const bool sleeper = !b->busy && !b->coupled && b->settled;
    return q->flooded || sleeper || b->slowness == ASYM_SEATS_ONE_OF_JOB ? ASYM_PIN_ALL : ASYM_PIN_TYPE;
}

/* The widths by rank and duty, the CPUs with room, and what threads need of each CPU that may not leave it for all of these. */
static void find_widths(struct asym_seats *q, const struct asym_mask *cpus)
{
    for (size_t t = 0; t < q->in->n_threads; t++) {
        struct asym_seats_brief *b = &q->of[t];
        b->first = b->counts && (b->above || leads_its_cpu(q, t));
        if (b->counts)
            b->width = (uint8_t)width_of(q, t);
        q->demand[b->cpu] += (double)b->slow;
    }
    ASYM_MASK_FOREACH (c, cpus)
        for (unsigned roams = 0; roams < 2; roams++)
            if (q->demand[c] * (roams ? ASYM_SEATS_STAYS : 1) < q->p->duty)
                asym_mask_set(&q->room[roams], (unsigned)c);
    for (size_t t = 0; t < q->in->n_threads && !asym_mask_empty(&q->room[1]); t++) {
        const struct asym_seats_brief *b = &q->of[t];
        if (b->width != ASYM_PIN_ALL || !asym_mask_within(&q->room[0], b->allowed))
            q->kept[b->cpu] += (double)b->slow;
    }
}

/* Returns what a thread has of its CPU, by the speed: the one that comes first there its part of all, another one what is left. */
static double share_of(const struct asym_seats *q, size_t t)
{
    const struct asym_seats_brief *b = &q->of[t];
    const double slow = (double)b->slow, kept = q->kept[b->cpu];
    return q->speed[b->cpu] * (q->density[t] >= q->top[b->cpu] ? slow / kept : 1 + slow - kept);
}

/*
 * From a quarter more than there is of its CPU on, until all fit. Turns are no reason to wait beside a CPU with room. But a program
 * whose threads wait for each other gains more by turns, and that shows only while all of them have a pace. Without a crowd a
 * thread may have chosen what another one leaves of a fast CPU before an idle slow one: it stays while that is more.
 */
static bool waits_beside_room(const struct asym_seats *q, size_t t)
{
    const struct asym_seats_brief *b = &q->of[t];
    const struct asym_seats_thread *s = asym_seats_of(q, t);
    if (q->kept[b->cpu] <= (s->roams ? 1 : 1 / ASYM_SEATS_STAYS) || !b->counts || b->first || b->coupled ||
        s->seen <= (q->crowded && q->in->now < s->mate_until ? q->p->tau_couple : q->p->trial))
        return false;
    struct asym_mask may = asym_mask_and(b->allowed, &q->room[s->roams]);
    if (q->crowded || q->presses)
        return !asym_mask_empty(&may);
    may = asym_mask_minus(&may, &q->on[b->app]);
    const double has = share_of(q, t) * (s->roams ? ASYM_SEATS_STAYS : 1);
    ASYM_MASK_FOREACH (c, &may)
        if (q->speed[c] * ASYM_MIN(1 - q->demand[c], (double)b->slow) > has)
            return true;
    return false;
}

/*
 * Where nice values count within a session or cgroup only, a boost takes from the share that its other threads have on other CPUs.
 * A thread that is alone needs none of it, unless threads that asymd does not steer enter its CPU: its mates get it.
 */
static int boost_of(const struct asym_seats *q, size_t t)
{
    const struct asym_seats_brief *b = &q->of[t];
    if (asym_seats_nice_counts(q, t))
        return b->first ? q->p->boost : 0;
    return b->counts && q->holds[b->app] && q->ret[t].exclusive == q->strangers ? q->p->boost : 0;
}

/*
 * Where the kernel knows the speeds, a thread that does not sleep finds an idle fast CPU by itself. One that sleeps needs little,
 * so the kernel may take a slow CPU for good enough.
 */
static bool finds_fast_cpu(const struct asym_seats *q, size_t t)
{
    const int cpu = q->of[t].cpu;
    return q->n_on[cpu] == 1 && q->of[t].busy && !q->of[t].coupled &&
           q->speed[cpu] * asym_seats_beside(q, cpu) >= 1 - 1e-6;
}

static const struct asym_reason *reason_of(const struct asym_seats *q, size_t t)
{
    const struct asym_seats_thread *s = asym_seats_of(q, t);
    const struct asym_assignment *a = &q->ret[t];
    if (!s->counts)
        return &seldom;
    if (a->exclusive)
        return q->claim[t] & ASYM_CLAIM_SIBLINGS ? &of_its_own_core
               : q->in->threads[t].light         ? &of_its_own_apart
                                                 : &of_its_own;
    if (q->claim[t] & ASYM_CLAIM_SIBLINGS)
        return &with_siblings;
    if (a->nice_delta != 0 && !asym_seats_nice_counts(q, t))
        return &takes_share;
    if (a->nice_delta != 0)
        return s->duty < ASYM_SEATS_SLEEPS_BELOW ? &sleeps : &runs_first;
    if (s->coupled)
        return s->rests ? &rests : &takes_turn;
    if (a->width == ASYM_PIN_ALL)
        return &any_cpu;
    if (s->kind == 0)
        return &shares;
    return q->speed[a->cpu] * asym_seats_beside(q, a->cpu) >= 1 - 1e-6 ? &fast_cpu : &slower_cpu;
}

/* Users see how much a thread is waited for, and where it is, or what it has had of a fast CPU. */
static void set_figures(const struct asym_seats *q, size_t t)
{
    const struct asym_seats_thread *s = asym_seats_of(q, t);
    struct asym_assignment *a = &q->ret[t];
    const bool stands = q->claim[t] != 0 || a->nice_delta != 0;
    a->figure[0] = 100 * (a->reason == &sleeps   ? 1 - s->duty
                          : a->reason == &seldom ? (double)q->of[t].slow
                                                 : ASYM_MIN(q->density[t], 1));
    a->figure[1] = stands ? a->cpu : 100 * ASYM_MIN(s->rate, 1);
}

/* Notes a need in the policy's state. Returns whether asym helps: for a while after the last need, too. */
static bool update_help(const struct asym_seats *q)
{
    struct asym_seats_state *state = q->in->state;
    bool needs = !asym_machine_kernel_knows(q->in->machine) || q->crowded || q->presses || q->strangers;
    for (size_t t = 0; t < q->in->n_threads && !needs; t++)
        needs = q->of[t].counts && !finds_fast_cpu(q, t);
    if (needs)
        state->needs_help_until = q->in->now + ASYM_SEATS_KNOWN_FOR;
    return q->in->now < state->needs_help_until;
}

static void set_mask(struct asym_seats *q, size_t t)
{
    struct asym_seats_thread *s = asym_seats_of(q, t);
    struct asym_assignment *a = &q->ret[t];
    a->width = waits_beside_room(q, t) ? ASYM_PIN_ALL : q->of[t].width;
    a->exclusive = q->claim[t] & ASYM_CLAIM_CPU;
    a->nice_delta = (int8_t)boost_of(q, t);
    a->reason = reason_of(q, t);
    s->roams = a->width == ASYM_PIN_ALL;
}

static void leave_alone(struct asym_seats *q, size_t t)
{
    q->ret[t].cpu = -1;
    q->ret[t].reason = &kernel_does;
    asym_seats_of(q, t)->roams = true;
    asym_seats_of(q, t)->kind = 0; /* no other thread makes way for it: it was not sent there */
}

static void answer(struct asym_seats *q, size_t t, bool helps)
{
    struct asym_seats_thread *s = asym_seats_of(q, t);
    struct asym_assignment *a = &q->ret[t];
    *a = (struct asym_assignment){.cpu = q->of[t].cpu, .counted = true};
    s->above = q->of[t].above;
    s->busy = q->of[t].busy;
    s->pins = q->of[t].pins;
    s->kind = q->of[t].kind;
    s->claims = q->claim[t];
    s->counts = q->of[t].counts;
    s->given = q->of[t].cpu;
    s->smt = asym_seats_beside(q, a->cpu);
    if (q->in->interval > 0 || s->last == 0)
        s->last = q->in->now;
    if (helps)
        set_mask(q, t);
    else
        leave_alone(q, t);
    set_figures(q, t);
}

/* --- the plan --- */

static void take_memory(struct asym_seats *q)
{
    const struct asym_policy_input *in = q->in;
    struct asym_arena *arena = in->arena;
    const size_t n = in->n_threads + 1, n_cpus = in->machine->n_cpus;
    double **numbers[] = {&q->weight, &q->density, &q->key};
    double **per_cpu[] = {&q->speed, &q->used, &q->top, &q->least, &q->cost, &q->demand, &q->kept};
    uint32_t **lists[] = {&q->open, &q->list, &q->scratch};
    uint32_t **cpus[] = {&q->n_on, &q->heap, &q->place};
    for (size_t i = 0; i < ASYM_LENGTH(numbers); i++)
        *numbers[i] = asym_arena_take_raw(arena, n, sizeof **numbers[i]);
    for (size_t i = 0; i < ASYM_LENGTH(lists); i++)
        *lists[i] = asym_arena_take_raw(arena, n, sizeof **lists[i]);
    q->of = asym_arena_take_raw(arena, n, sizeof *q->of);
    for (size_t i = 0; i < ASYM_LENGTH(per_cpu); i++)
        *per_cpu[i] = asym_arena_take(arena, n_cpus, sizeof **per_cpu[i]);
    for (size_t i = 0; i < ASYM_LENGTH(cpus); i++)
        *cpus[i] = asym_arena_take(arena, n_cpus, sizeof **cpus[i]);
    q->behind = asym_arena_take(arena, n, sizeof *q->behind);
    q->claim = asym_arena_take(arena, n, sizeof *q->claim);
    q->overlap = asym_arena_take(arena, in->n_apps + 1, sizeof *q->overlap);
    q->active = asym_arena_take(arena, in->n_apps + 1, sizeof *q->active);
    q->holds = asym_arena_take(arena, in->n_apps + 1, sizeof *q->holds);
    q->groups = asym_arena_take(arena, in->n_nice_groups + 1, sizeof *q->groups);
    q->on = asym_arena_take(arena, in->n_apps + 1, sizeof *q->on);
}

static void know_speeds(struct asym_seats *q)
{
    const struct asym_machine *m = q->in->machine;
    q->fastest = m->types[0].speed;
    q->slowest = m->types[m->n_types - 1].speed;
    ASYM_MASK_FOREACH (c, &m->usable)
        q->speed[c] = m->types[m->cpus[c].type].speed / q->fastest;
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_seats q = {.in = in, .p = in->params, .ret = ret};
    take_memory(&q);
    if (asym_arena_is_short(in->arena))
        return -ENOBUFS;
    know_speeds(&q);
    for (unsigned c = 0; c < in->machine->n_cpus; c++)
        q.used[c] = (double)in->asleep[c];
    const bool differ = asym_machine_speeds_differ(in->machine);
    for (size_t t = 0; t < in->n_threads && !differ; t++)
        ret[t] = (struct asym_assignment){.cpu = -1, .reason = &alike};
    if (!differ)
        return 0;
    const struct asym_seats_state *state = in->state;
    q.slow = in->now < ASYM_MAX(ASYM_MAX(state->crowded_until, state->presses_until), state->outnumbered_until);
    asym_seats_observe(&q);
    asym_seats_weigh(&q);
    asym_seats_fill(&q);
    struct asym_mask cpus = asym_seats_claim(&q);
    /* All are claimed: the siblings that were to stay idle come before the CPUs of others. */
    if (asym_mask_empty(&cpus))
        cpus = asym_mask_empty(in->spare) ? in->machine->usable : *in->spare;
    asym_seats_place_crowd(&q, &cpus);
    asym_seats_place_small(&q, &cpus);
    find_widths(&q, &cpus);
    const bool helps = update_help(&q);
    bool is_one_alone = false;
    for (size_t t = 0; t < in->n_threads; t++) {
        answer(&q, t, helps);
        is_one_alone |= in->threads[t].alone;
    }
    if (is_one_alone)
        asym_seats_exchange(&q);
    return 0;
}

static void exchange(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_seats q = {.in = in, .p = in->params, .ret = ret};
    q.speed = asym_arena_take(in->arena, in->machine->n_cpus, sizeof *q.speed);
    if (asym_arena_is_short(in->arena))
        return;
    know_speeds(&q);
    asym_seats_exchange(&q);
}

/* --- the row --- */

#define P(type, key, ...) ASYM_OPTION(struct asym_seats_params, type, key, __VA_ARGS__)

static const struct asym_option options[] = {
    P(DURATION, tau, .def = "1s", .min = 1000, .max = 1000e6,
      .help = "Memory of the progress by which threads take turns; five times this where turns gain little."),
    P(NUMBER, sticky, .def = "0.05", .min = 0, .max = 10,
      .help = "Share by which waited-for share * gain / progress has to be higher for a faster CPU; 2 to 32 times this "
              "where turns gain little: docs/policies.md has the list."),
    P(DURATION, tau_duty, .def = "300ms", .min = 1000, .max = 1000e6,
      .help = "Memory of the share of the time in which a thread needs a CPU."),
    P(SHARE, duty, .def = "70%", .min = 0, .max = 1,
      .help = "A CPU is full when its threads need more of it than this."),
    P(SHARE, narrow, .def = "30%", .min = 0, .max = 1,
      .help = "A thread that needs less of a CPU than this has none to itself."),
    P(NICE, boost, .def = "-5", .min = -20, .max = 0,
      .help = "Added to the nice value of a thread that is waited for more (heavy) than others on its CPUs."),
    P(NUMBER, heavy, .def = "2", .min = 1, .max = 100,
      .help = "A thread runs first, or alone, when it is waited for this many times as much as those that share CPUs."),
    P(SHARE, budget, .def = "3%", .min = 0, .max = 1,
      .help = "Share of the machine's speed that CPUs of one thread and idle siblings may cost the others."),
    P(SHARE, fluid, .def = "90%", .min = 0, .max = 1,
      .help = "A thread that shares CPUs and needs less of one than this may use all CPUs; one that needs more may, "
              "while its CPU is too full and another has room."),
    P(DURATION, trial, .def = "1s", .min = 0, .max = 1000e6,
      .help =
          "A new thread keeps to one core type for this time, but for a process of a job that outnumbers the CPUs."),
    P(DURATION, tau_couple, .def = "3s", .min = 1000, .max = 1000e6,
      .help = "Memory of the paces by which threads that wait for each other are recognised."),
    P(DURATION, quick, .def = "30ms", .min = 20e3, .max = 1000e6,
      .help = "Least time between plans while threads wait for each other more often than plans can follow."),
    P(NUMBER, flood, .def = "3", .min = 1, .max = 1000,
      .help = "When threads need this many times the CPUs, none has one to itself, and those that share may use all."),
    P(NUMBER, remote, .def = "1.5", .min = 1, .max = 10,
      .help = "Cost of a miss far from the memory, by that of one near it."),
    P(NUMBER, miss_ns, .def = "80", .min = 0, .max = 10000,
      .help = "Nanoseconds that a miss of the last-level cache costs."),
    {.key = NULL},
};

const struct asym_policy asym_policy_asym = {
    .name = "asym",
    .summary = "the best seat for the thread that is waited for most, by what it gains and by what it has had",
    .source = "asymd (docs/policies.md)",
    .pin = ASYM_PIN_EACH,
    .reacts = true,
    .exchange = exchange,
    .params_size = sizeof(struct asym_seats_params),
    .state_size = sizeof(struct asym_seats_state),
    .task_state_size = sizeof(struct asym_seats_thread),
    .options = options,
    .plan = plan,
};
