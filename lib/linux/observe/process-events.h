/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Fork, exec and exit events of processes and threads, from the kernel's proc connector (NETLINK_CONNECTOR).
 *
 * One reader receives events from the socket: the thread that asym_process_events_watch starts or, without it, the caller of
 * asym_process_events_drain. In batches an event costs 1.2 to 2.3 us (measured).
 */
#ifndef ASYM_LINUX_OBSERVE_PROCESS_EVENTS_H
#define ASYM_LINUX_OBSERVE_PROCESS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

enum asym_process_event_kind {
    ASYM_PROCESS_EVENT_FORK, /* process pid == tgid is new; parent_* created it */
    /* Thread pid of tgid == parent_tgid is new. parent_pid is 0, as the kernel does not report which thread created it. */
    ASYM_PROCESS_EVENT_CLONE,
    ASYM_PROCESS_EVENT_EXEC,
    ASYM_PROCESS_EVENT_EXIT, /* a thread has ended; pid == tgid: the leader */
    ASYM_PROCESS_EVENT_LOST, /* events were lost: scan /proc again */
};

struct asym_process_event {
    enum asym_process_event_kind kind;
    int32_t pid, tgid;
    int32_t parent_pid, parent_tgid; /* for FORK and CLONE; else 0 */
    asym_usec when;                  /* CLOCK_MONOTONIC, us */
};

struct asym_process_events;

/**
 * Subscribe. The socket's buffer is set to 8 MiB (the default holds 256 events).
 * Returns 0; -EPERM (CAP_NET_ADMIN is missing, or this is not the initial user or network namespace), -EPROTONOSUPPORT (the
 * kernel lacks CONFIG_PROC_EVENTS), -EXDEV (in a child PID namespace the PIDs do not match), -errno. err has the reason and says
 * that asymd scans /proc instead.
 */
int asym_process_events_open(struct asym_process_events **ret_events, struct asym_error *err);

/** Stop the watching thread, if any, and free b. b may be NULL. */
void asym_process_events_close(struct asym_process_events *b);

/**
 * Start a thread that receives each event at once, calls hook(ctx, event), and keeps the event for the next drain.
 * Where permitted, it has real-time priority (SCHED_FIFO 1, reset on fork); *ret_realtime says whether it has.
 * It keeps a bounded number of events; when there are more, drain reports LOST. Returns 0; -errno.
 */
int asym_process_events_watch(struct asym_process_events *b,
                              void (*hook)(void *ctx, const struct asym_process_event *event), void *ctx,
                              bool *ret_realtime);

/**
 * Limit the CPU time of the watching thread, in percent of one CPU in the long run. The default is 2. Above the limit, the
 * thread gives up its real-time priority and sleeps between events: asymd then repairs the affinity of children later, and
 * events may be lost. It wakes up four times a second at least, even where that costs more than the limit.
 */
void asym_process_events_limit(struct asym_process_events *b, double percent);

/** Returns the CPU time of the watching thread so far, in us; 0 without one. */
asym_usec asym_process_events_spent(const struct asym_process_events *b);

/**
 * Call fn for every event since the last call, in order. Never blocks. Returns the number of events; -errno: no more will
 * come.
 */
int asym_process_events_drain(struct asym_process_events *b,
                              void (*fn)(void *ctx, const struct asym_process_event *event), void *ctx);

/**
 * Call fn for every event that the watching thread has kept for the next drain, but for those of an earlier peek, in order. fn must
 * be short: that thread waits.
 */
void asym_process_events_peek(struct asym_process_events *b,
                              void (*fn)(void *ctx, const struct asym_process_event *event), void *ctx);

/* Parsers of the datagrams, for process-events.c and its tests. */

/** 0; -EINVAL: the datagram is too short or not from the proc connector; -ENOMSG: asymd does not use events of this kind. */
int asym_process_events_parse(const void *datagram, size_t len, struct asym_process_event *ret);

/**
 * Parse the kernel's answer to the subscription that had the number asked in its field ack. The kernel answers with asked + 1
 * in that field, and with a sequence number of its own. *ret_status: 0 or an errno.
 * Returns 0; -EINVAL: as above; -ENOMSG: the datagram is another event.
 */
int asym_process_events_parse_answer(const void *datagram, size_t len, uint32_t asked, int *ret_status);

#endif
