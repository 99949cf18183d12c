/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The ledger's insides, for the actuator, the guard and the restorer. */
#ifndef ASYM_LINUX_LEDGER_INTERNAL_H
#define ASYM_LINUX_LEDGER_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "linux/ledger.h"

/**
 * A thread that asymd has touched. set is what was last written or about to be, before what was in force when that was
 * noted. While it is under way from the one to the other it may have via alone: after a kill at any moment the thread has
 * one of original, set, before and via.
 */
struct asym_ledger_entry {
    struct asym_taskid id;
    struct asym_mask original, set, before;
    uint64_t since;  /**< when it was first touched, clock ticks since boot as in id.start */
    int32_t session; /**< of its process then: what its orphans are known by */
    uint32_t via;    /**< a CPU + 1, as of asym_action; 0: none */
    int8_t original_nice, set_nice, before_nice;
    bool original_reset; /**< reset-on-fork as it was */
    bool boosted;        /**< nice and reset-on-fork have been touched, or are about to be */
    bool whole;          /**< original is all that its cpuset allowed */
    bool in_force;       /**< not in the file: something has been changed, it was not only noted */
    bool under_way;      /**< it may have via, and that by asymd; the file has via as long */
    asym_usec via_until; /**< not in the file: children born until then, monotonic, may have via */
};

/**
 * What a thread that the guard has released, or repaired, may have handed down before that: a birth that is reported
 * later, but happened until then, is of a child with a narrowed mask.
 */
struct asym_ledger_legacy {
    struct asym_ledger_entry from;
    asym_usec until;
};

/**
 * A child's mask is copied at the beginning of fork, its event is stamped at the end, and in between the kernel may be
 * preempted: so much later than a change of its creator a birth may be stamped and the child have what was before.
 */
#define ASYM_LEDGER_LATE     (100 * ASYM_MSEC)

#define ASYM_LEDGER_LEGACIES 256

/** When the guard last released a process, or saw it create another. */
struct asym_ledger_release {
    int32_t tgid;
    asym_usec when;
};

/** By tgid, in sets of ways: a fork storm of others must not push out a process that was released just now. */
#define ASYM_LEDGER_RELEASE_SETS 1024
#define ASYM_LEDGER_RELEASE_WAYS 4

/** The kernel's lists of CPUs that what was set is held against. */
enum asym_cpu_list { ASYM_CPUS_ONLINE, ASYM_CPUS_POSSIBLE, ASYM_CPUS_ISOLATED, ASYM_N_CPU_LISTS };

struct asym_ledger {
    pthread_mutex_t lock; /**< priority inheritance: the guard has a real-time priority */
    struct asym_ledger_entry *entries;
    int32_t *tgids; /**< of entries: every fork in the machine is looked up here, 40 KB instead of 4 MB at 10,000 */
    size_t n, capacity;
    uint32_t *buckets; /**< hash of tid: index + 1, linear probing; a power of two */
    size_t n_buckets;
    struct asym_ledger_release releases[ASYM_LEDGER_RELEASE_SETS][ASYM_LEDGER_RELEASE_WAYS];
    struct asym_ledger_legacy legacies[ASYM_LEDGER_LEGACIES]; /**< a ring */
    size_t next_legacy;
    asym_usec legacies_until; /**< the latest of theirs: most of the time there is nothing to look through */
    char *dir;
    int dir_fd, lock_fd, fd;
    int cpu_fds[ASYM_N_CPU_LISTS]; /**< kept, as opening them takes longer than changing a mask; -1: not open */
    struct asym_mask online; /**< an affinity that is read back hides offline CPUs; renewed by each apply and restore */
    struct asym_mask possible;
    bool isolated;    /**< there are isolated CPUs: no thread gets them by a mask of all ones */
    size_t size;      /**< of the file */
    size_t n_records; /**< lines in the file, the first not counted */
    bool owed;        /**< the file could not be brought up to date: the next flush writes it anew */
    bool was_lost;    /**< it was not what asymd had written, and has been written anew; until asym_ledger_tend */
    char *batch;      /**< records that are not written yet */
    size_t batch_len, batch_capacity, batch_records;
};

void asym_ledger_lock(struct asym_ledger *l);
void asym_ledger_unlock(struct asym_ledger *l);

/* The rest is called with the lock held. Pointers to entries hold until the next add or remove. */

/**
 * Open the directory and its lock file, made where they are missing, and hold the lock: again where another directory or
 * another lock file has their name now. 0; -EBUSY: another asymd holds it; -errno.
 */
int asym_ledger_attach(struct asym_ledger *l, struct asym_error *err);

/** Are both still what their names stand for? */
bool asym_ledger_is_attached(const struct asym_ledger *l);

struct asym_ledger_entry *asym_ledger_find(struct asym_ledger *l, int32_t tid);
/** NULL for want of memory. The caller sees to it that the tid is not there yet. */
struct asym_ledger_entry *asym_ledger_add(struct asym_ledger *l, const struct asym_taskid *id);
/** The last entry takes its place: loops over entries that remove run backwards. */
void asym_ledger_remove(struct asym_ledger *l, struct asym_ledger_entry *e);

/** Note the entry's present content in the batch, or that the thread needs nothing any more. 0; -ENOMEM. */
int asym_ledger_note(struct asym_ledger *l, const struct asym_ledger_entry *e);
int asym_ledger_note_gone(struct asym_ledger *l, const struct asym_taskid *id);

/** Remove, and note it. */
void asym_ledger_forget(struct asym_ledger *l, struct asym_ledger_entry *e);

/**
 * Write the batch in one call; the whole table where the file is not what was written before (asym_ledger_tend). 0;
 * -errno: then the file is as it was, and the next write that succeeds puts the whole table on record, so that nothing has
 * to be noted again.
 */
int asym_ledger_write(struct asym_ledger *l);

/** Likewise, and write the file anew when most of it is stale: takes milliseconds at 10,000 threads. */
int asym_ledger_flush(struct asym_ledger *l);

/** Do both say the same of the online CPUs? */
bool asym_ledger_same_mask(const struct asym_ledger *l, const struct asym_mask *a, const struct asym_mask *b);

/** Is it what asymd has set for the thread, or had set before that, or has left it with on the way? */
bool asym_ledger_is_set(const struct asym_ledger *l, const struct asym_ledger_entry *e, const struct asym_mask *found);

/**
 * Does the thread owe this nice value to asymd? It was set, or was before that, or lies between the lowest of both and the
 * original: from there the thread has raised it by itself, and it could not have come to it otherwise.
 */
bool asym_ledger_is_nice_set(const struct asym_ledger_entry *e, int8_t nice);

/** The CPU on its way alone; empty where there is none. */
struct asym_mask asym_ledger_via(const struct asym_ledger_entry *e);

void asym_ledger_renew_online(struct asym_ledger *l);

/** Give the thread what it had; compares first. 0; -ESRCH gone; -EBUSY somebody else's; -errno. Keeps the entry. */
int asym_ledger_give_back(const struct asym_ledger *l, const struct asym_ledger_entry *e);

/**
 * The nice value alone, likewise, and reset-on-fork. A real-time thread gets back the nice value that it has after that,
 * and keeps reset-on-fork, which goes with its policy. The caller knows that the thread is the entry's.
 */
int asym_ledger_give_back_nice(const struct asym_ledger_entry *e);

/**
 * Is this what a thread starts with that e's gave birth to at that time, where nobody says which thread did? By its narrow
 * mask, or a nice value that nothing resets; that it has nice 0, as those of a boosted one do, says nothing by itself.
 */
bool asym_ledger_looks_inherited(const struct asym_ledger *l, const struct asym_ledger_entry *e,
                                 const struct asym_mask *mask, int8_t nice, asym_usec born);

/** The nice value that a child of e's thread would have but for asymd. */
int8_t asym_ledger_nice_of_child(const struct asym_ledger_entry *e);

/**
 * Give thread tid, born at that time, what from had, where it carries what was set for from. 1: it did carry it; 0: nothing
 * to repair; -errno.
 */
int asym_ledger_repair(const struct asym_ledger *l, const struct asym_ledger_entry *from, int32_t tid, asym_usec born);

void asym_ledger_note_release(struct asym_ledger *l, int32_t tgid, asym_usec when);
bool asym_ledger_was_released(const struct asym_ledger *l, int32_t tgid, asym_usec since);

/** Thread id may have handed down what was set for from, until then. */
void asym_ledger_add_legacy(struct asym_ledger *l, const struct asym_ledger_entry *from, int32_t tid, int32_t tgid,
                            asym_usec until);
/** What thread tid of process tgid may have handed down at that time; NULL: nothing. */
const struct asym_ledger_entry *asym_ledger_find_legacy(const struct asym_ledger *l, int32_t tid, int32_t tgid,
                                                        asym_usec when);

#endif
