/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/actuator.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* Is the thread still as the core believes? 0; -EAGAIN when the guard was here; -EBUSY when somebody else was. */
static int compare(struct asym_ledger *l, const struct asym_action *a, asym_usec now)
{
    struct asym_mask found;
    uint64_t start;
    int r = asym_thread_start(a->id.tgid, a->id.tid, &start);
    if (r < 0 || start != a->id.start)
        return r < 0 ? r : -ESRCH;
    bool released = asym_ledger_was_released(l, a->id.tgid, now > RELEASE_FRESH ? now - RELEASE_FRESH : 0);
    if (released && a->kind == ASYM_ACTION_STEER)
        return -EAGAIN;
    r = asym_thread_get_mask(a->id.tid, &found);
    if (r < 0)
        return r;
    if (asym_ledger_same_mask(l, &found, &a->expect) || asym_ledger_same_mask(l, &found, &a->mask))
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

/* Write down what is there and what shall be. The change itself follows when the whole batch is on record. */
static int intend(struct asym_ledger *l, const struct asym_action *a)
{
    struct asym_ledger_entry *e = entry_of(l, a);
    struct asym_thread_sched sched;
    int r = asym_thread_get_sched(a->id.tid, &sched);
    if (r < 0)
        return r;
    if (!e) {
        e = asym_ledger_add(l, &a->id);
        if (!e)
            return -ENOMEM;
        e->original = e->set = a->expect;
        /* A thread steered first now has what its cpuset allows: the core steers no other. */
        e->whole = true;
        e->original_nice = e->set_nice = sched.nice;
        e->original_reset = sched.reset_on_fork;
    }
    e->before = e->set;
    e->before_nice = e->set_nice;
    e->set = a->mask;
    if (a->nice != a->expect_nice) {
        e->set_nice = a->nice;
        e->boosted = true;
    }
    return asym_ledger_note(l, e);
}

static int change_nice(const struct asym_action *a, const struct asym_ledger_entry *e)
{
    struct asym_thread_sched now;
    int r = asym_thread_get_sched(a->id.tid, &now);
    if (r < 0 || now.nice == a->nice)
        return r;
    if (now.nice != a->expect_nice)
        return 0; /* somebody else's nice: the mask may still be set */
    bool reset = !e || a->nice != e->original_nice ? true : e->original_reset;
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

/* A steered thread that turned out to be gone, or not ours, needs nothing put back. */
static void drop(struct asym_ledger *l, const struct asym_action *a, int error)
{
    struct asym_ledger_entry *e = asym_ledger_find(l, a->id.tid);
    if ((error == -ESRCH || error == -EBUSY) && e && e->id.start == a->id.start) {
        asym_ledger_remove(l, e);
        asym_ledger_note_gone(l, &a->id);
    }
}

static int linux_apply(struct asym_actuator *actuator, const struct asym_action *actions, size_t n,
                       struct asym_outcome *ret_outcomes)
{
    struct asym_ledger *l = ((struct linux_actuator *)(void *)actuator)->ledger;
    asym_usec now = monotonic();
    if (n == 0)
        return 0;
    asym_ledger_lock(l);
    asym_ledger_renew_online(l);
    for (size_t i = 0; i < n; i++) {
        int r = compare(l, &actions[i], now);
        if (r >= 0 && actions[i].kind == ASYM_ACTION_STEER)
            r = intend(l, &actions[i]);
        ret_outcomes[i].error = r;
    }
    int written = asym_ledger_flush(l);
    for (size_t i = 0; written >= 0 && i < n; i++) {
        if (ret_outcomes[i].error == 0)
            ret_outcomes[i].error = change(l, &actions[i]);
        drop(l, &actions[i], ret_outcomes[i].error);
        ret_outcomes[i].verdict = asym_verdict_of(ret_outcomes[i].error);
    }
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
