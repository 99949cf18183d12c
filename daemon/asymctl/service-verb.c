/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/service-verb.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <systemd/sd-login.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "app/crash-recovery.h"
#include "app/settings-setup.h"
#include "base/clock.h"
#include "base/macro.h"
#include "base/parse.h"

/*
 * Lets polkit ask for a password on this terminal. Where no desktop does that, polkit refuses, unless the user has registered an
 * agent. The program pkttyagent is one: asymctl runs it during a call that changes something, as systemctl does.
 */

/* For an agent that hangs. polkitd answers at once; the bus daemon may have to start it. */
#define REGISTER_WITHIN (5 * ASYM_SEC)
#define END_WITHIN      ASYM_SEC
#define END_PAUSE       (5 * ASYM_MSEC)

struct agent {
    pid_t pid;
    struct termios terminal; /* the settings before it asked */
};

/* The agent asks on the controlling terminal. Its messages must not get into a report of asymctl. */
static void discard_output(void)
{
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null < 0)
        _exit(1);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
}

/* Returns whether logind knows a session that polkitd takes for this process's: its own, or the user's display. */
static bool has_session(void)
{
    char *session = NULL;
    int r = sd_pid_get_session(0, &session);
    if (r < 0)
        r = sd_uid_get_display(getuid(), &session);
    free(session);
    return r >= 0;
}

/*
 * --fallback leaves the question to an agent of the session, if there is one. Without a session polkitd finds no such agent, and
 * then does not take the fallback either (polkit 122, get_authentication_agent_for_subject).
 *
 * The pipe's other ends close by exec. PATH is the user's own: asymctl has no privilege that the user lacks.
 */
_Noreturn static void run_agent(pid_t parent, int notify)
{
    char fd[16], process[32];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGTERM, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    discard_output();
    snprintf(fd, sizeof fd, "%d", notify);
    snprintf(process, sizeof process, "%d", (int)parent);
    fcntl(notify, F_SETFD, 0);
    execlp("pkttyagent", "pkttyagent", "--notify-fd", fd, "--process", process, has_session() ? "--fallback" : NULL,
           (char *)NULL);
    _exit(1);
}

/* The agent closes the pipe when it has registered, or when it ends. */
static void await_agent(int notify)
{
    const asym_usec end = asym_clock_now() + REGISTER_WITHIN;
    struct pollfd registered = {.fd = notify};
    int r;
    do {
        const asym_usec now = asym_clock_now();
        r = poll(&registered, 1, now < end ? (int)((end - now) / ASYM_MSEC) : 0);
    } while (r < 0 && errno == EINTR);
}

void *asym_polkit_agent_start(void)
{
    int notify[2];
    struct agent agent = {0};
    if (geteuid() == 0 || tcgetattr(STDIN_FILENO, &agent.terminal) < 0 || !isatty(STDOUT_FILENO))
        return NULL;
    struct agent *started = malloc(sizeof *started);
    if (!started || pipe2(notify, O_CLOEXEC) < 0) {
        free(started);
        return NULL;
    }
    const pid_t parent = getpid();
    agent.pid = fork();
    if (agent.pid == 0)
        run_agent(parent, notify[1]);
    close(notify[1]);
    if (agent.pid > 0)
        await_agent(notify[0]);
    close(notify[0]);
    if (agent.pid < 0) {
        free(started);
        return NULL;
    }
    *started = agent;
    return started;
}

/* Returns whether the agent has ended within the time, and reaps it. */
static bool ends_in_time(pid_t agent)
{
    const struct timespec pause = {.tv_nsec = END_PAUSE * 1000L};
    const asym_usec end = asym_clock_now() + END_WITHIN;
    while (waitpid(agent, NULL, WNOHANG) == 0) {
        if (asym_clock_now() >= end)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

static void kill_agent(pid_t agent)
{
    kill(agent, SIGKILL);
    while (waitpid(agent, NULL, 0) < 0 && errno == EINTR)
        ;
}

/*
 * An agent that a signal ends while it asks for a password leaves a terminal that shows nothing, with a part of the password in
 * it. A process in the background would stop here.
 */
static void restore_terminal(const struct termios *before)
{
    struct termios now;
    if (tcgetpgrp(STDIN_FILENO) == getpgrp() && tcgetattr(STDIN_FILENO, &now) == 0 &&
        (now.c_lflag & ECHO) != (before->c_lflag & ECHO))
        tcsetattr(STDIN_FILENO, TCSAFLUSH, before);
}

void asym_polkit_agent_stop(void *ctx)
{
    struct agent *agent = ctx;
    if (!agent)
        return;
    kill(agent->pid, SIGTERM);
    kill(agent->pid, SIGCONT);
    if (!ends_in_time(agent->pid))
        kill_agent(agent->pid);
    restore_terminal(&agent->terminal);
    free(agent);
}

/* Without an answer, the masks of an asymd that died would go unnoticed: nothing else says so. */
static void say_left_over(void)
{
    const struct asym_invocation cli = {.config = NULL};
    struct asym_settings *settings;
    struct asym_error err = {""};
    char left[160];
    if (asym_run_load_lenient(&cli, &settings, NULL) < 0)
        return;
    if (asym_crash_recovery_left(settings->daemon.state_dir, true, left, sizeof left))
        asym_verb_fail(ASYM_EXIT_DONE, (asym_fail(&err, 0, "%s: " ASYM_RESTORE_COMMAND, left), err.text));
    asym_settings_free(settings);
}

int asym_verb_no_service(const char *message)
{
    const int status = asym_verb_fail(ASYM_EXIT_NO_SERVICE, message);
    say_left_over();
    return status;
}

int asym_verb_call_failed(int r, const struct asym_error *err)
{
    const enum asym_exit status = asym_exit_status(r);
    return status == ASYM_EXIT_NO_SERVICE ? asym_verb_no_service(err->text) : asym_verb_fail(status, err->text);
}

int asym_verb_connect(struct asym_client **ret)
{
    struct asym_error err = {""};
    const int r = asym_client_open(ret, &err);
    if (r < 0)
        return asym_verb_call_failed(r, &err);
    asym_client_around_changes(*ret, asym_polkit_agent_start, asym_polkit_agent_stop);
    return ASYM_EXIT_DONE;
}

bool asym_verb_is_pid(const char *text, uint32_t *ret)
{
    uint64_t n;
    if (asym_parse_u64(text, strlen(text), &n) < 0 || n == 0 || n > INT_MAX)
        return false;
    *ret = (uint32_t)n;
    return true;
}
