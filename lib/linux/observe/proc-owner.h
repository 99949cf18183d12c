/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The users of a process. */
#ifndef ASYM_LINUX_OBSERVE_PROC_OWNER_H
#define ASYM_LINUX_OBSERVE_PROC_OWNER_H

#include <stdint.h>
#include <sys/stat.h>

#include <asym/types.h>

#include "linux/sys/root.h"

/** Find the effective UID of a process. On a live machine this costs 1 us. 0; -EINVAL: status has no such line; -errno. */
int asym_proc_owner(const struct asym_root *root, int32_t pid, uint32_t *ret);

/** A process, and the inode of its directory in /proc. */
struct asym_proc_inode {
    struct asym_taskid id;
    dev_t device;
    ino_t number;
    struct timespec made;
};

enum { ASYM_PROC_OWNERS = 1024 };

/** Processes that asym_proc_owner_known() has identified. All zero at first. */
struct asym_proc_owners {
    struct asym_proc_inode known[ASYM_PROC_OWNERS]; /**< by PID, modulo the size */
};

/**
 * Find the effective UID of this process, not of a later one with its number. tid = tgid, or a thread of it.
 * -ESRCH: the kernel has given the number to another one, or it has none (it stands for a cgroup); -ENOENT: it has ended; -errno.
 *
 * The first call for a process takes 15 us, the later ones 1.5: the kernel gives the directory of each process in /proc another
 * inode, and keeps it while the process exists, but for a lack of memory. So the same inode is the same process, whose start time
 * needs no second look. The UID itself is always read. owners: NULL: remembers nothing.
 */
int asym_proc_owner_known(struct asym_proc_owners *owners, const struct asym_root *root,
                          const struct asym_taskid *process, uint32_t *ret);

#endif
