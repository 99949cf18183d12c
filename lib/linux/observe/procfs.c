/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/observe/procfs-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"
#include "linux/observe/observer.h"
#include "linux/sys/realtime.h"

/* The link count of /proc/PID/task is this much higher than the number of threads. */
#define TASK_LINKS 2

static void procfs_close(struct asym_source *source)
{
    struct asym_procfs *p = asym_procfs_of(source);
    while (p->n_procs > 0)
        asym_procfs_drop(p, p->procs[p->n_procs - 1]);
    asym_hash_done(&p->by_pid);
    asym_mask_table_done(&p->masks);
    asym_cgroups_done(&p->cgroups);
    asym_jobs_done(&p->jobs);
    free(p->procs);
    free(p->wanted);
    free(p->buffer);
    free(p->entries);
    free(p->listed);
    free(p->apps);
    free(p->out_procs);
    free(p->tasks);
    free(p->sorted);
    asym_close_p(&p->list_fd);
    asym_close_p(&p->online_fd);
    asym_close_p(&p->autogroup_fd);
    free(p);
}

/*
 * Without process events, the link count of task/ shows that a thread has started or ended. Reading it costs 0.6 us. It is
 * compared with the number of known threads, not with the previous count: a thread that a listing missed is found later.
 */
static void notice_threads(struct asym_procfs *p, struct asym_process *proc)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "proc/%d/task", (int)proc->pid);
    if (fstatat(p->config.root->fd, path, &st, 0) == 0 && st.st_nlink != proc->n_threads + TASK_LINKS)
        asym_procfs_expect(proc, ASYM_DUE_THREADS);
}

/* Tier 1: has the process used a CPU since the last sample? 1; 0; -ESRCH when it has ended. */
static int has_moved(struct asym_procfs *p, struct asym_process *proc)
{
    uint64_t ns;
    if (!p->config.root->live)
        return 1;
    const enum asym_procfs_activity known = p->watcher.process && !proc->ends
                                                ? p->watcher.process(p->watcher.ctx, proc->pid)
                                                : ASYM_PROCFS_UNKNOWN;
    if (known != ASYM_PROCFS_UNKNOWN)
        return known == ASYM_PROCFS_RAN;
    if (!asym_clock_ns(proc->clock, &ns))
        return -ESRCH;
    int moved = ns != proc->clock_ns;
    proc->clock_ns = ns;
    return moved;
}

/* Once a sample, and not in one in which all processes sleep: it is most of what that would cost. */
static void read_switches(struct asym_procfs *p)
{
    static const char path[] = "proc/sys/kernel/sched_autogroup_enabled";
    char text[8];
    if (p->has_switches)
        return;
    p->autogroups = asym_procfs_read_kept(p, &p->autogroup_fd, path, text, sizeof text) > 0 && *text == '1';
    p->has_switches = true;
}

static int sample_process(struct asym_procfs *p, struct asym_process *proc)
{
    const bool goes_on = p->scan.cut != NULL;
    int moved = goes_on ? 1 : has_moved(p, proc);
    if (moved < 0)
        return moved;
    if (!goes_on && !p->config.process_events && p->config.root->live)
        notice_threads(p, proc);
    if (moved || proc->due != ASYM_DUE_IF_RAN) {
        read_switches(p);
        int r = asym_procfs_scan(p, proc);
        if (r < 0)
            return r;
        if (p->scan.sums.n_tasks > 0 && asym_procfs_list_process(p, proc, &p->scan.sums) < 0) {
            p->n_tasks = p->scan.sums.first_task;
            asym_procfs_note_failure(p, proc, -ENOMEM);
        }
    }
    p->coverage.n_threads += proc->n_threads;
    p->coverage.n_denied += proc->denied;
    asym_procfs_count(p, proc);
    return 0;
}

/* When another process has taken over the PID, that process is sampled. */
static int sample_pid(struct asym_procfs *p, struct asym_process *proc)
{
    if (!p->scan.cut) {
        /* The shares of a process refer to the time since its last sample, which may be longer than the interval. */
        p->scan.since = proc->sampled_at ? proc->sampled_at : p->last;
        proc->sampled_at = p->now;
    }
    int r = sample_process(p, proc);
    if (r == -ESTALE) {
        proc = asym_procfs_verify(p, proc, true);
        if (proc) {
            proc->sample = p->n_samples + 1;
            proc->sampled_at = p->now;
        }
        r = proc && asym_procfs_follows(proc) ? sample_process(p, proc) : 0;
    }
    if (proc && r == -ESRCH)
        asym_procfs_drop(p, proc);
    return r == -EINPROGRESS ? r : 0;
}

void asym_procfs_missing(const struct asym_machine *m, const char *ret_missing[ASYM_N_SIGNALS])
{
    ret_missing[ASYM_SIGNAL_RUNNABLE] = NULL;
    ret_missing[ASYM_SIGNAL_IPC] = ret_missing[ASYM_SIGNAL_STALL] = "/proc has no counters";
    ret_missing[ASYM_SIGNAL_PROFILE] = "/proc has no profiles";
    ret_missing[ASYM_SIGNAL_SMT] = m->n_cores == asym_mask_count(&m->usable)
                                       ? "no core has more than one hardware thread"
                                       : NULL;
}

/* A mask may lack a CPU that is going offline, before the file of those online does: for milliseconds, at a busy machine more. */
#define GOES_OFFLINE ASYM_SEC

/* Takes process events first, so that the processes to read are up to date. */
static void begin_sample(struct asym_procfs *p)
{
    asym_usec boot = asym_clock_read(CLOCK_BOOTTIME);
    p->boot_ahead = boot > p->now ? boot - p->now : 0;
    /* After a shortage of descriptors, each sample may keep one more open. */
    p->kept_max += p->kept_max < p->kept_limit;
    p->n_listed = p->n_apps = p->n_tasks = 0;
    p->issued = (struct asym_snapshot){0};
    p->scan.cut = NULL;
    asym_procfs_trim(p);
    for (uint32_t i = 0; i < p->cgroups.n; i++)
        p->cgroups.groups[i].members.n_procs = p->cgroups.groups[i].members.n_threads = 0;
    asym_jobs_begin(&p->jobs);
    asym_procfs_take_answers(p);
    if (p->config.process_events && p->n_samples > 0 && asym_procfs_take_events(p) < 0)
        p->rescan = true;
    const bool known = p->config.process_events && p->n_samples > 0 && !p->rescan;
    p->stage = known ? ASYM_PROCFS_SAMPLING : ASYM_PROCFS_LISTING;
    p->has_switches = p->knows_online = false;
    if (p->now < p->new_masks_at + GOES_OFFLINE)
        asym_procfs_note_online(p);
    p->left = p->n_procs;
    p->listed_denied = p->coverage.n_denied;
    p->coverage.n_threads = p->coverage.n_unkept = p->coverage.n_foreign = p->coverage.n_unread = p->coverage.n_failed =
        0;
}

static int list(struct asym_procfs *p)
{
    int r = asym_procfs_list_all(p);
    /* The known processes can be sampled without a listing. The next sample lists again. */
    if (p->n_samples > 0 && (r == -EMFILE || r == -ENFILE || r == -ENOMEM))
        r = 0;
    if (r < 0)
        return r;
    p->stage = ASYM_PROCFS_SAMPLING;
    p->left = p->n_procs;
    p->listed_denied = p->coverage.n_denied;
    return 0;
}

/*
 * Goes from the last process to the first. When a process is dropped, the last one in the array takes its place; that one was
 * sampled already. New processes are added at the end; the next sample is their first. Returns NULL after the first process.
 */
static struct asym_process *next_process(struct asym_procfs *p)
{
    if (p->scan.cut)
        return p->scan.cut;
    for (p->left = ASYM_MIN(p->left, p->n_procs); p->left > 0;) {
        struct asym_process *proc = p->procs[--p->left];
        if (proc->sample == p->n_samples + 1)
            continue;
        proc->sample = p->n_samples + 1;
        p->coverage.n_foreign += (proc->flags & ASYM_PROC_FOREIGN_NS) != 0;
        if (asym_procfs_follows(proc))
            return proc;
    }
    return NULL;
}

static int sample_all(struct asym_procfs *p)
{
    for (struct asym_process *proc; (proc = next_process(p));) {
        int r = sample_pid(p, proc);
        if (r < 0)
            return r;
        if (p->left > 0 && asym_realtime_is_over())
            return -EINPROGRESS;
    }
    return asym_procfs_make_apps(p);
}

static void fill(const struct asym_procfs *p, asym_usec interval, struct asym_snapshot *ret)
{
    *ret = (struct asym_snapshot){
        .now = p->now,
        .interval = interval,
        .machine = p->config.machine,
        .apps = p->apps,
        .procs = p->out_procs,
        .tasks = p->config.group == ASYM_GROUP_PROCESS ? p->tasks : p->sorted,
        .n_apps = p->n_apps,
        .n_procs = p->n_listed,
        .n_tasks = p->n_tasks,
        .coverage = p->coverage,
    };
    asym_procfs_missing(p->config.machine, ret->missing);
    if (p->no_schedstat)
        ret->missing[ASYM_SIGNAL_RUNNABLE] = ASYM_PROCFS_NO_SCHEDSTAT;
}

/* Continue the sample for one call of next(). 0: it is complete; -EINPROGRESS; -errno. */
static int go_on(struct asym_procfs *p)
{
    p->now = asym_clock_now();
    if (p->stage == ASYM_PROCFS_IDLE)
        begin_sample(p);
    int r = p->stage == ASYM_PROCFS_LISTING ? list(p) : 0;
    if (r < 0)
        return r;
    if (p->config.root->live)
        p->now = asym_clock_now();
    return sample_all(p);
}

/* The core needs this at once. The next sample takes the event: to read the stat of a new process takes 25 us. */
static void note_event(void *ctx, const struct asym_process_event *event)
{
    const bool is_exec = event->kind == ASYM_PROCESS_EVENT_EXEC;
    if (!is_exec && event->kind != ASYM_PROCESS_EVENT_FORK)
        return;
    struct asym_process *proc = asym_procfs_find(ctx, is_exec ? event->tgid : event->parent_tgid);
    if (!proc)
        return;
    proc->last_fork = is_exec ? 0 : event->when;
    proc->last_exec = is_exec ? event->when : proc->last_exec;
}

/* Apply new process events to the processes of the last snapshot. */
static void refresh_processes(struct asym_procfs *p)
{
    if (p->config.process_events)
        asym_process_events_peek(p->config.process_events, note_event, p);
    for (size_t i = 0; i < p->n_listed; i++) {
        const struct asym_process *proc = asym_procfs_find(p, p->out_procs[i].id.tgid);
        if (!proc || proc->start != p->out_procs[i].id.start)
            continue;
        p->out_procs[i].last_fork = proc->last_fork;
        p->out_procs[i].last_exec = proc->last_exec;
    }
}

/* A mask that is not read is that of the last sample, or asymd has set it since. The actuator looks at it before a change. */
static int refresh_task(struct asym_procfs *p, struct asym_task *task, bool is_read)
{
    struct asym_process *proc = asym_procfs_find(p, task->id.tgid);
    struct asym_pthread *t = proc ? asym_procfs_find_thread(proc, task->id.tid) : NULL;
    task->flags &= ~(uint32_t)(ASYM_TASK_NEWBORN | ASYM_TASK_EXECUTED | ASYM_TASK_ENDED);
    int r = t && !t->gone && t->start == task->id.start ? 0 : -ESRCH;
    if (r == 0 && is_read)
        r = asym_procfs_masks(p, proc, t, task);
    else if (r == 0 && t->mask)
        task->mask = t->mask;
    if (r == 0 && t->mask)
        task->nice = t->nice;
    if (r == -ENOMEM)
        return r;
    /* After an exec, another thread may have this number. */
    if (asym_procfs_gone(r) || r == -EAGAIN)
        task->flags |= ASYM_TASK_ENDED;
    else if (r >= 0 && !asym_mask_has(task->mask, task->cpu) && asym_mask_has(task->mask, (int)t->put_on - 1))
        task->cpu = (int32_t)t->put_on - 1;
    return 0;
}

static int refresh_app(struct asym_procfs *p, const struct asym_app *app)
{
    struct asym_task *tasks = p->config.group == ASYM_GROUP_PROCESS ? p->tasks : p->sorted;
    const bool is_read = !p->watcher.changed || p->watcher.changed(p->watcher.ctx, &app->id);
    int r = 0;
    for (uint32_t i = 0; r >= 0 && i < app->n_tasks; i++)
        r = refresh_task(p, &tasks[app->first_task + i], is_read);
    return r;
}

/* 1; -ENODATA: there is no last snapshot that could be returned again; -errno. */
static int refresh_snapshot(struct asym_procfs *p, struct asym_snapshot *ret)
{
    int r = 0;
    if (!p->issued.machine || !p->config.root->live)
        return -ENODATA;
    p->now = asym_clock_now();
    refresh_processes(p);
    for (size_t i = 0; r >= 0 && i < p->n_apps; i++)
        r = refresh_app(p, &p->apps[i]);
    if (r < 0)
        return r;
    *ret = p->issued;
    ret->now = p->now;
    ret->refreshed = true;
    return 1;
}

static int take_snapshot(struct asym_procfs *p, struct asym_snapshot *ret)
{
    int r = go_on(p);
    if (r == -EINPROGRESS)
        return r;
    p->stage = ASYM_PROCFS_IDLE;
    if (r < 0)
        return r;
    const asym_usec interval = p->last && p->config.root->live ? p->now - p->last : 0;
    p->coverage.n_procs = (uint32_t)p->n_procs;
    p->last = p->now;
    p->n_samples++;
    fill(p, interval, ret);
    p->issued = *ret;
    p->coverage.n_denied = p->listed_denied;
    return 1;
}

static int procfs_next(struct asym_source *source, struct asym_snapshot *ret)
{
    struct asym_procfs *p = asym_procfs_of(source);
    const int r = p->refresh ? refresh_snapshot(p, ret) : -ENODATA;
    p->refresh = false;
    return r == -ENODATA ? take_snapshot(p, ret) : r;
}

static void procfs_refresh(struct asym_source *source)
{
    asym_procfs_of(source)->refresh = true;
}

/*
 * PIDs in /proc are those of the PID namespace in which it was mounted. If that is asymd's own namespace, asymd can read and
 * steer the processes, also those of child namespaces. If asymd runs in a child namespace and has the /proc of an ancestor (a
 * container with its host's /proc mounted), the PIDs do not match those of system calls. The line NSpid of asymd's own status
 * then has one PID for each level between, or asymd does not appear in that /proc at all.
 */
static bool is_foreign(struct asym_procfs *p)
{
    const char *value;
    size_t len;
    uint64_t pid;
    if (!p->config.root->live)
        return false;
    ssize_t n = asym_procfs_read(p, "proc/self/status", p->buffer, ASYM_PROCFS_BUFFER);
    if (n < 0)
        return true;
    /* A kernel without PID namespaces has no such line. */
    return asym_parse_status_line(p->buffer, (size_t)n, "NSpid", &value, &len) == 0 &&
           (asym_parse_u64(value, len, &pid) < 0 || pid != (uint64_t)getpid());
}

/* Returns true only where hidepid hides processes from asymd. A process that may trace all others, as root may, sees all. */
static bool has_hidepid(const struct asym_root *root)
{
    struct asym_cgroup_mounts mounts;
    asym_cgroup_mounts_read(root, &mounts);
    return root->live && *mounts.hidepid && faccessat(root->fd, "proc/1/stat", R_OK, AT_EACCESS) < 0;
}

bool asym_procfs_lacks_schedstat(const struct asym_root *root)
{
    struct stat st;
    return root->live && fstatat(root->fd, "proc/self/schedstat", &st, 0) < 0 && errno == ENOENT;
}

/* "12345.67 98765.43": seconds since boot, idle seconds. */
static asym_usec read_uptime(struct asym_procfs *p)
{
    double seconds;
    ssize_t n = asym_procfs_read(p, "proc/uptime", p->buffer, ASYM_PROCFS_BUFFER);
    const char *stop = n > 0 ? memchr(p->buffer, ' ', (size_t)n) : NULL;
    if (!stop || asym_parse_number(p->buffer, (size_t)(stop - p->buffer), &seconds) < 0 || seconds > 1e12)
        return 0;
    return (asym_usec)(seconds * (double)ASYM_SEC);
}

static int find_wanted(struct asym_procfs *p, struct asym_error *err)
{
    for (size_t i = 0; i < p->config.n_pids; i++) {
        struct asym_stat stat;
        const int32_t pid = p->config.pids[i];
        int r = asym_procfs_read_stat(p, pid, 0, &stat);
        if (r < 0)
            return asym_fail(err, asym_procfs_gone(r) ? -ESRCH : r, "--pid=%d: %s", (int)pid,
                             asym_procfs_gone(r) ? "there is no such process" : strerror(-r));
        p->wanted[i] = (struct asym_wanted){.pid = pid, .start = stat.start};
    }
    p->config.pids = NULL;
    return 0;
}

static int set_up(struct asym_procfs *p, struct asym_error *err)
{
    const struct asym_procfs_config *config = &p->config;
    struct stat st;
    p->wanted = calloc(config->n_pids + 1, sizeof *p->wanted);
    p->buffer = malloc(ASYM_PROCFS_BUFFER);
    p->entries = malloc(ASYM_PROCFS_ENTRIES);
    if (!p->wanted || !p->buffer || !p->entries)
        return asym_fail(err, -ENOMEM, "no memory to observe");
    if (fstatat(config->root->fd, "proc", &st, 0) < 0)
        return errno == ENOENT ? asym_fail(err, -ENOENT, "%s: there is no proc directory in it", config->root->path)
                               : asym_fail(err, -errno, "%s: proc: %s", config->root->path, strerror(errno));
    const long ticks = sysconf(_SC_CLK_TCK);
    p->ticks = ticks > 0 ? (uint64_t)ticks : 100;
    p->kept_max = p->kept_limit = config->root->live ? asym_procfs_keepable() : 0;
    p->foreign = is_foreign(p);
    p->no_schedstat = asym_procfs_lacks_schedstat(config->root);
    p->uptime = config->root->live ? 0 : read_uptime(p);
    asym_cgroups_init(&p->cgroups, config->root, &config->machine->online);
    if (!config->process_events && config->process_events_why)
        snprintf(p->without_events, sizeof p->without_events, "%s", config->process_events_why);
    p->coverage = (struct asym_coverage){
        .sampled = p->no_schedstat,
        .hidepid = has_hidepid(p->config.root),
        .process_events = config->process_events != NULL,
        .process_events_why = *p->without_events ? p->without_events : NULL,
    };
    return find_wanted(p, err);
}

int asym_procfs_new(const struct asym_procfs_config *config, struct asym_source **ret_source, struct asym_error *err)
{
    struct asym_procfs *p = calloc(1, sizeof *p);
    if (!p)
        return asym_fail(err, -ENOMEM, "no memory to observe");
    p->source = (struct asym_source){
        .next = procfs_next, .feedback = asym_procfs_feedback, .refresh = procfs_refresh, .close = procfs_close};
    p->list_fd = p->online_fd = p->autogroup_fd = -1;
    p->config = *config;
    int r = set_up(p, err);
    if (r < 0) {
        procfs_close(&p->source);
        return r;
    }
    *ret_source = &p->source;
    return 0;
}

void asym_procfs_set_rules(struct asym_source *source, const struct asym_rules *rules)
{
    struct asym_procfs *p = asym_procfs_of(source);
    p->config.rules = rules;
    /* The last snapshot points to rules that no longer exist. */
    p->issued = (struct asym_snapshot){0};
    for (size_t i = 0; i < p->n_procs; i++) {
        asym_procfs_expire_match(p->procs[i]);
        p->procs[i]->asked = p->procs[i]->unread = 0;
        p->procs[i]->retry_at = 0;
        p->procs[i]->program++;
        p->procs[i]->profile = NULL;
        p->procs[i]->rule_name = NULL;
        p->procs[i]->rule_facts = NULL;
    }
    asym_procfs_match_listed(p);
}

/* The start of a thread is not known before its first sample. */
static struct asym_process *find_process(const struct asym_procfs *p, const struct asym_taskid *id)
{
    struct asym_process *proc = asym_procfs_find(p, id->tgid);
    if (!proc || id->tid == id->tgid)
        return proc && proc->start == id->start ? proc : NULL;
    const struct asym_pthread *t = asym_procfs_find_thread(proc, id->tid);
    return t && (t->start == id->start || t->start == 0) ? proc : NULL;
}

int asym_procfs_rule_of(struct asym_source *source, const struct asym_taskid *id, struct asym_proc *ret)
{
    struct asym_procfs *p = asym_procfs_of(source);
    struct asym_process *proc = find_process(p, id);
    if (!proc)
        return -ESRCH;
    asym_procfs_match(p, proc);
    *ret = (struct asym_proc){.id = {.tid = proc->pid, .tgid = proc->pid, .start = proc->start}};
    asym_procfs_take_rule(p, proc, ret);
    return proc->match == ASYM_MATCH_VALID;
}

void asym_procfs_job_each(struct asym_source *source, int32_t pgrp,
                          void (*fn)(void *ctx, const struct asym_taskid *proc), void *ctx)
{
    struct asym_procfs *p = asym_procfs_of(source);
    for (size_t i = 0; i < p->n_procs; i++) {
        const struct asym_process *proc = p->procs[i];
        if (asym_procfs_is_in_job(p, proc, pgrp))
            fn(ctx, &(struct asym_taskid){.tid = proc->pid, .tgid = proc->pid, .start = proc->start});
    }
}

void asym_procfs_set_watcher(struct asym_source *source, const struct asym_procfs_watcher *watcher)
{
    asym_procfs_of(source)->watcher = *watcher;
}

/* While processes are the applications, the cgroup of an idle process is not read: the next sample reads it. */
void asym_procfs_set_group(struct asym_source *source, enum asym_grouping group)
{
    struct asym_procfs *p = asym_procfs_of(source);
    p->config.group = group;
    p->issued = (struct asym_snapshot){0};
    for (size_t i = 0; group != ASYM_GROUP_PROCESS && i < p->n_procs; i++)
        asym_procfs_expect(p->procs[i], ASYM_DUE_READ);
    asym_procfs_regroup_listed(p);
}

static int open_procfs(const struct asym_observer_context *context, struct asym_source *inner, struct asym_source **ret,
                       struct asym_error *err)
{
    (void)inner;
    return asym_procfs_new(context->procfs, ret, err);
}

const struct asym_observer_entry asym_observer_entry_procfs = {.name = "procfs", .open = open_procfs};
