/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The CPU time of asymd itself: the CPUs where it runs, and how much it may use. */
#ifndef ASYM_APP_OWN_CPU_TIME_H
#define ASYM_APP_OWN_CPU_TIME_H

#include <stdbool.h>

#include <asym/machine.h>
#include <asym/plan.h>
#include <asym/snapshot.h>
#include <asym/types.h>

struct asym_self_affinity {
    struct asym_mask own; /**< the mask with which asymd was started (CPUAffinity=); asymd stays within it */
    struct asym_mask set; /**< the mask that asymd set last */
};

/**
 * Choose CPUs for asymd among the online CPUs of own: the slow CPUs that no thread has to itself, without the CPUs of threads
 * that ran at the sample and were runnable for half of the interval or more; if there are none, the slow CPUs that no thread
 * has to itself; if there are none, all CPUs that no thread has to itself; if there are none, the slow CPUs; else own. asymd's
 * own threads do not count. plan: of the snapshot; NULL before the first plan. Pure.
 */
struct asym_mask asym_self_affinity_choose(const struct asym_mask *own, const struct asym_machine *m,
                                           const struct asym_snapshot *snapshot, const struct asym_plan *plan);

/** Record the mask of the calling thread in a->own. Returns 0; -errno: asym_self_affinity_update then moves nothing. */
int asym_self_affinity_init(struct asym_self_affinity *a);

/** Choose again, and move the calling thread if the choice has changed. */
void asym_self_affinity_update(struct asym_self_affinity *a, const struct asym_machine *m,
                               const struct asym_snapshot *snapshot, const struct asym_plan *plan);

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
