/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * What control groups let their processes have: the effective CPUs of a cgroup's cpuset, by path, read anew at most once a
 * second.
 *
 * Canonical form of every mask a snapshot shows, a thread's own and its cpuset: cut to the possible CPUs. A kernel prints
 * more bits than it has CPUs for a thread that may run anywhere, and a cpuset leaves offline CPUs out where the mask
 * does not; so a thread has not narrowed itself exactly when its mask contains its cpuset.
 */
#ifndef ASYM_LINUX_CPUSET_H
#define ASYM_LINUX_CPUSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

#include "linux/masks.h"
#include "linux/root.h"

/** Which hierarchy a cgroup's path is of. */
enum asym_hierarchy { ASYM_HIERARCHY_UNIFIED, ASYM_HIERARCHY_CPUSET, ASYM_HIERARCHY_NAMED };

struct asym_cgroup {
    char *path; /* owned; begins with '/' */
    uint64_t hash;
    enum asym_hierarchy hierarchy;
    const struct asym_mask *cpus; /* interned; NULL: not read yet */
    asym_usec read_at;
    uint32_t n_threads; /* for the caller: threads of its processes */
    uint32_t app;       /* for the caller: its application in the snapshot numbered turn */
    uint64_t turn;
    double busiest; /* for the caller: the highest runnable count of its processes */
};

/** All zero but for root and possible: empty. */
struct asym_cgroups {
    const struct asym_root *root; /* borrowed */
    struct asym_mask possible, isolated;
    struct asym_cgroup *groups;
    uint32_t n;
    size_t capacity;
};

/** Read the possible CPUs (where sysfs does not say: fallback) and those isolated at boot. */
void asym_cgroups_init(struct asym_cgroups *c, const struct asym_root *root, const struct asym_mask *fallback);
void asym_cgroups_done(struct asym_cgroups *c);

/** Forget all cgroups; numbers given out before mean nothing then. */
void asym_cgroups_clear(struct asym_cgroups *c);

/** Number of the cgroup with that path, >= 1; 0 when there is no memory. The root is "/" (or empty). */
uint32_t asym_cgroups_find(struct asym_cgroups *c, enum asym_hierarchy hierarchy, const char *path, size_t len);

/** Have every cpuset that was read before now read anew when it is asked for next. */
void asym_cgroups_expire(struct asym_cgroups *c, asym_usec now);

/**
 * The effective CPUs of cgroup number id (0: unknown, all possible ones), cut to the possible CPUs; of the nearest
 * ancestor that says so where it has no cpuset of its own. Interned in pool; NULL when there is no memory.
 */
const struct asym_mask *asym_cgroups_cpus(struct asym_cgroups *c, uint32_t id, asym_usec now,
                                          struct asym_mask_pool *pool);

/**
 * The cpuset of a thread: that of its cgroup without the CPUs isolated at boot (isolcpus=) that its mask leaves out. The
 * scheduler keeps every thread off those that does not ask for them, so leaving them out is nobody's choice.
 * Interned; NULL when there is no memory.
 */
const struct asym_mask *asym_cgroups_for(const struct asym_cgroups *c, const struct asym_mask *cpus,
                                         const struct asym_mask *mask, struct asym_mask_pool *pool);

#endif
