/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load-phases THREADS PHASE_MS SECONDS: alternates between one busy thread and THREADS busy threads, each phase PHASE_MS long. At
 * its end it prints the milliseconds of its serial phases by CPU: serial=CPU:MS,...
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "now.h"

static pthread_barrier_t barrier;
static double phase; /* seconds */

static void be_busy(void)
{
    for (double end = now() + phase; now() < end;)
        ;
}

static void be_busy_alone(double *on)
{
    double last = now();
    for (double end = last + phase, at; last < end; last = at) {
        at = now();
        on[sched_getcpu() % CPU_SETSIZE] += at - last;
    }
}

static void *work(void *arg)
{
    for (;;) {
        pthread_barrier_wait(&barrier);
        be_busy();
    }
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t t;
    if (argc != 4) {
        fputs("usage: load-phases THREADS PHASE_MS SECONDS\n", stderr);
        return 2;
    }
    static double on[CPU_SETSIZE];
    const int n = atoi(argv[1]);
    const double end = now() + atof(argv[3]);
    phase = atof(argv[2]) / 1000;
    pthread_barrier_init(&barrier, NULL, (unsigned)n);
    for (int i = 1; i < n; i++)
        if (pthread_create(&t, NULL, work, NULL) != 0)
            return 1;
    while (now() < end) {
        be_busy_alone(on);
        /* The other threads sleep at the barrier meanwhile. */
        pthread_barrier_wait(&barrier);
        be_busy();
    }
    const char *sign = "serial=";
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (on[cpu] > 0) {
            printf("%s%d:%.0f", sign, cpu, on[cpu] * 1e3);
            sign = ",";
        }
    puts("");
    return 0;
}
