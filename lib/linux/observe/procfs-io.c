/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files and directories of /proc, and the descriptors that are kept open for them. */
#include "linux/observe/procfs-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macro.h"

/*
 * Descriptors reserved for everything else: the ledger, sockets, directories that are listed, files that are opened for one
 * read. Where a quarter of the limit is less, that quarter is reserved.
 */
#define DESCRIPTORS_RESERVED 64

/* When an open fails because descriptors have run out, this many of those kept open are closed. */
#define DESCRIPTORS_SHED 32

bool asym_procfs_gone(int error)
{
    return error == -ENOENT || error == -ESRCH;
}

static void close_kept(struct asym_procfs *p, int *fd)
{
    p->n_kept -= *fd >= 0;
    asym_close_p(fd);
    *fd = -1;
}

void asym_procfs_release(struct asym_procfs *p, struct asym_pthread *t)
{
    close_kept(p, &t->fd);
    close_kept(p, &t->stat_fd);
}

/* Other parts of asymd or other programs need descriptors: close some, and keep no more open than are left. */
static bool shed(struct asym_procfs *p)
{
    const size_t before = p->n_kept;
    for (size_t i = 0; i < p->n_procs && before - p->n_kept < DESCRIPTORS_SHED; i++)
        for (uint32_t k = 0; k < p->procs[i]->n_threads && before - p->n_kept < DESCRIPTORS_SHED; k++)
            asym_procfs_release(p, &p->procs[i]->threads[k]);
    p->kept_max = p->n_kept;
    return p->n_kept < before;
}

int asym_procfs_open(struct asym_procfs *p, const char *path, int flags)
{
    int fd = asym_root_openat(p->config.root, path, flags);
    if ((fd == -EMFILE || fd == -ENFILE) && shed(p))
        fd = asym_root_openat(p->config.root, path, flags);
    return fd;
}

ssize_t asym_procfs_read(struct asym_procfs *p, const char *path, char *buf, size_t size)
{
    ssize_t n = asym_root_read(p->config.root, path, buf, size);
    if ((n == -EMFILE || n == -ENFILE) && shed(p))
        n = asym_root_read(p->config.root, path, buf, size);
    return n;
}

ssize_t asym_procfs_read_kept(struct asym_procfs *p, int *fd, const char *path, char *buf, size_t size)
{
    if (!p->config.root->live)
        return asym_procfs_read(p, path, buf, size);
    if (*fd < 0)
        *fd = asym_procfs_open(p, path, O_RDONLY);
    if (*fd < 0)
        return *fd;
    const ssize_t n = pread(*fd, buf, size - 1, 0);
    return n < 0 ? -errno : n;
}

int asym_procfs_read_stat(struct asym_procfs *p, int32_t pid, int32_t tid, struct asym_stat *ret)
{
    int r = asym_read_stat(p->config.root, pid, tid, ret);
    if ((r == -EMFILE || r == -ENFILE) && shed(p))
        r = asym_read_stat(p->config.root, pid, tid, ret);
    return r;
}

ssize_t asym_procfs_read_thread(struct asym_procfs *p, int32_t pid, int32_t tid, const char *name, int *fd, char *buf,
                                size_t size)
{
    char path[64] = "";
    const bool is_open = *fd >= 0;
    if (!is_open)
        snprintf(path, sizeof path, "proc/%d/task/%d/%s", (int)pid, (int)tid, name);
    if (!is_open && p->n_kept >= p->kept_max)
        return asym_procfs_read(p, path, buf, size);
    const ssize_t n = asym_procfs_read_kept(p, fd, path, buf, size);
    p->n_kept += !is_open && *fd >= 0;
    return n;
}

struct listing {
    struct asym_procfs *p;
    int (*fn)(struct asym_procfs *p, struct asym_process *proc, int32_t number);
    struct asym_process *proc;
};

static int take_number(void *arg, int32_t number)
{
    const struct listing *l = arg;
    return l->fn(l->p, l->proc, number);
}

int asym_procfs_list_part(struct asym_procfs *p, int fd,
                          int (*fn)(struct asym_procfs *p, struct asym_process *proc, int32_t number),
                          struct asym_process *proc)
{
    return asym_dir_read(fd, p->entries, ASYM_PROCFS_ENTRIES, take_number, &(struct listing){p, fn, proc});
}

int asym_procfs_list(struct asym_procfs *p, const char *path,
                     int (*fn)(struct asym_procfs *p, struct asym_process *proc, int32_t number),
                     struct asym_process *proc)
{
    ASYM_AUTO_CLOSE int fd = asym_procfs_open(p, path, O_RDONLY | O_DIRECTORY);
    int r = fd < 0 ? fd : 1;
    while (r > 0)
        r = asym_procfs_list_part(p, fd, fn, proc);
    return r;
}

static size_t in_use(void)
{
    char buf[4096];
    size_t count = 0;
    ASYM_AUTO_CLOSE int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (long n; fd >= 0 && (n = syscall(SYS_getdents64, fd, buf, sizeof buf)) > 0;)
        for (long at = 0; at < n; count++)
            at += ((const struct asym_dir_entry *)(const void *)(buf + at))->size;
    return count;
}

size_t asym_procfs_keepable(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 0;
    size_t all = limit.rlim_cur > 1 << 20 ? 1 << 20 : (size_t)limit.rlim_cur;
    size_t reserved = in_use() + ASYM_MIN((size_t)DESCRIPTORS_RESERVED, all / 4);
    return all > reserved ? all - reserved : 0;
}
