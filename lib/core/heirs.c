/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/heirs.h"

#include <errno.h>
#include <string.h>

#include "base/mask.h"
#include "base/nice.h"

static size_t slot_of(const struct asym_heirs *h, int32_t tgid, uint32_t mask)
{
    uint64_t key = (uint64_t)(uint32_t)tgid << 32 | mask;
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (h->n_slots - 1);
}

static const struct asym_thread_memory *thread_of(const struct asym_heirs *h, const struct entry *e)
{
    return asym_table_at(h->threads, e->thread - 1);
}

/* What this entry says was set. */
static uint32_t mask_of(const struct asym_heirs *h, const struct entry *e)
{
    return e->before ? thread_of(h, e)->before : thread_of(h, e)->set;
}

static struct entry *find(const struct asym_heirs *h, int32_t tgid, uint32_t mask)
{
    size_t i = slot_of(h, tgid, mask);
    while (h->slots[i].thread != 0 && (thread_of(h, &h->slots[i])->id.tgid != tgid || mask_of(h, &h->slots[i]) != mask))
        i = (i + 1) & (h->n_slots - 1);
    return &h->slots[i];
}

static void list(struct asym_heirs *h, uint32_t thread, bool before)
{
    const struct entry e = {.thread = thread + 1, .before = before};
    uint32_t mask = mask_of(h, &e);
    if (mask == ASYM_MASK_NONE)
        return;
    struct entry *slot = find(h, thread_of(h, &e)->id.tgid, mask);
    if (slot->thread == 0)
        *slot = e;
}

bool asym_heirs_is_candidate(const struct asym_thread_memory *m, const struct asym_seen *seen, asym_usec first_steered)
{
    if (m->known || m->heir || first_steered == 0 || (seen->task->flags & ASYM_TASK_NO_SETAFFINITY) ||
        (seen->proc->flags & (ASYM_PROC_KERNEL | ASYM_PROC_SELF | ASYM_PROC_FOREIGN_NS)))
        return false;
    if (!(seen->task->flags & ASYM_TASK_NEWBORN) && seen->proc->born < first_steered)
        return false;
    return seen->task->nice != 0 || !asym_mask_within(seen->task->cpuset, seen->task->mask);
}

int asym_heirs_list(struct asym_heirs *h, const struct asym_table *threads, struct asym_pool *pool)
{
    size_t n_slots = 64;
    while (n_slots < 4 * (size_t)threads->n)
        n_slots *= 2;
    h->slots = asym_pool_reserve(pool, n_slots, sizeof *h->slots);
    if (!h->slots)
        return -ENOMEM;
    memset(h->slots, 0, n_slots * sizeof *h->slots);
    h->threads = threads;
    h->n_slots = n_slots;
    for (uint32_t i = 0; i < threads->n; i++) {
        const struct asym_thread_memory *m = asym_table_at(threads, i);
        if (m->steered)
            list(h, i, false);
    }
    for (uint32_t i = 0; i < threads->n; i++)
        list(h, i, true);
    return 0;
}

static bool inherit(const struct asym_heirs *h, const struct entry *e, struct asym_thread_memory *m,
                    const struct asym_seen *seen, const struct asym_proc *of, asym_usec now)
{
    if (e->thread == 0 || (of && of->id.start > thread_of(h, e)->id.start))
        return false;
    const struct asym_thread_memory *creator = thread_of(h, e);
    int8_t set_nice = e->before ? creator->nice_before : creator->set_nice;
    const int8_t nice = seen->task->nice;
    /* The kernel resets a negative one at the birth; a positive one it may have raised since. */
    bool boosted = set_nice != creator->original_nice &&
                   (nice == set_nice || (nice > 0 && asym_nice_owes_boost(nice, set_nice, creator->original_nice)));
    bool newborn = (seen->task->flags & ASYM_TASK_NEWBORN) || seen->proc->born >= creator->steered_since;
    if (!newborn || (creator->original == seen->mask && !boosted))
        return false;
    m->heir = true;
    m->set = seen->mask;
    m->set_nice = seen->task->nice;
    m->original = creator->original;
    m->original_nice = boosted ? creator->original_nice : seen->task->nice;
    m->whole = creator->whole;
    /* for children of its own */
    m->before = m->set;
    m->nice_before = m->set_nice;
    m->steered_since = creator->steered_since ? creator->steered_since : now;
    return true;
}

bool asym_heirs_adopt(struct asym_heirs *h, struct asym_thread_memory *m, const struct asym_seen *seen,
                      const struct asym_proc *parent, asym_usec now)
{
    if (!inherit(h, find(h, seen->task->id.tgid, seen->mask), m, seen, seen->proc, now) &&
        !inherit(h, find(h, seen->proc->ppid, seen->mask), m, seen, parent, now))
        return false;
    const unsigned char *item = (const unsigned char *)m;
    list(h, (uint32_t)((size_t)(item - h->threads->items) / h->threads->item_size), true);
    return true;
}
