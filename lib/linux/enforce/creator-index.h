/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * An index of the ledger's entries. With it, --restore finds the creator of a thread without reading each entry. The time
 * of a search grows with the logarithm of the number of entries, times the ancestors of the process that have entries,
 * times the different nice values in the entries of one ancestor.
 */
#ifndef ASYM_LINUX_ENFORCE_CREATOR_INDEX_H
#define ASYM_LINUX_ENFORCE_CREATOR_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "linux/enforce/ancestry.h"
#include "linux/enforce/ledger-internal.h"

struct asym_creator_index;

/**
 * Indexes the present entries of the ledger. The ledger must outlive the index, and must not change meanwhile. begun: the
 * search assumes that each thread it is asked about started at this time (monotonic), as asym_ledger_looks_inherited does.
 * Returns the number of different masks that children may have inherited; -ENOMEM.
 */
int asym_creator_index_new(struct asym_ledger *l, asym_usec begun, struct asym_creator_index **ret_index);
/** NULL is accepted. */
void asym_creator_index_free(struct asym_creator_index *c);

/** Returns true if a thread can have inherited this mask from any entry. */
bool asym_creator_index_has_mask(const struct asym_creator_index *c, const struct asym_mask *found);

/**
 * Selects the process whose threads asym_creator_index_find looks up next; ancestors holds its origins. While a number means
 * the same process, calls should give it the same start: with another start the index reads all entries of that number again.
 */
void asym_creator_index_set_ancestors(struct asym_creator_index *c, const struct asym_ancestors *ancestors);

/**
 * Finds the entry that a thread has inherited its mask and nice value from. found and nice: what the thread has now. An
 * entry that explains the exact nice value comes first, then the one whose thread originally had the most CPUs.
 * Returns NULL if there is none.
 */
const struct asym_ledger_entry *asym_creator_index_find(struct asym_creator_index *c, const struct asym_taskid *id,
                                                        const struct asym_mask *found, int8_t nice);

/** Returns the number of entries and groups that set_ancestors and find have read so far. Tests measure the cost by it. */
uint64_t asym_creator_index_steps(const struct asym_creator_index *c);

#endif
