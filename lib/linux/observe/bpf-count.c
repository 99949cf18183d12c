/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's counts of each thread, between two full snapshots. */
#include "linux/observe/bpf-internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/macro.h"

/*
 * An application whose threads change their states more often than this, per second of their CPU time, or of the time that passed
 * where that is more, is followed no more for a while: at some 0.1 to 0.25 us a change, it would lose more than half a per cent of
 * its time (docs/data/phases.md).
 */
#define CHANGES_MOST 20000

/* The changes are counted over this: a burst is not what a program does. */
#define CHANGES_OVER ASYM_SEC

int asym_bpf_count_init(struct asym_bpf *b)
{
    b->counted = calloc(ASYM_PHASES_THREADS + 1, sizeof *b->counted);
    return b->counted ? asym_hash_reserve(&b->thread_index, ASYM_PHASES_THREADS + 1) : -ENOMEM;
}

void asym_bpf_count_done(struct asym_bpf *b)
{
    free(b->counted);
    asym_hash_done(&b->thread_index);
}

/* A thread for which the kernel had no place may have run: then only the clock of its process knows. */
static void note_activity(struct asym_bpf *b, int32_t tgid, enum asym_procfs_activity activity)
{
    struct asym_bpf_proc *proc = asym_bpf_proc_of(b, tgid);
    if (!proc)
        return;
    proc->is_counted = true;
    if (!asym_phases_misses(b->kernel, proc->app))
        proc->activity = ASYM_MAX(proc->activity, activity);
}

static void note_changes(struct asym_bpf *b, const struct asym_bpf_counted *c, uint32_t seq_before)
{
    if (c->at.app == 0 || c->at.app > ASYM_PHASES_APPS)
        return;
    b->apps[c->at.app - 1].n_changes += (uint32_t)(c->at.seq - seq_before) / 2;
    b->apps[c->at.app - 1].ran_ns += c->ran_ns;
}

static void measure(struct asym_bpf_counted *c, const struct asym_phases_thread *before, double interval_ns)
{
    c->ran_ns = c->at.running_ns - before->running_ns;
    c->waited_ns = c->at.waiting_ns - before->waiting_ns;
    c->running = ASYM_MIN((double)c->ran_ns / interval_ns, 1);
    c->runnable = ASYM_MIN((double)(c->ran_ns + c->waited_ns) / interval_ns, 1);
    if (c->at.critical_ns > before->critical_ns)
        c->critical = ASYM_MIN((double)(c->at.critical_ns - before->critical_ns) / interval_ns, 1);
    c->is_measured = true;
}

/* The place may have another thread than at the last count, or none. */
static void count(struct asym_bpf *b, uint32_t place, const struct asym_phases_thread *now, double interval_ns)
{
    struct asym_bpf_counted *c = &b->counted[place];
    const struct asym_phases_thread before = c->at;
    *c = (struct asym_bpf_counted){.at = *now};
    if (before.tid != now->tid) {
        if (before.tid != 0)
            asym_hash_remove(&b->thread_index, asym_hash_of_id(before.tid), place);
        if (now->tid != 0)
            asym_hash_add(&b->thread_index, asym_hash_of_id(now->tid), place);
    } else if (now->tid != 0 && before.app == now->app && before.running_ns <= now->running_ns &&
               before.waiting_ns <= now->waiting_ns && interval_ns > 0) {
        /* A count that is lower is of another thread, which has the number now. */
        measure(c, &before, interval_ns);
        note_changes(b, c, before.seq);
    }
    const bool slept = c->is_measured && !c->at.is_runnable && c->ran_ns + c->waited_ns == 0;
    note_activity(b, now->tgid, slept ? ASYM_PROCFS_SLEPT : ASYM_PROCFS_RAN);
    if (before.tgid != now->tgid)
        note_activity(b, before.tgid, ASYM_PROCFS_RAN);
}

/* A thread sleeps, and a process has slept, unless the count says otherwise. */
static void forget_last_count(struct asym_bpf *b)
{
    for (size_t i = 0; i < b->n_active; i++) {
        struct asym_bpf_counted *c = &b->counted[b->active[i]];
        *c = (struct asym_bpf_counted){.at = c->at, .is_measured = c->at.tid != 0};
    }
    for (size_t i = 0; i < b->n_procs; i++) {
        struct asym_bpf_proc *proc = &b->procs[i];
        const bool knows = proc->is_counted && !asym_phases_misses(b->kernel, proc->app);
        proc->activity = knows ? ASYM_PROCFS_SLEPT : ASYM_PROCFS_UNKNOWN;
    }
}

/* Puts to rest who changes too often. */
static void judge(struct asym_bpf *b, asym_usec now)
{
    const asym_usec since = b->judged;
    if (now - since < CHANGES_OVER)
        return;
    b->judged = now;
    for (uint32_t i = 0; i < b->apps_end; i++) {
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
    ASYM_HASH_FOREACH (i, &b->thread_index, asym_hash_of_id(tid))
        if (b->counted[i].at.tid == tid)
            return &b->counted[i];
    return NULL;
}

void asym_bpf_count(struct asym_bpf *b)
{
    const struct asym_phases_thread *threads;
    uint64_t now_ns = 0;
    forget_last_count(b);
    asym_phases_begin_interval(b->kernel);
    b->n_active = asym_phases_list(b->kernel, &threads, &b->active);
    asym_clock_ns(CLOCK_MONOTONIC, &now_ns);
    const double interval_ns = b->counted_at_ns == 0 ? 0 : (double)(now_ns - b->counted_at_ns);
    for (size_t i = 0; i < b->n_active; i++)
        count(b, b->active[i], &threads[b->active[i]], interval_ns);
    b->counted_at_ns = now_ns;
    judge(b, now_ns / 1000);
}
