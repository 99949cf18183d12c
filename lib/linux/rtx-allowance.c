/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What answers may take (rtx-server.h). Nothing of it is made or lost when programs come and go: what nobody has is in a
 * pot, who tells of a phase draws a part of that, what is earned is divided among those who do, and who has told of nothing
 * for a while, or is gone, leaves what it has, or owes, in the pot.
 */
#include "base/macro.h"
#include "linux/rtx-server-internal.h"

/* Nobody waits longer than this to be told that it still may not. */
#define FAR_AWAY ASYM_SEC

static double rate(const struct asym_rtx_server *s)
{
    return s->config.cpu_budget / 100 * ASYM_RTX_SHARE;
}

static void put_in_pot(struct asym_rtx_server *s, double cpu)
{
    s->pot = ASYM_MIN(s->pot + cpu, ASYM_RTX_SAVED_MAX);
}

/* The clients of one process, from the first: where they end, and how many of them are active. */
static size_t process_at(const struct asym_rtx_server *s, size_t first, size_t *ret_active)
{
    size_t i = first, active = 0;
    for (; i < s->n && s->clients[i]->pid == s->clients[first]->pid; i++)
        active += s->clients[i]->active;
    *ret_active = active;
    return i;
}

/* Evenly among the processes, as one may have several connections. What the pot owes it earns like one of them. */
static void divide(struct asym_rtx_server *s)
{
    size_t parties = s->pot < 0, active;
    for (size_t i = 0; i < s->n;) {
        i = process_at(s, i, &active);
        parties += active > 0;
    }
    for (size_t i = 0, end; i < s->n; i = end) {
        end = process_at(s, i, &active);
        for (size_t k = i; k < end; k++)
            s->clients[k]->part = 1 / (double)(ASYM_MAX(parties, (size_t)1) * ASYM_MAX(active, (size_t)1));
    }
}

void asym_rtx_retire(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    if (!c->active)
        return;
    put_in_pot(s, c->saved);
    c->saved = 0;
    c->active = false;
}

void asym_rtx_settle(struct asym_rtx_server *s, asym_usec now)
{
    double earned = now > s->settled ? (double)(now - s->settled) * rate(s) : 0;
    s->settled = ASYM_MAX(s->settled, now);
    divide(s);
    double left = earned;
    for (size_t i = 0; i < s->n; i++) {
        struct asym_rtx_client *c = s->clients[i];
        if (!c->active)
            continue;
        /* Whoever has enough leaves it to the pot, from which the others may draw. */
        const double room = ASYM_MAX(ASYM_RTX_SAVED_MAX - c->saved, 0), gets = ASYM_MIN(earned * c->part, room);
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

bool asym_rtx_may_answer(struct asym_rtx_server *s, struct asym_rtx_client *c, asym_usec now)
{
    const bool begins = !c->active;
    c->told_at = now;
    c->active = true;
    divide(s);
    /* Who begins takes its part of what is owed, too, or it would pay to come anew each time. */
    if (begins || (c->saved < 0 && s->pot > 0)) {
        const double draws = s->pot * c->part;
        c->saved += draws;
        s->pot -= draws;
    }
    return c->saved >= 0;
}

void asym_rtx_server_charge(struct asym_rtx_server *s, asym_usec cpu)
{
    size_t payers = 0;
    for (size_t i = 0; i < s->n; i++)
        payers += s->clients[i]->told;
    for (size_t i = 0; i < s->n; i++)
        if (s->clients[i]->told)
            s->clients[i]->saved -= (double)cpu / (double)payers;
    if (payers == 0)
        put_in_pot(s, -(double)cpu);
}

asym_usec asym_rtx_server_due(const struct asym_rtx_server *s)
{
    asym_usec due = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct asym_rtx_client *c = s->clients[i];
        if (!c->put_off)
            continue;
        const double wait = 1 - c->saved / ASYM_MAX(rate(s) * c->part, 1e-9);
        const asym_usec when = s->settled + (wait < (double)FAR_AWAY ? (asym_usec)wait : FAR_AWAY);
        due = due == 0 ? when : ASYM_MIN(due, when);
    }
    return due;
}
