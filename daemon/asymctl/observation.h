/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The observation of this machine by a verb that steers nothing itself: record and trial. */
#ifndef ASYM_DAEMON_ASYMCTL_OBSERVATION_H
#define ASYM_DAEMON_ASYMCTL_OBSERVATION_H

#include "app/cycle.h"
#include "app/observer-setup.h"
#include "app/run.h"
#include "record/record.h"

/** The verb says how long it observes, and what. */
struct asym_observation_arguments {
    asym_usec time; /**< microseconds */
    const char *pids, *policy,
        *config; /**< NULL: all processes; the policy and the configuration of the running asymd */
};

struct asym_observation {
    struct asym_invocation cli;
    struct asym_invocation_setting policy;
    struct asym_run run;
    struct asym_observer observer;
    struct asym_source *ledger_overlay;
    struct asym_source *source;                /* the outermost; the verb may put its own around it */
    struct asym_record_head head;              /* of a record of this observation */
    struct asym_record_setting *head_settings; /* owned, with their texts */
    size_t capacity;
    const char *notes[2];
    struct asym_settings *settings; /* those of the plans */
    struct asym_cycle cycle;
    asym_usec time, began, took; /* microseconds; took: set at the end of asym_observation_run */
    bool usage;                  /* the error is one of usage or configuration */
    char note[256];              /* what a running service has done; "": nothing */
};

/** Read the configuration and the machine, open the sources, and fill the head. Returns 0; -errno with err. */
int asym_observation_open(struct asym_observation *o, const struct asym_observation_arguments *a,
                          struct asym_error *err);
void asym_observation_done(struct asym_observation *o);

/** Make the engine, with the settings of the head: a replay makes the same engine from them. Returns 0; -errno with err. */
int asym_observation_begin(struct asym_observation *o, struct asym_error *err);

/**
 * Observe and plan until the time is over or the user interrupts it; both are no error. Nothing is steered. Shows on stderr how
 * much is left, if that is a terminal. Calls on_cycle after each plan; below 0 it ends the observation. Returns 0; -errno with err.
 */
int asym_observation_run(struct asym_observation *o, int (*on_cycle)(void *ctx, const struct asym_cycle *cycle),
                         void *ctx, struct asym_error *err);

#endif
