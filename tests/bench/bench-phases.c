/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cost of the BPF observer to programs: the CPU time of a message to and fro through two pipes on one CPU, which are four
 * events, two switches and two wake-ups: without programs, with programs that do nothing, with those of asymd while the program is
 * not followed, and while it is. Medians of many rounds, each of which has all of these. The same for a storm of 400 threads, like
 * that of perf bench sched messaging. Then what asymd itself pays for 5,000 threads, and the least time of an answer to a phase. It
 * prints tables and asserts nothing. It needs root.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/settings.h"
#include "linux/observe/observer.h"
#include "linux/observe/phases-kernel.h"
#include "linux/observe/procfs.h"
#include "linux/topology/topology.h"
#include "phases_empty.skel.h"
#include "support/process.h"
#include "times.h"

enum { ROUNDS = 15, MESSAGES = 40000, EVENTS_OF_A_MESSAGE = 4 };

/* The storm: groups of as many senders as receivers; a sender sends as many messages as a receiver takes. */
enum { GROUPS = 10, SENDERS = 20, SENT = 2000 };

/* A sample: threads in all, and those that run in each; of so many processes. */
enum { THREADS = 5000, ACTIVE = 50, PROCESSES = 50, SAMPLES = 51 };

enum { ANSWERS = 150 };

/* docs/data/phases.md has what is asked. */
static const char *const asked_ns[] = {"", "", " (asked 6)", " (asked 150)"};
static const char *const asked_storm[] = {"", "", " (asked 1)", " (asked 4)"};

enum way { NOTHING, EMPTY, UNFOLLOWED, FOLLOWED, WAYS };

static const char *const names[WAYS] = {"no programs", "empty programs", "not followed", "followed"};

static int there[2], back[2];

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

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof values[0], by_value);
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
        printf("%-10s %-15s %+6.1f %%; %+6.1f ns an event over %s (quartiles %+.1f to %+.1f)%s\n", what, names[way],
               median(percent, ROUNDS), ns, names[base], lower, upper, asked_ns[way]);
    }
    printf("%-10s a message to and fro without programs: %.0f ns of CPU time\n", what, median(took[NOTHING], ROUNDS));
    fflush(stdout);
}

struct group {
    int pipe[2];
    pthread_barrier_t *begin; /* of all threads */
};

static void *send_all(void *arg)
{
    const struct group *g = arg;
    char message[100] = {0};
    pthread_barrier_wait(g->begin);
    for (int i = 0; i < SENT; i++)
        if (write(g->pipe[1], message, sizeof message) != sizeof message)
            _exit(1);
    return arg;
}

static void *receive_all(void *arg)
{
    const struct group *g = arg;
    char message[100];
    pthread_barrier_wait(g->begin);
    for (int i = 0; i < SENT; i++)
        if (read(g->pipe[0], message, sizeof message) != sizeof message)
            _exit(1);
    return arg;
}

/* The storm, in a process of its own, which stops before it starts its threads. */
static _Noreturn void be_storm(void)
{
    static struct group groups[GROUPS];
    pthread_t threads[GROUPS * SENDERS * 2];
    pthread_barrier_t begin;
    size_t n = 0;
    raise(SIGSTOP);
    pthread_barrier_init(&begin, NULL, GROUPS * SENDERS * 2);
    for (int i = 0; i < GROUPS; i++) {
        groups[i].begin = &begin;
        if (pipe(groups[i].pipe) < 0)
            _exit(1);
        for (int k = 0; k < SENDERS * 2; k++)
            if (pthread_create(&threads[n++], NULL, k % 2 ? receive_all : send_all, &groups[i]) != 0)
                _exit(1);
    }
    while (n > 0)
        pthread_join(threads[--n], NULL);
    _exit(0);
}

/* Returns the CPU time of a storm, ms. */
static double storm(enum way way)
{
    struct rusage use;
    int status;
    fflush(stdout);
    const pid_t pid = asym_process_fork();
    if (pid == 0)
        be_storm();
    struct phases_empty_bpf *empty = NULL;
    struct asym_phases *p = way >= UNFOLLOWED ? open_phases() : NULL;
    if (way == EMPTY && (!(empty = phases_empty_bpf__open_and_load()) || phases_empty_bpf__attach(empty) < 0))
        fail("cannot load empty programs");
    if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
        fail("the storm does not begin");
    if (way == FOLLOWED && asym_phases_follow(p, (int32_t)pid, 1) < 0)
        fail("cannot follow");
    asym_process_signal(pid, SIGCONT);
    if (wait4(pid, &status, 0, &use) != pid || status != 0)
        fail("the storm has failed");
    phases_empty_bpf__destroy(empty);
    asym_phases_close(p);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e3 +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e3;
}

static void measure_storm(void)
{
    static double took[WAYS][ROUNDS];
    storm(NOTHING);
    for (int i = 0; i < ROUNDS; i++)
        for (int k = 0; k < WAYS; k++)
            took[(i + k) % WAYS][i] = storm((enum way)((i + k) % WAYS));
    for (int way = EMPTY; way < WAYS; way++) {
        double percent[ROUNDS];
        for (int i = 0; i < ROUNDS; i++)
            percent[i] = (took[way][i] / took[NOTHING][i] - 1) * 100;
        const double middle = median(percent, ROUNDS);
        printf("%-10s %-15s %+6.1f %% of CPU time%s (quartiles %+.1f to %+.1f)\n", "storm", names[way], middle,
               asked_storm[way], percent[ROUNDS / 4], percent[ROUNDS * 3 / 4]);
    }
    printf("%-10s of %d threads without programs: %.0f ms of CPU time\n", "storm", GROUPS * SENDERS * 2,
           median(took[NOTHING], ROUNDS));
    fflush(stdout);
}

/* Start a load of this build, whose output no program reads. */
static pid_t start_load(const char *path, const char *first, const char *second, const char *third, const char *fourth)
{
    fflush(stdout);
    const pid_t pid = asym_process_fork();
    if (pid != 0)
        return pid;
    if (!freopen("/dev/null", "w", stdout))
        _exit(1);
    execl(path, path, first, second, third, fourth, (char *)NULL);
    _exit(1);
}

/*
 * Start threads that sleep, and wake for a moment once in 3 seconds: asymd follows no program that never runs. Returns the process
 * whose children have most of them.
 */
static pid_t start_sleepers(int threads)
{
    char count[16], processes[16];
    snprintf(count, sizeof count, "%d", threads);
    snprintf(processes, sizeof processes, "%d", PROCESSES);
    return start_load(ASYM_BENCH_BIN "/tests/load-sleepers", count, processes, "60", "3");
}

static void measure_reader(void)
{
    const struct asym_phases_thread *t;
    const uint32_t *changed;
    double listed[ROUNDS], reconciled[ROUNDS];
    struct asym_phases *p = open_phases();
    const pid_t pid = start_sleepers(THREADS);
    pid_t pids[64] = {pid};
    sleep(2);
    const size_t n_pids = 1 + asym_process_children(pid, pids + 1, 63);
    const double begin = read_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (size_t i = 0; i < n_pids; i++)
        asym_phases_follow(p, (int32_t)pids[i], (uint32_t)i + 1);
    const double followed = read_ns(CLOCK_PROCESS_CPUTIME_ID) - begin;
    for (int i = 0; i < ROUNDS; i++) {
        const double a = read_ns(CLOCK_PROCESS_CPUTIME_ID);
        (void)asym_phases_list(p, &t, &changed);
        const double b = read_ns(CLOCK_PROCESS_CPUTIME_ID);
        asym_phases_reconcile(p);
        listed[i] = (b - a) / 1e3;
        reconciled[i] = (read_ns(CLOCK_PROCESS_CPUTIME_ID) - b) / 1e3;
    }
    printf("CPU time of asymd at %u followed threads of %zu processes: list %.0f us, reconcile %.0f us; to follow "
           "them: %.0f us\n",
           asym_phases_threads(p, 0), n_pids, median(listed, ROUNDS), median(reconciled, ROUNDS), followed / 1e3);
    asym_phases_close(p);
    asym_process_signal(pid, SIGKILL);
}

/* The observers of a machine: all of them, or procfs alone. */
struct watch {
    struct asym_settings *settings;
    struct asym_process_events *process_events;
    struct asym_observers observers;
    struct asym_snapshot s;
    double took[SAMPLES]; /* ms of CPU time */
};

static void note_absent(void *ctx, const char *name, const char *why)
{
    fail(why);
}

static void open_watch(struct watch *w, int observer, const struct asym_root *root, const struct asym_machine *machine)
{
    struct asym_error err = {""};
    if (asym_settings_new(&w->settings) < 0)
        fail("no memory");
    w->settings->daemon.observer = observer;
    (void)asym_process_events_open(&w->process_events, &err);
    const struct asym_procfs_config config = {
        .root = root, .machine = machine, .process_events = w->process_events, .owns_children = false};
    const struct asym_observer_context context = {.settings = w->settings, .procfs = &config};
    if (asym_observers_open(asym_observers, ASYM_N_OBSERVERS, &context, note_absent, NULL, &w->observers, &err) < 0)
        fail(err.text);
}

static void sample(struct watch *w, int i)
{
    const double begin = read_ns(CLOCK_THREAD_CPUTIME_ID);
    if (w->observers.source->next(w->observers.source, &w->s) < 0)
        fail("a sample has failed");
    if (i >= 0)
        w->took[i] = (read_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / 1e6;
}

/* Both observers sample the same machine in turn, ten times a second. The first samples find and follow the programs. */
static void measure_samples(void)
{
    static struct watch watches[2];
    struct asym_root root;
    struct asym_error err = {""};
    char active[16];
    struct asym_machine *machine = calloc(1, sizeof *machine);
    snprintf(active, sizeof active, "%d", ACTIVE);
    const pid_t loads[] = {start_sleepers(THREADS - ACTIVE),
                           start_load(ASYM_BENCH_BIN "/tests/load-pulse", active, "60", "10", NULL)};
    if (!machine || asym_root_open(NULL, &root, &err) < 0 || asym_topology_read(&root, NULL, machine, NULL, &err) < 0)
        fail(err.text);
    sleep(2);
    open_watch(&watches[0], ASYM_OBSERVE_PROCFS, &root, machine);
    open_watch(&watches[1], ASYM_OBSERVE_BPF, &root, machine);
    for (int i = -40; i < SAMPLES; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        sample(&watches[i & 1], i);
        sample(&watches[!(i & 1)], i);
    }
    for (int k = 0; k < 2; k++) {
        printf("a sample by %-6s of %u threads, of which %zu have run: %.3f ms of CPU time%s\n", k ? "bpf" : "procfs",
               watches[k].s.coverage.n_threads, watches[k].s.n_tasks, median(watches[k].took, SAMPLES),
               k ? " (asked 0.1)" : "");
        asym_observers_close(&watches[k].observers);
        asym_process_events_close(watches[k].process_events);
        asym_settings_free(watches[k].settings);
    }
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
        asym_process_signal(loads[i], SIGKILL);
    asym_root_done(&root);
    free(machine);
}

/* The answers of a program that does nothing but set a mask, in real time like asymd: to a phase, and back to its end. */
struct answers {
    double took[ANSWERS]; /* us from the change of state */
    int n;
    int32_t alone;
};

static void answer(void *ctx, const struct asym_phases_event *e)
{
    struct answers *a = ctx;
    const bool begins = e->kind == ASYM_PHASES_SERIAL;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(begins ? 0 : (size_t)sysconf(_SC_NPROCESSORS_ONLN) - 1, &set);
    a->alone = begins ? e->tid : a->alone;
    if (a->alone > 0 && sched_setaffinity(a->alone, sizeof set, &set) == 0 && begins && a->n < ANSWERS)
        a->took[a->n++] = (read_ns(CLOCK_MONOTONIC) - (double)e->changed_ns) / 1e3;
}

static void measure_answer(void)
{
    static struct answers a;
    struct asym_phases *p = open_phases();
    struct pollfd fd = {.fd = asym_phases_fd(p), .events = POLLIN};
    const pid_t pid = start_load(ASYM_BENCH_BIN "/tests/load-silent", "1", "20", "40", "1000");
    sleep(1);
    if (asym_phases_follow(p, (int32_t)pid, 1) < 0)
        fail("cannot follow");
    if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &(struct sched_param){1}) < 0)
        fail("no real-time priority");
    while (a.n < ANSWERS && poll(&fd, 1, 10000) > 0)
        asym_phases_take(p, answer, &a);
    sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
    asym_phases_close(p);
    asym_process_signal(pid, SIGKILL);
    if (a.n < ANSWERS)
        fail("the kernel tells of no phase");
    const double middle = median(a.took, ANSWERS);
    printf("the least time of %d answers to phases of 20 ms: %.0f us, 99 %% %.0f us\n", ANSWERS, middle,
           a.took[ANSWERS * 99 / 100]);
}

static void measure_threads(void)
{
    pthread_t t;
    if (pthread_create(&t, NULL, echo, NULL) != 0)
        fail("cannot start a thread");
    measure_all("threads", 0, 0);
    pthread_cancel(t);
    pthread_join(t, NULL);
}

static void measure_processes(void)
{
    clockid_t clock;
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        echo(NULL);
        _exit(0);
    }
    if (clock_getcpuclockid(pid, &clock) != 0)
        fail("no clock of the other process");
    measure_all("processes", pid, clock);
    asym_process_signal(pid, SIGKILL);
}

static const struct {
    const char *name;
    void (*measure)(void);
} parts[] = {{"threads", measure_threads}, {"processes", measure_processes}, {"storm", measure_storm},
             {"reader", measure_reader},   {"samples", measure_samples},     {"answer", measure_answer}};

/* The arguments name the parts to measure; all, if there is none. */
int main(int argc, char **argv)
{
    pin();
    if (pipe(there) < 0 || pipe(back) < 0)
        fail("no pipes");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        bool is_named = argc == 1;
        for (int k = 1; k < argc; k++)
            is_named |= strcmp(argv[k], parts[i].name) == 0;
        if (is_named)
            parts[i].measure();
    }
    return 0;
}
