/* SPDX-License-Identifier: GPL-2.0-or-later */
/** How asymctl writes times, users and decisions. */
#ifndef ASYM_DAEMON_ASYMCTL_WORDING_H
#define ASYM_DAEMON_ASYMCTL_WORDING_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <asym/types.h>

#define ASYM_UNITS_SIZE 40

/** "100 ms", "12 s", "5 min", "1 h 12 min", "3 d 4 h": the two largest units, rounded down. */
const char *asym_units_duration(asym_usec t, char *buf);

/** "512 B", "4.1 MiB". */
const char *asym_units_bytes(uint64_t bytes, char *buf);

/** A time of day (CLOCK_REALTIME) here: "2026-11-22 17:03:12". */
const char *asym_units_date(asym_usec t, char *buf);

/** The same without the date and with milliseconds: "17:03:12.250". */
const char *asym_units_time_ms(asym_usec t, char *buf);

/** Copy a reason for the policy: "set by uid 0 over the bus" becomes "set by root (uid 0) over the bus". Returns buf. */
const char *asym_name_user_of_policy(const char *reason, char *buf, size_t size);

/** Write a text of a report in printable characters. Returns buf. */
const char *asym_name_member(const json_t *object, const char *key, char *buf, size_t size);

enum { ASYM_POLICY_NAMED = 2300 };

/** Write the policy of a status, and its reason, in printable characters: "pa (set by root (uid 0) over the bus)". Returns buf. */
const char *asym_name_policy(const json_t *status, char buf[ASYM_POLICY_NAMED]);

/** Copy a sentence of asymctl why: "A rule that uid 0 has set" becomes "A rule that root (uid 0) has set". Returns buf. */
const char *asym_name_user_of_rule(const char *sentence, char *buf, size_t size);

/** Write the name of an application of a report, and the number of its processes if there are several: "make, 9 processes". */
const char *asym_name_app(const json_t *app, char *buf, size_t size);

enum { ASYM_DECISION_CPUS = 32 };

/** The headings above the CPUs and the rest. They are as wide as the parts below. */
#define ASYM_DECISION_HEADINGS "  CPU    WHAT (WHY)"

/** Write "  4->0  ", the CPU before and after a decision; "-": none. At least 8 columns. Returns buf. */
const char *asym_decision_cpus(const json_t *decision, char buf[ASYM_DECISION_CPUS]);

/** Write "steer (parallel: a spare fast CPU)", in printable characters. Without a reason: "repair". Returns buf. */
const char *asym_decision_what(const json_t *decision, char *buf, size_t size);

#endif
