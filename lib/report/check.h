/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The report of asymd --check: one line for each thing that this machine offers or lacks, with a remedy. */
#ifndef ASYM_REPORT_CHECK_H
#define ASYM_REPORT_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "linux/check/machine-facts.h"
#include "linux/check/rivals.h"
#include "report/columns.h"

struct asym_check_line {
    const char *name; /**< static */
    struct asym_fact fact;
};

/** The report. All zero: it has no lines. */
struct asym_check {
    struct asym_check_line *lines; /**< owned */
    size_t n, capacity;
    int error;             /**< 0; -ENOMEM: lines are missing */
    bool can_run;          /**< the configured policy can run here */
    char verdict[400];     /**< one sentence: what asymd can do for this machine */
    const char *situation; /**< the short name of the verdict; static */
};

/** Add a line. Cuts texts that are too long. Without memory sets check->error. */
void asym_check_add(struct asym_check *check, const char *name, enum asym_fact_level level, const char *remedy,
                    const char *format, ...) __attribute__((format(printf, 5, 6)));

/** Add this line; name: static. ctx: the report. For asym_facts_each() and asym_rivals_each(). Returns 0; -ENOMEM. */
int asym_check_add_fact(void *ctx, const char *name, const struct asym_fact *fact);

/** Print the verdict, then the lines. Returns 0; -EIO. */
int asym_check_text(const struct asym_check *check, const struct asym_terminal *terminal);

/**
 * Print { "schema": "asymd.check/1", "verdict", "situation", "lines": [ { "name", "level", "text", "remedy" } ], "can_run" }.
 * Returns 0; -ENOMEM, -EIO.
 */
int asym_check_json(const struct asym_check *check, FILE *out);

void asym_check_done(struct asym_check *check);

#endif
