/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/engine-internal.h"

#include <errno.h>

#include "base/mask.h"
#include "base/nice.h"

/* A mask that asymd set on a thread: the one in force, or the one before. */
struct entry {
    const struct asym_thread_state *thread; /* NULL: none */
    bool before;
};

static struct entry entry_of(const struct asym_inherited *h, size_t item)
{
    return (struct entry){asym_table_at(h->threads, (uint32_t)(item / 2)), item % 2};
}

static uint32_t mask_of(const struct entry *e)
{
    return e->before ? e->thread->before : e->thread->set;
}

static int8_t set_nice_of(const struct entry *e)
{
    return e->before ? e->thread->nice_before : e->thread->set_nice;
}

static bool has_same_nice(const struct entry *a, const struct entry *b)
{
    return a->thread->original_nice == b->thread->original_nice && set_nice_of(a) == set_nice_of(b);
}

static uint32_t hash_of(int32_t tgid, uint32_t mask)
{
    return asym_hash_of_u64((uint64_t)(uint32_t)tgid << 32 | mask);
}

static struct entry find(const struct asym_inherited *h, int32_t tgid, uint32_t mask)
{
    const uint32_t hash = hash_of(tgid, mask);
    ASYM_HASH_FOREACH (item, &h->index, hash) {
        const struct entry e = entry_of(h, item);
        if (e.thread->id.tgid == tgid && mask_of(&e) == mask)
            return e;
    }
    return (struct entry){0};
}

static void list(struct asym_inherited *h, size_t thread, bool before)
{
    const size_t item = 2 * thread + before;
    const struct entry e = entry_of(h, item);
    const int32_t tgid = e.thread->id.tgid;
    const uint32_t mask = mask_of(&e);
    if (mask == ASYM_MASK_NONE)
        return;
    const uint32_t hash = hash_of(tgid, mask);
    ASYM_HASH_FOREACH (other, &h->index, hash) {
        const struct entry o = entry_of(h, other);
        if (o.thread->id.tgid == tgid && mask_of(&o) == mask && has_same_nice(&o, &e))
            return;
    }
    asym_hash_add(&h->index, hash, item);
}

bool asym_inherited_is_candidate(const struct asym_thread_state *m, const struct asym_seen *seen,
                                 asym_usec first_steered)
{
    const bool executed = (seen->task->flags & ASYM_TASK_EXECUTED) && m->state == ASYM_AFFINITY_LOST;
    if ((m->state != ASYM_AFFINITY_NEW && !executed) || first_steered == 0 ||
        (seen->task->flags & ASYM_TASK_NO_SETAFFINITY) ||
        (seen->proc->flags & (ASYM_PROC_KERNEL | ASYM_PROC_SELF | ASYM_PROC_FOREIGN_NS)))
        return false;
    if (!(seen->task->flags & (ASYM_TASK_NEWBORN | ASYM_TASK_EXECUTED)) && seen->proc->born < first_steered)
        return false;
    return seen->task->nice != 0 || !asym_mask_within(seen->task->cpuset, seen->task->mask);
}

int asym_inherited_list(struct asym_inherited *h, const struct asym_table *threads, struct asym_pool *pool)
{
    const size_t n_slots = asym_hash_slots_for(2 * (size_t)threads->n);
    struct asym_hash_slot *slots = asym_pool_reserve(pool, n_slots, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    asym_hash_init_in(&h->index, slots, n_slots);
    h->threads = threads;
    for (uint32_t i = 0; i < threads->n; i++) {
        const struct asym_thread_state *m = asym_table_at(threads, i);
        if (m->state == ASYM_AFFINITY_STEERED)
            list(h, i, false);
    }
    for (uint32_t i = 0; i < threads->n; i++) {
        const struct asym_thread_state *m = asym_table_at(threads, i);
        if (m->ended)
            list(h, i, true);
    }
    for (uint32_t i = 0; i < threads->n; i++)
        list(h, i, true);
    return 0;
}

/* SCHED_FLAG_RESET_ON_FORK: the kernel resets a negative nice value at fork, not at exec. A thread may raise one that it keeps. */
static bool is_boosted(const struct entry *e, int8_t nice, bool by_exec)
{
    const struct asym_thread_state *creator = e->thread;
    const int8_t set_nice = set_nice_of(e);
    if (set_nice == creator->original_nice)
        return false;
    return nice == set_nice || ((nice > 0 || by_exec) && asym_nice_owes_boost(nice, set_nice, creator->original_nice));
}

/* Threads with the same mask may have different boosts. Returns the one that explains the nice value best. */
static struct entry find_by_nice(const struct asym_inherited *h, int32_t tgid, uint32_t mask, int8_t nice)
{
    const uint32_t hash = hash_of(tgid, mask);
    struct entry best = {0};
    int rank = -1;
    ASYM_HASH_FOREACH (item, &h->index, hash) {
        const struct entry e = entry_of(h, item);
        if (e.thread->id.tgid != tgid || mask_of(&e) != mask || (e.before && !e.thread->ended))
            continue;
        const int r = !is_boosted(&e, nice, true) ? 0 : set_nice_of(&e) != nice ? 1 : 2;
        if (r > rank) {
            best = e;
            rank = r;
        }
    }
    return best;
}

static bool inherit(struct entry e, struct asym_thread_state *m, const struct asym_seen *seen,
                    const struct asym_proc *of, bool by_exec, asym_usec now)
{
    const struct asym_thread_state *creator = e.thread;
    if (!creator || (of && of->id.start > creator->id.start))
        return false;
    const bool boosted = is_boosted(&e, seen->task->nice, by_exec);
    bool newborn = (seen->task->flags & (ASYM_TASK_NEWBORN | ASYM_TASK_EXECUTED)) ||
                   seen->proc->born >= creator->steered_since;
    if (!newborn || (creator->original == seen->mask && !boosted))
        return false;
    m->state = ASYM_AFFINITY_INHERITED;
    m->hands_off = ASYM_WHY_NONE;
    m->last_active = now;
    m->set = seen->mask;
    m->set_nice = seen->task->nice;
    m->original = creator->original;
    m->original_nice = boosted ? creator->original_nice : seen->task->nice;
    /* Not NARROW: that excludes a thread for its own choice, and this thread has made none. */
    m->extent = creator->extent == ASYM_ORIGINAL_CPUSET ? ASYM_ORIGINAL_CPUSET : ASYM_ORIGINAL_ONLINE;
    /* its own children may inherit it */
    m->before = m->set;
    m->nice_before = m->set_nice;
    m->steered_since = creator->steered_since ? creator->steered_since : now;
    return true;
}

/*
 * It was a thread of this process until then, and had what was in force. What was in force before that does not count. A leader
 * that calls exec itself may have the same mask: then the nice value must be the caller's.
 */
static struct entry find_caller_of_exec(const struct asym_inherited *h, const struct asym_thread_state *leader,
                                        const struct asym_seen *seen)
{
    const struct entry e = find_by_nice(h, seen->task->id.tgid, seen->mask, seen->task->nice);
    const uint32_t known = leader->state == ASYM_AFFINITY_LOST ? leader->set : leader->original;
    if (e.thread && seen->mask == known && !is_boosted(&e, seen->task->nice, true))
        return (struct entry){0};
    return e.before && !e.thread->ended ? (struct entry){0} : e;
}

bool asym_inherited_adopt(struct asym_inherited *h, struct asym_thread_state *m, const struct asym_seen *seen,
                          const struct asym_proc *parent, asym_usec now)
{
    if (!(seen->task->flags & ASYM_TASK_NEWBORN) && (seen->task->flags & ASYM_TASK_EXECUTED)) {
        if (!inherit(find_caller_of_exec(h, m, seen), m, seen, seen->proc, true, now))
            return false;
    } else if (!inherit(find(h, seen->task->id.tgid, seen->mask), m, seen, seen->proc, false, now) &&
               !inherit(find(h, seen->proc->ppid, seen->mask), m, seen, parent, false, now)) {
        return false;
    }
    const unsigned char *item = (const unsigned char *)m;
    list(h, (size_t)(item - h->threads->items) / h->threads->item_size, true);
    return true;
}
