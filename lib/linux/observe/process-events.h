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
#include <stdint.h>

#include <asym/error.h>
#include <asym/types.h>

#include "linux/observe/process-events-parse.h"

struct asym_process_events;

/**
 * Subscribe. The socket's buffer is set to 8 MiB (the default holds 256 events).
 * Returns 0; -EPERM (CAP_NET_ADMIN is missing, or this is not the initial user namespace), -EPROTONOSUPPORT (the kernel lacks
 * CONFIG_PROC_EVENTS), -EXDEV (in a child PID namespace the PIDs do not match), -errno. err has the reason and says that asymd
 * scans /proc instead.
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

#endif
