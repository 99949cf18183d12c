/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The signals that end a verb of asymctl early. Each row runs in a child, because the flag stays set. */
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/asymctl/long-verb.h"
#include "support/process.h"
#include "support/test.h"

/* Runs it in a child with the default actions of these signals. Returns the status as of wait(2). */
static int in_child(int (*run)(int signal), int signal)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    int status;
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        for (size_t i = 0; i < ASYM_LENGTH(ends); i++)
            sigaction(ends[i], &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
        _exit(run(signal));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static int caught_once(int signal)
{
    asym_interruption_catch();
    if (asym_interrupted)
        return 2;
    raise(signal);
    return asym_interrupted ? 0 : 3;
}

static int caught_twice(int signal)
{
    const int r = caught_once(signal);
    raise(signal);
    return r != 0 ? r : 4;
}

TEST(the_first_signal_is_a_flag_and_the_second_ends_the_verb)
{
    static const int ends[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < ASYM_LENGTH(ends); i++) {
        assert_int_equal(in_child(caught_once, ends[i]), 0);
        const int status = in_child(caught_twice, ends[i]);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == ends[i]);
    }
    const int status = in_child(caught_once, SIGHUP);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
}

/* Twice: the handler stays. */
static int held(int signal)
{
    const struct timespec at_once = {.tv_sec = 0};
    sigset_t waiting;
    asym_interruption_block(signal == SIGHUP, &waiting);
    for (int i = 0; i < 2; i++) {
        raise(signal);
        if (asym_interrupted != (i > 0) || ppoll(NULL, 0, &at_once, &waiting) != -1 || !asym_interrupted)
            return 2 + i;
    }
    return 0;
}

/* Only the wait receives it. */
TEST(a_held_signal_comes_in_the_wait)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < ASYM_LENGTH(ends); i++)
        assert_int_equal(in_child(held, ends[i]), 0);
}

static volatile sig_atomic_t calls;

static void count_call(void)
{
    calls++;
}

/* An admitted signal comes at once, and the caller's function with it; later ones are held again. */
static int admitted(int signal)
{
    sigset_t waiting;
    asym_interruption_block(false, &waiting);
    asym_interruption_unblock(count_call);
    raise(signal);
    if (calls != 1 || !asym_interrupted)
        return 2;
    asym_interruption_block_again();
    raise(signal);
    return calls == 1 ? 0 : 3;
}

TEST(a_call_that_may_block_admits_a_held_signal)
{
    assert_int_equal(in_child(admitted, SIGTERM), 0);
    assert_int_equal(in_child(admitted, SIGINT), 0);
}

static int held_without_hangup(int signal)
{
    sigset_t waiting;
    asym_interruption_block(false, &waiting);
    raise(signal);
    return 2;
}

TEST(a_verb_that_does_not_catch_a_hangup_ends_by_it)
{
    const int status = in_child(held_without_hangup, SIGHUP);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
}

TEST_MAIN
