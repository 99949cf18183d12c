/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mask table: each mask once, at one address, until the table drops or sweeps it. */
#include "support/scarce-memory.h"
#include "base/hash.c"
#include "base/grow.c"
#undef malloc
#undef calloc

#include "base/mask.h"
#include "base/mask-table.h"
#include "support/test.h"

enum { N = 10000 };

static struct asym_mask mask_of(unsigned i)
{
    struct asym_mask m = {.w = {[15] = i}};
    m.w[i % 15] = 1;
    return m;
}

TEST(ten_thousand_masks_are_each_kept_once)
{
    struct asym_mask_table masks = {0};
    static const struct asym_mask *first[N];
    for (int round = 0; round < 2; round++)
        for (unsigned i = 0; i < N; i++) {
            const struct asym_mask m = mask_of(i), *got = asym_mask_table_get(&masks, &m);
            assert_true(got && asym_mask_equal(got, &m));
            assert_true(round == 0 || got == first[i]);
            assert_ptr_equal(asym_mask_table_at(&masks, asym_mask_table_id(&masks, &m)), got);
            first[i] = got;
        }
    for (unsigned i = 0; i < N; i++) {
        const struct asym_mask m = mask_of(i);
        assert_true(asym_mask_equal(first[i], &m));
    }
    assert_int_equal(masks.index.n, N);
    asym_mask_table_done(&masks);
    const struct asym_mask m = mask_of(1);
    assert_int_equal(asym_mask_table_id(&masks, &m), 1);
    asym_mask_table_done(&masks);
}

TEST(the_empty_mask_has_a_number_of_its_own)
{
    ASYM_CLEANUP(asym_mask_table_done) struct asym_mask_table masks = {0};
    const struct asym_mask empty = {0}, *got = asym_mask_table_get(&masks, &empty);
    assert_int_equal(asym_mask_table_id(&masks, &empty), ASYM_MASK_NONE);
    assert_true(got && asym_mask_empty(got));
    assert_int_equal(masks.index.n, 0);
    asym_mask_table_mark(&masks, ASYM_MASK_NONE);
}

TEST(a_number_that_was_dropped_is_given_out_again)
{
    ASYM_CLEANUP(asym_mask_table_done) struct asym_mask_table masks = {0};
    uint32_t ids[200];
    for (unsigned i = 0; i < 200; i++) {
        const struct asym_mask m = mask_of(i);
        ids[i] = asym_mask_table_id(&masks, &m);
    }
    for (unsigned i = 0; i < 200; i += 3)
        asym_mask_table_drop(&masks, ids[i]);
    assert_int_equal(masks.index.n, 133);
    for (unsigned i = 0; i < 200; i++) {
        const struct asym_mask m = mask_of(i);
        if (i % 3 != 0)
            assert_int_equal(asym_mask_table_id(&masks, &m), ids[i]);
    }
    for (unsigned i = 1000; i < 1067; i++) {
        const struct asym_mask m = mask_of(i);
        assert_in_range(asym_mask_table_id(&masks, &m), 1, 200);
    }
    assert_int_equal(masks.n, 200);
}

TEST(a_sweep_leaves_what_is_marked)
{
    ASYM_CLEANUP(asym_mask_table_done) struct asym_mask_table masks = {0};
    static uint32_t ids[1200];
    for (unsigned i = 0; i < 1200; i++) {
        const struct asym_mask m = mask_of(i);
        assert_int_equal(asym_mask_table_is_full(&masks), i > 1024);
        ids[i] = asym_mask_table_id(&masks, &m);
    }
    for (unsigned i = 0; i < 1200; i += 2)
        asym_mask_table_mark(&masks, ids[i]);
    asym_mask_table_sweep(&masks);
    assert_int_equal(masks.index.n, 600);
    assert_false(asym_mask_table_is_full(&masks));
    for (unsigned i = 0; i < 1200; i += 2) {
        const struct asym_mask m = mask_of(i);
        assert_true(asym_mask_equal(asym_mask_table_at(&masks, ids[i]), &m));
        assert_int_equal(asym_mask_table_id(&masks, &m), ids[i]);
    }
    /* A mark holds for one sweep. */
    asym_mask_table_sweep(&masks);
    assert_int_equal(masks.index.n, 0);
}

TEST(where_room_was_made_no_memory_is_wanted)
{
    ASYM_CLEANUP(asym_mask_table_done) struct asym_mask_table masks = {0};
    bool refused_before = true;
    for (long n = 0; refused_before; n++) {
        assert_true(n < 100);
        allocations_left = n;
        refused_before = asym_mask_table_reserve(&masks, 500) == -ENOMEM;
    }
    allocations_left = 0;
    for (unsigned i = 0; i < 500; i++) {
        const struct asym_mask m = mask_of(i);
        assert_int_equal(asym_mask_table_id(&masks, &m), i + 1);
    }
    assert_false(masks.failed);
    allocations_left = -1;
}

/* Each allocation fails in turn: the table still finds its old masks, and takes new ones once there is memory. */
TEST(without_memory_a_mask_has_no_number_yet)
{
    ASYM_CLEANUP(asym_mask_table_done) struct asym_mask_table masks = {0};
    unsigned n_refused = 0;
    for (unsigned i = 0; i < 3000; i++) {
        const struct asym_mask m = mask_of(i), first = mask_of(0);
        for (allocations_left = 0; asym_mask_table_id(&masks, &m) == ASYM_MASK_NONE; n_refused++) {
            assert_true(masks.failed && asym_mask_table_is_full(&masks));
            assert_null(asym_mask_table_get(&masks, &m));
            assert_int_equal(asym_mask_table_id(&masks, &first), i == 0 ? ASYM_MASK_NONE : 1);
            allocations_left = 1;
        }
        allocations_left = -1;
        assert_int_equal(asym_mask_table_id(&masks, &m), i + 1);
    }
    assert_in_range(n_refused, 10, 100);
}

TEST_MAIN
