/* SPDX-License-Identifier: GPL-2.0-or-later */
/* response-time, throughput and priority (Roehrich 2007, 3.1 to 3.3): the source's examples, and what it leaves open. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <asym/policy.h>

#include "base/macro.h"
#include "base/mask.h"
#include "policy/weight.h"
#include "support/asked.h"
#include "support/generate.h"

static struct asked w;

/* Threads come and go at random. After each change: what the caller checks, and a second plan that moves nobody. */
static void churn(const char *policy, unsigned seed, void (*check)(void))
{
    struct gen g = {.state = seed};
    double speeds[8];
    const size_t n = 2 + gen_below(&g, 7);
    for (size_t c = 0; c < n; c++)
        speeds[c] = 1 + gen_below(&g, 8);
    asked_begin(&w, policy, speeds, n);
    for (unsigned k = 0; k < 100; k++) {
        if (k < 40 || gen_below(&g, 4) == 0) {
            const unsigned t = w.n_apps < 60 ? asked_enter(&w, 1) : gen_below(&g, w.n_apps);
            w.threads[t].nice = gen_below(&g, 3) == 0 ? (int)gen_below(&g, 40) - 20 : w.threads[t].nice;
            w.threads[t].here = true;
        } else {
            asked_leave(&w, gen_below(&g, w.n_apps));
        }
        asked_plan(&w);
        check();
        asked_plan(&w);
        assert_int_equal(w.moved, 0);
    }
}

static void a_nice_value_weighs_what_the_kernel_gives_it(void **state)
{
    (void)state;
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

/* 3.1.2. Its timeslices stand in the ratios 15:20:15:5:1:30, in which no nice values stand: these are near enough. */
static void the_worked_example_of_response_time(void **state)
{
    (void)state;
    static const double speeds[] = {250, 250, 500, 1000};
    /* timeslice, nice value, CPU (counted from 1); CPUs 1 and 2 are alike: -1 and -2 are one or the other */
    static const struct {
        double slice;
        int nice, cpu;
    } steps[] = {{150, -5, 4}, {200, -6, 4}, {150, -5, 3}, {50, 0, -1}, {10, 7, -2}, {300, -8, 4}};
    double before[4] = {0};
    asked_begin(&w, "response-time", speeds, ASYM_LENGTH(speeds));
    for (unsigned k = 0; k < ASYM_LENGTH(steps); k++) {
        for (int c = 0; c < 4; c++)
            assert_true(load_of(c) == before[c]);
        const unsigned t = asked_enter(&w, 1);
        w.threads[t].nice = steps[k].nice;
        asked_plan(&w);
        const int cpu = w.threads[t].answer.cpu + 1;
        if (steps[k].cpu > 0)
            assert_int_equal(cpu, steps[k].cpu);
        else
            assert_true(cpu == 1 || cpu == 2);
        assert_int_equal(w.threads[t].answer.reason, ASYM_WHY_BEST_RESPONSE);
        /* the load is what the source adds, and nobody is pulled: 75 instead of 87.5 in step 2 is less than the margin */
        assert_int_equal(w.moved, 0);
        before[cpu - 1] += asym_nice_weight(steps[k].nice) / w.machine.cpus[cpu - 1].speed;
        const double scaled = asym_nice_weight(steps[k].nice) / 1024.0 * 50;
        assert_true(fabs(scaled - steps[k].slice) <= 0.08 * steps[k].slice);
    }
    assert_true(asked_cpu(&w, 3) != asked_cpu(&w, 4));
}

/* 3.1: both tasks on a CPU of 1000 MHz are done after 2 s on average, beside one of 200 MHz after 3 s. */
static void a_slow_cpu_stays_idle_while_a_fast_one_has_several(void **state)
{
    (void)state;
    static const double speeds[] = {200, 1000};
    asked_begin(&w, "response-time", speeds, 2);
    asked_enter(&w, 1);
    asked_enter(&w, 1);
    asked_plan(&w);
    assert_int_equal(w.count[1], 2);
    for (unsigned k = 0; k < 3; k++)
        asked_enter(&w, 1);
    asked_plan(&w);
    assert_in_range(w.count[1], 4, 5); /* the fifth has one as good as the other */
    asked_enter(&w, 1);
    asked_plan(&w);
    assert_int_equal(w.count[1], 5);
    assert_int_equal(w.count[0], 1);
}

/* Figure 3.1: who is alone on a CPU of 825 MHz is pulled to the one of 2200 MHz, though that has a task already. */
static void a_faster_cpu_pulls_when_somebody_leaves(void **state)
{
    (void)state;
    static const double speeds[] = {275, 825, 2200};
    asked_begin(&w, "response-time", speeds, 3);
    for (unsigned k = 0; k < 4; k++)
        asked_enter(&w, 1);
    w.threads[3].may = &w.machine.types[1].cpus; /* at 825 MHz */
    asked_plan(&w);
    assert_int_equal(w.count[2], 3);
    w.threads[3].may = &w.machine.usable;
    asked_plan(&w);
    assert_int_equal(w.moved, 0); /* 4 at 2200 MHz are served worse than 1 at 825 */
    asked_leave(&w, 0);
    asked_plan(&w);
    assert_int_equal(w.moved, 0); /* 3 still are, with 733 MHz each */
    asked_leave(&w, 1);
    asked_plan(&w);
    assert_int_equal(asked_cpu(&w, 3), 2);
    assert_int_equal(w.moved, 1);
    assert_int_equal(w.threads[3].answer.reason, ASYM_WHY_PULLED);
    assert_float_equal((float)w.threads[3].answer.figure[0], 2 * 275 / 2200.0F, 1e-6F);
    assert_float_equal((float)w.threads[3].answer.figure[1], 275 / 825.0F, 1e-6F);
}

static void a_pull_gains_more_than_the_margin(void **state)
{
    (void)state;
    /* the fast CPU is a little too slow, or fast enough, to take a second thread from the slow one: 1 - 2 / speed is 18 % */
    static const struct {
        double speed;
        int32_t cpu;
    } rows[] = {{2.41, 0}, {2.47, 1}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const double speeds[] = {1, rows[i].speed};
        asked_begin(&w, "response-time", speeds, 2);
        asked_enter(&w, 1);
        const unsigned t = asked_enter(&w, 1);
        w.threads[t].may = &w.machine.slow;
        asked_plan(&w);
        w.threads[t].may = &w.machine.usable;
        asked_plan(&w);
        assert_int_equal(asked_cpu(&w, t), rows[i].cpu);
    }
}

/* Who is there stays for less than the margin; who is new has nothing to lose. */
static void who_is_new_goes_where_it_is_best(void **state)
{
    (void)state;
    static const double speeds[] = {1, 1.15};
    static struct asym_mask one;
    asked_begin(&w, "response-time", speeds, 2);
    one = (struct asym_mask){0};
    asym_mask_set(&one, 0);
    asked_enter(&w, 1);
    w.threads[0].may = &one;
    asked_plan(&w);
    w.threads[0].may = &w.machine.usable;
    asked_plan(&w);
    assert_int_equal(asked_cpu(&w, 0), 0);
    asked_begin(&w, "response-time", speeds, 2);
    asked_enter(&w, 1);
    w.threads[0].home = 0;
    asked_plan(&w);
    assert_int_equal(asked_cpu(&w, 0), 1);
}

/* Of CPUs that are as good, newcomers stay where they are, many of them too. */
static void newcomers_stay_at_home_where_that_is_as_good(void **state)
{
    (void)state;
    static const char *const policies[] = {"response-time", "throughput", "priority"};
    for (size_t p = 0; p < ASYM_LENGTH(policies); p++) {
        double speeds[64];
        for (unsigned n = 1; n <= 64; n *= 4) {
            for (unsigned c = 0; c < 64; c++)
                speeds[c] = c < 2 ? 0.1 : 1;
            asked_begin(&w, policies[p], speeds, 64);
            for (unsigned k = 0; k < ASYM_MIN(n, 62); k++)
                w.threads[asked_enter(&w, 1)].home = (int32_t)(63 - k);
            asked_plan(&w);
            assert_int_equal(w.moved, 0);
        }
    }
}

/* A steady load of which shares are measured a little differently each time; nothing in it is worth a migration. */
static void noise_moves_nobody(void **state)
{
    (void)state;
    static const char *const policies[] = {"response-time", "throughput", "priority"};
    static const double speeds[] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (size_t p = 0; p < ASYM_LENGTH(policies); p++) {
        struct gen g = {.state = 7};
        asked_begin(&w, policies[p], speeds, 8);
        for (unsigned k = 0; k < 13; k++)
            asked_enter(&w, 1 + k % 3);
        asked_plan(&w);
        for (unsigned k = 0; k < 50; k++) {
            for (unsigned t = 0; t < w.n_threads; t++)
                w.threads[t].runnable = 0.9 + gen_below(&g, 11) / 100.0;
            for (unsigned a = 0; a < w.n_apps; a++)
                w.apps[a].runnable = w.apps[a].n * (0.9 + gen_below(&g, 11) / 100.0);
            asked_plan(&w);
            assert_int_equal(w.moved, 0);
        }
    }
}

static void check_response(void)
{
    for (unsigned t = 0; t < w.n_threads; t++) {
        const struct asked_thread *x = &w.threads[t];
        if (!x->here || asym_mask_empty(&w.machine.slow))
            continue;
        const double weight = asym_nice_weight(x->nice), load = load_of(x->answer.cpu);
        const double share = 0.5 * ASYM_MAX(weight, 1024) / w.machine.cpus[x->answer.cpu].speed;
        const double margin = ASYM_MIN(0.18 * load, share);
        ASYM_MASK_FOREACH (c, x->may)
            assert_true(c == x->answer.cpu || load_of(c) + weight / w.machine.cpus[c].speed >= load - margin - 1e-6);
    }
}

static void nobody_would_be_served_sooner_elsewhere(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 50; seed++)
        churn("response-time", seed, check_response);
}

static void threads_of_one_cpu_share_it_with_those_that_may_choose(void **state)
{
    (void)state;
    static const double speeds[] = {1, 1, 4};
    asked_begin(&w, "response-time", speeds, 3);
    for (unsigned k = 0; k < 6; k++)
        asked_enter(&w, 1);
    static struct asym_mask one;
    one = (struct asym_mask){0};
    asym_mask_set(&one, 0);
    for (unsigned t = 4; t < 6; t++)
        w.threads[t].may = &one;
    asked_plan(&w);
    assert_int_equal(w.count[0], 2);
    assert_int_equal(w.count[2], 4);
    for (unsigned t = 4; t < 6; t++)
        assert_int_equal(w.threads[t].answer.reason, ASYM_WHY_NO_FAST);
}

/* Two LLCs of four, CPUs 0 and 4 fast: a pull ends under the LLC it comes from, when that is as good. */
static void of_equal_cpus_the_one_under_the_same_llc_pulls(void **state)
{
    (void)state;
    static const double speeds[] = {4, 1, 1, 1, 4, 1, 1, 1};
    for (int home = 1; home < 8; home += 4) {
        asked_begin(&w, "response-time", speeds, 8);
        for (unsigned c = 0; c < 8; c++)
            w.machine.cpus[c].llc = (int16_t)(c / 4);
        assert_int_equal(asym_machine_finish(&w.machine), 0);
        static struct asym_mask one;
        one = (struct asym_mask){0};
        asym_mask_set(&one, (unsigned)home);
        const unsigned t = asked_enter(&w, 1);
        w.threads[t].may = &one;
        asked_plan(&w);
        w.threads[t].may = &w.machine.usable;
        asked_plan(&w);
        assert_int_equal(asked_cpu(&w, t), home / 4 * 4);
    }
}

/* --- throughput --- */

static void enter_many(unsigned n)
{
    for (unsigned k = 0; k < n; k++)
        asked_enter(&w, 1);
}

/* 3.2.1. CPU 0 runs at 800 MHz, CPU 1 at 600. */
static const double two_speeds[] = {800, 600};
static const unsigned splits[][2] = {{0, 0}, {1, 0}, {1, 1}, {2, 1}, {2, 2}, {3, 2}, {3, 3}, {4, 3}, {5, 3}};

static void expect_split(unsigned n)
{
    const bool both = n == 8 && w.count[0] == 4; /* 5:3 and 4:4 are as good as each other */
    assert_int_equal(w.count[0] + w.count[1], n);
    assert_int_equal(w.count[0], both ? 4 : splits[n][0]);
}

static void the_splits_of_throughput(void **state)
{
    (void)state;
    /* all at once */
    for (unsigned n = 1; n < ASYM_LENGTH(splits); n++) {
        asked_begin(&w, "throughput", two_speeds, 2);
        enter_many(n);
        asked_plan(&w);
        expect_split(n);
        asked_plan(&w);
        assert_int_equal(w.moved, 0);
    }
    /* one by one, and away again */
    asked_begin(&w, "throughput", two_speeds, 2);
    for (unsigned n = 1; n < ASYM_LENGTH(splits); n++) {
        enter_many(1);
        asked_plan(&w);
        expect_split(n);
        assert_true(w.moved <= 1);
    }
    for (unsigned n = 7; n > 0; n--) {
        asked_leave(&w, n);
        asked_plan(&w);
        expect_split(n);
        assert_true(w.moved <= 1);
    }
}

static void of_two_splits_as_good_the_one_there_is_stays(void **state)
{
    (void)state;
    for (unsigned fast = 4; fast <= 5; fast++) {
        asked_begin(&w, "throughput", two_speeds, 2);
        enter_many(8);
        for (unsigned t = 0; t < 8; t++)
            w.threads[t].may = t < fast ? &w.machine.fast : &w.machine.slow;
        asked_plan(&w);
        for (unsigned t = 0; t < 8; t++)
            w.threads[t].may = &w.machine.usable;
        asked_plan(&w);
        assert_int_equal(w.moved, 0);
        assert_int_equal(w.count[0], fast);
    }
}

/* For two CPUs of any ratio: within one thread of n * y / (1 + y), and no other split whose ratio is much nearer to y. */
static void the_faster_of_two_gets_its_share(void **state)
{
    (void)state;
    for (double y = 1.1; y < 9; y += 0.19) {
        const double speeds[] = {1, y};
        for (unsigned n = 2; n < 40; n++) {
            asked_begin(&w, "throughput", speeds, 2);
            enter_many(n);
            asked_plan(&w);
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
static void no_cpu_has_two_while_another_idles(void **state)
{
    (void)state;
    static const double speeds[] = {275, 275, 275, 275, 2200, 2200, 2200, 2200};
    asked_begin(&w, "throughput", speeds, 8);
    enter_many(6);
    asked_plan(&w);
    for (int c = 0; c < 8; c++)
        assert_in_range(w.count[c], c >= 4, 1);
    for (unsigned t = 0; t < 6; t++)
        assert_int_equal(w.threads[t].answer.reason, ASYM_WHY_OWN_CPU);
    for (unsigned t = 0; t < 6; t++) {
        if (asked_cpu(&w, t) < 4)
            continue;
        /* who leaves a fast CPU makes room for one that is on a slow one, and nobody else moves */
        w.threads[t].here = false;
        asked_plan(&w);
        assert_int_equal(w.moved, 1);
        break;
    }
    for (int c = 4; c < 8; c++)
        assert_int_equal(w.count[c], 1);
    enter_many(4);
    asked_plan(&w);
    assert_int_equal(w.moved, 0);
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

static void a_slower_cpu_never_has_more(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 50; seed++)
        churn("throughput", seed, check_throughput);
}

/* --- priority --- */

static bool goes_before(const struct asked_thread *x, const struct asked_thread *y)
{
    return x->nice != y->nice ? x->nice < y->nice : x->start < y->start;
}

static double effective_speed(const struct asked_thread *x)
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
        const struct asked_thread *x = &w.threads[i];
        bool highest = x->here;
        for (unsigned k = 0; x->here && k < w.n_threads; k++) {
            const struct asked_thread *y = &w.threads[k];
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

static void lower_priority_never_has_more_speed(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 50; seed++)
        churn("priority", seed, check_priority_and_ratios);
}

/*
 * Figure 3.5: a higher number is a higher priority. CPU 1 and CPU 2 have a power ratio of 1, as the text says; CPU 1 and
 * CPU 0 one of 2, or it could not call its third step balanced.
 */
static void the_five_steps_of_priority(void **state)
{
    (void)state;
    static const double speeds[] = {400, 800, 1000};
    static const int32_t after[][5] = {{0, 1, 2, -1, -1}, {0, 1, 1, 2, -1}, {0, 1, 1, 2, 2}};
    asked_begin(&w, "priority", speeds, 3);
    enter_many(2);
    for (unsigned k = 0; k < 3; k++) {
        enter_many(1);
        for (unsigned t = 0; t < w.n_threads; t++)
            w.threads[t].nice = 5 - (int)t;
        /* the fourth enters on CPU 2, the fifth on CPU 1 */
        if (k > 0)
            w.threads[2 + k].home = k == 1 ? 2 : 1;
        asked_plan(&w);
        for (unsigned t = 0; t < 3 + k; t++)
            assert_int_equal(asked_cpu(&w, t), after[k][t]);
        /* task 3 to CPU 1; then the fifth to CPU 2: in both steps the one that the source moves */
        assert_int_equal(w.moved, k > 0);
        check_priority_and_ratios();
        asked_plan(&w);
        assert_int_equal(w.moved, 0);
    }
    assert_int_equal(w.threads[4].answer.reason, ASYM_WHY_RANK);
    assert_float_equal((float)w.threads[4].answer.figure[0], 1, 1e-6F);
    assert_float_equal((float)w.threads[4].answer.figure[1], 5, 1e-6F);
}

/* 3.3.1: 800 and 600 MHz. Strict best effort would have the first task change CPUs with every task that comes. */
static void the_highest_priority_does_not_follow_who_comes(void **state)
{
    (void)state;
    asked_begin(&w, "priority", two_speeds, 2);
    for (unsigned n = 1; n <= 12; n++) {
        enter_many(1);
        asked_plan(&w);
        assert_int_equal(asked_cpu(&w, 0), 0);
        assert_true(w.moved <= 1);
        assert_true(w.count[0] <= w.count[1] || n == 1);
        check_priority();
    }
    for (unsigned k = 0; k < 20; k++) {
        /* the last comes and goes */
        w.threads[11].here = k % 2;
        asked_plan(&w);
        assert_int_equal(asked_cpu(&w, 0), 0);
        assert_true(w.moved <= 1);
    }
}

static void a_fast_cpu_has_as_many_as_its_ratio_allows(void **state)
{
    (void)state;
    static const double speeds[] = {300, 1000};
    static const unsigned fast[] = {0, 1, 1, 2, 3, 3, 4, 5, 6};
    for (unsigned n = 1; n < ASYM_LENGTH(fast); n++) {
        asked_begin(&w, "priority", speeds, 2);
        enter_many(n);
        asked_plan(&w);
        assert_int_equal(w.count[1], fast[n]);
        check_priority_and_ratios();
    }
}

/* Figure 3.6: when the second of four leaves, the others move up by one CPU each, of eight. */
static void who_is_next_moves_up(void **state)
{
    (void)state;
    static const double speeds[] = {275, 550, 825, 1100, 1375, 1650, 1925, 2200};
    asked_begin(&w, "priority", speeds, 8);
    enter_many(4);
    asked_plan(&w);
    for (int t = 0; t < 4; t++)
        assert_int_equal(asked_cpu(&w, (unsigned)t), 7 - t);
    asked_leave(&w, 1);
    asked_plan(&w);
    assert_int_equal(asked_cpu(&w, 0), 7);
    assert_int_equal(asked_cpu(&w, 2), 6);
    assert_int_equal(asked_cpu(&w, 3), 5);
}

/* Two types of four CPUs: who comes or goes moves few, wherever it stands in the order. */
static void a_change_moves_few(void **state)
{
    (void)state;
    static const double speeds[] = {1, 1, 1, 1, 2, 2, 2, 2};
    struct gen g = {.state = 3};
    asked_begin(&w, "priority", speeds, 8);
    enter_many(40);
    asked_plan(&w);
    unsigned sum = 0;
    for (unsigned k = 0; k < 300; k++) {
        const unsigned t = gen_below(&g, 40);
        w.threads[t].here = !w.threads[t].here;
        asked_plan(&w);
        check_priority_and_ratios();
        /* more than the few at the ends of types and counts move only where a whole type has one more each */
        assert_true(w.moved <= 8);
        sum += w.moved;
    }
    assert_true(sum <= 1.85 * 300);
}

static void nice_counts_before_who_was_first(void **state)
{
    (void)state;
    asked_begin(&w, "priority", two_speeds, 2);
    enter_many(2);
    asked_plan(&w);
    assert_int_equal(asked_cpu(&w, 0), 0);
    w.threads[1].nice = -1;
    asked_plan(&w);
    assert_int_equal(asked_cpu(&w, 1), 0);
    assert_int_equal(asked_cpu(&w, 0), 1);
    w.threads[1].nice = 0;
    w.threads[0].start = 100;
    asked_plan(&w);
    assert_int_equal(asked_cpu(&w, 1), 0);
}

/* The two that may run on the slow CPU only do not change what the others get of the fast ones. */
static void priority_keeps_to_the_cpus_of_each_thread(void **state)
{
    (void)state;
    static const double speeds[] = {1, 1, 2, 2};
    static struct asym_mask one;
    asked_begin(&w, "priority", speeds, 4);
    one = (struct asym_mask){0};
    asym_mask_set(&one, 0);
    enter_many(5);
    w.threads[0].may = w.threads[1].may = &one;
    w.threads[0].nice = w.threads[1].nice = -20;
    w.threads[4].may = &w.machine.fast;
    asked_plan(&w);
    assert_int_equal(w.threads[0].answer.reason, ASYM_WHY_NO_FAST);
    assert_int_equal(w.count[0], 2);
    assert_int_equal(w.count[2] + w.count[3], 3);
    asked_plan(&w);
    assert_int_equal(w.moved, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_nice_value_weighs_what_the_kernel_gives_it),
        cmocka_unit_test(the_worked_example_of_response_time),
        cmocka_unit_test(a_slow_cpu_stays_idle_while_a_fast_one_has_several),
        cmocka_unit_test(a_faster_cpu_pulls_when_somebody_leaves),
        cmocka_unit_test(a_pull_gains_more_than_the_margin),
        cmocka_unit_test(who_is_new_goes_where_it_is_best),
        cmocka_unit_test(newcomers_stay_at_home_where_that_is_as_good),
        cmocka_unit_test(noise_moves_nobody),
        cmocka_unit_test(nobody_would_be_served_sooner_elsewhere),
        cmocka_unit_test(threads_of_one_cpu_share_it_with_those_that_may_choose),
        cmocka_unit_test(of_equal_cpus_the_one_under_the_same_llc_pulls),
        cmocka_unit_test(the_splits_of_throughput),
        cmocka_unit_test(of_two_splits_as_good_the_one_there_is_stays),
        cmocka_unit_test(the_faster_of_two_gets_its_share),
        cmocka_unit_test(no_cpu_has_two_while_another_idles),
        cmocka_unit_test(a_slower_cpu_never_has_more),
        cmocka_unit_test(lower_priority_never_has_more_speed),
        cmocka_unit_test(the_five_steps_of_priority),
        cmocka_unit_test(the_highest_priority_does_not_follow_who_comes),
        cmocka_unit_test(a_fast_cpu_has_as_many_as_its_ratio_allows),
        cmocka_unit_test(who_is_next_moves_up),
        cmocka_unit_test(a_change_moves_few),
        cmocka_unit_test(nice_counts_before_who_was_first),
        cmocka_unit_test(priority_keeps_to_the_cpus_of_each_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
