/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Clocks for programs of a file. */
#ifndef ASYM_TESTS_LOAD_NOW_H
#define ASYM_TESTS_LOAD_NOW_H

#include <stdint.h>
#include <time.h>

static inline double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/** Seconds. */
static inline double now(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

static inline int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline double now_us(void)
{
    return (double)now_ns() / 1e3;
}

#endif
