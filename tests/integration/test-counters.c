/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Perf events of this machine, on threads of the test: software events need no PMU; hardware events as far as available. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "linux/perf/counters-internal.h"
#include "linux/perf/counters.h"
#include "support/live.h"
#include "support/process.h"
#include "support/tree.h"
#include "support/test.h"

struct worker {
    pthread_t thread;
    atomic_int tid;
    atomic_int work; /* 1: spin; 0: sleep; -1: end */
    atomic_llong cpu_ns;
};

static long long thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    w->tid = (int)syscall(SYS_gettid);
    while (w->work >= 0) {
        if (w->work > 0)
            w->cpu_ns = thread_ns();
        else
            asym_live_sleep(0.001);
    }
    return NULL;
}

static void start(struct worker *w)
{
    *w = (struct worker){.work = 0};
    assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
    while (w->tid == 0)
        sched_yield();
}

static void stop(struct worker *w)
{
    w->work = -1;
    pthread_join(w->thread, NULL);
    /* The kernel frees the tid a moment after the join. */
    while (syscall(SYS_tgkill, getpid(), (int)w->tid, 0) == 0)
        sched_yield();
}

/* Waits until the thread's own clock has reached this time. */
static void await_cpu(const struct worker *w, long long ns)
{
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; w->cpu_ns < ns; asym_live_sleep(0.005))
        assert_true(asym_live_now() < end);
}

static struct asym_taskid id_of(const struct worker *w)
{
    return (struct asym_taskid){.tid = w->tid, .tgid = getpid(), .start = 1};
}

static struct asym_counters *software(unsigned max_fds, bool tree)
{
    const struct asym_counters_config config = {.set = ASYM_COUNTERS_SOFTWARE, .max_fds = max_fds, .tree = tree};
    struct asym_counters *c;
    struct asym_error err = {""};
    if (asym_counters_new(&config, &c, &err) < 0)
        fail_msg("%s", err.text);
    return c;
}

TEST(a_thread_that_works_is_counted_and_one_that_sleeps_is_not)
{
    struct worker busy, idle;
    start(&busy);
    start(&idle);
    struct asym_counters *c = software(100, false);
    const struct asym_taskid b = id_of(&busy), i = id_of(&idle);
    struct asym_counts first, counts;
    assert_int_equal(c->watch(c, &b), 0);
    assert_int_equal(c->watch(c, &i), 0);
    busy.work = 1;
    await_cpu(&busy, 1);
    const long long before_first = busy.cpu_ns;
    assert_int_equal(c->read(c, &b, &first), 0);
    const long long after_first = busy.cpu_ns;
    await_cpu(&busy, after_first + 200000000);
    const long long before_last = busy.cpu_ns;
    assert_int_equal(c->read(c, &b, &counts), 0);
    const long long after_last = busy.cpu_ns;
    assert_int_equal(counts.valid,
                     1u << ASYM_COUNTER_TASK_CLOCK | 1u << ASYM_COUNTER_SWITCHES | 1u << ASYM_COUNTER_FAULTS);
    assert_true(counts.running_share > 0.99);
    /*
     * The reference is the thread's own clock, so that other load on the machine does not matter. This test may lose its CPU
     * beside each read, and the thread runs on meanwhile: hence the clock before and after.
     */
    const double least = 0.7 * (double)(before_last - after_first), most = 1.4 * (double)(after_last - before_first);
    const double on_cpu = (double)(counts.on_cpu_ns - first.on_cpu_ns);
    const double clock = (double)(counts.value[ASYM_COUNTER_TASK_CLOCK] - first.value[ASYM_COUNTER_TASK_CLOCK]);
    if (on_cpu < least || on_cpu > most || clock < least || clock > most)
        fail_msg("%.1f and %.1f ms, by the thread's own clock %.1f to %.1f", on_cpu / 1e6, clock / 1e6,
                 (double)(before_last - after_first) / 1e6, (double)(after_last - before_first) / 1e6);
    assert_int_equal(c->read(c, &i, &counts), 0);
    assert_true(counts.value[ASYM_COUNTER_TASK_CLOCK] * 2 <
                first.value[ASYM_COUNTER_TASK_CLOCK] + (uint64_t)(before_last - after_first));
    assert_true(counts.value[ASYM_COUNTER_SWITCHES] > 10 || geteuid() != 0); /* it wakes every millisecond */
    stop(&busy);
    stop(&idle);
    c->close(c);
}

TEST(a_dead_thread_is_gone_and_its_descriptors_are_closed)
{
    struct worker w;
    const int before = asym_process_descriptors(getpid());
    start(&w);
    struct asym_counters *c = software(3, false);
    const struct asym_taskid id = id_of(&w);
    struct asym_counts counts;
    assert_int_equal(c->watch(c, &id), 0);
    assert_int_equal(asym_process_descriptors(getpid()), before + 3);
    assert_int_equal(c->read(c, &id, &counts), 0);
    stop(&w);
    assert_int_equal(c->read(c, &id, &counts), -ESRCH);
    assert_int_equal(asym_process_descriptors(getpid()), before);
    assert_int_equal(c->read(c, &id, &counts), -ENOENT);
    assert_int_equal(c->watch(c, &id), -ESRCH);
    start(&w);
    const struct asym_taskid next = id_of(&w);
    assert_int_equal(c->watch(c, &next), 0);
    stop(&w);
    c->close(c);
    assert_int_equal(asym_process_descriptors(getpid()), before);
}

TEST(a_tree_is_counted_from_exec_to_its_end)
{
    int go[2];
    assert_int_equal(pipe(go), 0);
    pid_t pid = asym_process_fork();
    if (pid == 0) {
        char byte;
        volatile unsigned n = 0;
        for (; n < 300000000; n++) /* before exec: not counted */
            ;
        if (read(go[0], &byte, 1) == 1)
            execl("/bin/sh", "sh", "-c",
                  "for k in 1 2; do (i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done) & done; wait", NULL);
        _exit(127);
    }
    struct asym_counters *c = software(100, true);
    const struct asym_taskid id = {.tid = pid, .tgid = pid, .start = 1};
    struct asym_counts counts;
    assert_int_equal(c->watch(c, &id), 0);
    assert_int_equal(write(go[1], "", 1), 1);
    struct rusage used;
    int status;
    assert_int_equal(wait4(pid, &status, 0, &used), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(c->read(c, &id, &counts), 0);
    const double all = (double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec +
                       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    const double counted = (double)counts.on_cpu_ns / 1e9;
    if (counted < 0.02 || counted > all - 0.05)
        fail_msg("counted %.3f s of %.3f s, with what was before exec", counted, all);
    assert_int_equal(c->unwatch(c, &id), 0);
    c->close(c);
    close(go[0]);
    close(go[1]);
}

TEST(threads_of_other_users_are_refused_without_the_capability)
{
    pid_t parent = getpid(), pid = asym_process_fork();
    if (pid == 0) {
        const struct asym_counters_config config = {.set = ASYM_COUNTERS_SOFTWARE, .max_fds = 100};
        const struct asym_taskid root = {.tid = parent, .tgid = parent, .start = 1};
        const struct asym_taskid self = {.tid = getpid(), .tgid = getpid(), .start = 1};
        struct asym_counters *c;
        if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0 ||
            asym_counters_new(&config, &c, NULL) < 0)
            _exit(2);
        int others = c->watch(c, &root), own = c->watch(c, &self);
        c->close(c);
        _exit((others == -EACCES || others == -EPERM ? 0 : 4) + (own == 0 || own == -EACCES ? 0 : 8));
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* With a PMU the probe counts; without one it reports the kernel's error. */
TEST(the_probe_of_this_machine_agrees_with_what_happens)
{
    struct tree tree;
    struct asym_root live, made;
    struct asym_counters_coverage s;
    struct asym_counters *c = NULL;
    struct asym_counts counts;
    const struct asym_taskid self = {.tid = (int32_t)syscall(SYS_gettid), .tgid = getpid(), .start = 1};
    const int before = asym_process_descriptors(getpid());
    assert_int_equal(asym_root_open(NULL, &live, NULL), 0);
    asym_counters_probe(&live, NULL, &s);
    const struct asym_counters_config config = {.root = &live, .max_fds = 100};
    int r = asym_counters_new(&config, &c, NULL);
    if (r >= 0) {
        r = c->watch(c, &self);
        if (r >= 0)
            assert_int_equal(c->read(c, &self, &counts), 0);
        c->close(c);
    }
    assert_int_equal(r, s.error);
    if (s.error == -ENODEV) {
        /* The files of this machine promise a PMU, but the kernel has none. */
        tree_make(&tree);
        tree_machine(&tree, "0", "0");
        tree_write(&tree, "sys/bus/event_source/devices/cpu/type", "4\n");
        assert_int_equal(asym_root_open(tree.path, &made, NULL), 0);
        made.live = true;
        asym_counters_probe(&made, NULL, &s);
        assert_true(s.error == -ENOENT || s.error == -EACCES || s.error == -ENODEV || s.error == -EOPNOTSUPP ||
                    s.error == -EPERM || s.error == -ENOSYS);
        assert_non_null(strstr(s.text, "cannot count instructions and cycles"));
        asym_root_done(&made);
        tree_remove(&tree);
    }
    asym_root_done(&live);
    assert_int_equal(asym_process_descriptors(getpid()), before);
}

TEST_MAIN
