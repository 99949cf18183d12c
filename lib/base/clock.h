/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The clocks of the kernel, in microseconds but for asym_clock_ns. The functions are inline, so that the base library itself calls
 * no clock. The core and the policies must not include this file: tests/purity.sh fails if they do.
 */
#ifndef ASYM_BASE_CLOCK_H
#define ASYM_BASE_CLOCK_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <asym/types.h>

/** Returns whether the clock can be read, and its time in nanoseconds in *ret. */
static inline bool asym_clock_ns(clockid_t clock, uint64_t *ret)
{
    struct timespec t;
    if (clock_gettime(clock, &t) < 0)
        return false;
    *ret = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    return true;
}

/** Returns the time, or 0 if the clock cannot be read (the CPU clock of a process that has ended). */
static inline asym_usec asym_clock_read(clockid_t clock)
{
    uint64_t ns;
    return asym_clock_ns(clock, &ns) ? (asym_usec)(ns / 1000) : 0;
}

static inline asym_usec asym_clock_now(void)
{
    return asym_clock_read(CLOCK_MONOTONIC);
}

/** Sleep for that time, whatever signals come. */
static inline void asym_clock_sleep(asym_usec time)
{
    struct timespec left = {(time_t)(time / ASYM_SEC), (long)(time % ASYM_SEC) * 1000};
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

/** Returns the CPU time of the calling thread. */
static inline asym_usec asym_clock_thread_cpu(void)
{
    return asym_clock_read(CLOCK_THREAD_CPUTIME_ID);
}

/** Returns the CPU time of all threads of this process. */
static inline asym_usec asym_clock_process_cpu(void)
{
    return asym_clock_read(CLOCK_PROCESS_CPUTIME_ID);
}

#endif
