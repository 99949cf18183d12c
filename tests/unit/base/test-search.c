/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the binary search against a linear one. */

#include "base/sort.h"
#include "support/test.h"

struct item {
    char pad;
    struct {
        int32_t before, number, behind;
    } id;
};

TEST(the_first_that_is_not_below_is_found)
{
    static struct item items[40];
    for (size_t n = 0; n <= 40; n++) {
        /* every number occurs twice; the first are negative */
        for (size_t i = 0; i < n; i++) {
            items[i].id.number = (int32_t)(i / 2 * 3) - 20;
            items[i].id.before = INT32_MAX;
            items[i].id.behind = INT32_MIN;
        }
        for (int32_t key = -25; key < 45; key++) {
            size_t want = 0;
            while (want < n && items[want].id.number < key)
                want++;
            assert_int_equal(ASYM_LOWER_BOUND(items, n, id.number, key), want);
        }
        assert_int_equal(ASYM_LOWER_BOUND(items, n, id.number, INT32_MIN), 0);
        assert_int_equal(ASYM_LOWER_BOUND(items, n, id.number, INT32_MAX), n);
    }
}

TEST(nothing_is_searched_where_there_are_no_items)
{
    const struct item *items = NULL;
    assert_int_equal(ASYM_LOWER_BOUND(items, 0, id.number, 1), 0);
}

TEST_MAIN
