/* SPDX-License-Identifier: GPL-2.0-or-later */
/* load-sleepers THREADS SECONDS: that many threads that never run. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *sleep_on(void *arg)
{
    for (;;)
        pause();
    return arg;
}

int main(int argc, char **argv)
{
    pthread_attr_t attr;
    if (argc != 3) {
        fputs("usage: load-sleepers THREADS SECONDS\n", stderr);
        return 2;
    }
    alarm((unsigned)atoi(argv[2]));
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 65536);
    for (int i = 1; i < atoi(argv[1]); i++) {
        pthread_t t;
        if (pthread_create(&t, &attr, sleep_on, NULL) != 0)
            return 1;
    }
    sleep_on(NULL);
    return 0;
}
