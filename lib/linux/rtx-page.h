/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Reading a page that a program has filled, or a copy of its beginning (include/asym/rtx.h). Whatever stands there, and
 * however it changes meanwhile, nothing outside of it is read, and the work is bounded. No I/O.
 */
#ifndef ASYM_LINUX_RTX_PAGE_H
#define ASYM_LINUX_RTX_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/rtx.h>
#include <asym/types.h>

#include "linux/told.h"

#define ASYM_RTX_MAX_SLOTS     4096
#define ASYM_RTX_MAX_SLOT_SIZE 256
/** No page is larger than this. */
#define ASYM_RTX_MAX_PAGE ((size_t)ASYM_RTX_MAX_SLOTS * ASYM_RTX_MAX_SLOT_SIZE + 65536)

/** Where things stand on a page: taken once, as a page may say something else the next moment. */
struct asym_rtx_layout {
    uint32_t header_size, slot_size, n_slots;
    asym_usec notify_min; /**< 1 us to ASYM_RTX_NOTIFY_MIN_MAX, whatever the page says */
};

/** A slot as it was when it was last read. */
struct asym_rtx_reading {
    uint64_t word;
    uint64_t shown;  /**< the word that went into the last whole snapshot */
    asym_usec since; /**< since when it is so */
    int32_t tid;
};

/** The layout of a page of so many bytes. 0; -EPROTONOSUPPORT, -EPROTO. */
int asym_rtx_check_page(const void *page, size_t size, struct asym_rtx_layout *ret);

/** What is remembered of a page. All zero at first, but for readings. */
struct asym_rtx_memory {
    struct asym_rtx_reading *readings; /**< n_slots of them, zero at first. Owned by the caller */
    uint64_t phase;                    /**< as asym_rtx_phase has it, when it was last read to the end */
    bool serial;                       /**< it was in a serial phase */
};

/** Which masters of the first slots, at most most of them, are in a serial phase: a hash; 0: none is. Cheaper than reading. */
uint64_t asym_rtx_phase(const void *page, const struct asym_rtx_layout *layout, size_t most);

/**
 * Read the first slots, at most most of them, and what they say at that time. spin_notify: a wait shorter than this is
 * none, but in a serial phase. Waits that are still open when one ends count from a while later: whoever
 * waits is about to get work.
 * how: ASYM_ASK_*; news are what has changed since the last final answer that was not hurried. ret: as many as there are
 * slots, or most; by tid, rising, a tid at most once. Returns how many.
 */
size_t asym_rtx_read(const void *page, const struct asym_rtx_layout *layout, size_t most, asym_usec now,
                     asym_usec spin_notify, unsigned how, struct asym_rtx_memory *memory, struct asym_told_thread *ret);

#endif
