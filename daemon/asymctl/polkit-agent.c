/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/polkit-agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* For an agent that hangs. polkitd answers at once; the bus daemon may have to start it. */
#define REGISTER_WITHIN (5 * ASYM_SEC)
#define END_WITHIN      ASYM_SEC
#define END_PAUSE       (5 * ASYM_MSEC)

static pid_t agent; /* 0: none */
static struct termios terminal;

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

void asym_polkit_agent_start(void)
{
    int notify[2];
    if (agent > 0 || geteuid() == 0 || tcgetattr(STDIN_FILENO, &terminal) < 0 || !isatty(STDOUT_FILENO) ||
        pipe2(notify, O_CLOEXEC) < 0)
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

/* Returns whether the agent has ended within the time, and reaps it. */
static bool ends_in_time(void)
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

/* The agent may be asking for a password: then the terminal shows nothing that the user types, and has a part of the password. */
static void kill_agent(void)
{
    kill(agent, SIGKILL);
    while (waitpid(agent, NULL, 0) < 0 && errno == EINTR)
        ;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &terminal);
}

void asym_polkit_agent_stop(void)
{
    if (agent <= 0)
        return;
    kill(agent, SIGTERM);
    kill(agent, SIGCONT);
    if (!ends_in_time())
        kill_agent();
    agent = 0;
}
