/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target: any bytes as the page of a program, which changes between two reads. The reader must read nothing outside
 * the page, and return sorted results within bounds.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "linux/rtx/rtx-server-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 64 };

static void check(const struct asym_rtxd_thread_report *t, size_t n, size_t most)
{
    if (n > most)
        abort();
    for (size_t i = 0; i < n; i++)
        if (t[i].tid <= 0 || (i > 0 && t[i - 1].tid >= t[i].tid) || (t[i].spins && t[i].works) ||
            (t[i].master && !t[i].works))
            abort();
}

/* The page has its exact size on the heap, aligned like a mapping. */
static void *copy_page(const uint8_t *data, size_t size, size_t room)
{
    void *page = aligned_alloc(ASYM_RTX_LINE, room);
    if (!page)
        abort();
    memset(page, 0, room);
    memcpy(page, data, size);
    return page;
}

static void read_page(const uint8_t *data, size_t size)
{
    const size_t room = (size + ASYM_RTX_LINE - 1) / ASYM_RTX_LINE * ASYM_RTX_LINE;
    struct asym_rtxd_layout layout;
    struct asym_rtxd_thread_report said[MOST];
    struct asym_rtx_header h = {.magic = ASYM_RTX_MAGIC, .version = ASYM_RTX_VERSION, .header_size = sizeof h};
    if (room == 0)
        return;
    char *page = copy_page(data, size, room);
    /* Half of the inputs begin with a valid header: few others pass the check. */
    if (data[0] & 1 && room > sizeof h) {
        h.slot_size = data[0] & 2 ? 128 : 64;
        h.n_slots = (uint32_t)((room - sizeof h) / h.slot_size);
        h.n_used = data[0];
        memcpy(page, &h, sizeof h);
    }
    if (asym_rtxd_check_page(page, room, &layout) == 0) {
        struct asym_rtxd_page_state page_state = {.readings = calloc(layout.n_slots, sizeof *page_state.readings)};
        if (!page_state.readings)
            abort();
        for (asym_usec now = 0; now < 4; now++) {
            check(said, asym_rtxd_read(page, &layout, MOST, now * 15, 20, now & 3, &page_state, said), MOST);
            for (size_t i = 0; i < room; i++)
                page[i] = (char)(page[i] ^ (char)data[(i * 7 + now) % size]);
        }
        free(page_state.readings);
    }
    free(page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_page(data, size);
    return 0;
}
