/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The timer ends a call that would wait forever; afterwards handler and signal mask are as before. */
#include <signal.h>

#include "linux/perf/counters-internal.h"
#include "support/test.h"

TEST(a_call_that_waits_is_interrupted)
{
    int fds[2];
    char byte;
    struct asym_syscall_timeout t;
    struct sigaction before, after;
    sigset_t mask;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(sigaction(SIGALRM, NULL, &before), 0);
    /* The service blocks signals, too. */
    sigfillset(&mask);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(asym_syscall_timeout_begin(&t, 5 * ASYM_MSEC), 0);
        assert_int_equal(read(fds[0], &byte, 1), -1);
        asym_syscall_timeout_end(&t);
        assert_int_equal(errno, EINTR);
    }
    assert_int_equal(sigaction(SIGALRM, NULL, &after), 0);
    assert_ptr_equal(before.sa_handler, after.sa_handler);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_int_equal(sigismember(&mask, SIGALRM), 1);
    asym_syscall_timeout_end(&t);
    close(fds[0]);
    close(fds[1]);
}

TEST(a_call_that_is_quick_is_not)
{
    int fds[2];
    struct asym_syscall_timeout t;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(asym_syscall_timeout_begin(&t, 10 * ASYM_SEC), 0);
    assert_int_equal(write(fds[1], "x", 1), 1);
    asym_syscall_timeout_end(&t);
    close(fds[0]);
    close(fds[1]);
}

TEST_MAIN
