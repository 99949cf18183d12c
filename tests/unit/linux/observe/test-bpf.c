/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The observer bpf (linux/observe/bpf.h), without a kernel: what the BPF programs would have counted stands in `kernel`. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/macro.h"
#include "linux/observe/bpf.h"
#include "linux/observe/observer.h"
#include "linux/observe/phases-kernel.h"
#include "linux/observe/procfs.h"
#include "support/test.h"

#define MAIN     100
#define PROGRAMS (ASYM_PHASES_APPS + 1)
#define SOME     40
#define WORKER   101
#define OTHER    200
#define MS       UINT64_C(1000000)
#define BEGIN    (10 * ASYM_SEC)
#define A_MINUTE (60 * ASYM_SEC)

/* --- the kernel's side, and the clock --- */

static struct {
    struct asym_phases_thread threads[4]; /* by place */
    uint32_t n_read;                      /* places 1..n_read have changed */
    struct asym_phases_event events[8];
    size_t n_events;
    uint32_t runnable;
    int32_t only;
    int32_t followed[PROGRAMS + 16];
    uint32_t app_of[PROGRAMS + 16];
    size_t n_followed;
    int refuses; /* what follow returns, if it is not 0 */
    struct asym_phases_limits limits;
    bool is_open;
    uint32_t threads_each; /* that each followed process has */
    unsigned intervals;    /* that have begun */
    bool sleeps;           /* each process */
    bool is_main_asked_for;
    asym_usec held_until[ASYM_PHASES_APPS + 1]; /* by application; 0: it is not held */
} kernel;

static uint32_t owners[2]; /* of MAIN, and of all others */
static bool each_has_a_user;

static asym_usec now;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
    (void)clock;
    *ret = (struct timespec){.tv_sec = (time_t)(now / ASYM_SEC), .tv_nsec = (long)(now % ASYM_SEC) * 1000};
    return 0;
}

int __wrap_asym_phases_open(const struct asym_phases_limits *limits, struct asym_phases **ret, struct asym_error *err);
int __wrap_asym_phases_open(const struct asym_phases_limits *limits, struct asym_phases **ret, struct asym_error *err)
{
    kernel.limits = *limits;
    if (kernel.refuses)
        return asym_fail(err, kernel.refuses, "no BTF");
    kernel.is_open = true;
    *ret = (struct asym_phases *)(void *)&kernel;
    return 0;
}

void __wrap_asym_phases_close(struct asym_phases *p);
void __wrap_asym_phases_close(struct asym_phases *p)
{
    (void)p;
    kernel.is_open = false;
}

void __wrap_asym_phases_set(struct asym_phases *p, const struct asym_phases_limits *limits);
void __wrap_asym_phases_set(struct asym_phases *p, const struct asym_phases_limits *limits)
{
    (void)p;
    kernel.limits = *limits;
}

int __wrap_asym_phases_follow(struct asym_phases *p, int32_t tgid, uint32_t app);
int __wrap_asym_phases_follow(struct asym_phases *p, int32_t tgid, uint32_t app)
{
    (void)p;
    if (kernel.refuses)
        return kernel.refuses;
    kernel.app_of[kernel.n_followed] = app;
    kernel.followed[kernel.n_followed++] = tgid;
    return 0;
}

int __wrap_asym_phases_unfollow(struct asym_phases *p, int32_t tgid);
int __wrap_asym_phases_unfollow(struct asym_phases *p, int32_t tgid)
{
    (void)p;
    if (kernel.refuses)
        return kernel.refuses;
    for (size_t i = 0; i < kernel.n_followed; i++) {
        if (kernel.followed[i] != tgid)
            continue;
        kernel.followed[i] = kernel.followed[--kernel.n_followed];
        kernel.app_of[i] = kernel.app_of[kernel.n_followed];
        return 0;
    }
    return 0;
}

int __wrap_asym_phases_fd(const struct asym_phases *p);
int __wrap_asym_phases_fd(const struct asym_phases *p)
{
    (void)p;
    return 7;
}

void __wrap_asym_phases_take(struct asym_phases *p, void (*fn)(void *ctx, const struct asym_phases_event *e),
                             void *ctx);
void __wrap_asym_phases_take(struct asym_phases *p, void (*fn)(void *ctx, const struct asym_phases_event *e), void *ctx)
{
    const size_t n = kernel.n_events;
    (void)p;
    for (size_t i = 0; i < n; i++)
        fn(ctx, &kernel.events[i]);
    kernel.n_events = 0;
}

void __wrap_asym_phases_begin_interval(struct asym_phases *p);
void __wrap_asym_phases_begin_interval(struct asym_phases *p)
{
    (void)p;
    kernel.intervals++;
}

bool __wrap_asym_phases_slept(const struct asym_phases *p, int32_t tgid);
bool __wrap_asym_phases_slept(const struct asym_phases *p, int32_t tgid)
{
    (void)p;
    kernel.is_main_asked_for |= tgid == MAIN;
    return kernel.sleeps;
}

size_t __wrap_asym_phases_list(struct asym_phases *p, const struct asym_phases_thread **ret_threads,
                               const uint32_t **ret_slots);
size_t __wrap_asym_phases_list(struct asym_phases *p, const struct asym_phases_thread **ret_threads,
                               const uint32_t **ret_slots)
{
    static const uint32_t slots[] = {1, 2, 3};
    (void)p;
    *ret_threads = kernel.threads;
    *ret_slots = slots;
    return kernel.n_read;
}

uint32_t __wrap_asym_phases_runnable(const struct asym_phases *p, uint32_t app, int32_t *ret_tid);
uint32_t __wrap_asym_phases_runnable(const struct asym_phases *p, uint32_t app, int32_t *ret_tid)
{
    (void)p;
    assert_in_range(app, 1, ASYM_PHASES_APPS);
    *ret_tid = kernel.runnable == 1 ? kernel.only : 0;
    return kernel.runnable;
}

uint32_t __wrap_asym_phases_threads(const struct asym_phases *p, uint32_t app);
uint32_t __wrap_asym_phases_threads(const struct asym_phases *p, uint32_t app)
{
    uint32_t n = 0;
    (void)p;
    for (size_t i = 0; i < kernel.n_followed; i++)
        n += app == 0 || kernel.app_of[i] == app ? kernel.threads_each : 0;
    return n;
}

void __wrap_asym_phases_hold(struct asym_phases *p, uint32_t app, asym_usec until);
void __wrap_asym_phases_hold(struct asym_phases *p, uint32_t app, asym_usec until)
{
    (void)p;
    kernel.held_until[app] = until;
}

int __wrap_asym_proc_owner(const struct asym_root *root, int32_t pid, uint32_t *ret);
int __wrap_asym_proc_owner(const struct asym_root *root, int32_t pid, uint32_t *ret)
{
    (void)root;
    *ret = each_has_a_user ? (uint32_t)pid : owners[pid != MAIN];
    return 0;
}

static bool misses;

bool __wrap_asym_phases_misses(const struct asym_phases *p, uint32_t app);
bool __wrap_asym_phases_misses(const struct asym_phases *p, uint32_t app)
{
    (void)p;
    (void)app;
    return misses;
}

void __wrap_asym_phases_reconcile(struct asym_phases *p);
void __wrap_asym_phases_reconcile(struct asym_phases *p)
{
    (void)p;
}

static struct asym_procfs_watcher watcher;

void __wrap_asym_procfs_set_watcher(struct asym_source *procfs, const struct asym_procfs_watcher *w);
void __wrap_asym_procfs_set_watcher(struct asym_source *procfs, const struct asym_procfs_watcher *w)
{
    (void)procfs;
    watcher = *w;
}

static int32_t sleeper; /* the last one that procfs was asked to list */

int __wrap_asym_procfs_list_sleeper(struct asym_source *procfs, int32_t tgid, int32_t tid);
int __wrap_asym_procfs_list_sleeper(struct asym_source *procfs, int32_t tgid, int32_t tid)
{
    (void)procfs;
    assert_int_equal(tgid, MAIN);
    sleeper = tid;
    return 1;
}

/* --- the inner source: one program of two threads, as procfs sampled it, and one of a single thread --- */

static struct asym_task tasks[3];
static struct asym_proc procs[PROGRAMS];
static struct asym_app apps[PROGRAMS];
static size_t n_programs;
static bool refresh;
static int inner_returns;

/* The answers of the watcher that the inner source gets during its sample. */
static enum asym_procfs_activity of_main, of_worker, of_other;
static bool main_changed, other_changed;
static struct asym_procfs_watched seen;

static int inner_next(struct asym_source *source, struct asym_snapshot *ret)
{
    struct asym_procfs_watched unknown;
    (void)source;
    of_main = watcher.process(watcher.ctx, MAIN);
    of_other = watcher.process(watcher.ctx, OTHER);
    main_changed = watcher.changed(watcher.ctx, &apps[0].id);
    other_changed = watcher.changed(watcher.ctx, &apps[1].id);
    of_worker = watcher.thread(watcher.ctx, WORKER, &seen);
    assert_int_equal(watcher.thread(watcher.ctx, OTHER, &unknown), ASYM_PROCFS_UNKNOWN);
    *ret = (struct asym_snapshot){.now = now,
                                  .interval = 100 * ASYM_MSEC,
                                  .refreshed = refresh,
                                  .apps = apps,
                                  .procs = procs,
                                  .tasks = tasks,
                                  .n_apps = n_programs,
                                  .n_procs = n_programs,
                                  .n_tasks = ASYM_LENGTH(tasks)};
    refresh = false;
    return inner_returns;
}

static void inner_refresh(struct asym_source *source)
{
    (void)source;
    refresh = true;
}

static struct asym_source inner = {.next = inner_next, .refresh = inner_refresh};
static struct asym_source *source;
static struct asym_settings *settings;
static struct asym_snapshot s;

static int open_source(struct asym_error *err)
{
    static const struct asym_root root = {.live = true};
    static const struct asym_procfs_config procfs = {.root = &root};
    const struct asym_observer_context context = {.settings = settings, .procfs = &procfs};
    const int r = asym_observer_entry_bpf.open(&context, &inner, &source, err);
    if (r >= 0)
        source->inner = &inner;
    return r;
}

static int set_up(void **state)
{
    (void)state;
    memset(&kernel, 0, sizeof kernel);
    kernel.threads_each = 2;
    owners[0] = owners[1] = 1000;
    each_has_a_user = false;
    n_programs = 2;
    misses = false;
    sleeper = 0;
    now = BEGIN;
    inner_returns = 1;
    refresh = false;
    for (size_t i = 0; i < 2; i++) {
        const int32_t pid = i == 0 ? MAIN : OTHER;
        procs[i] = (struct asym_proc){.id = {.tid = pid, .tgid = pid, .start = 5}, .app = (uint32_t)i};
        apps[i] = (struct asym_app){.id = procs[i].id,
                                    .first_task = i == 0 ? 0 : 2,
                                    .n_tasks = i == 0 ? 2 : 1,
                                    .n_procs = 1,
                                    .n_threads = i == 0 ? 2 : 1,
                                    .runnable_mean = i == 0 ? 1.6 : 0.8};
    }
    for (size_t i = 0; i < ASYM_LENGTH(tasks); i++)
        tasks[i] = (struct asym_task){
            .id = {.tid = i == 2 ? OTHER : MAIN + (int32_t)i, .tgid = i == 2 ? OTHER : MAIN, .start = 5},
            .proc = i == 2,
            .state = 'R',
            .runnable = 0.8,
            .running = 0.5};
    assert_int_equal(asym_settings_new(&settings), 0);
    assert_int_equal(open_source(NULL), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    source->close(source);
    assert_false(kernel.is_open);
    asym_settings_free(settings);
    return 0;
}

#define TEST_F(name) TEST_WITH(name, set_up, tear_down)

static void take(void)
{
    assert_int_equal(source->next(source, &s), 1);
}

/* A macro, so that a failure names the line of the test. */
#define take_follows(n)                                                                                                \
    do {                                                                                                               \
        take();                                                                                                        \
        assert_int_equal(kernel.n_followed, n);                                                                        \
    } while (0)

/* The engine asks for a plan between two samples. */
static void take_early(void)
{
    asym_source_refresh(source);
    take();
}

static void take_after(asym_usec time)
{
    now += time;
    take();
}

/* The counts of MAIN and WORKER; milliseconds. */
static void count(uint64_t main_ran, uint64_t main_critical, uint64_t worker_ran, uint64_t worker_waited)
{
    kernel.n_read = 3;
    kernel.threads[1] = (struct asym_phases_thread){
        .tid = MAIN, .tgid = MAIN, .app = 1, .running_ns = main_ran * MS, .critical_ns = main_critical * MS};
    kernel.threads[2] = (struct asym_phases_thread){.tid = WORKER,
                                                    .tgid = MAIN,
                                                    .app = 1,
                                                    .cpu = 3,
                                                    .renewed = 9,
                                                    .settings = 11,
                                                    .running_ns = worker_ran * MS,
                                                    .waiting_ns = worker_waited * MS};
}

/* So many programs of two threads that procfs sampled none of. MAIN is the last one. */
static void list_programs(size_t n)
{
    n_programs = n;
    for (size_t i = 0; i < n; i++) {
        const int32_t pid = i == n - 1 ? MAIN : OTHER + (int32_t)i;
        procs[i] = (struct asym_proc){.id = {.tid = pid, .tgid = pid, .start = 5}, .app = (uint32_t)i};
        apps[i] = (struct asym_app){.id = procs[i].id, .n_procs = 1, .n_threads = 2};
    }
}

static bool is_followed(int32_t pid)
{
    bool found = false;
    for (size_t i = 0; i < kernel.n_followed; i++)
        found |= kernel.followed[i] == pid;
    return found;
}

/* Two full snapshots: the second one has the counts of the 100 ms between them. */
static void measure(void)
{
    take();
    count(0, 0, 1000, 50);
    take();
    count(40, 30, 1020, 90);
    take_after(100 * ASYM_MSEC);
}

static void tell(enum asym_phases_kind kind, uint32_t app, int32_t tid)
{
    kernel.events[kernel.n_events++] = (struct asym_phases_event){.kind = kind, .app = app, .tid = tid};
}

static void come_down_to(int32_t tid)
{
    kernel.runnable = 1;
    kernel.only = tid;
    tell(ASYM_PHASES_SERIAL, 1, tid);
}

static void measure_with_phases(void)
{
    measure();
    asym_bpf_set(source, &settings->daemon, ASYM_BPF_PHASES);
}

/* Each program has a user of its own, and two threads. */
static void take_of_two_users(void)
{
    owners[1] = 1001;
    apps[1].n_threads = 2;
    asym_bpf_set(source, &settings->daemon, ASYM_BPF_PHASES);
    take();
}

/* MAIN sleeps. */
static void measure_worker(void)
{
    measure();
    count(40, 30, 1100, 90);
    take_after(100 * ASYM_MSEC);
}

TEST_F(it_follows_programs_of_several_threads_that_asymd_may_steer)
{
    kernel.refuses = -ESRCH; /* the kernel's walk has met no thread of it */
    take_follows(0);
    kernel.refuses = 0;
    take_follows(0); /* each order costs, so it gets one a second */
    take_after(ASYM_SEC);
    take_follows(1);
    assert_int_equal(kernel.followed[0], MAIN);
}

/* A job or a cgroup: two processes of one thread each. */
TEST_F(the_processes_of_an_application_are_followed_as_one)
{
    tasks[1].id.tgid = tasks[1].id.tid = OTHER;
    procs[1].app = 0;
    tasks[1].proc = tasks[2].proc = 1;
    apps[0] = (struct asym_app){
        .id = {.start = 99}, .cgroup = "/user.slice", .n_tasks = 3, .n_procs = 2, .n_threads = 2};
    apps[1] = (struct asym_app){.id = procs[1].id};
    take_follows(2);
    assert_int_equal(kernel.app_of[0], kernel.app_of[1]);
    /* The user has them grouped by process. */
    procs[1].app = 1;
    apps[0] = (struct asym_app){.id = procs[0].id, .n_tasks = 1, .n_threads = 2};
    apps[1] = (struct asym_app){.id = procs[1].id, .first_task = 1, .n_tasks = 2, .n_threads = 2};
    take_follows(4);
    assert_int_not_equal(kernel.app_of[2], kernel.app_of[3]);
}

/* A second in which the worker changed its state so often. */
static void change_often(uint64_t at_ms, uint32_t n_changes)
{
    now += ASYM_SEC;
    count(at_ms, 0, at_ms, 0);
    kernel.threads[2].seq = 2 * n_changes;
    take();
}

TEST_F(a_program_that_changes_too_often_rests_for_a_minute)
{
    take();
    change_often(1000, UINT32_MAX - 1000);
    change_often(2000, 39000); /* 40,001 in two seconds of CPU time */
    assert_int_equal(kernel.n_followed, 0);
    now += 59 * ASYM_SEC;
    memset(kernel.threads, 0, sizeof kernel.threads);
    take_follows(0);
    assert_int_equal(of_main, ASYM_PROCFS_UNKNOWN);
    take_after(ASYM_SEC);
    assert_int_equal(kernel.n_followed, 1);
}

TEST_F(a_program_that_changes_as_often_as_it_may_does_not_rest)
{
    take();
    change_often(1000, 0);
    change_often(2000, 40000);
    change_often(2100, 59000); /* with little CPU time: at most 20,000 a second */
    assert_int_equal(kernel.n_followed, 1);
}

/* A snapshot each ten seconds, in which the program hardly ran. */
TEST_F(what_a_program_may_change_grows_with_the_time_that_passed)
{
    take();
    change_often(1000, 0);
    now += 9 * ASYM_SEC;
    change_often(1010, 200000);
    assert_int_equal(kernel.n_followed, 1);
    now += 9 * ASYM_SEC;
    change_often(1020, 400001);
    assert_int_equal(kernel.n_followed, 0);
}

TEST_F(it_follows_none_that_asymd_leaves_alone)
{
    static const uint32_t flags[] = {ASYM_PROC_KERNEL, ASYM_PROC_SELF, ASYM_PROC_FOREIGN_NS, ASYM_PROC_OUTSIDE};
    for (size_t i = 0; i < ASYM_LENGTH(flags); i++) {
        procs[0].flags = flags[i];
        take_follows(0);
    }
    procs[0].flags = 0;
    procs[0].rule = ASYM_RULE_IGNORE;
    take_follows(0);
}

TEST_F(what_the_kernel_counted_replaces_the_sample)
{
    measure();
    assert_float_equal(s.tasks[0].running, 0.4, 1e-9);
    assert_float_equal(s.tasks[0].runnable, 0.4, 1e-9);
    assert_float_equal(s.tasks[0].critical, 0.3, 1e-9);
    assert_float_equal(s.tasks[1].running, 0.2, 1e-9);
    assert_float_equal(s.tasks[1].runnable, 0.6, 1e-9);
    assert_float_equal(s.apps[0].runnable_mean, 1.0, 1e-9);
    /* The other program is not followed. */
    assert_float_equal(s.tasks[2].runnable, 0.8, 1e-9);
    assert_float_equal(s.apps[1].runnable_mean, 0.8, 1e-9);
    assert_false(s.urgent);
}

TEST_F(procfs_learns_what_has_run)
{
    measure();
    assert_int_equal(of_main, ASYM_PROCFS_RAN);
    assert_int_equal(of_worker, ASYM_PROCFS_RAN);
    assert_int_equal(seen.ran, 20 * MS);
    assert_int_equal(seen.waited, 40 * MS);
    assert_int_equal(seen.cpu, 3);
    assert_int_equal(seen.renewed, 9);
    assert_int_equal(seen.settings, 11);
    assert_false(seen.is_runnable);
    assert_int_equal(of_other, ASYM_PROCFS_UNKNOWN);
    take_after(100 * ASYM_MSEC);
    assert_int_equal(of_main, ASYM_PROCFS_SLEPT);
    assert_int_equal(of_worker, ASYM_PROCFS_SLEPT);
    kernel.threads[2].is_runnable = true;
    take_after(100 * ASYM_MSEC);
    assert_true(seen.is_runnable);
    /* Its threads have ended. */
    kernel.threads[1].tid = kernel.threads[2].tid = 0;
    take();
    assert_int_equal(of_main, ASYM_PROCFS_RAN);
    assert_int_equal(of_worker, ASYM_PROCFS_UNKNOWN);
}

/* The kernel names only the threads that have changed, so that a count costs nothing for the others. */
TEST_F(a_thread_that_did_not_change_since_the_first_count_has_slept)
{
    take();
    take_after(100 * ASYM_MSEC);
    assert_int_equal(of_main, ASYM_PROCFS_UNKNOWN);
    assert_int_equal(of_worker, ASYM_PROCFS_UNKNOWN);
    count(40, 30, 1020, 90);
    take_after(100 * ASYM_MSEC);
    assert_int_equal(of_main, ASYM_PROCFS_RAN);
    assert_int_equal(of_worker, ASYM_PROCFS_UNKNOWN);
    kernel.n_read = 0;
    kernel.is_main_asked_for = false;
    take_after(100 * ASYM_MSEC);
    assert_int_equal(of_main, ASYM_PROCFS_SLEPT);
    /* The kernel's programs look only at those for which asymd asks. */
    assert_true(kernel.is_main_asked_for);
    assert_int_equal(of_worker, ASYM_PROCFS_SLEPT);
}

/* More threads than there are places, one after another: no trace of one that has ended is left. */
TEST_F(places_change_hands)
{
    measure();
    now += 100 * ASYM_MSEC;
    for (int32_t tid = 1000; tid < 1000 + 3 * ASYM_PHASES_THREADS; tid++) {
        kernel.threads[2] = (struct asym_phases_thread){.tid = tid, .tgid = OTHER};
        take_after(ASYM_MSEC);
    }
    assert_int_equal(of_worker, ASYM_PROCFS_UNKNOWN);
    assert_int_equal(of_main, ASYM_PROCFS_SLEPT);
    count(40, 30, 1020, 90);
    for (int i = 0; i < 2; i++)
        take_after(ASYM_MSEC);
    assert_int_equal(of_main, ASYM_PROCFS_SLEPT);
    /* The last event of a process is that another one has its thread's place. */
    kernel.threads[2] = (struct asym_phases_thread){.tid = 1000, .tgid = OTHER};
    take_after(ASYM_MSEC);
    assert_int_equal(of_main, ASYM_PROCFS_RAN);
}

TEST_F(a_thread_that_did_not_change_has_slept)
{
    measure();
    kernel.n_read = 0;
    take_after(100 * ASYM_MSEC);
    assert_int_equal(of_main, ASYM_PROCFS_SLEPT);
    assert_int_equal(of_worker, ASYM_PROCFS_SLEPT);
    assert_int_equal(seen.ran + seen.waited, 0);
    assert_float_equal(s.tasks[0].running, 0, 1e-9);
    assert_float_equal(s.tasks[1].runnable, 0, 1e-9);
    now += 100 * ASYM_MSEC;
    count(50, 30, 1020, 90);
    kernel.n_read = 1;
    take();
    assert_int_equal(of_main, ASYM_PROCFS_RAN);
    assert_int_equal(of_worker, ASYM_PROCFS_SLEPT);
    assert_float_equal(s.tasks[0].running, 0.1, 1e-9);
    assert_float_equal(s.tasks[1].runnable, 0, 1e-9);
}

TEST_F(procfs_learns_who_got_no_cpu)
{
    kernel.sleeps = true;
    take();
    assert_int_equal(kernel.intervals, 1);
    assert_int_equal(of_main, ASYM_PROCFS_SLEPT);
    assert_int_equal(of_other, ASYM_PROCFS_SLEPT);
    /* The count of a followed process knows better: a thread may have kept its CPU, or waited for one. */
    measure();
    assert_int_equal(of_main, ASYM_PROCFS_RAN);
    assert_int_equal(of_other, ASYM_PROCFS_SLEPT);
    const unsigned n = kernel.intervals;
    take_early();
    assert_int_equal(kernel.intervals, n);
    assert_int_equal(of_other, ASYM_PROCFS_UNKNOWN);
}

TEST_F(a_sample_in_pieces_is_counted_once)
{
    measure();
    const unsigned n = kernel.intervals;
    now += 100 * ASYM_MSEC;
    count(60, 30, 1020, 90);
    inner_returns = -EINPROGRESS;
    assert_int_equal(source->next(source, &s), -EINPROGRESS);
    inner_returns = 1;
    now += 50 * ASYM_MSEC;
    count(100, 30, 1020, 90);
    take();
    assert_int_equal(kernel.intervals, n + 1);
    assert_float_equal(s.tasks[0].running, 0.2, 1e-9);
}

TEST_F(a_refresh_repeats_the_shares)
{
    measure();
    count(90, 90, 2000, 2000);
    now += ASYM_MSEC;
    take_early();
    assert_true(s.refreshed);
    assert_float_equal(s.tasks[0].running, 0.4, 1e-9);
    assert_float_equal(s.tasks[1].runnable, 0.6, 1e-9);
}

/* The sample of the other one stays, and counts. */
TEST_F(a_thread_whose_number_another_one_has_keeps_its_sample)
{
    measure();
    now += 100 * ASYM_MSEC;
    count(80, 60, 1100, 200);
    kernel.threads[3] = kernel.threads[1];
    kernel.threads[1].tid = 0;
    take();
    assert_float_equal(s.tasks[0].runnable, 0.8, 1e-9);
    assert_float_equal(s.tasks[1].runnable, 1, 1e-9);
    assert_float_equal(s.apps[0].runnable_mean, 1.8, 1e-9);
    kernel.threads[2].running_ns = 5 * MS;
    take();
    assert_float_equal(s.tasks[1].runnable, 0.8, 1e-9);
}

/* A compiler that has just begun is in the job, and the kernel does not know it yet. */
TEST_F(a_job_with_a_thread_that_is_not_followed_is_not_alone)
{
    measure();
    kernel.threads[2].tid = 0;
    come_down_to(MAIN);
    (void)asym_bpf_take(source);
    take();
    assert_int_equal(s.tasks[0].flags, 0);
    assert_int_equal(s.tasks[1].state, 'R');
    assert_true(s.apps[0].runnable_mean > 0.8);
}

TEST_F(a_program_that_misses_threads_is_read_by_its_clock)
{
    measure();
    now += 100 * ASYM_MSEC;
    misses = true;
    take();
    assert_int_equal(of_main, ASYM_PROCFS_UNKNOWN);
    come_down_to(MAIN);
    (void)asym_bpf_take(source);
    take();
    assert_int_equal(s.tasks[0].flags, 0);
}

/* It slept for the whole interval, so procfs does not list it: no other thread is in its place. */
TEST_F(a_thread_that_is_not_listed_leaves_the_others_as_they_were)
{
    measure();
    come_down_to(777);
    (void)asym_bpf_take(source);
    take_early();
    assert_int_equal(s.tasks[0].state, 'R');
    assert_int_equal(s.tasks[1].state, 'R');
}

/* It waited for all others, and asymd need not wait for the next sample to see it. */
TEST_F(the_thread_that_slept_through_the_sample_is_listed_when_it_runs_alone)
{
    measure_worker();
    come_down_to(MAIN);
    (void)asym_bpf_take(source);
    now += 100 * ASYM_MSEC;
    count(40, 30, 1200, 90);
    take(); /* a sample lists who runs by itself */
    assert_int_equal(sleeper, 0);
    tell(ASYM_PHASES_PARALLEL, 1, 0);
    come_down_to(MAIN);
    (void)asym_bpf_take(source);
    take_early();
    assert_int_equal(sleeper, MAIN);
    sleeper = 0;
    come_down_to(WORKER);
    (void)asym_bpf_take(source);
    take_early();
    assert_int_equal(sleeper, 0);
}

TEST_F(one_for_whom_no_answer_is_left_is_not_listed)
{
    measure_worker();
    come_down_to(WORKER);
    (void)asym_bpf_take(source);
    asym_bpf_charge(source, 30 * ASYM_MSEC);
    take();
    come_down_to(MAIN);
    assert_false(asym_bpf_take(source));
    take_early();
    assert_int_equal(sleeper, 0);
}

TEST_F(one_runnable_thread_is_alone_at_once)
{
    measure_with_phases();
    assert_false(asym_bpf_take(source));
    come_down_to(WORKER);
    assert_true(asym_bpf_take(source));
    take_early();
    assert_true(s.urgent == ASYM_URGENT_PHASE && s.refreshed);
    assert_int_equal(s.tasks[1].flags, ASYM_TASK_ALONE);
    assert_int_equal(s.tasks[1].state, 'R');
    assert_int_equal(s.tasks[0].flags, 0);
    assert_int_equal(s.tasks[0].state, 'S');
    assert_float_equal(s.apps[0].runnable_mean, 1, 1e-9);
    assert_int_equal(s.apps[0].runnable_instant, 1);
    assert_false(asym_bpf_take(source));
    take();
    assert_false(s.urgent);
    assert_int_equal(s.tasks[1].flags, ASYM_TASK_ALONE);
}

TEST_F(an_answer_is_about_the_programs_that_have_changed)
{
    measure_with_phases();
    come_down_to(WORKER);
    assert_true(asym_bpf_take(source));
    take_early();
    assert_true(main_changed && !other_changed);
    tell(ASYM_PHASES_PARALLEL, 1, 0);
    assert_true(asym_bpf_take(source));
    take_early();
    assert_true(main_changed && !other_changed);
    /* A program has told something itself. */
    take_early();
    assert_true(main_changed && other_changed);
}

TEST_F(a_second_runnable_thread_ends_it)
{
    measure_with_phases();
    come_down_to(WORKER);
    (void)asym_bpf_take(source);
    take();
    kernel.runnable = 2;
    tell(ASYM_PHASES_PARALLEL, 1, 0);
    assert_true(asym_bpf_take(source));
    take_early();
    assert_true(s.urgent);
    assert_int_equal(s.tasks[1].flags, 0);
    assert_float_equal(s.apps[0].runnable_mean, 2, 1e-9);
}

/* The end of a phase is none, and neither is a thread that the last sample has served, unless another one was between. */
TEST_F(where_begins_only_count_a_thread_counts_once_a_sample)
{
    static const struct {
        int32_t alone; /* 0: a second thread runs */
        bool sample;   /* before */
        bool is_news;
    } rows[] = {{WORKER, false, true}, {0, false, false},     {WORKER, false, false}, {MAIN, false, true},
                {WORKER, false, true}, {WORKER, true, false}, {0, true, false},       {WORKER, true, true}};
    measure();
    asym_bpf_set(source, &settings->daemon, ASYM_BPF_BEGINS);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        if (rows[i].sample)
            take();
        kernel.runnable = rows[i].alone ? 1 : 2;
        kernel.only = rows[i].alone;
        tell(rows[i].alone ? ASYM_PHASES_SERIAL : ASYM_PHASES_PARALLEL, 1, rows[i].alone);
        assert_int_equal(asym_bpf_take(source), rows[i].is_news);
        asym_source_refresh(source);
        take();
        assert_int_equal(s.urgent, rows[i].is_news ? ASYM_URGENT_PHASE : ASYM_URGENT_NOT);
    }
}

TEST_F(a_phase_that_is_over_before_it_is_planned_is_none)
{
    measure();
    come_down_to(WORKER);
    (void)asym_bpf_take(source);
    kernel.runnable = 2;
    take_early();
    assert_int_equal(s.tasks[1].flags, 0);
}

TEST_F(after_lost_events_the_kernels_count_says_who_is_alone)
{
    measure();
    kernel.runnable = 1;
    kernel.only = WORKER;
    tell(ASYM_PHASES_LOST, 0, 0);
    assert_true(asym_bpf_take(source));
    take();
    assert_int_equal(s.tasks[1].flags, ASYM_TASK_ALONE);
}

TEST_F(many_new_programs_do_not_make_a_known_one_forgotten)
{
    take();
    for (int i = 0; i < 70; i++) {
        take_after(ASYM_SEC);
        (void)asym_bpf_housekeeping(source);
    }
    assert_int_equal(kernel.n_followed, 1);
}

TEST_F(events_of_unknown_applications_are_ignored)
{
    measure();
    tell(ASYM_PHASES_SERIAL, 0, WORKER);
    tell(ASYM_PHASES_SERIAL, 2, WORKER);
    tell(ASYM_PHASES_SERIAL, ASYM_PHASES_APPS + 1, WORKER);
    assert_false(asym_bpf_take(source));
}

TEST_F(one_that_has_not_run_for_a_minute_is_followed_no_more)
{
    take();
    assert_true(asym_bpf_housekeeping(source));
    now += A_MINUTE + ASYM_SEC;
    n_programs = 0;
    take();
    assert_false(asym_bpf_housekeeping(source));
    assert_int_equal(kernel.n_followed, 0);
    n_programs = 2;
    take_follows(1);
    assert_int_equal(kernel.app_of[0], 1);
}

/* Its last threads may have found no place: then the kernel's count is not the whole. */
TEST_F(one_that_has_ended_leaves_its_number_to_the_next)
{
    take();
    kernel.threads_each = 0;
    misses = true;
    n_programs = 0;
    take();
    assert_true(asym_bpf_housekeeping(source));
    misses = false;
    take();
    assert_false(asym_bpf_housekeeping(source));
    assert_int_equal(asym_bpf_number(source, &apps[0].id), 0);
}

/* A job goes on, and another of its processes gets the number of one that has ended. */
TEST_F(a_process_with_the_number_of_a_followed_one_is_followed_anew)
{
    apps[0].id = (struct asym_taskid){.tid = 99, .tgid = 99, .start = 4};
    take();
    take_follows(1);
    procs[0].id.start++;
    take_follows(2);
    assert_true(kernel.followed[1] == MAIN && kernel.app_of[1] == kernel.app_of[0]);
}

/* No memory, or no descriptor: its threads still have the number of the application, which no other one may get. */
TEST_F(one_that_cannot_be_left_now_is_left_with_the_next_snapshot)
{
    take();
    now += A_MINUTE + ASYM_SEC;
    n_programs = 0;
    kernel.refuses = -EMFILE;
    take();
    assert_true(asym_bpf_housekeeping(source));
    kernel.refuses = 0;
    take();
    assert_false(asym_bpf_housekeeping(source));
    assert_int_equal(kernel.n_followed, 0);
}

TEST_F(one_that_asymd_steers_no_more_is_followed_no_more)
{
    take();
    procs[0].rule = ASYM_RULE_IGNORE;
    for (int i = 0; i < 61; i++) {
        take_after(ASYM_SEC);
    }
    assert_int_equal(kernel.n_followed, 0);
}

TEST_F(a_snapshot_forgets_some_processes_only)
{
    list_programs(SOME);
    for (int i = 0; i < 10; i++)
        take();
    assert_int_equal(kernel.n_followed, SOME);
    now += A_MINUTE + ASYM_SEC;
    n_programs = 0;
    take();
    assert_in_range(kernel.n_followed, SOME / 2, SOME - 1);
    take();
    take_follows(0);
}

TEST_F(one_who_starts_many_programs_leaves_orders_for_others)
{
    owners[0] = 1001;
    list_programs(SOME);
    take();
    assert_true(is_followed(MAIN));
    assert_in_range(kernel.n_followed, 2, SOME / 2);
}

TEST_F(a_user_with_few_threads_takes_places_from_the_one_with_most)
{
    owners[1] = 1001;
    kernel.threads_each = apps[0].n_threads = ASYM_PHASES_THREADS - 100;
    take();
    assert_true(is_followed(MAIN));
    apps[1].n_threads = 300;
    take();
    assert_true(is_followed(OTHER) && !is_followed(MAIN));
    /* The one who had most gets free places only. */
    kernel.threads_each = 300;
    take();
    assert_true(is_followed(OTHER) && !is_followed(MAIN));
    assert_non_null(s.coverage.remarks[ASYM_OBSERVER_BPF]);
}

/* Sixteen evictions are too few for it: the programs of the other would begin again with each snapshot. */
TEST_F(nobody_is_evicted_for_one_who_cannot_have_enough)
{
    list_programs(SOME + 1);
    owners[0] = 1001;
    kernel.threads_each = 200;
    for (size_t i = 0; i <= SOME; i++)
        apps[i].n_threads = i == SOME ? 5000 : 200;
    n_programs--;
    while (kernel.n_followed < SOME)
        take();
    n_programs++;
    take_follows(SOME);
    assert_non_null(s.coverage.remarks[ASYM_OBSERVER_BPF]);
}

/* A job of two processes, of which one would make room enough. */
TEST_F(the_whole_of_a_job_is_evicted)
{
    list_programs(3);
    owners[0] = 1001;
    procs[1].app = 0;
    kernel.threads_each = 4000;
    apps[0].n_threads = 8000;
    apps[2].n_threads = 300;
    n_programs = 2;
    take_follows(2);
    n_programs = 3;
    take_follows(1);
    assert_true(is_followed(MAIN));
}

/* asym_phases_misses() is true, too, while a thread that has left is not reconciled. */
TEST_F(an_application_all_of_whose_threads_have_places_takes_none)
{
    list_programs(3);
    owners[0] = 1001;
    kernel.threads_each = apps[0].n_threads = apps[1].n_threads = apps[2].n_threads = 2730;
    take();
    kernel.threads_each = 2731; /* no place is free */
    misses = true;
    take_follows(3);
}

TEST_F(a_user_takes_no_places_from_himself)
{
    kernel.threads_each = apps[0].n_threads = ASYM_PHASES_THREADS - 100;
    take();
    apps[1].n_threads = 300;
    take();
    assert_true(is_followed(MAIN) && !is_followed(OTHER));
    assert_non_null(s.coverage.remarks[ASYM_OBSERVER_BPF]);
}

/* The kernel had no place for a thread that a program has made. */
TEST_F(a_program_that_grows_takes_places_from_the_one_with_most)
{
    list_programs(3);
    owners[0] = 1001;
    kernel.threads_each = apps[0].n_threads = apps[1].n_threads = apps[2].n_threads = ASYM_PHASES_THREADS / 3;
    take_follows(3);
    misses = true;
    apps[2].n_threads += 100;
    take();
    assert_true(is_followed(MAIN));
    assert_int_equal(kernel.n_followed, 2);
}

/* 20 ms are there at first; more comes at 1 % of a CPU. */
TEST_F(each_user_pays_the_answers_to_his_own_programs)
{
    take_of_two_users();
    tell(ASYM_PHASES_SERIAL, 1, WORKER);
    assert_true(asym_bpf_take(source));
    asym_bpf_charge(source, 30 * ASYM_MSEC);
    assert_in_range(kernel.held_until[1], now + 900 * ASYM_MSEC, now + 1100 * ASYM_MSEC);
    assert_int_equal(kernel.held_until[2], 0);
    take();
    tell(ASYM_PHASES_PARALLEL, 1, 0);
    assert_false(asym_bpf_take(source));
    tell(ASYM_PHASES_SERIAL, 2, OTHER);
    assert_true(asym_bpf_take(source));
    take_after(2 * ASYM_SEC);
    tell(ASYM_PHASES_SERIAL, 1, WORKER);
    assert_true(asym_bpf_take(source));
}

/* Each application has a user of its own, and no place is left for that of MAIN. */
TEST_F(one_who_finds_no_place_takes_no_users_debt)
{
    each_has_a_user = true;
    list_programs(PROGRAMS);
    asym_bpf_set(source, &settings->daemon, ASYM_BPF_PHASES);
    n_programs--;
    while (kernel.n_followed < n_programs)
        take();
    for (uint32_t i = 1; i <= ASYM_PHASES_APPS; i++) {
        tell(ASYM_PHASES_SERIAL, i, 7);
        (void)asym_bpf_take(source);
        asym_bpf_charge(source, 30 * ASYM_MSEC);
        take();
    }
    n_programs++;
    take();
    assert_false(is_followed(MAIN));
    for (uint32_t i = 1; i <= ASYM_PHASES_APPS; i++) {
        tell(ASYM_PHASES_PARALLEL, i, 0);
        assert_false(asym_bpf_take(source));
    }
}

TEST_F(an_answer_to_two_users_is_paid_by_both)
{
    take_of_two_users();
    tell(ASYM_PHASES_SERIAL, 1, WORKER);
    tell(ASYM_PHASES_SERIAL, 2, OTHER);
    (void)asym_bpf_take(source);
    asym_bpf_charge(source, 30 * ASYM_MSEC);
    assert_int_equal(kernel.held_until[1] + kernel.held_until[2], 0);
    tell(ASYM_PHASES_PARALLEL, 1, 0);
    (void)asym_bpf_take(source);
    asym_bpf_charge(source, 6 * ASYM_MSEC);
    assert_true(kernel.held_until[1] > now);
    assert_int_equal(kernel.held_until[2], 0);
}

TEST_F(lost_events_are_paid_by_those_for_whom_something_changed)
{
    take_of_two_users();
    tell(ASYM_PHASES_SERIAL, 2, WORKER);
    (void)asym_bpf_take(source);
    asym_bpf_charge(source, 0);
    kernel.runnable = 1;
    kernel.only = WORKER;
    tell(ASYM_PHASES_LOST, 0, 0);
    (void)asym_bpf_take(source);
    asym_bpf_charge(source, 30 * ASYM_MSEC);
    assert_true(kernel.held_until[1] > now);
    assert_int_equal(kernel.held_until[2], 0);
}

TEST_F(a_successor_with_the_same_pid_is_followed_anew)
{
    take();
    procs[0].id.start = apps[0].id.start = tasks[0].id.start = 77;
    take_follows(2);
    assert_int_equal(kernel.app_of[1], 2);
}

/* The count of the process that has ended says nothing of the one that has its number now. */
TEST_F(a_successor_of_one_thread_or_without_a_place_is_not_followed)
{
    static const struct {
        uint32_t n_threads;
        int refuses;
    } rows[] = {{1, 0}, {2, -ENOSPC}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        kernel.refuses = 0;
        apps[0].n_threads = 2;
        measure();
        take_after(100 * ASYM_MSEC);
        assert_int_equal(of_main, ASYM_PROCFS_SLEPT);
        procs[0].id.start = apps[0].id.start = tasks[0].id.start = 77 + i;
        apps[0].n_threads = rows[i].n_threads;
        kernel.refuses = rows[i].refuses;
        memset(kernel.threads, 0, sizeof kernel.threads);
        take();
        take();
        assert_int_equal(of_main, ASYM_PROCFS_UNKNOWN);
    }
}

TEST_F(without_a_place_a_program_is_sampled_and_it_says_so)
{
    kernel.refuses = -ENOSPC;
    take_follows(0);
    assert_non_null(s.coverage.remarks[ASYM_OBSERVER_BPF]);
    assert_float_equal(s.tasks[0].runnable, 0.8, 1e-9);
    kernel.refuses = 0;
    (void)asym_bpf_housekeeping(source);
    take();
    assert_null(s.coverage.remarks[ASYM_OBSERVER_BPF]);
    assert_int_equal(kernel.n_followed, 1);
}

TEST_F(a_snapshot_that_is_not_there_is_handed_on)
{
    inner_returns = -EINPROGRESS;
    assert_int_equal(source->next(source, &s), -EINPROGRESS);
    assert_int_equal(kernel.n_followed, 0);
}

TEST_F(events_are_told_only_while_somebody_hears)
{
    assert_int_equal(kernel.limits.rate, 0);
    asym_bpf_set(source, &settings->daemon, ASYM_BPF_PHASES);
    assert_int_equal(kernel.limits.rate, settings->daemon.phase_rate);
    assert_int_equal(kernel.limits.gap, settings->daemon.phase_gap);
    assert_false(kernel.limits.quiet_ends);
    asym_bpf_set(source, &settings->daemon, ASYM_BPF_BEGINS);
    assert_true(kernel.limits.quiet_ends && kernel.limits.rate == settings->daemon.phase_rate);
    asym_bpf_set(source, &settings->daemon, ASYM_BPF_NOTHING);
    assert_int_equal(kernel.limits.rate, 0);
    assert_int_equal(asym_bpf_fd(source), 7);
}

TEST_F(the_configuration_can_refuse_it)
{
    settings->daemon.observer = ASYM_OBSERVE_PROCFS;
    assert_int_equal(open_source(NULL), -ECANCELED);
    settings->daemon.observer = ASYM_OBSERVE_AUTO;
    struct asym_error err = {""};
    kernel.refuses = -EPERM;
    assert_int_equal(open_source(&err), -EPERM);
    assert_string_equal(err.text, "no BTF");
}

TEST_MAIN
