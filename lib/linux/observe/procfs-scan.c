/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tier 2: sample the threads of one process. */
#include "linux/observe/procfs-internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/macro.h"
#include "base/mask.h"
#include "linux/sys/realtime.h"
#include "linux/sys/thread.h"

#define PF_NO_SETAFFINITY 0x04000000u

/*
 * The stat of one thread of a process is read that often, although a watcher knows the threads: the process group or the terminal
 * may have changed.
 */
#define STAT_AGE ASYM_SEC

/* Returns whether a watcher knows what the thread has done since the last sample. */
static bool is_watched(const struct asym_procfs *p, const struct asym_pthread *t, struct asym_schedstat *ret,
                       struct asym_procfs_watched *ret_watched)
{
    if (!p->watcher.thread || !t->measured ||
        p->watcher.thread(p->watcher.ctx, t->tid, ret_watched) == ASYM_PROCFS_UNKNOWN)
        return false;
    *ret = t->before;
    ret->run_ns += ret_watched->ran;
    ret->wait_ns += ret_watched->waited;
    ret->slices += ret_watched->ran > 0 || ret_watched->waited > 0;
    return true;
}

/*
 * Writes those fields of stat that count_thread() needs, if the watcher knows that all others are as they were. Where it does not
 * know whether another process has changed nice or policy, a call asks, which costs a twentieth of reading the file. A thread that
 * calls exec may have got this number meanwhile: where it has another nice or policy, the file shows the exec, too. The size of a
 * process of one thread may grow: it loads libraries. The watcher has the CPU that a thread last had: the kernel may have moved one
 * that waits since, because of its new mask. Returns whether the file need not be read.
 */
static bool know_stat(const struct asym_procfs *p, const struct asym_process *proc, const struct asym_pthread *t,
                      const struct asym_procfs_watched *w, struct asym_stat *ret)
{
    struct asym_thread_sched now;
    if (w->is_runnable && w->cpu >= 0 && t->mask && !asym_mask_has(t->mask, w->cpu))
        return false;
    if (p->no_schedstat || !t->affinity || t->renewed != w->renewed + 1U || t->newborn || t->executed || w->cpu < 0 ||
        proc->n_threads < 2 || p->now - proc->stat_at >= STAT_AGE)
        return false;
    if (!asym_procfs_is_as_set(p, t) &&
        (asym_thread_get_sched(t->tid, &now) < 0 || now.policy != t->sched || now.nice != t->nice))
        return false;
    *ret = (struct asym_stat){.state = w->is_runnable ? 'R' : 'S',
                              .flags = t->no_setaffinity ? PF_NO_SETAFFINITY : 0,
                              .nice = t->nice,
                              .start = t->start,
                              .cpu = w->cpu,
                              .sched = t->sched};
    memcpy(ret->comm, t->comm, sizeof ret->comm);
    return true;
}

static int read_schedstat(struct asym_procfs *p, const struct asym_process *proc, struct asym_pthread *t,
                          struct asym_schedstat *ret)
{
    char text[96];
    const ssize_t n = asym_procfs_read_thread(p, proc->pid, t->tid, "schedstat", &t->fd, text, sizeof text);
    p->coverage.n_unkept += n >= 0 && t->fd < 0 && p->config.root->live;
    return n < 0 ? (int)n : asym_parse_schedstat(text, (size_t)n, ret);
}

/*
 * To open and close the file takes longer than to read it. One that stays open takes 4 KiB of the kernel's memory, so it does for a
 * thread that runs and no watcher knows: they are few.
 */
static int read_stat_of(struct asym_procfs *p, const struct asym_process *proc, struct asym_pthread *t,
                        struct asym_stat *ret)
{
    char text[1024];
    if (!p->watcher.thread || t->watched)
        return asym_procfs_read_stat(p, proc->pid, t->tid, ret);
    const ssize_t n = asym_procfs_read_thread(p, proc->pid, t->tid, "stat", &t->stat_fd, text, sizeof text);
    return n < 0 ? (int)n : asym_parse_stat(text, (size_t)n, ret);
}

/* One process that cannot be read, or an allocation that fails, must not keep asymd from the others. */
void asym_procfs_note_failure(struct asym_procfs *p, struct asym_process *proc, int error)
{
    asym_procfs_expect(proc, ASYM_DUE_READ);
    p->coverage.n_failed++;
    p->coverage.failure = error;
}

static bool moved(const struct asym_pthread *t, const struct asym_schedstat *now)
{
    return now->run_ns != t->before.run_ns || now->wait_ns != t->before.wait_ns || now->slices != t->before.slices;
}

/* Counters that decrease belong to another thread: a thread that calls exec takes over PID and start time of its leader. */
static bool went_back(const struct asym_pthread *t, const struct asym_schedstat *now)
{
    return now->run_ns < t->before.run_ns || now->wait_ns < t->before.wait_ns;
}

/*
 * A kernel without schedstat has only clock ticks, user and system time rounded down each: where both are 0, the thread ran for
 * less than two ticks. A captured tree may hold stat alone; its threads do not count as having hardly run.
 */
static bool hardly_ran(const struct asym_procfs *p, const struct asym_pthread *t, const struct asym_stat *stat)
{
    if (p->no_schedstat)
        return stat->ran == 0;
    const uint64_t ran_ns = t->before.run_ns;
    return ran_ns < ASYM_HARDLY_RAN * 1000 && (ran_ns > 0 || p->config.root->live);
}

/* t->before already has the present counters. A thread that is not listed is due again with the next sample. */
void asym_procfs_list_task(struct asym_procfs *p, struct asym_process *proc, struct asym_pthread *t,
                           const struct asym_stat *stat, double runnable, double running)
{
    if (asym_grow(&p->tasks, p->n_tasks, &p->tasks_capacity, sizeof *p->tasks) < 0) {
        asym_procfs_note_failure(p, proc, -ENOMEM);
        return;
    }
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
    const struct asym_mask *affinity = t->affinity;
    int r = asym_procfs_masks(p, proc, t, &task);
    /* asymd cannot steer a thread whose mask it cannot read. The runnable time counts nevertheless. */
    if (r == -ENOMEM)
        asym_procfs_note_failure(p, proc, r);
    if (r < 0)
        return;
    /*
     * A leader that calls exec itself keeps its mask and its nice value. If asymd has not seen them before, it has slept, and
     * others have run.
     */
    if (t->executed && (affinity != t->affinity || t->nice != stat->nice))
        task.flags |= ASYM_TASK_EXECUTED;
    t->nice = stat->nice;
    /* The next sample confirms a new mask: one that lacked a CPU that was about to come would stay for good. */
    t->settings = affinity == t->affinity ? p->scan.settings : 0;
    p->tasks[p->n_tasks++] = task;
    t->newborn = t->executed = false;
    t->put_on = 0;
}

/*
 * Another thread has this TID now: discard what is known of the previous one. Where the start time is the same and only the
 * counters are another thread's, a thread that existed before has called exec; it is not new.
 */
static void begin_anew(struct asym_procfs *p, struct asym_pthread *t, uint64_t start)
{
    t->newborn |= t->start != start && p->n_samples > 0;
    t->start = start;
    t->measured = false;
    t->before = (struct asym_schedstat){0};
    t->balance_ns = 0;
    t->born = 0;
    t->affinity = t->mask = NULL;
}

/* The interval, or the age of the thread where that is less: it cannot have been runnable for longer. */
static asym_usec span_of(const struct asym_procfs *p, const struct asym_pthread *t, asym_usec interval)
{
    uint32_t born = t->born ? t->born : (uint32_t)asym_procfs_born_at(p, t->start);
    uint32_t age = (uint32_t)p->now - born;
    /* An event may be later than the start of this sample. */
    return age > INT32_MAX ? 0 : ASYM_MIN(interval, (asym_usec)age);
}

static void note_exec(struct asym_procfs *p, struct asym_process *proc, struct asym_pthread *leader,
                      const struct asym_stat *stat)
{
    leader->executed = true;
    memcpy(proc->comm, stat->comm, sizeof proc->comm);
    proc->last_exec = p->now;
    /* The last fork was by the previous program, unless this sample has found the child. */
    if (proc->last_fork <= p->last)
        proc->last_fork = 0;
    asym_procfs_forget_facts(proc);
}

/* Update the process from the stat of its leader. */
static void note_leader(struct asym_procfs *p, struct asym_process *proc, struct asym_pthread *leader,
                        const struct asym_stat *stat)
{
    const struct asym_image was = proc->image;
    proc->ends |= stat->state == 'Z';
    proc->vsize = stat->vsize;
    if (stat->image.stack != 0)
        proc->image = stat->image;
    if (proc->start != stat->start) {
        proc->may_be_another = true;
    } else if (asym_image_has_changed(&was, &stat->image)) {
        /* The kernel's event comes late, or not at all: asymd has no proc connector, or events were lost. */
        note_exec(p, proc, leader, stat);
    } else if (memcmp(proc->comm, stat->comm, sizeof proc->comm) != 0) {
        memcpy(proc->comm, stat->comm, sizeof proc->comm);
        asym_procfs_expire_match(proc);
    }
}

/* Add the thread to the sums and list it. stat and s are the present values. */
static void count_thread(struct asym_procfs *p, struct asym_process *proc, struct asym_pthread *t,
                         const struct asym_schedstat *s, const struct asym_stat *stat, asym_usec interval,
                         struct asym_process_sums *sums)
{
    const bool dead = stat->state == 'Z' || stat->state == 'X';
    double runnable = 0, running = 0;
    if (interval > 0 && (t->measured || t->newborn)) {
        uint64_t span = (t->measured ? interval : span_of(p, t, interval)) * 1000;
        uint64_t count = stat->state == 'R' ? span : 0;
        if (!p->no_schedstat)
            count = asym_runnable_credited(&t->before, s, t->measured ? t->state : 'R', stat->state, span,
                                           &t->balance_ns);
        uint64_t ran = ASYM_MIN(s->run_ns - t->before.run_ns, span);
        runnable = (double)count / ((double)interval * 1e3);
        running = (double)ran / ((double)interval * 1e3);
    }
    t->before = *s;
    t->measured = true;
    t->state = stat->state;
    sums->instant += stat->state == 'R';
    if (stat->state == 'R')
        asym_procfs_expect(proc, ASYM_DUE_READ);
    sums->runnable += runnable;
    if (dead)
        t->newborn = false;
    if (dead || (runnable <= 0 && running <= 0 && !t->newborn && !t->executed && stat->state != 'R'))
        return;
    asym_procfs_list_task(p, proc, t, stat, runnable, running);
}

/* Reads the stat of the thread, and what it says of the process. Returns as scan_thread(); -EAGAIN: the process calls exec. */
static int read_stat(struct asym_procfs *p, struct asym_process *proc, struct asym_pthread *t,
                     const struct asym_schedstat *s, struct asym_stat *ret)
{
    const int r = read_stat_of(p, proc, t, ret);
    if (r < 0)
        return r;
    /*
     * A newborn leader may have inherited a mask, and is listed at once: the core knows no former leader that it could be taken
     * for.
     */
    if (t->tid == proc->pid && !t->newborn && asym_procfs_is_executing(proc, ret))
        return -EAGAIN;
    asym_procfs_note_group(proc, ret);
    if (t->tid == proc->pid)
        note_leader(p, proc, t, ret);
    if (t->start == 0)
        t->start = ret->start;
    else if (t->start != ret->start || went_back(t, s))
        begin_anew(p, t, ret->start);
    proc->stat_at = p->now;
    return 0;
}

/* Returns 0; -ESRCH when the thread has ended; another -errno when it cannot be read. */
static int scan_thread(struct asym_procfs *p, struct asym_process *proc, struct asym_pthread *t, asym_usec interval,
                       struct asym_process_sums *sums)
{
    struct asym_schedstat s = {0};
    struct asym_procfs_watched w = {.cpu = -1};
    struct asym_stat stat;
    const bool watched = is_watched(p, t, &s, &w);
    p->scan.settings = watched ? w.settings : 0;
    int r = p->no_schedstat || watched ? 0 : read_schedstat(p, proc, t, &s);
    /* A captured tree may hold stat alone. */
    if (r < 0 && p->config.root->live)
        return r;
    /* The sums of a watcher have the time of interrupts and of the host, too: schedstat does not go on where they ended. */
    if (t->watched && !watched)
        t->before = s;
    if (watched)
        asym_procfs_release(p, t);
    t->watched = watched;
    t->renewed = watched ? t->renewed : 0;
    if (t->measured && !p->no_schedstat && !moved(t, &s) && t->state != 'R' && !t->newborn)
        return 0;
    if (!know_stat(p, proc, t, &w, &stat)) {
        r = read_stat(p, proc, t, &s, &stat);
        if (r == -EAGAIN)
            asym_procfs_expect(proc, ASYM_DUE_READ);
        if (r < 0)
            return r == -EAGAIN ? 0 : r;
        t->renewed = watched ? w.renewed + 1U : 0;
        t->sched = stat.sched;
        t->no_setaffinity = (stat.flags & PF_NO_SETAFFINITY) != 0;
        memcpy(t->comm, stat.comm, sizeof t->comm);
    }
    count_thread(p, proc, t, &s, &stat, interval, sums);
    return 0;
}

/* us since the thread was read; the process may have been sampled since, and have slept. 0: never. */
static asym_usec interval_of(const struct asym_procfs *p, const struct asym_pthread *t)
{
    return p->scan.since > 0 && p->config.root->live ? p->now - ASYM_MAX(p->scan.since, t->read_at) : 0;
}

/* Scan the threads from p->scan.next on. only_new: only those that the first pass did not scan, without a break. */
static int scan_threads(struct asym_procfs *p, struct asym_process *proc, bool only_new)
{
    while (p->scan.next < proc->n_threads) {
        struct asym_pthread *t = &proc->threads[p->scan.next++];
        if (t->gone || (only_new && t->measured))
            continue;
        int r = scan_thread(p, proc, t, interval_of(p, t), &p->scan.sums);
        t->read_at = p->now;
        if (r == -EACCES || r == -EPERM)
            proc->denied = true;
        else if (asym_procfs_gone(r) || r == -EINVAL)
            asym_procfs_mark_gone(p, proc, t);
        else if (r < 0)
            asym_procfs_note_failure(p, proc, r);
        p->scan.settings = 0;
        if (!only_new && p->scan.next < proc->n_threads && asym_realtime_is_over())
            return -EINPROGRESS;
    }
    return 0;
}

/*
 * Without process events, a new thread may have taken the place of one that has ended: the link count does not show that. If
 * the leader has ended, another process may have the PID. List the threads again.
 */
static int scan_new_threads(struct asym_procfs *p, struct asym_process *proc)
{
    int r = asym_procfs_list_threads(p, proc);
    p->scan.next = 0;
    return r < 0 ? r : scan_threads(p, proc, true);
}

static int begin_scan(struct asym_procfs *p, struct asym_process *proc)
{
    int r = 0;
    p->scan.next = 0;
    p->scan.sums = (struct asym_process_sums){.first_task = (uint32_t)p->n_tasks};
    asym_procfs_sweep_threads(proc);
    if (proc->due == ASYM_DUE_THREADS)
        r = asym_procfs_list_threads(p, proc);
    if (asym_procfs_gone(r))
        return -ESRCH;
    if (p->config.group == ASYM_GROUP_CGROUP || (p->config.group == ASYM_GROUP_JOB && !proc->has_tty))
        asym_procfs_read_cgroup(p, proc);
    if (r >= 0)
        proc->due = ASYM_DUE_IF_RAN;
    proc->denied = r == -EACCES || r == -EPERM;
    if (r == -ENOMEM)
        asym_procfs_note_failure(p, proc, r);
    return 0;
}

/*
 * The process may have ended between two calls of next(), and another process may have its PID. The last calls may then have read
 * threads of that one. This check comes after all readings: the start time proves that one process had the PID during all of
 * them. A scan that one call completes needs no check: that call reads the leader, too.
 */
static void verify_start(struct asym_procfs *p, struct asym_process *proc)
{
    struct asym_stat stat;
    const int r = asym_procfs_read_stat(p, proc->pid, 0, &stat);
    if (asym_procfs_gone(r) || (r == 0 && stat.start != proc->start))
        proc->may_be_another = true;
}

int asym_procfs_scan(struct asym_procfs *p, struct asym_process *proc)
{
    struct asym_process_sums *sums = &p->scan.sums;
    const bool goes_on = p->scan.cut != NULL;
    int r = goes_on ? 0 : begin_scan(p, proc);
    if (r < 0)
        return r;
    r = scan_threads(p, proc, false);
    p->scan.cut = r == -EINPROGRESS ? proc : NULL;
    if (r == 0 && proc->has_gone && !p->config.process_events && !proc->may_be_another)
        r = scan_new_threads(p, proc);
    if (r == -EINPROGRESS)
        return r;
    if (goes_on)
        verify_start(p, proc);
    asym_procfs_sweep_threads(proc);
    const bool ended = proc->n_threads == 0 && !proc->denied && proc->due != ASYM_DUE_THREADS;
    if (proc->may_be_another || ended) {
        p->n_tasks = sums->first_task;
        return ended ? -ESRCH : -ESTALE;
    }
    asym_procfs_retry(p, proc);
    asym_procfs_match(p, proc);
    sums->n_tasks = (uint32_t)p->n_tasks - sums->first_task;
    if (sums->n_tasks > 0)
        asym_procfs_read_maps(p, proc);
    return 0;
}
