/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The users of a process. */
#ifndef ASYM_LINUX_OBSERVE_PROC_OWNER_H
#define ASYM_LINUX_OBSERVE_PROC_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <asym/types.h>

#include "linux/sys/root.h"

/** Find the effective UID of a process. On a live machine this costs 1 us. 0; -EINVAL: status has no such line; -errno. */
int asym_proc_owner(const struct asym_root *root, int32_t pid, uint32_t *ret);

/**
 * Find the effective UID of the process of a thread: of this thread, not of a later one with its number. 15 us.
 * -ESRCH: the kernel has given the number to another thread, or the thread has no number (it stands for a cgroup);
 * otherwise as above, -ENOENT where it has ended.
 */
int asym_proc_owner_of(const struct asym_root *root, const struct asym_taskid *thread, uint32_t *ret);

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
 * As asym_proc_owner_of, for a process (tid = tgid), and 1.5 us from the second call for it on: the kernel gives the directory of
 * each process in /proc another inode, and keeps it while the process exists, but for a lack of memory. So the same inode is the
 * same process, whose start time needs no second look. The UID itself is always read. owners: NULL: remembers nothing.
 */
int asym_proc_owner_known(struct asym_proc_owners *owners, const struct asym_root *root,
                          const struct asym_taskid *process, uint32_t *ret);

#endif
