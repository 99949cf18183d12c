/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load-forker CHILDREN BOOST: becomes the sequential thread of a program that was parallel, waits until asymd steers it (and,
 * with BOOST 1, boosts it), then runs nproc in that many children, one after another. It prints one line:
 *
 *     steered=1 narrow=N first_narrow=0|1 other_nice=N restored_after=N
 *
 * narrow: number of children that saw fewer CPUs than the program had at its start; restored_after: number of children that had
 * ended when the program had its own mask again; 0: it never had.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "now.h"

static atomic_int parallel = 1;

static int my_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) < 0 ? -1 : CPU_COUNT(&set);
}

static void *spin(void *arg)
{
    while (atomic_load(&parallel))
        ;
    return NULL;
}

/* Works while it waits: asymd steers no idle program. */
static int wait_for_steering(int all_cpus, int boost, double seconds)
{
    double end = now() + seconds;
    while (now() < end)
        if (my_cpus() < all_cpus && (!boost || getpriority(PRIO_PROCESS, 0) < 0))
            return 1;
    return 0;
}

/* Runs nproc in a child: the number that it prints, and the nice value that it starts with. */
static int run_child(int *ret_cpus, int *ret_nice)
{
    int fds[2], status;
    char text[64];
    size_t used = 0;
    if (pipe(fds) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        dprintf(fds[1], "%d ", getpriority(PRIO_PROCESS, 0));
        dup2(fds[1], STDOUT_FILENO);
        close(fds[0]);
        execlp("nproc", "nproc", (char *)NULL);
        _exit(127);
    }
    close(fds[1]);
    for (ssize_t n; pid > 0 && used < sizeof text - 1 && (n = read(fds[0], text + used, sizeof text - 1 - used)) > 0;)
        used += (size_t)n;
    text[used] = '\0';
    close(fds[0]);
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return -1;
    return sscanf(text, "%d %d", ret_nice, ret_cpus) == 2 ? 0 : -1;
}

int main(int argc, char **argv)
{
    pthread_t threads[3];
    int all_cpus = my_cpus(), own_nice = getpriority(PRIO_PROCESS, 0), narrow = 0, first_narrow = 0, other_nice = 0;
    int restored_after = 0;
    if (argc != 3)
        return 2;
    alarm(200);
    for (size_t i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, spin, NULL) != 0)
            return 1;
    double end = now() + 1.2;
    while (now() < end)
        ;
    atomic_store(&parallel, 0);
    for (size_t i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    int steered = wait_for_steering(all_cpus, atoi(argv[2]), 30);
    for (int i = 0; i < atoi(argv[1]); i++) {
        int cpus, nice;
        if (run_child(&cpus, &nice) < 0)
            return 1;
        narrow += cpus < all_cpus;
        first_narrow |= i == 0 && cpus < all_cpus;
        other_nice += nice != own_nice;
        if (restored_after == 0 && my_cpus() == all_cpus)
            restored_after = i + 1;
    }
    printf("steered=%d narrow=%d first_narrow=%d other_nice=%d restored_after=%d\n", steered, narrow, first_narrow,
           other_nice, restored_after);
    return 0;
}
