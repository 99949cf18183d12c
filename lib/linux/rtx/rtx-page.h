/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Reads a page of a program, or a copy of its beginning (include/asym/rtx.h). The functions read nothing outside the page and
 * do bounded work, whatever the page contains and even if it changes meanwhile. No I/O.
 */
#ifndef ASYM_LINUX_RTX_PAGE_H
#define ASYM_LINUX_RTX_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/rtx.h>
#include <asym/types.h>

#include "linux/rtx/rtx-overlay.h"

#define ASYM_RTXD_MAX_SLOTS     4096
#define ASYM_RTXD_MAX_SLOT_SIZE 256
/** Maximum size of a page, bytes. */
#define ASYM_RTXD_MAX_PAGE ((size_t)ASYM_RTXD_MAX_SLOTS * ASYM_RTXD_MAX_SLOT_SIZE + 65536)

/** Layout of a page. It is read once, as the program may change the header afterwards. */
struct asym_rtxd_layout {
    uint32_t header_size, slot_size, n_slots;
    asym_usec notify_min; /**< microseconds, 1 to ASYM_RTX_NOTIFY_MIN_MAX, whatever the header says */
};

/** A slot at the last read. */
struct asym_rtxd_reading {
    uint64_t word;
    uint64_t shown;  /**< the word in the last full snapshot */
    asym_usec since; /**< time since which the slot has had this word */
    int32_t tid;
};

/** Check the header of a page of `size` bytes. 0; -EPROTONOSUPPORT: a later version; -EPROTO: an invalid header. */
int asym_rtxd_check_page(const void *page, size_t size, struct asym_rtxd_layout *ret);

/** State of a page between two reads. All zero at first, except readings. */
struct asym_rtxd_page_state {
    struct asym_rtxd_reading *readings; /**< n_slots entries, zero at first; owned by the caller */
    uint64_t phase;                     /**< asym_rtxd_phase() at the last read with ASYM_ASK_FINAL */
    bool serial;                        /**< the program was in a serial phase at the last read */
};

/** Returns a hash of the masters in a serial phase among the first `most` slots; 0: none. Cheaper than asym_rtxd_read(). */
uint64_t asym_rtxd_phase(const void *page, const struct asym_rtxd_layout *layout, size_t most);

/**
 * Read the first `most` slots at time now. Outside a serial phase, a wait shorter than spin_notify (microseconds) does not
 * count. When a serial phase ends, waits that are still open count only from 10 ms later: the waiting threads are about to get
 * work.
 * how: ASYM_ASK_*; `changed` is relative to the last read with ASYM_ASK_FINAL and without ASYM_ASK_REFRESH. ret: room for
 * n_slots or `most` entries; they come in ascending order of tid, each tid at most once. Returns their number.
 */
size_t asym_rtxd_read(const void *page, const struct asym_rtxd_layout *layout, size_t most, asym_usec now,
                      asym_usec spin_notify, unsigned how, struct asym_rtxd_page_state *state,
                      struct asym_rtxd_thread_report *ret);

#endif
