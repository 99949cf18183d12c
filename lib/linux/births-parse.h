/* SPDX-License-Identifier: GPL-2.0-or-later */
/** One datagram of the proc connector to an event. */
#ifndef ASYM_LINUX_BIRTHS_PARSE_H
#define ASYM_LINUX_BIRTHS_PARSE_H

#include <stddef.h>

#include "linux/births.h"

/** 0; -EINVAL for what is too short or not the connector's; -ENOMSG for an event that nobody asks for. */
int asym_births_parse(const void *datagram, size_t len, struct asym_birth *ret);

/**
 * The kernel's answer to the subscription whose ack was asked: it counts one up, and numbers the message itself.
 * *ret_status 0 or an errno. 0; -EINVAL, -ENOMSG for another.
 */
int asym_births_parse_answer(const void *datagram, size_t len, uint32_t asked, int *ret_status);

#endif
