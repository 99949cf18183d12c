/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Figures of runs in SVG: of an experiment in the simulator, and of the replay of a record. */
#ifndef ASYM_EXPERIMENT_FIGURES_H
#define ASYM_EXPERIMENT_FIGURES_H

#include <signal.h>

#include "experiment/experiment.h"
#include "experiment/replay.h"

/**
 * Writes the figure to path. The timeline is that of the policy with the first seed, which runs once more for it; if that trial
 * did not finish, or *stop is set, the figure has bars only. name: of the scenario. Returns 0; -errno.
 */
int asym_sim_figure_write(const struct asym_experiment *x, size_t policy, const char *name, const char *path,
                          const volatile sig_atomic_t *stop);

struct asym_replay_figure;

/** Returns 0; -ENOMEM. */
int asym_replay_figure_new(struct asym_replay_figure **ret);

/** figure: may be NULL. */
void asym_replay_figure_free(struct asym_replay_figure *figure);

/** The watch for asym_replay_check: it finds the length of the record, its CPUs, and the programs that ran for longest. */
struct asym_replay_watch asym_replay_figure_survey(struct asym_replay_figure *figure);

/** The watch for the next asym_replay_run, under that policy. drawn: this policy has the timeline; at most one has. */
struct asym_replay_watch asym_replay_figure_watch(struct asym_replay_figure *figure, const struct asym_policy *policy,
                                                  bool drawn);

/** Leave out the policy of the last watch, whose replay has not ended, and its timeline. */
void asym_replay_figure_drop(struct asym_replay_figure *figure);

/** Write the figure to path. name: of the record. Returns 0; -errno. */
int asym_replay_figure_write(struct asym_replay_figure *figure, const char *name, const char *path);

#endif
