/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Converts a datagram of the proc connector to an event. */
#ifndef ASYM_LINUX_OBSERVE_PROCESS_EVENTS_PARSE_H
#define ASYM_LINUX_OBSERVE_PROCESS_EVENTS_PARSE_H

#include <stddef.h>
#include <stdint.h>

#include "linux/observe/process-event.h"

/** 0; -EINVAL: the datagram is too short or not from the proc connector; -ENOMSG: asymd does not use events of this kind. */
int asym_process_events_parse(const void *datagram, size_t len, struct asym_process_event *ret);

/**
 * Parse the kernel's answer to the subscription that had the number asked in its field ack. The kernel answers with asked + 1
 * in that field, and with a sequence number of its own. *ret_status: 0 or an errno.
 * Returns 0; -EINVAL: as above; -ENOMSG: the datagram is another event.
 */
int asym_process_events_parse_answer(const void *datagram, size_t len, uint32_t asked, int *ret_status);

#endif
