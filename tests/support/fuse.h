/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A file system with one file that never answers one kind of request, for an attacker. It needs FUSE and user namespaces. */
#ifndef ASYM_TESTS_SUPPORT_FUSE_H
#define ASYM_TESTS_SUPPORT_FUSE_H

#include <stdint.h>
#include <sys/types.h>

/** Call this before you fork the attacker. It makes a mount point in dir, which every user can reach, and as root a device. */
void asym_fuse_prepare(const char *dir);

/**
 * Call this in the attacker. It enters a user namespace and mounts the file system on dir/mount; the file is dir/mount/file.
 * Returns the device. If a call fails, it prints the call and ends the process.
 */
int asym_fuse_mount(const char *dir);

/**
 * Call this in a child of the attacker. It answers all requests except those with that opcode (FUSE_READ, ...), and never
 * returns. It ends with the process test, because an attacker that waits for an answer cannot end before this child.
 */
void asym_fuse_serve(int device, uint32_t unanswered, pid_t test) __attribute__((noreturn));

#endif
