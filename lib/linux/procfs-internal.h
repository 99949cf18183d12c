/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The insides of the procfs source; for procfs*.c alone. */
#ifndef ASYM_LINUX_PROCFS_INTERNAL_H
#define ASYM_LINUX_PROCFS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "linux/cpuset.h"
#include "linux/masks.h"
#include "linux/procfs.h"
#include "linux/procparse.h"

/** A thread. There may be tens of thousands: 80 bytes each. */
struct asym_pthread {
    int32_t tid;
    int fd;                                  /**< kept schedstat; -1: none */
    uint64_t start;                          /**< 0: stat not read yet */
    struct asym_schedstat before;            /**< as last seen */
    uint64_t carry_ns;                       /**< runnable time counted ahead of the kernel's credit */
    const struct asym_mask *affinity, *mask; /**< as sched_getaffinity and Cpus_allowed had it */
    uint32_t put_on; /**< CPU + 1 on which it was put since it was listed; 0: none, or not known */
    uint32_t born;   /**< low bits of the monotonic microseconds; 0: by start */
    bool measured;   /**< before is valid */
    bool newborn;    /**< born after the first snapshot and not listed yet */
    bool gone;       /**< has ended; taken out at the next look */
    char state;      /**< last seen */
};

struct asym_process {
    int32_t pid, ppid; /**< ppid: who created it, where an event said so */
    uint64_t start, clock_ns;
    clockid_t clock;
    size_t index; /**< in asym_procfs.procs */
    asym_usec born, last_fork, last_exec;
    uint32_t flags;     /**< ASYM_PROC_* */
    bool decided;       /**< whether it is ASYM_PROC_OUTSIDE */
    bool runnable;      /**< a thread of it was in state R: its clock may stand still while it waits */
    bool fresh;         /**< to be read whatever its clock says */
    bool stale_threads; /**< threads may have come or gone: list them */
    bool doubtful;      /**< perhaps another process has this number by now */
    bool has_gone;      /**< some threads are marked gone */
    bool matched;       /**< rule is valid */
    bool denied;
    bool was_matched;    /**< rule and profile are what they were, at least */
    bool maps_known;     /**< its maps have been read since it became this program */
    bool status_fails;   /**< status is too long to be read: it has thousands of groups */
    uint32_t asked;      /**< ASYM_READ_*: the reader has yet to answer */
    uint32_t unread;     /**< ASYM_READ_*: the reader will not answer */
    uint32_t program;    /**< counts exec and the like: an answer about the program before is none */
    uint32_t maps_most;  /**< bytes of its maps to read */
    asym_usec looked_at; /**< the last look at it; 0: none */
    char comm[ASYM_COMM_LEN];
    uint64_t seen; /**< listing of /proc that saw it */
    uint64_t look; /**< the last look that came to it */
    enum asym_rule_action rule;
    const char *rule_name;
    const struct asym_profile *profile;
    uint32_t cpuset, group; /**< cgroups by number; 0: not known */
    asym_usec cgroup_read_at;
    uint64_t vsize, maps_vsize; /**< now, and when its maps were read */
    asym_usec maps_read_at;     /**< 0: not yet */
    asym_usec threads_at;       /**< one that counts late has had threads since; 0: it has none */
    uint64_t threads_ns;        /**< CPU time of its leader then */
    unsigned doubt;             /**< a mask has changed: in so many looks more what its cpuset is now has to be read */
    struct asym_pthread *threads; /**< by tid, rising */
    uint32_t n_threads;
    size_t capacity;
    uint32_t nlink;
};

/** Processes by pid: open addressing. A plain array of pid_max pointers comes to 32 MiB resident when numbers go round. */
struct asym_pid_table {
    struct asym_process **slots;
    size_t n, n_slots;
};

/** --pid: a number and whose it was when asked for. */
struct asym_wanted {
    int32_t pid;
    uint64_t start;
};

/** What one look at one process gave. */
struct asym_process_sums {
    double runnable; /**< threads, over the interval */
    uint32_t instant, first_task, n_tasks;
};

/** A process that has tasks in this snapshot; its asym_proc has the same index. */
struct asym_listed {
    uint32_t group; /**< cgroup by number, 0: it is an application of its own */
    uint32_t n_threads;
    struct asym_process_sums sums;
    char comm[ASYM_COMM_LEN];
};

/** How far a look has come. */
enum asym_procfs_stage {
    ASYM_PROCFS_IDLE,    /**< the next one has not begun */
    ASYM_PROCFS_LISTING, /**< of /proc */
    ASYM_PROCFS_LOOKING, /**< at one process after another */
};

struct asym_procfs {
    struct asym_source source;
    struct asym_procfs_config config;
    struct asym_wanted *wanted;
    struct asym_pid_table by_pid;
    struct asym_process **procs;
    size_t n_procs, capacity;
    size_t n_kept, kept_max, kept_limit;
    uint64_t listings; /**< of /proc */
    uint64_t turns;
    asym_usec now, last;
    asym_usec boot_ahead; /**< CLOCK_BOOTTIME less CLOCK_MONOTONIC */
    asym_usec uptime;     /**< of a captured machine */
    bool rescan;          /**< something may have been missed: list and verify everything */
    bool verifying;       /**< the listing under way does */
    bool foreign;         /**< /proc is of another PID namespace */
    bool no_schedstat;    /**< the kernel has none: states are all there is */
    bool all_online;      /**< every possible CPU is online: sched_getaffinity hides none */
    uint64_t ticks;       /**< per second */
    struct asym_mask_pool masks;
    struct asym_cgroups cgroups;
    char *buffer, *entries;
    /* What next() hands out, and what it is made of. */
    struct asym_listed *listed;
    struct asym_app *apps;
    struct asym_proc *out_procs;
    struct asym_task *tasks, *sorted;
    size_t n_apps, n_listed, n_tasks;
    size_t apps_capacity, listed_capacity, out_procs_capacity, tasks_capacity, sorted_capacity;
    struct asym_sight sight;
    struct asym_snapshot issued; /* the last one; while a look is under way it is not to be had again */
    /* A look that is under way. */
    enum asym_procfs_stage stage;
    asym_usec piece_ends;   /* 0: never */
    uint32_t listed_denied; /* sight.n_denied without the processes that it comes to */
    size_t left;            /* processes that it has yet to come to */
    int list_fd;            /* /proc, while it is listed; -1: it is not */
};

static inline struct asym_procfs *asym_procfs_of(struct asym_source *source)
{
    return (struct asym_procfs *)(void *)((char *)source - offsetof(struct asym_procfs, source));
}

#define ASYM_PROCFS_BUFFER  65536
#define ASYM_PROCFS_ENTRIES 32768

/** procfs-io.c: files, directories, descriptors. */

/** As asym_root_openat; for want of descriptors some of the kept ones are closed. -errno. */
int asym_procfs_open(struct asym_procfs *p, const char *path, int flags);
/** The whole file, ended in NUL. Length; -errno. */
ssize_t asym_procfs_read(struct asym_procfs *p, const char *path, char *buf, size_t size);
/** proc/PID/stat, or of a thread of it where tid is not 0. 0; -errno. */
int asym_procfs_read_stat(struct asym_procfs *p, int32_t pid, int32_t tid, struct asym_stat *ret);
/** Call fn for each number in the next part of the directory. 1; 0: that was all; -errno, of fn too. */
int asym_procfs_list_part(struct asym_procfs *p, int fd,
                          int (*fn)(struct asym_procfs *p, struct asym_process *proc, int32_t number),
                          struct asym_process *proc);
/** Call fn for each number that names an entry. fn must not list itself. 0; -errno. */
int asym_procfs_list(struct asym_procfs *p, const char *path,
                     int (*fn)(struct asym_procfs *p, struct asym_process *proc, int32_t number),
                     struct asym_process *proc);
/** How many descriptors may be kept now. */
size_t asym_procfs_keepable(void);
/** Room for one more item; keeps what is there. 0; -ENOMEM. */
int asym_procfs_grow(void *array, size_t n, size_t *capacity, size_t size);
/** Has the process, or the thread, ended? */
bool asym_procfs_gone(int error);

/** procfs-table.c */
struct asym_process *asym_pid_table_find(const struct asym_pid_table *t, int32_t pid);
int asym_pid_table_add(struct asym_pid_table *t, struct asym_process *proc);
void asym_pid_table_remove(struct asym_pid_table *t, int32_t pid);
void asym_pid_table_done(struct asym_pid_table *t);

/** procfs-threads.c: the threads of a process. */
struct asym_pthread *asym_procfs_find_thread(const struct asym_process *proc, int32_t tid);
/** A thread that may be known already. 0; -ENOMEM. */
int asym_procfs_add_thread(struct asym_process *proc, int32_t tid, bool newborn, asym_usec born);
void asym_procfs_release(struct asym_procfs *p, struct asym_pthread *t);
void asym_procfs_mark_gone(struct asym_procfs *p, struct asym_process *proc, struct asym_pthread *t);
void asym_procfs_sweep_threads(struct asym_process *proc);
int asym_procfs_list_threads(struct asym_procfs *p, struct asym_process *proc);

/** procfs-track.c: which processes there are. */
bool asym_procfs_follows(const struct asym_process *proc);
/** Begin to follow what has this number; NULL when there is nothing (any more) or no memory. */
struct asym_process *asym_procfs_track(struct asym_procfs *p, int32_t pid, bool newborn);
void asym_procfs_drop(struct asym_procfs *p, struct asym_process *proc);
/** Read again who it is: the same with its name as it is now, its successor, or NULL when it is gone. */
struct asym_process *asym_procfs_verify(struct asym_procfs *p, struct asym_process *proc);
/** List /proc. 0; -EINPROGRESS: the time is over, and the next call goes on; -errno. */
int asym_procfs_list_all(struct asym_procfs *p);
asym_usec asym_procfs_born_at(const struct asym_procfs *p, uint64_t start);
/** Is the time of this call of next() over? */
bool asym_procfs_is_over(const struct asym_procfs *p);
bool asym_procfs_wants(const struct asym_procfs *p, const struct asym_process *proc);

/** procfs-events.c: births and deaths as events. 0; -errno: they can no longer be read. */
int asym_procfs_take_events(struct asym_procfs *p);

/** procfs-facts.c: masks, cpusets, maps, rules. */
void asym_procfs_trim(struct asym_procfs *p);
/** Affinity and cpuset of a listed thread. 0; -errno. */
int asym_procfs_masks(struct asym_procfs *p, struct asym_process *proc, struct asym_pthread *t, struct asym_task *task);
void asym_procfs_read_cgroup(struct asym_procfs *p, struct asym_process *proc);
void asym_procfs_match(struct asym_procfs *p, struct asym_process *proc);
/** What the reader has answered since the last look. */
void asym_procfs_take_answers(struct asym_procfs *p);
/** Is a fact that decides about the process not known, or not known yet? */
bool asym_procfs_is_unknown(const struct asym_procfs *p, const struct asym_process *proc);
/** Its profile and its rule are of another program, or other rules. */
void asym_procfs_forget_facts(struct asym_process *proc);
/** Find out whether masks can be had by sched_getaffinity alone. Once a look. */
void asym_procfs_note_online(struct asym_procfs *p);
/** Set or clear ASYM_PROC_COUNTS_LATE. */
void asym_procfs_read_maps(struct asym_procfs *p, struct asym_process *proc);

/** procfs-scan.c: one look at one process. 0; -ESRCH: it is gone; -ESTALE: it is another; -ENOMEM. */
int asym_procfs_scan(struct asym_procfs *p, struct asym_process *proc, asym_usec interval,
                     struct asym_process_sums *sums);

/**
 * Runnable time in an interval, in ns, from the thread's counters before and now and its state now; all times in ns.
 * carry: what was counted ahead of the kernel's credit.
 */
uint64_t asym_procfs_runnable(const struct asym_schedstat *before, const struct asym_schedstat *now, char state,
                              uint64_t interval, uint64_t *carry);

/** procfs-list.c: from what was seen to applications. */

/** The rules or profiles have changed: match the processes again that the look under way has listed. */
void asym_procfs_match_listed(struct asym_procfs *p);
int asym_procfs_list_process(struct asym_procfs *p, const struct asym_process *proc,
                             const struct asym_process_sums *sums);
int asym_procfs_make_apps(struct asym_procfs *p);

#endif
