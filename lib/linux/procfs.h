/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The source that reads a live machine's /proc (or a captured one's): the two-tier reader of the architecture.
 *
 * Tier 1, every process: its CPU clock (clock_gettime on clock_getcpuclockid), which costs under 1 us. Tier 2, only the
 * processes whose clock moved or that were last seen runnable: the kept schedstat of each thread, and stat of those
 * that moved. New processes and threads come from the births (or, without them, from readdir of /proc and st_nlink of
 * /proc/PID/task).
 */
#ifndef ASYM_LINUX_PROCFS_H
#define ASYM_LINUX_PROCFS_H

#include <stdbool.h>
#include <stddef.h>

#include <asym/error.h>
#include <asym/machine.h>
#include <asym/port.h>
#include <asym/settings.h>

#include "linux/births.h"
#include "linux/proc-reader.h"
#include "linux/root.h"

struct asym_procfs_config {
    const struct asym_root *root;       /* borrowed for the source's life */
    const struct asym_machine *machine; /* borrowed; may change content between two calls of next */
    struct asym_births *births;         /* borrowed; NULL: scan instead */
    const char *births_why;             /* why there are none; static; NULL where births are given */
    enum asym_grouping group;
    const int32_t *pids;             /* only these and their descendants; copied */
    size_t n_pids;                   /* 0: all */
    const struct asym_rules *rules;  /* borrowed; NULL: none */
    struct asym_proc_reader *reader; /* borrowed; NULL: what can block is read at once */
    /*
     * The profile of a process's executable, which has to stay where it is; NULL: none. build_id "": not known. NULL: there
     * are no profiles. wants_build_id: whether the build id makes a difference for this path.
     */
    const struct asym_profile *(*profile_of)(void *ctx, const char *exe, const char *build_id);
    bool (*wants_build_id)(void *ctx, const char *exe);
    int (*build_id)(int fd, char *ret); /* as asym_build_id_read; without a reader */
    void *profile_ctx;
    bool owns_children; /* child processes of this one are helpers of it, and no more to be steered than itself */
    asym_usec piece; /* a look that takes longer is continued by the next call of next(); 0: it is done in one call */
};

/**
 * Open the source. The first next() takes stock (interval 0, shares 0); shares come from the second on. With a piece set,
 * next() returns -EINPROGRESS when the look has taken so long: the next call goes on between two processes, and the snapshot
 * that comes in the end is whole. A process's shares are of the time since it was looked at last.
 * Returns 0; -errno with err (no /proc; a --pid that does not exist: -ESRCH).
 */
int asym_procfs_new(const struct asym_procfs_config *config, struct asym_source **ret_source, struct asym_error *err);

/**
 * The last snapshot once more, with births taken into account and masks read again; what was measured stays, and so does
 * when. For asym_told_config.again. 0; -ENODATA: there is none yet; -errno.
 */
int asym_procfs_again(struct asym_source *source, struct asym_snapshot *ret);

/**
 * What has just been done, and what became of it (asym_actuator.apply): a mask that was given so is no news. Without this
 * the next look reads five files to find out whose it is, which is most of what an answer to a program takes. Where that look
 * finds another mask, it was cut, or somebody has changed it since.
 */
void asym_procfs_done(struct asym_source *source, const struct asym_action *actions,
                      const struct asym_outcome *outcomes, size_t n);

/** For each signal why /proc alone cannot give it on that machine, NULL where it can: what its snapshots say. Static. */
void asym_procfs_missing(const struct asym_machine *m, const char *ret_missing[ASYM_N_SIGNALS]);

/** Has the kernel no times of threads on and waiting for a CPU? */
bool asym_procfs_lacks_schedstat(const struct asym_root *root);
#define ASYM_PROCFS_NO_SCHEDSTAT "this kernel has no /proc/PID/schedstat (CONFIG_SCHED_INFO)"

/** Other rules, and perhaps other profiles, from the next snapshot on; every process is matched anew. Same lifetime as in the configuration. */
void asym_procfs_set_rules(struct asym_source *source, const struct asym_rules *rules);

/** Other grouping from the next snapshot on. */
void asym_procfs_set_group(struct asym_source *source, enum asym_grouping group);

#endif
