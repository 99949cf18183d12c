/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading a page: the meaning of words, and hostile pages. */

#include "linux/rtx/rtx-server-internal.h"
#include "support/test.h"

#define N 8

static struct {
    struct asym_rtx_header header;
    struct asym_rtx_slot slots[N];
} page;

static struct asym_rtxd_layout layout;
static struct asym_rtxd_reading readings[N];
static struct asym_rtxd_page_state page_state;
static struct asym_rtxd_thread_report said[N];

static int set_up(void **state)
{
    memset(&page, 0, sizeof page);
    memset(readings, 0, sizeof readings);
    page_state = (struct asym_rtxd_page_state){.readings = readings};
    page.header = (struct asym_rtx_header){.magic = ASYM_RTX_MAGIC,
                                           .version = ASYM_RTX_VERSION,
                                           .header_size = sizeof page.header,
                                           .slot_size = sizeof page.slots[0],
                                           .n_slots = N,
                                           .n_used = N};
    return asym_rtxd_check_page(&page, sizeof page, &layout);
}

static void put(size_t i, int32_t tid, uint64_t word)
{
    page.slots[i].tid = tid;
    page.slots[i].word = word;
}

static size_t read_page(asym_usec now)
{
    return asym_rtxd_read(&page, &layout, N, now, 20, 0, &page_state, said);
}

TEST_WITH(headers_that_lie_are_refused, set_up, NULL)
{
    static const struct {
        size_t offset;
        uint32_t value;
        int error;
    } cases[] = {
        {offsetof(struct asym_rtx_header, magic), 1, -EPROTO},
        {offsetof(struct asym_rtx_header, version), 0, -EPROTO},
        {offsetof(struct asym_rtx_header, version), ASYM_RTX_VERSION + 1, -EPROTONOSUPPORT},
        {offsetof(struct asym_rtx_header, header_size), 0, -EPROTO},
        {offsetof(struct asym_rtx_header, header_size), 65, -EPROTO},
        {offsetof(struct asym_rtx_header, header_size), UINT32_MAX - 63, -EPROTO},
        {offsetof(struct asym_rtx_header, header_size), 128, -EPROTO},
        {offsetof(struct asym_rtx_header, slot_size), 0, -EPROTO},
        {offsetof(struct asym_rtx_header, slot_size), 32, -EPROTO},
        {offsetof(struct asym_rtx_header, slot_size), 96, -EPROTO},
        {offsetof(struct asym_rtx_header, slot_size), 128, -EPROTO},
        {offsetof(struct asym_rtx_header, slot_size), UINT32_MAX - 63, -EPROTO},
        {offsetof(struct asym_rtx_header, n_slots), 0, -EPROTO},
        {offsetof(struct asym_rtx_header, n_slots), N + 1, -EPROTO},
        {offsetof(struct asym_rtx_header, n_slots), UINT32_MAX, -EPROTO},
    };
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        set_up(NULL);
        memcpy((char *)&page + cases[i].offset, &cases[i].value, sizeof cases[i].value);
        assert_int_equal(asym_rtxd_check_page(&page, sizeof page, &layout), cases[i].error);
    }
    set_up(NULL);
    for (size_t size = 0; size < sizeof page; size++)
        assert_int_equal(asym_rtxd_check_page(&page, size, &layout), -EPROTO);
    assert_int_equal(asym_rtxd_check_page(&page, ASYM_RTXD_MAX_PAGE + 1, &layout), -EPROTO);
}

TEST_WITH(notify_min_is_within_bounds_whatever_the_header_says, set_up, NULL)
{
    static const struct {
        uint32_t said;
        asym_usec is;
    } rows[] = {
        {0, 1000}, {1, 1}, {1000, 1000}, {20000, 20000}, {1000000, 1000000}, {1000001, 1000000}, {UINT32_MAX, 1000000}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        page.header.notify_min_usec = rows[i].said;
        assert_int_equal(asym_rtxd_check_page(&page, sizeof page, &layout), 0);
        assert_int_equal(layout.notify_min, rows[i].is);
    }
    /* Older programs leave this field 0: it was reserved. */
    assert_int_equal(offsetof(struct asym_rtx_header, notify_min_usec), 24);
}

TEST_WITH(a_later_page_may_have_more_in_its_header_and_slots, set_up, NULL)
{
    static struct {
        struct asym_rtx_header header;
        char more[64];
        struct {
            struct asym_rtx_slot slot;
            char more[64];
        } slots[2];
    } big;
    big.header = page.header;
    big.header.header_size = 128;
    big.header.slot_size = 128;
    big.header.n_slots = big.header.n_used = 2;
    big.slots[1].slot.tid = 77;
    big.slots[1].slot.word = ASYM_RTX_WORKING;
    assert_int_equal(asym_rtxd_check_page(&big, sizeof big, &layout), 0);
    assert_int_equal(asym_rtxd_read(&big, &layout, N, 1, 20, 0, &page_state, said), 1);
    assert_int_equal(said[0].tid, 77);
}

TEST_WITH(a_wait_counts_once_it_has_lasted, set_up, NULL)
{
    put(0, 5, ASYM_RTX_SPINNING);
    put(1, 6, ASYM_RTX_WORKING);
    put(2, 7, ASYM_RTX_SLEEPING);
    assert_int_equal(read_page(1000), 3);
    assert_false(said[0].spins);
    assert_true(said[1].works && !said[1].spins && !said[1].master);
    assert_true(said[2].spins);
    read_page(1019);
    assert_false(said[0].spins);
    read_page(1020);
    assert_true(said[0].spins);
    /* Two barriers are two waits, though their state is equal. */
    page.slots[0].word += 2 * ASYM_RTX_CHANGE;
    read_page(1030);
    assert_false(said[0].spins);
    /* Another thread's wait in the same slot is another wait. */
    read_page(1060);
    assert_true(said[0].spins);
    page.slots[0].tid = 4;
    read_page(1070);
    assert_int_equal(said[0].tid, 4);
    assert_false(said[0].spins);
}

TEST_WITH(in_a_serial_phase_every_wait_is_idle, set_up, NULL)
{
    const uint64_t serial = ASYM_RTX_WORKING | ASYM_RTX_MASTER | ASYM_RTX_PHASES | ASYM_RTX_SERIAL;
    put(0, 5, serial);
    put(1, 6, ASYM_RTX_SPINNING);
    read_page(1000);
    assert_true(said[0].master);
    assert_true(said[1].spins);
    /* When the phase ends, waiting threads get work, and may need a while to report it. */
    page.slots[0].word = serial & ~ASYM_RTX_SERIAL;
    read_page(1100);
    assert_false(said[0].master);
    assert_false(said[1].spins);
    read_page(1200);
    assert_false(said[1].spins);
    read_page(1100 + 20 * ASYM_MSEC);
    assert_true(said[1].spins);
}

TEST_WITH(a_master_is_one_when_it_works_and_its_phase_is_serial, set_up, NULL)
{
    static const struct {
        uint64_t word;
        bool master;
    } cases[] = {
        {ASYM_RTX_WORKING, false},
        {ASYM_RTX_WORKING | ASYM_RTX_MASTER, true}, /* the master reports no phases */
        {ASYM_RTX_SPINNING | ASYM_RTX_MASTER, false},
        {ASYM_RTX_SLEEPING | ASYM_RTX_MASTER, false},
        {ASYM_RTX_WORKING | ASYM_RTX_MASTER | ASYM_RTX_PHASES, false},
        {ASYM_RTX_WORKING | ASYM_RTX_MASTER | ASYM_RTX_PHASES | ASYM_RTX_SERIAL, true},
        {ASYM_RTX_WORKING | ASYM_RTX_PHASES | ASYM_RTX_SERIAL, false},
    };
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        set_up(NULL);
        put(0, 5, cases[i].word);
        assert_int_equal(read_page(1000), 1);
        assert_int_equal(said[0].master, cases[i].master);
        assert_int_equal(said[0].in_phase, cases[i].master && cases[i].word & ASYM_RTX_PHASES);
    }
}

TEST_WITH(changes_are_counted_since_the_last_read, set_up, NULL)
{
    put(0, 5, ASYM_RTX_WORKING);
    read_page(1);
    assert_true(said[0].changed);
    asym_rtxd_read(&page, &layout, N, 2, 20, ASYM_ASK_FINAL, &page_state, said);
    assert_true(said[0].changed);
    read_page(3);
    assert_false(said[0].changed);
    page.slots[0].word += ASYM_RTX_CHANGE;
    read_page(4);
    read_page(5);
    assert_true(said[0].changed);
}

TEST_WITH(slots_come_by_tid_and_a_tid_once, set_up, NULL)
{
    static const int32_t tids[N] = {9, 0, 3, -1, 9, INT32_MIN, 7, 3};
    for (size_t i = 0; i < N; i++)
        put(i, tids[i], ASYM_RTX_WORKING);
    assert_int_equal(read_page(1), 3);
    assert_int_equal(said[0].tid, 3);
    assert_int_equal(said[1].tid, 7);
    assert_int_equal(said[2].tid, 9);
    /* A silent thread is not reported. */
    page.slots[6].word = ASYM_RTX_CHANGE * 5 | ASYM_RTX_MARKS;
    assert_int_equal(read_page(2), 2);
}

/* The tids have all magnitudes. */
TEST_WITH(a_full_page_in_no_order_comes_in_order, set_up, NULL)
{
    static struct {
        struct asym_rtx_header header;
        struct asym_rtx_slot slots[ASYM_RTXD_MAX_SLOTS];
    } full;
    static struct asym_rtxd_reading many[ASYM_RTXD_MAX_SLOTS];
    static struct asym_rtxd_thread_report program_reports[ASYM_RTXD_MAX_SLOTS];
    struct asym_rtxd_page_state m = {.readings = many};
    full.header = page.header;
    full.header.n_slots = full.header.n_used = ASYM_RTXD_MAX_SLOTS;
    for (uint32_t i = 0; i < ASYM_RTXD_MAX_SLOTS; i++) {
        full.slots[i].tid = (int32_t)((i + 1) * UINT32_C(2654435761) >> (1 + i % 20));
        full.slots[i].word = full.slots[i].tid % 2 ? ASYM_RTX_WORKING : ASYM_RTX_SLEEPING;
    }
    assert_int_equal(asym_rtxd_check_page(&full, sizeof full, &layout), 0);
    const size_t n = asym_rtxd_read(&full, &layout, ASYM_RTXD_MAX_SLOTS, 1, 20, ASYM_ASK_FINAL, &m, program_reports);
    assert_true(n > ASYM_RTXD_MAX_SLOTS / 2);
    for (size_t i = 0; i < n; i++) {
        assert_true(i == 0 || program_reports[i - 1].tid < program_reports[i].tid);
        assert_int_equal(program_reports[i].works, program_reports[i].tid % 2);
    }
    /* No tid is lost: each occurs once. */
    for (size_t i = 0; i < ASYM_RTXD_MAX_SLOTS; i++) {
        bool found = false;
        for (size_t k = 0; k < n && !found; k++)
            found = program_reports[k].tid == full.slots[i].tid;
        assert_true(found);
    }
}

TEST_WITH(no_more_is_read_than_there_is_and_than_is_asked_for, set_up, NULL)
{
    for (size_t i = 0; i < N; i++)
        put(i, (int32_t)i + 1, ASYM_RTX_WORKING);
    page.header.n_used = UINT32_MAX;
    page.header.n_slots = UINT32_MAX;
    page.header.slot_size = UINT32_MAX;
    assert_int_equal(read_page(1), N);
    assert_int_equal(asym_rtxd_read(&page, &layout, 3, 1, 20, 0, &page_state, said), 3);
    page.header.n_used = 2;
    assert_int_equal(read_page(1), 2);
}

TEST_MAIN
