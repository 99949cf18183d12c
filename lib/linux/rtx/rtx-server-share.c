/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The CPU time for answers (rtx-server.h). Programs that come and go neither create nor lose any of it. The reserve holds the CPU
 * time of no client. A client that reports a phase becomes active and draws its part of the reserve. Active clients share the
 * earned CPU time. A client that reports nothing for a while, or ends, returns its CPU time or its debt to the reserve, up to the
 * limit of the reserve.
 */
#include "base/macro.h"
#include "linux/rtx/rtx-server-internal.h"

/* Longest time until asymd checks a deferred client again. */
#define MAX_WAIT ASYM_SEC

static double clamp(double x, double low, double high)
{
    return ASYM_MAX(low, ASYM_MIN(x, high));
}

static double rate(const struct asym_rtxd_server *s)
{
    return s->config.cpu_budget / 100 * ASYM_RTXD_SHARE;
}

/* The debt of the reserve has the same limit as its content: a larger debt could shut out all new clients. */
static void add_to_reserve(struct asym_rtxd_server *s, double cpu)
{
    s->reserve = clamp(s->reserve + cpu, -ASYM_RTXD_SAVED_MAX, ASYM_RTXD_SAVED_MAX);
}

/* A process with active clients. */
struct process {
    size_t first, end, n_active;
    uid_t uid;
};

static size_t list_processes(const struct asym_rtxd_server *s, struct process ret[ASYM_RTXD_MAX_CLIENTS])
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

/* Divide evenly among users, then among the processes of each, then among the pages of each process. */
static void divide(struct asym_rtxd_server *s)
{
    struct process processes[ASYM_RTXD_MAX_CLIENTS];
    size_t of_user[ASYM_RTXD_MAX_CLIENTS];
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

void asym_rtxd_retire(struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    if (!c->active)
        return;
    add_to_reserve(s, c->saved);
    c->saved = 0;
    c->active = false;
}

/* While the reserve is in debt, half of the earned CPU time goes to it. Returns the rest. */
static double pay_debts(struct asym_rtxd_server *s, double earned)
{
    const double pays = clamp(-s->reserve, 0, earned / 2);
    add_to_reserve(s, pays);
    return earned - pays;
}

void asym_rtxd_settle(struct asym_rtxd_server *s, asym_usec now)
{
    const double earned = pay_debts(s, now > s->settled ? (double)(now - s->settled) * rate(s) : 0);
    double left = earned;
    s->settled = ASYM_MAX(s->settled, now);
    divide(s);
    for (size_t i = 0; i < s->n; i++) {
        struct asym_rtxd_client *c = s->clients[i];
        if (!c->active)
            continue;
        /* A client at its limit leaves the rest to the reserve, from which other clients may draw. */
        const double gets = clamp(ASYM_RTXD_SAVED_MAX - c->saved, 0, earned * c->part);
        c->saved += gets;
        left -= gets;
    }
    add_to_reserve(s, left);
    for (size_t i = 0; i < s->n; i++) {
        struct asym_rtxd_client *c = s->clients[i];
        if (c->hearing != ASYM_RTXD_DEFERRED && now - c->reported_at >= ASYM_RTXD_ACTIVE)
            asym_rtxd_retire(s, c);
    }
}

static void draw(struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    const double draws = s->reserve * c->part;
    c->saved += draws;
    s->reserve -= draws;
}

bool asym_rtxd_has_cpu_time(struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    if (!c->active)
        return true;
    if (c->saved < 0 && s->reserve > 0)
        draw(s, c);
    return c->saved >= 0;
}

bool asym_rtxd_may_answer(struct asym_rtxd_server *s, struct asym_rtxd_client *c, asym_usec now)
{
    c->reported_at = now;
    /* A new client takes its part of a debt, too. Otherwise a program would gain by connecting anew each time. */
    if (!c->active) {
        c->active = true;
        divide(s);
        draw(s, c);
    }
    return asym_rtxd_has_cpu_time(s, c);
}

/* The clients that reported a change pay; if no client did, the clients that were sampled in vain. */
static bool pays(const struct asym_rtxd_client *c, bool any_changed)
{
    return any_changed ? c->sample == ASYM_RTXD_PHASE_CHANGED : c->sample != ASYM_RTXD_NOT_SAMPLED;
}

void asym_rtxd_server_charge(struct asym_rtxd_server *s, asym_usec cpu)
{
    size_t payers = 0;
    bool program_reports = s->gone_reported;
    for (size_t i = 0; i < s->n; i++)
        program_reports |= s->clients[i]->sample == ASYM_RTXD_PHASE_CHANGED;
    for (size_t i = 0; i < s->n; i++)
        payers += pays(s->clients[i], program_reports);
    if (payers == 0)
        add_to_reserve(s, -(double)cpu);
    for (size_t i = 0; i < s->n; i++) {
        struct asym_rtxd_client *c = s->clients[i];
        if (!pays(c, program_reports))
            continue;
        if (c->active)
            c->saved -= (double)cpu / (double)payers;
        else
            add_to_reserve(s, -(double)cpu / (double)payers);
    }
}

/* Returns the time at which the client will have paid its debt, at most MAX_WAIT from the last settlement. */
static asym_usec cpu_time_at(const struct asym_rtxd_server *s, const struct asym_rtxd_client *c)
{
    const double wait = ASYM_MAX(1 - c->saved / ASYM_MAX(rate(s) * c->part, 1e-9), 0);
    return s->settled + (wait < (double)MAX_WAIT ? (asym_usec)wait : MAX_WAIT);
}

asym_usec asym_rtxd_server_due(const struct asym_rtxd_server *s)
{
    asym_usec due = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct asym_rtxd_client *c = s->clients[i];
        const asym_usec when = c->hearing == ASYM_RTXD_DEFERRED ? cpu_time_at(s, c) : c->again_at;
        if (when > 0)
            due = due == 0 ? when : ASYM_MIN(due, when);
    }
    return due;
}
