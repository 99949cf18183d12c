/* SPDX-License-Identifier: GPL-2.0-or-later */
/** From hwloc, cpu_capacity and cpufreq to struct asym_machine. */
#ifndef ASYM_LINUX_TOPOLOGY_H
#define ASYM_LINUX_TOPOLOGY_H

#include <stddef.h>

#include <asym/error.h>
#include <asym/machine.h>

#include "linux/root.h"

/** What a source of speeds said, for --check and the dry run. */
struct asym_speed_note {
    enum asym_origin origin;
    bool there; /* it has figures, for some CPUs at least */
    bool used;
    char text[160]; /* "cpuinfo_max_freq: 2800000 kHz on 4-7, 1400000 on 0-3" or why it was dropped */
};

struct asym_topology_notes {
    size_t n;
    struct asym_speed_note note[ASYM_N_ORIGINS];
    const char *favour; /* the file that says which cores of a type are favoured; NULL: none does. Static */
    bool unordered;     /* CPUs are of several kinds, and no source says which are faster: all are taken for equal */
    bool hidden;        /* the whole machine has fast and slow CPUs, but those that may be used are alike */
};

/**
 * Read the machine: CPUs, SMT, LLC, NUMA from hwloc (HWLOC_FSROOT = the root's path, or xml, a file of hwloc XML version
 * 2); kinds from hwloc, the PMUs (cpu_core, cpu_atom, cpu_lowpower) and, on Arm, the MIDRs; core types from kinds (machine.h
 * has the rules); speeds from the first source that tells cores apart without contradicting itself or the kinds:
 * cpu_capacity, CPPC's highest_perf, cpuinfo_max_freq, base_frequency, what the kinds
 * know; never from scaling_*, which asymd itself may change. (policies.md has CPPC and cpufreq as one; kinds know little
 * more than an order, whereas speeds are ratios: Roehrich 2007, S = (n; b).) usable: online and in
 * the effective cpuset that the root of the visible cgroup tree shows; where it shows none, online.
 * favour is amd_pstate_prefcore_ranking, else
 * CPPC's highest_perf, else cpuinfo_max_freq: the first that tells CPUs of one type apart. generation is 1 + the one that was in *ret_machine.
 *
 * Returns 0; -EINVAL (XML that is not hwloc's, or of another version: err says what to do), -E2BIG (more than
 * ASYM_MAX_CPUS), -ENODEV (a root without CPUs), -errno. notes may be NULL.
 */
int asym_topology_read(const struct asym_root *root, const char *xml, struct asym_machine *ret_machine,
                       struct asym_topology_notes *notes, struct asym_error *err);

/**
 * The CPUs that are online, and those of them that may be used, without the rest of the machine: cheap enough (20 us) to
 * be asked every second whether anything has changed. Returns 0; -errno.
 */
int asym_topology_cpus(const struct asym_root *root, struct asym_mask *ret_online, struct asym_mask *ret_usable);

#endif
