/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The BPF programs on this kernel: what they count of programs whose threads wait for each other, and what they tell. */
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "linux/observe/phases-kernel.h"
#include "linux/observe/phases-shared.h"
#include "linux/sys/realtime.h"
#include "support/live.h"
#include "support/must.h"
#include "support/process.h"
#include "support/test.h"

enum { THREADS = 16, APP = 3 };

#define SECONDS 1.0

static struct asym_phases *phases;

/* The sums over all applications. */
struct counts {
    uint64_t n_lost, n_limited, n_full;
    uint32_t n_threads, n_apps;
};

static struct counts counts_now(void)
{
    const struct asym_phases_shared *shared = asym_phases_maps_of(phases).memory;
    struct counts c = {.n_lost = shared->n_lost, .n_threads = shared->n_threads};
    for (size_t i = 1; i < ASYM_PHASES_APP_RECORDS; i++) {
        c.n_limited += shared->apps[i].n_limited;
        c.n_full += shared->apps[i].n_full;
        c.n_apps += shared->apps[i].n_threads > 0;
    }
    return c;
}

static const struct asym_phases_limits usual = {.gap = 1000, .settle = 200, .rate = 200};

static void forget(void *ctx __attribute__((unused)), const struct asym_phases_event *e __attribute__((unused)))
{
}

/* Loading and unloading takes the kernel half a second: tests share the programs, until one fails and leaves threads. */
static int open_it(void **state __attribute__((unused)))
{
    struct asym_error err;
    if (phases && counts_now().n_threads > 0) {
        asym_phases_close(phases);
        phases = NULL;
    }
    if (!phases && asym_phases_open(&usual, &phases, &err) < 0)
        fail_msg("this test needs BPF programs: %s", err.text);
    asym_phases_set(phases, &usual);
    asym_phases_take(phases, forget, NULL);
    return 0;
}

static int close_it(void **state __attribute__((unused)))
{
    if (phases)
        asym_phases_close(phases);
    return 0;
}

#define TEST_F(name) TEST_WITH(name, open_it, NULL)

static pid_t start_load(const char *kind)
{
    return asym_live_start((const char *const[]){"tests/load-waits", kind, "60", NULL}, -1);
}

static void end_load(pid_t pid)
{
    asym_phases_unfollow(phases, (int32_t)pid);
    asym_live_end(pid, SIGKILL);
}

static int by_tid(const void *a, const void *b)
{
    const struct asym_phases_thread *t = a, *u = b;
    return (t->tid > u->tid) - (t->tid < u->tid);
}

/* The threads of the process as the programs see them, by tid. Returns their number. */
static size_t list(pid_t pid, struct asym_phases_thread ret[THREADS])
{
    const struct asym_phases_thread *t;
    const uint32_t *changed;
    size_t found = 0;
    (void)asym_phases_list(phases, &t, &changed);
    for (size_t i = 1; i <= ASYM_PHASES_THREADS; i++)
        if (t[i].tid != 0 && t[i].tgid == pid && found < THREADS)
            ret[found++] = t[i];
    qsort(ret, found, sizeof *ret, by_tid);
    return found;
}

static size_t await_threads(pid_t pid, size_t n)
{
    struct asym_phases_thread t[THREADS];
    size_t found;
    ASYM_LIVE_AWAIT((found = list(pid, t)) == n);
    return found;
}

/* The end of a thread clears its slot before it counts the thread out, and comes after wait(2) has returned. */
static void await_no_threads(void)
{
    ASYM_LIVE_AWAIT(counts_now().n_threads == 0);
    assert_int_equal(counts_now().n_threads, 0);
}

/* Follow a load that has so many threads. */
static void follow(pid_t pid, size_t n)
{
    assert_int_equal(asym_phases_follow(phases, (int32_t)pid, APP), 0);
    assert_int_equal(await_threads(pid, n), n);
    /* Each thread has run by now, so that none is unknown. */
    asym_live_sleep(0.3);
}

/* A thread in the files of the kernel. */
struct record {
    int state, schedstat; /* descriptors */
    double critical;      /* seconds by the number of runnable threads, over the looks */
};

static int open_file(pid_t pid, int32_t tid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static bool is_runnable(const struct record *r)
{
    char text[256];
    const ssize_t n = pread(r->state, text, sizeof text - 1, 0);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return end && end[2] == 'R';
}

static uint64_t runnable_ns(const struct record *r)
{
    char text[128];
    unsigned long long ran, waited;
    const ssize_t n = pread(r->schedstat, text, sizeof text - 1, 0);
    assert_true(n > 0);
    text[n] = '\0';
    assert_int_equal(sscanf(text, "%llu %llu", &ran, &waited), 2);
    return ran + waited;
}

/*
 * Look at the states of all threads some thousand times, at irregular moments. Each look stands for the time since the one before:
 * one that comes late, because a real-time program or the host had the CPU, finds those that had to wait with it. Returns the
 * seconds that it took.
 */
static double look(struct record *r, size_t n)
{
    const double begin = asym_live_now();
    unsigned seed = 1;
    for (double last = begin, now = begin; now < begin + SECONDS; last = now) {
        bool is[THREADS];
        int count = 0;
        asym_live_sleep((100 + rand_r(&seed) % 400) * 1e-6);
        for (size_t i = 0; i < n; i++)
            count += is[i] = is_runnable(&r[i]);
        now = asym_live_now();
        for (size_t i = 0; i < n; i++)
            r[i].critical += is[i] ? (now - last) / count : 0;
    }
    return asym_live_now() - begin;
}

static void compare(const char *kind, const struct asym_phases_thread *a, const struct asym_phases_thread *b, size_t n,
                    const struct record *r, double took)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(a[i].tid, b[i].tid);
        const double share = (double)(b[i].critical_ns - a[i].critical_ns) / took / 1e9;
        const double looked = r[i].critical / took, off = share > looked ? share - looked : looked - share;
        most = off > most ? off : most;
    }
    printf("%s: critical at most %.4f off\n", kind, most);
    assert_true(most < 0.03);
}

static void compare_runnable(const char *kind, pid_t pid, size_t n, const struct record *r, uint64_t before_ns)
{
    struct asym_phases_thread t[THREADS];
    double programs = 0, kernel = -(double)before_ns / 1e9;
    assert_int_equal(list(pid, t), n);
    for (size_t i = 0; i < n; i++) {
        programs += (double)(t[i].running_ns + t[i].waiting_ns) / 1e9;
        kernel += (double)runnable_ns(&r[i]) / 1e9;
    }
    printf("%s: runnable for %.4f s, by schedstat %.4f s (%+.2f %%)\n", kind, programs, kernel,
           (programs / kernel - 1) * 100);
    assert_true(programs > 0.99 * kernel && programs < 1.01 * kernel);
}

/*
 * Start a load that is followed before its threads begin, so that all their time is counted. At a load of 24 the new process has
 * waited for a CPU for 16 to 23 ms before that: more than 1 % of a serial program's time.
 */
static pid_t start_followed(const char *kind, size_t n, uint64_t *ret_before_ns)
{
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        raise(SIGSTOP);
        execl(ASYM_TEST_BIN "/tests/load-waits", "load-waits", kind, "60", (char *)NULL);
        _exit(1);
    }
    ASYM_LIVE_AWAIT(asym_process_state(pid) == 'T');
    const struct record r = {.schedstat = open_file(pid, pid, "schedstat")};
    *ret_before_ns = runnable_ns(&r);
    close(r.schedstat);
    assert_int_equal(asym_phases_follow(phases, (int32_t)pid, APP), 0);
    asym_live_signal(pid, SIGCONT);
    assert_int_equal(await_threads(pid, n), n);
    asym_live_sleep(0.3);
    return pid;
}

/* The reader of the states comes first, as one that measures does. */
static void measure(const char *kind, size_t n)
{
    struct asym_phases_thread a[THREADS], b[THREADS];
    struct record r[THREADS] = {{0}};
    uint64_t before_ns;
    const pid_t pid = start_followed(kind, n + 1, &before_ns);
    assert_int_equal(list(pid, a), n + 1);
    for (size_t i = 0; i <= n; i++) {
        r[i].state = open_file(pid, a[i].tid, "stat");
        r[i].schedstat = open_file(pid, a[i].tid, "schedstat");
    }
    const struct sched_param first = {.sched_priority = 1}, usual_one = {.sched_priority = 0};
    assert_int_equal(sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first), 0);
    assert_int_equal(list(pid, a), n + 1);
    const double took = look(r, n + 1);
    assert_int_equal(list(pid, b), n + 1);
    compare(kind, a, b, n + 1, r, took);
    /* schedstat gets a wait when it ends, so it is read while each thread is stopped. */
    int32_t tid;
    assert_int_equal(asym_process_stop(pid), 0);
    ASYM_LIVE_AWAIT(asym_phases_runnable(phases, APP, &tid) == 0);
    compare_runnable(kind, pid, n + 1, r, before_ns);
    assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &usual_one), 0);
    for (size_t i = 0; i <= n; i++) {
        close(r[i].state);
        close(r[i].schedstat);
    }
    end_load(pid);
}

TEST_F(loads_are_counted_as_the_kernel_does)
{
    static const struct {
        const char *kind;
        size_t threads;
    } loads[] = {{"frame", 6}, {"vsync", 6}, {"barrier", 4}, {"pipeline", 3}, {"lock", 4}, {"serial", 4}};
    for (size_t i = 0; i < ASYM_LENGTH(loads); i++)
        measure(loads[i].kind, loads[i].threads);
}

/* Events of one application, and when they came. */
struct tally {
    int serial, parallel, lost, strange;
    pid_t pid;
    size_t n;
    double us[4096]; /* from the change to the reader */
};

static void count(void *ctx, const struct asym_phases_event *e)
{
    struct tally *t = ctx;
    t->serial += e->kind == ASYM_PHASES_SERIAL;
    t->parallel += e->kind == ASYM_PHASES_PARALLEL;
    t->lost += e->kind == ASYM_PHASES_LOST;
    t->strange += e->kind != ASYM_PHASES_LOST && (e->app != APP || (e->kind == ASYM_PHASES_SERIAL) != (e->tid > 0));
    if (t->n < sizeof t->us / sizeof t->us[0])
        t->us[t->n++] = asym_live_now() * 1e6 - (double)e->changed_ns / 1e3;
}

static void take(struct tally *t, double seconds)
{
    for (double end = asym_live_now() + seconds, now; (now = asym_live_now()) < end;) {
        struct pollfd fd = {.fd = asym_phases_fd(phases), .events = POLLIN};
        assert_true(poll(&fd, 1, (int)((end - now) * 1e3) + 1) >= 0);
        asym_phases_take(phases, count, t);
    }
}

static int compare_double(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

TEST_F(the_events_of_a_program_with_phases_arrive)
{
    static struct tally t, before;
    const struct sched_param first = {.sched_priority = 1}, usual_one = {.sched_priority = 0};
    memset(&t, 0, sizeof t);
    /* 20 ms alone, 20 ms of three threads. */
    const pid_t pid = asym_live_start((const char *const[]){"tests/load-phases", "3", "20", "60", NULL}, -1);
    asym_live_settle(pid, 3);
    follow(pid, 3);
    assert_int_equal(sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first), 0);
    asym_phases_take(phases, count, &before);
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE;
         asym_live_now() < end && (t.serial <= 10 || t.parallel <= 10);)
        take(&t, 0.1);
    assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &usual_one), 0);
    qsort(t.us, t.n, sizeof t.us[0], compare_double);
    printf("%d serial, %d parallel; from the change to the reader: median %.0f us, 99 %% %.0f us\n", t.serial,
           t.parallel, t.us[t.n / 2], t.us[t.n * 99 / 100]);
    end_load(pid);
    assert_true(t.serial > 10 && t.parallel > 10 && t.lost == 0 && t.strange == 0);
}

TEST_F(a_program_that_flickers_is_held_to_its_rate)
{
    static struct tally t;
    memset(&t, 0, sizeof t);
    const struct asym_phases_limits few = {.gap = 1000, .settle = 0, .rate = 50};
    asym_phases_set(phases, &few);
    const uint64_t limited = counts_now().n_limited;
    const pid_t pid = start_load("pingpong");
    const double begin = asym_live_now();
    follow(pid, 3);
    take(&t, 1);
    end_load(pid);
    assert_true(t.serial + t.parallel <= 50 * (asym_live_now() - begin + 0.25) + 2);
    assert_true(t.serial > 10 && t.strange == 0 && counts_now().n_limited > limited);
}

TEST_F(a_reader_that_does_not_take_is_told_what_it_lost)
{
    static struct tally t;
    memset(&t, 0, sizeof t);
    const struct asym_phases_limits many = {.gap = 0, .settle = 0, .rate = 10000000};
    asym_phases_set(phases, &many);
    const uint64_t lost = counts_now().n_lost;
    const pid_t pid = start_load("pingpong");
    follow(pid, 3);
    ASYM_LIVE_AWAIT(counts_now().n_lost > lost);
    asym_phases_set(phases, &usual);
    asym_phases_take(phases, count, &t);
    assert_int_equal(t.lost, 1);
    asym_phases_take(phases, count, &t);
    assert_int_equal(t.lost, 1);
    end_load(pid);
}

TEST_F(a_process_that_ends_leaves_nothing_behind)
{
    const pid_t pid = start_load("frame");
    follow(pid, 7);
    asym_live_end(pid, SIGKILL);
    await_no_threads();
    int32_t tid;
    assert_int_equal(asym_phases_runnable(phases, APP, &tid), 0);
    assert_int_equal(asym_phases_follow(phases, (int32_t)pid, APP), -ESRCH);
    assert_int_equal(asym_phases_follow(phases, 0, APP), -EINVAL);
    assert_int_equal(asym_phases_follow(phases, (int32_t)getpid(), ASYM_PHASES_APPS + 1), -EINVAL);
}

TEST_F(a_process_is_followed_unfollowed_and_moved)
{
    struct asym_phases_thread t[THREADS];
    const pid_t pid = start_load("frame");
    int32_t tid;
    follow(pid, 7);
    for (uint32_t i = 0; i < 50; i++) {
        asym_phases_unfollow(phases, (int32_t)pid);
        assert_int_equal(list(pid, t), 0);
        assert_int_equal(asym_phases_runnable(phases, APP, &tid), 0);
        assert_int_equal(asym_phases_follow(phases, (int32_t)pid, APP), 0);
        assert_int_equal(asym_phases_follow(phases, (int32_t)pid, APP + 1), 0);
        assert_int_equal(list(pid, t), 7);
        assert_int_equal(t[0].app, APP + 1);
        asym_live_sleep(0.01);
        assert_int_equal(asym_phases_runnable(phases, APP, &tid), 0);
        assert_int_equal(asym_phases_follow(phases, (int32_t)pid, APP), 0);
    }
    asym_phases_reconcile(phases);
    asym_phases_reconcile(phases);
    assert_int_equal(list(pid, t), 7);
    end_load(pid);
    assert_int_equal(counts_now().n_threads, 0);
}

/* Each event may find a thread that is just followed, unfollowed or moved. */
TEST_F(a_process_that_changes_its_state_all_the_time_is_followed_unfollowed_and_moved)
{
    const pid_t pid = start_load("pingpong");
    int32_t tid;
    for (uint32_t i = 0; i < 2000; i++) {
        assert_int_equal(asym_phases_follow(phases, (int32_t)pid, APP), 0);
        asym_live_sleep(i % 300 * 1e-6);
        assert_int_equal(asym_phases_follow(phases, (int32_t)pid, APP + 1), 0);
        asym_live_sleep(i % 200 * 1e-6);
        asym_phases_unfollow(phases, (int32_t)pid);
    }
    asym_live_sleep(0.1);
    assert_int_equal(asym_phases_runnable(phases, APP, &tid) + asym_phases_runnable(phases, APP + 1, &tid), 0);
    assert_int_equal(counts_now().n_threads, 0);
    end_load(pid);
}

/* The settings of the second thread, once it has changed its state: those of one that sleeps are not compared. */
static uint32_t settings_of_second(pid_t pid)
{
    struct asym_phases_thread t[THREADS];
    assert_true(list(pid, t) > 1);
    const uint32_t seq = t[1].seq;
    ASYM_LIVE_AWAIT(list(pid, t) < 2 || t[1].seq != seq);
    assert_true(t[1].seq != seq);
    return t[1].settings;
}

TEST_F(what_others_set_of_a_thread_is_noticed)
{
    const pid_t pid = start_load("barrier");
    struct asym_phases_thread t[THREADS];
    cpu_set_t one, all;
    CPU_ZERO(&one);
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    size_t first = 0;
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_SET(first, &one);
    follow(pid, 5);
    (void)list(pid, t);
    const pid_t tid = (pid_t)t[1].tid;
    uint32_t before = settings_of_second(pid), after;
    assert_true(before != 0 && settings_of_second(pid) == before);
    assert_int_equal(setpriority(PRIO_PROCESS, (id_t)tid, 7), 0);
    after = settings_of_second(pid);
    assert_true(after != before && settings_of_second(pid) == after);
    assert_int_equal(sched_setscheduler(tid, SCHED_BATCH, &(struct sched_param){0}), 0);
    before = settings_of_second(pid);
    assert_true(after != before && settings_of_second(pid) == before);
    assert_int_equal(sched_getaffinity(tid, sizeof all, &all), 0);
    assert_int_equal(sched_setaffinity(tid, sizeof one, &one), 0);
    after = settings_of_second(pid);
    assert_true(after != before && settings_of_second(pid) == after);
    assert_int_equal(sched_setaffinity(tid, sizeof all, &all), 0);
    assert_true(settings_of_second(pid) != after);
    end_load(pid);
}

/* The fork of a thread gives it a place on one CPU while the iterator does on another. */
TEST_F(a_process_that_starts_threads_is_followed)
{
    for (int round = 0; round < 40; round++) {
        const pid_t pid = start_load("lock");
        for (double end = asym_live_now() + 0.03; asym_live_now() < end;) {
            assert_int_equal(asym_phases_follow(phases, (int32_t)pid, APP), 0);
            assert_int_equal(asym_phases_follow(phases, (int32_t)pid, APP + 1), 0);
            asym_phases_unfollow(phases, (int32_t)pid);
        }
        end_load(pid);
    }
}

static void be_many(void)
{
    for (int i = 0; i < 1000; i++)
        if (asym_process_fork() == 0) {
            pause();
            _exit(0);
        }
    pause();
    _exit(0);
}

TEST_F(a_thousand_processes_are_followed)
{
    static pid_t children[1000];
    const pid_t parent = asym_process_fork();
    if (parent == 0)
        be_many();
    size_t n;
    ASYM_LIVE_AWAIT((n = asym_process_children(parent, children, 1000)) == 1000);
    assert_int_equal(n, 1000);
    const double begin = asym_live_now();
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(asym_phases_follow(phases, (int32_t)children[i], i + 1), 0);
    const double followed = asym_live_now();
    assert_int_equal(asym_realtime_take(ASYM_REALTIME_NONE), 0);
    asym_phases_reconcile(phases);
    assert_true(asym_realtime_is_other());
    const double reconciled = asym_live_now();
    printf("follow: %.3f ms a process; reconcile %.2f ms\n", followed - begin, (reconciled - followed) * 1e3);
    const struct counts s = counts_now();
    assert_true(s.n_threads == 1000 && s.n_apps == 1000 && s.n_full == 0);
    asym_live_end(parent, SIGKILL);
    await_no_threads();
}

TEST_F(a_storm_of_threads_is_followed_to_its_end)
{
    struct asym_phases_thread t[THREADS];
    const pid_t pid = start_load("churn");
    assert_int_equal(asym_phases_follow(phases, (int32_t)pid, APP), 0);
    for (double end = asym_live_now() + 1; asym_live_now() < end; asym_live_sleep(0.02)) {
        assert_in_range(list(pid, t), 1, 10);
        asym_phases_reconcile(phases);
    }
    assert_int_equal(counts_now().n_full, 0);
    asym_live_end(pid, SIGKILL);
    await_no_threads();
    int32_t tid;
    assert_int_equal(asym_phases_runnable(phases, APP, &tid), 0);
}

TEST_F(a_process_with_more_threads_than_places_is_not_followed)
{
    char word[6] = "";
    int says;
    const char *const argv[] = {"tests/load-sleepers", "8500", "1", "60", NULL};
    const pid_t pid = asym_live_start_piped(argv, &says);
    assert_int_equal(read(says, word, sizeof word), sizeof word);
    assert_memory_equal(word, "ready\n", sizeof word);
    close(says);
    const int followed = asym_phases_follow(phases, (int32_t)pid, APP);
    asym_live_end(pid, SIGKILL);
    assert_int_equal(followed, -ENOSPC);
    assert_int_equal(counts_now().n_threads, 0);
    const pid_t other = start_load("frame");
    follow(other, 7);
    end_load(other);
}

TEST_F(an_exec_by_a_thread_keeps_the_process)
{
    struct asym_phases_thread t[THREADS] = {{0}};
    const pid_t pid = asym_live_start((const char *const[]){"tests/load-waits", "exec", "60", NULL}, -1);
    assert_int_equal(asym_phases_follow(phases, (int32_t)pid, APP), 0);
    /* The thread of that load becomes a frame loop. */
    assert_int_equal(await_threads(pid, 7), 7);
    list(pid, t);
    assert_int_equal(t[0].tid, pid);
    end_load(pid);
}

/* Another process gets the number of one that was followed, before asymd has noticed its end. */
TEST_F(a_process_with_the_number_of_a_followed_one_is_not_followed)
{
    struct asym_phases_thread t[THREADS];
    const pid_t pid = start_load("frame");
    follow(pid, 7);
    asym_live_end(pid, SIGKILL);
    assert_int_equal(await_threads(pid, 0), 0);
    const pid_t parent = getpid();
    const struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1};
    const long successor = syscall(SYS_clone3, &args, sizeof args);
    if (successor == 0) {
        asym_process_end_with(parent);
        execl(ASYM_TEST_BIN "/tests/load-waits", "load-waits", "frame", "60", (char *)NULL);
        _exit(1);
    }
    assert_int_equal(successor, pid);
    asym_live_sleep(1);
    asym_phases_reconcile(phases);
    assert_int_equal(list(pid, t), 0);
    assert_int_equal(asym_phases_follow(phases, (int32_t)pid, APP + 1), 0);
    assert_int_equal(await_threads(pid, 7), 7);
    assert_int_equal(asym_process_signal(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(await_threads(pid, 0), 0);
}

TEST(without_rights_it_says_which)
{
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        struct asym_error err = {""};
        MUST(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
        MUST(asym_phases_open(&usual, &phases, &err) == -EPERM && strstr(err.text, "CAP_BPF"));
        _exit(0);
    }
    assert_int_equal(asym_live_wait(pid), 0);
}

/* The first process of a PID namespace. Its load is number 2 there. */
static int look_inside(void)
{
    struct asym_error err;
    if (asym_phases_open(&usual, &phases, &err) < 0)
        return 1;
    const pid_t pid = start_load("frame");
    if (pid != 2 || asym_phases_follow(phases, (int32_t)pid, APP) < 0)
        return 2;
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; asym_live_now() < end; asym_live_sleep(0.01)) {
        struct asym_phases_thread t[THREADS];
        if (list(2, t) == 7 && t[0].tid == 2 && t[6].tid < 20)
            return asym_phases_slept(phases, 2) ? 4 : 0;
        for (int i = 0; i < 4; i++)
            asym_phases_begin_interval(phases);
    }
    return 3;
}

TEST(in_a_pid_namespace_threads_have_the_numbers_of_that)
{
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        int status = 0;
        MUST(unshare(CLONE_NEWPID) == 0);
        /* The end of the first process ends all others of its namespace. */
        const pid_t inner = asym_process_fork_orphan(60);
        if (inner == 0)
            _exit(look_inside());
        MUST(waitpid(inner, &status, 0) == inner);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 100);
    }
    assert_int_equal(asym_live_wait(pid), 0);
}

/*
 * In another PID namespace asymd knows of no process whether it has slept: the kernel marks the numbers of the initial one. The
 * process stops and runs again, and is not followed.
 */
TEST_F(a_process_that_gets_no_cpu_has_slept)
{
    const pid_t pid = start_load("frame");
    const bool knows = asym_live_is_in_initial_pid_namespace();
    for (int round = 0; round < 3; round++) {
        asym_live_sleep(0.2);
        assert_false(asym_phases_slept(phases, (int32_t)pid));
        assert_int_equal(asym_process_signal(pid, SIGSTOP), 0);
        asym_live_sleep(0.2);
        for (int i = 0; i < 3; i++) {
            assert_false(asym_phases_slept(phases, (int32_t)pid));
            asym_phases_begin_interval(phases);
        }
        assert_int_equal(asym_phases_slept(phases, (int32_t)pid), knows);
        assert_int_equal(asym_process_signal(pid, SIGCONT), 0);
    }
    asym_live_end(pid, SIGKILL);
}

static bool is_readable(double seconds)
{
    struct pollfd fd = {.fd = asym_phases_fd(phases), .events = POLLIN};
    return poll(&fd, 1, (int)(seconds * 1000)) == 1;
}

/* A process that stops may get a CPU once more. */
static void begin_doze(void)
{
    static struct tally t;
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; asym_live_now() < end;) {
        asym_phases_begin_interval(phases);
        if (asym_phases_doze(phases) && !is_readable(0.1))
            return;
        asym_phases_take(phases, count, &t);
    }
    fail_msg("a process that is stopped seems to run");
}

/* It is the only process that is asked for. This one runs, too. */
TEST_F(the_first_cpu_of_a_process_ends_a_doze)
{
    static struct tally t;
    const pid_t pid = start_load("frame");
    if (!asym_live_is_in_initial_pid_namespace()) {
        assert_false(asym_phases_doze(phases));
        asym_live_end(pid, SIGKILL);
        return;
    }
    for (int round = 0; round < 3; round++) {
        assert_int_equal(asym_process_stop(pid), 0);
        assert_false(asym_phases_slept(phases, (int32_t)pid));
        begin_doze();
        assert_true(asym_phases_dozes(phases));
        assert_int_equal(asym_process_signal(pid, SIGCONT), 0);
        assert_true(is_readable(ASYM_LIVE_PATIENCE));
        assert_false(asym_phases_dozes(phases) || asym_phases_doze(phases));
        asym_phases_take(phases, count, &t);
        assert_false(is_readable(0.1));
    }
    assert_true(t.serial + t.parallel + t.lost + t.strange == 0);
    asym_live_end(pid, SIGKILL);
}

/* Any event that is lost or counted twice remains: no reconciliation mends it. */
TEST_F(after_many_changes_stopped_programs_have_no_runnable_thread)
{
    const char *const kinds[] = {"pingpong", "pingpong", "frame", "lock", "barrier", "churn"};
    pid_t pids[sizeof kinds / sizeof kinds[0]];
    int32_t tid;
    for (uint32_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        pids[i] = start_load(kinds[i]);
        assert_int_equal(asym_phases_follow(phases, (int32_t)pids[i], i + 1), 0);
    }
    asym_live_sleep(1);
    for (uint32_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        assert_int_equal(asym_process_stop(pids[i]), 0);
        ASYM_LIVE_AWAIT(asym_phases_runnable(phases, i + 1, &tid) == 0);
        assert_int_equal(asym_phases_runnable(phases, i + 1, &tid), 0);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        end_load(pids[i]);
    assert_int_equal(counts_now().n_threads, 0);
}

TEST_MAIN_WITH(NULL, close_it)
