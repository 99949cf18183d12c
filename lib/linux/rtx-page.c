/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/rtx-page.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

/* Whoever is to get work in a phase that begins cannot say so before it has a CPU: some slices of a busy one. */
#define FORK_GRACE (10 * ASYM_MSEC)

int asym_rtx_check_hello(const void *message, size_t size)
{
    struct asym_rtx_hello hello;
    if (size < sizeof hello)
        return -EPROTO;
    memcpy(&hello, message, sizeof hello);
    if (hello.magic != ASYM_RTX_MAGIC || hello.size != size || hello.version == 0)
        return -EPROTO;
    return hello.version > ASYM_RTX_VERSION ? -EPROTONOSUPPORT : 0;
}

int asym_rtx_check_page(const void *page, size_t size, struct asym_rtx_layout *ret)
{
    struct asym_rtx_header h;
    if (size < sizeof h || size > ASYM_RTX_MAX_PAGE)
        return -EPROTO;
    memcpy(&h, page, sizeof h);
    if (h.magic != ASYM_RTX_MAGIC || h.version == 0)
        return -EPROTO;
    if (h.version > ASYM_RTX_VERSION)
        return -EPROTONOSUPPORT;
    if (h.header_size < sizeof h || h.header_size > size || h.header_size % ASYM_RTX_LINE != 0 ||
        h.slot_size < sizeof(struct asym_rtx_slot) || h.slot_size > ASYM_RTX_MAX_SLOT_SIZE ||
        h.slot_size % ASYM_RTX_LINE != 0 || h.n_slots == 0 || h.n_slots > ASYM_RTX_MAX_SLOTS ||
        (size - h.header_size) / h.slot_size < h.n_slots)
        return -EPROTO;
    *ret = (struct asym_rtx_layout){.header_size = h.header_size, .slot_size = h.slot_size, .n_slots = h.n_slots};
    return 0;
}

static const struct asym_rtx_slot *slot_at(const void *page, const struct asym_rtx_layout *l, size_t i)
{
    return (const void *)((const char *)page + l->header_size + i * l->slot_size);
}

/* The thread of a slot is the same before and after its word was read, or the slot says nothing. */
static bool take(const struct asym_rtx_slot *slot, asym_usec now, struct asym_rtx_reading *r)
{
    const int32_t tid = __atomic_load_n(&slot->tid, __ATOMIC_ACQUIRE);
    const uint64_t word = __atomic_load_n(&slot->word, __ATOMIC_ACQUIRE);
    if (tid <= 0 || __atomic_load_n(&slot->tid, __ATOMIC_RELAXED) != tid || (word & ASYM_RTX_STATE) == 0) {
        *r = (struct asym_rtx_reading){0};
        return false;
    }
    if (r->tid != tid || r->word != word)
        *r = (struct asym_rtx_reading){.word = word, .shown = r->tid == tid ? r->shown : 0, .since = now, .tid = tid};
    return true;
}

static bool is_serial(uint64_t word)
{
    const uint64_t all = ASYM_RTX_MARKS;
    return (word & all) == all;
}

static struct asym_told_thread meaning(const struct asym_rtx_reading *r, bool serial, asym_usec now,
                                       asym_usec spin_notify)
{
    const uint64_t state = r->word & ASYM_RTX_STATE;
    const bool waits = state == ASYM_RTX_SPINNING && (serial || (now >= r->since && now - r->since >= spin_notify));
    const bool works = state == ASYM_RTX_WORKING;
    const bool phase = !(r->word & ASYM_RTX_PHASES) || (r->word & ASYM_RTX_SERIAL);
    return (struct asym_told_thread){
        .tid = r->tid,
        .spins = waits || state == ASYM_RTX_SLEEPING,
        .since = serial || works ? 0 : r->since,
        .master = works && (r->word & ASYM_RTX_MASTER) && phase,
        .works = works,
        .news = r->word != r->shown,
    };
}

static int by_tid(const void *a, const void *b)
{
    const struct asym_told_thread *x = a, *y = b;
    return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static size_t sort(struct asym_told_thread *t, size_t n)
{
    size_t kept = 0;
    qsort(t, n, sizeof *t, by_tid);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || t[kept - 1].tid != t[i].tid)
            t[kept++] = t[i];
    return kept;
}

/* Take what the slots say. Whether the program is in a serial phase. */
static bool take_all(const void *page, const struct asym_rtx_layout *layout, size_t used, asym_usec now,
                     struct asym_rtx_reading *readings)
{
    bool serial = false;
    for (size_t i = 0; i < used; i++)
        if (take(slot_at(page, layout, i), now, &readings[i]))
            serial |= is_serial(readings[i].word);
    return serial;
}

size_t asym_rtx_read(const void *page, const struct asym_rtx_layout *layout, size_t most, asym_usec now,
                     asym_usec spin_notify, bool final, struct asym_rtx_memory *memory, struct asym_told_thread *ret)
{
    const struct asym_rtx_header *h = page;
    size_t used = __atomic_load_n(&h->n_used, __ATOMIC_RELAXED), n = 0;
    used = ASYM_MIN(ASYM_MIN(used, (size_t)layout->n_slots), most);
    const bool serial = take_all(page, layout, used, now, memory->readings);
    const bool begins = memory->serial && !serial;
    memory->serial = serial;
    for (size_t i = 0; i < used; i++) {
        struct asym_rtx_reading *r = &memory->readings[i];
        if (r->tid == 0)
            continue;
        if (begins)
            r->since = now + FORK_GRACE;
        ret[n++] = meaning(r, serial, now, spin_notify);
        if (final)
            r->shown = r->word;
    }
    return sort(ret, n);
}
