/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * regions THREADS REGION_US SECONDS: runs as many regions of that length as fit into the time. It prints the nanoseconds of a
 * region. A region is a fixed number of steps, which the program calibrates first: a disturbance makes it longer, never
 * shorter.
 */
#include <stdio.h>
#include <stdlib.h>

#include <omp.h>

#include "../load/now.h"

/* In one place, or the region could be of faster code than the calibration. */
static __attribute__((noinline)) void steps(long n)
{
    for (volatile long i = 0; i < n; i++)
        ;
}

/* Returns the number of steps that take that many ns at best. */
static long calibrate(double ns)
{
    double best = 1e18;
    for (int i = 0; i < 200; i++) {
        const int64_t begun = now_ns();
        steps(10000);
        const double took = (double)(now_ns() - begun);
        best = took < best ? took : best;
    }
    return (long)(ns / best * 10000);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    const int threads = atoi(argv[1]);
    const long n = calibrate(atof(argv[2]) * 1e3);
    double best = 1e18;
    long regions = 0;
    /* The first regions create the threads. The best of many short stretches is the undisturbed time. */
    for (int i = 0; i < 100; i++)
#pragma omp parallel num_threads(threads)
        steps(n);
    for (const double end = now() + atof(argv[3]); now() < end; regions += 200) {
        const int64_t begun = now_ns();
        for (int i = 0; i < 200; i++)
#pragma omp parallel num_threads(threads)
            steps(n);
        const double took = (double)(now_ns() - begun) / 200;
        best = took < best ? took : best;
    }
    printf("%.1f\n", best);
    return regions == 0;
}
