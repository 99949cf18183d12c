/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cpu_capacity is the capacity that the kernel's scheduler uses: the fastest CPU has 1024. */
#include "linux/topology/topology-source.h"

const struct asym_speed_source asym_speed_source_capacity = {
    .path = "cpu_capacity",
    .name = "cpu_capacity",
    .unit = "",
    .spread = 1 + ASYM_TYPE_TOLERANCE,
};
