/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Fake threads behind every function of linux/sys/thread.h. CMake links the tests named in asym_fake_kernel_tests
 * (tests/CMakeLists.txt) with this file instead of lib/linux/sys/thread.c. So the actuator, the fork guard and crash
 * recovery run without root and change no real thread.
 */
#ifndef ASYM_TESTS_SUPPORT_FAKE_KERNEL_H
#define ASYM_TESTS_SUPPORT_FAKE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

#include "linux/enforce/ledger-internal.h"

enum { FAKE_THREADS = 64 };

/** The calls that a test can make fail. */
enum fake_call { FAKE_GET_MASK, FAKE_SET_MASK, FAKE_GET_SCHED, FAKE_SET_NICE, FAKE_GET_STAT, FAKE_N_CALLS };

struct fake_thread {
    int32_t tid, tgid;
    int32_t ppid;   /**< parent of its process; a test sets it if ancestry matters */
    uint64_t start; /**< clock ticks since boot */
    uint32_t flags; /**< PF_* */
    uint32_t policy;
    struct asym_mask mask, cpuset;
    int8_t nice;
    bool reset_on_fork;
    bool set_full_cpuset;    /**< the last change set every bit of the mask */
    unsigned n_set_mask;     /**< how often its mask was set */
    unsigned n_set_nice;     /**< how often its nice value or reset-on-fork was set */
    struct asym_mask set[8]; /**< the first masks that were set */
    int errors[FAKE_N_CALLS];
    unsigned spared[FAKE_N_CALLS]; /**< number of calls that succeed before errors applies */
    unsigned times[FAKE_N_CALLS];  /**< number of calls that fail; 0: all further ones */
};

/** Remove all threads and set the time to 1000 s, 100,000 clock ticks. */
void fake_kernel_reset(void);

/** Add a SCHED_OTHER thread of nice 0 that started 10 s after boot, with this mask; its cpuset has CPUs 0-7. */
struct fake_thread *fake_kernel_thread(int32_t tgid, int32_t tid, struct asym_mask mask);

/** Returns the thread, or NULL. */
struct fake_thread *fake_kernel_find(int32_t tid);

/** End the thread. */
void fake_kernel_end(int32_t tid);

/** Make the call fail with -errno, after spared calls that succeed; error 0: let it succeed again. */
void fake_kernel_fail(struct fake_thread *t, enum fake_call call, int error, unsigned spared);

/** The same, but only so many calls fail. */
void fake_kernel_fail_times(struct fake_thread *t, enum fake_call call, int error, unsigned spared, unsigned times);

/** Call fn before each change of a thread; NULL: call nothing. */
void fake_kernel_watch(void (*fn)(const struct fake_thread *t));

/** Advance the time. */
void fake_kernel_wait(asym_usec time);

/** Returns a mask of CPUs 0-63 from one word. */
struct asym_mask fake_mask(uint64_t bits);

/** Make the ledger read these CPU lists, such as "0-7", instead of those of the machine. "" is an empty list. */
void fake_kernel_cpus(struct asym_ledger *l, const char *online, const char *possible, const char *isolated);

#endif
