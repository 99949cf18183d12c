/* SPDX-License-Identifier: GPL-2.0-or-later */
/** One datagram of the proc connector to an event. */
#ifndef ASYM_LINUX_BIRTHS_PARSE_H
#define ASYM_LINUX_BIRTHS_PARSE_H

#include <stddef.h>

#include "linux/births.h"

/** 0; -EINVAL for what is too short or not the connector's; -ENOMSG for an event that nobody asks for. */
int asym_births_parse(const void *datagram, size_t len, struct asym_birth *ret);

#endif
