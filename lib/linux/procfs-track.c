/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which processes there are, who they are, and whose descendants. */
#include "linux/procfs-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"

#define PF_KTHREAD 0x00200000u

/* More generations than any process has ancestors: a captured tree may hold a ring. */
#define MAX_DEPTH 4096

bool asym_procfs_follows(const struct asym_process *proc)
{
    return (proc->flags & (ASYM_PROC_KERNEL | ASYM_PROC_OUTSIDE | ASYM_PROC_FOREIGN_NS)) == 0;
}

/* By number and start: who gets the number later was not asked for. */
bool asym_procfs_wants(const struct asym_procfs *p, const struct asym_process *proc)
{
    for (size_t i = 0; i < p->config.n_pids; i++)
        if (p->wanted[i].pid == proc->pid && p->wanted[i].start == proc->start)
            return true;
    return p->config.n_pids == 0;
}

/*
 * Inside: asked for, or born of one that is inside. It is decided once, at the first sight: that a parent ends, and its
 * children become another's, changes nothing.
 */
static bool is_inside(const struct asym_procfs *p, const struct asym_process *proc)
{
    for (int depth = 0; depth < MAX_DEPTH; depth++) {
        if (proc->decided)
            return (proc->flags & ASYM_PROC_OUTSIDE) == 0;
        if (asym_procfs_wants(p, proc))
            return true;
        const struct asym_process *parent = asym_pid_table_find(&p->by_pid, proc->ppid);
        if (!parent || parent->start > proc->start)
            return false;
        proc = parent;
    }
    return false;
}

static void decide(struct asym_procfs *p, struct asym_process *proc)
{
    if (!is_inside(p, proc))
        proc->flags |= ASYM_PROC_OUTSIDE;
    proc->decided = true;
}

/* stat has clock ticks since boot, suspension included, rounded down; of a captured machine only its age is known. */
asym_usec asym_procfs_born_at(const struct asym_procfs *p, uint64_t start)
{
    asym_usec started = start / p->ticks * ASYM_SEC + start % p->ticks * ASYM_SEC / p->ticks;
    asym_usec now = p->config.root->live ? p->now + p->boot_ahead : p->uptime;
    asym_usec age = now > started ? now - started : 0;
    return p->now > age ? p->now - age : 1;
}

static void describe(struct asym_procfs *p, struct asym_process *proc, const struct asym_stat *stat)
{
    proc->ppid = stat->ppid;
    proc->start = stat->start;
    proc->born = asym_procfs_born_at(p, stat->start);
    memcpy(proc->comm, stat->comm, sizeof proc->comm);
    if (stat->flags & PF_KTHREAD)
        proc->flags |= ASYM_PROC_KERNEL;
    if (p->foreign)
        proc->flags |= ASYM_PROC_FOREIGN_NS;
    else if (p->config.root->live && (proc->pid == getpid() || (p->config.owns_children && proc->ppid == getpid())))
        proc->flags |= ASYM_PROC_SELF;
}

static struct asym_process *enlist(struct asym_procfs *p, int32_t pid, const struct asym_stat *stat, bool newborn)
{
    struct asym_process *proc = NULL;
    if (asym_procfs_grow(&p->procs, p->n_procs, &p->capacity, sizeof(struct asym_process *)) == 0)
        proc = malloc(sizeof *proc);
    if (!proc) {
        p->rescan = true;
        return NULL;
    }
    /* Seen: a listing that is under way may have come past its number already. */
    *proc = (struct asym_process){
        .pid = pid, .index = p->n_procs, .fresh = true, .stale_threads = true, .seen = p->listings};
    describe(p, proc, stat);
    /* A clock of the process by its number, as clock_getcpuclockid makes it, which asks the kernel only whether it may. */
    if (p->config.root->live && !p->foreign && clock_getcpuclockid(pid, &proc->clock) != 0) {
        free(proc);
        return NULL;
    }
    /* Known from the start, so that the first listing does not take it for one that was there before. */
    if ((newborn && asym_procfs_follows(proc) && asym_procfs_add_thread(proc, pid, true, 0) < 0) ||
        asym_pid_table_add(&p->by_pid, proc) < 0) {
        p->rescan = true;
        free(proc->threads);
        free(proc);
        return NULL;
    }
    p->procs[p->n_procs++] = proc;
    return proc;
}

struct asym_process *asym_procfs_track(struct asym_procfs *p, int32_t pid, bool newborn)
{
    struct asym_stat stat;
    int r = asym_procfs_read_stat(p, pid, 0, &stat);
    struct asym_process *known = asym_pid_table_find(&p->by_pid, pid);
    if (known && r == 0 && known->start == stat.start)
        return known;
    if (known)
        asym_procfs_drop(p, known);
    if (r < 0) {
        if (r == -EACCES || r == -EPERM)
            p->sight.n_denied++;
        else if (!asym_procfs_gone(r) && r != -EINVAL)
            p->rescan = true;
        return NULL;
    }
    return enlist(p, pid, &stat, newborn);
}

void asym_procfs_drop(struct asym_procfs *p, struct asym_process *proc)
{
    for (uint32_t i = 0; i < proc->n_threads; i++)
        asym_procfs_release(p, &proc->threads[i]);
    p->procs[proc->index] = p->procs[--p->n_procs];
    p->procs[proc->index]->index = proc->index;
    asym_pid_table_remove(&p->by_pid, proc->pid);
    free(proc->threads);
    free(proc);
}

/* Without events a fork is known by its child only, and when it was by when it is found. */
static void note_parent(struct asym_procfs *p, const struct asym_process *child)
{
    struct asym_process *parent = asym_pid_table_find(&p->by_pid, child->ppid);
    if (parent && parent->start <= child->start)
        parent->last_fork = p->now;
}

struct asym_process *asym_procfs_verify(struct asym_procfs *p, struct asym_process *proc)
{
    struct asym_stat stat;
    int r = asym_procfs_read_stat(p, proc->pid, 0, &stat);
    proc->doubtful = false;
    if (r == 0 && stat.start == proc->start) {
        memcpy(proc->comm, stat.comm, sizeof proc->comm);
        asym_procfs_forget_facts(proc);
        proc->stale_threads = proc->fresh = true;
        return proc;
    }
    if (r < 0 && !asym_procfs_gone(r))
        return proc;
    const int32_t pid = proc->pid;
    asym_procfs_drop(p, proc);
    proc = r == 0 ? enlist(p, pid, &stat, true) : NULL;
    if (proc) {
        decide(p, proc);
        note_parent(p, proc);
    }
    return proc;
}

static int take_process(struct asym_procfs *p, struct asym_process *none, int32_t pid)
{
    (void)none;
    struct asym_process *proc = asym_pid_table_find(&p->by_pid, pid);
    if (!proc) {
        proc = asym_procfs_track(p, pid, p->turns > 0);
        if (proc && p->turns > 0)
            note_parent(p, proc);
    } else if (p->verifying) {
        proc = asym_procfs_verify(p, proc);
    }
    if (proc)
        proc->seen = p->listings;
    return 0;
}

static int begin_listing(struct asym_procfs *p)
{
    if (p->list_fd >= 0)
        return 0;
    p->listings++;
    p->sight.n_denied = 0;
    p->verifying = p->rescan;
    p->rescan = false;
    p->list_fd = asym_procfs_open(p, "proc", O_RDONLY | O_DIRECTORY);
    return ASYM_MIN(p->list_fd, 0);
}

int asym_procfs_list_all(struct asym_procfs *p)
{
    int r = begin_listing(p);
    for (r = r < 0 ? r : 1; r > 0;) {
        r = asym_procfs_list_part(p, p->list_fd, take_process, NULL);
        if (r > 0 && asym_procfs_is_over(p))
            return -EINPROGRESS;
    }
    asym_close_p(&p->list_fd);
    p->list_fd = -1;
    /* Not even the first could be read: a directory was all the descriptors that were left. */
    if (r == 0 && p->n_procs == 0 && p->rescan)
        r = -EMFILE;
    if (r < 0) {
        p->rescan = true;
        return r;
    }
    for (size_t i = p->n_procs; i-- > 0;)
        if (p->procs[i]->seen != p->listings)
            asym_procfs_drop(p, p->procs[i]);
    /* Numbers go round, so that a child may be listed before its parent. */
    for (size_t i = 0; i < p->n_procs; i++)
        if (!p->procs[i]->decided)
            decide(p, p->procs[i]);
    return 0;
}
