/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/placement/spread.h"

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/macro.h"
#include "base/sort.h"

/* State of the search for sets: sizes and slots are needed only during the search. */
struct finder {
    struct asym_spread *sp;
    const struct asym_mask **found;
    uint32_t *size;
    struct asym_hash index;
};

/* Small sets come first, because they have the fewest choices. Ties go by content, so that the order does not depend on
 * addresses. */
static int by_choices(uint32_t a, uint32_t b, const void *ctx)
{
    const struct finder *f = ctx;
    if (f->size[a] != f->size[b])
        return f->size[a] < f->size[b] ? -1 : 1;
    return memcmp(f->found[a], f->found[b], sizeof *f->found[a]);
}

static uint32_t find_set(struct finder *f, const struct asym_mask *allowed)
{
    const uint32_t hash = asym_hash_of_u64((uint64_t)(uintptr_t)allowed);
    ASYM_HASH_FOREACH (set, &f->index, hash)
        if (f->found[set] == allowed)
            return (uint32_t)set;
    const uint32_t set = f->sp->n_sets++;
    f->found[set] = allowed;
    f->size[set] = asym_mask_count(allowed);
    asym_hash_add(&f->index, hash, set);
    return set;
}

static void find_sets(struct finder *f)
{
    struct asym_spread *sp = f->sp;
    const struct asym_policy_input *in = sp->in;
    for (size_t t = 0; t < in->n_threads; t++) {
        bool same = t > 0 && in->threads[t].allowed == in->threads[t - 1].allowed;
        sp->set_of[t] = same ? sp->set_of[t - 1] : find_set(f, in->threads[t].allowed);
    }
    for (uint32_t i = 0; i < sp->n_sets; i++)
        sp->list[i] = i;
    asym_sort_index(sp->list, sp->n_sets, sp->scratch, by_choices, f);
    for (uint32_t i = 0; i < sp->n_sets; i++) {
        sp->sets[i] = f->found[sp->list[i]];
        sp->set_reach[i] = (asym_mask_meets(sp->sets[i], &in->machine->fast) ? ASYM_REACH_FAST : 0) |
                           (asym_mask_meets(sp->sets[i], &in->machine->slow) ? ASYM_REACH_SLOW : 0);
        sp->set_mark[sp->list[i]] = i;
    }
    for (size_t t = 0; t < in->n_threads; t++)
        sp->set_of[t] = sp->set_mark[sp->set_of[t]];
}

static void take_memory(struct asym_spread *sp, struct finder *f)
{
    const struct asym_machine *m = sp->in->machine;
    const size_t n = sp->in->n_threads;
    const struct {
        uint32_t **field;
        size_t n;
    } fields[] = {
        {&sp->load, m->n_cpus}, {&sp->cursor, m->n_cpus}, {&sp->extra, m->n_cores},
        {&sp->want, m->n_cpus}, {&sp->list, n},           {&sp->scratch, ASYM_MAX(n, m->n_cpus)},
        {&sp->set_of, n},       {&sp->set_mark, n + 1},   {&sp->set_reach, n},
        {&f->size, n},
    };
    for (size_t i = 0; i < ASYM_LENGTH(fields); i++)
        *fields[i].field = asym_arena_take(sp->in->arena, fields[i].n + 1, sizeof(uint32_t));
    sp->sets = asym_arena_take(sp->in->arena, n + 1, sizeof *sp->sets);
    sp->places = asym_arena_take(sp->in->arena, n + 1, sizeof *sp->places);
    sp->holds = asym_arena_take(sp->in->arena, n + 1, sizeof *sp->holds);
    f->found = asym_arena_take(sp->in->arena, n + 1, sizeof *f->found);
    const size_t n_slots = asym_hash_slots_for(n);
    struct asym_hash_slot *slots = asym_arena_take(sp->in->arena, n_slots, sizeof *slots);
    if (slots)
        asym_hash_init_in(&f->index, slots, n_slots);
}

void asym_spread_init(struct asym_spread *sp, const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct finder f = {.sp = sp};
    *sp = (struct asym_spread){.in = in, .ret = ret};
    take_memory(sp, &f);
    if (asym_arena_is_short(in->arena))
        return;
    find_sets(&f);
    for (size_t t = 0; t < in->n_threads; t++)
        ret[t] = (struct asym_assignment){.cpu = -1};
}

uint32_t *asym_spread_all(const struct asym_policy_input *in)
{
    uint32_t *all = asym_arena_take(in->arena, in->n_threads + 1, sizeof *all);
    for (size_t t = 0; all && t < in->n_threads; t++)
        all[t] = (uint32_t)t;
    return all;
}

void asym_spread_stay(struct asym_spread *sp)
{
    sp->is_again = true;
    for (uint32_t t = 0; t < sp->in->n_threads; t++)
        if (sp->in->threads[t].preferred_cpu >= 0)
            asym_spread_put(sp, t, sp->in->threads[t].preferred_cpu);
}

size_t asym_spread_able(struct asym_spread *sp, uint32_t *list, size_t n, const struct asym_mask *cpus)
{
    size_t able = 0, others = 0;
    for (uint32_t i = 0; i < sp->n_sets; i++)
        sp->set_mark[i] = asym_mask_meets(sp->sets[i], cpus);
    for (size_t i = 0; i < n; i++) {
        if (sp->set_mark[sp->set_of[list[i]]])
            list[able++] = list[i];
        else
            sp->scratch[others++] = list[i];
    }
    memcpy(list + able, sp->scratch, others * sizeof *list);
    return able;
}

/* Returns where the search for a place so near goes on. Places only become fewer, so it never goes back. */
static uint32_t *cursor_of(struct asym_spread *sp, int preferred_cpu, enum asym_nearness near)
{
    const struct asym_cpu *cpu = &sp->in->machine->cpus[preferred_cpu < 0 ? 0 : preferred_cpu];
    const int at[] = {preferred_cpu, cpu->llc, cpu->node, 0};
    return &sp->cursor[at[near]];
}

void asym_spread_hand_out(struct asym_spread *sp, const uint32_t *list, size_t n)
{
    const struct asym_machine *m = sp->in->machine;
    size_t left = n;
    for (enum asym_nearness near = ASYM_AT_PREFERRED; near <= ASYM_ANYWHERE && left > 0; near++) {
        memset(sp->cursor, 0, m->n_cpus * sizeof *sp->cursor);
        for (size_t i = 0; i < n; i++) {
            const int preferred_cpu = sp->in->threads[list[i]].preferred_cpu;
            if (sp->ret[list[i]].cpu >= 0 || (preferred_cpu < 0 && near != ASYM_ANYWHERE))
                continue;
            uint32_t *k = cursor_of(sp, preferred_cpu, near);
            while (*k < n && (sp->places[*k] < 0 || asym_nearness(m, preferred_cpu, sp->places[*k]) > near))
                ++*k;
            if (*k == n)
                continue;
            sp->ret[list[i]].cpu = sp->places[*k];
            sp->places[*k] = -1;
            left--;
        }
    }
}

/* Seats of one kind: on idle cores, or beside busy siblings. */
struct seats {
    struct asym_mask open;
    bool is_beside;
};

static bool is_open(struct asym_spread *sp, struct seats *seats, int cpu)
{
    if (!asym_mask_has(&seats->open, cpu))
        return false;
    if (sp->load[cpu] == 0 && (asym_spread_beside(sp, cpu, 0) > 0) == seats->is_beside)
        return true;
    asym_mask_clear(&seats->open, (unsigned)cpu); /* a sibling was taken since */
    return false;
}

/* The cost compares, in this order: what the seat adds, busy siblings, whether another thread would lose its preferred CPU,
 * distance, favour. */
static uint64_t cost_of(const struct asym_spread *sp, int preferred_cpu, int cpu)
{
    const struct asym_machine *m = sp->in->machine;
    const struct asym_cpu *c = &m->cpus[cpu];
    const uint32_t busy = asym_spread_beside(sp, cpu, 0);
    uint64_t far = asym_nearness(m, preferred_cpu, cpu), wanted = sp->extra[c->core] > 0;
    return (uint64_t)asym_machine_row(m, cpu, busy > 0) << 40 | (uint64_t)busy << 24 | wanted << 23 | far << 16 |
           c->rank;
}

/* Returns the best seat of open for the thread; -1 if it may run on none. seats: the kind that they are to be of; NULL: any. */
static int cheapest(struct asym_spread *sp, uint32_t t, struct asym_mask open, struct seats *seats)
{
    const struct asym_policy_thread *thread = &sp->in->threads[t];
    uint64_t least = UINT64_MAX;
    int best = -1;
    open = asym_mask_and(&open, thread->allowed);
    ASYM_MASK_FOREACH (c, &open) {
        if (seats && !is_open(sp, seats, c))
            continue;
        uint64_t cost = cost_of(sp, thread->preferred_cpu, c);
        if (cost < least) {
            least = cost;
            best = c;
        }
    }
    return best;
}

/* Count the threads that are sure of a seat: their preferred CPUs stay free for them as long as there is another choice. */
static void note_preferred_cpus(struct asym_spread *sp, const uint32_t *list, size_t n, const struct asym_mask *avail)
{
    const struct asym_machine *m = sp->in->machine;
    memset(sp->want, 0, m->n_cpus * sizeof *sp->want);
    memset(sp->extra, 0, m->n_cores * sizeof *sp->extra);
    for (size_t i = 0; i < n; i++) {
        int preferred_cpu = sp->in->threads[list[i]].preferred_cpu;
        if (!asym_mask_has(avail, preferred_cpu))
            continue;
        sp->want[preferred_cpu]++;
        sp->extra[m->cpus[preferred_cpu].core]++;
    }
}

struct asym_mask asym_spread_seats(const struct asym_spread *sp, const struct asym_mask *cpus, bool is_beside)
{
    struct asym_mask seats = {0};
    ASYM_MASK_FOREACH (c, cpus)
        if (sp->load[c] == 0 && (asym_spread_beside(sp, c, 0) > 0) == is_beside)
            asym_mask_set(&seats, (unsigned)c);
    return is_beside ? seats : asym_machine_cores(sp->in->machine, &seats);
}

uint32_t asym_spread_room(const struct asym_spread *sp, const struct asym_mask *cpus, bool is_beside)
{
    const struct asym_mask seats = asym_spread_seats(sp, cpus, is_beside);
    return asym_mask_count(&seats);
}

/* Returns the first open CPU of the core, so that the seat of a core is always the same CPU: siblings have the same caches. */
static int first_of_core(struct asym_spread *sp, uint32_t t, struct seats *seats, int cpu)
{
    const struct asym_cpu *cpus = sp->in->machine->cpus;
    int first = cpu;
    for (int s = cpus[cpu].sibling; s != cpu && !seats->is_beside; s = cpus[s].sibling)
        if (s < first && asym_mask_has(sp->in->threads[t].allowed, s) && is_open(sp, seats, s))
            first = s;
    return first;
}

static void take_seat(struct asym_spread *sp, uint32_t t, int cpu, const struct seats *seats)
{
    const struct asym_machine *m = sp->in->machine;
    const int preferred_cpu = sp->in->threads[t].preferred_cpu;
    if (preferred_cpu >= 0 && sp->want[preferred_cpu] > 0) {
        sp->want[preferred_cpu]--;
        sp->extra[m->cpus[preferred_cpu].core]--;
    }
    asym_spread_put(sp, t, cpu);
    sp->holds[t] = (uint8_t)(1 + asym_machine_row(m, cpu, seats->is_beside));
}

/* Whatever the rank of a thread that spins: the others choose before it. */
static const uint32_t *working_first(struct asym_spread *sp, const uint32_t *list, size_t n)
{
    size_t k = 0;
    for (int spins = 0; spins < 2; spins++)
        for (size_t i = 0; i < n; i++)
            if (sp->in->threads[list[i]].spinning == spins)
                sp->scratch[k++] = list[i];
    return sp->scratch;
}

/*
 * In order of preference, each thread keeps its preferred CPU if that is open. So a thread that found no CPU finds none in a
 * second plan either, because the threads before it hold the same CPUs. CPUs only close: if one thread of a set found none, the
 * others of the set need not search again.
 */
void asym_spread_give(struct asym_spread *sp, const uint32_t *list, size_t n, bool is_beside, struct asym_mask *avail)
{
    struct seats seats = {.open = *avail, .is_beside = is_beside};
    list = working_first(sp, list, n);
    note_preferred_cpus(sp, list, ASYM_MIN(n, asym_spread_room(sp, avail, is_beside)), avail);
    memset(sp->set_mark, 0, sp->n_sets * sizeof *sp->set_mark);
    for (size_t i = 0; i < n && !asym_mask_empty(&seats.open); i++) {
        uint32_t *dry = &sp->set_mark[sp->set_of[list[i]]];
        int preferred_cpu = sp->in->threads[list[i]].preferred_cpu;
        if (*dry || sp->ret[list[i]].cpu >= 0)
            continue;
        int cpu = is_open(sp, &seats, preferred_cpu) ? preferred_cpu : cheapest(sp, list[i], seats.open, &seats);
        *dry = cpu < 0;
        if (cpu < 0)
            continue;
        cpu = first_of_core(sp, list[i], &seats, cpu);
        take_seat(sp, list[i], cpu, &seats);
        asym_mask_clear(avail, (unsigned)cpu);
        asym_mask_clear(&seats.open, (unsigned)cpu);
    }
    memset(sp->want, 0, sp->in->machine->n_cpus * sizeof *sp->want);
}

static bool is_worse(const struct asym_cpu *from, const struct asym_cpu *to)
{
    return from->type != to->type ? from->type > to->type : from->rank > to->rank;
}

/* The first thread of list on a worse CPU takes this one. A master stays: its phases may be too short to justify a move. */
static bool offer(struct asym_spread *sp, const uint32_t *list, size_t n, int cpu, struct asym_mask *avail)
{
    const struct asym_machine *m = sp->in->machine;
    for (size_t i = 0; i < n; i++) {
        const struct asym_policy_thread *thread = &sp->in->threads[list[i]];
        const int32_t from = sp->ret[list[i]].cpu;
        if (from < 0 || thread->master || !asym_mask_has(thread->allowed, cpu) ||
            !is_worse(&m->cpus[from], &m->cpus[cpu]))
            continue;
        sp->load[from]--;
        asym_mask_set(avail, (unsigned)from);
        asym_spread_put(sp, list[i], cpu);
        sp->holds[list[i]] = (uint8_t)(1 + asym_machine_row(m, cpu, false));
        asym_mask_clear(avail, (unsigned)cpu);
        return true;
    }
    return false;
}

/*
 * Offer the idle cores, best first. A CPU that a move frees is worse than the one that the thread takes, and is offered
 * later, so after one pass no thread can improve. Returns true if a thread moved.
 */
static bool offer_all(struct asym_spread *sp, const uint32_t *list, size_t n, struct asym_mask *avail)
{
    const struct asym_cpu *cpus = sp->in->machine->cpus;
    struct asym_mask offered = {0};
    bool moved = false;
    for (int best = 0; best >= 0;) {
        best = -1;
        ASYM_MASK_FOREACH (c, avail)
            if (!asym_mask_has(&offered, c) && asym_spread_core_is_idle(sp, c) &&
                (best < 0 || is_worse(&cpus[best], &cpus[c])))
                best = c;
        if (best < 0)
            break;
        asym_mask_set(&offered, (unsigned)best);
        moved = offer(sp, list, n, best, avail) || moved;
    }
    return moved;
}

static bool all_placed(const struct asym_spread *sp, const uint32_t *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (sp->ret[list[i]].cpu < 0)
            return false;
    return true;
}

/* A CPU that a move frees may be the only choice of another thread, so the steps repeat. The loop ends, because each pass
 * except the last places a thread. */
void asym_spread_give_serial(struct asym_spread *sp, const uint32_t *list, size_t n, bool is_beside,
                             struct asym_mask *avail)
{
    bool moved;
    size_t left;
    do {
        left = asym_mask_count(avail);
        asym_spread_give(sp, list, n, is_beside, avail);
        left -= asym_mask_count(avail);
        moved = offer_all(sp, list, n, avail);
    } while (left > 0 && moved && !all_placed(sp, list, n));
}

void asym_spread_give_rows(struct asym_spread *sp, const uint32_t *list, size_t n, const struct asym_mask *cpus,
                           unsigned n_rows, bool serial)
{
    const struct asym_machine *m = sp->in->machine;
    for (unsigned i = 0; i < n_rows; i++) {
        struct asym_mask avail = asym_mask_and(&m->types[m->rows[i].type].cpus, cpus);
        size_t left = 0;
        for (size_t k = 0; k < n; k++)
            if (sp->ret[list[k]].cpu < 0)
                sp->list[left++] = list[k];
        left = asym_spread_able(sp, sp->list, left, &avail);
        (serial ? asym_spread_give_serial : asym_spread_give)(sp, sp->list, left, m->rows[i].is_beside, &avail);
    }
}

/* The seats that threads may still move to. */
struct idle {
    struct asym_mask cores;  /* CPUs of idle cores */
    struct asym_mask wanted; /* of them: on the core of the preferred CPU of a thread that is elsewhere */
    struct asym_mask fast;   /* idle fast CPUs */
};

/* Returns the core of cores for the thread that adds more than a seat of this row; -1 if there is none. */
static int better_core(struct asym_spread *sp, uint32_t t, struct asym_mask cores, unsigned row)
{
    const int core = cheapest(sp, t, cores, NULL);
    return core >= 0 && asym_machine_row(sp->in->machine, core, false) < row ? core : -1;
}

static int core_for_sibling(struct asym_spread *sp, uint32_t t, const struct idle *idle)
{
    const int from = sp->ret[t].cpu;
    /* Where a CPU has several threads, the policy may prefer that to an idle core, as response-time does. */
    if (sp->load[from] != 1 || asym_spread_beside(sp, from, 0) == 0)
        return -1;
    /* A seat on an idle core was given by rank: it stays even if a sibling has become busy. */
    if (sp->holds[t] > 0 && !sp->in->machine->rows[sp->holds[t] - 1].is_beside)
        return -1;
    return better_core(sp, t, idle->cores, asym_machine_row(sp->in->machine, from, true));
}

/* A thread goes back to its preferred CPU, unless that is beside a busy sibling and a better core waits for no other thread: or
 * threads would change places in a second plan, in which the seats fill in another order. */
static int seat_for_slow(struct asym_spread *sp, uint32_t t, const struct idle *idle)
{
    const struct asym_machine *m = sp->in->machine;
    const int from = sp->ret[t].cpu, home = sp->in->threads[t].preferred_cpu;
    if (asym_mask_has(&m->fast, from) || sp->load[from] < 2)
        return -1;
    const bool goes_home = asym_mask_has(&idle->fast, home);
    const int fast = goes_home ? home : cheapest(sp, t, idle->fast, NULL);
    if (fast < 0 || asym_spread_beside(sp, fast, 0) == 0)
        return fast;
    const struct asym_mask cores = goes_home ? asym_mask_minus(&idle->cores, &idle->wanted) : idle->cores;
    const int core = better_core(sp, t, cores, asym_machine_row(m, fast, true));
    return core >= 0 ? core : fast;
}

static void move(struct asym_spread *sp, uint32_t t, int to, struct idle *idle)
{
    const struct asym_machine *m = sp->in->machine;
    sp->load[sp->ret[t].cpu]--;
    asym_spread_put(sp, t, to);
    asym_mask_clear(&idle->fast, (unsigned)to);
    for (int c = m->cpus[to].sibling; asym_mask_has(&idle->cores, c); c = m->cpus[c].sibling)
        asym_mask_clear(&idle->cores, (unsigned)c);
}

static void find_idle(struct asym_spread *sp, struct idle *idle)
{
    const struct asym_machine *m = sp->in->machine;
    ASYM_MASK_FOREACH (c, &m->usable) {
        if (asym_spread_core_is_idle(sp, c))
            asym_mask_set(&idle->cores, (unsigned)c);
        if (sp->load[c] == 0 && asym_mask_has(&m->fast, c))
            asym_mask_set(&idle->fast, (unsigned)c);
    }
    for (size_t t = 0; t < sp->in->n_threads; t++)
        if (asym_mask_has(&idle->cores, sp->in->threads[t].preferred_cpu))
            asym_mask_set(&idle->wanted, (unsigned)sp->in->threads[t].preferred_cpu);
    ASYM_MASK_FOREACH (c, &idle->wanted)
        for (int s = m->cpus[c].sibling; s != c; s = m->cpus[s].sibling)
            asym_mask_set(&idle->wanted, (unsigned)s);
    memset(sp->extra, 0, m->n_cores * sizeof *sp->extra);
}

typedef int seat_fn(struct asym_spread *, uint32_t, const struct idle *);

static void fill(struct asym_spread *sp, seat_fn *seat_for)
{
    struct idle idle = {0};
    find_idle(sp, &idle);
    for (uint32_t t = 0; t < sp->in->n_threads; t++) {
        if (asym_mask_empty(&idle.cores) && asym_mask_empty(&idle.fast))
            return;
        const bool is_home = sp->is_again && sp->ret[t].cpu == sp->in->threads[t].preferred_cpu;
        if (sp->ret[t].cpu < 0 || is_home || (sp->stays && sp->stays[t]))
            continue;
        const int to = seat_for(sp, t, &idle);
        if (to >= 0)
            move(sp, t, to, &idle);
    }
}

void asym_spread_fill_fast(struct asym_spread *sp)
{
    fill(sp, seat_for_slow);
}

void asym_spread_fill_seats(struct asym_spread *sp)
{
    fill(sp, core_for_sibling);
    asym_spread_fill_fast(sp);
}
