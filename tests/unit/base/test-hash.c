/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the hash table against a plain array, and of its errors when memory runs out. */
#include "support/scarce-memory.h"

#include "base/hash.c"
#include "support/test.h"
#undef malloc
#undef calloc

enum { N_ITEMS = 3000, N_CHANGES = 100000 };

/* The first slots of the items: spread, in few clusters, and at the end of the table, where a search wraps to the start. */
static uint32_t spread(size_t i)
{
    return asym_hash_of_id((int32_t)i * 1024 + 1);
}

static uint32_t clustered(size_t i)
{
    return (uint32_t)(i % 7) * 64;
}

static uint32_t around_the_end(size_t i)
{
    return UINT32_MAX - (uint32_t)(i % 5);
}

static bool has(const struct asym_hash *h, uint32_t hash, size_t item)
{
    size_t n = 0;
    ASYM_HASH_FOREACH (i, h, hash)
        n += i == item;
    assert_true(n <= 1);
    return n == 1;
}

TEST(items_are_found_whatever_comes_and_goes)
{
    static const struct {
        uint32_t (*hash_of)(size_t);
        size_t n_items, n_changes;
    } cases[] = {{spread, N_ITEMS, N_CHANGES}, {clustered, 100, 20000}, {around_the_end, 12, 20000}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        ASYM_CLEANUP(asym_hash_done) struct asym_hash h = {0};
        bool there[N_ITEMS] = {false};
        size_t n = 0;
        unsigned seed = 1;
        for (size_t i = 0; i < cases[c].n_changes; i++) {
            seed = seed * 1103515245u + 12345u;
            const size_t k = (seed >> 8) % cases[c].n_items;
            const uint32_t hash = cases[c].hash_of(k);
            assert_int_equal(has(&h, hash, k), there[k]);
            if (there[k]) {
                asym_hash_remove(&h, hash, k);
            } else {
                assert_int_equal(asym_hash_reserve(&h, 1), 0);
                asym_hash_add(&h, hash, k);
            }
            there[k] = !there[k];
            n += there[k] ? 1 : (size_t)-1;
            assert_int_equal(h.n, n);
            assert_true(2 * h.n <= h.n_slots);
        }
        for (size_t k = 0; k < cases[c].n_items; k++)
            assert_int_equal(has(&h, cases[c].hash_of(k), k), there[k]);
        asym_hash_clear(&h);
        for (size_t k = 0; k < cases[c].n_items; k++)
            assert_false(has(&h, cases[c].hash_of(k), k));
    }
}

TEST(an_item_gets_another_number)
{
    ASYM_CLEANUP(asym_hash_done) struct asym_hash h = {0};
    assert_int_equal(asym_hash_reserve(&h, 3), 0);
    asym_hash_add(&h, 15, 1);
    asym_hash_add(&h, 15, 2);
    asym_hash_add(&h, 31, 3);
    asym_hash_renumber(&h, 15, 2, 7);
    assert_true(has(&h, 15, 1));
    assert_false(has(&h, 15, 2));
    assert_true(has(&h, 15, 7));
    assert_true(has(&h, 31, 3));
}

TEST(an_empty_table_has_nothing)
{
    const struct asym_hash h = {0};
    assert_false(has(&h, 0, 0));
}

TEST(a_table_lives_in_memory_of_its_caller)
{
    struct asym_hash_slot slots[32];
    struct asym_hash h;
    for (size_t i = 0; i < 32; i++)
        slots[i] = (struct asym_hash_slot){.hash = 3, .item = 9};
    assert_int_equal(asym_hash_slots_for(16), 32);
    assert_int_equal(asym_hash_slots_for(17), 64);
    asym_hash_init_in(&h, slots, 32);
    assert_false(has(&h, 3, 8));
    for (size_t i = 0; i < 16; i++)
        asym_hash_add(&h, 3, i);
    for (size_t i = 0; i < 16; i++)
        assert_true(has(&h, 3, i));
    assert_ptr_equal(h.slots, slots);
}

TEST(without_memory_the_table_is_as_it_was)
{
    ASYM_CLEANUP(asym_hash_done) struct asym_hash h = {0};
    allocations_left = 0;
    assert_int_equal(asym_hash_reserve(&h, 1), -ENOMEM);
    allocations_left = -1;
    assert_int_equal(asym_hash_reserve(&h, 8), 0);
    for (size_t i = 0; i < 8; i++)
        asym_hash_add(&h, (uint32_t)i, i);
    allocations_left = 0;
    assert_int_equal(asym_hash_reserve(&h, 1), -ENOMEM);
    assert_int_equal(asym_hash_reserve(&h, UINT32_MAX), -ENOMEM);
    allocations_left = -1;
    assert_int_equal(asym_hash_reserve(&h, UINT32_MAX), -ENOMEM);
    assert_int_equal(h.n, 8);
    for (size_t i = 0; i < 8; i++)
        assert_true(has(&h, (uint32_t)i, i));
}

/* Every bit of a mask must change its hash, because masks of large machines may differ in one CPU. */
TEST(each_cpu_changes_the_hash_of_a_mask)
{
    static uint32_t hashes[ASYM_MAX_CPUS];
    for (unsigned cpu = 0; cpu < ASYM_MAX_CPUS; cpu++) {
        struct asym_mask m = {0};
        m.w[cpu / 64] = UINT64_C(1) << cpu % 64;
        hashes[cpu] = asym_hash_of_mask(&m);
        for (unsigned other = 0; other < cpu; other++)
            assert_int_not_equal(hashes[cpu], hashes[other]);
    }
}

TEST_MAIN
