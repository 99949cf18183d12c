/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Makes a scenario of the simulator out of a record: a program for each application, whose steps are the phases that it was seen
 * in. The work of a step is the CPU time that was seen, times the speed of the CPU, or its share of that beside a busy sibling.
 */
#ifndef ASYM_EXPERIMENT_RECORD_SCENARIO_H
#define ASYM_EXPERIMENT_RECORD_SCENARIO_H

#include <stddef.h>

#include <asym/error.h>

#include "record/record-reader.h"

/** The most programs; the applications that used most CPU time are taken. */
enum { ASYM_RECORD_SCENARIO_PROGRAMS = 32 };

/** The texts are owned. */
struct asym_record_scenario {
    char *text; /**< the scenario */
    size_t len;
    char *notes; /**< paragraphs, a line each, that say what the record could not tell */
    size_t notes_len;
};

void asym_record_scenario_done(struct asym_record_scenario *s);

/**
 * machine: the sections [machine] and [scheduler] of another scenario, as text; NULL: the recorded machine.
 * Returns 0; -EBADMSG with err: the record is damaged, or has more than
 * ASYM_RECORD_MAX_APPLICATIONS applications or ASYM_RECORD_MAX_PHASES phases; -EINVAL with err: no application ran; -ENOMEM with
 * err.
 */
int asym_record_scenario(struct asym_record_reader *reader, const char *machine, struct asym_record_scenario *ret,
                         struct asym_error *err);

#endif
