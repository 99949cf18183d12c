/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Shared by the files of the topology reader. Only topology*.c include this. */
#ifndef ASYM_LINUX_TOPOLOGY_INTERNAL_H
#define ASYM_LINUX_TOPOLOGY_INTERNAL_H

#include "linux/topology/topology.h"

/** Frequencies that differ by less than this ratio count as equal: turbo bins differ so. hwloc has the same limit. */
#define ASYM_TURBO_SPREAD 1.10

/** The step in speed between two kinds if only their order is known: about a P core's advantage over an E core. */
#define ASYM_RANK_STEP 0.5

/** The figures of a source of speeds, one per CPU. */
struct asym_figures {
    const char *name;            /* "cpuinfo_max_freq"; static */
    const char *unit;            /* "": a measure of work; else a frequency's, such as "kHz"; static */
    const char *tail;            /* appended to the note; static */
    double value[ASYM_MAX_CPUS]; /* above 0, in any unit; 0: the source has no figure */
    struct asym_mask filled;     /* CPUs that have the figure of their like, since their own is missing */
};

/**
 * Loads the topology with hwloc. Fills n_cpus, online, usable (the allowed CPUs of hwloc) and, for each online CPU, kind, core,
 * llc and node; ret_kinds gets the speeds by CPU kind. Parameters and errors are those of asym_topology_read. It changes the
 * environment, and hwloc crashes on some damaged files, and where it gets no memory: topology.c calls it in a child process.
 */
int asym_topology_load(const struct asym_root *root, const char *xml, struct asym_machine *m,
                       struct asym_figures *ret_kinds, struct asym_error *err);

/** Sets each online CPU's kind from the core design in its MIDR. Changes no kind when the design of a CPU stays unknown. */
void asym_topology_midr(const struct asym_root *root, struct asym_machine *m);

/** Returns the work of an Arm design per clock cycle (topology-designs.def has the unit); 0: not known. */
double asym_topology_work(const char *design);

/** Reads the CPUs of the cpufreq policy of cpu. Returns false if the file has no list with cpu in it. */
bool asym_topology_related(const struct asym_root *root, int cpu, struct asym_mask *ret);

/** Returns whether f has a lower figure for a kind that is known to be faster. */
bool asym_topology_contradicts(const struct asym_figures *f, const struct asym_machine *m,
                               const struct asym_mask *cpus);

/** Sets figures from the order of the kinds alone. Returns false, and no figures, if a CPU's kind has no known order. */
bool asym_topology_rank(const struct asym_machine *m, const struct asym_mask *cpus, struct asym_figures *ret);

/** Chooses the source of speeds of the usable CPUs; sets speed, origin, favour and freq_domain. root NULL: only kinds. */
void asym_topology_speeds(const struct asym_root *root, const struct asym_figures *kinds, struct asym_machine *m,
                          struct asym_topology_notes *notes);

#endif
