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
 * is kept aside as ledger.bad and said in err, with the entries that could be read.
 */
int asym_ledger_open(const char *dir, struct asym_ledger **ret_ledger, struct asym_error *err);

/** Unlocks and frees. Removes the file only when it holds nothing to put back. NULL is accepted. */
void asym_ledger_close(struct asym_ledger *l);

/** Threads it holds. */
size_t asym_ledger_count(struct asym_ledger *l);

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
 * after their creator was steered, and carry exactly the mask it was given.
 */
int asym_ledger_restore(struct asym_ledger *l, struct asym_restore_report *ret_report);

#endif
