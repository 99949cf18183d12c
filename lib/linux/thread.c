/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/procparse.h"

#define FLAG_RESET_ON_FORK 1u

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

int asym_thread_set_nice(int32_t tid, int8_t nice, bool reset_on_fork)
{
    struct attr a;
    int r = get_attr(tid, &a);
    if (r < 0)
        return r;
    if (a.policy != SCHED_OTHER && a.policy != SCHED_BATCH)
        return -EINVAL;
    a.size = sizeof a;
    a.nice = nice;
    a.flags = reset_on_fork ? FLAG_RESET_ON_FORK : 0;
    /* Since 6.12 the slice of a fair thread is read here, and written back would become one of its own choice. */
    a.runtime = 0;
    return syscall(SYS_sched_setattr, tid, &a, 0u) < 0 ? -errno : 0;
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
