/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory of the ledger, and the lock file in it, which keeps out another asymd. */
#include "linux/enforce/ledger-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"

enum { LOCK_PATIENCE_MS = 300, LOCK_STEP_MS = 5 };

/* Falls back to O_RDONLY: flock also works on a read-only file system. Returns a descriptor; -errno. */
static int open_lock(int dir_fd)
{
    static const int modes[] = {O_RDWR | O_CREAT, O_RDONLY};
    int fd = -1;
    for (size_t i = 0; fd < 0 && i < ASYM_LENGTH(modes) && (i == 0 || errno == EROFS); i++)
        fd = openat(dir_fd, "lock", modes[i] | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    return fd < 0 ? -errno : fd;
}

/*
 * A child of asymd also holds the lock, from its fork to its exec. If asymd is killed in between, the lock outlives it
 * for a moment, so retry. Seen once in 100 kills, when --restore reported that asymd runs already.
 */
static int lock_file(int fd)
{
    int r = -1;
    for (int waited = 0; waited <= LOCK_PATIENCE_MS; waited += LOCK_STEP_MS) {
        r = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
        if (r != -EWOULDBLOCK)
            break;
        poll(NULL, 0, LOCK_STEP_MS);
    }
    return r;
}

static void replace_fd(int *fd, int with)
{
    asym_close_p(fd);
    *fd = with;
}

/*
 * Only one asymd may run: two would fight over the threads and the file. Only the owner may read the lock file, because
 * every process that can open it can also lock it.
 */
static int take_lock(struct asym_ledger *l, struct asym_error *err)
{
    char pid[32] = "";
    ASYM_AUTO_CLOSE int fd = open_lock(l->dir_fd);
    if (fd < 0)
        return asym_fail(err, fd, "%s/lock: %s%s", l->dir, strerror(-fd),
                         fd == -EACCES
                             ? " (it is another user's: run as root, or with CAP_DAC_OVERRIDE; or steer your own "
                               "programs with --set=asymd.state_dir=DIR; asymd --dry-run needs no right)"
                             : "");
    const int r = lock_file(fd);
    if (r < 0) {
        if (r != -EWOULDBLOCK)
            return asym_fail(err, r, "%s/lock: %s", l->dir, strerror(-r));
        ssize_t n = pread(fd, pid, sizeof pid - 1, 0);
        pid[n > 0 ? strspn(pid, "0123456789") : 0] = '\0';
        return asym_fail(err, -EBUSY, "asymd is running already (PID %s, %s): stop it first", *pid ? pid : "unknown",
                         l->dir);
    }
    /* The PID is for users. On a full or read-only file system the lock also works without it. */
    int n = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) == 0 && pwrite(fd, pid, (size_t)n, 0) < 0)
        pid[0] = '\0';
    replace_fd(&l->lock_fd, fd);
    fd = -1;
    return 0;
}

static int open_directory(const char *dir, struct asym_error *err)
{
    /* Others may not list it: a listing can hold the lock of the directory for any time (docs/threat-model.md). */
    if (mkdir(dir, 0711) < 0 && errno != EEXIST)
        return asym_fail(
            err, -errno, "%s: %s%s", dir, strerror(errno),
            errno == EACCES
                ? " (run as root, or steer your own programs with --set=asymd.state_dir=DIR; asymd --dry-run needs "
                  "no right)"
                : "");
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? asym_fail(err, -errno, "%s: %s", dir, strerror(errno)) : fd;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

static bool holds_directory(const struct asym_ledger *l)
{
    struct stat named, ours;
    return l->dir_fd >= 0 && stat(l->dir, &named) == 0 && fstat(l->dir_fd, &ours) == 0 && is_same(&named, &ours);
}

bool asym_ledger_is_attached(const struct asym_ledger *l)
{
    struct stat named, ours;
    return holds_directory(l) && l->lock_fd >= 0 && fstat(l->lock_fd, &ours) == 0 &&
           fstatat(l->dir_fd, "lock", &named, AT_SYMLINK_NOFOLLOW) == 0 && is_same(&named, &ours);
}

int asym_ledger_attach(struct asym_ledger *l, struct asym_error *err)
{
    if (asym_ledger_is_attached(l))
        return 0;
    if (!holds_directory(l)) {
        struct stat st;
        ASYM_AUTO_CLOSE int fd = open_directory(l->dir, err);
        if (fd < 0)
            return fd;
        /* A new directory under the old name must belong to asymd's user: --restore trusts the ledger in it. */
        if (l->dir_fd >= 0 && (fstat(fd, &st) < 0 || st.st_uid != geteuid()))
            return asym_fail(err, -EPERM, "%s now belongs to another user", l->dir);
        replace_fd(&l->dir_fd, fd);
        fd = -1;
        replace_fd(&l->lock_fd, -1); /* it is in the old directory */
    }
    return take_lock(l, err);
}
