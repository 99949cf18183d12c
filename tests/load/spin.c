/* SPDX-License-Identifier: GPL-2.0-or-later */
/* load-spin THREADS SECONDS: THREADS threads that never sleep; the program ends by itself. */
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

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: load-spin THREADS SECONDS\n", stderr);
        return 2;
    }
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
