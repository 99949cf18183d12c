/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Converts a datagram of the proc connector to an event. */
#ifndef ASYM_LINUX_OBSERVE_PROCESS_EVENTS_PARSE_H
#define ASYM_LINUX_OBSERVE_PROCESS_EVENTS_PARSE_H

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

/** 0; -EINVAL: the datagram is too short or not from the proc connector; -ENOMSG: asymd does not use events of this kind. */
int asym_process_events_parse(const void *datagram, size_t len, struct asym_process_event *ret);

/**
 * Parse the kernel's answer to the subscription that had the number asked in its field ack. The kernel answers with asked + 1
 * in that field, and with a sequence number of its own. *ret_status: 0 or an errno.
 * Returns 0; -EINVAL: as above; -ENOMSG: the datagram is another event.
 */
int asym_process_events_parse_answer(const void *datagram, size_t len, uint32_t asked, int *ret_status);

#endif
