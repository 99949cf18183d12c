/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Process events of the proc connector update the table of processes. */
#include "linux/observe/procfs-internal.h"

static void take_process_event(struct asym_procfs *p, const struct asym_process_event *event)
{
    struct asym_process *parent = asym_procfs_find(p, event->parent_tgid);
    if (parent)
        parent->last_fork = event->when;
    struct asym_process *child = asym_procfs_track(p, event->tgid, true);
    if (!child || child->decided)
        return;
    /* Where the creator has ended meanwhile, stat names init as the parent. */
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

static void take_exit(struct asym_procfs *p, struct asym_process *proc, const struct asym_process_event *event)
{
    if (!asym_procfs_follows(proc)) {
        if (event->pid == event->tgid)
            asym_procfs_drop(p, proc);
        return;
    }
    /* A leader may end before the other threads. It stays until it is reaped, and then its clock can no longer be read. */
    struct asym_pthread *t = event->pid == event->tgid ? NULL : asym_procfs_find_thread(proc, event->pid);
    if (t && !t->gone)
        asym_procfs_mark_gone(p, proc, t);
    asym_procfs_expect(proc, ASYM_DUE_READ);
}

static void take_event(void *ctx, const struct asym_process_event *event)
{
    struct asym_procfs *p = ctx;
    struct asym_process *proc;
    if (event->kind == ASYM_PROCESS_EVENT_LOST) {
        p->rescan = true;
        p->coverage.n_lost_events++;
        return;
    }
    if (event->tgid <= 0)
        return;
    if (event->kind == ASYM_PROCESS_EVENT_FORK) {
        take_process_event(p, event);
        return;
    }
    proc = asym_procfs_find(p, event->tgid);
    if (!proc)
        return;
    switch (event->kind) {
    case ASYM_PROCESS_EVENT_CLONE:
        if (asym_procfs_follows(proc) && asym_procfs_add_thread(proc, event->pid, true, event->when) < 0)
            asym_procfs_expect(proc, ASYM_DUE_THREADS);
        break;
    case ASYM_PROCESS_EVENT_EXEC:
        proc = asym_procfs_follows(proc) ? asym_procfs_verify(p, proc) : NULL;
        /* The last fork was by the previous program. */
        if (proc) {
            proc->last_exec = event->when;
            proc->last_fork = 0;
            proc->image = (struct asym_image){0}; /* the next sample reads that of the new program */
        }
        break;
    case ASYM_PROCESS_EVENT_EXIT:
        take_exit(p, proc, event);
        break;
    default:
        break;
    }
}

int asym_procfs_take_events(struct asym_procfs *p)
{
    int r = asym_process_events_drain(p->config.process_events, take_event, p);
    if (r < 0) {
        p->coverage.process_events = false;
        p->coverage.process_events_why = "the connection to the proc connector has ended: asymd scans /proc instead";
    }
    return r < 0 ? r : 0;
}
