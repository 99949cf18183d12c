/* SPDX-License-Identifier: GPL-2.0-or-later */
/** How a CPU is made slower: what every method of it can do. A method is a row; tests bring their own. */
#ifndef ASYM_LINUX_CAP_H
#define ASYM_LINUX_CAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/settings.h>

/** What a CPU, and all that change together with it, are held to. */
struct asym_cap_state {
    uint64_t low, high; /**< cpufreq: kHz. clockmod: the register, in both */
    char governor[32];  /**< cpufreq; "" elsewhere */
};

struct asym_cap_method {
    const char *name;
    /** A core changes as a whole; else a frequency domain does. */
    bool whole_core;
    const void *ctx; /**< borrowed; handed to each call */
    /** Can this CPU be capped? 0; -errno with the reason in words. */
    int (*probe)(const void *ctx, int cpu, char *why, size_t size);
    /** 0; -ENODEV: the CPU is offline; -errno. */
    int (*read)(const void *ctx, int cpu, struct asym_cap_state *ret);
    /** From what was last read. 0; -errno: perhaps part of it is done. */
    int (*write)(const void *ctx, int cpu, const struct asym_cap_state *from, const struct asym_cap_state *to);
    /** The state nearest to the speed asked for. now: as read. 0; -errno. */
    int (*choose)(const void *ctx, int cpu, const struct asym_slow_speed *speed, const struct asym_cap_state *now,
                  struct asym_cap_state *ret);
    /** The share of its full speed that a CPU has in this state: above 0, up to 1. 0: it cannot be told. */
    double (*share)(const void *ctx, int cpu, const struct asym_cap_state *state);
};

/** cpufreq through libcpupower: maximum and minimum are both set to the frequency, so that it is constant. */
extern const struct asym_cap_method asym_cap_cpufreq;

/** Duty cycle by IA32_CLOCK_MODULATION (MSR 0x19A) in /dev/cpu/N/msr: steps of 1/8. */
extern const struct asym_cap_method asym_cap_clockmod;

#endif
