/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The two ports behind which everything stands that touches a machine. A mode of asymd is a choice of
 * a source and an actuator.
 */
#ifndef ASYM_PORT_H
#define ASYM_PORT_H

#include <stddef.h>

#include <asym/plan.h>
#include <asym/snapshot.h>

struct asym_source {
    /**
     * Look now. Fills *ret; what it points to is owned by the source and valid until the next call.
     * Returns 1; 0 when there is nothing more (a trace has ended); -errno.
     */
    int (*next)(struct asym_source *source, struct asym_snapshot *ret);
    /** Free it. */
    void (*close)(struct asym_source *source);
};

struct asym_actuator {
    /**
     * Carry out n actions in order and say in ret_outcomes[i] what became of each, whatever is returned.
     * Returns 0; -errno when nothing may be steered (e.g. the ledger cannot be written): then each STEER
     * ended in RETRY with that error, and only what gives back was carried out.
     */
    int (*apply)(struct asym_actuator *actuator, const struct asym_action *actions, size_t n,
                 struct asym_outcome *ret_outcomes);
    /** Free it. Puts nothing back by itself. */
    void (*close)(struct asym_actuator *actuator);
};

#endif
