/* SPDX-License-Identifier: GPL-2.0-or-later */
/** What a process has mapped, as far as that tells how it is to be treated: libraries, and pages of runtime extensions. */
#ifndef ASYM_LINUX_MAPS_H
#define ASYM_LINUX_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "linux/root.h"

/** As bits. */
enum {
    ASYM_MAPS_PAGE = 1 << 0,   /**< a page of include/asym/rtx.h */
    ASYM_MAPS_OPENMP = 1 << 1, /**< an OpenMP runtime */
    /**
     * A runtime that counts the CPUs of the calling thread's mask only when it first wants threads, and keeps to that:
     * LLVM's and Intel's OpenMP (14, also sets that mask for all threads), oneTBB (2021.8). GCC's OpenMP counts when it is
     * loaded.
     */
    ASYM_MAPS_COUNTS_LATE = 1 << 2,
};

/** Of whole lines of /proc/PID/maps. */
unsigned asym_maps_scan(const char *text, size_t len);

/**
 * Of a process; 0 where its maps cannot be read. Reads most bytes at most; *ret_cut: there are more. Waits for the lock of the
 * process's memory.
 */
unsigned asym_maps_read(const struct asym_root *root, pid_t pid, size_t most, bool *ret_cut);

#endif
