/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening and locking. Table: ledger-table.c, records: ledger-file.c. */
#include "linux/ledger-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "linux/ledger-file.h"

enum { LOCK_PATIENCE_MS = 300, LOCK_STEP_MS = 5 };

void asym_ledger_lock(struct asym_ledger *l)
{
    pthread_mutex_lock(&l->lock);
}

void asym_ledger_unlock(struct asym_ledger *l)
{
    pthread_mutex_unlock(&l->lock);
}

size_t asym_ledger_count(struct asym_ledger *l)
{
    asym_ledger_lock(l);
    size_t n = l->n;
    asym_ledger_unlock(l);
    return n;
}

/* On a file system that has become read-only the lock holds, too. A descriptor; -errno. */
static int open_lock(int dir_fd)
{
    static const int ways[] = {O_RDWR | O_CREAT, O_RDONLY};
    int fd = -1;
    for (size_t i = 0; fd < 0 && i < ASYM_LENGTH(ways) && (i == 0 || errno == EROFS); i++)
        fd = openat(dir_fd, "lock", ways[i] | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    return fd < 0 ? -errno : fd;
}

/*
 * A child that asymd has started holds the lock, too, from its fork to its exec: where asymd is killed just then, the lock
 * outlives it for a moment. Seen once in 100 kills, by "running already" from --restore.
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

/*
 * One asymd at a time: two would fight over threads and over the file. Readable by its owner alone, as whoever may open
 * it may lock it.
 */
static int take_lock(struct asym_ledger *l, int dir_fd, int *ret_fd, struct asym_error *err)
{
    char pid[32] = "";
    ASYM_AUTO_CLOSE int fd = open_lock(dir_fd);
    if (fd < 0)
        return asym_fail(err, fd, "%s/lock: %s", l->dir, strerror(-fd));
    const int r = lock_file(fd);
    if (r < 0) {
        if (r != -EWOULDBLOCK)
            return asym_fail(err, r, "%s/lock: %s", l->dir, strerror(-r));
        ssize_t n = pread(fd, pid, sizeof pid - 1, 0);
        pid[n > 0 ? strspn(pid, "0123456789") : 0] = '\0';
        return asym_fail(err, -EBUSY, "asymd is running already (PID %s, %s): stop it first", *pid ? pid : "unknown",
                         l->dir);
    }
    /* The number is for people: on a disk that is full or read-only the lock holds without it. */
    int n = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) == 0 && pwrite(fd, pid, (size_t)n, 0) < 0)
        pid[0] = '\0';
    *ret_fd = fd;
    fd = -1;
    return 0;
}

static int open_directory(const char *dir, struct asym_error *err)
{
    if (mkdir(dir, 0755) < 0 && errno != EEXIST)
        return asym_fail(err, -errno, "%s: %s%s", dir, strerror(errno),
                         errno == EACCES ? " (run as root, or set asymd.state_dir)" : "");
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

static void replace_fd(int *fd, int with)
{
    if (*fd >= 0)
        close(*fd);
    *fd = with;
}

/* A directory that replaces asymd's must belong to its user, too: --restore believes the ledger in it. */
static int open_again(const char *dir, struct asym_error *err)
{
    struct stat st;
    ASYM_AUTO_CLOSE int fd = open_directory(dir, err);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0 || st.st_uid != geteuid())
        return asym_fail(err, -EPERM, "%s: belongs to another user now", dir);
    const int own = fd;
    fd = -1;
    return own;
}

int asym_ledger_attach(struct asym_ledger *l, struct asym_error *err)
{
    int lock_fd = -1;
    if (asym_ledger_is_attached(l))
        return 0;
    if (!holds_directory(l)) {
        int fd = l->dir_fd < 0 ? open_directory(l->dir, err) : open_again(l->dir, err);
        if (fd < 0)
            return fd;
        replace_fd(&l->dir_fd, fd);
        replace_fd(&l->lock_fd, -1); /* of the directory before */
    }
    int r = take_lock(l, l->dir_fd, &lock_fd, err);
    if (r >= 0)
        replace_fd(&l->lock_fd, lock_fd);
    return r;
}

/* No lock file can be made in it, and so no ledger: another asymd cannot have begun there either. */
static bool takes_no_files(int error)
{
    return error == -ENOSPC || error == -EDQUOT || error == -EROFS;
}

static void init_lock(struct asym_ledger *l)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&l->lock, &attr);
    pthread_mutexattr_destroy(&attr);
}

static int make(const char *dir, struct asym_ledger **ret_ledger, struct asym_error *err)
{
    struct asym_ledger *l = calloc(1, sizeof *l);
    if (!l)
        return asym_fail(err, -ENOMEM, "no memory for the ledger");
    l->dir_fd = l->lock_fd = l->fd = -1;
    memset(l->cpu_fds, 0xff, sizeof l->cpu_fds);
    init_lock(l);
    asym_ledger_renew_online(l);
    l->dir = strdup(dir);
    if (!l->dir) {
        asym_ledger_close(l);
        return asym_fail(err, -ENOMEM, "no memory for the ledger");
    }
    *ret_ledger = l;
    return 0;
}

int asym_ledger_open(const char *dir, struct asym_ledger **ret_ledger, struct asym_error *err)
{
    struct asym_ledger *l;
    struct asym_error said = {""};
    int r = make(dir, &l, err);
    if (r < 0)
        return r;
    r = asym_ledger_attach(l, &said);
    if (r < 0 && l->dir_fd >= 0 && takes_no_files(r))
        r = 0;
    if (r >= 0)
        r = asym_ledger_read_file(l, err);
    else if (err)
        *err = said;
    if (r < 0) {
        asym_ledger_close(l);
        return r;
    }
    *ret_ledger = l;
    return 0;
}

int asym_ledger_peek(const char *dir, struct asym_ledger **ret_ledger, struct asym_error *err)
{
    struct asym_ledger *l;
    int r = make(dir, &l, err);
    if (r < 0)
        return r;
    l->dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (l->dir_fd >= 0)
        r = asym_ledger_peek_file(l, err);
    else if (errno != ENOENT)
        r = asym_fail(err, -errno, "%s: %s", dir, strerror(errno));
    if (r < 0 && r != -ENOENT) {
        asym_ledger_close(l);
        return r;
    }
    *ret_ledger = l;
    return 0;
}

bool asym_ledger_own(struct asym_ledger *l, const struct asym_taskid *id, const struct asym_mask *mask, int8_t nice,
                     struct asym_ledger_own *ret)
{
    asym_ledger_lock(l);
    const struct asym_ledger_entry *e = asym_ledger_find(l, id->tid);
    const bool ours = e && e->id.tgid == id->tgid && e->id.start == id->start && asym_ledger_is_set(l, e, mask);
    if (ours) {
        const bool boosted = e->boosted && asym_ledger_is_nice_set(e, nice);
        *ret = (struct asym_ledger_own){.mask = asym_mask_and(&e->original, &l->possible),
                                        .nice = boosted ? e->original_nice : nice,
                                        .whole = e->whole};
    }
    asym_ledger_unlock(l);
    return ours;
}

void asym_ledger_close(struct asym_ledger *l)
{
    if (!l)
        return;
    /* On a full disk the file cannot be written anew, but it can be removed. */
    if ((l->fd >= 0 || l->owed) && l->n == 0 && asym_ledger_is_attached(l))
        unlinkat(l->dir_fd, "ledger", 0);
    /* The lock goes last: whoever gets it must find the file as it is left. */
    int fds[] = {l->fd, l->dir_fd, l->lock_fd};
    for (size_t i = 0; i < ASYM_LENGTH(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    for (size_t i = 0; i < ASYM_N_CPU_LISTS; i++)
        if (l->cpu_fds[i] >= 0)
            close(l->cpu_fds[i]);
    pthread_mutex_destroy(&l->lock);
    free(l->entries);
    free(l->tgids);
    free(l->buckets);
    free(l->batch);
    free(l->dir);
    free(l);
}
