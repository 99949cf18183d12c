/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Helpers: what they are told and say, what they may not do, and that a helper that hangs does not make asymd wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "linux/helper.h"
#include "load/helper.h"
#include "support/process.h"

#define PROGRAM ASYM_TEST_BIN "/tests/load-helper"
/* So long a test waits for what has to come. */
#define PATIENCE_MS 20000

static struct asym_helper start(const char *role)
{
    struct asym_helper h = ASYM_HELPER_INIT(PROGRAM, role);
    struct asym_error err = {""};
    if (asym_helper_start(&h, &err) < 0)
        fail_msg("%s", err.text);
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

static void orders_and_reports_stay_whole(void **state)
{
    char sent[ASYM_HELPER_PACKET], got[ASYM_HELPER_PACKET];
    struct asym_helper h = start("echo");
    (void)state;
    memset(sent, 'a', sizeof sent);
    assert_int_equal(asym_helper_report(&h, got, sizeof got), -EAGAIN);
    assert_int_equal(asym_helper_order(&h, "one", 3, NULL, 0), 0);
    assert_int_equal(asym_helper_order(&h, sent, sizeof sent, NULL, 0), 0);
    assert_int_equal(wait_for_report(&h, got, sizeof got), 3);
    assert_memory_equal(got, "one", 3);
    assert_int_equal(wait_for_report(&h, got, sizeof got), sizeof sent);
    assert_memory_equal(got, sent, sizeof sent);
    assert_int_equal(asym_helper_order(&h, sent, sizeof sent + 1, NULL, 0), -EINVAL);
    assert_int_equal(asym_helper_order(&h, sent, 0, NULL, 0), -EINVAL);
    stop(&h);
}

static void an_order_carries_descriptors(void **state)
{
    char got[ASYM_HELPER_PACKET];
    struct asym_helper h = start("echo");
    (void)state;
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "in the file", 11), 11);
    const int fds[] = {fd, fd, fd, fd, fd};
    assert_int_equal(asym_helper_order(&h, "x", 1, fds, 5), -EINVAL);
    assert_int_equal(asym_helper_order(&h, "x", 1, fds, 4), 0);
    assert_int_equal(wait_for_report(&h, got, sizeof got), 11);
    assert_memory_equal(got, "in the file", 11);
    close(fd);
    stop(&h);
}

static struct test_helper_state ask_state(const char *role)
{
    struct test_helper_state state;
    char got[ASYM_HELPER_PACKET], path[] = "/tmp/asym-helper-XXXXXX";
    struct asym_helper h = start(role);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    /* Whatever Landlock does not forbid is allowed. */
    assert_int_equal(fchmod(fd, 0666), 0);
    assert_int_equal(asym_helper_order(&h, path, strlen(path), NULL, 0), 0);
    assert_int_equal(wait_for_report(&h, got, sizeof got), sizeof state);
    memcpy(&state, got, sizeof state);
    close(fd);
    unlink(path);
    stop(&h);
    return state;
}

/* What opening a file fails with where Landlock forbids it, and 0 where this kernel has none. */
static int forbidden(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0 ? EACCES : 0;
}

static void a_helper_has_given_up_what_it_does_not_need(void **state)
{
    struct sched_param param = {.sched_priority = 1};
    (void)state;
    /* Where it is permitted: the parent has a real-time policy, and descriptors that are not its own. */
    const int realtime = sched_setscheduler(0, SCHED_FIFO, &param), stray = dup(STDOUT_FILENO);
    const struct test_helper_state s = ask_state("tell");
    param.sched_priority = 0;
    assert_int_equal(realtime == 0 ? sched_setscheduler(0, SCHED_OTHER, &param) : 0, 0);
    close(stray);
    assert_int_equal(s.uid, getuid() == 0 ? 65534 : getuid());
    assert_int_equal(s.capabilities, 0);
    assert_true(s.no_new_privs);
    assert_false(s.dumpable);
    assert_int_equal(s.death_signal, SIGKILL);
    assert_int_equal(s.policy, SCHED_OTHER);
    assert_int_equal(s.n_fds, 5);
    assert_int_equal(s.send_error, EPIPE);
    assert_int_equal(s.read_error, forbidden());
    assert_int_equal(s.write_error, forbidden());
}

static void a_reader_reads_and_does_not_write(void **state)
{
    (void)state;
    const struct test_helper_state s = ask_state("tell-reader");
    assert_int_equal(s.capabilities, getuid() == 0 ? 1U << CAP_SYS_PTRACE : 0);
    assert_int_equal(s.read_error, 0);
    /* It may open one that everybody may write to, and write nothing. */
    assert_int_equal(s.write_error, EFBIG);
}

/* It reads no order: at some point there is no room for more, and asymd does not wait. */
static void a_helper_that_hangs_does_not_hold_up_asymd(void **state)
{
    char order[ASYM_HELPER_PACKET] = "x";
    struct asym_helper h = start("hang");
    int r = 0;
    (void)state;
    for (int i = 0; r == 0 && i < 100000; i++)
        r = asym_helper_order(&h, order, sizeof order, NULL, 0);
    assert_int_equal(r, -EAGAIN);
    assert_int_equal(asym_helper_report(&h, order, sizeof order), -EAGAIN);
    stop(&h);
    assert_int_equal(asym_helper_order(&h, order, 1, NULL, 0), -ENOTCONN);
    assert_int_equal(asym_helper_report(&h, order, sizeof order), -ENOTCONN);
    /* Once more, with the same. */
    struct asym_error err = {""};
    h.role = "echo";
    assert_int_equal(asym_helper_start(&h, &err), 0);
    assert_int_equal(asym_helper_order(&h, "again", 5, NULL, 0), 0);
    assert_int_equal(wait_for_report(&h, order, sizeof order), 5);
    stop(&h);
}

static void what_ends_by_itself_is_told_so(void **state)
{
    char got[ASYM_HELPER_PACKET];
    (void)state;
    /* No such role. */
    struct asym_helper h = start("none");
    assert_int_equal(wait_for_report(&h, got, sizeof got), -ENOTCONN);
    stop(&h);
    struct asym_error err = {""};
    struct asym_helper missing = ASYM_HELPER_INIT("/nonexistent/asymd-helper", "echo");
    assert_int_equal(asym_helper_start(&missing, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/nonexistent/asymd-helper"));
    asym_helper_kill(&missing);
}

/* A process that is stopped in the kernel cannot be made here; a child that never ends stands for it. */
static void the_dying_are_bounded(void **state)
{
    struct asym_helper h = ASYM_HELPER_INIT(PROGRAM, "echo");
    struct asym_error err = {""};
    pid_t children[ASYM_HELPER_MAX_DYING];
    (void)state;
    for (size_t i = 0; i < ASYM_HELPER_MAX_DYING; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0)
            for (;;)
                pause();
        h.dying[h.n_dying++] = children[i];
    }
    assert_int_equal(asym_helper_start(&h, &err), -EBUSY);
    assert_int_equal(asym_process_signal(children[0], SIGKILL), 0);
    for (int i = 0; i < PATIENCE_MS && asym_helper_reap(&h) == ASYM_HELPER_MAX_DYING; i++)
        usleep(1000);
    assert_int_equal(h.n_dying, ASYM_HELPER_MAX_DYING - 1);
    assert_int_equal(asym_helper_start(&h, &err), 0);
    for (size_t i = 1; i < ASYM_HELPER_MAX_DYING; i++)
        assert_int_equal(asym_process_signal(children[i], SIGKILL), 0);
    stop(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_and_reports_stay_whole),
        cmocka_unit_test(an_order_carries_descriptors),
        cmocka_unit_test(a_helper_has_given_up_what_it_does_not_need),
        cmocka_unit_test(a_reader_reads_and_does_not_write),
        cmocka_unit_test(a_helper_that_hangs_does_not_hold_up_asymd),
        cmocka_unit_test(what_ends_by_itself_is_told_so),
        cmocka_unit_test(the_dying_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
