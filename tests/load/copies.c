/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load-copies N MILLIONS [CPU,CPU,...]: N copies of one task, started together: processes that each count that many million
 * steps. Copy i runs on the i-th CPU of the list, if there is one. At the end it prints seconds (Roehrich 2007, Table 5.2):
 *
 *     total=T turnaround=W cpu=A
 *
 * T: from the start to the last end. W: the mean time by the clock from the start to the end of a copy. A: the CPU time of all
 * copies / copies, which is the source's Avg: "the total accumulated time that the system spent executing all instances". A
 * copy that shares its CPU has W above A.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "now.h"

#define COPIES_MAX 1024

struct shared {
    double started, ended[COPIES_MAX], used[COPIES_MAX];
};

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) < 0)
        perror("load-copies");
}

static void work(double millions)
{
    for (double done = 0; done < millions; done++)
        for (volatile unsigned i = 0; i < 1000000; i++)
            ;
}

int main(int argc, char **argv)
{
    const int n = argc >= 3 ? atoi(argv[1]) : 0;
    double last = 0, sum = 0, used = 0;
    if (n < 1 || n > COPIES_MAX || argc > 4) {
        fputs("usage: load-copies N MILLIONS [CPU,CPU,...]\n", stderr);
        return 2;
    }
    struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED)
        return 1;
    const char *cpus = argc == 4 ? argv[3] : "";
    s->started = now();
    for (int i = 0; i < n; i++) {
        const int cpu = *cpus ? atoi(cpus) : -1;
        const pid_t pid = fork();
        if (pid < 0)
            return 1;
        if (pid == 0) {
            if (cpu >= 0)
                pin(cpu);
            work(atof(argv[2]));
            s->ended[i] = now();
            s->used[i] = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
            _exit(0);
        }
        cpus += strcspn(cpus, ",");
        cpus += *cpus == ',';
    }
    while (wait(NULL) > 0)
        ;
    for (int i = 0; i < n; i++) {
        const double time = s->ended[i] - s->started;
        sum += time;
        used += s->used[i];
        last = time > last ? time : last;
    }
    printf("total=%.3f turnaround=%.3f cpu=%.3f\n", last, sum / n, used / n);
    return 0;
}
