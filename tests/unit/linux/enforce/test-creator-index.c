/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The index must find the same creator for a thread as a search of every entry would, in a fraction of the steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/macro.h"
#include "base/mask.h"
#include "linux/enforce/creator-index.h"

#define N_ONLINE  4
#define TGID      5000
#define NO_THREAD 5000000 /* above every TID that the kernel assigns */
#define N         4096

/* A search may run two binary searches for each group of nice values, and there are 20 such groups. */
#define STEPS_MOST 64

static struct asym_ledger ledger;

static int set_up(void **state)
{
    (void)state;
    ledger = (struct asym_ledger){.online.w = {(1 << N_ONLINE) - 1}};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
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

/* The entries have different masks, which are all equal on the online CPUs. */
static void the_work_does_not_grow_with_the_entries(void **state)
{
    struct asym_creator_index *c;
    const struct asym_mask found = mask_of(0x1, 0);
    const struct asym_ancestors ancestors = {.processes = {{TGID, 1, UINT64_MAX}}, .n = 1};
    (void)state;
    for (int i = 0; i < N; i++) {
        struct asym_ledger_entry *e = add(NO_THREAD + i, TGID, 1, (uint64_t)(1000 + i));
        e->original = mask_of(0xf, (uint64_t)i + 1);
        e->set = mask_of(0x1, (uint64_t)i + 1);
        e->boosted = true;
        e->original_nice = (int8_t)(i % 20);
    }
    assert_int_equal(asym_creator_index_new(&ledger, 0, &c), 1);
    asym_creator_index_set_ancestors(c, &ancestors);
    assert_true(asym_creator_index_steps(c) <= 2 * N);
    const uint64_t before = asym_creator_index_steps(c);
    for (int i = 0; i < N; i++) {
        /* One half of the threads started before every entry. Fewer and fewer entries fit the other half. */
        const struct asym_taskid id = {NO_THREAD + N + i, TGID, (uint64_t)(i % 2 ? 500 : 1000 + N - i)};
        const struct asym_ledger_entry *e = asym_creator_index_find(c, &id, &found, 3);
        assert_int_equal(e != NULL, i % 2 == 0);
        assert_true(!e || e->since <= id.start + 1);
    }
    const uint64_t each = (asym_creator_index_steps(c) - before) / N;
    print_message("%d entries, %d threads: %llu steps a thread\n", N, N, (unsigned long long)each);
    assert_true(each <= 20 * 16);
    asym_creator_index_free(c);
}

/* The entries of a parent are evaluated once for all of its children. */
static void the_work_does_not_grow_with_the_children(void **state)
{
    struct asym_creator_index *c;
    (void)state;
    for (int i = 0; i < N; i++)
        add(NO_THREAD + i, TGID, 1, (uint64_t)(1000 + i))->original = mask_of(0xf, (uint64_t)i + 1);
    assert_int_equal(asym_creator_index_new(&ledger, 0, &c), 1);
    for (int i = 0; i < N; i++) {
        const struct asym_ancestors ancestors = {.processes = {{TGID + 1 + i, 9000, UINT64_MAX}, {TGID, 1, 9000}},
                                                 .n = 2};
        const struct asym_taskid id = {TGID + 1 + i, TGID + 1 + i, 9000};
        const struct asym_mask found = mask_of(0x1, 0);
        asym_creator_index_set_ancestors(c, &ancestors);
        assert_non_null(asym_creator_index_find(c, &id, &found, 0));
    }
    print_message("%d entries, %d children: %llu steps a child\n", N, N,
                  (unsigned long long)asym_creator_index_steps(c) / N);
    assert_true(asym_creator_index_steps(c) <= (uint64_t)N * 2 * STEPS_MOST);
    asym_creator_index_free(c);
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
    if (chance(4) == 0)
        e->set_nice = e->before_nice = 1;
}

/* The contract of asym_creator_index_find, for one entry and one origin. */
static bool can_be_creator(const struct asym_ledger_entry *e, const struct asym_ancestor *o, bool by_session,
                           const struct asym_taskid *id, const struct asym_mask *found, int8_t nice)
{
    const struct asym_ledger_entry *known = asym_ledger_find(&ledger, id->tid);
    const bool itself = known && known->id.start == id->start;
    if ((by_session ? e->session : e->id.tgid) != o->number || e->id.start < o->start || e->id.tid == id->tid)
        return false;
    if (!asym_ledger_looks_inherited(&ledger, e, found, nice, 60))
        return false;
    if (itself)
        return e->id.tgid == id->tgid && id->tid == id->tgid && !by_session;
    return e->since <= ASYM_MIN(o->oldest, id->start) + 1;
}

/* Ranks a creator by nice value, then CPUs, then the distance of the origin. Above 0; 0: it is no creator. */
static unsigned worth(const struct asym_ledger_entry *e, const struct asym_ancestors *ancestors,
                      const struct asym_taskid *id, const struct asym_mask *found, int8_t nice)
{
    const unsigned good = (asym_ledger_nice_of_child(e) == nice ? 10000 : 0) + asym_mask_count(&e->original) * 100;
    for (unsigned i = 0; i < ancestors->n; i++)
        if (can_be_creator(e, &ancestors->processes[i], false, id, found, nice))
            return good + 99 - i;
    return ancestors->session.number > 0 && can_be_creator(e, &ancestors->session, true, id, found, nice) ? good + 1
                                                                                                          : 0;
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

static void assert_best_is_found(struct asym_creator_index *c, int n_entries)
{
    const struct asym_ancestors ancestors = any_ancestors();
    struct asym_taskid id = {NO_THREAD + (int32_t)chance(20), ancestors.processes[0].number, 10 + chance(60)};
    if (chance(4) == 0)
        id.tid = id.tgid;
    const struct asym_mask found = mask_of(1 + chance(15), 0);
    const int8_t nice = (int8_t)(chance(6) - 3);
    unsigned best = 0;
    for (int i = 0; i < n_entries; i++)
        best = ASYM_MAX(best, worth(&ledger.entries[i], &ancestors, &id, &found, nice));
    asym_creator_index_set_ancestors(c, &ancestors);
    const struct asym_ledger_entry *e = asym_creator_index_find(c, &id, &found, nice);
    assert_int_equal(e ? worth(e, &ancestors, &id, &found, nice) : 0, best);
    assert_true(best == 0 || asym_creator_index_has_mask(c, &found));
}

static void the_index_finds_what_a_search_of_every_entry_finds(void **state)
{
    struct asym_creator_index *c;
    for (seed = 1; seed < 4000; seed++) {
        const uint32_t round = seed;
        const int n = 1 + (int)chance(12);
        set_up(state);
        for (int i = 0; i < n; i++)
            add_any(i);
        /* The leader has its own entry. It may have the mask of a thread that has called exec. */
        add(TGID, TGID, 20, 50);
        assert_true(asym_creator_index_new(&ledger, 60, &c) >= 0);
        for (int i = 0; i < 50; i++)
            assert_best_is_found(c, n + 1);
        asym_creator_index_free(c);
        tear_down(state);
        seed = round;
    }
    set_up(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(the_work_does_not_grow_with_the_entries),
        T(the_work_does_not_grow_with_the_children),
        T(the_index_finds_what_a_search_of_every_entry_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
