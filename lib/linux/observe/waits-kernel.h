/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The BPF program that sees who wakes a followed thread (waits.bpf.c): how long each has slept, and for how much of that the
 * thread that woke it was runnable, so that the one waited for the other. It costs time at each wake-up of the machine, so it is
 * there only while a user asks. phases-kernel.h says which threads are followed.
 */
#ifndef ASYM_LINUX_OBSERVE_WAITS_KERNEL_H
#define ASYM_LINUX_OBSERVE_WAITS_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

#include "linux/observe/phases-kernel.h"
#include "linux/observe/waits-shared.h"

/** A thread that another one has waited for. */
struct asym_waits_for {
    int32_t tid, tgid; /**< tgid 0: it has ended */
    uint64_t ns;
};

/** A followed thread; times are since the begin. */
struct asym_waits_thread {
    int32_t tid, tgid;
    uint64_t slept_ns;   /**< in all */
    uint64_t kernel_ns;  /**< sleeps that the kernel ended: by a timer, a device, or a thread of its own */
    uint64_t outside_ns; /**< sleeps that threads outside of the application ended */
    uint64_t rest_ns;    /**< waits for threads that are not among the following */
    uint64_t asleep_ns;  /**< the sleep that has not ended yet */
    size_t n;
    struct asym_waits_for waits[ASYM_WAITS_PAIRS];
};

struct asym_waits;

/** Load the program, which takes some 20 ms of CPU time. Close it before phases. Returns 0; -errno with err. */
ASYM_BPF_ONLY int asym_waits_open(struct asym_phases *phases, struct asym_waits **ret, struct asym_error *err);

/** Detach the program, if it is attached, and unload it. */
ASYM_BPF_ONLY void asym_waits_close(struct asym_waits *w);

/** Begin to measure, with nothing measured: attach the program, unless it is. Returns 0; -errno with err. */
ASYM_BPF_ONLY int asym_waits_start(struct asym_waits *w, struct asym_error *err);

/** Detach the program, if it is attached. */
ASYM_BPF_ONLY void asym_waits_stop(struct asym_waits *w);

/** Call fn for each thread of the application that is alive, in no order. It makes no system call. */
ASYM_BPF_ONLY void asym_waits_each(const struct asym_waits *w, uint32_t app,
                                   void (*fn)(void *ctx, const struct asym_waits_thread *t), void *ctx);

/** The same of this memory, which the BPF programs may write meanwhile; times until now_ns (CLOCK_MONOTONIC). */
void asym_waits_list(const struct asym_waits_shared *waits, const struct asym_phases_shared *phases, uint32_t app,
                     uint64_t now_ns, void (*fn)(void *ctx, const struct asym_waits_thread *t), void *ctx);

#endif
