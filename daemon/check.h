/* SPDX-License-Identifier: GPL-2.0-or-later */
/** asymd --check: what this machine offers and lacks, one line each with the remedy. */
#ifndef ASYM_DAEMON_CHECK_H
#define ASYM_DAEMON_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "linux/facts.h"

struct asym_check_line {
    const char *name; /**< static */
    struct asym_fact fact;
};

/** Zero-initialised, it holds nothing. */
struct asym_check {
    struct asym_check_line *lines; /**< owned */
    size_t n, capacity;
    bool can_run;          /**< the configured policy can run here */
    char verdict[400];     /**< what asymd can do for this machine, in a sentence */
    const char *situation; /**< its short name; static */
};

/** A line; texts that are too long are cut. 0; -ENOMEM. */
int asym_check_add(struct asym_check *check, const char *name, enum asym_fact_level level, const char *remedy,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));

/** What lib/linux/facts.h knows. 0; -ENOMEM. */
int asym_check_add_facts(struct asym_check *check, const struct asym_root *root);

/** The verdict, then the lines. At most 100 columns wide; escape sequences only with colour. 0; -EIO. */
int asym_check_text(const struct asym_check *check, FILE *out, bool colour);

/** { "schema": "asymd.check/1", "verdict", "situation", "lines": [ { "name", "level", "text", "remedy" } ], "can_run" }. 0; -ENOMEM, -EIO. */
int asym_check_json(const struct asym_check *check, FILE *out);

void asym_check_done(struct asym_check *check);

#endif
