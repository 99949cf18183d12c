/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Reads the machine from hwloc, cpu_capacity, CPPC and cpufreq into struct asym_machine. */
#ifndef ASYM_LINUX_TOPOLOGY_TOPOLOGY_H
#define ASYM_LINUX_TOPOLOGY_TOPOLOGY_H

#include <stddef.h>

#include <asym/types.h>
#include <asym/machine.h>

#include "linux/sys/root.h"

/** The finding about one source of speeds, for --check and the dry run. */
struct asym_speed_note {
    enum asym_origin origin;
    bool there; /* it has figures for at least one CPU */
    bool used;
    char text[240]; /* "cpuinfo_max_freq: 2800000 kHz on 4-7, 1400000 on 0-3" or why it is not used */
};

struct asym_topology_notes {
    size_t n;
    struct asym_speed_note note[ASYM_N_ORIGINS];
    const char *favour;        /* static; the file that ranks the favoured cores of a type; NULL: none */
    bool unordered;            /* CPUs are of several kinds, and no source orders them: all count as equal */
    struct asym_mask unplaced; /* online CPUs of which sysfs shows no topology: each counts as a core of its own */
    bool unknown;              /* no source has a figure of any CPU, and asymd knows of one kind only */
    bool hidden;               /* the machine has fast and slow CPUs, but the usable CPUs are alike */
};

/**
 * Reads the machine:
 * - CPUs, SMT, LLC and NUMA come from hwloc (HWLOC_FSROOT = the root's path, or xml, a file of hwloc XML of version 1 or 2).
 * - Kinds come from hwloc, the PMUs (cpu_core, cpu_atom, cpu_lowpower) and, on Arm, the MIDRs. Core types follow from kinds;
 *   machine.h has the rules.
 * - Speeds come from the first source (<asym/speed-sources.def>) that distinguishes cores and contradicts neither itself nor the
 *   kinds. Clocks of Arm designs are weighed by their work in a cycle (topology-designs.def). A CPU whose figure is missing counts
 *   as those that it resembles, if these agree.
 * - usable is the online CPUs in the effective cpuset of the root of the visible cgroup tree; without such a cpuset, online.
 * - isolated is sys/devices/system/cpu/isolated (isolcpus=) and nohz_full there, unless nohz_full leaves at most one usable CPU.
 * - favour is amd_pstate_prefcore_ranking, else CPPC's highest_perf, else cpuinfo_max_freq: the first that distinguishes CPUs
 *   of one type. A clock does so only for CPUs of one design.
 * - generation is 1 + the generation in *ret_machine.
 *
 * notes may be NULL. Returns 0; -EINVAL: the XML is not hwloc's or has another version, and err has the remedy; -E2BIG: more
 * than ASYM_MAX_CPUS CPUs; -ENODEV: root has no CPUs; -errno.
 */
int asym_topology_read(const struct asym_root *root, const char *xml, struct asym_machine *ret_machine,
                       struct asym_topology_notes *notes, struct asym_error *err);

/**
 * Reads only the online CPUs and the usable ones of them. This takes 20 us, cheap enough to detect changes every second.
 * Returns 0; -errno.
 */
int asym_topology_cpus(const struct asym_root *root, struct asym_mask *ret_online, struct asym_mask *ret_usable);

/** Reads the figures of cpus: the file at path under sys/devices/system/cpu/cpuN of each; 0: it has no integer. */
void asym_topology_figures(const struct asym_root *root, const char *path, const struct asym_mask *cpus,
                           double ret[ASYM_MAX_CPUS]);

/**
 * Returns whether root shows a virtual machine, whose CPU kinds and speeds come from the hypervisor: by the CPU flag, Xen's
 * directory, the device tree, or the names in DMI.
 */
bool asym_is_virtual(const struct asym_root *root);

#endif
