/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/sys/root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/macro.h"
#include "base/mask.h"

/* Lookups of one path, one after another, that renames elsewhere may make fail. */
#define TRIES 64

static bool has_directory(int fd, const char *name)
{
    struct stat st;
    return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* 1; 0; -errno. */
static int is_slash(int fd)
{
    struct stat root, st;
    if (fstat(fd, &st) < 0 || stat("/", &root) < 0)
        return -errno;
    return st.st_dev == root.st_dev && st.st_ino == root.st_ino;
}

int asym_root_open(const char *path, struct asym_root *ret_root, struct asym_error *err)
{
    if (!path)
        path = "/";
    ASYM_AUTO_CLOSE int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        int error = -errno;
        return asym_fail(err, error, "%s: %s", path, strerror(-error));
    }
    /* One of the two is enough: captures made by hwloc often have sys only. A caller that needs the other one checks for it. */
    errno = 0;
    if (!has_directory(fd, "proc") && !has_directory(fd, "sys")) {
        /* Without search permission, say, neither is visible: report that error, not a wrong directory. */
        const int error = errno;
        if (error != 0 && error != ENOENT && error != ENOTDIR)
            return asym_fail(err, -error, "%s: %s", path, strerror(error));
        return asym_fail(err, -ENOTDIR, "%s: it has neither a proc nor a sys directory, so it is no captured machine",
                         path);
    }
    const int live = is_slash(fd);
    if (live < 0)
        return asym_fail(err, live, "%s: %s", path, strerror(-live));
    char *copy = strdup(path);
    if (!copy)
        return asym_fail(err, -ENOMEM, "%s: %s", path, strerror(ENOMEM));
    *ret_root = (struct asym_root){.fd = fd, .live = live > 0, .path = copy};
    fd = -1;
    return 0;
}

void asym_root_done(struct asym_root *root)
{
    if (root->fd >= 0)
        close(root->fd);
    free(root->path);
    free(root->cgroups);
    *root = (struct asym_root){.fd = -1};
}

int asym_openat2(int dir, const char *path, const struct open_how *how, unsigned tries)
{
    long fd = -1;
    errno = EAGAIN;
    for (unsigned i = 0; i < tries && fd < 0 && errno == EAGAIN; i++)
        fd = syscall(SYS_openat2, dir, path, how, sizeof *how);
    return fd < 0 ? -errno : (int)fd;
}

int asym_root_openat(const struct asym_root *root, const char *path, int flags)
{
    /* With O_PATH, openat2 rejects flags that openat ignores. */
    flags |= O_CLOEXEC | (flags & O_PATH ? 0 : O_NOCTTY);
    if (root->live) {
        int fd = openat(root->fd, path, flags);
        return fd < 0 ? -errno : fd;
    }
    const struct open_how how = {.flags = (unsigned)flags, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    return asym_openat2(root->fd, path, &how, TRIES);
}

ssize_t asym_root_read(const struct asym_root *root, const char *path, char *buf, size_t size)
{
    if (size == 0)
        return -EINVAL;
    /* asymd must not wait for the writer of a FIFO in a captured tree. */
    ASYM_AUTO_CLOSE int fd = asym_root_openat(root, path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return fd;
    struct stat st;
    if (!root->live && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))
        return -EINVAL;
    const ssize_t len = asym_read_all(fd, buf, size - 1);
    if (len >= 0)
        buf[len] = '\0';
    return len;
}

int asym_root_opendir(const struct asym_root *root, const char *path, DIR **ret)
{
    const int fd = asym_root_openat(root, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !dir)
        close(fd);
    *ret = dir ? dir : *ret;
    return dir ? 0 : fd < 0 ? fd : -ENOMEM;
}

int asym_root_read_list(const struct asym_root *root, const char *path, struct asym_mask *ret)
{
    char text[2 * ASYM_MASK_LIST_MAX];
    const ssize_t n = asym_root_read(root, path, text, sizeof text);
    if (n < 0 || (size_t)n == sizeof text - 1)
        return n < 0 ? (int)n : -EINVAL;
    return asym_mask_parse_list(text, (size_t)n, ret);
}

/* Directories whose names are numbers, as in /proc. Allocates nothing, as opendir(3) does. */

static int32_t number_of(const char *name)
{
    int64_t n = 0;
    for (const char *c = name; *c; c++) {
        if (*c < '0' || *c > '9' || n > INT32_MAX / 10)
            return 0;
        n = n * 10 + (*c - '0');
    }
    return n <= INT32_MAX && name[0] != '0' ? (int32_t)n : 0;
}

int asym_dir_read(int fd, char *buf, size_t size, asym_dir_fn *fn, void *arg)
{
    const long n = syscall(SYS_getdents64, fd, buf, size);
    if (n < 0)
        return -errno;
    for (long at = 0; at < n;) {
        const struct asym_dir_entry *e = (const struct asym_dir_entry *)(const void *)(buf + at);
        const int32_t number = number_of(e->name);
        const int r = number > 0 ? fn(arg, number) : 0;
        if (r < 0)
            return r;
        at += e->size;
    }
    return n > 0;
}
