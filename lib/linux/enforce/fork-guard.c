/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guard must be fast: it races with the child, which may read its mask at any time. */
#include "linux/enforce/ledger-internal.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "linux/observe/process-events.h"
#include "linux/sys/thread.h"

/*
 * The mask and nice value of a new thread, and the best entry that it may have inherited them from. An entry that explains
 * the exact nice value is the best.
 */
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
    const bool exact = asym_ledger_passes_nice(e, like->nice);
    if (exact || !like->best)
        like->best = e;
    return exact;
}

/*
 * The kernel does not name the creator of a new thread. The guard looks for a thread of the same process that was given
 * the mask and nice value of the new one.
 */
static const struct asym_ledger_entry *creator_of_thread(struct asym_ledger *l, const struct asym_process_event *event)
{
    struct likeness like = {.born = event->when};
    struct asym_thread_sched sched;
    if (asym_thread_get_mask(event->pid, &like.mask) < 0 || asym_thread_get_sched(event->pid, &sched) < 0)
        return NULL;
    like.nice = sched.nice;
    for (size_t i = 0; i < l->n; i++)
        if (l->tgids[i] == event->tgid && compare(l, &l->entries[i], &like))
            return like.best;
    for (size_t k = 0; event->when <= l->pending_until && k < ASYM_LEDGER_PENDING_MAX; k++) {
        const struct asym_ledger_pending *g = &l->pending[k];
        if (g->from.id.tgid == event->tgid && event->when <= g->until && compare(l, &g->from, &like))
            return like.best;
    }
    return like.best;
}

/* The entry that the child may have inherited from; NULL: none. */
static const struct asym_ledger_entry *inheritance(struct asym_ledger *l, const struct asym_process_event *event)
{
    if (event->kind == ASYM_PROCESS_EVENT_CLONE)
        return creator_of_thread(l, event);
    const struct asym_ledger_entry *e = asym_ledger_find(l, event->parent_pid);
    if (e && e->id.tgid == event->parent_tgid)
        return e;
    return asym_ledger_find_pending(l, event->parent_pid, event->parent_tgid, event->when);
}

/*
 * Events wait in a queue. By now the core may steer the new thread itself, and may have set the creator's mask for it on
 * purpose.
 */
static bool is_steered_itself(struct asym_ledger *l, const struct asym_process_event *event)
{
    const struct asym_ledger_entry *e = asym_ledger_find(l, event->pid);
    struct asym_stat stat;
    return e && e->id.tgid == event->tgid && asym_thread_get_stat_of(&e->id, &stat) >= 0;
}

/* Events wait in a queue: by now a later thread may have the number of one that there was at the event. */
static bool is_later(uint64_t start, const struct asym_process_event *event)
{
    const uint64_t ticks = (asym_clock_now() - event->when) * (uint64_t)sysconf(_SC_CLK_TCK) / ASYM_SEC;
    return start + ticks > asym_thread_ticks() + 1;
}

/* The kernel takes longer to come round to a number again. */
#define LATE (20 * ASYM_MSEC)

static bool has_ended(const struct asym_process_event *event)
{
    struct asym_stat stat;
    const bool is_late = event->when + LATE < asym_clock_now();
    const int r = is_late ? asym_thread_get_stat(event->tgid, event->pid, &stat) : -EAGAIN;
    return r < 0 ? r == -ESRCH : is_later(stat.start, event);
}

/* A child that had inherited something, or has exited already, may have children of its own by now. */
static void repair_newborn(struct asym_ledger *l, const struct asym_process_event *event)
{
    const struct asym_ledger_entry *from = is_steered_itself(l, event) ? NULL : inheritance(l, event);
    if (from && (has_ended(event) || asym_ledger_repair(l, from, event->pid, event->when) != 0))
        asym_ledger_add_pending(l, from, event->pid, event->tgid, asym_clock_now() + ASYM_LEDGER_LATE);
}

/* The entry stays in the ledger if the kernel refuses the change. */
static void release_thread(struct asym_ledger *l, struct asym_ledger_entry *e)
{
    int r = asym_ledger_restore_thread(l, e);
    asym_ledger_add_pending(l, e, e->id.tid, e->id.tgid, asym_clock_now() + ASYM_LEDGER_LATE);
    if (r >= 0 || r == -ESRCH || r == -EBUSY)
        asym_ledger_forget(l, e);
}

/*
 * Releases every steered thread of the process, not only the one that forked. Any thread of a process may fork, and only
 * the first child may be at risk. The thread that forked comes first, because it is the most likely to fork again.
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
    /* If this fails, the next flush writes it. Most forks release nothing. */
    if (l->n != before)
        asym_ledger_write(l);
}

/*
 * A new program counts its CPUs at start, like the program of a child does. The thread that called exec now has the
 * leader's TID, and still has its own mask.
 */
static void on_exec(struct asym_ledger *l, const struct asym_process_event *event)
{
    bool steered = false;
    for (size_t i = 0; i < l->n; i++) {
        if (l->tgids[i] != event->tgid)
            continue;
        steered = true;
        if (l->entries[i].id.tid != event->tgid)
            asym_ledger_repair(l, &l->entries[i], event->tgid, event->when);
    }
    /* An action or an event may have taken the caller for ended before the new program was loaded. */
    for (size_t k = 0; event->when <= l->pending_until && k < ASYM_LEDGER_PENDING_MAX; k++) {
        const struct asym_ledger_pending *g = &l->pending[k];
        if (g->from.id.tgid == event->tgid && g->from.id.tid != event->tgid && event->when <= g->until)
            steered |= asym_ledger_repair(l, &g->from, event->tgid, event->when) > 0;
    }
    if (!steered)
        return;
    release_process(l, event->tgid, event->tgid);
    asym_ledger_note_release(l, event->tgid, asym_clock_now());
}

/*
 * An exec by another thread ends the leader, whose zombie has what asymd lent it. Then the caller has its number and its start,
 * with what that was lent: a plan of before would take either for original values.
 */
static void on_exit_of(struct asym_ledger *l, const struct asym_process_event *event)
{
    bool leads = false;
    for (size_t i = 0; event->pid == event->tgid && i < l->n; i++)
        leads |= l->tgids[i] == event->tgid;
    if (leads)
        asym_ledger_note_release(l, event->tgid, asym_clock_now());
    struct asym_ledger_entry *e = asym_ledger_find(l, event->pid);
    if (!e || e->id.tgid != event->tgid)
        return;
    if (is_later(e->id.start, event))
        return;
    /* The events of its last children may come after its exit. The next flush writes this. */
    asym_ledger_add_pending(l, e, e->id.tid, e->id.tgid, asym_clock_now() + ASYM_LEDGER_LATE);
    asym_ledger_forget(l, e);
}

void asym_fork_guard_on_event(void *ledger, const struct asym_process_event *event)
{
    struct asym_ledger *l = ledger;
    pthread_mutex_lock(&l->lock);
    switch (event->kind) {
    case ASYM_PROCESS_EVENT_FORK:
        repair_newborn(l, event);
        /* The time is now, not the event's: a plan that was made while the event waited does not know of this fork. */
        asym_ledger_note_release(l, event->parent_tgid, asym_clock_now());
        release_process(l, event->parent_tgid, event->parent_pid);
        break;
    case ASYM_PROCESS_EVENT_CLONE:
        repair_newborn(l, event);
        break;
    case ASYM_PROCESS_EVENT_EXEC:
        on_exec(l, event);
        break;
    case ASYM_PROCESS_EVENT_EXIT:
        on_exit_of(l, event);
        break;
    case ASYM_PROCESS_EVENT_LOST:
        break; /* the next full scan finds the missed threads, and the core repairs them */
    }
    pthread_mutex_unlock(&l->lock);
}
