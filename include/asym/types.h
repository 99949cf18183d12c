/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The types that every other header uses: time, CPU masks, the identity of a thread, an error.
 */
#ifndef ASYM_TYPES_H
#define ASYM_TYPES_H

#include <stdbool.h>
#include <stdint.h>

/** The largest CPU number that asymd handles, + 1. On a larger machine asymd exits at start with an error message. */
#define ASYM_MAX_CPUS 1024

/** Hexadecimal digits of the longest build id of a program (64 bytes; linkers write 8 to 20), and NUL. */
#define ASYM_BUILD_ID_MAX 129

/** Bytes of a thread's name with the terminating NUL, equal to the kernel's TASK_COMM_LEN. */
#define ASYM_COMM_LEN 16

/** Microseconds; points in time are on CLOCK_MONOTONIC. 0 as a point in time means "never". */
typedef uint64_t asym_usec;

#define ASYM_MSEC ((asym_usec)1000)
#define ASYM_SEC  ((asym_usec)1000000)

/** A set of CPUs: CPU c is bit c % 64 of word c / 64. Operations: lib/base/mask.h. */
struct asym_mask {
    uint64_t w[ASYM_MAX_CPUS / 64];
};

/**
 * The identity of a thread. The kernel reuses tid, so start (clock ticks since boot, field 22 of /proc/PID/task/TID/stat) tells
 * two threads with the same number apart.
 */
struct asym_taskid {
    int32_t tid;
    int32_t tgid;
    uint64_t start;
};

static inline bool asym_taskid_equal(const struct asym_taskid *a, const struct asym_taskid *b)
{
    return a->tid == b->tid && a->tgid == b->tgid && a->start == b->start;
}

/** A message for the user that goes with a negative errno. It says what to do where the errno alone does not. */
struct asym_error {
    char text[1024]; /**< one line without a newline; "" when the errno says enough */
};

/** Writes the message and returns code, so that a function that fails can end in one statement. err may be NULL. */
int asym_fail(struct asym_error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
