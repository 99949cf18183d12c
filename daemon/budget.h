/* SPDX-License-Identifier: GPL-2.0-or-later */
/** asymd's own share of a CPU: the interval is lengthened while it is above the budget (architecture.md, 7). Pure. */
#ifndef ASYM_DAEMON_BUDGET_H
#define ASYM_DAEMON_BUDGET_H

#include <stdbool.h>

#include <asym/types.h>

/** The budget never stretches the interval beyond this many times the configured one. */
#define ASYM_BUDGET_STRETCH_MAX 20.0

struct asym_budget {
    double stretch;       /**< interval in force / interval configured: >= 1 */
    double percent;       /**< of one CPU, in the last period, with what has a budget of its own; 0 before the first */
    bool told;            /**< the last news was that it is exceeded */
    asym_usec calm_since; /**< since then the interval has been the configured one; 0: it is not */
    asym_usec last_now, last_cpu, last_apart;
};

/** now: monotonic; cpu: CPU time used so far. */
void asym_budget_init(struct asym_budget *b, asym_usec now, asym_usec cpu);

/** The budget has to be kept for so long before that is news: load that comes and goes is not to fill the log. */
#define ASYM_BUDGET_CALM (60 * ASYM_SEC)

enum asym_budget_news { ASYM_BUDGET_SAME, ASYM_BUDGET_EXCEEDED, ASYM_BUDGET_KEPT_AGAIN };

/**
 * A period is over: now and cpu as above, later than before. percent_allowed: of one CPU, above 0. apart: what of cpu has a
 * budget of its own (linux/rtx-server.h) and lengthens nothing: looking is not to be put off by those who are answered between
 * looks.
 */
enum asym_budget_news asym_budget_update(struct asym_budget *b, double percent_allowed, asym_usec now, asym_usec cpu,
                                         asym_usec apart);

#endif
