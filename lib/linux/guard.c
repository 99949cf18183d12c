/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a steered thread gives birth to must not inherit what was meant for the thread. Works on events alone, each in its
 * order, in the thread that reads them: what counts is the time until the child looks at its mask.
 */
#include <errno.h>

#include "linux/actuator.h"
#include "linux/ledger-internal.h"
#include "linux/thread.h"

/* What a new thread has, and what may have given it that: best of all what explains its nice value as it is. */
struct likeness {
    struct asym_mask mask;
    int8_t nice;
    asym_usec born;
    const struct asym_ledger_entry *best;
};

static bool compare(const struct asym_ledger *l, const struct asym_ledger_entry *e, struct likeness *like)
{
    if (!asym_ledger_looks_inherited(l, e, &like->mask, like->nice, like->born))
        return false;
    bool exact = asym_ledger_nice_of_child(e) == like->nice;
    if (exact || !like->best)
        like->best = e;
    return exact;
}

/* For a new thread the kernel names no creator: it is one of its process that was given what it carries. */
static const struct asym_ledger_entry *creator_of_thread(struct asym_ledger *l, const struct asym_birth *event)
{
    struct likeness like = {.born = event->when};
    struct asym_thread_sched sched;
    if (asym_thread_get_mask(event->pid, &like.mask) < 0 || asym_thread_get_sched(event->pid, &sched) < 0)
        return NULL;
    like.nice = sched.nice;
    for (size_t i = 0; i < l->n; i++)
        if (l->tgids[i] == event->tgid && compare(l, &l->entries[i], &like))
            return like.best;
    for (size_t k = 0; event->when <= l->legacies_until && k < ASYM_LEDGER_LEGACIES; k++) {
        const struct asym_ledger_legacy *g = &l->legacies[k];
        if (g->from.id.tgid == event->tgid && event->when <= g->until && compare(l, &g->from, &like))
            return like.best;
    }
    return like.best;
}

/* What the new one may have got from its creator; NULL: nothing. */
static const struct asym_ledger_entry *inheritance(struct asym_ledger *l, const struct asym_birth *event)
{
    if (event->kind == ASYM_BIRTH_THREAD)
        return creator_of_thread(l, event);
    const struct asym_ledger_entry *e = asym_ledger_find(l, event->parent_pid);
    if (e && e->id.tgid == event->parent_tgid)
        return e;
    return asym_ledger_find_legacy(l, event->parent_pid, event->parent_tgid, event->when);
}

/* Events wait: by now it may be steered itself, and carry the same mask as its creator, but its own. */
static bool is_steered_itself(struct asym_ledger *l, const struct asym_birth *event)
{
    const struct asym_ledger_entry *e = asym_ledger_find(l, event->pid);
    struct asym_stat stat;
    return e && e->id.tgid == event->tgid && asym_thread_get_stat(event->tgid, event->pid, &stat) >= 0 &&
           stat.start == e->id.start;
}

/* One that carried it, or is gone already, may have had children of its own by now. */
static void repair_newborn(struct asym_ledger *l, const struct asym_birth *event)
{
    const struct asym_ledger_entry *from = is_steered_itself(l, event) ? NULL : inheritance(l, event);
    if (from && asym_ledger_repair(l, from, event->pid, event->when) != 0)
        asym_ledger_add_legacy(l, from, event->pid, event->tgid, asym_thread_now() + ASYM_LEDGER_LATE);
}

/* Keeps in the ledger what the kernel refuses to take back. */
static void release_thread(struct asym_ledger *l, struct asym_ledger_entry *e)
{
    int r = asym_ledger_give_back(l, e);
    asym_ledger_add_legacy(l, e, e->id.tid, e->id.tgid, asym_thread_now() + ASYM_LEDGER_LATE);
    if (r == 0 || r == -ESRCH || r == -EBUSY)
        asym_ledger_forget(l, e);
}

/*
 * Every steered thread of the process is released, not only the one that forked: a process forks from any of its
 * threads, and only its first child shall ever be at risk. The one that forked comes first: it is the likeliest to do
 * so again.
 */
static void release_process(struct asym_ledger *l, int32_t tgid, int32_t first)
{
    const size_t before = l->n;
    struct asym_ledger_entry *e = asym_ledger_find(l, first);
    if (e && e->id.tgid == tgid)
        release_thread(l, e);
    for (size_t i = l->n; i-- > 0;)
        if (l->tgids[i] == tgid)
            release_thread(l, &l->entries[i]);
    /* What cannot be written now is made good by the next flush. Most forks release nothing. */
    if (l->n != before)
        asym_ledger_write(l);
}

/*
 * The new program sizes itself by what it sees, as a child's would. Whichever thread called exec now has the leader's
 * number, and its own mask.
 */
static void on_exec(struct asym_ledger *l, const struct asym_birth *event)
{
    bool steered = false;
    for (size_t i = 0; i < l->n; i++) {
        if (l->tgids[i] != event->tgid)
            continue;
        steered = true;
        if (l->entries[i].id.tid != event->tgid)
            asym_ledger_repair(l, &l->entries[i], event->tgid, event->when);
    }
    if (!steered)
        return;
    release_process(l, event->tgid, event->tgid);
    asym_ledger_note_release(l, event->tgid, asym_thread_now());
}

static void on_exit_of(struct asym_ledger *l, const struct asym_birth *event)
{
    struct asym_ledger_entry *e = asym_ledger_find(l, event->pid);
    if (!e || e->id.tgid != event->tgid)
        return;
    /* Its last children may be reported after it. Written with the next flush. */
    asym_ledger_add_legacy(l, e, e->id.tid, e->id.tgid, asym_thread_now() + ASYM_LEDGER_LATE);
    asym_ledger_forget(l, e);
}

void asym_guard_on_birth(void *ledger, const struct asym_birth *event)
{
    struct asym_ledger *l = ledger;
    asym_ledger_lock(l);
    switch (event->kind) {
    case ASYM_BIRTH_PROCESS:
        repair_newborn(l, event);
        /* Not the time of the event: where events wait, what was planned meanwhile did not know of this one either. */
        asym_ledger_note_release(l, event->parent_tgid, asym_thread_now());
        release_process(l, event->parent_tgid, event->parent_pid);
        break;
    case ASYM_BIRTH_THREAD:
        repair_newborn(l, event);
        break;
    case ASYM_BIRTH_EXEC:
        on_exec(l, event);
        break;
    case ASYM_BIRTH_EXIT:
        on_exit_of(l, event);
        break;
    case ASYM_BIRTH_LOST:
        break; /* the next scan finds what was missed, and the core repairs it */
    }
    asym_ledger_unlock(l);
}
