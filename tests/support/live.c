/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/live.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/process.h"

double asym_live_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void asym_live_sleep(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

int asym_live_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) < 0 ? -1 : CPU_COUNT(&set);
}

pid_t asym_live_start(const char *const *argv, int out)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", ASYM_LIVE_BIN, argv[0]);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        /* Whatever becomes of the test, nothing it started outlives it. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (out >= 0) {
            dup2(out, STDOUT_FILENO);
            dup2(out, STDERR_FILENO);
        }
        execv(argv[0][0] == '/' ? argv[0] : path, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    return pid;
}

int asym_live_wait(pid_t pid)
{
    int status;
    assert_true(pid > 0); /* 0 and below would wait for other children */
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int asym_live_run(const char *const *argv, char *text, size_t size)
{
    int fds[2];
    size_t used = 0;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = asym_live_start(argv, fds[1]);
    close(fds[1]);
    for (;;) {
        char more[4096];
        ssize_t n = read(fds[0], more, sizeof more);
        if (n <= 0)
            break;
        size_t k = used + (size_t)n < size ? (size_t)n : size - 1 - used;
        memcpy(text + used, more, k);
        used += k;
    }
    text[used] = '\0';
    close(fds[0]);
    return asym_live_wait(pid);
}

void asym_live_signal(pid_t pid, int signal)
{
    const int r = asym_process_signal(pid, signal);
    if (r < 0)
        fail_msg("signal %d to process %d: %s", signal, (int)pid, strerror(-r));
}

void asym_live_end(pid_t pid, int signal)
{
    asym_live_signal(pid, signal);
    asym_live_wait(pid);
}

static int count_threads(pid_t pid, int cpus, int nice, int odd)
{
    char path[64];
    int n = 0;
    /* The test may run under nice(1), and what it starts inherits that. */
    nice += getpriority(PRIO_PROCESS, 0);
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        cpu_set_t set;
        int tid = atoi(e->d_name);
        if (tid <= 0 || sched_getaffinity(tid, sizeof set, &set) < 0)
            continue;
        errno = 0;
        int own = getpriority(PRIO_PROCESS, (id_t)tid);
        if (errno != 0)
            continue;
        n += odd ? CPU_COUNT(&set) != cpus || own != nice : CPU_COUNT(&set) < cpus;
    }
    if (d)
        closedir(d);
    return n;
}

int asym_live_odd_threads(pid_t pid, int cpus, int nice)
{
    return count_threads(pid, cpus, nice, 1);
}

int asym_live_narrow_threads(pid_t pid, int cpus)
{
    return count_threads(pid, cpus, 0, 0);
}

int asym_live_await(int (*condition)(pid_t pid, int cpus), pid_t pid, int cpus, int n, double seconds)
{
    double end = asym_live_now() + seconds;
    while (asym_live_now() < end) {
        if (condition(pid, cpus) >= n)
            return 1;
        asym_live_sleep(0.01);
    }
    return condition(pid, cpus) >= n;
}
