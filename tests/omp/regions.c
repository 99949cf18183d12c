/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * regions THREADS REGION_US SECONDS: runs as many regions of that length as fit into the time. It prints the nanoseconds of a
 * region. A region is a fixed number of steps, which the program calibrates first: a disturbance makes it longer, never
 * shorter.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <omp.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void steps(long n)
{
    for (volatile long i = 0; i < n; i++)
        ;
}

/* Returns the number of steps that take that many ns at best. */
static long calibrate(double ns)
{
    double best = 1e18;
    for (int i = 0; i < 200; i++) {
        const double begun = now();
        steps(10000);
        const double took = now() - begun;
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
    const double length = atof(argv[3]) * 1e9;
    double begun = 0, best = 1e18;
    long regions = 0;
    /* The first regions create the threads. The best of many short stretches is the undisturbed time. */
    for (int i = 0; i < 100; i++)
#pragma omp parallel num_threads(threads)
        steps(n);
    for (const double end = now() + length; now() < end; regions += 200) {
        begun = now();
        for (int i = 0; i < 200; i++)
#pragma omp parallel num_threads(threads)
            steps(n);
        const double took = (now() - begun) / 200;
        best = took < best ? took : best;
    }
    printf("%.1f\n", best);
    return regions == 0;
}
