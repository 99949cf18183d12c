/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * talker WORKERS SERIAL_MS PARALLEL_MS ROUNDS: a program with serial and parallel phases. Its threads wait by spinning, and
 * report that (asym_rtx(3)). For each serial phase it prints the microseconds from its begin until no worker may run on a CPU
 * of the master any more; -1 if the phase ended before that.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <asym/rtx.h>

#include "apart.h"

enum { WORKERS_MAX = 64 };

static atomic_int phase; /* increases with each phase: odd phases are parallel; -1: the end */
static atomic_int waiting;
static atomic_int tids[WORKERS_MAX];
static int n_workers;

static void *work(void *arg)
{
    atomic_int *tid = arg;
    struct asym_rtx_slot *slot = asym_rtx_thread();
    int done = 0, now;
    atomic_store(tid, gettid());
    for (;;) {
        asym_rtx_set(slot, ASYM_RTX_SPINNING);
        atomic_fetch_add(&waiting, 1);
        while ((now = atomic_load(&phase)) == done)
            ;
        if (now < 0)
            return NULL;
        done = now;
        /* A thread without a CPU during a whole parallel phase has missed that phase. */
        if (now % 2 == 0)
            continue;
        asym_rtx_set(slot, ASYM_RTX_WORKING);
        while ((done = atomic_load(&phase)) == now)
            ;
    }
}

static void parallel(double ms)
{
    const double end = now_us() + ms * 1e3;
    atomic_store(&waiting, 0);
    atomic_fetch_add(&phase, 1);
    while (now_us() < end)
        ;
    atomic_fetch_add(&phase, 1);
    while (atomic_load(&waiting) < n_workers)
        ;
}

static double serial(double ms)
{
    /* This comes before the call: asymd may run on the shared CPU before the call returns. */
    const double begun = now_us();
    asym_rtx_serial_begin();
    const double took = work_serially(begun, ms, tids, n_workers);
    asym_rtx_serial_end();
    return took;
}

int main(int argc, char **argv)
{
    pthread_t threads[WORKERS_MAX];
    if (argc != 5 || (n_workers = atoi(argv[1])) < 1 || n_workers > WORKERS_MAX)
        return 2;
    if (asym_rtx_join(NULL) < 0)
        return 1;
    asym_rtx_master(1);
    for (int i = 0; i < n_workers; i++)
        if (pthread_create(&threads[i], NULL, work, &tids[i]) != 0)
            return 1;
    while (atomic_load(&waiting) < n_workers)
        ;
    for (int round = 0; round < atoi(argv[4]); round++) {
        parallel(atof(argv[3]));
        printf("%.1f\n", serial(atof(argv[2])));
        fflush(stdout);
    }
    atomic_store(&phase, -1);
    for (int i = 0; i < n_workers; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
