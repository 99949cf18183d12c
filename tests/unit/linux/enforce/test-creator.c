/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asym_creators_find must find what its contract says, for random entries, ancestors and threads. */

#include "base/mask.h"
#include "linux/enforce/ledger-internal.h"
#include "support/test.h"

#define N_ONLINE  4
#define TGID      5000
#define NO_THREAD 5000000 /* above every TID that the kernel assigns */

static struct asym_ledger ledger;

static int set_up(void **state)
{
    ledger = (struct asym_ledger){.online.w = {(1 << N_ONLINE) - 1}};
    return 0;
}

static int tear_down(void **state)
{
    free(ledger.entries);
    free(ledger.tgids);
    asym_hash_done(&ledger.index);
    return 0;
}

static struct asym_mask mask_of(uint64_t online, uint64_t absent)
{
    return (struct asym_mask){.w = {online, absent}};
}

static struct asym_ledger_entry *add(int32_t tid, int32_t tgid, uint64_t start, uint64_t since)
{
    const struct asym_taskid id = {tid, tgid, start};
    struct asym_ledger_entry *e = asym_ledger_add(&ledger, &id);
    assert_non_null(e);
    e->since = since;
    e->original = mask_of(0xf, 0);
    e->set = e->before = mask_of(0x1, 0);
    return e;
}

static uint32_t seed;

static unsigned chance(unsigned n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

static void add_any(int i)
{
    struct asym_ledger_entry *e = add(NO_THREAD + i, TGID + (int32_t)chance(3), 10 + chance(4) * 10, 50 + chance(8));
    e->session = (int32_t)(TGID + chance(3));
    e->original = mask_of(1 + chance(15), chance(3));
    e->set = mask_of(chance(4), chance(3));
    e->before = mask_of(1 + chance(4), chance(3));
    e->transit_cpu = chance(6);
    e->under_way = chance(2);
    e->transit_until = chance(2) ? 100 : 0;
    e->boosted = chance(2);
    e->original_reset = chance(2);
    e->original_nice = (int8_t)(chance(5) - 2);
    e->set_nice = (int8_t)(chance(3) - 5);
    e->before_nice = (int8_t)(chance(3) - 4);
    e->image.stack = chance(3) ? 100 : 0;
    if (chance(4) == 0)
        e->set_nice = e->before_nice = 1;
}

/* Images of the process: the one that asymd has seen, another one, one that calls exec, one that is not shown. */
static const struct asym_image images[] = {{0, 100}, {0, 200}, {0, 0}, {1, 0}};
static const struct asym_image *image;

/* The contract of asym_creators_find, for one entry and one origin. */
static bool can_be_creator(const struct asym_ledger_entry *e, const struct asym_ancestor *o, bool by_session,
                           const struct asym_taskid *id, const struct asym_mask *found, int8_t nice)
{
    const struct asym_ledger_entry *known = asym_ledger_find(&ledger, id->tid);
    const bool itself = known && known->id.start == id->start;
    if ((by_session ? e->session : e->id.tgid) != o->number || e->id.start < o->start || e->id.tid == id->tid)
        return false;
    if (!asym_ledger_looks_inherited(&ledger, e, found, nice, 60))
        return false;
    const bool same_process = e->id.tgid == id->tgid && id->tid == id->tgid && !by_session && o->oldest == UINT64_MAX;
    if (same_process && (itself || (e->image.stack == 100 && (image == &images[1] || image == &images[2]))))
        return true;
    return !itself && e->since <= ASYM_MIN(o->oldest, id->start) + 1;
}

/* Ranks a creator by nice value, then online CPUs, then the distance of the origin. Above 0; 0: it is no creator. */
static unsigned worth(const struct asym_ledger_entry *e, const struct asym_ancestors *ancestors,
                      const struct asym_taskid *id, const struct asym_mask *found, int8_t nice)
{
    const struct asym_mask online = asym_mask_and(&e->original, &ledger.online);
    const struct asym_ancestor *process = &ancestors->processes[0];
    const bool by_exec = id->tid == id->tgid && e->id.tgid == process->number && e->id.start >= process->start;
    const bool exact = by_exec ? asym_ledger_is_nice_set(e, nice) : asym_ledger_passes_nice(e, nice);
    const unsigned good = (exact ? 10000 : 0) + asym_mask_count(&online) * 1000;
    unsigned best = 0;
    for (size_t i = 0; i < ancestors->n; i++)
        if (can_be_creator(e, &ancestors->processes[i], false, id, found, nice))
            best = ASYM_MAX(best, good + (unsigned)ASYM_MIN(ancestors->processes[i].oldest, UINT64_C(999)));
    if (ancestors->session.number > 0 && can_be_creator(e, &ancestors->session, true, id, found, nice))
        best = ASYM_MAX(best, good + (unsigned)ancestors->session.oldest);
    return best;
}

static struct asym_ancestors any_ancestors(void)
{
    /* Each number has one start, as in a pass over all processes. */
    struct asym_ancestors ancestors = {.processes = {{TGID + (int32_t)chance(3), 20, UINT64_MAX}}, .n = 1 + chance(2)};
    ancestors.processes[1] = (struct asym_ancestor){TGID + 1, 20, 45 + chance(15)};
    if (chance(2))
        ancestors.session = (struct asym_ancestor){TGID + (int32_t)chance(3), chance(2) ? 20 : 0, 45 + chance(15)};
    return ancestors;
}

static void assert_best_is_found(int n_entries)
{
    const struct asym_ancestors ancestors = any_ancestors();
    struct asym_taskid id = {NO_THREAD + (int32_t)chance(20), ancestors.processes[0].number, 10 + chance(60)};
    if (chance(4) == 0)
        id.tid = id.tgid;
    const struct asym_mask found = mask_of(1 + chance(15), 0);
    const int8_t nice = (int8_t)(chance(6) - 3);
    image = &images[chance(ASYM_LENGTH(images))];
    unsigned best = 0;
    for (int i = 0; i < n_entries; i++)
        best = ASYM_MAX(best, worth(&ledger.entries[i], &ancestors, &id, &found, nice));
    struct asym_creators c = {.ledger = &ledger, .begun = 60};
    asym_creators_select(&c, &ancestors);
    const struct asym_ledger_entry *e = asym_creators_find(&c, &id, image, &found, nice);
    assert_int_equal(e ? worth(e, &ancestors, &id, &found, nice) : 0, best);
    assert_true(best == 0 || c.n > 0);
}

TEST_WITH(it_finds_the_best_of_those_that_can_be_creators, set_up, tear_down)
{
    for (seed = 1; seed < 4000; seed++) {
        const uint32_t round = seed;
        const int n = 1 + (int)chance(12);
        set_up(state);
        for (int i = 0; i < n; i++)
            add_any(i);
        /* The leader has its own entry. It may have the mask of a thread that has called exec. */
        add(TGID, TGID, 20, 50);
        for (int i = 0; i < 50; i++)
            assert_best_is_found(n + 1);
        tear_down(state);
        seed = round;
    }
    set_up(state);
}

TEST_MAIN
