/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The inner parts of the ledger, for the actuator, the fork guard and restore. */
#ifndef ASYM_LINUX_ENFORCE_LEDGER_INTERNAL_H
#define ASYM_LINUX_ENFORCE_LEDGER_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "linux/enforce/enforce.h"
#include "linux/sys/cgroup-mounts.h"
#include "linux/sys/proc-parse.h"

/**
 * A thread that asymd has touched. set is the mask that asymd last wrote or is about to write. before is the mask that was
 * in force when set was noted. On the way from before to set the thread may have its transit CPU alone. So after a kill at
 * any moment the thread has original, set, before or the transit CPU. The file may have set and before the other way round, where
 * the thread goes back and forth.
 */
struct asym_ledger_entry {
    struct asym_taskid id;
    /** Not in the file; set by asym_creators_select. A child that started earlier inherited nothing; 0: it is no heir at all. */
    uint64_t oldest_heir;
    uint64_t since; /**< when asymd first touched it, clock ticks since boot like id.start */
    struct asym_mask original, set, before;
    int32_t session;      /**< session ID of its process at that time: it identifies orphaned children; 0: unknown */
    uint32_t transit_cpu; /**< a CPU + 1, as in asym_action; 0: none */
    int8_t original_nice, set_nice, before_nice;
    bool original_reset; /**< the original reset-on-fork flag */
    bool boosted;        /**< asymd has changed nice and reset-on-fork, or is about to */
    bool full_cpuset;    /**< original is all that its cpuset allowed */
    bool in_force;       /**< not in the file: asymd has changed the thread, not only noted the change */
    bool under_way;      /**< asymd may have left it on its transit CPU; the file has via while this is true */
    /** Not in the file. Children born until then (monotonic) may have the transit CPU alone. */
    asym_usec transit_until;
    bool failed;             /**< not in the file; the last restore could not restore it */
    struct asym_image image; /**< of its process when asymd first touched it; stack 0: not known */
};

/**
 * A pending inheritance. It remembers what a thread had before the fork guard released or repaired it, or before it
 * exited. The event of a child may come later. If the child was born no later than until, it may have the narrowed mask.
 */
struct asym_ledger_pending {
    struct asym_ledger_entry from;
    asym_usec until; /**< monotonic */
};

/**
 * The kernel copies the mask of a child at the beginning of fork, and stamps the event at the end. It may be preempted in
 * between. So a child whose birth is stamped this long after a change of its creator may still have the mask from before
 * the change.
 */
#define ASYM_LEDGER_LATE        (100 * ASYM_MSEC)

#define ASYM_LEDGER_PENDING_MAX 256

/** The fork guard last released this process, or saw it create another one or its leader end, at this time. */
struct asym_ledger_release {
    int32_t tgid;
    asym_usec when; /**< monotonic */
};

/**
 * Releases are stored by tgid in a set-associative table: a fork storm of other processes must not push out a process that
 * was just released.
 */
#define ASYM_LEDGER_RELEASE_SETS 1024
#define ASYM_LEDGER_RELEASE_WAYS 4

/** The CPU lists of the kernel that masks are compared with. */
enum asym_cpu_list { ASYM_CPUS_ONLINE, ASYM_CPUS_POSSIBLE, ASYM_CPUS_ISOLATED, ASYM_N_CPU_LISTS };

struct asym_ledger {
    pthread_mutex_t lock; /**< priority inheritance: the fork guard has a real-time priority */
    struct asym_ledger_entry *entries;
    int32_t *tgids; /**< of entries: each fork on the machine is looked up here; 40 KB, not 4 MB, at 10,000 entries */
    size_t n, capacity;
    struct asym_hash index; /**< of entries, by tid */
    struct asym_ledger_release releases[ASYM_LEDGER_RELEASE_SETS][ASYM_LEDGER_RELEASE_WAYS];
    struct asym_ledger_pending pending[ASYM_LEDGER_PENDING_MAX]; /**< a ring */
    size_t next_pending;
    asym_usec pending_until; /**< the latest until in the ring: after it, no search is needed */
    char *caps;              /**< the records of capped CPUs; NULL: none */
    char *dir;
    int dir_fd, lock_fd, fd;
    int cpu_fds[ASYM_N_CPU_LISTS]; /**< kept open: to open one takes longer than to change a mask; -1: not open */
    struct asym_mask online;       /**< read again by each apply and restore: sched_getaffinity hides offline CPUs */
    struct asym_mask possible;     /**< read when the ledger opens, as the next one */
    struct asym_cgroup_mounts cgroups;
    size_t size;      /**< of the file, bytes */
    size_t n_records; /**< lines in the file without the first one */
    bool owed;        /**< the file is not up to date: the next write rewrites it */
    bool was_lost;    /**< the file was not what asymd had written; asym_ledger_housekeeping reports and clears it */
    char *batch;      /**< records that are not in the file yet */
    size_t batch_len, batch_capacity, batch_records;
};

/* The caller holds the lock for all functions below. Pointers to entries are valid until the next add or remove. */

/**
 * Opens the directory and its lock file, and takes the lock. Creates what is missing. Does so again if the name of the
 * directory or of the lock file now stands for another file. Returns 0; -EBUSY: another asymd holds the lock; -errno.
 */
int asym_ledger_attach(struct asym_ledger *l, struct asym_error *err);

/** Returns true if the directory and the lock file are open, and their names still stand for them. */
bool asym_ledger_is_attached(const struct asym_ledger *l);

/** Returns NULL if the thread is not in the ledger. */
struct asym_ledger_entry *asym_ledger_find(struct asym_ledger *l, int32_t tid);
/** Returns NULL without memory. The caller makes sure that the ledger does not have the tid yet. */
struct asym_ledger_entry *asym_ledger_add(struct asym_ledger *l, const struct asym_taskid *id);
/** Moves the last entry to the place of e: a loop that removes entries must run backwards. */
void asym_ledger_remove(struct asym_ledger *l, struct asym_ledger_entry *e);

/** Adds a record to the batch: the entry as it is now, or that the thread needs nothing any more. Returns 0; -ENOMEM. */
int asym_ledger_note(struct asym_ledger *l, const struct asym_ledger_entry *e);
int asym_ledger_note_gone(struct asym_ledger *l, const struct asym_taskid *id);

/** Removes the entry and notes that. */
void asym_ledger_forget(struct asym_ledger *l, struct asym_ledger_entry *e);

/**
 * Writes the batch in one call. Writes the whole table if the file is not what asymd has written (see
 * asym_ledger_housekeeping). Returns 0; -errno: the file is unchanged, and the next successful write writes the whole
 * table, so that the caller need not note anything again.
 */
int asym_ledger_write(struct asym_ledger *l);

/** Like asym_ledger_write. Also rewrites the file if most of it is stale, which takes milliseconds at 10,000 threads. */
int asym_ledger_flush(struct asym_ledger *l);

/** Returns true if both masks have the same online CPUs. */
bool asym_ledger_same_mask(const struct asym_ledger *l, const struct asym_mask *a, const struct asym_mask *b);

/** Returns true if asymd may have given the thread this mask: it is set, before or, under way, the transit CPU alone. */
bool asym_ledger_is_set(const struct asym_ledger *l, const struct asym_ledger_entry *e, const struct asym_mask *found);

/**
 * Returns true if the thread owes this nice value to asymd. It is set_nice or before_nice, or it lies between the lower of
 * these and the original: the thread itself has raised a boosted value, and could not have reached it without the boost.
 */
bool asym_ledger_is_nice_set(const struct asym_ledger_entry *e, int8_t nice);

/** Returns a mask of the transit CPU alone; empty if there is none. */
struct asym_mask asym_ledger_transit(const struct asym_ledger_entry *e);

/** Reads a list of CPUs again. One that cannot be read counts as all CPUs; that of the isolated ones, as none. */
void asym_ledger_read_cpus(struct asym_ledger *l, enum asym_cpu_list list, struct asym_mask *ret);

/**
 * Restores the thread's original mask and nice value; compares first. Keeps the entry. Returns 0; 1: only the nice value stays,
 * because it was changed after asymd had set it; -ESRCH: the thread has exited; -EBUSY: the mask stays for that reason; -errno.
 */
int asym_ledger_restore_thread(const struct asym_ledger *l, const struct asym_ledger_entry *e);

/**
 * Restores only the nice value and reset-on-fork, with the same returns but -EBUSY. A real-time thread gets the nice value for the
 * time after its real-time policy, and keeps reset-on-fork, which belongs to that policy. The caller makes sure that the
 * TID still belongs to the entry's thread.
 */
int asym_ledger_restore_nice(const struct asym_ledger_entry *e);

/**
 * Returns true if a thread born at that time with this mask and nice value may be a child of e's thread. It is for threads
 * whose creator the kernel does not name. The sign is the narrowed mask, or a positive nice value, which reset-on-fork does
 * not reset. Nice 0 alone is no sign, although children of a boosted thread have it. born: monotonic.
 */
bool asym_ledger_looks_inherited(const struct asym_ledger *l, const struct asym_ledger_entry *e,
                                 const struct asym_mask *mask, int8_t nice, asym_usec born);

/** Returns true if a child of e's thread has this nice value, by what asymd lends the thread or by its own. */
bool asym_ledger_passes_nice(const struct asym_ledger_entry *e, int8_t nice);

/**
 * Gives thread tid the original mask and nice value of from, if it has inherited what asymd set for from. born: when tid
 * was born, monotonic. Returns 1: it was repaired; 0: it had inherited nothing; -errno.
 */
int asym_ledger_repair(const struct asym_ledger *l, const struct asym_ledger_entry *from, int32_t tid, asym_usec born);

/** Remembers that the fork guard released process tgid at that time (monotonic). */
void asym_ledger_note_release(struct asym_ledger *l, int32_t tgid, asym_usec when);
/** Returns true if the fork guard released process tgid at or after since (monotonic). */
bool asym_ledger_was_released(const struct asym_ledger *l, int32_t tgid, asym_usec since);

/** Adds a pending inheritance: children of thread tid born no later than until may have what asymd set for from. */
void asym_ledger_add_pending(struct asym_ledger *l, const struct asym_ledger_entry *from, int32_t tid, int32_t tgid,
                             asym_usec until);
/** Returns what a child of thread tid of process tgid, born at that time, may have inherited; NULL: nothing. */
const struct asym_ledger_entry *asym_ledger_find_pending(const struct asym_ledger *l, int32_t tid, int32_t tgid,
                                                         asym_usec when);

/**
 * Reads what an earlier asymd left, and starts a new file with the entries that still count.
 * Returns 0, with err if some lines are not a ledger's, or if the new file cannot be written (the next write tries again);
 * -errno with err if the file exists but cannot be read.
 */
int asym_ledger_read_file(struct asym_ledger *l, struct asym_error *err);

/**
 * Reads the file and does not change it. The table holds what could be read.
 * Returns 0, with err if some lines are not a ledger's; -ENOENT if there is no file; -errno with err.
 */
int asym_ledger_peek_file(struct asym_ledger *l, struct asym_error *err);

/*
 * Finds the thread that another one has inherited its mask from, among the entries of the ledger. Needs no memory but the
 * ledger's: a machine without memory is one on which threads must be restored. Reads every entry once for each process, and
 * once for each thread of a process that descends from a steered one.
 */

/** Longest chain of parents that is followed. Inherited steering does not pass through a longer chain. */
#define ASYM_ANCESTORS_MAX 64

/** An origin of a process: the process itself, an ancestor, or its session. */
struct asym_ancestor {
    int32_t number; /**< PID or session ID */
    uint64_t start; /**< of the process or the session leader, clock ticks since boot; 0: the leader has exited */
    /**
     * Earliest start of the processes below this origin, down to and including the process itself; clock ticks since
     * boot. UINT64_MAX: this origin is the process itself.
     */
    uint64_t oldest;
};

struct asym_ancestors {
    struct asym_ancestor processes[ASYM_ANCESTORS_MAX + 1]; /**< from the process upwards, without init */
    size_t n;
    /**
     * The session of the process, if the process may be an orphan; else number 0. A chain of parents that reaches init
     * without the session leader has lost a process. Then only the session shows where the process came from. The child
     * of a live leader is no orphan: a shell whose children set their own masks looks the same.
     */
    struct asym_ancestor session;
};

/** A process that was looked up. pid 0: none. */
struct asym_ancestry_process {
    int32_t pid, parent, session;
    uint64_t start;
    bool gone;
};

#define ASYM_ANCESTRY_SLOTS 512

/** By PID: a process takes the slot of another one. All zero at first, and again to forget all processes. */
struct asym_ancestry {
    struct asym_ancestry_process slots[ASYM_ANCESTRY_SLOTS];
};

/**
 * Finds the origins of the process. If the process has exited, ret holds none. If an ancestor has exited, ret ends below that
 * ancestor.
 */
void asym_ancestry_of(struct asym_ancestry *ancestry, int32_t pid, struct asym_ancestors *ret);

/** The entries whose threads may have passed a mask to one process. They are marked until another process is selected. */
struct asym_creators {
    struct asym_ledger *ledger;
    size_t n;
    uint64_t since; /**< the least of them: threads that started earlier inherited nothing */
    uint64_t
        masks[16]; /**< a bit for each hash of a mask that they may have passed on: most threads have another one */
    /** Threads are assumed to have started at this time (monotonic), as in asym_ledger_looks_inherited. The caller sets it. */
    asym_usec begun;
};

/**
 * Repairs what the process has inherited if e's thread, which has ended, may have called exec: the process goes on with another
 * program, under the number of its leader and with the mask of e's thread. Its new threads inherit that. Returns the number of
 * threads that it has repaired; -errno: not all could be repaired, and a later restore needs the entry.
 */
int asym_ledger_follow_exec(struct asym_ledger *l, const struct asym_ledger_entry *e);

/** Selects the process with these ancestors. c->ledger and c->begun are set. */
void asym_creators_select(struct asym_creators *c, const struct asym_ancestors *ancestors);

/**
 * Finds the entry that a thread of the selected process has inherited its mask and nice value from. found and nice: what the
 * thread has now. image: of its process now. An entry that explains the exact nice value comes first, then the one whose thread
 * originally had the most online CPUs, then the one of the nearest ancestor. Returns NULL if there is none.
 */
const struct asym_ledger_entry *asym_creators_find(const struct asym_creators *c, const struct asym_taskid *id,
                                                   const struct asym_image *image, const struct asym_mask *found,
                                                   int8_t nice);

/** Returns true if the image shows another program than the one that e's thread was part of. */
bool asym_ledger_is_other_image(const struct asym_ledger_entry *e, const struct asym_image *image);

#endif
