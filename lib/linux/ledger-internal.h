/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The ledger's table and file, for the actuator, the guard and the restorer. */
#ifndef ASYM_LINUX_LEDGER_INTERNAL_H
#define ASYM_LINUX_LEDGER_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "linux/ledger.h"

/** A thread that asymd has touched. set is what was last written or about to be; before, what was there before that. */
struct asym_ledger_entry {
    struct asym_taskid id;
    uint64_t since; /**< when it was steered first, in the unit of id.start: heirs are born later */
    struct asym_mask original, set, before;
    int8_t original_nice, set_nice, before_nice;
    bool original_reset; /**< reset-on-fork as it was */
    bool boosted;        /**< nice has been touched */
    bool whole;
};

/** When the guard last released a process. */
struct asym_ledger_release {
    int32_t tgid;
    asym_usec when;
};

/** By tgid, in sets of ways: a fork storm of others must not push out a process that was released just now. */
#define ASYM_LEDGER_RELEASE_SETS 1024
#define ASYM_LEDGER_RELEASE_WAYS 4

struct asym_ledger {
    pthread_mutex_t lock; /**< priority inheritance: the guard has a real-time priority */
    struct asym_ledger_entry *entries;
    size_t n, capacity;
    uint32_t *buckets; /**< hash of tid: index + 1, linear probing; a power of two */
    size_t n_buckets;
    struct asym_ledger_release releases[ASYM_LEDGER_RELEASE_SETS][ASYM_LEDGER_RELEASE_WAYS];
    char *dir;
    int dir_fd, lock_fd, fd;
    struct asym_mask online; /**< an affinity that is read back hides offline CPUs; renewed by each apply and restore */
    size_t n_records;        /**< lines in the file */
    bool torn;               /**< a batch was written in part: the file has to be written anew before it is added to */
    char *batch;             /**< records that are not written yet */
    size_t batch_len, batch_capacity;
};

void asym_ledger_lock(struct asym_ledger *l);
void asym_ledger_unlock(struct asym_ledger *l);

/* The rest is called with the lock held. */
struct asym_ledger_entry *asym_ledger_find(struct asym_ledger *l, int32_t tid);
struct asym_ledger_entry *asym_ledger_add(struct asym_ledger *l, const struct asym_taskid *id);
void asym_ledger_remove(struct asym_ledger *l, struct asym_ledger_entry *e);

/**
 * Note the entry's present content in the batch; asym_ledger_flush writes the batch in one call. 0; -errno. After a
 * failure the next flush that succeeds puts the whole table on record, so nothing has to be noted again.
 */
int asym_ledger_note(struct asym_ledger *l, const struct asym_ledger_entry *e);
int asym_ledger_note_gone(struct asym_ledger *l, const struct asym_taskid *id);
int asym_ledger_flush(struct asym_ledger *l);

/**
 * Give the thread what it had: mask and nice each compared on its own first. 0; -ESRCH gone; -EBUSY one of them is
 * somebody else's (the other was given back); -errno. Keeps the entry.
 */
int asym_ledger_give_back(const struct asym_ledger *l, const struct asym_ledger_entry *e);

/** Is this what a child of the entry's thread starts with, and would not have started with but for asymd? */
bool asym_ledger_inherited_mask(const struct asym_ledger *l, const struct asym_ledger_entry *e,
                                const struct asym_mask *found);
bool asym_ledger_inherited_nice(const struct asym_ledger_entry *e, int8_t nice);

/** Where a child of the entry's thread has inherited either, give it what it would have started with. 1 when something was changed, 0; -errno. */
int asym_ledger_widen(const struct asym_ledger *l, const struct asym_ledger_entry *e, int32_t tid);

/** Do both say the same of the online CPUs? */
bool asym_ledger_same_mask(const struct asym_ledger *l, const struct asym_mask *a, const struct asym_mask *b);
void asym_ledger_renew_online(struct asym_ledger *l);

void asym_ledger_note_release(struct asym_ledger *l, int32_t tgid, asym_usec when);
bool asym_ledger_was_released(const struct asym_ledger *l, int32_t tgid, asym_usec since);

#endif
