/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Finds in the maps of a process the libraries and pages that decide how asymd treats it. */
#ifndef ASYM_LINUX_SYS_PROC_MAPS_H
#define ASYM_LINUX_SYS_PROC_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "linux/sys/root.h"

/** The findings, as bits. */
enum {
    ASYM_MAPS_PAGE = 1 << 0,   /**< a shared page of an RTX client (include/asym/rtx.h) */
    ASYM_MAPS_OPENMP = 1 << 1, /**< an OpenMP runtime */
    /**
     * A runtime that counts the CPUs of the calling thread's mask only when it first creates threads, and keeps that number:
     * LLVM's and Intel's OpenMP (14, which also sets that mask for all threads), oneTBB (2021.8). GCC's OpenMP counts them when
     * it is loaded.
     */
    ASYM_MAPS_COUNTS_LATE = 1 << 2,
};

/** Scan text, which consists of whole lines of /proc/PID/maps. Returns the bits. */
unsigned asym_maps_scan(const char *text, size_t len);

/**
 * Read the maps of a process and scan them. After `most` bytes the function stops and sets *ret_cut to true. The kernel takes
 * the mmap_lock of the process for each read, so the call may block. Returns the bits; 0: the maps cannot be read.
 */
unsigned asym_maps_read(const struct asym_root *root, pid_t pid, size_t most, bool *ret_cut);

#endif
