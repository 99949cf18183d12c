/* SPDX-License-Identifier: GPL-2.0-or-later */
/** What the parts of the topology reader share; for topology*.c alone. */
#ifndef ASYM_LINUX_TOPOLOGY_INTERNAL_H
#define ASYM_LINUX_TOPOLOGY_INTERNAL_H

#include "linux/topology.h"

/** hwloc takes a difference in frequency of less than this for one of turbo bins, and so do we. */
#define ASYM_TURBO_SPREAD 1.10

/** Between two kinds of which only the order is known: about what a P core has over an E core. */
#define ASYM_RANK_STEP 0.5

/** A figure per CPU, as a source of speeds gave it. */
struct asym_figures {
    const char *name;            /* "cpuinfo_max_freq"; static */
    const char *unit;            /* "kHz" or ""; static */
    const char *tail;            /* what else to say of it; static */
    double value[ASYM_MAX_CPUS]; /* any positive unit; 0: the source says nothing of this CPU */
};

/**
 * Load with hwloc and fill n_cpus, online, usable (as hwloc has it) and, for each CPU online, kind, core, llc and node;
 * ret_kinds is what the CPU kinds say of speed. Parameters, errors: asym_topology_read.
 */
int asym_topology_load(const struct asym_root *root, const char *xml, struct asym_machine *m,
                       struct asym_figures *ret_kinds, struct asym_error *err);

/**
 * Read a file of hwloc XML of version 1 or 2 and end it in NUL; owned by the caller. Returns 0; -EINVAL, -errno, with
 * what to do about it in err.
 */
int asym_topology_read_xml(const char *path, char **ret_text, size_t *ret_len, struct asym_error *err);

/**
 * Load the file once in a child process, and wait for its end: hwloc crashes on some damaged files.
 * 0: the file can be loaded, or is refused with an error; -EINVAL: hwloc crashes, or does not come to an end; -errno.
 */
int asym_topology_try_xml(const char *path, struct asym_error *err);

/** Take the design that each online CPU's MIDR names for its kind; where some have none, all kinds stay as they are. */
void asym_topology_midr(const struct asym_root *root, struct asym_machine *m);

/** Does it have the cores of a kind that is known to be faster below those of a slower one? */
bool asym_topology_contradicts(const struct asym_figures *f, const struct asym_machine *m,
                               const struct asym_mask *cpus);

/** Figures from nothing but which kind is faster. False, and none, unless all these CPUs are of kinds known for that. */
bool asym_topology_rank(const struct asym_machine *m, const struct asym_mask *cpus, struct asym_figures *ret);

/** Choose the source of speed for the usable CPUs and set speed, origin and freq_domain. root NULL: kinds alone. */
void asym_topology_speeds(const struct asym_root *root, const struct asym_figures *kinds, struct asym_machine *m,
                          struct asym_topology_notes *notes);

#endif
