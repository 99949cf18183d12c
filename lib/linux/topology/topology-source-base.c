/* SPDX-License-Identifier: GPL-2.0-or-later */
/* base_frequency is the frequency that the CPU sustains under full load (intel_pstate). */
#include "linux/topology/topology-source.h"

const struct asym_speed_source asym_speed_source_base = {
    .path = "cpufreq/base_frequency",
    .name = "base_frequency",
    .unit = "kHz",
    .spread = ASYM_TURBO_SPREAD,
};
