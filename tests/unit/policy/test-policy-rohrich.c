/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of response-time, throughput and priority (Roehrich 2007, 3.1 to 3.3): the source's examples, and its open cases. */
#include <math.h>

#include <asym/policy.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/nice.h"
#include "support/policy-fixture.h"
#include "support/generate.h"
#include "support/reason-text.h"
#include "support/test.h"

static struct policy_fixture w;

/* n programs of a thread each. */
static void enter_many(unsigned n)
{
    for (unsigned k = 0; k < n; k++)
        policy_fixture_enter(&w, 1);
}

static void begin(const char *policy, const double *speeds, size_t n_cpus, unsigned n)
{
    policy_fixture_begin(&w, policy, speeds, n_cpus);
    enter_many(n);
}

/* Threads that may run on this CPU only have this mask. */
static struct asym_mask one_cpu;

static void only_cpu(unsigned cpu)
{
    one_cpu = (struct asym_mask){0};
    asym_mask_set(&one_cpu, cpu);
}

/* Put so many CPUs under an LLC, and so many on a node. */
static void set_domains(int per_llc, int per_node)
{
    for (int c = 0; c < (int)w.machine.n_cpus; c++) {
        w.machine.cpus[c].llc = (int16_t)(c / per_llc);
        w.machine.cpus[c].node = (int16_t)(c / per_node);
    }
    assert_int_equal(asym_machine_finish(&w.machine), 0);
}

/* Threads come and go at random. After each change the caller's check runs, and a second plan must move no thread. */
static void churn(const char *policy, unsigned seed, void (*check)(void))
{
    struct gen g = {.state = seed};
    double speeds[8];
    const size_t n = 2 + gen_below(&g, 7);
    for (size_t c = 0; c < n; c++)
        speeds[c] = 1 + gen_below(&g, 8);
    policy_fixture_begin(&w, policy, speeds, n);
    set_domains(seed % 4 < 2 ? 8 : 2, seed % 2 ? 8 : 4);
    for (unsigned k = 0; k < 100; k++) {
        if (k < 40 || gen_below(&g, 4) == 0) {
            const unsigned t = w.n_apps < 60 ? policy_fixture_enter(&w, 1) : gen_below(&g, w.n_apps);
            w.threads[t].nice = gen_below(&g, 3) == 0 ? (int)gen_below(&g, 40) - 20 : w.threads[t].nice;
            w.threads[t].here = true;
        } else {
            policy_fixture_leave(&w, gen_below(&g, w.n_apps));
        }
        policy_fixture_plan(&w);
        check();
        policy_fixture_plan_moves(&w, 0);
    }
}

TEST(a_nice_value_weighs_what_the_kernel_gives_it)
{
    assert_int_equal(asym_nice_weight(0), 1024);
    assert_int_equal(asym_nice_weight(-20), 88761);
    assert_int_equal(asym_nice_weight(19), 15);
    assert_int_equal(asym_nice_weight(-100), 88761);
    assert_int_equal(asym_nice_weight(100), 15);
    for (int nice = -20; nice < 19; nice++)
        assert_in_range(100 * asym_nice_weight(nice) / asym_nice_weight(nice + 1), 110, 140);
}

/* --- response-time --- */

static double load_of(int32_t cpu)
{
    double sum = 0;
    for (unsigned t = 0; t < w.n_threads; t++)
        if (w.threads[t].here && w.threads[t].answer.cpu == cpu)
            sum += asym_nice_weight(w.threads[t].nice);
    return sum / w.machine.cpus[cpu].speed;
}

/* 3.1.2. The timeslices have the ratios 15:20:15:5:1:30. No nice values have these ratios; the ones here are near enough. */
TEST(the_worked_example_of_response_time)
{
    static const double speeds[] = {250, 250, 500, 1000};
    /* timeslice, nice value, CPU (counted from 1); CPUs 1 and 2 are alike: -1 and -2 are one or the other */
    static const struct {
        double slice;
        int nice, cpu;
    } steps[] = {{150, -5, 4}, {200, -6, 4}, {150, -5, 3}, {50, 0, -1}, {10, 7, -2}, {300, -8, 4}};
    double before[4] = {0};
    policy_fixture_begin(&w, "response-time", speeds, ASYM_LENGTH(speeds));
    /* The example has arrivals only. Under one LLC CPU 3 would pull the first task in step 2: 75 instead of 87.5. */
    set_domains(1, 1);
    for (unsigned k = 0; k < ASYM_LENGTH(steps); k++) {
        for (int c = 0; c < 4; c++)
            assert_true(load_of(c) == before[c]);
        const unsigned t = policy_fixture_enter(&w, 1);
        w.threads[t].nice = steps[k].nice;
        policy_fixture_plan(&w);
        const int cpu = w.threads[t].answer.cpu + 1;
        if (steps[k].cpu > 0)
            assert_int_equal(cpu, steps[k].cpu);
        else
            assert_true(cpu == 1 || cpu == 2);
        assert_why(w.threads[t].answer.reason, "served soonest");
        /* The load is that of the source, and no thread is pulled: the gain in step 2 is less than the margin. */
        assert_int_equal(w.moved, 0);
        before[cpu - 1] += asym_nice_weight(steps[k].nice) / w.machine.cpus[cpu - 1].speed;
        const double scaled = asym_nice_weight(steps[k].nice) / 1024.0 * 50;
        assert_true(fabs(scaled - steps[k].slice) <= 0.08 * steps[k].slice);
    }
    assert_true(policy_fixture_cpu(&w, 3) != policy_fixture_cpu(&w, 4));
}

/* 3.1: both tasks on a CPU of 1000 MHz are done after 2 s on average, beside one of 200 MHz after 3 s. */
TEST(a_slow_cpu_stays_idle_while_a_fast_one_has_several)
{
    static const double speeds[] = {200, 1000};
    begin("response-time", speeds, 2, 2);
    policy_fixture_plan(&w);
    assert_int_equal(w.count[1], 2);
    enter_many(3);
    policy_fixture_plan(&w);
    assert_in_range(w.count[1], 4, 5); /* both CPUs are equally good for the fifth */
    policy_fixture_enter(&w, 1);
    policy_fixture_plan(&w);
    assert_int_equal(w.count[1], 5);
    assert_int_equal(w.count[0], 1);
}

/* Figure 3.1: the CPU of 2200 MHz pulls a task that is alone on a CPU of 825 MHz, though it already has a task. */
TEST(a_faster_cpu_pulls_when_a_thread_leaves)
{
    static const double speeds[] = {275, 825, 2200};
    begin("response-time", speeds, 3, 4);
    w.threads[3].allowed = &w.machine.types[1].cpus; /* at 825 MHz */
    policy_fixture_plan(&w);
    assert_int_equal(w.count[2], 3);
    w.threads[3].allowed = &w.machine.usable;
    policy_fixture_plan_moves(&w, 0); /* 4 at 2200 MHz are served worse than 1 at 825 */
    policy_fixture_leave(&w, 0);
    policy_fixture_plan_moves(&w, 0); /* 3 still are, with 733 MHz each */
    policy_fixture_leave(&w, 1);
    policy_fixture_plan(&w);
    assert_int_equal(policy_fixture_cpu(&w, 3), 2);
    assert_int_equal(w.moved, 1);
    assert_why(w.threads[3].answer.reason, "moved to less load");
    assert_float_equal((float)w.threads[3].answer.figure[0], 2 * 275 / 2200.0F, 1e-6F);
    assert_float_equal((float)w.threads[3].answer.figure[1], 275 / 825.0F, 1e-6F);
}

TEST(a_pull_gains_more_than_the_margin_of_its_distance)
{
    /* The fast CPU is a little too slow, or fast enough, to take a second thread from the slow one: 1 - 2 / speed is 18 % from
       another node, 9 % from another LLC, 0 under one LLC. */
    static const struct {
        int per_llc, per_node;
        double speed;
        int32_t cpu;
    } rows[] = {{1, 1, 2.41, 0}, {1, 1, 2.47, 1}, {1, 2, 2.17, 0}, {1, 2, 2.23, 1}, {2, 2, 2, 0}, {2, 2, 2.01, 1}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const double speeds[] = {1, rows[i].speed};
        policy_fixture_begin(&w, "response-time", speeds, 2);
        set_domains(rows[i].per_llc, rows[i].per_node);
        policy_fixture_enter(&w, 1);
        const unsigned t = policy_fixture_enter(&w, 1);
        w.threads[t].allowed = &w.machine.slow;
        policy_fixture_plan(&w);
        w.threads[t].allowed = &w.machine.usable;
        policy_fixture_plan(&w);
        assert_int_equal(policy_fixture_cpu(&w, t), rows[i].cpu);
    }
}

/* Roehrich 2007, 3.1.3: when the copy on the CPU of speed 8 ends, that CPU pulls the one from the CPU of speed 7. */
TEST(the_fastest_cpu_pulls_from_the_second_fastest)
{
    static const double speeds[] = {7, 8};
    begin("response-time", speeds, 2, 1);
    policy_fixture_plan(&w);
    policy_fixture_enter(&w, 1);
    policy_fixture_plan(&w);
    assert_int_equal(policy_fixture_cpu(&w, 0), 1);
    assert_int_equal(policy_fixture_cpu(&w, 1), 0);
    policy_fixture_leave(&w, 0);
    policy_fixture_plan(&w);
    assert_int_equal(policy_fixture_cpu(&w, 1), 1);
    assert_int_equal(w.moved, 1);
    policy_fixture_plan_moves(&w, 0);
}

/* Two LLCs of a slow and a fast CPU each: a pull from the other LLC needs more gain than one under the same LLC. */
TEST(a_cpu_pulls_from_afar_what_gains_the_margin)
{
    static const double speeds[] = {1, 1.5, 1, 1.5};
    policy_fixture_begin(&w, "response-time", speeds, 4);
    set_domains(2, 2);
    only_cpu(1);
    for (unsigned k = 0; k < 3; k++)
        w.threads[policy_fixture_enter(&w, 1)].allowed = &one_cpu;
    policy_fixture_plan(&w);
    for (unsigned k = 0; k < 3; k++)
        w.threads[k].allowed = &w.machine.usable;
    policy_fixture_plan(&w);
    /* 3 / 1.5 on CPU 1: one goes to CPU 3 of the other LLC (0.67), one to CPU 0 of its own (1 instead of 1.33). */
    assert_int_equal(w.count[0], 1);
    assert_int_equal(w.count[1], 1);
    assert_int_equal(w.count[3], 1);
}

/* A known thread does not move for less than the margin; a new thread has no margin. */
TEST(a_new_thread_goes_to_the_best_cpu)
{
    static const double speeds[] = {1, 1.15};
    policy_fixture_begin(&w, "response-time", speeds, 2);
    set_domains(1, 1);
    only_cpu(0);
    policy_fixture_enter(&w, 1);
    w.threads[0].allowed = &one_cpu;
    policy_fixture_plan(&w);
    w.threads[0].allowed = &w.machine.usable;
    policy_fixture_plan(&w);
    assert_int_equal(policy_fixture_cpu(&w, 0), 0);
    begin("response-time", speeds, 2, 1);
    w.threads[0].preferred_cpu = 0;
    policy_fixture_plan(&w);
    assert_int_equal(policy_fixture_cpu(&w, 0), 1);
}

/* Among equally good CPUs new threads stay where they are, even if they are many. */
TEST(new_threads_stay_on_an_equally_good_cpu)
{
    static const char *const policies[] = {"response-time", "throughput", "priority"};
    for (size_t p = 0; p < ASYM_LENGTH(policies); p++) {
        double speeds[64];
        for (unsigned n = 1; n <= 64; n *= 4) {
            for (unsigned c = 0; c < 64; c++)
                speeds[c] = c < 2 ? 0.1 : 1;
            policy_fixture_begin(&w, policies[p], speeds, 64);
            for (unsigned k = 0; k < ASYM_MIN(n, 62); k++)
                w.threads[policy_fixture_enter(&w, 1)].preferred_cpu = (int32_t)(63 - k);
            policy_fixture_plan_moves(&w, 0);
        }
    }
}

/*
 * The load is steady, but its measured shares vary a little each time; no variation justifies a migration. serial-first
 * (test-policy-serial-first.c) is here, too.
 */
TEST(noise_moves_no_thread)
{
    static const char *const policies[] = {"response-time", "throughput", "priority", "serial-first"};
    static const double speeds[] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (size_t p = 0; p < ASYM_LENGTH(policies); p++) {
        struct gen g = {.state = 7};
        policy_fixture_begin(&w, policies[p], speeds, 8);
        for (unsigned k = 0; k < 13; k++)
            policy_fixture_enter(&w, 1 + k % 3);
        policy_fixture_plan(&w);
        for (unsigned k = 0; k < 50; k++) {
            for (unsigned t = 0; t < w.n_threads; t++)
                w.threads[t].runnable = 0.8 + gen_below(&g, 21) / 100.0;
            for (unsigned a = 0; a < w.n_apps; a++)
                w.apps[a].runnable = w.apps[a].n * (0.8 + gen_below(&g, 21) / 100.0);
            policy_fixture_plan_moves(&w, 0);
        }
    }
}

/* A thread beside a busy sibling has less speed, and slows the sibling: the formula is that of CPUs on cores of their own. */
static void check_response(void)
{
    if (w.machine.n_cores < asym_mask_count(&w.machine.usable))
        return;
    for (unsigned t = 0; t < w.n_threads; t++) {
        const struct policy_fixture_thread *x = &w.threads[t];
        if (!x->here || asym_mask_empty(&w.machine.slow))
            continue;
        const double weight = asym_nice_weight(x->nice), load = load_of(x->answer.cpu);
        const struct asym_cpu *here = &w.machine.cpus[x->answer.cpu];
        const double share = 0.5 * ASYM_MAX(weight, 1024) / here->speed;
        ASYM_MASK_FOREACH (c, x->allowed) {
            const struct asym_cpu *there = &w.machine.cpus[c];
            const double most = there->llc == here->llc ? 1e-6 : there->node == here->node ? 0.09 : 0.18;
            const double margin = ASYM_MIN(most * load, share);
            assert_true(there == here || load_of(c) + weight / there->speed >= load - margin - 1e-6);
        }
    }
}

TEST(no_thread_would_be_served_sooner_elsewhere)
{
    for (unsigned seed = 0; seed < 120; seed++)
        churn("response-time", seed, check_response);
}

TEST(threads_of_one_cpu_share_it_with_those_that_may_choose)
{
    static const double speeds[] = {1, 1, 4};
    begin("response-time", speeds, 3, 6);
    only_cpu(0);
    for (unsigned t = 4; t < 6; t++)
        w.threads[t].allowed = &one_cpu;
    policy_fixture_plan(&w);
    assert_int_equal(w.count[0], 2);
    assert_int_equal(w.count[2], 4);
    for (unsigned t = 4; t < 6; t++)
        assert_why(w.threads[t].answer.reason, "none of its CPUs is fast");
}

/* Two LLCs of four CPUs each, CPUs 0 and 4 are fast: a pull stays under its LLC if a CPU there is as good. */
TEST(of_equal_cpus_the_one_under_the_same_llc_pulls)
{
    static const double speeds[] = {4, 1, 1, 1, 4, 1, 1, 1};
    for (int preferred_cpu = 1; preferred_cpu < 8; preferred_cpu += 4) {
        policy_fixture_begin(&w, "response-time", speeds, 8);
        set_domains(4, 8);
        only_cpu((unsigned)preferred_cpu);
        const unsigned t = policy_fixture_enter(&w, 1);
        w.threads[t].allowed = &one_cpu;
        policy_fixture_plan(&w);
        w.threads[t].allowed = &w.machine.usable;
        policy_fixture_plan(&w);
        assert_int_equal(policy_fixture_cpu(&w, t), preferred_cpu / 4 * 4);
    }
}

/* --- throughput --- */

/* 3.2.1. CPU 0 runs at 800 MHz, CPU 1 at 600. */
static const double two_speeds[] = {800, 600};
static const unsigned splits[][2] = {{0, 0}, {1, 0}, {1, 1}, {2, 1}, {2, 2}, {3, 2}, {3, 3}, {4, 3}, {5, 3}};

static void expect_split(unsigned n)
{
    const bool both = n == 8 && w.count[0] == 4; /* 5:3 and 4:4 are equally good */
    assert_int_equal(w.count[0] + w.count[1], n);
    assert_int_equal(w.count[0], both ? 4 : splits[n][0]);
}

TEST(the_splits_of_throughput)
{
    /* all at once */
    for (unsigned n = 1; n < ASYM_LENGTH(splits); n++) {
        begin("throughput", two_speeds, 2, n);
        policy_fixture_plan(&w);
        expect_split(n);
        policy_fixture_plan_moves(&w, 0);
    }
    /* one by one, and away again */
    policy_fixture_begin(&w, "throughput", two_speeds, 2);
    for (unsigned n = 1; n < ASYM_LENGTH(splits); n++) {
        enter_many(1);
        policy_fixture_plan(&w);
        expect_split(n);
        assert_true(w.moved <= 1);
    }
    for (unsigned n = 7; n > 0; n--) {
        policy_fixture_leave(&w, n);
        policy_fixture_plan(&w);
        expect_split(n);
        assert_true(w.moved <= 1);
    }
}

TEST(of_two_splits_as_good_the_one_there_is_stays)
{
    for (unsigned fast = 4; fast <= 5; fast++) {
        begin("throughput", two_speeds, 2, 8);
        for (unsigned t = 0; t < 8; t++)
            w.threads[t].allowed = t < fast ? &w.machine.fast : &w.machine.slow;
        policy_fixture_plan(&w);
        for (unsigned t = 0; t < 8; t++)
            w.threads[t].allowed = &w.machine.usable;
        policy_fixture_plan_moves(&w, 0);
        assert_int_equal(w.count[0], fast);
    }
}

/* For two CPUs of any ratio the count is within one thread of n * y / (1 + y), and no split has a ratio much nearer to y. */
TEST(the_faster_of_two_gets_its_share)
{
    for (double y = 1.1; y < 9; y += 0.19) {
        const double speeds[] = {1, y};
        for (unsigned n = 2; n < 40; n++) {
            begin("throughput", speeds, 2, n);
            policy_fixture_plan(&w);
            const unsigned x = w.count[1];
            assert_true(x < n && 2 * x >= n);
            assert_true(x == n - 1 || fabs(x - n * y / (1 + y)) <= 1);
            const double off = fabs(x / (double)(n - x) - y);
            const double more = x + 1 < n ? fabs((x + 1) / (double)(n - x - 1) - y) : off;
            const double less = 2 * x - 2 >= n ? fabs((x - 1) / (double)(n - x + 1) - y) : off;
            const double step = (x + 1.0) / (n - x) - (x - 1.0) / (n - x + 1.0);
            assert_true(off <= more + 0.25 * step && off <= less + 0.25 * step);
        }
    }
}

/* Figure 3.2: four CPUs of 275 and four of 2200 MHz, six tasks; then tasks leave the fast ones. */
TEST(no_cpu_has_two_while_another_idles)
{
    static const double speeds[] = {275, 275, 275, 275, 2200, 2200, 2200, 2200};
    begin("throughput", speeds, 8, 6);
    policy_fixture_plan(&w);
    for (int c = 0; c < 8; c++)
        assert_in_range(w.count[c], c >= 4, 1);
    for (unsigned t = 0; t < 6; t++)
        assert_why(w.threads[t].answer.reason, "a CPU to itself");
    for (unsigned t = 0; t < 6; t++) {
        if (policy_fixture_cpu(&w, t) < 4)
            continue;
        /* A thread that leaves a fast CPU makes room for one from a slow CPU, and no other thread moves. */
        w.threads[t].here = false;
        policy_fixture_plan_moves(&w, 1);
        break;
    }
    for (int c = 4; c < 8; c++)
        assert_int_equal(w.count[c], 1);
    enter_many(4);
    policy_fixture_plan_moves(&w, 0);
    for (int c = 0; c < 8; c++)
        assert_in_range(w.count[c], 1, 1 + (c >= 4));
}

static void check_throughput(void)
{
    const struct asym_machine *m = &w.machine;
    for (int a = 0; a < (int)m->n_cpus; a++) {
        for (int b = 0; b < (int)m->n_cpus; b++) {
            if (m->cpus[a].speed < m->cpus[b].speed)
                assert_true(w.count[a] <= w.count[b]);
            if (w.count[a] == 0)
                assert_true(w.count[b] <= 1);
            if (m->cpus[a].speed == m->cpus[b].speed)
                assert_true(w.count[a] <= w.count[b] + 1);
        }
    }
}

TEST(a_slower_cpu_never_has_more)
{
    for (unsigned seed = 0; seed < 50; seed++)
        churn("throughput", seed, check_throughput);
}

/* --- priority --- */

static bool goes_before(const struct policy_fixture_thread *x, const struct policy_fixture_thread *y)
{
    return x->nice != y->nice ? x->nice < y->nice : x->start < y->start;
}

static double effective_speed(const struct policy_fixture_thread *x)
{
    return w.machine.cpus[x->answer.cpu].speed / w.count[x->answer.cpu];
}

/* For threads that may run anywhere. */
static void check_priority(void)
{
    double fastest = 0;
    for (unsigned c = 0; c < w.machine.n_cpus; c++)
        fastest = ASYM_MAX(fastest, w.machine.cpus[c].speed);
    for (unsigned i = 0; i < w.n_threads; i++) {
        const struct policy_fixture_thread *x = &w.threads[i];
        bool highest = x->here;
        for (unsigned k = 0; x->here && k < w.n_threads; k++) {
            const struct policy_fixture_thread *y = &w.threads[k];
            if (!y->here || k == i)
                continue;
            highest = highest && goes_before(x, y);
            if (!goes_before(x, y))
                continue;
            assert_true(w.machine.cpus[x->answer.cpu].speed >= w.machine.cpus[y->answer.cpu].speed);
            assert_true(effective_speed(x) >= effective_speed(y) - 1e-9);
        }
        assert_true(!highest || w.machine.cpus[x->answer.cpu].speed == fastest);
    }
}

static void check_priority_and_ratios(void)
{
    const struct asym_machine *m = &w.machine;
    check_priority();
    for (int f = 0; f < (int)m->n_cpus; f++) {
        for (int s = 0; s < (int)m->n_cpus; s++) {
            if (m->cpus[s].type != m->cpus[f].type + 1)
                continue;
            const unsigned ratio = (unsigned)(m->cpus[f].speed / m->cpus[s].speed + 1e-6);
            assert_true(w.count[f] <= ASYM_MAX(1, ratio * w.count[s]));
            assert_true(w.count[f] > 0 || w.count[s] == 0);
        }
    }
}

TEST(lower_priority_never_has_more_speed)
{
    for (unsigned seed = 0; seed < 50; seed++)
        churn("priority", seed, check_priority_and_ratios);
}

/* The hardware threads of a core are of two types: the slower one has no CPU that is the first of its core. */
TEST(priority_plans_for_cores_of_two_types)
{
    static const double speeds[] = {2, 1, 2, 1};
    begin("priority", speeds, 4, 1);
    for (unsigned c = 0; c < 4; c++)
        w.machine.cpus[c].core = (int16_t)(c / 2);
    assert_int_equal(asym_machine_finish(&w.machine), 0);
    for (unsigned k = 1; k <= 6; k++) {
        enter_many(1);
        policy_fixture_plan(&w);
        assert_true(w.count[0] >= w.count[1] && w.count[2] >= w.count[3]);
    }
}

/*
 * Figure 3.5: a higher number is a higher priority. CPU 1 and CPU 2 have a power ratio of 1, as the text says; CPU 1 and
 * CPU 0 one of 2, or it could not call its third step balanced.
 */
TEST(the_five_steps_of_priority)
{
    static const double speeds[] = {400, 800, 1000};
    static const int32_t after[][5] = {{0, 1, 2, -1, -1}, {0, 1, 1, 2, -1}, {0, 1, 1, 2, 2}};
    begin("priority", speeds, 3, 2);
    for (unsigned k = 0; k < 3; k++) {
        enter_many(1);
        for (unsigned t = 0; t < w.n_threads; t++)
            w.threads[t].nice = 5 - (int)t;
        /* the fourth enters on CPU 2, the fifth on CPU 1 */
        if (k > 0)
            w.threads[2 + k].preferred_cpu = k == 1 ? 2 : 1;
        policy_fixture_plan(&w);
        for (unsigned t = 0; t < 3 + k; t++)
            assert_int_equal(policy_fixture_cpu(&w, t), after[k][t]);
        /* Task 3 moves to CPU 1, then the fifth to CPU 2: both steps move the task that the source moves. */
        assert_int_equal(w.moved, k > 0);
        check_priority_and_ratios();
        policy_fixture_plan_moves(&w, 0);
    }
    assert_why(w.threads[4].answer.reason, "priority");
    assert_float_equal((float)w.threads[4].answer.figure[0], 1, 1e-6F);
    assert_float_equal((float)w.threads[4].answer.figure[1], 5, 1e-6F);
}

/* 3.3.1: 800 and 600 MHz. Under strict best effort the first task would change CPUs with every task that comes. */
TEST(the_highest_priority_does_not_follow_arrivals)
{
    policy_fixture_begin(&w, "priority", two_speeds, 2);
    for (unsigned n = 1; n <= 12; n++) {
        enter_many(1);
        policy_fixture_plan(&w);
        assert_int_equal(policy_fixture_cpu(&w, 0), 0);
        assert_true(w.moved <= 1);
        assert_true(w.count[0] <= w.count[1] || n == 1);
        check_priority();
    }
    for (unsigned k = 0; k < 20; k++) {
        /* the last comes and goes */
        w.threads[11].here = k % 2;
        policy_fixture_plan(&w);
        assert_int_equal(policy_fixture_cpu(&w, 0), 0);
        assert_true(w.moved <= 1);
    }
}

/* --- priority with neighbour_period --- */

static struct gen_params_room every_2500ms;

static void begin_neighbours(const double *speeds, size_t n)
{
    policy_fixture_begin(&w, "priority", speeds, n);
    every_2500ms = gen_params_with(w.policy, "neighbour_period", "2500ms");
    w.params = &every_2500ms;
    policy_fixture_plan(&w); /* the first pulls, of no thread */
}

TEST(a_thread_hops_one_cpu_in_a_neighbour_period)
{
    static const double speeds[] = {4, 1, 3, 2}; /* in the order of speed: 0, 2, 3, 1 */
    static const int32_t expected[] = {1, 3, 2, 0, 0};
    begin_neighbours(speeds, 4);
    w.threads[policy_fixture_enter(&w, 1)].preferred_cpu = 1;
    for (size_t k = 0; k < ASYM_LENGTH(expected); k++) {
        for (unsigned i = 0; i < 24; i++) { /* 2.4 s */
            policy_fixture_plan(&w);
            assert_int_equal(policy_fixture_cpu(&w, 0), expected[k]);
            assert_int_equal(w.moved, 0);
        }
        policy_fixture_plan_moves(&w, k < 3);
    }
}

/* The speeds of a record's machine can be any: with a ratio without a bound the counts would not fit in 64 bits. */
TEST(the_ratio_of_two_speeds_has_a_bound)
{
    static const double speeds[] = {1, 1e300};
    begin("priority", speeds, 2, 6);
    policy_fixture_plan(&w);
    assert_int_equal(w.count[0], 1);
    assert_int_equal(w.count[1], 5);
}

/* Figure 3.5, the CPU of each task after the pulls: as the_five_steps_of_priority, with the pulls of neighbours. */
TEST(neighbours_make_the_five_steps)
{
    static const double speeds[] = {400, 800, 1000};
    static const int32_t after[][5] = {{0, 1, 2, -1, -1}, {0, 1, 1, 2, -1}, {0, 1, 1, 2, 2}};
    static const int32_t enters[] = {0, 1, 2, 2, 1};
    begin_neighbours(speeds, 3);
    enter_many(2);
    for (unsigned k = 0; k < 3; k++) {
        enter_many(1);
        for (unsigned t = 0; t < w.n_threads; t++) {
            w.threads[t].nice = 5 - (int)t;
            w.threads[t].preferred_cpu = t > (k == 0 ? 0 : k + 1) || k == 0 ? enters[t] : w.threads[t].preferred_cpu;
        }
        policy_fixture_plan_after(&w, 2500 * ASYM_MSEC);
        for (unsigned t = 0; t < 3 + k; t++)
            assert_int_equal(policy_fixture_cpu(&w, t), after[k][t]);
        assert_int_equal(w.moved, k > 0);
        policy_fixture_plan_after(&w, 2500 * ASYM_MSEC);
        assert_int_equal(w.moved, 0);
    }
}

TEST(a_higher_priority_changes_places_with_its_faster_neighbour)
{
    static const double speeds[] = {1, 2, 3};
    begin_neighbours(speeds, 3);
    for (unsigned k = 0; k < 3; k++) {
        const unsigned t = policy_fixture_enter(&w, 1);
        w.threads[t].preferred_cpu = (int32_t)(2 - k); /* the lowest priority on the fastest CPU */
        w.threads[t].nice = 3 - (int)k;
    }
    for (unsigned k = 0; k < 4; k++)
        policy_fixture_plan_after(&w, 2500 * ASYM_MSEC);
    assert_int_equal(w.moved, 0);
    for (int32_t t = 0; t < 3; t++)
        assert_int_equal(policy_fixture_cpu(&w, (unsigned)t), t);
}

/* Threads anywhere, of any priority: the pulls end, and then they have the counts and the order that all pulls end in. */
TEST(pulls_of_neighbours_end)
{
    for (unsigned seed = 0; seed < 50; seed++) {
        struct gen g = {.state = seed};
        double speeds[8];
        for (size_t c = 0; c < 8; c++)
            speeds[c] = 1 + gen_below(&g, 8);
        begin_neighbours(speeds, 8);
        for (unsigned n = 1 + gen_below(&g, 24), k = 0; k < n; k++) {
            const unsigned t = policy_fixture_enter(&w, 1);
            w.threads[t].preferred_cpu = (int32_t)gen_below(&g, 8);
            w.threads[t].nice = (int)gen_below(&g, 40) - 20;
        }
        for (unsigned k = 0; k < 100; k++)
            policy_fixture_plan_after(&w, 2500 * ASYM_MSEC);
        assert_int_equal(w.moved, 0);
        check_priority_and_ratios();
    }
}

TEST(a_fast_cpu_has_as_many_as_its_ratio_allows)
{
    /* 0.3 / 0.1 is 2.9999999999999996 as a double, and counts as 3. */
    static const double speeds[][2] = {{300, 1000}, {0.1, 0.3}};
    static const unsigned fast[] = {0, 1, 1, 2, 3, 3, 4, 5, 6};
    for (unsigned n = 1; n < ASYM_LENGTH(speeds) * ASYM_LENGTH(fast); n++) {
        begin("priority", speeds[n / ASYM_LENGTH(fast)], 2, n % ASYM_LENGTH(fast));
        policy_fixture_plan(&w);
        assert_int_equal(w.count[1], fast[n % ASYM_LENGTH(fast)]);
        check_priority_and_ratios();
    }
}

/* Figure 3.6: when the second of four leaves, the others move up by one CPU each, of eight. */
TEST(the_next_threads_move_up)
{
    static const double speeds[] = {275, 550, 825, 1100, 1375, 1650, 1925, 2200};
    begin("priority", speeds, 8, 4);
    policy_fixture_plan(&w);
    for (int t = 0; t < 4; t++)
        assert_int_equal(policy_fixture_cpu(&w, (unsigned)t), 7 - t);
    policy_fixture_leave(&w, 1);
    policy_fixture_plan(&w);
    assert_int_equal(policy_fixture_cpu(&w, 0), 7);
    assert_int_equal(policy_fixture_cpu(&w, 2), 6);
    assert_int_equal(policy_fixture_cpu(&w, 3), 5);
}

/* Two types of four CPUs: a thread that comes or goes moves few others, wherever it stands in the order. */
TEST(a_change_moves_few)
{
    static const double speeds[] = {1, 1, 1, 1, 2, 2, 2, 2};
    struct gen g = {.state = 3};
    begin("priority", speeds, 8, 40);
    policy_fixture_plan(&w);
    unsigned sum = 0;
    for (unsigned k = 0; k < 300; k++) {
        const unsigned t = gen_below(&g, 40);
        w.threads[t].here = !w.threads[t].here;
        policy_fixture_plan(&w);
        check_priority_and_ratios();
        /* More threads than the few at the ends of types and counts move only if each CPU of a type gets one more. */
        assert_true(w.moved <= 8);
        sum += w.moved;
    }
    assert_true(sum <= 1.85 * 300);
}

TEST(nice_counts_before_start_time)
{
    begin("priority", two_speeds, 2, 2);
    policy_fixture_plan(&w);
    assert_int_equal(policy_fixture_cpu(&w, 0), 0);
    w.threads[1].nice = -1;
    policy_fixture_plan(&w);
    assert_int_equal(policy_fixture_cpu(&w, 1), 0);
    assert_int_equal(policy_fixture_cpu(&w, 0), 1);
    w.threads[1].nice = 0;
    w.threads[0].start = 100;
    policy_fixture_plan(&w);
    assert_int_equal(policy_fixture_cpu(&w, 1), 0);
}

TEST_MAIN
