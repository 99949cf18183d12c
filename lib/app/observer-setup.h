/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The observer of a mode: the chain of sources that a cycle reads. The links from the inside out: the rows of
 * <asym/observers.def>; an overlay that the caller may put around them (RTX, or the ledger of a running service); the sampler,
 * which reads counters.
 */
#ifndef ASYM_APP_OBSERVER_SETUP_H
#define ASYM_APP_OBSERVER_SETUP_H

#include <asym/types.h>
#include <asym/port.h>

#include "app/run.h"
#include "config/settings.h"
#include "linux/observe/observer.h"
#include "linux/observe/proc-reader.h"
#include "linux/observe/process-events.h"
#include "linux/perf/counters.h"

/** The share of the CPU budget for reading files that can block (linux/observe/proc-reader.h). */
#define ASYM_OBSERVER_READING_SHARE 0.25

/** All zero: closed. */
struct asym_observer {
    struct asym_process_events *process_events; /* NULL: the kernel sends no process events */
    struct asym_proc_reader *reader;            /* NULL: a captured machine */
    struct asym_observers observers;            /* the innermost links */
    struct asym_source *sampler;                /* around them; NULL: asym_observer_count was not called */
    /*
     * The outermost link so far. A caller that puts an overlay around it, as the service does with the users' orders, stores it
     * here, and closes it before the observer.
     */
    struct asym_source *source;
    char without[280]; /* the observers that cannot run here, and why; "": all do that the configuration wants */
};

/**
 * Open the reader, the process events and the observers. Leaves out an observer that cannot run here, unless asymd.observer
 * names it. Returns 0; -errno with err.
 */
int asym_observer_open(struct asym_run *run, struct asym_observer *ret, struct asym_error *err);

/** Put the sampler around the chain, once, after any overlay. Returns 0; -errno with err, and leaves the chain as it was. */
int asym_observer_count(struct asym_observer *o, const struct asym_run *run, struct asym_error *err);

/** Match every process again, after a change of rules or profiles. Borrows the rules from the settings. */
void asym_observer_set_rules(struct asym_observer *o, const struct asym_settings *settings);

/** Does the same as asym_procfs_rule_of(). A closed observer knows no thread. */
int asym_observer_rule_of(struct asym_observer *o, const struct asym_taskid *id, struct asym_proc *ret);

/** Does the same as asym_procfs_job_each(). A closed observer knows no process. */
void asym_observer_job_each(struct asym_observer *o, int32_t pgrp,
                            void (*fn)(void *ctx, const struct asym_taskid *proc), void *ctx);

/** Use the rules, the grouping and the counters of a new configuration. Takes over counters; NULL: none. */
void asym_observer_adopt(struct asym_observer *o, const struct asym_run *run, struct asym_counters *counters);

void asym_observer_close(struct asym_observer *o);

/** Log why asymd could not see some processes: a line for each reason. */
void asym_observer_warn(struct asym_log *log, const struct asym_snapshot *s);

#endif
