/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Clock modulation on registers elsewhere than in /dev/cpu, as a test has them. */
#ifndef ASYM_LINUX_CAP_CLOCKMOD_H
#define ASYM_LINUX_CAP_CLOCKMOD_H

#include <stdbool.h>

#include "linux/cap.h"

#define ASYM_MSR_CLOCK_MODULATION 0x19a

struct asym_clockmod {
    const char *dir; /* with N/msr for each CPU; borrowed */
    bool (*has_modulation)(void);
};

/** The method on these registers. */
struct asym_cap_method asym_cap_clockmod_of(const struct asym_clockmod *c);

#endif
