/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Duty-cycle modulation: the processor stops the clock for a share of the time (Intel SDM volume 3, 15.8.3). Bit 4 of
 * IA32_CLOCK_MODULATION enables it, bits 3:1 hold the duty cycle in steps of 1/8. It acts on cores: with two hardware threads
 * the larger of their duty cycles is in force.
 */
#include "linux/speed-cap/cap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#define ON          0x10u
#define DUTY_SHIFT  1
#define DUTY_MASK   0xeu
#define STEPS       8u
#define ACPI_BIT    (1u << 22) /* CPUID.01H:EDX: thermal monitor and software controlled clock */
#define FIELDS_MASK (uint64_t)(ON | DUTY_MASK)

static bool has_modulation(void)
{
#if defined(__x86_64__) || defined(__i386__)
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (d & ACPI_BIT);
#else
    return false;
#endif
}

static int open_msr(const void *ctx, int cpu, int flags)
{
    const struct asym_clockmod *c = ctx;
    char path[256];
    int n = snprintf(path, sizeof path, "%s/%d/msr", c->dir, cpu);
    if (n < 0 || (size_t)n >= sizeof path)
        return -ENAMETOOLONG;
    int fd = open(path, flags | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int read_state(const void *ctx, int cpu, struct asym_cap_state *ret)
{
    uint64_t value;
    ASYM_AUTO_CLOSE int fd = open_msr(ctx, cpu, O_RDONLY);
    if (fd < 0)
        return fd == -ENXIO || fd == -ENOENT ? -ENODEV : fd;
    ssize_t n = pread(fd, &value, sizeof value, ASYM_MSR_CLOCK_MODULATION);
    if (n != (ssize_t)sizeof value)
        return n < 0 ? -errno : -EIO;
    *ret = (struct asym_cap_state){.low = value, .high = value};
    return 0;
}

static int probe(const void *ctx, int cpu, char *why, size_t size)
{
    const struct asym_clockmod *c = ctx;
    struct asym_cap_state now;
    if (!c->has_modulation()) {
        snprintf(why, size, "this CPU has no clock modulation (CPUID.01H:EDX bit 22)");
        return -EOPNOTSUPP;
    }
    int r = read_state(ctx, cpu, &now);
    if (r == -ENODEV)
        snprintf(why, size, "%s/%d/msr does not exist: modprobe msr", c->dir, cpu);
    else if (r == -EACCES || r == -EPERM)
        snprintf(why, size, "asymd may not open %s/%d/msr: it needs CAP_SYS_RAWIO", c->dir, cpu);
    else if (r < 0)
        snprintf(why, size, "the register cannot be read on CPU %d: %s", cpu, strerror(-r));
    return r;
}

static int write_state(const void *ctx, int cpu, const struct asym_cap_state *from, const struct asym_cap_state *to)
{
    ASYM_AUTO_CLOSE int fd = open_msr(ctx, cpu, O_WRONLY);
    if (fd < 0)
        return fd == -ENXIO || fd == -ENOENT ? -ENODEV : fd;
    ssize_t n = pwrite(fd, &to->high, sizeof to->high, ASYM_MSR_CLOCK_MODULATION);
    return n == (ssize_t)sizeof to->high ? 0 : n < 0 ? -errno : -EIO;
}

static int choose(const void *ctx, int cpu, const struct asym_slow_speed *speed, const struct asym_cap_state *now,
                  struct asym_cap_state *ret)
{
    if (!(speed->share > 0))
        return -EINVAL; /* clockmod has no frequencies */
    unsigned steps = (unsigned)(speed->share * STEPS + 0.5);
    steps = ASYM_MAX(steps, 1u);
    uint64_t value = now->high & ~FIELDS_MASK;
    if (steps < STEPS)
        value |= ON | (uint64_t)steps << DUTY_SHIFT;
    *ret = (struct asym_cap_state){.low = value, .high = value};
    return 0;
}

static double share(const void *ctx, int cpu, const struct asym_cap_state *state)
{
    const unsigned steps = (unsigned)(state->high & DUTY_MASK) >> DUTY_SHIFT;
    return state->high & ON && steps > 0 ? (double)steps / STEPS : 1.0;
}

static const struct asym_clockmod live = {.dir = "/dev/cpu", .has_modulation = has_modulation};

/* Duty cycle by IA32_CLOCK_MODULATION (MSR 0x19A) in /dev/cpu/N/msr: steps of 1/8. */
const struct asym_cap_method asym_cap_clockmod = {
    .name = "clockmod",
    .whole_core = true,
    .ctx = &live,
    .probe = probe,
    .read = read_state,
    .write = write_state,
    .choose = choose,
    .share = share,
};
