/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The critical time of threads. All threads of a team that are runnable at one time gain the same, so the team keeps the sum. */
#include "sim/sim-internal.h"

static struct sim_team *team_of(const struct asym_sim *s, uint32_t thread)
{
    const struct sim_proc *p = &s->procs[s->threads[thread].proc];
    const bool is_job = s->scenario->programs[p->program].job;
    return is_job ? &s->procs[s->programs[p->program].first_proc].team : &s->procs[s->threads[thread].proc].team;
}

static void bring_up_to_date(const struct asym_sim *s, struct sim_team *team)
{
    if (team->n > 0)
        team->sum += (double)(s->now - team->since) / team->n;
    team->since = s->now;
}

static bool is_runnable(enum sim_state state)
{
    return state == SIM_RUNNING || state == SIM_QUEUED;
}

void sim_set_state(struct asym_sim *s, uint32_t thread, enum sim_state state)
{
    struct sim_thread *t = &s->threads[thread];
    const bool was = is_runnable((enum sim_state)t->state), is = is_runnable(state);
    t->state = (uint8_t)state;
    if (!s->criticals || was == is)
        return;
    struct sim_critical *c = &s->criticals[thread];
    struct sim_team *team = team_of(s, thread);
    bring_up_to_date(s, team);
    if (is)
        c->from = team->sum;
    else
        c->total += team->sum - c->from;
    team->n = is ? team->n + 1 : team->n - 1;
}

double sim_take_critical(struct asym_sim *s, uint32_t thread)
{
    if (!s->criticals)
        return 0;
    struct sim_critical *c = &s->criticals[thread];
    struct sim_team *team = team_of(s, thread);
    bring_up_to_date(s, team);
    const double total = c->total + (is_runnable((enum sim_state)s->threads[thread].state) ? team->sum - c->from : 0);
    const double taken = total - c->then;
    c->then = total;
    return taken;
}
