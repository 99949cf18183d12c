/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load-silent WORKERS SERIAL_MS PARALLEL_MS ROUNDS: a program with serial and parallel phases. Its threads sleep at a barrier, and
 * it reports none of them. For each serial phase it prints the microseconds from its begin until the master may run on CPU 0 only,
 * which is a fast one, and no worker there; or -1 if the phase ended before that. At its end it prints on standard error for which
 * share of its serial phases, but for the first 30, the master was on CPU 0, in per cent.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "apart.h"

enum { WORKERS_MAX = 64, SKIP = 30 };

static pthread_barrier_t barrier;
static atomic_int tids[WORKERS_MAX];
static double parallel_ms;
static atomic_int waiting; /* workers that sleep at the barrier, or are about to */
static atomic_bool ends;

static void be_busy(double ms)
{
    for (const double end = now_us() + ms * 1e3; now_us() < end;)
        ;
}

static void *work(void *arg)
{
    atomic_int *tid = arg;
    atomic_store(tid, gettid());
    for (;;) {
        atomic_fetch_add(&waiting, 1);
        pthread_barrier_wait(&barrier);
        if (atomic_load(&ends))
            return NULL;
        be_busy(parallel_ms);
    }
}

/* Returns whether the kernel lets the calling thread run on CPU 0 only. */
static bool is_on_fast(void)
{
    cpu_set_t mine;
    return sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_ISSET(0, &mine) && CPU_COUNT(&mine) == 1;
}

/* Works for ms, and prints when it was served. Returns the share on CPU 0. */
static double work_alone(double ms, int n)
{
    const double begun = now_us(), end = begun + ms * 1e3;
    double took = -1, on = 0, before, now;
    for (before = begun; before < end; before = now) {
        if (took < 0 && is_on_fast() && is_apart(tids, n))
            took = now_us() - begun;
        now = now_us();
        on += sched_getcpu() == 0 ? now - before : 0;
    }
    printf("%.1f\n", took);
    fflush(stdout);
    return on / (before - begun);
}

int main(int argc, char **argv)
{
    pthread_t threads[WORKERS_MAX];
    const int n = argc == 5 ? atoi(argv[1]) : 0;
    if (n < 1 || n > WORKERS_MAX)
        return 2;
    parallel_ms = atof(argv[3]);
    pthread_barrier_init(&barrier, NULL, (unsigned)n + 1);
    for (int i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, work, &tids[i]) != 0)
            return 1;
    double on = 0;
    int counted = 0;
    for (int round = 0; round < atoi(argv[4]); round++) {
        while (atomic_load(&waiting) < n)
            ;
        atomic_store(&waiting, 0);
        pthread_barrier_wait(&barrier);
        be_busy(parallel_ms);
        while (atomic_load(&waiting) < n)
            ;
        const double share = work_alone(atof(argv[2]), n);
        on += round < SKIP ? 0 : share;
        counted += round >= SKIP;
    }
    fprintf(stderr, "%.1f\n", counted > 0 ? 100 * on / counted : 0);
    atomic_store(&ends, true);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
