/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Group the sampled threads into processes and applications. */
#include "linux/observe/procfs-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/*
 * The table of jobs: the process groups that a shell's job control makes, such as make and all its compilers. A process group
 * keeps its number while any process is in it, even if its leader has ended; the kernel gives the number to no other process.
 */

void asym_jobs_done(struct asym_jobs *j)
{
    free(j->jobs);
    asym_hash_done(&j->by_pgrp);
    *j = (struct asym_jobs){0};
}

/* Returns the number of the job with that process group, >= 1, adding it if need be; 0 when memory runs out. */
static uint32_t find_job(struct asym_jobs *j, int32_t pgrp)
{
    const uint32_t hash = asym_hash_of_id(pgrp);
    ASYM_HASH_FOREACH (i, &j->by_pgrp, hash)
        if (j->jobs[i].pgrp == pgrp)
            return (uint32_t)i + 1;
    if (asym_hash_reserve(&j->by_pgrp, 1) < 0)
        return 0;
    if (asym_grow(&j->jobs, j->n, &j->capacity, sizeof *j->jobs) < 0)
        return 0;
    asym_hash_add(&j->by_pgrp, hash, j->n);
    j->jobs[j->n++] = (struct asym_job){.pgrp = pgrp};
    return j->n;
}

static void drop_job(struct asym_jobs *j, uint32_t i)
{
    const uint32_t last = --j->n;
    asym_hash_remove(&j->by_pgrp, asym_hash_of_id(j->jobs[i].pgrp), i);
    if (i == last)
        return;
    asym_hash_renumber(&j->by_pgrp, asym_hash_of_id(j->jobs[last].pgrp), last, i);
    j->jobs[i] = j->jobs[last];
}

void asym_jobs_begin(struct asym_jobs *j)
{
    for (uint32_t i = j->n; i-- > 0;) {
        if (j->jobs[i].members.n_procs == 0)
            drop_job(j, i);
        else
            j->jobs[i].members.n_procs = j->jobs[i].members.n_threads = 0;
    }
}

void asym_procfs_take_rule(const struct asym_procfs *p, const struct asym_process *proc, struct asym_proc *ret)
{
    ret->flags = proc->flags | (asym_procfs_is_unknown(p, proc) ? (uint32_t)ASYM_PROC_UNKNOWN : 0);
    ret->rule = proc->rule;
    ret->rule_name = proc->rule_name;
    ret->rule_facts = proc->rule_facts;
    ret->profile = proc->profile;
}

static struct asym_members *members_at(const struct asym_procfs *p, const struct asym_place *place)
{
    if (place->cgroup)
        return &p->cgroups.groups[place->cgroup - 1].members;
    return place->job ? &p->jobs.jobs[place->job - 1].members : NULL;
}

/*
 * A shell makes each command line a process group. A process without a terminal was mostly not started by one: it belongs to the
 * service, container or application scope that systemd or a container engine has made for it.
 */
static struct asym_place place_of(struct asym_procfs *p, const struct asym_process *proc)
{
    switch (p->config.group) {
    case ASYM_GROUP_PROCESS:
        break;
    case ASYM_GROUP_CGROUP:
        return (struct asym_place){.cgroup = proc->group};
    case ASYM_GROUP_JOB:
        if (!proc->has_tty && proc->group && p->cgroups.groups[proc->group - 1].is_unit)
            return (struct asym_place){.cgroup = proc->group};
        return (struct asym_place){.job = proc->pgrp > 0 ? find_job(&p->jobs, proc->pgrp) : 0};
    }
    return (struct asym_place){0};
}

bool asym_procfs_is_in_job(struct asym_procfs *p, const struct asym_process *proc, int32_t pgrp)
{
    return p->config.group == ASYM_GROUP_JOB && pgrp > 0 && proc->pgrp == pgrp && place_of(p, proc).job;
}

/* A job of several processes keeps its name when the leader ends before the others. */
static void name_job(struct asym_job *job, const struct asym_process *proc)
{
    if (proc->pid == proc->pgrp)
        job->start = proc->start;
    else if (job->start > 0 || (*job->comm && proc->start >= job->oldest))
        return;
    job->oldest = proc->start;
    memcpy(job->comm, proc->comm, sizeof job->comm);
}

void asym_procfs_count(struct asym_procfs *p, const struct asym_process *proc)
{
    const struct asym_place place = place_of(p, proc);
    struct asym_members *members = members_at(p, &place);
    if (!members)
        return;
    members->n_procs++;
    members->n_threads += proc->n_threads;
    if (place.job)
        name_job(&p->jobs.jobs[place.job - 1], proc);
}

/* The kernel's PID_MAX_LIMIT. */
#define PID_MAX (4 << 20)

/* The kernel has autogroups for processes without a cgroup of the controller cpu only. */
static int32_t nice_group_of(const struct asym_procfs *p, const struct asym_process *proc)
{
    const uint32_t group = proc->cpuset ? p->cgroups.groups[proc->cpuset - 1].nice_group : 0;
    return group ? PID_MAX + (int32_t)group : p->autogroups ? proc->session : 0;
}

int asym_procfs_list_process(struct asym_procfs *p, const struct asym_process *proc,
                             const struct asym_process_sums *sums)
{
    if (asym_grow(&p->listed, p->n_listed, &p->listed_capacity, sizeof *p->listed) < 0 ||
        asym_grow(&p->out_procs, p->n_listed, &p->out_procs_capacity, sizeof *p->out_procs) < 0)
        return -ENOMEM;
    struct asym_listed *l = &p->listed[p->n_listed];
    *l = (struct asym_listed){
        .place = place_of(p, proc),
        .n_threads = proc->n_threads,
        .sums = *sums,
    };
    memcpy(l->comm, proc->comm, sizeof l->comm);
    p->out_procs[p->n_listed] = (struct asym_proc){
        .id = {.tid = proc->pid, .tgid = proc->pid, .start = proc->start},
        .ppid = proc->ppid,
        .born = proc->born,
        .last_fork = proc->last_fork,
        .last_exec = proc->last_exec,
        .nice_group = nice_group_of(p, proc),
    };
    asym_procfs_take_rule(p, proc, &p->out_procs[p->n_listed]);
    for (uint32_t i = 0; i < sums->n_tasks; i++)
        p->tasks[sums->first_task + i].proc = (uint32_t)p->n_listed;
    p->coverage.n_unread += proc->unread != 0;
    p->n_listed++;
    return 0;
}

void asym_procfs_match_listed(struct asym_procfs *p)
{
    for (size_t i = 0; p->stage != ASYM_PROCFS_IDLE && i < p->n_listed; i++) {
        struct asym_proc *listed = &p->out_procs[i];
        struct asym_process *proc = asym_procfs_find(p, listed->id.tgid);
        listed->rule_name = NULL;
        listed->rule_facts = NULL;
        listed->profile = NULL;
        if (!proc || proc->start != listed->id.start)
            continue;
        asym_procfs_match(p, proc);
        asym_procfs_take_rule(p, proc, listed);
    }
}

/* The counts of this one sample have only the processes that are read from now on. */
void asym_procfs_regroup_listed(struct asym_procfs *p)
{
    for (size_t i = 0; p->stage != ASYM_PROCFS_IDLE && i < p->n_listed; i++) {
        const struct asym_process *proc = asym_procfs_find(p, p->out_procs[i].id.tgid);
        p->listed[i].place = proc ? place_of(p, proc) : (struct asym_place){0};
    }
}

static void name_app(const struct asym_procfs *p, const struct asym_listed *l, struct asym_app *app)
{
    if (l->place.cgroup) {
        const struct asym_cgroup *g = &p->cgroups.groups[l->place.cgroup - 1];
        app->id = (struct asym_taskid){.start = g->hash};
        app->cgroup = g->path;
    } else if (l->place.job) {
        const struct asym_job *job = &p->jobs.jobs[l->place.job - 1];
        app->id = (struct asym_taskid){.tid = job->pgrp, .tgid = job->pgrp, .start = job->start};
        if (job->members.n_procs > 1)
            memcpy(app->comm, job->comm, sizeof app->comm);
    }
}

/* The application of a process. The first process of an application adds it. 0; -ENOMEM. */
static int app_of(struct asym_procfs *p, size_t i, uint32_t *ret_app)
{
    struct asym_listed *l = &p->listed[i];
    struct asym_members *members = members_at(p, &l->place);
    if (members && members->sample == p->n_samples + 1) {
        *ret_app = members->app;
        return 0;
    }
    if (asym_grow(&p->apps, p->n_apps, &p->apps_capacity, sizeof *p->apps) < 0)
        return -ENOMEM;
    struct asym_app *app = &p->apps[p->n_apps];
    *app = (struct asym_app){.id = p->out_procs[i].id, .n_procs = 1, .n_threads = l->n_threads};
    memcpy(app->comm, l->comm, sizeof app->comm);
    if (members) {
        name_app(p, l, app);
        app->n_procs = members->n_procs;
        app->n_threads = members->n_threads;
        members->sample = p->n_samples + 1;
        members->app = (uint32_t)p->n_apps;
        members->busiest = l->sums.runnable;
    }
    *ret_app = (uint32_t)p->n_apps++;
    return 0;
}

static void add_to(struct asym_procfs *p, struct asym_app *app, const struct asym_listed *l)
{
    struct asym_members *members = members_at(p, &l->place);
    app->n_tasks += l->sums.n_tasks;
    app->runnable_instant += l->sums.instant;
    app->runnable_mean += l->sums.runnable;
    if (!l->place.cgroup || l->sums.runnable <= members->busiest)
        return;
    members->busiest = l->sums.runnable;
    memcpy(app->comm, l->comm, sizeof app->comm);
}

/* The tasks are ordered by process. Reorder them so that those of one application are adjacent. */
static int sort_tasks(struct asym_procfs *p)
{
    if (asym_reserve(&p->sorted, p->n_tasks, &p->sorted_capacity, sizeof *p->sorted) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < p->n_apps; i++)
        p->apps[i].n_tasks = 0;
    for (size_t i = 0; i < p->n_listed; i++) {
        const struct asym_process_sums *sums = &p->listed[i].sums;
        struct asym_app *app = &p->apps[p->out_procs[i].app];
        memcpy(p->sorted + app->first_task + app->n_tasks, p->tasks + sums->first_task,
               sums->n_tasks * sizeof *p->tasks);
        app->n_tasks += sums->n_tasks;
    }
    return 0;
}

int asym_procfs_make_apps(struct asym_procfs *p)
{
    uint32_t first = 0;
    for (size_t i = 0; i < p->n_listed; i++) {
        int r = app_of(p, i, &p->out_procs[i].app);
        if (r < 0)
            return r;
        add_to(p, &p->apps[p->out_procs[i].app], &p->listed[i]);
    }
    for (size_t i = 0; i < p->n_apps; i++) {
        p->apps[i].first_task = first;
        first += p->apps[i].n_tasks;
    }
    return p->config.group == ASYM_GROUP_PROCESS ? 0 : sort_tasks(p);
}

/* Returns the index of the process in the last snapshot, or n_listed. */
static size_t find_listed(const struct asym_procfs *p, const struct asym_process *proc)
{
    size_t i = 0;
    while (i < p->n_listed && (p->out_procs[i].id.tgid != proc->pid || p->out_procs[i].id.start != proc->start))
        i++;
    return i;
}

/* Move the last task of p->tasks behind those of its process, number i, in the snapshot. 1; -ENOMEM. */
static int insert(struct asym_procfs *p, size_t i)
{
    const bool is_sorted = p->config.group != ASYM_GROUP_PROCESS;
    const uint32_t n = (uint32_t)p->n_tasks - 1;
    struct asym_task task = p->tasks[n];
    task.proc = (uint32_t)i;
    if (is_sorted && asym_grow(&p->sorted, n, &p->sorted_capacity, sizeof *p->sorted) < 0) {
        p->n_tasks--;
        return -ENOMEM;
    }
    struct asym_task *tasks = is_sorted ? p->sorted : p->tasks;
    struct asym_app *app = &p->apps[p->out_procs[i].app];
    uint32_t at = app->first_task + app->n_tasks;
    while (at > app->first_task && tasks[at - 1].proc != i)
        at--;
    memmove(&tasks[at + 1], &tasks[at], (n - at) * sizeof *tasks);
    tasks[at] = task;
    for (size_t k = 0; k < p->n_apps; k++)
        p->apps[k].first_task += &p->apps[k] != app && p->apps[k].first_task >= at;
    app->n_tasks++;
    p->issued.tasks = tasks;
    p->issued.n_tasks = p->n_tasks;
    return 1;
}

int asym_procfs_list_sleeper(struct asym_source *source, int32_t tgid, int32_t tid)
{
    struct asym_procfs *p = asym_procfs_of(source);
    struct asym_process *proc = asym_procfs_find(p, tgid);
    struct asym_pthread *t = proc ? asym_procfs_find_thread(proc, tid) : NULL;
    struct asym_stat stat;
    const size_t n = p->n_tasks, i = t ? find_listed(p, proc) : 0;
    if (!p->issued.machine || !t || i == p->n_listed)
        return 0;
    for (size_t k = 0; k < n; k++)
        if (p->issued.tasks[k].id.tid == tid)
            return 0;
    int r = asym_procfs_read_stat(p, tgid, tid, &stat);
    if (r < 0 || stat.start != t->start || stat.state == 'Z' || stat.state == 'X')
        return r < 0 ? r : 0;
    asym_procfs_list_task(p, proc, t, &stat, 0, 0);
    /* The array may have moved, even where the task cannot be added. */
    if (p->config.group == ASYM_GROUP_PROCESS)
        p->issued.tasks = p->tasks;
    return p->n_tasks > n ? insert(p, i) : 0;
}
