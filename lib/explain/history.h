/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The last decisions on each thread, in a fixed number of slots. If all are taken, the one that was used least recently goes. */
#ifndef ASYM_EXPLAIN_HISTORY_H
#define ASYM_EXPLAIN_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "explain/monitor.h"

struct asym_history;

struct asym_histories {
    struct asym_history *slots;
    uint32_t n, n_used;
    uint32_t newest, oldest; /* of a list by last use; slot + 1, 0: none */
};

/** Returns 0; -ENOMEM. The memory of a slot becomes resident with its first use. */
int asym_histories_init(struct asym_histories *h, uint32_t n);
void asym_histories_done(struct asym_histories *h);

/** Add a decision to the history of its thread (decision->id). slot: what the last call for this thread returned; 0: none. */
uint32_t asym_histories_add(struct asym_histories *h, uint32_t slot, const struct asym_monitor_decision *decision);

/** Write the decisions of the thread, newest first. Returns their number; 0 if another thread has the slot now. */
size_t asym_histories_read(const struct asym_histories *h, uint32_t slot, const struct asym_taskid *id,
                           struct asym_monitor_decision ret[ASYM_MONITOR_DECISIONS]);

/** List the decisions of all threads with a higher number than since (asym_monitor_decisions_since). */
int asym_histories_since(const struct asym_histories *h, uint64_t since, const struct asym_monitor_decision ***ret,
                         size_t *ret_n);

#endif
