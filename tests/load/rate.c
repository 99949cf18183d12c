/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load-rate THREADS SECONDS [SKIP]: THREADS threads count. At the end it prints one line for each, without the first SKIP
 * seconds:
 *
 *     rate=R own=PART cpus=C:SHARE,...
 *
 * R: steps per microsecond of wall time; PART: the part of that time in which the thread had a CPU, by its CPU clock; SHARE:
 * the percentage of that time in which it was on CPU C.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "now.h"

#define CPUS_MAX 1024

struct counter {
    double begin, end; /* seconds of CLOCK_MONOTONIC */
    double steps, on_cpu[CPUS_MAX];
    double cpu; /* seconds of CPU time */
};

/* Some 10 us of a fast core: short enough to read the CPU once after each. */
static void count(void)
{
    for (volatile unsigned i = 0; i < 5000; i++)
        ;
}

static void *run(void *arg)
{
    struct counter *c = arg;
    double since = 0, last = now();
    bool counts = false;
    while (last < c->end) {
        /* From here on both clocks count, including this iteration's steps. */
        if (!counts && last >= c->begin) {
            counts = true;
            since = seconds_of(CLOCK_THREAD_CPUTIME_ID);
        }
        count();
        double t = now();
        int cpu = sched_getcpu();
        if (counts && cpu >= 0 && cpu < CPUS_MAX) {
            c->steps += 5000;
            c->on_cpu[cpu] += t - last;
        }
        last = t;
    }
    c->cpu = counts ? seconds_of(CLOCK_THREAD_CPUTIME_ID) - since : 0;
    return NULL;
}

static void report(const struct counter *c)
{
    double total = 0;
    for (int i = 0; i < CPUS_MAX; i++)
        total += c->on_cpu[i];
    printf("rate=%.2f own=%.3f cpus=", total > 0 ? c->steps / total / 1e6 : 0, total > 0 ? c->cpu / total : 0);
    const char *comma = "";
    for (int i = 0; i < CPUS_MAX; i++)
        if (c->on_cpu[i] > 0) {
            printf("%s%d:%.1f", comma, i, 100 * c->on_cpu[i] / total);
            comma = ",";
        }
    putchar('\n');
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4) {
        fputs("usage: load-rate THREADS SECONDS [SKIP]\n", stderr);
        return 2;
    }
    const int n = atoi(argv[1]);
    const double start = now();
    struct counter *counters = calloc((size_t)n + 1, sizeof *counters);
    pthread_t *threads = calloc((size_t)n + 1, sizeof *threads);
    if (!counters || !threads)
        return 1;
    for (int i = 0; i < n; i++) {
        counters[i].begin = start + (argc == 4 ? atof(argv[3]) : 0);
        counters[i].end = start + atof(argv[2]);
        /* The main thread counts too: a sleeping main thread would be one thread too many. */
        if (i > 0 && pthread_create(&threads[i], NULL, run, &counters[i]) != 0)
            return 1;
    }
    run(&counters[0]);
    for (int i = 1; i < n; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < n; i++)
        report(&counters[i]);
    free(threads);
    free(counters);
    return 0;
}
