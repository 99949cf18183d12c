/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The directory that has proc and sys: "/" on the live machine, or that of a captured machine (--root). */
#ifndef ASYM_LINUX_SYS_ROOT_H
#define ASYM_LINUX_SYS_ROOT_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <asym/types.h>

struct asym_root {
    int fd;                             /* O_PATH | O_DIRECTORY; owned */
    bool live;                          /* this is the machine that asymd runs on: system calls reach its threads */
    char *path;                         /* owned */
    struct asym_cgroup_mounts *cgroups; /* owned; of asym_cgroup_mounts_keep, else NULL */
};

/** Open a root. path NULL or "/": the live machine. 0; -ENOTDIR: the directory has neither proc nor sys; -errno. err is set. */
int asym_root_open(const char *path, struct asym_root *ret_root, struct asym_error *err);
void asym_root_done(struct asym_root *root);

/**
 * Open a path relative to the root, like openat(2) with flags, O_CLOEXEC and O_NOCTTY. In a captured root, symbolic links,
 * also absolute ones, are resolved as on that machine, and never lead out of the root. Returns a descriptor; -errno.
 */
int asym_root_openat(const struct asym_root *root, const char *path, int flags);

struct open_how;

/** openat2(2), at most that often while renames or mounts elsewhere make it fail with EAGAIN. Returns a descriptor; -errno. */
int asym_openat2(int dir, const char *path, const struct open_how *how, unsigned tries);

/**
 * Read a file, at most size - 1 bytes, and end it in NUL. path is relative to the root ("sys/devices/system/cpu/online").
 * Symbolic links are resolved as above. Returns the length; -errno (-EINVAL: the file is not a regular file of a captured
 * root, or size is 0). When reading has begun, buf is written even on failure.
 */
ssize_t asym_root_read(const struct asym_root *root, const char *path, char *buf, size_t size);

/**
 * Open a directory below the root for readdir(3), which may wait for the lock of the directory. The caller closes it.
 * Returns 0; -errno.
 */
int asym_root_opendir(const struct asym_root *root, const char *path, DIR **ret);

/**
 * Reads a file that is a list of CPUs, such as "0-3,8"; it may be empty. Returns 0; -EINVAL: it is none; -ERANGE: it has a CPU of
 * number ASYM_MAX_CPUS or above; -errno.
 */
int asym_root_read_list(const struct asym_root *root, const char *path, struct asym_mask *ret);

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
