/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of the live machine: one group of perf events for each thread and kind of core. */

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/text.h"
#include "core/task-table.h"
#include "linux/perf/counters-internal.h"
#include "linux/sys/thread.h"

#define READ_FORMAT (PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

/* Counters of a set are neighbours in enum asym_counter; the first leads the group. */
static const struct {
    enum asym_counter first;
    unsigned n;
} sets[] = {
    [ASYM_COUNTERS_HARDWARE] = {ASYM_COUNTER_INSTRUCTIONS, 3},
    [ASYM_COUNTERS_SOFTWARE] = {ASYM_COUNTER_TASK_CLOCK, 3},
};

struct group {
    int fd[ASYM_COUNTERS_GROUP]; /* owned; [0] is the leader; -1: this PMU does not count it */
};

struct slot {
    struct asym_taskid id; /* first, as asym_table requires */
    struct group groups[ASYM_COUNTERS_PMUS];
    struct asym_group_sum sum;
    unsigned valid; /* bit k: counter k is in the group of every PMU */
};

struct live {
    struct asym_counters port;
    struct asym_counters_calls calls;
    struct asym_table table;
    struct perf_event_attr attr[ASYM_COUNTERS_PMUS][ASYM_COUNTERS_GROUP];
    unsigned known[ASYM_COUNTERS_PMUS]; /* bit k: attr[k] is valid */
    unsigned n_pmus, first, n, n_fds, max_fds;
    bool tree, user_only;
};

/* glibc before 2.39 has no name for this field. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define AGAIN (10 * ASYM_MSEC)

static void ignore(int number)
{
    (void)number;
}

static struct timespec timespec_of(asym_usec t)
{
    return (struct timespec){.tv_sec = (time_t)(t / ASYM_SEC), .tv_nsec = (long)(t % ASYM_SEC) * 1000};
}

int asym_syscall_timeout_begin(struct asym_syscall_timeout *t, asym_usec time)
{
    struct sigaction action = {.sa_handler = ignore};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    const struct itimerspec when = {.it_value = timespec_of(time), .it_interval = timespec_of(AGAIN)};
    sigset_t alarm, realtime;
    memset(t, 0, sizeof *t);
    event.sigev_notify_thread_id = gettid();
    if (timer_create(CLOCK_MONOTONIC, &event, &t->timer) < 0)
        return -errno;
    t->armed = true;
    sigemptyset(&action.sa_mask);
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigaction(SIGALRM, &action, &t->action);
    pthread_sigmask(SIG_UNBLOCK, &alarm, &t->mask);
    /* The signal of linux/sys/realtime.c would end the call before its time; a call that sleeps needs no such bound. */
    sigemptyset(&realtime);
    sigaddset(&realtime, SIGRTMIN);
    pthread_sigmask(SIG_BLOCK, &realtime, NULL);
    if (timer_settime(t->timer, 0, &when, NULL) == 0)
        return 0;
    const int error = -errno;
    asym_syscall_timeout_end(t);
    return error;
}

void asym_syscall_timeout_end(struct asym_syscall_timeout *t)
{
    const int error = errno;
    if (!t->armed)
        return;
    timer_delete(t->timer);
    pthread_sigmask(SIG_SETMASK, &t->mask, NULL);
    sigaction(SIGALRM, &t->action, NULL);
    t->armed = false;
    errno = error;
}

/*
 * perf_event_open takes the exec_update_lock of the process. A program holds this lock while exec closes its files, and a
 * file system that the program provides (FUSE) can delay that for ever. A signal interrupts the wait.
 */
#define PATIENCE (50 * ASYM_MSEC)

static int call_open(void *ctx, struct perf_event_attr *attr, pid_t tid, int group_fd)
{
    struct asym_syscall_timeout timeout;
    /* Do not make the call if its time cannot be limited. */
    int r = asym_syscall_timeout_begin(&timeout, PATIENCE);
    if (r < 0)
        return r;
    long fd = syscall(SYS_perf_event_open, attr, tid, -1, group_fd, PERF_FLAG_FD_CLOEXEC);
    asym_syscall_timeout_end(&timeout);
    return fd < 0 ? -errno : (int)fd;
}

static int call_enable(void *ctx, int leader_fd)
{
    return ioctl(leader_fd, PERF_EVENT_IOC_ENABLE, 0) < 0 ? -errno : 0;
}

static ssize_t call_read(void *ctx, int fd, void *buf, size_t size)
{
    ssize_t n = read(fd, buf, size);
    return n < 0 ? -errno : n;
}

static void call_close(void *ctx, int fd)
{
    close(fd);
}

static int call_alive(void *ctx, const struct asym_taskid *id)
{
    return asym_thread_is_of(id->tgid, id->tid);
}

static const struct asym_counters_calls kernel_calls = {
    .open = call_open, .enable = call_enable, .read = call_read, .close = call_close, .alive = call_alive};

static void close_slot(struct live *l, struct slot *s)
{
    for (unsigned p = 0; p < l->n_pmus; p++) {
        for (unsigned k = 0; k < l->n; k++) {
            if (s->groups[p].fd[k] < 0)
                continue;
            l->calls.close(l->calls.ctx, s->groups[p].fd[k]);
            s->groups[p].fd[k] = -1;
            l->n_fds--;
        }
    }
}

/* A counter is left out if the PMU does not have it, or cannot count it together with the others. */
static bool is_lacking(int error)
{
    return error == -ENOENT || error == -ENODEV || error == -EOPNOTSUPP || error == -EINVAL;
}

static int open_group(struct live *l, struct slot *s, unsigned p, bool user_only)
{
    int *fd = s->groups[p].fd;
    for (unsigned k = 0; k < l->n; k++) {
        if (!(l->known[p] >> k & 1))
            continue;
        struct perf_event_attr attr = l->attr[p][k];
        attr.read_format = READ_FORMAT;
        attr.exclude_kernel = user_only;
        attr.inherit = l->tree;
        attr.disabled = k == 0;
        attr.enable_on_exec = l->tree && k == 0;
        int r = l->calls.open(l->calls.ctx, &attr, s->id.tid, k == 0 ? -1 : fd[0]);
        if (r < 0 && (k == 0 || !is_lacking(r)))
            return r;
        fd[k] = ASYM_MAX(r, -1);
        l->n_fds += r >= 0;
    }
    /*
     * Enable the whole group at once: a member that joins a running group may not start before the thread is next switched
     * in (Linux 6.18).
     */
    return l->tree ? 0 : l->calls.enable(l->calls.ctx, fd[0]);
}

static int open_slot(struct live *l, struct slot *s, bool user_only)
{
    int r = 0;
    for (unsigned p = 0; r >= 0 && p < l->n_pmus; p++)
        r = open_group(l, s, p, user_only);
    if (r < 0) {
        close_slot(l, s);
        return r;
    }
    s->valid = (1u << l->n) - 1;
    for (unsigned p = 0; p < l->n_pmus; p++)
        for (unsigned k = 0; k < l->n; k++)
            if (s->groups[p].fd[k] < 0)
                s->valid &= ~(1u << k);
    return 0;
}

static unsigned fds_wanted(const struct live *l)
{
    unsigned n = 0;
    for (unsigned p = 0; p < l->n_pmus; p++)
        n += (unsigned)__builtin_popcount(l->known[p]);
    return n;
}

static int live_watch(struct asym_counters *c, const struct asym_taskid *id)
{
    struct live *l = (struct live *)c;
    struct slot fresh = {.id = *id};
    if (asym_table_find(&l->table, id))
        return 0;
    if (l->n_fds + fds_wanted(l) > l->max_fds)
        return -EDQUOT;
    if (asym_table_reserve(&l->table, 1) < 0)
        return -ENOMEM;
    memset(fresh.groups, 0xff, sizeof fresh.groups); /* -1 */
    int r = open_slot(l, &fresh, l->user_only);
    if ((r == -EACCES || r == -EPERM) && !l->user_only) {
        /*
         * With perf_event_paranoid 2 every user may count user space. From now on this holds for all threads, so that their
         * figures compare.
         */
        r = open_slot(l, &fresh, true);
        l->user_only = r >= 0;
    }
    if (r >= 0)
        *(struct slot *)asym_table_get(&l->table, id) = fresh;
    return r;
}

static int live_unwatch(struct asym_counters *c, const struct asym_taskid *id)
{
    struct live *l = (struct live *)c;
    struct slot *s = asym_table_find(&l->table, id);
    if (!s)
        return -ENOENT;
    close_slot(l, s);
    asym_table_remove(&l->table, id);
    return 0;
}

/* The kernel returns the values of a group without gaps. Put each value at the index of its counter. */
static int read_group(struct live *l, const struct group *g, struct asym_group_read *ret)
{
    uint64_t words[3 + ASYM_COUNTERS_GROUP];
    struct asym_group_read packed;
    unsigned n = 0;
    for (unsigned k = 0; k < l->n; k++)
        n += g->fd[k] >= 0;
    ssize_t len = l->calls.read(l->calls.ctx, g->fd[0], words, sizeof words);
    if (len < 0)
        return (int)len;
    int r = asym_group_parse(words, (size_t)len, n, &packed);
    if (r < 0)
        return r;
    *ret = (struct asym_group_read){.n = l->n, .enabled = packed.enabled, .running = packed.running};
    for (unsigned k = 0, at = 0; k < l->n; k++)
        if (g->fd[k] >= 0)
            ret->value[k] = packed.value[at++];
    return 0;
}

static void give(const struct live *l, const struct slot *s, struct asym_counts *ret)
{
    *ret = (struct asym_counts){.running_share = s->sum.share, .on_cpu_ns = s->sum.on_cpu};
    /* The thread was on a CPU but never counted. A 0 would look like a count. */
    if (s->sum.on_cpu > 0 && s->sum.running == 0)
        return;
    ret->valid = s->valid << l->first;
    for (unsigned k = 0; k < l->n; k++)
        if (s->valid >> k & 1)
            ret->value[l->first + k] = s->sum.value[k];
}

static int live_read(struct asym_counters *c, const struct asym_taskid *id, struct asym_counts *ret)
{
    struct live *l = (struct live *)c;
    struct slot *s = asym_table_find(&l->table, id);
    struct asym_group_read reads[ASYM_COUNTERS_PMUS];
    if (!s)
        return -ENOENT;
    /* The events outlive the thread, and a read returns their last values without an error. */
    if (!l->tree && l->calls.alive(l->calls.ctx, id) < 0) {
        live_unwatch(c, id);
        return -ESRCH;
    }
    for (unsigned p = 0; p < l->n_pmus; p++) {
        int r = read_group(l, &s->groups[p], &reads[p]);
        if (r < 0)
            return r;
    }
    asym_group_advance(&s->sum, reads, l->n_pmus, l->n);
    give(l, s, ret);
    return 0;
}

static void live_close(struct asym_counters *c)
{
    struct live *l = (struct live *)c;
    for (uint32_t i = 0; i < l->table.n; i++)
        close_slot(l, asym_table_at(&l->table, i));
    asym_table_done(&l->table);
    free(l);
}

/* Returns 0; -ENOENT if a PMU has no event for the group leader. */
static int encode_all(struct live *l, const struct asym_pmu *pmus)
{
    for (unsigned p = 0; p < l->n_pmus; p++) {
        for (unsigned k = 0; k < l->n; k++)
            if (asym_counters_encode((enum asym_counter)(l->first + k), &pmus[p], &l->attr[p][k]) >= 0)
                l->known[p] |= 1u << k;
        if (!(l->known[p] & 1))
            return -ENOENT;
    }
    return 0;
}

int asym_counters_new(const struct asym_counters_config *config, struct asym_counters **ret, struct asym_error *err)
{
    struct asym_pmu pmus[ASYM_COUNTERS_PMUS] = {{.type = 0}};
    const char *text, *remedy;
    int n = config->set == ASYM_COUNTERS_SOFTWARE ? 1 : asym_counters_pmus(config->root, pmus);
    struct live *l = n < 0 ? NULL : malloc(sizeof *l);
    int r = n < 0 ? n : l ? 0 : -ENOMEM;
    if (r >= 0) {
        *l = (struct live){
            .port = {.watch = live_watch, .unwatch = live_unwatch, .read = live_read, .close = live_close},
            .calls = config->calls ? *config->calls : kernel_calls,
            .n_pmus = (unsigned)n,
            .first = sets[config->set].first,
            .n = sets[config->set].n,
            .max_fds = config->max_fds,
            .tree = config->tree};
        asym_table_init(&l->table, sizeof(struct slot));
        r = encode_all(l, pmus);
    }
    if (r < 0) {
        free(l);
        asym_counters_why(r, &text, &remedy);
        return asym_fail(err, r, "no hardware counters: %s%s%s", text, *remedy ? "; " : "", remedy);
    }
    *ret = &l->port;
    return 0;
}

static void list_counters(unsigned counters, char *buf, size_t size)
{
    struct asym_text text = asym_text_in(buf, size);
    for (unsigned k = 0; k < ASYM_N_COUNTERS; k++)
        if (counters >> k & 1)
            asym_text_add(&text, "%s%s", text.used ? ", " : "", asym_counter_name((enum asym_counter)k));
}

/*
 * Watches the calling thread for a moment. A successful open shows that a counter exists. The probe does not wait until
 * the counters run.
 */
static int try_self(const struct asym_root *root, const struct asym_counters_calls *calls,
                    struct asym_counters_coverage *s)
{
    const struct asym_counters_config config = {.root = root,
                                                .set = ASYM_COUNTERS_HARDWARE,
                                                .max_fds = ASYM_COUNTERS_PMUS * ASYM_COUNTERS_GROUP,
                                                .calls = calls};
    const struct asym_taskid self = {.tid = (int32_t)syscall(SYS_gettid), .tgid = getpid()};
    struct asym_counters *c;
    struct asym_counts counts;
    int r = asym_counters_new(&config, &c, NULL);
    if (r < 0)
        return r;
    r = c->watch(c, &self);
    if (r >= 0)
        r = c->read(c, &self, &counts);
    if (r >= 0) {
        s->counters = counts.valid;
        s->user_only = ((const struct live *)c)->user_only;
    }
    c->close(c);
    return r;
}

void asym_counters_probe(const struct asym_root *root, const struct asym_counters_calls *calls,
                         struct asym_counters_coverage *ret)
{
    struct asym_pmu pmus[ASYM_COUNTERS_PMUS];
    struct asym_counters_coverage s = {.remedy = ""};
    const char *why;
    char counters[80];
    int n = asym_counters_pmus(root, pmus);
    struct asym_text text = asym_text_in(s.pmus, sizeof s.pmus);
    for (int i = 0; i < n; i++)
        asym_text_add(&text, "%s%s", text.used ? ", " : "", pmus[i].name);
    s.error = n < 0 ? n : root->live ? try_self(root, calls, &s) : 0;
    list_counters(s.counters, counters, sizeof counters);
    if (s.error < 0) {
        asym_counters_why(s.error, &why, &s.remedy);
        snprintf(s.text, sizeof s.text,
                 "cannot count instructions and cycles: %s; policies that need ipc or stall cannot run", why);
    } else if (!root->live) {
        snprintf(s.text, sizeof s.text, "counters of instructions and cycles: %s", s.pmus);
    } else if (s.counters == 0) {
        snprintf(s.text, sizeof s.text, "%s: the counters open, but do not count; other programs may use all of them",
                 s.pmus);
        s.remedy = "end other profilers; sysctl kernel.nmi_watchdog=0 frees one counter";
    } else {
        snprintf(s.text, sizeof s.text, "%s: %s%s", s.pmus, counters, s.user_only ? ", in user space only" : "");
        s.remedy = s.user_only ? "run as root or with CAP_PERFMON to count kernel mode too" : "";
    }
    *ret = s;
}
