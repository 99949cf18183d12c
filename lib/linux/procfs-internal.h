/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The insides of the procfs source. */
#ifndef ASYM_LINUX_PROCFS_INTERNAL_H
#define ASYM_LINUX_PROCFS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "linux/procfs.h"
#include "linux/procparse.h"

/** Masks by content, each once. They live until all are dropped at once. */
struct asym_mask_pool {
    struct asym_mask **masks;
    size_t n, capacity;
};

/** A control group whose cpuset is known. */
struct asym_cgroup {
    char *path;
    bool v1;
    const struct asym_mask *cpus;
    asym_usec read_at;
};

struct asym_pthread {
    int32_t tid;
    int fd; /**< kept schedstat; -1: none */
    uint64_t start;
    struct asym_schedstat before;
    uint64_t carry_ns;                       /**< runnable time counted ahead of the kernel's credit */
    bool measured;                           /**< before is valid */
    bool newborn;                            /**< born after the first snapshot and not listed yet */
    char state;                              /**< last seen */
    const struct asym_mask *affinity, *mask; /**< as sched_getaffinity and Cpus_allowed had it */
};

struct asym_process {
    int32_t pid, ppid;
    uint64_t start, clock_ns;
    clockid_t clock;
    size_t index; /**< in asym_procfs.procs */
    asym_usec born, last_fork;
    uint32_t flags;     /**< ASYM_PROC_* */
    bool runnable;      /**< a thread of it was in state R: its clock may stand still while it waits */
    bool fresh;         /**< to be read whatever its clock says */
    bool stale_threads; /**< threads have come or gone: list them */
    bool matched;       /**< rule is valid */
    bool denied;
    uint64_t seen; /**< scan of /proc that saw it */
    char comm[ASYM_COMM_LEN];
    enum asym_rule_action rule;
    const char *rule_name;
    uint32_t cgroup; /**< index + 1; 0: not known */
    asym_usec cgroup_read_at;
    struct asym_pthread *threads;
    uint32_t n_threads, capacity;
    int32_t max_tid; /**< the highest there has been */
    uint32_t nlink;
};

struct asym_procfs {
    struct asym_source source;
    struct asym_procfs_config config;
    int32_t *pids;
    struct asym_process **by_pid; /**< pid_max + 1; only touched pages cost memory */
    int32_t pid_max;
    struct asym_process **procs;
    size_t n_procs, capacity;
    size_t n_kept, kept_max;
    uint64_t scans; /**< of /proc */
    uint64_t turns;
    asym_usec last;
    bool rescan, foreign;
    long ticks; /**< per second */
    struct asym_mask possible, isolated;
    struct asym_mask_pool masks;
    struct asym_cgroup *cgroups;
    uint32_t n_cgroups, cgroups_capacity;
    char *buffer;
    /* What next() hands out. */
    struct asym_app *apps;
    struct asym_proc *out_procs;
    struct asym_task *tasks;
    size_t n_apps, n_out_procs, n_tasks, apps_capacity, out_procs_capacity, tasks_capacity;
    struct asym_sight sight;
};

#define ASYM_PROCFS_BUFFER 65536

/** procfs-track.c: which processes and threads there are. */
struct asym_process *asym_track_process(struct asym_procfs *p, int32_t pid, bool newborn);
void asym_track_drop(struct asym_procfs *p, struct asym_process *proc);
int asym_track_threads(struct asym_procfs *p, struct asym_process *proc);
struct asym_pthread *asym_track_thread(struct asym_procfs *p, struct asym_process *proc, int32_t tid, bool newborn);
void asym_track_drop_thread(struct asym_procfs *p, struct asym_process *proc, uint32_t i);
int asym_track_all(struct asym_procfs *p);
int asym_track_events(struct asym_procfs *p);

/** procfs-facts.c: masks, cpusets, rules. */
const struct asym_mask *asym_mask_pool_get(struct asym_mask_pool *pool, const struct asym_mask *m);
void asym_mask_pool_done(struct asym_mask_pool *pool);
void asym_facts_start(struct asym_procfs *p);
/** Affinity of a listed thread; *ret_mask as Cpus_allowed within the possible CPUs. 0; -errno. */
int asym_facts_mask(struct asym_procfs *p, const struct asym_process *proc, struct asym_pthread *t,
                    const struct asym_mask **ret_mask);
const struct asym_mask *asym_facts_cpuset(struct asym_procfs *p, struct asym_process *proc, asym_usec now);
void asym_facts_rule(struct asym_procfs *p, struct asym_process *proc);

/** procfs-scan.c: one look at one process. */
struct asym_process_sums {
    double runnable; /**< threads, over the interval */
    uint32_t instant, first_task, n_tasks;
};
int asym_scan_process(struct asym_procfs *p, struct asym_process *proc, asym_usec now, asym_usec interval,
                      struct asym_process_sums *sums);

/** Room for one more item; keeps what is there. 0; -ENOMEM. */
int asym_grow(void *array, size_t n, size_t *capacity, size_t size);

#endif
