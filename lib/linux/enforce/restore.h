/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Restores the masks and nice values that the ledger records: at asymd's end, after a crash, and by asymd --restore. */
#ifndef ASYM_LINUX_ENFORCE_RESTORE_H
#define ASYM_LINUX_ENFORCE_RESTORE_H

#include <stddef.h>

#include "linux/enforce/ledger.h"

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

#endif
