/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load-pulse THREADS SECONDS [US]: THREADS threads, each of which works 0.3 ms (US microseconds) of about 60 ms: all are active,
 * and none waits for a CPU.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "now.h"

static double work = 300; /* microseconds */

static void *pulse(void *arg)
{
    /* The periods differ, or all threads would wake at once. */
    const struct timespec pause = {.tv_nsec = 50000000 + (long)((uintptr_t)arg % 97) * 200000};
    for (;;) {
        double end = now_us() + work;
        while (now_us() < end)
            ;
        nanosleep(&pause, NULL);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_attr_t attr;
    if (argc != 3 && argc != 4) {
        fputs("usage: load-pulse THREADS SECONDS [US]\n", stderr);
        return 2;
    }
    if (argc == 4)
        work = atof(argv[3]);
    alarm((unsigned)atoi(argv[2]));
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 65536);
    for (int i = 1; i < atoi(argv[1]); i++) {
        pthread_t t;
        if (pthread_create(&t, &attr, pulse, (void *)(uintptr_t)i) != 0)
            return 1;
    }
    pulse(NULL);
    return 0;
}
