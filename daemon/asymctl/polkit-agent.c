/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/polkit-agent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* For an agent that hangs, in ms. polkitd answers at once; the bus daemon may have to start it. */
#define REGISTER_WITHIN 5000

static pid_t agent; /* 0: none */

/* The agent asks on the controlling terminal. Its messages must not get into a report of asymctl. */
static void discard_output(void)
{
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null < 0)
        _exit(1);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
}

/* The pipe's other ends close by exec. PATH is the user's own: asymctl has no privilege that the user lacks. */
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
    execlp("pkttyagent", "pkttyagent", "--notify-fd", fd, "--fallback", "--process", process, (char *)NULL);
    _exit(1);
}

/* The agent closes the pipe when it has registered, and so does its end. */
static void await_agent(int notify)
{
    struct pollfd end = {.fd = notify};
    poll(&end, 1, REGISTER_WITHIN);
}

void asym_polkit_agent_start(void)
{
    int notify[2];
    if (agent > 0 || geteuid() == 0 || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || pipe2(notify, O_CLOEXEC) < 0)
        return;
    const pid_t parent = getpid();
    agent = fork();
    if (agent == 0)
        run_agent(parent, notify[1]);
    close(notify[1]);
    if (agent > 0)
        await_agent(notify[0]);
    close(notify[0]);
}

void asym_polkit_agent_stop(void)
{
    if (agent <= 0)
        return;
    kill(agent, SIGTERM);
    kill(agent, SIGCONT);
    waitpid(agent, NULL, 0);
    agent = 0;
}
