/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load-burst: runs without a pause, for a minute.
 * load-burst PID BURSTS MS: BURSTS times it sleeps MS to 2 MS milliseconds, and runs 4 ms of CPU time. For each burst it prints the
 * microseconds from the moment at which it should wake to the end, and those since the end of the burst before in which the CPU
 * ran neither it nor PID. PID 0: it is alone.
 *
 * Where /dev/burn is there (tests/vm/burn), a running thread costs the emulated CPU nothing.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define BURST_NS 4000000

static int64_t read_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void run_for(int device, int64_t ns)
{
    const int64_t end = read_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (device >= 0 && ns > 0)
        ns -= ioctl(device, 0, ns);
    while (device < 0 && read_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        ;
}

static void print_burst(int device, int64_t sleep_ns, int64_t *last, clockid_t other)
{
    const int64_t own = read_ns(CLOCK_THREAD_CPUTIME_ID), others = read_ns(other);
    const int64_t wake = *last + sleep_ns;
    const struct timespec at = {.tv_sec = wake / 1000000000, .tv_nsec = wake % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    run_for(device, BURST_NS);
    const int64_t end = read_ns(CLOCK_MONOTONIC);
    const int64_t ran = read_ns(CLOCK_THREAD_CPUTIME_ID) - own + read_ns(other) - others;
    printf("%lld %lld\n", (long long)(end - wake) / 1000, (long long)(end - *last - ran) / 1000);
    *last = end;
}

int main(int argc, char **argv)
{
    const int device = open("/dev/burn", O_RDWR | O_CLOEXEC);
    clockid_t other = CLOCK_MONOTONIC; /* for a burst that is alone */
    if (argc == 1)
        alarm(60); /* its script may have been killed */
    while (argc == 1)
        run_for(device, 10000000);
    if (argc != 4 || (atoi(argv[1]) > 0 && clock_getcpuclockid(atoi(argv[1]), &other) != 0)) {
        fputs("usage: load-burst [PID BURSTS MS]\n", stderr);
        return 2;
    }
    int64_t last = read_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < atoi(argv[2]); i++)
        print_burst(device, atoi(argv[3]) * (1000000 + (int64_t)(i % 97) * 10310), &last, other);
    return 0;
}
