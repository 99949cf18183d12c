/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/process.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/must.h"

int asym_process_signal(pid_t pid, int signal)
{
    if (pid <= 1)
        return -EINVAL;
    return kill(pid, signal) < 0 ? -errno : 0;
}

int asym_process_signal_group(pid_t leader, int signal)
{
    if (leader <= 1)
        return -EINVAL;
    return kill(-leader, signal) < 0 ? -errno : 0;
}

void asym_process_end_with(pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(1);
}

static pid_t fork_to_end_with_parent(void)
{
    const pid_t parent = getpid(), pid = fork();
    MUST(pid >= 0);
    if (pid == 0)
        asym_process_end_with(parent);
    return pid;
}

pid_t asym_process_fork(void)
{
    const pid_t pid = fork_to_end_with_parent();
    if (pid == 0)
        setpgid(0, 0);
    return pid;
}

pid_t asym_process_fork_session(void)
{
    const pid_t pid = fork_to_end_with_parent();
    if (pid == 0 && setsid() < 0)
        _exit(1);
    return pid;
}

pid_t asym_process_fork_orphan(unsigned seconds)
{
    const pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0)
        alarm(seconds);
    return pid;
}

int asym_process_become(uid_t uid)
{
    const pid_t parent = getppid();
    if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
        return -errno;
    asym_process_end_with(parent);
    /* A program that the user starts is dumpable after execve(2). */
    return prctl(PR_SET_DUMPABLE, 1) < 0 ? -errno : 0;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int asym_process_wait(pid_t pid, double seconds, int *ret_status)
{
    const struct timespec step = {.tv_nsec = 2000000};
    int status;
    if (pid <= 1)
        return -EINVAL;
    for (const double end = now() + seconds;;) {
        const bool is_last = now() >= end;
        const pid_t r = waitpid(pid, &status, WNOHANG);
        if (r == pid) {
            *ret_status = status;
            return 0;
        }
        if (r < 0 && errno != EINTR)
            return -errno;
        if (is_last)
            return -ETIMEDOUT;
        nanosleep(&step, NULL);
    }
}

static int end_at_once(void *unused)
{
    return 0;
}

int asym_process_make_threads(unsigned n)
{
    /* CLONE_VFORK: this thread sleeps until the new one has ended, so that one stack is enough. */
    static _Alignas(16) char stack[16384];
    const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_VFORK;
    for (unsigned i = 0; i < n; i++)
        if (clone(end_at_once, stack + sizeof stack, flags, NULL) < 0)
            return -errno;
    return 0;
}

char asym_process_state(pid_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    const size_t n = f ? fread(text, 1, sizeof text, f) : 0;
    if (f)
        fclose(f);
    /* A name can have parentheses. */
    const char *close = n > 3 ? memrchr(text, ')', n - 3) : NULL;
    return close ? close[2] : 0;
}

bool asym_process_catches(pid_t pid, int signal)
{
    char name[64], line[256];
    unsigned long long caught = 0;
    snprintf(name, sizeof name, "/proc/%d/status", (int)pid);
    FILE *in = fopen(name, "re");
    while (in && fgets(line, sizeof line, in))
        sscanf(line, "SigCgt: %llx", &caught);
    if (in)
        fclose(in);
    return caught >> (signal - 1) & 1;
}

int asym_process_stop(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};
    int r = asym_process_signal(pid, SIGSTOP);
    /* The kernel tells the parent when the last thread has stopped. The state of the process is that of the first one. */
    for (const double end = now() + 10; r == 0 && info.si_pid == 0; usleep(1000))
        if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | WNOWAIT) < 0)
            r = -errno;
        else if (info.si_pid == 0 && now() >= end)
            r = -ETIMEDOUT;
    return r;
}

size_t asym_process_children(pid_t pid, pid_t *ret_children, size_t max)
{
    char path[64];
    size_t n = 0;
    int child;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(path, "re");
    while (f && n < max && fscanf(f, "%d", &child) == 1)
        ret_children[n++] = child;
    if (f)
        fclose(f);
    return n;
}

int asym_process_descriptors(pid_t pid)
{
    char path[64];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    if (!d)
        return -errno;
    for (const struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n - (pid == getpid());
}

/* Print the lines of the file that begin with one of the words, or all lines if words is NULL. */
static void print_lines(const char *directory, const char *name, const char *const *words)
{
    char path[320], line[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        bool wanted = !words;
        for (const char *const *w = words; w && *w; w++)
            wanted = wanted || strncmp(line, *w, strlen(*w)) == 0;
        if (wanted)
            fprintf(stderr, "    %.*s\n", (int)strcspn(line, "\n"), line);
    }
    if (f)
        fclose(f);
}

void asym_process_explain(pid_t pid)
{
    static const char *const words[] = {"Name:", "State:", "SigPnd:", "ShdPnd:", "SigBlk:", NULL};
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    if (!d)
        fprintf(stderr, "process %d: %s\n", (int)pid, strerror(errno));
    for (struct dirent *e; d && (e = readdir(d));) {
        char task[320];
        if (atoi(e->d_name) <= 0)
            continue;
        snprintf(task, sizeof task, "%s/%s", path, e->d_name);
        fprintf(stderr, "thread %s of process %d\n", e->d_name, (int)pid);
        print_lines(task, "status", words);
        print_lines(task, "sched", (const char *const[]){"policy", "prio", NULL});
        print_lines(task, "wchan", NULL);
        print_lines(task, "syscall", NULL);
        print_lines(task, "stack", NULL);
    }
    if (d)
        closedir(d);
}
