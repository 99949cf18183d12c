/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A trial as a Chrome trace, which Perfetto and chrome://tracing open: a track per CPU, and moves with their reasons. */
#ifndef ASYM_DAEMON_SIM_TRACE_H
#define ASYM_DAEMON_SIM_TRACE_H

#include "daemon/sim_trial.h"

/** Run the trial once and write its trace to path. 0; -errno. */
int asym_sim_trace_write(const struct asym_sim_trial *trial, const char *path, const volatile sig_atomic_t *stop);

#endif
