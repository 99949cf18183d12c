/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load-spin THREADS SECONDS [NICE]: THREADS threads that never sleep; the program ends by itself. NICE is for a session of its own,
 * by which the kernel shares the CPUs among sessions (sched_autogroup). The threads keep their nice value, which asymd reads.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *spin(void *arg)
{
    volatile unsigned long *count = arg;
    for (;;)
        ++*count;
    return NULL;
}

static void leave_the_cpus_to_other_sessions(const char *nice)
{
    setsid();
    FILE *f = fopen("/proc/self/autogroup", "w");
    if (!f)
        return;
    fputs(nice, f);
    fclose(f);
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4) {
        fputs("usage: load-spin THREADS SECONDS [NICE]\n", stderr);
        return 2;
    }
    if (argc == 4)
        leave_the_cpus_to_other_sessions(argv[3]);
    int n = atoi(argv[1]);
    unsigned long *counts = calloc((size_t)n + 1, sizeof *counts);
    /* An alarm ends the program, because the main thread is one of the spinning threads and cannot sleep. */
    alarm((unsigned)atoi(argv[2]));
    for (int i = 1; counts && i < n; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, spin, &counts[i]) != 0)
            return 1;
    }
    return counts ? (spin(&counts[0]), 0) : 1;
}
