/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/procfs-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/parse.h"

/* Descriptors left to everything else: the ledger, sockets, directories being listed, files opened for one read. */
#define DESCRIPTORS_RESERVED 64

static struct asym_procfs *of(struct asym_source *source)
{
    return (struct asym_procfs *)(void *)((char *)source - offsetof(struct asym_procfs, source));
}

static asym_usec monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (asym_usec)t.tv_sec * ASYM_SEC + (asym_usec)t.tv_nsec / 1000;
}

static void forget_all(struct asym_procfs *p)
{
    while (p->n_procs > 0)
        asym_track_drop(p, p->procs[p->n_procs - 1]);
}

static void procfs_close(struct asym_source *source)
{
    struct asym_procfs *p = of(source);
    forget_all(p);
    asym_mask_pool_done(&p->masks);
    for (uint32_t i = 0; i < p->n_cgroups; i++)
        free(p->cgroups[i].path);
    free(p->cgroups);
    free(p->procs);
    free(p->by_pid);
    free(p->pids);
    free(p->buffer);
    free(p->apps);
    free(p->out_procs);
    free(p->tasks);
    free(p);
}

/* Without events a thread that came or went shows in the link count of task/, at 0.6 us. */
static void notice_threads(struct asym_procfs *p, struct asym_process *proc)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "proc/%d/task", (int)proc->pid);
    if (fstatat(p->config.root->fd, path, &st, 0) < 0 || (uint32_t)st.st_nlink == proc->nlink)
        return;
    proc->nlink = (uint32_t)st.st_nlink;
    proc->stale_threads = proc->fresh = true;
}

/* Tier 1: has it used a CPU since the last look? Returns -ESRCH when it is gone. */
static int has_moved(struct asym_procfs *p, struct asym_process *proc)
{
    struct timespec t;
    if (!p->config.root->live || proc->denied)
        return 1;
    if (clock_gettime(proc->clock, &t) < 0)
        return -ESRCH;
    uint64_t ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    int moved = ns != proc->clock_ns;
    proc->clock_ns = ns;
    return moved;
}

static bool is_followed(const struct asym_process *proc)
{
    return (proc->flags & (ASYM_PROC_KERNEL | ASYM_PROC_OUTSIDE)) == 0;
}

static uint64_t hash_text(const char *s)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
    return h;
}

static int list_process(struct asym_procfs *p, const struct asym_process *proc, const struct asym_process_sums *sums)
{
    if (asym_grow(&p->out_procs, p->n_out_procs, &p->out_procs_capacity, sizeof *p->out_procs) < 0 ||
        asym_grow(&p->apps, p->n_apps, &p->apps_capacity, sizeof *p->apps) < 0)
        return -ENOMEM;
    struct asym_app *app = &p->apps[p->n_apps];
    *app = (struct asym_app){
        .id = {.tid = proc->pid, .tgid = proc->pid, .start = proc->start},
        .first_task = sums->first_task,
        .n_tasks = sums->n_tasks,
        .n_threads = proc->n_threads,
        .runnable_instant = sums->instant,
        .runnable_mean = sums->runnable,
    };
    memcpy(app->comm, proc->comm, sizeof app->comm);
    if (p->config.group == ASYM_GROUP_CGROUP && proc->cgroup > 0) {
        app->cgroup = p->cgroups[proc->cgroup - 1].path;
        app->id = (struct asym_taskid){.start = hash_text(app->cgroup)};
    }
    p->out_procs[p->n_out_procs] = (struct asym_proc){
        .id = {.tid = proc->pid, .tgid = proc->pid, .start = proc->start},
        .ppid = proc->ppid,
        .app = (uint32_t)p->n_apps,
        .flags = proc->flags,
        .born = proc->born,
        .last_fork = proc->last_fork,
        .rule = proc->rule,
        .rule_name = proc->rule_name,
    };
    for (uint32_t i = 0; i < sums->n_tasks; i++)
        p->tasks[sums->first_task + i].proc = (uint32_t)p->n_out_procs;
    p->n_apps++;
    p->n_out_procs++;
    return 0;
}

static int look_at(struct asym_procfs *p, struct asym_process *proc, asym_usec now, asym_usec interval)
{
    struct asym_process_sums sums;
    if (!p->config.births)
        notice_threads(p, proc);
    int moved = has_moved(p, proc);
    if (moved < 0)
        return moved;
    p->sight.n_threads += proc->n_threads;
    if (!moved && !proc->runnable && !proc->fresh)
        return 0;
    int r = asym_scan_process(p, proc, now, interval, &sums);
    if (r < 0)
        return r;
    return sums.n_tasks > 0 ? list_process(p, proc, &sums) : 0;
}

/* By application, then as they were found: processes of one cgroup come to stand together. */
static int by_app(const void *a, const void *b)
{
    const struct asym_app *x = a, *y = b;
    if (x->id.start != y->id.start)
        return x->id.start < y->id.start ? -1 : 1;
    return (x->first_task > y->first_task) - (x->first_task < y->first_task);
}

/* Each process was listed as an application of its own: merge those of one cgroup, and move their threads together. */
static int merge_cgroups(struct asym_procfs *p)
{
    ASYM_AUTO_FREE struct asym_task *tasks = malloc((p->n_tasks + 1) * sizeof *tasks);
    size_t n_tasks = 0, n_apps = 0;
    if (!tasks)
        return -ENOMEM;
    qsort(p->apps, p->n_apps, sizeof *p->apps, by_app);
    for (size_t i = 0; i < p->n_apps; i++) {
        struct asym_app part = p->apps[i];
        bool first = n_apps == 0 || p->apps[n_apps - 1].id.start != part.id.start ||
                     p->apps[n_apps - 1].id.tgid != part.id.tgid;
        struct asym_app *app = &p->apps[first ? n_apps++ : n_apps - 1];
        memcpy(tasks + n_tasks, p->tasks + part.first_task, part.n_tasks * sizeof *tasks);
        for (uint32_t k = 0; k < part.n_tasks; k++)
            p->out_procs[tasks[n_tasks + k].proc].app = (uint32_t)(n_apps - 1);
        if (first) {
            *app = part;
            app->first_task = (uint32_t)n_tasks;
        } else {
            app->n_tasks += part.n_tasks;
            app->n_threads += part.n_threads;
            app->runnable_instant += part.runnable_instant;
            app->runnable_mean += part.runnable_mean;
        }
        n_tasks += part.n_tasks;
    }
    memcpy(p->tasks, tasks, n_tasks * sizeof *tasks);
    p->n_apps = n_apps;
    return 0;
}

/* Births and deaths first, so that what is read next is what there is. */
static int take_stock(struct asym_procfs *p)
{
    int r = 0;
    if (p->config.births && p->turns > 0)
        r = asym_track_events(p);
    if (r < 0)
        p->rescan = true;
    if (!p->config.births || p->turns == 0 || p->rescan)
        return asym_track_all(p);
    return 0;
}

void asym_procfs_missing(const struct asym_machine *m, const char *ret_missing[ASYM_N_SIGNALS])
{
    ret_missing[ASYM_SIGNAL_RUNNABLE] = NULL;
    ret_missing[ASYM_SIGNAL_IPC] = ret_missing[ASYM_SIGNAL_STALL] = "this version reads no hardware counters";
    ret_missing[ASYM_SIGNAL_PROFILE] = "this version has no profiles";
    ret_missing[ASYM_SIGNAL_SMT] = m->n_cores == asym_mask_count(&m->usable)
                                       ? "no core has more than one hardware thread"
                                       : NULL;
}

static int procfs_next(struct asym_source *source, struct asym_snapshot *ret)
{
    struct asym_procfs *p = of(source);
    asym_facts_start(p);
    int r = take_stock(p);
    if (r < 0)
        return r;
    p->n_apps = p->n_out_procs = p->n_tasks = 0;
    p->sight.n_threads = p->sight.n_unkept = p->sight.n_foreign = 0;
    asym_usec now = monotonic(), interval = p->last && p->config.root->live ? now - p->last : 0;
    for (size_t i = p->n_procs; i-- > 0;) {
        struct asym_process *proc = p->procs[i];
        p->sight.n_foreign += (proc->flags & ASYM_PROC_FOREIGN_NS) != 0;
        if (!is_followed(proc))
            continue;
        r = look_at(p, proc, now, interval);
        if (r == -ESRCH)
            asym_track_drop(p, proc);
        else if (r < 0)
            return r;
    }
    if (p->config.group == ASYM_GROUP_CGROUP && (r = merge_cgroups(p)) < 0)
        return r;
    p->sight.n_procs = (uint32_t)p->n_procs;
    p->last = now;
    p->turns++;
    *ret = (struct asym_snapshot){
        .now = now,
        .interval = interval,
        .machine = p->config.machine,
        .apps = p->apps,
        .procs = p->out_procs,
        .tasks = p->tasks,
        .n_apps = p->n_apps,
        .n_procs = p->n_out_procs,
        .n_tasks = p->n_tasks,
        .sight = p->sight,
    };
    asym_procfs_missing(p->config.machine, ret->missing);
    return 1;
}

/* A /proc of another PID namespace than ours (a container's view of its host's) shows numbers that are not ours. */
static bool is_foreign(const struct asym_root *root)
{
    char text[32];
    uint64_t pid;
    ssize_t n = readlinkat(root->fd, "proc/self", text, sizeof text);
    return root->live && (n <= 0 || asym_parse_u64(text, (size_t)n, &pid) < 0 || pid != (uint64_t)getpid());
}

static bool has_hidepid(const struct asym_root *root)
{
    char text[65536];
    if (asym_root_read(root, "proc/mounts", text, sizeof text) < 0)
        return false;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        const char *option = strstr(line, " /proc proc ") ? strstr(line, "hidepid=") : NULL;
        if (option && option[8] != '0' && strncmp(option + 8, "off", 3) != 0)
            return faccessat(root->fd, "proc/1/stat", R_OK, AT_EACCESS) < 0;
    }
    return false;
}

static void read_cpus(const struct asym_root *root, const char *path, struct asym_mask *ret)
{
    char text[8192];
    struct asym_mask m;
    ssize_t n = asym_root_read(root, path, text, sizeof text);
    if (n >= 0 && asym_mask_parse_list(text, (size_t)n, &m) == 0)
        *ret = m;
}

static int32_t read_pid_max(const struct asym_root *root)
{
    char text[32];
    uint64_t n;
    ssize_t len = asym_root_read(root, "proc/sys/kernel/pid_max", text, sizeof text);
    if (len < 0 || asym_parse_u64(text, (size_t)len, &n) < 0 || n < 1 || n > 4194304)
        return 4194304;
    return (int32_t)n;
}

static size_t keepable(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur <= DESCRIPTORS_RESERVED)
        return 0;
    return (size_t)limit.rlim_cur - DESCRIPTORS_RESERVED;
}

static int check_pids(const struct asym_procfs *p, struct asym_error *err)
{
    for (size_t i = 0; i < p->config.n_pids; i++) {
        char path[64];
        struct stat st;
        snprintf(path, sizeof path, "proc/%d/task", (int)p->pids[i]);
        if (p->pids[i] > p->pid_max || fstatat(p->config.root->fd, path, &st, 0) < 0)
            return asym_fail(err, -ESRCH, "--pid=%d: there is no such process", (int)p->pids[i]);
    }
    return 0;
}

int asym_procfs_new(const struct asym_procfs_config *config, struct asym_source **ret_source, struct asym_error *err)
{
    struct stat st;
    if (fstatat(config->root->fd, "proc", &st, 0) < 0)
        return asym_fail(err, -ENOENT, "%s: there is no proc directory in it", config->root->path);
    struct asym_procfs *p = calloc(1, sizeof *p);
    if (!p)
        return asym_fail(err, -ENOMEM, "no memory to observe");
    p->source = (struct asym_source){.next = procfs_next, .close = procfs_close};
    p->config = *config;
    p->pid_max = read_pid_max(config->root);
    p->pids = malloc((config->n_pids + 1) * sizeof *p->pids);
    p->by_pid = calloc((size_t)p->pid_max + 1, sizeof(struct asym_process *));
    p->buffer = malloc(ASYM_PROCFS_BUFFER);
    if (!p->pids || !p->by_pid || !p->buffer) {
        procfs_close(&p->source);
        return asym_fail(err, -ENOMEM, "no memory to observe");
    }
    if (config->n_pids > 0)
        memcpy(p->pids, config->pids, config->n_pids * sizeof *p->pids);
    p->kept_max = keepable();
    p->ticks = sysconf(_SC_CLK_TCK);
    p->foreign = is_foreign(config->root);
    p->possible = config->machine->online;
    read_cpus(config->root, "sys/devices/system/cpu/possible", &p->possible);
    read_cpus(config->root, "sys/devices/system/cpu/isolated", &p->isolated);
    p->sight = (struct asym_sight){
        .hidepid = has_hidepid(config->root),
        .births = config->births != NULL,
        .births_why = config->births_why,
    };
    int r = check_pids(p, err);
    if (r < 0) {
        procfs_close(&p->source);
        return r;
    }
    *ret_source = &p->source;
    return 0;
}

void asym_procfs_set_rules(struct asym_source *source, const struct asym_rules *rules)
{
    struct asym_procfs *p = of(source);
    p->config.rules = rules;
    for (size_t i = 0; i < p->n_procs; i++) {
        p->procs[i]->matched = false;
        p->procs[i]->rule_name = NULL;
    }
}

void asym_procfs_set_group(struct asym_source *source, enum asym_grouping group)
{
    of(source)->config.group = group;
}
