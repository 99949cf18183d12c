/* SPDX-License-Identifier: GPL-2.0-or-later */
/** An event of the proc connector. */
#ifndef ASYM_LINUX_OBSERVE_PROCESS_EVENT_H
#define ASYM_LINUX_OBSERVE_PROCESS_EVENT_H

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

#endif
