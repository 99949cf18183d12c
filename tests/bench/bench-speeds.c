/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cost of reading a machine with 256 CPUs, of holding half of them to half their speed through libcpupower, and of
 * restoring them: on a tree of files mounted over /sys/devices/system/cpu in a mount namespace. It prints a table and asserts
 * nothing.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

#include "base/mask.h"
#include "linux/speed-cap/asymmetry.h"
#include "linux/topology/topology.h"
#include "support/test.h"
#include "support/tree.h"
#include "times.h"

#define CPUS   256
#define ROUNDS 11

static void print_row(const char *what, double *ms)
{
    qsort(ms, ROUNDS, sizeof *ms, by_value);
    printf("%-44s %8.1f %8.1f\n", what, ms[ROUNDS / 2], ms[ROUNDS - 1]);
}

static void make_tree(struct tree *t)
{
    tree_make(t);
    tree_plain(t, CPUS);
    for (unsigned c = 0; c < CPUS; c++) {
        tree_write_cpu(t, c, "cpufreq/cpuinfo_min_freq", "1000000\n");
        tree_write_cpu(t, c, "cpufreq/cpuinfo_max_freq", "2800000\n");
        tree_write_cpu(t, c, "cpufreq/scaling_min_freq", "1000000\n");
        tree_write_cpu(t, c, "cpufreq/scaling_max_freq", "2800000\n");
        tree_write_cpu(t, c, "cpufreq/scaling_governor", "schedutil\n");
        tree_write_cpu(t, c, "cpufreq/related_cpus", "%u\n", c);
    }
}

static void measure(const struct tree *t, struct asym_machine *m)
{
    static const struct asym_cap_method *const methods[] = {&asym_cap_cpufreq, NULL};
    const struct asym_slow_speeds half = {.rest = {.share = 0.5}};
    double read[ROUNDS], set[ROUNDS], undo[ROUNDS];
    struct asym_asymmetry *a;
    struct asym_speed_restore_report report;
    struct asym_error err = {""};
    struct asym_root root;
    struct asym_mask slow;
    if (asym_root_open(t->path, &root, &err) < 0 || asym_asymmetry_open(t->path, methods, &a, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < ROUNDS; i++) {
        double start = read_ns(CLOCK_THREAD_CPUTIME_ID);
        int r = asym_topology_read(&root, NULL, m, NULL, &err);
        read[i] = (read_ns(CLOCK_THREAD_CPUTIME_ID) - start) / 1e6;
        if (r >= 0)
            r = asym_machine_choose_slow(m, CPUS / 2, &slow);
        start = read_ns(CLOCK_THREAD_CPUTIME_ID);
        if (r >= 0)
            r = asym_asymmetry_set(a, &asym_cap_cpufreq, m, &slow, &half, &err);
        set[i] = (read_ns(CLOCK_THREAD_CPUTIME_ID) - start) / 1e6;
        if (r < 0)
            fail_msg("%s", err.text);
        start = read_ns(CLOCK_THREAD_CPUTIME_ID);
        asym_asymmetry_restore(a, &report);
        undo[i] = (read_ns(CLOCK_THREAD_CPUTIME_ID) - start) / 1e6;
        assert_true(report.restored == CPUS / 2 && report.failed == 0);
    }
    asym_asymmetry_close(a);
    asym_root_done(&root);
    print_row("read the machine", read);
    print_row("hold 128 CPUs to half their speed", set);
    print_row("put that back", undo);
}

int main(void)
{
    struct tree t;
    struct asym_machine *m = calloc(1, sizeof *m);
    char cpu[128];
    make_tree(&t);
    snprintf(cpu, sizeof cpu, "%s/sys/devices/system/cpu", t.path);
    if (!m || unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount(cpu, "/sys/devices/system/cpu", NULL, MS_BIND, NULL) < 0) {
        fprintf(stderr, "bench-speeds: needs root for a mount namespace: %s\n", strerror(errno));
        tree_remove(&t);
        return 1;
    }
    printf("CPU ms on a tree of %d CPUs, median and maximum of %d\n", CPUS, ROUNDS);
    printf("%-44s %8s %8s\n", "", "median", "max");
    measure(&t, m);
    umount2("/sys/devices/system/cpu", MNT_DETACH);
    tree_remove(&t);
    free(m);
    return 0;
}
