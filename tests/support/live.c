/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/live.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "support/process.h"
#include "support/test.h"

/* ctest ends a test after 300 s or later, and does not say for which process the test waited. */
#define WAIT_SECONDS 250

/* The limit for a process that got a signal to end. */
#define END_SECONDS 60

double asym_live_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Seconds of CPU time that the host has taken from all CPUs. */
static double stolen(void)
{
    double ticks[8] = {0};
    FILE *f = fopen("/proc/stat", "r");
    const int n = f ? fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &ticks[0], &ticks[1], &ticks[2], &ticks[3],
                             &ticks[4], &ticks[5], &ticks[6], &ticks[7])
                    : 0;
    if (f)
        fclose(f);
    return n == 8 ? ticks[7] / (double)sysconf(_SC_CLK_TCK) : 0;
}

struct asym_live_stretch asym_live_begin(void)
{
    return (struct asym_live_stretch){.begin = asym_live_now(), .stolen = stolen()};
}

double asym_live_stolen(const struct asym_live_stretch *stretch)
{
    const double seconds = asym_live_now() - stretch->begin;
    return seconds > 0 ? (stolen() - stretch->stolen) / (seconds * (double)sysconf(_SC_NPROCESSORS_ONLN)) : 0;
}

double asym_live_available(const struct asym_live_stretch *stretch)
{
    return (asym_live_now() - stretch->begin) * (1 - asym_live_stolen(stretch));
}

void asym_live_sleep_available(double seconds)
{
    const struct asym_live_stretch stretch = asym_live_begin();
    const double end = stretch.begin + ASYM_LIVE_STRETCH_MOST * seconds;
    for (double left = seconds; left > 0 && asym_live_now() < end; left = seconds - asym_live_available(&stretch))
        asym_live_sleep(left < 0.01 ? 0.01 : left);
}

void asym_live_sleep(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

bool asym_live_is_in_initial_pid_namespace(void)
{
    struct stat st;
    assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
    return st.st_ino == 0xEFFFFFFCu; /* PROC_PID_INIT_INO */
}

int asym_live_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) < 0 ? -1 : CPU_COUNT(&set);
}

void *asym_live_share(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    return p;
}

pid_t asym_live_start(const char *const *argv, int out)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", ASYM_LIVE_BIN, argv[0]);
    /* The child ends with the test, even if the test is killed. */
    pid_t pid = asym_process_fork();
    if (pid == 0) {
        const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
        dup2(nothing, STDIN_FILENO);
        if (out >= 0) {
            dup2(out, STDOUT_FILENO);
            dup2(out, STDERR_FILENO);
        }
        execv(argv[0][0] == '/' ? argv[0] : path, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    return pid;
}

pid_t asym_live_start_piped(const char *const *argv, int *ret_output)
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    const pid_t pid = asym_live_start(argv, fds[1]);
    close(fds[1]);
    *ret_output = fds[0];
    return pid;
}

const char *asym_live_text(const char *format, ...)
{
    static char texts[16][512];
    static size_t last;
    va_list args;
    char *ret = texts[last++ % ASYM_LENGTH(texts)];
    va_start(args, format);
    const int n = vsnprintf(ret, sizeof *texts, format, args);
    va_end(args);
    assert_in_range(n, 0, sizeof *texts - 1);
    return ret;
}

const char *asym_live_pid_option(pid_t pid)
{
    return asym_live_text("--pid=%d", (int)pid);
}

int asym_live_wait_for(pid_t pid, double seconds)
{
    int status;
    const int r = asym_process_wait(pid, seconds, &status);
    if (r == -ETIMEDOUT) {
        asym_process_explain(pid);
        asym_process_signal(pid, SIGKILL);
    }
    if (r < 0)
        fail_msg("process %d has not ended in %.0f s: %s", (int)pid, seconds, strerror(-r));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int asym_live_wait(pid_t pid)
{
    return asym_live_wait_for(pid, WAIT_SECONDS);
}

/* Like read(2), but fails after the time end. */
static ssize_t read_until(int fd, void *buf, size_t size, double end)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int r;
    do {
        const double left = end - asym_live_now();
        r = poll(&p, 1, left > 0 ? (int)(left * 1000) + 1 : 0);
    } while (r < 0 && errno == EINTR);
    return r > 0 ? read(fd, buf, size) : -1;
}

int asym_live_run(const char *const *argv, char *text, size_t size)
{
    int output;
    size_t used = 0;
    const pid_t pid = asym_live_start_piped(argv, &output);
    const double end = asym_live_now() + WAIT_SECONDS;
    for (;;) {
        char more[4096];
        ssize_t n = read_until(output, more, sizeof more, end);
        if (n <= 0)
            break;
        size_t k = used + (size_t)n < size ? (size_t)n : size - 1 - used;
        memcpy(text + used, more, k);
        used += k;
    }
    text[used] = '\0';
    close(output);
    return asym_live_wait_for(pid, END_SECONDS);
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
    asym_live_wait_for(pid, END_SECONDS);
}

static int read_line(const char *path, char *text, int size)
{
    FILE *f = fopen(path, "re");
    const bool is_read = f && fgets(text, size, f);
    if (f)
        fclose(f);
    return is_read ? 0 : -1;
}

static int count_threads(pid_t pid, int cpus, int nice, int odd)
{
    char path[64];
    int n = 0;
    /* The test may run under nice(1), and its children inherit that nice value. */
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

/* Returns the number of threads that have run; prefix: only those whose name begins so. */
static int count_ran(pid_t pid, const char *prefix)
{
    char path[300], text[64];
    unsigned long long ran;
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "/proc/%d/task/%s/comm", (int)pid, e->d_name);
        if (atoi(e->d_name) <= 0 || read_line(path, text, sizeof text) < 0 ||
            strncmp(text, prefix, strlen(prefix)) != 0)
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", (int)pid, e->d_name);
        n += read_line(path, text, sizeof text) == 0 && sscanf(text, "%llu", &ran) == 1 && ran > 0;
    }
    if (d)
        closedir(d);
    return n;
}

int asym_live_ran_threads(pid_t pid, int unused)
{
    return count_ran(pid, "");
}

/* A process that has not called execve(2) yet has the name of the test. */
static int count_ran_of_load(pid_t pid, int unused)
{
    return count_ran(pid, "load-");
}

void asym_live_await_load(pid_t pid, int n)
{
    if (!asym_live_await(count_ran_of_load, pid, 0, n, ASYM_LIVE_PATIENCE))
        fail_msg("of %d threads of process %d have run: %d", n, (int)pid, count_ran(pid, "load-"));
}

void asym_live_settle(pid_t pid, int n)
{
    asym_live_await_load(pid, n);
    asym_live_sleep(ASYM_LIVE_SETTLE);
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
