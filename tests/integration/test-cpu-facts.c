/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where asymd puts a serial thread on machines that it must not read wrongly, and when their ranks change. Their files are
 * plain files, mounted over /sys/devices/system/cpu in a mount namespace of the test, which its children share.
 */
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>

#include "support/live.h"
#include "support/namespace.h"
#include "support/service.h"
#include "support/tree.h"
#include "support/test.h"

#define SYS "/sys/devices/system/cpu"

static struct tree tree;
static pid_t load, asymd;

static int last_cpu(void)
{
    return asym_live_cpus() - 1;
}

/* The last CPU has another value than the others. */
static void write_each(const char *file, const char *last, const char *others)
{
    for (int c = 0; c <= last_cpu(); c++)
        tree_write_cpu(&tree, (unsigned)c, file, "%s\n", c == last_cpu() ? last : others);
}

static int set_up(void **state)
{
    char cpu[128];
    tree_make(&tree);
    tree_plain(&tree, (unsigned)asym_live_cpus());
    snprintf(cpu, sizeof cpu, "%s" SYS, tree.path);
    if (asym_namespace_enter() < 0 || asym_namespace_cover(cpu, SYS) < 0)
        return -1;
    load = asym_service_spin("1");
    return asym_service_set_up(state);
}

static int tear_down(void **state)
{
    if (load > 0)
        asym_live_end(load, SIGKILL);
    umount2(SYS, MNT_DETACH);
    tree_remove(&tree);
    return asym_service_tear_down(state);
}

static void start_asymd(const char *setting)
{
    const char *const more[] = {"--policy=serial-first", setting, NULL};
    asymd = asym_service_start_alike(load, more);
}

static int is_on(pid_t pid, int cpu)
{
    cpu_set_t set;
    return sched_getaffinity(pid, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1 && CPU_ISSET((unsigned)cpu, &set);
}

static void await_on(int cpu)
{
    if (!asym_live_await(is_on, load, cpu, 1, ASYM_LIVE_PATIENCE))
        fail_msg("the serial thread is not on CPU %d", cpu);
}

/* Preferred cores change when a game starts on an X3D. asymd gets no signal of that. */
TEST_WITH(a_serial_thread_follows_the_preferred_core, set_up, tear_down)
{
    write_each("cpufreq/amd_pstate_prefcore_ranking", "166", "100");
    tree_write_cpu(&tree, 0, "cpufreq/amd_pstate_prefcore_ranking", "236\n");
    start_asymd(NULL);
    await_on(0);
    tree_write_cpu(&tree, 0, "cpufreq/amd_pstate_prefcore_ranking", "166\n");
    tree_write_cpu(&tree, (unsigned)last_cpu(), "cpufreq/amd_pstate_prefcore_ranking", "236\n");
    await_on(last_cpu());
}

/* An Odroid N2: the clock of its A53 is above that of its A73. */
TEST_WITH(a_serial_thread_gets_the_faster_design_and_not_the_higher_clock, set_up, tear_down)
{
    write_each("regs/identification/midr_el1", "0x00000000410fd092", "0x00000000410fd034");
    write_each("cpufreq/cpuinfo_max_freq", "1800000", "1896000");
    start_asymd(NULL);
    await_on(last_cpu());
}

TEST_MAIN
