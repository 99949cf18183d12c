/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Histories in few slots: the one that was used least recently makes room. */
#include "explain/monitor.h"
#include "support/test.h"

enum { SLOTS = 3, THREADS = 8 };

struct histories {
    struct asym_histories h;
    uint32_t slot[THREADS]; /* of each thread */
};

static struct asym_taskid id_of(int32_t thread)
{
    return (struct asym_taskid){thread, 1, 5};
}

/* A decision on the thread at that time. */
static void decide(struct histories *t, int32_t thread, asym_usec time)
{
    const struct asym_monitor_decision d = {.number = time, .time = time, .id = id_of(thread)};
    t->slot[thread] = asym_histories_add(&t->h, t->slot[thread], &d);
    assert_in_range(t->slot[thread], 1, SLOTS);
}

static size_t read_back(const struct histories *t, int32_t thread,
                        struct asym_monitor_decision ret[ASYM_MONITOR_DECISIONS])
{
    const struct asym_taskid id = id_of(thread);
    return asym_histories_read(&t->h, t->slot[thread], &id, ret);
}

TEST(the_least_recently_used_makes_room_each_time)
{
    struct asym_monitor_decision d[ASYM_MONITOR_DECISIONS];
    struct histories t = {.slot = {0}};
    /* The threads whose histories are there after each decision, a bit each. */
    static const struct {
        int32_t thread;
        unsigned kept;
    } rows[] = {{0, 0x01}, {1, 0x03}, {2, 0x07}, {0, 0x07}, {3, 0x0d}, {4, 0x19},
                {3, 0x19}, {5, 0x38}, {3, 0x38}, {6, 0x68}, {7, 0xc8}, {0, 0xc1}};
    assert_int_equal(asym_histories_init(&t.h, SLOTS), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned kept = 0;
        decide(&t, rows[i].thread, i + 1);
        for (int32_t k = 0; k < THREADS; k++)
            kept |= (read_back(&t, k, d) > 0 ? 1u : 0u) << k;
        if (kept != rows[i].kept)
            fail_msg("row %zu: %#x is there, not %#x", i, kept, rows[i].kept);
        assert_true(read_back(&t, rows[i].thread, d) > 0);
        assert_int_equal(d[0].time, i + 1);
    }
    asym_histories_done(&t.h);
}

/* A thread that has lost its slot begins anew, and a later thread of its number has none of its decisions. */
TEST(a_history_is_of_one_thread)
{
    struct asym_monitor_decision d[ASYM_MONITOR_DECISIONS];
    struct histories t = {.slot = {0}};
    const struct asym_taskid later = {0, 1, 6};
    assert_int_equal(asym_histories_init(&t.h, SLOTS), 0);
    for (asym_usec i = 1; i <= 2; i++)
        decide(&t, 0, i);
    assert_int_equal(read_back(&t, 0, d), 2);
    assert_int_equal(asym_histories_read(&t.h, t.slot[0], &later, d), 0);
    assert_int_equal(asym_histories_read(&t.h, 0, &later, d), 0);
    for (int32_t k = 1; k <= SLOTS; k++)
        decide(&t, k, 10);
    assert_int_equal(read_back(&t, 0, d), 0);
    decide(&t, 0, 20);
    assert_int_equal(read_back(&t, 0, d), 1);
    for (asym_usec i = 21; i < 21 + 2 * ASYM_MONITOR_DECISIONS; i++)
        decide(&t, 0, i);
    assert_int_equal(read_back(&t, 0, d), ASYM_MONITOR_DECISIONS);
    for (asym_usec i = 0; i < ASYM_MONITOR_DECISIONS; i++)
        assert_int_equal(d[i].time, 20 + 2 * ASYM_MONITOR_DECISIONS - i);
    asym_histories_done(&t.h);
}

/* Three threads decide in turn, the first one twice as often: its oldest decisions are lost. */
TEST(decisions_since_a_number_are_in_order)
{
    enum { LAST = 4 * ASYM_MONITOR_DECISIONS };
    struct histories t = {.slot = {0}};
    assert_int_equal(asym_histories_init(&t.h, SLOTS), 0);
    for (asym_usec i = 1; i <= LAST; i++)
        decide(&t, i % 2 ? 0 : i % 4 ? 1 : 2, i);
    for (uint64_t since = 0; since <= LAST; since++) {
        const struct asym_monitor_decision **all = NULL;
        size_t n = 0, lost = 0;
        assert_int_equal(asym_histories_since(&t.h, since, &all, &n), 0);
        for (uint64_t number = since + 1; number <= LAST; number++) {
            const size_t at = number - since - 1 - lost;
            const bool is_kept = number % 2 == 0 || number > LAST - 2 * ASYM_MONITOR_DECISIONS;
            lost += !is_kept;
            assert_true(!is_kept || (at < n && all[at]->number == number));
        }
        assert_int_equal(n, LAST - since - lost);
        free(all);
    }
    asym_histories_done(&t.h);
}

TEST_MAIN
