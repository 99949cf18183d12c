/* SPDX-License-Identifier: GPL-2.0-or-later */
/** All that others call of the room: the ledger, restore, the actuator, the fork guard, and the overlay for a dry run. */
#ifndef ASYM_LINUX_ENFORCE_ENFORCE_H
#define ASYM_LINUX_ENFORCE_ENFORCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/port.h>
#include <asym/types.h>

struct asym_ledger;
struct asym_process_event;

/*
 * The ledger: for each thread that asymd has touched, its original mask and nice value, and what asymd last set. asymd
 * keeps it in memory, and writes it to DIR/ledger before each change, so that it survives a kill -9. Several threads may
 * use it at once.
 *
 * The file also has the records of capped CPUs (linux/speed-cap), so that one file has all that a crash leaves to restore.
 *
 * The file is text. Each record is a line, and is appended. asymd rewrites the file (temporary file, rename) when most of
 * it is stale. A torn last line is skipped. A file of another boot (boot_id differs) is ignored.
 */

/**
 * Opens and locks the ledger in dir, and reads what an earlier asymd left. Creates dir if it is missing (mode 0755).
 * Returns 0; -EBUSY (another asymd holds the lock: err names its PID), -EACCES, -errno. Two problems still return 0, with
 * a message in err:
 * - Part of the old ledger is unreadable. It is kept as ledger.bad (or ledger.bad.1 to 9), and the readable entries are
 *   used.
 * - The directory is full or read-only. asym_ledger_restore can restore what is recorded, and each later write tries
 *   again. An actuator steers nothing while the file cannot be written.
 */
int asym_ledger_open(const char *dir, struct asym_ledger **ret_ledger, struct asym_error *err);

/**
 * Reads the ledger in dir while an asymd may be running. Takes no lock and changes no file. The result is only for
 * asym_ledger_own, asym_ledger_count and asym_ledger_close. A missing directory, a missing file and a file of another boot
 * give an empty ledger.
 * Returns 0, with err if some lines are not a ledger's (the rest was read); -errno with err if the file exists but cannot
 * be read (-EACCES: only its owner may read it).
 */
int asym_ledger_peek(const char *dir, struct asym_ledger **ret_ledger, struct asym_error *err);

/**
 * Says whether an asymd uses dir. Returns 1: one holds its lock; 0: one has used it; -ENOENT: none has, as far as its files tell;
 * -EACCES: only its owner may see that.
 */
int asym_ledger_in_use(const char *dir);

/**
 * Counts the threads that still have a mask or nice value of an asymd that died. Changes nothing. Returns their number; 0: none,
 * or an asymd uses dir; -EACCES: there is a ledger, but only its owner may read it; -errno.
 */
int asym_ledger_left(const char *dir);

/** The mask and nice value that a thread would have without asymd. */
struct asym_ledger_own {
    struct asym_mask mask; /**< offline CPUs included, as in a snapshot */
    int8_t nice;
    bool full_cpuset; /**< the mask was all that its cpuset allowed */
};

/**
 * Finds what the thread with this mask and nice value would have without asymd. Returns false if asymd did not set the
 * mask: the thread is not recorded (tid, tgid and start), or has none of the masks that asymd may have set for it.
 */
bool asym_ledger_own(struct asym_ledger *l, const struct asym_taskid *id, const struct asym_mask *mask, int8_t nice,
                     struct asym_ledger_own *ret);

/** The begin of a record of capped CPUs. The ledger keeps the rest of the line as it is. */
#define ASYM_LEDGER_CAP "C "

/** Returns the records of capped CPUs, a line each; "": none. Owned by l, until the next asym_ledger_set_caps. */
const char *asym_ledger_caps(const struct asym_ledger *l);

/**
 * Replaces the records of capped CPUs, and writes the file. Returns 0; -ENOMEM: they are as before; -errno: the file is as before,
 * and a later write tries again.
 */
int asym_ledger_set_caps(struct asym_ledger *l, const char *lines);

/** Unlocks and frees the ledger. Removes the file if it has no records. NULL is accepted. */
void asym_ledger_close(struct asym_ledger *l);

/** Returns the number of threads in the ledger. */
size_t asym_ledger_count(struct asym_ledger *l);

/**
 * Checks that the file is still what asymd has written. Rewrites it if it was removed, replaced, truncated or changed.
 * If the directory was removed, creates it again and locks it. Takes some microseconds if nothing has happened.
 * Returns 1 if the file had to be rewritten since the last call; 0; -EBUSY (another asymd has locked the directory
 * meanwhile); -errno (the file cannot be written; asym_actuator.apply fails with the same error).
 */
int asym_ledger_housekeeping(struct asym_ledger *l);

struct asym_restore_report {
    size_t restored;  /* have their original mask again, and their original nice value, except nice_kept of them */
    size_t nice_kept; /* their nice value was changed by another process meanwhile, and stays */
    size_t inherited; /* children of steered threads that had inherited a narrowed mask or a boost; repaired */
    size_t gone;      /* have exited */
    size_t foreign;   /* their mask was changed by another process meanwhile, and stays */
    size_t failed;    /* the kernel refused; they stay in the ledger */
    int error;        /* of the first failure, -errno */
    int search_error; /* -errno: the search for inherited masks was not complete; all entries stay in the ledger */
};

/**
 * Restores the original mask, nice value and reset-on-fork of every thread. Compares before it writes: it skips a value
 * that asymd neither set last nor was about to set, because another process has set that value. Also finds threads with an
 * inherited affinity: they are not in the ledger, were born after their creator was steered, and have exactly a mask that
 * asymd set for it.
 * Allocates no memory. A later restore tries again what failed.
 */
void asym_ledger_restore(struct asym_ledger *l, struct asym_restore_report *ret_report);

/** Write the counts as a clause, such as "restored 4 threads; 1 has ended"; counts of 0 are left out. Returns buf. */
const char *asym_restore_text(const struct asym_restore_report *report, char *buf, size_t size);

/**
 * The actuator for a live machine. It sets affinity by sched_setaffinity, and nice by sched_setattr with
 * SCHED_FLAG_RESET_ON_FORK. It writes each change to the ledger first. ledger: borrowed; it must outlive the actuator.
 * Returns 0; -ENOMEM.
 */
int asym_actuator_linux_new(struct asym_ledger *ledger, struct asym_actuator **ret_actuator);

/**
 * The fork guard keeps new threads and processes from inheriting what asymd has set. Pass it to asym_process_events_watch as the
 * hook, with the ledger (struct asym_ledger) as ctx. It acts at once, in the calling thread:
 * - A thread of a steered process forks. The child gets the creator's original mask and nice value. Then every steered
 *   thread of the creator's process is released (fork hold-off).
 * - A steered process creates a thread. A new thread that has the mask or nice value of a steered one gets the
 *   original mask and nice value of that one.
 * - A thread of a steered process calls exec. The new program gets the original mask and nice value, and the process is
 *   released.
 * Later actions on a thread that was released here end in RETRY, not in HANDS_OFF.
 */
void asym_fork_guard_on_event(void *ledger, const struct asym_process_event *event);

/**
 * The ledger overlay: a source that shows threads as they would be without the asymd that is steering them. It passes on
 * the snapshots of another source, with the original masks and nice values from the ledger of that asymd. It changes
 * nothing and holds no lock.
 *
 * A thread and its record are read at different moments. asymd writes a record before it makes the change, and removes it
 * after it restores the thread. So each snapshot is compared with the ledger as read after it and, for threads that were
 * released meanwhile, with the ledger as read after the previous snapshot.
 *
 * The overlay does not recognise three things: a mask that a cpuset has cut since, a boost of a thread whose mask was
 * changed after asymd had set it, and what a child has inherited and asymd has not repaired yet.
 *
 * inner: borrowed. dir: the directory of the ledger (see asym_ledger_peek), which need not
 * exist yet; copied. The overlay works without a ledger that cannot be read, and without lines that are not a ledger's. It
 * reads the ledger again for each snapshot. err gets a message if the first read fails, and is untouched otherwise.
 * Returns 0; -ENOMEM.
 */
int asym_ledger_overlay_new(struct asym_source *inner, const char *dir, struct asym_source **ret_source,
                            struct asym_error *err);

#endif
