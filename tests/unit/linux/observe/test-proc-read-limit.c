/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The limits of reading: the cost for one user and for all users in the long run, and the refusal of users. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"
#include "linux/observe/proc-read-limit.h"

/* A reading whose cost was estimated right. Returns what asym_read_limit_charge() does. */
static int read_at_once(struct asym_read_limit *r, uint32_t uid, double cost, asym_usec now)
{
    const int error = asym_read_limit_charge(r, uid, ASYM_READ_LIMIT_UNREAD, cost, now);
    if (error == 0)
        asym_read_limit_settle(r, uid, cost, cost);
    return error;
}

/* Request a reading of cost us every ms for so many seconds. Returns the cost of the granted ones as a share of a CPU. */
static double draw(struct asym_read_limit *r, uint32_t uid, double cost, int seconds, asym_usec *now)
{
    double sum = 0;
    for (int i = 0; i < seconds * 1000; i++) {
        *now += ASYM_MSEC;
        if (read_at_once(r, uid, cost, *now) == 0)
            sum += cost;
    }
    return sum / ((double)seconds * (double)ASYM_SEC);
}

static struct asym_read_limit new_limit(asym_usec *now)
{
    struct asym_read_limit r;
    *now = ASYM_SEC;
    asym_read_limit_init(&r, *now);
    asym_read_limit_set(&r, 1);
    return r;
}

static void a_user_gets_half_of_the_rate_in_the_long_run(void **state)
{
    asym_usec now;
    struct asym_read_limit r = new_limit(&now);
    (void)state;
    assert_true(draw(&r, 2002, 1000, 10, &now) <= 0.016);
    const double share = draw(&r, 2002, 1000, 1000, &now);
    assert_true(share > 0.0045 && share < 0.0055);
    /* One large reading overdraws the bucket. It has to fill up before the next one. */
    assert_true(draw(&r, 2002, 50000, 1000, &now) < 0.0056);
}

static void root_is_given_what_users_leave(void **state)
{
    asym_usec now;
    struct asym_read_limit r = new_limit(&now);
    (void)state;
    for (uint32_t uid = 1000; uid < 1100; uid++)
        draw(&r, uid, 1000, 1, &now);
    /* Together, the users get at most half of the burst, and the rate. */
    assert_int_equal(asym_read_limit_charge(&r, 1200, ASYM_READ_LIMIT_UNREAD, 1000, now), -EAGAIN);
    assert_int_equal(asym_read_limit_charge(&r, 0, ASYM_READ_LIMIT_UNREAD, 1000, now), 0);
    assert_true(draw(&r, 0, 1000, 100, &now) > 0.0095);
}

static void what_was_charged_too_much_comes_back(void **state)
{
    asym_usec now;
    struct asym_read_limit r = new_limit(&now);
    int n = 0;
    (void)state;
    for (; n < 10000 && asym_read_limit_charge(&r, 2002, ASYM_READ_LIMIT_UNREAD, 5000, now) == 0; n++)
        asym_read_limit_settle(&r, 2002, 5000, 0);
    assert_int_equal(n, 10000);
    /* The bucket does not hold more than before. */
    asym_read_limit_settle(&r, 2002, 1e9, 0);
    assert_true(r.common.tokens <= ASYM_READ_LIMIT_BURST);
}

static void a_user_whose_processes_hang_readers_is_refused_for_a_time(void **state)
{
    asym_usec now;
    struct asym_read_limit r = new_limit(&now);
    (void)state;
    assert_false(asym_read_limit_hung(&r, 2002, true, now));
    assert_false(asym_read_limit_hung(&r, 2002, true, now));
    assert_int_equal(asym_read_limit_charge(&r, 2002, ASYM_READ_LIMIT_UNREAD, 1, now), 0);
    assert_true(asym_read_limit_hung(&r, 2002, true, now));
    assert_int_equal(asym_read_limit_charge(&r, 2002, ASYM_READ_LIMIT_UNREAD, 1, now), -EPERM);
    assert_int_equal(asym_read_limit_refused_until(&r, 2002), now + ASYM_READ_LIMIT_REFUSED);
    assert_int_equal(asym_read_limit_charge(&r, 2003, ASYM_READ_LIMIT_UNREAD, 1, now), 0);
    assert_int_equal(asym_read_limit_refused_until(&r, 2003), 0);
    assert_int_equal(asym_read_limit_refused_until(&r, 2004), 0);
    /* Other users do not take over the bucket of the refused one. */
    for (uint32_t uid = 10000; uid < 10000 + 4 * ASYM_READ_LIMIT_USERS; uid++)
        read_at_once(&r, uid, 1, now + uid);
    assert_int_equal(asym_read_limit_charge(&r, 2002, ASYM_READ_LIMIT_UNREAD, 1, now + ASYM_READ_LIMIT_REFUSED - 1),
                     -EPERM);
    now += ASYM_READ_LIMIT_REFUSED;
    assert_int_equal(asym_read_limit_charge(&r, 2002, ASYM_READ_LIMIT_UNREAD, 1, now), 0);
    assert_false(asym_read_limit_hung(&r, 2002, true, now));
}

/* A slow disk delays each reading of a process of root, and one reading of each process of a user. */
static void root_is_never_refused_nor_is_a_user_for_hangs_that_do_not_repeat(void **state)
{
    asym_usec now;
    struct asym_read_limit r = new_limit(&now);
    (void)state;
    for (int i = 0; i < 10 * ASYM_READ_LIMIT_HANGS; i++)
        assert_false(asym_read_limit_hung(&r, 0, true, now));
    assert_int_equal(asym_read_limit_charge(&r, 0, ASYM_READ_LIMIT_READ, 1, now), 0);
    for (int i = 0; i < 2 * ASYM_READ_LIMIT_HANGS; i++)
        assert_false(asym_read_limit_hung(&r, 2002, false, now));
    now += ASYM_READ_LIMIT_REFUSED;
    assert_int_equal(asym_read_limit_charge(&r, 2002, ASYM_READ_LIMIT_UNREAD, 1, now), 0);
}

/* The number of hangs that root's full bucket pays for. */
#define MOST_HANGS ((int)(ASYM_READ_LIMIT_USER_BURST / ASYM_READ_LIMIT_HANG_COST))

/* Neither root's readings nor other users change what root's bucket holds. */
static struct asym_read_limit empty_bucket(asym_usec *now, int n_hangs)
{
    struct asym_read_limit r = new_limit(now);
    draw(&r, 0, 1000, 100, now);
    *now += 100 * ASYM_SEC;
    assert_int_equal(asym_read_limit_charge(&r, 0, ASYM_READ_LIMIT_HUNG, 1, *now), 0);
    for (int i = 0; i < n_hangs; i++) {
        assert_int_equal(asym_read_limit_charge(&r, 0, ASYM_READ_LIMIT_UNREAD, 1, *now), i <= MOST_HANGS ? 0 : -EAGAIN);
        asym_read_limit_hung(&r, 0, i % 2, *now);
    }
    for (uint32_t uid = 10000; uid < 10000 + 4 * ASYM_READ_LIMIT_USERS; uid++)
        read_at_once(&r, uid, 1, *now);
    return r;
}

/* At 1 % of a CPU a hang is paid for after 4 s, however many there were. */
static void when_root_can_pay_for_no_hang_only_its_suspects_wait(void **state)
{
    static const int hangs[] = {MOST_HANGS + 1, 1000};
    (void)state;
    for (size_t i = 0; i < ASYM_LENGTH(hangs); i++) {
        asym_usec now;
        struct asym_read_limit r = empty_bucket(&now, hangs[i]);
        assert_int_equal(asym_read_limit_charge(&r, 0, ASYM_READ_LIMIT_HUNG, 1, now), -EAGAIN);
        assert_int_equal(asym_read_limit_charge(&r, 0, ASYM_READ_LIMIT_UNREAD, 1, now), -EAGAIN);
        assert_int_equal(asym_read_limit_charge(&r, 0, ASYM_READ_LIMIT_READ, 1, now), 0);
        assert_int_equal(asym_read_limit_charge(&r, 2002, ASYM_READ_LIMIT_UNREAD, 1, now), 0);
        now += ASYM_READ_LIMIT_ROOT_PAUSE;
        assert_int_equal(asym_read_limit_charge(&r, 0, ASYM_READ_LIMIT_HUNG, 1, now), -EAGAIN);
        assert_int_equal(asym_read_limit_charge(&r, 0, ASYM_READ_LIMIT_UNREAD, 1, now), 0);
        now += 2 * ASYM_SEC;
        assert_int_equal(asym_read_limit_charge(&r, 0, ASYM_READ_LIMIT_HUNG, 1, now), 0);
    }
    asym_usec now;
    struct asym_read_limit r = empty_bucket(&now, MOST_HANGS);
    assert_int_equal(asym_read_limit_charge(&r, 0, ASYM_READ_LIMIT_HUNG, 1, now), 0);
}

/*
 * For 1000 s, each reading for these users hangs, each time over a new process; 0: for root. Returns how many readings there
 * are.
 */
static int count_hangs(uint32_t n_users)
{
    asym_usec now;
    struct asym_read_limit r = new_limit(&now);
    int hangs = 0;
    for (asym_usec end = now + 1000 * ASYM_SEC; now < end; now += 200 * ASYM_MSEC)
        for (uint32_t uid = n_users ? 2000 : 0; uid < (n_users ? 2000 + n_users : 1); uid++)
            if (asym_read_limit_charge(&r, uid, ASYM_READ_LIMIT_UNREAD, 100, now) == 0) {
                asym_read_limit_settle(&r, uid, 100, 0);
                asym_read_limit_hung(&r, uid, false, now);
                hangs++;
            }
    assert_int_equal(asym_read_limit_charge(&r, 0, ASYM_READ_LIMIT_READ, 1000, now), 0);
    return hangs;
}

/* At 1 % of a CPU a hang is paid for after 2 s, or after 4 s by one user alone. It delays all other readings by 0.2 s. */
static void users_cannot_keep_the_reader_hanging(void **state)
{
    (void)state;
    assert_in_range(count_hangs(10), 500, 510);
    assert_in_range(count_hangs(1), 250, 260);
    /* A user starts a set-user-ID program of root again and again, which makes its real UID root's. */
    assert_in_range(count_hangs(0), 500, 510);
}

static void hangs_are_forgotten_in_time(void **state)
{
    asym_usec now;
    struct asym_read_limit r = new_limit(&now);
    (void)state;
    for (int i = 0; i < 2 * ASYM_READ_LIMIT_HANGS; i++) {
        assert_false(asym_read_limit_hung(&r, 2002, true, now));
        now += ASYM_READ_LIMIT_REFUSED;
    }
    assert_int_equal(asym_read_limit_charge(&r, 2002, ASYM_READ_LIMIT_UNREAD, 1, now), 0);
}

/* Answers that come just before the deadline. */
#define SLOW 19000.0

/* Requests as many readings as the reader takes, and settles those that are granted. Returns their number. */
static int ask_for_slow_ones(struct asym_read_limit *r, uint32_t uid, asym_usec now)
{
    int granted = 0;
    for (int i = 0; i < 128; i++)
        granted += asym_read_limit_charge(r, uid, ASYM_READ_LIMIT_UNREAD, 100, now) == 0;
    for (int i = 0; i < granted; i++)
        asym_read_limit_settle(r, uid, 100, SLOW);
    return granted;
}

/* Returns after how many seconds the user is granted a reading. */
static double wait_of(struct asym_read_limit r, uint32_t uid, asym_usec now)
{
    asym_usec later = now;
    while (read_at_once(&r, uid, 100, later) != 0)
        later += 100 * ASYM_MSEC;
    return (double)(later - now) / (double)ASYM_SEC;
}

static void slow_answers_of_a_user_stop_the_others_for_a_moment(void **state)
{
    asym_usec now;
    struct asym_read_limit r = new_limit(&now);
    (void)state;
    assert_int_equal(ask_for_slow_ones(&r, 2002, now), 128);
    assert_true(wait_of(r, 0, now) <= 2);
    assert_true(wait_of(r, 2003, now) <= 12);
    assert_true(wait_of(r, 2002, now) > 400); /* 128 * 19 ms at half of 1 % */
    /* However many users do that. The others lose their turns when they do not ask again. */
    for (uint32_t uid = 3000; uid < 3050; uid++)
        ask_for_slow_ones(&r, uid, now);
    assert_true(wait_of(r, 0, now) <= 2);
    assert_true(wait_of(r, 2003, now) <= 12 + (double)ASYM_READ_LIMIT_WAITS / (double)ASYM_SEC);
    /* Each answer is charged to its user: half of 1 % in the long run, and the last answers. */
    double sum = 0;
    for (const asym_usec end = now + 1000 * ASYM_SEC; now < end; now += 100 * ASYM_MSEC)
        sum += ask_for_slow_ones(&r, 2002, now) * SLOW;
    assert_true(sum <= 0.005 * 1000 * (double)ASYM_SEC + 128 * SLOW);
}

/* A slow disk delays the answers for all processes of root. */
static void slow_answers_of_root_put_readings_off_for_no_longer_than_a_hang(void **state)
{
    asym_usec now;
    struct asym_read_limit r = new_limit(&now);
    (void)state;
    assert_int_equal(ask_for_slow_ones(&r, 0, now), 128);
    assert_true(wait_of(r, 0, now) <= 2);
    assert_true(wait_of(r, 2002, now) <= 12);
}

/* Ten users are refused once and never ask again. Another one asks every 9 s: it nearly always waits. */
static void leave_idle_turns(struct asym_read_limit *r, asym_usec now)
{
    for (uint32_t uid = 1000; uid < 1020; uid++)
        for (int i = 0; i < 100; i++)
            read_at_once(r, uid, 2700, now);
    assert_true(r->last_turn >= 10);
}

/* Two users always have new processes. Each sample reads the newest process first, so that a third user asks before or after. */
static void compete(struct asym_read_limit *r, bool is_first, asym_usec now, int granted[3])
{
    for (int i = 0; i < 10000; i++, now += 100 * ASYM_MSEC) {
        if (i % 90 == 0)
            read_at_once(r, 1000, 2700, now);
        granted[0] += is_first && read_at_once(r, 2000, 2700, now) == 0;
        for (int k = 0; k < 64; k++)
            for (uint32_t user = 1; user < 3; user++)
                granted[user] += read_at_once(r, 2000 + user, 2700, now) == 0;
        granted[0] += !is_first && read_at_once(r, 2000, 2700, now) == 0;
    }
}

static void users_take_turns(void **state)
{
    (void)state;
    for (int is_first = 0; is_first < 2; is_first++) {
        asym_usec now;
        struct asym_read_limit r = new_limit(&now);
        int granted[3] = {0};
        leave_idle_turns(&r, now);
        compete(&r, is_first, now, granted);
        for (int user = 0; user < 3; user++)
            assert_in_range(granted[user], 1000, 1700);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_gets_half_of_the_rate_in_the_long_run),
        cmocka_unit_test(root_is_given_what_users_leave),
        cmocka_unit_test(what_was_charged_too_much_comes_back),
        cmocka_unit_test(a_user_whose_processes_hang_readers_is_refused_for_a_time),
        cmocka_unit_test(hangs_are_forgotten_in_time),
        cmocka_unit_test(root_is_never_refused_nor_is_a_user_for_hangs_that_do_not_repeat),
        cmocka_unit_test(when_root_can_pay_for_no_hang_only_its_suspects_wait),
        cmocka_unit_test(users_cannot_keep_the_reader_hanging),
        cmocka_unit_test(slow_answers_of_a_user_stop_the_others_for_a_moment),
        cmocka_unit_test(slow_answers_of_root_put_readings_off_for_no_longer_than_a_hang),
        cmocka_unit_test(users_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
