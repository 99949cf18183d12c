/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table, and opening and locking the file. Records: ledger-file.c. */
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
#include "linux/thread.h"

void asym_ledger_lock(struct asym_ledger *l)
{
    pthread_mutex_lock(&l->lock);
}

void asym_ledger_unlock(struct asym_ledger *l)
{
    pthread_mutex_unlock(&l->lock);
}

static size_t slot_of(const struct asym_ledger *l, int32_t tid)
{
    return (uint32_t)tid * 2654435769u & (l->n_buckets - 1);
}

static void index_all(struct asym_ledger *l)
{
    memset(l->buckets, 0, l->n_buckets * sizeof *l->buckets);
    for (size_t i = 0; i < l->n; i++) {
        size_t s = slot_of(l, l->entries[i].id.tid);
        while (l->buckets[s] != 0)
            s = (s + 1) & (l->n_buckets - 1);
        l->buckets[s] = (uint32_t)i + 1;
    }
}

struct asym_ledger_entry *asym_ledger_find(struct asym_ledger *l, int32_t tid)
{
    for (size_t s = l->n_buckets ? slot_of(l, tid) : 0; l->n_buckets && l->buckets[s] != 0;
         s = (s + 1) & (l->n_buckets - 1))
        if (l->entries[l->buckets[s] - 1].id.tid == tid)
            return &l->entries[l->buckets[s] - 1];
    return NULL;
}

static int grow(struct asym_ledger *l)
{
    size_t capacity = l->capacity ? l->capacity * 2 : 64;
    struct asym_ledger_entry *entries = reallocarray(l->entries, capacity, sizeof *entries);
    if (!entries)
        return -ENOMEM;
    l->entries = entries;
    uint32_t *buckets = reallocarray(l->buckets, capacity * 2, sizeof *buckets);
    if (!buckets)
        return -ENOMEM;
    l->buckets = buckets;
    l->capacity = capacity;
    l->n_buckets = capacity * 2;
    index_all(l);
    return 0;
}

struct asym_ledger_entry *asym_ledger_add(struct asym_ledger *l, const struct asym_taskid *id)
{
    if (l->n == l->capacity && grow(l) < 0)
        return NULL;
    struct asym_ledger_entry *e = &l->entries[l->n++];
    *e = (struct asym_ledger_entry){.id = *id};
    size_t s = slot_of(l, id->tid);
    while (l->buckets[s] != 0)
        s = (s + 1) & (l->n_buckets - 1);
    l->buckets[s] = (uint32_t)l->n;
    return e;
}

/* Empty the slot, and move up what probing would no longer find behind the gap. */
static void unlink_slot(struct asym_ledger *l, size_t gap)
{
    size_t mask = l->n_buckets - 1;
    l->buckets[gap] = 0;
    for (size_t s = (gap + 1) & mask; l->buckets[s] != 0; s = (s + 1) & mask) {
        size_t home = slot_of(l, l->entries[l->buckets[s] - 1].id.tid);
        if (((s - home) & mask) < ((s - gap) & mask))
            continue;
        l->buckets[gap] = l->buckets[s];
        l->buckets[s] = 0;
        gap = s;
    }
}

static size_t slot_holding(const struct asym_ledger *l, size_t i)
{
    size_t s = slot_of(l, l->entries[i].id.tid);
    while (l->buckets[s] != (uint32_t)i + 1)
        s = (s + 1) & (l->n_buckets - 1);
    return s;
}

void asym_ledger_remove(struct asym_ledger *l, struct asym_ledger_entry *e)
{
    size_t i = (size_t)(e - l->entries), last = l->n - 1;
    unlink_slot(l, slot_holding(l, i));
    if (i != last) {
        l->buckets[slot_holding(l, last)] = (uint32_t)i + 1;
        l->entries[i] = l->entries[last];
    }
    l->n--;
}

void asym_ledger_note_release(struct asym_ledger *l, int32_t tgid, asym_usec when)
{
    struct asym_ledger_release *ways = l->releases[(uint32_t)tgid % ASYM_LEDGER_RELEASE_SETS], *slot = ways;
    for (size_t i = 0; i < ASYM_LEDGER_RELEASE_WAYS; i++) {
        if (ways[i].tgid == tgid) {
            slot = &ways[i];
            break;
        }
        if (ways[i].when < slot->when)
            slot = &ways[i];
    }
    *slot = (struct asym_ledger_release){tgid, when};
}

bool asym_ledger_was_released(const struct asym_ledger *l, int32_t tgid, asym_usec since)
{
    const struct asym_ledger_release *ways = l->releases[(uint32_t)tgid % ASYM_LEDGER_RELEASE_SETS];
    for (size_t i = 0; i < ASYM_LEDGER_RELEASE_WAYS; i++)
        if (ways[i].tgid == tgid && ways[i].when >= since)
            return true;
    return false;
}

bool asym_ledger_same_mask(const struct asym_ledger *l, const struct asym_mask *a, const struct asym_mask *b)
{
    struct asym_mask x = asym_mask_and(a, &l->online), y = asym_mask_and(b, &l->online);
    return asym_mask_equal(&x, &y);
}

void asym_ledger_renew_online(struct asym_ledger *l)
{
    char text[8192];
    struct asym_mask online;
    ASYM_AUTO_CLOSE int fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : -1;
    if (n > 0 && asym_mask_parse_list(text, (size_t)n, &online) == 0 && !asym_mask_empty(&online))
        l->online = online;
    else
        memset(&l->online, 0xff, sizeof l->online);
}

static int give_back_nice(const struct asym_ledger_entry *e)
{
    struct asym_thread_sched now;
    if (!e->boosted)
        return 0;
    int r = asym_thread_get_sched(e->id.tid, &now);
    if (r < 0)
        return r;
    if (now.nice == e->original_nice && now.reset_on_fork == e->original_reset)
        return 0;
    if (now.nice != e->set_nice && now.nice != e->before_nice)
        return -EBUSY;
    return asym_thread_set_nice(e->id.tid, e->original_nice, e->original_reset);
}

int asym_ledger_give_back(const struct asym_ledger *l, const struct asym_ledger_entry *e)
{
    struct asym_mask found;
    uint64_t start;
    int r = asym_thread_start(e->id.tgid, e->id.tid, &start);
    if (r < 0 || start != e->id.start)
        return r < 0 ? r : -ESRCH;
    r = asym_thread_get_mask(e->id.tid, &found);
    if (r < 0)
        return r;
    int nice = give_back_nice(e);
    if (asym_ledger_same_mask(l, &found, &e->original))
        return nice;
    if (!asym_ledger_same_mask(l, &found, &e->set) && !asym_ledger_same_mask(l, &found, &e->before))
        return nice < 0 && nice != -EBUSY ? nice : -EBUSY;
    r = asym_thread_set_mask(e->id.tid, &e->original, e->whole);
    return r < 0 ? r : nice;
}

bool asym_ledger_inherited_mask(const struct asym_ledger *l, const struct asym_ledger_entry *e,
                                const struct asym_mask *found)
{
    return !asym_ledger_same_mask(l, found, &e->original) &&
           (asym_ledger_same_mask(l, found, &e->set) || asym_ledger_same_mask(l, found, &e->before));
}

/* A child of a thread with reset-on-fork has 0 for a negative nice, and not that flag. */
static int8_t nice_of_child(int8_t nice, bool reset)
{
    return reset && nice < 0 ? 0 : nice;
}

bool asym_ledger_inherited_nice(const struct asym_ledger_entry *e, int8_t nice)
{
    return e->boosted && nice != nice_of_child(e->original_nice, e->original_reset) &&
           (nice == nice_of_child(e->set_nice, true) || nice == nice_of_child(e->before_nice, true));
}

int asym_ledger_widen(const struct asym_ledger *l, const struct asym_ledger_entry *e, int32_t tid)
{
    struct asym_mask found;
    struct asym_thread_sched now;
    int mask = asym_thread_get_mask(tid, &found), nice = 0;
    if (mask < 0)
        return mask;
    const bool narrow = asym_ledger_inherited_mask(l, e, &found);
    if (narrow)
        mask = asym_thread_set_mask(tid, &e->original, e->whole);
    bool boosted = e->boosted && asym_thread_get_sched(tid, &now) == 0 && asym_ledger_inherited_nice(e, now.nice);
    if (boosted)
        nice = asym_thread_set_nice(tid, nice_of_child(e->original_nice, e->original_reset), now.reset_on_fork);
    return mask < 0 ? mask : nice < 0 ? nice : narrow || boosted;
}

size_t asym_ledger_count(struct asym_ledger *l)
{
    asym_ledger_lock(l);
    size_t n = l->n;
    asym_ledger_unlock(l);
    return n;
}

/* One asymd at a time: two would fight over threads and over the file. */
static int take_lock(struct asym_ledger *l, struct asym_error *err)
{
    char pid[32] = "";
    l->lock_fd = openat(l->dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (l->lock_fd < 0)
        return asym_fail(err, -errno, "%s/lock: %s", l->dir, strerror(errno));
    if (flock(l->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return asym_fail(err, -errno, "%s/lock: %s", l->dir, strerror(errno));
        ssize_t n = pread(l->lock_fd, pid, sizeof pid - 1, 0);
        pid[n > 0 ? strcspn(pid, "\n") : 0] = '\0';
        return asym_fail(err, -EBUSY, "asymd is running already (PID %s, %s): stop it first", *pid ? pid : "unknown",
                         l->dir);
    }
    int n = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    if (ftruncate(l->lock_fd, 0) < 0 || pwrite(l->lock_fd, pid, (size_t)n, 0) != n)
        return asym_fail(err, -EIO, "%s/lock: cannot be written", l->dir);
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

int asym_ledger_open(const char *dir, struct asym_ledger **ret_ledger, struct asym_error *err)
{
    struct asym_ledger *l = calloc(1, sizeof *l);
    pthread_mutexattr_t attr;
    if (!l)
        return asym_fail(err, -ENOMEM, "no memory for the ledger");
    l->dir_fd = l->lock_fd = l->fd = -1;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&l->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    asym_ledger_renew_online(l);
    l->dir = strdup(dir);
    int r = l->dir ? open_directory(l, err) : asym_fail(err, -ENOMEM, "no memory for the ledger");
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

void asym_ledger_close(struct asym_ledger *l)
{
    if (!l)
        return;
    if (l->fd >= 0 && l->n == 0)
        unlinkat(l->dir_fd, "ledger", 0);
    int fds[] = {l->fd, l->lock_fd, l->dir_fd};
    for (size_t i = 0; i < ASYM_LENGTH(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    pthread_mutex_destroy(&l->lock);
    free(l->entries);
    free(l->buckets);
    free(l->batch);
    free(l->dir);
    free(l);
}
