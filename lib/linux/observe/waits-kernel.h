/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The BPF program that sees who wakes a followed thread (waits.bpf.c): how long each has slept, and for how much of that the
 * thread that woke it was runnable, so that the one waited for the other. It costs time at each wake-up of the machine, so it is
 * there only while a user asks. phases-kernel.h says which threads are followed.
 */
#ifndef ASYM_LINUX_OBSERVE_WAITS_KERNEL_H
#define ASYM_LINUX_OBSERVE_WAITS_KERNEL_H

#include <stdint.h>

#include <asym/error.h>

#include "linux/observe/phases-kernel.h"
#include "linux/observe/waits-types.h"

struct asym_waits;

/** Load the program, which takes some 20 ms of CPU time. Close it before phases. Returns 0; -errno with err. */
int asym_waits_open(struct asym_phases *phases, struct asym_waits **ret, struct asym_error *err);

/** Accepts NULL. */
void asym_waits_close(struct asym_waits *w);

/** Begin to measure, with nothing measured: attach the program, unless it is. Returns 0; -errno with err. */
int asym_waits_start(struct asym_waits *w, struct asym_error *err);

/** Detach the program, if it is attached. Accepts NULL. */
void asym_waits_stop(struct asym_waits *w);

/** Call fn for each thread of the application that is alive, in no order. It makes no system call. */
void asym_waits_each(const struct asym_waits *w, uint32_t app, void (*fn)(void *ctx, const struct asym_waits_thread *t),
                     void *ctx);

#endif
