/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The interface of a method that slows a CPU. A method is one row of ASYM_CAP_METHODS; tests have their own methods. */
#ifndef ASYM_LINUX_SPEED_CAP_CAP_H
#define ASYM_LINUX_SPEED_CAP_CAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/settings.h"

/** The limits of a CPU and of all CPUs that change together with it. */
struct asym_cap_state {
    uint64_t low, high; /**< cpufreq: kHz. clockmod: the register, in both */
};

struct asym_cap_method {
    const char *name;
    /** True: all CPUs of a core change together. False: all CPUs of a frequency domain do. */
    bool whole_core;
    const void *ctx; /**< borrowed; passed to each function */
    /** Checks whether the method can cap cpu. Returns 0; -errno, with the reason in why. */
    int (*probe)(const void *ctx, int cpu, char *why, size_t size);
    /** Reads the limits of cpu. Returns 0; -ENODEV: the CPU is offline; -errno. */
    int (*read)(const void *ctx, int cpu, struct asym_cap_state *ret);
    /** Changes the limits of cpu. from: as last read. Returns 0; -errno: the method may have changed one of them. */
    int (*write)(const void *ctx, int cpu, const struct asym_cap_state *from, const struct asym_cap_state *to);
    /** Chooses the state nearest to speed. now: as read. Returns 0; -EINVAL: no such form of speed; -errno. */
    int (*choose)(const void *ctx, int cpu, const struct asym_slow_speed *speed, const struct asym_cap_state *now,
                  struct asym_cap_state *ret);
    /** Returns the share of its full speed that cpu has in this state, in (0, 1]; 0: unknown. */
    double (*share)(const void *ctx, int cpu, const struct asym_cap_state *state);
};

#define ASYM_CAP_METHOD_EXTERN(constant, symbol) extern const struct asym_cap_method asym_cap_##symbol;
ASYM_CAP_METHODS(ASYM_CAP_METHOD_EXTERN)

/* The registers of clock modulation: the context of asym_cap_clockmod. */

#define ASYM_MSR_CLOCK_MODULATION 0x19a

struct asym_clockmod {
    const char *dir; /* has N/msr for each CPU N; borrowed */
    bool (*has_modulation)(void);
};

#endif
