/* SPDX-License-Identifier: GPL-2.0-or-later */
/* polkit's agent for terminals. The test program itself plays pkttyagent: a link of that name is in PATH. */
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macro.h"
#include "daemon/asymctl/polkit-agent.h"

/* The agent writes its arguments to this file of its working directory. */
#define SAID "said"

static char dir[64];

/* The linker puts this in place of the kernel's answer (tests/CMakeLists.txt). */
static uid_t uid;
uid_t __wrap_geteuid(void);
uid_t __wrap_geteuid(void)
{
    return uid;
}

/* Registers a moment after its start, and waits for its end. */
static int play_agent(int argc, char **argv)
{
    FILE *f = fopen("saying", "w");
    for (int i = 1; f && i < argc; i++)
        fprintf(f, "%s ", i == 2 ? "FD" : argv[i]);
    if (!f || fclose(f) != 0)
        return 1;
    puts("this must not be on the terminal");
    fflush(stdout);
    usleep(200000);
    rename("saying", SAID);
    close(argc > 2 ? atoi(argv[2]) : -1);
    pause();
    return 1;
}

static int set_up(void **state)
{
    char self[256], link[96];
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/asym-agent-XXXXXX");
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0 || !mkdtemp(dir) || chdir(dir) < 0)
        return -1;
    self[n] = '\0';
    snprintf(link, sizeof link, "%s/pkttyagent", dir);
    setenv("PATH", dir, 1);
    uid = 1000;
    return symlink(self, link);
}

static int tear_down(void **state)
{
    (void)state;
    unlink(SAID);
    unlink("pkttyagent");
    return chdir("/") < 0 || rmdir(dir) < 0;
}

/* Runs during a change, in a child. Returns its exit status: 0: the agent is there; 1: it is not; 2: it outlives its end. */
static int change(void)
{
    asym_polkit_agent_start();
    const int status = access(SAID, F_OK) == 0 ? 0 : 1;
    asym_polkit_agent_stop();
    return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD ? status : 2;
}

/* child: of forkpty, with a terminal. Returns the status of change(); text gets what came on the terminal. */
static int wait_for(pid_t child, int terminal, char *text, size_t size)
{
    int status;
    size_t used = 0;
    for (ssize_t n; used < size - 1 && (n = read(terminal, text + used, size - 1 - used)) > 0;)
        used += (size_t)n;
    text[used] = '\0';
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* lost: the descriptor that is no terminal; -1: none. */
static int change_on_terminal(int lost, pid_t *ret_child)
{
    int terminal;
    char text[256];
    const pid_t child = forkpty(&terminal, NULL, NULL, NULL);
    assert_true(child >= 0);
    if (child == 0) {
        if (lost >= 0)
            dup2(open("/dev/null", O_RDWR | O_CLOEXEC), lost);
        _exit(change());
    }
    *ret_child = child;
    const int status = wait_for(child, terminal, text, sizeof text);
    close(terminal);
    assert_string_equal(text, "");
    return status;
}

static void a_user_on_a_terminal_gets_an_agent_for_the_time_of_the_call(void **state)
{
    char said[128] = "", expected[128];
    pid_t child;
    (void)state;
    assert_int_equal(change_on_terminal(-1, &child), 0);
    FILE *f = fopen(SAID, "r");
    assert_non_null(f);
    assert_non_null(fgets(said, sizeof said, f));
    fclose(f);
    snprintf(expected, sizeof expected, "--notify-fd FD --fallback --process %d ", (int)child);
    assert_string_equal(said, expected);
}

static void nobody_else_gets_one(void **state)
{
    pid_t child;
    (void)state;
    assert_int_equal(change_on_terminal(STDIN_FILENO, &child), 1);
    assert_int_equal(change_on_terminal(STDOUT_FILENO, &child), 1);
    uid = 0;
    assert_int_equal(change_on_terminal(-1, &child), 1);
    uid = 1000;
    setenv("PATH", "/nonexistent", 1);
    assert_int_equal(change_on_terminal(-1, &child), 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_user_on_a_terminal_gets_an_agent_for_the_time_of_the_call, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nobody_else_gets_one, set_up, tear_down),
    };
    if (strcmp(argv[0], "pkttyagent") == 0)
        return play_agent(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
