/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/thread.h"

/* From SIGTERM to SIGKILL. */
#define GRACE ASYM_SEC

/* With children that were killed but are not gone. */
#define PATIENCE (5 * ASYM_SEC)

struct run {
    const struct asym_trial *trial;
    sigset_t before;     /* signal mask */
    off_t input;         /* where our standard input was; -1: it is no file */
    pid_t pid;           /* 0: not started or reaped */
    int go[2], error[2]; /* pipes: to the child, may it begin; from it, why it did not */
    int signals, pidfd;
    struct asym_taskid id;
    bool watched;
};

static asym_usec now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (asym_usec)t.tv_sec * ASYM_SEC + (asym_usec)t.tv_nsec / 1000;
}

static int prepare(const struct run *r)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, STDOUT_FILENO) < 0 || (r->input < 0 && dup2(null, STDIN_FILENO) < 0))
        return -errno;
    return asym_thread_set_mask((int32_t)getpid(), r->trial->cpus, false);
}

/*
 * In the child: only what is safe between fork and exec, and nothing that fails before it is let go: it has to be there when
 * it is watched. Does not return.
 */
static void become(const struct run *r)
{
    char byte;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(r->go[1]);
    if (read(r->go[0], &byte, 1) != 1)
        _exit(127);
    int error = prepare(r);
    if (error >= 0) {
        sigprocmask(SIG_SETMASK, &r->before, NULL);
        execvp(r->trial->argv[0], r->trial->argv);
        error = -errno;
    }
    while (write(r->error[1], &error, sizeof error) < 0 && errno == EINTR)
        ;
    _exit(127);
}

static int start(struct run *r)
{
    sigset_t held;
    struct stat st;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGHUP);
    r->input = fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode) ? lseek(STDIN_FILENO, 0, SEEK_CUR) : -1;
    if (pipe2(r->go, O_CLOEXEC) < 0 || pipe2(r->error, O_CLOEXEC) < 0)
        return -errno;
    sigprocmask(SIG_BLOCK, &held, NULL);
    r->signals = signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK);
    if (r->signals < 0)
        return -errno;
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        become(r);
    r->pid = pid;
    /* Both sides do it, so that it is done whoever is first. */
    setpgid(pid, pid);
    close(r->error[1]);
    r->error[1] = -1;
    r->pidfd = pidfd_open(pid, 0);
    return r->pidfd < 0 ? -errno : 0;
}

/* Let it go; 0 when it has become the program, else why not. */
static int let_go(struct run *r)
{
    int error = 0;
    ssize_t n;
    if (write(r->go[1], "", 1) != 1)
        return -EPIPE;
    do
        n = read(r->error[0], &error, sizeof error);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof error ? error : 0;
}

/* While it is there; a program that is over has no exe any longer. */
static void look_at_exe(const struct run *r, struct asym_trial_result *ret)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)r->pid);
    ssize_t n = readlink(path, ret->exe, sizeof ret->exe);
    ret->exe[n > 0 && n < (ssize_t)sizeof ret->exe ? n : 0] = '\0';
    ret->exe_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

/* 1: it has ended; 0: the time is over; -EINTR: a signal for us. until 0: no time. */
static int wait_until(struct run *r, asym_usec until)
{
    for (;;) {
        struct pollfd fds[] = {{.fd = r->pidfd, .events = POLLIN}, {.fd = r->signals, .events = POLLIN}};
        asym_usec at = now(), left = until > at ? until - at : 0;
        struct timespec t = {.tv_sec = (time_t)(left / ASYM_SEC), .tv_nsec = (long)(left % ASYM_SEC * 1000)};
        struct signalfd_siginfo info;
        int n = ppoll(fds, ASYM_LENGTH(fds), until ? &t : NULL, NULL);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0 && fds[0].revents)
            return 1;
        if (n > 0 && fds[1].revents && read(r->signals, &info, sizeof info) > 0)
            return -EINTR;
        if (n == 0 || (until && now() >= until))
            return 0;
    }
}

/* With no process, or with 1, the negative number would stand for our own group or for every process. */
static void signal_group(const struct run *r, int signal)
{
    if (r->pid > 1)
        kill(-r->pid, signal);
}

static void end(struct run *r)
{
    signal_group(r, SIGTERM);
    if (wait_until(r, now() + GRACE) <= 0)
        signal_group(r, SIGKILL);
}

/* The group is ended while its leader, dead or not, still holds its number. 0; -ECHILD: SIGCHLD is ignored. */
static int reap(struct run *r, int *ret_status)
{
    siginfo_t info;
    int n;
    while (waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
    signal_group(r, SIGKILL);
    do
        n = waitpid(r->pid, ret_status, 0);
    while (n < 0 && errno == EINTR);
    r->pid = 0;
    return n < 0 ? -errno : 0;
}

/* What the group left behind ends while we read. */
static int read_counts(struct run *r, struct asym_counts *ret)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    const asym_usec until = now() + PATIENCE;
    struct asym_counters *c = r->trial->counters;
    int n = c->read(c, &r->id, ret);
    while (n == -ECHILD && now() < until) {
        nanosleep(&pause, NULL);
        n = c->read(c, &r->id, ret);
    }
    return n;
}

static int count(struct run *r, struct asym_trial_result *ret, struct asym_error *err)
{
    struct asym_counters *c = r->trial->counters;
    r->id = (struct asym_taskid){.tid = (int32_t)r->pid, .tgid = (int32_t)r->pid};
    int n = c->watch(c, &r->id);
    if (n < 0)
        return n;
    r->watched = true;
    const asym_usec until = r->trial->time ? now() + r->trial->time : 0;
    n = let_go(r);
    if (n < 0)
        return asym_fail(err, n, "%.200s: %s", r->trial->argv[0], strerror(-n));
    look_at_exe(r, ret);
    n = wait_until(r, until);
    ret->ended = n == 0;
    if (n <= 0)
        end(r);
    if (n < 0)
        return n;
    n = reap(r, &ret->status);
    if (n >= 0)
        n = read_counts(r, &ret->counts);
    return n < 0 ? asym_fail(err, n, "%.200s: cannot be counted: %s", r->trial->argv[0], strerror(-n)) : 0;
}

static void close_all(struct run *r)
{
    int *const fds[] = {&r->go[0], &r->go[1], &r->error[0], &r->error[1], &r->signals, &r->pidfd};
    int status;
    if (r->pid > 1) {
        signal_group(r, SIGKILL);
        kill(r->pid, SIGKILL);
        reap(r, &status);
    }
    if (r->watched)
        r->trial->counters->unwatch(r->trial->counters, &r->id);
    for (size_t i = 0; i < ASYM_LENGTH(fds); i++)
        asym_close_p(fds[i]);
    if (r->input >= 0)
        lseek(STDIN_FILENO, r->input, SEEK_SET);
    sigprocmask(SIG_SETMASK, &r->before, NULL);
}

int asym_trial_run(const struct asym_trial *trial, struct asym_trial_result *ret, struct asym_error *err)
{
    struct run r = {.trial = trial, .input = -1, .go = {-1, -1}, .error = {-1, -1}, .signals = -1, .pidfd = -1};
    struct asym_trial_result result = {.exe_fd = -1};
    sigprocmask(SIG_BLOCK, NULL, &r.before);
    int n = start(&r);
    if (n < 0)
        asym_fail(err, n, "cannot start a process: %s", strerror(-n));
    else
        n = count(&r, &result, err);
    close_all(&r);
    if (n < 0) {
        asym_trial_done(&result);
        return n;
    }
    *ret = result;
    return 0;
}

void asym_trial_done(struct asym_trial_result *result)
{
    asym_close_p(&result->exe_fd);
    result->exe_fd = -1;
}
