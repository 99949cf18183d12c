/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A source that adds counter samples to the snapshots of another source. It counts only threads that a policy requests.
 *
 * feedback() starts to count the threads that the plan requests, and stops counting all others. If threads cannot be
 * counted, the coverage of the next snapshot has their number and the reason.
 *
 * If the budget of descriptors is too small for all of these threads, they take turns: one that has been counted for
 * ASYM_SAMPLER_TURN makes room for one that has not. Else the threads of one user could keep those of all others from being
 * counted.
 */
#ifndef ASYM_LINUX_PERF_SAMPLER_H
#define ASYM_LINUX_PERF_SAMPLER_H

#include <asym/port.h>

#include "linux/perf/counters.h"

/** The time for which a thread is counted before another one may take its turn, in microseconds. */
#define ASYM_SAMPLER_TURN ASYM_SEC

/**
 * The most threads that make room in a cycle, and at most as many as had no place in the last cycle. To stop and start one takes up
 * to 50 us.
 */
#define ASYM_SAMPLER_TURNS 16

struct asym_sampler_config {
    struct asym_source *source;          /* the one to wrap; borrowed */
    struct asym_counters *counters;      /* owned; NULL: no counters */
    const char *missing[ASYM_N_SIGNALS]; /* why IPC, STALL or PROFILE is missing; static; NULL: it is not */
};

/** Returns 0; -ENOMEM: the counters are closed then, too. Closing the sampler does not close the other source. */
int asym_sampler_new(const struct asym_sampler_config *config, struct asym_source **ret_source);

/** Replaces the counters (owned; NULL: none) and the reasons after a configuration reload. Counting starts again. */
void asym_sampler_set(struct asym_source *sampler, struct asym_counters *counters,
                      const char *const missing[ASYM_N_SIGNALS]);

/** From now on counts all threads, whatever the plan requests. */
void asym_sampler_count_all(struct asym_source *sampler);

#endif
