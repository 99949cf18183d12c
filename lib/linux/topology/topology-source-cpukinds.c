/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hwloc's CPU kinds give frequencies on some machines, and only the order of the kinds on others. */
#include "linux/topology/topology-source.h"
#include "linux/topology/topology-speed.h"

const struct asym_speed_source asym_speed_source_cpukinds = {
    .spread = ASYM_TURBO_SPREAD,
    .ranks = asym_speed_boost_steps,
};
