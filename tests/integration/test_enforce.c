/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ledger, actuator, guard and restorer on live threads, without the service: what steering must not break. Steers only
 * what it started itself. Takes two CPUs; fails in words on one.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macro.h"
#include "base/mask.h"
#include "linux/actuator.h"
#include "linux/births.h"
#include "linux/ledger-internal.h"
#include "linux/ledger-internal.h"
#include "linux/thread.h"
#include "support/live.h"

static char dir[64];
static struct asym_mask whole, first, last; /* what we have, and two CPUs of it */
static struct asym_ledger *ledger;
static struct asym_actuator *actuator;
static struct asym_births *births;

static void open_all(bool guard)
{
    bool realtime;
    struct asym_error err = {""};
    if (asym_ledger_open(dir, &ledger, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(asym_actuator_linux_new(ledger, &actuator), 0);
    if (!guard)
        return;
    if (asym_births_open(&births, &err) < 0)
        fail_msg("these tests need the proc connector: %s", err.text);
    assert_int_equal(asym_births_watch(births, asym_guard_on_birth, ledger, &realtime), 0);
}

static void close_all(void)
{
    if (actuator)
        actuator->close(actuator);
    asym_births_close(births);
    asym_ledger_close(ledger);
    actuator = NULL;
    births = NULL;
    ledger = NULL;
}

static int set_up(void **state)
{
    (void)state;
    setpriority(PRIO_PROCESS, 0, 0); /* tests count from there, and this may run under nice(1) */
    assert_int_equal(asym_thread_get_mask(0, &whole), 0);
    if (asym_mask_count(&whole) < 2)
        fail_msg("these tests need two CPUs, there is one");
    first = last = (struct asym_mask){0};
    ASYM_MASK_FOREACH (c, &whole) {
        last = (struct asym_mask){0};
        asym_mask_set(&last, (unsigned)c);
    }
    asym_mask_set(&first, (unsigned)asym_mask_next(&whole, 0));
    snprintf(dir, sizeof dir, "/tmp/asymd-enforce-XXXXXX");
    assert_non_null(mkdtemp(dir));
    return 0;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    close_all();
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

/* Field 22, which follows the last ')'. Read here anew: the code under test has a reader of its own. */
static struct asym_taskid id_of(pid_t tgid, pid_t tid)
{
    char path[64], text[1024];
    unsigned long long start;
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)tgid, (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    assert_true(n > 0);
    text[n] = '\0';
    const char *after = strrchr(text, ')');
    assert_non_null(after);
    assert_int_equal(
        sscanf(after, ") %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &start), 1);
    return (struct asym_taskid){.tid = tid, .tgid = tgid, .start = start};
}

static struct asym_action action(enum asym_action_kind kind, pid_t tgid, pid_t tid, const struct asym_mask *expect,
                                 const struct asym_mask *mask)
{
    return (struct asym_action){
        .kind = kind, .id = id_of(tgid, tid), .expect = *expect, .mask = *mask, .whole = asym_mask_equal(mask, &whole)};
}

static int apply(const struct asym_action *a)
{
    struct asym_outcome outcome = {.error = 1};
    assert_int_equal(actuator->apply(actuator, a, 1, &outcome), 0);
    assert_int_equal(outcome.verdict, asym_verdict_of(outcome.error));
    return outcome.error;
}

static int steer(pid_t tgid, pid_t tid, const struct asym_mask *expect, const struct asym_mask *mask)
{
    const struct asym_action a = action(ASYM_ACTION_STEER, tgid, tid, expect, mask);
    return apply(&a);
}

static bool has(pid_t tid, const struct asym_mask *mask)
{
    struct asym_mask found;
    assert_int_equal(asym_thread_get_mask(tid, &found), 0);
    return asym_mask_equal(&found, mask);
}

static struct asym_restore_report restore(void)
{
    struct asym_restore_report report;
    assert_int_equal(asym_ledger_restore(ledger, &report), 0);
    assert_int_equal(report.failed, 0);
    assert_int_equal(asym_ledger_count(ledger), 0);
    return report;
}

#define THREADS_MAX 256

/* What a child of ours and we have in common. */
struct shared {
    _Atomic int go, ready, done;
    _Atomic int tids[THREADS_MAX];
    int n_children, narrow, first_narrow, other_nice, failed;
    double forked, whole_again; /* seconds */
};

static struct shared *share(void)
{
    void *p = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    return p;
}

static void await(const _Atomic int *flag, int value)
{
    double end = asym_live_now() + 20;
    while (*flag < value && asym_live_now() < end)
        asym_live_sleep(0.0002);
    assert_true(*flag >= value);
}

/* A process of ours that runs body and ends with us. */
static pid_t start(void (*body)(struct shared *), struct shared *s)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(120);
        body(s);
        _exit(0);
    }
    return pid;
}

static void sleeper(struct shared *s)
{
    s->ready = 1;
    for (;;)
        pause();
}

static pid_t start_sleeper(void)
{
    struct shared *s = share();
    pid_t pid = start(sleeper, s);
    await(&s->ready, 1);
    return pid;
}

static void *report_and_sleep(void *arg)
{
    *(_Atomic int *)arg = (int)gettid();
    for (;;)
        pause();
    return NULL;
}

/* When told to, so many more threads as go says. */
static void grow_threads(struct shared *s)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 65536);
    s->tids[0] = (int)gettid();
    s->ready = 1;
    while (s->go == 0)
        usleep(200);
    for (int i = 1; i < s->go; i++) {
        pthread_t t;
        if (pthread_create(&t, &attr, report_and_sleep, &s->tids[i]) != 0)
            _exit(1);
    }
    for (int i = 1; i < s->go; i++)
        while (s->tids[i] == 0)
            usleep(100);
    s->done = 1;
    for (;;)
        pause();
}

static int cpus_of_self(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) < 0 ? -1 : CPU_COUNT(&set);
}

/* What nproc prints in a child, and the nice value it starts with. */
static int run_nproc(int *ret_cpus, int *ret_nice, double *ret_forked)
{
    int fds[2], status;
    char text[64];
    size_t used = 0;
    if (pipe(fds) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        dprintf(fds[1], "%d ", getpriority(PRIO_PROCESS, 0));
        dup2(fds[1], STDOUT_FILENO);
        close(fds[0]);
        unsetenv("OMP_NUM_THREADS");
        execlp("nproc", "nproc", (char *)NULL);
        _exit(127);
    }
    *ret_forked = asym_live_now();
    close(fds[1]);
    for (ssize_t n; pid > 0 && used < sizeof text - 1 && (n = read(fds[0], text + used, sizeof text - 1 - used)) > 0;)
        used += (size_t)n;
    text[used] = '\0';
    close(fds[0]);
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return -1;
    return sscanf(text, "%d %d", ret_nice, ret_cpus) == 2 ? 0 : -1;
}

static void run_children(struct shared *s)
{
    const int all = cpus_of_self(), own_nice = getpriority(PRIO_PROCESS, 0);
    s->ready = 1;
    while (s->go == 0)
        usleep(200);
    for (int i = 0; i < s->n_children; i++) {
        int cpus, nice;
        double forked;
        if (run_nproc(&cpus, &nice, &forked) < 0) {
            s->failed++;
            continue;
        }
        s->forked = i == 0 ? forked : s->forked;
        s->narrow += cpus < all;
        s->first_narrow |= i == 0 && cpus < all;
        s->other_nice += nice != own_nice;
        if (s->whole_again <= 0 && cpus_of_self() == all)
            s->whole_again = asym_live_now();
    }
    s->done = 1;
    for (;;)
        pause();
}

static void a_foreign_mask_is_not_fought_by_any_action(void **state)
{
    (void)state;
    pid_t pid = start_sleeper();
    open_all(false);
    /* A plan that did not know of it waits; the ledger goes with what ends it. */
    static const struct {
        enum asym_action_kind kind;
        int error;
        size_t left;
    } kinds[] = {{ASYM_ACTION_STEER, -EAGAIN, 1}, {ASYM_ACTION_FORGET, 0, 0}, {ASYM_ACTION_RELEASE, -EBUSY, 0}};
    for (size_t i = 0; i < ASYM_LENGTH(kinds); i++) {
        assert_int_equal(asym_thread_set_mask(pid, &whole, true), 0);
        assert_int_equal(steer(pid, pid, &whole, &first), 0);
        assert_true(has(pid, &first));
        assert_int_equal(asym_thread_set_mask(pid, &last, false), 0);
        const struct asym_action a = action(kinds[i].kind, pid, pid, &first, &whole);
        assert_int_equal(apply(&a), kinds[i].error);
        assert_true(has(pid, &last));
        assert_int_equal(asym_ledger_count(ledger), kinds[i].left);
        restore();
        assert_true(has(pid, &last));
    }
    /* Pinned between the snapshot and the action: never asymd's. */
    assert_int_equal(steer(pid, pid, &whole, &first), -EAGAIN);
    assert_int_equal(asym_ledger_count(ledger), 0);
    assert_true(has(pid, &last));
    assert_int_equal(asym_ledger_count(ledger), 0);
    asym_live_end(pid, SIGKILL);
}

static void a_mask_with_an_offline_cpu_waits(void **state)
{
    (void)state;
    open_all(false);
    pid_t pid = start_sleeper();
    struct asym_mask wider = first;
    /* No machine that runs this has it, and the kernel would cut the mask to the rest without a word. */
    asym_mask_set(&wider, ASYM_MAX_CPUS - 1);
    assert_int_equal(steer(pid, pid, &whole, &wider), -EAGAIN);
    assert_true(has(pid, &whole));
    assert_int_equal(asym_ledger_count(ledger), 0);
    assert_int_equal(steer(pid, pid, &whole, &first), 0);
    assert_int_equal(steer(pid, pid, &first, &wider), -EAGAIN);
    assert_true(has(pid, &first));
    assert_int_equal(restore().restored, 1);
    assert_true(has(pid, &whole));
    asym_live_end(pid, SIGKILL);
}

static void restore_leaves_a_foreign_mask(void **state)
{
    (void)state;
    pid_t pid = start_sleeper();
    open_all(false);
    assert_int_equal(steer(pid, pid, &whole, &first), 0);
    assert_int_equal(asym_thread_set_mask(pid, &last, false), 0);
    const struct asym_restore_report report = restore();
    assert_int_equal(report.foreign, 1);
    assert_int_equal(report.restored + report.heirs, 0);
    assert_true(has(pid, &last));
    asym_live_end(pid, SIGKILL);
}

/* From one CPU by way of the other to both. */
static struct asym_ledger_entry *steer_by_way(pid_t pid)
{
    assert_int_equal(steer(pid, pid, &whole, &first), 0);
    struct asym_action a = action(ASYM_ACTION_STEER, pid, pid, &first, &whole);
    a.via = (uint32_t)asym_mask_next(&last, 0) + 1;
    assert_int_equal(apply(&a), 0);
    struct asym_ledger_entry *e = asym_ledger_find(ledger, pid);
    assert_non_null(e);
    return e;
}

static void spin_on(struct shared *s)
{
    s->ready = 1;
    for (;;)
        ;
}

/*
 * Its mask has the CPU that it is on, too: by itself the kernel leaves it there, as long as nobody else wants that CPU. Where
 * it is now is asked at once, many times, as others may push it about.
 */
static void a_running_thread_is_put_on_the_cpu_on_its_way(void **state)
{
    (void)state;
    struct shared *s = share();
    struct asym_stat stat;
    int there = 0;
    pid_t pid = start(spin_on, s);
    await(&s->ready, 1);
    open_all(false);
    for (int i = 0; i < 20; i++) {
        struct asym_action back = action(ASYM_ACTION_STEER, pid, pid, &whole, &first);
        assert_int_equal(apply(&back), 0);
        steer_by_way(pid);
        assert_int_equal(asym_thread_get_stat(pid, pid, &stat), 0);
        there += stat.cpu == asym_mask_next(&last, 0);
        assert_true(has(pid, &whole));
    }
    assert_in_range(there, 15, 20);
    asym_live_end(pid, SIGKILL);
}

/* What the file says between the two calls, as a kill would leave it. */
static void a_thread_that_was_left_on_its_way_is_given_back_what_it_had(void **state)
{
    (void)state;
    pid_t pid = start_sleeper();
    open_all(false);
    struct asym_ledger_entry *e = steer_by_way(pid);
    e->under_way = true;
    assert_int_equal(asym_ledger_note(ledger, e), 0);
    assert_int_equal(asym_ledger_flush(ledger), 0);
    assert_int_equal(asym_thread_set_mask(pid, &last, false), 0);
    close_all();
    open_all(false);
    const struct asym_restore_report report = restore();
    assert_int_equal(report.restored, 1);
    assert_int_equal(report.foreign, 0);
    assert_true(has(pid, &whole));
    asym_live_end(pid, SIGKILL);
}

static void who_has_arrived_may_choose_the_cpu_of_its_way(void **state)
{
    (void)state;
    for (int again = 0; again <= 1; again++) {
        pid_t pid = start_sleeper();
        open_all(false);
        assert_false(steer_by_way(pid)->under_way);
        assert_int_equal(asym_thread_set_mask(pid, &last, false), 0);
        if (again) {
            close_all();
            open_all(false);
        }
        const struct asym_restore_report report = restore();
        assert_int_equal(report.restored, 0);
        assert_int_equal(report.foreign, 1);
        assert_true(has(pid, &last));
        asym_live_end(pid, SIGKILL);
        close_all();
    }
}

static void a_child_that_is_born_on_the_way_is_repaired_and_a_later_one_is_not(void **state)
{
    (void)state;
    pid_t pid = start_sleeper(), child = start_sleeper();
    open_all(false);
    const struct asym_ledger_entry *e = steer_by_way(pid);
    assert_int_equal(asym_thread_set_mask(child, &last, false), 0);
    assert_false(asym_ledger_looks_inherited(ledger, e, &last, 0, asym_thread_now() + ASYM_SEC));
    assert_int_equal(asym_ledger_repair(ledger, e, child, asym_thread_now() + ASYM_SEC), 0);
    assert_true(has(child, &last));
    assert_int_equal(asym_ledger_repair(ledger, e, child, e->via_until - ASYM_LEDGER_LATE), 1);
    assert_true(has(child, &whole));
    asym_live_end(child, SIGKILL);
    asym_live_end(pid, SIGKILL);
}

static void a_thread_that_is_gone_or_another_ends_in_gone(void **state)
{
    (void)state;
    pid_t pid = start_sleeper();
    open_all(false);
    struct asym_action a = action(ASYM_ACTION_STEER, pid, pid, &whole, &first);
    a.id.start++;
    assert_int_equal(apply(&a), -ESRCH);
    assert_true(has(pid, &whole));
    a.id.start--;
    asym_live_end(pid, SIGKILL);
    assert_int_equal(apply(&a), -ESRCH);
    assert_int_equal(asym_ledger_count(ledger), 0);
}

/* As on a full file system. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_ledger_that_cannot_be_written_changes_no_thread(void **state)
{
    (void)state;
    pid_t pid = start_sleeper();
    open_all(false);
    signal(SIGXFSZ, SIG_IGN);
    const struct asym_action a = action(ASYM_ACTION_STEER, pid, pid, &whole, &first);
    struct asym_outcome outcome = {.verdict = ASYM_VERDICT_GONE, .error = 4711};
    limit_files(10);
    int r = actuator->apply(actuator, &a, 1, &outcome);
    limit_files(RLIM_INFINITY);
    assert_int_equal(r, -EFBIG);
    assert_int_equal(outcome.verdict, ASYM_VERDICT_RETRY);
    assert_int_equal(outcome.error, -EFBIG);
    assert_true(has(pid, &whole));
    assert_int_equal(apply(&a), 0);
    assert_true(has(pid, &first));
    /* What gives back waits for no record. */
    pid_t other = start_sleeper();
    const struct asym_action both[] = {action(ASYM_ACTION_STEER, other, other, &whole, &first),
                                       action(ASYM_ACTION_RELEASE, pid, pid, &first, &whole)};
    struct asym_outcome outcomes[2];
    limit_files(10);
    r = actuator->apply(actuator, both, 2, outcomes);
    limit_files(RLIM_INFINITY);
    assert_int_equal(r, -EFBIG);
    assert_int_equal(outcomes[0].verdict, ASYM_VERDICT_RETRY);
    assert_int_equal(outcomes[1].verdict, ASYM_VERDICT_DONE);
    assert_true(has(pid, &whole) && has(other, &whole));
    asym_live_end(other, SIGKILL);
    assert_int_equal(apply(&a), 0);
    assert_true(has(pid, &first));
    assert_int_equal(restore().restored, 1);
    assert_true(has(pid, &whole));
    asym_live_end(pid, SIGKILL);
}

struct attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
    uint32_t util_min, util_max;
};

static struct attr attr_of(pid_t tid)
{
    struct attr a;
    memset(&a, 0, sizeof a);
    assert_int_equal(syscall(SYS_sched_getattr, tid, &a, (unsigned)sizeof a, 0u), 0);
    return a;
}

static void boost(pid_t pid, int8_t from, int8_t to)
{
    struct asym_action a = action(ASYM_ACTION_STEER, pid, pid, &whole, &first);
    a.expect_nice = from;
    a.nice = to;
    assert_int_equal(apply(&a), 0);
    const struct attr now = attr_of(pid);
    assert_int_equal(now.nice, to);
    assert_int_equal(now.flags & 1, 1);
}

static void a_boost_is_taken_back_bit_for_bit(void **state)
{
    (void)state;
    static const struct attr originals[] = {
        {.policy = SCHED_OTHER},
        {.policy = SCHED_OTHER, .nice = 5},
        {.policy = SCHED_OTHER, .nice = -3, .flags = 1},
        {.policy = SCHED_BATCH, .nice = 5, .flags = 1},
        {.policy = SCHED_OTHER, .nice = 5, .runtime = 7000000},
    };
    open_all(false);
    for (size_t i = 0; i < 2 * ASYM_LENGTH(originals); i++) {
        struct attr want = originals[i / 2];
        pid_t pid = start_sleeper();
        want.size = sizeof want;
        assert_int_equal(syscall(SYS_sched_setattr, pid, &want, 0u), 0);
        const struct attr before = attr_of(pid);
        boost(pid, (int8_t)before.nice, -7);
        struct asym_action a = action(ASYM_ACTION_RELEASE, pid, pid, &first, &whole);
        a.expect_nice = -7;
        a.nice = (int8_t)before.nice;
        if (i % 2 == 0)
            assert_int_equal(apply(&a), 0);
        else
            assert_int_equal(restore().restored, 1);
        const struct attr after = attr_of(pid);
        assert_memory_equal(&after, &before, sizeof after);
        assert_true(has(pid, &whole));
        assert_int_equal(asym_ledger_count(ledger), 0);
        asym_live_end(pid, SIGKILL);
    }
}

/* A thread that was boosted from original to -7 is found with now, and has then after its release. */
static const struct {
    int8_t original, now, then;
} renices[] = {
    {0, 11, 11},  /* its own choice */
    {0, 1, 1},    /* likewise */
    {0, -6, 0},   /* raised by itself from what it was lent */
    {0, -1, 0},   /* likewise */
    {-3, -4, -3}, /* likewise */
    {5, 0, 5},    /* likewise */
    {5, 6, 6},    /* its own choice */
    {0, -8, -8},  /* not without the right to it */
};

static void a_nice_value_that_a_boost_has_made_possible_goes_back_and_no_other(void **state)
{
    (void)state;
    open_all(false);
    for (size_t i = 0; i < 2 * ASYM_LENGTH(renices); i++) {
        const int8_t original = renices[i / 2].original, then = renices[i / 2].then;
        pid_t pid = start_sleeper();
        assert_int_equal(setpriority(PRIO_PROCESS, (id_t)pid, original), 0);
        boost(pid, original, -7);
        assert_int_equal(setpriority(PRIO_PROCESS, (id_t)pid, renices[i / 2].now), 0);
        struct asym_action a = action(ASYM_ACTION_RELEASE, pid, pid, &first, &whole);
        a.expect_nice = -7;
        a.nice = original;
        if (i % 2)
            assert_int_equal(restore().foreign, then != original);
        else
            assert_int_equal(apply(&a), then == original ? 0 : -EBUSY);
        assert_int_equal(attr_of(pid).nice, then);
        assert_int_equal(attr_of(pid).flags, 0);
        assert_true(has(pid, &whole));
        assert_int_equal(asym_ledger_count(ledger), 0);
        asym_live_end(pid, SIGKILL);
    }
}

/* The core asks for this when it has seen such a value: the mask stays. */
static void a_steered_thread_gives_a_raised_boost_back_and_keeps_its_mask(void **state)
{
    (void)state;
    open_all(false);
    pid_t pid = start_sleeper();
    boost(pid, 0, -7);
    assert_int_equal(setpriority(PRIO_PROCESS, (id_t)pid, -6), 0);
    struct asym_action a = action(ASYM_ACTION_STEER, pid, pid, &first, &first);
    a.expect_nice = -6;
    assert_int_equal(setpriority(PRIO_PROCESS, (id_t)pid, -5), 0);
    assert_int_equal(apply(&a), 0);
    assert_int_equal(attr_of(pid).nice, 0);
    assert_int_equal(attr_of(pid).flags, 0);
    assert_true(has(pid, &first));
    assert_int_equal(restore().restored, 1);
    asym_live_end(pid, SIGKILL);
}

static struct attr policy_attr(uint32_t policy, uint64_t flags)
{
    return (struct attr){.size = sizeof(struct attr),
                         .policy = policy,
                         .flags = flags,
                         .nice = -7,
                         .priority = policy == SCHED_FIFO || policy == SCHED_RR ? 1 : 0};
}

/* The kernel keeps the nice value of a thread that becomes real-time, and gives it back to it afterwards. */
static void a_boost_does_not_outlive_a_time_under_another_policy(void **state)
{
    (void)state;
    static const uint32_t policies[] = {SCHED_FIFO, SCHED_RR, SCHED_IDLE, SCHED_BATCH};
    open_all(false);
    for (size_t i = 0; i < ASYM_LENGTH(policies); i++) {
        const bool realtime = policies[i] == SCHED_FIFO || policies[i] == SCHED_RR;
        struct sched_param none = {.sched_priority = 0};
        pid_t pid = start_sleeper();
        boost(pid, 0, -7);
        struct attr other = policy_attr(policies[i], 1);
        assert_int_equal(syscall(SYS_sched_setattr, pid, &other, 0u), 0);
        assert_int_equal(restore().restored, 1);
        assert_int_equal(attr_of(pid).policy, policies[i]);
        /* The flag of a real-time thread belongs to its policy. */
        assert_int_equal(attr_of(pid).flags & 1, realtime);
        assert_int_equal(sched_setscheduler(pid, SCHED_OTHER, &none), 0);
        assert_int_equal(attr_of(pid).nice, 0);
        asym_live_end(pid, SIGKILL);
    }
}

/* It did so between the look and the repair: what it inherited beside the mask is given back all the same. */
static void an_heir_that_pins_itself_keeps_its_mask_and_nothing_else(void **state)
{
    (void)state;
    open_all(false);
    static const struct {
        int8_t now, own, then;
    } nices[] = {{7, 0, 0}, {-7, 0, 0}, {11, 0, 11}, {0, 0, 0}};
    for (size_t i = 0; i < ASYM_LENGTH(nices); i++) {
        pid_t pid = start_sleeper();
        assert_int_equal(setpriority(PRIO_PROCESS, (id_t)pid, nices[i].now), 0);
        assert_int_equal(asym_thread_set_mask(pid, &last, false), 0);
        struct asym_action a = action(ASYM_ACTION_REPAIR, pid, pid, &first, &whole);
        a.expect_nice = nices[i].now == 11 ? 7 : nices[i].now;
        a.nice = nices[i].own;
        /* Not for good: what the next look finds is its own choice, which it may take back. */
        assert_int_equal(apply(&a), -EAGAIN);
        assert_true(has(pid, &last));
        assert_int_equal(attr_of(pid).nice, nices[i].then);
        assert_int_equal(asym_thread_set_mask(pid, &first, false), 0);
        assert_int_equal(apply(&a), 0);
        assert_true(has(pid, &whole));
        asym_live_end(pid, SIGKILL);
    }
}

static bool narrow_threads(const struct shared *s, int n)
{
    for (int i = 1; i < n; i++)
        if (!has(s->tids[i], &whole))
            return true;
    return false;
}

static void new_threads_of_a_steered_one_get_the_original_mask(void **state)
{
    (void)state;
    struct shared *s = share();
    pid_t pid = start(grow_threads, s);
    await(&s->ready, 1);
    open_all(true);
    assert_int_equal(steer(pid, pid, &whole, &first), 0);
    s->go = 101;
    await(&s->done, 1);
    double end = asym_live_now() + 5;
    while (narrow_threads(s, 101) && asym_live_now() < end)
        asym_live_sleep(0.001);
    assert_false(narrow_threads(s, 101));
    assert_true(has(pid, &first));
    assert_int_equal(asym_ledger_count(ledger), 1);
    asym_live_end(pid, SIGKILL);
}

/* Item 1 of what steering must not break. Boosted too, from a nice value of its own. */
static void at_most_the_first_of_1000_children_sees_fewer_cpus(void **state)
{
    (void)state;
    struct shared *s = share();
    s->n_children = 1000;
    pid_t pid = start(run_children, s);
    await(&s->ready, 1);
    open_all(true);
    boost(pid, 0, -7);
    s->go = 1;
    double end = asym_live_now() + 60;
    while (!s->done && asym_live_now() < end)
        asym_live_sleep(0.01);
    assert_int_equal(s->done, 1);
    print_message("1,000 children: %d narrow (first: %d), %d with another nice; own mask whole %.1f ms after the first "
                  "fork\n",
                  s->narrow, s->first_narrow, s->other_nice, (s->whole_again - s->forked) * 1e3);
    assert_int_equal(s->failed, 0);
    assert_int_equal(s->narrow, s->first_narrow);
    assert_int_equal(s->other_nice, 0);
    assert_true(s->whole_again > 0 && s->whole_again - s->forked <= 0.1);
    assert_true(has(pid, &whole));
    assert_int_equal(attr_of(pid).nice, 0);
    assert_int_equal(asym_ledger_count(ledger), 0);
    asym_live_end(pid, SIGKILL);
}

static int first_children_narrow(int processes)
{
    int narrow = 0;
    for (int i = 0; i < processes; i++) {
        struct shared *s = share();
        s->n_children = 1;
        pid_t pid = start(run_children, s);
        await(&s->ready, 1);
        /* It has just been born of us, which is a release of our process, not of its. */
        assert_int_equal(steer(pid, pid, &whole, &first), 0);
        s->go = 1;
        await(&s->done, 1);
        assert_int_equal(s->failed, 0);
        narrow += s->first_narrow;
        asym_live_end(pid, SIGKILL);
        munmap(s, sizeof *s);
    }
    return narrow;
}

#define BURST 20

/* Twenty children at once and a child of each, before anybody could have looked at the first event. */
static void fork_in_a_burst(struct shared *s)
{
    s->ready = 1;
    while (s->go == 0)
        usleep(200);
    for (int i = 0; i < BURST; i++) {
        if (fork() != 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pid_t grandchild = fork();
        if (grandchild == 0)
            prctl(PR_SET_PDEATHSIG, SIGKILL);
        s->tids[2 * i + (grandchild == 0)] = (int)getpid();
        s->done++;
        for (;;)
            pause();
    }
    for (;;)
        pause();
}

static int narrow_of_burst(const struct shared *s)
{
    int n = 0;
    for (int i = 0; i < 2 * BURST; i++)
        n += !has(s->tids[i], &whole);
    return n;
}

static void children_and_grandchildren_of_a_burst_are_all_repaired(void **state)
{
    (void)state;
    open_all(true);
    for (int round = 0; round < 20; round++) {
        struct shared *s = share();
        pid_t pid = start(fork_in_a_burst, s);
        await(&s->ready, 1);
        assert_int_equal(steer(pid, pid, &whole, &first), 0);
        s->go = 1;
        await(&s->done, 2 * BURST);
        double end = asym_live_now() + 2;
        while (narrow_of_burst(s) > 0 && asym_live_now() < end)
            asym_live_sleep(0.001);
        if (narrow_of_burst(s) > 0)
            fail_msg("round %d: %d of %d stay narrow", round, narrow_of_burst(s), 2 * BURST);
        assert_true(has(pid, &whole));
        asym_live_end(pid, SIGKILL);
        munmap(s, sizeof *s);
    }
}

/* How often the first child loses the race is a figure to know, not a promise. */
static void first_children_of_200_processes_idle_and_loaded(void **state)
{
    (void)state;
    open_all(true);
    int idle = first_children_narrow(200);
    const char *const argv[] = {"tests/load-spin", "4", "120", NULL};
    pid_t load = asym_live_start(argv, -1);
    int loaded = first_children_narrow(200);
    asym_live_end(load, SIGKILL);
    print_message("first children that saw fewer CPUs, of 200: %d idle, %d with four spinning threads\n", idle, loaded);
}

static void what_the_guard_has_released_may_be_asked_again(void **state)
{
    (void)state;
    struct shared *s = share();
    s->n_children = 1;
    pid_t pid = start(run_children, s);
    await(&s->ready, 1);
    open_all(true);
    assert_int_equal(steer(pid, pid, &whole, &first), 0);
    s->go = 1;
    await(&s->done, 1);
    double end = asym_live_now() + 5;
    while (asym_ledger_count(ledger) > 0 && asym_live_now() < end)
        asym_live_sleep(0.001);
    /* What a plan made before the fork still asks for. */
    assert_int_equal(steer(pid, pid, &first, &last), -EAGAIN);
    assert_int_equal(steer(pid, pid, &whole, &last), -EAGAIN);
    assert_true(has(pid, &whole));
    const struct asym_action a = action(ASYM_ACTION_RELEASE, pid, pid, &first, &whole);
    assert_int_equal(apply(&a), 0);
    asym_live_sleep(1.1);
    assert_int_equal(steer(pid, pid, &whole, &last), 0);
    assert_int_equal(restore().restored, 1);
    assert_true(has(pid, &whole));
    asym_live_end(pid, SIGKILL);
}

static void *exec_sleep(void *arg)
{
    (void)arg;
    execlp("sleep", "sleep", "100", (char *)NULL);
    _exit(127);
}

static void *exec_when_told(void *arg)
{
    struct shared *s = arg;
    s->tids[1] = (int)gettid();
    s->ready = 1;
    while (s->go == 0)
        usleep(200);
    return exec_sleep(NULL);
}

static void exec_from_a_thread(struct shared *s)
{
    pthread_t t;
    if (pthread_create(&t, NULL, exec_when_told, s) == 0)
        pthread_join(t, NULL);
}

static void a_new_image_gets_the_original_mask(void **state)
{
    (void)state;
    struct shared *s = share();
    pid_t pid = start(exec_from_a_thread, s);
    await(&s->ready, 1);
    open_all(true);
    /* The thread that calls exec takes the leader's number with it, and its own mask. */
    assert_int_equal(steer(pid, s->tids[1], &whole, &first), 0);
    s->go = 1;
    double end = asym_live_now() + 5;
    while ((asym_ledger_count(ledger) > 0 || !has(pid, &whole)) && asym_live_now() < end)
        asym_live_sleep(0.001);
    assert_int_equal(asym_ledger_count(ledger), 0);
    assert_true(has(pid, &whole));
    asym_live_end(pid, SIGKILL);
}

static void fork_when_told(struct shared *s)
{
    s->ready = 1;
    while (s->go == 0)
        usleep(200);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sleeper(s);
    }
    s->tids[1] = (int)pid;
    s->done = 1;
    for (;;)
        pause();
}

/* No guard here: as after a kill of asymd, or where there are no events. */
static void restore_finds_heirs_and_takes_no_other_for_one(void **state)
{
    (void)state;
    struct shared *s = share();
    pid_t before = start_sleeper(), pid = start(fork_when_told, s);
    await(&s->ready, 1);
    assert_int_equal(asym_thread_set_mask(before, &first, false), 0);
    open_all(false);
    assert_int_equal(steer(pid, pid, &whole, &first), 0);
    s->go = 1;
    await(&s->done, 1);
    pid_t heir = s->tids[1], beside = start_sleeper();
    assert_int_equal(asym_thread_set_mask(beside, &first, false), 0);
    assert_true(has(heir, &first));
    const struct asym_restore_report report = restore();
    assert_int_equal(report.restored, 1);
    assert_int_equal(report.heirs, 1);
    assert_true(has(heir, &whole));
    assert_true(has(before, &first)); /* pinned before the steering, by itself */
    assert_true(has(beside, &first)); /* pinned after it, by whoever started it */
    asym_live_end(pid, SIGKILL);
    asym_live_end(before, SIGKILL);
    asym_live_end(beside, SIGKILL);
}

#define VICTIMS 200

static struct asym_taskid victims[VICTIMS];

static int8_t nice_of_victim(int i)
{
    return i % 2 ? 5 : 0;
}

static void all_to(enum asym_action_kind kind, const struct asym_mask *from, const struct asym_mask *to, bool was,
                   bool is)
{
    static struct asym_action actions[VICTIMS];
    static struct asym_outcome outcomes[VICTIMS];
    for (int i = 0; i < VICTIMS; i++) {
        const bool boosted = i % 3 == 0;
        actions[i] = (struct asym_action){
            .kind = kind,
            .id = victims[i],
            .expect = *from,
            .mask = *to,
            .via = to == &whole ? (uint32_t)asym_mask_next(&last, 0) + 1 : 0,
            .expect_nice = was && boosted ? -7 : nice_of_victim(i),
            .nice = is && boosted ? -7 : nice_of_victim(i),
            .whole = kind == ASYM_ACTION_RELEASE,
        };
    }
    if (actuator->apply(actuator, actions, VICTIMS, outcomes) < 0)
        _exit(3);
    for (int i = 0; i < VICTIMS; i++)
        if (outcomes[i].error != 0)
            _exit(4);
}

/* Back and forth until it is killed; anything that fails ends it, which the test sees. */
static void steer_without_end(struct shared *s)
{
    open_all(false);
    for (;;) {
        all_to(ASYM_ACTION_STEER, &whole, &first, false, true);
        s->ready = 1;
        all_to(ASYM_ACTION_STEER, &first, &last, true, false);
        all_to(ASYM_ACTION_STEER, &last, &first, false, true);
        /* by way of a CPU that is neither's */
        all_to(ASYM_ACTION_STEER, &first, &whole, true, true);
        all_to(ASYM_ACTION_RELEASE, &whole, &whole, true, false);
    }
}

/* Seeded, so that a failure can be had again. */
static double random_share(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*seed >> 40) / (double)(1 << 24);
}

static int count_steered(void)
{
    int n = 0;
    for (int i = 0; i < VICTIMS; i++)
        n += !has(victims[i].tid, &whole);
    return n;
}

static void kill_9_at_100_moments_leaves_no_thread_steered(void **state)
{
    (void)state;
    struct shared *s = share();
    uint64_t seed = 2010;
    size_t steered = 0, rounds = 0, restored = 0;
    pid_t pid = start(grow_threads, s);
    await(&s->ready, 1);
    s->go = VICTIMS;
    await(&s->done, 1);
    for (int i = 0; i < VICTIMS; i++) {
        victims[i] = id_of(pid, s->tids[i]);
        assert_int_equal(setpriority(PRIO_PROCESS, (id_t)s->tids[i], nice_of_victim(i)), 0);
    }
    for (int round = 0; round < 100; round++) {
        struct shared *t = share();
        pid_t steerer = start(steer_without_end, t);
        await(&t->ready, 1);
        asym_live_sleep(0.02 * random_share(&seed));
        asym_live_signal(steerer, SIGKILL);
        assert_int_equal(asym_live_wait(steerer), 128 + SIGKILL);
        int n = count_steered();
        steered += (size_t)n;
        rounds += n > 0;
        open_all(false);
        restored += restore().restored;
        for (int i = 0; i < VICTIMS; i++) {
            const struct attr now = attr_of(victims[i].tid);
            if (!has(victims[i].tid, &whole) || now.nice != nice_of_victim(i) || now.flags != 0)
                fail_msg("round %d, thread %d: nice %d, flags %llu", round, i, now.nice, (unsigned long long)now.flags);
        }
        close_all();
        munmap(t, sizeof *t);
    }
    print_message(
        "100 kills: threads steered in %zu of them, %zu of 200 on average, %zu restored in all; none was left\n",
        rounds, steered / 100, restored);
    assert_true(rounds >= 20);
    asym_live_end(pid, SIGKILL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        ROW(a_foreign_mask_is_not_fought_by_any_action),
        ROW(a_mask_with_an_offline_cpu_waits),
        ROW(restore_leaves_a_foreign_mask),
        ROW(a_running_thread_is_put_on_the_cpu_on_its_way),
        ROW(a_thread_that_was_left_on_its_way_is_given_back_what_it_had),
        ROW(who_has_arrived_may_choose_the_cpu_of_its_way),
        ROW(a_child_that_is_born_on_the_way_is_repaired_and_a_later_one_is_not),
        ROW(a_thread_that_is_gone_or_another_ends_in_gone),
        ROW(a_ledger_that_cannot_be_written_changes_no_thread),
        ROW(a_boost_is_taken_back_bit_for_bit),
        ROW(a_nice_value_that_a_boost_has_made_possible_goes_back_and_no_other),
        ROW(a_steered_thread_gives_a_raised_boost_back_and_keeps_its_mask),
        ROW(a_boost_does_not_outlive_a_time_under_another_policy),
        ROW(an_heir_that_pins_itself_keeps_its_mask_and_nothing_else),
        ROW(new_threads_of_a_steered_one_get_the_original_mask),
        ROW(at_most_the_first_of_1000_children_sees_fewer_cpus),
        ROW(children_and_grandchildren_of_a_burst_are_all_repaired),
        ROW(what_the_guard_has_released_may_be_asked_again),
        ROW(a_new_image_gets_the_original_mask),
        ROW(restore_finds_heirs_and_takes_no_other_for_one),
        ROW(kill_9_at_100_moments_leaves_no_thread_steered),
        ROW(first_children_of_200_processes_idle_and_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
