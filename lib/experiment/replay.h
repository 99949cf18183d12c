/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Replay: runs the engine over the snapshots of a record. It shows what a policy would have planned for what was seen. It does
 * not show how programs would have run: a thread on another CPU does other work in the next interval, and no record has that.
 */
#ifndef ASYM_EXPERIMENT_REPLAY_H
#define ASYM_EXPERIMENT_REPLAY_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include <asym/types.h>
#include <asym/plan.h>
#include <asym/snapshot.h>

#include "base/mask-table.h"
#include "base/grow.h"
#include "config/settings.h"
#include "core/task-table.h"
#include "record/record.h"
#include "report/columns.h"

struct asym_what_if {
    struct asym_table steered;
    struct asym_mask_table masks;
    struct asym_pool tasks, outcomes;
};

void asym_what_if_init(struct asym_what_if *w);
void asym_what_if_done(struct asym_what_if *w);

/** Change the snapshot. Its tasks then belong to w, until the next call. Returns 0; -ENOMEM. */
int asym_what_if_show(struct asym_what_if *w, struct asym_snapshot *s);

/** Carry out the actions of the plan for that snapshot. Returns their outcomes, all DONE; NULL: no memory. */
const struct asym_outcome *asym_what_if_apply(struct asym_what_if *w, const struct asym_snapshot *s,
                                              const struct asym_plan *plan, const struct asym_action *actions,
                                              size_t n);

enum { ASYM_REPLAY_MAX_POLICIES = 32, ASYM_REPLAY_CLASSES = ASYM_CLASS_SP + 1 };

/** The sums of a policy over a record. */
struct asym_replay_tally {
    const struct asym_policy *policy;
    size_t snapshots;
    size_t threads; /**< different threads in the snapshots */
    size_t steered; /**< different threads that the policy gave a CPU */
    size_t moves;   /**< times that a thread had to leave the CPU on which it ran */
    size_t changes; /**< masks and nice values set and put back */
    double seconds; /**< of the record */
    bool alike;     /**< no snapshot had a slow CPU */
    /** CPU time by class of its thread, all of it and that on fast CPUs, in seconds. */
    double running[ASYM_REPLAY_CLASSES], fast[ASYM_REPLAY_CLASSES];
};

/** The comparison of the plans with those that were made while asymd recorded. */
struct asym_replay_check {
    size_t plans;      /**< plans of the record whose digest is known */
    size_t same;       /**< of these, plans that the replay made again, byte for byte */
    size_t first_diff; /**< number of the first snapshot with another plan, from 1; 0: none */
};

/** Called with each plan. Returns 0; -errno, which ends the replay. */
struct asym_replay_watch {
    int (*plan)(void *ctx, size_t number, const struct asym_snapshot *s, const struct asym_plan *plan,
                const struct asym_action *actions, size_t n_actions);
    void *ctx;
};

/**
 * Returns settings that have the values of the record's head. The recorder plans with the same settings, made in the same way.
 * Returns 0; -EINVAL with err: this asymctl does not know a setting, or its value; -ENOMEM.
 */
int asym_replay_settings(const struct asym_record_head *head, struct asym_settings **ret_settings,
                         struct asym_error *err);

/**
 * Plan again under the policy of the record, with the recorded outcomes, and compare. watch and stop may be NULL.
 * Returns 0; -EBADMSG with err: the record is damaged, or has more than ASYM_RECORD_MAX_THREADS threads
 * or ASYM_RECORD_MAX_APPLICATIONS applications; -EINVAL, -ENOMEM with err.
 */
int asym_replay_check(struct asym_record_reader *reader, const struct asym_settings *settings,
                      const struct asym_replay_watch *watch, const volatile sig_atomic_t *stop,
                      struct asym_replay_check *ret, struct asym_error *err);

/**
 * Plan under another policy, as if each change had been made: later snapshots show the planned mask, and the planned CPU where
 * the mask leaves out the recorded one.
 * Returns as asym_replay_check, and -ENODATA with err: the record lacks a signal that the policy needs.
 */
int asym_replay_run(struct asym_record_reader *reader, const struct asym_settings *settings,
                    const struct asym_policy *policy, const struct asym_replay_watch *watch,
                    const volatile sig_atomic_t *stop, struct asym_replay_tally *ret, struct asym_error *err);

/* The report of asymctl replay: the tallies of the policies, and single plans. */

/**
 * A watch that prints each plan to its ctx, a FILE: a line for each application, thread and action. The same plan is the same
 * bytes. Returns 0; -EIO.
 */
int asym_replay_print_plan(void *out, size_t number, const struct asym_snapshot *s, const struct asym_plan *plan,
                           const struct asym_action *actions, size_t n_actions);

struct asym_replay_report {
    const char *name; /**< of the file */
    const struct asym_record_head *head;
    const struct asym_replay_check *check;
    const struct asym_replay_tally *tallies;
    size_t n_tallies;
    const char *cut; /**< where the record was cut off; NULL: it is complete */
};

/** Print the tallies side by side, as text or as JSON (asymctl.replay/1). Returns 0; -EIO, -ENOMEM. */
int asym_replay_text(const struct asym_replay_report *report, const struct asym_terminal *terminal);
int asym_replay_json(const struct asym_replay_report *report, FILE *out);

#endif
