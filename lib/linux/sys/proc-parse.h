/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Parsers of the texts of files in /proc. They write outputs only on success. Outputs that are texts point into the input. */
#ifndef ASYM_LINUX_SYS_PROC_PARSE_H
#define ASYM_LINUX_SYS_PROC_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <asym/types.h>

#include "base/runnable.h"
#include "linux/sys/root.h"

/**
 * The addresses of a program's code and stack. The kernel chooses at least one of them at random for each exec, except where the
 * user has switched that off. If asymd may not trace the process, code is 1 and stack 0. While the process calls exec, and in a
 * kernel thread or a zombie, code is 0.
 */
struct asym_image {
    uint64_t code, stack;
};

/** Returns whether both images are known and differ: the process has called exec in between. */
static inline bool asym_image_has_changed(const struct asym_image *was, const struct asym_image *is)
{
    return was->stack != 0 && is->stack != 0 && (was->stack != is->stack || was->code != is->code);
}

/** PF_KTHREAD of the kernel: a kernel thread. PF_EXITING: the thread is ending. */
#define ASYM_PF_KTHREAD 0x00200000u
#define ASYM_PF_EXITING 0x00000004u

/** The fields of /proc/PID/task/TID/stat that asymd uses. */
struct asym_stat {
    char comm[ASYM_COMM_LEN]; /**< raw bytes, cut to this size */
    char state;
    int32_t ppid;
    int32_t pgrp;    /**< process group; 0: of another PID namespace; -1: the thread has ended */
    int32_t session; /**< as pgrp */
    int32_t tty;     /**< its controlling terminal; 0: none */
    uint32_t flags;  /**< ASYM_PF_KTHREAD and others */
    int8_t nice;
    uint64_t ran;   /**< clock ticks of CPU time: user and system time, each rounded down */
    uint64_t start; /**< clock ticks since boot */
    uint64_t vsize; /**< bytes mapped */
    struct asym_image image;
    int32_t cpu;   /**< CPU on which it last ran */
    uint8_t sched; /**< SCHED_* */
};

/** Returns whether the thread has ended, or is ending: its image says nothing then. */
static inline bool asym_stat_is_ending(const struct asym_stat *stat)
{
    return (stat->flags & ASYM_PF_EXITING) != 0 || stat->state == 'Z' || stat->state == 'X';
}

/**
 * Parse /proc/PID/task/TID/stat. The name in it may contain any byte, also ')' and newlines; it ends at the last ')'.
 * Returns 0; -EINVAL: a field is missing, is no number, or is out of its range.
 */
int asym_parse_stat(const char *text, size_t len, struct asym_stat *ret);

/** Read and parse the stat of a process, or of its thread tid (0: of the process). Returns 0; -errno; -EINVAL as above. */
int asym_read_stat(const struct asym_root *root, int32_t pid, int32_t tid, struct asym_stat *ret);

/** Parse schedstat. Returns 0; -EINVAL: a field is missing or is no number. */
int asym_parse_schedstat(const char *text, size_t len, struct asym_schedstat *ret);

/** Find the value of a line "KEY:\tvalue" of /proc/PID/status, without the newline. Returns 0; -ENOENT: no such line. */
int asym_parse_status_line(const char *text, size_t len, const char *key, const char **ret_value, size_t *ret_len);

/**
 * Find the cgroup of the process's cpuset in /proc/PID/cgroup. Where the v1 controller "cpuset" is mounted, this is the path in
 * its hierarchy (*ret_v1 is 1), else the path in the unified hierarchy ("0::/path"; *ret_v1 is 0). Returns 0; -ENOENT: text
 * has neither line.
 */
int asym_parse_cgroup(const char *text, size_t len, const char **ret_path, size_t *ret_len, int *ret_v1);

/**
 * Find the path that distinguishes services and containers in /proc/PID/cgroup. The parser looks at the unified hierarchy, at
 * systemd's own ("name=systemd", where v1 is in use) and at that of the cpuset controller, in this order, and takes the first
 * path that is not "/". If each is "/", it returns "/". Returns 0; -ENOENT: text has none of these lines.
 */
int asym_parse_cgroup_name(const char *text, size_t len, const char **ret_path, size_t *ret_len);

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

/**
 * The load of each CPU by /proc/stat: of all threads, of the kernel and of interrupts, whichever processes asymd follows. All zero:
 * nothing is read yet.
 */
struct asym_cpu_load {
    unsigned n;                                        /**< readings; from the second one on the shares are valid */
    uint64_t busy[ASYM_MAX_CPUS], idle[ASYM_MAX_CPUS]; /**< clock ticks since boot */
    double share[ASYM_MAX_CPUS]; /**< 0..1, of the time between the last two readings; of an offline CPU: 0 */
};

/** Read the file again. Returns 0; -errno: as before. */
int asym_cpu_load_update(struct asym_cpu_load *load, const struct asym_root *root);

#endif
