/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The observer bpf: the critical time of threads, and which serial phases asymd is told of, by the rules of phases.bpf.c. Its
 * back-off is left out: it saves timers, which cost nothing here.
 */
#include "base/macro.h"
#include "sim/sim-internal.h"

enum {
    ANSWER_NS = 150000,    /* from the change to the mask: the median on an idle machine (docs/data/phases.md) */
    CALM = 3,              /* so many phases may begin at once after a quiet while (phases-shared.h, as the next) */
    CREDIT_NS = 250000000, /* the rate limit lets the events of this time pass at once */
};

/* Returns the process whose team the thread is in: of a job, the first. */
static struct sim_proc *leader_of(const struct asym_sim *s, uint32_t thread)
{
    struct sim_proc *p = &s->procs[s->threads[thread].proc];
    return s->scenario->programs[p->program].job ? &s->procs[s->programs[p->program].first_proc] : p;
}

static void bring_up_to_date(const struct asym_sim *s, struct sim_team *team)
{
    if (team->n > 0)
        team->sum += (double)(s->now - team->since) / team->n;
    team->since = s->now;
}

static void arm(struct asym_sim *s, struct sim_proc *p, uint64_t time)
{
    if (!p->team.armed)
        sim_heap_set(&s->heap, sim_slot_phase(s, (uint32_t)(p - s->procs)), time);
    p->team.armed = true;
}

/* A phase takes one from a bucket, which one more comes to in each gap. It is full at first. Returns whether one was there. */
static bool is_calm(const struct asym_sim *s, struct sim_team *team)
{
    const uint64_t gap = s->scenario->settings->daemon.phase_gap * 1000, now = s->now + CALM * gap;
    const uint64_t then = ASYM_MAX(team->calm, s->now) + gap;
    team->calm = ASYM_MIN(then, now + gap);
    return then <= now;
}

static void begin_phase(struct asym_sim *s, struct sim_proc *p)
{
    struct sim_team *team = &p->team;
    if (team->alone != team->threads) {
        team->alone = team->threads;
        team->due = s->now + (is_calm(s, team) ? 0 : s->scenario->settings->daemon.phase_settle * 1000);
    }
    if (team->heard != team->alone)
        arm(s, p, ASYM_MAX(team->due, s->now) + ANSWER_NS);
}

static void end_phase(struct asym_sim *s, struct sim_proc *p)
{
    p->team.alone = 0;
    if (p->team.heard != 0)
        arm(s, p, s->now + ANSWER_NS);
}

bool sim_is_followed(const struct asym_sim *s, const struct sim_proc *p)
{
    const bool has_others = p->n > 1 || (s->scenario->programs[p->program].job && s->programs[p->program].n_procs > 1);
    return s->criticals && has_others && p->born < s->sampled;
}

void sim_set_state(struct asym_sim *s, uint32_t thread, enum sim_state state)
{
    struct sim_thread *t = &s->threads[thread];
    const bool was = sim_is_runnable(t->state), is = sim_is_runnable(state);
    t->state = (uint8_t)state;
    if (!s->criticals || was == is)
        return;
    struct sim_critical *c = &s->criticals[thread];
    struct sim_proc *p = leader_of(s, thread);
    struct sim_team *team = &p->team;
    bring_up_to_date(s, team);
    if (is)
        c->from = team->sum;
    else
        c->total += team->sum - c->from;
    team->n += is ? 1 : -1u;
    team->threads += is ? thread + 1 : -(thread + 1);
    if (!s->hears_begins || !sim_is_followed(s, p))
        return;
    if (team->n == 1)
        begin_phase(s, p);
    else if (team->n == 2 && is)
        end_phase(s, p);
}

void sim_phase_timer(struct asym_sim *s, uint32_t proc)
{
    const uint64_t pair = UINT64_C(2000000000) / s->scenario->settings->daemon.phase_rate;
    struct sim_proc *p = &s->procs[proc];
    struct sim_team *team = &p->team;
    team->armed = false;
    /* While all sleep, the phase goes on: the one who runs next tells. */
    const uint32_t alone = team->n == 1 ? team->alone : 0;
    if (team->n == 0 || alone == team->heard)
        return;
    const uint64_t paid = ASYM_MAX(team->paid, s->now);
    if (alone != 0 && s->now < team->due + ANSWER_NS) {
        arm(s, p, team->due + ANSWER_NS);
        return;
    }
    if (alone != 0 && paid - s->now > CREDIT_NS) {
        arm(s, p, paid - CREDIT_NS);
        return;
    }
    team->paid = alone != 0 ? paid + pair : team->paid;
    team->heard = alone;
    s->is_told |= s->hears_ends || (alone != 0 && alone != team->answered);
}

static uint32_t heard_alone(const struct sim_team *team)
{
    return team->n == 1 && team->heard == team->alone ? team->heard : 0;
}

uint32_t sim_alone_of(const struct asym_sim *s, uint32_t thread)
{
    return s->criticals ? heard_alone(&leader_of(s, thread)->team) : 0;
}

void sim_phases_seen(struct asym_sim *s, bool refreshed)
{
    s->is_told = false;
    for (uint32_t i = 0; s->criticals && i < s->n_procs; i++) {
        struct sim_team *team = &s->procs[i].team;
        const uint32_t alone = heard_alone(team);
        team->answered = alone != 0 || !refreshed ? alone : team->answered;
    }
}

double sim_take_critical(struct asym_sim *s, uint32_t thread)
{
    if (!s->criticals)
        return 0;
    struct sim_critical *c = &s->criticals[thread];
    struct sim_team *team = &leader_of(s, thread)->team;
    bring_up_to_date(s, team);
    const double total = c->total + (sim_is_runnable(s->threads[thread].state) ? team->sum - c->from : 0);
    const double taken = total - c->then;
    c->then = total;
    return taken;
}
