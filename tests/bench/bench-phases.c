/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cost of the BPF observer to programs: the CPU time of a message to and fro through two pipes on one CPU, which are four
 * events, two switches and two wake-ups: without programs, with programs that do nothing, with those of asymd while the program is
 * not followed, and while it is. Medians of many rounds, each of which has all of these. Then what asymd itself pays for 5,000
 * threads. It prints tables and asserts nothing. It needs root.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "linux/observe/phases-kernel.h"
#include "phases_empty.skel.h"
#include "support/process.h"

enum { ROUNDS = 15, MESSAGES = 40000, EVENTS_OF_A_MESSAGE = 4 };

enum way { NOTHING, EMPTY, UNFOLLOWED, FOLLOWED, WAYS };

static const char *const names[WAYS] = {"no programs", "empty programs", "not followed", "followed"};

static int there[2], back[2];

static double read_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "bench-phases: %s\n", what);
    exit(1);
}

static void pin(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)sysconf(_SC_NPROCESSORS_ONLN) - 1, &set);
    if (sched_setaffinity(0, sizeof set, &set) < 0)
        fail("cannot pin itself to the last CPU");
}

static void *echo(void *arg)
{
    char c;
    pin();
    while (read(there[0], &c, 1) == 1 && write(back[1], &c, 1) == 1)
        ;
    return arg;
}

/* Returns the CPU time of a message to and fro, ns. other: the clock of the other process; 0: the other one is a thread. */
static double pass_messages(clockid_t other)
{
    char c = 0;
    const double begin = read_ns(CLOCK_PROCESS_CPUTIME_ID) + (other ? read_ns(other) : 0);
    for (int i = 0; i < MESSAGES; i++)
        if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
            fail("the other end of the pipe has ended");
    return (read_ns(CLOCK_PROCESS_CPUTIME_ID) + (other ? read_ns(other) : 0) - begin) / MESSAGES;
}

static struct asym_phases *open_phases(void)
{
    const struct asym_phases_limits limits = {.gap = 1000, .settle = 200, .rate = 200};
    struct asym_phases *p;
    struct asym_error err;
    if (asym_phases_open(&limits, &p, &err) < 0)
        fail(err.text);
    return p;
}

static double measure(enum way way, pid_t other, clockid_t clock)
{
    struct phases_empty_bpf *empty = NULL;
    struct asym_phases *p = way >= UNFOLLOWED ? open_phases() : NULL;
    if (way == EMPTY && (!(empty = phases_empty_bpf__open_and_load()) || phases_empty_bpf__attach(empty) < 0))
        fail("cannot load empty programs");
    if (way == FOLLOWED &&
        (asym_phases_follow(p, (int32_t)getpid(), 1) < 0 || (other && asym_phases_follow(p, (int32_t)other, 1) < 0)))
        fail("cannot follow");
    const double took = pass_messages(clock);
    phases_empty_bpf__destroy(empty);
    asym_phases_close(p);
    return took;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof values[0], compare);
    return values[n / 2];
}

static void measure_all(const char *what, pid_t other, clockid_t clock)
{
    static double took[WAYS][ROUNDS], more[ROUNDS];
    pass_messages(clock);
    for (int i = 0; i < ROUNDS; i++)
        /* The order rotates, so that a machine that grows slower favours none of them. */
        for (int k = 0; k < WAYS; k++)
            took[(i + k) % WAYS][i] = measure((enum way)((i + k) % WAYS), other, clock);
    for (int way = NOTHING; way < WAYS; way++) {
        const int base = way >= UNFOLLOWED ? EMPTY : NOTHING;
        double percent[ROUNDS];
        for (int i = 0; i < ROUNDS; i++) {
            percent[i] = (took[way][i] / took[NOTHING][i] - 1) * 100;
            more[i] = (took[way][i] - took[base][i]) / EVENTS_OF_A_MESSAGE;
        }
        const double ns = median(more, ROUNDS), lower = more[ROUNDS / 4], upper = more[ROUNDS * 3 / 4];
        printf("%-10s %-15s %+6.1f %%; %+6.1f ns an event over %s (quartiles %+.1f to %+.1f)\n", what, names[way],
               median(percent, ROUNDS), ns, names[base], lower, upper);
    }
    printf("%-10s a message to and fro without programs: %.0f ns of CPU time\n", what, median(took[NOTHING], ROUNDS));
    fflush(stdout);
}

/* Start 5,000 threads that sleep. Returns the process whose children have most of them. */
static pid_t start_sleepers(void)
{
    fflush(stdout);
    const pid_t pid = asym_process_fork();
    if (pid != 0)
        return pid;
    if (!freopen("/dev/null", "w", stdout))
        _exit(1);
    execl(ASYM_BENCH_BIN "/tests/load-sleepers", "load-sleepers", "5000", "50", "60", (char *)NULL);
    _exit(1);
}

static void measure_reader(void)
{
    const struct asym_phases_thread *t;
    double listed[ROUNDS], reconciled[ROUNDS];
    struct asym_phases *p = open_phases();
    const pid_t pid = start_sleepers();
    pid_t pids[64] = {pid};
    sleep(2);
    const size_t n_pids = 1 + asym_process_children(pid, pids + 1, 63);
    size_t n = 0;
    const double begin = read_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (size_t i = 0; i < n_pids; i++)
        asym_phases_follow(p, (int32_t)pids[i], (uint32_t)i + 1);
    const double followed = read_ns(CLOCK_PROCESS_CPUTIME_ID) - begin;
    for (int i = 0; i < ROUNDS; i++) {
        const double a = read_ns(CLOCK_PROCESS_CPUTIME_ID);
        n = asym_phases_list(p, &t);
        const double b = read_ns(CLOCK_PROCESS_CPUTIME_ID);
        asym_phases_reconcile(p);
        listed[i] = (b - a) / 1e3;
        reconciled[i] = (read_ns(CLOCK_PROCESS_CPUTIME_ID) - b) / 1e3;
    }
    printf("CPU time of asymd at %zu followed threads of %zu processes: list %.0f us, reconcile %.0f us; to follow "
           "them: %.0f us\n",
           n, n_pids, median(listed, ROUNDS), median(reconciled, ROUNDS), followed / 1e3);
    asym_phases_close(p);
    asym_process_signal(pid, SIGKILL);
}

int main(void)
{
    pthread_t t;
    clockid_t clock;
    pin();
    if (pipe(there) < 0 || pipe(back) < 0 || pthread_create(&t, NULL, echo, NULL) != 0)
        fail("cannot start a thread");
    measure_all("threads", 0, 0);
    pthread_cancel(t);
    pthread_join(t, NULL);
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        echo(NULL);
        _exit(0);
    }
    if (clock_getcpuclockid(pid, &clock) != 0)
        fail("no clock of the other process");
    measure_all("processes", pid, clock);
    asym_process_signal(pid, SIGKILL);
    measure_reader();
    return 0;
}
