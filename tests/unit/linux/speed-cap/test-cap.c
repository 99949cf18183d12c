/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests both cap methods on files. libcpupower's paths are fixed, so the test mounts its own tree over
 * /sys/devices/system/cpu in its own mount namespace, for which it must be root.
 */
#include <sys/mount.h>

#include "linux/speed-cap/cap.h"
#include "support/namespace.h"
#include "support/tree.h"
#include "support/test.h"

#define SYS "/sys/devices/system/cpu"

static struct tree tree;
static bool mounted;

static void write_value(int cpu, const char *file, const char *value)
{
    char path[96];
    snprintf(path, sizeof path, "cpu%d/cpufreq/%s", cpu, file);
    tree_write(&tree, path, "%s\n", value);
}

static const char *text_of(int cpu, const char *file)
{
    static char text[64];
    char path[128];
    snprintf(path, sizeof path, SYS "/cpu%d/cpufreq/%s", cpu, file);
    assert_true(file_read(path, text, sizeof text) > 0);
    return text;
}

static uint64_t value_of(int cpu, const char *file)
{
    return strtoull(text_of(cpu, file), NULL, 10);
}

static void make_cpu(int cpu, const char *available)
{
    write_value(cpu, "cpuinfo_min_freq", "1000000");
    write_value(cpu, "cpuinfo_max_freq", "2800000");
    write_value(cpu, "scaling_min_freq", "1000000");
    write_value(cpu, "scaling_max_freq", "2800000");
    write_value(cpu, "scaling_governor", "schedutil");
    if (available)
        write_value(cpu, "scaling_available_frequencies", available);
}

static int mount_tree(void **state)
{
    tree_make(&tree);
    /* All numbers have seven digits: a plain file, unlike sysfs, keeps the rest of a longer number. */
    make_cpu(0, "2800000 2100000 1400000 1000000");
    make_cpu(1, NULL);
    tree_mkdir(&tree, "cpu2");
    if (asym_namespace_enter() < 0 || asym_namespace_cover(tree.path, SYS) < 0)
        return -1;
    mounted = true;
    return 0;
}

static int unmount_tree(void **state)
{
    if (mounted)
        umount2(SYS, MNT_DETACH);
    tree_remove(&tree);
    return 0;
}

static int reset(void **state)
{
    make_cpu(0, NULL);
    make_cpu(1, NULL);
    return 0;
}

static struct asym_cap_state state_of(int cpu)
{
    struct asym_cap_state s;
    assert_int_equal(asym_cap_cpufreq.read(NULL, cpu, &s), 0);
    return s;
}

TEST_WITH(the_policy_is_read_as_it_is, reset, NULL)
{
    const struct asym_cap_state s = state_of(0);
    assert_true(s.low == 1000000 && s.high == 2800000);
    assert_true(asym_cap_cpufreq.share(NULL, 0, &s) > 0.999);
}

TEST_WITH(the_nearest_available_frequency_is_chosen, reset, NULL)
{
    static const struct {
        int cpu;
        struct asym_slow_speed speed;
        uint64_t khz;
    } rows[] = {
        {0, {.share = 0.5}, 1400000},  {0, {.share = 0.55}, 1400000},  {0, {.share = 0.7}, 2100000},
        {0, {.share = 0.01}, 1000000}, {0, {.khz = 9000000}, 2800000}, {0, {.khz = 2000000}, 2100000},
        {1, {.share = 0.55}, 1540000}, {1, {.khz = 100}, 1000000},     {1, {.khz = 1234567}, 1234567},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_cap_state now = state_of(rows[i].cpu), to;
        assert_int_equal(asym_cap_cpufreq.choose(NULL, rows[i].cpu, &rows[i].speed, &now, &to), 0);
        assert_true(to.low == rows[i].khz && to.high == rows[i].khz);
    }
}

TEST_WITH(both_limits_are_written_and_the_governor_is_not, reset, NULL)
{
    const struct asym_cap_state before = state_of(0);
    struct asym_cap_state held = before;
    held.low = held.high = 1400000;
    assert_int_equal(asym_cap_cpufreq.write(NULL, 0, &before, &held), 0);
    assert_true(value_of(0, "scaling_min_freq") == 1400000 && value_of(0, "scaling_max_freq") == 1400000);
    assert_true(asym_cap_cpufreq.share(NULL, 0, &held) > 0.499 && asym_cap_cpufreq.share(NULL, 0, &held) < 0.501);
    assert_int_equal(asym_cap_cpufreq.write(NULL, 0, &held, &before), 0);
    assert_true(value_of(0, "scaling_min_freq") == 1000000 && value_of(0, "scaling_max_freq") == 2800000);
    assert_string_equal(text_of(0, "scaling_governor"), "schedutil\n");
    assert_int_equal(value_of(1, "scaling_max_freq"), 2800000);
}

TEST_WITH(a_cpu_without_cpufreq_is_distinguished, reset, NULL)
{
    char why[160];
    struct asym_cap_state s;
    const struct asym_slow_speed half = {.share = 0.5};
    assert_int_equal(asym_cap_cpufreq.probe(NULL, 0, why, sizeof why), 0);
    errno = ERANGE; /* which libcpupower takes for its own error */
    assert_int_equal(asym_cap_cpufreq.probe(NULL, 1, why, sizeof why), 0);
    assert_int_equal(asym_cap_cpufreq.probe(NULL, 2, why, sizeof why), -ENODEV);
    assert_non_null(strstr(why, "no cpufreq driver"));
    assert_int_equal(asym_cap_cpufreq.read(NULL, 2, &s), -ENODEV);
    assert_int_equal(asym_cap_cpufreq.choose(NULL, 2, &half, &s, &s), -ENODEV);
    write_value(1, "cpuinfo_min_freq", "2800000");
    assert_int_equal(asym_cap_cpufreq.probe(NULL, 1, why, sizeof why), -EOPNOTSUPP);
    assert_non_null(strstr(why, "one frequency only"));
}

TEST_WITH(a_refused_write_says_the_kernels_reason, reset, NULL)
{
    const struct asym_cap_state before = state_of(0);
    struct asym_cap_state held = before;
    held.low = held.high = 1400000;
    assert_int_equal(mount(NULL, SYS, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL), 0);
    int r = asym_cap_cpufreq.write(NULL, 0, &before, &held);
    assert_int_equal(mount(NULL, SYS, NULL, MS_BIND | MS_REMOUNT, NULL), 0);
    assert_int_equal(r, -EROFS);
    assert_int_equal(value_of(0, "scaling_max_freq"), 2800000);
}

static bool yes(void)
{
    return true;
}

static bool no(void)
{
    return false;
}

static struct asym_cap_method method_of(const struct asym_clockmod *registers)
{
    struct asym_cap_method method = asym_cap_clockmod;
    method.ctx = registers;
    return method;
}

TEST(the_clock_is_modulated_in_steps_and_other_bits_stay)
{
    static const struct {
        double share, obtained;
        uint64_t value;
    } rows[] = {{0.5, 0.5, 0x18},   {0.25, 0.25, 0x14}, {0.01, 0.125, 0x12},
                {0.4, 0.375, 0x16}, {0.99, 1, 0},       {0.875, 0.875, 0x1e}};
    ASYM_CLEANUP(tree_remove) struct tree msr;
    tree_make(&msr);
    const struct asym_clockmod registers = {.dir = msr.path, .has_modulation = yes};
    const struct asym_cap_method m = method_of(&registers);
    const uint64_t reserved = UINT64_C(0xabc00000000);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_cap_state before, to, now;
        const struct asym_slow_speed speed = {.share = rows[i].share};
        unsigned char bytes[ASYM_MSR_CLOCK_MODULATION + sizeof reserved] = {0};
        memcpy(bytes + ASYM_MSR_CLOCK_MODULATION, &reserved, sizeof reserved);
        tree_write_bytes(&msr, "3/msr", bytes, sizeof bytes);
        assert_int_equal(m.read(m.ctx, 3, &before), 0);
        assert_int_equal(m.choose(m.ctx, 3, &speed, &before, &to), 0);
        assert_int_equal(m.write(m.ctx, 3, &before, &to), 0);
        assert_int_equal(m.read(m.ctx, 3, &now), 0);
        assert_true(now.high == (reserved | rows[i].value));
        assert_true(m.share(m.ctx, 3, &now) > rows[i].obtained - 1e-9 &&
                    m.share(m.ctx, 3, &now) < rows[i].obtained + 1e-9);
        assert_int_equal(m.write(m.ctx, 3, &now, &before), 0);
        assert_int_equal(m.read(m.ctx, 3, &now), 0);
        assert_true(now.high == reserved);
    }
}

TEST(where_the_clock_cannot_be_modulated_the_reason_is_reported)
{
    char why[160];
    ASYM_CLEANUP(tree_remove) struct tree msr;
    tree_make(&msr);
    const struct asym_clockmod lacking = {.dir = msr.path, .has_modulation = no},
                               there = {.dir = msr.path, .has_modulation = yes};
    struct asym_cap_method m = method_of(&lacking);
    const struct asym_slow_speed khz = {.khz = 1};
    struct asym_cap_state s = {.high = 0};
    assert_int_equal(m.probe(m.ctx, 3, why, sizeof why), -EOPNOTSUPP);
    assert_non_null(strstr(why, "no clock modulation"));
    m = method_of(&there);
    assert_int_equal(m.probe(m.ctx, 3, why, sizeof why), -ENODEV);
    assert_non_null(strstr(why, "modprobe msr"));
    tree_write(&msr, "3/msr", "short");
    assert_int_equal(m.probe(m.ctx, 3, why, sizeof why), -EIO);
    assert_int_equal(m.choose(m.ctx, 3, &khz, &s, &s), -EINVAL);
}

TEST_MAIN_WITH(mount_tree, unmount_tree)
