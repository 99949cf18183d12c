/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of processes, their identity and their descent, and the process events that change it. The threads of a process are an
 * array sorted by TID; those that have ended are marked, and removed together.
 */
#include "linux/observe/procfs-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/macro.h"
#include "base/sort.h"
#include "linux/sys/realtime.h"

/* No process has so many ancestors. The limit ends the loop where the parents in a captured tree form a circle. */
#define MAX_DEPTH 4096

bool asym_procfs_follows(const struct asym_process *proc)
{
    return (proc->flags & (ASYM_PROC_KERNEL | ASYM_PROC_OUTSIDE | ASYM_PROC_FOREIGN_NS)) == 0;
}

/* Compares PID and start time: a process that gets the PID later was not named by --pid. */
static bool is_wanted(const struct asym_procfs *p, const struct asym_process *proc)
{
    for (size_t i = 0; i < p->config.n_pids; i++)
        if (p->wanted[i].pid == proc->pid && p->wanted[i].start == proc->start)
            return true;
    return p->config.n_pids == 0;
}

/* Index of the first thread whose TID is not lower. TIDs mostly rise, so that the end is tried first. */
static uint32_t position(const struct asym_process *proc, int32_t tid)
{
    const uint32_t n = proc->n_threads;
    if (n > 0 && proc->threads[n - 1].tid < tid)
        return n;
    return (uint32_t)ASYM_LOWER_BOUND(proc->threads, n, tid, tid);
}

struct asym_pthread *asym_procfs_find_thread(const struct asym_process *proc, int32_t tid)
{
    uint32_t i = position(proc, tid);
    return i < proc->n_threads && proc->threads[i].tid == tid ? &proc->threads[i] : NULL;
}

/* Does nothing for a thread that is known and has not ended. 0; -ENOMEM. */
static int add_thread(struct asym_process *proc, int32_t tid, bool newborn, asym_usec born)
{
    struct asym_pthread *t = asym_procfs_find_thread(proc, tid);
    if (t && !t->gone)
        return 0;
    if (!t) {
        if (asym_grow(&proc->threads, proc->n_threads, &proc->capacity, sizeof *proc->threads) < 0)
            return -ENOMEM;
        uint32_t i = position(proc, tid);
        t = &proc->threads[i];
        memmove(t + 1, t, (proc->n_threads - i) * sizeof *t);
        proc->n_threads++;
    }
    *t = (struct asym_pthread){.tid = tid, .fd = -1, .stat_fd = -1, .newborn = newborn, .born = (uint32_t)born};
    asym_procfs_expect(proc, ASYM_DUE_READ);
    return 0;
}

void asym_procfs_mark_gone(struct asym_procfs *p, struct asym_process *proc, struct asym_pthread *t)
{
    asym_procfs_release(p, t);
    t->gone = proc->has_gone = true;
}

void asym_procfs_sweep_threads(struct asym_process *proc)
{
    uint32_t n = 0;
    if (!proc->has_gone)
        return;
    for (uint32_t i = 0; i < proc->n_threads; i++)
        if (!proc->threads[i].gone)
            proc->threads[n++] = proc->threads[i];
    proc->n_threads = n;
    proc->has_gone = false;
}

static int take_thread(struct asym_procfs *p, struct asym_process *proc, int32_t tid)
{
    struct asym_pthread *t = asym_procfs_find_thread(proc, tid);
    if (!t)
        return add_thread(proc, tid, p->n_samples > 0, 0);
    t->gone = false;
    return 0;
}

/* A thread that was marked gone and is listed again keeps its data, but not its descriptor. */
int asym_procfs_list_threads(struct asym_procfs *p, struct asym_process *proc)
{
    char path[64];
    asym_procfs_sweep_threads(proc);
    for (uint32_t i = 0; i < proc->n_threads; i++)
        proc->threads[i].gone = true;
    snprintf(path, sizeof path, "proc/%d/task", (int)proc->pid);
    int r = asym_procfs_list(p, path, take_thread, proc);
    for (uint32_t i = 0; i < proc->n_threads; i++) {
        struct asym_pthread *t = &proc->threads[i];
        /* A listing that failed does not show which threads have ended. */
        if (r < 0)
            t->gone = false;
        else if (t->gone)
            asym_procfs_mark_gone(p, proc, t);
    }
    asym_procfs_sweep_threads(proc);
    if (r < 0)
        proc->due = ASYM_DUE_THREADS;
    return r;
}

/*
 * The thread that called exec may have the leader's number already, and its own mask. The kernel frees the memory of the previous
 * program now, which takes tens of milliseconds a gigabyte.
 */
bool asym_procfs_is_executing(const struct asym_process *proc, const struct asym_stat *stat)
{
    return proc->start == stat->start && proc->image.stack != 0 && stat->image.code == 0 && !asym_stat_is_ending(stat);
}

/*
 * Returns whether the addresses of code and stack show that the process has not called exec since its last sample. Where the kernel
 * hides them, this and asym_image_has_changed() are both false. While the leader is a zombie, the process has no addresses. An exec
 * by another thread would have given it a living leader.
 */
static bool runs_same(const struct asym_process *proc, const struct asym_stat *stat)
{
    if (stat->state == 'Z')
        return true;
    return proc->image.stack != 0 && proc->image.stack == stat->image.stack && proc->image.code == stat->image.code;
}

struct asym_process *asym_procfs_find(const struct asym_procfs *p, int32_t pid)
{
    const uint32_t hash = asym_hash_of_id(pid);
    ASYM_HASH_FOREACH (i, &p->by_pid, hash)
        if (p->procs[i]->pid == pid)
            return p->procs[i];
    return NULL;
}

/*
 * A process is inside if --pid names it, or if its parent is inside. asymd decides this once, when it first finds the process:
 * when a parent ends and its children are reparented, nothing changes.
 */
static bool is_inside(const struct asym_procfs *p, const struct asym_process *proc)
{
    for (int depth = 0; depth < MAX_DEPTH; depth++) {
        if (proc->decided)
            return (proc->flags & ASYM_PROC_OUTSIDE) == 0;
        if (is_wanted(p, proc))
            return true;
        const struct asym_process *parent = asym_procfs_find(p, proc->ppid);
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

/* stat has clock ticks since boot, rounded down, suspended time included. For a captured machine only the age is known. */
asym_usec asym_procfs_born_at(const struct asym_procfs *p, uint64_t start)
{
    asym_usec started = start / p->ticks * ASYM_SEC + start % p->ticks * ASYM_SEC / p->ticks;
    asym_usec now = p->config.root->live ? p->now + p->boot_ahead : p->uptime;
    asym_usec age = now > started ? now - started : 0;
    return p->now > age ? p->now - age : 1;
}

/* Any thread's stat has them. The kernel no longer knows the group of a thread that has ended. */
void asym_procfs_note_group(struct asym_process *proc, const struct asym_stat *stat)
{
    if (stat->pgrp < 0)
        return;
    proc->pgrp = stat->pgrp;
    proc->session = ASYM_MAX(stat->session, 0);
    proc->has_tty = stat->tty != 0;
}

static void describe(struct asym_procfs *p, struct asym_process *proc, const struct asym_stat *stat)
{
    proc->ppid = stat->ppid;
    asym_procfs_note_group(proc, stat);
    proc->start = stat->start;
    proc->born = asym_procfs_born_at(p, stat->start);
    proc->image = stat->image;
    proc->ends = stat->state == 'Z';
    memcpy(proc->comm, stat->comm, sizeof proc->comm);
    if (stat->flags & ASYM_PF_KTHREAD)
        proc->flags |= ASYM_PROC_KERNEL;
    if (p->foreign)
        proc->flags |= ASYM_PROC_FOREIGN_NS;
    else if (p->config.root->live && (proc->pid == getpid() || (p->config.owns_children && proc->ppid == getpid())))
        proc->flags |= ASYM_PROC_SELF;
}

static struct asym_process *enlist(struct asym_procfs *p, int32_t pid, const struct asym_stat *stat, bool newborn)
{
    struct asym_process *proc = NULL;
    if (asym_grow(&p->procs, p->n_procs, &p->capacity, sizeof(struct asym_process *)) == 0)
        proc = malloc(sizeof *proc);
    if (!proc) {
        p->rescan = true;
        return NULL;
    }
    /* seen: a listing in progress may already be past this PID. */
    *proc = (struct asym_process){
        .pid = pid, .index = p->n_procs, .due = ASYM_DUE_THREADS, .seen = p->listings, .stat_at = p->now};
    describe(p, proc, stat);
    /* clock_getcpuclockid computes the clock from the PID, and asks the kernel only whether the clock is valid. */
    if (p->config.root->live && !p->foreign && clock_getcpuclockid(pid, &proc->clock) != 0) {
        free(proc);
        return NULL;
    }
    /* Add the leader now as newborn: the first listing of threads would otherwise take it for one that existed before. */
    if ((newborn && asym_procfs_follows(proc) && add_thread(proc, pid, true, 0) < 0) ||
        asym_hash_reserve(&p->by_pid, 1) < 0) {
        p->rescan = true;
        free(proc->threads);
        free(proc);
        return NULL;
    }
    asym_hash_add(&p->by_pid, asym_hash_of_id(pid), proc->index);
    p->procs[p->n_procs++] = proc;
    return proc;
}

struct asym_process *asym_procfs_track(struct asym_procfs *p, int32_t pid, bool newborn)
{
    struct asym_stat stat;
    int r = asym_procfs_read_stat(p, pid, 0, &stat);
    struct asym_process *known = asym_procfs_find(p, pid);
    if (known && r == 0 && known->start == stat.start)
        return known;
    if (known)
        asym_procfs_drop(p, known);
    if (r < 0) {
        if (r == -EACCES || r == -EPERM)
            p->coverage.n_denied++;
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
    asym_hash_remove(&p->by_pid, asym_hash_of_id(proc->pid), proc->index);
    struct asym_process *last = p->procs[--p->n_procs];
    if (last != proc) {
        asym_hash_renumber(&p->by_pid, asym_hash_of_id(last->pid), last->index, proc->index);
        last->index = proc->index;
        p->procs[last->index] = last;
    }
    free(proc->threads);
    free(proc);
}

/* Without process events, only the child shows that its parent forked. The time is that at which asymd finds the child. */
static void note_parent(struct asym_procfs *p, const struct asym_process *child)
{
    struct asym_process *parent = asym_procfs_find(p, child->ppid);
    if (parent && parent->start <= child->start)
        parent->last_fork = p->now;
}

void asym_procfs_forget_facts(struct asym_process *proc)
{
    proc->match = ASYM_MATCH_NONE;
    proc->maps_known = false;
    proc->asked = proc->unread = 0;
    proc->maps_most = 0;
    proc->maps_read_at = proc->retry_at = proc->wanted_at = 0;
    proc->program++;
}

/*
 * Where events were lost, most processes have not called exec meanwhile: they keep their facts. Otherwise one user's storm of forks
 * would make the processes of all users unknown, and asymd would not steer those.
 */
struct asym_process *asym_procfs_verify(struct asym_procfs *p, struct asym_process *proc, bool has_executed)
{
    struct asym_stat stat;
    int r = asym_procfs_read_stat(p, proc->pid, 0, &stat);
    proc->may_be_another = false;
    if (r == 0 && stat.start == proc->start) {
        if (has_executed || !runs_same(proc, &stat))
            asym_procfs_forget_facts(proc);
        else if (memcmp(proc->comm, stat.comm, sizeof proc->comm) != 0)
            asym_procfs_expire_match(proc);
        memcpy(proc->comm, stat.comm, sizeof proc->comm);
        proc->due = ASYM_DUE_THREADS;
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
    struct asym_process *proc = asym_procfs_find(p, pid);
    if (!proc) {
        proc = asym_procfs_track(p, pid, p->n_samples > 0);
        if (proc && p->n_samples > 0)
            note_parent(p, proc);
    } else if (p->verifying) {
        proc = asym_procfs_verify(p, proc, false);
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
    p->coverage.n_denied = 0;
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
        if (r > 0 && asym_realtime_is_over())
            return -EINPROGRESS;
    }
    asym_close_p(&p->list_fd);
    p->list_fd = -1;
    /* No process could be read: the directory took the last free descriptor. */
    if (r == 0 && p->n_procs == 0 && p->rescan)
        r = -EMFILE;
    if (r < 0) {
        p->rescan = true;
        return r;
    }
    for (size_t i = p->n_procs; i-- > 0;)
        if (p->procs[i]->seen != p->listings)
            asym_procfs_drop(p, p->procs[i]);
    /* PIDs wrap around, so that a child may be listed before its parent. */
    for (size_t i = 0; i < p->n_procs; i++)
        if (!p->procs[i]->decided)
            decide(p, p->procs[i]);
    return 0;
}

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
    child->due = ASYM_DUE_READ; /* events tell of its other threads */
    if (!is_wanted(p, child) && (!parent || parent->flags & ASYM_PROC_OUTSIDE))
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
    proc->ends |= event->pid == event->tgid;
    asym_procfs_expect(proc, ASYM_DUE_READ);
}

/* A process that was found in this sample, and has called exec before it, is known as what it is now. */
static bool is_known(const struct asym_process *proc, const struct asym_process_event *exec)
{
    return proc->sampled_at == 0 && proc->n_threads == 1 && exec->when < proc->stat_at;
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
        if (asym_procfs_follows(proc) && add_thread(proc, event->pid, true, event->when) < 0)
            asym_procfs_expect(proc, ASYM_DUE_THREADS);
        break;
    case ASYM_PROCESS_EVENT_EXEC:
        if (!asym_procfs_follows(proc))
            proc = NULL;
        else if (!is_known(proc, event))
            proc = asym_procfs_verify(p, proc, true);
        /* The last fork was by the previous program. */
        if (proc) {
            proc->last_exec = event->when;
            proc->last_fork = 0;
            proc->ends = false;                   /* a leader that has not called exec itself has ended */
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
