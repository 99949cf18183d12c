/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/fake-kernel.h"

#include <sched.h>
#include <time.h>
#include <sys/mman.h>

#include "base/mask.h"
#include "linux/sys/thread.h"
#include "support/test.h"

#define TICKS_PER_SECOND 100

static struct fake_thread threads[FAKE_THREADS];
static size_t n_threads;
static asym_usec now;
static void (*watcher)(const struct fake_thread *t);

void fake_kernel_reset(void)
{
    watcher = NULL;
    memset(threads, 0, sizeof threads);
    n_threads = 0;
    now = 1000 * ASYM_SEC;
}

struct asym_mask fake_mask(uint64_t bits)
{
    return (struct asym_mask){.w = {bits}};
}

struct fake_thread *fake_kernel_thread(int32_t tgid, int32_t tid, struct asym_mask mask)
{
    assert_true(n_threads < FAKE_THREADS && !fake_kernel_find(tid));
    struct fake_thread *t = &threads[n_threads++];
    *t = (struct fake_thread){.tid = tid,
                              .tgid = tgid,
                              .ppid = 1,
                              .start = 10 * (uint64_t)TICKS_PER_SECOND,
                              .mask = mask,
                              .cpuset = fake_mask(0xff)};
    return t;
}

struct fake_thread *fake_kernel_find(int32_t tid)
{
    for (size_t i = 0; i < n_threads; i++)
        if (threads[i].tid == tid)
            return &threads[i];
    return NULL;
}

/* The slot stays in use, because tests have pointers to the other threads. */
void fake_kernel_end(int32_t tid)
{
    struct fake_thread *t = fake_kernel_find(tid);
    assert_non_null(t);
    t->tid = 0;
}

void fake_kernel_fail(struct fake_thread *t, enum fake_call call, int error, unsigned spared)
{
    fake_kernel_fail_times(t, call, error, spared, 0);
}

void fake_kernel_fail_times(struct fake_thread *t, enum fake_call call, int error, unsigned spared, unsigned times)
{
    t->errors[call] = error;
    t->spared[call] = spared;
    t->times[call] = times;
}

void fake_kernel_wait(asym_usec time)
{
    now += time;
}

void fake_kernel_watch(void (*fn)(const struct fake_thread *t))
{
    watcher = fn;
}

void fake_kernel_cpus(struct asym_ledger *l, const char *online, const char *possible, const char *isolated)
{
    const char *const texts[ASYM_N_CPU_LISTS] = {
        [ASYM_CPUS_ONLINE] = online, [ASYM_CPUS_POSSIBLE] = possible, [ASYM_CPUS_ISOLATED] = isolated};
    for (size_t i = 0; i < ASYM_N_CPU_LISTS; i++) {
        char line[64];
        const int n = snprintf(line, sizeof line, "%s\n", texts[i]);
        const int fd = memfd_create("cpus", MFD_CLOEXEC);
        assert_true(fd >= 0 && write(fd, line, (size_t)n) == n);
        if (l->cpu_fds[i] >= 0)
            close(l->cpu_fds[i]);
        l->cpu_fds[i] = fd;
    }
    asym_ledger_read_cpus(l, ASYM_CPUS_ONLINE, &l->online);
    asym_ledger_read_cpus(l, ASYM_CPUS_POSSIBLE, &l->possible);
}

/* Returns 0 and the thread; -ESRCH; or the error that the test has set. */
static int enter(int32_t tid, enum fake_call call, struct fake_thread **ret)
{
    struct fake_thread *t = fake_kernel_find(tid);
    if (!t)
        return -ESRCH;
    *ret = t;
    if (t->errors[call] != 0 && t->spared[call] == 0) {
        const int error = t->errors[call];
        if (t->times[call] > 0 && --t->times[call] == 0)
            t->errors[call] = 0;
        return error;
    }
    t->spared[call] -= t->errors[call] != 0;
    if (watcher && (call == FAKE_SET_MASK || call == FAKE_SET_NICE))
        watcher(t);
    return 0;
}

int asym_thread_get_mask(int32_t tid, struct asym_mask *ret)
{
    struct fake_thread *t;
    int r = enter(tid, FAKE_GET_MASK, &t);
    if (r >= 0)
        *ret = t->mask;
    return r;
}

int asym_thread_get_cpuset(const struct asym_cgroup_mounts *mounts, int32_t tgid, int32_t tid, struct asym_mask *ret)
{
    if (asym_thread_is_of(tgid, tid) < 0)
        return -ESRCH;
    *ret = fake_kernel_find(tid)->cpuset;
    return 0;
}

/* The kernel cuts a mask to the cpuset, and refuses a mask that has no CPU of it. */
int asym_thread_set_mask(int32_t tid, const struct asym_mask *mask, bool full_cpuset)
{
    struct fake_thread *t;
    int r = enter(tid, FAKE_SET_MASK, &t);
    if (r < 0)
        return r;
    const struct asym_mask cut = full_cpuset ? t->cpuset : asym_mask_and(mask, &t->cpuset);
    if (asym_mask_empty(&cut))
        return -EINVAL;
    if (t->n_set_mask < sizeof t->set / sizeof *t->set)
        t->set[t->n_set_mask] = cut;
    t->n_set_mask++;
    t->set_full_cpuset = full_cpuset;
    t->mask = cut;
    return 0;
}

int asym_thread_get_sched(int32_t tid, struct asym_thread_sched *ret)
{
    struct fake_thread *t;
    int r = enter(tid, FAKE_GET_SCHED, &t);
    if (r >= 0)
        *ret = (struct asym_thread_sched){.policy = t->policy, .nice = t->nice, .reset_on_fork = t->reset_on_fork};
    return r;
}

bool asym_thread_is_fair(const struct asym_thread_sched *sched)
{
    return sched->policy == SCHED_OTHER || sched->policy == SCHED_BATCH;
}

bool asym_thread_is_realtime(const struct asym_thread_sched *sched)
{
    return sched->policy == SCHED_FIFO || sched->policy == SCHED_RR || sched->policy == SCHED_DEADLINE;
}

int asym_thread_set_nice(int32_t tid, int8_t nice, bool reset_on_fork)
{
    struct fake_thread *t;
    int r = enter(tid, FAKE_SET_NICE, &t);
    if (r < 0)
        return r;
    if (t->policy == SCHED_FIFO || t->policy == SCHED_RR || t->policy == SCHED_DEADLINE)
        return -EINVAL;
    t->n_set_nice++;
    t->nice = nice;
    t->reset_on_fork = reset_on_fork;
    return 0;
}

int asym_thread_renice(int32_t tid, int8_t nice)
{
    struct fake_thread *t;
    int r = enter(tid, FAKE_SET_NICE, &t);
    if (r < 0)
        return r;
    t->n_set_nice++;
    t->nice = nice;
    return 0;
}

int asym_thread_may_boost(void)
{
    return 0;
}

/* Every clock shows the same time. */
WRAPPED(int, clock_gettime, clockid_t clock, struct timespec *ret)
{
    *ret = (struct timespec){.tv_sec = (time_t)(now / ASYM_SEC), .tv_nsec = (long)(now % ASYM_SEC) * 1000};
    return 0;
}

uint64_t asym_thread_ticks(void)
{
    return now / (ASYM_SEC / TICKS_PER_SECOND);
}

int asym_thread_get_stat(int32_t tgid, int32_t tid, struct asym_stat *ret)
{
    struct fake_thread *t;
    int r = enter(tid, FAKE_GET_STAT, &t);
    if (r < 0 || t->tgid != tgid)
        return r < 0 ? r : -ESRCH;
    *ret = (struct asym_stat){.comm = "fake",
                              .state = 'R',
                              .ppid = t->ppid,
                              .flags = t->flags,
                              .nice = t->nice,
                              .start = t->start,
                              .sched = (uint8_t)t->policy};
    return 0;
}

int asym_thread_is_of(int32_t tgid, int32_t tid)
{
    const struct fake_thread *t = fake_kernel_find(tid);
    return t && t->tgid == tgid ? 0 : -ESRCH;
}
