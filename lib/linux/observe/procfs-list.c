/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Group the sampled threads into processes and applications. */
#include "linux/observe/procfs-internal.h"

#include <errno.h>
#include <string.h>

void asym_procfs_take_rule(const struct asym_procfs *p, const struct asym_process *proc, struct asym_proc *ret)
{
    ret->flags = proc->flags | (asym_procfs_is_unknown(p, proc) ? (uint32_t)ASYM_PROC_UNKNOWN : 0);
    ret->rule = proc->rule;
    ret->rule_name = proc->rule_name;
    ret->rule_facts = proc->rule_facts;
    ret->profile = proc->profile;
}

int asym_procfs_list_process(struct asym_procfs *p, const struct asym_process *proc,
                             const struct asym_process_sums *sums)
{
    if (asym_procfs_grow(&p->listed, p->n_listed, &p->listed_capacity, sizeof *p->listed) < 0 ||
        asym_procfs_grow(&p->out_procs, p->n_listed, &p->out_procs_capacity, sizeof *p->out_procs) < 0)
        return -ENOMEM;
    struct asym_listed *l = &p->listed[p->n_listed];
    *l = (struct asym_listed){
        .group = p->config.group == ASYM_GROUP_CGROUP ? proc->group : 0,
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

/* The application of a process. The first process of an application adds it. 0; -ENOMEM. */
static int app_of(struct asym_procfs *p, size_t i, uint32_t *ret_app)
{
    struct asym_listed *l = &p->listed[i];
    struct asym_cgroup *g = l->group ? &p->cgroups.groups[l->group - 1] : NULL;
    if (g && g->sample == p->n_samples + 1) {
        *ret_app = g->app;
        return 0;
    }
    if (asym_procfs_grow(&p->apps, p->n_apps, &p->apps_capacity, sizeof *p->apps) < 0)
        return -ENOMEM;
    struct asym_app *app = &p->apps[p->n_apps];
    *app = (struct asym_app){.id = p->out_procs[i].id, .n_threads = l->n_threads};
    memcpy(app->comm, l->comm, sizeof app->comm);
    if (g) {
        app->id = (struct asym_taskid){.start = g->hash};
        app->cgroup = g->path;
        app->n_threads = g->n_threads;
        g->sample = p->n_samples + 1;
        g->app = (uint32_t)p->n_apps;
        g->busiest = l->sums.runnable;
    }
    *ret_app = (uint32_t)p->n_apps++;
    return 0;
}

static void add_to(struct asym_procfs *p, struct asym_app *app, const struct asym_listed *l)
{
    struct asym_cgroup *g = l->group ? &p->cgroups.groups[l->group - 1] : NULL;
    app->n_tasks += l->sums.n_tasks;
    app->runnable_instant += l->sums.instant;
    app->runnable_mean += l->sums.runnable;
    if (g && l->sums.runnable > g->busiest) {
        g->busiest = l->sums.runnable;
        memcpy(app->comm, l->comm, sizeof app->comm);
    }
}

/* The tasks are ordered by process. Reorder them so that those of one cgroup are adjacent. */
static int sort_tasks(struct asym_procfs *p)
{
    while (p->sorted_capacity < p->n_tasks)
        if (asym_procfs_grow(&p->sorted, p->sorted_capacity, &p->sorted_capacity, sizeof *p->sorted) < 0)
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
    return p->config.group == ASYM_GROUP_CGROUP ? sort_tasks(p) : 0;
}
