/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Reads what each thread waited for from the memory that the BPF programs write, while they write it. */
#ifndef ASYM_LINUX_OBSERVE_WAITS_LIST_H
#define ASYM_LINUX_OBSERVE_WAITS_LIST_H

#include "linux/observe/waits-types.h"

/** The function behind asym_waits_each(); times until now_ns (CLOCK_MONOTONIC). */
void asym_waits_list(const struct asym_waits_shared *waits, const struct asym_phases_shared *phases, uint32_t app,
                     uint64_t now_ns, void (*fn)(void *ctx, const struct asym_waits_thread *t), void *ctx);

#endif
