/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The ledger: for each thread that asymd has touched, its original mask and nice value, and what asymd last set. asymd
 * keeps it in memory, and writes it to DIR/ledger before each change, so that it survives a kill -9. Several threads may
 * use it at once.
 *
 * The file is text. Each record is a line, and is appended. asymd rewrites the file (temporary file, rename) when most of
 * it is stale. A torn last line is skipped. A file of another boot (boot_id differs) is ignored.
 */
#ifndef ASYM_LINUX_ENFORCE_LEDGER_H
#define ASYM_LINUX_ENFORCE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/error.h>
#include <asym/types.h>

struct asym_ledger;

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

/** Unlocks and frees the ledger. Removes the file if it has no entries. NULL is accepted. */
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

#endif
