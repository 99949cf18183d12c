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

/* Keep the descriptor as long as there is room; without one the file is opened each time. */
static int read_schedstat(struct asym_procfs *p, const struct asym_process *proc, struct asym_pthread *t,
                          struct asym_schedstat *ret)
{
    char text[96];
    int fd = t->fd;
    if (fd < 0) {
        char path[64];
        snprintf(path, sizeof path, "proc/%d/task/%d/schedstat", (int)proc->pid, (int)t->tid);
        if (!p->config.root->live) {
            ssize_t len = asym_root_read(p->config.root, path, text, sizeof text);
            return len < 0 ? (int)len : asym_parse_schedstat(text, (size_t)len, ret);
        }
        fd = asym_procfs_open(p, path, O_RDONLY);
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

/*
 * Runnable time in the interval. Run delay is credited only when the thread gets a CPU, in lumps of 32 ms and more: a
 * thread in state R counts for the whole interval, and what was counted ahead of the credit is carried forward and taken
 * off later. When the slice count has advanced, every delay before that has been credited, so that a carry of more than
 * an interval is proven too much: a thread that merely happens to be R whenever we look converges to its true share.
 */
uint64_t asym_procfs_runnable(const struct asym_schedstat *before, const struct asym_schedstat *now, char state,
                              uint64_t interval, uint64_t *carry)
{
    uint64_t delta = now->run_ns - before->run_ns + now->wait_ns - before->wait_ns;
    uint64_t due = delta > *carry ? delta - *carry : 0;
    uint64_t count = state == 'R' ? interval : ASYM_MIN(due, interval);
    uint64_t ahead = *carry + count > delta ? *carry + count - delta : 0;
    if (now->slices != before->slices && ahead > interval) {
        uint64_t excess = ASYM_MIN(ahead - interval, count);
        count -= excess;
        ahead -= excess;
    }
    *carry = ahead;
    return count;
}

static bool moved(const struct asym_pthread *t, const struct asym_schedstat *now)
{
    return now->run_ns != t->before.run_ns || now->wait_ns != t->before.wait_ns || now->slices != t->before.slices;
}

/* Counters that run backwards are another thread's: a thread that execs takes its leader's number, and start. */
static bool went_back(const struct asym_pthread *t, const struct asym_schedstat *now)
{
    return now->run_ns < t->before.run_ns || now->wait_ns < t->before.wait_ns;
}

/*
 * Where the kernel has no schedstat ticks tell, which are coarser: none of either kind is less than two of them. A captured
 * tree may hold stat alone, and then nothing tells.
 */
static bool hardly_ran(const struct asym_procfs *p, const struct asym_pthread *t, const struct asym_stat *stat)
{
    if (p->no_schedstat)
        return stat->ran == 0;
    const uint64_t ran_ns = t->before.run_ns;
    return ran_ns < ASYM_HARDLY_RAN * 1000 && (ran_ns > 0 || p->config.root->live);
}

/* t->before is of now already. */
static int list_task(struct asym_procfs *p, struct asym_process *proc, struct asym_pthread *t,
                     const struct asym_stat *stat, double runnable, double running)
{
    if (asym_procfs_grow(&p->tasks, p->n_tasks, &p->tasks_capacity, sizeof *p->tasks) < 0)
        return -ENOMEM;
    struct asym_task task = {
        .id = {.tid = t->tid, .tgid = proc->pid, .start = stat->start},
        .flags = (stat->flags & PF_NO_SETAFFINITY ? (uint32_t)ASYM_TASK_NO_SETAFFINITY : 0) |
                 (t->newborn ? (uint32_t)ASYM_TASK_NEWBORN : 0) |
                 (hardly_ran(p, t, stat) ? (uint32_t)ASYM_TASK_HARDLY_RAN : 0),
        .cpu = stat->cpu,
        .nice = stat->nice,
        .sched = stat->sched,
        .state = stat->state,
        .runnable = runnable,
        .running = running,
    };
    memcpy(task.comm, stat->comm, sizeof task.comm);
    int r = asym_procfs_masks(p, proc, t, &task);
    /* Whose mask cannot be read cannot be steered; its runnable time is counted all the same. */
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    p->tasks[p->n_tasks++] = task;
    t->newborn = false;
    t->put_on = 0;
    return 0;
}

/*
 * Another thread has this number now: start over with it. Where only the counters are another's, it is the thread that has
 * called exec, which was there before.
 */
static void begin_anew(struct asym_procfs *p, struct asym_pthread *t, uint64_t start)
{
    t->newborn |= t->start != start && p->turns > 0;
    t->start = start;
    t->measured = false;
    t->before = (struct asym_schedstat){0};
    t->carry_ns = 0;
    t->born = 0;
    t->affinity = t->mask = NULL;
}

/* A thread cannot have been runnable for longer than it is old. */
static asym_usec span_of(const struct asym_procfs *p, const struct asym_pthread *t, asym_usec interval)
{
    uint32_t born = t->born ? t->born : (uint32_t)asym_procfs_born_at(p, t->start);
    uint32_t age = (uint32_t)p->now - born;
    /* Events may be of a moment after this look began. */
    return age > INT32_MAX ? 0 : ASYM_MIN(interval, (asym_usec)age);
}

/* What a leader's stat tells of its process. */
static void note_leader(struct asym_process *proc, const struct asym_stat *stat)
{
    proc->vsize = stat->vsize;
    if (proc->start != stat->start) {
        proc->doubtful = true;
    } else if (memcmp(proc->comm, stat->comm, sizeof proc->comm) != 0) {
        memcpy(proc->comm, stat->comm, sizeof proc->comm);
        proc->matched = false;
    }
}

/* Count it, list it. stat and s are of now. */
static int count_thread(struct asym_procfs *p, struct asym_process *proc, struct asym_pthread *t,
                        const struct asym_schedstat *s, const struct asym_stat *stat, asym_usec interval,
                        struct asym_process_sums *sums)
{
    const bool dead = stat->state == 'Z' || stat->state == 'X';
    double runnable = 0, running = 0;
    if (interval > 0 && (t->measured || t->newborn)) {
        uint64_t span = (t->measured ? interval : span_of(p, t, interval)) * 1000;
        uint64_t count = stat->state == 'R' ? span : 0;
        if (!p->no_schedstat)
            count = asym_procfs_runnable(&t->before, s, stat->state, span, &t->carry_ns);
        uint64_t ran = ASYM_MIN(s->run_ns - t->before.run_ns, span);
        runnable = (double)count / ((double)interval * 1e3);
        running = (double)ran / ((double)interval * 1e3);
    }
    t->before = *s;
    t->measured = true;
    t->state = stat->state;
    sums->instant += stat->state == 'R';
    proc->runnable |= stat->state == 'R';
    sums->runnable += runnable;
    if (dead)
        t->newborn = false;
    if (dead || (runnable <= 0 && running <= 0 && !t->newborn && stat->state != 'R'))
        return 0;
    return list_task(p, proc, t, stat, runnable, running);
}

/* Returns 0; -ESRCH when the thread is gone; -ENOMEM. */
static int scan_thread(struct asym_procfs *p, struct asym_process *proc, struct asym_pthread *t, asym_usec interval,
                       struct asym_process_sums *sums)
{
    struct asym_schedstat s = {0};
    struct asym_stat stat;
    int r = p->no_schedstat ? 0 : read_schedstat(p, proc, t, &s);
    /* A captured tree may hold stat alone. */
    if (r < 0 && p->config.root->live)
        return r;
    if (t->measured && !p->no_schedstat && !moved(t, &s) && t->state != 'R' && !t->newborn)
        return 0;
    r = asym_procfs_read_stat(p, proc->pid, t->tid, &stat);
    if (r < 0)
        return r;
    if (t->tid == proc->pid)
        note_leader(proc, &stat);
    if (t->start == 0)
        t->start = stat.start;
    else if (t->start != stat.start || went_back(t, &s))
        begin_anew(p, t, stat.start);
    return count_thread(p, proc, t, &s, &stat, interval, sums);
}

/* only_new: those that the first round did not know. */
static int scan_threads(struct asym_procfs *p, struct asym_process *proc, bool only_new, asym_usec interval,
                        struct asym_process_sums *sums)
{
    for (uint32_t i = 0; i < proc->n_threads; i++) {
        struct asym_pthread *t = &proc->threads[i];
        if (t->gone || (only_new && t->measured))
            continue;
        int r = scan_thread(p, proc, t, interval, sums);
        if (r == -ENOMEM)
            return r;
        if (r == -EACCES || r == -EPERM)
            proc->denied = true;
        else if (asym_procfs_gone(r) || r == -EINVAL)
            asym_procfs_mark_gone(p, proc, t);
        else if (r < 0)
            proc->fresh = true;
    }
    return 0;
}

/*
 * Without events a thread that has ended may have a successor, which the number of threads does not show; and where it
 * was the leader, the whole process may be another.
 */
static int look_again(struct asym_procfs *p, struct asym_process *proc, asym_usec interval,
                      struct asym_process_sums *sums)
{
    int r = asym_procfs_list_threads(p, proc);
    return r < 0 ? r : scan_threads(p, proc, true, interval, sums);
}

int asym_procfs_scan(struct asym_procfs *p, struct asym_process *proc, asym_usec interval,
                     struct asym_process_sums *sums)
{
    int r = 0;
    *sums = (struct asym_process_sums){.first_task = (uint32_t)p->n_tasks};
    asym_procfs_sweep_threads(proc);
    if (proc->stale_threads)
        r = asym_procfs_list_threads(p, proc);
    if (asym_procfs_gone(r))
        return -ESRCH;
    if (p->config.group == ASYM_GROUP_CGROUP)
        asym_procfs_read_cgroup(p, proc);
    proc->fresh = proc->runnable = proc->denied = false;
    if (r == -EACCES || r == -EPERM)
        proc->denied = true;
    r = scan_threads(p, proc, false, interval, sums);
    if (r == 0 && proc->has_gone && !p->config.births && !proc->doubtful)
        r = look_again(p, proc, interval, sums);
    if (r == -ENOMEM)
        return r;
    asym_procfs_sweep_threads(proc);
    const bool ended = proc->n_threads == 0 && !proc->denied && !proc->stale_threads;
    if (proc->doubtful || ended) {
        p->n_tasks = sums->first_task;
        return ended ? -ESRCH : -ESTALE;
    }
    asym_procfs_match(p, proc);
    sums->n_tasks = (uint32_t)p->n_tasks - sums->first_task;
    if (sums->n_tasks > 0)
        asym_procfs_read_maps(p, proc);
    return 0;
}
