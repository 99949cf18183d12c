/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/descent.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/thread.h"

#define SLOTS_LEAST 256

struct process {
    int32_t pid; /* 0: free */
    int32_t parent, session;
    uint64_t start;
    bool gone;
};

struct asym_descent {
    struct process *slots; /* by pid, linear probing; n_slots is a power of two */
    size_t n, n_slots;
};

static struct process *slot_of(const struct asym_descent *d, int32_t pid)
{
    size_t i = (uint32_t)pid * UINT32_C(2654435761) & (d->n_slots - 1);
    while (d->slots[i].pid != 0 && d->slots[i].pid != pid)
        i = (i + 1) & (d->n_slots - 1);
    return &d->slots[i];
}

static int grow(struct asym_descent *d)
{
    struct asym_descent larger = {.n = d->n, .n_slots = d->n_slots ? 2 * d->n_slots : SLOTS_LEAST};
    larger.slots = calloc(larger.n_slots, sizeof *larger.slots);
    if (!larger.slots)
        return -ENOMEM;
    for (size_t i = 0; i < d->n_slots; i++)
        if (d->slots[i].pid != 0)
            *slot_of(&larger, d->slots[i].pid) = d->slots[i];
    free(d->slots);
    *d = larger;
    return 0;
}

static struct process look_up(int32_t pid)
{
    struct asym_stat stat;
    struct process p = {.pid = pid, .gone = true};
    if (asym_thread_get_stat(pid, pid, &stat) < 0)
        return p;
    const pid_t session = getsid(pid);
    return (struct process){.pid = pid, .parent = stat.ppid, .session = session > 0 ? session : 0, .start = stat.start};
}

/* Without memory for it, it is looked up again the next time. */
static struct process find(struct asym_descent *d, int32_t pid)
{
    struct process *slot = slot_of(d, pid);
    if (slot->pid == pid)
        return *slot;
    const struct process p = look_up(pid);
    if (2 * (d->n + 1) > d->n_slots && grow(d) < 0)
        return p;
    *slot_of(d, pid) = p;
    d->n++;
    return p;
}

int asym_descent_new(struct asym_descent **ret_descent)
{
    struct asym_descent *d = calloc(1, sizeof *d);
    if (!d || grow(d) < 0) {
        free(d);
        return -ENOMEM;
    }
    *ret_descent = d;
    return 0;
}

void asym_descent_free(struct asym_descent *d)
{
    if (d)
        free(d->slots);
    free(d);
}

void asym_descent_forget(struct asym_descent *d)
{
    memset(d->slots, 0, d->n_slots * sizeof *d->slots);
    d->n = 0;
}

/* The session, as long as the chain stays in it; its leader on the way ends that. */
struct stay {
    int32_t session;
    bool within, left;
    uint64_t oldest;
};

static void go_on(struct stay *stay, const struct process *p)
{
    if (!stay->within)
        return;
    stay->left = p->session != stay->session;
    stay->within = !stay->left && p->pid != stay->session;
    if (!stay->left)
        stay->oldest = ASYM_MIN(stay->oldest, p->start);
}

void asym_descent_of(struct asym_descent *d, int32_t pid, struct asym_line *ret)
{
    struct process p = find(d, pid);
    struct stay stay = {.session = p.session, .within = p.session > 0, .oldest = UINT64_MAX};
    uint64_t oldest = UINT64_MAX;
    ret->n = 0;
    ret->session = (struct asym_origin){.number = 0};
    while (p.pid > 1 && !p.gone && ret->n < ASYM_LENGTH(ret->processes)) {
        ret->processes[ret->n++] = (struct asym_origin){.number = p.pid, .start = p.start, .oldest = oldest};
        oldest = ASYM_MIN(oldest, p.start);
        go_on(&stay, &p);
        if (p.parent <= 1)
            break;
        p = find(d, p.parent);
    }
    const bool whole = ret->n > 0 && !p.gone && p.parent <= 1;
    if (!whole || !(stay.left || stay.within))
        return;
    const struct process leader = find(d, stay.session);
    const bool led = !leader.gone && leader.session == stay.session;
    ret->session = (struct asym_origin){.number = stay.session, .start = led ? leader.start : 0, .oldest = stay.oldest};
}
