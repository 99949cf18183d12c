/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The procfs source on trees of files: the processes found, their facts, and malformed files. */
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/mask.h"
#include "linux/observe/procfs-internal.h"
#include "linux/sys/proc-parse.h"
#include "support/process.h"
#include "support/tree.h"
#include "support/test.h"

#define KTHREAD        "2097152"
#define NO_SETAFFINITY "67108864"
#define UPTIME_SECONDS 1000

/* The error of each listing of threads; 0: none. The linker puts this function in its place (--wrap, tests/CMakeLists.txt). */
static int listing_error;

WRAPPED(int, asym_root_openat, const struct asym_root *root, const char *path, int flags)
{
    const char *name = strrchr(path, '/');
    if (listing_error < 0 && name && strcmp(name, "/task") == 0)
        return listing_error;
    return __real_asym_root_openat(root, path, flags);
}

static bool is_over;

WRAPPED(bool, asym_realtime_is_over, void)
{
    return is_over;
}

static struct {
    const char *path; /* NULL: none */
    int error;
} unreadable;

WRAPPED(ssize_t, asym_root_read, const struct asym_root *root, const char *path, char *buf, size_t size)
{
    return unreadable.path && strcmp(path, unreadable.path) == 0 ? unreadable.error
                                                                 : __real_asym_root_read(root, path, buf, size);
}

/* Stands for the connection to the proc connector: the next sample takes these events. */
static struct connector {
    struct asym_process_event events[2];
    int n;
} connector;

WRAPPED(int, asym_process_events_drain, struct asym_process_events *events,
        void (*fn)(void *ctx, const struct asym_process_event *event), void *ctx)
{
    struct connector *c = (struct connector *)(void *)events;
    const int n = c->n;
    for (int i = 0; i < n; i++)
        fn(ctx, &c->events[i]);
    c->n = 0;
    return n;
}

WRAPPED(void, asym_process_events_peek, struct asym_process_events *events,
        void (*fn)(void *ctx, const struct asym_process_event *event), void *ctx)
{
    const struct connector *c = (struct connector *)(void *)events;
    for (int i = 0; i < c->n; i++)
        fn(ctx, &c->events[i]);
}

/* The affinity of every thread, and a function that is called before it is read. Empty: the kernel's answer. */
static struct {
    struct asym_mask mask;
    void (*before)(void *ctx);
    void *ctx;
    int error; /* what the call sets errno to, if it is not 0 */
} affinity;

WRAPPED(int, sched_getaffinity, pid_t tid, size_t size, cpu_set_t *ret)
{
    if (affinity.before)
        affinity.before(affinity.ctx);
    if (affinity.error) {
        errno = affinity.error;
        return -1;
    }
    if (asym_mask_empty(&affinity.mask))
        return __real_sched_getaffinity(tid, size, ret);
    memcpy(ret, &affinity.mask, ASYM_MIN(size, sizeof affinity.mask));
    return 0;
}

/* A fake reader that answers when the test says so. */
struct fake_reader {
    struct asym_proc_reader port;
    struct asym_read_request last_request;
    struct asym_read_answer answer;
    int n_requests, refuses;
    bool answers;
};

struct fixture {
    struct asym_error err; /* of the last call that failed */
    struct tree tree;
    struct asym_root root;
    struct asym_machine machine;
    struct asym_source *source;
    struct asym_snapshot s;
    bool sampled;
    struct asym_settings *settings; /* its rules; NULL: none */
    struct fake_reader reader;
};

static void set_up(struct fixture *f)
{
    listing_error = connector.n = 0;
    is_over = false;
    memset(&affinity, 0, sizeof affinity);
    tree_make(&f->tree);
    tree_machine(&f->tree, "0-7", "0-7");
    tree_write(&f->tree, "proc/uptime", "%d.00 1.00\n", UPTIME_SECONDS);
    tree_write(&f->tree, "proc/meminfo", "MemTotal: 1 kB\n");
    assert_int_equal(asym_root_open(f->tree.path, &f->root, NULL), 0);
    f->machine.n_cpus = 8;
    for (unsigned c = 0; c < 8; c++)
        asym_mask_set(&f->machine.online, c);
    f->machine.usable = f->machine.online;
}

static void tear_down(struct fixture *f)
{
    if (f->source)
        f->source->close(f->source);
    asym_settings_free(f->settings);
    asym_root_done(&f->root);
    tree_remove(&f->tree);
}

static void start_over(struct fixture *f)
{
    tear_down(f);
    *f = (struct fixture){0};
    set_up(f);
}

#define TEST_F(name) TEST_IN(name, struct fixture, f, set_up, tear_down)

struct thread {
    int pid, tid;
    const char *comm;
    char state;
    int ppid;
    const char *flags;
    unsigned start;
    const char *mask;
    unsigned vsize;
    const char *ticks; /* of CPU time: its user's and its system's */
    unsigned stack;    /* where its stack starts; 0: the kernel hides it */
    bool executing;    /* it has no memory yet */
    int nice;
    int pgrp; /* 0: 1; -1: of another PID namespace */
    int session;
    bool has_tty;
};

static void write_stat(const struct fixture *f, const char *file, const struct thread *t)
{
    tree_write(&f->tree, file,
               "%d (%s) %c %d %d %d %d -1 %s 0 0 0 0 %s 0 0 20 %d 1 0 %u %u 0 0 %d 1 %u 0 0 0 0 0 0 0 0 0 17 3 0 0 0\n",
               t->tid, t->comm, t->state, t->ppid, t->pgrp ? ASYM_MAX(t->pgrp, 0) : 1, t->session,
               t->has_tty ? 34816 : 0, t->flags ? t->flags : "0", t->ticks ? t->ticks : "1 2", t->nice, t->start,
               t->vsize, !t->executing, t->stack);
}

/* Writes all files that a kernel has for a thread. For a leader it writes the process's stat, too. */
static void put(const struct fixture *f, struct thread t)
{
    char file[128];
    snprintf(file, sizeof file, "proc/%d/task/%d/stat", t.pid, t.tid);
    write_stat(f, file, &t);
    if (t.tid == t.pid) {
        snprintf(file, sizeof file, "proc/%d/stat", t.pid);
        write_stat(f, file, &t);
        snprintf(file, sizeof file, "proc/%d/cgroup", t.pid);
        tree_write(&f->tree, file, "0::/\n");
        /* A set-user-ID program that user 2002 has started. */
        snprintf(file, sizeof file, "proc/%d/status", t.pid);
        tree_write(&f->tree, file, "Name:\tx\nUid:\t0\t2002\t0\t0\n");
    }
    snprintf(file, sizeof file, "proc/%d/task/%d/schedstat", t.pid, t.tid);
    tree_write(&f->tree, file, "1000000 0 1\n");
    snprintf(file, sizeof file, "proc/%d/task/%d/status", t.pid, t.tid);
    tree_write(&f->tree, file, "Name:\tx\nUid:\t0\t0\t0\t0\nCpus_allowed:\t%s\nCpus_allowed_list:\t0\n",
               t.mask ? t.mask : "ff");
}

static void take_away(const struct fixture *f, const char *directory)
{
    struct tree sub;
    assert_in_range(snprintf(sub.path, sizeof sub.path, "%s/%s", f->tree.path, directory), 1, sizeof sub.path - 1);
    tree_remove(&sub);
}

static void open_source(struct fixture *f, enum asym_grouping group, const int32_t *pids, size_t n_pids)
{
    struct asym_error err = {""};
    const struct asym_procfs_config config = {
        .root = &f->root, .machine = &f->machine, .group = group, .pids = pids, .n_pids = n_pids};
    assert_int_equal(asym_procfs_new(&config, &f->source, &err), 0);
}

/* The contract defines it. */
static void assert_order(const struct fixture *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->s.n_apps; i++) {
        assert_int_equal(f->s.apps[i].first_task, n);
        for (uint32_t k = 0; k < f->s.apps[i].n_tasks; k++) {
            const uint32_t proc = f->s.tasks[n + k].proc;
            assert_int_equal(f->s.procs[proc].app, i);
            assert_int_equal(f->s.procs[proc].id.tgid, f->s.tasks[n + k].id.tgid);
        }
        n += f->s.apps[i].n_tasks;
    }
    assert_int_equal(n, f->s.n_tasks);
}

static void sample(struct fixture *f)
{
    if (!f->source)
        open_source(f, ASYM_GROUP_PROCESS, NULL, 0);
    /* A sample can take less than the microsecond that divides two. */
    while (f->root.live && asym_clock_now() == f->s.now)
        ;
    assert_int_equal(f->source->next(f->source, &f->s), 1);
    /* All files of a captured machine are from one moment. */
    assert_int_equal(f->s.interval > 0, f->sampled && f->root.live);
    f->sampled = true;
    assert_order(f);
}

static const struct asym_task *task_of(const struct fixture *f, int32_t tid)
{
    const struct asym_task *found = NULL;
    for (size_t i = 0; i < f->s.n_tasks; i++)
        if (f->s.tasks[i].id.tid == tid) {
            assert_null(found);
            found = &f->s.tasks[i];
        }
    return found;
}

static struct asym_process *process_of(const struct fixture *f, int32_t pid)
{
    return asym_procfs_find(asym_procfs_of(f->source), pid);
}

static const struct asym_proc *proc_of(const struct fixture *f, int32_t tid)
{
    const struct asym_task *t = task_of(f, tid);
    assert_non_null(t);
    return &f->s.procs[t->proc];
}

/* Take a sample. It has so many tasks (what: n_tasks) or applications (n_apps). */
#define sample_has(f, what, wanted)                                                                                    \
    do {                                                                                                               \
        sample(f);                                                                                                     \
        assert_int_equal((f)->s.what, wanted);                                                                         \
    } while (0)

/* Take a sample. In it this process (of: proc_of) or thread (task_of) is listed, with these flags. */
#define sample_has_flags(f, of, id, wanted)                                                                            \
    do {                                                                                                               \
        sample(f);                                                                                                     \
        assert_non_null(of(f, id));                                                                                    \
        assert_int_equal(of(f, id)->flags, wanted);                                                                    \
    } while (0)

static void sample_with(struct fixture *f, struct thread t)
{
    put(f, t);
    sample(f);
}

/* A process of one thread that runs. */
static struct thread sample_program(struct fixture *f)
{
    const struct thread t = {.pid = 10, .tid = 10, .comm = "a", .state = 'R', .start = 1, .stack = 7000};
    sample_with(f, t);
    return t;
}

/* Its thread has run for so many milliseconds by now. */
static void sample_after(struct fixture *f, struct thread t, unsigned ms)
{
    put(f, t);
    tree_write(&f->tree, "proc/10/task/10/schedstat", "%u000000 0 %u\n", ms, ms);
    sample(f);
}

TEST_F(running_threads_are_listed_with_their_facts)
{
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "build", .state = 'S', .start = 90000});
    put(f, (struct thread){.pid = 10, .tid = 12, .comm = "worker", .state = 'R', .start = 90010, .mask = "f0"});
    put(f,
        (struct thread){.pid = 10, .tid = 11, .comm = "bound", .state = 'R', .start = 90005, .flags = NO_SETAFFINITY});
    sample_has(f, n_apps, 1);
    assert_int_equal(f->s.n_tasks, 2);
    assert_int_equal(f->s.apps[0].n_threads, 3);
    assert_int_equal(f->s.apps[0].runnable_instant, 2);
    assert_string_equal(f->s.apps[0].comm, "build");
    const struct asym_task *t = task_of(f, 12);
    assert_string_equal(t->comm, "worker");
    assert_true(t->id.tgid == 10 && t->id.start == 90010 && t->cpu == 3 && t->state == 'R' && t->flags == 0);
    assert_int_equal(t->mask->w[0], 0xf0);
    assert_int_equal(t->cpuset->w[0], 0xff);
    assert_int_equal(task_of(f, 11)->flags, ASYM_TASK_NO_SETAFFINITY);
    const struct asym_proc *proc = proc_of(f, 12);
    assert_true(proc->id.tid == 10 && proc->id.start == 90000 && proc->rule == ASYM_RULE_STEER);
    /* The process started 900 s after boot, and boot was 1000 s ago. */
    assert_int_equal(f->s.now - proc->born, 100 * ASYM_SEC);
}

static void put_times(const struct fixture *f, int pid, int tid, unsigned ran_us, unsigned waited_us, unsigned slices)
{
    char file[128];
    snprintf(file, sizeof file, "proc/%d/task/%d/schedstat", pid, tid);
    tree_write(&f->tree, file, "%u000 %u000 %u\n", ran_us, waited_us, slices);
}

static void assert_close(double got, double wanted)
{
    if (got < wanted - 0.001 || got > wanted + 0.001)
        fail_msg("%f, not %f", got, wanted);
}

/*
 * A live machine whose files the test writes. The source gets the masks from the real kernel: both PIDs exist, that of this
 * process and that of its parent.
 */
TEST_F(shares_are_of_the_time_between_two_samples)
{
    const int pid = getpid(), other = getppid();
    open_source(f, ASYM_GROUP_PROCESS, NULL, 0);
    f->root.live = true;
    put(f, (struct thread){.pid = pid, .tid = pid, .comm = "sleeps", .state = 'S'});
    put(f, (struct thread){.pid = pid, .tid = other, .comm = "runs", .state = 'R'});
    put_times(f, pid, pid, 5000, 0, 7);
    sample_has(f, n_tasks, 1); /* only the thread in state R; its time is unknown */
    assert_close(f->s.apps[0].runnable_mean, 0);
    assert_close(task_of(f, other)->runnable, 0);
    usleep(20000);
    /* The thread waited for 6 ms and ran for 4 ms between two samples. */
    put_times(f, pid, pid, 9000, 6000, 8);
    sample(f);
    const double ms = (double)f->s.interval / 1000;
    assert_true(ms >= 20);
    assert_close(task_of(f, pid)->running * ms, 4);
    assert_close(task_of(f, pid)->runnable * ms, 10);
    assert_close(task_of(f, other)->running, 0);
    assert_close(task_of(f, other)->runnable, 1);
    assert_close(f->s.apps[0].runnable_mean, 1 + 10 / ms);
    sample(f);
    assert_null(task_of(f, pid));
    assert_close(f->s.apps[0].runnable_mean, 1);
    /* The kernel can credit at once what a thread ran before the interval. */
    put_times(f, pid, pid, 9000000, 6000, 9);
    sample(f);
    assert_close(task_of(f, pid)->running, 1);
}

/* The answers of the watcher for each process and thread; milliseconds. */
static struct watched {
    enum asym_procfs_activity process, thread;
    uint64_t ran, waited;
    int32_t cpu;
    uint16_t renewed;
    bool is_runnable;
    uint32_t settings;
} watched;

static enum asym_procfs_activity watched_process(void *ctx, int32_t tgid)
{
    assert_int_equal(tgid, getpid());
    return ((const struct watched *)ctx)->process;
}

static enum asym_procfs_activity watched_thread(void *ctx, int32_t tid, struct asym_procfs_watched *ret)
{
    const struct watched *w = ctx;
    if (tid != getpid()) {
        *ret = (struct asym_procfs_watched){.cpu = 0};
        return ASYM_PROCFS_SLEPT;
    }
    *ret = (struct asym_procfs_watched){.ran = w->ran * 1000000,
                                        .waited = w->waited * 1000000,
                                        .cpu = w->cpu,
                                        .renewed = w->renewed,
                                        .settings = w->settings,
                                        .is_runnable = w->is_runnable};
    return w->thread;
}

/* One thread that sleeps at each sample, and whose schedstat the test writes. */
static void sample_watched(struct fixture *f, struct watched what)
{
    watched = what;
    usleep(20000);
    sample(f);
}

TEST_F(what_a_watcher_knows_is_not_read)
{
    const struct asym_procfs_watcher watcher = {.process = watched_process, .thread = watched_thread, .ctx = &watched},
                                     nobody = {.ctx = NULL};
    const int pid = getpid();
    open_source(f, ASYM_GROUP_PROCESS, NULL, 0);
    f->root.live = true;
    put(f, (struct thread){.pid = pid, .tid = pid, .comm = "sleeps", .state = 'S'});
    put_times(f, pid, pid, 5000, 0, 7);
    asym_procfs_of(f->source)->kept_max = 1;
    sample(f);
    assert_int_equal(asym_procfs_of(f->source)->n_kept, 1);
    asym_procfs_set_watcher(f->source, &watcher);
    put_times(f, pid, pid, 9000, 0, 8);
    sample_watched(f, (struct watched){.process = ASYM_PROCFS_SLEPT});
    assert_null(task_of(f, pid));
    sample_watched(f, (struct watched){.process = ASYM_PROCFS_RAN, .thread = ASYM_PROCFS_SLEPT});
    assert_null(task_of(f, pid));
    sample_watched(f, (struct watched){ASYM_PROCFS_RAN, ASYM_PROCFS_RAN, .ran = 4, .waited = 6});
    const double ms = (double)f->s.interval / 1000;
    assert_close(task_of(f, pid)->running * ms, 4);
    assert_close(task_of(f, pid)->runnable * ms, 10);
    assert_int_equal(asym_procfs_of(f->source)->n_kept, 0);
    /* Its own sums go on from where schedstat is, which is neither more time of the thread nor another thread. */
    asym_procfs_set_watcher(f->source, &nobody);
    sample_watched(f, (struct watched){.ran = 0});
    assert_null(task_of(f, pid));
    put_times(f, pid, pid, 13000, 0, 9);
    sample_watched(f, (struct watched){.ran = 0});
    assert_close(task_of(f, pid)->running * (double)f->s.interval / 1000, 4);
    assert_int_equal(task_of(f, pid)->flags, 0);
}

/* The file says what the watcher does not: each change of it that shows has been read. */
TEST_F(the_stat_of_a_watched_thread_is_read_when_it_may_have_changed)
{
    const struct asym_procfs_watcher watcher = {.process = watched_process, .thread = watched_thread, .ctx = &watched};
    struct watched w = {ASYM_PROCFS_RAN, ASYM_PROCFS_RAN, .ran = 4, .cpu = sched_getcpu(), .renewed = 65535};
    const int pid = getpid(), cpu = w.cpu;
    struct asym_procfs *p;
    char other[64];
    struct thread t = {.pid = pid, .tid = pid, .comm = "a", .state = 'S', .nice = getpriority(PRIO_PROCESS, 0)};
    open_source(f, ASYM_GROUP_PROCESS, NULL, 0);
    f->root.live = true;
    p = asym_procfs_of(f->source);
    put(f, (struct thread){.pid = pid, .tid = pid + 1, .comm = "sleeps", .state = 'S'});
    put(f, t);
    sample(f);
    asym_procfs_set_watcher(f->source, &watcher);
    sample_watched(f, w);
    assert_int_equal(task_of(f, pid)->cpu, 3);
    w.is_runnable = true;
    /* Its mask leaves out the CPU that it last had: the kernel has moved it, and the file says where to. */
    w.cpu = ASYM_MAX_CPUS - 1;
    sample_watched(f, w);
    assert_int_equal(task_of(f, pid)->cpu, 3);
    w.cpu = cpu;
    t.comm = "b";
    put(f, t);
    sample_watched(f, w);
    assert_int_equal(task_of(f, pid)->cpu, cpu);
    assert_int_equal(task_of(f, pid)->state, 'R');
    assert_string_equal(task_of(f, pid)->comm, "a");
    assert_close(task_of(f, pid)->running * (double)f->s.interval / 1000, 4);
    /* Its state is that of the sample, not of the file. */
    w.is_runnable = false;
    sample_watched(f, w);
    assert_int_equal(task_of(f, pid)->state, 'S');
    w.renewed = 0;
    sample_watched(f, w);
    assert_string_equal(task_of(f, pid)->comm, "b");
    sample_watched(f, w);
    assert_int_equal(task_of(f, pid)->cpu, cpu);
    t.nice++;
    put(f, t);
    assert_int_equal(setpriority(PRIO_PROCESS, 0, t.nice), 0);
    sample_watched(f, w);
    assert_int_equal(task_of(f, pid)->nice, t.nice);
    t.pgrp = 77;
    put(f, t);
    sample_watched(f, w);
    assert_int_equal(asym_procfs_find(p, pid)->pgrp, 1);
    asym_procfs_find(p, pid)->stat_at -= ASYM_SEC;
    sample_watched(f, w);
    assert_int_equal(asym_procfs_find(p, pid)->pgrp, 77);
    /* A change while it was not watched had no number. */
    w.thread = ASYM_PROCFS_UNKNOWN;
    put_times(f, pid, pid, 1, 0, 99);
    sample_watched(f, w);
    t.comm = "c";
    put(f, t);
    w.thread = ASYM_PROCFS_RAN;
    sample_watched(f, w);
    assert_string_equal(task_of(f, pid)->comm, "c");
    /* Not known: the CPU. */
    w.cpu = -1;
    sample_watched(f, w);
    assert_int_equal(task_of(f, pid)->cpu, 3);
    /* A program of one thread loads libraries. */
    w.cpu = 5;
    t.comm = "d";
    put(f, t);
    sample_watched(f, w);
    assert_string_equal(task_of(f, pid)->comm, "c");
    snprintf(other, sizeof other, "proc/%d/task/%d", pid, pid + 1);
    take_away(f, other);
    sample_watched(f, w);
    assert_string_equal(task_of(f, pid)->comm, "d");
}

/* This process runs beside a thread that sleeps, may use 8 CPUs, and is watched. The second sample confirms its mask. */
static void watch_this_process(struct fixture *f, struct watched w, int nice)
{
    static const struct asym_procfs_watcher watcher = {
        .process = watched_process, .thread = watched_thread, .ctx = &watched};
    const int pid = getpid();
    affinity.mask = (struct asym_mask){.w = {0xff}};
    open_source(f, ASYM_GROUP_PROCESS, NULL, 0);
    f->root.live = true;
    put(f, (struct thread){.pid = pid, .tid = pid + 1, .comm = "sleeps", .state = 'S'});
    put(f, (struct thread){.pid = pid, .tid = pid, .comm = "a", .state = 'R', .nice = nice});
    sample(f);
    asym_procfs_of(f->source)->all_online = true; /* else the mask is that of the file status */
    asym_procfs_set_watcher(f->source, &watcher);
    sample_watched(f, w);
    sample_watched(f, w);
}

/* Each change that the sample shows was asked for. */
TEST_F(nice_and_mask_of_a_watched_thread_are_read_when_its_settings_have_changed)
{
    const int pid = getpid(), nice = getpriority(PRIO_PROCESS, 0);
    struct watched w = {ASYM_PROCFS_RAN, ASYM_PROCFS_RAN, .ran = 4, .cpu = sched_getcpu(), .settings = 5};
    watch_this_process(f, w, nice);
    for (unsigned i = 1; i < 4; i++) {
        affinity.mask.w[0] = 0xffu << i & 0xff;
        put(f, (struct thread){.pid = pid, .tid = pid, .comm = "a", .state = 'R', .nice = nice + (int)i});
        assert_int_equal(setpriority(PRIO_PROCESS, 0, nice + (int)i), 0);
        sample_watched(f, w);
        assert_int_equal(task_of(f, pid)->nice, nice + (int)i - 1);
        assert_int_equal(task_of(f, pid)->mask->w[0], 0xffu << (i - 1) & 0xff);
        w.settings = i < 3 ? w.settings + 1 : 0;
        sample_watched(f, w);
        sample_watched(f, w); /* confirms the new mask */
        assert_int_equal(task_of(f, pid)->nice, nice + (int)i);
        assert_int_equal(task_of(f, pid)->mask->w[0], 0xffu << i & 0xff);
    }
    /* Without a number, each sample asks. */
    affinity.mask.w[0] = 0xf0;
    sample_watched(f, w);
    assert_int_equal(task_of(f, pid)->mask->w[0], 0xf0);
}

/* Another process undoes an order of asymd before the kernel's record is compared again: for the watcher nothing has changed. */
TEST_F(an_order_that_is_undone_at_once_is_seen_whatever_the_watcher_knows_of_settings)
{
    const int pid = getpid(), nice = getpriority(PRIO_PROCESS, 0);
    struct watched w = {ASYM_PROCFS_RAN, ASYM_PROCFS_RAN, .ran = 4, .cpu = sched_getcpu(), .settings = 5};
    watch_this_process(f, w, nice);
    const struct asym_action action = {
        .kind = ASYM_ACTION_STEER, .id = task_of(f, pid)->id, .mask = {.w = {1}}, .nice = -5};
    const struct asym_outcome outcome = {.kind = ASYM_OUTCOME_DONE};
    const struct asym_feedback done = {.actions = &action, .outcomes = &outcome, .n_actions = 1};
    f->source->feedback(f->source, &done);
    sample_watched(f, w);
    assert_int_equal(task_of(f, pid)->nice, nice);
    assert_int_equal(task_of(f, pid)->mask->w[0], 0xff);
}

TEST_F(equal_masks_have_equal_addresses)
{
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'R', .mask = "0f"});
    put(f, (struct thread){.pid = 20, .tid = 20, .comm = "b", .state = 'R', .mask = "ff"});
    put(f, (struct thread){.pid = 30, .tid = 30, .comm = "c", .state = 'R', .mask = "ffffffff,ffffffff,0000000f"});
    put(f, (struct thread){.pid = 40, .tid = 40, .comm = "d", .state = 'R', .mask = "ffffffff,ffffffff"});
    sample(f);
    /* Bits of impossible CPUs are removed, so that a full mask equals a full cpuset. */
    assert_ptr_equal(task_of(f, 10)->mask, task_of(f, 30)->mask);
    assert_ptr_equal(task_of(f, 20)->mask, task_of(f, 40)->mask);
    assert_ptr_equal(task_of(f, 20)->mask, task_of(f, 20)->cpuset);
    assert_ptr_not_equal(task_of(f, 10)->mask, task_of(f, 20)->mask);
}

TEST_F(kernel_threads_are_left_out)
{
    put(f, (struct thread){.pid = 2, .tid = 2, .comm = "kthreadd", .state = 'R', .flags = KTHREAD});
    put(f, (struct thread){.pid = 3, .tid = 3, .comm = "program", .state = 'R'});
    sample_has(f, n_tasks, 1);
    assert_non_null(task_of(f, 3));
    assert_int_equal(f->s.coverage.n_procs, 2);
    assert_int_equal(f->s.coverage.n_threads, 1);
}

TEST_F(zombies_are_not_listed)
{
    sample(f);
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "dead", .state = 'Z', .start = 5});
    put(f, (struct thread){.pid = 11, .tid = 11, .comm = "leader", .state = 'Z', .start = 5});
    put(f, (struct thread){.pid = 11, .tid = 12, .comm = "alive", .state = 'R', .start = 6});
    for (int i = 0; i < 2; i++) {
        sample_has(f, n_tasks, 1);
        assert_non_null(task_of(f, 12));
    }
}

TEST_F(junk_files_cost_only_their_thread)
{
    for (int pid = 10; pid < 18; pid++) {
        put(f, (struct thread){.pid = pid, .tid = pid, .comm = "ok", .state = 'R'});
        put(f, (struct thread){.pid = pid, .tid = pid + 100, .comm = "ok", .state = 'R'});
    }
    tree_write(&f->tree, "proc/10/task/110/stat", "rubbish");
    tree_write(&f->tree, "proc/11/task/111/stat", "%s", "");
    tree_write(&f->tree, "proc/12/task/112/status", "Name:\tno mask\n");
    tree_write(&f->tree, "proc/13/task/113/status", "Cpus_allowed:\txyz\n");
    tree_unlink(&f->tree, "proc/14/task/114/stat");
    tree_write(&f->tree, "proc/15/stat", "15 (whole process is junk");
    tree_write(&f->tree, "proc/16/cgroup", "rubbish");
    tree_write(&f->tree, "proc/17x/stat", "not a process");
    tree_write(&f->tree, "proc/99999999999/stat", "no number");
    tree_write(&f->tree, "proc/18", "a file");
    tree_mkdir(&f->tree, "proc/19/task");
    sample(f);
    for (int pid = 10; pid < 18; pid++)
        if (pid != 15)
            assert_non_null(task_of(f, pid));
    for (int tid = 110; tid < 116; tid++)
        assert_null(task_of(f, tid));
    assert_int_equal(task_of(f, 16)->cpuset->w[0], 0xff);
    assert_int_equal(f->s.n_apps, 7);
}

static asym_usec time_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (asym_usec)t.tv_sec * ASYM_SEC + (asym_usec)t.tv_nsec / 1000;
}

/* One that began between two samples. The clock of its start has whole ticks. */
TEST_F(a_newborn_was_runnable_for_its_age_at_most)
{
    const int pid = getpid(), other = getppid();
    const asym_usec tick = ASYM_SEC / (asym_usec)sysconf(_SC_CLK_TCK);
    open_source(f, ASYM_GROUP_PROCESS, NULL, 0);
    f->root.live = true;
    put(f, (struct thread){.pid = pid, .tid = pid, .comm = "old", .state = 'R'});
    sample(f);
    usleep(60000);
    const asym_usec started = (time_of(CLOCK_BOOTTIME) / tick - 2) * tick;
    put(f,
        (struct thread){.pid = other, .tid = other, .comm = "new", .state = 'R', .start = (unsigned)(started / tick)});
    put_times(f, other, other, 100000, 0, 1); /* the kernel can credit a thread with more than its age */
    sample(f);
    /* The two clocks are read one after the other: on a busy machine the age is wrong by the time between. */
    const double age = (double)(f->s.now + time_of(CLOCK_BOOTTIME) - time_of(CLOCK_MONOTONIC) - started);
    const double runnable = task_of(f, other)->runnable * (double)f->s.interval;
    assert_true(task_of(f, other)->flags & ASYM_TASK_NEWBORN);
    if (runnable < 0.6 * age || runnable > 1.6 * age)
        fail_msg("runnable for %.0f us at an age of %.0f us", runnable, age);
}

/* The text is of the caller, who ends it. */
TEST_F(the_coverage_says_why_there_are_no_process_events)
{
    char why[] = "no events";
    const struct asym_procfs_config config = {.root = &f->root, .machine = &f->machine, .process_events_why = why};
    assert_int_equal(asym_procfs_new(&config, &f->source, NULL), 0);
    memset(why, '?', sizeof why - 1);
    sample(f);
    assert_string_equal(f->s.coverage.process_events_why, "no events");
}

TEST_F(a_tree_without_schedstat_still_shows_states)
{
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'R'});
    tree_unlink(&f->tree, "proc/10/task/10/schedstat");
    sample(f);
    assert_non_null(task_of(f, 10));
    assert_int_equal(f->s.apps[0].runnable_instant, 1);
}

static bool said_to_have_hardly_run(struct fixture *f, int32_t tid)
{
    sample(f);
    assert_non_null(task_of(f, tid));
    return task_of(f, tid)->flags & ASYM_TASK_HARDLY_RAN;
}

TEST_F(a_thread_that_has_run_for_less_than_a_millisecond_is_reported)
{
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'R'});
    tree_write(&f->tree, "proc/10/task/10/schedstat", "999999 5000000000 9\n");
    assert_true(said_to_have_hardly_run(f, 10));
    assert_true(said_to_have_hardly_run(f, 10)); /* since it started, not since the last sample */
    tree_write(&f->tree, "proc/10/task/10/schedstat", "1000000 5000000000 9\n");
    assert_false(said_to_have_hardly_run(f, 10));
    assert_false(said_to_have_hardly_run(f, 10));
}

TEST_F(a_thread_with_an_unknown_run_time_is_not_reported)
{
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'R', .ticks = "0 0"});
    tree_unlink(&f->tree, "proc/10/task/10/schedstat");
    assert_false(said_to_have_hardly_run(f, 10));
}

TEST_F(ticks_are_used_where_the_kernel_has_no_schedstat)
{
    static const struct {
        const char *ticks;
        bool hardly;
    } rows[] = {{"0 0", true}, {"1 0", false}, {"0 1", false}};
    open_source(f, ASYM_GROUP_PROCESS, NULL, 0);
    asym_procfs_of(f->source)->no_schedstat = true;
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'R', .ticks = rows[i].ticks});
        assert_int_equal(said_to_have_hardly_run(f, 10), rows[i].hardly);
    }
}

TEST_F(a_process_that_vanishes_between_two_samples_is_forgotten)
{
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'R'});
    put(f, (struct thread){.pid = 10, .tid = 11, .comm = "a", .state = 'R'});
    put(f, (struct thread){.pid = 20, .tid = 20, .comm = "b", .state = 'R'});
    sample_has(f, n_tasks, 3);
    take_away(f, "proc/10/task/11");
    take_away(f, "proc/20");
    sample_has(f, n_tasks, 1);
    assert_int_equal(f->s.coverage.n_procs, 1);
    assert_int_equal(f->s.coverage.n_threads, 1);
    /* The process is ending: its directory exists, but its files do not. */
    tree_unlink(&f->tree, "proc/10/task/10/stat");
    tree_unlink(&f->tree, "proc/10/task/10/schedstat");
    sample_has(f, n_tasks, 0);
    take_away(f, "proc/10");
    sample(f);
    assert_int_equal(f->s.coverage.n_procs, 0);
}

/* The descriptors have run out, or a security module refuses the directory. The files of known threads can still be read. */
TEST_F(a_thread_that_cannot_be_read_is_left_out_and_the_others_are_sampled)
{
    static const int errors[] = {-ENOMEM, -EIO};
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'R'});
    put(f, (struct thread){.pid = 10, .tid = 11, .comm = "a", .state = 'R'});
    put(f, (struct thread){.pid = 20, .tid = 20, .comm = "b", .state = 'R'});
    for (size_t i = 0; i < ASYM_LENGTH(errors); i++) {
        unreadable.path = "proc/10/task/11/stat";
        unreadable.error = errors[i];
        sample(f);
        unreadable.path = NULL;
        assert_int_equal(f->s.n_tasks, 2);
        assert_int_equal(f->s.coverage.n_failed, 1);
        assert_int_equal(f->s.coverage.failure, errors[i]);
        sample_has(f, n_tasks, 3);
        assert_int_equal(f->s.coverage.n_failed, 0);
    }
}

TEST_F(known_threads_stay_when_they_cannot_be_listed)
{
    static const int errors[] = {-EMFILE, -ENFILE, -ENOMEM, -EACCES};
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'R'});
    put(f, (struct thread){.pid = 10, .tid = 11, .comm = "a", .state = 'R'});
    put(f, (struct thread){.pid = 10, .tid = 12, .comm = "a", .state = 'R'});
    sample(f);
    for (uint32_t i = 0; i < ASYM_LENGTH(errors); i++) {
        const int32_t late = 20 + (int32_t)i;
        listing_error = errors[i];
        process_of(f, 10)->due = ASYM_DUE_THREADS;
        put(f, (struct thread){.pid = 10, .tid = late, .comm = "late", .state = 'R'});
        sample_has(f, n_tasks, 3 + i);
        assert_int_equal(f->s.apps[0].n_threads, 3 + i);
        assert_int_equal(task_of(f, 10)->flags | task_of(f, 11)->flags | task_of(f, 12)->flags, 0);
        /* The next sample lists them again, though nothing has asked for that. */
        listing_error = 0;
        sample_has(f, n_tasks, 4 + i);
        assert_int_equal(task_of(f, 10)->flags | task_of(f, 11)->flags | task_of(f, 12)->flags, 0);
        assert_int_equal(task_of(f, late)->flags, ASYM_TASK_NEWBORN);
    }
    /* A thread that has ended is forgotten all the same: its own files show that. */
    listing_error = -EMFILE;
    take_away(f, "proc/10/task/12");
    sample(f);
    assert_null(task_of(f, 12));
    assert_int_equal(f->s.apps[0].n_threads, 2 + ASYM_LENGTH(errors));
    assert_true(task_of(f, 10) && task_of(f, 11) && task_of(f, 20));
}

static void open_with_connector(struct fixture *f)
{
    struct asym_error err = {""};
    const struct asym_procfs_config config = {
        .root = &f->root, .machine = &f->machine, .process_events = (struct asym_process_events *)(void *)&connector};
    assert_int_equal(asym_procfs_new(&config, &f->source, &err), 0);
}

static void report(enum asym_process_event_kind kind, int32_t pid, int32_t tgid)
{
    assert_true(connector.n < (int)ASYM_LENGTH(connector.events));
    connector.events[connector.n++] = (struct asym_process_event){.kind = kind, .pid = pid, .tgid = tgid, .when = 1};
}

/* The kernel keeps a leader that has ended as a zombie until the other threads have ended and the parent has reaped it. */
TEST_F(a_leader_that_has_ended_stays_until_it_is_reaped)
{
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "leader", .state = 'S'});
    put(f, (struct thread){.pid = 10, .tid = 11, .comm = "worker", .state = 'R'});
    open_with_connector(f);
    sample(f);
    assert_int_equal(f->s.apps[0].n_threads, 2);
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "leader", .state = 'Z'});
    report(ASYM_PROCESS_EVENT_EXIT, 10, 10);
    sample_has(f, n_tasks, 1);
    assert_int_equal(f->s.apps[0].n_threads, 2);
    assert_non_null(task_of(f, 11));
    /* Any other thread is reaped as it ends. */
    take_away(f, "proc/10/task/11");
    report(ASYM_PROCESS_EVENT_EXIT, 11, 10);
    sample_has(f, n_tasks, 0);
    assert_int_equal(f->s.coverage.n_threads, 1);
    assert_int_equal(f->s.coverage.n_procs, 1);
    take_away(f, "proc/10");
    sample(f);
    assert_int_equal(f->s.coverage.n_procs, 0);
}

static enum asym_procfs_activity sleeps(void *ctx, int32_t tgid)
{
    *(int32_t *)ctx = tgid;
    return ASYM_PROCFS_SLEPT;
}

static void assert_gone_when_reaped(struct fixture *f, char state, bool has_event)
{
    int32_t asked = 0;
    const struct asym_procfs_watcher watcher = {.process = sleeps, .ctx = &asked};
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    put(f, (struct thread){.pid = pid, .tid = pid, .comm = "leader", .state = state});
    open_with_connector(f);
    f->root.live = true;
    asym_procfs_set_watcher(f->source, &watcher);
    sample(f);
    sample(f);
    assert_int_equal(asked, has_event ? pid : 0);
    assert_int_equal(f->s.coverage.n_procs, 1);
    if (has_event)
        report(ASYM_PROCESS_EVENT_EXIT, pid, pid);
    sample(f);
    assert_int_equal(f->s.coverage.n_procs, 1);
    assert_int_equal(asym_process_signal(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    sample(f);
    assert_int_equal(f->s.coverage.n_procs, 0);
}

/* The event comes before the end. No other one follows, and a watcher of what runs does not see it. */
TEST_F(a_process_that_ends_is_gone_whatever_a_watcher_knows)
{
    assert_gone_when_reaped(f, 'S', true);
}

/* Its leader has ended before asymd began, or the event was lost. */
TEST_F(a_process_whose_leader_had_ended_is_gone_whatever_a_watcher_knows)
{
    assert_gone_when_reaped(f, 'Z', false);
}

/* exec by another thread: the kernel ends the leader, and that thread gets its TID and its start time. */
TEST_F(the_exec_of_another_thread_does_not_make_the_leader_new)
{
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'R', .start = 1, .stack = 7000});
    put(f, (struct thread){.pid = 10, .tid = 11, .comm = "a", .state = 'R', .start = 2});
    tree_write(&f->tree, "proc/10/task/10/schedstat", "9000000 0 9\n");
    open_with_connector(f);
    sample(f);
    take_away(f, "proc/10/task/11");
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "b", .state = 'R', .start = 1, .stack = 8000});
    report(ASYM_PROCESS_EVENT_EXIT, 10, 10);
    report(ASYM_PROCESS_EVENT_EXEC, 10, 10);
    sample_has(f, n_tasks, 1);
    assert_string_equal(task_of(f, 10)->comm, "b");
    /* The event has told of the exec, and the fork guard has repaired the mask. */
    assert_int_equal(task_of(f, 10)->flags, 0);
}

TEST_F(newborn_threads_are_listed_once_though_idle)
{
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'S', .start = 1});
    sample_has(f, n_tasks, 0);
    put(f, (struct thread){.pid = 10, .tid = 9, .comm = "new", .state = 'S', .start = 50, .mask = "3"});
    put(f, (struct thread){.pid = 20, .tid = 20, .comm = "child", .state = 'S', .start = 50, .ppid = 10});
    sample(f);
    /* A captured tree has no link counts: the source lists the threads once. */
    assert_non_null(task_of(f, 20));
    assert_int_equal(task_of(f, 20)->flags, ASYM_TASK_NEWBORN);
    sample(f);
    assert_null(task_of(f, 20));
}

TEST_F(a_reused_tid_is_recognised_by_its_start_time)
{
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "leader", .state = 'S', .start = 1});
    put(f, (struct thread){.pid = 10, .tid = 11, .comm = "old", .state = 'R', .start = 2, .mask = "0f"});
    sample(f);
    assert_int_equal(task_of(f, 11)->mask->w[0], 0x0f);
    put(f, (struct thread){.pid = 10, .tid = 11, .comm = "new", .state = 'R', .start = 77, .mask = "f0"});
    sample(f);
    const struct asym_task *t = task_of(f, 11);
    assert_int_equal(t->id.start, 77);
    assert_string_equal(t->comm, "new");
    assert_int_equal(t->flags, ASYM_TASK_NEWBORN);
    assert_int_equal(t->mask->w[0], 0xf0);
}

/* PID and start time stay, and the counters of the leader are replaced by lower ones. */
TEST_F(a_thread_that_takes_its_leaders_place_by_exec_is_not_new)
{
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'R', .start = 1});
    tree_write(&f->tree, "proc/10/task/10/schedstat", "9000000 0 9\n");
    sample(f);
    tree_write(&f->tree, "proc/10/task/10/schedstat", "2000000 0 2\n");
    sample_has_flags(f, task_of, 10, 0);
}

/*
 * Another thread calls exec, and has the leader's number then. It sleeps by then, and is listed nevertheless. The next snapshot
 * does not say it again. Either asymd has never seen the leader run, or the counters are lower than the leader's.
 */
TEST_F(an_exec_that_no_event_tells_is_seen_by_the_place_of_the_stack)
{
    static const char *const counters[] = {"90000000000 0 900\n", "500000 0 1\n"};
    for (size_t i = 0; i < ASYM_LENGTH(counters); i++) {
        struct thread t = {.pid = 10, .tid = 10, .comm = "a", .state = "SR"[i], .start = 1, .stack = 7000};
        put(f, t);
        put(f, (struct thread){.pid = 10, .tid = 11, .comm = "a", .state = 'R', .start = 2});
        sample(f);
        assert_int_equal(proc_of(f, 11)->last_exec, 0);
        const uint32_t program = process_of(f, 10)->program;
        take_away(f, "proc/10/task/11");
        t.stack = 8000;
        t.state = 'S';
        put(f, t);
        tree_write(&f->tree, "proc/10/task/10/schedstat", "%s", counters[i]);
        sample(f);
        assert_non_null(task_of(f, 10));
        assert_int_equal(task_of(f, 10)->flags & ASYM_TASK_EXECUTED, ASYM_TASK_EXECUTED);
        assert_int_equal(proc_of(f, 10)->last_exec, f->s.now);
        assert_int_not_equal(process_of(f, 10)->program, program);
        t.state = 'R';
        put(f, t);
        tree_write(&f->tree, "proc/10/task/10/schedstat", "90000000001 0 901\n");
        sample(f);
        assert_non_null(task_of(f, 10));
        assert_int_equal(task_of(f, 10)->flags & ASYM_TASK_EXECUTED, 0);
        start_over(f);
    }
}

/* Another thread calls exec. It has the leader's mask, and the nice value that asymd lent it. */
TEST_F(an_exec_that_brings_only_a_nice_value_is_told)
{
    struct thread t = sample_program(f);
    t.stack = 8000;
    t.nice = -5;
    sample_after(f, t, 2);
    assert_int_equal(task_of(f, 10)->flags & ASYM_TASK_EXECUTED, ASYM_TASK_EXECUTED);
    assert_int_equal(task_of(f, 10)->nice, -5);
    t.stack = 9000;
    sample_after(f, t, 3);
    assert_int_equal(task_of(f, 10)->flags & ASYM_TASK_EXECUTED, 0);
    t.nice = 0;
    sample_after(f, t, 4);
    assert_int_equal(task_of(f, 10)->flags & ASYM_TASK_EXECUTED, 0);
}

/* Its mask is as before. It may have chosen that itself. */
TEST_F(a_leader_that_calls_exec_itself_is_still_the_leader)
{
    struct thread t = sample_program(f);
    t.stack = 8000;
    put(f, t);
    tree_write(&f->tree, "proc/10/task/10/schedstat", "2000000 0 2\n");
    sample_has_flags(f, task_of, 10, 0);
    assert_int_equal(proc_of(f, 10)->last_exec, f->s.now);
}

/* Its number may be another thread's by now, and its mask, too. */
TEST_F(a_process_that_is_calling_exec_is_not_listed)
{
    struct thread t = sample_program(f);
    t.stack = 0;
    t.executing = true;
    sample_with(f, t);
    assert_null(task_of(f, 10));
    t.stack = 8000;
    t.executing = false;
    sample_with(f, t);
    assert_non_null(task_of(f, 10));
    assert_int_equal(proc_of(f, 10)->last_exec, f->s.now);
}

/* A process that hides its addresses, or shows them again, has not called exec for that reason. */
TEST_F(a_stack_that_is_hidden_is_no_exec)
{
    static const unsigned stacks[] = {7000, 0, 7000};
    for (size_t i = 0; i < ASYM_LENGTH(stacks); i++) {
        put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'R', .start = 1, .stack = stacks[i]});
        sample_has_flags(f, task_of, 10, 0);
        assert_int_equal(proc_of(f, 10)->last_exec, 0);
    }
}

/*
 * A leader on a live machine. It has the number of a real process that sleeps, because asymd reads a clock of the kernel: only what
 * the source expects makes the next sample read it.
 */
static struct thread live_leader(struct fixture *f)
{
    const int pid = getppid();
    const struct thread t = {.pid = pid, .tid = pid, .comm = "a", .state = 'R', .start = 1, .stack = 7000};
    open_source(f, ASYM_GROUP_PROCESS, NULL, 0);
    f->root.live = true;
    affinity.mask = (struct asym_mask){.w = {0xff}};
    sample_with(f, t);
    assert_int_equal(task_of(f, pid)->mask->w[0], 0xff);
    return t;
}

/* Another thread has called exec, and brings this mask. */
static void exec_with(const struct fixture *f, struct thread *leader, uint64_t mask)
{
    leader->stack += 1000;
    leader->state = 'S';
    put(f, *leader);
    put_times(f, leader->pid, leader->tid, leader->stack, 0, 2);
    affinity.mask = (struct asym_mask){.w = {mask}};
}

static void assert_told_of_exec(struct fixture *f, int32_t pid, uint64_t mask)
{
    sample(f);
    assert_non_null(task_of(f, pid));
    assert_int_equal(task_of(f, pid)->flags & ASYM_TASK_EXECUTED, ASYM_TASK_EXECUTED);
    assert_int_equal(task_of(f, pid)->mask->w[0], mask);
    assert_int_equal(proc_of(f, pid)->last_exec, f->s.now);
}

static void refresh(struct fixture *f)
{
    f->source->refresh(f->source);
    assert_int_equal(f->source->next(f->source, &f->s), 1);
    assert_true(f->s.refreshed);
}

/* Two programs, each of a thread that runs and one that sleeps. The processes of one job are one application. */
static void sample_with_sleepers(struct fixture *f, enum asym_grouping group, int second_pgrp)
{
    open_source(f, group, NULL, 0);
    for (int pid = 10; pid <= 20; pid += 10) {
        const int pgrp = pid == 10 ? 10 : second_pgrp;
        struct thread t = {
            .pid = pid, .tid = pid, .comm = "a", .state = 'R', .start = 1, .pgrp = pgrp, .has_tty = true};
        put(f, t);
        t.tid++;
        t.state = 'S';
        put(f, t);
        t.tid++;
        put(f, t);
    }
    sample(f);
    assert_null(task_of(f, 11));
    assert_null(task_of(f, 21));
    f->root.live = true;
    affinity.mask = (struct asym_mask){.w = {0xff}};
}

/* A storm of forks of others must not make an answer wait. The next sample reads the new processes. */
TEST_F(a_refresh_notes_forks_and_execs_and_reads_no_new_process)
{
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'R', .start = 1});
    open_with_connector(f);
    sample(f);
    put(f, (struct thread){.pid = 30, .tid = 30, .comm = "b", .state = 'R', .start = 2});
    f->root.live = true;
    affinity.mask = (struct asym_mask){.w = {0xff}};
    report(ASYM_PROCESS_EVENT_FORK, 30, 30);
    connector.events[0].parent_tgid = connector.events[0].parent_pid = 10;
    refresh(f);
    assert_int_equal(proc_of(f, 10)->last_fork, 1);
    assert_null(asym_procfs_find(asym_procfs_of(f->source), 30));
    report(ASYM_PROCESS_EVENT_EXEC, 10, 10);
    refresh(f);
    assert_true(proc_of(f, 10)->last_fork == 0 && proc_of(f, 10)->last_exec == 1);
    f->root.live = false;
    connector.n = 1;
    report(ASYM_PROCESS_EVENT_EXEC, 30, 30);
    sample(f);
    assert_int_equal(asym_procfs_find(asym_procfs_of(f->source), 30)->program, 0); /* read since that exec */
}

TEST_F(a_refresh_lists_a_thread_that_has_slept)
{
    static const struct {
        enum asym_grouping group;
        int second_pgrp;
        size_t n_apps;
    } cases[] = {{ASYM_GROUP_PROCESS, 10, 2}, {ASYM_GROUP_JOB, 20, 2}, {ASYM_GROUP_JOB, 10, 1}};
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        sample_with_sleepers(f, cases[i].group, cases[i].second_pgrp);
        assert_int_equal(f->s.n_apps, cases[i].n_apps);
        assert_int_equal(asym_procfs_list_sleeper(f->source, 20, 21), 1);
        assert_int_equal(asym_procfs_list_sleeper(f->source, 10, 11), 1);
        assert_int_equal(asym_procfs_list_sleeper(f->source, 10, 11), 0);
        assert_int_equal(asym_procfs_list_sleeper(f->source, 10, 13), 0);
        assert_int_equal(asym_procfs_list_sleeper(f->source, 30, 30), 0);
        refresh(f);
        assert_order(f);
        assert_int_equal(f->s.n_tasks, 4);
        assert_true(task_of(f, 11)->runnable <= 0 && task_of(f, 21)->state == 'S');
        start_over(f);
    }
}

/* The array of tasks has moved for it. */
TEST_F(a_sleeper_whose_mask_cannot_be_read_leaves_the_list_as_it_was)
{
    sample_with_sleepers(f, ASYM_GROUP_PROCESS, 10);
    assert_int_equal(asym_procfs_list_sleeper(f->source, 20, 21), 1);
    assert_int_equal(asym_procfs_list_sleeper(f->source, 10, 11), 1);
    affinity.error = ESRCH;
    assert_int_equal(asym_procfs_list_sleeper(f->source, 10, 12), 0);
    refresh(f);
    assert_order(f);
    assert_int_equal(f->s.n_tasks, 4);
    assert_null(task_of(f, 12));
}

/* An action on thread 10 had this outcome. */
static void feed_back_action(struct fixture *f, const struct asym_action *action, enum asym_outcome_kind kind)
{
    const struct asym_outcome outcome = {.kind = kind};
    f->source->feedback(f->source, &(struct asym_feedback){.actions = action, .outcomes = &outcome, .n_actions = 1});
}

/* The mask 0x10 of thread 10, whose last stat has it on CPU 3. */
static void feed_back(struct fixture *f, uint64_t start, enum asym_outcome_kind kind)
{
    const struct asym_action action = {
        .kind = ASYM_ACTION_STEER, .id = {.tid = 10, .tgid = 10, .start = start}, .mask = {.w = {0x10}}};
    feed_back_action(f, &action, kind);
}

static bool is_twenty(void *ctx, const struct asym_taskid *app)
{
    return app->tgid == 20;
}

TEST_F(a_refresh_reads_the_masks_of_the_applications_that_have_changed)
{
    static const struct asym_procfs_watcher watcher = {.changed = is_twenty};
    for (int is_job = 0; is_job < 2; is_job++) {
        sample_with_sleepers(f, is_job ? ASYM_GROUP_JOB : ASYM_GROUP_PROCESS, 20);
        asym_procfs_of(f->source)->all_online = true; /* else the mask is that of the file status */
        refresh(f);
        asym_procfs_set_watcher(f->source, &watcher);
        affinity.mask = (struct asym_mask){.w = {0xf0}};
        refresh(f);
        assert_int_equal(task_of(f, 20)->mask->w[0], 0xf0);
        assert_int_equal(task_of(f, 10)->mask->w[0], 0xff);
        feed_back(f, 1, ASYM_OUTCOME_DONE);
        refresh(f);
        assert_int_equal(task_of(f, 10)->mask->w[0], 0x10);
        assert_int_equal(task_of(f, 10)->cpu, 4); /* it was put there: no refresh reads the CPU */
        assert_int_equal(task_of(f, 20)->flags & ASYM_TASK_ENDED, 0);
        affinity.error = ESRCH;
        refresh(f);
        assert_int_equal(task_of(f, 20)->flags & ASYM_TASK_ENDED, ASYM_TASK_ENDED);
        start_over(f);
    }
}

/* The core takes a nice value, or a mask, that it has not set itself for the thread's own. */
TEST_F(a_refresh_shows_what_was_set_since_the_sample)
{
    static const struct asym_procfs_watcher watcher = {.changed = is_twenty};
    static const struct {
        enum asym_action_kind kind;
        enum asym_outcome_kind outcome;
        uint64_t mask;
        int8_t nice;
    } rows[] = {{ASYM_ACTION_STEER, ASYM_OUTCOME_RETRY, 0xff, 0},
                {ASYM_ACTION_STEER, ASYM_OUTCOME_DONE, 0x0f, -5},
                {ASYM_ACTION_RELEASE, ASYM_OUTCOME_DONE, 0x0f, -5},
                {ASYM_ACTION_REPAIR, ASYM_OUTCOME_DONE, 0x0f, -5},
                {ASYM_ACTION_FORGET, ASYM_OUTCOME_DONE, 0xff, -5}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const struct asym_action action = {
            .kind = rows[i].kind, .id = {.tid = 10, .tgid = 10, .start = 1}, .mask = {.w = {0x0f}}, .nice = -5};
        sample_with_sleepers(f, ASYM_GROUP_PROCESS, 20);
        asym_procfs_of(f->source)->all_online = true;
        refresh(f);
        asym_procfs_set_watcher(f->source, &watcher);
        feed_back_action(f, &action, rows[i].outcome);
        refresh(f);
        assert_int_equal(task_of(f, 10)->nice, rows[i].nice);
        assert_int_equal(task_of(f, 10)->mask->w[0], rows[i].mask);
        start_over(f);
    }
}

/* No sample has compared since. */
TEST_F(a_refresh_reads_the_mask_whatever_the_watcher_knows_of_settings)
{
    const struct asym_procfs_watcher watcher = {.process = watched_process, .thread = watched_thread, .ctx = &watched};
    const int pid = getpid();
    affinity.mask = (struct asym_mask){.w = {0xff}};
    open_source(f, ASYM_GROUP_PROCESS, NULL, 0);
    f->root.live = true;
    put(f, (struct thread){.pid = pid, .tid = pid - 1, .comm = "sleeps", .state = 'S'});
    put(f, (struct thread){.pid = pid, .tid = pid, .comm = "a", .state = 'R'});
    sample(f);
    asym_procfs_of(f->source)->all_online = true;
    asym_procfs_set_watcher(f->source, &watcher);
    for (int i = 0; i < 2; i++)
        sample_watched(
            f, (struct watched){ASYM_PROCFS_RAN, ASYM_PROCFS_RAN, .ran = 4, .cpu = sched_getcpu(), .settings = 5});
    affinity.mask.w[0] = 0x0f;
    refresh(f);
    assert_int_equal(task_of(f, pid)->mask->w[0], 0x0f);
}

TEST_F(no_sleeper_is_listed_before_the_first_sample)
{
    open_source(f, ASYM_GROUP_PROCESS, NULL, 0);
    assert_int_equal(asym_procfs_list_sleeper(f->source, 10, 11), 0);
}

/* The core must not see the mask before it sees the exec: it would take the mask for the leader's own. */
TEST_F(a_refresh_leaves_the_mask_of_a_caller_of_exec_to_the_next_sample)
{
    struct thread t = live_leader(f);
    t.executing = true;
    t.stack = 0;
    put(f, t);
    affinity.mask = (struct asym_mask){.w = {0xf0}};
    for (int i = 0; i < 2; i++) {
        refresh(f);
        assert_int_equal(task_of(f, t.pid)->mask->w[0], 0xff);
        assert_int_equal(task_of(f, t.pid)->flags & ASYM_TASK_ENDED, ASYM_TASK_ENDED);
        t.executing = false;
        t.stack = 7000;
        exec_with(f, &t, 0xf0);
    }
    assert_told_of_exec(f, t.pid, 0xf0);
}

/* Between the stat and the mask of a sample. The next sample reads the process, although its clock has not advanced. */
static struct thread *caller_of_exec;

static void exec_before_the_mask_is_read(void *ctx)
{
    affinity.before = NULL;
    exec_with(ctx, caller_of_exec, 0xf0);
}

TEST_F(an_exec_while_a_sample_reads_the_leader_is_seen_by_the_next_one)
{
    struct thread t = live_leader(f);
    caller_of_exec = &t;
    affinity.before = exec_before_the_mask_is_read;
    affinity.ctx = f;
    t.state = 'S';
    put(f, t);
    put_times(f, t.pid, t.tid, 3000, 0, 2);
    sample(f);
    assert_null(affinity.before);
    assert_null(task_of(f, t.pid));
    assert_int_equal(asym_procfs_find(asym_procfs_of(f->source), t.pid)->due, ASYM_DUE_READ);
    assert_told_of_exec(f, t.pid, 0xf0);
}

/* For example, the user has run taskset. That needs no wait for a sample. */
TEST_F(a_refresh_shows_the_mask_of_a_leader_that_has_not_called_exec)
{
    struct thread t = live_leader(f);
    affinity.mask = (struct asym_mask){.w = {0xf0}};
    refresh(f);
    assert_int_equal(task_of(f, t.pid)->mask->w[0], 0xf0);
    assert_int_equal(task_of(f, t.pid)->flags & ASYM_TASK_ENDED, 0);
    sample(f);
    assert_int_equal(task_of(f, t.pid)->flags & ASYM_TASK_EXECUTED, 0);
}

/* The new process calls exec after asymd has found it. Its inherited mask is repaired without a wait for the end of that. */
TEST_F(a_newborn_process_that_is_calling_exec_is_listed)
{
    struct thread t = {.pid = 20, .tid = 20, .comm = "a", .state = 'S', .start = 5, .stack = 7000, .mask = "f0"};
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'S'});
    sample(f);
    put(f, t);
    assert_non_null(asym_procfs_track(asym_procfs_of(f->source), 20, true));
    t.executing = true;
    t.stack = 0;
    put(f, t);
    sample_has_flags(f, task_of, 20, ASYM_TASK_NEWBORN);
    assert_int_equal(task_of(f, 20)->mask->w[0], 0xf0);
    t.executing = false;
    t.stack = 8000;
    put(f, t);
    tree_write(&f->tree, "proc/20/task/20/schedstat", "2000000 0 2\n");
    sample(f);
    assert_int_equal(process_of(f, 20)->last_exec, f->s.now);
}

/* asymd knows no earlier program of it. */
TEST_F(a_process_that_is_calling_exec_when_it_is_found_is_listed)
{
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'R', .start = 1, .executing = true});
    sample_has_flags(f, task_of, 10, 0);
}

/* The process has ended. The next one with its number is calling exec, and may have inherited a mask. */
TEST_F(a_process_that_is_calling_exec_is_not_the_one_that_had_its_number)
{
    struct thread t = sample_program(f);
    t.executing = true;
    t.stack = 0;
    t.start = 88;
    sample_with(f, t);
    assert_non_null(task_of(f, 10));
    assert_int_equal(proc_of(f, 10)->id.start, 88);
    assert_int_equal(task_of(f, 10)->flags, ASYM_TASK_NEWBORN);
}

/* A leader that ends has no memory, either. It was runnable until then; and no sample need read it again once it has ended. */
TEST_F(a_leader_that_ends_is_not_taken_for_a_caller_of_exec)
{
    static const struct {
        char state;
        const char *flags; /* 4: PF_EXITING */
        bool listed;
    } rows[] = {{'R', "4", true}, {'D', "4", false}, {'Z', "0", false}, {'X', "0", false}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct thread t = sample_program(f);
        t.state = rows[i].state;
        t.flags = rows[i].flags;
        t.executing = true;
        t.stack = 0;
        sample_with(f, t);
        assert_int_equal(task_of(f, 10) != NULL, rows[i].listed);
        const struct asym_process *proc = process_of(f, 10);
        assert_int_equal(proc->due, rows[i].listed ? ASYM_DUE_READ : ASYM_DUE_IF_RAN);
        assert_int_equal(proc->last_exec, 0);
        start_over(f);
    }
}

/* The program that has forked is gone; what the new one forks counts. A child that is found with the exec may be of either. */
TEST_F(a_fork_before_an_exec_is_of_the_previous_program)
{
    struct thread t = sample_program(f);
    for (int child = 20; child < 22; child++) {
        put(f, (struct thread){.pid = child, .tid = child, .comm = "c", .state = 'S', .start = 5, .ppid = 10});
        t.stack += child == 21 ? 1000 : 0;
        sample_with(f, t);
        assert_int_equal(proc_of(f, 10)->last_fork, f->s.now);
    }
    assert_int_equal(proc_of(f, 10)->last_exec, f->s.now);
    t.stack += 1000;
    sample_with(f, t);
    assert_int_equal(proc_of(f, 10)->last_exec, f->s.now);
    assert_int_equal(proc_of(f, 10)->last_fork, 0);
}

static void tell(struct fixture *f, uint64_t start, enum asym_outcome_kind kind)
{
    feed_back(f, start, kind);
    sample(f);
}

/* asymd need not read what it has set itself, in the thread that it was set in. */
TEST_F(the_mask_that_was_set_is_known)
{
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "a", .state = 'R', .start = 7});
    sample(f);
    tell(f, 6, ASYM_OUTCOME_DONE);
    assert_int_equal(task_of(f, 10)->mask->w[0], 0xff);
    tell(f, 7, ASYM_OUTCOME_RETRY);
    assert_int_equal(task_of(f, 10)->mask->w[0], 0xff);
    tell(f, 7, ASYM_OUTCOME_DONE);
    assert_int_equal(task_of(f, 10)->mask->w[0], 0x10);
}

TEST_F(a_number_that_another_process_has_now_is_another_application)
{
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "old", .state = 'R', .start = 1, .ppid = 1});
    put(f, (struct thread){.pid = 20, .tid = 20, .comm = "parent", .state = 'R', .start = 5});
    sample(f);
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "new", .state = 'R', .start = 88, .ppid = 20});
    sample_has(f, n_apps, 2);
    const struct asym_proc *proc = proc_of(f, 10);
    assert_int_equal(proc->id.start, 88);
    assert_int_equal(proc->ppid, 20);
    assert_string_equal(f->s.apps[proc->app].comm, "new");
    assert_int_equal(f->s.apps[proc->app].id.start, 88);
    assert_int_equal(task_of(f, 10)->flags, ASYM_TASK_NEWBORN);
    assert_true(proc_of(f, 20)->last_fork != 0);
}

TEST_F(a_program_that_renames_itself_has_its_new_name)
{
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "sh", .state = 'R', .start = 1});
    sample(f);
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "make", .state = 'R', .start = 1});
    sample(f);
    assert_string_equal(f->s.apps[0].comm, "make");
}

TEST_F(only_what_was_asked_for_and_its_descendants_are_seen)
{
    static const int32_t pids[] = {50};
    put(f, (struct thread){.pid = 1, .tid = 1, .comm = "init", .state = 'R', .start = 1});
    put(f, (struct thread){.pid = 50, .tid = 50, .comm = "wanted", .state = 'R', .start = 10, .ppid = 1});
    /* PIDs have wrapped around: the child's is lower than its parent's. */
    put(f, (struct thread){.pid = 7, .tid = 7, .comm = "grandchild", .state = 'R', .start = 30, .ppid = 60});
    put(f, (struct thread){.pid = 60, .tid = 60, .comm = "child", .state = 'R', .start = 20, .ppid = 50});
    put(f, (struct thread){.pid = 70, .tid = 70, .comm = "other", .state = 'R', .start = 20, .ppid = 1});
    /* Another process had the parent's PID when this process was created. */
    put(f, (struct thread){.pid = 80, .tid = 80, .comm = "elder", .state = 'R', .start = 5, .ppid = 50});
    open_source(f, ASYM_GROUP_PROCESS, pids, 1);
    sample_has(f, n_tasks, 3);
    assert_true(task_of(f, 50) && task_of(f, 60) && task_of(f, 7));
    /* When a parent ends and init adopts its children, nothing changes. */
    take_away(f, "proc/60");
    put(f, (struct thread){.pid = 7, .tid = 7, .comm = "grandchild", .state = 'R', .start = 30, .ppid = 1});
    put(f, (struct thread){.pid = 90, .tid = 90, .comm = "late", .state = 'R', .start = 40, .ppid = 7});
    sample_has(f, n_tasks, 3);
    assert_true(task_of(f, 50) && task_of(f, 7) && task_of(f, 90));
    /* --pid does not name a process that gets the PID later. */
    put(f, (struct thread){.pid = 50, .tid = 50, .comm = "stranger", .state = 'R', .start = 99, .ppid = 1});
    sample(f);
    assert_null(task_of(f, 50));
    assert_non_null(task_of(f, 7));
}

static void put_maps(const struct fixture *f, const char *library)
{
    tree_write(&f->tree, "proc/10/maps",
               "5500-5600 r-xp 00000000 08:01 99 /bin/x\n5600-5700 r-xp 00000000 08:01 99 %s\n", library);
}

/* Pretend that the maps were read so long ago that they may be read again. */
static void let_maps_age(struct fixture *f)
{
    struct asym_procfs *p = asym_procfs_of(f->source);
    asym_procfs_find(p, 10)->maps_read_at = 1;
}

/* Sample one process that has mapped a library. Returns its thread. */
static struct thread job_with_library(struct fixture *f, unsigned start, const char *library)
{
    const struct thread t = {.pid = 10, .tid = 10, .comm = "job", .state = 'R', .start = start, .vsize = 1000};
    put(f, t);
    put_maps(f, library);
    sample(f);
    return t;
}

TEST_F(one_thread_with_a_runtime_that_counts_late_is_reported)
{
    job_with_library(f, 90000, "/usr/lib/libomp.so.5");
    assert_int_equal(proc_of(f, 10)->flags, ASYM_PROC_COUNTS_LATE);
    put(f, (struct thread){.pid = 10, .tid = 11, .comm = "job", .state = 'R', .start = 90001});
    process_of(f, 10)->due = ASYM_DUE_THREADS;
    /* The creating thread may set its mask once more. It has done so when it has run for a while. */
    sample_has_flags(f, proc_of, 10, ASYM_PROC_COUNTS_LATE);
    tree_write(&f->tree, "proc/10/task/10/schedstat", "1999999 0 1\n");
    sample_has_flags(f, proc_of, 10, ASYM_PROC_COUNTS_LATE);
    tree_write(&f->tree, "proc/10/task/10/schedstat", "2000000 0 1\n");
    sample_has_flags(f, proc_of, 10, 0);
}

/* At every age of the process, asymd finds a library that is loaded while the program settles. */
TEST_F(a_library_that_an_old_process_loads_after_an_exec_is_found)
{
    struct thread t = job_with_library(f, 1, "/usr/lib/libc.so.6");
    struct asym_procfs *p = asym_procfs_of(f->source);
    struct asym_process *proc = asym_procfs_find(p, 10);
    proc->maps_read_at = p->now - 100 * ASYM_MSEC;
    t.vsize = 2000;
    put(f, t);
    put_maps(f, "/usr/lib/libomp.so.5");
    sample_has_flags(f, proc_of, 10, 0);
    proc->last_exec = p->now - 400 * ASYM_MSEC;
    sample_has_flags(f, proc_of, 10, ASYM_PROC_COUNTS_LATE);
}

/* asymd does not wait for a leader that leaves the work to other threads. */
TEST_F(a_thread_that_waits_for_its_threads_passes_the_limit_in_time)
{
    job_with_library(f, 90000, "/usr/lib/libomp.so.5");
    put(f, (struct thread){.pid = 10, .tid = 11, .comm = "job", .state = 'R', .start = 90001});
    struct asym_procfs *p = asym_procfs_of(f->source);
    asym_procfs_find(p, 10)->due = ASYM_DUE_THREADS;
    sample_has_flags(f, proc_of, 10, ASYM_PROC_COUNTS_LATE);
    asym_procfs_find(p, 10)->threads_at -= ASYM_SEC;
    sample_has_flags(f, proc_of, 10, 0);
}

TEST_F(a_library_that_is_loaded_later_is_found)
{
    struct thread t = job_with_library(f, 90000, "/usr/lib/libc.so.6");
    assert_int_equal(proc_of(f, 10)->flags, 0);
    put_maps(f, "/usr/lib/libtbb.so.12");
    let_maps_age(f);
    sample(f);
    /* The size of the process says that nothing was mapped. */
    assert_int_equal(proc_of(f, 10)->flags, 0);
    t.vsize = 2000;
    put(f, t);
    sample_has_flags(f, proc_of, 10, ASYM_PROC_COUNTS_LATE);
}

/* A file system that hangs may keep the memory of such a process locked. */
TEST_F(maps_of_a_program_that_waits_for_a_disk_are_left_unread)
{
    job_with_library(f, 90000, "/usr/lib/libc.so.6");
    put_maps(f, "/usr/lib/libomp.so.5");
    let_maps_age(f);
    struct asym_procfs *p = asym_procfs_of(f->source);
    struct asym_process *proc = asym_procfs_find(p, 10);
    proc->vsize = 2000;
    proc->threads[0].state = 'D';
    asym_procfs_read_maps(p, proc);
    assert_int_equal(proc->flags, 0);
    proc->threads[0].state = 'S';
    asym_procfs_read_maps(p, proc);
    assert_int_equal(proc->flags, ASYM_PROC_COUNTS_LATE);
}

static struct fake_reader *fake_of(struct asym_proc_reader *r)
{
    return (struct fake_reader *)(void *)r;
}

static int fake_ask(struct asym_proc_reader *r, const struct asym_read_request *request)
{
    struct fake_reader *fake = fake_of(r);
    fake->n_requests++;
    fake->last_request = *request;
    return fake->refuses;
}

static int fake_take(struct asym_proc_reader *r, struct asym_read_answer *ret)
{
    struct fake_reader *fake = fake_of(r);
    if (!fake->answers)
        return 0;
    *ret = fake->answer;
    ret->pid = fake->last_request.pid;
    ret->start = fake->last_request.start;
    ret->tag = fake->last_request.tag;
    ret->what = fake->last_request.what;
    fake->answers = false;
    return 1;
}

static void open_with_reader(struct fixture *f, const struct asym_rules *rules)
{
    struct asym_error err = {""};
    f->reader = (struct fake_reader){.port = {.ask = fake_ask, .take = fake_take}};
    const struct asym_procfs_config config = {
        .root = &f->root, .machine = &f->machine, .reader = &f->reader.port, .rules = rules};
    assert_int_equal(asym_procfs_new(&config, &f->source, &err), 0);
}

/* Takes a sample that has the reader's answer to its last request. */
static void take_answer(struct fixture *f)
{
    f->reader.answers = true;
    sample(f);
}

/* A source with the fake reader, and one process, old enough for its maps to be read. */
static void open_with_job(struct fixture *f)
{
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "job", .state = 'R', .start = 90000, .vsize = 1000});
    open_with_reader(f, NULL);
}

TEST_F(what_is_mapped_is_not_known_until_the_answer_comes)
{
    open_with_job(f);
    sample_has_flags(f, proc_of, 10, ASYM_PROC_UNKNOWN);
    assert_int_equal(f->reader.last_request.what, ASYM_READ_MAPS);
    assert_int_equal(f->reader.last_request.pid, 10);
    assert_int_equal(f->reader.last_request.uid, 2002);
    sample(f);
    assert_int_equal(f->reader.n_requests, 1);
    /* The maps were not read. The source requests them again. */
    f->reader.answer.error = -EAGAIN;
    take_answer(f);
    assert_int_equal(f->reader.n_requests, 2);
    assert_int_equal(proc_of(f, 10)->flags, ASYM_PROC_UNKNOWN);
    /* The maps were cut: the source requests more until it has all. */
    f->reader.answer = (struct asym_read_answer){.maps_cut = 1};
    take_answer(f);
    assert_int_equal(f->reader.last_request.maps_most, 4 * ASYM_READ_MAPS_FIRST);
    assert_int_equal(proc_of(f, 10)->flags, ASYM_PROC_UNKNOWN);
    f->reader.answer = (struct asym_read_answer){.maps = ASYM_MAPS_COUNTS_LATE};
    take_answer(f);
    assert_int_equal(proc_of(f, 10)->flags, ASYM_PROC_COUNTS_LATE);
    assert_int_equal(f->s.coverage.n_unread, 0);
}

/* asymd has wanted to read the process for long. Takes a sample. */
static void let_time_pass(struct fixture *f, int32_t pid)
{
    struct asym_process *proc = process_of(f, pid);
    assert_true(proc->wanted_at > 0);
    proc->wanted_at = 1;
    sample(f);
}

TEST_F(one_that_cannot_be_read_is_left_alone_until_it_has_threads)
{
    open_with_job(f);
    sample(f);
    f->reader.answer = (struct asym_read_answer){.error = -ETIME};
    take_answer(f);
    assert_int_equal(proc_of(f, 10)->flags, ASYM_PROC_UNKNOWN);
    assert_int_equal(f->s.coverage.n_unread, 1);
    assert_int_equal(f->reader.n_requests, 1);
    put(f, (struct thread){.pid = 10, .tid = 11, .comm = "job", .state = 'R', .start = 90001});
    process_of(f, 10)->due = ASYM_DUE_THREADS;
    sample_has_flags(f, proc_of, 10, 0);
    /* The same holds where no helper can run. */
    put(f, (struct thread){.pid = 20, .tid = 20, .comm = "job", .state = 'R', .start = 90000, .vsize = 1000});
    f->reader.refuses = -ENOENT;
    sample(f);
    let_time_pass(f, 20);
    assert_int_equal(proc_of(f, 20)->flags, ASYM_PROC_UNKNOWN);
}

/* Other users keep the reader busy. They cannot keep asymd from steering a process: it goes by what it knows, and asks on. */
TEST_F(one_that_is_not_read_for_long_is_not_left_alone)
{
    open_with_job(f);
    f->reader.refuses = -EAGAIN;
    sample_has_flags(f, proc_of, 10, ASYM_PROC_UNKNOWN);
    let_time_pass(f, 10);
    assert_int_equal(proc_of(f, 10)->flags, 0);
    f->reader.refuses = 0;
    sample(f);
    assert_int_equal(f->reader.n_requests, 3);
    assert_int_equal(proc_of(f, 10)->flags, 0);
    f->reader.answer = (struct asym_read_answer){.maps = ASYM_MAPS_COUNTS_LATE};
    take_answer(f);
    assert_int_equal(proc_of(f, 10)->flags, ASYM_PROC_COUNTS_LATE);
    /* Another program has as much time. */
    asym_procfs_forget_facts(process_of(f, 10));
    sample(f);
    assert_true(proc_of(f, 10)->flags & ASYM_PROC_UNKNOWN);
}

/* asymd would not know who has to wait if the process hangs. */
TEST_F(one_whose_user_is_unknown_is_read_when_it_is_known)
{
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "job", .state = 'R', .start = 90000, .vsize = 1000});
    tree_unlink(&f->tree, "proc/10/status");
    open_with_reader(f, NULL);
    sample(f);
    assert_int_equal(f->reader.n_requests, 0);
    assert_int_equal(proc_of(f, 10)->flags, ASYM_PROC_UNKNOWN);
    assert_int_equal(f->s.coverage.n_unread, 0);
    tree_write(&f->tree, "proc/10/status", "Uid:\t0\t2002\t0\t0\n");
    sample(f);
    assert_int_equal(f->reader.n_requests, 1);
    assert_int_equal(f->reader.last_request.uid, 2002);
}

/* Takes two samples, before which events were lost. The reader answers a request only after the first. */
static void lose_events(struct fixture *f)
{
    static const struct asym_process_event lost = {.kind = ASYM_PROCESS_EVENT_LOST, .when = 1};
    const int n_requests = f->reader.n_requests;
    for (int i = 0; i < 2; i++) {
        connector.n = 1;
        connector.events[0] = lost;
        sample(f);
        f->reader.answers = i == 0 && f->reader.n_requests > n_requests;
    }
}

static struct thread sample_job(struct fixture *f)
{
    struct thread t = {.pid = 10, .tid = 10, .comm = "job", .state = 'R', .start = 90000, .vsize = 1000, .stack = 5000};
    put(f, t);
    open_with_reader(f, NULL);
    asym_procfs_of(f->source)->config.process_events = (struct asym_process_events *)(void *)&connector;
    sample(f);
    take_answer(f);
    return t;
}

/* One user's storm of forks loses events again and again. It must not keep asymd from steering the processes of all users. */
TEST_F(after_lost_events_one_that_has_not_called_exec_keeps_its_facts)
{
    struct thread t = sample_job(f);
    struct asym_procfs *p = asym_procfs_of(f->source);
    for (int i = 0; i < 10; i++) {
        lose_events(f);
        assert_int_equal(proc_of(f, 10)->flags, 0);
        assert_int_equal(f->reader.n_requests, 1);
    }
    /* It has ended its leader: then it has no addresses, but has not called exec for that reason. */
    struct thread other = {.pid = 10, .tid = 11, .comm = "job", .state = 'R', .start = 90001, .vsize = 1000};
    struct thread dead = t;
    dead.state = 'Z';
    dead.stack = 0;
    dead.executing = true;
    const uint32_t program = asym_procfs_find(p, 10)->program;
    put(f, dead);
    put(f, other);
    lose_events(f);
    assert_int_equal(proc_of(f, 11)->flags, 0);
    assert_int_equal(asym_procfs_find(p, 10)->program, program);
}

TEST_F(after_lost_events_one_that_has_called_exec_is_read_again)
{
    struct thread t = sample_job(f);
    struct asym_procfs *p = asym_procfs_of(f->source);
    assert_int_equal(proc_of(f, 10)->flags, 0);
    t.stack = 6000;
    put(f, t);
    const uint32_t program = asym_procfs_find(p, 10)->program;
    lose_events(f);
    assert_true(asym_procfs_find(p, 10)->program > program);
    assert_true(proc_of(f, 10)->last_exec > 0);
    /* The kernel hides the addresses: nothing shows that the program is the same. */
    t.stack = 0;
    put(f, t);
    const uint32_t shown = asym_procfs_find(p, 10)->program;
    lose_events(f);
    assert_true(asym_procfs_find(p, 10)->program > shown);
}

/* Answers the last request with an error, and samples twice: at once, and when the time for another reading has come. */
static void fail_and_wait(struct fixture *f, int error)
{
    const int n_requests = f->reader.n_requests;
    f->reader.answer = (struct asym_read_answer){.error = error};
    f->reader.answers = true;
    sample(f);
    assert_int_equal(f->reader.n_requests, n_requests);
    assert_int_equal(f->s.coverage.n_unread, 1);
    struct asym_process *proc = process_of(f, 10);
    if (proc->retry_at > 0)
        proc->retry_at = 1;
    /* It has as much time for its second reading as for the first. */
    proc->wanted_at = 1;
    sample_has_flags(f, proc_of, 10, ASYM_PROC_UNKNOWN);
}

TEST_F(one_that_could_not_be_read_is_read_again_after_a_time)
{
    open_with_job(f);
    sample(f);
    assert_int_equal(f->reader.n_requests, 1);
    /* A reader that the kernel killed says nothing about the process. */
    fail_and_wait(f, -EPIPE);
    assert_int_equal(f->reader.n_requests, 2);
    fail_and_wait(f, -ETIME);
    assert_int_equal(f->reader.n_requests, 3);
    /* There is no third attempt after the second hang. */
    fail_and_wait(f, -ETIME);
    assert_int_equal(f->reader.n_requests, 3);
    assert_int_equal(proc_of(f, 10)->flags, ASYM_PROC_UNKNOWN);
    assert_int_equal(f->s.coverage.n_unread, 1);
}

static struct asym_settings *load_rules(struct fixture *f, const char *text)
{
    struct asym_settings *settings;
    struct asym_error err = {""};
    char path[512];
    tree_write(&f->tree, "conf", "%s", text);
    assert_in_range(snprintf(path, sizeof path, "%s/conf", f->tree.path), 1, sizeof path - 1);
    assert_int_equal(asym_settings_new(&settings), 0);
    assert_int_equal(asym_settings_load(settings, path, true, &err), 0);
    return settings;
}

TEST_F(a_rule_for_command_lines_waits_for_the_answer)
{
    f->settings = load_rules(f, "[rule \"x\"]\nmatch_cmdline = *secret*\naction = ignore\n");
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "job", .state = 'R', .start = 90000});
    put(f, (struct thread){.pid = 10, .tid = 11, .comm = "job", .state = 'R', .start = 90000});
    open_with_reader(f, f->settings->rules);
    sample_has_flags(f, proc_of, 10, ASYM_PROC_UNKNOWN);
    assert_int_equal(f->reader.last_request.what, ASYM_READ_CMDLINE);
    strcpy(f->reader.answer.cmdline, "job --secret");
    take_answer(f);
    assert_int_equal(proc_of(f, 10)->flags, 0);
    assert_int_equal(proc_of(f, 10)->rule, ASYM_RULE_IGNORE);
    /* New rules cause a new request. The old rule holds until the answer; an unreadable command line does not match. */
    asym_procfs_set_rules(f->source, f->settings->rules);
    sample(f);
    assert_int_equal(proc_of(f, 10)->rule, ASYM_RULE_IGNORE);
    assert_int_equal(proc_of(f, 10)->flags, 0);
    f->reader.answer.error = -ETIME;
    take_answer(f);
    assert_int_equal(proc_of(f, 10)->rule, ASYM_RULE_STEER);
    assert_int_equal(proc_of(f, 10)->flags, 0);
}

/* The reader may be busy with other users. What is known counts then, and the command line as soon as it comes. */
TEST_F(a_rule_for_names_does_not_wait_for_a_command_line_for_ever)
{
    f->settings = load_rules(f, "[rule \"x\"]\nmatch_cmdline = *secret*\naction = slow\n"
                                "[rule \"y\"]\nmatch_comm = job\naction = ignore\n");
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "job", .state = 'R', .start = 90000});
    put(f, (struct thread){.pid = 10, .tid = 11, .comm = "job", .state = 'R', .start = 90000});
    open_with_reader(f, f->settings->rules);
    f->reader.refuses = -EAGAIN;
    sample_has_flags(f, proc_of, 10, ASYM_PROC_UNKNOWN);
    let_time_pass(f, 10);
    assert_int_equal(proc_of(f, 10)->flags, 0);
    assert_int_equal(proc_of(f, 10)->rule, ASYM_RULE_IGNORE);
    f->reader.refuses = 0;
    sample(f);
    sample(f);
    assert_int_equal(f->reader.n_requests, 3);
    strcpy(f->reader.answer.cmdline, "job --secret");
    take_answer(f);
    assert_int_equal(proc_of(f, 10)->rule, ASYM_RULE_SLOW);
}

TEST_F(a_rule_for_names_follows_a_process_that_renames_itself)
{
    f->settings = load_rules(f, "[rule \"x\"]\nmatch_comm = job\naction = ignore\n");
    const struct asym_procfs_config config = {.root = &f->root, .machine = &f->machine, .rules = f->settings->rules};
    assert_int_equal(asym_procfs_new(&config, &f->source, NULL), 0);
    for (int i = 0; i < 4; i++) {
        put(f, (struct thread){.pid = 10, .tid = 10, .comm = i % 2 ? "job" : "other", .state = 'R', .start = 90000});
        sample(f);
        assert_int_equal(proc_of(f, 10)->rule, i % 2 ? ASYM_RULE_IGNORE : ASYM_RULE_STEER);
    }
}

static struct asym_taskid id_of(int32_t pid, int32_t tid, uint64_t start)
{
    return (struct asym_taskid){.tid = tid, .tgid = pid, .start = start};
}

TEST_F(the_rule_of_a_process_that_sleeps_is_known_on_request)
{
    struct asym_proc proc;
    struct asym_settings *before = load_rules(f, "[rule \"old\"]\nmatch_comm = job\naction = slow\n"),
                         *after = load_rules(f, "[rule \"new\"]\nmatch_comm = job\naction = ignore\n");
    const struct asym_procfs_config config = {.root = &f->root, .machine = &f->machine, .rules = before->rules};
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "job", .state = 'S', .start = 90000});
    put(f, (struct thread){.pid = 10, .tid = 11, .comm = "job", .state = 'S', .start = 90001});
    put(f, (struct thread){.pid = 20, .tid = 20, .comm = "other", .state = 'S', .start = 90000});
    assert_int_equal(asym_procfs_new(&config, &f->source, NULL), 0);
    sample(f);
    assert_int_equal(f->s.n_procs, 0);
    asym_procfs_set_rules(f->source, after->rules);
    asym_settings_free(before);
    const struct asym_taskid leader = id_of(10, 10, 90000), thread = id_of(10, 11, 90001), other = id_of(20, 20, 90000);
    assert_int_equal(asym_procfs_rule_of(f->source, &leader, &proc), 1);
    assert_string_equal(proc.rule_name, "new");
    assert_int_equal(proc.rule, ASYM_RULE_IGNORE);
    assert_memory_equal(&proc.id, &leader, sizeof leader);
    assert_int_equal(asym_procfs_rule_of(f->source, &thread, &proc), 1);
    assert_string_equal(proc.rule_name, "new");
    assert_memory_equal(&proc.id, &leader, sizeof leader);
    assert_int_equal(asym_procfs_rule_of(f->source, &other, &proc), 1);
    assert_null(proc.rule_name);
    assert_int_equal(proc.rule, ASYM_RULE_STEER);
    const struct asym_taskid unknown[] = {
        id_of(10, 10, 90001), id_of(10, 12, 90000), id_of(30, 30, 90000), {.start = 1}};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_int_equal(asym_procfs_rule_of(f->source, &unknown[i], &proc), -ESRCH);
    asym_settings_free(after);
}

TEST_F(the_rule_of_a_process_that_sleeps_waits_for_its_command_line)
{
    struct asym_proc proc;
    f->settings = load_rules(f, "[rule \"x\"]\nmatch_cmdline = *secret*\naction = ignore\n");
    const struct asym_taskid id = id_of(10, 10, 90000);
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "job", .state = 'S', .start = 90000});
    open_with_reader(f, f->settings->rules);
    strcpy(f->reader.answer.cmdline, "job --secret");
    sample(f);
    take_answer(f);
    assert_int_equal(f->reader.n_requests, 1);
    asym_procfs_set_rules(f->source, f->settings->rules);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(asym_procfs_rule_of(f->source, &id, &proc), 0);
        assert_null(proc.rule_name);
        assert_int_equal(proc.rule, ASYM_RULE_IGNORE);
    }
    assert_int_equal(f->reader.n_requests, 2);
    take_answer(f);
    assert_int_equal(asym_procfs_rule_of(f->source, &id, &proc), 1);
    assert_string_equal(proc.rule_name, "x");
    assert_int_equal(f->reader.n_requests, 2);
}

/* Open a source each of whose calls reads as little as it can. */
static void open_in_pieces(struct fixture *f, const struct asym_rules *rules)
{
    struct asym_error err = {""};
    const struct asym_procfs_config config = {.root = &f->root, .machine = &f->machine, .rules = rules};
    is_over = true;
    assert_int_equal(asym_procfs_new(&config, &f->source, &err), 0);
}

/* Returns how many calls the sample takes. */
static int sample_in_pieces(struct fixture *f)
{
    int pieces = 1, r;
    while ((r = f->source->next(f->source, &f->s)) == -EINPROGRESS)
        assert_true(++pieces < 1000);
    assert_int_equal(r, 1);
    return pieces;
}

/* Each call ends after one process. The snapshot at the end is complete and has no process twice. */
TEST_F(a_sample_in_pieces_has_the_same_result)
{
    enum { N = 30 };
    for (int i = 0; i < N; i++)
        put(f, (struct thread){.pid = 10 + i, .tid = 10 + i, .comm = "job", .state = 'R', .start = 90000});
    open_in_pieces(f, NULL);
    for (int n = 0; n < 3; n++) {
        const int pieces = sample_in_pieces(f);
        assert_true(pieces > 2 && pieces <= N + 10);
        assert_int_equal(f->s.n_procs, N - n);
        assert_int_equal(f->s.n_tasks, N - n);
        for (int i = n; i < N; i++)
            assert_non_null(task_of(f, 10 + i));
        /* A refresh can return the last snapshot again, until the next sample begins to fill the same arrays. */
        const struct asym_procfs *p = (const struct asym_procfs *)f->source;
        assert_non_null(p->issued.machine);
        /* One process ends between two calls of the next sample. */
        assert_int_equal(f->source->next(f->source, &f->s), -EINPROGRESS);
        assert_null(p->issued.machine);
        char path[64];
        snprintf(path, sizeof path, "proc/%d", 10 + n);
        take_away(f, path);
    }
}

/* A process of so many threads takes several calls, each of which reads one of them. */
enum { N_THREADS = 300 };

static void put_threads(struct fixture *f, unsigned start)
{
    for (int i = 0; i < N_THREADS; i++)
        put(f,
            (struct thread){.pid = 10, .tid = 10 + i, .comm = "job", .state = i % 3 == 1 ? 'S' : 'R', .start = start});
}

static void expect_threads(struct fixture *f, unsigned start)
{
    assert_int_equal(f->s.n_procs, 2);
    assert_int_equal(f->s.n_tasks, 2 * N_THREADS / 3 + 1);
    assert_int_equal(f->s.coverage.n_threads, N_THREADS + 1);
    for (int i = 0; i < N_THREADS; i++) {
        const struct asym_task *t = task_of(f, 10 + i);
        assert_int_equal(t != NULL, i % 3 != 1);
        assert_true(!t || (t->id.start == start && f->s.procs[t->proc].id.tgid == 10));
    }
    const struct asym_app *app = &f->s.apps[proc_of(f, 10)->app];
    assert_int_equal(app->n_threads, N_THREADS);
    assert_int_equal(app->n_tasks, 2 * N_THREADS / 3);
    assert_int_equal(app->runnable_instant, 2 * N_THREADS / 3);
    assert_int_equal(proc_of(f, 900)->id.tgid, 900);
}

/* Sample until a process has been read in part: 64 of its threads. */
static void cut_a_scan(struct fixture *f)
{
    const struct asym_procfs *p = (const struct asym_procfs *)f->source;
    for (int i = 0; !(p->scan.cut && p->scan.next >= 64) && i < 1000; i++)
        assert_int_equal(f->source->next(f->source, &f->s), -EINPROGRESS);
    assert_int_equal(p->scan.cut->pid, 10);
}

TEST_F(one_process_is_read_in_pieces)
{
    put(f, (struct thread){.pid = 900, .tid = 900, .comm = "other", .state = 'R', .start = 80000});
    put_threads(f, 90000);
    open_in_pieces(f, NULL);
    for (int i = 0; i < 3; i++) {
        assert_in_range(sample_in_pieces(f), N_THREADS, N_THREADS + 10);
        expect_threads(f, 90000);
    }
    /* A thread ends between two calls: before it is read, or after. */
    cut_a_scan(f);
    take_away(f, "proc/10/task/12");
    take_away(f, "proc/10/task/309");
    sample_in_pieces(f);
    assert_non_null(task_of(f, 12));
    assert_null(task_of(f, 309));
    assert_int_equal(f->s.n_tasks, 2 * N_THREADS / 3);
    sample_in_pieces(f);
    assert_null(task_of(f, 12));
    assert_int_equal(f->s.coverage.n_threads, N_THREADS - 1);
}

/* The last thread is read 20 ms after the others in the two samples that are cut, and has run 5 ms before each. */
TEST_F(a_thread_that_is_read_late_has_the_share_of_its_own_time)
{
    const int pid = getpid(), other = getppid(), last = ASYM_MAX(pid, other);
    asym_usec before = 0;
    open_source(f, ASYM_GROUP_PROCESS, NULL, 0);
    f->root.live = true;
    put(f, (struct thread){.pid = pid, .tid = pid, .comm = "leads", .state = 'S'});
    put(f, (struct thread){.pid = pid, .tid = other, .comm = "other", .state = 'S'});
    for (unsigned i = 0; i < 4; i++) {
        put_times(f, pid, last, 5000 * (i + 1), 0, i + 1);
        usleep(1000); /* the clock of a process that has RLIMIT_CPU goes on when it leaves the CPU */
        is_over = i == 1 || i == 2;
        while (is_over && !asym_procfs_of(f->source)->scan.cut)
            assert_int_equal(f->source->next(f->source, &f->s), -EINPROGRESS);
        is_over = false;
        usleep(20000);
        assert_int_equal(f->source->next(f->source, &f->s), 1);
        const asym_usec now = asym_procfs_of(f->source)->now;
        if (i > 0)
            assert_close(task_of(f, last)->running * (double)(now - before), 5000);
        before = now;
    }
}

/* The scan of the new process is cut, too. */
TEST_F(a_process_that_takes_over_a_pid_is_read_in_pieces)
{
    put(f, (struct thread){.pid = 900, .tid = 900, .comm = "other", .state = 'R', .start = 80000});
    put_threads(f, 90000);
    open_in_pieces(f, NULL);
    sample_in_pieces(f);
    put_threads(f, 90001);
    assert_in_range(sample_in_pieces(f), 2 * N_THREADS, 2 * N_THREADS + 10);
    /* All threads are listed, because they are new. */
    assert_int_equal(f->s.n_tasks, N_THREADS + 1);
    for (int i = 0; i < N_THREADS; i++)
        assert_true(task_of(f, 10 + i)->id.start == 90001 && task_of(f, 10 + i)->flags & ASYM_TASK_NEWBORN);
    sample_in_pieces(f);
    expect_threads(f, 90001);
}

/*
 * The new process has the PID after the first threads of the old one were read, its leader among them. The other threads of the
 * new process have other TIDs than those of the old one, or the same TIDs.
 */
TEST_F(a_pid_that_is_taken_over_between_two_pieces_shows_only_the_new_process)
{
    static const int shifts[] = {1000, 0};
    f->settings = load_rules(f, "[rule \"old\"]\nmatch_comm = job\naction = ignore\n");
    open_in_pieces(f, f->settings->rules);
    for (size_t i = 0; i < ASYM_LENGTH(shifts); i++) {
        const unsigned start = 90001 + (unsigned)i;
        put_threads(f, 90000);
        sample_in_pieces(f);
        assert_int_equal(proc_of(f, 10)->rule, ASYM_RULE_IGNORE);
        cut_a_scan(f);
        take_away(f, "proc/10");
        put(f, (struct thread){.pid = 10, .tid = 10, .comm = "new", .state = 'R', .start = start});
        for (int k = 1; k < N_THREADS; k++)
            put(f, (struct thread){.pid = 10, .tid = 10 + shifts[i] + k, .comm = "new", .state = 'R', .start = start});
        sample_in_pieces(f);
        assert_int_equal(f->s.n_procs, 1);
        assert_int_equal(f->s.n_tasks, N_THREADS);
        assert_true(f->s.procs[0].id.start == start && f->s.procs[0].rule == ASYM_RULE_STEER);
        for (size_t k = 0; k < f->s.n_tasks; k++)
            assert_int_equal(f->s.tasks[k].id.start, start);
    }
}

/* The process has ended after its first threads were read. */
TEST_F(a_process_that_ends_between_two_pieces_is_forgotten)
{
    put_threads(f, 90000);
    open_in_pieces(f, NULL);
    sample_in_pieces(f);
    cut_a_scan(f);
    take_away(f, "proc/10");
    sample_in_pieces(f);
    assert_int_equal(f->s.n_tasks, 0);
    assert_int_equal(f->s.n_procs, 0);
    assert_null(process_of(f, 10));
}

/* A disk that is slow for a moment hangs one reading. The source does not request other facts in the same moment. */
TEST_F(one_whose_command_line_hangs_is_left_alone_for_a_time)
{
    f->settings = load_rules(f, "[rule \"x\"]\nmatch_cmdline = *secret*\naction = ignore\n");
    put(f, (struct thread){
               .pid = 10, .tid = 10, .comm = "job", .state = 'R', .start = UPTIME_SECONDS * 100, .vsize = 1000});
    open_with_reader(f, f->settings->rules);
    sample(f);
    assert_int_equal(f->reader.n_requests, 1);
    assert_int_equal(f->reader.last_request.what, ASYM_READ_CMDLINE);
    struct asym_process *proc = process_of(f, 10);
    proc->born = 1; /* old enough for its maps to be read */
    fail_and_wait(f, -ETIME);
    assert_int_equal(f->reader.n_requests, 3);
    assert_int_equal(proc->asked, ASYM_READ_CMDLINE | ASYM_READ_MAPS);
}

/* The test frees the old rules while the listed processes point to their names. */
TEST_F(rules_that_change_between_two_pieces_apply_to_the_full_sample)
{
    enum { N = 30 };
    struct asym_settings *before = load_rules(f, "[rule \"old\"]\nmatch_comm = job\naction = ignore\n"),
                         *after = load_rules(f, "[rule \"new\"]\nmatch_comm = job\naction = steer\n");
    const struct asym_procfs_config config = {
        .root = &f->root, .machine = &f->machine, .rules = before->rules, .group = ASYM_GROUP_CGROUP};
    for (int i = 0; i < N; i++)
        put(f, (struct thread){.pid = 10 + i, .tid = 10 + i, .comm = "job", .state = 'R', .start = 90000});
    is_over = true;
    assert_int_equal(asym_procfs_new(&config, &f->source, &f->err), 0);
    for (int i = 0; i < N / 2; i++)
        assert_int_equal(f->source->next(f->source, &f->s), -EINPROGRESS);
    asym_procfs_set_rules(f->source, after->rules);
    asym_procfs_set_group(f->source, ASYM_GROUP_PROCESS);
    asym_settings_free(before);
    sample_in_pieces(f);
    assert_int_equal(f->s.n_apps, N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(proc_of(f, 10 + i)->rule, ASYM_RULE_STEER);
        assert_string_equal(proc_of(f, 10 + i)->rule_name, "new");
        assert_int_equal(f->s.apps[i].n_tasks, 1);
    }
    asym_settings_free(after);
}

static void put_cgroup(const struct fixture *f, int pid, const char *text)
{
    char file[64];
    snprintf(file, sizeof file, "proc/%d/cgroup", pid);
    tree_write(&f->tree, file, "%s", text);
}

static void put_in_cgroup(const struct fixture *f, int pid, const char *text)
{
    put(f, (struct thread){.pid = pid, .tid = pid, .comm = "x", .state = 'R', .mask = "ff"});
    put_cgroup(f, pid, text);
}

TEST_F(a_rule_for_cgroups_matches_the_processes_of_that_one)
{
    enum { N = 4 };
    f->settings = load_rules(f, "[rule \"batch\"]\nmatch_cgroup = /batch\naction = ignore\n");
    const struct asym_procfs_config config = {.root = &f->root, .machine = &f->machine, .rules = f->settings->rules};
    static const char *const groups[N] = {"0::/user\n", "0::/batch\n", "0::/batch/job\n", "0::/user\n"};
    for (int i = 0; i < N; i++)
        put_in_cgroup(f, 10 + i, groups[i]);
    assert_int_equal(asym_procfs_new(&config, &f->source, &f->err), 0);
    sample_has(f, n_apps, N);
    for (int i = 0; i < N; i++)
        assert_int_equal(proc_of(f, 10 + i)->rule, i == 1 ? ASYM_RULE_IGNORE : ASYM_RULE_STEER);
}

TEST_F(a_program_of_that_moment_has_its_maps_left_unread)
{
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "cc", .state = 'R', .start = UPTIME_SECONDS * 100});
    put_maps(f, "/usr/lib/libomp.so.5");
    sample_has_flags(f, proc_of, 10, 0);
}

TEST_F(parents_in_a_ring_end)
{
    static const int32_t pids[] = {50};
    put(f, (struct thread){.pid = 50, .tid = 50, .comm = "wanted", .state = 'R'});
    put(f, (struct thread){.pid = 60, .tid = 60, .comm = "a", .state = 'R', .ppid = 70});
    put(f, (struct thread){.pid = 70, .tid = 70, .comm = "b", .state = 'R', .ppid = 60});
    put(f, (struct thread){.pid = 80, .tid = 80, .comm = "own", .state = 'R', .ppid = 80});
    open_source(f, ASYM_GROUP_PROCESS, pids, 1);
    sample_has(f, n_tasks, 1);
}

TEST_F(a_pid_that_does_not_exist_is_reported)
{
    static const int32_t pids[] = {51};
    const struct asym_procfs_config config = {.root = &f->root, .machine = &f->machine, .pids = pids, .n_pids = 1};
    assert_int_equal(asym_procfs_new(&config, &f->source, &f->err), -ESRCH);
    assert_non_null(strstr(f->err.text, "51"));
    assert_non_null(strstr(f->err.text, "no such process"));
    assert_null(f->source);
}

TEST_F(a_root_without_proc_is_reported)
{
    take_away(f, "proc");
    const struct asym_procfs_config config = {.root = &f->root, .machine = &f->machine};
    assert_int_equal(asym_procfs_new(&config, &f->source, &f->err), -ENOENT);
    assert_non_null(strstr(f->err.text, "proc"));
}

/* A CPU that comes online between two calls. */
static void come_online(void *ctx)
{
    affinity.before = ctx ? come_online : NULL;
    affinity.mask.w[0] = ctx ? 0x7f : 0xff;
    affinity.ctx = NULL;
}

/* sched_getaffinity hides offline CPUs. Which ones these are is read where a mask has changed, and for a second by each sample. */
TEST_F(a_cpu_that_goes_offline_and_comes_back_stays_in_the_masks)
{
    struct thread t = live_leader(f);
    t.mask = "ff";
    affinity.mask.w[0] = 0x7f;
    for (int i = 0; i < 3; i++) /* it is going: the file does not say so yet */
        sample_with(f, t);
    assert_int_equal(task_of(f, t.pid)->mask->w[0], 0x7f);
    tree_write(&f->tree, "sys/devices/system/cpu/online", "0-6\n");
    for (int i = 0; i < 2; i++) {
        sample_with(f, t);
        assert_int_equal(task_of(f, t.pid)->mask->w[0], 0xff);
    }
    affinity.mask.w[0] = 0xff;
    tree_write(&f->tree, "sys/devices/system/cpu/online", "0-7\n");
    sample_with(f, t);
    assert_int_equal(task_of(f, t.pid)->mask->w[0], 0xff);
    affinity.mask.w[0] = 0x0f;
    for (int i = 0; i < 3; i++)
        sample_with(f, t);
    assert_int_equal(task_of(f, t.pid)->mask->w[0], 0x0f);
    affinity.before = come_online;
    affinity.ctx = &affinity;
    sample_with(f, t);
    assert_int_equal(task_of(f, t.pid)->mask->w[0], 0xff);
}

TEST_F(a_cpuset_is_that_of_the_nearest_cgroup_that_has_one)
{
    tree_write(&f->tree, "sys/fs/cgroup/cpuset.cpus.effective", "0-7\n");
    tree_write(&f->tree, "sys/fs/cgroup/batch/cpuset.cpus.effective", "0-3\n");
    tree_mkdir(&f->tree, "sys/fs/cgroup/batch/a/b");
    tree_write(&f->tree, "sys/fs/cgroup/cpuset/old/cpuset.effective_cpus", "4-5\n");
    tree_write(&f->tree, "sys/fs/cgroup/junk/cpuset.cpus.effective", "9-1,x\n");
    put_in_cgroup(f, 10, "0::/batch\n");
    put_in_cgroup(f, 11, "0::/batch/a/b\n");
    put_in_cgroup(f, 12, "0::/\n");
    put_in_cgroup(f, 13, "3:cpuset:/old\n0::/batch\n");
    put_in_cgroup(f, 14, "0::/junk\n");
    put_in_cgroup(f, 15, "0::/../outside\n");
    put_in_cgroup(f, 16, "0::/batch/gone\n");
    sample(f);
    static const unsigned want[] = {0x0f, 0x0f, 0xff, 0x30, 0xff, 0xff, 0x0f};
    for (size_t i = 0; i < ASYM_LENGTH(want); i++)
        assert_int_equal(task_of(f, 10 + (int)i)->cpuset->w[0], want[i]);
    assert_ptr_equal(task_of(f, 10)->cpuset, task_of(f, 16)->cpuset);
}

/* isolcpus=6,7: a thread that lacks only isolated CPUs has not narrowed its mask. */
TEST_F(isolated_cpus_are_left_out_where_the_mask_leaves_them_out)
{
    tree_write(&f->tree, "sys/devices/system/cpu/isolated", "6-7\n");
    put(f, (struct thread){.pid = 10, .tid = 10, .comm = "default", .state = 'R', .mask = "3f"});
    put(f, (struct thread){.pid = 11, .tid = 11, .comm = "asked", .state = 'R', .mask = "c0"});
    put(f, (struct thread){.pid = 12, .tid = 12, .comm = "everywhere", .state = 'R', .mask = "ff"});
    sample(f);
    assert_int_equal(task_of(f, 10)->cpuset->w[0], 0x3f);
    assert_int_equal(task_of(f, 11)->cpuset->w[0], 0xff);
    assert_int_equal(task_of(f, 12)->cpuset->w[0], 0xff);
}

TEST_F(processes_of_one_cgroup_are_one_application)
{
    put_in_cgroup(f, 10, "0::/a\n");
    put_in_cgroup(f, 11, "0::/b\n");
    put_in_cgroup(f, 12, "0::/a\n");
    put(f, (struct thread){.pid = 12, .tid = 112, .comm = "t", .state = 'R'});
    put_in_cgroup(f, 13, "0::/a\n");
    put(f, (struct thread){.pid = 13, .tid = 13, .comm = "idle", .state = 'S'});
    tree_write(&f->tree, "proc/13/cgroup", "0::/a\n");
    open_source(f, ASYM_GROUP_CGROUP, NULL, 0);
    for (int i = 0; i < 3; i++) {
        sample_has(f, n_apps, 2);
        assert_int_equal(f->s.n_procs, 3);
        const struct asym_app *a = &f->s.apps[proc_of(f, 10)->app];
        assert_true(proc_of(f, 10)->app == proc_of(f, 12)->app && proc_of(f, 11)->app != proc_of(f, 12)->app);
        assert_string_equal(a->cgroup, "/a");
        assert_true(a->id.tid == 0 && a->id.tgid == 0 && a->id.start != 0);
        assert_int_equal(a->n_tasks, 3);
        assert_int_equal(a->n_threads, 4);
        assert_int_equal(a->runnable_instant, 3);
    }
    asym_procfs_set_group(f->source, ASYM_GROUP_PROCESS);
    sample_has(f, n_apps, 3);
    assert_null(f->s.apps[0].cgroup);
    asym_procfs_set_group(f->source, ASYM_GROUP_CGROUP);
    sample_has(f, n_apps, 2);
}

static void put_job(const struct fixture *f, int pid, int pgrp, const char *comm, char state)
{
    put(f, (struct thread){
               .pid = pid, .tid = pid, .comm = comm, .state = state, .pgrp = pgrp, .has_tty = true, .start = 7});
}

static const struct asym_app *app_of(const struct fixture *f, int32_t pid)
{
    return &f->s.apps[proc_of(f, pid)->app];
}

static void expect_job(const struct fixture *f, int32_t pid, int32_t pgrp, uint64_t start, uint32_t n_procs,
                       const char *comm)
{
    const struct asym_app *a = app_of(f, pid);
    assert_true(a->id.tid == pgrp && a->id.tgid == pgrp && a->id.start == start);
    assert_int_equal(a->n_procs, n_procs);
    assert_int_equal(a->n_threads, n_procs);
    assert_string_equal(a->comm, comm);
    assert_null(a->cgroup);
}

static void add_process(void *ctx, const struct asym_taskid *proc)
{
    assert_true(proc->tid == proc->tgid && proc->start == 7);
    *(int *)ctx += proc->tgid;
}

/* In no order: sum is that of the PIDs. */
static void expect_members(const struct fixture *f, int32_t pgrp, int sum)
{
    int found = 0;
    asym_procfs_job_each(f->source, pgrp, add_process, &found);
    assert_int_equal(found, sum);
}

/* make waits for its compilers. The job keeps its name and its identity when make ends before them. */
TEST_F(a_command_line_of_a_shell_is_one_application)
{
    put_job(f, 20, 20, "make", 'S');
    put_job(f, 21, 20, "cc1", 'R');
    put_job(f, 22, 20, "cc1", 'R');
    put_job(f, 30, 30, "gzip", 'R');
    open_source(f, ASYM_GROUP_JOB, NULL, 0);
    sample_has(f, n_apps, 2);
    expect_job(f, 21, 20, 7, 3, "make");
    assert_int_equal(app_of(f, 22)->runnable_instant, 2);
    expect_job(f, 30, 30, 7, 1, "gzip");
    expect_members(f, 20, 20 + 21 + 22);
    expect_members(f, 30, 30);
    expect_members(f, 21, 0);
    take_away(f, "proc/20");
    put_job(f, 23, 20, "ld", 'R');
    sample(f);
    expect_job(f, 22, 20, 7, 3, "make");
    expect_members(f, 20, 21 + 22 + 23);
    take_away(f, "proc/21");
    take_away(f, "proc/22");
    sample(f);
    sample(f);
    expect_job(f, 23, 20, 7, 1, "ld");
    put_job(f, 21, 20, "cc1", 'R');
    put_job(f, 22, 20, "cc1", 'R');
    sample(f);
    expect_job(f, 22, 20, 7, 3, "make");
    asym_procfs_set_group(f->source, ASYM_GROUP_PROCESS);
    expect_members(f, 20, 0);
    sample_has(f, n_apps, 4);
    expect_job(f, 22, 22, 7, 1, "cc1");
}

/*
 * systemd gives app.slice a weight, and its programs none: their nice values count among them. Also of sessions in one job, and
 * while no event makes asymd list the processes again.
 */
TEST_F(the_nice_group_is_the_cgroup_with_the_controller_cpu_or_else_the_session)
{
    static const char *const switches[] = {NULL, "0\n", "1\n", "0\n"};
    static const char *const cgroups[] = {"0::/app/a\n", "0::/app\n", "0::/game\n", "2:cpuset:/app\n0::/\n",
                                          "0::/../cgroup/app\n"};
    tree_write(&f->tree, "sys/fs/cgroup/app/cpu.weight", "100\n");
    tree_write(&f->tree, "sys/fs/cgroup/game/cpu.weight", "100\n");
    for (int pid = 20; pid < 25; pid++) {
        put(f, (struct thread){
                   .pid = pid, .tid = pid, .comm = "a", .state = 'R', .pgrp = 20, .has_tty = true, .session = pid - 8});
        put_cgroup(f, pid, cgroups[pid - 20]);
    }
    open_source(f, ASYM_GROUP_JOB, NULL, 0);
    asym_procfs_of(f->source)->config.process_events = (struct asym_process_events *)(void *)&connector;
    for (size_t i = 0; i < ASYM_LENGTH(switches); i++) {
        if (switches[i])
            tree_write(&f->tree, "proc/sys/kernel/sched_autogroup_enabled", "%s", switches[i]);
        sample_has(f, n_apps, 1);
        const int32_t app = proc_of(f, 20)->nice_group, game = proc_of(f, 22)->nice_group;
        assert_true(app > 4 << 20 && game > 4 << 20 && app != game);
        assert_int_equal(proc_of(f, 21)->nice_group, app);
        for (int pid = 23; pid < 25; pid++)
            assert_int_equal(proc_of(f, pid)->nice_group, i == 2 ? pid - 8 : 0);
    }
}

/* Opening a file takes ten times as long as reading it, in each sample of a machine on which all sleep. */
TEST_F(a_live_machine_s_switches_are_read_anew_and_opened_once)
{
    static const char file[] = "proc/sys/kernel/sched_autogroup_enabled";
    struct thread t = live_leader(f);
    t.session = 3;
    tree_write(&f->tree, file, "0\n");
    sample_with(f, t);
    assert_int_equal(proc_of(f, t.pid)->nice_group, 0);
    tree_write(&f->tree, file, "1\n");
    sample_with(f, t);
    assert_int_equal(proc_of(f, t.pid)->nice_group, 3);
    tree_unlink(&f->tree, file);
    sample_with(f, t);
    assert_int_equal(proc_of(f, t.pid)->nice_group, 3);
}

TEST_F(a_sample_in_which_all_sleep_reads_no_switch)
{
    struct asym_procfs *p;
    open_source(f, ASYM_GROUP_PROCESS, NULL, 0);
    p = asym_procfs_of(f->source);
    f->root.live = true;
    tree_write(&f->tree, "proc/sys/kernel/sched_autogroup_enabled", "1\n");
    sample_has(f, n_tasks, 0);
    assert_true(p->online_fd < 0 && p->autogroup_fd < 0);
    sample_with(f, (struct thread){.pid = getppid(), .tid = getppid(), .comm = "a", .state = 'R', .session = 3});
    assert_true(p->online_fd >= 0 && p->autogroup_fd >= 0);
    assert_int_equal(proc_of(f, getppid())->nice_group, 3);
}

/* A later process group with the number is another application, whether asymd has seen the end of the first one or not. */
TEST_F(a_process_follows_its_process_group)
{
    put_job(f, 20, 20, "sh", 'R');
    put_job(f, 21, 20, "a", 'R');
    put_job(f, 22, 40, "orphan", 'R');
    put(f, (struct thread){.pid = 23, .tid = 23, .comm = "old", .state = 'R', .pgrp = 40, .has_tty = true, .start = 6});
    open_source(f, ASYM_GROUP_JOB, NULL, 0);
    sample(f);
    expect_job(f, 21, 20, 7, 2, "sh");
    expect_job(f, 22, 40, 0, 2, "old");
    put_job(f, 20, 20, "make", 'R'); /* exec */
    put_job(f, 21, 21, "a", 'R');    /* setpgid */
    put_job(f, 22, 21, "b", 'R');
    sample(f);
    expect_job(f, 20, 20, 7, 1, "make");
    expect_job(f, 22, 21, 7, 2, "a");
    put(f, (struct thread){.pid = 20, .tid = 20, .comm = "new", .state = 'R', .pgrp = 20, .has_tty = true, .start = 9});
    sample(f);
    sample(f);
    expect_job(f, 20, 20, 9, 1, "new");
}

/* Process 30 has a terminal, and 31 none. Both are in process group 30, where the leader of another PID namespace has 0. */
TEST_F(one_without_a_terminal_belongs_to_its_service_or_container)
{
    static const struct {
        const char *cgroup;
        int pgrp;
        bool is_unit;
    } cases[] = {
        {"0::/", 30, false},
        {"0::/", -1, false},
        {"0::/system.slice", 30, false},
        {"0::/user.slice/user-1000.slice/session-2.scope", 30, false},
        {"0::/user.slice/user-1000.slice/user@1000.service", 30, false},
        {"0::/user.slice/user-1000.slice/user@1000.service/app.slice", 30, false},
        {"0::/c1", 30, false}, /* elogind */
        {"0::/12", 30, false},
        {"0::/../..", 30, false},
        {"0::/system.slice/cron.service", 30, true},
        {"0::/system.slice/system-getty.slice/getty@tty1.service", -1, true},
        {"0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox-1.scope", 30, true},
        {"0::/user.slice/user-1000.slice/session-2.scope/container", 30, true},
        {"0::/../system.slice/cron.service", 30, true},
        {"0::/lxc/101", 30, true},
        {"0::/c", 30, true},
        {"0::/c1x", 30, true},
        {"2:cpuset:/\n1:name=systemd:/docker/0123abcd\n0::/\n", 30, true},
        {"2:cpuset:/\n1:name=systemd:/user.slice/user-0.slice/session-c1.scope\n", 30, false},
    };
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        put_job(f, 30, 30, "leader", 'R');
        put(f, (struct thread){.pid = 31, .tid = 31, .comm = "x", .state = 'R', .pgrp = cases[i].pgrp});
        put(f, (struct thread){.pid = 32, .tid = 32, .comm = "x", .state = 'R', .pgrp = cases[i].pgrp});
        for (int pid = 30; pid < 33; pid++)
            put_cgroup(f, pid, cases[i].cgroup);
        open_source(f, ASYM_GROUP_JOB, NULL, 0);
        sample(f);
        expect_job(f, 30, 30, 7, !cases[i].is_unit && cases[i].pgrp > 0 ? 3 : 1, "leader");
        const uint32_t n_procs = cases[i].is_unit ? 2 : cases[i].pgrp > 0 ? 3 : 1;
        if ((app_of(f, 31)->cgroup != NULL) != cases[i].is_unit || app_of(f, 32)->n_procs != n_procs)
            fail_msg("%s", cases[i].cgroup);
        start_over(f);
    }
}

TEST_MAIN
