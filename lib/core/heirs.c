/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/heirs.h"

#include "base/mask.h"

struct legacy {
    struct asym_taskid key; /* of process and mask: see key_of */
    struct asym_mask set, original;
    int8_t set_nice, original_nice;
    bool whole;
    asym_usec since, last; /* in force from, and known to be until */
};

void asym_heirs_init(struct asym_heirs *h)
{
    asym_table_init(&h->legacies, sizeof(struct legacy));
    h->swept = 0;
}

void asym_heirs_done(struct asym_heirs *h)
{
    asym_table_done(&h->legacies);
}

static struct asym_taskid key_of(int32_t tgid, const struct asym_mask *set)
{
    uint64_t hash = 0;
    for (unsigned i = 0; i < ASYM_MASK_WORDS; i++)
        hash = (hash ^ set->w[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
    return (struct asym_taskid){.tid = tgid, .tgid = tgid, .start = hash};
}

/* Two masks of one process with the same hash would be one entry: the later wins, and the earlier is not found. */
static struct legacy *find(const struct asym_heirs *h, int32_t tgid, const struct asym_mask *set)
{
    struct asym_taskid key = key_of(tgid, set);
    struct legacy *l = asym_table_find(&h->legacies, &key);
    return l && asym_mask_equal(&l->set, set) ? l : NULL;
}

void asym_heirs_note(struct asym_heirs *h, const struct asym_thread_memory *m, asym_usec now)
{
    struct asym_taskid key = key_of(m->id.tgid, &m->set);
    struct legacy *l = asym_table_get(&h->legacies, &key);
    if (!l)
        return;
    asym_usec since = l->since && asym_mask_equal(&l->set, &m->set) ? l->since : now;
    *l = (struct legacy){
        .key = key,
        .set = m->set,
        .original = m->original,
        .set_nice = m->set_nice,
        .original_nice = m->original_nice,
        .whole = m->whole,
        .since = since,
        .last = now,
    };
}

static bool inherited(const struct legacy *l, const struct asym_task *task, const struct asym_proc *proc)
{
    bool born_since = (task->flags & ASYM_TASK_NEWBORN) || proc->born >= l->since;
    bool narrow = !asym_mask_within(&l->original, &l->set);
    bool boosted = l->set_nice != l->original_nice && task->nice == l->set_nice;
    return born_since && (narrow || boosted);
}

bool asym_heirs_adopt(struct asym_heirs *h, struct asym_thread_memory *m, const struct asym_task *task,
                      const struct asym_proc *proc, asym_usec now)
{
    if (h->legacies.n == 0 || (task->flags & ASYM_TASK_NO_SETAFFINITY) ||
        (proc->flags & (ASYM_PROC_KERNEL | ASYM_PROC_SELF | ASYM_PROC_FOREIGN_NS)))
        return false;
    const struct legacy *l = find(h, task->id.tgid, task->mask);
    if (!l || !inherited(l, task, proc))
        l = find(h, proc->ppid, task->mask);
    if (!l || !inherited(l, task, proc))
        return false;
    bool boosted = l->set_nice != l->original_nice && task->nice == l->set_nice;
    m->heir = true;
    m->set = *task->mask;
    m->set_nice = task->nice;
    m->original = l->original;
    m->original_nice = boosted ? l->original_nice : task->nice;
    m->whole = l->whole;
    /* it may have children of its own already, and they are older than what is noted here */
    asym_usec since = l->since;
    asym_heirs_note(h, m, now);
    struct legacy *own = find(h, task->id.tgid, task->mask);
    if (own && own->since > since)
        own->since = since;
    return true;
}

void asym_heirs_sweep(struct asym_heirs *h, const struct asym_table *threads, asym_usec now, asym_usec keep)
{
    if (h->legacies.n == 0 || now - h->swept < ASYM_SEC)
        return;
    h->swept = now;
    for (uint32_t i = 0; i < threads->n; i++) {
        const struct asym_thread_memory *m = asym_table_at(threads, i);
        struct legacy *l = m->steered ? find(h, m->id.tgid, &m->set) : NULL;
        if (l)
            l->last = now;
    }
    for (uint32_t i = h->legacies.n; i-- > 0;) {
        const struct legacy *l = asym_table_at(&h->legacies, i);
        if (now - l->last > keep)
            asym_table_remove_at(&h->legacies, i);
    }
}
