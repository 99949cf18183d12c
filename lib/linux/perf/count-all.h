/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A source around a sampler that requests the counts of all threads, whatever the plan requests. */
#ifndef ASYM_LINUX_PERF_COUNT_ALL_H
#define ASYM_LINUX_PERF_COUNT_ALL_H

#include <asym/port.h>

/** inner: borrowed. Returns 0; -ENOMEM. Without memory for a larger plan the sampler gets the plan as it is. */
int asym_count_all_new(struct asym_source *inner, struct asym_source **ret_source);

#endif
