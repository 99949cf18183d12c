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
#include <unistd.h>

#include "now.h"

#define BURST_NS 4000000

static void run_for(int device, int64_t ns)
{
    const int64_t end = ns_of(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (device >= 0 && ns > 0)
        ns -= ioctl(device, 0, ns);
    while (device < 0 && ns_of(CLOCK_THREAD_CPUTIME_ID) < end)
        ;
}

static void print_burst(int device, int64_t sleep_ns, int64_t *last, clockid_t other)
{
    const int64_t own = ns_of(CLOCK_THREAD_CPUTIME_ID), others = ns_of(other);
    const int64_t wake = *last + sleep_ns;
    sleep_until_ns(wake);
    run_for(device, BURST_NS);
    const int64_t end = now_ns();
    const int64_t ran = ns_of(CLOCK_THREAD_CPUTIME_ID) - own + ns_of(other) - others;
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
    int64_t last = now_ns();
    for (int i = 0; i < atoi(argv[2]); i++)
        print_burst(device, atoi(argv[3]) * (1000000 + (int64_t)(i % 97) * 10310), &last, other);
    return 0;
}
