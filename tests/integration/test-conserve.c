/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work conservation on a kernel: a program that sleeps for a part of its time, beside busy threads that have too few CPUs. It keeps
 * its fast CPUs, and they use them while it sleeps: while a steered thread waits, no CPU is idle for long.
 */
#include <dirent.h>
#include <math.h>
#include <sched.h>
#include <signal.h>

#include "support/live.h"
#include "support/rounds.h"
#include "support/service.h"
#include "support/test.h"

enum { WINDOWS = 4, WINDOW_SAMPLES = 6, MOST_CPUS = 64, MOST_THREADS = 256 };

/*
 * The length of a window, seconds; and for how much of it a CPU may be idle while a thread waits: for a plan after the sleeper has
 * fallen asleep, and for one after it has woken.
 */
#define WINDOW 0.6
#define LEAST  0.2

/* The kernel's counts for CPUs and for threads that never sleep, seconds. A busy machine can delay the test between reads. */
struct counts {
    double begin, end, idle[MOST_CPUS];
    struct {
        double before, after, ran; /* the times before and after the read */
    } threads[MOST_THREADS];
    int n;
};

static void count_idle(struct counts *c)
{
    char line[512];
    double user, nice, kernel, idle, io;
    int cpu;
    ASYM_AUTO_FCLOSE FILE *f = fopen("/proc/stat", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "cpu%d %lf %lf %lf %lf %lf", &cpu, &user, &nice, &kernel, &idle, &io) == 6 && cpu < MOST_CPUS)
            c->idle[cpu] = (idle + io) / (double)sysconf(_SC_CLK_TCK);
}

static void count_runs(struct counts *c, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) && c->n < MOST_THREADS;) {
        double ran, before = asym_live_now();
        snprintf(path, sizeof path, "/proc/%d/task/%.10s/schedstat", (int)pid, e->d_name);
        FILE *f = atoi(e->d_name) > 0 ? fopen(path, "r") : NULL;
        if (!f)
            continue;
        assert_int_equal(fscanf(f, "%lf", &ran), 1);
        fclose(f);
        c->threads[c->n].before = before;
        c->threads[c->n].ran = ran / 1e9;
        c->threads[c->n++].after = asym_live_now();
    }
    closedir(d);
}

static struct counts count(pid_t busy)
{
    struct counts c = {.begin = asym_live_now()};
    count_idle(&c);
    count_runs(&c, busy);
    c.end = asym_live_now();
    return c;
}

/*
 * Returns the seconds for which some thread has waited while some CPU was idle, at least: the two together took that much longer
 * than the window. Each thread may use each CPU.
 */
static double idle_while_waiting(const struct counts *a, const struct counts *b)
{
    double waited = 0, idle = 0;
    assert_int_equal(a->n, b->n);
    for (int t = 0; t < b->n; t++)
        waited = fmax(waited, b->threads[t].before - a->threads[t].after - (b->threads[t].ran - a->threads[t].ran));
    for (int cpu = 0; cpu < MOST_CPUS; cpu++)
        idle = fmax(idle, b->idle[cpu] - a->idle[cpu]);
    return waited + idle - (b->end - a->begin);
}

/* The masks while a window passes: how often the busy threads may use all CPUs, and how often the sleeper has another mask. */
struct masks {
    int samples, shared, changes;
    cpu_set_t last;
};

/* Returns all CPUs that some thread of the process may use. */
static cpu_set_t cpus_of_all(pid_t pid)
{
    char path[64];
    cpu_set_t all, one;
    CPU_ZERO(&all);
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        if (atoi(e->d_name) > 0 && sched_getaffinity(atoi(e->d_name), sizeof one, &one) == 0)
            CPU_OR(&all, &all, &one);
    closedir(d);
    return all;
}

static void sample_masks(pid_t sleeper, pid_t busy, struct masks *m)
{
    cpu_set_t own, used = cpus_of_all(busy);
    assert_int_equal(sched_getaffinity(sleeper, sizeof own, &own), 0);
    m->shared += CPU_COUNT(&used) == asym_live_cpus();
    m->changes += m->samples > 0 && !CPU_EQUAL(&own, &m->last);
    m->samples++;
    m->last = own;
}

/* Returns in how many windows a CPU was idle for more than two plans while a thread waited. */
static int count_windows(const char *name, pid_t sleeper, pid_t busy, struct masks *m)
{
    int n = 0;
    double worst = -1;
    struct counts a = count(busy);
    for (int k = 0; k < WINDOWS; k++) {
        for (int i = 0; i < WINDOW_SAMPLES; i++) {
            asym_live_sleep(WINDOW / WINDOW_SAMPLES);
            sample_masks(sleeper, busy, m);
        }
        const struct counts b = count(busy);
        const double seconds = idle_while_waiting(&a, &b);
        n += seconds > LEAST;
        worst = fmax(worst, seconds);
        a = b;
    }
    print_message(
        "%s: a CPU idle while a thread waits in %d of %d windows, for %.0f ms at most; the sleeper's CPUs shared "
        "in %d of %d samples, its mask changed %d times\n",
        name, n, WINDOWS, 1e3 * worst, m->shared, m->samples, m->changes);
    return n;
}

static bool is_bpf(void)
{
    const char *observer = getenv("ASYM_TEST_OBSERVER");
    return observer && strcmp(observer, "bpf") == 0;
}

/* ./dev test makes each row with one of the two observers, so that each policy and each length of bursts has both. */
TEST_WITH(no_cpu_is_idle_while_a_steered_thread_waits, asym_service_set_up, asym_service_tear_down)
{
    static const struct {
        const char *name, *policy, *works, *of; /* milliseconds */
        int busy;                               /* threads for each CPU */
        bool keeps; /* the sleeper has CPUs of its own, and keeps no busy thread from them */
        bool bpf;
    } rows[] = {{"pa, bursts", "pa", "4", "10", 3, true, false},
                {"asym, bursts", "asym", "3", "10", 3, false, true},
                {"pa, half seconds", "pa", "500", "1000", 1, false, true},
                {"asym, half seconds", "asym", "500", "1000", 1, false, false}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        if (!asym_rounds_are_all() && rows[i].bpf != is_bpf())
            continue;
        struct masks masks = {0};
        const int cpus = asym_live_cpus();
        const char *const argv[] = {"tests/load-duty", rows[i].works, rows[i].of, "120", NULL};
        pid_t sleeper = asym_live_start(argv, -1), busy = asym_service_spin(asym_live_text("%d", rows[i].busy * cpus));
        const char *const more[] = {asym_live_pid_option(busy), asym_live_text("--policy=%s", rows[i].policy),
                                    "--set=policy.asym.flood=1000", NULL};
        pid_t asymd = asym_service_start(sleeper, more);
        assert_true(asym_live_await(asym_live_narrow_threads, busy, cpus, 1, ASYM_LIVE_PATIENCE));
        if (rows[i].keeps)
            assert_true(asym_live_await(asym_live_narrow_threads, sleeper, cpus, 1, ASYM_LIVE_PATIENCE));
        asym_live_sleep(1.5); /* the mean of a second */
        const int n = count_windows(rows[i].name, sleeper, busy, &masks);
        asym_live_end(asymd, SIGTERM);
        asym_live_end(busy, SIGKILL);
        asym_live_end(sleeper, SIGKILL);
        assert_int_equal(n, 0);
        if (rows[i].keeps) {
            assert_int_equal(masks.shared, masks.samples);
            assert_true(masks.changes <= masks.samples / 10);
        }
    }
}

TEST_MAIN
