/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The proc connector itself: subscribing, other subscribers, overflow, and where it cannot be had. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "linux/births.h"
#include "support/live.h"

struct tally {
    int32_t parent, child; /* looked for */
    int born, threads, execs, exits, lost;
    asym_usec last;
    bool backwards;
};

static void count(void *ctx, const struct asym_birth *event)
{
    struct tally *t = ctx;
    t->lost += event->kind == ASYM_BIRTH_LOST;
    if (event->kind == ASYM_BIRTH_PROCESS && event->parent_tgid == t->parent) {
        t->born++;
        t->child = event->pid;
        assert_true(event->parent_pid == t->parent && event->pid == event->tgid);
    }
    t->threads += event->kind == ASYM_BIRTH_THREAD && event->tgid == t->parent;
    t->execs += event->kind == ASYM_BIRTH_EXEC && event->pid == t->child;
    t->exits += event->kind == ASYM_BIRTH_EXIT && event->pid == t->child;
    t->backwards |= event->when == 0;
    t->last = event->when;
}

static struct asym_births *open_it(void)
{
    struct asym_births *b;
    struct asym_error err;
    if (asym_births_open(&b, &err) < 0)
        fail_msg("this test needs the proc connector: %s", err.text);
    return b;
}

static void run_true(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        execlp("true", "true", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(asym_live_wait(pid), 0);
}

static void drain_until_exit(struct asym_births *b, struct tally *t)
{
    double end = asym_live_now() + 5;
    while (t->exits == 0 && asym_live_now() < end) {
        assert_true(asym_births_drain(b, count, t) >= 0);
        asym_live_sleep(0.001);
    }
}

static void *nothing(void *arg)
{
    return arg;
}

static void a_life_is_told_in_order_and_by_the_monotonic_clock(void **state)
{
    (void)state;
    struct asym_births *b = open_it();
    struct tally t = {.parent = (int32_t)getpid()};
    pthread_t thread;
    double before = asym_live_now();
    assert_int_equal(pthread_create(&thread, NULL, nothing, NULL), 0);
    pthread_join(thread, NULL);
    run_true();
    drain_until_exit(b, &t);
    assert_true(t.born == 1 && t.execs == 1 && t.exits == 1 && t.threads == 1 && t.lost == 0);
    assert_true((double)t.last / 1e6 >= before - 1e-3 && (double)t.last / 1e6 <= asym_live_now() + 1e-3);
    assert_false(t.backwards);
    asym_births_close(b);
    asym_births_close(NULL);
}

static void another_subscriber_neither_disturbs_nor_ends_it(void **state)
{
    (void)state;
    struct asym_births *a = open_it(), *b = open_it();
    struct tally of_a = {.parent = (int32_t)getpid()}, of_b = of_a, after = of_a;
    run_true();
    drain_until_exit(a, &of_a);
    drain_until_exit(b, &of_b);
    assert_true(of_a.born == 1 && of_b.born == 1);
    asym_births_close(a);
    run_true();
    drain_until_exit(b, &after);
    assert_true(after.born == 1 && after.exits == 1);
    asym_births_close(b);
}

static void count_hook(void *ctx, const struct asym_birth *event)
{
    atomic_int *hooked = ctx;
    if (event->kind == ASYM_BIRTH_PROCESS && event->parent_tgid == (int32_t)getpid())
        atomic_fetch_add(hooked, 1);
}

static void a_watched_event_comes_to_the_hook_and_to_the_drain(void **state)
{
    (void)state;
    struct asym_births *b = open_it();
    struct tally t = {.parent = (int32_t)getpid()};
    atomic_int hooked = 0;
    bool realtime;
    assert_int_equal(asym_births_watch(b, count_hook, &hooked, &realtime), 0);
    assert_true(realtime || geteuid() != 0);
    for (int i = 0; i < 20; i++)
        run_true();
    for (double end = asym_live_now() + 5; t.born < 20 && asym_live_now() < end; asym_live_sleep(0.001))
        assert_true(asym_births_drain(b, count, &t) >= 0);
    assert_int_equal(t.born, 20);
    assert_int_equal(hooked, 20);
    asym_births_close(b);
}

/* More than the socket's buffer holds: 8 MiB are about 10,000 events, and a thread is two. */
static int connector(void)
{
    for (int fd = 3; fd < 100; fd++) {
        int domain = 0;
        socklen_t size = sizeof domain;
        if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_NETLINK)
            return fd;
    }
    return -1;
}

/* Its socket is taken away from the watching thread: what else could break it is not at hand. */
static void a_connection_that_ends_is_told_at_every_drain(void **state)
{
    (void)state;
    struct tally hooked = {.parent = (int32_t)getpid()};
    struct asym_births *b = open_it();
    bool realtime;
    int r = 0, fd = connector(), null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && null >= 0);
    assert_int_equal(asym_births_watch(b, count_hook, &hooked, &realtime), 0);
    assert_int_equal(dup2(null, fd), fd);
    for (double end = asym_live_now() + 5; r >= 0 && asym_live_now() < end; asym_live_sleep(0.001)) {
        run_true();
        r = asym_births_drain(b, count, &hooked);
    }
    assert_int_equal(r, -EIO);
    assert_int_equal(asym_births_drain(b, count, &hooked), -EIO);
    asym_births_close(b);
    close(null);
}

static void a_storm_that_overflows_ends_in_lost_and_goes_on(void **state)
{
    (void)state;
    struct asym_births *b = open_it();
    struct tally t = {.parent = (int32_t)getpid()}, after = t;
    for (int i = 0; i < 20000; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, nothing, NULL), 0);
        pthread_join(thread, NULL);
    }
    int n = asym_births_drain(b, count, &t);
    assert_true(n > 256); /* what the default buffer would have held */
    assert_true(t.lost >= 1);
    while (asym_births_drain(b, count, &t) > 0)
        ;
    run_true();
    drain_until_exit(b, &after);
    assert_true(after.born == 1 && after.exits == 1 && after.lost == 0);
    asym_births_close(b);
}

/* Nobody drains: what is kept is bounded, and said to be. */
static void what_is_kept_is_bounded(void **state)
{
    (void)state;
    struct asym_births *b = open_it();
    struct tally t = {.parent = (int32_t)getpid()}, after = t;
    atomic_int hooked = 0;
    bool realtime;
    assert_int_equal(asym_births_watch(b, count_hook, &hooked, &realtime), 0);
    asym_births_limit(b, 100);
    for (int i = 0; i < 40000; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, nothing, NULL), 0);
        pthread_join(thread, NULL);
    }
    asym_live_sleep(0.1);
    int n = asym_births_drain(b, count, &t);
    assert_true(n > 1 && n <= 65536 + 1);
    assert_int_equal(t.lost, 1);
    run_true();
    drain_until_exit(b, &after);
    assert_true(after.born == 1 && after.exits == 1);
    asym_births_close(b);
}

/* So many threads that the watching thread cannot take them for what it may cost: it takes less, and is as before then. */
static void what_it_costs_is_bounded(void **state)
{
    (void)state;
    struct asym_births *b = open_it();
    struct tally t = {.parent = (int32_t)getpid()}, after = t;
    atomic_int hooked = 0;
    bool realtime;
    assert_int_equal(asym_births_spent(b), 0);
    assert_int_equal(asym_births_watch(b, count_hook, &hooked, &realtime), 0);
    asym_births_limit(b, 1);
    const double begin = asym_live_now();
    while (asym_live_now() < begin + 3) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, nothing, NULL), 0);
        pthread_join(thread, NULL);
    }
    const double spent = (double)asym_births_spent(b) / 1e6;
    /* 1 % of 3 s, what it may spend at once, and one batch. */
    assert_true(spent > 0 && spent < 0.15);
    for (double end = asym_live_now() + 20; asym_live_now() < end && after.born == 0; asym_live_sleep(0.2)) {
        asym_births_drain(b, count, &t);
        run_true();
        asym_live_sleep(0.2);
        asym_births_drain(b, count, &after);
    }
    assert_true(after.born > 0);
    asym_births_close(b);
}

/* The answer of a child that tries to subscribe after it has changed itself. */
static int try_in_child(int (*change)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        struct asym_births *b;
        struct asym_error err = {""};
        if (change() < 0)
            _exit(200);
        pid_t inner = fork();
        if (inner == 0) {
            int r = asym_births_open(&b, &err);
            _exit(r == 0 ? 0 : err.text[0] != '\0' && strstr(err.text, "scanned instead") ? -r : 201);
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

static void where_it_cannot_be_had_it_says_why(void **state)
{
    (void)state;
    assert_int_equal(try_in_child(enter_pid_namespace), EXDEV);
    int nobody = try_in_child(become_nobody), user = try_in_child(enter_user_namespace);
    /* Kernels since 6.6 let everybody listen, and any may forbid user namespaces (200). */
    assert_true(nobody == EPERM || nobody == 0);
    assert_true(user == EPERM || user == 0 || user == 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_life_is_told_in_order_and_by_the_monotonic_clock),
        cmocka_unit_test(another_subscriber_neither_disturbs_nor_ends_it),
        cmocka_unit_test(a_watched_event_comes_to_the_hook_and_to_the_drain),
        cmocka_unit_test(a_connection_that_ends_is_told_at_every_drain),
        cmocka_unit_test(a_storm_that_overflows_ends_in_lost_and_goes_on),
        cmocka_unit_test(what_is_kept_is_bounded),
        cmocka_unit_test(what_it_costs_is_bounded),
        cmocka_unit_test(where_it_cannot_be_had_it_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
