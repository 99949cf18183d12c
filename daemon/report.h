/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The dry run: one plan, for people and as JSON (asymd.plan/1, a promise). */
#ifndef ASYM_DAEMON_REPORT_H
#define ASYM_DAEMON_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include <asym/engine.h>
#include <asym/plan.h>
#include <asym/settings.h>
#include <asym/snapshot.h>

#include "linux/topology.h"

struct asym_report {
    const struct asym_snapshot *snapshot; /* all borrowed */
    const struct asym_plan *plan;
    const struct asym_policy *policy;
    const struct asym_settings *settings;
    const struct asym_topology_notes *notes;
    double observed_ms, scan_cpu_us;
    bool assumed_slow; /* some CPUs are only taken for slow */
};

/** At most this many columns. */
#define ASYM_REPORT_COLUMNS 100

/** 0; -EIO. */
int asym_report_text(const struct asym_report *report, FILE *out, bool colour);
int asym_report_json(const struct asym_report *report, FILE *out);

/** Columns that UTF-8 text takes on a terminal, and the text cut to at most columns, with "..." when it was longer. */
size_t asym_report_width(const char *text);
const char *asym_report_cut(const char *text, size_t columns, char *buf, size_t size);

#endif
