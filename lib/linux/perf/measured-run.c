/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/perf/measured-run.h"

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

#include "base/clock.h"
#include "base/macro.h"
#include "linux/sys/thread.h"

/* Time from SIGTERM to SIGKILL. */
#define GRACE ASYM_SEC

/* Time between two calls of waiting. */
#define WAITING (ASYM_SEC / 5)

/* Time to wait for children that were killed but have not exited yet. */
#define PATIENCE (5 * ASYM_SEC)

struct run {
    const struct asym_measured_run_config *config;
    sigset_t before;     /* signal mask */
    off_t input;         /* the offset of standard input; -1: not a regular file */
    pid_t pid;           /* 0: not started or reaped */
    int go[2], error[2]; /* pipes: go lets the child start; error returns its error */
    int signals, pidfd;
    struct asym_taskid id;
    bool watched;
};

static int prepare(const struct run *r)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, STDOUT_FILENO) < 0 || (r->input < 0 && dup2(null, STDIN_FILENO) < 0))
        return -errno;
    return asym_thread_set_mask((int32_t)getpid(), r->config->cpus, false);
}

/*
 * Runs in the child. It uses only functions that are safe between fork and exec. Nothing may fail before the parent lets it
 * go: the child must exist when the parent starts to count it. Does not return.
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
        execvp(r->config->argv[0], r->config->argv);
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
    /* Parent and child both call setpgid, so that the group exists whichever runs first. */
    setpgid(pid, pid);
    close(r->error[1]);
    r->error[1] = -1;
    r->pidfd = pidfd_open(pid, 0);
    return r->pidfd < 0 ? -errno : 0;
}

/* Lets the child go. Returns 0 after a successful exec; else -errno of the child. */
static int start_program(struct run *r)
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

/* Read this while the program runs: after it exits, its exe link is gone. */
static void read_exe(const struct run *r, struct asym_measured_run_result *ret)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)r->pid);
    ssize_t n = readlink(path, ret->exe, sizeof ret->exe);
    ret->exe[n > 0 && n < (ssize_t)sizeof ret->exe ? n : 0] = '\0';
    ret->exe_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

/* Returns 1: the program has exited; 0: the time is over; -EINTR: a signal for asymd came; -errno. until 0: no limit. */
static int wait_until(struct run *r, asym_usec until)
{
    for (;;) {
        struct pollfd fds[] = {{.fd = r->pidfd, .events = POLLIN}, {.fd = r->signals, .events = POLLIN}};
        const bool shows = r->config->waiting != NULL;
        asym_usec at = asym_clock_now(), left = until > at ? until - at : until ? 0 : ASYM_SEC;
        left = shows ? ASYM_MIN(left, (asym_usec)WAITING) : left;
        struct timespec t = {.tv_sec = (time_t)(left / ASYM_SEC), .tv_nsec = (long)(left % ASYM_SEC * 1000)};
        struct signalfd_siginfo info;
        int n = ppoll(fds, ASYM_LENGTH(fds), until || shows ? &t : NULL, NULL);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0 && fds[0].revents)
            return 1;
        if (n > 0 && fds[1].revents && read(r->signals, &info, sizeof info) > 0)
            return -EINTR;
        if (until && asym_clock_now() >= until)
            return 0;
        if (shows)
            r->config->waiting(r->config->ctx);
    }
}

/* kill(-0) would signal our own group, and kill(-1) every process. */
static void signal_group(const struct run *r, int signal)
{
    if (r->pid > 1)
        kill(-r->pid, signal);
}

/*
 * Kills the group before it reaps the leader: until then the kernel cannot reuse the number. Returns 0; -ECHILD: SIGCHLD is
 * ignored.
 */
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

/* The rest of the group may still be exiting, so the read is repeated. */
static int read_counts(struct run *r, struct asym_counts *ret)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    const asym_usec until = asym_clock_now() + PATIENCE;
    struct asym_counters *c = r->config->counters;
    int n = c->read(c, &r->id, ret);
    while (n == -ECHILD && asym_clock_now() < until) {
        nanosleep(&pause, NULL);
        n = c->read(c, &r->id, ret);
    }
    return n;
}

static int count(struct run *r, struct asym_measured_run_result *ret, struct asym_error *err)
{
    struct asym_counters *c = r->config->counters;
    r->id = (struct asym_taskid){.tid = (int32_t)r->pid, .tgid = (int32_t)r->pid};
    int n = c->watch(c, &r->id);
    if (n < 0)
        return n;
    r->watched = true;
    const asym_usec until = r->config->time ? asym_clock_now() + r->config->time : 0;
    n = start_program(r);
    if (n < 0)
        return asym_fail(err, n, "%.200s: %s", r->config->argv[0], strerror(-n));
    read_exe(r, ret);
    n = wait_until(r, until);
    ret->ended = n == 0;
    if (n <= 0) {
        signal_group(r, SIGTERM);
        if (wait_until(r, asym_clock_now() + GRACE) <= 0)
            signal_group(r, SIGKILL);
    }
    if (n < 0)
        return n;
    n = reap(r, &ret->status);
    if (n >= 0)
        n = read_counts(r, &ret->counts);
    return n < 0 ? asym_fail(err, n, "cannot count %.200s: %s", r->config->argv[0], strerror(-n)) : 0;
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
        r->config->counters->unwatch(r->config->counters, &r->id);
    for (size_t i = 0; i < ASYM_LENGTH(fds); i++)
        asym_close_p(fds[i]);
    if (r->input >= 0)
        lseek(STDIN_FILENO, r->input, SEEK_SET);
    sigprocmask(SIG_SETMASK, &r->before, NULL);
}

int asym_measured_run(const struct asym_measured_run_config *config, struct asym_measured_run_result *ret,
                      struct asym_error *err)
{
    struct run r = {.config = config, .input = -1, .go = {-1, -1}, .error = {-1, -1}, .signals = -1, .pidfd = -1};
    struct asym_measured_run_result result = {.exe_fd = -1};
    sigprocmask(SIG_BLOCK, NULL, &r.before);
    int n = start(&r);
    if (n < 0)
        asym_fail(err, n, "cannot start a process: %s", strerror(-n));
    else
        n = count(&r, &result, err);
    close_all(&r);
    if (n < 0) {
        asym_measured_run_done(&result);
        return n;
    }
    *ret = result;
    return 0;
}

void asym_measured_run_done(struct asym_measured_run_result *result)
{
    asym_close_p(&result->exe_fd);
    result->exe_fd = -1;
}
