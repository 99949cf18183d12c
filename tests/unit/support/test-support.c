/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tests' own support: asserts on JSON, the choice of tests, processes. */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "report/json.h"
#include "support/json.h"
#include "support/live.h"
#include "support/process.h"
#include "support/test.h"

TEST(json_that_lacks_a_part_is_seen)
{
    static const struct {
        const char *wanted;
        bool has;
    } rows[] = {
        {"{}", true},
        {"{\"a\": 1}", true},
        {"{\"a\": 1.0}", true},
        {"{\"a\": 2}", false},
        {"{\"a\": 1.5}", false},
        {"{\"a\": \"1\"}", false},
        {"{\"b\": [2.5, {}]}", true},
        {"{\"b\": [2.5]}", false},
        {"{\"b\": [2, {}]}", false},
        {"{\"b\": [{}, {}]}", true},
        {"{\"b\": [2.5, {\"c\": null}]}", true},
        {"{\"b\": [2.5, {\"d\": null}]}", false},
        {"{\"e\": null}", false},
        {"[]", false},
        {"1", false},
    };
    ASYM_AUTO_JSON json_t *json = json_of("{\"a\": 1, \"b\": [2.5, {\"c\": null}]}");
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ASYM_AUTO_JSON json_t *wanted = json_loads(rows[i].wanted, JSON_DECODE_ANY, NULL);
        if (json_has(json, wanted) != rows[i].has)
            fail_msg("%s", rows[i].wanted);
    }
    assert_true(json_is_null(json_at(json, "b.1.c")));
    assert_json(json_at(json, "b.1"), "{'%s': null}", "c");
}

/* -- the environment names the tests of a program that run -- */

static const struct CMUnitTest some[] = {{.name = "one"}, {.name = "one_more"}, {.name = "two"}};

TEST(the_tests_that_are_named_are_chosen_in_their_order)
{
    static const struct {
        const char *only, *except, *chosen;
        int n;
    } rows[] = {
        {NULL, NULL, "one one_more two ", 3},  {"two one", NULL, "one two ", 2},   {NULL, "one_more", "one two ", 2},
        {"  one_more ", NULL, "one_more ", 1}, {"one two", "one", "two ", 1},      {"", NULL, "", 0},
        {NULL, "one one_more two", "", 0},     {NULL, "", "one one_more two ", 3}, {"on", NULL, NULL, -ENOENT},
        {NULL, "three", NULL, -ENOENT},        {"one, two", NULL, NULL, -ENOENT},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct CMUnitTest chosen[ASYM_LENGTH(some)];
        char names[64] = "";
        const int n = test_select(some, ASYM_LENGTH(some), rows[i].only, rows[i].except, chosen);
        assert_int_equal(n, rows[i].n);
        for (int k = 0; k < n; k++)
            strcat(strcat(names, chosen[k].name), " ");
        if (n >= 0)
            assert_string_equal(names, rows[i].chosen);
    }
}

/* This program has two tests. When ctest selects only the other one, or none, this one must not run. */
TEST(a_program_runs_what_its_environment_says)
{
    const char *const program = ASYM_TEST_BIN "/tests/unit-support";
    char command[512];
    static const struct {
        const char *environment;
        int status;
    } rows[] = {
        {"ASYM_TEST_ONLY=the_tests_that_are_named_are_chosen_in_their_order", 0},
        {"ASYM_TEST_EXCEPT=a_program_runs_what_its_environment_says", 0},
        {"ASYM_TEST_ONLY=a_test_that_was_renamed", 1},
        {"ASYM_TEST_ONLY=", 1},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        snprintf(command, sizeof command, "env %s %s >/dev/null 2>&1", rows[i].environment, program);
        const int status = system(command);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), rows[i].status);
    }
}

/* -- process.h signals no process that was never started, and no group that such a number would mean -- */

static volatile sig_atomic_t received;

static void count(int signal)
{
    received++;
}

/* Processes without a handler ignore SIGURG: even a wrong helper does not harm the group of this test. */
TEST(a_number_below_two_is_refused)
{
    static const pid_t refused[] = {0, 1, -1, -2, INT_MIN};
    assert_true(signal(SIGURG, count) != SIG_ERR);
    /* In a group of its own, only this process would get a signal to group 0. */
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

/* Also in a PID namespace, where the group of this test may have no number. */
TEST(children_lead_a_group_or_a_session)
{
    static const struct {
        pid_t (*fork_child)(void);
        bool leads_session;
    } cases[] = {{asym_process_fork, false}, {asym_process_fork_session, true}};
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        int status;
        const pid_t pid = cases[i].fork_child();
        assert_true(pid >= 0);
        if (pid == 0)
            _exit(getpgrp() == getpid() && (getsid(0) == getpid()) == cases[i].leads_session ? 0 : 2);
        assert_int_equal(asym_process_wait(pid, 60, &status), 0);
        assert_int_equal(status, 0);
    }
}

TEST(a_wait_ends_in_time)
{
    int status = -1;
    const pid_t pid = asym_process_fork();
    if (pid == 0)
        for (;;)
            pause();
    assert_int_equal(asym_process_wait(pid, 0.02, &status), -ETIMEDOUT);
    assert_int_equal(status, -1);
    assert_int_equal(asym_process_signal(pid, SIGKILL), 0);
    assert_int_equal(asym_process_wait(pid, 60, &status), 0);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(asym_process_wait(pid, 60, &status), -ECHILD);
    assert_int_equal(asym_process_signal(pid, SIGKILL), -ESRCH);
    assert_int_equal(asym_process_wait(0, 60, &status), -EINVAL);
}

/* The parent dies before the child calls PR_SET_PDEATHSIG. The child must end nevertheless, as ctest waits for the pipe. */
TEST(a_child_whose_parent_has_gone_ends)
{
    int fds[2];
    char byte;
    assert_int_equal(pipe(fds), 0);
    const pid_t parent = asym_process_fork();
    if (parent == 0) {
        const pid_t self = getpid();
        if (asym_process_fork_orphan(60) > 0)
            _exit(0);
        while (getppid() == self)
            usleep(100);
        (void)!write(fds[1], "o", 1); /* the child has become an orphan */
        asym_process_end_with(self);
        (void)!write(fds[1], "x", 1); /* the child runs */
        _exit(0);
    }
    close(fds[1]);
    assert_int_equal(read(fds[0], &byte, 1), 1);
    assert_int_equal(byte, 'o');
    assert_int_equal(read(fds[0], &byte, 1), 0);
    close(fds[0]);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
}

TEST(the_state_of_a_process_is_read)
{
    pid_t children[2] = {0};
    char name[16];
    assert_int_equal(prctl(PR_GET_NAME, name), 0);
    /* The child inherits the name, so it has it however early it is stopped. */
    assert_int_equal(prctl(PR_SET_NAME, "a) R (b)) "), 0);
    const pid_t pid = asym_process_fork();
    if (pid == 0)
        for (;;)
            pause();
    assert_int_equal(prctl(PR_SET_NAME, name), 0);
    assert_true(pid >= 0);
    assert_int_equal(asym_process_children(getpid(), children, 2), 1);
    assert_int_equal(children[0], pid);
    assert_int_equal(asym_process_children(getpid(), children, 0), 0);
    assert_int_equal(asym_process_stop(pid), 0);
    assert_int_equal(asym_process_state(pid), 'T');
    assert_int_equal(asym_process_signal(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(asym_process_state(pid), 0);
    assert_int_equal(asym_process_children(pid, children, 2), 0);
    assert_int_equal(asym_process_descriptors(pid), -ENOENT);
    assert_int_equal(asym_process_stop(pid), -ESRCH);
    assert_int_equal(asym_process_stop(0), -EINVAL);
}

static void *wait_for_child(void *arg)
{
    atomic_int *step = arg;
    if (vfork() == 0) {
        *step = 1;
        usleep(300000);
        *step = 2;
        _exit(0);
    }
    return NULL;
}

/* A thread whose vfork(2) goes on does not stop, and the first one does. */
TEST(a_process_has_stopped_when_its_last_thread_has)
{
    atomic_int *step = asym_live_share(sizeof *step);
    pthread_t thread;
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        pthread_create(&thread, NULL, wait_for_child, step);
        for (;;)
            pause();
    }
    ASYM_LIVE_AWAIT(*step == 1);
    assert_int_equal(asym_process_stop(pid), 0);
    assert_int_equal(*step, 2);
    asym_live_end(pid, SIGKILL);
}

TEST_MAIN
