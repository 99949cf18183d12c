/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tests/support/process.h: a process that was never started is never signalled, nor are those that its number stands for. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macro.h"
#include "support/process.h"

static volatile sig_atomic_t received;

static void count(int signal)
{
    (void)signal;
    received++;
}

/* SIGURG is ignored where no handler is set: even a helper that is wrong does no harm to the group of this test. */
static void a_number_below_two_is_refused(void **state)
{
    static const pid_t refused[] = {0, 1, -1, -2, INT_MIN};
    (void)state;
    assert_true(signal(SIGURG, count) != SIG_ERR);
    /* In a group of our own, a signal to group 0 would arrive here and nowhere else. */
    setpgid(0, 0);
    assert_int_equal(getpgrp(), getpid());
    for (size_t i = 0; i < ASYM_LENGTH(refused); i++) {
        assert_int_equal(asym_process_signal(refused[i], SIGURG), -EINVAL);
        assert_int_equal(asym_process_signal_group(refused[i], SIGURG), -EINVAL);
    }
    assert_int_equal(asym_process_signal(-getpid(), SIGURG), -EINVAL);
    assert_int_equal(received, 0);
    assert_int_equal(asym_process_signal(getpid(), SIGURG), 0);
    assert_int_equal(received, 1);
    assert_int_equal(asym_process_signal_group(getpgrp(), SIGURG), 0);
    assert_int_equal(received, 2);
}

static void a_process_of_ours_is_signalled_until_it_is_gone(void **state)
{
    (void)state;
    int status;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        for (;;)
            pause();
    assert_int_equal(asym_process_signal(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_int_equal(asym_process_signal(pid, SIGKILL), -ESRCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_below_two_is_refused),
        cmocka_unit_test(a_process_of_ours_is_signalled_until_it_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
