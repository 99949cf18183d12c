/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests restore and repair: what the ledger writes to a thread depends on the thread's present values. */
#include <sched.h>

#include "base/mask.h"
#include "linux/enforce/ledger-internal.h"
#include "support/fake-kernel.h"
#include "support/test.h"
#include "support/tree.h"

/* No real process has these numbers: kernel.pid_max is at most 4194304. */
#define PID 2000000000
#define TID 2000000001

static struct tree tree;
static struct asym_ledger *ledger;
static struct fake_thread *thread;

/* The machine has CPUs 0-7. */
static int set_up(void **state)
{
    fake_kernel_reset();
    tree_make(&tree);
    assert_int_equal(asym_ledger_open(tree.path, &ledger, NULL), 0);
    fake_kernel_cpus(ledger, "0-7", "0-7", "");
    thread = fake_kernel_thread(PID, TID, fake_mask(0xf0));
    return 0;
}

static int tear_down(void **state)
{
    asym_ledger_close(ledger);
    tree_remove(&tree);
    return 0;
}

/* The originals are 0x3f and nice 0. asymd set 0x0c first, then 0xf0 and nice -5. */
static struct asym_ledger_entry entry(void)
{
    return (struct asym_ledger_entry){
        .id = {TID, PID, 1000},
        .original = fake_mask(0x3f),
        .set = fake_mask(0xf0),
        .before = fake_mask(0x0c),
        .set_nice = -5,
        .before_nice = -5,
        .boosted = true,
        .in_force = true,
    };
}

/* The present values of the thread, and the values that are expected afterwards. */
struct row {
    const char *what;
    uint64_t mask, want_mask;
    int8_t nice, want_nice;
    int want;
};

static void check(const struct row *row, int got)
{
    if (got != row->want || thread->mask.w[0] != row->want_mask || thread->nice != row->want_nice)
        fail_msg("%s: %d, mask %#llx, nice %d", row->what, got, (unsigned long long)thread->mask.w[0], thread->nice);
}

TEST_WITH(a_thread_is_given_back_what_asymd_has_changed, set_up, tear_down)
{
    static const struct row rows[] = {
        {"as asymd has left it", 0xf0, 0x3f, -5, 0, 0},   {"as it was before", 0x0c, 0x3f, -5, 0, 0},
        {"it has its own already", 0x3f, 0x3f, 0, 0, 0},  {"it has raised its nice value", 0xf0, 0x3f, -2, 0, 0},
        {"a mask of another", 0x81, 0x81, -5, 0, -EBUSY}, {"a nice value of another", 0xf0, 0x3f, -9, -9, 1},
        {"a higher one of another", 0xf0, 0x3f, 4, 4, 1}, {"both", 0x81, 0x81, 4, 4, -EBUSY},
    };
    const struct asym_ledger_entry e = entry();
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        thread->mask = fake_mask(rows[i].mask);
        thread->nice = rows[i].nice;
        thread->reset_on_fork = true;
        check(&rows[i], asym_ledger_restore_thread(ledger, &e));
        assert_false(thread->reset_on_fork);
        assert_false(thread->set_full_cpuset);
    }
}

TEST_WITH(a_mask_that_was_the_full_cpuset_is_restored_as_the_full_cpuset, set_up, tear_down)
{
    struct asym_ledger_entry e = entry();
    e.full_cpuset = true;
    assert_int_equal(asym_ledger_restore_thread(ledger, &e), 0);
    assert_true(thread->set_full_cpuset);
    assert_int_equal(thread->mask.w[0], 0xff);
}

/* The kernel may remember another requested mask than the one it shows. */
TEST_WITH(a_mask_that_seems_to_be_back_is_written_all_the_same, set_up, tear_down)
{
    const struct asym_ledger_entry e = entry();
    thread->mask = fake_mask(0x3f);
    assert_int_equal(asym_ledger_restore_thread(ledger, &e), 0);
    assert_int_equal(thread->n_set_mask, 1);
    fake_kernel_fail(thread, FAKE_SET_MASK, -EPERM, 0);
    assert_int_equal(asym_ledger_restore_thread(ledger, &e), 0);
    fake_kernel_fail(thread, FAKE_SET_MASK, -ESRCH, 0);
    assert_int_equal(asym_ledger_restore_thread(ledger, &e), -ESRCH);
}

/* The kernel has cut the set mask to the cpuset, or has used the full cpuset because no CPU was left. */
TEST_WITH(a_mask_that_a_cpuset_has_cut_is_asymds, set_up, tear_down)
{
    static const struct {
        uint64_t cpuset, mask;
        bool under_way;
        int want;
    } rows[] = {
        {0x3f, 0x30, false, 0},      {0x07, 0x04, false, 0},      {0x03, 0x03, false, 0},
        {0x3f, 0x20, false, -EBUSY}, {0x83, 0x02, false, -EBUSY}, {0x83, 0x02, true, 0},
    };
    struct asym_ledger_entry e = entry();
    e.transit_cpu = 1 + 1;
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        thread->cpuset = fake_mask(rows[i].cpuset);
        thread->mask = fake_mask(rows[i].mask);
        thread->nice = 0;
        e.under_way = rows[i].under_way;
        assert_int_equal(asym_ledger_restore_thread(ledger, &e), rows[i].want);
        assert_int_equal(thread->mask.w[0], rows[i].want == 0 ? rows[i].cpuset & 0x3f : rows[i].mask);
    }
}

TEST_WITH(one_that_has_gone_is_not_written_to, set_up, tear_down)
{
    struct asym_ledger_entry e = entry();
    thread->start++;
    assert_int_equal(asym_ledger_restore_thread(ledger, &e), -ESRCH);
    thread->start--;
    thread->tgid++;
    assert_int_equal(asym_ledger_restore_thread(ledger, &e), -ESRCH);
    assert_int_equal(thread->n_set_mask + thread->n_set_nice, 0);
    fake_kernel_end(TID);
    assert_int_equal(asym_ledger_restore_thread(ledger, &e), -ESRCH);
}

/* Mask and nice value are restored independently, and a refusal is returned; -EBUSY would be a mask that another program set. */
TEST_WITH(a_refusal_of_one_does_not_spare_the_other, set_up, tear_down)
{
    static const struct {
        enum fake_call call;
        int error, result;
    } rows[] = {{FAKE_SET_MASK, -EPERM, -EPERM},
                {FAKE_SET_MASK, -EBUSY, -EIO},
                {FAKE_SET_NICE, -EACCES, -EACCES},
                {FAKE_SET_NICE, -EBUSY, -EIO}};
    const struct asym_ledger_entry e = entry();
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        thread->nice = -5;
        fake_kernel_fail(thread, rows[i].call, rows[i].error, 0);
        const int r = asym_ledger_restore_thread(ledger, &e);
        if (r != rows[i].result || (rows[i].call == FAKE_SET_NICE ? thread->mask.w[0] != 0x3f : thread->nice != 0))
            fail_msg("row %zu: %d, mask %#llx, nice %d", i, r, (unsigned long long)thread->mask.w[0], thread->nice);
        fake_kernel_fail(thread, rows[i].call, 0, 0);
    }
}

TEST_WITH(nice_that_was_never_touched_is_left_alone, set_up, tear_down)
{
    struct asym_ledger_entry e = entry();
    e.boosted = false;
    thread->nice = -5;
    assert_int_equal(asym_ledger_restore_thread(ledger, &e), 0);
    assert_int_equal(thread->n_set_nice, 0);
}

/* The thread is real-time by now. Reset-on-fork belongs to that policy; the nice value is for the time after it. */
TEST_WITH(a_realtime_thread_keeps_its_flag, set_up, tear_down)
{
    const struct asym_ledger_entry e = entry();
    thread->policy = SCHED_FIFO;
    thread->nice = -5;
    thread->reset_on_fork = true;
    assert_int_equal(asym_ledger_restore_thread(ledger, &e), 0);
    assert_int_equal(thread->nice, 0);
    assert_true(thread->reset_on_fork);
    assert_int_equal(asym_ledger_restore_thread(ledger, &e), 0);
    assert_int_equal(thread->n_set_nice, 1);
}

TEST_WITH(a_child_gets_what_its_creator_had, set_up, tear_down)
{
    static const struct row rows[] = {
        {"the mask", 0xf0, 0x3f, 0, 0, 1},
        {"the mask of before", 0x0c, 0x3f, 0, 0, 1},
        {"mask and nice value", 0xf0, 0x3f, -5, 0, 1},
        {"the nice value alone", 0x3f, 0x3f, -5, 0, 1},
        {"what its creator had", 0x3f, 0x3f, 0, 0, 0},
        {"a mask of its own", 0x81, 0x81, 0, 0, 0},
        {"a nice value of its own", 0xf0, 0x3f, 4, 4, 1},
    };
    const struct asym_ledger_entry e = entry();
    struct fake_thread *creator = thread;
    thread = fake_kernel_thread(PID + 10, TID + 10, fake_mask(0));
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        thread->mask = fake_mask(rows[i].mask);
        thread->nice = rows[i].nice;
        thread->n_set_mask = thread->n_set_nice = 0;
        check(&rows[i], asym_ledger_repair(ledger, &e, TID + 10, 0));
        assert_int_equal(thread->n_set_mask, rows[i].mask != rows[i].want_mask);
        assert_int_equal(thread->n_set_nice, rows[i].nice != rows[i].want_nice);
        assert_false(thread->set_full_cpuset);
    }
    assert_int_equal(creator->n_set_mask + creator->n_set_nice, 0);
}

TEST_WITH(a_child_of_a_full_mask_gets_all_of_its_cpuset, set_up, tear_down)
{
    struct asym_ledger_entry e = entry();
    e.full_cpuset = true;
    assert_int_equal(asym_ledger_repair(ledger, &e, TID, 0), 1);
    assert_true(thread->set_full_cpuset);
    assert_int_equal(thread->mask.w[0], 0xff);
}

/* Programs also choose single CPUs. The transit CPU counts only for children forked while asymd had the creator on it. */
TEST_WITH(a_child_inherits_the_transit_cpu_of_that_moment, set_up, tear_down)
{
    struct asym_ledger_entry e = entry();
    e.transit_cpu = 6 + 1;
    e.transit_until = 1000;
    thread->mask = fake_mask(0x40);
    assert_false(asym_ledger_looks_inherited(ledger, &e, &thread->mask, 0, 1001));
    assert_int_equal(asym_ledger_repair(ledger, &e, TID, 1001), 0);
    assert_int_equal(thread->mask.w[0], 0x40);
    assert_int_equal(asym_ledger_repair(ledger, &e, TID, 1000), 1);
    assert_int_equal(thread->mask.w[0], 0x3f);
}

/* Reset-on-fork sets a negative nice value to 0, and leaves a positive one. */
TEST_WITH(a_child_has_the_nice_value_that_fork_would_have_given_it, set_up, tear_down)
{
    static const struct {
        int8_t original, set, found, want;
        bool reset;
    } rows[] = {
        {5, -5, 0, 5, false}, {-3, -5, 0, -3, false}, {-3, -5, 0, 0, true}, {9, 5, 5, 9, false},
        {9, 5, 7, 9, false},  {9, 5, 2, 2, false},    {9, 5, 0, 0, false},  {5, -5, -2, -2, false},
    };
    thread->mask = fake_mask(0x3f);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_ledger_entry e = entry();
        e.id.tid = TID + 10;
        e.original_nice = rows[i].original;
        e.original_reset = rows[i].reset;
        e.set_nice = e.before_nice = rows[i].set;
        thread->nice = rows[i].found;
        const int r = asym_ledger_repair(ledger, &e, TID, 0);
        if (r != (rows[i].found != rows[i].want) || thread->nice != rows[i].want)
            fail_msg("row %zu: %d, nice %d", i, r, thread->nice);
    }
}

TEST_WITH(a_child_that_cannot_be_repaired_is_logged_with_the_reason, set_up, tear_down)
{
    const struct asym_ledger_entry e = entry();
    assert_int_equal(asym_ledger_repair(ledger, &e, TID + 1, 0), -ESRCH);
    fake_kernel_fail(thread, FAKE_SET_MASK, -EPERM, 0);
    assert_int_equal(asym_ledger_repair(ledger, &e, TID, 0), -EPERM);
    fake_kernel_fail(thread, FAKE_SET_MASK, 0, 0);
    fake_kernel_fail(thread, FAKE_SET_NICE, -EPERM, 0);
    thread->nice = -5;
    assert_int_equal(asym_ledger_repair(ledger, &e, TID, 0), -EPERM);
    assert_int_equal(thread->mask.w[0], 0x3f);
}

TEST_MAIN
