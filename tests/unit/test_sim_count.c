/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the simulation keeps count of, so that no event need look at all CPUs, against looking at all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/macro.h"
#include "base/mask.h"
#include "sim/internal.h"

/* More threads a CPU than levels tell apart, and fewer; masks of all kinds; programs that come and go. */
static const char crowd[] = "[machine]\ncounts=2,4\nspeeds=1,2\nllc=2\nnode=2\n"
                            "[run]\nduration=600ms\nalone=no\n"
                            "[program \"many\"]\ncount=25\nthreads=16\naffinity=0-2\nstart=100ms\npasses=2\n"
                            "step=parallel 4M uniform chunk=200k\nstep=io 2ms exponential\n"
                            "[program \"one\"]\ncount=30\nrate=400\npasses=1\naffinity=5\nstep=serial 3M exponential\n"
                            "[program \"any\"]\ncount=9\nthreads=3\nstep=parallel 2M chunk=100k lock=10k\n"
                            "step=serial 1M\nstep=io 1ms\n";

struct seen {
    uint32_t n, n_roaming, by_mask;
};

/* mask: by number, whose threads are counted, too. */
static struct seen walk(const struct asym_sim *s, uint32_t cpu, uint32_t mask)
{
    struct seen seen = {0};
    for (uint32_t t = s->cpus[cpu].head; t != SIM_NONE; t = s->threads[t].next) {
        const struct sim_thread *thread = &s->threads[t];
        assert_int_equal(thread->roams, asym_mask_count(sim_masks_at(s->masks, thread->mask)) > 1);
        assert_int_equal(thread->cpu, cpu);
        seen.n++;
        seen.n_roaming += thread->roams;
        seen.by_mask += thread->roams && thread->mask == mask;
    }
    return seen;
}

static void check_census(const struct asym_sim *s, uint32_t cpu)
{
    const struct sim_census *census = &s->cpus[cpu].census;
    uint32_t sum = census->others;
    for (unsigned i = 0; i < SIM_CENSUS; i++) {
        const uint32_t n = walk(s, cpu, census->mask[i]).by_mask;
        sum += census->n[i];
        assert_true(census->n[i] <= n);
        if (census->others == 0 && census->n[i] > 0)
            assert_int_equal(census->n[i], n);
    }
    assert_int_equal(sum, s->cpus[cpu].n_roaming);
}

static void check(const struct asym_sim *s)
{
    uint32_t n_waiting = 0, top = 0, at_level[SIM_LEVELS] = {0};
    for (uint32_t c = 0; c < s->n_cpus; c++) {
        const struct seen seen = walk(s, c, SIM_NONE);
        const uint32_t n = seen.n + (s->cpus[c].running != SIM_NONE);
        const uint32_t level = ASYM_MIN(n, (uint32_t)SIM_LAST_LEVEL);
        assert_int_equal(s->cpus[c].n_queued, seen.n);
        assert_int_equal(s->cpus[c].n_roaming, seen.n_roaming);
        assert_int_equal(asym_mask_has(&s->overloaded, (int)c), seen.n_roaming > 0);
        for (uint32_t k = 0; k < SIM_LEVELS; k++)
            assert_int_equal(asym_mask_has(&s->levels[k], (int)c), k == level);
        check_census(s, c);
        at_level[level]++;
        top = ASYM_MAX(top, level);
        n_waiting += seen.n;
    }
    assert_memory_equal(at_level, s->at_level, sizeof at_level);
    assert_int_equal(top, s->top_level);
    assert_int_equal(n_waiting, s->n_waiting);
}

/* Another mask for some thread, waiting or not, now and then. */
static void steer(struct asym_sim *s, struct sim_rng *rng)
{
    const uint32_t thread = sim_rng_below(rng, s->n_threads);
    struct asym_mask mask = {0};
    for (unsigned i = 0; i < 3; i++)
        asym_mask_set(&mask, sim_rng_below(rng, s->n_cpus));
    sim_set_mask(s, thread, &mask);
    sim_obey(s, thread);
    sim_settle(s);
}

static void what_is_counted_is_what_there_is(void **state)
{
    (void)state;
    struct asym_scenario *scenario;
    struct asym_error err = {""};
    struct asym_sim *s;
    struct sim_rng rng = {3};
    uint32_t most = 0;
    if (asym_scenario_parse(crowd, strlen(crowd), "crowd", &scenario, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(asym_sim_new(scenario, -1, 1, &s), 0);
    check(s);
    for (uint64_t time = 0; asym_sim_until(s, time); time += 300000) {
        check(s);
        steer(s, &rng);
        check(s);
        for (uint32_t c = 0; c < s->n_cpus; c++)
            most = ASYM_MAX(most, sim_count(s, c));
    }
    check(s);
    assert_true(most > SIM_LEVELS);
    asym_sim_free(s);
    asym_scenario_free(scenario);
}

/* Linux: the period is the same for all, and each CPU has its own time in it. */
static void each_cpu_balances_once_a_period(void **state)
{
    (void)state;
    static const char idle[] =
        "[machine]\ncounts=3\nspeeds=1\n[scheduler]\nbalance=10ms\n[run]\nduration=1s\nalone=no\n"
        "[program \"late\"]\nstart=10s\nstep=serial 1M\n";
    struct asym_scenario *scenario;
    struct asym_error err = {""};
    struct asym_sim *s;
    if (asym_scenario_parse(idle, strlen(idle), "idle", &scenario, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(asym_sim_new(scenario, -1, 1, &s), 0);
    /* At 3,333,334, 6,666,667 and 10,000,001 ns of each 10 ms, and a ns later than that thirds are. */
    static const struct {
        uint64_t until, events;
    } rows[] = {{3333333, 0},  {3333334, 1},  {6666666, 1},    {6666667, 2},  {10000000, 2},
                {10000001, 3}, {13333333, 3}, {13333334, 4},   {16666667, 5}, {20000000, 5},
                {20000001, 6}, {23333334, 7}, {523333334, 157}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        asym_sim_until(s, rows[i].until);
        assert_int_equal(asym_sim_totals(s).events, rows[i].events);
    }
    asym_sim_free(s);
    asym_scenario_free(scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_counted_is_what_there_is),
        cmocka_unit_test(each_cpu_balances_once_a_period),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
