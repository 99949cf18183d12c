/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/cycle.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/macro.h"
#include "linux/monitor.h"
#include "linux/procfs.h"

static asym_usec thread_cpu_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (asym_usec)t.tv_sec * ASYM_SEC + (asym_usec)t.tv_nsec / 1000;
}

void asym_cycle_done(struct asym_cycle *c)
{
    free(c->outcomes);
    *c = (struct asym_cycle){0};
}

static int reserve_outcomes(struct asym_cycle *c)
{
    if (c->n_actions <= c->n_outcomes_max)
        return 0;
    size_t n = ASYM_MAX(c->n_actions, c->n_outcomes_max * 2);
    struct asym_outcome *grown = reallocarray(c->outcomes, n, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    c->outcomes = grown;
    c->n_outcomes_max = n;
    return 0;
}

int asym_cycle_plan(struct asym_cycle *c)
{
    asym_usec before = thread_cpu_time();
    int r = c->source->next(c->source, &c->snapshot);
    c->source_cpu += thread_cpu_time() - before;
    if (r <= 0)
        return r;
    c->n_turns++;
    before = thread_cpu_time();
    r = asym_engine_step(c->engine, &c->snapshot, &c->plan, &c->actions, &c->n_actions);
    c->plan_cpu += thread_cpu_time() - before;
    return r < 0 ? r : 1;
}

int asym_cycle_enforce(struct asym_cycle *c)
{
    int r = reserve_outcomes(c);
    if (r < 0)
        return r;
    r = c->actuator->apply(c->actuator, c->actions, c->n_actions, c->outcomes);
    asym_engine_outcomes(c->engine, c->outcomes, c->n_actions);
    if (c->procfs)
        asym_procfs_done(c->procfs, c->actions, c->outcomes, c->n_actions);
    /* Last: whom it counts is where the plan wants it by now. */
    if (c->monitor)
        asym_monitor_follow(c->monitor, &c->snapshot, c->plan);
    return r;
}

static int dry_apply(struct asym_actuator *actuator, const struct asym_action *actions, size_t n,
                     struct asym_outcome *ret_outcomes)
{
    (void)actuator;
    (void)actions;
    for (size_t i = 0; i < n; i++)
        ret_outcomes[i] = (struct asym_outcome){.verdict = ASYM_VERDICT_RETRY, .error = -ECANCELED};
    return 0;
}

static void dry_close(struct asym_actuator *actuator)
{
    free(actuator);
}

int asym_actuator_dry_new(struct asym_actuator **ret_actuator)
{
    struct asym_actuator *a = malloc(sizeof *a);
    if (!a)
        return -ENOMEM;
    *a = (struct asym_actuator){.apply = dry_apply, .close = dry_close};
    *ret_actuator = a;
    return 0;
}
