/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cost of a step of the engine, and of recording it in the monitor: CPU time with 1,000 and 10,000 threads on 256 CPUs, the
 * median of steps in which nothing has changed, and with 10,000 that of the first step and of steps in which a hundredth of the
 * threads began or ceased to sleep; of these two also the policy's part, the plan.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <asym/engine.h>

#include "base/macro.h"
#include "explain/monitor.h"
#include "support/generate.h"
#include "times.h"

#define N_CPUS  256
#define N_FAST  64
#define N_STEPS 51
#define PER_APP 10

static const struct asym_policy *measured;
static double plan_ms;

static int timed_plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    const double begin = read_ns(CLOCK_THREAD_CPUTIME_ID);
    const int r = measured->plan(in, ret);
    plan_ms += (read_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / 1e6;
    return r;
}

static struct asym_engine *new_engine(const struct asym_policy *policy)
{
    double params[32] = {0};
    if (policy->params_size > sizeof params)
        abort();
    gen_params(policy, params);
    const struct asym_engine_config config = {
        .policy = policy,
        .params = params,
        .classify = {.serial_max_threads = 2, .hp_threshold = UINT32_MAX, .amp_boost = ASYM_SEC, .hysteresis = 1},
        .enforce = {.pin = -1, .swap_period = 100 * ASYM_MSEC, .release = 5 * ASYM_SEC},
    };
    struct asym_engine *e;
    if (asym_engine_new(&config, &e) < 0)
        abort();
    return e;
}

/* Milliseconds. */
struct costs {
    double first, step, changed, record, first_plan, changed_plan;
};

static double median(double times[N_STEPS])
{
    qsort(times, N_STEPS, sizeof times[0], by_value);
    return times[N_STEPS / 2];
}

static double record(struct asym_monitor *monitor, const struct asym_feedback *feedback)
{
    const double begin = read_ns(CLOCK_THREAD_CPUTIME_ID);
    asym_monitor_record(monitor, feedback);
    return (read_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / 1e6;
}

/* All outcomes are DONE, so that each step starts from the previous plan. */
static struct costs measure_steps(const struct asym_policy *policy, const struct asym_machine *m, unsigned n_threads)
{
    double times[2][N_STEPS], plans[2][N_STEPS], records[N_STEPS];
    struct asym_policy timed = *policy;
    struct asym_monitor *monitor;
    ASYM_AUTO_FREE unsigned *sizes = calloc(n_threads / PER_APP, sizeof *sizes);
    ASYM_AUTO_FREE struct asym_outcome *outcomes = calloc(2 * n_threads, sizeof *outcomes);
    if (!sizes || !outcomes || asym_monitor_new(&monitor) < 0)
        abort();
    for (size_t a = 0; a < n_threads / PER_APP; a++)
        sizes[a] = PER_APP;
    struct gen_load *load = gen_load_new(m, sizes, n_threads / PER_APP);
    if (!load)
        abort();
    /* 100 threads are entitled to most of a core, for the policies that use shares */
    for (size_t i = 0; i < n_threads; i += n_threads / 100)
        load->tasks[i].nice = -20;
    measured = policy;
    timed.plan = timed_plan;
    struct asym_engine *e = new_engine(&timed);
    for (size_t k = 0; k < 2 * N_STEPS; k++) {
        const struct asym_plan *plan;
        const struct asym_action *actions;
        size_t n;
        if (k >= N_STEPS) {
            /* In a step a hundredth of the applications begin to sleep for most of the time; in the next they compute again. */
            for (size_t a = k / 2 % 100; a < n_threads / PER_APP; a += 100)
                gen_load_share(load, a, k % 2 == 0 ? 0.1 : 1);
        }
        const double begin = read_ns(CLOCK_THREAD_CPUTIME_ID);
        if (asym_engine_step(e, &load->s, &plan, &actions, &n) < 0)
            abort();
        times[k / N_STEPS][k % N_STEPS] = (read_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / 1e6;
        plans[k / N_STEPS][k % N_STEPS] = plan_ms;
        plan_ms = 0;
        records[k % N_STEPS] = record(monitor, &(struct asym_feedback){&load->s, plan, actions, outcomes, n});
        gen_load_apply(load, actions, n);
        gen_load_move(load, plan);
        asym_engine_outcomes(e, outcomes, n);
        gen_load_pass(load, 100 * ASYM_MSEC);
    }
    const double first = times[0][0], first_plan = plans[0][0];
    asym_engine_free(e);
    asym_monitor_free(monitor);
    gen_load_free(load);
    return (struct costs){first, median(times[0]), median(times[1]), median(records), first_plan, median(plans[1])};
}

static void print_row(const char *name, double few, double many)
{
    printf("%-14s %11.3f ms %11.3f ms %8.1f", name, few, many, many / few);
}

/* Argument: the policy to measure; none: all. */
int main(int argc, char **argv)
{
    const struct asym_policy *policy;
    static struct asym_machine m, pairs;
    double most_few = 0, most_many = 0;
    gen_plain_machine(&m, N_CPUS, N_FAST);
    /* Gives each core two CPUs. */
    gen_plain_machine(&pairs, N_CPUS, N_FAST);
    for (unsigned c = 0; c < N_CPUS; c++)
        pairs.cpus[c].core = pairs.cpus[c].freq_domain = (int16_t)(c / 2);
    if (asym_machine_finish(&pairs) < 0)
        abort();
    printf("CPU time of a step, median of %d (but the first), %d CPUs, %d of them fast, %d threads per application\n",
           N_STEPS, N_CPUS, N_FAST, PER_APP);
    printf("%-14s %14s %14s %8s %14s %14s %14s %14s\n", "policy", "1,000 threads", "10,000 threads", "growth", "first",
           "1 % changed", "first plan", "1 % changed");
    for (size_t i = 0; (policy = asym_policy_at(i)); i++) {
        if (argc > 1 && strcmp(policy->name, argv[1]) != 0)
            continue;
        const struct asym_machine *on = policy->needs >> ASYM_SIGNAL_SMT & 1 ? &pairs : &m;
        const struct costs few = measure_steps(policy, on, 1000), many = measure_steps(policy, on, 10000);
        print_row(policy->name, few.step, many.step);
        printf(" %11.3f ms %11.3f ms %11.3f ms %11.3f ms\n", many.first, many.changed, many.first_plan,
               many.changed_plan);
        most_few = ASYM_MAX(most_few, few.record);
        most_many = ASYM_MAX(most_many, many.record);
    }
    print_row("monitor", most_few, most_many);
    putchar('\n');
    return 0;
}
