/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Draws a replay as SVG: a bar for each policy with its share of the running time on fast CPUs, and which program would have been
 * on which CPU under one policy. The figure is filled by the watches of the replay: first that of asym_replay_check, then one for
 * each asym_replay_run.
 */
#ifndef ASYM_EXPERIMENT_REPLAY_FIGURE_H
#define ASYM_EXPERIMENT_REPLAY_FIGURE_H

#include "experiment/replay.h"

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
