/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Traces of threads: of a simulation, and of what a source has seen. */
#ifndef ASYM_EXPERIMENT_TRACES_H
#define ASYM_EXPERIMENT_TRACES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include <asym/plan.h>
#include <asym/snapshot.h>

#include "core/task-table.h"
#include "experiment/experiment.h"

struct asym_seen_trace {
    FILE *out; /* borrowed */
    struct asym_table planned;
    uint64_t generation; /* of the machine whose CPUs have names; 0: none */
    asym_usec first;     /* where the first interval begins: the zero of the trace */
    uint64_t slices, decisions;
    bool has_service; /* the instants are the decisions of a service; those of the plans are left out */
    double used[ASYM_MAX_CPUS], at[ASYM_MAX_CPUS]; /* of an interval: microseconds */
};

/** Write the beginning of the file. */
void asym_seen_trace_begin(struct asym_seen_trace *t, FILE *out);

/** Add a snapshot with its plan. Returns 0; -ENOMEM; -EIO. */
int asym_seen_trace_add(struct asym_seen_trace *t, const struct asym_snapshot *s, const struct asym_plan *plan);

/**
 * Write an instant for a decision of a running service, as its report on decisions has it (org.asymd.Manager(5)), after the first
 * snapshot was added. at: by the clock of asym_snapshot.now. It is on the track of the CPU to, else from, and else on no track. A
 * decision before the first interval stands at its beginning. Returns 0; -EIO.
 */
int asym_seen_trace_decide(struct asym_seen_trace *t, asym_usec at, const json_t *decision);

/** Write the end, and free all but the file. Returns 0; -EIO. */
int asym_seen_trace_end(struct asym_seen_trace *t);

/** Runs the trial once and writes its trace to path. Returns 0; -errno. */
int asym_sim_trace_write(const struct asym_sim_trial *trial, const char *path, const volatile sig_atomic_t *stop);

#endif
