/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/observe/waits-list.h"

#include "base/macro.h"
#include "linux/observe/slot-copy.h"

static void add_pairs(const struct asym_waits_slot *w, const struct asym_phases_shared *phases,
                      struct asym_waits_thread *t)
{
    for (size_t i = 0; i < ASYM_WAITS_PAIRS; i++) {
        const struct asym_waits_pair *pair = &w->pairs[i];
        const struct asym_phases_slot *waker = &phases->slots[pair->slot % ASYM_PHASES_SLOTS];
        if (pair->slot)
            t->waits[t->n++] = (struct asym_waits_for){(int32_t)pair->tid,
                                                       waker->tid == pair->tid ? (int32_t)waker->tgid : 0, pair->ns};
    }
}

static struct asym_waits_thread thread_of(const struct asym_waits_shared *waits,
                                          const struct asym_phases_shared *phases, uint32_t slot, uint64_t now)
{
    const struct asym_phases_slot *p = &phases->slots[slot];
    const uint32_t state = __atomic_load_n(&p->word, __ATOMIC_RELAXED) & 255, tid = p->tid;
    uint64_t since = ASYM_MAX(__atomic_load_n(&p->since, __ATOMIC_RELAXED), waits->begin);
    struct asym_waits_thread t = {.tid = (int32_t)tid, .tgid = (int32_t)p->tgid};
    struct asym_waits_slot w;
    if (asym_slot_copy(&waits->slots[slot].seq, &w, sizeof w) && w.begin == waits->begin && w.tid == tid) {
        since = ASYM_MAX(since, w.woken);
        t.slept_ns = w.slept_ns;
        t.kernel_ns = w.kernel_ns;
        t.outside_ns = w.outside_ns;
        t.rest_ns = w.rest_ns;
        add_pairs(&w, phases, &t);
    }
    if ((state == ASYM_PHASES_BLOCKED || state == ASYM_PHASES_UNKNOWN) && now > since)
        t.asleep_ns = now - since;
    t.slept_ns += t.asleep_ns;
    return t;
}

void asym_waits_list(const struct asym_waits_shared *waits, const struct asym_phases_shared *phases, uint32_t app,
                     uint64_t now_ns, void (*fn)(void *ctx, const struct asym_waits_thread *t), void *ctx)
{
    const uint32_t n_fresh = __atomic_load_n(&phases->n_fresh, __ATOMIC_ACQUIRE);
    const uint32_t end = ASYM_MIN(n_fresh + 1, (uint32_t)ASYM_PHASES_SLOTS);
    for (uint32_t slot = 1; slot < end; slot++) {
        const struct asym_phases_slot *p = &phases->slots[slot];
        if (__atomic_load_n(&p->word, __ATOMIC_RELAXED) >> 8 != app || !__atomic_load_n(&p->tid, __ATOMIC_RELAXED))
            continue;
        const struct asym_waits_thread t = thread_of(waits, phases, slot, now_ns);
        fn(ctx, &t);
    }
}
