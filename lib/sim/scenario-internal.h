/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The state of the scenario parser, shared by scenario.c and scenario-steps.c. */
#ifndef ASYM_SIM_SCENARIO_INTERNAL_H
#define ASYM_SIM_SCENARIO_INTERNAL_H

#include "sim/scenario.h"

struct parse {
    struct asym_scenario *s;
    const char *name;      /* of the file, for messages */
    const char *kind;      /* of the current section; NULL: a section of asymd.conf */
    void *base;            /* the struct that the section's keys fill */
    unsigned seen[64];     /* by row: the line of its key in this section; 0: none */
    unsigned machine_line; /* of [machine]; 0: no such section */
};

/** Adds the step of a line "step = TEXT" to the newest program. Returns 0; -EINVAL with err, which names no line. */
int sim_step_add(struct parse *p, const char *text, unsigned line, struct asym_error *err);

/**
 * Checks what needs all steps of the program: each loop is closed and takes time. Completes the steps of labels.
 * Returns 0; -EINVAL with err.
 */
int sim_steps_check(const struct parse *p, struct asym_sim_program *program, struct asym_error *err);

#endif
