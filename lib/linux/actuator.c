/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/actuator.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/macro.h"
#include "base/mask.h"
#include "linux/ledger-internal.h"
#include "linux/thread.h"

/*
 * For this long after the guard has released a process, actions of a snapshot that did not know are turned away: longer
 * than any interval in use takes to plan and apply.
 */
#define RELEASE_FRESH ASYM_SEC

struct linux_actuator {
    struct asym_actuator actuator;
    struct asym_ledger *ledger;
};

static asym_usec monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (asym_usec)t.tv_sec * ASYM_SEC + (asym_usec)t.tv_nsec / 1000;
}

/* What a thread has, read once for each action. */
struct found {
    struct asym_mask mask;
    struct asym_thread_sched sched;
};

/* Nice is looked at only where asymd changes it, or has: a thread that is steered alone may be reniced by anybody. */
static bool nice_is_foreign(struct asym_ledger *l, const struct asym_action *a, const struct found *found)
{
    const struct asym_ledger_entry *e = asym_ledger_find(l, a->id.tid);
    const bool ours = a->nice != a->expect_nice || (e && e->id.start == a->id.start && e->boosted);
    return ours && found->sched.nice != a->expect_nice && found->sched.nice != a->nice;
}

/* Is the thread still as the core believes? 0; -EAGAIN when the guard was here; -EBUSY when somebody else was. */
static int compare(struct asym_ledger *l, const struct asym_action *a, asym_usec now, struct found *ret)
{
    uint64_t start;
    int r = asym_thread_start(a->id.tgid, a->id.tid, &start);
    if (r < 0 || start != a->id.start)
        return r < 0 ? r : -ESRCH;
    bool released = asym_ledger_was_released(l, a->id.tgid, now > RELEASE_FRESH ? now - RELEASE_FRESH : 0);
    if (released && a->kind == ASYM_ACTION_STEER)
        return -EAGAIN;
    r = asym_thread_get_mask(a->id.tid, &ret->mask);
    if (r >= 0)
        r = asym_thread_get_sched(a->id.tid, &ret->sched);
    if (r < 0)
        return r;
    const bool same = asym_ledger_same_mask(l, &ret->mask, &a->expect) ||
                      asym_ledger_same_mask(l, &ret->mask, &a->mask);
    if (same && !nice_is_foreign(l, a, ret))
        return 0;
    return released ? -EAGAIN : -EBUSY;
}

static struct asym_ledger_entry *entry_of(struct asym_ledger *l, const struct asym_action *a)
{
    struct asym_ledger_entry *e = asym_ledger_find(l, a->id.tid);
    if (e && e->id.start != a->id.start) {
        asym_ledger_remove(l, e);
        e = NULL;
    }
    return e;
}

static struct asym_ledger_entry *new_entry(struct asym_ledger *l, const struct asym_action *a,
                                           const struct found *found)
{
    struct asym_ledger_entry *e = asym_ledger_add(l, &a->id);
    if (!e)
        return NULL;
    e->since = asym_thread_ticks();
    /*
     * A thread steered first now has what its cpuset allows: the core steers no other. Unless somebody has since given it
     * the very mask that was wanted: then that is what it shall have again.
     */
    e->whole = asym_ledger_same_mask(l, &found->mask, &a->expect);
    e->original = e->set = e->whole ? a->expect : found->mask;
    e->original_nice = e->set_nice = found->sched.nice;
    e->original_reset = found->sched.reset_on_fork;
    return e;
}

/*
 * Write down what is there and what shall be. The change itself follows when the whole batch is on record. What is there
 * is what was found, not what was set last: the kernel may have refused that.
 */
static int intend(struct asym_ledger *l, const struct asym_action *a, const struct found *found)
{
    if (found->sched.policy == SCHED_FIFO || found->sched.policy == SCHED_RR || found->sched.policy == SCHED_DEADLINE)
        return -EBUSY; /* real-time since the snapshot */
    struct asym_ledger_entry *e = entry_of(l, a);
    if (!e)
        e = new_entry(l, a, found);
    if (!e)
        return -ENOMEM;
    e->before = found->mask;
    e->before_nice = found->sched.nice;
    e->set = a->mask;
    if (a->nice != a->expect_nice) {
        e->set_nice = a->nice;
        e->boosted = true;
    }
    return asym_ledger_note(l, e);
}

/* Compares again: between this and the first look the whole batch was looked at and written down. */
static int change_nice(const struct asym_action *a, const struct asym_ledger_entry *e)
{
    struct asym_thread_sched now;
    int r = asym_thread_get_sched(a->id.tid, &now);
    if (r < 0 || (now.policy != SCHED_OTHER && now.policy != SCHED_BATCH))
        return r; /* nice means nothing to a SCHED_IDLE thread */
    if (now.nice != a->expect_nice && now.nice != a->nice)
        return -EBUSY;
    bool reset = now.reset_on_fork;
    if (e)
        reset = a->nice != e->original_nice || e->original_reset;
    if (now.nice == a->nice && now.reset_on_fork == reset)
        return 0;
    return asym_thread_set_nice(a->id.tid, a->nice, reset);
}

static int steer(struct asym_ledger *l, const struct asym_action *a)
{
    int r = asym_thread_set_mask(a->id.tid, &a->mask, false);
    if (r >= 0 && a->nice != a->expect_nice)
        r = change_nice(a, asym_ledger_find(l, a->id.tid));
    return r;
}

static int release(struct asym_ledger *l, const struct asym_action *a)
{
    struct asym_ledger_entry *e = entry_of(l, a);
    if (!e)
        return 0; /* the guard has given it back already */
    int r = asym_ledger_give_back(l, e);
    if (r == 0 || r == -ESRCH || r == -EBUSY) {
        asym_ledger_remove(l, e);
        asym_ledger_note_gone(l, &a->id);
    }
    return r;
}

static int repair(struct asym_ledger *l, const struct asym_action *a)
{
    struct asym_mask found;
    int r = asym_thread_get_mask(a->id.tid, &found);
    if (r < 0)
        return r;
    if (asym_ledger_same_mask(l, &found, &a->expect))
        r = asym_thread_set_mask(a->id.tid, &a->mask, a->whole);
    if (r >= 0 && a->nice != a->expect_nice)
        r = change_nice(a, NULL);
    return r;
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
    }
    return -EINVAL;
}

/*
 * The core asks no more for a thread that is gone or that it shall keep its hands off: what is still asymd's own of it,
 * say the mask where only nice is somebody else's, goes back now. What the kernel will not take stays on record.
 */
static void drop(struct asym_ledger *l, const struct asym_action *a, enum asym_verdict verdict)
{
    struct asym_ledger_entry *e = asym_ledger_find(l, a->id.tid);
    if ((verdict != ASYM_VERDICT_GONE && verdict != ASYM_VERDICT_HANDS_OFF) || !e || e->id.start != a->id.start)
        return;
    int r = asym_ledger_give_back(l, e);
    if (r < 0 && r != -ESRCH && r != -EBUSY)
        return;
    asym_ledger_remove(l, e);
    asym_ledger_note_gone(l, &a->id);
}

/* Look at each thread and put on record what is to be done. Returns 0 when it is; errors are those of the actions. */
static int prepare(struct asym_ledger *l, const struct asym_action *actions, size_t n, int *errors)
{
    asym_usec now = monotonic();
    for (size_t i = 0; i < n; i++) {
        struct found found;
        errors[i] = compare(l, &actions[i], now, &found);
        if (errors[i] >= 0 && actions[i].kind == ASYM_ACTION_STEER)
            errors[i] = intend(l, &actions[i], &found);
    }
    return asym_ledger_flush(l);
}

static int linux_apply(struct asym_actuator *actuator, const struct asym_action *actions, size_t n,
                       struct asym_outcome *ret_outcomes)
{
    struct asym_ledger *l = ((struct linux_actuator *)(void *)actuator)->ledger;
    ASYM_AUTO_FREE int *errors = n > 0 ? calloc(n, sizeof *errors) : NULL;
    if (!errors)
        return n > 0 ? -ENOMEM : 0;
    asym_ledger_lock(l);
    asym_ledger_renew_online(l);
    int written = prepare(l, actions, n, errors);
    for (size_t i = 0; written >= 0 && i < n; i++) {
        int r = errors[i] == 0 ? change(l, &actions[i]) : errors[i];
        ret_outcomes[i] = (struct asym_outcome){.verdict = asym_verdict_of(r), .error = r};
        drop(l, &actions[i], ret_outcomes[i].verdict);
    }
    /* Records of what needs nothing any more may be missing: restoring compares. */
    if (written >= 0)
        asym_ledger_flush(l);
    asym_ledger_unlock(l);
    return written;
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
