/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Reading a scenario: what is shared by keys and steps. */
#ifndef ASYM_SIM_SCENARIO_INTERNAL_H
#define ASYM_SIM_SCENARIO_INTERNAL_H

#include "sim/scenario.h"

struct parse {
    struct asym_scenario *s;
    const char *name;  /* of the file */
    const char *kind;  /* of the section in force; NULL: one of asymd.conf */
    void *base;        /* what its keys go into */
    unsigned seen[64]; /* by row: line that gave it in this section */
    unsigned n_counts, n_speeds;
    unsigned machine_line; /* of [machine]; 0: there is none */
};

/** A time with unit, ns included, in ns. 0; -EINVAL, -ERANGE. */
int sim_parse_ns(const char *text, double *ret);

/** Take a line "step = ..." of the newest program. 0; -EINVAL with err, without a place. */
int sim_step_add(struct parse *p, const char *text, unsigned line, struct asym_error *err);

/** What can be told only of all steps: loops are closed and take time; labels are worked out. -EINVAL with err. */
int sim_steps_check(const struct parse *p, struct asym_sim_program *program, struct asym_error *err);

#endif
