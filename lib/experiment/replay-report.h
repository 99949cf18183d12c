/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The report of asymctl replay: the tallies of the policies, and single plans. */
#ifndef ASYM_EXPERIMENT_REPLAY_REPORT_H
#define ASYM_EXPERIMENT_REPLAY_REPORT_H

#include <stdio.h>

#include "experiment/replay.h"
#include "report/columns.h"

/** Print a plan, a line for each application, thread and action. The same plan is the same bytes. Returns 0; -EIO. */
int asym_replay_print_plan(FILE *out, size_t number, const struct asym_snapshot *s, const struct asym_plan *plan,
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
