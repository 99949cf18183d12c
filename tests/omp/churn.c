/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * churn SECONDS: regions of changing width, barriers, tasks, nested regions, forks, and threads that come and go and use OpenMP
 * themselves. It exercises a tool under a sanitizer. Shared data are atomic, and no region captures a variable: a sanitizer
 * does not see the runtime's own synchronisation.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <omp.h>

#include "../load/now.h"

static atomic_uint regions, tasks;

static void one_task(void)
{
    atomic_fetch_add(&tasks, 1);
#pragma omp taskwait
}

static void region(int n)
{
    omp_set_num_threads(n);
#pragma omp parallel
    {
        atomic_fetch_add(&regions, 1);
#pragma omp barrier
#pragma omp single nowait
        {
#pragma omp task
            one_task();
#pragma omp task
            {
                one_task();
#pragma omp task
                one_task();
#pragma omp taskwait
            }
        }
#pragma omp barrier
    }
}

static void nested(void)
{
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
#pragma omp parallel num_threads(2)
        atomic_fetch_add(&regions, 1);
    }
}

/* No tasks here: this runtime (14) fails if threads that come and go have explicit tasks, with and without a tool. */
static void *other(void *arg)
{
    (void)arg;
#pragma omp parallel num_threads(3)
    atomic_fetch_add(&regions, 1);
    return NULL;
}

int main(int argc, char **argv)
{
    const double end = now() + (argc > 1 ? atof(argv[1]) : 1);
    int i = 0;
    do {
        pthread_t threads[2];
        region(1 + i % 6);
        nested();
        for (int k = 0; k < 2; k++)
            if (pthread_create(&threads[k], NULL, other, NULL) != 0)
                return 1;
        region(4);
        for (int k = 0; k < 2; k++)
            pthread_join(threads[k], NULL);
        if (i++ % 8 == 0) {
            int status;
            pid_t pid = fork();
            if (pid == 0)
                _exit(0);
            if (waitpid(pid, &status, 0) != pid || status != 0)
                return 1;
        }
        /* Long enough that the tool reports the phase. */
        usleep(1500);
    } while (now() < end);
    printf("%u regions, %u tasks\n", atomic_load(&regions), atomic_load(&tasks));
    return atomic_load(&tasks) == 0;
}
