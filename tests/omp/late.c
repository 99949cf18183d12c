/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An OpenMP program that works with one thread until SIGUSR1, and begins its first region then. It prints the number of threads
 * of that region, and the least number of CPUs that one of them may use; then all threads work, for at most two minutes.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <omp.h>

static volatile sig_atomic_t signalled;

static void tell(int number)
{
    signalled = number;
}

static int my_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) < 0 ? -1 : CPU_COUNT(&set);
}

int main(void)
{
    int threads = 0, least = CPU_SETSIZE;
    alarm(120);
    signal(SIGUSR1, tell);
    while (!signalled)
        ;
#pragma omp parallel reduction(min : least)
    {
        least = my_cpus();
#pragma omp single
        threads = omp_get_num_threads();
    }
    printf("threads=%d least=%d\n", threads, least);
    fflush(stdout);
#pragma omp parallel
    while (signalled)
        ;
    return 0;
}
