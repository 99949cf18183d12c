/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a steered thread gives birth to must not inherit what was meant for the thread. */
#include "base/mask.h"
#include "linux/actuator.h"
#include "linux/ledger-internal.h"
#include "linux/thread.h"

#include <errno.h>
#include <time.h>

/*
 * By the record of the thread that created it, where the kernel names one that is steered; else by any of that process
 * whose mask or nice it carries.
 */
static void widen(struct asym_ledger *l, const struct asym_birth *event)
{
    const struct asym_ledger_entry *e = asym_ledger_find(l, event->parent_pid);
    if (e && e->id.tgid == event->parent_tgid) {
        asym_ledger_widen(l, e, event->pid);
        return;
    }
    for (size_t i = 0; i < l->n; i++)
        if (l->entries[i].id.tgid == event->parent_tgid && asym_ledger_widen(l, &l->entries[i], event->pid) > 0)
            return;
}

/*
 * Every steered thread of the process is released, not only the one that forked: a process forks from any of its
 * threads, and only its first child shall ever be at risk.
 */
static void release_process(struct asym_ledger *l, int32_t tgid)
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
    asym_ledger_flush(l);
}

static bool has_steered(const struct asym_ledger *l, int32_t tgid)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->entries[i].id.tgid == tgid)
            return true;
    return false;
}

/* By the clock, not by the event: where events wait, what was planned meanwhile did not know of this either. */
static asym_usec monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (asym_usec)t.tv_sec * ASYM_SEC + (asym_usec)t.tv_nsec / 1000;
}

static void on_born(struct asym_ledger *l, const struct asym_birth *event)
{
    widen(l, event);
    if (event->kind != ASYM_BIRTH_PROCESS)
        return;
    if (has_steered(l, event->parent_tgid))
        release_process(l, event->parent_tgid);
    asym_ledger_note_release(l, event->parent_tgid, monotonic());
}

/*
 * The new program looks at its mask while it starts, like a child. The thread that called exec goes by the leader's
 * number now, its own mask with it, and the others are gone: whose mask it carries, the record of any of them tells.
 */
static void on_exec(struct asym_ledger *l, const struct asym_birth *event)
{
    if (!has_steered(l, event->tgid))
        return;
    widen(l, &(struct asym_birth){.pid = event->tgid, .parent_tgid = event->tgid});
    release_process(l, event->tgid);
    asym_ledger_note_release(l, event->tgid, monotonic());
}

void asym_guard_on_birth(void *ledger, const struct asym_birth *event)
{
    struct asym_ledger *l = ledger;
    asym_ledger_lock(l);
    if (event->kind == ASYM_BIRTH_PROCESS || event->kind == ASYM_BIRTH_THREAD)
        on_born(l, event);
    else if (event->kind == ASYM_BIRTH_EXEC)
        on_exec(l, event);
    asym_ledger_unlock(l);
}
