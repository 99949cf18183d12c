/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ration of reading: what a user, and all users, may cost in the long run, and who is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"
#include "linux/proc-ration.h"

/* Readings of cost us each that a user is given in so many seconds, tried every ms. Returns their cost as a share of a CPU. */
static double draw(struct asym_ration *r, uint32_t uid, double cost, int seconds, asym_usec *now)
{
    double sum = 0;
    for (int i = 0; i < seconds * 1000; i++) {
        *now += ASYM_MSEC;
        if (asym_ration_charge(r, uid, cost, *now) == 0)
            sum += cost;
    }
    return sum / ((double)seconds * (double)ASYM_SEC);
}

static struct asym_ration new_ration(asym_usec *now)
{
    struct asym_ration r;
    *now = ASYM_SEC;
    asym_ration_init(&r, *now);
    asym_ration_set(&r, 1);
    return r;
}

static void a_user_gets_half_of_the_rate_in_the_long_run(void **state)
{
    asym_usec now;
    struct asym_ration r = new_ration(&now);
    (void)state;
    assert_true(draw(&r, 2002, 1000, 10, &now) <= 0.016);
    const double share = draw(&r, 2002, 1000, 1000, &now);
    assert_true(share > 0.0045 && share < 0.0055);
    /* One large reading overdraws the account, which then fills up first. */
    assert_true(draw(&r, 2002, 50000, 1000, &now) < 0.0056);
}

static void root_is_given_what_users_leave(void **state)
{
    asym_usec now;
    struct asym_ration r = new_ration(&now);
    (void)state;
    for (uint32_t uid = 1000; uid < 1100; uid++)
        draw(&r, uid, 1000, 1, &now);
    /* Together they have at most half of the burst, and the rate. */
    assert_int_equal(asym_ration_charge(&r, 1200, 1000, now), -EAGAIN);
    assert_int_equal(asym_ration_charge(&r, 0, 1000, now), 0);
    assert_true(draw(&r, 0, 1000, 100, &now) > 0.0095);
}

static void what_was_charged_too_much_comes_back(void **state)
{
    asym_usec now;
    struct asym_ration r = new_ration(&now);
    int n = 0;
    (void)state;
    for (; n < 10000 && asym_ration_charge(&r, 2002, 5000, now) == 0; n++)
        asym_ration_settle(&r, 2002, 5000, 0);
    assert_int_equal(n, 10000);
    /* And no more than there was. */
    asym_ration_settle(&r, 2002, 1e9, 0);
    assert_true(r.left <= ASYM_RATION_BURST);
}

static void a_user_whose_processes_hang_readers_is_refused_for_a_time(void **state)
{
    asym_usec now;
    struct asym_ration r = new_ration(&now);
    (void)state;
    assert_false(asym_ration_hung(&r, 2002, now));
    assert_false(asym_ration_hung(&r, 2002, now));
    assert_int_equal(asym_ration_charge(&r, 2002, 1, now), 0);
    assert_true(asym_ration_hung(&r, 2002, now));
    assert_int_equal(asym_ration_charge(&r, 2002, 1, now), -EPERM);
    assert_int_equal(asym_ration_charge(&r, 2003, 1, now), 0);
    /* Other users do not drive it out. */
    for (uint32_t uid = 10000; uid < 10000 + 4 * ASYM_RATION_USERS; uid++)
        asym_ration_charge(&r, uid, 1, now + uid);
    assert_int_equal(asym_ration_charge(&r, 2002, 1, now + ASYM_RATION_REFUSED - 1), -EPERM);
    now += ASYM_RATION_REFUSED;
    assert_int_equal(asym_ration_charge(&r, 2002, 1, now), 0);
    assert_false(asym_ration_hung(&r, 2002, now));
}

static void hangs_are_forgotten_in_time(void **state)
{
    asym_usec now;
    struct asym_ration r = new_ration(&now);
    (void)state;
    for (int i = 0; i < 2 * ASYM_RATION_HANGS; i++) {
        assert_false(asym_ration_hung(&r, 2002, now));
        now += ASYM_RATION_REFUSED;
    }
    assert_int_equal(asym_ration_charge(&r, 2002, 1, now), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_gets_half_of_the_rate_in_the_long_run),
        cmocka_unit_test(root_is_given_what_users_leave),
        cmocka_unit_test(what_was_charged_too_much_comes_back),
        cmocka_unit_test(a_user_whose_processes_hang_readers_is_refused_for_a_time),
        cmocka_unit_test(hangs_are_forgotten_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
