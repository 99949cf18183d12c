/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The BPF programs that see each change of a followed thread between running, waiting for a CPU and sleeping (phases.bpf.c): how
 * long each was in which state, how many threads of an application are runnable, and the moment at which only one is.
 *
 * Only applications that are followed have a state in the kernel. For all other threads the programs find out that they are not
 * followed, and end. Nothing is pinned: the programs go with the descriptors of this process.
 */
#ifndef ASYM_LINUX_OBSERVE_PHASES_KERNEL_H
#define ASYM_LINUX_OBSERVE_PHASES_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

#include "linux/observe/phases-list.h"

/**
 * Marks a function that a build without BPF programs (clang, bpftool or libbpf was missing) does not have. None is called there:
 * asym_phases_open() fails.
 */
#ifdef ASYM_NO_BPF
#define ASYM_BPF_ONLY __attribute__((weak))
#else
#define ASYM_BPF_ONLY
#endif

/** Limits of events, for each application. The programs of all later events obey them. */
struct asym_phases_limits {
    asym_usec gap;    /**< a program whose serial phases begin more often than this in the mean flickers */
    asym_usec settle; /**< how long one thread alone must have been runnable in a program that flickers */
    uint32_t rate;    /**< most events a second in the mean, 0: none; those of a quarter of a second may come at once */
    bool quiet_ends;  /**< a PARALLEL alone does not make the descriptor readable */
};

/** Kinds of events. A thread is named by its tid in this PID namespace. */
enum asym_phases_kind {
    ASYM_PHASES_SERIAL,   /**< one thread of the application is runnable: tid */
    ASYM_PHASES_PARALLEL, /**< the serial phase that was told has ended: a second thread is runnable */
    ASYM_PHASES_LOST,     /**< events before this one are lost: list all again */
};

struct asym_phases_event {
    enum asym_phases_kind kind;
    uint32_t app;        /**< as in asym_phases_follow() */
    int32_t tid;         /**< SERIAL: the thread; else 0 */
    uint64_t changed_ns; /**< CLOCK_MONOTONIC time of the change */
};

/** Load and attach the programs. Returns 0; -errno with err, a sentence that says what is missing (rights, BTF, the verifier). */
int asym_phases_open(const struct asym_phases_limits *limits, struct asym_phases **ret, struct asym_error *err);

/** Accepts NULL. */
ASYM_BPF_ONLY void asym_phases_close(struct asym_phases *p);

ASYM_BPF_ONLY void asym_phases_set(struct asym_phases *p, const struct asym_phases_limits *limits);

/**
 * Follow a process as part of application app, 1..ASYM_PHASES_APPS: all threads that it has and will have. A process that
 * is followed already moves to app. Returns 0; -ESRCH: it has ended; -ENOSPC: no place is left, and the process is not followed;
 * -errno.
 */
ASYM_BPF_ONLY int asym_phases_follow(struct asym_phases *p, int32_t tgid, uint32_t app);

/** Follow it no more. Does nothing for a process that is not followed. Returns 0; -errno: its threads may still be followed. */
ASYM_BPF_ONLY int asym_phases_unfollow(struct asym_phases *p, int32_t tgid);

enum { ASYM_PHASES_APPS = 1023, ASYM_PHASES_THREADS = 8191 };

/** Readable when events are there. */
ASYM_BPF_ONLY int asym_phases_fd(const struct asym_phases *p);

/** Call fn for each event that is there, oldest first. Another thread may call it than calls the rest. */
ASYM_BPF_ONLY void asym_phases_take(struct asym_phases *p, void (*fn)(void *ctx, const struct asym_phases_event *e),
                                    void *ctx);

/** Returns whether none has got it since doze() returned true, and no other interval has begun. */
ASYM_BPF_ONLY bool asym_phases_dozes(const struct asym_phases *p);

/**
 * Read the followed threads that have changed their state since the last call, and those that are runnable. *ret_slots has the
 * places that were read. *ret_threads has each thread at its place, 1..ASYM_PHASES_THREADS, as it was read last: the others slept
 * on. One system call. Valid until the next call. Returns how many places were read.
 */
ASYM_BPF_ONLY size_t asym_phases_list(struct asym_phases *p, const struct asym_phases_thread **ret_threads,
                                      const uint32_t **ret_slots);

/** Followed threads of the application; app 0: of all, at most ASYM_PHASES_THREADS. */
ASYM_BPF_ONLY uint32_t asym_phases_threads(const struct asym_phases *p, uint32_t app);

/** Tell no serial phase of the application before that time (CLOCK_MONOTONIC). One that lasts until then is told then. */
ASYM_BPF_ONLY void asym_phases_hold(struct asym_phases *p, uint32_t app, asym_usec until);

/** Returns whether the application has threads that are not followed, or not yet: its counts are too low. */
ASYM_BPF_ONLY bool asym_phases_misses(const struct asym_phases *p, uint32_t app);

/**
 * Compare those threads with the kernel's own record whose state has not changed for long, and find the threads that found no
 * place. Call it once a second.
 */
ASYM_BPF_ONLY void asym_phases_reconcile(struct asym_phases *p);

/** The memory by which another BPF program knows who is followed (waits-kernel.h). */
struct asym_phases_maps {
    int tags, shared; /**< descriptors of the maps in phases.bpf.c; borrowed */
    const struct asym_phases_shared *memory;
};

ASYM_BPF_ONLY struct asym_phases_maps asym_phases_maps_of(const struct asym_phases *p);

#endif
