/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares the simulated machine with figures computed by hand and with the analytic model. */
#include <glob.h>
#include <math.h>

#include <asym/engine.h>

#include "base/mask.h"
#include "config/config.h"
#include "experiment/experiment.h"
#include "sim/rng.h"
#include "sim/scenario.h"
#include "sim/sim-internal.h"
#include "sim/sim.h"
#include "support/count.h"
#include "support/test.h"

struct sim_fixture {
    struct asym_scenario *scenario;
    struct asym_sim *sim;
};

/* No costs, so that the results can be computed by hand. */
#define FREE                                                                                                           \
    "[scheduler]\nswitch_cost=0ns\ntick_cost=0ns\nmigrate_llc=0ns\nmigrate_across=0ns\nmigrate_node=0ns\nrefill=0\n"

static void end(struct sim_fixture *w)
{
    asym_sim_free(w->sim);
    asym_scenario_free(w->scenario);
}

/* Sets up the scenario that the format and its arguments say. */
__attribute__((format(printf, 3, 4))) static void begin(struct sim_fixture *w, uint64_t seed, const char *format, ...)
{
    char text[1024];
    struct asym_error err = {""};
    va_list args;
    va_start(args, format);
    assert_in_range(vsnprintf(text, sizeof text, format, args), 1, sizeof text - 1);
    va_end(args);
    *w = (struct sim_fixture){0};
    if (asym_scenario_parse(text, strlen(text), "test", &w->scenario, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(asym_sim_new(w->scenario, -1, seed, &w->sim), 0);
}

/* Runs to the end of the scenario. */
static void finish(struct sim_fixture *w)
{
    while (asym_sim_until(w->sim, UINT64_MAX))
        ;
}

/* Declare a simulation that lasts until the end of the block: at its begin, and at the end of its scenario. */
#define BEGIN_AS(w, seed, ...)                                                                                         \
    ASYM_CLEANUP(end) struct sim_fixture w;                                                                            \
    begin(&w, seed, __VA_ARGS__)
#define RUN_AS(w, seed, ...)                                                                                           \
    BEGIN_AS(w, seed, __VA_ARGS__);                                                                                    \
    finish(&w)
#define BEGIN(w, ...) BEGIN_AS(w, 1, __VA_ARGS__)
#define RUN(w, ...)   RUN_AS(w, 1, __VA_ARGS__)

static void near(double got, double want, double share)
{
    if (!(fabs(got - want) <= share * fabs(want) + 1e-12))
        fail_msg("%.9g, not %.9g within %g", got, want, share);
}

TEST(the_heap_gives_events_in_order_of_time_and_slot)
{
    enum { N = 300 };
    struct sim_heap h;
    struct sim_rng rng = {7};
    uint64_t time[N];
    for (unsigned i = 0; i < N; i++)
        time[i] = SIM_NEVER;
    assert_int_equal(sim_heap_init(&h, N), 0);
    for (unsigned round = 0; round < 20000; round++) {
        if (sim_rng_below(&rng, 3) > 0) {
            const uint32_t slot = sim_rng_below(&rng, N);
            time[slot] = sim_rng_below(&rng, 4) == 0 ? SIM_NEVER : sim_rng_below(&rng, 50);
            sim_heap_set(&h, slot, time[slot]);
            continue;
        }
        uint32_t first = 0;
        for (uint32_t i = 1; i < N; i++)
            first = time[i] < time[first] ? i : first;
        assert_int_equal(sim_heap_time(&h), time[first]);
        if (time[first] == SIM_NEVER)
            continue;
        assert_int_equal(sim_heap_take(&h), first);
        const uint64_t was = time[first];
        time[first] = SIM_NEVER;
        /* An event mostly sets other slots' times before its own; now and then it sets its own first. */
        for (unsigned i = sim_rng_below(&rng, 3); i > 0; i--) {
            const uint32_t slot = sim_rng_below(&rng, N);
            time[slot] = was + sim_rng_below(&rng, 3);
            sim_heap_set(&h, slot, time[slot]);
        }
        if (sim_rng_below(&rng, 2) == 0)
            continue;
        time[first] = sim_rng_below(&rng, 5) == 0 ? SIM_NEVER : was + sim_rng_below(&rng, 3);
        sim_heap_set(&h, first, time[first]);
    }
    sim_heap_done(&h);
}

TEST(work_takes_its_time_by_speed)
{
    static const double speeds[] = {1, 2, 7};
    for (size_t i = 0; i < ASYM_LENGTH(speeds); i++) {
        /* The affinity allows only the second core. */
        RUN(w,
            "[machine]\ncounts=1,1\nspeeds=1,%g\nfrequency=2\n[run]\nuntil=done\n" FREE
            "[program a]\naffinity=1\npasses=2\nstep=serial 700M\n",
            speeds[i] > 1 ? speeds[i] : 1);
        const struct asym_sim_tally t = asym_sim_tally(w.sim, 0);
        assert_int_equal(t.ended, 1);
        near(t.times, 1.4 / 2 / speeds[i], 1e-8);
        near(t.work, 1.4e9, 1e-9);
        near(t.cpu_ended, t.times, 1e-9);
    }
    /* The run uses the scenario's speeds, although those of a machine are relative to its slowest CPU. */
    RUN(w, "[machine]\ncounts=1,1\nspeeds=1.6,4\n[run]\nuntil=done\n" FREE
           "[program a]\naffinity=1\npasses=1\nstep=serial 1G\n");
    near(asym_sim_tally(w.sim, 0).times, 0.25, 1e-8);
}

TEST(costs_are_paid_once_each)
{
    RUN(w, "[machine]\ncounts=1\nspeeds=1\n[run]\nuntil=done\n"
           "[scheduler]\nswitch_cost=1ms\ntick=4ms\ntick_cost=40us\n[program a]\npasses=1\nstep=serial 100M\n");
    near(asym_sim_tally(w.sim, 0).times, 0.001 + 0.1 / 0.99, 1e-7);
}

TEST(threads_share_a_cpu_by_nice_weight)
{
    RUN(w, "[machine]\ncounts=1\nspeeds=1\n[run]\nduration=100s\n" FREE
           "[program a]\nstep=serial 1G\n[program b]\nnice=5\nstep=serial 1G\n[program c]\nstep=serial 1G\n");
    const double a = asym_sim_tally(w.sim, 0).cpu, b = asym_sim_tally(w.sim, 1).cpu, c = asym_sim_tally(w.sim, 2).cpu;
    near(a + b + c, 100, 1e-6);
    near(a, c, 0.005);
    near(a / b, 1024 / 335.0, 0.02); /* Linux's table */
}

TEST(masks_are_obeyed_and_no_cpu_idles_beside_a_waiting_thread)
{
    RUN(w, "[machine]\ncounts=4\nspeeds=1\n[run]\nduration=10s\n" FREE
           "[program pinned]\ncount=3\naffinity=2\nstep=serial 1G\n[program free]\ncount=3\nstep=serial 1G\n");
    near(asym_sim_totals(w.sim).busy, 40, 1e-3);
    near(asym_sim_tally(w.sim, 0).cpu, 10, 1e-3);
    near(asym_sim_tally(w.sim, 1).cpu, 30, 1e-3);
}

/* Returns the seconds for 1 G instructions on a core of that speed. */
static double time_on(double speed, const char *memory)
{
    RUN(w,
        "[machine]\ncounts=1,1\nspeeds=1,%g\nmax_ipc=4\nmiss=80ns\n[run]\nuntil=done\n" FREE
        "[memory m]\n%s\n[program a]\naffinity=1\npasses=1\nstep=serial 1G memory=m\n",
        speed, memory);
    const double t = asym_sim_tally(w.sim, 0).times;
    return t;
}

TEST(stall_time_does_not_shrink_with_speed)
{
    static const char *const memories[] = {"mpki=0.1", "mpki=2", "mpki=25"};
    for (size_t i = 0; i < ASYM_LENGTH(memories); i++) {
        /* Nie & Duan 2012: ASTPI = 1 / IPS - 1 / MIPS, on each core type the same; SF follows from it. */
        double astpi[4];
        for (unsigned b = 1; b <= 4; b++)
            astpi[b - 1] = time_on(b, memories[i]) - 1 / (4.0 * b);
        for (unsigned b = 0; b < 4; b++)
            near(astpi[b], astpi[0], 0.04);
        const double estimated = (1 / 4.0 + astpi[1]) / (1 / 16.0 + astpi[1]);
        near(estimated, time_on(1, memories[i]) / time_on(4, memories[i]), 0.01);
    }
}

TEST(an_llc_that_is_too_small_makes_misses)
{
    /* Two threads have 6 MiB each under 8 MiB: a third of the 30 hits per 1000 instructions becomes misses. */
    static const char text[] = "[machine]\ncounts=2\nspeeds=1\nllc_kib=8192\n[run]\nuntil=done\n" FREE
                               "[memory m]\nmpki=1\napki=31\nworking_set=6144\n"
                               "[program a]\npasses=1\ncount=%u\nstep=serial 1G memory=m\n";
    for (unsigned n = 1; n <= 2; n++) {
        RUN(w, text, n);
        const double mpki = n == 1 ? 1 : 11;
        near(asym_sim_tally(w.sim, 0).times / n, 1 + mpki / 1000 * 100, 1e-6);
    }
}

TEST(an_llc_keeps_small_working_sets_whole)
{
    /* The small thread keeps its 1 MiB of 8. The other keeps 7 of its 14, so half of its hits become misses. */
    RUN(w, "[machine]\ncounts=2\nspeeds=1\nllc_kib=8192\n[run]\nduration=1s\n" FREE
           "[memory small]\nmpki=1\napki=31\nworking_set=1024\n[memory big]\nmpki=1\napki=21\nworking_set=14336\n"
           "[program a]\naffinity=0-0\nstep=serial 1G memory=small\n"
           "[program b]\naffinity=1-1\nstep=serial 1G memory=big\n");
    near(asym_sim_tally(w.sim, 0).work, 1e9 / (1 + 0.1), 1e-5);
    near(asym_sim_tally(w.sim, 1).work, 1e9 / (1 + 1.1), 1e-5);
}

TEST(smt_siblings_compete_for_issue_slots)
{
    static const struct {
        const char *fetch;
        int nice;
        double ipc, a, b, lost, loss; /* demand of each; the two shares of a width of 4; fetch_lost; smt_loss */
    } rows[] = {
        {"even", 0, 1.5, 1.5, 1.5, 0, 0},
        {"even", 0, 3, 2, 2, 0.5, 0},
        {"even", 0, 1.5, 1.35, 1.35, 0, 0.1},
        {"priority", 13, 3, 3, 1, 0, 0}, /* 19 : 6; b gets the slots that a cannot use */
        {"priority", 13, 4, 3.04, 0.96, 0, 0},
        {"priority", 19, 4, 4, 0, 0, 0},
        {"priority", 13, 1.5, 1.5, 1.5, 0, 0},
        {"priority", 13, 1.5, 1.5, 1.23, 0.5, 0}, /* b gets half of what it would get beyond its 0.96 */
        {"priority", 13, 1.5, 1.5, 0.96, 1, 0},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        RUN(w,
            "[machine]\ncounts=1\nspeeds=1\nsmt=2\nmax_ipc=4\nsmt_loss=%g\nfetch=%s\nfetch_lost=%g\n[run]"
            "\nduration=10s\n" FREE "[memory m]\nipc=%g\n[program a]\nstep=serial 1G memory=m\n"
            "[program b]\nnice=%d\nstep=serial 1G memory=m\n",
            rows[i].loss, rows[i].fetch, rows[i].lost, rows[i].ipc, rows[i].nice);
        near(asym_sim_tally(w.sim, 0).work, rows[i].a * 10e9, 1e-4);
        assert_true(fabs(asym_sim_tally(w.sim, 1).work - rows[i].b * 10e9) < 1e6);
    }
}

/* b joins a on the core with two hardware threads, because c has the other core until second 1. Then the core of c is idle. */
TEST(an_idle_core_takes_over_one_of_two_siblings)
{
    static const struct {
        const char *capacity, *affinity; /* of b */
        double a, b;                     /* G instructions in 3 s: each sibling has 1.25 G a second, alone 2 or 1 */
    } rows[] = {
        {"ignored", "1-2", 0.2 + 0.9 * 1.25 + 2 * 2, 0.9 * 1.25 + 2 * 1},
        {"ignored", "0-1", 0.2 + 2.9 * 1.25, 2.9 * 1.25},
        {"load", "1-2", 0.2 + 2.9 * 1.25, 2.9 * 1.25},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        BEGIN(w,
              "[machine]\ncounts=1,1\nspeeds=2,1\nsmt=2,1\nmax_ipc=1.25\nsmt_loss=0\n[run]\nduration=3s\n" FREE
              "capacity=%s\nbalance=1ms\n[memory m]\nipc=1\n[program a]\naffinity=0\nstep=serial 1G memory=m\n"
              "[program b]\nstart=100ms\naffinity=%s\nstep=serial 1G memory=m\n"
              "[program c]\naffinity=2\npasses=1\nstep=serial 1G memory=m\n",
              rows[i].capacity, rows[i].affinity);
        assert_int_equal(asym_scenario_cpus(w.scenario), 3);
        finish(&w);
        near(asym_sim_tally(w.sim, 0).work, rows[i].a * 1e9, 0.001);
        near(asym_sim_tally(w.sim, 1).work, rows[i].b * 1e9, 0.001);
    }
}

static double fork_join(const char *machine, const char *program)
{
    RUN(w, "[machine]\n%s\n[run]\nuntil=done\nduration=1000s\n" FREE "[program a]\npasses=1\n%s\n", machine, program);
    const struct asym_sim_tally t = asym_sim_tally(w.sim, 0);
    assert_int_equal(t.ended, 1);
    return t.times;
}

TEST(static_loops_wait_for_the_slowest_and_dynamic_ones_do_not)
{
    static const char machine[] = "counts=3,1\nspeeds=1,2";
    near(fork_join(machine, "threads=4\nstep=parallel 4G"), 1, 1e-6);
    near(fork_join(machine, "threads=4\nstep=parallel 4G chunk=1M"), 0.8, 0.002);
    near(fork_join(machine, "threads=4\nspin=forever\nstep=parallel 4G chunk=1M"), 0.8, 0.002);
    /* A loop of two passes, a serial part, and a wait, which only takes time. */
    near(fork_join("counts=2\nspeeds=1", "threads=2\nstep=loop 2\nstep=parallel 1G\nstep=end\nstep=serial 100M\n"
                                         "step=io 250ms"),
         1.35, 1e-5);
}

TEST(a_lock_lets_in_one_at_a_time)
{
    /* 1000 chunks of 1 M, with 1 M each under the lock: one second under the lock, and the first chunk before it. */
    near(fork_join("counts=8\nspeeds=1", "threads=8\nstep=parallel 1G chunk=1M lock=1M"), 1.001, 0.001);
}

TEST(waiting_costs_cpu_time_only_while_it_spins)
{
    static const struct {
        const char *spin;
        double cpu;
    } rows[] = {{"0ms", 11}, {"100ms", 11.3}, {"forever", 14}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        /* One second in parallel on four CPUs; then one second alone, while the others wait. */
        RUN(w,
            "[machine]\ncounts=4\nspeeds=1\n[run]\nuntil=done\n" FREE
            "[program a]\nthreads=4\nspin=%s\npasses=1\nstep=parallel 10G\nstep=serial 1G\n",
            rows[i].spin);
        near(asym_sim_tally(w.sim, 0).cpu_ended, rows[i].cpu, 1e-4);
        near(asym_sim_tally(w.sim, 0).work, 11e9, 1e-6);
    }
}

TEST(programs_arrive_by_rate_and_wait_for_a_free_instance)
{
    RUN(w, "[machine]\ncounts=1\nspeeds=1\n[run]\nduration=2000s\n" FREE
           "[program a]\ncount=1\nrate=5\npasses=1\nstep=serial 100M exponential\n");
    const struct asym_sim_tally t = asym_sim_tally(w.sim, 0);
    near(t.ended, 10000, 0.05);
    near(t.cpu_ended / t.ended, 0.1, 0.05);
    /* In an M/M/1 queue at half load a job takes twice its service time. */
    near(t.times / t.ended, 0.2, 0.1);
}

TEST(jobs_that_arrive_are_the_same_however_fast_the_machine_is)
{
    double work[2];
    for (int k = 0; k < 2; k++) {
        RUN(w,
            "[machine]\ncounts=1\nspeeds=1\nfrequency=%d\n[run]\nduration=2000s\n" FREE
            "[program a]\ncount=20\nrate=5\npasses=1\nstep=serial 100M exponential\n",
            k + 1);
        work[k] = asym_sim_tally(w.sim, 0).work;
    }
    /* All but the last few of 10,000 jobs end; two samples of that size differ by 1.4 %. */
    near(work[0], work[1], 2e-3);
}

TEST(restarts_go_on_until_each_has_run_so_often)
{
    RUN(w, "[machine]\ncounts=2\nspeeds=1\n[run]\nuntil=runs\nruns=3\nduration=1000s\n" FREE
           "[program short]\nrestart=yes\npasses=1\nstep=serial 100M\n"
           "[program long]\nrestart=yes\npasses=1\nstep=serial 1G\n");
    assert_int_equal(asym_sim_tally(w.sim, 1).ended, 3);
    assert_in_range(asym_sim_tally(w.sim, 0).ended, 29, 30);
    near((double)asym_sim_now(w.sim), 3e9, 1e-6);
}

TEST(the_same_seed_gives_the_same_run_and_nothing_is_allocated)
{
    static const char text[] = "[machine]\ncounts=6,2\nspeeds=1,2\nsmt=2\nllc=4\nllc_kib=4096\n[run]\nduration=5s\n"
                               "[memory m]\nmpki=3\napki=20\nworking_set=2000\n"
                               "[program a]\nthreads=16\nstep=label 2:1 500M chunk=1M memory=m\n"
                               "[program b]\ncount=20\npasses=1\nrestart=yes\nspin=1ms\nthreads=2\n"
                               "step=parallel 20M exponential chunk=1M lock=100k io=2ms\n";
    double work[3];
    for (unsigned i = 0; i < 3; i++) {
        BEGIN_AS(w, i == 2 ? 2 : 1, "%s", text);
        const size_t before = count_allocations;
        finish(&w);
        assert_int_equal(count_allocations, before);
        work[i] = asym_sim_tally(w.sim, 0).work + asym_sim_tally(w.sim, 1).work;
    }
    assert_memory_equal(&work[0], &work[1], sizeof work[0]);
    assert_true(work[0] < work[2] || work[0] > work[2]);
}

/* Returns the speedup, over seeds, of a serial program beside a parallel one with as many threads as CPUs. */
static void serial_beside_parallel(unsigned n, double a, unsigned seeds, double *ret_mean, double *ret_least,
                                   double *ret_most)
{
    double sum = 0;
    *ret_least = INFINITY;
    *ret_most = 0;
    for (unsigned seed = 1; seed <= seeds; seed++) {
        /* Threads begin on random CPUs, as in the paper's runs. One of the n CPUs is the large core. */
        RUN_AS(w, seed,
               "[machine]\ncounts=%u,1\nspeeds=1,%g\n[scheduler]\nplacement=random\n[run]\nduration=3s\n"
               "[program serial]\nstep=serial 1000G\n[program parallel]\nthreads=%u\nstart=1ms\n"
               "step=parallel 10000G chunk=10M\n",
               n - 1, a, n);
        const double speedup = asym_sim_tally(w.sim, 0).work / 3e9 / ((n - 1 + a) / n);
        sum += speedup;
        *ret_least = fmin(*ret_least, speedup);
        *ret_most = fmax(*ret_most, speedup);
    }
    *ret_mean = sum / seeds;
}

/* Morad 2008, Table 1, state S,P: n + 1 threads on n CPUs, of which two share one. */
TEST(the_baseline_is_that_of_the_analysis)
{
    for (unsigned n = 2; n <= 8; n += 3) {
        for (double a = 1; a <= 1.5; a += 0.5) {
            double mean, least, most;
            serial_beside_parallel(n, a, 150, &mean, &least, &most);
            const double alone = (n - 1 + a) / n;
            near(mean, n / (n + 1.0), 0.08); /* chance over 150 seeds: 2 to 3 per cent */
            near(least, 0.5 / alone, 0.02);
            near(most, a / alone, 0.02);
        }
    }
}

/* The rank of each start, by program: "one" has one thread, "many" has three. */
struct starts {
    unsigned n, one_at;
};

static void note_start(void *ctx, const struct asym_sim_event *event)
{
    struct starts *starts = ctx;
    if (event->kind != ASYM_SIM_RUNS || starts->n >= 4)
        return;
    if (strcmp(event->program, "one") == 0)
        starts->one_at = starts->n;
    starts->n++;
}

/* On one CPU the threads of an instant run in the order in which they began. */
TEST(the_seed_draws_the_order_in_which_threads_begin)
{
    static const char *const text = "[machine]\ncounts=1\nspeeds=1\n[run]\nduration=20ms\n" FREE
                                    "[program one]\nstep=serial 1G\n[program many]\nthreads=3\nstep=parallel 1G\n";
    unsigned at[4] = {0};
    for (unsigned seed = 0; seed < 400; seed++) {
        struct starts starts = {0};
        BEGIN_AS(w, seed, "%s", text);
        asym_sim_trace(w.sim, &(struct asym_sim_tracer){.event = note_start, .ctx = &starts});
        finish(&w);
        assert_int_equal(starts.n, 4);
        at[starts.one_at]++;
    }
    /* 100 of each is expected; five standard deviations are 43. */
    for (unsigned i = 0; i < 4; i++)
        assert_in_range(at[i], 57, 143);
}

/* The CPUs on which threads of programs called "task" began, in this order. */
struct places {
    unsigned n;
    int cpu[16];
    bool seen[16]; /* by instance and rank: the thread has begun */
};

static void note_place(void *ctx, const struct asym_sim_event *event)
{
    struct places *places = ctx;
    bool *seen = &places->seen[event->instance + event->rank];
    if (event->kind != ASYM_SIM_RUNS || strcmp(event->program, "task") != 0 || *seen)
        return;
    *seen = true;
    places->cpu[places->n++] = event->cpu;
}

static struct places places_of(const char *text, unsigned seed)
{
    struct places places = {0};
    BEGIN_AS(w, seed, "%s", text);
    asym_sim_trace(w.sim, &(struct asym_sim_tracer){.event = note_place, .ctx = &places});
    finish(&w);
    return places;
}

static unsigned taken_by(const struct places *places)
{
    unsigned taken = 0;
    for (unsigned i = 0; i < places->n; i++)
        taken |= 1U << places->cpu[i];
    return taken;
}

/* Two nodes of four CPUs. */
#define TWO_NODES "[machine]\ncounts=8\nspeeds=1\nllc=4\nnode=1\n[run]\nduration=100ms\n" FREE
#define COPIES(n) "[program task]\npasses=1\nstep=serial 10G\ncount=" #n "\n"

/* The starter is on the housekeeping CPU, and one copy on the other node, or the other way round. */
TEST(a_new_thread_goes_to_the_other_node_and_the_cpu_that_went_idle_last)
{
    unsigned at[8] = {0};
    for (unsigned seed = 0; seed < 400; seed++) {
        const struct places one = places_of(TWO_NODES "housekeeping=0\n" COPIES(1), seed);
        assert_int_equal(one.n, 1);
        at[one.cpu[0]]++;
    }
    /* Half of them are expected; five standard deviations are 50. */
    assert_in_range(at[0], 150, 250);
    assert_int_equal(at[1] + at[2] + at[3], 0);
    for (unsigned cpu = 4; cpu < 8; cpu++)
        assert_in_range(at[cpu], 17, 83);
}

TEST(new_threads_take_turns_between_nodes)
{
    for (unsigned seed = 0; seed < 50; seed++) {
        const struct places all = places_of(TWO_NODES COPIES(8), seed);
        assert_int_equal(all.n, 8);
        for (unsigned i = 0; i < 8; i += 2)
            assert_true(all.cpu[i] / 4 != all.cpu[i + 1] / 4);
        assert_int_equal(taken_by(&all), 0xff);
        /* The starter had the last CPU: it is on the node that the first copy left. */
        assert_true(all.cpu[7] / 4 != all.cpu[0] / 4);
    }
}

/* CPU 5 has just gone idle, and no other CPU has run anything: it is the first one of its node. */
TEST(a_cpu_that_went_idle_last_comes_first)
{
    unsigned at[8] = {0};
    for (unsigned seed = 0; seed < 100; seed++) {
        const struct places one = places_of(TWO_NODES "[program early]\naffinity=5\npasses=1\nstep=serial 5M\n"
                                                      "[program task]\nstart=20ms\npasses=1\nstep=serial 10G\n",
                                            seed);
        at[one.cpu[0]]++;
    }
    assert_in_range(at[5], 25, 75);
    assert_int_equal(at[4] + at[6] + at[7], 0);
}

/* A master on one node and three threads that it starts: two threads on each node. */
TEST(a_master_starts_its_threads_from_its_own_cpu)
{
    for (unsigned seed = 0; seed < 50; seed++) {
        const struct places all = places_of(
            TWO_NODES "[program task]\nthreads=4\npasses=1\nstep=serial 5M\nstep=parallel 10G\n", seed);
        assert_int_equal(all.n, 4);
        unsigned beside = 0;
        for (unsigned i = 1; i < 4; i++)
            beside += all.cpu[i] / 4 == all.cpu[0] / 4;
        assert_int_equal(beside, 1);
        /* The master is on one of these two CPUs. A starter would be on the other one, and its node would keep the thread. */
        const struct places two = places_of(TWO_NODES "housekeeping=0,4\n[program task]\nthreads=2\npasses=1\n"
                                                      "step=serial 5M\nstep=parallel 10G\n",
                                            seed);
        assert_int_equal(two.n, 2);
        assert_int_equal(two.cpu[0] + two.cpu[1], 4);
    }
    /* No starter is there to take a CPU: eight threads have eight CPUs. */
    const struct places all = places_of(
        TWO_NODES "[program task]\nthreads=8\npasses=1\nstep=serial 5M\nstep=parallel 10G\n", 1);
    assert_int_equal(taken_by(&all), 0xff);
}

/* A mask bounds the search: the other node has more CPUs, but only one of them is allowed. */
TEST(only_allowed_cpus_count_as_idle)
{
    for (unsigned seed = 0; seed < 50; seed++) {
        const struct places all = places_of(TWO_NODES COPIES(3) "affinity=1-3,6\n", seed);
        assert_int_equal(all.n, 3);
        assert_int_equal(taken_by(&all) & ~0x4eU, 0);
        assert_true(all.cpu[0] < 4);
    }
}

#define TWO_SLOW_ONE_FAST "[machine]\ncounts=2,1\nspeeds=1,2\n[run]\nduration=10s\n" FREE

/* Four threads on speeds 1, 1 and 2: in proportion to speed each has a speed of 1. */
TEST(a_scheduler_that_knows_speeds_balances_threads_per_speed)
{
    for (unsigned seed = 0; seed < 20; seed++) {
        RUN_AS(w, seed,
               TWO_SLOW_ONE_FAST "capacity=load\n[program a]\nstep=serial 100G\n[program b]\nstep=serial 100G\n"
                                 "[program c]\nstep=serial 100G\n[program d]\nstep=serial 100G\n");
        for (unsigned i = 0; i < 4; i++)
            near(asym_sim_tally(w.sim, i).work, 10e9, 0.02);
    }
}

/* Only active balancing moves the only thread of a slow CPU. */
TEST(an_idle_fast_cpu_takes_over_a_running_thread)
{
    static const char *const texts[] = {TWO_SLOW_ONE_FAST "capacity=load\n[program a]\nstep=serial 100G\n",
                                        TWO_SLOW_ONE_FAST "capacity=active\n[program a]\nstep=serial 100G\n"};
    double least[2] = {20e9, 20e9};
    for (unsigned i = 0; i < 40; i++) {
        RUN_AS(w, i, "%s", texts[i % 2]);
        least[i % 2] = ASYM_MIN(least[i % 2], asym_sim_tally(w.sim, 0).work);
    }
    near(least[0], 10e9, 0.001);
    near(least[1], 20e9, 0.005);
}

TEST(a_policy_steers_it_through_the_ports)
{
    struct asym_snapshot s;
    const struct asym_plan *plan;
    const struct asym_action *actions;
    struct asym_outcome outcomes[64];
    struct asym_engine *e;
    size_t n, steered = 0;
    BEGIN(w, "[machine]\ncounts=7,1\nspeeds=1,2\n[run]\nduration=5s\n" FREE
             "[program serial]\nstep=serial 1000G\n[program parallel]\nthreads=8\nstep=parallel 1000G chunk=1M\n");
    const struct asym_engine_config config = asym_settings_engine_config(w.scenario->settings, asym_policy_find("pa"));
    struct asym_source *source = asym_sim_source(w.sim, 100 * ASYM_MSEC);
    struct asym_actuator *actuator = asym_sim_actuator(w.sim);
    assert_int_equal(asym_engine_new(&config, &e), 0);
    while (source->next(source, &s) > 0) {
        assert_int_equal(asym_engine_step(e, &s, &plan, &actions, &n), 0);
        assert_true(n <= ASYM_LENGTH(outcomes));
        if (s.interval > 0) {
            assert_int_equal(s.n_apps, 2);
            near(s.apps[0].runnable_mean, 1, 0.01);
            near(s.apps[1].runnable_mean, 8, 0.01);
        }
        assert_int_equal(actuator->apply(actuator, actions, n, outcomes), 0);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(outcomes[i].kind, ASYM_OUTCOME_DONE);
        asym_engine_outcomes(e, outcomes, n);
        steered += n;
    }
    assert_true(steered > 0);
    /* After half a second of settling, the serial thread has the fast CPU to itself. */
    assert_true(asym_sim_tally(w.sim, 0).work > 4.3 * 2e9);
    asym_engine_free(e);
}

/* The first thread is the master in serial steps. There is none in a parallel step. */
TEST(a_program_with_rtx_has_a_master_in_serial_steps)
{
    struct asym_snapshot s;
    unsigned masters[2] = {0};
    BEGIN(w, "[machine]\ncounts=4\nspeeds=1\n[run]\nduration=2100ms\n" FREE
             "[program a]\nthreads=4\nrtx=yes\nspin=forever\nstep=parallel 4200M\nstep=serial 1000M\n");
    struct asym_source *source = asym_sim_source(w.sim, 500 * ASYM_MSEC);
    /* 1.05 s in parallel, then 1 s alone. */
    for (unsigned n = 0; source->next(source, &s) > 0; n++) {
        assert_in_range(n, 0, 3);
        assert_int_equal(s.n_tasks, 4);
        for (size_t i = 0; i < s.n_tasks; i++)
            if (s.tasks[i].flags & ASYM_TASK_MASTER)
                masters[n / 2] += 1 + 100 * (unsigned)i;
    }
    assert_int_equal(masters[0], 0);
    assert_int_equal(masters[1], 2);
}

/* Three compilers at a time, one after the other. */
TEST(the_processes_of_a_job_are_one_application)
{
    struct asym_snapshot s;
    BEGIN(w, "[machine]\ncounts=4\nspeeds=1\n[run]\nduration=2s\n" FREE "[program serial]\nstep=serial 1000G\n"
             "[program cc]\njob=yes\ncount=3\nrestart=yes\nstep=serial 100M\n");
    struct asym_source *source = asym_sim_source(w.sim, 100 * ASYM_MSEC);
    struct asym_taskid id = {0};
    for (size_t n = 0; source->next(source, &s) > 0; n++) {
        assert_int_equal(s.n_apps, 2);
        assert_int_equal(s.n_procs, 4);
        assert_int_equal(s.apps[0].n_procs, 1);
        assert_int_equal(s.apps[1].n_procs, 3);
        assert_int_equal(s.apps[1].n_tasks, 3);
        for (size_t i = 0; i < s.n_tasks; i++)
            assert_int_equal(s.procs[s.tasks[i].proc].app, i > 0);
        assert_true(n == 0 || memcmp(&id, &s.apps[1].id, sizeof id) == 0);
        assert_true(s.procs[1].id.tid != s.apps[1].id.tid);
        id = s.apps[1].id;
        if (s.interval > 0)
            near(s.apps[1].runnable_mean, 3, 0.05);
    }
}

static size_t that_hardly_ran(const struct asym_snapshot *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_tasks; i++)
        n += (s->tasks[i].flags & ASYM_TASK_HARDLY_RAN) != 0;
    return n;
}

/* Three threads share a CPU: at the first sample one has had 2 ms; 12 ms later each has had a slice of 3 ms. */
TEST(a_thread_that_has_hardly_run_is_reported_as_on_a_live_machine)
{
    struct asym_snapshot s;
    BEGIN(w, "[machine]\ncounts=1\nspeeds=1\n[run]\nduration=1s\n" FREE
             "[program a]\nthreads=3\nstep=parallel 1000G chunk=1G\n");
    struct asym_source *source = asym_sim_source(w.sim, 2 * ASYM_MSEC);
    assert_int_equal(source->next(source, &s), 1);
    assert_int_equal(s.n_tasks, 3);
    assert_int_equal(that_hardly_ran(&s), 2);
    for (int i = 0; i < 6; i++)
        assert_int_equal(source->next(source, &s), 1);
    assert_int_equal(that_hardly_ran(&s), 0);
}

struct seen_means {
    double runnable[2], critical[2],
        running_beyond; /* by thread; the most by which one ran longer than it was runnable */
};

/* The means of the first two threads over four seconds, in samples of 100 ms. */
static struct seen_means see_means(const char *run, const char *rest)
{
    struct asym_snapshot s;
    struct seen_means sum = {.running_beyond = -1};
    BEGIN(w, "[machine]\ncounts=2\nspeeds=1\n" FREE "[run]\nduration=5s\n%s%s", run, rest);
    struct asym_source *source = asym_sim_source(w.sim, 100 * ASYM_MSEC);
    for (int i = 0; i < 41; i++) {
        assert_int_equal(source->next(source, &s), 1);
        for (size_t t = 0; i > 0 && t < s.n_tasks && t < 2; t++) {
            sum.runnable[t] += s.tasks[t].runnable / 40;
            sum.critical[t] += s.tasks[t].critical / 40;
            sum.running_beyond = ASYM_MAX(sum.running_beyond, s.tasks[t].running - s.tasks[t].runnable);
        }
    }
    return sum;
}

/* A thread of 3 of 10.3 ms: 0.291. */
TEST(the_source_errs_as_a_sampler_does)
{
    const char *const loop = "[program a]\nstep=serial 3M\nstep=io 7300us\n";
    near(see_means("runnable=exact\n", loop).runnable[0], 0.291, 0.01);
    const struct seen_means credited = see_means("runnable=credited\n", loop);
    near(credited.runnable[0], 0.291, 0.01);
    assert_true(credited.running_beyond <= 0);
    /* Three threads on two CPUs: each runs or waits all the time, whatever is under way at a sample. */
    const char *const hogs = "[program a]\nthreads=3\nstep=parallel 1000G chunk=1G\n";
    near(see_means("runnable=credited\n", hogs).runnable[1], 1, 0.01);
}

/* Of 15 ms the master is runnable alone for 5 and beside the other for 10: 5 + 10 / 2, and 10 / 2. */
TEST(the_source_measures_critical_shares)
{
    const char *const phases = "[program a]\nthreads=2\nstep=serial 5M\nstep=parallel 20M\n";
    const struct seen_means of = see_means("[asymd]\nobserver=bpf\n", phases);
    near(of.critical[0], 10 / 15.0, 0.02);
    near(of.critical[1], 5 / 15.0, 0.02);
    near(see_means("", phases).critical[0], 0, 0);
    const char *const job = "[program a]\ncount=2\njob=yes\nstep=serial 1000G\n";
    near(see_means("[asymd]\nobserver=bpf\n", job).critical[1], 0.5, 0.001);
}

struct heard {
    unsigned samples, begins, ends; /* begins: with a thread that is alone */
    double first;                   /* time of the first begin, ms */
};

/* Returns what asymd hears in a second, in samples of 100 ms, of a program of four threads on four CPUs. */
static struct heard hear(const char *daemon, bool begins, bool ends, const char *steps)
{
    struct asym_snapshot s;
    struct heard heard = {.first = -1};
    BEGIN(w, "[machine]\ncounts=4\nspeeds=1\n" FREE "[run]\nduration=1s\n[asymd]\n%s[program a]\nthreads=4\n%s", daemon,
          steps);
    struct asym_source *source = asym_sim_source(w.sim, 100 * ASYM_MSEC);
    asym_sim_hear(w.sim, begins, ends);
    while (source->next(source, &s) == 1) {
        unsigned alone = 0;
        for (size_t i = 0; i < s.n_tasks; i++)
            alone += (s.tasks[i].flags & ASYM_TASK_ALONE) != 0;
        const double now = (double)asym_sim_now(w.sim) * 1e-6;
        assert_int_equal(s.urgent, s.refreshed ? ASYM_URGENT_PHASE : ASYM_URGENT_NOT);
        if (alone)
            near(s.apps[0].runnable_mean, 1, 0);
        heard.samples += !s.refreshed;
        heard.begins += s.refreshed && alone == 1;
        heard.ends += s.refreshed && alone == 0;
        heard.first = heard.first < 0 && alone ? now : heard.first;
        if (!s.refreshed)
            near(now, 100.0 * heard.samples, 1e-9);
    }
    /* Without the observer bpf the hooks of phases keep nothing and set no timer. */
    if (!strstr(daemon, "bpf"))
        assert_true(!w.sim->criticals && w.sim->procs[0].team.since == 0 && !w.sim->heap.at[sim_slot_phase(w.sim, 0)]);
    return heard;
}

#define BPF "observer=bpf\n"

/* Phases of 50 ms from 40, 130, 220, ... to 940 ms on. asymd does not follow the program before the first sample. */
TEST(asymd_hears_of_serial_phases_of_a_program)
{
    const char *const phases = "step=parallel 160M\nstep=serial 50M\n";
    const struct heard both = hear(BPF, true, true, phases);
    near(both.first, 130.15, 1e-6);
    assert_int_equal(both.samples, 9);
    assert_int_equal(both.begins, 10);
    assert_int_equal(both.ends, 10);
    /* The same thread alone again is news only after a sample without it: from 130 to 400 ms, and at 940 ms. */
    const struct heard begins = hear(BPF, true, false, phases);
    assert_int_equal(begins.ends, 0);
    assert_int_equal(begins.begins, 5);
    assert_int_equal(hear(BPF, false, false, phases).begins, 0);
    assert_int_equal(hear("observer=procfs\n", true, true, phases).begins, 0);
    assert_int_equal(hear("", true, true, phases).begins, 0);
    /* A thread that only spins is runnable. */
    assert_int_equal(hear(BPF, true, true, "spin=forever\nstep=parallel 160M\nstep=serial 50M\n").begins, 0);
}

TEST(asymd_hears_of_a_program_that_flickers_after_a_while_only)
{
    /* Serial for 0.5 of each 1 ms. At most the first three are heard, and they are heard at once. */
    const char *const flickers = "step=parallel 2M\nstep=serial 500k\n";
    assert_in_range(hear(BPF, true, true, flickers).begins, 1, 3);
    assert_in_range(hear(BPF "phase_gap=0s\nphase_rate=10000\n", true, true, flickers).begins, 899, 901);
    /* Serial for 5 of each 6 ms: heard from phase_settle on. */
    const char *const quick = "step=parallel 4M\nstep=serial 5M\n";
    assert_in_range(hear(BPF "phase_rate=1000\n", true, true, quick).begins, 149, 151);
    assert_in_range(hear(BPF "phase_settle=5ms\n", true, true, quick).begins, 1, 3);
    /* Two events a second are one phase; the credit of a quarter of a second is less. */
    assert_in_range(hear(BPF "phase_rate=2\n", true, true, quick).begins, 1, 2);
}

TEST(the_actuator_answers_as_a_kernel_does)
{
    struct asym_snapshot s;
    struct asym_outcome o;
    BEGIN(w, "[machine]\ncounts=4\nspeeds=1\n[run]\nduration=5s\n" FREE
             "[program a]\npasses=1\nrestart=yes\nstep=serial 1200M\n");
    struct asym_source *source = asym_sim_source(w.sim, ASYM_SEC);
    struct asym_actuator *actuator = asym_sim_actuator(w.sim);
    assert_int_equal(source->next(source, &s), 1);
    struct asym_action a = {.kind = ASYM_ACTION_STEER, .id = s.tasks[0].id, .expect = *s.tasks[0].mask, .nice = -5};
    asym_mask_set(&a.mask, 3);
    actuator->apply(actuator, &a, 1, &o);
    assert_int_equal(o.kind, ASYM_OUTCOME_DONE);
    actuator->apply(actuator, &a, 1, &o); /* the mask that it expects is no longer in force */
    assert_int_equal(o.error, -EBUSY);
    a.expect = a.mask;
    a.mask = (struct asym_mask){{0}};
    actuator->apply(actuator, &a, 1, &o);
    assert_int_equal(o.kind, ASYM_OUTCOME_RETRY);
    assert_int_equal(source->next(source, &s), 1);
    /* The program restarted at 1.2 s: this is another thread with its own mask. */
    assert_int_not_equal(s.tasks[0].id.tid, a.id.tid);
    assert_int_equal(asym_mask_count(s.tasks[0].mask), 4);
    assert_int_equal(s.tasks[0].nice, 0);
    a.mask = a.expect;
    actuator->apply(actuator, &a, 1, &o);
    assert_int_equal(o.kind, ASYM_OUTCOME_GONE);
}

TEST(samples_and_profiles_say_what_was_done)
{
    struct asym_snapshot s;
    BEGIN(w, "[machine]\ncounts=1,1\nspeeds=1,2\nmax_ipc=2\n[run]\nduration=5s\n" FREE
             "[memory m]\nmpki=5\n[program a]\naffinity=1\nstep=serial 1000G memory=m\n");
    struct asym_source *source = asym_sim_source(w.sim, 100 * ASYM_MSEC);
    assert_int_equal(source->next(source, &s), 1);
    assert_int_equal(s.n_samples, 0);
    struct asym_plan_task task = {.counted = true};
    const struct asym_plan plan = {.tasks = &task, .n_tasks = 1};
    const struct asym_feedback feedback = {.snapshot = &s, .plan = &plan};
    asym_source_feedback(source, &feedback);
    assert_int_equal(source->next(source, &s), 1);
    assert_int_equal(s.n_samples, 1);
    /* 2 GHz, 2 instructions per cycle; 5 misses of 100 ns per thousand. */
    const double ips = 1e9 / (1 / 4.0 + 0.5);
    near(s.samples[0].seconds, 0.1, 1e-6);
    near(s.samples[0].cycles, 0.2e9, 1e-6);
    near(s.samples[0].instructions, ips * 0.1, 1e-6);
    near(s.samples[0].llc_misses, ips * 0.1 * 0.005, 1e-6);
    const struct asym_profile *profile = s.procs[0].profile;
    near(profile->ips[0], ips, 1e-9);
    near(profile->ips[1], 1e9 / (1 / 2.0 + 0.5), 1e-9);
    near(profile->mpki[0], 5, 1e-9);
    assert_int_equal(source->next(source, &s), 1);
    assert_int_equal(s.n_samples, 0);
    assert_non_null(s.missing[ASYM_SIGNAL_SMT]);
    assert_null(s.missing[ASYM_SIGNAL_IPC]);
}

/* The sets of CPUs by their number of threads, and the searches for a CPU, against a search of all CPUs. */

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
        near(s->loads[c], sim_load(s, c, 0), 0);
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
    struct sim_rng rng = {3};
    uint32_t most = 0;
    BEGIN(w, "%s", many_threads);
    struct asym_sim *s = w.sim;
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
        struct sim_rng rng = {7};
        unsigned hits[SIM_N_REACHES + 1] = {0};
        bool all = false, deepest = false;
        BEGIN(w, "%s%s", wide[m], wide_load);
        struct asym_sim *s = w.sim;
        for (uint64_t time = 0; asym_sim_until(s, time); time += 7000000) {
            all = check_searches(s, &rng, hits);
            for (unsigned i = 0; i < 8; i++)
                steer(s, &rng);
            deepest |= !asym_mask_empty(&s->levels[SIM_LAST_LEVEL]);
            check(s);
        }
        assert_true(all);
        assert_true(deepest);
    }
}

/* The table of masks frees those that no thread has any more, and only those. */
TEST(a_thread_keeps_its_mask_while_others_get_new_ones)
{
    struct sim_rng rng = {5};
    BEGIN(w, "%s%s", wide[0], wide_load);
    struct asym_sim *s = w.sim;
    ASYM_AUTO_FREE struct asym_mask *given = calloc(s->n_threads, sizeof *given);
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
}

/* As in Linux, all CPUs have the same period, and each has its own time in it. */
TEST(each_cpu_balances_once_a_period)
{
    BEGIN(w, "[machine]\ncounts=3\nspeeds=1\n[scheduler]\nbalance=10ms\n[run]\nduration=1s\nalone=no\n"
             "[program \"late\"]\nstart=10s\nstep=serial 1M\n");
    /* Turns come 1 ns after each third of the 10 ms, rounded down: 3,333,334, 6,666,667 and 10,000,001 ns. */
    static const struct {
        uint64_t until, events;
    } rows[] = {{3333333, 0},  {3333334, 1},  {6666666, 1},    {6666667, 2},  {10000000, 2},
                {10000001, 3}, {13333333, 3}, {13333334, 4},   {16666667, 5}, {20000000, 5},
                {20000001, 6}, {23333334, 7}, {523333334, 157}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        asym_sim_until(w.sim, rows[i].until);
        assert_int_equal(asym_sim_totals(w.sim).events, rows[i].events);
    }
}

/* -- scenario files, and the messages for bad ones -- */

#define MACHINE "[machine]\ncounts=7,1\nspeeds=1,2\n"
#define PROGRAM "[program a]\nstep=serial 1M\n"

TEST(everything_is_read)
{
    static const char text[] =
        "; a comment\n[machine]\ncounts = 12, 4\nspeeds = 1, 2.5\nsmt = 2\nllc = 4\nnode = 2\norder = interleaved\n"
        "max_ipc = 4\nmiss = 80ns\n"
        "[scheduler]\ntick = 10ms\nplacement = random\ncapacity = active\nhousekeeping = 0,2-3\n"
        "[run]\nduration = 30s\nuntil = runs\nruns = 5\nalone = no\n"
        "[memory hot]\nmpki = 12\nipc = 9\n"
        "[program \"two words\"]\nthreads = 3\ncount = 2\nnice = 0..19\naffinity = 0-3\npasses = 7\nrestart = yes\n"
        "spin = 2ms\nstart = 1s\nrate = 2.5\n"
        "step = parallel 1.5G uniform chunk=200k lock=1k io=3ms memory=hot\nstep = loop 3\nstep = io 4ms exponential\n"
        "step = end\nstep = label 2:1 3M\n"
        "[enforce]\nsettle = 0ms\n[asymd]\ninterval = 10ms\n";
    struct asym_scenario *s;
    struct asym_error err = {""};
    assert_int_equal(asym_scenario_parse(text, strlen(text), "f", &s, &err), 0);
    assert_int_equal(asym_scenario_cpus(s), 32);
    assert_int_equal(s->scheduler.capacity, ASYM_SIM_CAPACITY_ACTIVE);
    assert_int_equal(s->scheduler.housekeeping.w[0], 0xd);
    asym_scenario_free(s);
    /* smt is a number for all cores, or one for each count. */
    const char *const smt = "[machine]\ncounts=8,16,2\nspeeds=1.6,1,0.7\nsmt=2,1,1\n" PROGRAM;
    assert_int_equal(asym_scenario_parse(smt, strlen(smt), "f", &s, &err), 0);
    assert_int_equal(asym_scenario_cpus(s), 34);
    asym_scenario_free(s);
    /* A second line replaces all of the first, not only its beginning. */
    const char *const twice = "[machine]\ncounts=2,2,2\nspeeds=1,2,3\n[machine]\ncounts=1,1\nspeeds=1,2\n" PROGRAM;
    assert_int_equal(asym_scenario_parse(twice, strlen(twice), "f", &s, &err), 0);
    assert_int_equal(asym_scenario_cpus(s), 2);
    asym_scenario_free(s);
    assert_int_equal(asym_scenario_parse(text, strlen(text), "f", &s, &err), 0);
    assert_int_equal(asym_scenario_threads(s), 6);
    assert_true(s->machine.speeds[1] > 2.49 && s->machine.speeds[1] < 2.51);
    assert_int_equal(s->machine.order, ASYM_SIM_INTERLEAVED);
    assert_int_equal(s->machine.miss_ns, 80);
    assert_int_equal(s->scheduler.tick, 10000000);
    assert_int_equal(s->run.until, ASYM_SIM_UNTIL_RUNS);
    assert_false(s->run.alone);
    assert_true(s->memories[1].ipc <= 4 && s->memories[1].apki >= 12);
    const struct asym_sim_program *p = &s->programs[0];
    assert_string_equal(p->name, "two words");
    assert_int_equal(p->nice_high, 19);
    assert_int_equal(p->passes, 7);
    assert_int_equal(p->spin, 2000000);
    assert_int_equal(p->n_steps, 6);
    assert_int_equal(p->steps[0].memory, 1);
    assert_int_equal(p->steps[0].draw, ASYM_SIM_UNIFORM);
    assert_true(p->steps[0].chunk > 199e3 && p->steps[0].critical > 999 && p->steps[0].pause > 2.9e6);
    assert_int_equal(p->steps[3].partner, 1);
    /* A label counts parallel work per CPU. */
    assert_true(fabs(p->steps[5].follow - 0.5 / 32) < 1e-12);
    assert_int_equal(s->settings->enforce.settle, 0);
    assert_int_equal(s->settings->daemon.interval, 10 * ASYM_MSEC);
    asym_scenario_free(s);
}

TEST(fast_from_and_smt_gain_are_of_the_machine)
{
    static const char text[] = "[machine]\ncounts=1,1,1\nspeeds=5.8,5.5,4.3\nfast_from = 96%\nsmt_gain = 18%\n" PROGRAM;
    struct asym_scenario *s;
    struct asym_error err;
    assert_int_equal(asym_scenario_parse(text, strlen(text), "f", &s, &err), 0);
    assert_true(fabs(s->settings->machine.fast_from - 0.96) < 1e-9);
    assert_true(fabs(s->settings->machine.smt_gain - 0.18) < 1e-9);
    asym_scenario_free(s);
}

TEST(each_bad_line_is_named_with_what_is_accepted)
{
    static const struct {
        const char *text, *where, *what;
    } rows[] = {
        {MACHINE "fast_from=80\n" PROGRAM, "f:4: ", "a share from 1% to 100%"},
        {MACHINE "cuonts=1\n" PROGRAM, "f:4: ", "did you mean 'counts'?"},
        {"[machien]\n", "f:1: ", "machine, scheduler"},
        {MACHINE "order=blokced\n" PROGRAM,
         "f:4: ", "machine.order: 'blokced' is not accepted (did you mean 'blocked'?)"},
        {MACHINE "[program a]\npasses=forver\n", "f:5: ", "(did you mean 'forever'?)"},
        {MACHINE "[program a]\nspin=2\n", "f:5: ", "a time with unit (ns, us, ms, s) from 0ns to 86400s or forever"},
        {MACHINE "[scheduler]\ntick=99us\n", "f:5: ", "from 100us to 1s"},
        {MACHINE "[program a]\nstap=1\n", "f:5: ", "did you mean 'step'?"},
        {"[machine]\ncounts=1\nspeeds=0\n" PROGRAM, "f:3: ", "above 0"},
        {"[machine]\ncounts=1,2\nspeeds=1\n" PROGRAM, "f:1: ", "as many speeds as counts"},
        {"[machine]\ncounts=1.5\nspeeds=1\n" PROGRAM, "f:2: ", "numbers of cores"},
        {"[machine]\ncounts=1000,25\nspeeds=1,2\n" PROGRAM, "f:1: ", "1025 CPUs; accepted are 1024"},
        {PROGRAM, "f: ", "no machine"},
        {MACHINE, "f: ", "no program"},
        {MACHINE "smt=9\n" PROGRAM, "f:4: ", "from 1 to 8: a number for all cores, or one for each count"},
        {MACHINE "smt=1.5\n" PROGRAM, "f:4: ", "from 1 to 8"},
        {MACHINE "smt=2,1,1\n" PROGRAM, "f:1: ", "one number, or as many as counts"},
        {MACHINE "smt=2\nsmt=2\n" PROGRAM, "f:5: ", "given twice, first in line 4"},
        {MACHINE "[run]\nduration=5\n" PROGRAM, "f:5: ", "a time with unit"},
        {MACHINE "[run]\nuntil=done\n" PROGRAM, "f:6: ", "never ends"},
        {MACHINE "[run]\nuntil=done\n[program a]\npasses=1\nrestart=yes\nstep=serial 1M\n",
         "f:6: ", "restarts without end"},
        {MACHINE "[run]\nuntil=done\n[program a]\npasses=1\nrate=2\nstep=serial 1M\n", "f:6: ", "restarts without end"},
        {MACHINE "[program a]\n", "f:4: ", "no step that takes time"},
        {MACHINE "[program a]\nstep=loop 3\nstep=end\n", "f:5: ", "would never end"},
        {MACHINE "[program a]\nstep=serial 1M\nstep=loop 3\nstep=end\n", "f:6: ", "would never end"},
        {MACHINE "[program a]\nstep=loop 3\nstep=serial 1M\n", "f:5: ", "without an end"},
        {MACHINE "[program a]\nstep=serial 1M\nstep=end\n", "f:6: ", "end without a loop"},
        {MACHINE "[program a]\nstep=serial 0\n", "f:5: ", "above 0"},
        {MACHINE "[program a]\nstep=serial 999\n", "f:5: ", "at least 1k"},
        {MACHINE "[program a]\nstep=parallel 1G chunk=1\n", "f:5: ", "at least 1k"},
        {MACHINE "[program a]\nstep=serial 1M\nstep=io 999ns\n", "f:6: ", "at least 1us"},
        {MACHINE "[program a]\nstep=serial 1M chunk=2\n", "f:5: ", "'chunk=2' is not accepted here"},
        {MACHINE "[program a]\nstep=serial 1M memory=m\n", "f:5: ", "no such memory"},
        {MACHINE "[program a]\nstep=label inf:inf 1M\n", "f:5: ", "label P:S WORK"},
        {MACHINE "[program a]\nthreads=1000001\nstep=serial 1\n", "f:5: ", "from 1 to 1000000"},
        {MACHINE "[program a]\nthreads=1000\ncount=1001\nstep=serial 1M\n", "f:4: ", "1001000 threads"},
        {MACHINE "[program a]\naffinity=8\nstep=serial 1M\n", "f:4: ", "it has 8"},
        {MACHINE "[scheduler]\nhousekeeping=7-8\n" PROGRAM, "f: ", "housekeeping names CPUs"},
        {MACHINE "[scheduler]\nhousekeeping=zero\n" PROGRAM, "f:5: ", "a CPU list"},
        {MACHINE "[program a]\nnice=3..1\nstep=serial 1M\n", "f:5: ", "0..19"},
        {MACHINE "[program]\nstep=serial 1M\n", "f:4: ", "needs a name"},
        {MACHINE PROGRAM PROGRAM, "f:6: ", "already"},
        {MACHINE PROGRAM "[enforce]\nsettle=x\n", "f:7: ", "enforce.settle"},
        {MACHINE PROGRAM "[enforce]\nsetle=0ms\n", "f:7: ", "did you mean 'settle'?"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_scenario *s = NULL;
        struct asym_error err = {""};
        if (asym_scenario_parse(rows[i].text, strlen(rows[i].text), "f", &s, &err) != -EINVAL)
            fail_msg("accepted: %s", rows[i].text);
        assert_null(s);
        if (strncmp(err.text, rows[i].where, strlen(rows[i].where)) != 0 || !strstr(err.text, rows[i].what))
            fail_msg("'%s' says neither %s nor %s of:\n%s", err.text, rows[i].where, rows[i].what, rows[i].text);
    }
}

TEST(the_scenarios_that_come_with_it_are_read)
{
    glob_t found;
    assert_int_equal(glob(ASYM_TEST_SOURCE "/scenarios/*.ini", 0, NULL, &found), 0);
    assert_true(found.gl_pathc >= 6);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct asym_scenario *s;
        struct asym_error err = {""};
        ASYM_AUTO_FREE char *text;
        size_t len;
        assert_int_equal(asym_ini_file(found.gl_pathv[i], &text, &len, &err), 0);
        if (asym_scenario_parse(text, len, found.gl_pathv[i], &s, &err) < 0)
            fail_msg("%s", err.text);
        asym_scenario_free(s);
    }
    globfree(&found);
}

int main(void)
{
    count_begin();
    return test_run(NULL, NULL);
}
