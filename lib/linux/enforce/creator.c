/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/enforce/ledger-internal.h"

#include <errno.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "linux/sys/thread.h"

static struct asym_ancestry_process look_up(int32_t pid)
{
    struct asym_stat stat;
    struct asym_ancestry_process p = {.pid = pid, .gone = true};
    if (asym_thread_get_stat(pid, pid, &stat) < 0)
        return p;
    const pid_t session = getsid(pid);
    p.gone = false;
    p.parent = stat.ppid;
    p.session = session > 0 ? session : 0;
    p.start = stat.start;
    return p;
}

static struct asym_ancestry_process find_process(struct asym_ancestry *ancestry, int32_t pid)
{
    struct asym_ancestry_process *slot = &ancestry->slots[(uint32_t)pid % ASYM_ANCESTRY_SLOTS];
    if (slot->pid != pid)
        *slot = look_up(pid);
    return *slot;
}

/* Follows the chain of parents while it stays in the session of the process. It stops at the session leader. */
struct session_walk {
    int32_t session;
    bool within, left;
    uint64_t oldest;
};

static void step(struct session_walk *walk, const struct asym_ancestry_process *p)
{
    if (!walk->within)
        return;
    walk->left = p->session != walk->session;
    walk->within = !walk->left && p->pid != walk->session;
    if (!walk->left)
        walk->oldest = ASYM_MIN(walk->oldest, p->start);
}

void asym_ancestry_of(struct asym_ancestry *ancestry, int32_t pid, struct asym_ancestors *ret)
{
    struct asym_ancestry_process p = find_process(ancestry, pid);
    struct session_walk walk = {.session = p.session, .within = p.session > 0, .oldest = UINT64_MAX};
    uint64_t oldest = UINT64_MAX;
    ret->n = 0;
    ret->session = (struct asym_ancestor){.number = 0};
    while (p.pid > 1 && !p.gone && ret->n < ASYM_LENGTH(ret->processes)) {
        ret->processes[ret->n++] = (struct asym_ancestor){.number = p.pid, .start = p.start, .oldest = oldest};
        oldest = ASYM_MIN(oldest, p.start);
        step(&walk, &p);
        if (p.parent <= 1)
            break;
        p = find_process(ancestry, p.parent);
    }
    const bool reached_init = ret->n > 0 && !p.gone && p.parent <= 1;
    if (!reached_init || !(walk.left || walk.within))
        return;
    const struct asym_ancestry_process leader = find_process(ancestry, walk.session);
    const bool led = !leader.gone && leader.session == walk.session;
    ret->session = (struct asym_ancestor){
        .number = walk.session, .start = led ? leader.start : 0, .oldest = walk.oldest};
}

/* The process itself: a thread of it that calls exec takes the leader's TID and start, and keeps its own mask. */
#define ITSELF UINT64_MAX

/*
 * The earliest start between the origin and the process counts: a process in between that started before the steering did not
 * inherit from it, and so cannot pass it on. The kernel reuses numbers: an entry belongs to this origin only if the origin
 * started before the entry's thread did. A later process with the same number may have set the mask itself.
 */
static uint64_t oldest_heir(const struct asym_ledger_entry *e, const struct asym_ancestors *ancestors)
{
    const struct asym_ancestor *session = &ancestors->session;
    uint64_t oldest = 0;
    for (size_t i = 0; i < ancestors->n; i++)
        if (ancestors->processes[i].number == e->id.tgid && e->id.start >= ancestors->processes[i].start)
            oldest = ASYM_MAX(oldest, ancestors->processes[i].oldest);
    /* If an ancestor has exited, init adopts its children, and only the session connects them. */
    if (session->number > 0 && session->number == e->session && e->id.start >= session->start)
        oldest = ASYM_MAX(oldest, ASYM_MIN(session->oldest, ITSELF - 1));
    return oldest;
}

static unsigned hash_online(const struct asym_ledger *l, const struct asym_mask *m)
{
    const struct asym_mask online = asym_mask_and(m, &l->online);
    uint64_t h = 0;
    for (size_t i = 0; i < ASYM_MASK_WORDS; i++)
        h = (h ^ online.w[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (unsigned)(h >> 54);
}

/* A child with the original mask shows only by its nice value. */
static void add_mask(struct asym_creators *c, const struct asym_ledger_entry *e, const struct asym_mask *m)
{
    if (!e->boosted && asym_ledger_same_mask(c->ledger, m, &e->original))
        return;
    const unsigned h = hash_online(c->ledger, m);
    c->masks[h / 64] |= UINT64_C(1) << h % 64;
}

void asym_creators_select(struct asym_creators *c, const struct asym_ancestors *ancestors)
{
    *c = (struct asym_creators){.ledger = c->ledger, .begun = c->begun, .since = UINT64_MAX};
    for (size_t i = 0; i < c->ledger->n; i++) {
        struct asym_ledger_entry *e = &c->ledger->entries[i];
        e->oldest_heir = oldest_heir(e, ancestors);
        if (e->oldest_heir == 0)
            continue;
        const struct asym_mask transit_cpu = asym_ledger_transit(e);
        add_mask(c, e, &e->set);
        add_mask(c, e, &e->before);
        add_mask(c, e, &transit_cpu);
        c->since = ASYM_MIN(c->since, e->since);
        c->n++;
    }
}

static bool may_have_creator(const struct asym_creators *c, const struct asym_taskid *id, const struct asym_mask *found)
{
    const unsigned h = hash_online(c->ledger, found);
    return (c->masks[h / 64] >> h % 64 & 1) != 0 && (id->tid == id->tgid || c->since <= id->start + 1);
}

struct rank {
    bool exact; /* a child of the thread has this nice value, or the thread itself had it when it called exec */
    unsigned n_cpus;
    uint64_t oldest_heir; /* the nearer the origin, the later */
};

static bool ranks_higher(const struct rank *a, const struct rank *b)
{
    if (a->exact != b->exact)
        return a->exact;
    return a->n_cpus != b->n_cpus ? a->n_cpus > b->n_cpus : a->oldest_heir > b->oldest_heir;
}

static struct rank rank_entry(const struct asym_ledger *l, const struct asym_ledger_entry *e, int8_t nice, bool by_exec)
{
    const struct asym_mask online = asym_mask_and(&e->original, &l->online);
    const bool exact = by_exec ? asym_ledger_is_nice_set(e, nice) : asym_ledger_passes_nice(e, nice);
    return (struct rank){exact, asym_mask_count(&online), e->oldest_heir};
}

/* The kernel rounds starts down to whole clock ticks, the unit of since; hence + 1. */
static bool was_steered_before(const struct asym_ledger_entry *e, uint64_t start)
{
    return e->oldest_heir > 0 && e->since <= ASYM_MIN(e->oldest_heir, start) + 1;
}

/* While a process calls exec, both are 0. */
bool asym_ledger_is_other_image(const struct asym_ledger_entry *e, const struct asym_image *image)
{
    return asym_image_has_changed(&e->image, image) || (e->image.stack != 0 && image->stack == 0 && image->code == 0);
}

/*
 * A leader that asymd has steered had its own mask in force, so that another one's is a sign of exec. Any other leader may have
 * chosen the mask itself: there the sign is another program.
 */
static bool has_executed(const struct asym_ledger_entry *former, bool leader_is_known, const struct asym_image *image)
{
    return former->oldest_heir == ITSELF && (leader_is_known || asym_ledger_is_other_image(former, image)) &&
           asym_thread_is_of(former->id.tgid, former->id.tid) == -ESRCH;
}

const struct asym_ledger_entry *asym_creators_find(const struct asym_creators *c, const struct asym_taskid *id,
                                                   const struct asym_image *image, const struct asym_mask *found,
                                                   int8_t nice)
{
    struct asym_ledger *l = c->ledger;
    const struct asym_ledger_entry *known = asym_ledger_find(l, id->tid), *best = NULL;
    const bool is_known = known && known->id.start == id->start;
    const struct rank highest = {true, asym_mask_count(&l->online), ITSELF};
    struct rank best_rank = {.n_cpus = 0};
    if (!may_have_creator(c, id, found))
        return NULL;
    for (size_t i = 0; i < l->n && (!best || ranks_higher(&highest, &best_rank)); i++) {
        const struct asym_ledger_entry *e = &l->entries[i];
        const bool is_heir = !is_known && was_steered_before(e, id->start);
        const bool by_exec = id->tid == id->tgid && e->oldest_heir == ITSELF;
        if (e->id.tid == id->tid || !(is_heir || by_exec))
            continue;
        const struct rank rank = rank_entry(l, e, nice, by_exec);
        if ((best && !ranks_higher(&rank, &best_rank)) || !asym_ledger_looks_inherited(l, e, found, nice, c->begun) ||
            !(is_heir || has_executed(e, is_known, image)))
            continue;
        best = e;
        best_rank = rank;
    }
    return best;
}
