/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymd writes a few messages of one kind a minute, and then the number that it left out. */

#include "app/log.h"
#include "support/test.h"

static const char one[] = "one", other[] = "other";

/* Sends n messages of a kind at one moment. Returns how many the limit lets through. */
static unsigned count(struct asym_log_limit *l, const char *kind, unsigned n, asym_usec now)
{
    unsigned written = 0;
    for (unsigned i = 0; i < n; i++) {
        bool write;
        assert_non_null(asym_log_limit_count(l, kind, 5, now, &write));
        written += write;
    }
    return written;
}

TEST(a_few_are_written_and_the_others_counted)
{
    struct asym_log_limit l = {.kinds = {{.kind = NULL}}};
    unsigned n = 0;
    assert_int_equal(count(&l, one, 128, ASYM_SEC), ASYM_LOG_LIMIT_MESSAGES);
    assert_int_equal(count(&l, other, 1, ASYM_SEC), 1);
    assert_null(asym_log_limit_due(&l, 60 * ASYM_SEC, false, &n));
    const struct asym_log_kind *k = asym_log_limit_due(&l, 61 * ASYM_SEC, false, &n);
    assert_ptr_equal(k->kind, one);
    assert_int_equal(n, 128 - ASYM_LOG_LIMIT_MESSAGES);
    assert_null(asym_log_limit_due(&l, 61 * ASYM_SEC, false, &n));
    assert_int_equal(count(&l, one, 128, 61 * ASYM_SEC), ASYM_LOG_LIMIT_MESSAGES);
}

/* The limit never drops messages that come seldom. */
TEST(those_that_come_seldom_are_all_written)
{
    struct asym_log_limit l = {.kinds = {{.kind = NULL}}};
    unsigned n = 0;
    for (asym_usec t = 1; t < 1000; t += 13) {
        assert_int_equal(count(&l, one, 1, t * ASYM_SEC), 1);
        assert_null(asym_log_limit_due(&l, t * ASYM_SEC, false, &n));
    }
}

TEST(at_the_end_every_suppressed_message_is_due)
{
    struct asym_log_limit l = {.kinds = {{.kind = NULL}}};
    unsigned n = 0;
    count(&l, one, 6, ASYM_SEC);
    assert_null(asym_log_limit_due(&l, 2 * ASYM_SEC, false, &n));
    assert_non_null(asym_log_limit_due(&l, 2 * ASYM_SEC, true, &n));
    assert_int_equal(n, 1);
    assert_null(asym_log_limit_due(&l, 2 * ASYM_SEC, true, &n));
}

TEST(more_kinds_than_places_are_limited_too)
{
    static const char kinds[2 * ASYM_LOG_LIMIT_KINDS];
    struct asym_log_limit l = {.kinds = {{.kind = NULL}}};
    unsigned written = 0;
    for (size_t i = 0; i < sizeof kinds; i++)
        written += count(&l, &kinds[i], 100, ASYM_SEC);
    assert_int_equal(written, ASYM_LOG_LIMIT_KINDS * ASYM_LOG_LIMIT_MESSAGES);
}

TEST_MAIN
