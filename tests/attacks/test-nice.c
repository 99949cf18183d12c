/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A boosted thread raises its nice value by one, which every thread may do. asymd has never set the new value. The thread
 * must not keep it and its children must not have it: while asymd runs, and after a kill -9. The test needs root, because a
 * boost does.
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "linux/sys/thread.h"
#include "support/live.h"
#include "support/process.h"
#include "support/service.h"
#include "support/stranger.h"
#include "support/test.h"

#define SECONDS 20

struct shared {
    atomic_int go; /* the victim raises its value as soon as it is boosted */
    atomic_int raised, to;
    atomic_int fork_now, child;
};

static struct shared *shared;
static int own; /* nice value of the test, which the victim inherits */

static int set_up(void **state)
{
    const int r = asym_thread_may_boost();
    if (r < 0)
        fail_msg("asym_thread_may_boost: %s (run as root)", strerror(-r));
    own = getpriority(PRIO_PROCESS, 0);
    shared = asym_live_share(sizeof *shared);
    return asym_service_set_up(state);
}

static void work(void *arg)
{
    for (;;) {
        for (volatile int i = 0; i < 100000; i++)
            ;
        const int nice = getpriority(PRIO_PROCESS, 0);
        if (shared->go && !shared->raised && nice < own - 1 && setpriority(PRIO_PROCESS, 0, nice + 1) == 0) {
            shared->to = nice + 1;
            shared->raised = 1;
        }
        if (shared->fork_now && !shared->child) {
            pid_t pid = asym_process_fork();
            if (pid == 0)
                for (;;)
                    pause();
            shared->child = (int)pid;
        }
    }
}

static void fail_of(const char *what, pid_t process)
{
    asym_process_explain(process);
    fail_msg("%s in %d s", what, SECONDS);
}

static pid_t boost(pid_t victim)
{
    static const char *const more[] = {"--policy=serial-first", "--set=policy.serial-first.serial_boost=-5", NULL};
    pid_t asymd = asym_service_start(victim, more);
    for (double end = asym_live_now() + SECONDS; getpriority(PRIO_PROCESS, (id_t)victim) >= own;) {
        if (asym_live_now() >= end)
            fail_of("asymd has not boosted the victim", asymd);
        asym_live_sleep(0.005);
    }
    return asymd;
}

/* what: the message if the flag stays unset. */
static void await(const atomic_int *flag, const char *what, pid_t process)
{
    for (double end = asym_live_now() + SECONDS; *flag == 0; asym_live_sleep(0.005))
        if (asym_live_now() >= end)
            fail_of(what, process);
}

static struct asym_thread_sched sched_of(pid_t pid)
{
    struct asym_thread_sched s;
    assert_int_equal(asym_thread_get_sched(pid, &s), 0);
    return s;
}

/* Victim and child have the original nice value and no reset-on-fork. */
static void assert_nothing_was_gained(pid_t victim)
{
    shared->fork_now = 1;
    await(&shared->child, "the victim has made no child", victim);
    const struct asym_thread_sched s = sched_of(victim), child = sched_of(shared->child);
    print_message("lent -5, raised to %d: it has %d, reset-on-fork %d; its child has %d\n", shared->to, s.nice,
                  s.reset_on_fork, child.nice);
    assert_int_equal(s.nice, own);
    assert_false(s.reset_on_fork);
    assert_int_equal(child.nice, own);
    asym_live_end(victim, SIGKILL);
}

TEST_WITH(while_asymd_runs_it_is_taken_back, set_up, asym_service_tear_down)
{
    pid_t victim = asym_stranger_start(work, NULL), asymd = boost(victim);
    shared->go = 1;
    await(&shared->raised, "the victim has not raised its nice value", victim);
    for (double end = asym_live_now() + SECONDS; sched_of(victim).nice < own && asym_live_now() < end;)
        asym_live_sleep(0.01);
    assert_int_equal(sched_of(victim).nice, own);
    /* asymd does not boost it again. */
    for (double end = asym_live_now() + 1; asym_live_now() < end; asym_live_sleep(0.01))
        assert_int_equal(sched_of(victim).nice, own);
    asym_live_end(asymd, SIGTERM);
    assert_nothing_was_gained(victim);
}

TEST_WITH(after_a_kill_restore_takes_it_back, set_up, asym_service_tear_down)
{
    char text[512];
    pid_t victim = asym_stranger_start(work, NULL), asymd = boost(victim);
    asym_live_signal(asymd, SIGSTOP);
    shared->go = 1;
    await(&shared->raised, "the victim has not raised its nice value", victim);
    asym_live_end(asymd, SIGKILL);
    assert_int_equal(asym_service_restore(text, sizeof text), 0);
    assert_nothing_was_gained(victim);
}

TEST_MAIN
