/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * talker WORKERS SERIAL_MS PARALLEL_MS ROUNDS: load-talker as an OpenMP program without any knowledge of asymd, with the same
 * output: for each serial phase the microseconds from its begin until no worker may run on a CPU of the initial thread any
 * more; -1 if the phase ended before that. The environment says how threads wait.
 *
 * A serial phase begins at the end of a region, which only the runtime knows exactly. The nearest point in the program is the
 * initial thread's last statement in the region, when the other threads have reached theirs. It always precedes the runtime's
 * call of the tool (parallel_end), by the time of the barrier that ends the region: the printed time is never too short. The
 * return of the construct may come late: the tool has reported the phase by then, and asymd may have run on a shared CPU.
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

/* Returns the time of its end, as defined above; -1: the region had too few threads. */
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
