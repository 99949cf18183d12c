/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of asym: the numbers of its rule, worked out by hand. docs/policies.md has the formulas. */
#include <math.h>

#include <asym/policy.h>

#include "base/macro.h"
#include "base/mask.h"
#include "policy/asym/seats-internal.h"
#include "support/generate.h"
#include "support/policy-fixture.h"
#include "support/reason-text.h"
#include "support/test.h"

enum { MOST_CPUS = 32 };

static struct policy_fixture w;
static struct gen_params_room params;

static void assert_near(double value, double wanted)
{
    if (fabs(value - wanted) > 0.0006)
        fail_msg("%.4f is not %.4f", value, wanted);
}

static struct asym_seats_thread *state_of(unsigned thread)
{
    return (struct asym_seats_thread *)(void *)w.threads[thread].state;
}

/* n_fast cores of speed fast with so many hardware threads each, then n_slow cores of speed 1 with one. */
static void begin(double fast, unsigned n_fast, unsigned siblings, unsigned n_slow)
{
    double speeds[MOST_CPUS];
    const unsigned n = n_fast * siblings + n_slow;
    assert_true(n <= MOST_CPUS);
    for (unsigned c = 0; c < n; c++)
        speeds[c] = c < n_fast * siblings ? fast : 1;
    policy_fixture_begin(&w, "asym", speeds, n);
    for (unsigned c = 0; c < n; c++)
        w.machine.cpus[c].core = (int16_t)(c < n_fast * siblings ? c / siblings : c);
    w.machine.smt_gain = 0.27;
    assert_int_equal(asym_machine_finish(&w.machine), 0);
    gen_params(w.policy, &params);
    w.params = &params;
    w.light_from = 0.7;
}

static unsigned enter(unsigned n, double duty)
{
    const unsigned first = policy_fixture_enter(&w, n);
    for (unsigned t = first; t < first + n; t++)
        w.threads[t].runnable = duty;
    return first;
}

static void plan_times(unsigned n)
{
    while (n-- > 0)
        policy_fixture_plan(&w);
}

/* --- the steps by themselves --- */

/* The data that a step reads, for up to 16 threads of one program that have these duties, on the machine of the fixture. */
struct bench {
    struct asym_policy_input in;
    struct asym_seats_state memory;
    struct asym_policy_app app;
    struct asym_policy_thread threads[16];
    struct asym_seats_thread states[16];
    double weight[16], density[16], key[16], behind[16], overlap[1], active[1];
    double speed[MOST_CPUS], used[MOST_CPUS], top[MOST_CPUS];
    uint32_t list[16], scratch[16];
    struct asym_seats_brief of[16];
    asym_usec again;
    uint32_t groups[1];
    struct asym_assignment ret[16];
    uint32_t open[16];
    uint8_t claim[16];
    struct asym_seats q;
};

static void prepare(struct bench *b, const double *duties, unsigned n)
{
    *b = (struct bench){.app = {.n_threads = n, .runnable = n}};
    for (unsigned t = 0; t < n; t++) {
        b->states[t].duty = b->states[t].needed = b->states[t].usual = duties[t];
        b->states[t].work = 2;
        b->states[t].rate = 0.5;
        b->states[t].smt = 1;
        b->threads[t].state = &b->states[t];
    }
    for (unsigned c = 0; c < w.machine.n_cpus; c++)
        b->speed[c] = w.machine.types[w.machine.cpus[c].type].speed / w.machine.types[0].speed;
    b->in = (struct asym_policy_input){.machine = &w.machine,
                                       .apps = &b->app,
                                       .threads = b->threads,
                                       .n_apps = 1,
                                       .n_threads = n,
                                       .now = 1000 * ASYM_SEC,
                                       .interval = 100 * ASYM_MSEC,
                                       .again = &b->again,
                                       .state = &b->memory};
    b->q = (struct asym_seats){.in = &b->in,
                               .p = (const struct asym_seats_params *)(void *)&params,
                               .fastest = w.machine.types[0].speed,
                               .slowest = w.machine.types[w.machine.n_types - 1].speed,
                               .speed = b->speed,
                               .of = b->of,
                               .weight = b->weight,
                               .density = b->density,
                               .key = b->key,
                               .behind = b->behind,
                               .overlap = b->overlap,
                               .active = b->active,
                               .groups = b->groups,
                               .used = b->used,
                               .top = b->top,
                               .list = b->list,
                               .ret = b->ret,
                               .open = b->open,
                               .claim = b->claim,
                               .scratch = b->scratch};
}

TEST(critical_shares_come_from_duties_as_if_nested)
{
    static const struct {
        unsigned n;
        double duties[8], unsteered, weight[2], density[2]; /* of the first thread and of the last */
    } rows[] = {
        {6, {0.9, 0.15, 0.15, 0.15, 0.15, 0.15}, 0, {0.775, 0.025}, {0.861, 0.167}},
        {8, {1, 1, 1, 1, 1, 1, 1, 1}, 0, {0.125, 0.125}, {0.125, 0.125}},
        {2, {0.5, 0.5}, 0, {0.25, 0.25}, {0.5, 0.5}},
        {1, {1}, 19, {0.05, 0.05}, {0.05, 0.05}}, /* a compiler of twenty, the others too new to be steered */
    };
    begin(2, 4, 1, 4);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct bench b;
        prepare(&b, rows[i].duties, rows[i].n);
        b.app.unsteered = rows[i].unsteered;
        asym_seats_weigh(&b.q);
        for (unsigned k = 0; k < 2; k++) {
            assert_near(b.weight[k * (rows[i].n - 1)], rows[i].weight[k]);
            assert_near(b.density[k * (rows[i].n - 1)], rows[i].density[k]);
        }
    }
}

/* By the duties each of them has a share of 0.5. */
TEST(a_measured_critical_share_counts_by_half)
{
    struct bench b;
    begin(2, 4, 1, 4);
    prepare(&b, (const double[]){1, 1}, 2);
    b.states[0].critical = 0.9;
    b.states[1].critical = 0.1;
    b.threads[1].spinning = true;
    asym_seats_weigh(&b.q);
    assert_near(b.weight[0], 0.7);
    assert_near(b.weight[1], 0);       /* no thread waits for one that spins */
    assert_near(b.overlap[0], 0.5556); /* k is 2 at most: (1 / 0.9 + 2) / 2 */
}

/* The observer does not follow a program that changes its state too often: each thread would soon look waited for by none. */
TEST(a_critical_share_that_is_measured_no_more_is_forgotten)
{
    struct bench b;
    begin(2, 4, 1, 4);
    prepare(&b, (const double[]){0.7, 0.7}, 2);
    b.in.now = 2 * ASYM_SEC;
    b.states[0].critical = b.states[1].critical = 0.5;
    b.states[0].last = b.states[1].last = ASYM_SEC;
    b.threads[0].runnable = 0.7; /* the second one sleeps */
    asym_seats_observe(&b.q);
    assert_near(b.states[0].critical, 0);
    assert_true(b.states[1].critical > 0.3 && b.states[1].critical < 0.5);
}

/* The master of an OpenMP program, whose other threads spin until it is through (RTX). */
TEST(a_program_waits_for_the_thread_that_does_not_spin)
{
    struct bench b;
    begin(2, 4, 1, 4);
    prepare(&b, (const double[]){1, 1, 1, 1}, 4);
    for (unsigned t = 1; t < 4; t++)
        b.threads[t].spinning = true;
    asym_seats_weigh(&b.q);
    assert_near(b.density[0], 0.25);
    assert_near(b.density[1], 0);
    assert_true(w.policy->reacts); /* so it has a fast CPU at once */
}

/* CPUs 0 and 1 are a P core, 2 is another one's first, 4 is an E core. Duty and density stand for who sits on CPU 0. */
TEST(seats_are_worth_what_they_add)
{
    static const struct {
        double duty, density, value;
        int cpu;
    } rows[] = {
        {0, 0, 1, 2},       {0, 0, 0.625, 4},   {1, 1, 0.27, 1},    {0.45, 1, 0.6715, 1},
        {0.45, 6, 0.55, 1}, {0.08, 1, 0.92, 0}, {0.45, 1, 0.55, 0}, {0.75, 1, 0, 0},
    };
    begin(1.6, 2, 2, 1);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct bench b;
        prepare(&b, NULL, 0);
        b.used[0] = rows[i].duty;
        b.top[0] = rows[i].density;
        assert_near(asym_seats_value(&b.q, rows[i].cpu, 1), rows[i].value);
    }
}

/* On a P core beside a busy sibling. The mean moves by 1 - exp(-0.1) to running * 0.635 / runnable. */
TEST(progress_is_measured_by_the_seat)
{
    struct bench b;
    begin(1.6, 2, 2, 1);
    prepare(&b, (const double[]){1, 1}, 2);
    b.states[0].last = b.in.now - b.in.interval;
    b.states[0].rate = 0.6;
    b.states[0].smt = 0.635;
    b.threads[0].running = 0.5;
    b.threads[0].runnable = 1;
    asym_seats_observe(&b.q);
    assert_near(b.states[0].rate, 0.5731);
    b.threads[0].runnable = 0.1; /* too little to tell */
    b.threads[0].running = 0.1;
    b.in.now += b.in.interval;
    b.states[0].last += b.in.interval;
    asym_seats_observe(&b.q);
    assert_near(b.states[0].rate, 0.5731);
}

/* It was not in the input for a second: it slept, and its duty fades. */
TEST(a_thread_that_was_not_seen_has_slept)
{
    struct bench b;
    begin(2, 4, 1, 4);
    prepare(&b, (const double[]){0.9}, 1);
    b.states[0].last = b.in.now - ASYM_SEC - b.in.interval;
    b.states[0].rate = 0.6;
    asym_seats_observe(&b.q);
    assert_near(b.states[0].duty, 0.9 * exp(-1.1 / 0.3 * 1.0));
    assert_near(b.states[0].rate, 0.6);
}

TEST(equal_work_on_unequal_seats_is_coupled)
{
    static const struct {
        double pace[4], usual[4];
        bool was;
        unsigned coupled, procs;
        double at_once; /* 0: not measured */
        unsigned roam;  /* of the last ones: they use all CPUs, so they have no pace of their own */
    } rows[] = {
        {{0.31, 0.31, 0.30, 0.31}, {0.5, 0.5, 1, 1}, false, 4, 1, 0, 0},
        {{0.31, 0.31, 0.30, 0.31}, {0.5, 0.5, 1, 1}, false, 0, 4, 0, 0}, /* the compilers of a build */
        {{0.31, 0.31, 0.60, 0.60}, {0.5, 1, 0.5, 1}, false, 0, 1, 0, 0},
        {{0.31, 0.31, 0.60, 0.60}, {0.5, 1, 0.5, 1}, false, 4, 2, 0, 0}, /* each process by itself */
        {{0.9, 0.9, 0.45, 0.45}, {1, 1, 1, 1}, false, 0, 1, 0, 0},
        {{0.31, 0.31, 0.30, 0.31}, {1, 1, 1, 1}, false, 0, 1, 0, 0},     /* the seats are equal */
        {{0.40, 0.40, 0.27, 0.27}, {0.5, 0.5, 1, 1}, false, 0, 1, 0, 0}, /* CV 0.19 */
        {{0.40, 0.40, 0.27, 0.27}, {0.5, 0.5, 1, 1}, true, 4, 1, 0, 0},
        {{0.31, 0.31, 0.30, 0.31}, {0.5, 0.5, 1, 1}, true, 4, 1, 2.5, 0},
        {{0.31, 0.31, 0.30, 0.31}, {0.5, 0.5, 1, 1}, true, 0, 1, 2, 0}, /* they wait for a lock */
        {{0.31, 0.31, 0.30, 0}, {0.5, 0.5, 1, 1}, true, 4, 1, 0, 1},
        {{0.31, 0.31, 0.30, 0}, {0.5, 0.5, 1, 0.2}, true, 3, 1, 0, 1}, /* it needs less than they do */
        {{0.31, 0.31, 0, 0}, {0.5, 1, 1, 1}, true, 2, 1, 0, 2},        /* most of them must have one */
    };
    begin(2, 4, 1, 4);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct bench b;
        prepare(&b, rows[i].usual, 4);
        for (unsigned t = 0; t < 4; t++) {
            b.states[t].pace = rows[i].pace[t];
            b.states[t].critical = rows[i].at_once > 0 ? rows[i].usual[t] / rows[i].at_once : 0;
            b.states[t].coupled = rows[i].was;
            b.states[t].roams = t >= 4 - rows[i].roam;
            b.threads[t].proc = t * rows[i].procs / 4;
        }
        asym_seats_weigh(&b.q);
        asym_seats_weigh(&b.q); /* by the paces of the first time */
        unsigned coupled = 0;
        for (unsigned t = 0; t < 4; t++)
            coupled += b.states[t].coupled;
        assert_int_equal(coupled, rows[i].coupled);
        if (coupled == 4)
            assert_near(b.density[0] - b.density[4 / rows[i].procs - 1], 0);
    }
}

/* Noise that crosses a limit to and fro changes no mask: it counts as passed until it was not for `trial`. */
TEST(a_limit_that_noise_crosses_stays_passed)
{
    enum { CROWDED, PRESSES, FLOODED };
    static const double unsteered[] = {[CROWDED] = 0, [PRESSES] = 20, [FLOODED] = 100};
    begin(2, 4, 1, 4);
    for (unsigned limit = CROWDED; limit <= FLOODED; limit++) {
        struct bench b;
        prepare(&b, (const double[]){1}, 1);
        b.of[0].cpu = -1;
        b.density[0] = 0.5;
        b.in.unsteered_weight = 0.25;
        for (unsigned k = 0; k < 80; k++) {
            const bool rare = k >= 40; /* then three intervals count: here until 1.2 s after the last time, k = 58 */
            const bool crosses = k % 40 < 20 && k % 2 == 0, passed = rare ? k < 70 : k < 28; /* else 1 s, k = 18 */
            b.in.interval = rare && k < 75 ? 400 * ASYM_MSEC : 100 * ASYM_MSEC;
            b.in.now = 1000 * ASYM_SEC + k * 100 * ASYM_MSEC;
            b.q.n_open = crosses && limit == CROWDED;
            b.q.needed = b.in.unsteered = crosses ? unsteered[limit] : 0;
            asym_seats_claim(&b.q);
            assert_int_equal(b.q.crowded, passed && limit == CROWDED);
            assert_int_equal(b.q.presses, passed && limit != CROWDED);
            assert_int_equal(b.q.flooded, passed && limit == FLOODED);
            assert_near(b.q.light, !passed ? 0 : limit == CROWDED ? 0.5 : 0.25);
        }
    }
}

/* A thread without a seat begins a crowd. It lasts for 10 s while threads outnumber CPUs: each begin and end changes all masks. */
TEST(a_crowd_lasts_while_threads_outnumber_cpus)
{
    begin(2, 1, 1, 1);
    for (unsigned n = 2; n <= 3; n++) {
        struct bench b;
        prepare(&b, (const double[]){0.3, 0.3, 0.3}, n);
        for (unsigned t = 0; t < n; t++)
            b.of[t].cpu = (int16_t)ASYM_MIN(t, 1U);
        for (unsigned k = 0; k < 150; k++) {
            b.in.now = 1000 * ASYM_SEC + k * 100 * ASYM_MSEC;
            b.q.n_open = k == 10;
            for (unsigned t = 0; t < n; t++)
                b.of[t].counts = true;
            asym_seats_claim(&b.q);
            if (k == 60 || k == 149)
                assert_int_equal(b.q.crowded, n == 3 && k == 60);
        }
    }
}

/*
 * Two threads on fast CPUs and two on slow ones. Who has done least in the round comes first, and who has done its part sleeps, and
 * comes last. When a thread wakes a new round has begun, for one that never sleeps too. Interval: 100 ms.
 */
TEST(a_round_begins_when_a_thread_wakes)
{
    static const struct {
        double round[4], step[4], since[4];
        bool awake[4];
        double wanted[4];
        unsigned order[4];
    } rows[] = {
        {{0, 0, 0, 0}, {0.1, 0.1, 0.05, 0.05}, {0}, {1, 1, 1, 1}, {0.1, 0.1, 0.05, 0.05}, {2, 3, 0, 1}},
        {{0.1, 0.1, 0.05, 0.05}, {0.05, 0.05, 0.1, 0.1}, {0}, {1, 1, 1, 1}, {0.15, 0.15, 0.15, 0.15}, {0, 1, 2, 3}},
        {{0.1, 0.1, 0.05, 0.05}, {0.05, 0.05, 0.05, 0.05}, {0}, {0, 0, 1, 1}, {0.15, 0.15, 0.1, 0.1}, {2, 3, 0, 1}},
        {{0.2, 0.2, 0.2, 0.1},
         {0.02, 0.02, 0.02, 0.05},
         {0.02},
         {1, 1, 1, 1},
         {0.004, 0.004, 0.004, 0.01},
         {0, 1, 2, 3}},
        {{0.2, 0.2, 0.2, 0.1},
         {0.09, 0.01, 0.09, 0.05},
         {0.09, 0, 0.09},
         {1, 0, 1, 1},
         {0.081, 0.009, 0.081, 0.045},
         {3, 0, 2, 1}},
    };
    const double usual[4] = {0.9, 0.9, 1, 1};
    begin(2, 2, 1, 2);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct bench b;
        prepare(&b, usual, 4);
        for (unsigned t = 0; t < 4; t++) {
            struct asym_seats_thread *s = &b.states[t];
            s->pace = 0.3;
            s->duty = 1;
            s->last = 1;
            s->given = (int16_t)t;
            s->coupled = true;
            s->round = rows[i].round[t];
            s->step = rows[i].step[t];
            s->since = rows[i].since[t];
            s->awake = rows[i].awake[t];
            b.threads[t].runnable = 1;
        }
        asym_seats_weigh(&b.q);
        for (unsigned t = 0; t < 4; t++)
            assert_near(b.states[t].round, rows[i].wanted[t]);
        for (unsigned t = 0; t < 3; t++)
            assert_true(b.behind[rows[i].order[t]] >= b.behind[rows[i].order[t + 1]]);
        for (unsigned t = 0; t < 4; t++)
            assert_int_equal(b.behind[t] <= -1, !rows[i].awake[t]);
    }
}

TEST(a_new_thread_begins_no_round)
{
    struct bench b;
    begin(2, 2, 1, 2);
    prepare(&b, (const double[]){1, 1}, 2);
    b.threads[0] = (struct asym_policy_thread){.runnable = 1, .running = 1, .awake = true, .state = &b.states[0]};
    for (unsigned plan = 0; plan < 2; plan++) {
        b.in.now += b.in.interval;
        asym_seats_observe(&b.q);
        assert_true(b.states[0].awake);
        assert_near(b.states[0].since, 0);
        b.states[0].last = b.in.now;
    }
    b.states[0].awake = false; /* it slept at the last plan */
    b.in.now += b.in.interval;
    asym_seats_observe(&b.q);
    assert_near(b.states[0].since, 0.1);
    b.states[0].awake = b.threads[0].awake = false; /* it woke, and slept again */
    b.threads[0].runnable = b.threads[0].running = 0.4;
    b.states[0].last = b.in.now;
    b.in.now += b.in.interval;
    asym_seats_observe(&b.q);
    assert_near(b.states[0].since, 0.05);
    assert_false(b.states[0].woke);
    b.states[0].awake = true; /* or it ran on since the last plan, and slept then: no round began */
    b.states[0].last = b.in.now;
    b.in.now += b.in.interval;
    asym_seats_observe(&b.q);
    assert_near(b.states[0].since, 0);
}

/* Rounds shorter than two plans of the engine (0.1 s) are planned three times, but not sooner than `quick` (30 ms). */
TEST(rounds_shorter_than_some_plans_are_planned_sooner)
{
    static const struct {
        double period;
        asym_usec tried; /* before the plan, in ms; its interval is 100 ms */
        uint32_t rounds; /* in these */
        int32_t slow;    /* the seat of the two others */
        asym_usec again;
        bool is_rest, ends;    /* the rest begins, or ends */
        asym_usec rests, open; /* until when it rests already; since the last round began */
    } rows[] = {
        {.period = 0.2, .slow = 4, .again = 66666},
        {.period = 0.1, .slow = 4, .again = 33333},
        {.period = 0.2, .slow = 2}, /* on equal seats turns gain nothing */
        {.period = 0.3, .slow = 4}, /* the plans of the engine are enough */
        {.period = 0, .slow = 4},   /* not known */
        {.period = 0.05, .tried = 1399, .rounds = 1000, .slow = 4, .again = 30000}, /* the trial lasts for 1.5 s */
        {.period = 0.2, .tried = 1400, .rounds = 28, .slow = 4, .is_rest = true},   /* less than 54 ms a round */
        {.period = 0.2, .tried = 1400, .rounds = 27, .slow = 4, .again = 37037},    /* twice its length */
        {.period = 0.2, .tried = 1400, .rounds = 12, .slow = 4, .again = 66666},
        {.period = 0.2, .tried = 1400, .slow = 4, .again = 66666},
        {.period = 0.1, .slow = 4, .rests = 1009 * ASYM_SEC},
        /* While it rests, its rounds are counted for 1.5 of 10 s: from 81 ms on it takes turns. */
        {.period = 0.1, .slow = 4, .again = 33333, .rests = 1011 * ASYM_SEC},
        {.period = 0.1, .tried = 1400, .rounds = 19, .slow = 4, .rests = 1011 * ASYM_SEC},
        {.period = 0.1, .tried = 1400, .rounds = 18, .slow = 4, .again = 33333, .rests = 1011 * ASYM_SEC, .ends = true},
        {.period = 0.1, .slow = 4, .again = 33333, .rests = 999 * ASYM_SEC}, /* the rest is over */
        {.period = 0.2, .slow = 4, .again = 66666, .open = 200 * ASYM_MSEC},
        {.period = 0.2, .slow = 4, .open = 220 * ASYM_MSEC}, /* no rounds any more, or a long one */
    };
    begin(2, 4, 1, 4);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct bench b;
        prepare(&b, (const double[]){0.5, 0.5, 1, 1}, 4);
        b.in.swap_period = b.in.interval;
        for (unsigned t = 0; t < 4; t++) {
            b.states[t].pace = 0.3;
            b.states[t].rounds.period = rows[i].period;
            b.states[t].rounds.began = b.in.now - rows[i].open;
            b.states[t].rounds.tried = rows[i].tried * ASYM_MSEC;
            b.states[t].rounds.tried_rounds = rows[i].rounds;
            b.states[t].rounds.rests_until = rows[i].rests;
            b.states[t].last = b.in.now - ASYM_SEC;
            b.states[t].given = (int16_t)(t < 2 ? (int)t : rows[i].slow + (int)t - 2);
        }
        asym_seats_weigh(&b.q);
        assert_true(b.states[0].coupled);
        assert_int_equal(b.again, rows[i].again);
        const bool tries = rows[i].again != 0 && (rows[i].tried < 1400 || rows[i].rounds == 0);
        assert_int_equal(b.states[0].rounds.tried, tries ? rows[i].tried * ASYM_MSEC + b.in.interval : 0);
        assert_int_equal(b.states[0].rounds.tried_rounds, tries ? rows[i].rounds : 0);
        const asym_usec rests = rows[i].is_rest ? b.in.now + 60 * ASYM_SEC : rows[i].rests;
        assert_int_equal(b.states[0].rounds.rests_until, rows[i].ends ? 0 : rests);
        /* While it rests no thread takes a turn. Else those who sleep come last. */
        assert_int_equal(b.states[0].rests, b.states[0].rounds.rests_until > b.in.now);
        assert_near(b.q.behind[0], b.states[0].rests ? 0 : -1);
    }
}

/* Threads with equal means: they take turns on the better seats, or they sleep at times of their own. */
TEST(threads_that_wake_together_wait_for_each_other)
{
    static const struct {
        double since[3]; /* the third one is awake: it has not slept, or its time is not known */
        double usual;
        bool is_coupled;
    } rows[] = {
        {{0.04, 0.042, 0.08}, 0.75, true},
        {{0.04, 0.06, 0.05}, 0.75, false},
        {{0.04, 0.042, 0.08}, 1, false},     /* they hardly sleep */
        {{0.074, 0.076, 0.08}, 0.75, false}, /* what they always need: they have slept many times */
    };
    begin(2, 4, 1, 4);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct bench b;
        prepare(&b, (const double[]){rows[i].usual, rows[i].usual, rows[i].usual}, 3);
        for (unsigned k = 0; k < 30; k++) {
            b.in.now = 1000 * ASYM_SEC + k * b.in.interval;
            for (unsigned t = 0; t < 3; t++) {
                struct asym_seats_thread *s = &b.states[t];
                s->since = rows[i].since[t];
                s->woke = t < 2;
                s->pace = 0.5;
            }
            asym_seats_weigh(&b.q);
            assert_false(b.states[0].coupled && k < 10);
        }
        assert_int_equal(b.states[0].coupled, rows[i].is_coupled);
    }
}

/* The time between rounds is measured from wake to wake. */
TEST(rounds_are_measured_by_wakes)
{
    begin(2, 4, 1, 4);
    struct bench b;
    prepare(&b, (const double[]){0.75, 0.75}, 2);
    for (unsigned k = 0; k < 100; k++) { /* rounds of 250 ms: each second one begins in the middle of an interval */
        b.in.now = 1000 * ASYM_SEC + k * b.in.interval;
        for (unsigned t = 0; t < 2; t++) {
            b.states[t].since = t == 0 && k % 5 == 0 ? 0.05 : t == 1 && k % 5 == 3 ? 0.1 : 0;
        }
        asym_seats_weigh(&b.q);
    }
    assert_near(b.states[0].rounds.period, 0.25);
    assert_near(b.states[1].rounds.period, 0.25);
    b.in.now += 60 * ASYM_SEC; /* a serial phase: not even one round of 1 s */
    b.states[0].since = 0.05;
    asym_seats_weigh(&b.q);
    assert_true(b.states[0].rounds.period > 0.25 && b.states[0].rounds.period < 0.5);
}

/* --- whole plans --- */

TEST(a_serial_thread_has_a_fast_cpu_of_its_own)
{
    unsigned fast = 0;
    begin(2, 4, 1, 4);
    const unsigned serial = enter(1, 1), first = enter(8, 1);
    plan_times(3);
    const struct asym_assignment *a = &w.threads[serial].answer;
    assert_true(asym_mask_has(&w.machine.fast, a->cpu));
    assert_true(a->exclusive && a->width == ASYM_PIN_CPU && a->nice_delta == -5);
    assert_int_equal(w.count[a->cpu], 1);
    for (unsigned t = first; t < first + 8; t++)
        fast += asym_mask_has(&w.machine.fast, policy_fixture_cpu(&w, t));
    assert_int_equal(fast, 4); /* the eighth shares a fast CPU: 1.333 / 2 there, 1.333 on a slow one */
    assert_true(why_is_sound(a->reason, a->figure));
    assert_near(a->figure[0], 100);
}

static void let_kernel_know(void)
{
    for (unsigned c = 0; c < w.machine.n_cpus; c++)
        w.machine.cpus[c].origin = ASYM_ORIGIN_CAPACITY;
    assert_int_equal(asym_machine_finish(&w.machine), 0);
}

/* Four fast CPUs and four slow ones, and the threads of two programs. */
TEST(a_kernel_that_knows_the_speeds_is_helped_only_where_it_needs_help)
{
    static const struct {
        bool knows, helps;
        unsigned n[2];
        double duty[2], unsteered;
    } rows[] = {
        {true, false, {4, 0}, {1, 0}, 0},    {true, false, {1, 3}, {1, 0.95}, 0},
        {true, false, {2, 1}, {1, 0.05}, 0}, /* the second needs too little to have a seat */
        {false, true, {4, 0}, {1, 0}, 0},    {true, true, {4, 1}, {1, 1}, 0}, /* one has a slow CPU */
        {true, true, {3, 1}, {1, 0.5}, 0}, /* one sleeps: the kernel may take it for a thread that needs little */
        {true, true, {4, 0}, {1, 0}, 6},     {true, true, {9, 0}, {1, 0}, 0},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        begin(2, 4, 1, 4);
        if (rows[i].knows)
            let_kernel_know();
        for (unsigned k = 0; k < 2; k++)
            if (rows[i].n[k] > 0)
                enter(rows[i].n[k], rows[i].duty[k]);
        w.unsteered = rows[i].unsteered;
        plan_times(3);
        for (unsigned t = 0; t < rows[i].n[0] + rows[i].n[1]; t++) {
            const struct asym_assignment *a = &w.threads[t].answer;
            if ((a->cpu >= 0) != rows[i].helps || (a->reason->kind == ASYM_REASON_PLACED) != rows[i].helps)
                fail_msg("row %zu, thread %u: CPU %d", i, t, (int)a->cpu);
            assert_true(why_is_sound(a->reason, a->figure));
        }
    }
}

/* A thread more comes for a moment, again and again. */
TEST(help_lasts_so_that_a_thread_that_comes_and_goes_changes_no_mask)
{
    begin(2, 4, 1, 4);
    let_kernel_know();
    enter(4, 1);
    policy_fixture_plan(&w);
    assert_int_equal(w.threads[0].answer.cpu, -1);
    const unsigned late = enter(1, 1);
    policy_fixture_plan(&w);
    for (unsigned k = 0; k < 90; k++) {
        w.threads[late].here = k % 20 == 0;
        policy_fixture_plan(&w);
        assert_true(w.threads[0].answer.cpu >= 0);
    }
    plan_times(100);
    assert_int_equal(w.threads[0].answer.cpu, -1);
}

TEST(seats_fill_in_the_order_of_what_they_add)
{
    static const unsigned rows[][4] = {{12, 8, 0, 4}, {20, 8, 0, 12}, {24, 8, 0, 16}, {28, 4, 4, 16}, {32, 0, 8, 16}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        unsigned cores[3] = {0}, slow = 0;
        begin(1.6, 8, 2, 16);
        enter(rows[i][0], 1);
        policy_fixture_plan(&w);
        for (unsigned c = 0; c < 16; c += 2)
            cores[w.count[c] + w.count[c + 1]]++;
        for (unsigned c = 16; c < 32; c++)
            slow += w.count[c];
        assert_int_equal(cores[1], rows[i][1]);
        assert_int_equal(cores[2], rows[i][2]);
        assert_int_equal(slow, rows[i][3]);
        policy_fixture_plan_again(&w);
        assert_int_equal(w.moved, 0);
    }
}

/* Eight threads of one program on four fast CPUs and four slow ones. They sleep as long, however many of them run at once. */
TEST(threads_share_a_fast_cpu_if_few_of_them_run_at_once)
{
    /* At once, 0: not measured. On the slow CPUs. */
    static const unsigned rows[][2] = {{2, 0}, {4, 0}, {5, 4}, {8, 4}, {0, 4}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        begin(2, 4, 1, 4);
        enter(8, 0.25);
        for (unsigned t = 0; t < 8 && rows[i][0] > 0; t++)
            w.threads[t].critical = 0.25 / rows[i][0];
        plan_times(3);
        assert_int_equal(w.count[4] + w.count[5] + w.count[6] + w.count[7], rows[i][1]);
    }
}

/* Two fast cores and two slow ones, in the third row one isolated. Strangers rank before sleepers; what one leaves is a seat. */
TEST(sleepers_leave_fast_cores_to_threads_that_asymd_does_not_steer)
{
    static const unsigned fast[4][4] = {{2, 1, 0, 2}, {2, 2, 0, 2}, {2, 1, 2, 2}, {2, 2, 2, 2}};
    for (unsigned k = 0; k < 16; k++) {
        const int slow = k / 4 == 1 ? 4 : 2;
        begin(2, 2, (unsigned)slow / 2, 2);
        w.machine.isolated.w[0] = k / 4 == 2 ? 8 : 0;
        enter(2, k < 12 ? 0.3 : 0.6);
        w.unsteered = k % 4;
        policy_fixture_plan(&w);
        assert_int_equal((policy_fixture_cpu(&w, 0) < slow) + (policy_fixture_cpu(&w, 1) < slow), fast[k / 4][k % 4]);
    }
}

/* A fast CPU and a slow one. The thread on the slow one has had less. A swap takes twice the difference in a crowd, and four times
 * that between processes of one thread each. One that sleeps for a fifth of the time has less use of a seat, but in a crowd. */
TEST(threads_swap_when_the_ranks_differ_by_sticky)
{
    static const struct {
        unsigned n, team;
        double rate[3];
        bool sleeps;
        unsigned moved;
    } rows[] = {
        {2, 2, {0.5476, 0.5}, false, 2},    {2, 2, {0.51, 0.5}, false, 0},      {2, 1, {0.5476, 0.5}, false, 0},
        {2, 1, {0.59, 0.5}, false, 0},      {2, 1, {0.62, 0.5}, false, 2},      {3, 3, {0.5476, 0.5, 0.9}, true, 0},
        {3, 3, {0.56, 0.5, 0.9}, true, 2},  {3, 3, {0.69, 0.5, 0.9}, false, 0}, {3, 3, {0.71, 0.5, 0.9}, false, 2},
        {3, 1, {0.59, 0.5, 0.9}, false, 0}, {3, 1, {0.62, 0.5, 0.9}, false, 2}, {2, 1, {0.62, 0.5}, true, 0},
        {3, 1, {0.62, 0.5, 0.9}, true, 2}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        begin(2, 1, 1, 1);
        for (unsigned t = 0; t < rows[i].n; t += rows[i].team)
            enter(rows[i].team, 1);
        policy_fixture_plan(&w);
        const bool swapped = policy_fixture_cpu(&w, 0) != 0;
        for (unsigned t = 0; t < rows[i].n; t++) {
            state_of(t)->rate = rows[i].rate[swapped && t < 2 ? 1 - t : t];
            state_of(t)->rounds.sleeps = rows[i].sleeps;
            if (rows[i].sleeps && rows[i].team == 1 && policy_fixture_cpu(&w, t) != 0)
                state_of(t)->duty = 0.8;
        }
        policy_fixture_plan_again(&w);
        assert_int_equal(w.moved, rows[i].moved);
    }
}

static void assert_width(unsigned n, enum asym_pin width)
{
    for (unsigned t = 0; t < n; t++)
        assert_int_equal(w.threads[t].answer.width, width);
}

/* Its threads wake in each interval, so its rounds are short until they do not. */
TEST(a_program_that_rests_may_use_all_cpus_until_its_rounds_are_long)
{
    begin(2, 2, 1, 2);
    w.swap_period = 100 * ASYM_MSEC;
    enter(4, 0.6);
    for (unsigned t = 0; t < 4; t++)
        w.threads[t].awake = true;
    plan_times(15);
    assert_width(4, ASYM_PIN_CPU);
    for (unsigned t = 0; t < 4; t++) {
        state_of(t)->work = 2;
        state_of(t)->rounds.period = 0.1;
        state_of(t)->rounds.began = w.now;
        state_of(t)->rounds.rests_until = w.now + 60 * ASYM_SEC;
    }
    plan_times(2);
    for (unsigned n = 0; n < 50; n++) {
        policy_fixture_plan(&w);
        assert_width(4, ASYM_PIN_ALL);
        assert_true(is_why(w.threads[n % 4].answer.reason, "too short to take turns"));
    }
    for (unsigned t = 0; t < 4; t++)
        w.threads[t].runnable = 1;
    plan_times(4);
    assert_width(4, ASYM_PIN_CPU);
    for (unsigned t = 0; t < 4; t++)
        w.threads[t].runnable = 0.6;
    plan_times(4); /* not without a new trial */
    assert_width(4, ASYM_PIN_CPU);
}

/* Two workers of a game on a fast and a slow CPU: who has the slow one needs it longer, and looks more waited for. */
TEST(threads_of_short_rounds_keep_their_seats)
{
    unsigned moved = 0;
    begin(2, 1, 1, 1);
    enter(2, 0.3);
    for (unsigned k = 0; k < 120; k++) {
        policy_fixture_plan(&w);
        moved += k > 60 ? w.moved : 0;
        for (unsigned t = 0; t < 2; t++)
            w.threads[t].runnable = w.machine.cpus[w.threads[t].answer.cpu].type == 0 ? 0.3 : 0.5;
    }
    assert_int_equal(moved, 0);
}

/* The intervals in which threads sleep say what rounds a process has; each limit has its way out. Short rounds: one progress. */
TEST(the_rounds_of_a_process_are_known_by_how_often_its_threads_sleep)
{
    static const struct {
        double partial[2];
        bool had_short, had_sleep, is_short, sleeps;
    } rows[] = {{{0, 0}, false, false, false, false},       {{0.04, 0.04}, false, false, false, false},
                {{0.045, 0.045}, false, true, false, true}, {{0.12, 0}, false, false, false, true},
                {{0.7, 0.7}, false, true, false, true},     {{0.65, 0.65}, true, true, true, true},
                {{0.5, 0.6}, true, true, false, true},      {{0.7, 0.9}, false, true, true, true}};
    begin(2, 1, 1, 1);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct bench b;
        prepare(&b, (const double[]){0.5, 0.7}, 2);
        for (unsigned t = 0; t < 2; t++) {
            struct asym_seats_thread *s = &b.states[t];
            s->pace = t ? 0.2 : 0.5; /* they are not coupled */
            s->rate = t ? 0.5 : 1;
            s->partial = rows[i].partial[t];
            s->rounds.are_short = rows[i].had_short;
            s->rounds.sleeps = rows[i].had_sleep;
        }
        asym_seats_weigh(&b.q); /* says what rounds they have */
        asym_seats_weigh(&b.q);
        for (unsigned t = 0; t < 2; t++) {
            assert_int_equal(b.states[t].rounds.are_short, rows[i].is_short);
            assert_int_equal(b.states[t].rounds.sleeps, rows[i].sleeps);
            assert_near(b.states[t].rate, rows[i].is_short || rows[i].had_short ? 0.75 : t ? 0.5 : 1);
        }
    }
}

/*
 * A main thread that goes on alone while its worker sleeps. The thread on the slow seat is waited for more: the work of threads
 * says who leads, until that has changed.
 */
TEST(the_thread_that_does_most_leads_its_process_on_whatever_seat)
{
    static const struct {
        double usual[2], pace[2];
        bool sleeps, had, leads;
    } rows[] = {
        {{1, 0.67}, {1, 0.33}, true, false, true},
        {{1, 0.67}, {1, 0.33}, false, false, false},  /* none sleeps: none waits */
        {{1, 1}, {1, 0.5}, true, false, false},       /* it does more by its seat */
        {{0.6, 0.8}, {0.6, 0.4}, true, false, false}, /* now the other is waited for more */
        {{0.6, 0.8}, {0.6, 0.4}, true, true, true},   /* because of its seat */
        {{0.8, 0.8}, {0.42, 0.45}, true, true, true}, /* about as much */
        {{0.8, 0.8}, {0.42, 0.45}, true, false, false},
        {{0.6, 0.8}, {0.3, 0.45}, true, true, false}, /* it does less */
        {{1, 0.5}, {0.5, 0.5}, true, false, false},   /* a barrier */
    };
    begin(2, 1, 1, 1);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct bench b;
        prepare(&b, rows[i].usual, 2);
        for (unsigned t = 0; t < 2; t++) {
            struct asym_seats_thread *s = &b.states[t];
            s->pace = rows[i].pace[t];
            s->seen = 3 * ASYM_SEC;
            s->rounds.sleeps = rows[i].sleeps;
            s->partial = rows[i].sleeps ? 0.5 : 0;
        }
        b.states[0].leads = rows[i].had;
        asym_seats_weigh(&b.q);
        assert_int_equal(b.states[0].leads, rows[i].leads);
    }
}

/* Progress is fair between programs. In one it takes no seat from the thread for which the others wait, near its memory or not. */
TEST(a_thread_that_leads_has_the_best_seat_of_its_process)
{
    for (int16_t node = 0; node < 2; node++) {
        begin(2, 1, 1, 1);
        w.machine.cpus[0].node = node;
        assert_int_equal(asym_machine_finish(&w.machine), 0);
        enter(2, 1);
        w.threads[0].preferred_cpu = w.threads[1].preferred_cpu = 1;
        w.threads[1].runnable = 0.67;
        for (unsigned k = 0; k < 200; k++) {
            policy_fixture_plan(&w);
            assert_true(k <= 100 || w.moved == 0);
        }
        assert_int_equal(policy_fixture_cpu(&w, 0), 0);
        /* A parallel phase that lasts. */
        w.threads[1].runnable = 1;
        policy_fixture_plan(&w);
        assert_int_equal(policy_fixture_cpu(&w, 1), 0);
        w.threads[1].runnable = 0.5;
        policy_fixture_plan(&w);
        assert_int_equal(policy_fixture_cpu(&w, 0), 0);
    }
}

/* The other program, or the other process of its job, has the fast CPU when its turn comes. */
TEST(a_thread_that_leads_takes_no_turn_of_another_program)
{
    for (unsigned job = 0; job < 2; job++) {
        unsigned on_fast = 0;
        begin(2, 1, 1, 2);
        enter(2 + job, 1);
        if (!job)
            enter(1, 1);
        w.threads[2].proc = job;
        w.threads[1].runnable = 0.67;
        for (unsigned k = 0; k < 400; k++) {
            policy_fixture_plan(&w);
            on_fast += k > 100 && policy_fixture_cpu(&w, 2) == 0;
            assert_true(job || k < 100 || policy_fixture_cpu(&w, 1) != 0);
        }
        assert_in_range(on_fast, job ? 180 : 200, job ? 220 : 290);
    }
}

/* --- a thread runs alone --- */

static unsigned one_on(unsigned first, unsigned n, bool fast)
{
    for (unsigned t = first; t < first + n; t++)
        if ((policy_fixture_cpu(&w, t) < 4) == fast)
            return t;
    fail();
    return 0;
}

/* The thread is alone for a moment. Returns how many threads have moved. */
static unsigned run_alone(unsigned t)
{
    w.threads[t].alone = true;
    policy_fixture_exchange(&w, ASYM_MSEC);
    w.threads[t].alone = false;
    return w.moved;
}

/* Nothing but the CPUs of the two changes, and the width that goes with each: claims and boosts are those of the plan. */
static unsigned run_alone_and_compare(unsigned t)
{
    static struct policy_fixture before;
    before = w;
    const unsigned moved = run_alone(t);
    for (unsigned u = 0; u < w.n_threads; u++) {
        const struct asym_assignment *a = &w.threads[u].answer, *had = &before.threads[u].answer;
        assert_true(a->nice_delta == had->nice_delta && a->exclusive == had->exclusive);
        assert_true((a->cpu == had->cpu && a->width == had->width) ||
                    (moved == 2 && w.threads[u].app == w.threads[t].app && !a->exclusive));
        assert_true(state_of(u)->duty == ((struct asym_seats_thread *)(void *)before.threads[u].state)->duty);
    }
    assert_memory_equal(&w.spare, &before.spare, sizeof w.spare);
    return moved;
}

TEST(a_thread_that_is_alone_takes_a_fast_cpu_of_its_program)
{
    begin(2, 4, 1, 4);
    const unsigned mine = enter(5, 0.7);
    enter(3, 0.7);
    for (unsigned k = 0; k < 100; k++) {
        policy_fixture_plan(&w);
        const unsigned t = one_on(mine, 5, false);
        assert_int_equal(run_alone_and_compare(t), 2);
        assert_in_range(policy_fixture_cpu(&w, t), 0, 3);
        assert_true(is_why(w.threads[t].answer.reason, "the only thread of its program that runs"));
        unsigned n_lent = 0;
        for (unsigned u = mine; u < mine + 5; u++)
            n_lent += is_why(w.threads[u].answer.reason, "another thread of its program");
        assert_int_equal(n_lent, 1);
        assert_int_equal(run_alone_and_compare(t), 0); /* it has one now */
        policy_fixture_exchange(&w, ASYM_MSEC);        /* and the phase has ended */
        assert_int_equal(w.moved, 0);
    }
    assert_true(w.policy->exchange && !w.policy->serves_alone);
}

/* The plan gives it the CPU, and takes it from none in the same moment. */
TEST(a_thread_that_is_alone_at_a_plan_has_a_fast_cpu)
{
    begin(2, 4, 1, 4);
    enter(8, 0.6);
    plan_times(20);
    const unsigned t = one_on(0, 8, false);
    w.threads[t].alone = true;
    for (unsigned k = 0; k < 100; k++) {
        policy_fixture_plan(&w);
        assert_in_range(policy_fixture_cpu(&w, t), 0, 3);
    }
}

/* A frame loop: the main thread is alone for most of each frame, and a worker for a moment at its end. */
TEST(a_thread_that_is_alone_takes_no_claim)
{
    begin(2, 4, 1, 4);
    enter(6, 0.15);
    enter(8, 1);
    w.threads[0].runnable = 0.9;
    plan_times(20);
    const int32_t cpu = policy_fixture_cpu(&w, 0);
    assert_true(cpu < 4 && w.threads[0].answer.exclusive);
    for (unsigned t = 0; t < 6; t++) {
        run_alone_and_compare(t);
        assert_int_equal(policy_fixture_cpu(&w, 0), cpu);
    }
}

TEST(a_thread_that_is_alone_is_left_to_a_kernel_that_knows)
{
    begin(2, 4, 1, 4);
    let_kernel_know();
    enter(4, 1);
    plan_times(20);
    run_alone(0);
    assert_int_equal(policy_fixture_cpu(&w, 0), -1);
}

/* Two threads were runnable in all of the other half of the time. */
static void was_alone_for(unsigned t, double share)
{
    state_of(t)->needed = share != 0 ? 0.5 : 0;
    state_of(t)->critical = share != 0 ? (0.5 + share) / 2 : 0;
}

/* In each row the thread on the slow CPU is alone, or all but alone. */
TEST(not_every_thread_that_is_alone_gains_by_a_fast_cpu)
{
    static const struct {
        bool spins, rests, mate_stays;
        double mate_alone, alone; /* shares of the time; 0 of its own: nothing is known of it */
        unsigned moved;
    } rows[] = {{.moved = 2},
                {.spins = true},
                {.rests = true},
                {.mate_stays = true},
                {.alone = 0.1, .mate_alone = 0.39, .moved = 2},
                {.alone = 0.1, .mate_alone = 0.41},
                {.alone = 0.1, .mate_alone = -0.41, .moved = 2}, /* it never was */
                {.mate_alone = 0.41, .moved = 2}};
    const struct asym_mask fast = {.w = {1}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        begin(2, 1, 1, 1);
        enter(2, 0.5);
        policy_fixture_plan(&w);
        const unsigned slow = policy_fixture_cpu(&w, 1) == 1;
        w.threads[slow].spinning = rows[i].spins;
        state_of(slow)->rounds.rests_until = rows[i].rests ? w.now + ASYM_SEC : 0;
        was_alone_for(slow, rows[i].alone);
        was_alone_for(1 - slow, rows[i].mate_alone);
        if (rows[i].mate_stays)
            w.threads[1 - slow].allowed = &fast;
        assert_int_equal(run_alone(slow), rows[i].moved);
    }
}

static unsigned one_that_lends(unsigned n)
{
    for (unsigned t = 0; t < n; t++)
        if (is_why(w.threads[t].answer.reason, "another thread of its program"))
            return t;
    fail();
    return 0;
}

/*
 * The main thread of a program slept in the last plan, so it has no seat. It takes that of a worker, which may use
 * all CPUs until the next plan, and gives it back.
 */
TEST(a_thread_that_slept_in_the_last_plan_takes_a_seat_when_it_is_alone)
{
    begin(2, 4, 1, 4);
    enter(6, 0.6);
    policy_fixture_plan(&w);
    for (unsigned k = 0; k < 20; k++) {
        w.threads[5].here = false;
        policy_fixture_plan(&w);
        w.threads[5].here = true;
        w.threads[5].answer = (struct asym_assignment){.cpu = -1, .reason = NULL};
        state_of(5)->claims = ASYM_CLAIM_CPU; /* of an earlier plan */
        run_alone(5);
        const int cpu = policy_fixture_cpu(&w, 5);
        assert_in_range(cpu, 0, 3);
        const unsigned u = one_that_lends(5);
        assert_true(w.threads[u].answer.width == ASYM_PIN_ALL);
        w.threads[u].runnable = 0;
        run_alone(u);
        assert_int_equal(policy_fixture_cpu(&w, u), cpu);
        assert_true(w.threads[u].answer.width != ASYM_PIN_ALL);
        assert_true(w.threads[5].answer.width == ASYM_PIN_ALL);
        w.threads[u].runnable = 0.6;
    }
}

/*
 * More threads than CPUs: masks are wide. In each row the main thread is alone. Another program needs that share of a CPU, or
 * threads that asymd does not steer do, or it has a boost already.
 */
TEST(a_thread_that_is_alone_takes_a_cpu_that_no_busy_thread_of_others_may_use)
{
    static const struct {
        double other, unsteered;
        bool planned, boosted, spare;
        int cpu;
    } rows[] = {{.cpu = 0},
                {.planned = true, .cpu = 0},
                {.spare = true, .cpu = -1},
                {.other = 0.1, .cpu = 0},
                {.other = 1, .cpu = -1},
                {.unsteered = 1.5, .cpu = -1},
                {.boosted = true, .cpu = -1}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        begin(2, 1, 1, 2);
        enter(6, 0.85);
        if (rows[i].other > 0)
            enter(1, rows[i].other);
        w.threads[5].here = rows[i].planned;
        w.unsteered = rows[i].unsteered;
        plan_times(30);
        assert_true(w.threads[0].answer.width == ASYM_PIN_ALL);
        w.threads[5].here = true;
        if (!rows[i].planned)
            w.threads[5].answer = (struct asym_assignment){.cpu = -1, .nice_delta = rows[i].boosted ? -5 : 0};
        if (rows[i].spare)
            asym_mask_set(&w.spare, 0);
        run_alone(5);
        assert_int_equal(policy_fixture_cpu(&w, 5), rows[i].cpu);
        assert_true(rows[i].cpu < 0 || w.threads[5].answer.width == ASYM_PIN_TYPE);
        assert_true(w.threads[0].answer.width == ASYM_PIN_ALL);
    }
}

/* The fast CPU, or its hardware thread, is the seat of a thread of another program, however little that one does. */
TEST(a_thread_that_is_alone_takes_no_core_on_which_another_has_a_seat)
{
    for (int seat = -1; seat < 2; seat++) {
        begin(2, 1, 2, 2);
        enter(7, 0.85);
        enter(1, 0.1);
        w.threads[6].here = false;
        plan_times(30);
        assert_true(w.threads[0].answer.width == ASYM_PIN_ALL);
        if (seat >= 0) {
            w.threads[7].answer.cpu = seat;
            w.threads[7].answer.width = ASYM_PIN_CPU;
        } else {
            w.threads[7].answer.width = ASYM_PIN_ALL;
        }
        w.threads[6].here = true;
        w.threads[6].answer.cpu = -1;
        run_alone(6);
        assert_true((policy_fixture_cpu(&w, 6) >= 0) == (seat < 0));
    }
}

TEST(a_thread_that_slept_in_the_last_plan_takes_no_slow_seat)
{
    begin(2, 1, 1, 1);
    enter(2, 1);
    enter(1, 1);
    w.threads[1].here = false;
    w.threads[2].nice = -10;
    plan_times(20);
    assert_int_equal(policy_fixture_cpu(&w, 0), 1);
    w.threads[1].here = true;
    w.threads[1].answer.cpu = -1;
    run_alone(1);
    assert_int_equal(policy_fixture_cpu(&w, 1), -1);
    assert_int_equal(policy_fixture_cpu(&w, 0), 1);
}

/* Several have such a CPU: the one that does least gives it up. */
TEST(the_thread_that_does_least_gives_up_its_cpu)
{
    begin(2, 4, 1, 4);
    enter(8, 0.6);
    policy_fixture_plan(&w);
    for (unsigned t = 0; t < 8; t++)
        state_of(t)->pace = 0.5 + 0.05 * t;
    const unsigned first = one_on(0, 8, true);
    assert_int_equal(run_alone(one_on(0, 8, false)), 2);
    assert_in_range(policy_fixture_cpu(&w, first), 4, 7);
}

/* 30 ms at half speed, 20 ms at full speed, and 50 ms at half speed again: each has had its part. */
TEST(the_progress_of_threads_that_exchange_cpus_is_by_both)
{
    begin(2, 1, 1, 1);
    enter(2, 0.5);
    policy_fixture_plan(&w);
    const unsigned slow = policy_fixture_cpu(&w, 1) == 1;
    w.threads[slow].alone = true;
    policy_fixture_exchange(&w, 30 * ASYM_MSEC);
    assert_int_equal(w.moved, 2);
    w.threads[slow].alone = false;
    w.threads[1 - slow].alone = true;
    policy_fixture_exchange(&w, 20 * ASYM_MSEC);
    assert_int_equal(w.moved, 2);
    w.threads[1 - slow].alone = false;
    policy_fixture_plan_after(&w, 50 * ASYM_MSEC);
    assert_near(state_of(slow)->step, 0.1 * 0.5 * 0.6);
    assert_near(state_of(1 - slow)->step, 0.1 * 0.5 * 0.9);
    policy_fixture_plan(&w);
    assert_near(state_of(slow)->step + state_of(1 - slow)->step, 0.1 * 0.5 * 1.5);
}

/* Two threads of a process, of two processes of a job, and one alone. */
TEST(processes_take_slower_turns_than_threads)
{
    static const struct {
        unsigned n, procs;
        bool crowd;
        bool sleeps, short_rounds;
        unsigned slowness;
    } rows[] = {{2, 1, false, false, false, 1}, {2, 1, false, true, false, 1}, {2, 1, true, true, false, 2},
                {2, 1, true, false, false, 8},  {2, 1, false, true, true, 8},  {2, 1, true, true, true, 8},
                {1, 1, false, false, false, 4}, {1, 1, true, true, true, 4},   {2, 2, false, false, false, 16},
                {2, 2, true, true, true, 16}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct bench b;
        prepare(&b, (const double[]){1, 1}, rows[i].n);
        b.threads[1].proc = rows[i].procs - 1;
        b.q.slow = rows[i].crowd;
        asym_seats_observe(&b.q);
        b.states[0].rounds.sleeps = rows[i].sleeps;
        b.states[0].rounds.are_short = rows[i].short_rounds;
        assert_int_equal(asym_seats_slowness(&b.q, 0), rows[i].slowness);
    }
}

/* Progress is remembered for five times as long in a crowd, and between programs of one thread each, so that turns are slower. */
TEST(a_crowd_remembers_progress_for_longer)
{
    static const struct {
        unsigned n, team;
    } rows[] = {{2, 2}, {3, 3}, {2, 1}, {3, 1}};
    double rates[ASYM_LENGTH(rows)];
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        begin(2, 1, 1, 1);
        for (unsigned t = 0; t < rows[i].n; t += rows[i].team)
            enter(rows[i].team, 1);
        policy_fixture_plan(&w);
        for (unsigned t = 0; t < rows[i].n; t++)
            state_of(t)->rate = 0.5;
        const unsigned fast = policy_fixture_cpu(&w, 0) != 0;
        policy_fixture_plan(&w);
        rates[i] = state_of(fast)->rate - 0.5;
        assert_true(rates[0] > 0.01);
        assert_true(i == 0 || (rates[i] > 0.1 * rates[0] && rates[i] < 0.3 * rates[0]));
    }
}

/* Three serial threads of this duty keep CPUs and siblings from a crowd that fills the machine. */
TEST(claims_stay_within_the_budget)
{
    static const struct {
        double fast, duty;
        unsigned n_fast, siblings, n_slow, alone, spared;
    } rows[] = {
        {1.6, 1, 8, 2, 16, 3, 2}, /* 3 % of 8 * 1.27 + 16 * 0.625: two siblings of 0.27 */
        {1.6, 1, 6, 2, 8, 3, 1},  /* 0.379 */
        {2, 0.9, 4, 1, 4, 1, 0},  /* 3 % of 6: 0.18, and 0.1 for each */
        {2, 0.8, 4, 1, 4, 0, 0},  /* 0.2 for one */
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        unsigned alone = 0;
        begin(rows[i].fast, rows[i].n_fast, rows[i].siblings, rows[i].n_slow);
        for (unsigned k = 0; k < 3; k++)
            enter(1, rows[i].duty);
        enter(w.machine.n_cpus + w.machine.n_cpus / 2, 1);
        policy_fixture_plan(&w);
        for (unsigned t = 0; t < 3; t++)
            alone += w.threads[t].answer.exclusive;
        assert_int_equal(alone, rows[i].alone);
        assert_int_equal(asym_mask_count(&w.spare), rows[i].spared);
    }
}

/* Two that are waited for alike, and a budget for the siblings of one: noise of a third in what they need changes no holder. */
TEST(a_claim_does_not_change_hands_by_noise)
{
    begin(1.6, 6, 2, 8);
    const unsigned game = enter(1, 0.5), other = enter(1, 0.5);
    enter(30, 1);
    policy_fixture_plan(&w);
    const struct asym_mask spared = w.spare;
    assert_int_equal(asym_mask_count(&spared), 1);
    for (unsigned k = 0; k < 40; k++) {
        w.threads[game].runnable = k / 4 % 2 ? 0.4 : 0.6;
        w.threads[other].runnable = k / 4 % 2 ? 0.6 : 0.4;
        policy_fixture_plan(&w);
        assert_true(asym_mask_equal(&w.spare, &spared));
    }
}

/* Four CPUs, three threads that compute, and one or two that sleep: they share CPUs, so there is no crowd. */
TEST(turns_are_slower_where_threads_outnumber_cpus)
{
    static const unsigned sleepers[] = {1, 2};
    unsigned moved[2] = {0};
    for (size_t i = 0; i < ASYM_LENGTH(sleepers); i++) {
        begin(2, 2, 1, 2);
        enter(3, 1);
        for (unsigned k = 0; k < sleepers[i]; k++)
            enter(1, 0.2);
        for (unsigned k = 0; k < 100; k++) {
            policy_fixture_plan(&w);
            moved[i] += w.moved;
        }
    }
    assert_true(moved[1] > 0 && moved[1] * 2 < moved[0]);
}

TEST(the_crowd_goes_where_it_waits_least)
{
    static const unsigned wanted[] = {1, 1, 1, 1, 1, 1, 2, 2};
    double speeds[8];
    for (unsigned c = 0; c < 8; c++)
        speeds[c] = c + 1;
    policy_fixture_begin(&w, "asym", speeds, 8);
    gen_params(w.policy, &params);
    w.params = &params;
    for (unsigned k = 0; k < 10; k++)
        enter(1, 1);
    policy_fixture_plan(&w);
    for (unsigned c = 0; c < 8; c++)
        assert_int_equal(w.count[c], wanted[c]);
}

/* A game whose threads sleep most of the time, beside a crowd: its main thread runs first where it is, and may leave. */
TEST(masks_are_as_wide_as_duties_allow)
{
    begin(2, 4, 1, 4);
    const unsigned game = enter(1, 0.5), crowd = enter(12, 1), sleeper = enter(1, 0.5);
    w.threads[sleeper].nice = 10; /* it is of the crowd by its weight */
    plan_times(20);
    assert_int_equal(w.threads[game].answer.width, ASYM_PIN_TYPE);
    assert_int_equal(w.threads[game].answer.nice_delta, -5);
    assert_false(w.threads[game].answer.exclusive);
    assert_int_equal(w.threads[crowd].answer.width, ASYM_PIN_TYPE);
    assert_int_equal(w.threads[crowd].answer.nice_delta, 0);
    assert_int_equal(w.threads[sleeper].answer.width, ASYM_PIN_ALL);
    policy_fixture_leave(&w, 1);
    plan_times(20);
    assert_int_equal(w.threads[game].answer.width, ASYM_PIN_CPU);
    assert_int_equal(w.threads[game].answer.nice_delta, 0); /* no boost for one that is alone */
}

/*
 * Where the compilers of a build outnumber the CPUs, each may use all of them: the build does not wait for one of them more than
 * for another, and each of their turns would be two changes of masks. Threads of a process and separate programs keep their types.
 */
TEST(in_a_crowd_processes_of_a_job_use_all_cpus)
{
    static const struct {
        unsigned programs, n, procs;
        enum asym_pin width;
        const char *why;
    } rows[] = {{1, 12, 12, ASYM_PIN_ALL, "shares all CPUs"},
                {1, 8, 8, ASYM_PIN_CPU, ": a "},
                {1, 12, 1, ASYM_PIN_TYPE, ""},
                {12, 1, 1, ASYM_PIN_TYPE, ""}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        begin(2, 4, 1, 4);
        for (unsigned k = 0; k < rows[i].programs; k++)
            enter(rows[i].n, 1);
        for (unsigned t = 0; t < w.n_threads; t++)
            w.threads[t].proc = t % rows[i].procs;
        plan_times(30);
        for (unsigned t = 0; t < w.n_threads; t++) {
            assert_int_equal(w.threads[t].answer.width, rows[i].width);
            assert_why(w.threads[t].answer.reason, rows[i].why);
        }
    }
}

/*
 * Without a crowd: two share the fast CPU, because what the first leaves of it is more than the slow one has: they stay. Or they
 * share the slow one, because another thread would pay for the idle sibling of its CPU: when they need too much, they may use it.
 */
TEST(threads_that_wait_beside_a_cpu_with_room_may_use_it_if_it_has_more)
{
    static const struct {
        double fast, duty;
        unsigned siblings;
        enum asym_pin width;
    } rows[] = {{4, 0.9, 1, ASYM_PIN_CPU},
                {2, 0.7, 2, ASYM_PIN_CPU},
                {2, 0.9, 2, ASYM_PIN_ALL},
                {2, 0.7, 2, ASYM_PIN_ALL},
                {2, 0.45, 2, ASYM_PIN_CPU}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        if (i < 2) {
            begin(rows[i].fast, 1, rows[i].siblings, 1);
            w.threads[enter(1, 0.52)].nice = -3;
            enter(1, 1);
            if (rows[i].siblings > 1)
                w.threads[enter(1, 1)].nice = -9;
        }
        w.threads[1].runnable = rows[i].duty;
        plan_times(20);
        assert_int_equal(policy_fixture_cpu(&w, 0), rows[i].siblings > 1 ? 2 : 0);
        assert_int_equal(policy_fixture_cpu(&w, 1), policy_fixture_cpu(&w, 0));
        assert_width(2, rows[i].width);
        assert_why(w.threads[1].answer.reason, rows[i].width == ASYM_PIN_ALL ? "shares all CPUs" : ": a ");
    }
}

/*
 * Two threads of a program may use the slow CPUs only, so the other two share the fast one. They may use a slow one while that has
 * room, if they do not sleep: one that sleeps may leave anyway. Not before their paces are known: they may wait for each other.
 */
TEST(a_busy_thread_of_a_crowd_keeps_to_its_type_unless_it_waits_beside_a_cpu_with_room)
{
    static const struct {
        double slow, last;
        enum asym_pin width[2];
    } rows[] = {{0.6, 0.95, {ASYM_PIN_ALL, ASYM_PIN_ALL}},
                {0.6, 0.8, {ASYM_PIN_TYPE, ASYM_PIN_ALL}},
                {0.93, 0.95, {ASYM_PIN_TYPE, ASYM_PIN_TYPE}}};
    const struct asym_mask slow = {.w = {6}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        begin(2, 1, 1, 2);
        enter(4, rows[i].slow);
        w.threads[0].allowed = w.threads[1].allowed = &slow;
        w.threads[0].nice = w.threads[1].nice = -2; /* so they have the seats */
        w.threads[2].runnable = 0.95;
        w.threads[3].runnable = rows[i].last;
        plan_times(28);
        assert_int_equal(w.count[0], 2);
        assert_int_equal(w.threads[2].answer.width, ASYM_PIN_TYPE);
        plan_times(12);
        for (unsigned k = 0; k < 2; k++)
            assert_int_equal(w.threads[2 + k].answer.width, rows[i].width[k]);
    }
}

/* A process of a job, or another thread of a process, that sleeps for seconds changes no mask each time that it wakes. */
TEST(a_member_that_comes_and_goes_changes_no_mask)
{
    for (unsigned same = 0; same < 2; same++) {
        begin(2, 4, 1, 4);
        const unsigned job = enter(3, 1);
        w.threads[job + 1].proc = 1;
        w.threads[job + 2].proc = same ? 0 : 2;
        for (unsigned k = 0; k < 9; k++)
            enter(1, 1);
        enum asym_pin first = ASYM_PIN_CPU;
        for (unsigned k = 0; k < 200; k++) {
            w.threads[job + 2].here = k % 20 == 0;
            w.threads[job + 1].here = !same && k % 20 == 0;
            policy_fixture_plan(&w);
            first = k == 40 ? w.threads[job].answer.width : first;
            assert_true(k < 40 || w.threads[job].answer.width == first);
        }
        assert_int_equal(first, same ? ASYM_PIN_TYPE : ASYM_PIN_ALL);
    }
}

/* A program's reports make plans between two samples, which repeat the measurements: they count once, by the time of the sample. */
TEST(a_plan_without_new_measurements_changes_no_mean)
{
    struct asym_seats_thread with[2][7];
    for (unsigned early = 0; early < 2; early++) {
        begin(2, 4, 1, 4);
        const unsigned first = enter(6, 1), late = enter(1, 0.3);
        for (unsigned k = 0; k < 30; k++) {
            w.threads[first].runnable = k % 3 == 0 ? 0.9 : 0.2;
            w.threads[late].here = k % 4 != 1; /* it sleeps for an interval now and then */
            policy_fixture_plan_after(&w, early ? 40 * ASYM_MSEC : 100 * ASYM_MSEC);
            for (unsigned i = 0; i < 2 * early; i++)
                policy_fixture_plan_refreshed(&w, 30 * ASYM_MSEC);
        }
        w.threads[late].here = true;
        policy_fixture_plan_after(&w, early ? 40 * ASYM_MSEC : 100 * ASYM_MSEC);
        for (unsigned t = 0; t < 7; t++)
            with[early][t] = *state_of(t);
    }
    for (unsigned t = 0; t < 7; t++) {
        assert_near(with[1][t].duty, with[0][t].duty);
        assert_near(with[1][t].rate, with[0][t].rate);
        assert_near(with[1][t].usual, with[0][t].usual);
        assert_near((double)with[1][t].seen, (double)with[0][t].seen);
    }
}

/* A game whose two processes sleep half of the time, beside a crowd. Each counts by its own session: 0: sessions do not matter. */
/*
 * Nice values count in the session only, so the thread that is alone has no boost there. What its program's other thread in the
 * session gets comes from the share of the one that is alone.
 */
TEST(where_nice_does_not_count_a_claim_replaces_the_boost)
{
    static const struct {
        uint32_t game[2], crowd;
        bool counts[2];
    } rows[] = {{{0, 0}, 0, {true, true}},  {{7, 7}, 7, {true, true}},  {{7, 7}, 8, {false, false}},
                {{8, 7}, 7, {false, true}}, {{7, 8}, 7, {true, false}}, {{1, 1}, 65, {false, false}}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        begin(1.6, 8, 2, 16); /* 3 % of its speed are 0.6 of a fast CPU: each would leave 0.5 of one unused */
        const unsigned game = enter(2, 0.5), crowd = enter(48, 1);
        for (unsigned t = crowd; t < crowd + 48; t++)
            w.threads[t].nice_group = rows[i].crowd;
        for (unsigned t = 0; t < 2; t++)
            w.threads[game + t].nice_group = rows[i].game[t];
        plan_times(20);
        unsigned n_alone = 0, n_void = 0;
        for (unsigned t = 0; t < 2; t++) {
            const struct asym_assignment *a = &w.threads[game + t].answer;
            const bool has_mate_alone = rows[i].game[0] == rows[i].game[1] && w.threads[game + !t].answer.exclusive;
            assert_int_equal(a->nice_delta, rows[i].counts[t] || has_mate_alone ? -5 : 0);
            assert_int_equal(is_why(a->reason, "session"), has_mate_alone);
            assert_true(!a->exclusive ||
                        (!rows[i].counts[t] && a->reason->holds_core)); /* else the engine takes no claim */
            n_alone += a->exclusive;
            n_void += !rows[i].counts[t];
        }
        assert_int_equal(n_alone, n_void > 0);
    }
}

/* Masks keep no thread off a CPU that asymd does not steer. While there are such threads, the boost is that of the one alone. */
TEST(strangers_on_the_cpu_of_one_alone_give_it_the_boost)
{
    begin(1.6, 8, 2, 16);
    const unsigned game = enter(2, 0.5), crowd = enter(48, 1);
    for (unsigned t = game; t < crowd + 48; t++)
        w.threads[t].nice_group = 1 + (t >= crowd);
    for (unsigned k = 0; k < 250; k++) {
        w.unsteered = k == 50 ? 1 : 0;
        policy_fixture_plan(&w);
        const unsigned alone = w.threads[game].answer.exclusive ? game : game + 1;
        const bool are_strangers = k >= 50 && k < 80; /* they count for 3 s */
        assert_true(k < 20 || w.threads[alone].answer.exclusive);
        for (unsigned t = game; t < crowd && k >= 20; t++)
            assert_int_equal(w.threads[t].answer.nice_delta, (t == alone) == are_strangers ? -5 : 0);
    }
}

/* The game's nice value counts against the build of its session. So that build gets no share of it, and no boost. */
TEST(a_build_in_the_session_of_a_game_has_no_boost)
{
    begin(2, 8, 1, 8);
    const unsigned game = enter(1, 0.95), build = enter(20, 1);
    for (unsigned t = game; t < build + 20; t++)
        w.threads[t].nice_group = 1;
    plan_times(40);
    assert_true(w.threads[game].answer.exclusive);
    for (unsigned t = build; t < build + 20; t++)
        assert_int_equal(w.threads[t].answer.nice_delta, 0);
}

/* Where boosts have no effect, one that shares its CPU with one that ranks above the crowd, too, does not send it there. */
TEST(a_claim_sends_no_thread_above_the_crowd_away)
{
    begin(2, 1, 1, 1);
    ((struct asym_seats_params *)(void *)&params)->budget = 1;
    const unsigned game = enter(1, 0.5), other = enter(1, 0.5), crowd = enter(4, 1);
    w.threads[other].nice = 5;
    for (unsigned t = crowd; t < crowd + 4; t++)
        w.threads[t].nice = 19;
    for (unsigned t = 0; t < w.n_threads; t++)
        w.threads[t].nice_group = w.threads[t].app + 1;
    for (unsigned k = 0; k < 20; k++) {
        policy_fixture_plan(&w);
        assert_int_equal(w.threads[other].answer.cpu, w.threads[game].answer.cpu);
        assert_false(w.threads[game].answer.exclusive);
    }
}

/* With 4 + 4 CPUs the budget pays for a duty of 82 % on a fast one. There the claim stays as it is: one that is held, or none. */
TEST(a_duty_that_varies_at_the_edge_of_the_budget_changes_no_claim)
{
    static const struct {
        double before, edge[2];
        bool held;
    } rows[] = {{0.95, {0.821, 0.835}, true},
                {0.75, {0.821, 0.835}, false},
                {0.75, {0.815, 0.825}, false},
                {0.75, {0.815, 0.835}, false}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        begin(2, 4, 1, 4);
        const unsigned serial = enter(1, rows[i].before);
        enter(8, 1);
        for (unsigned k = 0; k < 40; k++) {
            policy_fixture_plan(&w);
            w.threads[serial].runnable = k < 10 ? rows[i].before : rows[i].edge[k % 2];
            if (k > 10)
                assert_int_equal(w.threads[serial].answer.exclusive, rows[i].held);
        }
    }
}

/* One of two threads with memory on a node has the fast CPU there: the other one gains less far away than who is at home there. */
TEST(a_node_has_as_many_seats_near_its_memory_as_cpus)
{
    begin(2, 2, 1, 2);
    for (unsigned c = 0; c < 4; c++)
        w.machine.cpus[c].node = c % 2;
    assert_int_equal(asym_machine_finish(&w.machine), 0);
    for (unsigned t = 0; t < 4; t++) {
        w.threads[enter(1, 1)].preferred_cpu = (int32_t)(2 * (t % 2) + t / 2);
        w.threads[t].nice = t < 2 ? -1 : 0;
    }
    for (unsigned k = 0; k < 40; k++) {
        for (unsigned t = 0; t < 4; t++) {
            const unsigned cpu = (unsigned)w.threads[t].preferred_cpu;
            const double each = (cpu < 2 ? 4.2 : 8.4) + (cpu % 2 == t / 2 ? 1.6 : 2.4);
            w.threads[t].sample = (struct asym_sample){.seconds = each / 100, .instructions = 1e7, .llc_misses = 2e5};
        }
        policy_fixture_plan(&w);
        for (unsigned t = 0; k >= 10 && t < 4; t++)
            assert_int_equal(w.threads[t].answer.cpu % 2, t / 2);
    }
}

/* A log daemon wakes for a tenth of every other interval, beside threads that have all CPUs. It changes nothing for them. */
TEST(a_program_that_needs_little_has_no_seat)
{
    static const unsigned busy[] = {4, 8, 12};
    for (size_t i = 0; i < ASYM_LENGTH(busy); i++) {
        struct asym_assignment without[13][30];
        for (unsigned with = 0; with < 2; with++) {
            begin(2, 4, 1, 4);
            const unsigned serial = enter(1, 1), first = enter(busy[i] - 1, 1), daemon = enter(1, 0.1);
            for (unsigned k = 0; k < 30; k++) {
                w.threads[daemon].here = with && k % 2 == 0;
                policy_fixture_plan(&w);
                for (unsigned t = serial; t < first + busy[i] - 1; t++) {
                    const struct asym_assignment *a = &w.threads[t].answer;
                    if (!with)
                        without[t][k] = *a;
                    assert_int_equal(a->cpu, without[t][k].cpu);
                    assert_int_equal(a->width, without[t][k].width);
                    assert_int_equal(a->nice_delta, without[t][k].nice_delta);
                    assert_int_equal(a->exclusive, without[t][k].exclusive);
                }
            }
            assert_true(!with || w.threads[daemon].answer.width == ASYM_PIN_ALL);
            assert_int_equal(w.threads[daemon].answer.nice_delta, 0);
        }
    }
}

/* It runs on faster CPUs with room, and stays while they have less; near the limit of seats it keeps what it has. */
TEST(a_program_that_needs_little_runs_where_there_is_room)
{
    static const struct {
        double duties[2];
        unsigned n_others;
        double others;
        enum asym_pin width;
        bool seat;
    } rows[] = {{{0.1, 0.1}, 0, 0, ASYM_PIN_TYPE, false},   {{0.1, 0.1}, 4, 0.5, ASYM_PIN_TYPE, false},
                {{0.1, 0.1}, 4, 0.7, ASYM_PIN_ALL, false},  {{0.1, 0.1}, 16, 0.33, ASYM_PIN_ALL, false},
                {{0.14, 0.13}, 0, 0, ASYM_PIN_TYPE, false}, {{0.2, 0.13}, 0, 0, ASYM_PIN_CPU, true},
                {{0.2, 0.11}, 0, 0, ASYM_PIN_TYPE, false}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        begin(2, 4, 1, 4);
        const unsigned daemon = enter(1, rows[i].duties[0]);
        policy_fixture_plan(&w);
        w.threads[daemon].runnable = rows[i].duties[1];
        for (unsigned n = 0; n < rows[i].n_others; n += 2)
            enter(2, rows[i].others);
        plan_times(10);
        assert_int_equal(w.threads[daemon].answer.width, rows[i].width);
        assert_int_equal(w.threads[daemon].answer.nice_delta, 0);
        assert_int_equal(state_of(daemon)->counts, rows[i].seat);
        for (unsigned t = daemon + 1; t < w.n_threads; t++)
            assert_int_equal(w.threads[t].answer.width, ASYM_PIN_CPU);
    }
}

/* One fast CPU has room for some of them: 60 % of it for those that are there. */
TEST(programs_that_need_little_do_not_crowd_the_fast_cpu)
{
    unsigned n_fast = 0;
    begin(2, 1, 1, 7);
    for (unsigned n = 0; n < 10; n++)
        enter(1, 0.12);
    plan_times(10);
    for (unsigned t = 0; t < w.n_threads; t++)
        n_fast += w.threads[t].answer.width == ASYM_PIN_TYPE;
    assert_in_range(n_fast, 1, 5);
}

/* A container has CPU 0 and CPU 4. A serial thread that may use all CPUs takes neither from the crowd that may not. */
TEST(no_claim_takes_a_cpu_of_a_small_cpuset)
{
    static struct asym_mask few;
    begin(2, 4, 1, 4);
    few = (struct asym_mask){0};
    asym_mask_set(&few, 0);
    asym_mask_set(&few, 4);
    const unsigned serial = enter(1, 1), inside = enter(6, 1);
    enter(12, 1);
    w.threads[serial].preferred_cpu = 0;
    for (unsigned t = inside; t < inside + 6; t++)
        w.threads[t].allowed = &few;
    plan_times(5);
    const struct asym_assignment *a = &w.threads[serial].answer;
    assert_false(a->exclusive && asym_mask_has(&few, a->cpu));
    assert_int_equal(w.count[0] > 0, true);
    for (unsigned t = inside; t < inside + 6; t++)
        assert_true(asym_mask_has(&few, policy_fixture_cpu(&w, t)));
}

TEST(far_too_many_threads_use_all_cpus_without_claims)
{
    begin(2, 4, 1, 4);
    const unsigned serial = enter(1, 1), crowd = enter(40, 1);
    policy_fixture_plan(&w);
    assert_int_equal(w.threads[crowd].answer.width, ASYM_PIN_ALL);
    assert_false(w.threads[serial].answer.exclusive);
    assert_int_equal(w.threads[serial].answer.nice_delta, -5);
    unsigned moved = 0;
    for (unsigned k = 0; k < 5; k++) { /* threads end one by one: few others need another place */
        w.threads[crowd + 4 * k].here = false;
        policy_fixture_plan(&w);
        moved += w.moved;
    }
    assert_in_range(moved, 0, 2 * 5);
}

/* Programs of one thread have one density, whatever their duties are: none of them leads the CPU that two share. */
TEST(equals_that_share_a_cpu_have_no_boost)
{
    begin(2, 4, 1, 4);
    for (unsigned i = 0; i < 16; i++)
        enter(1, 0.2);
    for (unsigned k = 0; k < 20; k++) {
        policy_fixture_plan(&w);
        for (unsigned t = 0; t < 16; t++)
            assert_int_equal(w.threads[t].answer.nice_delta, 0);
    }
}

TEST_MAIN
