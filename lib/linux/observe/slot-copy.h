/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Copies a slot of memory that a BPF program may write meanwhile. The slot begins with its seq, which is odd while one does. */
#ifndef ASYM_LINUX_OBSERVE_SLOT_COPY_H
#define ASYM_LINUX_OBSERVE_SLOT_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** A slot that is still being written after so many tries: its writer has lost its virtual CPU. */
enum { ASYM_SLOT_TRIES = 64 };

/** Returns whether there was a moment at which no program wrote the slot. If not, *ret may mix the old and the new content. */
static inline bool asym_slot_copy(const uint32_t *slot, void *ret, size_t size)
{
    for (int i = 0; i < ASYM_SLOT_TRIES; i++) {
        const uint32_t seq = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
        memcpy(ret, slot, size);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (seq % 2 == 0 && __atomic_load_n(slot, __ATOMIC_RELAXED) == seq)
            return true;
    }
    return false;
}

#endif
