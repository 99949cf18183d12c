/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Starts the program of asymctl run on the fast CPUs or on the slow ones. */
#ifndef ASYM_DAEMON_ASYMCTL_RUN_PLACE_H
#define ASYM_DAEMON_ASYMCTL_RUN_PLACE_H

#include <asym/error.h>
#include <asym/types.h>

enum asym_run_place { ASYM_RUN_ANYWHERE, ASYM_RUN_FAST, ASYM_RUN_SLOW };

/**
 * Return in *ret the CPUs of the machine that the place means, as asymd sees the machine under that configuration (NULL: the
 * installed one): for ASYM_RUN_FAST one CPU of each fast core.
 * Returns 0; -ENODATA: all CPUs are alike; -errno, with err: the configuration or the machine cannot be read.
 */
int asym_run_place_cpus(enum asym_run_place place, const char *config, struct asym_mask *ret, struct asym_error *err);

/**
 * Set the affinity of this process to those of the CPUs that it may use now, so that a program that it executes sizes its thread
 * pool by them. Returns 0; -ENODATA with err: its affinity has none of them; -errno with err. On an error the affinity stays as it
 * is.
 */
int asym_run_place_here(const struct asym_mask *cpus, struct asym_error *err);

#endif
