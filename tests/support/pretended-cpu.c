/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/pretended-cpu.h"

#include <time.h>

asym_usec asym_pretended_cpu;

int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
    const int r = __real_clock_gettime(clock, ret);
    if (r == 0 && clock == CLOCK_THREAD_CPUTIME_ID) {
        const uint64_t ns = (uint64_t)ret->tv_nsec + asym_pretended_cpu * 1000;
        ret->tv_sec += (time_t)(ns / 1000000000);
        ret->tv_nsec = (long)(ns % 1000000000);
    }
    return r;
}
