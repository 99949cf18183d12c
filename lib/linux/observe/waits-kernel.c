/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/observe/waits-kernel.h"

#include <errno.h>

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

#ifndef ASYM_NO_BPF
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/clock.h"
#include "waits.skel.h"

struct asym_waits {
    struct waits_bpf *bpf;
    struct bpf_link *link; /* NULL: it is not attached */
    struct asym_waits_shared *shared;
    const struct asym_phases_shared *phases;
};

static int load(struct asym_waits *w, const struct asym_phases_maps *maps)
{
    w->bpf = waits_bpf__open();
    if (!w->bpf)
        return -errno;
    int r = bpf_map__reuse_fd(w->bpf->maps.tags, maps->tags);
    if (r >= 0)
        r = bpf_map__reuse_fd(w->bpf->maps.phases, maps->shared);
    if (r >= 0)
        r = waits_bpf__load(w->bpf);
    if (r < 0)
        return r;
    w->shared = &w->bpf->bss->waits;
    w->phases = maps->memory;
    return 0;
}

int asym_waits_open(struct asym_phases *phases, struct asym_waits **ret, struct asym_error *err)
{
    struct asym_waits *w = calloc(1, sizeof *w);
    const struct asym_phases_maps maps = asym_phases_maps_of(phases);
    const int r = w ? load(w, &maps) : -ENOMEM;
    if (r < 0) {
        asym_waits_close(w);
        return asym_fail(err, r, "the kernel does not load the BPF program for that (%s)", strerror(-r));
    }
    *ret = w;
    return 0;
}

void asym_waits_close(struct asym_waits *w)
{
    if (!w)
        return;
    asym_waits_stop(w);
    waits_bpf__destroy(w->bpf);
    free(w);
}

int asym_waits_start(struct asym_waits *w, struct asym_error *err)
{
    uint64_t now = 0;
    asym_clock_ns(CLOCK_MONOTONIC, &now);
    __atomic_store_n(&w->shared->begin, now, __ATOMIC_RELEASE);
    if (w->link)
        return 0;
    w->link = bpf_program__attach(w->bpf->progs.on_waking);
    return w->link
               ? 0
               : asym_fail(err, -errno, "the kernel does not attach the BPF program for that (%s)", strerror(errno));
}

void asym_waits_stop(struct asym_waits *w)
{
    bpf_link__destroy(ASYM_TAKE(w->link));
}

void asym_waits_each(const struct asym_waits *w, uint32_t app, void (*fn)(void *ctx, const struct asym_waits_thread *t),
                     void *ctx)
{
    uint64_t now = 0;
    asym_clock_ns(CLOCK_MONOTONIC, &now);
    asym_waits_list(w->shared, w->phases, app, now, fn, ctx);
}
#endif
