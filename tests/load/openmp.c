/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load-openmp THREADS CPU ROUNDS SERIAL BARRIERS SLICE: an OpenMP program of a fixed amount of work, in thousands of steps.
 * In each round one thread counts SERIAL alone, then THREADS threads count SLICE each between one barrier and the next,
 * BARRIERS times; the last barrier is the region's end. The thread begins on that CPU, and may go where it likes from then
 * on. Says "ready" when all threads are at work, and begins with the rounds when there is something on standard input. Of
 * the rounds, in seconds:
 *
 *     time=T serial=S cpus=C:SHARE,...
 *
 * S: the serial part of T; SHARE: the part of S at which the thread was found on CPU C, in percent. The environment says
 * how threads wait.
 */
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CPUS_MAX 1024
/* Thousands of steps between two looks at where the thread is: a millisecond of a slow CPU. */
#define LOOK 10

struct serial {
    double seconds, on_cpu[CPUS_MAX];
};

static volatile int told;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void count(long thousands)
{
    for (long done = 0; done < thousands; done++)
        for (volatile unsigned i = 0; i < 1000; i++)
            ;
}

static void serial_phase(long thousands, struct serial *s)
{
    double last = now();
    for (long left = thousands; left > 0; left -= LOOK) {
        count(left < LOOK ? left : LOOK);
        const double t = now();
        const int cpu = sched_getcpu();
        s->seconds += t - last;
        if (cpu >= 0 && cpu < CPUS_MAX)
            s->on_cpu[cpu] += t - last;
        last = t;
    }
}

static void parallel_phase(int threads, long barriers, long slice)
{
#pragma omp parallel num_threads(threads)
    {
        for (long i = 1; i < barriers; i++) {
            count(slice);
#pragma omp barrier
        }
        count(slice);
    }
}

/* The runtime goes by the CPUs that it finds, so it is there first; threads that it makes later inherit the mask. */
static int begin_on(int cpu)
{
    cpu_set_t all, one;
#pragma omp parallel num_threads(1)
    count(1);
    CPU_ZERO(&one);
    CPU_SET((unsigned)cpu, &one);
    if (sched_getaffinity(0, sizeof all, &all) < 0 || sched_setaffinity(0, sizeof one, &one) < 0)
        return -1;
    return sched_setaffinity(0, sizeof all, &all);
}

static void work_until_told(int threads)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    puts("ready");
    fflush(stdout);
    told = 0;
#pragma omp parallel num_threads(threads)
    {
#pragma omp master
        {
            while (poll(&in, 1, 0) == 0)
                count(LOOK);
            told = 1;
        }
        while (!told)
            count(LOOK);
    }
}

static void report(double seconds, const struct serial *s)
{
    printf("time=%.4f serial=%.4f cpus=", seconds, s->seconds);
    const char *comma = "";
    for (int i = 0; i < CPUS_MAX; i++)
        if (s->on_cpu[i] > 0) {
            printf("%s%d:%.1f", comma, i, 100 * s->on_cpu[i] / s->seconds);
            comma = ",";
        }
    putchar('\n');
}

int main(int argc, char **argv)
{
    static const long least[] = {1, 0, 1, 0, 1, 1};
    static struct serial s;
    long value[6];
    for (int i = 0; i < 6; i++) {
        value[i] = argc == 7 ? atol(argv[i + 1]) : -1;
        if (value[i] < least[i]) {
            fputs("usage: load-openmp THREADS CPU ROUNDS SERIAL BARRIERS SLICE\n", stderr);
            return 2;
        }
    }
    const int threads = (int)value[0];
    if (value[1] >= CPUS_MAX || begin_on((int)value[1]) < 0) {
        perror("load-openmp");
        return 1;
    }
    work_until_told(threads);
    const double begun = now();
    for (long i = 0; i < value[2]; i++) {
        serial_phase(value[3], &s);
        parallel_phase(threads, value[4], value[5]);
    }
    report(now() - begun, &s);
    return 0;
}
