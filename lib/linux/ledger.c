/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening and locking. Table: ledger-table.c, records: ledger-file.c. */
#include "linux/ledger-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "linux/ledger-file.h"

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

/*
 * One asymd at a time: two would fight over threads and over the file. Readable by its owner alone, as whoever may open
 * it may lock it.
 */
static int take_lock(struct asym_ledger *l, struct asym_error *err)
{
    char pid[32] = "";
    l->lock_fd = openat(l->dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (l->lock_fd < 0)
        return asym_fail(err, -errno, "%s/lock: %s", l->dir, strerror(errno));
    if (flock(l->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return asym_fail(err, -errno, "%s/lock: %s", l->dir, strerror(errno));
        ssize_t n = pread(l->lock_fd, pid, sizeof pid - 1, 0);
        pid[n > 0 ? strspn(pid, "0123456789") : 0] = '\0';
        return asym_fail(err, -EBUSY, "asymd is running already (PID %s, %s): stop it first", *pid ? pid : "unknown",
                         l->dir);
    }
    /* The number is for people: on a full disk the lock holds without it. */
    int n = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    if (ftruncate(l->lock_fd, 0) == 0 && pwrite(l->lock_fd, pid, (size_t)n, 0) < 0)
        return errno == ENOSPC ? 0 : asym_fail(err, -errno, "%s/lock: %s", l->dir, strerror(errno));
    return 0;
}

static int open_directory(struct asym_ledger *l, struct asym_error *err)
{
    if (mkdir(l->dir, 0755) < 0 && errno != EEXIST)
        return asym_fail(err, -errno, "%s: %s%s", l->dir, strerror(errno),
                         errno == EACCES ? " (run as root, or set asymd.state_dir)" : "");
    l->dir_fd = open(l->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return l->dir_fd < 0 ? asym_fail(err, -errno, "%s: %s", l->dir, strerror(errno)) : 0;
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
    int r = make(dir, &l, err);
    if (r < 0)
        return r;
    r = open_directory(l, err);
    if (r >= 0)
        r = take_lock(l, err);
    if (r >= 0)
        r = asym_ledger_read_file(l, err);
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
    if (l->fd >= 0 && l->n == 0)
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
