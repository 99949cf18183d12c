/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The source that reads /proc of the live machine or of a captured one. It reads in two tiers.
 *
 * Tier 1 reads the CPU clock of every process (clock_gettime on clock_getcpuclockid), which costs under 1 us. Tier 2 reads only
 * the processes whose clock advanced or that had a runnable thread at the last sample: the schedstat of each thread, which it
 * keeps open, and the stat of each thread whose counters advanced. New processes and threads are found by process events or,
 * without them, by readdir of /proc and st_nlink of /proc/PID/task.
 */
#ifndef ASYM_LINUX_OBSERVE_PROCFS_H
#define ASYM_LINUX_OBSERVE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>

#include <asym/types.h>
#include <asym/machine.h>
#include <asym/port.h>

#include "config/settings.h"
#include "linux/observe/proc-reader.h"
#include "linux/observe/process-events.h"
#include "linux/sys/root.h"

struct asym_procfs_config {
    const struct asym_root *root;               /* borrowed for the source's life */
    const struct asym_machine *machine;         /* borrowed; its content may change between two calls of next() */
    struct asym_process_events *process_events; /* borrowed; NULL: scan /proc instead */
    const char *process_events_why;             /* why process_events is NULL; copied; read only then */
    enum asym_grouping group;
    const int32_t *pids;             /* only these and their descendants are followed; copied */
    size_t n_pids;                   /* 0: all */
    const struct asym_rules *rules;  /* borrowed; NULL: none */
    struct asym_proc_reader *reader; /* borrowed; NULL: read at once, even where it can block */
    /*
     * Returns the profile of an executable, which has to stay at its address; NULL: it has none. build_id "": unknown. The
     * pointer is NULL where there are no profiles. wants_build_id returns whether the profile of this path depends on the
     * build id.
     */
    const struct asym_profile *(*profile_of)(void *ctx, const char *exe, const char *build_id);
    bool (*wants_build_id)(void *ctx, const char *exe);
    void *profile_ctx;
    bool owns_children; /* this process started all its children as helpers: like itself, they are not steered */
};

/**
 * Open the source. The first snapshot has interval 0 and shares 0; later ones have shares. next() returns -EINPROGRESS
 * when the time for it is over (linux/sys/realtime.h). The next call continues with the next process; the snapshot at the end is
 * complete. The shares of a process refer to the time since that process was sampled last.
 *
 * After refresh() the next snapshot is the last one again, with new process events applied and masks read again: where a watcher
 * knows which applications have changed, theirs. On a captured machine, and while a sample is in progress, it is a complete new
 * snapshot.
 *
 * feedback() tells the source which masks asymd has set. The next sample then does not take them for changes. Without it that
 * sample reads five files to find out which program changed the mask, which is most of the time of an answer to an RTX client.
 * If that sample finds another mask, the kernel has cut it, or another program has changed it since.
 *
 * Returns 0; -errno with err (-ENOENT: no proc directory; -ESRCH: a PID of --pid does not exist).
 */
int asym_procfs_new(const struct asym_procfs_config *config, struct asym_source **ret_source, struct asym_error *err);

/** For each signal: why /proc alone cannot provide it on that machine (static text), or NULL. The snapshots say the same. */
void asym_procfs_missing(const struct asym_machine *m, const char *ret_missing[ASYM_N_SIGNALS]);

/** Returns whether the kernel does not account the time that threads run and wait for a CPU. */
bool asym_procfs_lacks_schedstat(const struct asym_root *root);
#define ASYM_PROCFS_NO_SCHEDSTAT "this kernel has no /proc/PID/schedstat (CONFIG_SCHED_INFO)"

/**
 * Use other rules, and perhaps other profiles, from the next snapshot on. Every process is matched again. The lifetime is that
 * of the configuration.
 */
void asym_procfs_set_rules(struct asym_source *source, const struct asym_rules *rules);

/**
 * Write id, flags and rule of the process of a thread. The rule of a process that has not run since the rules changed is in no
 * snapshot; this matches it now. Returns 1; 0: the rule needs the command line, which the reader has not read yet, and ret has the
 * action in force until then, without a name; -ESRCH: the source does not know the thread.
 */
int asym_procfs_rule_of(struct asym_source *source, const struct asym_taskid *id, struct asym_proc *ret);

/**
 * Call fn for each known process of the job with that process group, also for those that sleep. It must not sample. While jobs are
 * not the applications there is none.
 */
void asym_procfs_job_each(struct asym_source *source, int32_t pgrp,
                          void (*fn)(void *ctx, const struct asym_taskid *proc), void *ctx);

/** Says whether a process or a thread has been runnable since the last sample. */
enum asym_procfs_activity { ASYM_PROCFS_UNKNOWN, ASYM_PROCFS_SLEPT, ASYM_PROCFS_RAN };

/** The facts of a thread that a watcher knows. */
struct asym_procfs_watched {
    uint64_t ran, waited; /**< ns since the last sample */
    int32_t cpu;          /**< that it got last; -1: not known */
    uint16_t renewed;     /**< changes when it calls exec or gets another name */
    uint32_t settings;    /**< no other thread has it; changes with its nice value, policy and mask; 0: not known */
    bool is_runnable;
};

/**
 * An observer that knows it. procfs then reads neither the clock of a process nor the schedstat of a thread that it knows, nor,
 * mostly, its stat.
 */
struct asym_procfs_watcher {
    enum asym_procfs_activity (*process)(void *ctx, int32_t tgid);
    /** Fills in *ret unless UNKNOWN is returned. */
    enum asym_procfs_activity (*thread)(void *ctx, int32_t tid, struct asym_procfs_watched *ret);
    /** Returns whether the refresh in progress is about the application: only then are the masks of its threads read again. */
    bool (*changed)(void *ctx, const struct asym_taskid *app);
    void *ctx;
};

/** Ask the watcher from now on. Copied; ctx lives as long as the source is used. */
void asym_procfs_set_watcher(struct asym_source *source, const struct asym_procfs_watcher *watcher);

/**
 * List a thread that the last snapshot did not, because it had slept: the next one, after refresh(), has it, with shares of 0. A
 * process that the last snapshot did not list stays unlisted. 1: it is listed; 0: it was, or cannot be; -errno.
 */
int asym_procfs_list_sleeper(struct asym_source *source, int32_t tgid, int32_t tid);

/** Use another grouping from the next snapshot on. */
void asym_procfs_set_group(struct asym_source *source, enum asym_grouping group);

#endif
