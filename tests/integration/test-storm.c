/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Overload: events that overflow, tens of thousands of threads, no descriptors. No thread stays pinned. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "support/live.h"
#include "support/process.h"
#include "support/service.h"
#include "support/test.h"

/* A thread makes two events, and a receive buffer of 8 MiB holds about 10,000 of them. */
#define STORM    20000

#define CHILDREN 3

struct shared {
    atomic_int go, done;
    pid_t children[CHILDREN];
};

/* Works until go, then forks children that do nothing, and works on. */
static pid_t start_parent(struct shared *s)
{
    pid_t pid = asym_process_fork();
    if (pid > 0)
        return pid;
    alarm(120);
    while (s->go == 0)
        ;
    for (int i = 0; i < CHILDREN; i++) {
        pid = asym_process_fork();
        if (pid == 0) {
            for (;;)
                pause();
        }
        s->children[i] = pid;
    }
    for (s->done = 1;;)
        ;
}

static int has_all_cpus(pid_t pid, int cpus)
{
    return asym_live_narrow_threads(pid, cpus) == 0;
}

/*
 * While asymd is stopped it reads no events, and the receive buffer overflows. Then the kernel reports the loss first, and asymd
 * discards what the buffer holds.
 */
static void stop_and_have_children(pid_t asymd, struct shared *s, bool storm_first)
{
    asym_live_signal(asymd, SIGSTOP);
    assert_int_equal(waitpid(asymd, NULL, WUNTRACED), asymd);
    if (storm_first)
        assert_int_equal(asym_process_make_threads(STORM), 0);
    s->go = 1;
    while (s->done == 0)
        asym_live_sleep(0.001);
    for (int i = 0; i < CHILDREN; i++)
        assert_int_equal(asym_live_narrow_threads(s->children[i], asym_live_cpus()), 1);
    if (!storm_first)
        assert_int_equal(asym_process_make_threads(STORM), 0);
    asym_live_signal(asymd, SIGCONT);
}

static bool is_said(int fd, const char *text)
{
    static char said[65536];
    const ssize_t n = pread(fd, said, sizeof said, 0);
    return n > 0 && memmem(said, (size_t)n, text, strlen(text));
}

/*
 * The fork events of a steered process are in the buffer when it overflows, and asymd discards them, or the kernel drops them.
 * The scan of /proc after the loss finds the children: asymd restores their masks and that of the parent.
 */
static void overflow(bool storm_first)
{
    const int cpus = asym_live_cpus(), out = memfd_create("said", MFD_CLOEXEC);
    struct shared *s = asym_live_share(sizeof *s);
    assert_true(out >= 0);
    pid_t load = start_parent(s), asymd = asym_service_start_to(load, NULL, out);
    assert_true(asym_live_await(asym_live_narrow_threads, load, cpus, 1, ASYM_LIVE_PATIENCE));
    stop_and_have_children(asymd, s, storm_first);
    for (int i = 0; i < CHILDREN; i++)
        assert_true(asym_live_await(has_all_cpus, s->children[i], cpus, 1, ASYM_LIVE_PATIENCE));
    assert_true(asym_live_await(has_all_cpus, load, cpus, 1, ASYM_LIVE_PATIENCE));
    /* Without a loss, this would show only that asymd repairs the children of events. */
    ASYM_LIVE_AWAIT(is_said(out, "the kernel dropped process events"));
    assert_true(is_said(out, "the kernel dropped process events"));
    asym_live_signal(asymd, SIGTERM);
    assert_int_equal(asym_live_wait(asymd), 0);
    close(out);
    asym_live_end(load, SIGKILL);
}

TEST_WITH(children_reported_before_an_overflow_are_repaired, asym_service_set_up, asym_service_tear_down)
{
    overflow(false);
}

TEST_WITH(children_lost_in_an_overflow_are_repaired, asym_service_set_up, asym_service_tear_down)
{
    overflow(true);
}

TEST_MAIN
