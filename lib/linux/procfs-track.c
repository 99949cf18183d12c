/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which processes and threads there are: from birth events, or from directory listings. */
#include "linux/procfs-internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/parse.h"

#define PF_KTHREAD 0x00200000u

int asym_grow(void *array, size_t n, size_t *capacity, size_t size)
{
    if (n < *capacity)
        return 0;
    size_t larger = *capacity ? *capacity * 2 : 16;
    void *grown = reallocarray(*(void **)array, larger, size);
    if (!grown)
        return -ENOMEM;
    *(void **)array = grown;
    *capacity = larger;
    return 0;
}

static bool is_asked_for(const struct asym_procfs *p, int32_t pid)
{
    for (size_t i = 0; i < p->config.n_pids; i++)
        if (p->pids[i] == pid)
            return true;
    return p->config.n_pids == 0;
}

/* Inside: asked for, or descended from one that was. The walk is bounded, as ppids are read one after another. */
static bool is_inside(const struct asym_procfs *p, const struct asym_process *proc)
{
    for (int depth = 0; proc && depth < 4096; depth++) {
        if (is_asked_for(p, proc->pid))
            return true;
        if (proc->ppid <= 0 || proc->ppid > p->pid_max)
            return false;
        proc = p->by_pid[proc->ppid];
    }
    return false;
}

static asym_usec born_at(const struct asym_procfs *p, uint64_t start)
{
    struct timespec boot, mono;
    clock_gettime(CLOCK_BOOTTIME, &boot);
    clock_gettime(CLOCK_MONOTONIC, &mono);
    asym_usec now_boot = (asym_usec)boot.tv_sec * ASYM_SEC + (asym_usec)boot.tv_nsec / 1000;
    asym_usec now = (asym_usec)mono.tv_sec * ASYM_SEC + (asym_usec)mono.tv_nsec / 1000;
    asym_usec started = start * (ASYM_SEC / (asym_usec)p->ticks);
    asym_usec age = now_boot > started ? now_boot - started : 0;
    return now > age ? now - age : 1;
}

static int read_stat(const struct asym_procfs *p, int32_t pid, struct asym_stat *ret)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "proc/%d/stat", (int)pid);
    ssize_t n = asym_root_read(p->config.root, path, text, sizeof text);
    return n < 0 ? (int)n : asym_parse_stat(text, (size_t)n, ret);
}

static void describe(struct asym_procfs *p, struct asym_process *proc, const struct asym_stat *stat)
{
    proc->ppid = stat->ppid;
    proc->start = stat->start;
    proc->born = born_at(p, stat->start);
    memcpy(proc->comm, stat->comm, sizeof proc->comm);
    proc->flags = stat->flags & PF_KTHREAD ? ASYM_PROC_KERNEL : 0;
    if (p->config.root->live && proc->pid == getpid())
        proc->flags |= ASYM_PROC_SELF;
    if (p->foreign)
        proc->flags |= ASYM_PROC_FOREIGN_NS;
}

struct asym_process *asym_track_process(struct asym_procfs *p, int32_t pid, bool newborn)
{
    struct asym_stat stat;
    if (pid <= 0 || pid > p->pid_max ||
        asym_grow(&p->procs, p->n_procs, &p->capacity, sizeof(struct asym_process *)) < 0)
        return NULL;
    if (p->by_pid[pid])
        asym_track_drop(p, p->by_pid[pid]);
    int r = read_stat(p, pid, &stat);
    if (r < 0) {
        p->sight.n_denied += r == -EACCES || r == -EPERM;
        return NULL;
    }
    struct asym_process *proc = calloc(1, sizeof *proc);
    if (!proc)
        return NULL;
    proc->pid = pid;
    proc->fresh = true;
    proc->stale_threads = true;
    describe(p, proc, &stat);
    if (p->config.root->live && clock_getcpuclockid(pid, &proc->clock) != 0)
        proc->denied = true;
    proc->index = p->n_procs;
    p->procs[p->n_procs++] = proc;
    p->by_pid[pid] = proc;
    if (newborn && proc->flags == 0 && is_inside(p, proc))
        asym_track_thread(p, proc, pid, true);
    return proc;
}

void asym_track_drop_thread(struct asym_procfs *p, struct asym_process *proc, uint32_t i)
{
    if (proc->threads[i].fd >= 0) {
        close(proc->threads[i].fd);
        p->n_kept--;
    }
    proc->threads[i] = proc->threads[--proc->n_threads];
}

void asym_track_drop(struct asym_procfs *p, struct asym_process *proc)
{
    while (proc->n_threads > 0)
        asym_track_drop_thread(p, proc, proc->n_threads - 1);
    p->procs[proc->index] = p->procs[--p->n_procs];
    p->procs[proc->index]->index = proc->index;
    p->by_pid[proc->pid] = NULL;
    free(proc->threads);
    free(proc);
}

struct asym_pthread *asym_track_thread(struct asym_procfs *p, struct asym_process *proc, int32_t tid, bool newborn)
{
    size_t capacity = proc->capacity;
    (void)p;
    /* Numbers mostly rise: then there is nothing to look for. */
    for (uint32_t i = 0; tid <= proc->max_tid && i < proc->n_threads; i++)
        if (proc->threads[i].tid == tid)
            return &proc->threads[i];
    if (asym_grow(&proc->threads, proc->n_threads, &capacity, sizeof *proc->threads) < 0)
        return NULL;
    proc->capacity = (uint32_t)capacity;
    struct asym_pthread *t = &proc->threads[proc->n_threads++];
    *t = (struct asym_pthread){.tid = tid, .fd = -1, .newborn = newborn};
    proc->max_tid = ASYM_MAX(proc->max_tid, tid);
    proc->fresh = true;
    return t;
}

static int pid_of(const char *name)
{
    uint64_t n;
    return asym_parse_u64(name, strlen(name), &n) == 0 && n > 0 && n < INT32_MAX ? (int)n : 0;
}

static DIR *open_directory(const struct asym_procfs *p, const char *path)
{
    int fd = asym_root_openat(p->config.root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && !d)
        close(fd);
    return d;
}

/* The listing comes in the order in which the threads were found: the search goes on from the last hit. */
int asym_track_threads(struct asym_procfs *p, struct asym_process *proc)
{
    char path[64];
    snprintf(path, sizeof path, "proc/%d/task", (int)proc->pid);
    DIR *d = open_directory(p, path);
    if (!d)
        return -errno;
    uint32_t before = proc->n_threads, hint = 0;
    bool *alive = calloc(before + 1, sizeof *alive);
    for (struct dirent *e; alive && (e = readdir(d));) {
        int tid = pid_of(e->d_name);
        uint32_t tried = 0;
        while (tried < before && proc->threads[hint].tid != tid) {
            hint = hint + 1 < before ? hint + 1 : 0;
            tried++;
        }
        if (tried < before)
            alive[hint] = true;
        else if (tid > 0)
            asym_track_thread(p, proc, tid, p->turns > 0);
    }
    for (uint32_t i = before; alive && i-- > 0;)
        if (!alive[i])
            asym_track_drop_thread(p, proc, i);
    free(alive);
    closedir(d);
    proc->stale_threads = false;
    return 0;
}

/* Without events a fork is known by its child only. */
static void note_parent(struct asym_procfs *p, const struct asym_process *child, asym_usec now)
{
    if (child->ppid > 0 && child->ppid <= p->pid_max && p->by_pid[child->ppid])
        p->by_pid[child->ppid]->last_fork = now;
}

int asym_track_all(struct asym_procfs *p)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    asym_usec now = (asym_usec)t.tv_sec * ASYM_SEC + (asym_usec)t.tv_nsec / 1000;
    DIR *d = open_directory(p, "proc");
    if (!d)
        return -errno;
    p->scans++;
    for (struct dirent *e; (e = readdir(d));) {
        int pid = pid_of(e->d_name);
        if (pid <= 0 || pid > p->pid_max)
            continue;
        struct asym_process *proc = p->by_pid[pid];
        if (!proc) {
            proc = asym_track_process(p, pid, p->turns > 0);
            if (proc && p->turns > 0)
                note_parent(p, proc, now);
        }
        if (proc)
            proc->seen = p->scans;
    }
    closedir(d);
    for (size_t i = p->n_procs; i-- > 0;)
        if (p->procs[i]->seen != p->scans)
            asym_track_drop(p, p->procs[i]);
    for (size_t i = 0; i < p->n_procs; i++) {
        struct asym_process *proc = p->procs[i];
        if (!is_inside(p, proc))
            proc->flags |= ASYM_PROC_OUTSIDE;
        proc->stale_threads |= p->rescan;
        proc->fresh |= p->rescan;
    }
    p->rescan = false;
    return 0;
}

static void take_event(void *ctx, const struct asym_birth *event)
{
    struct asym_procfs *p = ctx;
    struct asym_process *proc = event->tgid > 0 && event->tgid <= p->pid_max ? p->by_pid[event->tgid] : NULL;
    struct asym_process *parent = event->parent_tgid > 0 && event->parent_tgid <= p->pid_max
                                      ? p->by_pid[event->parent_tgid]
                                      : NULL;
    switch (event->kind) {
    case ASYM_BIRTH_PROCESS:
        if (parent)
            parent->last_fork = event->when;
        proc = asym_track_process(p, event->tgid, true);
        if (proc && p->config.n_pids > 0 && (!parent || parent->flags & ASYM_PROC_OUTSIDE) &&
            !is_asked_for(p, proc->pid))
            proc->flags |= ASYM_PROC_OUTSIDE;
        break;
    case ASYM_BIRTH_THREAD:
        if (proc && !proc->flags)
            asym_track_thread(p, proc, event->pid, true);
        break;
    case ASYM_BIRTH_EXEC:
        if (proc) {
            struct asym_stat stat;
            proc->matched = false;
            proc->stale_threads = proc->fresh = true;
            if (read_stat(p, proc->pid, &stat) == 0)
                memcpy(proc->comm, stat.comm, sizeof proc->comm);
        }
        break;
    case ASYM_BIRTH_EXIT:
        for (uint32_t i = 0; proc && event->pid != event->tgid && i < proc->n_threads; i++)
            if (proc->threads[i].tid == event->pid)
                asym_track_drop_thread(p, proc, i);
        /* A leader may end before its threads: whether the process is gone is asked, not concluded. */
        if (proc && event->pid == event->tgid)
            proc->fresh = proc->stale_threads = true;
        break;
    case ASYM_BIRTH_LOST:
        p->rescan = true;
        p->sight.n_lost_events++;
        break;
    }
}

int asym_track_events(struct asym_procfs *p)
{
    return asym_births_drain(p->config.births, take_event, p);
}
