/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The internals of the procfs source. Only procfs*.c and cpuset.c include this header. */
#ifndef ASYM_LINUX_OBSERVE_PROCFS_INTERNAL_H
#define ASYM_LINUX_OBSERVE_PROCFS_INTERNAL_H

#include <stdint.h>
#include <time.h>

#include <asym/types.h>

#include "base/hash.h"
#include "base/mask-table.h"
#include "linux/observe/procfs.h"
#include "linux/sys/cgroup-mounts.h"
#include "linux/sys/proc-parse.h"

/** The counts of one sample for an application of several processes: a job or a cgroup. */
struct asym_members {
    uint32_t n_procs, n_threads; /* known ones, listed or not */
    uint32_t app;                /* its application in the snapshot with number sample */
    uint64_t sample;
    double busiest; /* the highest runnable count of its processes */
};

struct asym_job {
    int32_t pgrp;
    uint64_t start;           /* of its leader, also when that has ended since; 0: asymd has not seen it */
    char comm[ASYM_COMM_LEN]; /* of its leader; of its oldest process if asymd has not seen the leader */
    uint64_t oldest;          /* start of that process */
    struct asym_members members;
};

/** All zero: empty. */
struct asym_jobs {
    struct asym_job *jobs;
    uint32_t n;
    size_t capacity;
    struct asym_hash by_pgrp;
};

void asym_jobs_done(struct asym_jobs *j);

/** Begin a sample: drop the jobs in which the last one has counted no process, and set all counts to 0. Numbers become invalid. */
void asym_jobs_begin(struct asym_jobs *j);

/*
 * The table of cgroups by path, with the effective CPUs of their cpusets. A cpuset is read at most once a second.
 *
 * Every mask in a snapshot, a thread's affinity or its cpuset, is cut to the possible CPUs. The kernel prints more bits than it
 * has CPUs for a thread that may run anywhere. The effective CPUs of a cpuset lack the offline CPUs, while an affinity may have
 * them. So a thread has not narrowed its affinity if and only if its mask contains its cpuset.
 */

/** The hierarchy to which a cgroup's path belongs: v2, the cpuset controller of v1, or name=systemd of v1. */
enum asym_hierarchy { ASYM_HIERARCHY_UNIFIED, ASYM_HIERARCHY_CPUSET, ASYM_HIERARCHY_NAMED };

struct asym_cgroup {
    char *path; /* owned; begins with '/' */
    uint64_t hash;
    enum asym_hierarchy hierarchy;
    const struct asym_mask *cpus; /* from the mask table; NULL: to be read */
    asym_usec read_at;
    uint32_t nice_group; /* number of the cgroup within which nice values count; 0: none */
    bool is_unit; /* a service, a container or the scope of one program: not the root, a slice, or a login session */
    struct asym_members members; /* for the caller */
};

/** The table is empty when all but root, mounts, possible and isolated is zero. */
struct asym_cgroups {
    const struct asym_root *root; /* borrowed */
    struct asym_cgroup_mounts mounts;
    struct asym_mask possible, isolated;
    struct asym_cgroup *groups;
    uint32_t n;
    size_t capacity;
};

/** Read the mounts of cgroups, the possible CPUs (fallback where sysfs does not have them) and the CPUs isolated at boot. */
void asym_cgroups_init(struct asym_cgroups *c, const struct asym_root *root, const struct asym_mask *fallback);
void asym_cgroups_done(struct asym_cgroups *c);

/** Remove all cgroups. Numbers returned before become invalid. */
void asym_cgroups_clear(struct asym_cgroups *c);

/**
 * Returns the number of the cgroup with that path, >= 1, adding it if need be; 0 when memory runs out. The root is "/" or
 * empty.
 */
uint32_t asym_cgroups_find(struct asym_cgroups *c, enum asym_hierarchy hierarchy, const char *path, size_t len);

/** Every cpuset that was read before now is read again at its next use. */
void asym_cgroups_expire(struct asym_cgroups *c, asym_usec now);

/**
 * Returns the effective CPUs of cgroup number id, cut to the possible CPUs. A cgroup without a cpuset has those of its nearest
 * ancestor with one. id 0 (unknown) has all possible CPUs. The mask is in pool; NULL when memory runs out.
 */
const struct asym_mask *asym_cgroups_cpus(struct asym_cgroups *c, uint32_t id, asym_usec now,
                                          struct asym_mask_table *pool);

/**
 * Returns the cpuset of a thread: that of its cgroup, without those CPUs isolated at boot (isolcpus=) that its mask lacks. The
 * kernel keeps every thread off isolated CPUs unless the program asks for them, so that their absence from the mask does not
 * mean that the program has chosen it. The mask is in pool; NULL when memory runs out.
 */
const struct asym_mask *asym_cgroups_for(const struct asym_cgroups *c, const struct asym_mask *cpus,
                                         const struct asym_mask *mask, struct asym_mask_table *pool);

/** A thread. A machine may have tens of thousands; each takes 112 bytes. */
struct asym_pthread {
    int32_t tid;
    int fd, stat_fd;                         /**< open schedstat and stat; -1: none is kept open */
    uint64_t start;                          /**< 0: stat not read yet */
    asym_usec read_at;                       /**< by the last sample that read it; 0: none did */
    struct asym_schedstat before;            /**< at the last sample */
    int64_t balance_ns;                      /**< runnable time that the kernel has credited, less what was counted */
    const struct asym_mask *affinity, *mask; /**< results of sched_getaffinity and of Cpus_allowed */
    uint32_t put_on; /**< CPU + 1 that asymd moved it to since the last snapshot had it; 0: none, or unknown */
    uint32_t born;   /**< low 32 bits of CLOCK_MONOTONIC in us; 0: derive it from start */
    bool measured;   /**< before is valid */
    bool watched;    /**< the sums of before are those of a watcher since the first of them */
    bool newborn;    /**< created after the first snapshot; no snapshot has had it yet */
    bool gone;       /**< it has ended; the next sample removes it */
    bool executed;   /**< the leader of a process that has called exec since the last snapshot that listed it */
    char state;      /**< at the last sample */
    int8_t nice;     /**< when a snapshot last listed it, or what asymd has set since; valid with affinity */
    uint8_t sched;   /**< this and the rest: when stat was last read */
    bool no_setaffinity;
    char comm[ASYM_COMM_LEN];
    uint32_t renewed;  /**< what its watcher knew when stat was last read, + 1; 0: it had none then */
    uint32_t settings; /**< what its watcher knew when a sample last read nice and mask; 0: nothing */
};

/** Whether rule, rule_name and profile of a process hold. */
enum asym_match {
    ASYM_MATCH_NONE,  /**< the process was not matched since it started or called exec */
    ASYM_MATCH_STALE, /**< the rules or the name have changed since; the previous rule applies until the next match */
    ASYM_MATCH_VALID,
};

/** The work of the next sample on a process. A later value includes the earlier ones. */
enum asym_due {
    ASYM_DUE_IF_RAN,  /**< it reads the process if its clock has advanced */
    ASYM_DUE_READ,    /**< it reads the process: while a thread waits for a CPU, the clock does not advance */
    ASYM_DUE_THREADS, /**< it also lists the threads: some may have started or ended */
};

struct asym_process {
    int32_t pid, ppid;     /**< ppid: the creator where a process event named it, else the parent */
    int32_t pgrp, session; /**< process group; session; 0: of another PID namespace */
    bool has_tty;          /**< it has a controlling terminal */
    uint64_t start, clock_ns;
    clockid_t clock;
    size_t index; /**< in asym_procfs.procs */
    asym_usec born, last_fork, last_exec;
    struct asym_image image; /**< of the program that it last executed */
    uint32_t flags;          /**< ASYM_PROC_* */
    bool decided;            /**< ASYM_PROC_OUTSIDE is final */
    enum asym_due due;
    bool ends;           /**< its leader has ended: when it is reaped, only its clock tells */
    bool may_be_another; /**< another process may have this PID now */
    bool has_gone;       /**< some threads are marked gone */
    bool denied;
    enum asym_match match;
    bool maps_known;      /**< its maps were read since the last exec */
    bool status_fails;    /**< status is longer than the buffer: the process has thousands of groups */
    bool has_hung;        /**< it has made a reader hang since it was created */
    uint32_t asked;       /**< ASYM_READ_*: requested, not answered yet */
    asym_usec wanted_at;  /**< when asymd first wanted to read it, since its last exec; 0: not yet */
    uint32_t unread;      /**< ASYM_READ_*: the reader cannot read these */
    asym_usec retry_at;   /**< when unread facts are requested again; 0: at the next exec */
    uint32_t program;     /**< incremented at exec and when the rules change: answers with an older tag are ignored */
    uint32_t maps_most;   /**< bytes of its maps to read; 0: ASYM_READ_MAPS_FIRST */
    asym_usec sampled_at; /**< when its last sample began; 0: never */
    asym_usec stat_at;    /**< when the stat of a thread of it was read last; 0: never */
    char comm[ASYM_COMM_LEN];
    uint64_t seen;   /**< number of the last listing of /proc that had it */
    uint64_t sample; /**< number of the last sample that processed it */
    enum asym_rule_action rule;
    const char *rule_name;
    const struct asym_rule_facts *rule_facts;
    const struct asym_profile *profile;
    uint32_t cpuset, group; /**< numbers of cgroups; 0: unknown */
    asym_usec cgroup_read_at;
    uint64_t vsize, maps_vsize; /**< bytes mapped: now, and when its maps were read */
    asym_usec maps_read_at;     /**< 0: they are to be read */
    asym_usec threads_at;       /**< since when a process with ASYM_PROC_COUNTS_LATE has had threads; 0: it has none */
    uint64_t threads_ns;        /**< CPU time of its leader at that time */
    unsigned suspected;         /**< a mask has changed: read the cpuset again in this many further samples */
    struct asym_pthread *threads; /**< by tid, rising */
    uint32_t n_threads;
    size_t capacity;
};

/** A process of --pid: its PID and its start time when asymd started. */
struct asym_wanted {
    int32_t pid;
    uint64_t start;
};

/** The result of sampling one process. */
struct asym_process_sums {
    double runnable; /**< runnable threads, mean over the interval */
    uint32_t instant, first_task, n_tasks;
};

/**
 * The scan of one process. One with tens of thousands of threads takes several calls of next(). No process event is taken
 * between these calls, so that the process and the order of its threads stay.
 */
struct asym_procfs_scan {
    struct asym_process *cut; /**< its scan goes on with the next call; NULL: none */
    uint32_t next;            /**< index of the thread to read next */
    asym_usec since;          /**< when the process was sampled before; 0: never */
    uint32_t settings;        /**< asym_procfs_watched.settings of the thread that is read now; 0: none, or not known */
    struct asym_process_sums sums;
};

/** The application of several processes to which a process belongs: at most one number, >= 1. Both 0: none. */
struct asym_place {
    uint32_t cgroup; /**< number of its cgroup */
    uint32_t job;    /**< number of its job; valid for one sample */
};

/** A process that has tasks in this snapshot. Its asym_proc has the same index. */
struct asym_listed {
    struct asym_place place;
    uint32_t n_threads;
    struct asym_process_sums sums;
    char comm[ASYM_COMM_LEN];
};

/** The stage of a sample, which may take several calls of next(). */
enum asym_procfs_stage {
    ASYM_PROCFS_IDLE,     /**< no sample is in progress */
    ASYM_PROCFS_LISTING,  /**< it lists /proc */
    ASYM_PROCFS_SAMPLING, /**< it reads one process after another */
};

struct asym_procfs {
    struct asym_source source;
    struct asym_procfs_config config;
    struct asym_procfs_watcher watcher; /* process NULL: none */
    struct asym_wanted *wanted;
    struct asym_process **procs;
    struct asym_hash
        by_pid; /**< index of procs. An array of pid_max pointers grows to 32 MiB of resident memory as PIDs wrap around. */
    size_t n_procs, capacity;
    size_t n_kept, kept_max, kept_limit;
    uint64_t listings;  /**< how often /proc was listed */
    uint64_t n_samples; /**< complete ones so far */
    asym_usec now, last;
    asym_usec boot_ahead; /**< CLOCK_BOOTTIME less CLOCK_MONOTONIC */
    asym_usec uptime;     /**< of a captured machine, from proc/uptime */
    bool rescan;          /**< something may have been missed: list /proc and verify every process */
    bool verifying;       /**< the listing in progress verifies every process */
    bool foreign;         /**< /proc is of another PID namespace */
    bool no_schedstat;    /**< the kernel has no schedstat: only thread states are known */
    bool all_online;      /**< every possible CPU is online: sched_getaffinity shows the whole mask */
    uint64_t ticks;       /**< per second */
    struct asym_mask_table masks;
    struct asym_cgroups cgroups;
    struct asym_jobs jobs;
    char *buffer, *entries;
    /* The arrays of the snapshot that next() returns. */
    struct asym_listed *listed;
    struct asym_app *apps;
    struct asym_proc *out_procs;
    struct asym_task *tasks, *sorted;
    size_t n_apps, n_listed, n_tasks;
    size_t apps_capacity, listed_capacity, out_procs_capacity, tasks_capacity, sorted_capacity;
    struct asym_coverage coverage;
    char without_events[160];    /* coverage.process_events_why */
    struct asym_snapshot issued; /* the last snapshot; empty while a sample is in progress */
    bool autogroups;             /* the kernel schedules each session as one */
    bool refresh;                /* next() returns the last snapshot again */
    /* The sample in progress. */
    enum asym_procfs_stage stage;
    uint32_t listed_denied; /* coverage.n_denied without the processes that this sample reads */
    size_t left;            /* processes that it has not read yet */
    int list_fd;            /* /proc while it is listed, else -1 */
    int online_fd, autogroup_fd;
    bool has_switches;      /* autogroups is of this sample */
    bool knows_online;      /* all_online is of this sample */
    asym_usec new_masks_at; /* when sched_getaffinity has last given a new one */
    struct asym_procfs_scan scan;
};

static inline struct asym_procfs *asym_procfs_of(struct asym_source *source)
{
    return (struct asym_procfs *)(void *)((char *)source - offsetof(struct asym_procfs, source));
}

#define ASYM_PROCFS_BUFFER  65536
#define ASYM_PROCFS_ENTRIES 32768

/* procfs-io.c: files, directories, descriptors. */

/** Opens a file as asym_root_openat does. When descriptors run out, it closes some of those kept open and tries again. -errno. */
int asym_procfs_open(struct asym_procfs *p, const char *path, int flags);
/** Read a file, at most size - 1 bytes, and end it in NUL. Returns the length; -errno. */
ssize_t asym_procfs_read(struct asym_procfs *p, const char *path, char *buf, size_t size);
/**
 * Read a short file that is there as long as the kernel runs. On a live machine *fd, -1 at first, keeps it open: reading it costs a
 * tenth of opening it. buf is not ended in NUL. Returns the length; -errno.
 */
ssize_t asym_procfs_read_kept(struct asym_procfs *p, int *fd, const char *path, char *buf, size_t size);
/** Read proc/PID/stat or, where tid is not 0, the stat of that thread. 0; -errno. */
int asym_procfs_read_stat(struct asym_procfs *p, int32_t pid, int32_t tid, struct asym_stat *ret);
/**
 * Read a short file of a thread, which stays open in *fd while fewer than kept_max do. *fd is -1 at first. buf is not ended in NUL.
 * Returns the length; -errno.
 */
ssize_t asym_procfs_read_thread(struct asym_procfs *p, int32_t pid, int32_t tid, const char *name, int *fd, char *buf,
                                size_t size);
/** Call fn for each number in the next part of the directory. 1; 0: the directory has ended; -errno, also from fn. */
int asym_procfs_list_part(struct asym_procfs *p, int fd,
                          int (*fn)(struct asym_procfs *p, struct asym_process *proc, int32_t number),
                          struct asym_process *proc);
/** Call fn for each entry whose name is a number. fn must not list a directory itself. 0; -errno. */
int asym_procfs_list(struct asym_procfs *p, const char *path,
                     int (*fn)(struct asym_procfs *p, struct asym_process *proc, int32_t number),
                     struct asym_process *proc);
/** Close the files of a thread that are kept open. */
void asym_procfs_release(struct asym_procfs *p, struct asym_pthread *t);
/** Returns how many descriptors this process can keep open for schedstat. */
size_t asym_procfs_keepable(void);
/** Returns whether the error means that the process or thread has ended. */
bool asym_procfs_gone(int error);

/* procfs-track.c: the table of processes and their threads. stat: of the leader, read now. */

struct asym_pthread *asym_procfs_find_thread(const struct asym_process *proc, int32_t tid);
void asym_procfs_mark_gone(struct asym_procfs *p, struct asym_process *proc, struct asym_pthread *t);
void asym_procfs_sweep_threads(struct asym_process *proc);
int asym_procfs_list_threads(struct asym_procfs *p, struct asym_process *proc);
/** Returns whether the process is calling exec: the kernel frees the previous program. */
bool asym_procfs_is_executing(const struct asym_process *proc, const struct asym_stat *stat);

/** Returns NULL when no process with this PID is known. */
struct asym_process *asym_procfs_find(const struct asym_procfs *p, int32_t pid);
bool asym_procfs_follows(const struct asym_process *proc);
/** Have the next sample do at least that much. */
static inline void asym_procfs_expect(struct asym_process *proc, enum asym_due due)
{
    proc->due = proc->due < due ? due : proc->due;
}
/** Add the process that has this PID now. Returns NULL when it has ended, cannot be read, or memory runs out. */
struct asym_process *asym_procfs_track(struct asym_procfs *p, int32_t pid, bool newborn);
void asym_procfs_drop(struct asym_procfs *p, struct asym_process *proc);
/** Discard rule, profile and maps: the process runs another program. */
void asym_procfs_forget_facts(struct asym_process *proc);
/**
 * Read its stat again. Returns the process with its present name, the one that has its PID now, or NULL if there is none.
 * has_executed: it runs another program; else the stat tells whether it does.
 */
struct asym_process *asym_procfs_verify(struct asym_procfs *p, struct asym_process *proc, bool has_executed);
/** List /proc. 0; -EINPROGRESS: the time is over, and the next call continues; -errno. */
int asym_procfs_list_all(struct asym_procfs *p);
/** Take over process group and terminal. */
void asym_procfs_note_group(struct asym_process *proc, const struct asym_stat *stat);
asym_usec asym_procfs_born_at(const struct asym_procfs *p, uint64_t start);

/** procfs-track.c: update the table from process events. 0; -errno: no more events will come. */
int asym_procfs_take_events(struct asym_procfs *p);

/* procfs-facts.c: masks, cpusets, maps, rules. */

void asym_procfs_trim(struct asym_procfs *p);
void asym_procfs_feedback(struct asym_source *source, const struct asym_feedback *feedback);
/**
 * Fill in affinity and cpuset of a task. 0; -EAGAIN: the process has called exec since its last sample, and the mask may be that of
 * another thread, which the next sample reads; -errno.
 */
int asym_procfs_masks(struct asym_procfs *p, struct asym_process *proc, struct asym_pthread *t, struct asym_task *task);
void asym_procfs_read_cgroup(struct asym_procfs *p, struct asym_process *proc);
void asym_procfs_match(struct asym_procfs *p, struct asym_process *proc);
/** Take the answers that the reader has given since the last sample. */
void asym_procfs_take_answers(struct asym_procfs *p);
/** Returns whether a fact is unknown that decides whether the process is steered. */
bool asym_procfs_is_unknown(const struct asym_procfs *p, const struct asym_process *proc);
/** Have the rule matched again. Until then the process keeps the rule that it has, if any. */
static inline void asym_procfs_expire_match(struct asym_process *proc)
{
    if (proc->match == ASYM_MATCH_VALID)
        proc->match = ASYM_MATCH_STALE;
}
/** Request unread facts again if it is time for that. */
void asym_procfs_retry(struct asym_procfs *p, struct asym_process *proc);
/** Update all_online. */
void asym_procfs_note_online(struct asym_procfs *p);
/** Set or clear ASYM_PROC_COUNTS_LATE. */
void asym_procfs_read_maps(struct asym_procfs *p, struct asym_process *proc);

/**
 * procfs-scan.c: sample one process, for the interval in p->scan. 0: p->scan.sums is the result; -EINPROGRESS: the time is over,
 * and p->scan.cut is the process; -ESRCH: it has ended; -ESTALE: another process has its PID; -ENOMEM.
 */
int asym_procfs_scan(struct asym_procfs *p, struct asym_process *proc);
/** Returns whether a watcher knows that nice, policy and mask of the thread that is read now are those of its last sample. */
static inline bool asym_procfs_is_as_set(const struct asym_procfs *p, const struct asym_pthread *t)
{
    return p->scan.settings != 0 && p->scan.settings == t->settings;
}

/** Append the thread to p->tasks, with the shares of the interval, unless its mask cannot be read. */
void asym_procfs_list_task(struct asym_procfs *p, struct asym_process *proc, struct asym_pthread *t,
                           const struct asym_stat *stat, double runnable, double running);
/** Count a thread or a process that this sample leaves out, and read the process again with the next one. */
void asym_procfs_note_failure(struct asym_procfs *p, struct asym_process *proc, int error);

/* procfs-list.c: processes and applications of the snapshot. */

/** Count the process and its threads in its application, if that may have several processes. Once a sample for each process. */
void asym_procfs_count(struct asym_procfs *p, const struct asym_process *proc);
/** Returns whether the process belongs to the job with that process group. */
bool asym_procfs_is_in_job(struct asym_procfs *p, const struct asym_process *proc, int32_t pgrp);
/** After a change of the grouping: place the processes anew that the sample in progress has listed. */
void asym_procfs_regroup_listed(struct asym_procfs *p);

/** Write flags, rule and profile. */
void asym_procfs_take_rule(const struct asym_procfs *p, const struct asym_process *proc, struct asym_proc *ret);
/** After a change of rules or profiles: match again the processes that the sample in progress has listed. */
void asym_procfs_match_listed(struct asym_procfs *p);
int asym_procfs_list_process(struct asym_procfs *p, const struct asym_process *proc,
                             const struct asym_process_sums *sums);
int asym_procfs_make_apps(struct asym_procfs *p);

#endif
