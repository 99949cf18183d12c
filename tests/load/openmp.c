/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load-openmp THREADS CPU AFTER ROUNDS SERIAL BARRIERS SLICE SPEEDS: an OpenMP program with a fixed amount of work, in
 * thousands of steps. In each round one thread counts SERIAL alone, then THREADS threads count SLICE each between one barrier
 * and the next, BARRIERS times; the last barrier is the region's end. The initial thread starts on CPU, and may run anywhere
 * afterwards. The program prints "ready" when the runtime has started, and begins the rounds AFTER ms later; until then all
 * threads work. SPEEDS: thousands of steps that each CPU counts in a millisecond, from CPU 0, with commas. It prints the times
 * of the rounds in seconds:
 *
 *     time=T serial=S due=D dueserial=E cpus=C:SHARE,...
 *
 * S: the serial part of T; SHARE: the percentage of S in which the thread was on CPU C. D and E: time and serial at those
 * SPEEDS, from the CPUs that counted the steps and the time that threads waited for a CPU; each barrier counts when its last
 * thread would reach it. A host with a core for each CPU would take that long, whatever share of a core this host gives them:
 * if a thread counts a quarter of the expected steps in its CPU time, its CPU has a quarter of a core, and a thread that waits
 * for that CPU waits four times as long by the clock. The environment says how threads wait.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <omp.h>

#include "now.h"

#define CPUS_MAX 1024
/* Thousands of steps between two reads of the thread's CPU: a millisecond of a slow CPU. */
#define PIECE       10

#define THREADS_MAX 256

struct serial {
    double seconds, due, on_cpu[CPUS_MAX];
};

static double speeds[CPUS_MAX];

/* Seconds of the calling thread on a CPU, and waiting for one. */
struct thread_times {
    double ran, waited;
};

static void count(long thousands)
{
    for (long done = 0; done < thousands; done++)
        for (volatile unsigned i = 0; i < 1000; i++)
            ;
}

/* The first value of schedstat is CPU time too, but of the last tick; a full dynticks CPU has one tick a second. */
static struct thread_times thread_times(void)
{
    static _Thread_local int fd = -1;
    char text[96];
    unsigned long long waited;
    if (fd < 0)
        fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return (struct thread_times){seconds_of(CLOCK_THREAD_CPUTIME_ID),
                                 sscanf(text, "%*u %llu", &waited) == 1 ? (double)waited / 1e9 : 0};
}

/*
 * Returns the seconds of waiting since then on a CPU with its own core. counted: seconds at its speed for the steps since then.
 */
static double wait_due(struct thread_times then, double counted)
{
    const struct thread_times t = thread_times();
    const double ran = t.ran - then.ran, waited = t.waited - then.waited;
    return counted > 0 && ran > counted ? waited * counted / ran : waited;
}

/* Counts a piece. Returns the CPU at its end, which gets the time of the whole piece; -1: the CPU has no speed. */
static int count_some(long *left, double *due)
{
    const long some = *left < PIECE ? *left : PIECE;
    count(some);
    const int cpu = sched_getcpu();
    *left -= some;
    if (cpu < 0 || cpu >= CPUS_MAX || speeds[cpu] <= 0)
        return -1;
    *due += (double)some / speeds[cpu] / 1e3;
    return cpu;
}

static void serial_phase(long thousands, struct serial *s)
{
    double last = now(), counted = 0;
    const struct thread_times before = thread_times();
    while (thousands > 0) {
        const int cpu = count_some(&thousands, &counted);
        const double t = now();
        s->seconds += t - last;
        if (cpu >= 0)
            s->on_cpu[cpu] += t - last;
        last = t;
    }
    s->due += counted + wait_due(before, counted);
}

static double most(const double *due, int n)
{
    double max = 0;
    for (int i = 0; i < n; i++)
        max = due[i] > max ? due[i] : max;
    return max;
}

/* Returns the seconds due of a parallel phase. Two successive barriers use separate values. */
static double parallel_phase(int threads, long barriers, long slice)
{
    static double due[2][THREADS_MAX];
    double longest = 0;
#pragma omp parallel num_threads(threads)
    {
        const int me = omp_get_thread_num(), n = omp_get_num_threads();
        double mine = 0;
        for (long i = 1; i <= barriers; i++) {
            const struct thread_times before = thread_times();
            double counted = 0;
            for (long left = slice; left > 0;)
                count_some(&left, &counted);
            due[i & 1][me] = mine += counted + wait_due(before, counted);
            if (i == barriers)
                break;
#pragma omp barrier
            mine = most(due[i & 1], n);
        }
#pragma omp barrier
        if (me == 0)
            longest = most(due[barriers & 1], n);
    }
    return longest;
}

/* The runtime reads its CPUs first, so it starts before the pinning; threads that it makes later inherit the mask. */
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

static void work_until(int threads, double time)
{
    puts("ready");
    fflush(stdout);
#pragma omp parallel num_threads(threads)
    while (now() < time)
        count(PIECE);
}

static void report(double seconds, double due, const struct serial *s)
{
    printf("time=%.4f serial=%.4f due=%.4f dueserial=%.4f cpus=", seconds, s->seconds, due + s->due, s->due);
    const char *comma = "";
    for (int i = 0; i < CPUS_MAX; i++)
        if (s->on_cpu[i] > 0) {
            printf("%s%d:%.1f", comma, i, 100 * s->on_cpu[i] / s->seconds);
            comma = ",";
        }
    putchar('\n');
    fflush(stdout);
}

static int read_speeds(const char *text)
{
    for (int i = 0; i < CPUS_MAX; i++) {
        char *end;
        speeds[i] = strtod(text, &end);
        if (end == text || speeds[i] <= 0)
            return -1;
        if (*end != ',')
            return *end == '\0' ? 0 : -1;
        text = end + 1;
    }
    return -1;
}

int main(int argc, char **argv)
{
    static const long least[] = {1, 0, 0, 1, 0, 1, 1};
    static struct serial s;
    enum { THREADS, CPU, AFTER, ROUNDS, SERIAL, BARRIERS, SLICE, N };
    long value[N];
    for (int i = 0; i < N; i++) {
        value[i] = argc == N + 2 ? atol(argv[i + 1]) : -1;
        if (value[i] < least[i] || value[THREADS] > THREADS_MAX || (i == N - 1 && read_speeds(argv[N + 1]) < 0)) {
            fputs("usage: load-openmp THREADS CPU AFTER ROUNDS SERIAL BARRIERS SLICE SPEEDS\n", stderr);
            return 2;
        }
    }
    const int threads = (int)value[THREADS];
    if (value[CPU] >= CPUS_MAX || begin_on((int)value[CPU]) < 0) {
        perror("load-openmp");
        return 1;
    }
    work_until(threads, now() + (double)value[AFTER] / 1e3);
    const double begun = now();
    double due = 0;
    for (long i = 0; i < value[ROUNDS]; i++) {
        serial_phase(value[SERIAL], &s);
        due += parallel_phase(threads, value[BARRIERS], value[SLICE]);
    }
    report(now() - begun, due, &s);
    return 0;
}
