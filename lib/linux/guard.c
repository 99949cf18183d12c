/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a steered thread gives birth to must not inherit what was meant for the thread. */
#include "base/mask.h"
#include "linux/actuator.h"
#include "linux/ledger-internal.h"
#include "linux/thread.h"

#include <errno.h>

/* The child carries its creator's mask; give it the creator's original. The same for nice, where reset-on-fork misses. */
static void widen(struct asym_ledger *l, const struct asym_ledger_entry *creator, int32_t tid)
{
    struct asym_mask found;
    struct asym_thread_sched sched;
    if (asym_thread_get_mask(tid, &found) < 0)
        return;
    if (asym_ledger_same_mask(l, &found, &creator->set) || asym_ledger_same_mask(l, &found, &creator->before))
        asym_thread_set_mask(tid, &creator->original, creator->whole);
    if (creator->boosted && asym_thread_get_sched(tid, &sched) == 0 && sched.nice != creator->original_nice)
        asym_thread_set_nice(tid, creator->original_nice, creator->original_reset);
}

/* Its creator, or where that thread itself is not steered, any steered one of its process: the mask may come from it. */
static struct asym_ledger_entry *creator_of(struct asym_ledger *l, const struct asym_birth *event)
{
    struct asym_ledger_entry *e = asym_ledger_find(l, event->parent_pid);
    if (e)
        return e;
    for (size_t i = 0; i < l->n; i++)
        if (l->entries[i].id.tgid == event->parent_tgid)
            return &l->entries[i];
    return NULL;
}

/*
 * Every steered thread of the process is released, not only the one that forked: a process forks from any of its
 * threads, and only its first child shall ever be at risk.
 */
static void release_process(struct asym_ledger *l, int32_t tgid, asym_usec when)
{
    for (size_t i = l->n; i-- > 0;) {
        struct asym_ledger_entry *e = &l->entries[i];
        if (e->id.tgid != tgid)
            continue;
        int r = asym_ledger_give_back(l, e);
        if (r < 0 && r != -ESRCH && r != -EBUSY)
            continue;
        asym_ledger_note_gone(l, &e->id);
        asym_ledger_remove(l, e);
    }
    asym_ledger_note_release(l, tgid, when);
    asym_ledger_flush(l);
}

void asym_guard_on_birth(void *ledger, const struct asym_birth *event)
{
    struct asym_ledger *l = ledger;
    if (event->kind != ASYM_BIRTH_PROCESS && event->kind != ASYM_BIRTH_THREAD)
        return;
    asym_ledger_lock(l);
    const struct asym_ledger_entry *creator = l->n > 0 ? creator_of(l, event) : NULL;
    if (creator)
        widen(l, creator, event->pid);
    if (event->kind == ASYM_BIRTH_PROCESS) {
        if (creator)
            release_process(l, event->parent_tgid, event->when);
        else
            asym_ledger_note_release(l, event->parent_tgid, event->when);
    }
    asym_ledger_unlock(l);
}
