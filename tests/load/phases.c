/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load-phases THREADS PHASE_MS SECONDS: alternates between one busy thread and THREADS busy threads, each phase PHASE_MS long.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_barrier_t barrier;
static double phase; /* seconds */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void be_busy(void)
{
    for (double end = now() + phase; now() < end;)
        ;
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
    const int n = atoi(argv[1]);
    phase = atof(argv[2]) / 1000;
    alarm((unsigned)atoi(argv[3]));
    pthread_barrier_init(&barrier, NULL, (unsigned)n);
    for (int i = 1; i < n; i++)
        if (pthread_create(&t, NULL, work, NULL) != 0)
            return 1;
    for (;;) {
        be_busy();
        /* The other threads sleep at the barrier meanwhile. */
        pthread_barrier_wait(&barrier);
        be_busy();
    }
}
