/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The procfs source on the live machine: counts, forks, and what asymd reports to have done. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "base/mask.h"
#include "linux/observe/procfs-internal.h"
#include "linux/sys/thread.h"
#include "linux/topology/topology.h"
#include "support/live.h"
#include "support/process.h"
#include "support/test.h"

struct view {
    struct asym_root root;
    struct asym_machine *machine;
    struct asym_process_events *process_events;
    struct asym_source *source;
    struct asym_snapshot s;
};

static void open_view(struct view *v, pid_t pid, bool process_events)
{
    const int32_t pids[] = {pid};
    *v = (struct view){.machine = calloc(1, sizeof *v->machine)};
    assert_int_equal(asym_root_open(NULL, &v->root, NULL), 0);
    assert_int_equal(asym_topology_read(&v->root, NULL, v->machine, NULL, NULL), 0);
    if (process_events)
        assert_int_equal(asym_process_events_open(&v->process_events, NULL), 0);
    const struct asym_procfs_config config = {
        .root = &v->root, .machine = v->machine, .process_events = v->process_events, .pids = pids, .n_pids = 1};
    assert_int_equal(asym_procfs_new(&config, &v->source, NULL), 0);
    assert_int_equal(v->source->next(v->source, &v->s), 1);
}

static void close_view(struct view *v)
{
    v->source->close(v->source);
    asym_process_events_close(v->process_events);
    asym_root_done(&v->root);
    free(v->machine);
}

static double take_sample(struct view *v)
{
    double count = 0;
    assert_int_equal(v->source->next(v->source, &v->s), 1);
    for (size_t i = 0; i < v->s.n_apps; i++)
        count += v->s.apps[i].runnable_mean;
    return count;
}

/* Five samples of 100 ms, weighted by their real length. */
static double mean_over_half_a_second(struct view *v)
{
    double sum = 0, time = 0;
    for (int i = 0; i < 5; i++) {
        asym_live_sleep(0.1);
        double count = take_sample(v);
        sum += count * (double)v->s.interval;
        time += (double)v->s.interval;
    }
    return sum / time;
}

/*
 * Where the test may do this, other programs make neither its loads wait for long nor the reader: a wait under way at the end of a
 * measurement is missing, and one at its begin counts. At a load of 28 that was more than 0.1 of 16 threads.
 */
static void come_first(bool first)
{
    const struct sched_param param = {.sched_priority = first};
    sched_setscheduler(0, first ? SCHED_FIFO | SCHED_RESET_ON_FORK : SCHED_OTHER, &param);
}

static void check_spinning(int threads, bool process_events)
{
    char text[16];
    struct view v;
    snprintf(text, sizeof text, "%d", threads);
    const char *const argv[] = {"/usr/bin/nice", "-n", "-15", ASYM_TEST_BIN "/tests/load-spin", text, "60", NULL};
    pid_t load = asym_live_start(argv, -1);
    asym_live_await_load(load, threads);
    come_first(true);
    open_view(&v, load, process_events);
    asym_live_sleep(0.2);
    take_sample(&v);
    /* Until the longest wait of each thread has been credited once, the wait under way is missing. */
    mean_over_half_a_second(&v);
    double mean = mean_over_half_a_second(&v);
    print_message("%2d spinning threads read %.3f%s\n", threads, mean, process_events ? "" : " (without events)");
    close_view(&v);
    come_first(false);
    assert_true(mean > threads - 0.1 && mean < threads + 0.1);
    asym_live_end(load, SIGKILL);
}

TEST(k_spinning_threads_read_k)
{
    for (int k = 1; k <= 16; k *= 2)
        check_spinning(k, k % 4 != 0);
}

/* A thread of a frame loop: it works for busy ns of CPU time, and sleeps until the period has passed. It says when it slept. */
struct loop {
    uint64_t busy, period; /* ns */
    _Atomic int32_t tid;
    _Atomic uint64_t slept, wakes; /* ns: the sum, the present sleep included; when that ends */
    double counted;                /* runnable us by the source */
};

static uint64_t read_ns(clockid_t clock)
{
    uint64_t ns;
    return asym_clock_ns(clock, &ns) ? ns : 0;
}

static void *run_loop(void *arg)
{
    struct loop *l = arg;
    l->tid = (int32_t)gettid();
    for (uint64_t next = read_ns(CLOCK_MONOTONIC);;) {
        for (uint64_t end = read_ns(CLOCK_THREAD_CPUTIME_ID) + l->busy; read_ns(CLOCK_THREAD_CPUTIME_ID) < end;)
            ;
        const uint64_t now = read_ns(CLOCK_MONOTONIC);
        next = ASYM_MAX(next + l->period, now);
        l->wakes = next;
        l->slept += next - now;
        const struct timespec until = {.tv_sec = (time_t)(next / 1000000000), .tv_nsec = (long)(next % 1000000000)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    return NULL;
}

static double slept_until(const struct loop *l, asym_usec now)
{
    const double ahead = (double)l->wakes / 1e3 - (double)now;
    return (double)l->slept / 1e3 - ASYM_MAX(ahead, 0);
}

enum { N_LOOPS = 3 };

static void count_loops(const struct view *v, struct loop loops[N_LOOPS])
{
    for (size_t i = 0; i < v->s.n_tasks; i++) {
        const struct asym_task *t = &v->s.tasks[i];
        assert_true(t->running <= t->runnable);
        for (size_t k = 0; k < N_LOOPS; k++)
            loops[k].counted += loops[k].tid == t->id.tid ? t->runnable * (double)v->s.interval : 0;
    }
}

/* Three seconds, in samples of 100 ms. Returns the share that the host of this virtual machine has taken. */
static double check_loops(struct view *v, struct loop loops[N_LOOPS])
{
    double slept[N_LOOPS];
    take_sample(v);
    const asym_usec begin = v->s.now;
    const struct asym_live_stretch stretch = asym_live_begin();
    for (size_t k = 0; k < N_LOOPS; k++) {
        slept[k] = slept_until(&loops[k], begin);
        loops[k].counted = 0;
    }
    for (int i = 0; i < 30; i++) {
        asym_live_sleep(0.1);
        take_sample(v);
        count_loops(v, loops);
    }
    const double time = (double)(v->s.now - begin), stolen = asym_live_stolen(&stretch);
    for (size_t k = 0; k < N_LOOPS; k++) {
        const double read = loops[k].counted / time, is = 1 - (slept_until(&loops[k], v->s.now) - slept[k]) / time;
        print_message("a thread with a duty of %.3f reads %.3f\n", is, read);
        assert_true(stolen > ASYM_LIVE_STOLEN_MOST || (read > is - 0.05 && read < is + 0.05));
    }
    return stolen;
}

TEST(the_threads_of_a_frame_loop_read_their_duty)
{
    struct view v;
    struct loop *loops = asym_live_share(N_LOOPS * sizeof *loops);
    static const uint64_t busy[N_LOOPS] = {8700000, 3000000, 1500000};
    for (size_t k = 0; k < N_LOOPS; k++)
        loops[k] = (struct loop){.busy = busy[k], .period = 10000000};
    const pid_t child = asym_process_fork();
    if (child == 0) {
        pthread_t thread;
        /* Where the test may do this, other programs do not make the threads wait: then their duty is 1, as any error reads. */
        sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
        for (size_t k = 1; k < N_LOOPS; k++)
            if (pthread_create(&thread, NULL, run_loop, &loops[k]) != 0)
                _exit(1);
        run_loop(&loops[0]);
    }
    assert_true(asym_live_await(asym_live_ran_threads, child, 0, N_LOOPS, ASYM_LIVE_PATIENCE));
    open_view(&v, child, true);
    asym_live_sleep(0.1);
    while (check_loops(&v, loops) > ASYM_LIVE_STOLEN_MOST)
        print_message("the host took too much time: measured again\n");
    close_view(&v);
    asym_live_end(child, SIGKILL);
}

static const struct asym_task *find(const struct view *v, int32_t tid)
{
    for (size_t i = 0; i < v->s.n_tasks; i++)
        if (v->s.tasks[i].id.tid == tid)
            return &v->s.tasks[i];
    return NULL;
}

/* The task of a working thread: the source lists working threads only. */
static const struct asym_task *sample_until_listed(struct view *v, pid_t pid)
{
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; asym_live_now() < end;) {
        asym_live_sleep(0.02);
        take_sample(v);
        const struct asym_task *t = find(v, pid);
        if (t)
            return t;
    }
    return NULL;
}

/* The number of further samples in which the source reads the thread's cpuset again. */
static unsigned suspects(const struct view *v, pid_t pid)
{
    return asym_procfs_find(asym_procfs_of(v->source), pid)->suspected;
}

static void say_done(const struct view *v, const struct asym_action *action, const struct asym_outcome *outcome)
{
    const struct asym_feedback feedback = {.actions = action, .outcomes = outcome, .n_actions = 1};
    v->source->feedback(v->source, &feedback);
}

/* The source believes a reported action only if the kernel agrees. */
TEST(what_was_done_is_known_and_what_was_not_is_not)
{
    struct view v;
    const char *const argv[] = {"tests/load-spin", "1", "60", NULL};
    pid_t load = asym_live_start(argv, -1);
    open_view(&v, load, true);
    const struct asym_task *t = sample_until_listed(&v, load);
    assert_non_null(t);
    const struct asym_mask all = *t->mask;
    struct asym_action action = {.kind = ASYM_ACTION_STEER, .id = t->id};
    const struct asym_outcome done = {.kind = ASYM_OUTCOME_DONE}, retry = {.kind = ASYM_OUTCOME_RETRY};
    asym_mask_set(&action.mask, (unsigned)asym_mask_next(&all, 0));
    /* The mask changed, and asymd reports the action: the source needs no check. */
    assert_int_equal(asym_thread_set_mask(load, &action.mask, false), 0);
    say_done(&v, &action, &done);
    t = sample_until_listed(&v, load);
    assert_true(asym_mask_equal(t->mask, &action.mask));
    assert_int_equal(suspects(&v, load), 0);
    /* The mask changed, but asymd reports no action: another process has changed it. */
    assert_int_equal(asym_thread_set_mask(load, &all, false), 0);
    say_done(&v, &action, &retry);
    t = sample_until_listed(&v, load);
    assert_true(asym_mask_equal(t->mask, &all));
    assert_int_not_equal(suspects(&v, load), 0);
    /* asymd reports an action, but the mask did not change. */
    say_done(&v, &action, &done);
    t = sample_until_listed(&v, load);
    assert_true(asym_mask_equal(t->mask, &all));
    assert_int_not_equal(suspects(&v, load), 0);
    /* The source ignores reports of threads that have ended. */
    asym_live_end(load, SIGKILL);
    say_done(&v, &action, &done);
    action.id.tgid = action.id.tid = 1;
    say_done(&v, &action, &done);
    take_sample(&v);
    close_view(&v);
}

TEST(a_fork_is_known_of_its_parent)
{
    for (int process_events = 0; process_events < 2; process_events++) {
        struct view v;
        open_view(&v, getpid(), process_events);
        take_sample(&v);
        pid_t child = asym_process_fork();
        if (child == 0)
            pause();
        take_sample(&v);
        bool known = false;
        for (double end = asym_live_now() + 0.02; asym_live_now() < end;)
            ;
        take_sample(&v);
        for (size_t i = 0; i < v.s.n_procs; i++)
            known |= v.s.procs[i].id.tgid == getpid() && v.s.procs[i].last_fork != 0;
        assert_true(known);
        asym_live_end(child, SIGKILL);
        close_view(&v);
    }
}

TEST_MAIN
