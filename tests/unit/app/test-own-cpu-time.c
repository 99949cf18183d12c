/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * asymd's CPU budget limits a load with a fixed cost a sample, and the interval recovers when the load ends. asymd itself runs on
 * no CPU that is reserved for a thread, and on slow CPUs where the machine has some.
 */

#include "app/own-cpu-time.h"
#include "base/mask.h"
#include "support/test.h"
struct run {
    struct asym_budget b;
    asym_usec now;
    double cpu, apart;
    unsigned exceeded, kept;
};

#define INTERVAL (100 * ASYM_MSEC)

static bool is_stretched(const struct run *r)
{
    return r->b.least > INTERVAL;
}

/* Samples for about so many seconds, each after the time that is wanted or that the budget affords. Each costs us_per_sample. */
static void sample(struct run *r, int seconds, double us_per_sample, double allowed, asym_usec wanted)
{
    for (const asym_usec end = r->now + (asym_usec)seconds * ASYM_SEC; r->now < end;) {
        r->now += asym_budget_wait(&r->b, wanted);
        r->cpu += us_per_sample;
        if (r->now - r->b.last_now < ASYM_SEC)
            continue;
        enum asym_budget_change change = asym_budget_update(&r->b, allowed, INTERVAL, r->now,
                                                            (asym_usec)(r->cpu + r->apart), (asym_usec)r->apart);
        r->exceeded += change == ASYM_BUDGET_EXCEEDED;
        r->kept += change == ASYM_BUDGET_KEPT_AGAIN;
    }
}

static void pass(struct run *r, int seconds, double us_per_sample, double allowed)
{
    sample(r, seconds, us_per_sample, allowed, INTERVAL);
}

TEST(a_cheap_sample_never_stretches)
{
    struct run r = {.now = ASYM_SEC};
    asym_budget_init(&r.b, r.now, 0);
    pass(&r, 100, 900, 1);
    assert_false(is_stretched(&r));
    assert_true(r.b.percent > 0.89 && r.b.percent < 0.91);
    assert_int_equal(r.exceeded + r.kept, 0);
}

TEST(an_expensive_sample_is_held_to_the_budget_and_logged_once)
{
    struct run r = {.now = ASYM_SEC};
    asym_budget_init(&r.b, r.now, 0);
    pass(&r, 30, 5000, 1); /* 5 % at a sample every 100 ms */
    assert_in_range(r.b.least, 4.9 * INTERVAL, 8 * INTERVAL);
    assert_true(r.b.percent <= 1.01);
    assert_int_equal(r.exceeded, 1);
    pass(&r, 30, 500, 1);
    assert_false(is_stretched(&r));
    assert_int_equal(r.kept, 0);
    pass(&r, 60, 500, 1);
    assert_int_equal(r.kept, 1);
}

/* For an hour, five seconds with the load alternate with five seconds without it. */
TEST(load_that_comes_and_goes_is_logged_once)
{
    struct run r = {.now = ASYM_SEC};
    asym_budget_init(&r.b, r.now, 0);
    for (int i = 0; i < 360; i++) {
        pass(&r, 5, 2000, 1);
        assert_true(is_stretched(&r));
        pass(&r, 5, 100, 1);
        assert_false(is_stretched(&r));
    }
    assert_int_equal(r.exceeded, 1);
    assert_int_equal(r.kept, 0);
}

TEST(it_stretches_at_most_twenty_times)
{
    struct run r = {.now = ASYM_SEC};
    asym_budget_init(&r.b, r.now, 0);
    pass(&r, 60, 90000, 0.01);
    assert_int_equal(r.b.least, ASYM_BUDGET_STRETCH_MAX * INTERVAL);
}

/* Work with its own budget takes half a CPU; the reported percentage includes it. */
TEST(what_has_a_budget_of_its_own_stretches_nothing)
{
    struct run r = {.now = ASYM_SEC};
    asym_budget_init(&r.b, r.now, 0);
    for (int i = 0; i < 30; i++) {
        r.apart += 500000;
        pass(&r, 1, 900, 1);
        assert_false(is_stretched(&r));
        assert_true(r.b.percent > 50.89 && r.b.percent < 50.91);
    }
    assert_int_equal(r.exceeded + r.kept, 0);
}

/*
 * A policy wants a sample every 30 ms, for which the budget lasts two thirds of the time. The samples become as frequent as it
 * affords, and stay so: no seconds of early samples and others without one. Without the wish the interval is the configured one at
 * once.
 */
TEST(early_samples_are_as_frequent_as_the_budget_affords)
{
    struct run r = {.now = ASYM_SEC};
    asym_budget_init(&r.b, r.now, 0);
    sample(&r, 20, 450, 1, 30 * ASYM_MSEC);
    const asym_usec least = r.b.least;
    const double begun = (double)r.now, used = r.cpu;
    assert_in_range(least, 40 * ASYM_MSEC, 60 * ASYM_MSEC);
    for (int i = 0; i < 60; i++) {
        sample(&r, 1, 450, 1, 30 * ASYM_MSEC);
        assert_in_range(r.b.least, least - ASYM_MSEC, least + ASYM_MSEC);
    }
    const double percent = 100 * (r.cpu - used) / ((double)r.now - begun);
    assert_true(percent > 0.8 && percent <= 1);
    assert_int_equal(asym_budget_wait(&r.b, INTERVAL), INTERVAL);
    assert_int_equal(r.exceeded + r.kept, 0);
}

TEST(a_period_without_length_changes_nothing)
{
    struct asym_budget b;
    asym_budget_init(&b, ASYM_SEC, 0);
    assert_int_equal(asym_budget_update(&b, 1, INTERVAL, ASYM_SEC, 500, 0), ASYM_BUDGET_SAME);
    assert_true(b.least == 0 && b.last_cpu == 0);
}

static struct asym_mask cpus(unsigned bits)
{
    struct asym_mask m = {0};
    for (unsigned c = 0; c < 32; c++)
        if (bits & 1u << c)
            asym_mask_set(&m, c);
    return m;
}

static unsigned bits(struct asym_mask m)
{
    unsigned n = 0;
    ASYM_MASK_FOREACH (c, &m)
        n |= 1u << c;
    return n;
}

/*
 * Each mask is a bit a CPU. reserved: CPUs of threads with an exclusive CPU; held: CPUs of other steered threads; busy: CPUs on
 * which threads of another process ran at the sample. On all CPUs threads of asymd ran, a thread of the other process
 * slept, and one that is mostly idle ran.
 */
static const struct row {
    const char *what;
    unsigned online, slow, own, reserved, held, expect, busy;
} rows[] = {
    {"alike, nothing reserved: as started", 0xff, 0, 0xff, 0, 0, 0xff, 0},
    {"alike, CPU 3 reserved", 0xff, 0, 0xff, 0x08, 0, 0xf7, 0},
    {"a thread that is not exclusive shares its CPU", 0xff, 0, 0xff, 0, 0x0f, 0xff, 0},
    {"alike, all reserved: as started", 0xff, 0, 0xff, 0xff, 0, 0xff, 0},
    {"slow CPUs", 0xff, 0x0f, 0xff, 0x80, 0, 0x0f, 0},
    {"slow CPUs that no thread has exclusively", 0xff, 0x0f, 0xff, 0x83, 0, 0x0c, 0},
    {"all slow CPUs reserved: a fast one that is not", 0xff, 0x0f, 0xff, 0x8f, 0, 0x70, 0},
    {"everything reserved: slow CPUs", 0xff, 0x0f, 0xff, 0xff, 0, 0x0f, 0},
    {"never beyond what it was started with", 0xff, 0x0f, 0xf1, 0x01, 0, 0xf0, 0},
    {"started on fast CPUs only", 0xff, 0x0f, 0xf0, 0x10, 0, 0xe0, 0},
    {"offline CPUs are no choice", 0xfc, 0x0f, 0xff, 0x0c, 0, 0xf0, 0},
    {"alike: where no thread runs", 0xff, 0, 0xff, 0, 0, 0xf0, 0x0f},
    {"slow CPUs where no thread runs", 0xff, 0x0f, 0xff, 0, 0, 0x08, 0xf7},
    {"threads run on all slow CPUs", 0xff, 0x0f, 0xff, 0x80, 0, 0x0f, 0xff},
    {"no fast CPU, although no thread runs there", 0xff, 0x0f, 0xff, 0, 0, 0x0f, 0x0f},
    {"the only idle slow CPU is reserved", 0xff, 0x0f, 0xff, 0x01, 0, 0x0e, 0x0e},
    {"started where nothing is online any more: as started", 0xf0, 0, 0x03, 0, 0, 0x03, 0},
};

enum { SELF, OTHER };

/* asymd's own threads run on all CPUs; the other process has a sleeper and a short task on each CPU, and a thread on
 * each busy one. */
static struct asym_snapshot ran_on(unsigned busy, struct asym_task *tasks)
{
    static const struct asym_proc procs[] = {[SELF] = {.flags = ASYM_PROC_SELF}, [OTHER] = {.flags = 0}};
    struct asym_snapshot s = {.procs = procs, .n_procs = ASYM_LENGTH(procs), .tasks = tasks};
    for (int32_t c = -1; c < 8; c++) {
        tasks[s.n_tasks++] = (struct asym_task){.proc = SELF, .state = 'R', .runnable = 1, .cpu = c};
        tasks[s.n_tasks++] = (struct asym_task){.proc = OTHER, .state = 'R', .runnable = 0.4, .cpu = c};
        tasks[s.n_tasks++] = (struct asym_task){.proc = OTHER, .state = 'S', .runnable = 1, .cpu = c};
        if (c < 0 || busy & 1u << c)
            tasks[s.n_tasks++] = (struct asym_task){.proc = OTHER, .state = 'R', .runnable = 1, .cpu = c};
    }
    return s;
}

TEST(asymd_runs_on_cpus_that_the_plan_leaves_free)
{
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        static struct asym_machine m;
        struct asym_plan_task tasks[16] = {{0}};
        struct asym_plan plan = {.tasks = tasks};
        m = (struct asym_machine){.online = cpus(rows[i].online), .slow = cpus(rows[i].slow)};
        m.usable = m.online;
        m.fast = asym_mask_minus(&m.online, &m.slow);
        m.n_types = rows[i].slow ? 2 : 1;
        for (unsigned c = 0; c < 8; c++)
            if ((rows[i].reserved | rows[i].held) & 1u << c)
                tasks[plan.n_tasks++] = (struct asym_plan_task){.target = (int32_t)c,
                                                                .exclusive = (rows[i].reserved & 1u << c) != 0};
        tasks[plan.n_tasks++] = (struct asym_plan_task){.target = -1, .exclusive = true};
        const struct asym_mask own = cpus(rows[i].own);
        static struct asym_task ran[36];
        const struct asym_snapshot snapshot = ran_on(rows[i].busy, ran);
        const unsigned found = bits(asym_self_affinity_choose(&own, &m, &snapshot, &plan));
        if (found != rows[i].expect)
            fail_msg("%s: %#x, not %#x", rows[i].what, found, rows[i].expect);
    }
}

TEST(before_the_first_plan_it_is_on_slow_cpus)
{
    static struct asym_machine m;
    m = (struct asym_machine){.online = cpus(0xff), .slow = cpus(0x0f), .fast = cpus(0xf0), .n_types = 2};
    const struct asym_mask own = cpus(0xff);
    assert_int_equal(bits(asym_self_affinity_choose(&own, &m, NULL, NULL)), 0x0f);
}

TEST_MAIN
