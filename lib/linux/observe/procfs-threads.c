/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The threads of a process: an array sorted by TID. Threads that have ended are marked, and removed together. Also: exec. */
#include "linux/observe/procfs-internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/search.h"

#include "base/grow.h"

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

int asym_procfs_add_thread(struct asym_process *proc, int32_t tid, bool newborn, asym_usec born)
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
    *t = (struct asym_pthread){.tid = tid, .fd = -1, .newborn = newborn, .born = (uint32_t)born};
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
        return asym_procfs_add_thread(proc, tid, p->n_samples > 0, 0);
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
    if (r < 0 || proc->due == ASYM_DUE_THREADS)
        proc->due = r < 0 ? ASYM_DUE_THREADS : ASYM_DUE_READ;
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

bool asym_procfs_executes(const struct asym_process *proc, const struct asym_stat *stat)
{
    return asym_procfs_is_executing(proc, stat) || asym_image_has_changed(&proc->image, &stat->image);
}

/* While the leader is a zombie, the process has no addresses. An exec by another thread would have given it a living leader. */
bool asym_procfs_runs_same(const struct asym_process *proc, const struct asym_stat *stat)
{
    if (stat->state == 'Z')
        return true;
    return proc->image.stack != 0 && proc->image.stack == stat->image.stack && proc->image.code == stat->image.code;
}
