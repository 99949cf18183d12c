/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Clock modulation on registers in a directory other than /dev/cpu, for tests. */
#ifndef ASYM_LINUX_SPEED_CAP_CLOCKMOD_H
#define ASYM_LINUX_SPEED_CAP_CLOCKMOD_H

#include <stdbool.h>

#include "linux/speed-cap/cap.h"

#define ASYM_MSR_CLOCK_MODULATION 0x19a

struct asym_clockmod {
    const char *dir; /* has N/msr for each CPU N; borrowed */
    bool (*has_modulation)(void);
};

/** Returns the method clockmod for these registers. c is borrowed. */
struct asym_cap_method asym_cap_clockmod_of(const struct asym_clockmod *c);

#endif
