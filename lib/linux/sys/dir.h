/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Directories whose names are numbers, as in /proc. Allocates nothing, as opendir(3) does. */
#ifndef ASYM_LINUX_SYS_DIR_H
#define ASYM_LINUX_SYS_DIR_H

#include <stddef.h>
#include <stdint.h>

/** The kernel's struct linux_dirent64, which getdents64 fills in. glibc has it only in readdir. */
struct asym_dir_entry {
    uint64_t inode;
    int64_t offset;
    unsigned short size;
    unsigned char type;
    char name[];
};

/** Calls fn with each name that is a number above 0. Stops when fn returns less than 0, and returns that. */
typedef int asym_dir_fn(void *arg, int32_t number);

/**
 * Reads the next entries of the directory by one call into buf, which is aligned for asym_dir_entry. Returns 1; 0 at the end
 * of the directory; -errno; what fn returns below 0.
 */
int asym_dir_read(int fd, char *buf, size_t size, asym_dir_fn *fn, void *arg);

#endif
