/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * How often somebody may be answered between two looks: within a part of asymd's CPU budget, saved up to a limit, so that a
 * program that tells of its phases all the time costs no more than that, and takes nothing from others. Pure.
 */
#ifndef ASYM_LINUX_RTX_PROMPT_H
#define ASYM_LINUX_RTX_PROMPT_H

#include <stdbool.h>

#include <asym/types.h>

/** What may be saved up by who has all of it, in microseconds of CPU time. */
#define ASYM_PROMPT_SAVED_MAX 20000.0

/** The share of the CPU budget that goes to answers. */
#define ASYM_PROMPT_SHARE 0.5

struct asym_prompt {
    double saved; /**< microseconds of CPU time; below 0: overspent */
    asym_usec last;
};

/** With all that may be saved. */
void asym_prompt_init(struct asym_prompt *p, asym_usec now);

/** May there be an answer now? percent: asymd's budget, of one CPU, at least 0; part: of that, above 0 to 1, what goes here. */
bool asym_prompt_may(struct asym_prompt *p, double percent, double part, asym_usec now);

/** When there may be, with such a budget; that may be never, and is then far away. */
asym_usec asym_prompt_when(const struct asym_prompt *p, double percent, double part);

/** There was, and that took so much CPU time. */
void asym_prompt_spend(struct asym_prompt *p, double cpu);

#endif
