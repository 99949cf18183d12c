/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A source that sees threads as they would be but for an asymd that steers them meanwhile: another source's snapshots, with
 * the masks and nice values that its ledger says they had before. Changes nothing and holds no lock.
 *
 * What is read of a thread and what is on record of it need not be of the same moment. A change is on record before it is
 * made, and what is given back leaves the record afterwards: so each snapshot is held against the ledger as it is after it,
 * and, for what was released meanwhile, as it was after the snapshot before.
 *
 * Not seen through: a mask that a cpuset has cut since, a boost of a thread whose mask somebody else has changed, and what a
 * child has inherited and is not given back yet.
 */
#ifndef ASYM_LINUX_UNDONE_H
#define ASYM_LINUX_UNDONE_H

#include <asym/error.h>
#include <asym/port.h>

/**
 * inner: borrowed. dir: where the ledger is or may come to be (asym_ledger_peek); copied. One that cannot be read is done
 * without, in whole or for the lines that are not a ledger's, and tried again at each look: err says so then, and is as it
 * was otherwise. 0; -ENOMEM.
 */
int asym_undone_source_new(struct asym_source *inner, const char *dir, struct asym_source **ret_source,
                           struct asym_error *err);

#endif
