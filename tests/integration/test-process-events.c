/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The proc connector: the subscription, other subscribers, overflow, and the error where it is not available. */
#include <sched.h>
#include <sys/wait.h>

#include "linux/observe/process-events.h"
#include "support/live.h"
#include "support/process.h"
#include "support/test.h"

struct tally {
    int32_t parent, child; /* the test counts their events only */
    int born, threads, execs, exits, lost;
    asym_usec last;
    bool backwards;
};

static void count(void *ctx, const struct asym_process_event *event)
{
    struct tally *t = ctx;
    t->lost += event->kind == ASYM_PROCESS_EVENT_LOST;
    if (event->kind == ASYM_PROCESS_EVENT_FORK && event->parent_tgid == t->parent) {
        t->born++;
        t->child = event->pid;
        assert_true(event->parent_pid == t->parent && event->pid == event->tgid);
    }
    t->threads += event->kind == ASYM_PROCESS_EVENT_CLONE && event->tgid == t->parent;
    t->execs += event->kind == ASYM_PROCESS_EVENT_EXEC && event->pid == t->child;
    t->exits += event->kind == ASYM_PROCESS_EVENT_EXIT && event->pid == t->child;
    t->backwards |= event->when == 0;
    t->last = event->when;
}

static struct asym_process_events *open_it(void)
{
    struct asym_process_events *b;
    struct asym_error err;
    if (asym_process_events_open(&b, &err) < 0)
        fail_msg("this test needs the proc connector: %s", err.text);
    return b;
}

static void run_true(void)
{
    pid_t pid = asym_process_fork();
    if (pid == 0) {
        execlp("true", "true", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(asym_live_wait(pid), 0);
}

static void drain_until_exit(struct asym_process_events *b, struct tally *t)
{
    double end = asym_live_now() + ASYM_LIVE_PATIENCE;
    while (t->exits == 0 && asym_live_now() < end) {
        assert_true(asym_process_events_drain(b, count, t) >= 0);
        asym_live_sleep(0.001);
    }
}

TEST(events_of_a_process_come_in_order_with_monotonic_times)
{
    struct asym_process_events *b = open_it();
    struct tally t = {.parent = (int32_t)getpid()};
    double before = asym_live_now();
    assert_int_equal(asym_process_make_threads(1), 0);
    run_true();
    drain_until_exit(b, &t);
    assert_true(t.born == 1 && t.execs == 1 && t.exits == 1 && t.threads == 1 && t.lost == 0);
    assert_true((double)t.last / 1e6 >= before - 1e-3 && (double)t.last / 1e6 <= asym_live_now() + 1e-3);
    assert_false(t.backwards);
    asym_process_events_close(b);
    asym_process_events_close(NULL);
}

TEST(another_subscriber_neither_disturbs_nor_ends_it)
{
    struct asym_process_events *a = open_it(), *b = open_it();
    struct tally of_a = {.parent = (int32_t)getpid()}, of_b = of_a, after = of_a;
    run_true();
    drain_until_exit(a, &of_a);
    drain_until_exit(b, &of_b);
    assert_true(of_a.born == 1 && of_b.born == 1);
    asym_process_events_close(a);
    run_true();
    drain_until_exit(b, &after);
    assert_true(after.born == 1 && after.exits == 1);
    asym_process_events_close(b);
}

/*
 * 1000 threads make 2000 events: the default buffer would hold 256 of them. 20,000 threads make 40,000: the buffer of 8 MiB
 * holds about 10,000.
 */
TEST(a_storm_that_overflows_ends_in_lost_and_goes_on)
{
    struct asym_process_events *b = open_it();
    struct tally held = {.parent = (int32_t)getpid()}, t = held, after = held;
    assert_int_equal(asym_process_make_threads(1000), 0);
    assert_true(asym_process_events_drain(b, count, &held) >= 2000);
    assert_int_equal(held.lost, 0);
    assert_int_equal(asym_process_make_threads(20000), 0);
    assert_true(asym_process_events_drain(b, count, &t) > 0);
    assert_true(t.lost >= 1);
    while (asym_process_events_drain(b, count, &t) > 0)
        ;
    run_true();
    drain_until_exit(b, &after);
    assert_true(after.born == 1 && after.exits == 1 && after.lost == 0);
    asym_process_events_close(b);
}

/* Returns the result of a child that calls change() and then subscribes. */
static int try_in_child(int (*change)(void))
{
    pid_t pid = asym_process_fork();
    if (pid == 0) {
        struct asym_process_events *b;
        struct asym_error err = {""};
        if (change() < 0)
            _exit(200);
        pid_t inner = asym_process_fork_orphan(60); /* its parent may be in another PID namespace */
        if (inner == 0) {
            int r = asym_process_events_open(&b, &err);
            _exit(r == 0 ? 0 : err.text[0] != '\0' && strstr(err.text, "asymd scans /proc instead") ? -r : 201);
        }
        int status;
        waitpid(inner, &status, 0);
        _exit(WEXITSTATUS(status));
    }
    return asym_live_wait(pid);
}

static int enter_pid_namespace(void)
{
    return unshare(CLONE_NEWPID);
}

static int enter_user_namespace(void)
{
    return unshare(CLONE_NEWUSER);
}

static int become_nobody(void)
{
    return setresgid(65534, 65534, 65534) < 0 ? -1 : setresuid(65534, 65534, 65534);
}

TEST(without_the_connector_it_says_why)
{
    assert_int_equal(try_in_child(enter_pid_namespace), EXDEV);
    int nobody = try_in_child(become_nobody), user = try_in_child(enter_user_namespace);
    /* Kernels since 6.6 let every user listen, and any may forbid user namespaces (200). */
    assert_true(nobody == EPERM || nobody == 0);
    assert_true(user == EPERM || user == 0 || user == 200);
}

TEST_MAIN
