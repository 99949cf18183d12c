/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * How often asymd may react between two looks: within a share of its CPU budget, saved up to a limit, so that a program that
 * tells of its phases all the time costs no more than that. Pure.
 */
#ifndef ASYM_DAEMON_PROMPT_H
#define ASYM_DAEMON_PROMPT_H

#include <stdbool.h>

#include <asym/types.h>

/** What may be saved up, in microseconds of CPU time. */
#define ASYM_PROMPT_SAVED_MAX 20000.0

/** The share of the CPU budget that goes to reactions. */
#define ASYM_PROMPT_SHARE 0.5

struct asym_prompt {
    double saved; /**< microseconds of CPU time; below 0: overspent */
    asym_usec last;
};

/** With all that may be saved. */
void asym_prompt_init(struct asym_prompt *p, asym_usec now);

/** May asymd react now? percent: its budget, of one CPU. */
bool asym_prompt_may(struct asym_prompt *p, double percent, asym_usec now);

/** It has, and that took so much CPU time. */
void asym_prompt_spend(struct asym_prompt *p, asym_usec cpu);

#endif
