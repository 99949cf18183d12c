/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts that change seldom: masks, cpusets, cgroups, what the rules say. */
#include "linux/procfs-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/parse.h"

/* Masks seldom differ; more contents than this means that most are no longer in use. */
#define MASKS_MAX 4096

/* Cgroups and cpusets are read anew this often. */
#define CPUSET_AGE ASYM_SEC

void asym_mask_pool_done(struct asym_mask_pool *pool)
{
    for (size_t i = 0; i < pool->n; i++)
        free(pool->masks[i]);
    free(pool->masks);
    *pool = (struct asym_mask_pool){0};
}

const struct asym_mask *asym_mask_pool_get(struct asym_mask_pool *pool, const struct asym_mask *m)
{
    for (size_t i = 0; i < pool->n; i++)
        if (asym_mask_equal(pool->masks[i], m))
            return pool->masks[i];
    struct asym_mask *copy = malloc(sizeof *copy);
    if (!copy || asym_grow(&pool->masks, pool->n, &pool->capacity, sizeof(struct asym_mask *)) < 0) {
        free(copy);
        return NULL;
    }
    *copy = *m;
    pool->masks[pool->n++] = copy;
    return copy;
}

/* Between two snapshots nobody looks at masks: when there are too many, all are dropped and read again. */
static void forget_masks(struct asym_procfs *p)
{
    asym_mask_pool_done(&p->masks);
    for (size_t i = 0; i < p->n_procs; i++)
        for (uint32_t k = 0; k < p->procs[i]->n_threads; k++)
            p->procs[i]->threads[k].affinity = p->procs[i]->threads[k].mask = NULL;
    for (uint32_t i = 0; i < p->n_cgroups; i++)
        p->cgroups[i].cpus = NULL;
}

void asym_facts_start(struct asym_procfs *p)
{
    if (p->masks.n > MASKS_MAX)
        forget_masks(p);
}

static int status_mask(struct asym_procfs *p, const struct asym_process *proc, int32_t tid, struct asym_mask *ret)
{
    char path[64];
    const char *value;
    size_t len;
    snprintf(path, sizeof path, "proc/%d/task/%d/status", (int)proc->pid, (int)tid);
    ssize_t n = asym_root_read(p->config.root, path, p->buffer, ASYM_PROCFS_BUFFER);
    if (n < 0)
        return (int)n;
    int r = asym_parse_status_line(p->buffer, (size_t)n, "Cpus_allowed", &value, &len);
    return r < 0 ? r : asym_mask_parse_hex(value, len, ret);
}

/*
 * sched_getaffinity costs half a microsecond, but hides offline CPUs; status shows them, at twenty. So the call tells
 * whether the file has to be read again. Both are cut to the possible CPUs: a kernel may print more bits than it has.
 */
int asym_facts_mask(struct asym_procfs *p, const struct asym_process *proc, struct asym_pthread *t,
                    const struct asym_mask **ret_mask)
{
    struct asym_mask now = {0};
    if (p->config.root->live) {
        if (sched_getaffinity(t->tid, sizeof now, (cpu_set_t *)(void *)&now) < 0)
            return -errno;
        if (t->mask && t->affinity && asym_mask_equal(t->affinity, &now)) {
            *ret_mask = t->mask;
            return 0;
        }
    }
    struct asym_mask allowed;
    int r = status_mask(p, proc, t->tid, &allowed);
    if (r < 0)
        return r;
    allowed = asym_mask_and(&allowed, &p->possible);
    t->affinity = asym_mask_pool_get(&p->masks, &now);
    t->mask = asym_mask_pool_get(&p->masks, &allowed);
    if (!t->affinity || !t->mask)
        return -ENOMEM;
    *ret_mask = t->mask;
    return 0;
}

/* A cgroup without a cpuset of its own has its parent's. */
static void read_cpuset(struct asym_procfs *p, struct asym_cgroup *g, asym_usec now)
{
    char path[4352], text[4096];
    size_t len = strlen(g->path);
    struct asym_mask cpus = p->possible;
    for (;;) {
        snprintf(path, sizeof path,
                 g->v1 ? "sys/fs/cgroup/cpuset%.*s/cpuset.effective_cpus" : "sys/fs/cgroup%.*s/cpuset.cpus.effective",
                 (int)len, g->path);
        ssize_t n = asym_root_read(p->config.root, path, text, sizeof text);
        struct asym_mask m;
        if (n >= 0 && asym_mask_parse_list(text, (size_t)n, &m) == 0 && !asym_mask_empty(&m)) {
            cpus = asym_mask_and(&m, &p->possible);
            break;
        }
        if (len == 0)
            break;
        while (len > 0 && g->path[--len] != '/')
            ;
    }
    /* Threads are kept off isolated CPUs unless they ask for them, which is a mask of their own choice. */
    cpus = asym_mask_minus(&cpus, &p->isolated);
    g->cpus = asym_mask_pool_get(&p->masks, &cpus);
    g->read_at = now;
}

static uint32_t find_cgroup(struct asym_procfs *p, const char *path, size_t len, bool v1)
{
    for (uint32_t i = 0; i < p->n_cgroups; i++)
        if (p->cgroups[i].v1 == v1 && strncmp(p->cgroups[i].path, path, len) == 0 && p->cgroups[i].path[len] == '\0')
            return i + 1;
    size_t capacity = p->cgroups_capacity;
    if (asym_grow(&p->cgroups, p->n_cgroups, &capacity, sizeof *p->cgroups) < 0)
        return 0;
    p->cgroups_capacity = (uint32_t)capacity;
    char *copy = strndup(path, len);
    if (!copy)
        return 0;
    p->cgroups[p->n_cgroups++] = (struct asym_cgroup){.path = copy, .v1 = v1};
    return p->n_cgroups;
}

const struct asym_mask *asym_facts_cpuset(struct asym_procfs *p, struct asym_process *proc, asym_usec now)
{
    if (proc->cgroup == 0 || now - proc->cgroup_read_at >= CPUSET_AGE) {
        char path[64];
        const char *group;
        size_t len;
        int v1;
        snprintf(path, sizeof path, "proc/%d/cgroup", (int)proc->pid);
        ssize_t n = asym_root_read(p->config.root, path, p->buffer, ASYM_PROCFS_BUFFER);
        if (n >= 0 && asym_parse_cgroup(p->buffer, (size_t)n, &group, &len, &v1) == 0)
            proc->cgroup = find_cgroup(p, len == 1 ? "" : group, len == 1 ? 0 : len, v1);
        else
            proc->cgroup = find_cgroup(p, "", 0, false);
        proc->cgroup_read_at = now;
    }
    if (proc->cgroup == 0)
        return asym_mask_pool_get(&p->masks, &p->possible);
    struct asym_cgroup *g = &p->cgroups[proc->cgroup - 1];
    if (!g->cpus || now - g->read_at >= CPUSET_AGE)
        read_cpuset(p, g, now);
    return g->cpus;
}

static const char *read_text(const struct asym_procfs *p, const struct asym_process *proc, const char *name, char *buf,
                             size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "proc/%d/%s", (int)proc->pid, name);
    ssize_t n = asym_root_read(p->config.root, path, buf, size);
    if (n < 0)
        return NULL;
    while (n > 0 && buf[n - 1] == '\0')
        n--;
    for (ssize_t i = 0; i < n; i++)
        if (buf[i] == '\0')
            buf[i] = ' ';
    buf[n] = '\0';
    return buf;
}

static const char *read_exe(const struct asym_procfs *p, const struct asym_process *proc, char *buf, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "proc/%d/exe", (int)proc->pid);
    ssize_t n = readlinkat(p->config.root->fd, path, buf, size - 1);
    if (n < 0)
        return NULL;
    buf[n] = '\0';
    return buf;
}

/* Each fact costs a file, so only what some rule looks at is read, once per process and exec. */
void asym_facts_rule(struct asym_procfs *p, struct asym_process *proc)
{
    char exe[4096], cgroup[4096], path[64];
    const char *group;
    struct stat st;
    size_t len;
    int v1;
    if (proc->matched)
        return;
    proc->matched = true;
    proc->rule = ASYM_RULE_STEER;
    proc->rule_name = NULL;
    unsigned needs = p->config.rules ? asym_rules_need(p->config.rules) : 0;
    if (!needs)
        return;
    struct asym_rule_subject subject = {.comm = proc->comm, .uid = (uid_t)-1};
    snprintf(path, sizeof path, "proc/%d", (int)proc->pid);
    if (needs & ASYM_RULE_NEEDS_UID && fstatat(p->config.root->fd, path, &st, 0) == 0)
        subject.uid = st.st_uid;
    if (needs & ASYM_RULE_NEEDS_EXE)
        subject.exe = read_exe(p, proc, exe, sizeof exe);
    if (needs & ASYM_RULE_NEEDS_CGROUP && read_text(p, proc, "cgroup", p->buffer, ASYM_PROCFS_BUFFER) &&
        asym_parse_cgroup(p->buffer, strlen(p->buffer), &group, &len, &v1) == 0) {
        snprintf(cgroup, sizeof cgroup, "%.*s", (int)len, group);
        subject.cgroup = cgroup;
    }
    if (needs & ASYM_RULE_NEEDS_CMDLINE)
        subject.cmdline = read_text(p, proc, "cmdline", p->buffer, ASYM_PROCFS_BUFFER);
    proc->rule = asym_rules_match(p->config.rules, &subject, &proc->rule_name);
}
