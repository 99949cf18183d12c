/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Reports an experiment, as text and as JSON. */
#ifndef ASYM_EXPERIMENT_EXPERIMENT_REPORT_H
#define ASYM_EXPERIMENT_EXPERIMENT_REPORT_H

#include <stdio.h>

#include "experiment/experiment.h"
#include "report/columns.h"

/**
 * Print the estimates as one JSON object. With cost also print the CPU time of plans; without, the same trials print the same
 * bytes. Returns 0; -EIO, -ENOMEM.
 */
int asym_experiment_json(const struct asym_experiment *x, const char *name, bool cost, FILE *out);

/**
 * Print the estimates. With cost also print the CPU time of plans; without, the same trials print the same bytes. Returns 0;
 * -EIO, -ENOMEM.
 */
int asym_experiment_text(const struct asym_experiment *x, const char *name, bool cost,
                         const struct asym_terminal *terminal);

#endif
