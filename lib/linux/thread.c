/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"

#define FLAG_RESET_ON_FORK 0x01u
#define FLAG_KEEP_PARAMS   0x10u

/* More CPUs than any kernel is built for. */
#define EVERY_CPU 8192

/* Longer than the line of a mask of EVERY_CPU: 2,304 bytes. */
#define LINE_MAX_ 4096

/* struct sched_attr of the kernel as of 5.3, which glibc 2.36 does not have. */
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
    /* The call fails with EINVAL when the buffer has fewer bits than the kernel may have CPUs. */
    if (sched_getaffinity(tid, sizeof bits, (cpu_set_t *)(void *)bits) < 0)
        return -errno;
    memcpy(ret, bits, sizeof *ret);
    return 0;
}

int asym_thread_set_mask(int32_t tid, const struct asym_mask *mask, bool whole)
{
    unsigned char every[EVERY_CPU / 8];
    memset(every, 0xff, sizeof every);
    const void *bits = whole ? (const void *)every : mask;
    return sched_setaffinity(tid, whole ? sizeof every : sizeof *mask, bits) < 0 ? -errno : 0;
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
    /* sched_getattr has a priority or a budget in its place. */
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

/* The parameters stay: only what goes with a change of nice is written. */
static int set_reset_on_fork(int32_t tid, const struct attr *now, bool reset_on_fork)
{
    struct attr a = *now;
    a.size = sizeof a;
    a.flags = FLAG_KEEP_PARAMS | (reset_on_fork ? FLAG_RESET_ON_FORK : 0);
    return syscall(SYS_sched_setattr, tid, &a, 0u) < 0 ? -errno : 0;
}

/*
 * Not in one sched_setattr: since 6.12 that call also carries the slice of a fair thread. What sched_getattr tells of it
 * would become a slice of its own choice, and 0 would take such a one away. setpriority touches nice alone.
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
    /* The flag is up before the boost and down after it, or a child born in between would inherit. */
    if (reset_on_fork && !reset)
        r = set_reset_on_fork(tid, &now, true);
    if (r >= 0 && now.nice != nice)
        r = asym_thread_renice(tid, nice);
    if (r >= 0 && !reset_on_fork && reset)
        r = set_reset_on_fork(tid, &now, false);
    else if (r < 0 && reset_on_fork && !reset)
        set_reset_on_fork(tid, &now, false); /* a boost that was refused leaves nothing behind */
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

/* A descriptor; -ESRCH when the thread has gone. */
static int open_file(int32_t tgid, int32_t tid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)tgid, (int)tid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 ? fd : errno == ENOENT ? -ESRCH : -errno;
}

int asym_thread_get_stat(int32_t tgid, int32_t tid, struct asym_stat *ret)
{
    char text[1024];
    ASYM_AUTO_CLOSE int fd = open_file(tgid, tid, "stat");
    if (fd < 0)
        return fd;
    ssize_t n = read(fd, text, sizeof text);
    return n < 0 ? -errno : asym_parse_stat(text, (size_t)n, ret);
}

/* The texts are alike where all CPUs that the kernel may have are online. Neither is a stranger's. */
static bool is_every_cpu_online(void)
{
    static const char *const files[] = {"/sys/devices/system/cpu/possible", "/sys/devices/system/cpu/online"};
    char texts[2][256];
    ssize_t n[2];
    for (size_t i = 0; i < 2; i++) {
        ASYM_AUTO_CLOSE int fd = open(files[i], O_RDONLY | O_CLOEXEC);
        n[i] = fd >= 0 ? read(fd, texts[i], sizeof texts[i]) : -1;
    }
    return n[0] > 0 && n[0] < (ssize_t)sizeof texts[0] && n[0] == n[1] && memcmp(texts[0], texts[1], (size_t)n[0]) == 0;
}

/* In this order: a CPU that went before the first call shows in the second. */
int asym_thread_get_allowed(int32_t tgid, int32_t tid, struct asym_mask *ret)
{
    struct asym_mask online;
    int r = asym_thread_get_mask(tid, &online);
    if (r < 0 || !is_every_cpu_online())
        return asym_thread_read_allowed(tgid, tid, ret);
    r = asym_thread_is_of(tgid, tid);
    if (r >= 0)
        *ret = online;
    return r;
}

int asym_thread_read_allowed(int32_t tgid, int32_t tid, struct asym_mask *ret)
{
    char text[2 * LINE_MAX_];
    size_t len = 0, value_len;
    const char *value;
    ASYM_AUTO_CLOSE int fd = open_file(tgid, tid, "status");
    if (fd < 0)
        return fd;
    /* Groups, which comes before it, may be as long as 65,536 groups make it: only the end of what was read is kept. */
    for (;;) {
        ssize_t n = read(fd, text + len, sizeof text - len);
        if (n < 0)
            return -errno;
        len += (size_t)n;
        if (asym_parse_status_line(text, len, "Cpus_allowed", &value, &value_len) == 0 &&
            value + value_len < text + len)
            return asym_mask_parse_hex(value, value_len, ret);
        if (n == 0)
            return -EINVAL;
        if (len > LINE_MAX_) {
            memmove(text, text + len - LINE_MAX_, LINE_MAX_);
            len = LINE_MAX_;
        }
    }
}

/* The effective CPUs of a cgroup, or of the nearest above it that has a cpuset. */
static int read_cpuset(const char *group, size_t len, bool v1, struct asym_mask *ret)
{
    for (;;) {
        char path[4352], text[ASYM_MASK_LIST_MAX + 16];
        snprintf(path, sizeof path,
                 v1 ? "/sys/fs/cgroup/cpuset%.*s/cpuset.effective_cpus" : "/sys/fs/cgroup%.*s/cpuset.cpus.effective",
                 (int)len, group);
        ASYM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : -1;
        if (n > 1 && asym_mask_parse_list(text, (size_t)n, ret) == 0)
            return 0;
        if (len == 0)
            return -ENOENT;
        while (len > 0 && group[--len] != '/')
            ;
    }
}

int asym_thread_get_cpuset(int32_t tgid, int32_t tid, struct asym_mask *ret)
{
    char text[8192];
    const char *group;
    size_t len;
    int v1;
    ASYM_AUTO_CLOSE int fd = open_file(tgid, tid, "cgroup");
    if (fd < 0)
        return fd;
    ssize_t n = read(fd, text, sizeof text);
    if (n < 0)
        return -errno;
    /* The root has no file in version 2, and in both it stands for every CPU, offline ones included. */
    if (asym_parse_cgroup(text, (size_t)n, &group, &len, &v1) < 0 || len <= 1 ||
        read_cpuset(group, len, v1 != 0, ret) < 0)
        memset(ret, 0xff, sizeof *ret);
    return 0;
}

int asym_thread_is_of(int32_t tgid, int32_t tid)
{
    /* Not being permitted to signal it says that it is there. */
    return syscall(SYS_tgkill, tgid, tid, 0) < 0 && errno != EPERM ? -ESRCH : 0;
}

asym_usec asym_thread_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (asym_usec)t.tv_sec * ASYM_SEC + (asym_usec)t.tv_nsec / 1000;
}

uint64_t asym_thread_ticks(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    const uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
    return (uint64_t)t.tv_sec * hz + (uint64_t)t.tv_nsec * hz / 1000000000u;
}
