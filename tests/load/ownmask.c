/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program that works, and starts two threads at SIGUSR1: one waits at once, the other works. At SIGUSR2 the waiting thread
 * first sets the mask that the program had at its start, prints the microseconds for which it had run before that, and works
 * too. The threads of LLVM's OpenMP do the same on a machine that is too busy to run them at first. It runs for at most two
 * minutes.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "now.h"

static volatile sig_atomic_t begun;
static sem_t gate;
static cpu_set_t first;

static void tell(int number)
{
    if (number == SIGUSR1)
        begun = 1;
    else
        sem_post(&gate);
}

static void *work(void *arg)
{
    for (;;)
        ;
    return arg;
}

static void *wait_first(void *arg)
{
    while (sem_wait(&gate) != 0)
        ;
    const int64_t ran = ns_of(CLOCK_THREAD_CPUTIME_ID);
    if (sched_setaffinity(0, sizeof first, &first) != 0)
        return arg;
    printf("ran=%lld\n", (long long)ran / 1000);
    fflush(stdout);
    return work(arg);
}

int main(void)
{
    pthread_t waits, works;
    alarm(120);
    if (sched_getaffinity(0, sizeof first, &first) != 0 || sem_init(&gate, 0, 0) != 0)
        return 1;
    signal(SIGUSR1, tell);
    signal(SIGUSR2, tell);
    while (!begun)
        ;
    if (pthread_create(&waits, NULL, wait_first, NULL) != 0 || pthread_create(&works, NULL, work, NULL) != 0)
        return 1;
    work(NULL);
    return 0;
}
