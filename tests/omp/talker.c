/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * talker WORKERS SERIAL_MS PARALLEL_MS ROUNDS: load-talker as an OpenMP program that knows nothing of asymd, with the same
 * output: for each serial phase the microseconds from its begin until the kernel had it so that the initial thread may run
 * on some CPUs and every worker on others only; -1 where that did not come before its end. The environment says how threads
 * wait.
 *
 * It begins at the end of a region, which is the runtime's to know. The nearest that the program can come to it is the
 * initial thread's last statement in the region, when the others have come to theirs. That is always before the runtime
 * tells the tool (parallel_end), by the barrier that ends the region: what is printed is never too little. The return of
 * the construct may come late: the tool has spoken by then, and on a CPU that they share asymd may have acted.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <omp.h>

#include "../load/apart.h"

enum { WORKERS_MAX = 64 };

static atomic_int tids[WORKERS_MAX];
static int n_workers;

/* Returns when it ended, as above; -1: with fewer threads than it was to have. */
static double parallel(double ms)
{
    const double end = now_us() + ms * 1e3;
    atomic_int arrived = 0;
    double ended = -1;
#pragma omp parallel num_threads(n_workers + 1)
    {
        const int me = omp_get_thread_num();
        if (me > 0)
            atomic_store(&tids[me - 1], gettid());
        while (now_us() < end)
            ;
        if (me > 0) {
            atomic_fetch_add(&arrived, 1);
        } else if (omp_get_num_threads() == n_workers + 1) {
            while (atomic_load(&arrived) < n_workers)
                ;
            ended = now_us();
        }
    }
    return ended;
}

int main(int argc, char **argv)
{
    if (argc != 5 || (n_workers = atoi(argv[1])) < 1 || n_workers > WORKERS_MAX)
        return 2;
    for (int round = 0; round < atoi(argv[4]); round++) {
        const double begun = parallel(atof(argv[3]));
        if (begun < 0)
            return 1;
        printf("%.1f\n", work_serially(begun, atof(argv[2]), tids, n_workers));
        fflush(stdout);
    }
    return 0;
}
