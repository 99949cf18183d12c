/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Counters that replay a recording instead of reading the kernel's counters. */
#ifndef ASYM_TESTS_SUPPORT_COUNTERS_REPLAY_H
#define ASYM_TESTS_SUPPORT_COUNTERS_REPLAY_H

#include <stddef.h>

#include "linux/perf/counters.h"

/**
 * A recording has lines "TIME TID INSTRUCTIONS CYCLES LLC_MISSES REF_CYCLES ON_CPU_NS". TIME is in us since the recording
 * began, and ascends. Figures are cumulative; "-" stands for a figure that is missing. "TIME TID gone" says that the thread has
 * ended. '#' begins a comment. The tid alone identifies a thread. Counts begin at watch(), as those of the live counters do.
 * Each figure uses one of max_fds. Returns 0; -EINVAL with err "NAME:LINE: what is wrong"; -ENOMEM.
 */
int asym_counters_replay_new(const char *name, const char *text, size_t len, unsigned max_fds,
                             struct asym_counters **ret, struct asym_error *err);

/** The same for a file of at most 16 MiB. Returns -errno, too, if the file cannot be read. */
int asym_counters_replay_open(const char *path, unsigned max_fds, struct asym_counters **ret, struct asym_error *err);

/** Set the time to now, in us since the recording began. It starts at 0 and must not go back. */
void asym_counters_replay_at(struct asym_counters *c, asym_usec now);

#endif
