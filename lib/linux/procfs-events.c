/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Births and deaths as the proc connector tells them. */
#include "linux/procfs-internal.h"

static void take_birth(struct asym_procfs *p, const struct asym_birth *event)
{
    struct asym_process *parent = asym_pid_table_find(&p->by_pid, event->parent_tgid);
    if (parent)
        parent->last_fork = event->when;
    struct asym_process *child = asym_procfs_track(p, event->tgid, true);
    if (!child || child->decided)
        return;
    /* stat has init for the parent where the creator has ended meanwhile. */
    if (event->parent_tgid > 0)
        child->ppid = event->parent_tgid;
    struct asym_pthread *leader = asym_procfs_find_thread(child, event->pid);
    if (leader)
        leader->born = (uint32_t)event->when;
    child->born = event->when;
    child->decided = true;
    if (!asym_procfs_wants(p, child) && (!parent || parent->flags & ASYM_PROC_OUTSIDE))
        child->flags |= ASYM_PROC_OUTSIDE;
}

static void take_exit(struct asym_procfs *p, struct asym_process *proc, const struct asym_birth *event)
{
    if (!asym_procfs_follows(proc)) {
        if (event->pid == event->tgid)
            asym_procfs_drop(p, proc);
        return;
    }
    /* A leader may end before its threads, and stays until it is reaped: its clock tells when it is gone. */
    struct asym_pthread *t = event->pid == event->tgid ? NULL : asym_procfs_find_thread(proc, event->pid);
    if (t && !t->gone)
        asym_procfs_mark_gone(p, proc, t);
    proc->fresh = true;
}

static void take_event(void *ctx, const struct asym_birth *event)
{
    struct asym_procfs *p = ctx;
    struct asym_process *proc;
    if (event->kind == ASYM_BIRTH_LOST) {
        p->rescan = true;
        p->sight.n_lost_events++;
        return;
    }
    if (event->tgid <= 0)
        return;
    if (event->kind == ASYM_BIRTH_PROCESS) {
        take_birth(p, event);
        return;
    }
    proc = asym_pid_table_find(&p->by_pid, event->tgid);
    if (!proc)
        return;
    switch (event->kind) {
    case ASYM_BIRTH_THREAD:
        if (asym_procfs_follows(proc) && asym_procfs_add_thread(proc, event->pid, true, event->when) < 0)
            proc->stale_threads = true;
        break;
    case ASYM_BIRTH_EXEC:
        proc = asym_procfs_follows(proc) ? asym_procfs_verify(p, proc) : NULL;
        /* What the program before it created is nothing to this one. */
        if (proc) {
            proc->last_exec = event->when;
            proc->last_fork = 0;
        }
        break;
    case ASYM_BIRTH_EXIT:
        take_exit(p, proc, event);
        break;
    default:
        break;
    }
}

int asym_procfs_take_events(struct asym_procfs *p)
{
    int r = asym_births_drain(p->config.births, take_event, p);
    if (r < 0) {
        p->sight.births = false;
        p->sight.births_why = "the connection to the proc connector has ended, and /proc is scanned instead";
    }
    return r < 0 ? r : 0;
}
