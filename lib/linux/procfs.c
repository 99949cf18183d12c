/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/procfs-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/parse.h"

/* /proc/PID/task has this many links beside one for each thread. */
#define TASK_LINKS 2

static asym_usec read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (asym_usec)t.tv_sec * ASYM_SEC + (asym_usec)t.tv_nsec / 1000;
}

static void procfs_close(struct asym_source *source)
{
    struct asym_procfs *p = asym_procfs_of(source);
    while (p->n_procs > 0)
        asym_procfs_drop(p, p->procs[p->n_procs - 1]);
    asym_pid_table_done(&p->by_pid);
    asym_mask_pool_done(&p->masks);
    asym_cgroups_done(&p->cgroups);
    free(p->procs);
    free(p->wanted);
    free(p->buffer);
    free(p->entries);
    free(p->listed);
    free(p->apps);
    free(p->out_procs);
    free(p->tasks);
    free(p->sorted);
    if (p->list_fd >= 0)
        close(p->list_fd);
    free(p);
}

bool asym_procfs_is_over(const struct asym_procfs *p)
{
    return p->piece_ends > 0 && read_clock(CLOCK_MONOTONIC) >= p->piece_ends;
}

/*
 * Without events a thread that came or went shows in the link count of task/, at 0.6 us. It is compared with the threads
 * known, not with the count before: what a listing missed stays to be seen.
 */
static void notice_threads(struct asym_procfs *p, struct asym_process *proc)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "proc/%d/task", (int)proc->pid);
    if (fstatat(p->config.root->fd, path, &st, 0) == 0 && st.st_nlink != proc->n_threads + TASK_LINKS)
        proc->stale_threads = true;
}

/* Tier 1: has it used a CPU since the last look? Returns -ESRCH when it is gone. */
static int has_moved(struct asym_procfs *p, struct asym_process *proc)
{
    struct timespec t;
    if (!p->config.root->live)
        return 1;
    if (clock_gettime(proc->clock, &t) < 0)
        return -ESRCH;
    uint64_t ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    int moved = ns != proc->clock_ns;
    proc->clock_ns = ns;
    return moved;
}

/* Its shares are of the time since the last look at it, which may be longer than the time since the last look as a whole. */
static asym_usec interval_of(const struct asym_procfs *p, struct asym_process *proc)
{
    const asym_usec before = proc->looked_at ? proc->looked_at : p->last;
    proc->looked_at = p->now;
    return before > 0 && p->config.root->live ? p->now - before : 0;
}

static int look_at(struct asym_procfs *p, struct asym_process *proc, asym_usec interval)
{
    struct asym_process_sums sums;
    int moved = has_moved(p, proc);
    if (moved < 0)
        return moved;
    if (!p->config.births && p->config.root->live)
        notice_threads(p, proc);
    if (moved || proc->runnable || proc->fresh || proc->stale_threads) {
        int r = asym_procfs_scan(p, proc, interval, &sums);
        if (r == 0 && sums.n_tasks > 0)
            r = asym_procfs_list_process(p, proc, &sums);
        if (r < 0)
            return r;
    }
    p->sight.n_threads += proc->n_threads;
    p->sight.n_denied += proc->denied;
    if (proc->group)
        p->cgroups.groups[proc->group - 1].n_threads += proc->n_threads;
    return 0;
}

/* One whose number has gone to another is looked at once more, as that other. */
static int look_at_what_it_is(struct asym_procfs *p, struct asym_process *proc)
{
    const asym_usec interval = interval_of(p, proc);
    int r = look_at(p, proc, interval);
    if (r == -ESTALE) {
        proc = asym_procfs_verify(p, proc);
        if (proc) {
            proc->look = p->turns + 1;
            proc->looked_at = p->now;
        }
        r = proc && asym_procfs_follows(proc) ? look_at(p, proc, interval) : 0;
    }
    if (proc && r == -ESRCH)
        asym_procfs_drop(p, proc);
    return r == -ENOMEM ? r : 0;
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

/* Births and deaths first, so that the reading that follows is up to date. */
static void begin_look(struct asym_procfs *p)
{
    asym_usec boot = read_clock(CLOCK_BOOTTIME);
    p->boot_ahead = boot > p->now ? boot - p->now : 0;
    /* Descriptors given up for want of them come back one a turn. */
    p->kept_max += p->kept_max < p->kept_limit;
    p->n_listed = p->n_apps = p->n_tasks = 0;
    p->issued = (struct asym_snapshot){0};
    asym_procfs_trim(p);
    for (uint32_t i = 0; i < p->cgroups.n; i++)
        p->cgroups.groups[i].n_threads = 0;
    asym_procfs_note_online(p);
    asym_procfs_take_answers(p);
    if (p->config.births && p->turns > 0 && asym_procfs_take_events(p) < 0)
        p->rescan = true;
    const bool known = p->config.births && p->turns > 0 && !p->rescan;
    p->stage = known ? ASYM_PROCFS_LOOKING : ASYM_PROCFS_LISTING;
    p->left = p->n_procs;
    p->listed_denied = p->sight.n_denied;
    p->sight.n_threads = p->sight.n_unkept = p->sight.n_foreign = p->sight.n_unread = 0;
}

static int list(struct asym_procfs *p)
{
    int r = asym_procfs_list_all(p);
    /* What is known can be looked at without; the listing is tried again at the next look. */
    if (p->turns > 0 && (r == -EMFILE || r == -ENFILE || r == -ENOMEM))
        r = 0;
    if (r < 0)
        return r;
    p->stage = ASYM_PROCFS_LOOKING;
    p->left = p->n_procs;
    p->listed_denied = p->sight.n_denied;
    return 0;
}

/*
 * From the last to the first: what is dropped meanwhile gives its place to one that comes later in the array, which was looked
 * at. New ones are at the end, and have their first look in the next one.
 */
static int look_at_all(struct asym_procfs *p)
{
    for (p->left = ASYM_MIN(p->left, p->n_procs); p->left > 0;) {
        struct asym_process *proc = p->procs[--p->left];
        if (proc->look == p->turns + 1)
            continue;
        proc->look = p->turns + 1;
        p->sight.n_foreign += (proc->flags & ASYM_PROC_FOREIGN_NS) != 0;
        if (!asym_procfs_follows(proc))
            continue;
        int r = look_at_what_it_is(p, proc);
        if (r < 0)
            return r;
        if (p->left > 0 && asym_procfs_is_over(p))
            return -EINPROGRESS;
        p->left = ASYM_MIN(p->left, p->n_procs);
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
        .tasks = p->config.group == ASYM_GROUP_CGROUP ? p->sorted : p->tasks,
        .n_apps = p->n_apps,
        .n_procs = p->n_listed,
        .n_tasks = p->n_tasks,
        .sight = p->sight,
    };
    asym_procfs_missing(p->config.machine, ret->missing);
    if (p->no_schedstat)
        ret->missing[ASYM_SIGNAL_RUNNABLE] = ASYM_PROCFS_NO_SCHEDSTAT;
}

/* One call's worth of a look. 0: it is complete; -EINPROGRESS; -errno. */
static int go_on(struct asym_procfs *p)
{
    p->now = read_clock(CLOCK_MONOTONIC);
    p->piece_ends = p->config.piece > 0 ? p->now + p->config.piece : 0;
    if (p->stage == ASYM_PROCFS_IDLE)
        begin_look(p);
    int r = p->stage == ASYM_PROCFS_LISTING ? list(p) : 0;
    if (r < 0)
        return r;
    if (p->config.root->live)
        p->now = read_clock(CLOCK_MONOTONIC);
    return look_at_all(p);
}

static int procfs_next(struct asym_source *source, struct asym_snapshot *ret)
{
    struct asym_procfs *p = asym_procfs_of(source);
    int r = go_on(p);
    if (r == -EINPROGRESS)
        return r;
    p->stage = ASYM_PROCFS_IDLE;
    if (r < 0)
        return r;
    const asym_usec interval = p->last && p->config.root->live ? p->now - p->last : 0;
    p->sight.n_procs = (uint32_t)p->n_procs;
    p->last = p->now;
    p->turns++;
    fill(p, interval, ret);
    p->issued = *ret;
    p->sight.n_denied = p->listed_denied;
    return 1;
}

/* Of the processes of the last snapshot, what the births say by now. */
static void freshen_processes(struct asym_procfs *p)
{
    if (p->config.births && asym_procfs_take_events(p) < 0)
        p->rescan = true;
    for (size_t i = 0; i < p->n_listed; i++) {
        const struct asym_process *proc = asym_pid_table_find(&p->by_pid, p->out_procs[i].id.tgid);
        if (!proc || proc->start != p->out_procs[i].id.start)
            continue;
        p->out_procs[i].last_fork = proc->last_fork;
        p->out_procs[i].last_exec = proc->last_exec;
    }
}

static int freshen_task(struct asym_procfs *p, struct asym_task *task)
{
    struct asym_process *proc = asym_pid_table_find(&p->by_pid, task->id.tgid);
    struct asym_pthread *t = proc ? asym_procfs_find_thread(proc, task->id.tid) : NULL;
    task->flags &= ~(uint32_t)(ASYM_TASK_NEWBORN | ASYM_TASK_ENDED);
    int r = t && t->start == task->id.start ? asym_procfs_masks(p, proc, t, task) : -ESRCH;
    if (r == -ENOMEM)
        return r;
    if (asym_procfs_gone(r))
        task->flags |= ASYM_TASK_ENDED;
    else if (r >= 0 && !asym_mask_has(task->mask, task->cpu) && asym_mask_has(task->mask, (int)t->put_on - 1))
        task->cpu = (int32_t)t->put_on - 1;
    return 0;
}

int asym_procfs_again(struct asym_source *source, struct asym_snapshot *ret)
{
    struct asym_procfs *p = asym_procfs_of(source);
    struct asym_task *tasks = p->config.group == ASYM_GROUP_CGROUP ? p->sorted : p->tasks;
    int r = 0;
    if (!p->issued.machine || !p->config.root->live)
        return -ENODATA;
    p->now = read_clock(CLOCK_MONOTONIC);
    freshen_processes(p);
    for (size_t i = 0; r >= 0 && i < p->n_tasks; i++)
        r = freshen_task(p, &tasks[i]);
    if (r < 0)
        return r;
    *ret = p->issued;
    ret->now = p->now;
    return 0;
}
/*
 * Numbers in /proc are those of the PID namespace it was mounted in. In a child namespace's own /proc, and in the parent's
 * looking down at its children, they are ours: such processes can be read and steered. They are not where asymd is in a
 * child namespace and sees the /proc of one above it (a container with its host's /proc mounted): then the line NSpid of
 * our own status has a number for each level between, or we are not to be found there at all.
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

/* Only where it hides something from us: who may trace everything, as root may, sees all. */
static bool has_hidepid(struct asym_procfs *p)
{
    const struct asym_root *root = p->config.root;
    if (!root->live || asym_procfs_read(p, "proc/mounts", p->buffer, ASYM_PROCFS_BUFFER) < 0)
        return false;
    char *rest = p->buffer;
    for (char *line; (line = strsep(&rest, "\n"));) {
        const char *option = strstr(line, " /proc proc ") ? strstr(line, "hidepid=") : NULL;
        if (option && option[8] != '0' && strncmp(option + 8, "off", 3) != 0)
            return faccessat(root->fd, "proc/1/stat", R_OK, AT_EACCESS) < 0;
    }
    return false;
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
        return asym_fail(err, -ENOENT, "%s: there is no proc directory in it", config->root->path);
    const long ticks = sysconf(_SC_CLK_TCK);
    p->ticks = ticks > 0 ? (uint64_t)ticks : 100;
    p->kept_max = p->kept_limit = config->root->live ? asym_procfs_keepable() : 0;
    p->foreign = is_foreign(p);
    p->no_schedstat = asym_procfs_lacks_schedstat(config->root);
    p->uptime = config->root->live ? 0 : read_uptime(p);
    asym_cgroups_init(&p->cgroups, config->root, &config->machine->online);
    p->sight = (struct asym_sight){
        .sampled = p->no_schedstat,
        .hidepid = has_hidepid(p),
        .births = config->births != NULL,
        .births_why = config->births_why,
    };
    return find_wanted(p, err);
}

int asym_procfs_new(const struct asym_procfs_config *config, struct asym_source **ret_source, struct asym_error *err)
{
    struct asym_procfs *p = calloc(1, sizeof *p);
    if (!p)
        return asym_fail(err, -ENOMEM, "no memory to observe");
    p->source = (struct asym_source){.next = procfs_next, .close = procfs_close};
    p->list_fd = -1;
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
    /* It names rules that are no more. */
    p->issued = (struct asym_snapshot){0};
    for (size_t i = 0; i < p->n_procs; i++) {
        p->procs[i]->matched = false;
        p->procs[i]->asked = p->procs[i]->unread = 0;
        p->procs[i]->program++;
        p->procs[i]->profile = NULL;
        p->procs[i]->rule_name = NULL;
    }
    asym_procfs_match_listed(p);
}

/* Of which cgroup an idle process is, is not known while processes are the applications. */
void asym_procfs_set_group(struct asym_source *source, enum asym_grouping group)
{
    struct asym_procfs *p = asym_procfs_of(source);
    p->config.group = group;
    p->issued = (struct asym_snapshot){0};
    for (size_t i = 0; i < p->n_procs; i++)
        p->procs[i]->fresh |= group == ASYM_GROUP_CGROUP;
    /* A look that is under way goes on with the new grouping. */
    for (size_t i = 0; group != ASYM_GROUP_CGROUP && i < p->n_listed; i++)
        p->listed[i].group = 0;
}
