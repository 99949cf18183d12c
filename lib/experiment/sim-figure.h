/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Draws an experiment as SVG: a bar for each policy with its interval, and which program ran on which CPU in one trial. */
#ifndef ASYM_EXPERIMENT_SIM_FIGURE_H
#define ASYM_EXPERIMENT_SIM_FIGURE_H

#include <signal.h>

#include "experiment/experiment.h"

/**
 * Writes the figure to path. The timeline is that of the policy with the first seed, which runs once more for it; if that trial
 * did not finish, or *stop is set, the figure has bars only. name: of the scenario. Returns 0; -errno.
 */
int asym_sim_figure_write(const struct asym_experiment *x, size_t policy, const char *name, const char *path,
                          const volatile sig_atomic_t *stop);

#endif
