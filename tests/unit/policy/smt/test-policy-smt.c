/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the policies for cores with several hardware threads (Snavely 2002), in engines, with simulated counters. */
#include <math.h>

#include <asym/engine.h>

#include "base/mask.h"
#include "policy/smt/smt.h"
#include "support/generate.h"
#include "support/reason-text.h"
#include "support/test.h"
#include "support/turns.h"

struct smt_fixture {
    struct turns t;
    asym_usec first; /* time of the first sample; 0: none yet */
    struct asym_sample samples[TURNS_MOST];
    struct gen_params_room params;
    /* IPC of thread i alone, and the part of it that remains beside thread k on its core; NULL: no counters */
    double (*alone)(size_t i);
    double (*beside)(size_t i, size_t k);
};

static void nothing(struct smt_fixture *w)
{
}

static void end(struct smt_fixture *w)
{
    turns_end(&w->t);
}

#define TEST_F(name) TEST_IN(name, struct smt_fixture, w, nothing, end)

/*
 * Set up n_cpus CPUs, all alike, with `siblings` CPUs on each core, and n applications of one thread, in place of what w had. The
 * params are the defaults, but for the weights, and for catch_up if it is not NULL.
 */
static void begin_with(struct smt_fixture *w, const char *name, enum asym_smt_weights weights, const char *catch_up,
                       unsigned n_cpus, unsigned siblings, unsigned n)
{
    unsigned ones[TURNS_MOST];
    const struct asym_policy *policy = asym_policy_find(name);
    end(w);
    *w = (struct smt_fixture){0};
    for (size_t i = 0; i < TURNS_MOST; i++)
        ones[i] = 1;
    assert_non_null(policy);
    w->params = gen_params_with(policy, catch_up ? "catch_up" : NULL, catch_up);
    ((struct asym_smt_params *)(void *)w->params.bytes)->weights = (int)weights;
    const struct asym_engine_config config = {
        .policy = policy,
        .params = w->params.bytes,
        .classify = {.serial_max_threads = 2, .hp_threshold = UINT32_MAX, .amp_boost = ASYM_SEC, .hysteresis = 1},
        .enforce = {.pin = -1, .swap_period = ASYM_SEC, .release = 5 * ASYM_SEC},
    };
    gen_plain_machine(&w->t.machine, n_cpus, n_cpus);
    for (unsigned c = 0; c < n_cpus; c++)
        w->t.machine.cpus[c].core = w->t.machine.cpus[c].freq_domain = (int16_t)(c / siblings);
    assert_int_equal(asym_machine_finish(&w->t.machine), 0);
    w->t.load = gen_load_new(&w->t.machine, ones, n);
    assert_non_null(w->t.load);
    assert_int_equal(asym_engine_new(&config, &w->t.e), 0);
}

static void begin_on(struct smt_fixture *w, const char *name, unsigned n_cpus, unsigned siblings, unsigned n)
{
    begin_with(w, name, ASYM_SMT_NICE, NULL, n_cpus, siblings, n);
}

/* Returns the core of thread i; a thread that sleeps has a number of its own. */
static int core_of(const struct smt_fixture *w, size_t i)
{
    if (w->t.plan->tasks[i].target < 0)
        return -1 - (int)i;
    return w->t.machine.cpus[w->t.plan->tasks[i].target].core;
}

/* Returns the IPC of thread i since the last sample, on the CPU where the plan of that sample placed it. */
static double ipc_of(const struct smt_fixture *w, size_t i)
{
    double ipc = w->alone(i);
    for (size_t k = 0; k < w->t.plan->n_tasks; k++)
        if (k != i && core_of(w, k) == core_of(w, i))
            ipc *= w->beside(i, k);
    return ipc;
}

static void count(struct smt_fixture *w)
{
    w->t.load->s.samples = w->samples;
    w->t.load->s.n_samples = 0;
    for (size_t i = 0; w->alone && w->t.plan && i < w->t.plan->n_tasks; i++)
        if (w->t.plan->tasks[i].counted)
            w->samples[w->t.load->s.n_samples++] = (struct asym_sample){
                .task = (uint32_t)i, .seconds = 0.1, .instructions = 1e8 * ipc_of(w, i), .cycles = 1e8};
}

/* Let time pass until the next sample; every action succeeds. */
static void next_sample(struct smt_fixture *w)
{
    count(w);
    turn(&w->t);
    w->first = w->first ? w->first : w->t.load->s.now;
}

static unsigned others_on_core(const struct smt_fixture *w, size_t i)
{
    unsigned n = 0;
    for (size_t k = 0; k < w->t.plan->n_tasks; k++)
        n += k != i && core_of(w, k) == core_of(w, i);
    return n;
}

static bool is_alone(const struct smt_fixture *w, size_t i)
{
    return is_why(w->t.plan->tasks[i].reason, "more: its share") ||
           is_why(w->t.plan->tasks[i].reason, "more: it is measured");
}

/* Returns in how many of n samples thread i is alone by its share. */
static unsigned samples_alone(struct smt_fixture *w, size_t i, unsigned n)
{
    unsigned hits = 0;
    for (unsigned k = 0; k < n; k++) {
        next_sample(w);
        hits += is_why(w->t.plan->tasks[i].reason, "more: its share");
        if (is_alone(w, i)) {
            assert_true(w->t.plan->tasks[i].exclusive);
            assert_int_equal(others_on_core(w, i), 0);
        }
    }
    return hits;
}

/* Find the core on which each thread has its seat. All the policies agree, and nice values do not change it. */
static void predict(unsigned n_cpus, unsigned siblings, unsigned n, int *ret_core)
{
    struct smt_fixture w = {0};
    begin_on(&w, "smt-naive", n_cpus, siblings, n);
    next_sample(&w);
    for (size_t i = 0; i < n; i++)
        ret_core[i] = core_of(&w, i);
    end(&w);
}

static size_t partner_of(const int *core, size_t n, size_t i)
{
    for (size_t k = 0; k < n; k++)
        if (k != i && core[k] == core[i])
            return k;
    return n;
}

static void set_nice(struct smt_fixture *w, size_t i, int nice)
{
    w->t.load->tasks[i].nice = (int8_t)nice;
}

/*
 * Two cores with two threads each. The first thread has 75 % of its core: by weights 19 - p, 15 beside 5 of its partner (the
 * source's example). Returns the partner.
 */
static size_t begin_three_quarters(struct smt_fixture *w, const char *name, const char *catch_up)
{
    int core[4];
    predict(4, 2, 4, core);
    const size_t partner = partner_of(core, 4, 0);
    begin_with(w, name, ASYM_SMT_SOURCE, catch_up, 4, 2, 4);
    set_nice(w, 0, 4);
    set_nice(w, partner, 14);
    return partner;
}

/* --- smt-naive --- */

/* Threads that fit on cores, and equal shares. */
TEST_F(where_none_gains_there_are_no_windows)
{
    static const struct {
        unsigned threads, others;
        int nice; /* of the first thread */
        const char *why;
    } rows[] = {{4, 0, -20, "a core to itself"}, {8, 1, 0, "shares its core: its share is %.0f %%, alone"}};
    for (size_t row = 0; row < ASYM_LENGTH(rows); row++) {
        begin_on(w, "smt-naive", 8, 2, rows[row].threads);
        set_nice(w, 0, rows[row].nice);
        next_sample(w);
        for (unsigned k = 0; k < 30; k++) {
            for (size_t i = 0; i < rows[row].threads; i++) {
                assert_int_equal(others_on_core(w, i), rows[row].others);
                assert_why(w->t.plan->tasks[i].reason, rows[row].why);
                assert_true(rows[row].others == 0 || fabs(w->t.plan->tasks[i].figure[0] - 50) < 1e-9);
            }
            next_sample(w);
            assert_int_equal(w->t.n_actions, 0);
        }
    }
}

/* Its share is 75 %, so that it is alone for half of the time. */
TEST_F(three_quarters_of_a_core_are_half_of_the_time_alone)
{
    const size_t beside = begin_three_quarters(w, "smt-naive", NULL);
    assert_in_range(samples_alone(w, 0, 1000), 480, 520);
    char text[128];
    while (!is_why(w->t.plan->tasks[0].reason, "more: its share"))
        next_sample(w);
    asym_reason_text(w->t.plan->tasks[0].reason, w->t.plan->tasks[0].figure, text, sizeof text);
    assert_non_null(strstr(text, "its share is 75 %"));
    assert_why(w->t.plan->tasks[beside].reason, "off its core");
}

/* If every core has a thread that needs it alone, the cores take turns, and never are all of them held. */
TEST_F(not_all_cores_are_held_at_once)
{
    int core[12], chosen[6];
    unsigned had[6] = {0};
    predict(12, 2, 12, core);
    for (int i = 0; i < 12; i++)
        chosen[core[i]] = i;
    begin_on(w, "smt-naive", 12, 2, 12);
    for (size_t c = 0; c < 6; c++)
        set_nice(w, (size_t)chosen[c], -10);
    for (unsigned k = 0; k < 600; k++) {
        next_sample(w);
        unsigned held = 0;
        for (size_t c = 0; c < 6; c++) {
            held += is_alone(w, (size_t)chosen[c]);
            had[c] += is_alone(w, (size_t)chosen[c]);
        }
        assert_in_range(held, 2, 3);
    }
    for (size_t c = 0; c < 6; c++)
        assert_in_range(had[c], 285, 315);
}

TEST_F(a_thread_with_no_other_cpu_stays)
{
    begin_on(w, "smt-naive", 4, 2, 2);
    for (size_t i = 0; i < 2; i++) {
        w->t.load->cpusets[i] = (struct asym_mask){.w = {3}};
        w->t.load->masks[i] = w->t.load->cpusets[i];
    }
    gen_load_share_masks(w->t.load);
    set_nice(w, 0, -10);
    unsigned crowded = 0;
    for (unsigned k = 0; k < 50; k++) {
        next_sample(w);
        crowded += is_why(w->t.plan->tasks[0].reason, "cannot leave");
        assert_int_equal(others_on_core(w, 0), 1);
        assert_false(w->t.plan->tasks[0].exclusive);
    }
    assert_in_range(crowded, 30, 49);
}

/* A thread that mostly sleeps is not entitled to an empty core, whatever its nice value. */
TEST_F(a_share_is_no_more_than_what_is_wanted)
{
    begin_on(w, "smt-naive", 4, 2, 4);
    set_nice(w, 0, -20);
    gen_load_share(w->t.load, 0, 0.5);
    assert_int_equal(samples_alone(w, 0, 100), 0);
    gen_load_share(w->t.load, 0, 0.75);
    assert_in_range(samples_alone(w, 0, 1000), 480, 520);
}

/* Guests go to the least loaded core, and return to the CPU that they came from. */
TEST_F(guests_return_to_their_cpu)
{
    int core[5];
    predict(8, 2, 5, core);
    size_t one = 0;
    while (partner_of(core, 5, one) >= 5)
        one++;
    begin_on(w, "smt-naive", 8, 2, 5);
    set_nice(w, one, -5);
    int32_t preferred_cpu[5] = {-1, -1, -1, -1, -1};
    for (unsigned k = 0; k < 100; k++) {
        next_sample(w);
        for (size_t i = 0; i < 5; i++) {
            if (is_why(w->t.plan->tasks[i].reason, "off its core")) {
                assert_int_equal(others_on_core(w, i), 1);
                continue;
            }
            assert_true(preferred_cpu[i] < 0 || preferred_cpu[i] == w->t.plan->tasks[i].target);
            preferred_cpu[i] = w->t.plan->tasks[i].target;
        }
    }
}

/* The windows of a rotation are laid when it begins: a thread that sleeps and wakes does not shift the windows of others. */
TEST_F(windows_stay_where_they_were_laid)
{
    bool alone[2][200];
    for (unsigned flicker = 0; flicker < 2; flicker++) {
        int core[8];
        predict(8, 2, 8, core);
        begin_on(w, "smt-naive", 8, 2, 8);
        size_t first = 0, last = 0;
        for (size_t i = 0; i < 8; i++) {
            first = core[i] < core[first] ? i : first;
            last = core[i] > core[last] ? i : last;
        }
        set_nice(w, first, -10);
        set_nice(w, last, -4);
        for (unsigned k = 0; k < 200; k++) {
            gen_load_share(w->t.load, first, flicker && (w->t.load->s.now + TURN) % ASYM_SEC > ASYM_SEC / 2 ? 0 : 1);
            next_sample(w);
            alone[flicker][k] = is_alone(w, last);
        }
    }
    assert_memory_equal(alone[0], alone[1], sizeof alone[0]);
}

/* --- smt-symb --- */

#define SAMPLE  (4 * ASYM_SEC)
#define SYMBIOS (60 * ASYM_SEC)

static double two(size_t i)
{
    return i % 2 ? 0.5 : 2;
}

static double by_a_quarter(size_t i, size_t k)
{
    return 0.75;
}

static double to_six_tenths(size_t i, size_t k)
{
    return 0.6;
}

/* Advance to the start of the stage that begins `from` after the first sample. */
static void advance_until(struct smt_fixture *w, asym_usec from)
{
    while (!w->first || w->t.load->s.now + TURN < w->first + from)
        next_sample(w);
}

/*
 * The first thread has 75 % of the core, the second 25 %. If the first keeps 3/4 of its speed beside the second, it gets its
 * share without a window. If it keeps 6/10, it is alone for 3/8 of the time, because (1 - 0.75) / (1 - 0.6) = 5/8. If it is
 * not measured, it is alone for half of the time, as under smt-naive. smt-sos keeps shares as smt-symb does.
 */
TEST_F(threads_that_run_well_together_share_for_longer)
{
    static const struct {
        const char *policy;
        double (*beside)(size_t i, size_t k);
        unsigned least, most;
    } rows[] = {{"smt-symb", by_a_quarter, 0, 0},
                {"smt-symb", to_six_tenths, 195, 225},
                {"smt-symb", NULL, 260, 300},
                {"smt-sos", to_six_tenths, 195, 225}};
    for (size_t row = 0; row < ASYM_LENGTH(rows); row++) {
        begin_three_quarters(w, rows[row].policy, NULL);
        w->alone = rows[row].beside ? two : NULL;
        w->beside = rows[row].beside;
        advance_until(w, SAMPLE);
        assert_in_range(samples_alone(w, 0, 560), rows[row].least, rows[row].most);
    }
}

/* Programs rarely begin at the same sample. A thread that begins after the windows were laid gets one, too. */
TEST_F(threads_that_begin_in_the_sample_phase_are_measured)
{
    int core[4];
    begin_with(w, "smt-symb", ASYM_SMT_SOURCE, NULL, 4, 2, 4);
    w->alone = two;
    w->beside = to_six_tenths;
    w->t.load->s.n_apps = w->t.load->s.n_procs = w->t.load->s.n_tasks = 1;
    next_sample(w);
    w->t.load->s.n_apps = w->t.load->s.n_procs = w->t.load->s.n_tasks = 4;
    advance_until(w, SAMPLE * 3 / 4);
    next_sample(w);
    for (size_t i = 0; i < 4; i++)
        core[i] = core_of(w, i);
    set_nice(w, 0, 4);
    set_nice(w, partner_of(core, 4, 0), 14);
    advance_until(w, SAMPLE);
    assert_in_range(samples_alone(w, 0, 560), 195, 225);
}

/* The first core has one thread of 7, and gets a second one while threads are measured alone. */
TEST_F(a_core_that_becomes_shared_moves_no_window_of_another_core)
{
    enum { ALONE_SAMPLES = SAMPLE / 2 / TURN };
    bool alone[2][ALONE_SAMPLES][6];
    for (unsigned joins = 0; joins < 2; joins++) {
        begin_on(w, "smt-symb", 8, 2, 8);
        for (size_t i = 0; i < 8; i++)
            w->t.load->masks[i] = w->t.load->cpusets[i] = (struct asym_mask){.w = {i == 0 || i == 7 ? 0x3 : 0xfc}};
        gen_load_share_masks(w->t.load);
        w->t.load->s.n_apps = w->t.load->s.n_procs = w->t.load->s.n_tasks = 7;
        unsigned hits = 0;
        for (unsigned k = 0; k < ALONE_SAMPLES; k++) {
            if (joins && k == 4)
                w->t.load->s.n_apps = w->t.load->s.n_procs = w->t.load->s.n_tasks = 8;
            next_sample(w);
            for (size_t i = 0; i < 6; i++)
                hits += alone[joins][k][i] = is_alone(w, i + 1);
        }
        assert_true(hits >= 6 * 3);
        assert_true(!joins || others_on_core(w, 0) > 0);
    }
    assert_memory_equal(alone[0], alone[1], sizeof alone[0]);
}

TEST_F(only_what_is_measured_is_counted)
{
    unsigned alone[4] = {0}, together[4] = {0};
    begin_on(w, "smt-symb", 4, 2, 4);
    w->alone = two;
    w->beside = by_a_quarter;
    next_sample(w);
    for (; w->t.load->s.now < w->first + SAMPLE + 2 * ASYM_SEC; next_sample(w)) {
        for (size_t i = 0; i < 4; i++) {
            const struct asym_plan_task *t = &w->t.plan->tasks[i];
            const bool in_sample = w->t.load->s.now < w->first + SAMPLE;
            alone[i] += is_why(t->reason, "more: it is measured");
            together[i] += is_why(t->reason, "measured beside");
            assert_int_equal(t->counted,
                             is_why(t->reason, "more: it is measured") || is_why(t->reason, "measured beside"));
            assert_true(in_sample || !t->counted);
            assert_int_equal(is_alone(w, i), is_why(t->reason, "more: it is measured"));
            assert_true(!is_alone(w, i) || others_on_core(w, i) == 0);
        }
    }
    for (size_t i = 0; i < 4; i++) {
        assert_in_range(alone[i], 3, 7);
        assert_int_equal(together[i], 20);
    }
}

/* After the symbios phase the threads are measured again, because the old result may no longer be true. */
TEST_F(it_is_measured_again)
{
    begin_three_quarters(w, "smt-symb", NULL);
    w->alone = two;
    w->beside = by_a_quarter;
    advance_until(w, SAMPLE);
    assert_int_equal(samples_alone(w, 0, 500), 0);
    w->beside = to_six_tenths;
    advance_until(w, 2 * SAMPLE + SYMBIOS);
    assert_in_range(samples_alone(w, 0, 560), 195, 225);
    /* A thread that sleeps through the next sample phase is unknown again. */
    gen_load_share(w->t.load, 0, 0);
    advance_until(w, 3 * SAMPLE + 2 * SYMBIOS + ASYM_SEC);
    gen_load_share(w->t.load, 0, 1);
    next_sample(w);
    assert_in_range(samples_alone(w, 0, 560), 260, 300);
}

/* The test sets the kinds. */
static bool kind_of[TURNS_MOST];

static double lately(size_t i, size_t k)
{
    return i == 0 ? 0.3 : 0.75;
}

/*
 * After the sample phase the first thread, which has 75 % of its core, keeps only 3/10 of its speed beside the second. It falls
 * behind, and only with an account it has what it is entitled to: alone for y of the time, y + 0.3 (1 - y) = 0.75, y = 64 %.
 */
TEST_F(a_thread_that_falls_behind_runs_alone_to_catch_up)
{
    for (unsigned with = 0; with < 2; with++) {
        begin_three_quarters(w, "smt-symb", with ? "500ms" : "0s");
        w->alone = two;
        w->beside = by_a_quarter;
        advance_until(w, SAMPLE);
        assert_int_equal(samples_alone(w, 0, 100), 0);
        w->beside = lately;
        const unsigned alone = samples_alone(w, 0, 400);
        assert_in_range(alone, with ? 230 : 0, with ? 275 : 0);
    }
}

/* The thread sleeps from its turn alone until after the next sample phase. What it is entitled to is not known then. */
TEST_F(an_account_ends_with_its_measurement)
{
    begin_with(w, "smt-symb", ASYM_SMT_SOURCE, "500ms", 4, 2, 4);
    w->alone = two;
    w->beside = by_a_quarter;
    advance_until(w, SAMPLE);
    w->beside = lately;
    assert_true(samples_alone(w, 0, 100) > 0);
    while (!is_alone(w, 0))
        next_sample(w);
    gen_load_share(w->t.load, 0, 0);
    advance_until(w, 2 * SAMPLE + SYMBIOS + ASYM_SEC);
    gen_load_share(w->t.load, 0, 1);
    assert_int_equal(samples_alone(w, 0, 100), 0);
}

static double by_lag(size_t i, size_t k)
{
    return kind_of[i] ? 0.1 : 0.75;
}

/* Beside others neither has the half of its speed that it is entitled to, so they have turns alone, of the same length. */
TEST_F(two_of_a_core_that_fall_behind_share_its_time)
{
    int core[8];
    predict(8, 2, 8, core);
    begin_with(w, "smt-symb", ASYM_SMT_SOURCE, "500ms", 8, 2, 8);
    w->alone = two;
    w->beside = by_a_quarter;
    advance_until(w, SAMPLE);
    const size_t partner = partner_of(core, 8, 0);
    for (size_t i = 0; i < 8; i++)
        kind_of[i] = i == 0 || i == partner;
    w->beside = by_lag;
    unsigned alone[2] = {0};
    for (unsigned k = 0; k < 400; k++) {
        next_sample(w);
        alone[0] += is_alone(w, 0);
        alone[1] += is_alone(w, partner);
    }
    assert_in_range(alone[0], 120, 200);
    assert_in_range(alone[1], 120, 200);
}

/* --- smt-sos --- */

/* Threads of the same kind hinder each other. */
static double by_kind(size_t i, size_t k)
{
    return kind_of[i] == kind_of[k] ? 0.5 : 0.9;
}

static void begin_by_kind(struct smt_fixture *w, const char *policy)
{
    int core[4];
    predict(4, 2, 4, core);
    for (size_t i = 0; i < 4; i++)
        kind_of[i] = core[i];
    begin_on(w, policy, 4, 2, 4);
    w->alone = two;
    w->beside = by_kind;
}

TEST_F(those_that_get_along_are_brought_together)
{
    begin_by_kind(w, "smt-sos");
    advance_until(w, SAMPLE);
    for (unsigned k = 0; k < 500; k++) {
        next_sample(w);
        assert_true(k == 0 || w->t.n_actions == 0);
        for (size_t i = 0; i < 4; i++)
            for (size_t j = 0; j < i; j++)
                assert_true(core_of(w, i) != core_of(w, j) || kind_of[i] != kind_of[j]);
    }
}

/* Threads that run well together, or that were not measured, stay together. */
TEST_F(what_is_best_already_stays)
{
    for (unsigned counted = 0; counted < 2; counted++) {
        int core[4];
        bool seen[2] = {false};
        predict(4, 2, 4, core);
        for (size_t i = 0; i < 4; i++) {
            kind_of[i] = seen[core[i]];
            seen[core[i]] = true;
        }
        begin_on(w, "smt-sos", 4, 2, 4);
        w->alone = counted ? two : NULL;
        w->beside = by_kind;
        advance_until(w, SAMPLE);
        next_sample(w);
        for (size_t i = 0; i < 4; i++)
            assert_int_equal(core_of(w, i), core[i]);
    }
}

/* Returns a pseudo-random factor from 0.3 to 1. */
static double by_chance(size_t i, size_t k)
{
    struct gen g = {.state = i * TURNS_MOST + k};
    return 0.3 + gen_below(&g, 701) / 1000.0;
}

/* Returns the weighted speedup of the current plan: the sum of IPC achieved / IPC alone. */
static double speedup_of(const struct smt_fixture *w)
{
    double sum = 0;
    for (size_t i = 0; i < w->t.plan->n_tasks; i++)
        sum += ipc_of(w, i) / w->alone(i);
    return sum;
}

/* Rows: CPUs, siblings, threads. The cores are full, partly empty, or have more threads than CPUs. */
TEST_F(of_the_pairings_tried_the_best_runs)
{
    static const unsigned rows[][3] = {{8, 2, 8},   {8, 2, 6},   {8, 2, 12}, {16, 4, 16},
                                       {32, 2, 32}, {16, 4, 13}, {8, 2, 5},  {4, 2, 3}};
    unsigned turned = 0;
    for (size_t row = 0; row < ASYM_LENGTH(rows); row++) {
        double speedup[ASYM_SMT_PAIRINGS] = {0}, best = 0;
        begin_on(w, "smt-sos", rows[row][0], rows[row][1], rows[row][2]);
        w->alone = two;
        w->beside = by_chance;
        advance_until(w, SAMPLE / 2);
        for (unsigned k = 0; k < ASYM_SMT_PAIRINGS; k++) {
            next_sample(w);
            best = ASYM_MAX(best, speedup[k] = speedup_of(w));
            advance_until(w, SAMPLE / 2 + (k + 1) * SAMPLE / 2 / ASYM_SMT_PAIRINGS);
        }
        next_sample(w);
        assert_true(speedup_of(w) >= best / 1.01 - 1e-9);
        assert_true(speedup_of(w) >= speedup[0] - 1e-9);
        turned += speedup_of(w) > speedup[0] + 1e-9;
    }
    assert_true(turned > 2);
}

/* A thread that sleeps in one of the pairings does not count in the comparison. */
TEST_F(a_sleeping_thread_does_not_decide)
{
    int core[4];
    predict(4, 2, 4, core);
    begin_on(w, "smt-sos", 4, 2, 4);
    w->alone = two;
    w->beside = by_a_quarter;
    advance_until(w, SAMPLE / 2);
    gen_load_share(w->t.load, 0, 0);
    advance_until(w, SAMPLE / 2 + SAMPLE / 2 / ASYM_SMT_PAIRINGS);
    gen_load_share(w->t.load, 0, 1);
    advance_until(w, SAMPLE);
    next_sample(w);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(core_of(w, i), core[i]);
}

/* Cores of 2 CPUs, and threads for all; every every_fast-th core is a fast one. */
static void pair_on(struct smt_fixture *w, unsigned n_cpus, unsigned llc_size, unsigned every_fast, unsigned n)
{
    begin_on(w, "smt-sos", n_cpus, 2, n);
    for (unsigned c = 0; c < n_cpus; c++) {
        w->t.machine.cpus[c].llc = (int16_t)(c / llc_size);
        w->t.machine.cpus[c].speed = c / 2 % every_fast == 0 ? 2000 : 1000;
    }
    assert_int_equal(asym_machine_finish(&w->t.machine), 0);
    w->alone = two;
    w->beside = by_chance;
    next_sample(w);
    int16_t llc[TURNS_MOST], type[TURNS_MOST];
    unsigned pairings = 0;
    advance_until(w, SAMPLE / 2);
    for (unsigned k = 0; k < 20; k++) {
        next_sample(w);
        for (size_t i = 0; i < n; i++) {
            const struct asym_plan_task *t = &w->t.plan->tasks[i];
            const struct asym_cpu *cpu = &w->t.machine.cpus[t->target];
            llc[i] = k == 0 ? cpu->llc : llc[i];
            type[i] = k == 0 ? cpu->type : type[i];
            assert_int_equal(cpu->llc, llc[i]);
            assert_int_equal(cpu->type, type[i]);
            assert_why(t->reason, "measured in pairing");
            assert_true(t->counted);
            pairings |= 1u << (unsigned)t->figure[0];
        }
    }
    assert_int_equal(pairings, 2 + 4 + 8 + 16);
}

TEST_F(pairings_are_of_one_cache_and_one_type)
{
    pair_on(w, 16, 8, 1, 16);
    pair_on(w, 16, 8, 2, 16);
    pair_on(w, 8, 4, 2, 16); /* each type has one core under an LLC: only the threads that share a CPU change */
}

TEST_F(icount_sos_pairs_and_leaves_shares_to_the_fetch_unit)
{
    begin_by_kind(w, "smt-icount-sos");
    set_nice(w, 0, -20);
    advance_until(w, SAMPLE);
    assert_int_equal(samples_alone(w, 0, 300), 0);
    assert_why(w->t.plan->tasks[0].reason, "fetch unit");
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(core_of(w, i) != core_of(w, j) || kind_of[i] != kind_of[j]);
    assert_non_null(asym_policy_find("smt-icount-sos")->refuses);
}

/* --- smt-icount --- */

TEST_F(icount_leaves_shares_to_the_fetch_unit_and_cannot_run_live)
{
    begin_on(w, "smt-icount", 4, 2, 4);
    set_nice(w, 0, -20);
    assert_int_equal(samples_alone(w, 0, 30), 0);
    assert_why(w->t.plan->tasks[0].reason, "fetch unit");
    assert_true(w->t.plan->tasks[0].figure[0] > 95);
    assert_non_null(asym_policy_find("smt-icount")->refuses);
    assert_null(asym_policy_find("smt-naive")->refuses);
}

TEST_MAIN
