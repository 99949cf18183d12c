/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/sys/thread.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "linux/sys/cgroup-mounts.h"

#define FLAG_RESET_ON_FORK 0x01u
#define FLAG_KEEP_PARAMS   0x10u

/* More CPUs than any kernel is built for. */
#define EVERY_CPU 8192

/* The kernel's struct sched_attr as of 5.3. glibc 2.36 does not have it. */
struct attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
    uint32_t util_min, util_max;
};

int asym_thread_get_mask(int32_t tid, struct asym_mask *ret)
{
    unsigned char bits[EVERY_CPU / 8] = {0};
    /* The call fails with EINVAL when the buffer has fewer bits than the kernel has possible CPUs. */
    if (sched_getaffinity(tid, sizeof bits, (cpu_set_t *)(void *)bits) < 0)
        return -errno;
    memcpy(ret, bits, sizeof *ret);
    return 0;
}

int asym_thread_set_mask(int32_t tid, const struct asym_mask *mask, bool full_cpuset)
{
    unsigned char every[EVERY_CPU / 8];
    memset(every, 0xff, sizeof every);
    const void *bits = full_cpuset ? (const void *)every : mask;
    return sched_setaffinity(tid, full_cpuset ? sizeof every : sizeof *mask, bits) < 0 ? -errno : 0;
}

static int get_attr(int32_t tid, struct attr *ret)
{
    struct attr a = {.size = sizeof a};
    if (syscall(SYS_sched_getattr, tid, &a, (unsigned)sizeof a, 0u) < 0)
        return -errno;
    *ret = a;
    return 0;
}

int asym_thread_get_sched(int32_t tid, struct asym_thread_sched *ret)
{
    struct attr a;
    int r = get_attr(tid, &a);
    if (r < 0)
        return r;
    struct asym_thread_sched sched = {
        .policy = a.policy, .nice = (int8_t)a.nice, .reset_on_fork = (a.flags & FLAG_RESET_ON_FORK) != 0};
    /* For a real-time thread, sched_getattr returns a priority or a runtime instead of nice. */
    errno = 0;
    if (asym_thread_is_realtime(&sched))
        sched.nice = (int8_t)getpriority(PRIO_PROCESS, (id_t)tid);
    if (sched.nice == -1 && errno != 0)
        return -errno;
    *ret = sched;
    return 0;
}

bool asym_thread_is_fair(const struct asym_thread_sched *sched)
{
    return sched->policy == SCHED_OTHER || sched->policy == SCHED_BATCH;
}

bool asym_thread_is_realtime(const struct asym_thread_sched *sched)
{
    return sched->policy == SCHED_FIFO || sched->policy == SCHED_RR || sched->policy == SCHED_DEADLINE;
}

/* SCHED_FLAG_KEEP_PARAMS: the call changes only the reset-on-fork flag. */
static int set_reset_on_fork(int32_t tid, const struct attr *now, bool reset_on_fork)
{
    struct attr a = *now;
    a.size = sizeof a;
    a.flags = FLAG_KEEP_PARAMS | (reset_on_fork ? FLAG_RESET_ON_FORK : 0);
    return syscall(SYS_sched_setattr, tid, &a, 0u) < 0 ? -errno : 0;
}

/*
 * This does not use one sched_setattr call: since 6.12 that call also sets the slice of a fair thread. Writing back the value
 * of sched_getattr would make it a custom slice, and 0 would remove a custom slice. setpriority changes nice alone.
 */
int asym_thread_set_nice(int32_t tid, int8_t nice, bool reset_on_fork)
{
    struct attr now;
    int r = get_attr(tid, &now);
    if (r < 0)
        return r;
    if (now.policy == SCHED_FIFO || now.policy == SCHED_RR || now.policy == SCHED_DEADLINE)
        return -EINVAL;
    const bool reset = (now.flags & FLAG_RESET_ON_FORK) != 0;
    /* The flag is set before the boost and cleared after it: otherwise a child created in between would inherit the boost. */
    if (reset_on_fork && !reset)
        r = set_reset_on_fork(tid, &now, true);
    if (r >= 0 && now.nice != nice)
        r = asym_thread_renice(tid, nice);
    if (r >= 0 && !reset_on_fork && reset)
        r = set_reset_on_fork(tid, &now, false);
    else if (r < 0 && reset_on_fork && !reset)
        set_reset_on_fork(tid, &now, false); /* undo the flag when the boost was refused */
    return r;
}

int asym_thread_renice(int32_t tid, int8_t nice)
{
    return setpriority(PRIO_PROCESS, (id_t)tid, nice) < 0 ? -errno : 0;
}

static void *try_boost(void *arg)
{
    struct asym_thread_sched own;
    const int32_t tid = gettid();
    int r = asym_thread_get_sched(tid, &own);
    if (r >= 0)
        r = asym_thread_set_nice(tid, (int8_t)ASYM_MIN(19, own.nice + 1), true);
    if (r >= 0)
        r = asym_thread_set_nice(tid, own.nice, false);
    *(int *)arg = r == -EACCES ? -EPERM : r;
    return NULL;
}

int asym_thread_may_boost(void)
{
    pthread_t thread;
    int result = 0;
    int r = pthread_create(&thread, NULL, try_boost, &result);
    if (r != 0)
        return -r;
    pthread_join(thread, NULL);
    return result;
}

int asym_thread_get_stat(int32_t tgid, int32_t tid, struct asym_stat *ret)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)tgid, (int)tid);
    ASYM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    ssize_t n = read(fd, text, sizeof text);
    return n < 0 ? -errno : asym_parse_stat(text, (size_t)n, ret);
}

int asym_thread_get_cpuset(const struct asym_cgroup_mounts *mounts, int32_t tgid, int32_t tid, struct asym_mask *ret)
{
    char path[64], text[8192];
    const char *group;
    size_t len;
    int v1;
    ASYM_AUTO_CLOSE int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const struct asym_root root = {.fd = fd, .live = true};
    snprintf(path, sizeof path, "proc/%d/task/%d/cgroup", (int)tgid, (int)tid);
    const ssize_t n = asym_root_read(&root, path, text, sizeof text);
    if (n < 0)
        return n == -ENOENT ? -ESRCH : (int)n;
    /* In v2 the root cgroup has no such file. In v1 and v2 it has every CPU, offline ones included. */
    if (asym_parse_cgroup(text, (size_t)n, &group, &len, &v1) < 0 || len <= 1 ||
        asym_cgroup_cpus(&root, mounts, v1 ? ASYM_CGROUP_CPUSET : ASYM_CGROUP_UNIFIED, group, len, ret) < 0)
        memset(ret, 0xff, sizeof *ret);
    return 0;
}

int asym_thread_is_of(int32_t tgid, int32_t tid)
{
    /* EPERM means that the thread exists. */
    return syscall(SYS_tgkill, tgid, tid, 0) < 0 && errno == ESRCH ? -ESRCH : 0;
}

uint64_t asym_thread_ticks(void)
{
    return asym_clock_read(CLOCK_BOOTTIME) * (uint64_t)sysconf(_SC_CLK_TCK) / ASYM_SEC;
}
