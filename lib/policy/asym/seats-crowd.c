/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Step 6 of asym: the crowd, the threads for which no seat is left. Each goes to the CPU where it waits least. A heap for each core
 * type has the CPUs by that cost.
 */
#include "policy/asym/seats-internal.h"

#include "base/mask.h"

/* A thread of the crowd stays on its core type for a CPU of another type that costs more than this. */
#define OTHER_TYPE 0.7

/* The heaps follow each other in q->heap: of each type its CPUs. */
struct heaps {
    uint32_t first[ASYM_MAX_TYPES], n[ASYM_MAX_TYPES];
};

/*
 * With l threads there, a further one waits on average for as long as 2 l (l + 1) / (2 l + 1) of them need. In a flood threads
 * count alike, whatever they need: their masks are wide, and the kernel balances them.
 */
static double cost_of(const struct asym_seats *q, int cpu)
{
    const double l = q->flooded ? q->n_on[cpu] : q->used[cpu];
    return 2 * l * (l + 1) / (2 * l + 1) / (q->speed[cpu] * asym_seats_beside(q, cpu));
}

static bool is_before(const struct asym_seats *q, uint32_t a, uint32_t b)
{
    return q->cost[a] < q->cost[b] || (q->cost[a] <= q->cost[b] && a < b);
}

/* The cost of cpu has grown: let it sink to its place. */
static void sink(struct asym_seats *q, const struct heaps *h, uint32_t cpu)
{
    const int type = q->in->machine->cpus[cpu].type;
    uint32_t *const heap = q->heap + h->first[type], *const place = q->place, n = h->n[type];
    uint32_t at = place[cpu];
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_before(q, heap[child + 1], heap[child]))
            child++;
        if (!is_before(q, heap[child], cpu))
            break;
        place[heap[at] = heap[child]] = at;
    }
    place[heap[at] = cpu] = at;
}

static void make_heaps(struct asym_seats *q, struct heaps *h, const struct asym_mask *cpus)
{
    const struct asym_machine *m = q->in->machine;
    uint32_t n = 0;
    ASYM_MASK_FOREACH (c, &m->usable)
        q->cost[c] = cost_of(q, c);
    for (unsigned type = 0; type < m->n_types; type++) {
        const struct asym_mask mine = asym_mask_and(&m->types[type].cpus, cpus);
        h->first[type] = n;
        h->n[type] = 0;
        ASYM_MASK_FOREACH (c, &mine)
            q->heap[n + (q->place[c] = h->n[type]++)] = (uint32_t)c;
        n += h->n[type];
        for (uint32_t at = h->n[type]; at-- > 0;)
            sink(q, h, q->heap[h->first[type] + at]);
    }
}

/* Returns the cost of cpu for the thread: less on the type of its last CPU, but for a flood, in which its mask has all types. */
static double cost_for(const struct asym_seats *q, uint32_t t, int cpu)
{
    const bool is_last = q->of[t].last_type == q->in->machine->cpus[cpu].type && !q->flooded;
    return q->cost[cpu] * (is_last ? OTHER_TYPE : 1);
}

/* The CPUs that it may use are few: look at each. */
static int scan(const struct asym_seats *q, uint32_t t, const struct asym_mask *cpus)
{
    struct asym_mask may = asym_mask_and(q->of[t].allowed, cpus);
    int best = -1;
    if (asym_mask_empty(&may)) /* all that it may use are claimed */
        may = asym_mask_and(q->of[t].allowed, q->in->spare);
    if (asym_mask_empty(&may))
        may = *q->of[t].allowed;
    ASYM_MASK_FOREACH (c, &may)
        if (best < 0 || cost_for(q, t, c) < cost_for(q, t, best))
            best = c;
    return best;
}

static int choose(const struct asym_seats *q, const struct heaps *h, uint32_t t, const struct asym_mask *cpus)
{
    const struct asym_seats_brief *b = &q->of[t];
    const struct asym_machine *m = q->in->machine;
    int best = -1;
    for (unsigned type = 0; type < m->n_types; type++) {
        if (h->n[type] == 0)
            continue;
        const int top = (int)q->heap[h->first[type]];
        if (!asym_mask_has(b->allowed, top)) {
            best = scan(q, t, cpus);
            break;
        }
        if (best < 0 || cost_for(q, t, top) < cost_for(q, t, best))
            best = top;
    }
    const int home = b->home;
    const bool is_as_good = asym_mask_has(cpus, home) && best >= 0 &&
                            cost_for(q, t, home) <= cost_for(q, t, best) * (1 + 1e-6);
    return is_as_good ? home : best;
}

/* Move thread t to an idle CPU, if it shares its CPU with one of the crowd and may run on an idle one. */
static void spread_one(struct asym_seats *q, uint32_t t, const struct asym_mask *crowded, struct asym_mask *idle)
{
    const int from = q->of[t].cpu;
    const struct asym_mask may = asym_mask_and(q->of[t].allowed, idle);
    if (from < 0 || q->n_on[from] < 2 || !asym_mask_has(crowded, from) || q->claim[t] || q->of[t].above ||
        asym_mask_empty(&may))
        return;
    q->n_on[from]--;
    q->used[from] -= (double)q->of[t].duty;
    asym_seats_sit(q, t, scan(q, t, &may));
    asym_mask_clear(idle, (unsigned)q->of[t].cpu);
}

/* A thread with few CPUs may have joined one that has others to go to, while these are idle: then that one goes there. */
static void fill_idle(struct asym_seats *q, const struct asym_mask *cpus)
{
    struct asym_mask idle = {0}, crowded = {0};
    ASYM_MASK_FOREACH (c, cpus)
        if (q->n_on[c] == 0 && q->used[c] <= 0) /* one that sleeps has its seat there */
            asym_mask_set(&idle, (unsigned)c);
    for (size_t i = 0; i < q->n_open; i++)
        asym_mask_set(&crowded, (unsigned)q->of[q->open[i]].cpu);
    for (uint32_t t = 0; t < q->in->n_threads && q->n_open > 0 && !asym_mask_empty(&idle); t++)
        spread_one(q, t, &crowded, &idle);
}

/*
 * In a flood a thread stays on its CPU if that costs no more than the last of all will pay at least. A further thread costs at most
 * l + 1/2 by the speed beside busy siblings.
 */
static void stay_in_flood(struct asym_seats *q, const struct asym_mask *cpus)
{
    const struct asym_machine *m = q->in->machine;
    double threads = (double)q->n_open, speed = 0;
    ASYM_MASK_FOREACH (c, cpus) {
        threads += q->n_on[c] - 0.5;
        speed += q->cost[c] = q->speed[c] * (m->cpus[c].sibling == c ? 1 : (1 + m->smt_gain) / 2);
    }
    for (size_t i = 0; i < q->n_open; i++) {
        const int home = q->of[q->open[i]].home;
        if (asym_mask_has(cpus, home) && q->n_on[home] + 0.5 <= threads / speed * q->cost[home])
            asym_seats_sit(q, q->open[i], home);
    }
}

/* The first of the crowd, by rank, chooses first. */
static void rank_crowd(struct asym_seats *q)
{
    for (size_t i = 0; i < q->n_open; i++) {
        const uint32_t t = q->open[i];
        q->key[t] = q->density[t] / (double)q->of[t].rate * (1 + 2 * q->p->sticky * q->behind[t]);
    }
    asym_seats_sort(q, q->open, q->n_open, q->n_open);
}

void asym_seats_place_crowd(struct asym_seats *q, const struct asym_mask *cpus)
{
    const struct asym_cpu *all = q->in->machine->cpus;
    struct heaps h;
    if (q->flooded)
        stay_in_flood(q, cpus);
    else
        rank_crowd(q);
    make_heaps(q, &h, cpus);
    for (size_t i = 0; i < q->n_open; i++) {
        const uint32_t t = q->open[i];
        q->of[t].kind = 0;
        if (q->of[t].cpu >= 0)
            continue;
        const int cpu = choose(q, &h, t, cpus);
        asym_seats_sit(q, t, cpu);
        int c = cpu;
        do { /* a busy sibling makes the others of the core slower */
            q->cost[c] = cost_of(q, c);
            if (asym_mask_has(cpus, c))
                sink(q, &h, (uint32_t)c);
        } while ((c = all[c].sibling) != cpu);
    }
    fill_idle(q, cpus);
}

/* So much of a CPU has to be free for a thread that does not count; the second share for one that has the core type already. */
static const double room_from[] = {0.8, 0.4};

/* Put it on a faster core type with room, or leave it on all CPUs. room: the CPUs of such types that have room. */
static void place_one_small(struct asym_seats *q, uint32_t t, const struct asym_mask *cpus, struct asym_mask room[2])
{
    struct asym_seats_brief *b = &q->of[t];
    struct asym_mask may = *cpus;
    bool has_room = false;
    for (unsigned type = 0; type < q->in->machine->n_types && !has_room; type++) {
        const bool stays = b->last_type == (int)type && b->width != ASYM_PIN_ALL;
        const struct asym_mask mine = asym_mask_and(&q->in->machine->types[type].cpus, &room[stays]);
        has_room = asym_mask_meets(b->allowed, &mine);
        may = has_room ? mine : may;
    }
    b->width = has_room ? ASYM_PIN_TYPE : ASYM_PIN_ALL;
    b->kind = 0;
    const int cpu = asym_mask_has(&may, b->home) ? b->home : scan(q, t, &may);
    b->cpu = (int16_t)cpu;
    q->used[cpu] += (double)b->duty;
    for (unsigned k = 0; k < 2; k++)
        if (1 - q->used[cpu] < room_from[k])
            asym_mask_clear(&room[k], (unsigned)cpu);
}

void asym_seats_place_small(struct asym_seats *q, const struct asym_mask *cpus)
{
    const struct asym_machine *m = q->in->machine;
    struct asym_mask room[2] = {0};
    ASYM_MASK_FOREACH (c, cpus)
        for (unsigned k = 0; k < 2 && m->types[m->cpus[c].type].speed > q->slowest; k++)
            if (1 - q->used[c] >= room_from[k])
                asym_mask_set(&room[k], (unsigned)c);
    for (uint32_t t = 0; t < q->in->n_threads; t++)
        if (!q->of[t].counts)
            place_one_small(q, t, cpus, room);
}
