/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Writes a trial as a Chrome trace for Perfetto or chrome://tracing: a track per CPU, and actions with their reasons. */
#ifndef ASYM_EXPERIMENT_SIM_TRACE_H
#define ASYM_EXPERIMENT_SIM_TRACE_H

#include "experiment/sim-trial.h"

/** Runs the trial once and writes its trace to path. Returns 0; -errno. */
int asym_sim_trace_write(const struct asym_sim_trial *trial, const char *path, const volatile sig_atomic_t *stop);

#endif
