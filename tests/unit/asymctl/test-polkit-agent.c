/* SPDX-License-Identifier: GPL-2.0-or-later */
/* polkit's agent for terminals. The test program itself plays pkttyagent: a link of that name is in PATH. */
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/macro.h"
#include "daemon/asymctl/service-verb.h"
#include "support/test.h"

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

/* The answers of logind; -errno: no session. */
static int session_of_process, display_of_user;

static int answer(int r, char **ret_session)
{
    if (r >= 0)
        *ret_session = strdup("1");
    return r;
}

int __wrap_sd_pid_get_session(pid_t pid, char **ret_session);
int __wrap_sd_pid_get_session(pid_t pid, char **ret_session)
{
    (void)pid;
    return answer(session_of_process, ret_session);
}

int __wrap_sd_uid_get_display(uid_t user, char **ret_session);
int __wrap_sd_uid_get_display(uid_t user, char **ret_session)
{
    (void)user;
    return answer(display_of_user, ret_session);
}

/* An agent that ignores SIGTERM, and asks for a password: it inherits this variable. */
#define STUBBORN "ASYM_TEST_STUBBORN"
/* It makes this file if it is not killed. */
#define OUTLIVED "outlived"

static bool has_echo(void)
{
    struct termios t;
    return tcgetattr(STDIN_FILENO, &t) == 0 && t.c_lflag & ECHO;
}

static void stop_echo(void)
{
    struct termios t;
    if (tcgetattr(STDIN_FILENO, &t) < 0)
        _exit(1);
    t.c_lflag &= ~(tcflag_t)ECHO;
    tcsetattr(STDIN_FILENO, TCSANOW, &t);
}

/* Registers a moment after its start, and waits for its end. */
static int play_agent(int argc, char **argv)
{
    if (getenv(STUBBORN)) {
        signal(SIGTERM, SIG_IGN);
        stop_echo();
    }
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
    /* A test that fails must not leave it behind. */
    sleep(20);
    close(open(OUTLIVED, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
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
    session_of_process = display_of_user = 0;
    return symlink(self, link);
}

static int tear_down(void **state)
{
    (void)state;
    unlink(SAID);
    unlink(OUTLIVED);
    unlink("pkttyagent");
    return chdir("/") < 0 || rmdir(dir) < 0;
}

/*
 * Runs during a change, in a child. Returns its exit status: 0: the agent is there; 1: it is not; 2: it outlives its end;
 * 3: what the user types stays invisible.
 */
static int change(void)
{
    const bool had_echo = has_echo();
    void *agent = asym_polkit_agent_start();
    const int status = access(SAID, F_OK) == 0 ? 0 : 1;
    asym_polkit_agent_stop(agent);
    if (waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD)
        return 2;
    return had_echo && !has_echo() ? 3 : status;
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
static int run_on_terminal(int (*run)(void), int lost, pid_t *ret_child)
{
    int terminal;
    char text[256];
    const pid_t child = forkpty(&terminal, NULL, NULL, NULL);
    assert_true(child >= 0);
    if (child == 0) {
        if (lost >= 0)
            dup2(open("/dev/null", O_RDWR | O_CLOEXEC), lost);
        _exit(run());
    }
    *ret_child = child;
    const int status = wait_for(child, terminal, text, sizeof text);
    close(terminal);
    assert_string_equal(text, "");
    return status;
}

static int change_on_terminal(int lost, pid_t *ret_child)
{
    return run_on_terminal(change, lost, ret_child);
}

/* options: of the agent, behind the process. */
static void assert_agent(const char *options)
{
    char said[128] = "", expected[128];
    pid_t child;
    unlink(SAID);
    assert_int_equal(change_on_terminal(-1, &child), 0);
    FILE *f = fopen(SAID, "r");
    assert_non_null(f);
    assert_non_null(fgets(said, sizeof said, f));
    fclose(f);
    snprintf(expected, sizeof expected, "--notify-fd FD --process %d %s", (int)child, options);
    assert_string_equal(said, expected);
}

TEST_WITH(a_user_on_a_terminal_gets_an_agent_for_the_time_of_the_call, set_up, tear_down)
{
    assert_agent("--fallback ");
}

TEST_WITH(an_agent_of_no_session_is_no_fallback, set_up, tear_down)
{
    session_of_process = -ENODATA;
    assert_agent("--fallback ");
    display_of_user = -ENXIO;
    assert_agent("");
}

TEST_WITH(an_agent_that_ignores_its_end_is_killed, set_up, tear_down)
{
    pid_t child;
    setenv(STUBBORN, "1", 1);
    assert_int_equal(change_on_terminal(-1, &child), 0);
    unsetenv(STUBBORN);
    assert_int_equal(access(OUTLIVED, F_OK), -1);
}

static void interrupt(int number)
{
    (void)number;
}

/* Runs in a child. Signals interrupt the wait for the registration and for the end. */
static int change_under_signals(void)
{
    const struct sigaction action = {.sa_handler = interrupt};
    const struct itimerval often = {.it_interval = {.tv_usec = 20000}, .it_value = {.tv_usec = 20000}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    return change();
}

TEST_WITH(signals_do_not_keep_it_from_registering_and_ending, set_up, tear_down)
{
    pid_t child;
    assert_int_equal(run_on_terminal(change_under_signals, -1, &child), 0);
    setenv(STUBBORN, "1", 1);
    assert_int_equal(run_on_terminal(change_under_signals, -1, &child), 0);
    unsetenv(STUBBORN);
}

TEST_WITH(nobody_else_gets_one, set_up, tear_down)
{
    pid_t child;
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
    if (strcmp(argv[0], "pkttyagent") == 0)
        return play_agent(argc, argv);
    return test_run(NULL, NULL);
}
