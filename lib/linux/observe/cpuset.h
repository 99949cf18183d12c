/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The table of cgroups by path, with the effective CPUs of their cpusets. A cpuset is read at most once a second.
 *
 * Every mask in a snapshot, a thread's affinity or its cpuset, is cut to the possible CPUs. The kernel prints more bits than it
 * has CPUs for a thread that may run anywhere. The effective CPUs of a cpuset lack the offline CPUs, while an affinity may have
 * them. So a thread has not narrowed its affinity if and only if its mask contains its cpuset.
 */
#ifndef ASYM_LINUX_OBSERVE_CPUSET_H
#define ASYM_LINUX_OBSERVE_CPUSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

#include "base/hash.h"
#include "base/mask-table.h"
#include "linux/sys/cgroup-mounts.h"
#include "linux/sys/root.h"

/** The counts of one sample for an application of several processes: a job or a cgroup. */
struct asym_members {
    uint32_t n_procs, n_threads; /* known ones, listed or not */
    uint32_t app;                /* its application in the snapshot with number sample */
    uint64_t sample;
    double busiest; /* the highest runnable count of its processes */
};

struct asym_job {
    int32_t pgrp;
    uint64_t start;           /* of its leader, also when that has ended since; 0: asymd has not seen it */
    char comm[ASYM_COMM_LEN]; /* of its leader; of its oldest process if asymd has not seen the leader */
    uint64_t oldest;          /* start of that process */
    struct asym_members members;
};

/** All zero: empty. */
struct asym_jobs {
    struct asym_job *jobs;
    uint32_t n;
    size_t capacity;
    struct asym_hash by_pgrp;
};

void asym_jobs_done(struct asym_jobs *j);

/** Returns the number of the job with that process group, >= 1, adding it if need be; 0 when memory runs out. */
uint32_t asym_jobs_find(struct asym_jobs *j, int32_t pgrp);

/** Begin a sample: drop the jobs in which the last one has counted no process, and set all counts to 0. Numbers become invalid. */
void asym_jobs_begin(struct asym_jobs *j);

/** The hierarchy to which a cgroup's path belongs: v2, the cpuset controller of v1, or name=systemd of v1. */
enum asym_hierarchy { ASYM_HIERARCHY_UNIFIED, ASYM_HIERARCHY_CPUSET, ASYM_HIERARCHY_NAMED };

struct asym_cgroup {
    char *path; /* owned; begins with '/' */
    uint64_t hash;
    enum asym_hierarchy hierarchy;
    const struct asym_mask *cpus; /* from the mask table; NULL: to be read */
    asym_usec read_at;
    bool is_unit; /* a service, a container or the scope of one program: not the root, a slice, or a login session */
    struct asym_members members; /* for the caller */
};

/** The table is empty when all but root, mounts, possible and isolated is zero. */
struct asym_cgroups {
    const struct asym_root *root; /* borrowed */
    struct asym_cgroup_mounts mounts;
    struct asym_mask possible, isolated;
    struct asym_cgroup *groups;
    uint32_t n;
    size_t capacity;
};

/** Read the mounts of cgroups, the possible CPUs (fallback where sysfs does not have them) and the CPUs isolated at boot. */
void asym_cgroups_init(struct asym_cgroups *c, const struct asym_root *root, const struct asym_mask *fallback);
void asym_cgroups_done(struct asym_cgroups *c);

/** Remove all cgroups. Numbers returned before become invalid. */
void asym_cgroups_clear(struct asym_cgroups *c);

/**
 * Returns the number of the cgroup with that path, >= 1, adding it if need be; 0 when memory runs out. The root is "/" or
 * empty.
 */
uint32_t asym_cgroups_find(struct asym_cgroups *c, enum asym_hierarchy hierarchy, const char *path, size_t len);

/** Every cpuset that was read before now is read again at its next use. */
void asym_cgroups_expire(struct asym_cgroups *c, asym_usec now);

/**
 * Returns the effective CPUs of cgroup number id, cut to the possible CPUs. A cgroup without a cpuset has those of its nearest
 * ancestor with one. id 0 (unknown) has all possible CPUs. The mask is in pool; NULL when memory runs out.
 */
const struct asym_mask *asym_cgroups_cpus(struct asym_cgroups *c, uint32_t id, asym_usec now,
                                          struct asym_mask_table *pool);

/**
 * Returns the cpuset of a thread: that of its cgroup, without those CPUs isolated at boot (isolcpus=) that its mask lacks. The
 * kernel keeps every thread off isolated CPUs unless the program asks for them, so that their absence from the mask does not
 * mean that the program has chosen it. The mask is in pool; NULL when memory runs out.
 */
const struct asym_mask *asym_cgroups_for(const struct asym_cgroups *c, const struct asym_mask *cpus,
                                         const struct asym_mask *mask, struct asym_mask_table *pool);

#endif
