/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/cycle.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/macro.h"

int asym_cycle_init(struct asym_cycle *c, const struct asym_engine_config *config, struct asym_source *source,
                    struct asym_actuator *actuator)
{
    *c = (struct asym_cycle){.source = source, .actuator = actuator};
    return asym_engine_new(config, &c->engine);
}

void asym_cycle_done(struct asym_cycle *c)
{
    asym_engine_free(c->engine);
    free(c->outcomes);
    *c = (struct asym_cycle){0};
}

int asym_cycle_plan(struct asym_cycle *c)
{
    const asym_usec begin = asym_clock_thread_cpu();
    int r = c->source->next(c->source, &c->snapshot);
    const asym_usec observed = asym_clock_thread_cpu();
    c->source_cpu += observed - begin;
    if (r <= 0)
        return r;
    c->n_cycles++;
    r = asym_engine_step(c->engine, &c->snapshot, &c->plan, &c->actions, &c->n_actions);
    c->plan_cpu += asym_clock_thread_cpu() - observed;
    return r < 0 ? r : 1;
}

asym_usec asym_cycle_wait(const struct asym_cycle *c, asym_usec interval)
{
    const asym_usec again = asym_engine_again(c->engine);
    return again != 0 ? ASYM_MIN(again, interval) : interval;
}

int asym_cycle_apply(struct asym_cycle *c)
{
    int r = 0;
    if (c->n_actions > 0)
        r = asym_grow(&c->outcomes, c->n_actions - 1, &c->n_outcomes_max, sizeof *c->outcomes);
    c->has_outcomes = r >= 0;
    if (r < 0)
        return r;
    r = c->actuator->apply(c->actuator, c->actions, c->n_actions, c->outcomes);
    asym_engine_outcomes(c->engine, c->outcomes, c->n_actions);
    return r;
}

struct asym_feedback asym_cycle_result(const struct asym_cycle *c)
{
    return (struct asym_feedback){
        .snapshot = &c->snapshot,
        .plan = c->plan,
        .actions = c->actions,
        .outcomes = c->outcomes,
        .n_actions = c->n_actions,
    };
}

void asym_cycle_feedback(struct asym_cycle *c)
{
    const struct asym_feedback feedback = asym_cycle_result(c);
    asym_source_feedback(c->source, &feedback);
}

int asym_cycle_enforce(struct asym_cycle *c)
{
    const int r = asym_cycle_apply(c);
    if (c->has_outcomes)
        asym_cycle_feedback(c);
    return r;
}

static int dry_apply(struct asym_actuator *actuator, const struct asym_action *actions, size_t n,
                     struct asym_outcome *ret_outcomes)
{
    for (size_t i = 0; i < n; i++)
        ret_outcomes[i] = (struct asym_outcome){.kind = ASYM_OUTCOME_RETRY, .error = -ECANCELED};
    return 0;
}

static void dry_close(struct asym_actuator *actuator)
{
}

struct asym_actuator *asym_actuator_dry(void)
{
    static struct asym_actuator dry = {.apply = dry_apply, .close = dry_close};
    return &dry;
}
