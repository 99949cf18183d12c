/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Helpers: orders, reports and confinement; asymd does not wait for a helper that hangs. */
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "linux/sys/helper-process.h"
#include "load/helper.h"
#include "support/process.h"
#include "support/test.h"

#define PROGRAM ASYM_TEST_BIN "/tests/load-helper"
/* The longest time that a test waits. */
#define PATIENCE_MS 20000

static struct asym_helper start(const char *role)
{
    struct asym_helper h = ASYM_HELPER_INIT(PROGRAM, role);
    assert_int_equal(asym_helper_start(&h), 0);
    assert_true(h.pid > 1);
    return h;
}

static ssize_t wait_for_report(const struct asym_helper *h, void *buf, size_t size)
{
    struct pollfd ready = {.fd = h->reports, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
    return asym_helper_report(h, buf, size);
}

static void stop(struct asym_helper *h)
{
    asym_helper_kill(h);
    for (int i = 0; i < PATIENCE_MS && asym_helper_reap(h) > 0; i++)
        usleep(1000);
    assert_int_equal(asym_helper_reap(h), 0);
}

/* asymd keeps away from busy CPUs. A helper that it starts later must not stay for life on the CPU that was idle then. */
TEST(a_later_helper_has_the_affinity_of_the_first)
{
    cpu_set_t before, narrow, got;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    struct asym_helper h = start("echo");
    stop(&h);
    CPU_ZERO(&narrow);
    for (size_t cpu = 0; CPU_COUNT(&narrow) == 0; cpu++)
        if (CPU_ISSET(cpu, &before))
            CPU_SET(cpu, &narrow);
    assert_int_equal(sched_setaffinity(0, sizeof narrow, &narrow), 0);
    const int r = asym_helper_start(&h);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(r, 0);
    assert_int_equal(sched_getaffinity(h.pid, sizeof got, &got), 0);
    assert_true(CPU_EQUAL(&got, &before));
    stop(&h);
}

/* A helper's two ends have low numbers there. asymd's have any: in one service the second was that to which the first had to go. */
TEST(a_helper_starts_however_many_descriptors_asymd_has)
{
    enum { MOST = 96 };
    int open_fds[MOST];
    char got[16];
    for (size_t n = 0; n < MOST; n++) {
        struct asym_helper h = start("echo");
        assert_int_equal(asym_helper_order(&h, "one", 3), 0);
        assert_int_equal(wait_for_report(&h, got, sizeof got), 3);
        stop(&h);
        open_fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_true(open_fds[n] >= 0);
    }
    for (size_t n = 0; n < MOST; n++)
        close(open_fds[n]);
}

TEST(orders_and_reports_are_never_cut)
{
    char sent[ASYM_HELPER_PACKET], got[ASYM_HELPER_PACKET];
    struct asym_helper h = start("echo");
    memset(sent, 'a', sizeof sent);
    assert_int_equal(asym_helper_report(&h, got, sizeof got), -EAGAIN);
    assert_int_equal(asym_helper_order(&h, "one", 3), 0);
    assert_int_equal(asym_helper_order(&h, sent, sizeof sent), 0);
    assert_int_equal(wait_for_report(&h, got, sizeof got), 3);
    assert_memory_equal(got, "one", 3);
    assert_int_equal(wait_for_report(&h, got, sizeof got), sizeof sent);
    assert_memory_equal(got, sent, sizeof sent);
    assert_int_equal(asym_helper_order(&h, sent, sizeof sent + 1), -EINVAL);
    assert_int_equal(asym_helper_order(&h, sent, 0), -EINVAL);
    stop(&h);
}

static struct test_helper_state ask_state(void)
{
    struct test_helper_state state;
    char got[ASYM_HELPER_PACKET], path[] = "/tmp/asym-helper-XXXXXX";
    struct asym_helper h = start("tell");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    /* The helper may open a file that all users may write, but it cannot write to it. */
    assert_int_equal(fchmod(fd, 0666), 0);
    assert_int_equal(asym_helper_order(&h, path, strlen(path)), 0);
    assert_int_equal(wait_for_report(&h, got, sizeof got), sizeof state);
    memcpy(&state, got, sizeof state);
    close(fd);
    unlink(path);
    stop(&h);
    return state;
}

TEST(a_helper_has_given_up_what_it_does_not_need)
{
    struct sched_param param = {.sched_priority = 1};
    /* Where permitted, the parent has a real-time policy. It has descriptors that the helper must not get. */
    const int realtime = sched_setscheduler(0, SCHED_FIFO, &param), stray = dup(STDOUT_FILENO);
    const struct test_helper_state s = ask_state();
    param.sched_priority = 0;
    assert_int_equal(realtime == 0 ? sched_setscheduler(0, SCHED_OTHER, &param) : 0, 0);
    close(stray);
    assert_int_equal(s.uid, getuid() == 0 ? 65534 : getuid());
    assert_int_equal(s.capabilities, getuid() == 0 ? 1U << CAP_SYS_PTRACE : 0);
    assert_true(s.no_new_privs);
    assert_false(s.dumpable);
    assert_int_equal(s.death_signal, SIGKILL);
    assert_int_equal(s.policy, SCHED_OTHER);
    assert_int_equal(s.n_fds, 5);
    assert_int_equal(s.send_error, EPIPE);
    assert_int_equal(s.read_error, 0);
    assert_int_equal(s.write_error, EFBIG);
}

/* The helper reads no orders. When the socket is full, asymd does not wait. */
TEST(a_helper_that_hangs_does_not_delay_asymd)
{
    char order[ASYM_HELPER_PACKET] = "x";
    struct asym_helper h = start("hang");
    int r = 0;
    for (int i = 0; r == 0 && i < 100000; i++)
        r = asym_helper_order(&h, order, sizeof order);
    assert_int_equal(r, -EAGAIN);
    assert_int_equal(asym_helper_report(&h, order, sizeof order), -EAGAIN);
    stop(&h);
    assert_int_equal(asym_helper_order(&h, order, 1), -ENOTCONN);
    assert_int_equal(asym_helper_report(&h, order, sizeof order), -ENOTCONN);
    /* Start again with the same struct. */
    h.argument = "echo";
    assert_int_equal(asym_helper_start(&h), 0);
    assert_int_equal(asym_helper_order(&h, "again", 5), 0);
    assert_int_equal(wait_for_report(&h, order, sizeof order), 5);
    stop(&h);
}

TEST(a_helper_that_ends_by_itself_is_reported_as_such)
{
    char got[ASYM_HELPER_PACKET];
    /* It does not know this argument. */
    struct asym_helper h = start("none");
    assert_int_equal(wait_for_report(&h, got, sizeof got), -ENOTCONN);
    stop(&h);
    struct asym_helper missing = ASYM_HELPER_INIT("/nonexistent/asymd-helper", "echo");
    assert_int_equal(asym_helper_start(&missing), -ENOENT);
    asym_helper_kill(&missing);
}

/* The test cannot create a process in uninterruptible sleep. A child that does not end represents it. */
TEST(the_dying_are_bounded)
{
    struct asym_helper h = ASYM_HELPER_INIT(PROGRAM, "echo");
    pid_t children[ASYM_HELPER_MAX_DYING];
    for (size_t i = 0; i < ASYM_HELPER_MAX_DYING; i++) {
        children[i] = asym_process_fork();
        if (children[i] == 0)
            for (;;)
                pause();
        assert_int_equal(setpgid(children[i], children[i]), 0);
        h.dying[h.n_dying++] = children[i];
    }
    assert_int_equal(asym_helper_start(&h), -EBUSY);
    assert_int_equal(asym_process_signal(children[0], SIGKILL), 0);
    for (int i = 0; i < PATIENCE_MS && asym_helper_reap(&h) == ASYM_HELPER_MAX_DYING; i++)
        usleep(1000);
    assert_int_equal(h.n_dying, ASYM_HELPER_MAX_DYING - 1);
    assert_int_equal(asym_helper_start(&h), 0);
    for (size_t i = 1; i < ASYM_HELPER_MAX_DYING; i++)
        assert_int_equal(asym_process_signal(children[i], SIGKILL), 0);
    stop(&h);
}

/* The helper leaves a child, and ends. Returns the child, which becomes a child of this process. */
static pid_t wait_for_child(const struct asym_helper *h)
{
    char got[ASYM_HELPER_PACKET];
    pid_t child;
    assert_int_equal(wait_for_report(h, got, sizeof got), sizeof child);
    memcpy(&child, got, sizeof child);
    assert_int_equal(wait_for_report(h, got, sizeof got), -ENOTCONN);
    return child;
}

TEST(where_only_children_are_left_no_helper_starts)
{
    pid_t children[ASYM_HELPER_MAX_DYING];
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    struct asym_helper h = ASYM_HELPER_INIT(PROGRAM, "leave");
    for (size_t i = 0; i < ASYM_HELPER_MAX_DYING; i++) {
        assert_int_equal(asym_helper_start(&h), 0);
        const pid_t helper = h.pid;
        children[i] = wait_for_child(&h);
        for (int k = 0; k < PATIENCE_MS && waitpid(helper, NULL, WNOHANG) == 0; k++)
            usleep(1000);
        asym_helper_kill(&h);
        assert_int_equal(asym_process_signal(helper, 0), -ESRCH);
    }
    assert_int_equal(asym_helper_start(&h), -EBUSY);
    for (size_t i = 0; i < ASYM_HELPER_MAX_DYING; i++)
        assert_int_equal(asym_process_signal(children[i], SIGKILL), 0);
    stop(&h);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

TEST(a_child_that_outlives_its_helper_counts_as_the_helper)
{
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    struct asym_helper h = start("leave");
    const pid_t child = wait_for_child(&h);
    asym_helper_kill(&h);
    for (int i = 0; i < 100; i++, usleep(1000))
        assert_int_equal(asym_helper_reap(&h), 1);
    assert_int_equal(asym_process_signal(child, SIGKILL), 0);
    stop(&h);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

TEST_MAIN
