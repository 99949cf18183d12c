/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/rtx/rtx-server-internal.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"

/* A thread that gets work when a parallel phase begins reports it only once it has a CPU: some slices of a busy CPU. */
#define FORK_GRACE (10 * ASYM_MSEC)

static asym_usec notify_min_of(const struct asym_rtx_header *h)
{
    return h->notify_min_usec == 0 ? ASYM_RTX_NOTIFY_MIN_DEFAULT
                                   : ASYM_MIN(h->notify_min_usec, (uint32_t)ASYM_RTX_NOTIFY_MIN_MAX);
}

int asym_rtxd_check_page(const void *page, size_t size, struct asym_rtxd_layout *ret)
{
    struct asym_rtx_header h;
    if (size < sizeof h || size > ASYM_RTXD_MAX_PAGE)
        return -EPROTO;
    memcpy(&h, page, sizeof h);
    if (h.magic != ASYM_RTX_MAGIC || h.version == 0)
        return -EPROTO;
    if (h.version > ASYM_RTX_VERSION)
        return -EPROTONOSUPPORT;
    if (h.header_size < sizeof h || h.header_size > size || h.header_size % ASYM_RTX_LINE != 0 ||
        h.slot_size < sizeof(struct asym_rtx_slot) || h.slot_size > ASYM_RTXD_MAX_SLOT_SIZE ||
        h.slot_size % ASYM_RTX_LINE != 0 || h.n_slots == 0 || h.n_slots > ASYM_RTXD_MAX_SLOTS ||
        (size - h.header_size) / h.slot_size < h.n_slots)
        return -EPROTO;
    *ret = (struct asym_rtxd_layout){
        .header_size = h.header_size, .slot_size = h.slot_size, .n_slots = h.n_slots, .notify_min = notify_min_of(&h)};
    return 0;
}

static const struct asym_rtx_slot *slot_at(const void *page, const struct asym_rtxd_layout *l, size_t i)
{
    return (const void *)((const char *)page + l->header_size + i * l->slot_size);
}

/* Read a slot. It counts only if its tid is the same before and after the read of its word. */
static bool take_slot(const struct asym_rtx_slot *slot, asym_usec now, struct asym_rtxd_reading *r)
{
    const int32_t tid = __atomic_load_n(&slot->tid, __ATOMIC_ACQUIRE);
    const uint64_t word = __atomic_load_n(&slot->word, __ATOMIC_ACQUIRE);
    if (tid <= 0 || __atomic_load_n(&slot->tid, __ATOMIC_RELAXED) != tid || (word & ASYM_RTX_STATE) == 0) {
        *r = (struct asym_rtxd_reading){0};
        return false;
    }
    if (r->tid != tid || r->word != word)
        *r = (struct asym_rtxd_reading){.word = word, .shown = r->tid == tid ? r->shown : 0, .since = now, .tid = tid};
    return true;
}

static bool is_serial(uint64_t word)
{
    const uint64_t all = ASYM_RTX_MARKS;
    return (word & all) == all;
}

static bool is_master(uint64_t word)
{
    return (word & ASYM_RTX_STATE) == ASYM_RTX_WORKING && (word & ASYM_RTX_MASTER) &&
           (!(word & ASYM_RTX_PHASES) || (word & ASYM_RTX_SERIAL));
}

/* The hashes are added, so that their order does not matter. */
static uint64_t hash_of(int32_t tid)
{
    uint64_t h = (uint64_t)tid * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ h >> 29;
}

static struct asym_rtxd_thread_report meaning(const struct asym_rtxd_reading *r, bool serial, asym_usec now,
                                              asym_usec spin_notify)
{
    const uint64_t state = r->word & ASYM_RTX_STATE;
    const bool waits = state == ASYM_RTX_SPINNING && (serial || (now >= r->since && now - r->since >= spin_notify));
    const bool works = state == ASYM_RTX_WORKING;
    return (struct asym_rtxd_thread_report){
        .tid = r->tid,
        .spins = waits || state == ASYM_RTX_SLEEPING,
        .since = serial || works ? 0 : r->since,
        .master = is_master(r->word),
        .in_phase = works && is_serial(r->word),
        .works = works,
        .changed = r->word != r->shown,
    };
}

static bool is_sorted(const struct asym_rtxd_thread_report *t, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (t[i - 1].tid > t[i].tid)
            return false;
    return true;
}

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

static void sort_by_digit(const struct asym_rtxd_thread_report *from, size_t n, unsigned shift,
                          struct asym_rtxd_thread_report *to)
{
    uint16_t at[DIGITS + 1] = {0};
    for (size_t i = 0; i < n; i++)
        at[((uint32_t)from[i].tid >> shift) % DIGITS + 1]++;
    for (size_t d = 1; d < DIGITS; d++)
        at[d] = (uint16_t)(at[d] + at[d - 1]);
    for (size_t i = 0; i < n; i++)
        to[at[((uint32_t)from[i].tid >> shift) % DIGITS]++] = from[i];
}

/*
 * Radix sort, because asymd also reads hostile pages at every sample: 4096 unsorted slots take 88 us, and took 509 us with a
 * comparison sort; a few take 3 us. Slots of threads that were created one after another are already sorted.
 */
static size_t sort(struct asym_rtxd_thread_report *t, size_t n)
{
    struct asym_rtxd_thread_report other[ASYM_RTXD_MAX_SLOTS];
    size_t kept = 0;
    if (!is_sorted(t, n)) {
        sort_by_digit(t, n, 0, other);
        sort_by_digit(other, n, DIGIT_BITS, t);
        sort_by_digit(t, n, 2 * DIGIT_BITS, other);
        memcpy(t, other, n * sizeof *t);
    }
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || t[kept - 1].tid != t[i].tid)
            t[kept++] = t[i];
    return kept;
}

/* Read all slots. Returns whether the program is in a serial phase. */
static bool take_all(const void *page, const struct asym_rtxd_layout *layout, size_t used, asym_usec now,
                     struct asym_rtxd_reading *readings)
{
    bool serial = false;
    for (size_t i = 0; i < used; i++)
        if (take_slot(slot_at(page, layout, i), now, &readings[i]))
            serial |= is_serial(readings[i].word);
    return serial;
}

static size_t slots_to_read(const void *page, const struct asym_rtxd_layout *layout, size_t most)
{
    const struct asym_rtx_header *h = page;
    const size_t used = __atomic_load_n(&h->n_used, __ATOMIC_RELAXED);
    return ASYM_MIN(ASYM_MIN(used, (size_t)layout->n_slots), most);
}

uint64_t asym_rtxd_phase(const void *page, const struct asym_rtxd_layout *layout, size_t most)
{
    const size_t used = slots_to_read(page, layout, most);
    uint64_t phase = 0;
    for (size_t i = 0; i < used; i++) {
        const struct asym_rtx_slot *slot = slot_at(page, layout, i);
        const int32_t tid = __atomic_load_n(&slot->tid, __ATOMIC_ACQUIRE);
        if (tid > 0 && is_master(__atomic_load_n(&slot->word, __ATOMIC_ACQUIRE)))
            phase += hash_of(tid);
    }
    return phase;
}

static void show(struct asym_rtxd_page_state *state, struct asym_rtxd_reading *r, unsigned how)
{
    if (!(how & ASYM_ASK_REFRESH))
        r->shown = r->word;
    if (is_master(r->word))
        state->phase += hash_of(r->tid);
}

size_t asym_rtxd_read(const void *page, const struct asym_rtxd_layout *layout, size_t most, asym_usec now,
                      asym_usec spin_notify, unsigned how, struct asym_rtxd_page_state *state,
                      struct asym_rtxd_thread_report *ret)
{
    const size_t used = slots_to_read(page, layout, most);
    size_t n = 0;
    const bool serial = take_all(page, layout, used, now, state->readings);
    const bool begins = state->serial && !serial;
    state->serial = serial;
    state->phase = how & ASYM_ASK_FINAL ? 0 : state->phase;
    for (size_t i = 0; i < used; i++) {
        struct asym_rtxd_reading *r = &state->readings[i];
        if (r->tid == 0)
            continue;
        if (begins)
            r->since = now + FORK_GRACE;
        ret[n++] = meaning(r, serial, now, spin_notify);
        if (how & ASYM_ASK_FINAL)
            show(state, r, how);
    }
    return sort(ret, n);
}
