/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The side of the helper (linux/sys/helper-process.h): for the main function of its program, and for its roles. */
#ifndef ASYM_LINUX_SYS_HELPER_CHILD_H
#define ASYM_LINUX_SYS_HELPER_CHILD_H

#include <stddef.h>
#include <sys/types.h>

#include "linux/sys/helper-process.h"

/** The rights of a role. asym_helper_main() drops all others before run(). */
enum {
    ASYM_HELPER_MAY_READ_FILES = 1 << 0, /**< open files for reading; no role may write to files */
    /**
     * Keep CAP_SYS_PTRACE, to read /proc of other processes. Landlock forbids that, so that only RLIMIT_FSIZE 0 keeps the
     * helper from writing.
     */
    ASYM_HELPER_MAY_PTRACE = 1 << 1,
};

struct asym_helper_role {
    const char *name;
    unsigned may;
    /** Do the work of the role. orders and reports: the helper's ends of the channels, blocking. Returns the exit status. */
    int (*run)(int orders, int reports);
};

/**
 * Confine the process for the role named in argv[1], and run the role. The steps, in this order:
 * - The process dies with its parent, is not dumpable, and gets no new privileges.
 * - It changes to the user and group "nobody" (65534) if it may.
 * - It drops every capability but that of the role.
 * - Where the kernel has Landlock, it forbids writing to files; unless the role may read files, it forbids opening them, too.
 *   A role that reads /proc of other processes gets RLIMIT_FSIZE 0 instead.
 *
 * Returns the exit status: that of run(); 2: asym_helper_start() did not start this process, or the role does not exist; 1: the
 * process cannot be confined.
 */
int asym_helper_main(const struct asym_helper_role *roles, size_t n_roles, int argc, char *const argv[]);

/**
 * Wait for the next order; for a role's run(). ret_fds gets at most ASYM_HELPER_MAX_FDS descriptors, *ret_n their number.
 * Returns the length of the order; 0: asymd has ended; -errno.
 */
ssize_t asym_helper_next_order(int orders, void *buf, size_t size, int *ret_fds, size_t *ret_n);

/** Send one whole report. 0; -EAGAIN: the channel is full, and the role has made it non-blocking; -errno: asymd has ended. */
int asym_helper_say(int reports, const void *report, size_t size);

#endif
