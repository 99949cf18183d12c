/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Parsers of the files in /proc, over the caller's buffer. Output only on success. */
#ifndef ASYM_LINUX_PROCPARSE_H
#define ASYM_LINUX_PROCPARSE_H

#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

/** What asymd wants of /proc/PID/task/TID/stat. */
struct asym_stat {
    char comm[ASYM_COMM_LEN]; /**< raw bytes; cut to its size */
    char state;
    int32_t ppid;
    uint32_t flags; /**< PF_* */
    int8_t nice;
    uint64_t ran;   /**< clock ticks of CPU time, its user's and its system's each rounded down */
    uint64_t start; /**< clock ticks since boot */
    uint64_t vsize; /**< bytes mapped */
    int32_t cpu;    /**< where it last ran */
    uint8_t sched;  /**< SCHED_* */
};

/**
 * The name may hold anything, ')' and newlines included: it ends at the last ')'.
 * Returns 0; -EINVAL when it is not a stat file: a field missing, not a number, or out of its range.
 */
int asym_parse_stat(const char *text, size_t len, struct asym_stat *ret);

/** "on-CPU ns, run-delay ns, slices". 0; -EINVAL. */
struct asym_schedstat {
    uint64_t run_ns, wait_ns, slices;
};
int asym_parse_schedstat(const char *text, size_t len, struct asym_schedstat *ret);

/** The value of a line "KEY:\tvalue" of /proc/PID/status, without the newline. 0; -ENOENT. */
int asym_parse_status_line(const char *text, size_t len, const char *key, const char **ret_value, size_t *ret_len);

/**
 * The path of /proc/PID/cgroup in the hierarchy that holds cpusets: the "cpuset" controller's where there is one (version
 * 1), else the unified one ("0::/path"). *ret_v1 says which. 0; -ENOENT.
 */
int asym_parse_cgroup(const char *text, size_t len, const char **ret_path, size_t *ret_len, int *ret_v1);

/**
 * The path that tells services and containers apart: the unified hierarchy's, unless that is "/" and systemd's own
 * ("name=systemd", where version 1 is in use) or the cpuset's says more. 0; -ENOENT.
 */
int asym_parse_cgroup_name(const char *text, size_t len, const char **ret_path, size_t *ret_len);

#endif
