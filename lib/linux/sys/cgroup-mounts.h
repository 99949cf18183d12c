/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The file proc/mounts: where the hierarchies of control groups are mounted, and whether /proc hides processes. Cpusets. */
#ifndef ASYM_LINUX_SYS_CGROUP_MOUNTS_H
#define ASYM_LINUX_SYS_CGROUP_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>

#include <asym/types.h>

#include "linux/sys/root.h"

/** Version 2, or a controller of version 1. Bits of a mount. */
enum asym_cgroup_kind { ASYM_CGROUP_UNIFIED = 1 << 0, ASYM_CGROUP_CPUSET = 1 << 1, ASYM_CGROUP_CPU = 1 << 2 };

struct asym_cgroup_mount {
    unsigned kinds;
    char path[256]; /**< relative to the root, as asym_root_read takes it */
};

struct asym_cgroup_mounts {
    struct asym_cgroup_mount mount[8];
    size_t n;
    bool is_known;    /**< proc/mounts has a line of /proc */
    char hidepid[24]; /**< the value of this option of /proc; "": it hides no process */
};

/**
 * Read the mounts once, and keep them in the root for all later calls. A user can make a read of them wait for seconds, because it
 * takes the kernel's lock for all mounts: asymd reads them at its start only. Returns 0; -ENOMEM.
 */
int asym_cgroup_mounts_keep(struct asym_root *root);

/**
 * Get the mounts that the root keeps, or read them from proc/mounts. A kind that is not in there counts as mounted in the usual
 * places.
 */
void asym_cgroup_mounts_read(const struct asym_root *root, struct asym_cgroup_mounts *ret);

/** Returns the next mount of that kind at or behind position i; NULL: there is none. */
const struct asym_cgroup_mount *asym_cgroup_mounts_next(const struct asym_cgroup_mounts *mounts,
                                                        enum asym_cgroup_kind kind, size_t *i);

/**
 * Read the effective CPUs of a cgroup, or of its nearest ancestor with a cpuset that is not empty. path begins with "/", and only
 * its first len bytes count; len 0: the root. kind: UNIFIED or CPUSET. Returns 0; -ENOENT: there is none.
 */
int asym_cgroup_cpus(const struct asym_root *root, const struct asym_cgroup_mounts *mounts, enum asym_cgroup_kind kind,
                     const char *path, size_t len, struct asym_mask *ret);

/**
 * Find the cgroup of version 2 within which nice values count: the cgroup itself, or its nearest ancestor, with the controller cpu,
 * which the root of the machine never has. Returns whether there is one; it is the first ret_len bytes of the path.
 */
bool asym_cgroup_has_cpu(const struct asym_root *root, const struct asym_cgroup_mounts *mounts, const char *path,
                         size_t len, size_t *ret_len);

#endif
