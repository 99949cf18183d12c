/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sets of CPUs by their number of threads, and the searches for a CPU, against a search of all CPUs. */

#include "base/mask.h"
#include "sim/sim-internal.h"
#include "support/test.h"

/* CPUs at the last level and below it; many masks; programs that start and end. */
static const char many_threads[] =
    "[machine]\ncounts=2,4\nspeeds=1,2\nllc=2\nnode=2\n"
    "[run]\nduration=600ms\nalone=no\n"
    "[program \"many\"]\ncount=25\nthreads=16\naffinity=0-2\nstart=100ms\npasses=2\n"
    "step=parallel 4M uniform chunk=200k\nstep=io 2ms exponential\n"
    "[program \"one\"]\ncount=30\nrate=400\npasses=1\naffinity=5\nstep=serial 3M exponential\n"
    "[program \"any\"]\ncount=9\nthreads=3\nstep=parallel 2M chunk=100k lock=10k\n"
    "step=serial 1M\nstep=io 1ms\n";

static uint32_t count_queue(const struct asym_sim *s, uint32_t cpu)
{
    uint32_t n = 0;
    for (uint32_t t = s->cpus[cpu].head; t != SIM_NONE; t = s->threads[t].next, n++)
        assert_int_equal(s->threads[t].cpu, cpu);
    return n;
}

static void check(const struct asym_sim *s)
{
    uint32_t n_waiting = 0;
    for (uint32_t c = 0; c < s->n_cpus; c++) {
        const uint32_t queued = count_queue(s, c), n = queued + (s->cpus[c].running != SIM_NONE);
        const uint32_t level = ASYM_MIN(n, (uint32_t)SIM_LAST_LEVEL);
        assert_int_equal(s->cpus[c].n_queued, queued);
        for (uint32_t k = 0; k < SIM_LEVELS; k++)
            assert_int_equal(asym_mask_has(&s->levels[k], (int)c), k == level);
        n_waiting += queued;
    }
    assert_int_equal(n_waiting, s->n_waiting);
}

/* Now and then gives some thread, waiting or not, another mask. */
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

TEST(what_is_counted_is_what_there_is)
{
    struct asym_scenario *scenario;
    struct asym_error err = {""};
    struct asym_sim *s;
    struct sim_rng rng = {3};
    uint32_t most = 0;
    if (asym_scenario_parse(many_threads, strlen(many_threads), "crowd", &scenario, &err) < 0)
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

/* 130 CPUs, so that sets have more than one word; LLCs across words, nodes, siblings; the last of each is smaller. */
static const char *const wide[] = {
    "[machine]\ncounts=100,30\nspeeds=1,2\nllc=27\nnode=2\n",
    "[machine]\ncounts=60,5\nspeeds=1,2\nsmt=2\nllc=16\nnode=2\n",
};
static const char wide_load[] = "[run]\nduration=400ms\nalone=no\n"
                                "[program \"any\"]\ncount=30\nthreads=7\nstep=parallel 6M uniform chunk=200k\n"
                                "step=io 3ms exponential\n"
                                "[program \"few\"]\ncount=300\naffinity=60-66\nstep=serial 2M exponential\n"
                                "step=io 1ms\n"
                                "[program \"crowd\"]\ncount=150\naffinity=128-129\nstep=serial 9M\n"
                                "[program \"one\"]\ncount=20\naffinity=3\nstep=serial 1M\nstep=io 5ms\n";

static enum sim_reach between(const struct asym_sim *s, uint32_t a, uint32_t b)
{
    if (s->cpus[a].llc == s->cpus[b].llc)
        return SIM_REACH_LLC;
    return s->cpus[a].node == s->cpus[b].node ? SIM_REACH_NODE : SIM_REACH_ALL;
}

static uint32_t first_for(const struct asym_sim *s, uint32_t from, uint32_t cpu)
{
    uint32_t t = s->cpus[from].head;
    while (t != SIM_NONE && !asym_mask_has(asym_mask_table_at(&s->masks, s->threads[t].mask), (int)cpu))
        t = s->threads[t].next;
    return t;
}

/* Returns the thread that cpu is to pull: from the CPU with most threads at the least distance that has one. */
static uint32_t to_pull(const struct asym_sim *s, uint32_t cpu, unsigned *ret_reach)
{
    uint32_t thread = SIM_NONE;
    for (unsigned reach = 0; thread == SIM_NONE && reach < SIM_N_REACHES; reach++) {
        uint32_t most = sim_count(s, cpu) + 1;
        *ret_reach = reach;
        for (uint32_t i = 1; i < s->n_cpus; i++) {
            const uint32_t c = (cpu + i) % s->n_cpus, first = first_for(s, c, cpu);
            if (between(s, cpu, c) != (enum sim_reach)reach || sim_count(s, c) <= most || first == SIM_NONE)
                continue;
            most = sim_count(s, c);
            thread = first;
        }
    }
    return thread;
}

static void check_pull(struct asym_sim *s, uint32_t cpu, unsigned *hits)
{
    unsigned reach;
    const uint32_t thread = to_pull(s, cpu, &reach), before = sim_count(s, cpu);
    assert_int_equal(sim_pull(s, cpu), thread != SIM_NONE);
    assert_int_equal(sim_count(s, cpu), before + (thread != SIM_NONE));
    if (thread == SIM_NONE)
        return;
    assert_int_equal(s->threads[thread].cpu, cpu);
    hits[reach]++;
    sim_settle(s);
}

static void check_emptiest(struct asym_sim *s, const struct asym_mask *allowed)
{
    const uint32_t found = sim_emptiest(s, allowed);
    assert_true(asym_mask_has(allowed, (int)found));
    ASYM_MASK_FOREACH (c, allowed)
        assert_true(sim_count(s, (uint32_t)c) >= sim_count(s, found));
}

static bool is_core_idle(const struct asym_sim *s, uint32_t cpu)
{
    const uint32_t smt = s->scenario->machine.most_smt, first = cpu / smt * smt;
    bool idle = true;
    for (uint32_t c = first; c < first + smt; c++)
        idle &= s->cpus[c].running == SIM_NONE;
    return idle;
}

static bool check_near(const struct asym_sim *s, uint32_t cpu, const struct asym_mask *allowed)
{
    const struct sim_llc *l = &s->llcs[s->cpus[cpu].llc];
    int idle_core = -1, idle_cpu = -1;
    for (uint32_t i = 0; i < l->n; i++) {
        const uint32_t c = l->first + (cpu + i) % l->n;
        assert_int_equal(s->cpus[c].llc, s->cpus[cpu].llc);
        if (s->cpus[c].running != SIM_NONE || !asym_mask_has(allowed, (int)c))
            continue;
        idle_cpu = idle_cpu < 0 ? (int)c : idle_cpu;
        idle_core = idle_core < 0 && is_core_idle(s, c) ? (int)c : idle_core;
    }
    assert_int_equal(sim_idle_near(s, cpu, allowed), idle_core >= 0 ? idle_core : idle_cpu);
    return idle_cpu >= 0;
}

/* Returns whether a thread was pulled over each distance, and an LLC had an idle CPU. */
static bool check_searches(struct asym_sim *s, struct sim_rng *rng, unsigned *hits)
{
    /* Enough threads for the last level. */
    struct asym_mask some = {0}, crowded = {0};
    asym_mask_set(&crowded, 128);
    asym_mask_set(&crowded, 129);
    for (unsigned i = 0; i < 5; i++)
        asym_mask_set(&some, sim_rng_below(rng, s->n_cpus));
    check_emptiest(s, &some);
    check_emptiest(s, &crowded);
    check_emptiest(s, &s->machine->usable);
    for (uint32_t c = 0; c < s->n_cpus; c++) {
        check_near(s, c, &some);
        hits[SIM_N_REACHES] += check_near(s, c, &s->machine->usable);
    }
    for (unsigned i = 0; i < 8; i++)
        check_pull(s, sim_rng_below(rng, s->n_cpus), hits);
    bool all = true;
    for (unsigned k = 0; k <= SIM_N_REACHES; k++)
        all &= hits[k] > 0;
    return all;
}

TEST(searches_find_what_a_search_of_all_finds)
{
    for (size_t m = 0; m < ASYM_LENGTH(wide); m++) {
        char text[1024];
        struct asym_scenario *scenario;
        struct asym_error err = {""};
        struct asym_sim *s;
        struct sim_rng rng = {7};
        unsigned hits[SIM_N_REACHES + 1] = {0};
        bool all = false, deepest = false;
        snprintf(text, sizeof text, "%s%s", wide[m], wide_load);
        if (asym_scenario_parse(text, strlen(text), "wide", &scenario, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(asym_sim_new(scenario, -1, 1, &s), 0);
        for (uint64_t time = 0; asym_sim_until(s, time); time += 7000000) {
            all = check_searches(s, &rng, hits);
            for (unsigned i = 0; i < 8; i++)
                steer(s, &rng);
            deepest |= !asym_mask_empty(&s->levels[SIM_LAST_LEVEL]);
            check(s);
        }
        assert_true(all);
        assert_true(deepest);
        asym_sim_free(s);
        asym_scenario_free(scenario);
    }
}

/* The table of masks frees those that no thread has any more, and only those. */
TEST(a_thread_keeps_its_mask_while_others_get_new_ones)
{
    char text[1024];
    struct asym_scenario *scenario;
    struct asym_error err = {""};
    struct asym_sim *s;
    struct sim_rng rng = {5};
    snprintf(text, sizeof text, "%s%s", wide[0], wide_load);
    if (asym_scenario_parse(text, strlen(text), "wide", &scenario, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(asym_sim_new(scenario, -1, 1, &s), 0);
    struct asym_mask *given = calloc(s->n_threads, sizeof *given);
    assert_non_null(given);
    for (uint32_t i = 0; i < s->n_threads; i++)
        given[i] = s->machine->usable;
    for (unsigned n = 0; n < 5 * s->n_threads; n++) {
        const uint32_t thread = n % s->n_threads;
        given[thread] = (struct asym_mask){.w = {sim_rng_below(&rng, UINT32_MAX) + UINT64_C(1)}};
        sim_set_mask(s, thread, &given[thread]);
    }
    for (uint32_t i = 0; i < s->n_threads; i++)
        assert_true(asym_mask_equal(asym_mask_table_at(&s->masks, s->threads[i].mask), &given[i]));
    assert_true(asym_mask_equal(asym_mask_table_at(&s->masks, SIM_ALL_CPUS), &s->machine->usable));
    free(given);
    asym_sim_free(s);
    asym_scenario_free(scenario);
}

/* As in Linux, all CPUs have the same period, and each has its own time in it. */
TEST(each_cpu_balances_once_a_period)
{
    static const char idle[] =
        "[machine]\ncounts=3\nspeeds=1\n[scheduler]\nbalance=10ms\n[run]\nduration=1s\nalone=no\n"
        "[program \"late\"]\nstart=10s\nstep=serial 1M\n";
    struct asym_scenario *scenario;
    struct asym_error err = {""};
    struct asym_sim *s;
    if (asym_scenario_parse(idle, strlen(idle), "idle", &scenario, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(asym_sim_new(scenario, -1, 1, &s), 0);
    /* Turns come 1 ns after each third of the 10 ms, rounded down: 3,333,334, 6,666,667 and 10,000,001 ns. */
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

TEST_MAIN
