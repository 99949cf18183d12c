/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The memory that the BPF program of waits-kernel.h (waits.bpf.c) shares with asymd, which maps it. The program writes; asymd
 * writes the begin only. A followed thread has the same slot here as in phases-shared.h.
 */
#ifndef ASYM_LINUX_OBSERVE_WAITS_SHARED_H
#define ASYM_LINUX_OBSERVE_WAITS_SHARED_H

#include "phases-shared.h"

/** So many wakers of a thread have a time of their own. */
enum { ASYM_WAITS_PAIRS = 7 };

/** A thread that has woken the thread of the slot. */
struct asym_waits_pair {
    __u32 slot, tid; /**< slot 0: none */
    __u64 ns;        /**< time of sleeps during which it was runnable, before it ended them */
};

/**
 * The sleeps of a thread since the begin, by what ended them. Only the program that wakes the thread writes it, and the
 * kernel lets one at a time do that.
 */
struct asym_waits_slot {
    __u32 seq;   /**< odd while a program writes the slot */
    __u32 tid;   /**< as in asym_phases_slot: with another one the rest is of an earlier thread */
    __u64 begin; /**< as below: with another one the rest is of an earlier measurement */
    __u64 woken; /**< when the last sleep ended, CLOCK_MONOTONIC ns */
    __u64 slept_ns;
    __u64 kernel_ns;  /**< an interrupt or a thread of the kernel ended them: a timer, a device */
    __u64 outside_ns; /**< a thread of another application did, or one that is not followed */
    __u64 rest_ns;    /**< of pairs that found no place */
    struct asym_waits_pair pairs[ASYM_WAITS_PAIRS];
} __attribute__((aligned(64)));

struct asym_waits_shared {
    __u64 begin; /**< of the measurement, CLOCK_MONOTONIC ns */
    struct asym_waits_slot slots[ASYM_PHASES_SLOTS];
};

#endif
