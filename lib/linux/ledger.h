/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * What to put back: for each thread that asymd has touched, what it had before and what asymd last set. Kept in memory
 * and, before each change, in DIR/ledger, so that it outlives a kill -9. Safe to use from several threads.
 *
 * The file is text, one record a line, appended; it is rewritten (temporary file, rename) when most of it is stale.
 * A torn last line is passed over. A file of another boot (boot_id differs) is stale as a whole.
 */
#ifndef ASYM_LINUX_LEDGER_H
#define ASYM_LINUX_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/error.h>
#include <asym/types.h>

struct asym_ledger;

/**
 * Open and lock the ledger in dir, made if missing (mode 0755); what an earlier asymd left is read in.
 * Returns 0; -EBUSY (another asymd holds it: err names its PID), -EACCES, -errno. A ledger that cannot be read in full
 * is kept aside as ledger.bad (or ledger.bad.1 to 9) and said in err, with the entries that could be read. A directory
 * that is full or read-only is said in err, too: what is on record can be given back (asym_ledger_restore), and each later
 * write tries again. As long as it cannot be written, an actuator steers nothing.
 */
int asym_ledger_open(const char *dir, struct asym_ledger **ret_ledger, struct asym_error *err);

/**
 * Read what an asymd that may be running has on record in dir: without its lock, and nothing is changed, made or kept aside.
 * For asym_ledger_own, asym_ledger_count and asym_ledger_close alone. No directory, no file and a file of another boot are
 * an empty ledger. Returns 0, with err where lines are not a ledger's and the rest was read; -errno with err: there is one
 * and it cannot be read (-EACCES: it is its owner's alone).
 */
int asym_ledger_peek(const char *dir, struct asym_ledger **ret_ledger, struct asym_error *err);

/** What a thread would have but for asymd. */
struct asym_ledger_own {
    struct asym_mask mask; /**< offline CPUs included, as a snapshot has it */
    int8_t nice;
    bool whole; /**< the mask was all that its cpuset allowed */
};

/**
 * Of a thread found with that mask and nice value. False: they are its own, or somebody else's doing, as it is not on
 * record (by number, process and start) or has none of the masks that asymd may have left it with.
 */
bool asym_ledger_own(struct asym_ledger *l, const struct asym_taskid *id, const struct asym_mask *mask, int8_t nice,
                     struct asym_ledger_own *ret);

/** Unlocks and frees. Removes the file only when it holds nothing to put back. NULL is accepted. */
void asym_ledger_close(struct asym_ledger *l);

/** Threads it holds. */
size_t asym_ledger_count(struct asym_ledger *l);

/**
 * See that the file is still what asymd has written, and write it anew where it was removed, replaced, cut or written to,
 * or its directory was removed (made again, and locked). Takes some microseconds where nothing has happened.
 * Returns 1 when it had to be written anew since the last call; 0; -EBUSY (another asymd has locked the directory
 * meanwhile), -errno: the file cannot be written, as asym_actuator.apply will say, too.
 */
int asym_ledger_tend(struct asym_ledger *l);

struct asym_restore_report {
    size_t restored; /* given back what they had */
    size_t heirs;    /* threads born of steered ones that had inherited a narrowed mask or a boost */
    size_t gone;     /* no longer there */
    size_t foreign;  /* changed by somebody else meanwhile: left alone */
    size_t failed;   /* the kernel refused; they stay in the ledger */
    int error;       /* of the first that failed, -errno */
};

/**
 * Put everything back: masks, nice and reset-on-fork. Compares before it writes: a value that is neither what asymd last
 * set nor what it was about to set is somebody else's. Also finds heirs: threads that are not in the ledger, were born
 * after their creator was steered, and carry exactly a mask it was given.
 */
int asym_ledger_restore(struct asym_ledger *l, struct asym_restore_report *ret_report);

#endif
