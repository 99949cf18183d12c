/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The observers. An observer is a source (asym/port.h) that sees this machine: procfs, and others that are put around it and
 * add what they see. It is one file, which ends in one struct asym_observer_entry, and one row in <asym/observers.def>.
 */
#ifndef ASYM_LINUX_OBSERVE_OBSERVER_H
#define ASYM_LINUX_OBSERVE_OBSERVER_H

#include <asym/types.h>
#include <asym/port.h>

#include "config/settings.h"

struct asym_procfs_config;

/**
 * The arguments of an observer. Borrowed until open returns; what procfs points to until the observer is closed, but for
 * process_events_why. Copy what you need of settings: a reload frees them.
 */
struct asym_observer_context {
    const struct asym_settings *settings;
    const struct asym_procfs_config *procfs; /**< the machine, its files, process events, the rules */
};

struct asym_observer_entry {
    const char *name; /**< as in its row. Static */
    /**
     * Open the observer around inner, which is NULL for the first row only. Its snapshots are those of inner with more facts.
     * It keeps the order and the number of apps, procs and tasks. asym_observers_open stores inner in the source. A sentence on
     * what it could not see goes into coverage.remarks[ASYM_OBSERVER_X]. close leaves inner open.
     * Returns 0; -ECANCELED: the configuration does not want it; another -errno with err: it cannot run here. Then asymd observes
     * without it, unless it is the first row.
     */
    int (*open)(const struct asym_observer_context *context, struct asym_source *inner, struct asym_source **ret,
                struct asym_error *err);
};

/** Indexed by enum asym_observer_row. */
extern const struct asym_observer_entry *const asym_observers[ASYM_N_OBSERVERS];

enum { ASYM_OBSERVERS_MAX = 8 };
_Static_assert((int)ASYM_N_OBSERVERS <= (int)ASYM_OBSERVERS_MAX, "the chain has room for each row");

/** A chain of observers, from the inside out. */
struct asym_observers {
    struct asym_source *links[ASYM_OBSERVERS_MAX]; /**< by row; owned; NULL: it is not there */
    struct asym_source *source;                    /**< the outermost of them; NULL: closed */
};

/**
 * Open the n observers of entries, at most ASYM_OBSERVERS_MAX, each around those before it. Calls absent for each that cannot
 * run here; why says the reason. Returns 0; -errno with err if the first cannot be opened.
 */
int asym_observers_open(const struct asym_observer_entry *const *entries, size_t n,
                        const struct asym_observer_context *context,
                        void (*absent)(void *ctx, const char *name, const char *why), void *ctx,
                        struct asym_observers *ret, struct asym_error *err);

/** Close the chain, the outermost first. */
void asym_observers_close(struct asym_observers *o);

#define ASYM_OBSERVER(NAME, name) extern const struct asym_observer_entry asym_observer_entry_##name;
#include <asym/observers.def>
#undef ASYM_OBSERVER

#endif
