/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's counts of each thread, between two full snapshots. */
#include "linux/observe/bpf-internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/search.h"

/*
 * An application whose threads change their states more often than this, per second of their CPU time, or of the time that passed
 * where that is more, is followed no more for a while: at some 0.1 to 0.25 us a change, it would lose more than half a per cent of
 * its time (docs/data/phases.md).
 */
#define CHANGES_MOST 20000

/* The changes are counted over this: a burst is not what a program does. */
#define CHANGES_OVER ASYM_SEC

static const struct asym_bpf_counted *find(const struct asym_bpf_counted *items, size_t n, int32_t tid)
{
    const size_t i = ASYM_LOWER_BOUND(items, n, tid, tid);
    return i < n && items[i].tid == tid ? &items[i] : NULL;
}

static struct asym_bpf_counted count(const struct asym_bpf *b, const struct asym_phases_thread *thread,
                                     double interval_ns)
{
    struct asym_bpf_counted ret = {.tid = thread->tid,
                                   .tgid = thread->tgid,
                                   .slot = thread->slot,
                                   .app = thread->app,
                                   .running_ns = thread->running_ns,
                                   .waiting_ns = thread->waiting_ns,
                                   .critical_ns = thread->critical_ns,
                                   .seq = thread->seq,
                                   .cpu = thread->cpu,
                                   .renewed = thread->renewed,
                                   .is_runnable = thread->is_runnable};
    const struct asym_bpf_counted *before = find(b->counted_before, b->n_before, thread->tid);
    /* A count that is lower is of another thread, which has the number now. */
    if (!before || before->slot != thread->slot || before->app != thread->app ||
        before->running_ns > thread->running_ns || before->waiting_ns > thread->waiting_ns || interval_ns <= 0)
        return ret;
    ret.ran_ns = thread->running_ns - before->running_ns;
    ret.waited_ns = thread->waiting_ns - before->waiting_ns;
    ret.running = ASYM_MIN((double)ret.ran_ns / interval_ns, 1);
    ret.runnable = ASYM_MIN((double)(ret.ran_ns + ret.waited_ns) / interval_ns, 1);
    if (thread->critical_ns > before->critical_ns)
        ret.critical = ASYM_MIN((double)(thread->critical_ns - before->critical_ns) / interval_ns, 1);
    ret.is_measured = true;
    return ret;
}

/* A thread for which the kernel had no place may have run: then only the clock of its process knows. */
static void note_activity(struct asym_bpf *b, const struct asym_phases_thread *thread, const struct asym_bpf_counted *c)
{
    struct asym_bpf_proc *proc = asym_bpf_proc_of(b, thread->tgid);
    if (!proc || asym_phases_misses(b->kernel, thread->app))
        return;
    const bool ran = thread->is_runnable || !c->is_measured || c->ran_ns + c->waited_ns > 0;
    if (ran || proc->activity == ASYM_PROCFS_UNKNOWN)
        proc->activity = ran ? ASYM_PROCFS_RAN : ASYM_PROCFS_SLEPT;
}

static void note_changes(struct asym_bpf *b, const struct asym_bpf_counted *c)
{
    const struct asym_bpf_counted *before = c->is_measured ? find(b->counted_before, b->n_before, c->tid) : NULL;
    if (!before || c->app == 0 || c->app > ASYM_PHASES_APPS)
        return;
    b->apps[c->app - 1].n_changes += (uint32_t)(c->seq - before->seq) / 2;
    b->apps[c->app - 1].ran_ns += c->ran_ns;
}

/* Puts to rest who changes too often. */
static void judge(struct asym_bpf *b, asym_usec now)
{
    const asym_usec since = b->judged;
    if (now - since < CHANGES_OVER)
        return;
    b->judged = now;
    for (uint32_t i = 0; i < ASYM_PHASES_APPS; i++) {
        struct asym_bpf_app *app = &b->apps[i];
        const double seconds = ASYM_MAX((double)app->ran_ns / 1e9, (double)(now - since) / ASYM_SEC);
        if (since > 0 && app->n_procs > 0 && (double)app->n_changes > CHANGES_MOST * seconds) {
            app->rests_until = now + ASYM_BPF_RESTS_FOR;
            app->alone = 0;
        }
        app->n_changes = app->ran_ns = 0;
    }
}

const struct asym_bpf_counted *asym_bpf_counted(const struct asym_bpf *b, int32_t tid)
{
    return find(b->counted, b->n_counted, tid);
}

int asym_bpf_count(struct asym_bpf *b)
{
    const struct asym_phases_thread *threads;
    asym_phases_begin_interval(b->kernel);
    const size_t n = asym_phases_list(b->kernel, &threads);
    uint64_t now_ns = 0;
    asym_clock_ns(CLOCK_MONOTONIC, &now_ns);
    if (n > b->capacity) {
        struct asym_bpf_counted *first = reallocarray(b->counted, n, sizeof *first);
        b->counted = first ? first : b->counted;
        struct asym_bpf_counted *second = reallocarray(b->counted_before, n, sizeof *second);
        b->counted_before = second ? second : b->counted_before;
        if (!first || !second)
            return -ENOMEM;
        b->capacity = n;
    }
    struct asym_bpf_counted *const earlier = b->counted;
    b->counted = b->counted_before;
    b->counted_before = earlier;
    b->n_before = b->n_counted;
    const double interval_ns = b->counted_at_ns == 0 ? 0 : (double)(now_ns - b->counted_at_ns);
    for (size_t i = 0; i < b->n_procs; i++)
        b->procs[i].activity = ASYM_PROCFS_UNKNOWN;
    for (size_t i = 0; i < n; i++) {
        b->counted[i] = count(b, &threads[i], interval_ns);
        note_activity(b, &threads[i], &b->counted[i]);
        note_changes(b, &b->counted[i]);
    }
    b->n_counted = n;
    b->counted_at_ns = now_ns;
    judge(b, now_ns / 1000);
    return 0;
}
