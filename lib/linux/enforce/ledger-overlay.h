/* SPDX-License-Identifier: GPL-2.0-or-later */
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
 */
#ifndef ASYM_LINUX_ENFORCE_LEDGER_OVERLAY_H
#define ASYM_LINUX_ENFORCE_LEDGER_OVERLAY_H

#include <asym/error.h>
#include <asym/port.h>

/**
 * inner: borrowed; it receives feedback and refresh. dir: the directory of the ledger (see asym_ledger_peek), which need not
 * exist yet; copied. The overlay works without a ledger that cannot be read, and without lines that are not a ledger's. It
 * reads the ledger again for each snapshot. err gets a message if the first read fails, and is untouched otherwise.
 * Returns 0; -ENOMEM.
 */
int asym_ledger_overlay_new(struct asym_source *inner, const char *dir, struct asym_source **ret_source,
                            struct asym_error *err);

#endif
