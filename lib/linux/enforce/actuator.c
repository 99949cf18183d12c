/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Three passes: read every thread and note the planned change, write the notes to the ledger, change the threads. The
 * lock is held for one thread at a time, so that the fork guard never waits for ten thousand threads (but where one that has ended
 * called exec, also for the threads of the new program). The actuator does not touch a thread that the fork guard released between
 * two passes.
 */
#include "linux/enforce/ledger-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mask.h"
#include "base/macro.h"
#include "base/nice.h"
#include "linux/sys/thread.h"

#define PF_NO_SETAFFINITY 0x04000000u

/*
 * A process is not steered for this long after it created another one, or after its leader ended: the snapshot behind the plan may
 * be older. From the next snapshot on the core holds the process off by itself (fork hold-off), and sees no leader that has ended.
 * So this must only exceed the time from a snapshot to its actions; the interval does not matter.
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
    /* The kernel reused the number: the entry is of an earlier thread, or of a later one than the core knows. */
    if (e->id.start <= id->start)
        asym_ledger_forget(l, e);
    return NULL;
}

/*
 * Does the mask hold all that the cpuset allows? Then asymd gives back a mask of all ones, so that the thread may also use
 * CPUs that the cpuset gets later.
 */
static bool is_full_cpuset(const struct asym_ledger *l, const struct asym_taskid *id, const struct asym_mask *allowed)
{
    struct asym_mask cpuset;
    if (asym_mask_within(&l->possible, allowed))
        return true;
    if (asym_thread_get_cpuset(&l->cgroups, id->tgid, id->tid, &cpuset) < 0)
        return false;
    cpuset = asym_mask_and(&cpuset, &l->possible);
    return asym_mask_within(&cpuset, allowed);
}

static bool wants_nice(const struct asym_action *a)
{
    return a->nice != a->expect_nice;
}

/*
 * The mask of the snapshot, if the thread still has it. sched_getaffinity hides offline CPUs, which only the file status shows;
 * but for a thread with tens of thousands of groups the kernel writes that file for milliseconds. So status is the observer's
 * alone, which reads the file once for each change of a mask and has a bound for it: the snapshot's mask has the offline CPUs.
 * The exception is a process whose status is too long: the observer reads it no more, so the snapshot's mask and the original
 * lack the offline CPUs, unless the thread has all online ones.
 */
static int get_original(const struct asym_ledger *l, const struct asym_action *a, struct asym_mask *ret)
{
    struct asym_mask found;
    int r = asym_thread_is_of(a->id.tgid, a->id.tid);
    if (r >= 0)
        r = asym_thread_get_mask(a->id.tid, &found);
    if (r < 0)
        return r;
    if (!asym_ledger_same_mask(l, &found, &a->expect))
        return -EAGAIN; /* changed since the snapshot: the next snapshot shows it */
    *ret = asym_mask_or(&found, &a->expect);
    return 0;
}

/* Compares, and adds an entry for a thread that asymd has not touched yet. */
static int begin_entry(struct asym_ledger *l, const struct asym_action *a, const struct asym_thread_sched *sched)
{
    struct asym_stat stat;
    struct asym_mask allowed;
    int r = asym_thread_get_stat_of(&a->id, &stat);
    if (r < 0)
        return r;
    if (stat.flags & PF_NO_SETAFFINITY)
        return -EPERM;
    r = get_original(l, a, &allowed);
    if (r < 0)
        return r;
    if (wants_nice(a) && sched->nice != a->expect_nice && sched->nice != a->nice)
        return -EAGAIN;
    struct asym_ledger_entry *e = asym_ledger_add(l, &a->id);
    if (!e)
        return -ENOMEM;
    pid_t session = getsid(a->id.tgid);
    e->original = e->set = allowed;
    e->full_cpuset = is_full_cpuset(l, &a->id, &allowed);
    e->original_nice = e->set_nice = e->before_nice = sched->nice;
    e->original_reset = sched->reset_on_fork;
    e->since = asym_thread_ticks();
    e->session = session > 0 ? session : 0;
    e->image = stat.image;
    return 0;
}

/* Checks that a steered thread still has the mask that asymd set, or the one that the core has just seen. */
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
        return -EAGAIN; /* changed by the kernel (cpuset), the thread or another program: the core decides at its next samples */
    *ret_found = found;
    return 0;
}

/*
 * Returns whether the file has the change: the thread goes back to the mask and nice value of before the last one, and a restore
 * takes either for asymd's. Serial phases are such turns, and to write takes a quarter of the time of an answer.
 */
static bool is_written(const struct asym_ledger *l, const struct asym_action *a, const struct asym_thread_sched *sched,
                       const struct asym_mask *found, const struct asym_ledger_entry *e)
{
    const bool is_nice_back = a->nice == e->before_nice && sched->nice == e->set_nice;
    return a->transit_cpu == 0 && (!wants_nice(a) || is_nice_back) && asym_mask_equal(&a->mask, &e->before) &&
           asym_ledger_same_mask(l, found, &e->set);
}

/*
 * before becomes the mask in force now. After a failed change that is not the mask that was noted last. A mask that equals
 * neither note was cut to a cpuset by the kernel, and the core has seen that.
 */
static void change_entry(struct asym_ledger *l, const struct asym_action *a, const struct asym_thread_sched *sched,
                         const struct asym_mask *found, struct asym_ledger_entry *e)
{
    if (asym_ledger_same_mask(l, found, &e->set))
        e->before = e->set;
    else if (!asym_ledger_same_mask(l, found, &e->before))
        e->before = *found;
    e->set = a->mask;
    e->transit_cpu = a->transit_cpu > 0 && asym_mask_has(&a->mask, (int)a->transit_cpu - 1) ? a->transit_cpu : 0;
    e->under_way = e->transit_cpu > 0;
    /* While asymd lends a value, the flag is set, unless its owner has cleared it. While it lends none, the flag is its owner's. */
    e->original_reset |= e->set_nice == e->original_nice && sched->nice == e->set_nice;
    e->original_reset &= sched->reset_on_fork;
    if (!wants_nice(a) || !asym_thread_is_fair(sched))
        return;
    /* asymd lends it nothing, and its owner has given it another nice value since, which the core has seen. */
    if (e->set_nice == e->original_nice && sched->nice == a->expect_nice && !asym_ledger_is_nice_set(e, sched->nice)) {
        e->original_nice = e->set_nice = e->before_nice = sched->nice;
        e->original_reset = sched->reset_on_fork;
    }
    e->before_nice = sched->nice == e->before_nice ? e->before_nice : e->set_nice;
    e->set_nice = a->nice;
    e->boosted = true;
}

static int prepare_steer(struct asym_ledger *l, const struct asym_action *a, asym_usec now)
{
    struct asym_thread_sched sched;
    struct asym_mask found;
    /*
     * A CPU of the mask went offline since the plan. The kernel would cut the mask, and asymd would take the result for
     * a change that the thread or another program made.
     */
    if (!asym_mask_within(&a->mask, &l->online))
        return -EAGAIN;
    if (asym_ledger_was_released(l, a->id.tgid, now > RELEASE_FRESH ? now - RELEASE_FRESH : 0))
        return -EAGAIN;
    struct asym_ledger_entry *e = entry_of(l, &a->id);
    int r = asym_thread_get_sched(a->id.tid, &sched);
    if (r < 0)
        return r;
    if (asym_thread_is_realtime(&sched))
        return -EAGAIN; /* real-time since the snapshot: the next one says so */
    if (e) {
        r = recognise(l, a, e, &found);
    } else {
        r = begin_entry(l, a, &sched);
        e = asym_ledger_find(l, a->id.tid);
        if (r >= 0)
            found = e->original;
    }
    if (r < 0)
        return r;
    const bool is_known = is_written(l, a, &sched, &found, e), reset = e->original_reset;
    change_entry(l, a, &sched, &found, e);
    r = is_known && e->original_reset == reset ? 0 : asym_ledger_note(l, e);
    e->under_way &= r >= 0;
    return r;
}

static int change_nice(const struct asym_action *a, struct asym_ledger_entry *e)
{
    struct asym_thread_sched now;
    int r = asym_thread_get_sched(a->id.tid, &now);
    if (r < 0)
        return r;
    if (!asym_thread_is_fair(&now))
        return 0; /* SCHED_IDLE or another scheduler: nice has no effect there, the mask has */
    /* Not set yet, set_nice explains no other value: its owner has given it that since the snapshot. */
    if (now.nice != e->set_nice && now.nice != e->before_nice &&
        !asym_nice_owes_boost(now.nice, e->before_nice, e->original_nice)) {
        e->set_nice = e->before_nice;
        return -ESTALE;
    }
    /* With its original nice value, the thread gets its original reset-on-fork flag again. */
    return asym_thread_set_nice(a->id.tid, a->nice, a->nice != e->original_nice || e->original_reset);
}

/* A change sets mask and nice, or neither: no policy plans the new nice value on the old CPUs. */
static void change_nice_back(const struct asym_ledger_entry *e)
{
    struct asym_thread_sched now;
    if (asym_thread_get_sched(e->id.tid, &now) == 0 && asym_thread_is_fair(&now) && now.nice == e->set_nice)
        asym_thread_set_nice(e->id.tid, e->before_nice, e->before_nice != e->original_nice || e->original_reset);
}

/*
 * From now on asymd takes a mask of the transit CPU alone for a choice of the thread or of another program. The note is
 * written with the next batch.
 */
static void arrive(struct asym_ledger *l, struct asym_ledger_entry *e)
{
    e->under_way = false;
    e->transit_until = asym_clock_now() + ASYM_LEDGER_LATE;
    if (asym_ledger_note(l, e) < 0)
        l->owed = true;
}

/*
 * Moves the thread through its transit CPU. If the kernel refuses the transit CPU, the thread moves straight to its new
 * mask. If it refuses the new mask, a thread on its transit CPU gets its previous mask back.
 */
static int change_mask(struct asym_ledger *l, const struct asym_action *a, struct asym_ledger_entry *e)
{
    const struct asym_mask transit_cpu = asym_ledger_transit(e);
    const bool stopped = e->under_way && asym_thread_set_mask(a->id.tid, &transit_cpu, false) >= 0;
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
        return -EAGAIN; /* the fork guard released it after the note */
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

/* The thread has ended, or has called exec and goes on as the leader: then own_reset and the fork guard need the record. */
static void forget_ended(struct asym_ledger *l, struct asym_ledger_entry *e)
{
    if (asym_ledger_follow_exec(l, e) < 0)
        return;
    asym_ledger_add_pending(l, e, e->id.tid, e->id.tgid, asym_clock_now() + ASYM_LEDGER_LATE);
    asym_ledger_forget(l, e);
}

static int release(struct asym_ledger *l, const struct asym_action *a)
{
    struct asym_stat stat;
    struct asym_ledger_entry *e = entry_of(l, &a->id);
    if (!e) /* the fork guard has restored it already, or has seen it end */
        return asym_thread_get_stat_of(&a->id, &stat) == -ESRCH ? -ESRCH : 0;
    int r = asym_ledger_restore_thread(l, e);
    if (r == -ESRCH)
        forget_ended(l, e);
    else if (r >= 0 || r == -EBUSY)
        asym_ledger_forget(l, e);
    return r > 0 ? -ESTALE : r; /* the mask is given back */
}

/*
 * Keeps the thread's present mask: the core has found that asymd did not set it, even if asymd once set the same mask. The
 * exception is a thread that is left on its transit CPU: it gets its mask back. If the kernel refuses the nice value, that alone
 * stays on record.
 */
static int forget(struct asym_ledger *l, const struct asym_action *a)
{
    struct asym_stat stat;
    struct asym_ledger_entry *e = entry_of(l, &a->id);
    if (!e)
        return 0;
    int r = asym_thread_get_stat_of(&a->id, &stat);
    if (r >= 0)
        r = e->under_way ? asym_ledger_restore_thread(l, e) : asym_ledger_restore_nice(e);
    if (r >= 0 || r == -ESRCH || (r == -EBUSY && e->under_way)) {
        asym_ledger_forget(l, e);
        return 0;
    }
    if (!e->under_way)
        e->original = e->set = e->before = a->mask;
    e->full_cpuset &= e->under_way;
    l->owed |= asym_ledger_note(l, e) < 0;
    return r;
}

/*
 * Returns the record that explains the leader's nice value better; NULL: none does. The thread may have raised the value that asymd
 * lent it, so that an exact value is better. A thread that is older than the leader was of an earlier process with this number.
 */
static const struct asym_ledger_entry *better(const struct asym_ledger_entry *best, const struct asym_ledger_entry *e,
                                              const struct asym_action *a)
{
    if (e->id.tgid != a->id.tgid || e->id.tid == a->id.tid || e->id.start < a->id.start || !e->boosted ||
        !asym_ledger_is_nice_set(e, a->expect_nice))
        return best;
    return !best || (e->set_nice == a->expect_nice && best->set_nice != a->expect_nice) ? e : best;
}

/*
 * A thread that has called exec keeps the reset-on-fork flag that came with its boost, and is the leader now. The record of the
 * thread that it was says whether the flag is its own. If an action on that thread has failed meanwhile, the record is a pending
 * inheritance. The kernel clears the flag of a child.
 */
static bool own_reset(const struct asym_ledger *l, const struct asym_action *a, bool now)
{
    const struct asym_ledger_entry *best = NULL;
    if (a->id.tid != a->id.tgid)
        return now;
    for (size_t i = 0; i < l->n; i++)
        if (l->tgids[i] == a->id.tgid)
            best = better(best, &l->entries[i], a);
    for (size_t k = 0; k < ASYM_LEDGER_PENDING_MAX && k < l->next_pending; k++)
        best = better(best, &l->pending[k].from, a);
    return best ? best->original_reset : now;
}

static int repair(struct asym_ledger *l, const struct asym_action *a)
{
    struct asym_stat stat;
    struct asym_mask found, isolated;
    struct asym_thread_sched now;
    int r = asym_thread_get_stat_of(&a->id, &stat);
    if (r < 0)
        return r;
    r = asym_thread_get_mask(a->id.tid, &found);
    if (r < 0)
        return r;
    const bool has_it = asym_ledger_same_mask(l, &found, &a->mask);
    const bool inherited = has_it || asym_ledger_same_mask(l, &found, &a->expect);
    /* With a mask of all ones the thread could run on isolated CPUs, which are only for threads that ask for them. */
    asym_ledger_read_cpus(l, ASYM_CPUS_ISOLATED, &isolated);
    if (!has_it && inherited)
        r = asym_thread_set_mask(a->id.tid, &a->mask, a->full_cpuset && asym_mask_empty(&isolated));
    if (r >= 0 && wants_nice(a) && asym_thread_get_sched(a->id.tid, &now) == 0 && asym_thread_is_fair(&now) &&
        (now.nice == a->expect_nice || asym_nice_owes_boost(now.nice, a->expect_nice, a->nice)))
        r = asym_thread_set_nice(a->id.tid, a->nice, own_reset(l, a, now.reset_on_fork));
    /* It is the leader since it called exec: the record is of the former one. */
    struct asym_ledger_entry *e = r >= 0 && inherited ? asym_ledger_find(l, a->id.tid) : NULL;
    if (e)
        asym_ledger_forget(l, e);
    /* The thread has set its own mask since the snapshot. The next snapshot shows it as the thread's own choice. */
    return r >= 0 && !inherited ? -EAGAIN : r;
}

/* Restores a thread that will not be steered further, and forgets one that was never changed. */
static void after_failure(struct asym_ledger *l, const struct asym_action *a, int error)
{
    struct asym_ledger_entry *e = entry_of(l, &a->id);
    enum asym_outcome_kind outcome = asym_outcome_of(error);
    if (!e || a->kind != ASYM_ACTION_STEER || (outcome == ASYM_OUTCOME_RETRY && e->in_force && !e->under_way))
        return;
    int r = outcome == ASYM_OUTCOME_GONE ? -ESRCH : asym_ledger_restore_thread(l, e);
    if (r == -ESRCH)
        forget_ended(l, e);
    else if (r >= 0 || r == -EBUSY || !e->in_force)
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
    asym_usec now = asym_clock_now();
    pthread_mutex_lock(&l->lock);
    asym_ledger_read_cpus(l, ASYM_CPUS_ONLINE, &l->online);
    pthread_mutex_unlock(&l->lock);
    for (size_t i = 0; i < n; i++) {
        pthread_mutex_lock(&l->lock);
        ret_errors[i] = actions[i].kind == ASYM_ACTION_STEER ? prepare_steer(l, &actions[i], now) : 0;
        pthread_mutex_unlock(&l->lock);
    }
    pthread_mutex_lock(&l->lock);
    /*
     * Append to the file, do not rewrite it: on a disk the rename waits for the new file, 1.5 ms as measured here, and a
     * program waits for its masks.
     */
    int r = asym_ledger_write(l);
    /* A value that is not set explains none that an owner sets. */
    for (size_t i = 0; r < 0 && i < n; i++) {
        const bool is_noted = actions[i].kind == ASYM_ACTION_STEER && ret_errors[i] >= 0 && wants_nice(&actions[i]);
        struct asym_ledger_entry *e = is_noted ? asym_ledger_find(l, actions[i].id.tid) : NULL;
        if (e && e->set_nice == actions[i].nice)
            e->set_nice = e->before_nice;
    }
    for (size_t i = l->n; r < 0 && i-- > 0;) {
        l->entries[i].under_way = false;
        if (!l->entries[i].in_force)
            asym_ledger_remove(l, &l->entries[i]);
    }
    pthread_mutex_unlock(&l->lock);
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
            ret_outcomes[i] = (struct asym_outcome){.kind = ASYM_OUTCOME_RETRY, .error = unrecorded};
            continue;
        }
        pthread_mutex_lock(&l->lock);
        int error = errors && errors[i] < 0 ? errors[i] : change(l, &actions[i]);
        if (error < 0)
            after_failure(l, &actions[i], error);
        pthread_mutex_unlock(&l->lock);
        ret_outcomes[i] = (struct asym_outcome){.kind = asym_outcome_of(error), .error = error};
    }
    pthread_mutex_lock(&l->lock);
    /* The batch now holds only threads that are done. If this fails, the next flush writes them. */
    asym_ledger_flush(l);
    pthread_mutex_unlock(&l->lock);
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
