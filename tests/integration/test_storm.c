/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Too much at once: events that overflow, tens of thousands of threads, no descriptors. Nobody is left pinned. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/live.h"
#include "support/service.h"

/* A thread is two events, and 8 MiB of receive buffer are about 10,000 of them. */
#define STORM    20000

#define CHILDREN 3

struct shared {
    atomic_int go, done;
    pid_t children[CHILDREN];
};

static struct shared *share(void)
{
    struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(s != MAP_FAILED);
    return s;
}

/* Works until told, then has children that do nothing, and works on. */
static pid_t start_parent(struct shared *s)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(120);
    while (s->go == 0)
        ;
    for (int i = 0; i < CHILDREN; i++) {
        pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                pause();
        }
        s->children[i] = pid;
    }
    for (s->done = 1;;)
        ;
}

static void *nothing(void *arg)
{
    return arg;
}

static void storm(void)
{
    for (int i = 0; i < STORM; i++) {
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, nothing, NULL), 0);
        pthread_join(t, NULL);
    }
}

static int whole(pid_t pid, int cpus)
{
    return asym_live_narrow_threads(pid, cpus) == 0;
}

/* Stopped, asymd drains nothing; then what happened is told in order, with a gap in it. */
static void stop_and_have_children(pid_t asymd, struct shared *s, bool storm_first)
{
    asym_live_signal(asymd, SIGSTOP);
    assert_int_equal(waitpid(asymd, NULL, WUNTRACED), asymd);
    if (storm_first)
        storm();
    s->go = 1;
    while (s->done == 0)
        asym_live_sleep(0.001);
    for (int i = 0; i < CHILDREN; i++)
        assert_int_equal(asym_live_narrow_threads(s->children[i], asym_live_cpus()), 1);
    if (!storm_first)
        storm();
    asym_live_signal(asymd, SIGCONT);
}

/* Within so many seconds in all, however much else is said. Of that only the end is kept, in which text may have begun. */
static bool is_said(int fd, const char *text, double seconds)
{
    char said[4096];
    size_t used = 0, keep = strlen(text) - 1;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    const double deadline = asym_live_now() + seconds;
    for (double left = seconds; left > 0 && poll(&p, 1, (int)(left * 1000) + 1) > 0;
         left = deadline - asym_live_now()) {
        ssize_t n = read(fd, said + used, sizeof said - used);
        if (n <= 0)
            return false;
        used += (size_t)n;
        if (memmem(said, used, text, strlen(text)))
            return true;
        const size_t tail = used < keep ? used : keep;
        memmove(said, said + used - tail, tail);
        used = tail;
    }
    return false;
}

/* The forks of a steered process are told before the gap, or fall into it: its children get their masks back, and it. */
static void overflow(bool storm_first)
{
    int cpus = asym_live_cpus(), fds[2];
    struct shared *s = share();
    assert_int_equal(pipe(fds), 0);
    pid_t load = start_parent(s), asymd = asym_service_start_to(load, NULL, fds[1]);
    close(fds[1]);
    assert_true(asym_live_await(asym_live_narrow_threads, load, cpus, 1, 10));
    stop_and_have_children(asymd, s, storm_first);
    for (int i = 0; i < CHILDREN; i++)
        assert_true(asym_live_await(whole, s->children[i], cpus, 1, 5));
    assert_true(asym_live_await(whole, load, cpus, 1, 5));
    /* What was told before the gap is repaired before the gap is come to. */
    assert_true(is_said(fds[0], "some events were lost", 10));
    asym_live_signal(asymd, SIGTERM);
    assert_int_equal(asym_live_wait(asymd), 0);
    close(fds[0]);
    asym_live_end(load, SIGKILL);
    munmap(s, sizeof *s);
}

static void children_told_before_an_overflow_are_repaired(void **state)
{
    (void)state;
    overflow(false);
}

static void children_lost_in_an_overflow_are_repaired(void **state)
{
    (void)state;
    overflow(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define ROW(name) cmocka_unit_test_setup_teardown(name, asym_service_set_up, asym_service_tear_down)
        ROW(children_told_before_an_overflow_are_repaired),
        ROW(children_lost_in_an_overflow_are_repaired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
