/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The JSON of asymctl sim: asymctl.sim/1. */
#ifndef ASYM_EXPERIMENT_EXPERIMENT_JSON_H
#define ASYM_EXPERIMENT_EXPERIMENT_JSON_H

#include <stdio.h>

#include "experiment/experiment.h"

/**
 * Print the estimates as one JSON object. With cost also print the CPU time of plans; without, the same trials print the same
 * bytes. Returns 0; -EIO, -ENOMEM.
 */
int asym_experiment_json(const struct asym_experiment *x, const char *name, bool cost, FILE *out);

#endif
