/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load-silent [manager] WORKERS SERIAL_MS PARALLEL_MS ROUNDS: a program of WORKERS + 1 threads with serial and parallel phases.
 * They sleep at a barrier, and the program reports none of them. The threads run the serial phases in turn: what one of them has
 * is never what the next one needs. With manager, the main thread runs them all, and sleeps while the others work. For each serial
 * phase it prints the microseconds from its begin until its thread may run on CPU 0 only, which is a fast one; or -1 if the phase
 * ended before that. At its end it prints on standard error for which share of its serial phases, but for the first 30, their
 * threads were on CPU 0, in per cent.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apart.h"

enum { THREADS_MAX = 65, SKIP = 30 };

static pthread_barrier_t barrier, done;
static bool has_manager;
static atomic_int waiting; /* threads that sleep at the barrier, or are about to */
static int n_threads, n_rounds;
static double serial_ms, parallel_ms;
static double on; /* sum of the shares on CPU 0; of the thread that runs alone */

static void be_busy(double ms)
{
    for (const double end = now_us() + ms * 1e3; now_us() < end;)
        ;
}

/* Returns whether the kernel lets the calling thread run on CPU 0 only. */
static bool is_on_fast(void)
{
    cpu_set_t mine;
    return sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_ISSET(0, &mine) && CPU_COUNT(&mine) == 1;
}

/* Prints when the thread was served. Returns the share on CPU 0. */
static double work_alone(void)
{
    const double begun = now_us(), end = begun + serial_ms * 1e3;
    double took = -1, sum = 0, before, now;
    for (before = begun; before < end; before = now) {
        if (took < 0 && is_on_fast())
            took = now_us() - begun;
        now = now_us();
        sum += sched_getcpu() == 0 ? now - before : 0;
    }
    printf("%.1f\n", took);
    fflush(stdout);
    return sum / (before - begun);
}

static void run_with_manager(bool is_manager)
{
    for (int round = 0; round < n_rounds; round++) {
        pthread_barrier_wait(&barrier);
        if (!is_manager)
            be_busy(parallel_ms);
        pthread_barrier_wait(&done);
        if (!is_manager)
            continue;
        const double share = work_alone();
        on += round < SKIP ? 0 : share;
    }
}

static void *run(void *arg)
{
    const int me = (int)(intptr_t)arg;
    if (has_manager) {
        run_with_manager(me == 0);
        return NULL;
    }
    for (int round = 0; round < n_rounds; round++) {
        pthread_barrier_wait(&barrier);
        be_busy(parallel_ms);
        if (me != round % n_threads) {
            atomic_fetch_add(&waiting, 1);
            continue;
        }
        while (atomic_load(&waiting) < n_threads - 1)
            ;
        atomic_store(&waiting, 0);
        const double share = work_alone();
        on += round < SKIP ? 0 : share;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS_MAX];
    has_manager = argc == 6 && strcmp(argv[1], "manager") == 0;
    if (has_manager) {
        argc--;
        argv++;
    }
    n_threads = argc == 5 ? atoi(argv[1]) + 1 : 0;
    if (n_threads < 2 || n_threads > THREADS_MAX)
        return 2;
    serial_ms = atof(argv[2]);
    parallel_ms = atof(argv[3]);
    n_rounds = atoi(argv[4]);
    pthread_barrier_init(&barrier, NULL, (unsigned)n_threads);
    pthread_barrier_init(&done, NULL, (unsigned)n_threads);
    for (int i = 1; i < n_threads; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)(intptr_t)i) != 0)
            return 1;
    run((void *)(intptr_t)0);
    for (int i = 1; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    fprintf(stderr, "%.1f\n", n_rounds > SKIP ? 100 * on / (n_rounds - SKIP) : 0);
    return 0;
}
