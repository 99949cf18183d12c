/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cpuinfo_max_freq is the highest frequency of the CPU, boost included. */
#include "linux/topology/topology-source.h"
#include "linux/topology/topology-speed.h"

const struct asym_speed_source asym_speed_source_cpufreq = {
    .path = "cpufreq/cpuinfo_max_freq",
    .name = "cpuinfo_max_freq",
    .unit = "kHz",
    .spread = ASYM_TURBO_SPREAD,
    .ranks = asym_speed_boost_steps,
};
