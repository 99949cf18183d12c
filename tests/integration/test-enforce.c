/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ledger, actuator, fork guard and restorer on live threads, without the service: what steering must not break. The test steers
 * only processes that it started itself. It needs two CPUs, and fails with a message on one.
 */
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#include "base/mask.h"
#include "linux/enforce/enforce.h"
#include "linux/observe/process-events.h"
#include "linux/sys/thread.h"
#include "support/live.h"
#include "support/process.h"
#include "support/steered.h"
#include "support/test.h"

static struct asym_process_events *process_events;

static void open_guarded_ledger(void)
{
    bool realtime;
    struct asym_error err = {""};
    open_ledger();
    if (asym_process_events_open(&process_events, &err) < 0)
        fail_msg("these tests need the proc connector: %s", err.text);
    assert_int_equal(asym_process_events_watch(process_events, asym_fork_guard_on_event, ledger, &realtime), 0);
    /* Forks of other programs on this machine use the fork guard's budget, too. A fork guard without budget is late. */
    asym_process_events_limit(process_events, 100);
}

static int tear_down(void **state)
{
    asym_process_events_close(process_events);
    process_events = NULL;
    return steered_tear_down(state);
}

#define BURST 20

/* Memory that the test shares with a child. */
struct shared {
    _Atomic int go, ready, done;
    _Atomic int tids[2 * BURST];
};

/* Starts a process that runs body and ends with the test. */
static pid_t start(void (*body)(struct shared *), struct shared *s)
{
    pid_t pid = asym_process_fork();
    if (pid == 0) {
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
    struct shared *s = asym_live_share(sizeof(struct shared));
    pid_t pid = start(sleeper, s);
    await(&s->ready, 1);
    return pid;
}

static void spin_on(struct shared *s)
{
    s->ready = 1;
    for (;;)
        ;
}

/*
 * The new mask also contains the CPU that the thread is on. The kernel alone leaves the thread there while no other thread
 * wants that CPU. The test reads the CPU at once, and many times, because other threads may push this one away.
 */
TEST_WITH(a_running_thread_is_moved_by_its_transit_cpu, steered_set_up, tear_down)
{
    struct shared *s = asym_live_share(sizeof(struct shared));
    struct asym_stat stat;
    int there = 0;
    pid_t pid = start(spin_on, s);
    await(&s->ready, 1);
    open_ledger();
    for (int i = 0; i < 20; i++) {
        struct asym_action back = action(ASYM_ACTION_STEER, pid, pid, &all_cpus, &first);
        assert_int_equal(apply(&back), 0);
        /* Steers from one CPU via the other to both. */
        assert_int_equal(steer(pid, pid, &all_cpus, &first), 0);
        struct asym_action a = action(ASYM_ACTION_STEER, pid, pid, &first, &all_cpus);
        a.transit_cpu = (uint32_t)asym_mask_next(&last, 0) + 1;
        assert_int_equal(apply(&a), 0);
        assert_int_equal(asym_thread_get_stat(pid, pid, &stat), 0);
        there += stat.cpu == asym_mask_next(&last, 0);
        assert_true(has(pid, &all_cpus));
    }
    assert_in_range(there, 15, 20);
    asym_live_end(pid, SIGKILL);
}

static struct asym_process_attr attr_of(pid_t tid)
{
    struct asym_process_attr a;
    memset(&a, 0, sizeof a);
    assert_int_equal(syscall(SYS_sched_getattr, tid, &a, (unsigned)sizeof a, 0u), 0);
    return a;
}

static void boost(pid_t pid, int8_t from, int8_t to)
{
    struct asym_action a = action(ASYM_ACTION_STEER, pid, pid, &all_cpus, &first);
    a.expect_nice = from;
    a.nice = to;
    assert_int_equal(apply(&a), 0);
    const struct asym_process_attr now = attr_of(pid);
    assert_int_equal(now.nice, to);
    assert_int_equal(now.flags & 1, 1);
}

TEST_WITH(a_boost_is_taken_back_bit_for_bit, steered_set_up, tear_down)
{
    static const struct asym_process_attr originals[] = {
        {.policy = SCHED_OTHER},
        {.policy = SCHED_OTHER, .nice = 5},
        {.policy = SCHED_OTHER, .nice = -3, .flags = 1},
        {.policy = SCHED_BATCH, .nice = 5, .flags = 1},
        {.policy = SCHED_OTHER, .nice = 5, .runtime = 7000000},
    };
    open_ledger();
    for (size_t i = 0; i < 2 * ASYM_LENGTH(originals); i++) {
        struct asym_process_attr want = originals[i / 2];
        pid_t pid = start_sleeper();
        want.size = sizeof want;
        assert_int_equal(syscall(SYS_sched_setattr, pid, &want, 0u), 0);
        const struct asym_process_attr before = attr_of(pid);
        boost(pid, (int8_t)before.nice, -7);
        struct asym_action a = action(ASYM_ACTION_RELEASE, pid, pid, &first, &all_cpus);
        a.expect_nice = -7;
        a.nice = (int8_t)before.nice;
        if (i % 2 == 0)
            assert_int_equal(apply(&a), 0);
        else
            assert_int_equal(restore().restored, 1);
        const struct asym_process_attr after = attr_of(pid);
        assert_memory_equal(&after, &before, sizeof after);
        assert_true(has(pid, &all_cpus));
        assert_int_equal(asym_ledger_count(ledger), 0);
        asym_live_end(pid, SIGKILL);
    }
}

static struct asym_process_attr policy_attr(uint32_t policy, uint64_t flags)
{
    return (struct asym_process_attr){.size = sizeof(struct asym_process_attr),
                                      .policy = policy,
                                      .flags = flags,
                                      .nice = -7,
                                      .priority = policy == SCHED_FIFO || policy == SCHED_RR ? 1 : 0};
}

/* The kernel keeps the nice value of a thread that becomes real-time, and restores it afterwards. */
TEST_WITH(a_boost_does_not_outlive_a_time_under_another_policy, steered_set_up, tear_down)
{
    static const uint32_t policies[] = {SCHED_FIFO, SCHED_RR, SCHED_IDLE, SCHED_BATCH};
    open_ledger();
    for (size_t i = 0; i < ASYM_LENGTH(policies); i++) {
        const bool realtime = policies[i] == SCHED_FIFO || policies[i] == SCHED_RR;
        struct sched_param none = {.sched_priority = 0};
        pid_t pid = start_sleeper();
        boost(pid, 0, -7);
        struct asym_process_attr other = policy_attr(policies[i], 1);
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

/* Twenty children at once and a child of each, before asymd can read the first event. */
static void fork_in_a_burst(struct shared *s)
{
    s->ready = 1;
    while (s->go == 0)
        usleep(200);
    for (int i = 0; i < BURST; i++) {
        if (asym_process_fork() != 0)
            continue;
        pid_t grandchild = asym_process_fork();
        if (grandchild == 0)
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
        n += !has(s->tids[i], &all_cpus);
    return n;
}

TEST_WITH(children_and_grandchildren_of_a_burst_are_all_repaired, steered_set_up, tear_down)
{
    open_guarded_ledger();
    for (int round = 0; round < 20; round++) {
        struct shared *s = asym_live_share(sizeof(struct shared));
        pid_t pid = start(fork_in_a_burst, s);
        await(&s->ready, 1);
        assert_int_equal(steer(pid, pid, &all_cpus, &first), 0);
        s->go = 1;
        await(&s->done, 2 * BURST);
        ASYM_LIVE_AWAIT(narrow_of_burst(s) == 0);
        if (narrow_of_burst(s) > 0)
            fail_msg("round %d: %d of %d stay narrow", round, narrow_of_burst(s), 2 * BURST);
        assert_true(has(pid, &all_cpus));
        asym_live_end(pid, SIGKILL);
    }
}

TEST_MAIN
