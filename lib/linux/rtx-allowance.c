/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What answers may take (rtx-server.h). Nothing of it is made or lost when programs come and go: what nobody has is in a
 * pot, who tells of a phase draws a part of that, what is earned is divided among those who do, and who has told of nothing
 * for a while, or is gone, leaves what it has, or owes, in the pot, as far as that may hold it.
 */
#include "base/macro.h"
#include "linux/rtx-server-internal.h"

/* Nobody waits longer than this to be told that it still may not. */
#define FAR_AWAY ASYM_SEC

static double clamp(double x, double low, double high)
{
    return ASYM_MAX(low, ASYM_MIN(x, high));
}

static double rate(const struct asym_rtx_server *s)
{
    return s->config.cpu_budget / 100 * ASYM_RTX_SHARE;
}

/* Whatever was spent on those who are gone: it never owes more than it may hold, or it could shut out all who come. */
static void put_in_pot(struct asym_rtx_server *s, double cpu)
{
    s->pot = clamp(s->pot + cpu, -ASYM_RTX_SAVED_MAX, ASYM_RTX_SAVED_MAX);
}

/* A process with active clients. */
struct process {
    size_t first, end, n_active;
    uid_t uid;
};

static size_t list_processes(const struct asym_rtx_server *s, struct process ret[ASYM_RTX_MAX_CLIENTS])
{
    size_t n = 0;
    for (size_t i = 0, end; i < s->n; i = end) {
        size_t active = 0;
        for (end = i; end < s->n && s->clients[end]->pid == s->clients[i]->pid; end++)
            active += s->clients[end]->active;
        if (active > 0)
            ret[n++] = (struct process){.first = i, .end = end, .n_active = active, .uid = s->clients[i]->uid};
    }
    return n;
}

/* Evenly among users, then among their processes, then among the connections of each. */
static void divide(struct asym_rtx_server *s)
{
    struct process processes[ASYM_RTX_MAX_CLIENTS];
    size_t of_user[ASYM_RTX_MAX_CLIENTS];
    const size_t n = list_processes(s, processes);
    size_t users = 0;
    for (size_t i = 0; i < n; i++) {
        bool again = false;
        of_user[i] = 0;
        for (size_t k = 0; k < n; k++) {
            of_user[i] += processes[k].uid == processes[i].uid;
            again |= k < i && processes[k].uid == processes[i].uid;
        }
        users += !again;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = processes[i].first; k < processes[i].end; k++)
            s->clients[k]->part = 1 / (double)(users * of_user[i] * processes[i].n_active);
}

void asym_rtx_retire(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    if (!c->active)
        return;
    put_in_pot(s, c->saved);
    c->saved = 0;
    c->active = false;
}

/* Half of what is earned goes to what the pot owes, as long as it does. */
static double pay_debts(struct asym_rtx_server *s, double earned)
{
    const double pays = clamp(-s->pot, 0, earned / 2);
    put_in_pot(s, pays);
    return earned - pays;
}

void asym_rtx_settle(struct asym_rtx_server *s, asym_usec now)
{
    const double earned = pay_debts(s, now > s->settled ? (double)(now - s->settled) * rate(s) : 0);
    double left = earned;
    s->settled = ASYM_MAX(s->settled, now);
    divide(s);
    for (size_t i = 0; i < s->n; i++) {
        struct asym_rtx_client *c = s->clients[i];
        if (!c->active)
            continue;
        /* Whoever has enough leaves it to the pot, from which the others may draw. */
        const double gets = clamp(ASYM_RTX_SAVED_MAX - c->saved, 0, earned * c->part);
        c->saved += gets;
        left -= gets;
    }
    put_in_pot(s, left);
    for (size_t i = 0; i < s->n; i++) {
        struct asym_rtx_client *c = s->clients[i];
        if (!c->put_off && now - c->told_at >= ASYM_RTX_ACTIVE)
            asym_rtx_retire(s, c);
    }
}

static void draw(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    const double draws = s->pot * c->part;
    c->saved += draws;
    s->pot -= draws;
}

bool asym_rtx_is_solvent(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    if (!c->active)
        return true;
    if (c->saved < 0 && s->pot > 0)
        draw(s, c);
    return c->saved >= 0;
}

bool asym_rtx_may_answer(struct asym_rtx_server *s, struct asym_rtx_client *c, asym_usec now)
{
    c->told_at = now;
    /* Who begins takes its part of what is owed, too, or it would pay to come anew each time. */
    if (!c->active) {
        c->active = true;
        divide(s);
        draw(s, c);
    }
    return asym_rtx_is_solvent(s, c);
}

/* Those who have told of something; where nobody has, those who were looked at in vain. */
static bool pays(const struct asym_rtx_client *c, bool anybody_told)
{
    return anybody_told ? c->told : c->looked;
}

void asym_rtx_server_charge(struct asym_rtx_server *s, asym_usec cpu)
{
    size_t payers = 0;
    bool told = s->gone_told;
    for (size_t i = 0; i < s->n; i++)
        told |= s->clients[i]->told;
    for (size_t i = 0; i < s->n; i++)
        payers += pays(s->clients[i], told);
    if (payers == 0)
        put_in_pot(s, -(double)cpu);
    for (size_t i = 0; i < s->n; i++) {
        struct asym_rtx_client *c = s->clients[i];
        if (!pays(c, told))
            continue;
        if (c->active)
            c->saved -= (double)cpu / (double)payers;
        else
            put_in_pot(s, -(double)cpu / (double)payers);
    }
}

/* When it will have paid what it owes. */
static asym_usec solvent_at(const struct asym_rtx_server *s, const struct asym_rtx_client *c)
{
    const double wait = ASYM_MAX(1 - c->saved / ASYM_MAX(rate(s) * c->part, 1e-9), 0);
    return s->settled + (wait < (double)FAR_AWAY ? (asym_usec)wait : FAR_AWAY);
}

asym_usec asym_rtx_server_due(const struct asym_rtx_server *s)
{
    asym_usec due = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct asym_rtx_client *c = s->clients[i];
        const asym_usec when = c->put_off ? solvent_at(s, c) : c->again_at;
        if (when > 0)
            due = due == 0 ? when : ASYM_MIN(due, when);
    }
    return due;
}
