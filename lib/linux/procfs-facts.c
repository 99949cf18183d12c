/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts that change seldom: masks, cpusets, cgroups, libraries, what the rules say. */
#include "linux/procfs-internal.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/parse.h"
#include "linux/maps.h"

/* Masks and cgroups seldom differ; more contents than this means that most are no longer in use. */
#define MASKS_MAX   4096
#define CGROUPS_MAX 4096

/* A look finds a mask changed, and the core takes it for somebody else's after two more. */
#define LOOKS_IN_DOUBT 2

/* Which cgroup a process is in is read anew this often. */
#define CGROUP_AGE ASYM_SEC

/*
 * Maps take 50 us, so that they are read of those alone that they matter for, not of programs that come and go, and again
 * only where something was mapped since; then, as many do that all the time, not before they are a tenth older than when they
 * were read: at each look while a program loads its libraries and settles, and once a second later.
 */
#define MAPS_FROM (100 * ASYM_MSEC)
#define MAPS_AGE  ASYM_SEC

/* Between two snapshots nobody looks at masks or paths: when there are too many, all are dropped and read again. */
void asym_procfs_trim(struct asym_procfs *p)
{
    if (p->masks.n <= MASKS_MAX && p->cgroups.n <= CGROUPS_MAX)
        return;
    asym_mask_pool_done(&p->masks);
    asym_cgroups_clear(&p->cgroups);
    for (size_t i = 0; i < p->n_procs; i++) {
        struct asym_process *proc = p->procs[i];
        proc->cpuset = proc->group = 0;
        proc->fresh |= p->config.group == ASYM_GROUP_CGROUP;
        for (uint32_t k = 0; k < proc->n_threads; k++)
            proc->threads[k].affinity = proc->threads[k].mask = NULL;
    }
}

static int status_mask(struct asym_procfs *p, const struct asym_process *proc, int32_t tid, struct asym_mask *ret)
{
    char path[64];
    const char *value;
    size_t len;
    snprintf(path, sizeof path, "proc/%d/task/%d/status", (int)proc->pid, (int)tid);
    ssize_t n = asym_procfs_read(p, path, p->buffer, ASYM_PROCFS_BUFFER);
    if (n < 0)
        return (int)n;
    int r = asym_parse_status_line(p->buffer, (size_t)n, "Cpus_allowed", &value, &len);
    return r < 0 ? -EINVAL : asym_mask_parse_hex(value, len, ret);
}

void asym_procfs_note_online(struct asym_procfs *p)
{
    char text[ASYM_MASK_LIST_MAX + 2];
    struct asym_mask online;
    if (!p->config.root->live)
        return;
    const ssize_t n = asym_procfs_read(p, "sys/devices/system/cpu/online", text, sizeof text);
    const bool all = n > 0 && asym_mask_parse_list(text, (size_t)n, &online) == 0 &&
                     asym_mask_within(&p->cgroups.possible, &online);
    /* What the call told while a CPU went is not to be kept. */
    for (size_t i = 0; p->all_online && !all && i < p->n_procs; i++)
        for (uint32_t k = 0; k < p->procs[i]->n_threads; k++)
            p->procs[i]->threads[k].affinity = NULL;
    p->all_online = all;
}

/*
 * A status that is longer than the buffer holds ten thousand groups and more, takes the kernel milliseconds and is not read
 * again. The mask of such a process lacks the CPUs that are offline, unless it has all others.
 */
static int long_way_to_mask(struct asym_procfs *p, struct asym_process *proc, const struct asym_pthread *t,
                            const struct asym_mask *now, struct asym_mask *ret)
{
    int r = proc->status_fails ? -EFBIG : status_mask(p, proc, t->tid, ret);
    if (!p->config.root->live || (r != -EINVAL && r != -EFBIG))
        return r;
    proc->status_fails = true;
    *ret = asym_mask_within(&p->config.machine->online, now) ? p->cgroups.possible : *now;
    return 0;
}

/*
 * sched_getaffinity costs half a microsecond, but hides offline CPUs; status shows them, at twenty. So the file is read only
 * where there are offline CPUs, and when the call shows that the mask has changed.
 */
static int read_mask(struct asym_procfs *p, struct asym_process *proc, struct asym_pthread *t)
{
    struct asym_mask now = {0}, allowed;
    if (p->config.root->live) {
        if (sched_getaffinity(t->tid, sizeof now, (cpu_set_t *)(void *)&now) < 0)
            return -errno;
        if (t->mask && t->affinity && asym_mask_equal(t->affinity, &now))
            return 0;
    } else if (t->mask) {
        return 0;
    }
    allowed = now;
    int r = p->all_online ? 0 : long_way_to_mask(p, proc, t, &now, &allowed);
    if (r < 0)
        return r;
    allowed = asym_mask_and(&allowed, &p->cgroups.possible);
    t->affinity = asym_mask_pool_get(&p->masks, &now);
    t->mask = asym_mask_pool_get(&p->masks, &allowed);
    return t->affinity && t->mask ? 0 : -ENOMEM;
}

static void know_mask(struct asym_procfs *p, const struct asym_action *action)
{
    const struct asym_process *proc = asym_pid_table_find(&p->by_pid, action->id.tgid);
    struct asym_pthread *t = proc ? asym_procfs_find_thread(proc, action->id.tid) : NULL;
    if (!t || t->start != action->id.start || !t->mask)
        return;
    const struct asym_mask online = asym_mask_and(&action->mask, &p->config.machine->online),
                           possible = asym_mask_and(&action->mask, &p->cgroups.possible);
    t->affinity = asym_mask_pool_get(&p->masks, &online);
    t->mask = asym_mask_pool_get(&p->masks, &possible);
    if (action->via > 0)
        t->put_on = action->via;
    else if (asym_mask_count(&online) == 1)
        t->put_on = (uint32_t)asym_mask_next(&online, 0) + 1;
}

void asym_procfs_done(struct asym_source *source, const struct asym_action *actions,
                      const struct asym_outcome *outcomes, size_t n)
{
    struct asym_procfs *p = asym_procfs_of(source);
    for (size_t i = 0; i < n; i++)
        if (outcomes[i].verdict == ASYM_VERDICT_DONE && actions[i].kind == ASYM_ACTION_STEER)
            know_mask(p, &actions[i]);
}

void asym_procfs_read_cgroup(struct asym_procfs *p, struct asym_process *proc)
{
    char path[64];
    const char *name;
    size_t len;
    int v1;
    if (proc->cpuset != 0 && p->now - proc->cgroup_read_at < CGROUP_AGE)
        return;
    snprintf(path, sizeof path, "proc/%d/cgroup", (int)proc->pid);
    ssize_t n = asym_procfs_read(p, path, p->buffer, ASYM_PROCFS_BUFFER);
    if (n >= 0 && asym_parse_cgroup(p->buffer, (size_t)n, &name, &len, &v1) == 0)
        proc->cpuset = asym_cgroups_find(&p->cgroups, v1 ? ASYM_HIERARCHY_CPUSET : ASYM_HIERARCHY_UNIFIED, name, len);
    else
        proc->cpuset = asym_cgroups_find(&p->cgroups, ASYM_HIERARCHY_UNIFIED, "/", 1);
    if (n >= 0 && asym_parse_cgroup_name(p->buffer, (size_t)n, &name, &len) == 0)
        proc->group = asym_cgroups_find(&p->cgroups, ASYM_HIERARCHY_NAMED, name, len);
    proc->cgroup_read_at = p->now;
}

int asym_procfs_masks(struct asym_procfs *p, struct asym_process *proc, struct asym_pthread *t, struct asym_task *task)
{
    const struct asym_mask *before = t->affinity;
    int r = read_mask(p, proc, t);
    if (r < 0)
        return r;
    /*
     * Who changed it, the kernel for a cpuset or somebody else, is told by the cpuset as it is now, not a while ago, in each
     * of the looks that the core has doubts in.
     */
    const bool changed = before && before != t->affinity;
    if ((changed || proc->doubt > 0) && proc->cgroup_read_at < p->now) {
        proc->cgroup_read_at = 0;
        asym_cgroups_expire(&p->cgroups, p->now);
        proc->doubt -= proc->doubt > 0;
    }
    if (changed)
        proc->doubt = LOOKS_IN_DOUBT;
    asym_procfs_read_cgroup(p, proc);
    const struct asym_mask *cpus = asym_cgroups_cpus(&p->cgroups, proc->cpuset, p->now, &p->masks);
    if (cpus)
        cpus = asym_cgroups_for(&p->cgroups, cpus, t->mask, &p->masks);
    if (!cpus)
        return -ENOMEM;
    task->mask = t->mask;
    task->cpuset = cpus;
    return 0;
}

/*
 * LLVM's OpenMP sets the mask of the thread that wants a team once more when it has made the others: on a busy machine that
 * may be long after. It is left to itself until it has run a little from then on, if it wants to.
 */
static bool has_yet_to_set(const struct asym_procfs *p, struct asym_process *proc)
{
    const struct asym_pthread *leader = asym_procfs_find_thread(proc, proc->pid);
    if (!(proc->flags & ASYM_PROC_COUNTS_LATE) || !leader)
        return false;
    if (proc->threads_at == 0) {
        proc->threads_at = p->now;
        proc->threads_ns = leader->before.run_ns;
    }
    return p->now - proc->threads_at < MAPS_AGE && leader->before.run_ns - proc->threads_ns < ASYM_HARDLY_RAN * 1000;
}

static uint32_t owner_of(const struct asym_procfs *p, const struct asym_process *proc)
{
    char path[32];
    struct stat st;
    snprintf(path, sizeof path, "proc/%d", (int)proc->pid);
    return fstatat(p->config.root->fd, path, &st, 0) == 0 ? st.st_uid : 0;
}

/* Ask for facts, or read them at once. 1: *ret has them; 0: they will come, or are to be asked for later; -1: they will not. */
static int ask(struct asym_procfs *p, struct asym_process *proc, uint32_t what, struct asym_read_answer *ret)
{
    const struct asym_read_request request = {
        .pid = proc->pid,
        .what = what,
        .start = proc->start,
        .uid = p->config.reader ? owner_of(p, proc) : 0,
        .tag = proc->program,
        .maps_most = p->config.reader ? ASYM_MAX(proc->maps_most, ASYM_READ_MAPS_FIRST) : ASYM_READ_MAPS_MOST,
    };
    if (!p->config.reader) {
        asym_proc_read(p->config.root, &request, p->config.build_id, ret);
        return 1;
    }
    int r = p->config.reader->ask(p->config.reader, &request);
    if (r == 0)
        proc->asked |= what;
    if (r == 0 || r == -EAGAIN)
        return 0;
    proc->unread |= what;
    return -1;
}

static void take_maps(struct asym_process *proc, const struct asym_read_answer *a)
{
    if (a->maps & ASYM_MAPS_COUNTS_LATE)
        proc->flags |= ASYM_PROC_COUNTS_LATE;
    else
        proc->flags &= ~(uint32_t)ASYM_PROC_COUNTS_LATE;
    /* Libraries stand last: what was not read may be one. Four times as much is read at another look. */
    const uint32_t most = ASYM_MAX(proc->maps_most, ASYM_READ_MAPS_FIRST);
    proc->maps_known = !a->maps_cut || a->maps & ASYM_MAPS_COUNTS_LATE || most >= ASYM_READ_MAPS_MOST;
    if (proc->maps_known)
        return;
    proc->maps_most = 4 * most;
    proc->maps_read_at = 0;
}

static asym_usec begun_at(const struct asym_process *proc)
{
    return ASYM_MAX(proc->born, proc->last_exec);
}

void asym_procfs_read_maps(struct asym_procfs *p, struct asym_process *proc)
{
    struct asym_read_answer answer;
    if (proc->n_threads != 1) {
        if (has_yet_to_set(p, proc))
            return;
        proc->flags &= ~(uint32_t)ASYM_PROC_COUNTS_LATE;
        proc->maps_read_at = proc->threads_at = 0;
        return;
    }
    proc->threads_at = 0;
    /* Its memory is locked while it waits in mmap for a file system that hangs: a reader would hang too. */
    if (p->now < begun_at(proc) + MAPS_FROM || proc->threads[0].state == 'D' ||
        (proc->asked | proc->unread) & ASYM_READ_MAPS)
        return;
    const asym_usec age = p->now - begun_at(proc), rest = ASYM_MIN(MAPS_AGE, age / 10);
    if (proc->maps_read_at != 0 && (proc->vsize == proc->maps_vsize || p->now - proc->maps_read_at < rest))
        return;
    const int r = ask(p, proc, ASYM_READ_MAPS, &answer);
    if (r == 0 && !(proc->asked & ASYM_READ_MAPS))
        return;
    proc->maps_read_at = p->now;
    proc->maps_vsize = proc->vsize;
    if (r > 0)
        take_maps(proc, &answer);
}

/*
 * Not yet: the reader has yet to answer for the first time, or for a program that is young enough to be loading its libraries.
 * Not at all: reading it makes readers hang. Then a process is left alone until it has threads, and a rule that looks at the
 * command line does not match.
 */
bool asym_procfs_is_unknown(const struct asym_procfs *p, const struct asym_process *proc)
{
    if (!p->config.reader)
        return false;
    if (!proc->matched && !proc->was_matched)
        return true;
    if (proc->n_threads != 1 || proc->rule_name || p->now < begun_at(proc) + MAPS_FROM)
        return false;
    return !proc->maps_known || (proc->asked & ASYM_READ_MAPS && p->now < begun_at(proc) + MAPS_AGE);
}

void asym_procfs_forget_facts(struct asym_process *proc)
{
    proc->matched = proc->was_matched = proc->maps_known = false;
    proc->asked = proc->unread = 0;
    proc->maps_most = 0;
    proc->maps_read_at = 0;
    proc->program++;
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

/* The effective one, as the directory has it on a live machine, whether or not the process may be dumped. */
static uid_t read_uid(struct asym_procfs *p, const struct asym_process *proc)
{
    char path[64];
    const char *value;
    size_t len;
    uint64_t uid;
    struct stat st;
    snprintf(path, sizeof path, "proc/%d", (int)proc->pid);
    if (p->config.root->live)
        return fstatat(p->config.root->fd, path, &st, 0) == 0 ? st.st_uid : (uid_t)-1;
    snprintf(path, sizeof path, "proc/%d/status", (int)proc->pid);
    ssize_t n = asym_procfs_read(p, path, p->buffer, ASYM_PROCFS_BUFFER);
    if (n < 0 || asym_parse_status_line(p->buffer, (size_t)n, "Uid", &value, &len) < 0)
        return (uid_t)-1;
    const char *second = memchr(value, '\t', len);
    if (!second)
        return (uid_t)-1;
    len -= (size_t)(++second - value);
    const char *stop = memchr(second, '\t', len);
    return asym_parse_u64(second, stop ? (size_t)(stop - second) : len, &uid) < 0 ? (uid_t)-1 : (uid_t)uid;
}

/* a: the facts that were asked for; those that are not known are empty. */
static void match(struct asym_procfs *p, struct asym_process *proc, const char *exe, const struct asym_read_answer *a)
{
    const unsigned needs = p->config.rules ? asym_rules_need(p->config.rules) : 0;
    const bool has_cmdline = a->what & ASYM_READ_CMDLINE && a->error == 0;
    struct asym_rule_subject subject = {
        .comm = proc->comm, .exe = exe, .uid = (uid_t)-1, .cmdline = has_cmdline ? a->cmdline : NULL};
    proc->matched = proc->was_matched = true;
    proc->rule = ASYM_RULE_STEER;
    proc->rule_name = NULL;
    proc->profile = NULL;
    if (p->config.profile_of && exe)
        proc->profile = p->config.profile_of(p->config.profile_ctx, exe, a->build_id);
    if (!needs)
        return;
    if (needs & ASYM_RULE_NEEDS_UID)
        subject.uid = read_uid(p, proc);
    if (needs & ASYM_RULE_NEEDS_CGROUP) {
        asym_procfs_read_cgroup(p, proc);
        subject.cgroup = proc->group ? p->cgroups.groups[proc->group - 1].path : NULL;
    }
    proc->rule = asym_rules_match(p->config.rules, &subject, &proc->rule_name);
}

#define MATCH_FACTS (ASYM_READ_CMDLINE | ASYM_READ_BUILD_ID)

static const char *exe_for_match(const struct asym_procfs *p, const struct asym_process *proc, char *buf, size_t size)
{
    const unsigned needs = p->config.rules ? asym_rules_need(p->config.rules) : 0;
    return needs & ASYM_RULE_NEEDS_EXE || p->config.profile_of ? read_exe(p, proc, buf, size) : NULL;
}

/*
 * Each fact costs a file, so only what some rule looks at is read, once per process and exec. Until the answer comes the process
 * keeps the rule that it had.
 */
void asym_procfs_match(struct asym_procfs *p, struct asym_process *proc)
{
    char buf[4096];
    struct asym_read_answer answer = {.what = 0};
    const unsigned needs = p->config.rules ? asym_rules_need(p->config.rules) : 0;
    uint32_t what = needs & ASYM_RULE_NEEDS_CMDLINE ? ASYM_READ_CMDLINE : 0;
    if (proc->matched || proc->asked & MATCH_FACTS)
        return;
    const char *exe = exe_for_match(p, proc, buf, sizeof buf);
    if (exe && p->config.wants_build_id && p->config.wants_build_id(p->config.profile_ctx, exe))
        what |= ASYM_READ_BUILD_ID;
    what &= ~proc->unread;
    if (what != 0 && ask(p, proc, what, &answer) == 0)
        return;
    proc->maps_read_at = 0;
    match(p, proc, exe, &answer);
}

static void take_answer(struct asym_procfs *p, const struct asym_read_answer *a)
{
    char exe[4096];
    struct asym_process *proc = asym_pid_table_find(&p->by_pid, a->pid);
    if (!proc || proc->start != a->start || proc->program != a->tag)
        return;
    proc->asked &= ~a->what;
    if (a->error < 0 && a->what & ASYM_READ_MAPS)
        proc->maps_read_at = 0;
    if (a->error == -ETIME)
        proc->unread |= a->what;
    else if (a->error < 0)
        return;
    if (a->what & ASYM_READ_MAPS && a->error == 0)
        take_maps(proc, a);
    if (a->what & MATCH_FACTS) {
        proc->maps_read_at = 0;
        match(p, proc, exe_for_match(p, proc, exe, sizeof exe), a);
    }
}

void asym_procfs_take_answers(struct asym_procfs *p)
{
    struct asym_read_answer answer;
    while (p->config.reader && p->config.reader->take(p->config.reader, &answer) > 0)
        take_answer(p, &answer);
}
