/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens and closes the ledger. The table is in ledger-table.c, the directory is in ledger-lock.c, the records in ledger-file.c. */
#include "linux/enforce/ledger-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "linux/sys/thread.h"

size_t asym_ledger_count(struct asym_ledger *l)
{
    pthread_mutex_lock(&l->lock);
    size_t n = l->n;
    pthread_mutex_unlock(&l->lock);
    return n;
}

/* The directory takes no lock file and no ledger, so no other asymd can have started there either. */
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
    asym_ledger_read_cpus(l, ASYM_CPUS_ONLINE, &l->online);
    asym_ledger_read_cpus(l, ASYM_CPUS_POSSIBLE, &l->possible);
    ASYM_AUTO_CLOSE int slash = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    asym_cgroup_mounts_read(&(struct asym_root){.fd = slash, .live = true}, &l->cgroups);
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
    pthread_mutex_lock(&l->lock);
    const struct asym_ledger_entry *e = asym_ledger_find(l, id->tid);
    const bool ours = e && e->id.tgid == id->tgid && e->id.start == id->start && asym_ledger_is_set(l, e, mask);
    if (ours) {
        const bool boosted = e->boosted && asym_ledger_is_nice_set(e, nice);
        *ret = (struct asym_ledger_own){.mask = asym_mask_and(&e->original, &l->possible),
                                        .nice = boosted ? e->original_nice : nice,
                                        .full_cpuset = e->full_cpuset};
    }
    pthread_mutex_unlock(&l->lock);
    return ours;
}

int asym_ledger_in_use(const char *dir)
{
    ASYM_AUTO_CLOSE int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return -errno;
    ASYM_AUTO_CLOSE int fd = openat(dir_fd, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT && faccessat(dir_fd, "ledger", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    if (fd < 0)
        return -errno;
    /* A starting asymd tries for longer than this moment. */
    return flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* A record may be older than the end of its thread, or than a change by another program. */
static bool is_left(const struct asym_ledger *l, const struct asym_ledger_entry *e)
{
    struct asym_mask found;
    struct asym_stat stat;
    if (asym_thread_get_stat_of(&e->id, &stat) < 0 || asym_thread_get_mask(e->id.tid, &found) < 0)
        return false;
    const bool boosted = e->boosted && stat.nice != e->original_nice && asym_ledger_is_nice_set(e, stat.nice);
    return boosted || (!asym_ledger_same_mask(l, &found, &e->original) && asym_ledger_is_set(l, e, &found));
}

int asym_ledger_left(const char *dir)
{
    struct asym_ledger *l;
    int n = 0, r = asym_ledger_in_use(dir);
    if (r != 0 && r != -EACCES)
        return r == -ENOENT || r > 0 ? 0 : r;
    r = asym_ledger_peek(dir, &l, NULL);
    if (r < 0)
        return r;
    for (size_t i = 0; i < l->n; i++)
        n += is_left(l, &l->entries[i]);
    asym_ledger_close(l);
    return n;
}

void asym_ledger_close(struct asym_ledger *l)
{
    if (!l)
        return;
    /* On a full disk asymd cannot rewrite the file, but it can remove it. */
    if ((l->fd >= 0 || l->owed) && l->n == 0 && !*asym_ledger_caps(l) && asym_ledger_is_attached(l))
        unlinkat(l->dir_fd, "ledger", 0);
    /* Close the lock last: the next asymd that gets it must find the file in its final state. */
    asym_close_p(&l->fd);
    asym_close_p(&l->dir_fd);
    asym_close_p(&l->lock_fd);
    for (size_t i = 0; i < ASYM_N_CPU_LISTS; i++)
        asym_close_p(&l->cpu_fds[i]);
    pthread_mutex_destroy(&l->lock);
    free(l->entries);
    free(l->tgids);
    asym_hash_done(&l->index);
    free(l->batch);
    free(l->caps);
    free(l->dir);
    free(l);
}
