/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An OpenMP program that works alone until SIGUSR1 comes, and only then begins its first region. Says how many threads that
 * had, and the least number of CPUs that one of them may use; then all work, for two minutes at most.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <omp.h>

static volatile sig_atomic_t told;

static void tell(int number)
{
    told = number;
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
    while (!told)
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
    while (told)
        ;
    return 0;
}
