/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How often each user may connect. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "linux/rtx-acceptor.h"
#include "linux/rtx-rate.h"

static int take_all(struct asym_rtx_rate *r, uid_t uid, long long now)
{
    int n = 0;
    while (n < 100000 && asym_rtx_rate_take(r, uid, now))
        n++;
    return n;
}

static void each_user_has_a_burst_and_a_rate(void **state)
{
    (void)state;
    struct asym_rtx_rate *r = calloc(1, sizeof *r);
    assert_int_equal(take_all(r, 5, 1000), (int)ASYM_RTX_BURST);
    assert_int_equal(take_all(r, 6, 1000), (int)ASYM_RTX_BURST);
    assert_int_equal(take_all(r, 0, 1000), (int)ASYM_RTX_BURST * 4);
    assert_int_equal(take_all(r, 5, 1000 + (long long)(1000 / ASYM_RTX_PER_SEC)), 1);
    assert_int_equal(take_all(r, 5, 11000 + (long long)(1000 / ASYM_RTX_PER_SEC)), (int)(10 * ASYM_RTX_PER_SEC));
    assert_int_equal(take_all(r, 6, 1000000), (int)ASYM_RTX_BURST);
    /* A clock that stands still or runs back gives nothing. */
    assert_int_equal(take_all(r, 6, 1000), 0);
    free(r);
}

/* They share one bucket, and those who were there before have theirs. */
static void more_users_than_there_is_room_for_share(void **state)
{
    (void)state;
    struct asym_rtx_rate *r = calloc(1, sizeof *r);
    for (uid_t uid = 1; uid <= ASYM_RTX_RATE_USERS; uid++)
        assert_int_equal(take_all(r, uid, 1000), (int)ASYM_RTX_BURST);
    assert_int_equal(take_all(r, 5000, 1000), (int)ASYM_RTX_BURST);
    assert_int_equal(take_all(r, 5001, 1000), 0);
    /* One that has connected long ago makes room. */
    assert_int_equal(take_all(r, 5001, 100000), (int)ASYM_RTX_BURST);
    assert_int_equal(take_all(r, 5002, 100000), (int)ASYM_RTX_BURST);
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_user_has_a_burst_and_a_rate),
        cmocka_unit_test(more_users_than_there_is_room_for_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
