/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts that seldom change: masks, cpusets, cgroups, libraries, rules. */
#include "linux/observe/procfs-internal.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "linux/observe/proc-owner.h"
#include "linux/observe/proc-reader.h"

/* Few masks and cgroups differ. When there are more entries than this, most are no longer in use. */
#define MASKS_MAX   4096
#define CGROUPS_MAX 4096

/* One sample finds a mask changed; after two more the core takes the change for an external one. */
#define SAMPLES_SUSPECTED 2

/* The cgroup of a process is read again after this time. */
#define CGROUP_AGE ASYM_SEC

/*
 * Reading maps takes 50 us. asymd therefore reads them only for processes with one thread that are older than MAPS_FROM, and
 * again only after the process has mapped something. Many programs map all the time, so that a tenth of the process's age, at
 * most MAPS_AGE, has to pass between two readings: each sample reads them while a program loads its libraries, and later one a
 * second.
 */
#define MAPS_FROM (100 * ASYM_MSEC)
#define MAPS_AGE  ASYM_SEC

/*
 * For so long asymd leaves a process alone whose facts the reader has not read. Other users can keep the reader busy, and must not
 * keep asymd from steering this one: it then goes by the facts that it has, until the others come.
 */
#define PATIENCE (10 * ASYM_SEC)

/* No pointer to a mask or path is in use between two snapshots. When there are too many, all are dropped and read again. */
void asym_procfs_trim(struct asym_procfs *p)
{
    if (p->masks.index.n <= MASKS_MAX && p->cgroups.n <= CGROUPS_MAX)
        return;
    asym_mask_table_done(&p->masks);
    asym_cgroups_clear(&p->cgroups);
    for (size_t i = 0; i < p->n_procs; i++) {
        struct asym_process *proc = p->procs[i];
        proc->cpuset = proc->group = 0;
        if (p->config.group != ASYM_GROUP_PROCESS)
            asym_procfs_expect(proc, ASYM_DUE_READ);
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
    const ssize_t n = asym_procfs_read_kept(p, &p->online_fd, "sys/devices/system/cpu/online", text, sizeof text);
    const bool all = n > 0 && asym_mask_parse_list(text, (size_t)n, &online) == 0 &&
                     asym_mask_within(&p->cgroups.possible, &online);
    /* sched_getaffinity may have left out a CPU that was going offline: discard its results. */
    for (size_t i = 0; p->all_online && !all && i < p->n_procs; i++)
        for (uint32_t k = 0; k < p->procs[i]->n_threads; k++)
            p->procs[i]->threads[k].affinity = NULL;
    p->all_online = all;
    p->knows_online = true;
}

/*
 * A status that is longer than the buffer lists ten thousand groups or more. The kernel takes milliseconds for it, so asymd
 * does not read it again. The mask of such a process lacks the offline CPUs, unless it has all online ones.
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
 * A thread that calls exec has the leader's number then, and its own mask. The next sample must read the mask together with the
 * exec: otherwise the core takes it for one that the leader has set itself.
 */
static bool may_be_of_caller_of_exec(struct asym_procfs *p, struct asym_process *proc, const struct asym_pthread *t)
{
    struct asym_stat stat;
    if (t->tid != proc->pid || !t->affinity || asym_procfs_read_stat(p, proc->pid, 0, &stat) < 0)
        return false;
    return asym_procfs_is_executing(proc, &stat) || asym_image_has_changed(&proc->image, &stat.image);
}

/*
 * sched_getaffinity costs 0.5 us, but hides offline CPUs. status shows them, and costs 20 us. asymd therefore reads the file
 * only where CPUs are offline, and only when the call shows that the mask has changed. Only then it looks which CPUs are offline,
 * and calls again: one that comes meanwhile would be missing in the mask for good.
 */
static int read_mask(struct asym_procfs *p, struct asym_process *proc, struct asym_pthread *t)
{
    struct asym_mask now = {0}, allowed;
    if (t->mask && t->affinity && asym_procfs_is_as_set(p, t))
        return 0;
    if (p->config.root->live) {
        if (sched_getaffinity(t->tid, sizeof now, (cpu_set_t *)(void *)&now) < 0)
            return -errno;
        if (t->mask && t->affinity && asym_mask_equal(t->affinity, &now))
            return 0;
        if (!p->knows_online)
            asym_procfs_note_online(p);
        if (sched_getaffinity(t->tid, sizeof now, (cpu_set_t *)(void *)&now) < 0)
            return -errno;
        if (may_be_of_caller_of_exec(p, proc, t)) {
            asym_procfs_expect(proc, ASYM_DUE_READ);
            return -EAGAIN;
        }
        p->new_masks_at = p->now;
    } else if (t->mask) {
        return 0;
    }
    t->settings = 0;
    allowed = now;
    int r = p->all_online ? 0 : long_way_to_mask(p, proc, t, &now, &allowed);
    if (r < 0)
        return r;
    allowed = asym_mask_and(&allowed, &p->cgroups.possible);
    t->affinity = asym_mask_table_get(&p->masks, &now);
    t->mask = asym_mask_table_get(&p->masks, &allowed);
    return t->affinity && t->mask ? 0 : -ENOMEM;
}

/* A refreshed snapshot shows what asymd has set since the last sample: what it showed else would seem to be set by others. */
static void know_action(struct asym_procfs *p, const struct asym_action *action)
{
    const struct asym_process *proc = asym_procfs_find(p, action->id.tgid);
    struct asym_pthread *t = proc ? asym_procfs_find_thread(proc, action->id.tid) : NULL;
    if (!t || t->start != action->id.start || !t->mask)
        return;
    const struct asym_mask online = asym_mask_and(&action->mask, &p->config.machine->online),
                           possible = asym_mask_and(&action->mask, &p->cgroups.possible);
    /* The watcher's number is of before this order. If another process undoes the order at once, the number does not change. */
    t->settings = 0;
    t->nice = action->nice;
    if (action->kind == ASYM_ACTION_FORGET)
        return;
    t->affinity = asym_mask_table_get(&p->masks, &online);
    t->mask = asym_mask_table_get(&p->masks, &possible);
    if (action->transit_cpu > 0)
        t->put_on = action->transit_cpu;
    else if (asym_mask_count(&online) == 1)
        t->put_on = (uint32_t)asym_mask_next(&online, 0) + 1;
}

void asym_procfs_feedback(struct asym_source *source, const struct asym_feedback *feedback)
{
    struct asym_procfs *p = asym_procfs_of(source);
    const struct asym_action *actions = feedback->actions;
    for (size_t i = 0; i < feedback->n_actions; i++)
        if (feedback->outcomes[i].kind == ASYM_OUTCOME_DONE)
            know_action(p, &actions[i]);
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
     * The core compares the mask with the cpuset to find out whether the kernel cut it or another program changed it. It
     * needs the present cpuset for that, in each sample in which it suspects an external change.
     */
    const bool changed = before && before != t->affinity;
    if ((changed || proc->suspected > 0) && proc->cgroup_read_at < p->now) {
        proc->cgroup_read_at = 0;
        asym_cgroups_expire(&p->cgroups, p->now);
        proc->suspected -= proc->suspected > 0;
    }
    if (changed)
        proc->suspected = SAMPLES_SUSPECTED;
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
 * LLVM's OpenMP creates the threads of a team, and then sets the mask of the creating thread once more. On a busy machine this
 * may be much later. asymd therefore leaves the process alone until its leader has run for ASYM_HARDLY_RAN since it has had
 * threads, or until MAPS_AGE has passed.
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

/* Request facts, or read them at once. 1: *ret has them; 0: they will come, or request them later; -1: they will not come. */
static int ask(struct asym_procfs *p, struct asym_process *proc, uint32_t what, struct asym_read_answer *ret)
{
    struct asym_read_request request = {
        .pid = proc->pid,
        .what = what,
        .start = proc->start,
        .tag = proc->program,
        .maps_most = p->config.reader ? ASYM_MAX(proc->maps_most, ASYM_READ_MAPS_FIRST) : ASYM_READ_MAPS_MOST,
    };
    if (!p->config.reader) {
        asym_proc_read(p->config.root, &request, ret);
        return 1;
    }
    if (proc->wanted_at == 0)
        proc->wanted_at = p->now;
    /* The process waits for its second reading. If another reading of it hung meanwhile, there would be none. */
    if (proc->has_hung && proc->retry_at > p->now)
        return 0;
    /* If it hangs, its user has to wait. */
    if (asym_proc_owner(p->config.root, proc->pid, &request.uid) < 0)
        return 0;
    int r = p->config.reader->ask(p->config.reader, &request);
    if (r == 0)
        proc->asked |= what;
    if (r == 0 || r == -EAGAIN)
        return 0;
    proc->unread |= what;
    return -1;
}

/* A slow disk, or a reader that the kernel killed, is no reason to leave the process unread for ever. */
void asym_procfs_retry(struct asym_procfs *p, struct asym_process *proc)
{
    if (proc->retry_at == 0 || p->now < proc->retry_at)
        return;
    proc->unread = 0;
    proc->retry_at = proc->wanted_at = 0;
    asym_procfs_expire_match(proc);
}

static void take_maps(struct asym_process *proc, const struct asym_read_answer *a)
{
    if (a->maps & ASYM_MAPS_COUNTS_LATE)
        proc->flags |= ASYM_PROC_COUNTS_LATE;
    else
        proc->flags &= ~(uint32_t)ASYM_PROC_COUNTS_LATE;
    /* Libraries stand last, so that the part not read may name one. A later sample reads four times as much. */
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
    /* While it waits in mmap for a file system that hangs, it holds the lock of its memory: a reader would hang too. */
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

static bool has_patience(const struct asym_procfs *p, const struct asym_process *proc)
{
    return proc->wanted_at == 0 || p->now < proc->wanted_at + PATIENCE;
}

/*
 * A fact is unknown for now while the reader has not answered the first request, or while a young program may still be loading
 * its libraries. It stays unknown where reading it makes readers hang: asymd then leaves the process alone until it has
 * threads, and a rule on the command line does not match.
 */
bool asym_procfs_is_unknown(const struct asym_procfs *p, const struct asym_process *proc)
{
    if (!p->config.reader)
        return false;
    if (proc->match == ASYM_MATCH_NONE)
        return true;
    if (proc->n_threads != 1 || proc->rule_name || p->now < begun_at(proc) + MAPS_FROM)
        return false;
    if (!proc->maps_known)
        return proc->unread & ASYM_READ_MAPS || has_patience(p, proc);
    return proc->asked & ASYM_READ_MAPS && p->now < begun_at(proc) + MAPS_AGE;
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

/* a: the requested facts; unknown ones are empty. */
static void match(struct asym_procfs *p, struct asym_process *proc, const char *exe, const struct asym_read_answer *a)
{
    const unsigned needs = p->config.rules ? asym_rules_need(p->config.rules) : 0;
    struct asym_rule_match found = {.action = ASYM_RULE_STEER};
    const bool has_cmdline = a->what & ASYM_READ_CMDLINE && a->error == 0;
    uint32_t uid;
    struct asym_rule_subject subject = {
        .comm = proc->comm, .exe = exe, .uid = (uid_t)-1, .cmdline = has_cmdline ? a->cmdline : NULL};
    proc->match = ASYM_MATCH_VALID;
    proc->profile = NULL;
    if (p->config.profile_of && exe)
        proc->profile = p->config.profile_of(p->config.profile_ctx, exe, a->build_id);
    if (needs & ASYM_RULE_NEEDS_UID && asym_proc_owner(p->config.root, proc->pid, &uid) == 0)
        subject.uid = uid;
    if (needs & ASYM_RULE_NEEDS_CGROUP) {
        asym_procfs_read_cgroup(p, proc);
        subject.cgroup = proc->group ? p->cgroups.groups[proc->group - 1].path : NULL;
    }
    if (p->config.rules)
        found = asym_rules_match(p->config.rules, &subject);
    proc->rule = found.action;
    proc->rule_name = found.name;
    proc->rule_facts = found.facts;
}

#define MATCH_FACTS (ASYM_READ_CMDLINE | ASYM_READ_BUILD_ID)

static const char *exe_for_match(const struct asym_procfs *p, const struct asym_process *proc, char *buf, size_t size)
{
    const unsigned needs = p->config.rules ? asym_rules_need(p->config.rules) : 0;
    return needs & ASYM_RULE_NEEDS_EXE || p->config.profile_of ? read_exe(p, proc, buf, size) : NULL;
}

/*
 * Each fact costs a file. asymd reads only the facts that some rule needs, once per process and exec. Until the answer comes,
 * the process keeps its previous rule.
 */
void asym_procfs_match(struct asym_procfs *p, struct asym_process *proc)
{
    char buf[4096];
    struct asym_read_answer answer = {.what = 0};
    const unsigned needs = p->config.rules ? asym_rules_need(p->config.rules) : 0;
    uint32_t what = needs & ASYM_RULE_NEEDS_CMDLINE ? ASYM_READ_CMDLINE : 0;
    const bool may_wait = proc->match != ASYM_MATCH_NONE || has_patience(p, proc), is_asked = proc->asked & MATCH_FACTS;
    if (proc->match == ASYM_MATCH_VALID || (is_asked && may_wait))
        return;
    const char *exe = exe_for_match(p, proc, buf, sizeof buf);
    if (exe && p->config.wants_build_id && p->config.wants_build_id(p->config.profile_ctx, exe))
        what |= ASYM_READ_BUILD_ID;
    what &= ~proc->unread;
    const bool waits = is_asked || (what != 0 && ask(p, proc, what, &answer) == 0);
    if (waits && may_wait)
        return;
    proc->maps_read_at = 0;
    match(p, proc, exe, &answer);
    if (waits)
        asym_procfs_expire_match(proc);
}

static void take_answer(struct asym_procfs *p, const struct asym_read_answer *a)
{
    char exe[4096];
    struct asym_process *proc = asym_procfs_find(p, a->pid);
    if (!proc || proc->start != a->start || proc->program != a->tag)
        return;
    proc->asked &= ~a->what;
    if (a->error < 0 && a->what & ASYM_READ_MAPS)
        proc->maps_read_at = 0;
    if (a->error == -ETIME || a->error == -EPIPE) {
        /* The facts stay unread, until the process calls exec, if it has made a reader hang before. */
        proc->unread |= a->what;
        proc->retry_at = proc->has_hung ? 0 : p->now + ASYM_READ_WAIT;
        proc->has_hung |= a->error == -ETIME;
    } else if (a->error < 0)
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
