/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Times and sizes as people read them. Each function returns buf, of ASYM_UNITS_SIZE bytes. */
#ifndef ASYM_DAEMON_ASYMCTL_UNITS_H
#define ASYM_DAEMON_ASYMCTL_UNITS_H

#include <stdint.h>

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

#endif
