/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frequency caps through libcpupower. This does not use cpufreq_set_frequency, which needs the governor userspace and leaves it
 * set; intel_pstate and amd-pstate in active mode do not have that governor. libcpupower 6.1 reads errno without clearing it
 * first, and returns only -1 or -ENODEV for a failed write, so this clears errno before each call and reads it after.
 */
#include "linux/speed-cap/cap.h"

#include <errno.h>
#include <stdio.h>

#include <cpufreq.h>

#include "base/macro.h"

static int failure(int fallback)
{
    return errno > 0 ? -errno : fallback;
}

static int read_state(const void *ctx, int cpu, struct asym_cap_state *ret)
{
    errno = 0;
    struct cpufreq_policy *p = cpufreq_get_policy((unsigned)cpu);
    if (!p)
        return -ENODEV;
    *ret = (struct asym_cap_state){.low = p->min, .high = p->max};
    cpufreq_put_policy(p);
    return ret->high > 0 ? 0 : -ENODEV;
}

static int hardware_limits(int cpu, unsigned long *ret_min, unsigned long *ret_max)
{
    unsigned long min = 0, max = 0;
    errno = 0;
    if (cpufreq_get_hardware_limits((unsigned)cpu, &min, &max) != 0 || max == 0)
        return -ENODEV;
    *ret_min = min;
    *ret_max = max;
    return 0;
}

static int probe(const void *ctx, int cpu, char *why, size_t size)
{
    struct asym_cap_state now;
    unsigned long min, max;
    if (read_state(ctx, cpu, &now) < 0 || hardware_limits(cpu, &min, &max) < 0) {
        snprintf(why, size, "CPU %d has no cpufreq driver: usual in a virtual machine; elsewhere load the driver", cpu);
        return -ENODEV;
    }
    if (min >= max) {
        snprintf(why, size, "CPU %d has one frequency only, %lu kHz", cpu, max);
        return -EOPNOTSUPP;
    }
    return 0;
}

static int set_low(int cpu, uint64_t khz)
{
    errno = 0;
    return cpufreq_modify_policy_min((unsigned)cpu, (unsigned long)khz) == 0 ? 0 : failure(-EIO);
}

static int set_high(int cpu, uint64_t khz)
{
    errno = 0;
    return cpufreq_modify_policy_max((unsigned)cpu, (unsigned long)khz) == 0 ? 0 : failure(-EIO);
}

/* The minimum must not exceed the maximum between the two writes either. The governor stays. */
static int write_state(const void *ctx, int cpu, const struct asym_cap_state *from, const struct asym_cap_state *to)
{
    const bool low_first = to->low <= from->high;
    int r = 0;
    if (low_first && to->low != from->low)
        r = set_low(cpu, to->low);
    if (r >= 0 && to->high != from->high)
        r = set_high(cpu, to->high);
    if (r >= 0 && !low_first)
        r = set_low(cpu, to->low);
    return r;
}

/* A driver without a table takes any frequency between its limits. */
static uint64_t nearest_available(int cpu, uint64_t wanted)
{
    uint64_t best = wanted;
    bool found = false;
    errno = 0;
    struct cpufreq_available_frequencies *all = cpufreq_get_available_frequencies((unsigned)cpu);
    for (struct cpufreq_available_frequencies *f = all; f; f = f->next) {
        uint64_t gap = f->frequency > wanted ? f->frequency - wanted : wanted - f->frequency;
        uint64_t least = best > wanted ? best - wanted : wanted - best;
        if (!found || gap < least)
            best = f->frequency;
        found = true;
    }
    if (all)
        cpufreq_put_available_frequencies(all);
    return best;
}

static int choose(const void *ctx, int cpu, const struct asym_slow_speed *speed, const struct asym_cap_state *now,
                  struct asym_cap_state *ret)
{
    unsigned long min, max;
    int r = hardware_limits(cpu, &min, &max);
    if (r < 0)
        return r;
    uint64_t wanted = speed->khz > 0 ? speed->khz : (uint64_t)(speed->share * (double)max);
    wanted = nearest_available(cpu, ASYM_MAX(ASYM_MIN(wanted, max), min));
    *ret = *now;
    ret->low = ret->high = wanted;
    return 0;
}

static double share(const void *ctx, int cpu, const struct asym_cap_state *state)
{
    unsigned long min, max;
    if (hardware_limits(cpu, &min, &max) < 0)
        return 0;
    return ASYM_MIN((double)state->high / (double)max, 1.0);
}

/* Sets both maximum and minimum to the frequency, so that it is constant. */
const struct asym_cap_method asym_cap_cpufreq = {
    .name = "cpufreq",
    .probe = probe,
    .read = read_state,
    .write = write_state,
    .choose = choose,
    .share = share,
};
