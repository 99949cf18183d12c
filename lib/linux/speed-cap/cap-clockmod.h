/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The registers of clock modulation: the context of asym_cap_clockmod. */
#ifndef ASYM_LINUX_SPEED_CAP_CLOCKMOD_H
#define ASYM_LINUX_SPEED_CAP_CLOCKMOD_H

#include <stdbool.h>

#include "linux/speed-cap/cap.h"

#define ASYM_MSR_CLOCK_MODULATION 0x19a

struct asym_clockmod {
    const char *dir; /* has N/msr for each CPU N; borrowed */
    bool (*has_modulation)(void);
};

#endif
