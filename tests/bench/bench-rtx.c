/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cost of RTX to a program: a change of state, a phase with reports, and a phase too short for reports. Medians of many
 * rounds, with a daemon that only listens, in another process. It prints a table and asserts nothing.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include <asym/rtx.h>

#include "support/listener.h"
#include "support/process.h"
#include "support/test.h"
#include "times.h"

enum { ROUNDS = 2001 };

static struct asym_rtx_slot *slot;

static void change_state(void)
{
    asym_rtx_set(slot, ASYM_RTX_SPINNING);
    asym_rtx_set(slot, ASYM_RTX_WORKING);
}

/* This phase is too short for a report. */
static void short_phase(void)
{
    asym_rtx_serial_begin();
    asym_rtx_serial_end();
}

static double clock_ns(void)
{
    double best = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        const double a = read_ns(CLOCK_MONOTONIC), b = read_ns(CLOCK_MONOTONIC);
        best = b - a < best ? b - a : best;
    }
    return best;
}

static void wait_ns(double ns)
{
    const double end = read_ns(CLOCK_MONOTONIC) + ns;
    while (read_ns(CLOCK_MONOTONIC) < end)
        ;
}

static void print(const char *what, double took[ROUNDS])
{
    qsort(took, ROUNDS, sizeof took[0], by_value);
    printf("%-48s median %7.1f ns, 90 %% %7.1f, 99 %% %7.1f\n", what, took[ROUNDS / 2], took[ROUNDS * 9 / 10],
           took[ROUNDS * 99 / 100]);
}

/* Measures ns of one of the two calls. */
static void measure(const char *what, void (*pair)(void), int repeat)
{
    static double took[ROUNDS];
    const double clock = clock_ns();
    for (int i = 0; i < ROUNDS; i++) {
        const double begun = read_ns(CLOCK_MONOTONIC);
        for (int k = 0; k < repeat; k++)
            pair();
        took[i] = (read_ns(CLOCK_MONOTONIC) - begun - clock) / repeat / 2;
    }
    print(what, took);
}

/* Measures the begin and the end of a phase longer than notify_min: the program reports both. */
static void measure_reported(const char *what, double phase_us)
{
    static double took[ROUNDS];
    const double clock = clock_ns();
    for (int i = 0; i < ROUNDS; i++) {
        const double a = read_ns(CLOCK_MONOTONIC);
        asym_rtx_serial_begin();
        const double b = read_ns(CLOCK_MONOTONIC);
        wait_ns(phase_us * 1e3);
        const double c = read_ns(CLOCK_MONOTONIC);
        asym_rtx_serial_end();
        const double d = read_ns(CLOCK_MONOTONIC);
        took[i] = (b - a + d - c) / 2 - clock;
        wait_ns(phase_us * 1e3);
    }
    print(what, took);
}

/* The kernel's part of a report: a pwrite(2) to a file wakes the process that sleeps at its inotify queue. */
static void measure_bare_wake(double pause_us)
{
    static double took[ROUNDS];
    const double clock = clock_ns();
    char path[] = "/dev/shm/bench-rtx-XXXXXX", text[4096];
    const int fd = mkostemp(path, O_CLOEXEC), events = inotify_init1(IN_CLOEXEC);
    if (fd < 0 || inotify_add_watch(events, path, IN_MODIFY) < 0)
        exit(1);
    fflush(stdout);
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        struct pollfd wait = {.fd = events, .events = POLLIN};
        while (poll(&wait, 1, -1) > 0 && read(events, text, sizeof text) > 0)
            ;
        _exit(0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        wait_ns(pause_us * 1e3);
        const double begun = read_ns(CLOCK_MONOTONIC);
        if (pwrite(fd, &i, sizeof i, 0) != sizeof i)
            exit(1);
        took[i] = read_ns(CLOCK_MONOTONIC) - begun - clock;
    }
    print("for comparison: a bare write that wakes a sleeper", took);
    asym_process_signal(pid, SIGKILL);
    unlink(path);
    close(fd);
}

/* Starts a process that waits for wakeups by the page like asymd. */
static pid_t start_listener(const struct asym_handed *h)
{
    char path[32], text[4096];
    fflush(stdout);
    pid_t pid = asym_process_fork();
    if (pid != 0)
        return pid;
    const int events = inotify_init1(IN_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", h->file);
    if (inotify_add_watch(events, path, IN_MODIFY) < 0)
        _exit(1);
    struct pollfd fd = {.fd = events, .events = POLLIN};
    while (poll(&fd, 1, -1) > 0 && read(events, text, sizeof text) > 0)
        ;
    _exit(0);
}

int main(void)
{
    struct asym_listener l;
    struct asym_handed h;
    asym_listener_open(&l);
    const struct asym_rtx_options options = {.size = sizeof options, .notify_min_usec = 10};
    if (asym_rtx_join(&options) < 0 || !(slot = asym_rtx_thread()))
        return 1;
    if (!asym_listener_take(&l, 10, &h))
        return 1;
    const pid_t pid = start_listener(&h);
    asym_rtx_master(1);
    measure("change of state", change_state, 1000);
    measure("begin or end of a phase, too short to be reported", short_phase, 1000);
    measure_reported("begin or end, reported, a listener that sleeps", 200);
    measure_bare_wake(200);
    asym_process_signal(pid, SIGSTOP);
    measure_reported("begin or end, reported, a listener that does not", 20);
    asym_process_signal(pid, SIGKILL);
    asym_listener_done(&l);
    return 0;
}
