/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/procparse.h"

#define FLAG_RESET_ON_FORK 0x01u
#define FLAG_KEEP_PARAMS   0x10u

/* More CPUs than any kernel is built for. */
#define EVERY_CPU 8192

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
    struct asym_mask m = {0};
    if (sched_getaffinity(tid, sizeof m, (cpu_set_t *)(void *)&m) < 0)
        return -errno;
    *ret = m;
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
    *ret = (struct asym_thread_sched){
        .policy = a.policy, .nice = (int8_t)a.nice, .reset_on_fork = (a.flags & FLAG_RESET_ON_FORK) != 0};
    return 0;
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
    if (now.policy != SCHED_OTHER && now.policy != SCHED_BATCH)
        return -EINVAL;
    const bool reset = (now.flags & FLAG_RESET_ON_FORK) != 0;
    /* The flag is up before the boost and down after it, or a child born in between would inherit. */
    if (reset_on_fork && !reset)
        r = set_reset_on_fork(tid, &now, true);
    if (r >= 0 && now.nice != nice && setpriority(PRIO_PROCESS, (id_t)tid, nice) < 0)
        r = -errno;
    if (r >= 0 && !reset_on_fork && reset)
        r = set_reset_on_fork(tid, &now, false);
    return r;
}

int asym_thread_start(int32_t tgid, int32_t tid, uint64_t *ret_start)
{
    char path[64], text[1024];
    struct asym_stat stat;
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)tgid, (int)tid);
    ASYM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    ssize_t n = read(fd, text, sizeof text);
    if (n < 0)
        return -errno;
    int r = asym_parse_stat(text, (size_t)n, &stat);
    if (r < 0)
        return r;
    *ret_start = stat.start;
    return 0;
}

uint64_t asym_thread_ticks(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    const uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
    return (uint64_t)t.tv_sec * hz + (uint64_t)t.tv_nsec * hz / 1000000000u;
}
