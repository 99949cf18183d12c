/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Lengthens the time between samples while asymd uses more CPU time than its budget (docs/policies.md, Budget). Pure. */
#ifndef ASYM_APP_BUDGET_H
#define ASYM_APP_BUDGET_H

#include <stdbool.h>

#include <asym/types.h>

/** The longest interval, as a multiple of the configured one. */
#define ASYM_BUDGET_STRETCH_MAX 20.0

struct asym_budget {
    asym_usec least;      /**< the shortest time between samples that the budget affords; 0: any */
    unsigned n_samples;   /**< of this period */
    double percent;       /**< CPU time of the last period in percent of one CPU, the part apart included; 0 at first */
    bool reported;        /**< the last change reported was ASYM_BUDGET_EXCEEDED */
    asym_usec calm_since; /**< the time since which the budget affords the configured interval; 0: it does not now */
    asym_usec last_now, last_cpu, last_apart;
};

/** Start the first period. now: monotonic time; cpu: CPU time that asymd has used so far; both in microseconds. */
void asym_budget_init(struct asym_budget *b, asym_usec now, asym_usec cpu);

/** Returns the time until the next sample, which is wanted after that time. Call it once a sample. */
asym_usec asym_budget_wait(struct asym_budget *b, asym_usec wanted);

/** asymd must keep the budget for this long before ASYM_BUDGET_KEPT_AGAIN: a changing load must not fill the log. */
#define ASYM_BUDGET_CALM (60 * ASYM_SEC)

enum asym_budget_change { ASYM_BUDGET_SAME, ASYM_BUDGET_EXCEEDED, ASYM_BUDGET_KEPT_AGAIN };

/**
 * End a period and adapt least, which lengthens early samples (policy.h, again) before the configured interval. now and cpu: as
 * above; if now is not later than before, nothing changes. percent_allowed: the budget in percent of one CPU, above 0. apart: the
 * part of cpu that has a budget of its own (linux/rtx/rtx-server.h). This part does not lengthen the interval: a program that
 * reports its threads must not delay samples. Returns the change of the configured interval that the caller should log.
 */
enum asym_budget_change asym_budget_update(struct asym_budget *b, double percent_allowed, asym_usec interval,
                                           asym_usec now, asym_usec cpu, asym_usec apart);

#endif
