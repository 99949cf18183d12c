/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Lengthens the interval while asymd uses more CPU time than its budget (docs/policies.md, Budget). Pure. */
#ifndef ASYM_APP_BUDGET_H
#define ASYM_APP_BUDGET_H

#include <stdbool.h>

#include <asym/types.h>

/** The longest interval, as a multiple of the configured one. */
#define ASYM_BUDGET_STRETCH_MAX 20.0

struct asym_budget {
    double stretch;       /**< the interval in use / the configured interval: >= 1 */
    double percent;       /**< CPU time of the last period in percent of one CPU, the part apart included; 0 at first */
    bool reported;        /**< the last change reported was ASYM_BUDGET_EXCEEDED */
    asym_usec calm_since; /**< the time since which the interval is the configured one; 0: it is longer now */
    asym_usec last_now, last_cpu, last_apart;
};

/** Start the first period. now: monotonic time; cpu: CPU time that asymd has used so far; both in microseconds. */
void asym_budget_init(struct asym_budget *b, asym_usec now, asym_usec cpu);

/** asymd must keep the budget for this long before ASYM_BUDGET_KEPT_AGAIN: a changing load must not fill the log. */
#define ASYM_BUDGET_CALM (60 * ASYM_SEC)

enum asym_budget_change { ASYM_BUDGET_SAME, ASYM_BUDGET_EXCEEDED, ASYM_BUDGET_KEPT_AGAIN };

/**
 * End a period and adapt stretch. now and cpu: as above; if now is not later than before, nothing changes. percent_allowed: the
 * budget in percent of one CPU, above 0. apart: the part of cpu that has a budget of its own (linux/rtx/rtx-server.h). This part
 * does not lengthen the interval: a program that reports its threads must not delay samples. Returns the change that the caller
 * should log.
 */
enum asym_budget_change asym_budget_update(struct asym_budget *b, double percent_allowed, asym_usec now, asym_usec cpu,
                                           asym_usec apart);

#endif
