/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The directory under which /proc and /sys are: "/" on the live machine, or a captured one's (--root). */
#ifndef ASYM_LINUX_ROOT_H
#define ASYM_LINUX_ROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <asym/error.h>

struct asym_root {
    int fd;     /* O_PATH | O_DIRECTORY; owned */
    bool live;  /* the machine we run on: system calls on its threads make sense */
    char *path; /* owned */
};

/** path NULL or "/": the live machine. 0; -errno with err ("DIR: not a machine: no proc or sys directory in it"). */
int asym_root_open(const char *path, struct asym_root *ret_root, struct asym_error *err);
void asym_root_done(struct asym_root *root);

/**
 * Open what path, relative to the root, names: as openat(2) with flags, to which O_CLOEXEC and O_NOCTTY are added. In a
 * captured root symbolic links, absolute ones too, are taken as that machine would take them, and never lead out of
 * it. Returns a descriptor; -errno.
 */
int asym_root_openat(const struct asym_root *root, const char *path, int flags);

/**
 * Read a file given relative to the root ("sys/devices/system/cpu/online"), at most size - 1 bytes, and end it in NUL.
 * Symbolic links that would lead out of a captured root are not followed. Returns the length; -errno
 * (-EINVAL for what is no regular file in a captured root). buf is written on failure too where reading began.
 */
ssize_t asym_root_read(const struct asym_root *root, const char *path, char *buf, size_t size);

#endif
