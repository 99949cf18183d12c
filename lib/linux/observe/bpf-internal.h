/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The internals of the observer bpf. Only bpf*.c include this header. */
#ifndef ASYM_LINUX_OBSERVE_BPF_INTERNAL_H
#define ASYM_LINUX_OBSERVE_BPF_INTERNAL_H

#include <stddef.h>

#include "base/hash.h"
#include "base/token-bucket.h"
#include "linux/observe/bpf.h"
#include "linux/observe/phases-kernel.h"
#include "linux/observe/procfs.h"

/** For so long an application is not followed that changes its states too often, or has lost its places to another user. */
#define ASYM_BPF_RESTS_FOR (60 * ASYM_SEC)

/* A user shares the kernel's places and the CPU time of answers with the others. His debt stays until another needs the entry. */
struct asym_bpf_user {
    uint32_t uid;
    uint32_t n_apps;
    uint32_t places;  /* of his applications, in threads, as count_places() of bpf-places.c found them */
    uint32_t orders;  /* of this snapshot, to follow his processes */
    uint32_t refused; /* so many threads, or fewer, found no room in this snapshot; 0: none looked */
    struct asym_token_bucket answers; /* us of CPU time */
    bool has_changed;                 /* no user has paid the events of his applications yet */
};

/* An application that is followed, or rests; its number is its index + 1. */
struct asym_bpf_app {
    struct asym_taskid id;
    uint32_t n_procs;           /* that are followed */
    uint32_t user;              /* index: who owned its first process */
    int32_t alone;              /* the thread that the kernel has named as the only runnable one; 0: none */
    int32_t told;               /* the thread that the last snapshot has shown alone; 0: none */
    bool is_new;                /* it has come down to one thread, or left that state, since the last snapshot */
    uint64_t n_changes, ran_ns; /* of its threads, since b->judged */
    asym_usec rests_until;      /* it is not followed before that; 0: it does not rest */
};

struct asym_bpf_proc {
    struct asym_taskid id;
    uint32_t app; /* number */
    asym_usec listed;
    bool is_counted;                    /* a thread of it has a place */
    enum asym_procfs_activity activity; /* since the last full snapshot */
};

/* The kernel's count of a thread at the last full snapshot, and what it gives for the interval before that. */
struct asym_bpf_counted {
    struct asym_phases_thread at;
    uint64_t ran_ns, waited_ns;
    double running, runnable, critical;
    bool is_measured; /* these five are valid: it was there at the snapshot before, too */
};

struct asym_bpf {
    struct asym_source source;
    struct asym_phases *kernel;
    const struct asym_root *root;
    int32_t self;
    struct asym_bpf_user users[ASYM_PHASES_APPS + 1]; /* one more than applications, for him who begins the next one */
    double cpu_share;                                 /* of one CPU, for all answers */
    struct asym_bpf_app apps[ASYM_PHASES_APPS];
    uint32_t n_apps, apps_end, users_end; /* no entry from apps_end or users_end on was ever used */
    struct asym_hash app_index;           /* of apps, by id */
    struct asym_bpf_proc *procs;
    struct asym_hash proc_index; /* of procs, by tgid */
    size_t n_procs, procs_capacity;
    struct asym_bpf_counted *counted; /* ASYM_PHASES_THREADS + 1, by place */
    struct asym_hash thread_index;    /* of counted, by tid */
    const uint32_t *active;           /* places of the threads that the last count has read */
    size_t n_active;
    uint64_t counted_at_ns;  /* 0: never */
    asym_usec judged;        /* when n_changes of the applications began */
    struct asym_task *tasks; /* copies of the inner source's, which may be changed */
    struct asym_app *out_apps;
    size_t tasks_capacity, out_apps_capacity;
    enum asym_bpf_hears hears;  /* as asym_bpf_set() */
    bool has_changed;           /* another thread is alone than in the last snapshot */
    bool is_full;               /* the kernel had no place for a process of the last full snapshot */
    unsigned orders, evictions; /* processes that this snapshot may still follow; and leave, to make room */
    struct asym_taskid hidden;  /* the last process of which the kernel's walk met no thread */
    asym_usec hidden_until;     /* no order is given for it before that: each takes 20 us */
    bool refresh;               /* the next snapshot is the last one again */
    bool is_answer;   /* the next snapshot answers events of asym_bpf_take(): of the applications that are new */
    bool is_sampling; /* the inner source has not completed its sample */
};

static inline struct asym_bpf *asym_bpf_of(const struct asym_source *source)
{
    return (struct asym_bpf *)(void *)((const char *)source - offsetof(struct asym_bpf, source));
}

/* bpf-places.c: who is followed, and for which user. */

/** Returns NULL if the process is not followed. */
struct asym_bpf_proc *asym_bpf_proc_of(const struct asym_bpf *b, int32_t tgid);
/** Follow the applications of several threads that a full snapshot lists, and leave those that have ended, rest or sleep. */
void asym_bpf_follow_all(struct asym_bpf *b, const struct asym_snapshot *s);

#endif
