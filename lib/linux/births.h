/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Births and deaths of processes and threads, from the proc connector (NETLINK_CONNECTOR).
 *
 * One reader at a time takes events off the socket: the thread that asym_births_watch starts or, where none was
 * started, the caller of asym_births_drain. 1.2 to 2.3 us per event when drained in batches (measured).
 */
#ifndef ASYM_LINUX_BIRTHS_H
#define ASYM_LINUX_BIRTHS_H

#include <stdbool.h>
#include <stdint.h>

#include <asym/error.h>
#include <asym/types.h>

enum asym_birth_kind {
    ASYM_BIRTH_PROCESS, /* pid == tgid is new; parent_* created it */
    ASYM_BIRTH_THREAD, /* pid is a new thread of tgid == parent_tgid; which one created it the kernel does not say: parent_pid 0 */
    ASYM_BIRTH_EXEC,
    ASYM_BIRTH_EXIT, /* a thread, or with pid == tgid the leader */
    ASYM_BIRTH_LOST, /* events were lost: scan everything anew */
};

struct asym_birth {
    enum asym_birth_kind kind;
    int32_t pid, tgid;
    int32_t parent_pid, parent_tgid; /* of births; 0 otherwise */
    asym_usec when;                  /* CLOCK_MONOTONIC */
};

struct asym_births;

/**
 * Subscribe. The socket's buffer is forced to 8 MiB (the default holds 256 events).
 * Returns 0; -EPERM (CAP_NET_ADMIN, or not the initial user namespace), -EPROTONOSUPPORT (no CONFIG_PROC_EVENTS),
 * -EXDEV (inside a PID namespace, where the numbers do not match); err says which and what is done instead.
 */
int asym_births_open(struct asym_births **ret_births, struct asym_error *err);

/** Stops the watching thread, if any, and frees. NULL is accepted. */
void asym_births_close(struct asym_births *b);

/**
 * Start a thread that takes each event as it comes, calls hook(ctx, event) at once, and keeps it for the next drain.
 * Its priority is real-time (SCHED_FIFO 1, reset on fork) where permitted; *ret_realtime says whether it is.
 * What it keeps is bounded; beyond it drain reports LOST.
 */
int asym_births_watch(struct asym_births *b, void (*hook)(void *ctx, const struct asym_birth *event), void *ctx,
                      bool *ret_realtime);

/**
 * What the watching thread may cost in the long run, in percent of one CPU; 2 where this was never called. A thread that costs
 * more has no real-time priority and sleeps between events, until it costs less: children are repaired later then, and events
 * may be lost.
 */
void asym_births_limit(struct asym_births *b, double percent);

/** CPU time of the watching thread so far; 0: there is none. */
asym_usec asym_births_spent(const struct asym_births *b);

/** Call fn for every event since the last call, in order. Never blocks. Returns how many; -errno: no more will come. */
int asym_births_drain(struct asym_births *b, void (*fn)(void *ctx, const struct asym_birth *event), void *ctx);

#endif
