/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The parts of a line about a decision of asymd, in the answers of asymctl why and asymctl watch. */
#ifndef ASYM_DAEMON_ASYMCTL_DECISION_TEXT_H
#define ASYM_DAEMON_ASYMCTL_DECISION_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum { ASYM_DECISION_CPUS = 32 };

/** The headings above the CPUs and the rest. They are as wide as the parts below. */
#define ASYM_DECISION_HEADINGS "  CPU    WHAT (WHY)"

/** Write "  4->0  ", the CPU before and after; "-": none. At least 8 columns. Returns buf. */
const char *asym_decision_cpus(int32_t from, int32_t to, char buf[ASYM_DECISION_CPUS]);

/** Write "steer (parallel: a spare fast CPU)", in printable characters. Without a reason: "repair". Returns buf. */
const char *asym_decision_what(const char *what, const char *reason, char *buf, size_t size);

#endif
