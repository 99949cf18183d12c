/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tier 2: one look at the threads of one process. */
#include "linux/procfs-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"

#define PF_NO_SETAFFINITY 0x04000000u

static bool gone(int error)
{
    return error == -ENOENT || error == -ESRCH;
}

/* Keep the descriptor as long as there is room; without one the file is opened each time. */
static int read_schedstat(struct asym_procfs *p, const struct asym_process *proc, struct asym_pthread *t,
                          struct asym_schedstat *ret)
{
    char text[96];
    int fd = t->fd;
    if (fd < 0) {
        char path[64];
        snprintf(path, sizeof path, "proc/%d/task/%d/schedstat", (int)proc->pid, (int)t->tid);
        fd = asym_root_openat(p->config.root, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return fd;
        if (p->n_kept < p->kept_max) {
            t->fd = fd;
            p->n_kept++;
        } else {
            p->sight.n_unkept++;
        }
    }
    ssize_t n = pread(fd, text, sizeof text, 0);
    int r = n < 0 ? -errno : asym_parse_schedstat(text, (size_t)n, ret);
    if (fd != t->fd)
        close(fd);
    return r;
}

static int read_stat(struct asym_procfs *p, const struct asym_process *proc, const struct asym_pthread *t,
                     struct asym_stat *ret)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "proc/%d/task/%d/stat", (int)proc->pid, (int)t->tid);
    ssize_t n = asym_root_read(p->config.root, path, text, sizeof text);
    return n < 0 ? (int)n : asym_parse_stat(text, (size_t)n, ret);
}

/*
 * Runnable time in the interval. Run delay is credited only when the thread gets a CPU, in lumps of 32 ms and more: a
 * thread in state R counts for the whole interval, and what was counted ahead of the credit is carried forward and taken
 * off later. When the slice count has advanced, every delay before that has been credited, so that a carry of more than
 * an interval is proven too much: a thread that merely happens to be R whenever we look converges to its true share.
 */
static uint64_t runnable_time(struct asym_pthread *t, const struct asym_schedstat *now, char state, uint64_t interval)
{
    uint64_t delta = now->run_ns - t->before.run_ns + now->wait_ns - t->before.wait_ns;
    uint64_t due = delta > t->carry_ns ? delta - t->carry_ns : 0;
    uint64_t count = state == 'R' ? interval : ASYM_MIN(due, interval);
    uint64_t counted = t->carry_ns + count;
    uint64_t carry = counted > delta ? counted - delta : 0;
    if (now->slices != t->before.slices && carry > interval) {
        uint64_t excess = ASYM_MIN(carry - interval, count);
        count -= excess;
        carry -= excess;
    }
    t->carry_ns = carry;
    return count;
}

static bool moved(const struct asym_pthread *t, const struct asym_schedstat *now)
{
    return now->run_ns != t->before.run_ns || now->wait_ns != t->before.wait_ns || now->slices != t->before.slices;
}

static int list_task(struct asym_procfs *p, struct asym_process *proc, struct asym_pthread *t,
                     const struct asym_stat *stat, asym_usec now, double runnable, double running)
{
    if (asym_grow(&p->tasks, p->n_tasks, &p->tasks_capacity, sizeof *p->tasks) < 0)
        return -ENOMEM;
    struct asym_task task = {
        .id = {.tid = t->tid, .tgid = proc->pid, .start = stat->start},
        .flags = (stat->flags & PF_NO_SETAFFINITY ? ASYM_TASK_NO_SETAFFINITY : 0u) |
                 (t->newborn ? ASYM_TASK_NEWBORN : 0u),
        .cpu = stat->cpu,
        .nice = stat->nice,
        .sched = stat->sched,
        .state = stat->state,
        .runnable = runnable,
        .running = running,
        .cpuset = asym_facts_cpuset(p, proc, now),
    };
    memcpy(task.comm, stat->comm, sizeof task.comm);
    int r = asym_facts_mask(p, proc, t, &task.mask);
    if (r < 0)
        return gone(r) ? 0 : r;
    if (!task.cpuset)
        return -ENOMEM;
    p->tasks[p->n_tasks++] = task;
    t->newborn = false;
    return 0;
}

/* Another thread has this number now: start over with it. */
static void begin_anew(struct asym_pthread *t, uint64_t start)
{
    t->start = start;
    t->measured = false;
    t->carry_ns = 0;
    t->affinity = t->mask = NULL;
}

/* Returns 0; -ESRCH when the thread is gone; any other -errno ends the scan. */
static int scan_thread(struct asym_procfs *p, struct asym_process *proc, struct asym_pthread *t, asym_usec now,
                       asym_usec interval, struct asym_process_sums *sums)
{
    struct asym_schedstat s;
    struct asym_stat stat;
    uint64_t count = 0, ran = 0, ns = interval * 1000;
    int r = read_schedstat(p, proc, t, &s);
    if (r < 0)
        return gone(r) || r == -EINVAL ? -ESRCH : r == -ENOMEM ? r : 0;
    bool active = !t->measured || moved(t, &s);
    if (!active && t->state != 'R' && !t->newborn)
        return 0;
    r = read_stat(p, proc, t, &stat);
    if (r < 0)
        return gone(r) || r == -EINVAL ? -ESRCH : 0;
    if (t->start != stat.start)
        begin_anew(t, stat.start);
    /* A thread born in this interval began with nothing, and cannot have been runnable for longer than it is old. */
    if (!t->measured && t->newborn)
        t->before = (struct asym_schedstat){0};
    if (t->measured || t->newborn) {
        count = runnable_time(t, &s, stat.state, ns);
        ran = ASYM_MIN(s.run_ns - t->before.run_ns, ns);
    }
    t->before = s;
    t->measured = true;
    t->state = stat.state;
    sums->instant += stat.state == 'R';
    proc->runnable |= stat.state == 'R';
    sums->runnable += ns ? (double)count / (double)ns : 0;
    if (count == 0 && !t->newborn && stat.state != 'R')
        return 0;
    return list_task(p, proc, t, &stat, now, ns ? (double)count / (double)ns : 0, ns ? (double)ran / (double)ns : 0);
}

int asym_scan_process(struct asym_procfs *p, struct asym_process *proc, asym_usec now, asym_usec interval,
                      struct asym_process_sums *sums)
{
    *sums = (struct asym_process_sums){.first_task = (uint32_t)p->n_tasks};
    if (proc->stale_threads) {
        int r = asym_track_threads(p, proc);
        if (r < 0)
            return gone(r) ? -ESRCH : 0;
    }
    asym_facts_rule(p, proc);
    proc->fresh = proc->runnable = false;
    for (uint32_t i = proc->n_threads; i-- > 0;) {
        int r = scan_thread(p, proc, &proc->threads[i], now, interval, sums);
        if (r == -ESRCH)
            asym_track_drop_thread(p, proc, i);
        else if (r < 0)
            return r;
    }
    sums->n_tasks = (uint32_t)p->n_tasks - sums->first_task;
    return proc->n_threads > 0 ? 0 : -ESRCH;
}
