/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The limit on the connections of each user. */
#include <stdlib.h>

#include "linux/rtx/rtx-acceptor.h"
#include "linux/rtx/rtx-rate.h"
#include "support/test.h"

/* now: milliseconds. */
static int take_all(struct asym_rtxd_rate *r, uid_t uid, long long now)
{
    int n = 0;
    while (n < 100000 && asym_rtxd_rate_take(r, uid, (asym_usec)now * ASYM_MSEC))
        n++;
    return n;
}

TEST(each_user_has_a_burst_and_a_rate)
{
    struct asym_rtxd_rate *r = calloc(1, sizeof *r);
    assert_int_equal(take_all(r, 5, 1000), (int)ASYM_RTXD_BURST);
    assert_int_equal(take_all(r, 6, 1000), (int)ASYM_RTXD_BURST);
    assert_int_equal(take_all(r, 0, 1000), (int)ASYM_RTXD_BURST * 4);
    assert_int_equal(take_all(r, 5, 1000 + (long long)(1000 / ASYM_RTXD_PER_SEC)), 1);
    assert_int_equal(take_all(r, 5, 11000 + (long long)(1000 / ASYM_RTXD_PER_SEC)), (int)(10 * ASYM_RTXD_PER_SEC));
    assert_int_equal(take_all(r, 6, 1000000), (int)ASYM_RTXD_BURST);
    /* A clock that stands still or runs backwards adds no tokens. */
    assert_int_equal(take_all(r, 6, 1000), 0);
    free(r);
}

/* Further users share one bucket; the earlier users keep theirs. */
TEST(more_users_than_there_is_room_for_share)
{
    struct asym_rtxd_rate *r = calloc(1, sizeof *r);
    for (uid_t uid = 1; uid <= ASYM_RTXD_RATE_USERS; uid++)
        assert_int_equal(take_all(r, uid, 1000), (int)ASYM_RTXD_BURST);
    assert_int_equal(take_all(r, 5000, 1000), (int)ASYM_RTXD_BURST);
    assert_int_equal(take_all(r, 5001, 1000), 0);
    /* A user that connected long ago gives up its bucket. */
    assert_int_equal(take_all(r, 5001, 100000), (int)ASYM_RTXD_BURST);
    assert_int_equal(take_all(r, 5002, 100000), (int)ASYM_RTXD_BURST);
    free(r);
}

/* A user with many user ids takes all buckets and the shared one. Root has a bucket that no other user can take. */
TEST(many_user_ids_leave_root_its_bucket)
{
    struct asym_rtxd_rate *r = calloc(1, sizeof *r);
    for (uid_t uid = 1; uid <= ASYM_RTXD_RATE_USERS + 1; uid++)
        assert_int_equal(take_all(r, uid, 1000), (int)ASYM_RTXD_BURST);
    assert_int_equal(take_all(r, 5000, 1000), 0);
    assert_int_equal(take_all(r, 0, 1000), (int)ASYM_RTXD_BURST * 4);
    free(r);
}

TEST_MAIN
