/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rate, the capacity, the debt and the overdraft of a token bucket. */
#include "base/token-bucket.h"
#include "support/test.h"

/* A caller that works whenever the bucket allows it gets the rate and the capacity, and not more. */
TEST(the_rate_is_kept_in_the_long_run)
{
    struct asym_token_bucket b = asym_token_bucket_full(0.01, 100 * ASYM_MSEC, ASYM_SEC);
    asym_usec spent = 0;
    b.resume = 2 * ASYM_MSEC;
    for (asym_usec now = ASYM_SEC; now < 101 * ASYM_SEC; now += 100)
        if (asym_token_bucket_has(&b, now)) {
            asym_token_bucket_charge(&b, 90, now);
            spent += 90;
        }
    assert_in_range(spent, 1090 * ASYM_MSEC, 1101 * ASYM_MSEC);
}

/* After the overdraft the caller sleeps until the bucket holds tokens for a while, and not for each call. */
TEST(an_overdrawn_bucket_says_when_it_allows_work_again)
{
    struct asym_token_bucket b = asym_token_bucket_full(0.01, 100 * ASYM_MSEC, ASYM_SEC);
    b.resume = 2 * ASYM_MSEC;
    assert_true(asym_token_bucket_due(&b) <= ASYM_SEC);
    asym_token_bucket_charge(&b, 101 * ASYM_MSEC, ASYM_SEC);
    assert_false(asym_token_bucket_has(&b, ASYM_SEC));
    const asym_usec due = asym_token_bucket_due(&b);
    assert_in_range(due, ASYM_SEC + 299 * ASYM_MSEC, ASYM_SEC + 301 * ASYM_MSEC);
    assert_false(asym_token_bucket_has(&b, due - 10 * ASYM_MSEC));
    assert_true(b.tokens > 0);
    assert_true(asym_token_bucket_has(&b, due));
    /* A bucket that is not overdrawn allows work down to 0 tokens. */
    asym_token_bucket_add(&b, -b.tokens);
    assert_true(asym_token_bucket_has(&b, due));
    asym_token_bucket_add(&b, -1);
    assert_false(asym_token_bucket_has(&b, due));
}

TEST(without_resume_an_overdraft_ends_at_no_tokens)
{
    struct asym_token_bucket b = asym_token_bucket_full(1, 1000, 500);
    asym_token_bucket_charge(&b, 1010, 500);
    assert_in_range(asym_token_bucket_due(&b), 510, 511);
    assert_false(asym_token_bucket_has(&b, 509));
    assert_true(asym_token_bucket_has(&b, 510));
    /* The time is rounded up. */
    b.rate = 0.3;
    asym_token_bucket_charge(&b, 10, 510);
    assert_true(asym_token_bucket_has(&b, asym_token_bucket_due(&b)));
}

TEST(a_debt_has_a_bound_if_it_was_given_one)
{
    struct asym_token_bucket b = asym_token_bucket_full(0.01, 100 * ASYM_MSEC, ASYM_SEC), bounded = b;
    bounded.most_debt = 10 * ASYM_MSEC;
    asym_token_bucket_charge(&b, 10 * ASYM_SEC, ASYM_SEC);
    asym_token_bucket_charge(&bounded, 10 * ASYM_SEC, ASYM_SEC);
    assert_true(b.tokens == 100.0 * ASYM_MSEC - 10.0 * ASYM_SEC);
    assert_true(asym_token_bucket_due(&b) > 900 * ASYM_SEC);
    assert_true(bounded.tokens == -10.0 * ASYM_MSEC);
    assert_in_range(asym_token_bucket_due(&bounded), 2 * ASYM_SEC, 2300 * ASYM_MSEC);
}

/* No time helps, so the caller asks again in a second. */
TEST(a_bucket_without_a_rate_is_due_once_a_second)
{
    struct asym_token_bucket b = asym_token_bucket_full(0, 1000, 500);
    asym_token_bucket_charge(&b, 1001, 500);
    assert_int_equal(asym_token_bucket_due(&b), 500 + ASYM_SEC);
    assert_false(asym_token_bucket_has(&b, 500 + ASYM_SEC));
}

TEST(it_holds_no_more_than_its_capacity)
{
    struct asym_token_bucket b = asym_token_bucket_full(0.5, 1000, 0);
    asym_token_bucket_charge(&b, 1, 1000 * ASYM_SEC);
    asym_token_bucket_charge(&b, 1000, 1000 * ASYM_SEC);
    assert_false(asym_token_bucket_has(&b, 1000 * ASYM_SEC));
    assert_true(b.tokens == -1);
    asym_token_bucket_add(&b, 5000);
    assert_true(b.tokens == 1000);
    assert_true(asym_token_bucket_has(&b, 0));
}

/* The charge falls on the full bucket: what it earned beyond its capacity before that is lost. */
TEST(a_charge_fills_first)
{
    struct asym_token_bucket b = asym_token_bucket_full(1, 1000, 0);
    asym_token_bucket_charge(&b, 400, 300);
    assert_true(b.tokens == 600);
    asym_token_bucket_charge(&b, 50, 400);
    assert_true(b.tokens == 650);
    /* At an overdraft the tokens after the charge count. */
    b.resume = 100;
    asym_token_bucket_charge(&b, 651, 400);
    assert_true(b.is_overdrawn);
    asym_token_bucket_charge(&b, 30, 520);
    assert_true(b.tokens == 89 && b.is_overdrawn);
}

TEST(a_clock_that_stands_or_runs_backwards_earns_nothing)
{
    struct asym_token_bucket b = asym_token_bucket_full(1, 1000, 500);
    asym_token_bucket_charge(&b, 2000, 500);
    assert_false(asym_token_bucket_has(&b, 500));
    assert_false(asym_token_bucket_has(&b, 400));
    asym_token_bucket_fill(&b, 500);
    assert_true(b.tokens == -1000 && b.at == 500);
}

TEST(a_changed_rate_counts_from_the_last_time_on)
{
    struct asym_token_bucket b = asym_token_bucket_full(0, 1000, 0);
    asym_token_bucket_charge(&b, 1000, 100);
    b.rate = 2;
    asym_token_bucket_fill(&b, 150);
    assert_true(b.tokens == 100);
}

TEST_MAIN
