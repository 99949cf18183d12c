/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Three passes: look at every thread and note what shall be, write the notes, change. The lock is held for one thread at a
 * time, so that the guard never waits for ten thousand of them; what it has released between two passes is left alone.
 */
#include "linux/actuator.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mask.h"
#include "base/macro.h"
#include "base/nice.h"
#include "linux/ledger-internal.h"
#include "linux/thread.h"

#define PF_NO_SETAFFINITY 0x04000000u

/*
 * For this long after a process has created another it is not steered: the plan may be of a snapshot that did not know.
 * From the next snapshot on the core keeps it off by itself (fork hold-off), so this need only be longer than it takes
 * from a snapshot to its actions, whatever the interval.
 */
#define RELEASE_FRESH ASYM_SEC

struct linux_actuator {
    struct asym_actuator actuator;
    struct asym_ledger *ledger; /* borrowed */
};

static struct asym_ledger_entry *entry_of(struct asym_ledger *l, const struct asym_taskid *id)
{
    struct asym_ledger_entry *e = asym_ledger_find(l, id->tid);
    if (!e || (e->id.start == id->start && e->id.tgid == id->tgid))
        return e;
    asym_ledger_forget(l, e); /* of a thread that had the number before */
    return NULL;
}

/* All that the cpuset allows: then all ones are given back, and a cpuset that grows later takes the thread with it. */
static bool is_whole(const struct asym_ledger *l, const struct asym_taskid *id, const struct asym_mask *allowed)
{
    struct asym_mask cpuset;
    if (asym_mask_within(&l->possible, allowed))
        return true;
    if (asym_thread_get_cpuset(id->tgid, id->tid, &cpuset) < 0)
        return false;
    cpuset = asym_mask_and(&cpuset, &l->possible);
    return asym_mask_within(&cpuset, allowed);
}

static bool wants_nice(const struct asym_action *a)
{
    return a->nice != a->expect_nice;
}

/* Compare and begin an entry for a thread that asymd has not touched yet. */
static int meet(struct asym_ledger *l, const struct asym_action *a, const struct asym_thread_sched *sched)
{
    struct asym_stat stat;
    struct asym_mask allowed;
    int r = asym_thread_get_stat(a->id.tgid, a->id.tid, &stat);
    if (r < 0 || stat.start != a->id.start)
        return r < 0 ? r : -ESRCH;
    if (stat.flags & PF_NO_SETAFFINITY)
        return -EPERM;
    r = asym_thread_get_allowed(a->id.tgid, a->id.tid, &allowed);
    if (r < 0)
        return r;
    if (!asym_ledger_same_mask(l, &allowed, &a->expect) && !asym_ledger_same_mask(l, &allowed, &a->mask))
        return -EAGAIN; /* changed since the snapshot: the next one knows */
    if (wants_nice(a) && sched->nice != a->expect_nice && sched->nice != a->nice)
        return -EAGAIN;
    struct asym_ledger_entry *e = asym_ledger_add(l, &a->id);
    if (!e)
        return -ENOMEM;
    pid_t session = getsid(a->id.tgid);
    e->original = e->set = allowed;
    e->whole = is_whole(l, &a->id, &allowed);
    e->original_nice = e->set_nice = e->before_nice = sched->nice;
    e->original_reset = sched->reset_on_fork;
    e->since = asym_thread_ticks();
    e->session = session > 0 ? session : 0;
    return 0;
}

/* Is a steered thread still as asymd has left it, or as the core has just seen it? */
static int recognise(struct asym_ledger *l, const struct asym_action *a, const struct asym_ledger_entry *e,
                     struct asym_mask *ret_found)
{
    struct asym_mask found;
    int r = asym_thread_is_of(a->id.tgid, a->id.tid);
    if (r >= 0)
        r = asym_thread_get_mask(a->id.tid, &found);
    if (r < 0)
        return r;
    if (!asym_ledger_is_set(l, e, &found) && !asym_ledger_same_mask(l, &found, &a->expect) &&
        !asym_ledger_same_mask(l, &found, &a->mask))
        return -EAGAIN; /* by the kernel for a cpuset, or by somebody else: the core tells at its next looks */
    *ret_found = found;
    return 0;
}

/*
 * before is what is in force now, which after a failure is not what was noted last. Where it is none of the notes the
 * kernel has cut it to a cpuset, and the core has seen that.
 */
static void note_wish(struct asym_ledger *l, const struct asym_action *a, const struct asym_thread_sched *sched,
                      const struct asym_mask *found, struct asym_ledger_entry *e)
{
    if (asym_ledger_same_mask(l, found, &e->set))
        e->before = e->set;
    else if (!asym_ledger_same_mask(l, found, &e->before))
        e->before = *found;
    e->set = a->mask;
    e->via = a->via > 0 && asym_mask_has(&a->mask, (int)a->via - 1) ? a->via : 0;
    e->under_way = e->via > 0;
    if (!wants_nice(a) || !asym_thread_is_fair(sched))
        return;
    e->before_nice = sched->nice == e->before_nice ? e->before_nice : e->set_nice;
    e->set_nice = a->nice;
    e->boosted = true;
}

static int prepare_steer(struct asym_ledger *l, const struct asym_action *a, asym_usec now)
{
    struct asym_thread_sched sched;
    struct asym_mask found;
    /* Offline since the plan: the kernel would cut the mask, and it would look as if somebody else had set it. */
    if (!asym_mask_within(&a->mask, &l->online))
        return -EAGAIN;
    if (asym_ledger_was_released(l, a->id.tgid, now > RELEASE_FRESH ? now - RELEASE_FRESH : 0))
        return -EAGAIN;
    struct asym_ledger_entry *e = entry_of(l, &a->id);
    int r = asym_thread_get_sched(a->id.tid, &sched);
    if (r < 0)
        return r;
    if (asym_thread_is_realtime(&sched))
        return -EBUSY; /* real-time since the snapshot */
    if (e) {
        r = recognise(l, a, e, &found);
    } else {
        r = meet(l, a, &sched);
        e = asym_ledger_find(l, a->id.tid);
        if (r >= 0)
            found = e->original;
    }
    if (r < 0)
        return r;
    note_wish(l, a, &sched, &found, e);
    r = asym_ledger_note(l, e);
    e->under_way &= r >= 0;
    return r;
}

static int change_nice(const struct asym_action *a, const struct asym_ledger_entry *e)
{
    struct asym_thread_sched now;
    int r = asym_thread_get_sched(a->id.tid, &now);
    if (r < 0)
        return r;
    if (!asym_thread_is_fair(&now))
        return 0; /* idle, or of another scheduler: nice says nothing there, the mask does */
    if (!asym_ledger_is_nice_set(e, now.nice))
        return -EBUSY;
    /* At its own value again it inherits as it always did. */
    return asym_thread_set_nice(a->id.tid, a->nice, a->nice != e->original_nice || e->original_reset);
}

/* Both or neither: a boost where the thread was is what nobody has planned. */
static void change_nice_back(const struct asym_ledger_entry *e)
{
    struct asym_thread_sched now;
    if (asym_thread_get_sched(e->id.tid, &now) == 0 && asym_thread_is_fair(&now) && now.nice == e->set_nice)
        asym_thread_set_nice(e->id.tid, e->before_nice, e->before_nice != e->original_nice || e->original_reset);
}

/* From then on that one CPU would be the thread's own choice, or somebody else's. Written with what follows. */
static void arrive(struct asym_ledger *l, struct asym_ledger_entry *e)
{
    e->under_way = false;
    e->via_until = asym_thread_now() + ASYM_LEDGER_LATE;
    if (asym_ledger_note(l, e) < 0)
        l->owed = true;
}

/* What cannot go on goes back. Where via cannot be had, it goes straight. */
static int change_mask(struct asym_ledger *l, const struct asym_action *a, struct asym_ledger_entry *e)
{
    const struct asym_mask via = asym_ledger_via(e);
    const bool stopped = e->under_way && asym_thread_set_mask(a->id.tid, &via, false) >= 0;
    const int r = asym_thread_set_mask(a->id.tid, &a->mask, false);
    const bool stranded = stopped && r < 0 && asym_thread_set_mask(a->id.tid, &e->before, false) < 0;
    if (e->under_way && !stranded)
        arrive(l, e);
    return r;
}

static int steer(struct asym_ledger *l, const struct asym_action *a)
{
    struct asym_ledger_entry *e = entry_of(l, &a->id);
    if (!e)
        return -EAGAIN; /* the guard has released it since it was noted */
    int r = wants_nice(a) ? change_nice(a, e) : 0;
    e->under_way &= r >= 0;
    if (r < 0)
        return r;
    r = change_mask(l, a, e);
    if (r >= 0)
        e->in_force = true;
    else if (wants_nice(a))
        change_nice_back(e);
    return r;
}

static int release(struct asym_ledger *l, const struct asym_action *a)
{
    struct asym_ledger_entry *e = entry_of(l, &a->id);
    if (!e)
        return 0; /* the guard has given it back already */
    int r = asym_ledger_give_back(l, e);
    if (r == 0 || r == -ESRCH || r == -EBUSY)
        asym_ledger_forget(l, e);
    return r;
}

/*
 * What it has for a mask now is not looked at: were it what asymd had set some time ago, it would be somebody's choice. But
 * for one that could neither go on nor back.
 */
static int forget(struct asym_ledger *l, const struct asym_action *a)
{
    struct asym_stat stat;
    struct asym_ledger_entry *e = entry_of(l, &a->id);
    if (!e)
        return 0;
    int r = asym_thread_get_stat(a->id.tgid, a->id.tid, &stat);
    if (r >= 0 && stat.start == a->id.start)
        r = e->under_way ? asym_ledger_give_back(l, e) : asym_ledger_give_back_nice(e);
    asym_ledger_forget(l, e);
    return r == -ESRCH || r == -EBUSY ? 0 : r;
}

static int repair(struct asym_ledger *l, const struct asym_action *a)
{
    struct asym_stat stat;
    struct asym_mask found;
    struct asym_thread_sched now;
    int r = asym_thread_get_stat(a->id.tgid, a->id.tid, &stat);
    if (r < 0 || stat.start != a->id.start)
        return r < 0 ? r : -ESRCH;
    r = asym_thread_get_mask(a->id.tid, &found);
    if (r < 0)
        return r;
    const bool has_it = asym_ledger_same_mask(l, &found, &a->mask);
    const bool inherited = has_it || asym_ledger_same_mask(l, &found, &a->expect);
    /* All ones would put it on isolated CPUs, where nobody is who has not asked to be. */
    if (!has_it && inherited)
        r = asym_thread_set_mask(a->id.tid, &a->mask, a->whole && !l->isolated);
    if (r >= 0 && wants_nice(a) && asym_thread_get_sched(a->id.tid, &now) == 0 && asym_thread_is_fair(&now) &&
        (now.nice == a->expect_nice || asym_nice_owes_boost(now.nice, a->expect_nice, a->nice)))
        r = asym_thread_set_nice(a->id.tid, a->nice, now.reset_on_fork);
    /* It has set a mask since the snapshot, over what was never asymd's to it: the next one has that for its own choice. */
    return r >= 0 && !inherited ? -EAGAIN : r;
}

/* A thread that will not be steered further is given back what can be; one that was not changed is not kept. */
static void after_failure(struct asym_ledger *l, const struct asym_action *a, int error)
{
    struct asym_ledger_entry *e = entry_of(l, &a->id);
    enum asym_verdict verdict = asym_verdict_of(error);
    if (!e || a->kind != ASYM_ACTION_STEER || (verdict == ASYM_VERDICT_RETRY && e->in_force && !e->under_way))
        return;
    int r = verdict == ASYM_VERDICT_GONE ? -ESRCH : asym_ledger_give_back(l, e);
    if (r == 0 || r == -ESRCH || r == -EBUSY || !e->in_force)
        asym_ledger_forget(l, e);
}

static int change(struct asym_ledger *l, const struct asym_action *a)
{
    switch (a->kind) {
    case ASYM_ACTION_STEER:
        return steer(l, a);
    case ASYM_ACTION_RELEASE:
        return release(l, a);
    case ASYM_ACTION_REPAIR:
        return repair(l, a);
    case ASYM_ACTION_FORGET:
        return forget(l, a);
    }
    return -EINVAL;
}

static int prepare(struct asym_ledger *l, const struct asym_action *actions, size_t n, int *ret_errors)
{
    asym_usec now = asym_thread_now();
    asym_ledger_lock(l);
    asym_ledger_renew_online(l);
    asym_ledger_unlock(l);
    for (size_t i = 0; i < n; i++) {
        asym_ledger_lock(l);
        ret_errors[i] = actions[i].kind == ASYM_ACTION_STEER ? prepare_steer(l, &actions[i], now) : 0;
        asym_ledger_unlock(l);
    }
    asym_ledger_lock(l);
    /* Not anew: on a disk the rename waits for that, 1.5 ms here, and a program waits for its masks. */
    int r = asym_ledger_write(l);
    for (size_t i = l->n; r < 0 && i-- > 0;) {
        l->entries[i].under_way = false;
        if (!l->entries[i].in_force)
            asym_ledger_remove(l, &l->entries[i]);
    }
    asym_ledger_unlock(l);
    return r;
}

static int linux_apply(struct asym_actuator *actuator, const struct asym_action *actions, size_t n,
                       struct asym_outcome *ret_outcomes)
{
    struct asym_ledger *l = ((struct linux_actuator *)(void *)actuator)->ledger;
    if (n == 0)
        return 0;
    ASYM_AUTO_FREE int *errors = calloc(n, sizeof *errors);
    int unrecorded = errors ? prepare(l, actions, n, errors) : -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        if (unrecorded < 0 && actions[i].kind == ASYM_ACTION_STEER) {
            ret_outcomes[i] = (struct asym_outcome){.verdict = ASYM_VERDICT_RETRY, .error = unrecorded};
            continue;
        }
        asym_ledger_lock(l);
        int error = errors && errors[i] < 0 ? errors[i] : change(l, &actions[i]);
        if (error < 0)
            after_failure(l, &actions[i], error);
        asym_ledger_unlock(l);
        ret_outcomes[i] = (struct asym_outcome){.verdict = asym_verdict_of(error), .error = error};
    }
    asym_ledger_lock(l);
    /* Only what needs nothing any more: that it is not written yet is made good by the next flush. */
    asym_ledger_flush(l);
    asym_ledger_unlock(l);
    return unrecorded;
}

static void linux_close(struct asym_actuator *actuator)
{
    free(actuator);
}

int asym_actuator_linux_new(struct asym_ledger *ledger, struct asym_actuator **ret_actuator)
{
    struct linux_actuator *a = calloc(1, sizeof *a);
    if (!a)
        return -ENOMEM;
    a->actuator = (struct asym_actuator){.apply = linux_apply, .close = linux_close};
    a->ledger = ledger;
    *ret_actuator = &a->actuator;
    return 0;
}
