/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests the actuator against a fake kernel: which threads it changes, which it leaves alone, and the outcomes it returns. */
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/mask.h"
#include "linux/enforce/enforce.h"
#include "linux/observe/process-events.h"
#include "linux/enforce/ledger-internal.h"
#include "support/fake-kernel.h"
#include "support/limit-files.h"
#include "support/test.h"
#include "support/tree.h"

/* No real process has these numbers: kernel.pid_max is at most 4194304. */
#define PID            2000000000
#define TID            2000000001

#define NO_SETAFFINITY 0x04000000u

struct actuator_fixture {
    struct tree tree;
    struct asym_ledger *ledger;
    struct asym_actuator *actuator;
    struct fake_thread *thread;
};

/* CPUs 0-7, and one thread that may run on all of them. */
static void set_up(struct actuator_fixture *f)
{
    fake_kernel_reset();
    tree_make(&f->tree);
    assert_int_equal(asym_ledger_open(f->tree.path, &f->ledger, NULL), 0);
    assert_int_equal(asym_actuator_linux_new(f->ledger, &f->actuator), 0);
    fake_kernel_cpus(f->ledger, "0-7", "0-7", "");
    f->thread = fake_kernel_thread(PID, TID, fake_mask(0xff));
}

static void tear_down(struct actuator_fixture *f)
{
    f->actuator->close(f->actuator);
    asym_ledger_close(f->ledger);
    tree_remove(&f->tree);
}

static void start_over(struct actuator_fixture *f)
{
    tear_down(f);
    *f = (struct actuator_fixture){0};
    set_up(f);
}

#define TEST_F(name) TEST_IN(name, struct actuator_fixture, f, set_up, tear_down)

static struct asym_action action(enum asym_action_kind kind, uint64_t expect, uint64_t mask)
{
    return (struct asym_action){
        .kind = kind, .id = {TID, PID, 1000}, .expect = fake_mask(expect), .mask = fake_mask(mask)};
}

static struct asym_action boost(enum asym_action_kind kind, uint64_t expect, uint64_t mask, int8_t from, int8_t to)
{
    struct asym_action a = action(kind, expect, mask);
    a.expect_nice = from;
    a.nice = to;
    return a;
}

static void expect(struct actuator_fixture *f, struct asym_action a, enum asym_outcome_kind kind, int error)
{
    struct asym_outcome outcome = {ASYM_OUTCOME_HANDS_OFF, -ENOTSUP};
    assert_int_equal(f->actuator->apply(f->actuator, &a, 1, &outcome), 0);
    assert_int_equal(outcome.error, error);
    assert_int_equal(outcome.kind, kind);
}

static void steer(struct actuator_fixture *f, uint64_t from, uint64_t to)
{
    expect(f, action(ASYM_ACTION_STEER, from, to), ASYM_OUTCOME_DONE, 0);
}

static void assert_mask(const struct asym_mask *m, uint64_t bits)
{
    const struct asym_mask want = fake_mask(bits);
    if (!asym_mask_equal(m, &want))
        fail_msg("mask %#llx, not %#llx", (unsigned long long)m->w[0], (unsigned long long)bits);
}

static const struct actuator_fixture *watched;

/* The ledger must have the change before the kernel gets it, because asymd may be killed at this moment. */
static void is_on_record(const struct fake_thread *t)
{
    char path[128], line[512], start[64];
    bool found = false;
    snprintf(path, sizeof path, "%s/ledger", watched->tree.path);
    snprintf(start, sizeof start, "T %d %d ", (int)t->tid, (int)t->tgid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        found |= strncmp(line, start, strlen(start)) == 0 && strstr(line, " 0-7 4-7 ");
    fclose(file);
    assert_true(found);
}

TEST_F(a_thread_is_steered_after_that_is_on_record)
{
    watched = f;
    fake_kernel_watch(is_on_record);
    steer(f, 0xff, 0xf0);
    assert_mask(&f->thread->mask, 0xf0);
    assert_int_equal(f->thread->n_set_mask, 1);
    assert_int_equal(f->thread->n_set_nice, 0);
    assert_false(f->thread->set_full_cpuset);
    assert_int_equal(asym_ledger_count(f->ledger), 1);
}

/* sched_getaffinity hides the offline CPUs 8 to 11; the snapshot has them. */
TEST_F(a_thread_gets_its_offline_cpus_back_that_only_the_snapshot_shows)
{
    fake_kernel_cpus(f->ledger, "0-7", "0-11", "");
    f->thread->cpuset = fake_mask(0xfff);
    steer(f, 0xaff, 0xf0);
    assert_mask(&f->thread->set[0], 0xf0);
    expect(f, action(ASYM_ACTION_RELEASE, 0xf0, 0xaff), ASYM_OUTCOME_DONE, 0);
    assert_int_equal(f->thread->n_set_mask, 2);
    assert_mask(&f->thread->set[1], 0xaff);
}

/* The actuator does not know the offline CPUs of its mask: the observer learns them, and the core steers by its next snapshot. */
TEST_F(a_thread_with_another_mask_waits_for_the_next_snapshot)
{
    f->thread->mask = fake_mask(0xf0);
    expect(f, action(ASYM_ACTION_STEER, 0xff, 0xf0), ASYM_OUTCOME_RETRY, -EAGAIN);
    expect(f, action(ASYM_ACTION_STEER, 0xff, 0x0f), ASYM_OUTCOME_RETRY, -EAGAIN);
    assert_int_equal(f->thread->n_set_mask, 0);
    assert_int_equal(asym_ledger_count(f->ledger), 0);
}

TEST_F(several_actions_have_an_outcome_each)
{
    struct fake_thread *other = fake_kernel_thread(PID, TID + 2, fake_mask(0xff));
    struct asym_action actions[3];
    struct asym_outcome outcomes[3];
    for (int i = 0; i < 3; i++) {
        actions[i] = action(ASYM_ACTION_STEER, 0xff, 0x0f);
        actions[i].id.tid = TID + i; /* TID + 1 does not exist */
    }
    assert_int_equal(f->actuator->apply(f->actuator, actions, 3, outcomes), 0);
    assert_int_equal(outcomes[0].kind, ASYM_OUTCOME_DONE);
    assert_int_equal(outcomes[1].kind, ASYM_OUTCOME_GONE);
    assert_int_equal(outcomes[2].kind, ASYM_OUTCOME_DONE);
    assert_mask(&f->thread->mask, 0x0f);
    assert_mask(&other->mask, 0x0f);
    assert_int_equal(f->actuator->apply(f->actuator, actions, 0, outcomes), 0);
    assert_int_equal(asym_ledger_count(f->ledger), 2);
}

TEST_F(a_release_gives_everything_back)
{
    expect(f, boost(ASYM_ACTION_STEER, 0xff, 0xf0, 0, -5), ASYM_OUTCOME_DONE, 0);
    assert_mask(&f->thread->mask, 0xf0);
    assert_int_equal(f->thread->nice, -5);
    assert_true(f->thread->reset_on_fork);
    expect(f, action(ASYM_ACTION_RELEASE, 0xf0, 0xff), ASYM_OUTCOME_DONE, 0);
    assert_mask(&f->thread->set[1], 0xff);
    assert_true(f->thread->set_full_cpuset); /* it had its full cpuset: it also gets CPUs that the cpuset gets later */
    assert_int_equal(f->thread->nice, 0);
    assert_false(f->thread->reset_on_fork);
    assert_int_equal(asym_ledger_count(f->ledger), 0);
}

/* The fork guard has released it, or has dropped its record when it ended: only the first is a change. */
TEST_F(a_release_without_a_record_tells_whether_the_thread_lives)
{
    expect(f, action(ASYM_ACTION_RELEASE, 0xf0, 0xff), ASYM_OUTCOME_DONE, 0);
    steer(f, 0xff, 0xf0);
    fake_kernel_end(TID);
    const struct asym_process_event end = {ASYM_PROCESS_EVENT_EXIT, .pid = TID, .tgid = PID, .when = 1000 * ASYM_SEC};
    asym_fork_guard_on_event(f->ledger, &end);
    assert_int_equal(asym_ledger_count(f->ledger), 0);
    expect(f, action(ASYM_ACTION_RELEASE, 0xf0, 0xff), ASYM_OUTCOME_GONE, -ESRCH);
}

TEST_F(a_mask_of_its_own_is_given_back_as_it_was)
{
    f->thread->mask = fake_mask(0x3c);
    steer(f, 0x3c, 0x30);
    expect(f, action(ASYM_ACTION_RELEASE, 0x30, 0x3c), ASYM_OUTCOME_DONE, 0);
    assert_mask(&f->thread->mask, 0x3c);
    assert_false(f->thread->set_full_cpuset);
}

TEST_F(all_of_a_cpuset_is_given_back_as_all_of_it)
{
    f->thread->mask = f->thread->cpuset = fake_mask(0x3f);
    steer(f, 0x3f, 0x30);
    f->thread->cpuset = fake_mask(0xff); /* the cpuset grows meanwhile */
    expect(f, action(ASYM_ACTION_RELEASE, 0x30, 0x3f), ASYM_OUTCOME_DONE, 0);
    assert_mask(&f->thread->mask, 0xff);
}

/* asymd touches a thread for the first time only if the thread is still as in the snapshot. */
TEST_F(what_has_changed_since_the_snapshot_is_left_alone)
{
    expect(f, action(ASYM_ACTION_STEER, 0x7f, 0xf0), ASYM_OUTCOME_RETRY, -EAGAIN);
    expect(f, boost(ASYM_ACTION_STEER, 0xff, 0xf0, 1, -5), ASYM_OUTCOME_RETRY, -EAGAIN);
    f->thread->start = 1001;
    expect(f, action(ASYM_ACTION_STEER, 0xff, 0xf0), ASYM_OUTCOME_GONE, -ESRCH);
    assert_int_equal(f->thread->n_set_mask + f->thread->n_set_nice, 0);
    assert_int_equal(asym_ledger_count(f->ledger), 0);
}

TEST_F(some_threads_are_never_steered)
{
    static const uint32_t policies[] = {SCHED_FIFO, SCHED_RR, SCHED_DEADLINE};
    for (size_t i = 0; i < ASYM_LENGTH(policies); i++) {
        f->thread->policy = policies[i];
        expect(f, action(ASYM_ACTION_STEER, 0xff, 0xf0), ASYM_OUTCOME_RETRY, -EAGAIN);
    }
    f->thread->policy = SCHED_OTHER;
    f->thread->flags = NO_SETAFFINITY;
    expect(f, action(ASYM_ACTION_STEER, 0xff, 0xf0), ASYM_OUTCOME_HANDS_OFF, -EPERM);
    f->thread->flags = 0;
    fake_kernel_cpus(f->ledger, "0-6", "0-7", "");
    expect(f, action(ASYM_ACTION_STEER, 0xff, 0xf0), ASYM_OUTCOME_RETRY, -EAGAIN);
    assert_int_equal(f->thread->n_set_mask, 0);
    steer(f, 0xff, 0x30);
    expect(f, action(ASYM_ACTION_STEER, 0x30, 0xf0), ASYM_OUTCOME_RETRY, -EAGAIN);
    assert_mask(&f->thread->mask, 0x30);
}

/* The kernel has cut the mask to a cpuset, and the core has seen that. Then the entry's before is the cut mask. */
TEST_F(a_mask_that_the_kernel_has_cut_is_known_where_the_core_has_seen_it)
{
    steer(f, 0xff, 0xf0);
    f->thread->mask = fake_mask(0x30);
    steer(f, 0x30, 0x0f);
    assert_mask(&f->thread->mask, 0x0f);
    const struct asym_ledger_entry *e = asym_ledger_find(f->ledger, TID);
    assert_mask(&e->before, 0x30);
    assert_mask(&e->set, 0x0f);
    assert_mask(&e->original, 0xff);
}

/* The thread has the mask that asymd set, although the core expects another one; or it has the planned mask already. */
TEST_F(a_steered_thread_is_steered_on)
{
    steer(f, 0xff, 0xf0);
    steer(f, 0xf0, 0x0f);
    steer(f, 0x55, 0x03);
    assert_mask(&f->thread->mask, 0x03);
    assert_mask(&asym_ledger_find(f->ledger, TID)->before, 0x0f);
    f->thread->mask = fake_mask(0xc0);
    steer(f, 0x55, 0xc0);
    assert_int_equal(f->thread->n_set_mask, 4);
}

static size_t file_size(const struct actuator_fixture *f)
{
    struct stat file;
    assert_int_equal(fstatat(f->ledger->dir_fd, "ledger", &file, 0), 0);
    return (size_t)file.st_size;
}

static size_t size_before;

static void is_written_before(const struct fake_thread *t)
{
    assert_true(file_size(watched) > size_before);
    size_before = SIZE_MAX - 1; /* the second change on the way through a transit CPU */
    fake_kernel_watch(NULL);
}

static void expect_written(struct actuator_fixture *f, struct asym_action a)
{
    size_before = file_size(f);
    fake_kernel_watch(is_written_before);
    expect(f, a, ASYM_OUTCOME_DONE, 0);
    assert_int_equal(size_before, SIZE_MAX - 1);
}

/* The record of the first turn has both masks. Any other change has to be on record before it. */
TEST_F(a_thread_that_goes_back_and_forth_is_written_once)
{
    struct asym_action through = action(ASYM_ACTION_STEER, 0x0f, 0xf0);
    watched = f;
    through.transit_cpu = 5;
    f->thread->reset_on_fork = true;
    steer(f, 0xff, 0xf0);
    expect_written(f, action(ASYM_ACTION_STEER, 0xf0, 0x0f));
    const size_t size = file_size(f);
    steer(f, 0x0f, 0xf0);
    steer(f, 0xf0, 0x0f);
    assert_int_equal(f->thread->n_set_mask, 4);
    assert_int_equal(file_size(f), size);
    f->thread->reset_on_fork = false; /* its owner has cleared it */
    expect_written(f, action(ASYM_ACTION_STEER, 0x0f, 0xf0));
    steer(f, 0xf0, 0x0f);
    expect_written(f, through);
    expect_written(f, boost(ASYM_ACTION_STEER, 0xf0, 0x0f, 0, -5));
    const size_t boosted = file_size(f);
    expect(f, boost(ASYM_ACTION_STEER, 0x0f, 0xf0, -5, 0), ASYM_OUTCOME_DONE, 0);
    expect(f, boost(ASYM_ACTION_STEER, 0xf0, 0x0f, 0, -5), ASYM_OUTCOME_DONE, 0);
    assert_int_equal(file_size(f), boosted);
    expect_written(f, boost(ASYM_ACTION_STEER, 0x0f, 0xf0, -5, -3));
    f->thread->nice = -1; /* the thread has raised it */
    expect_written(f, boost(ASYM_ACTION_STEER, 0xf0, 0x0f, -1, -5));
    f->thread->mask = fake_mask(0x03); /* cut to a cpuset */
    expect_written(f, boost(ASYM_ACTION_STEER, 0x03, 0xf0, -5, -5));
    f->ledger->owed = true;
    expect(f, boost(ASYM_ACTION_STEER, 0xf0, 0x03, -5, -5), ASYM_OUTCOME_DONE, 0);
    assert_false(f->ledger->owed);
}

TEST_F(a_steered_thread_that_has_chosen_for_itself_is_left_alone)
{
    steer(f, 0xff, 0xf0);
    f->thread->mask = fake_mask(0x81);
    expect(f, action(ASYM_ACTION_STEER, 0xf0, 0x0f), ASYM_OUTCOME_RETRY, -EAGAIN);
    assert_int_equal(asym_ledger_count(f->ledger), 1);
    expect(f, action(ASYM_ACTION_RELEASE, 0xf0, 0xff), ASYM_OUTCOME_HANDS_OFF, -EBUSY);
    assert_mask(&f->thread->mask, 0x81);
    assert_int_equal(asym_ledger_count(f->ledger), 0);
}

TEST_F(a_nice_value_of_another_is_no_affinity_of_another)
{
    static const enum asym_action_kind kinds[] = {ASYM_ACTION_STEER, ASYM_ACTION_RELEASE};
    for (size_t i = 0; i < 2; i++) {
        f->thread->nice = 0;
        expect(f, boost(ASYM_ACTION_STEER, 0xff, 0xf0, 0, -5), ASYM_OUTCOME_DONE, 0);
        f->thread->nice = 4;
        expect(f, boost(kinds[i], 0xf0, 0xff, -5, 0), ASYM_OUTCOME_HANDS_OFF, -ESTALE);
        assert_mask(&f->thread->mask, 0xff);
        assert_int_equal(f->thread->nice, 4);
        assert_int_equal(asym_ledger_count(f->ledger), 0);
    }
}

/* Between the snapshot and the action: a value that the planned boost would explain, and the one in force does not. */
TEST_F(a_nice_value_of_another_that_comes_first_is_kept)
{
    steer(f, 0xff, 0xf0);
    f->thread->nice = -3;
    expect(f, boost(ASYM_ACTION_STEER, 0xf0, 0x0f, 0, -5), ASYM_OUTCOME_HANDS_OFF, -ESTALE);
    assert_mask(&f->thread->mask, 0xff);
    assert_int_equal(f->thread->nice, -3);
}

/* While asymd lends it none, also after a boost: what its owner gives it then is its own. */
TEST_F(a_nice_value_that_a_steered_thread_gets_from_its_owner_is_given_back)
{
    for (int8_t first = 0, own = 4; own >= -4; first = own, own -= 8) {
        const int8_t lent = (int8_t)(own - 5);
        steer(f, 0xff, 0xf0);
        expect(f, boost(ASYM_ACTION_STEER, 0xf0, 0xf0, first, -2), ASYM_OUTCOME_DONE, 0);
        expect(f, boost(ASYM_ACTION_STEER, 0xf0, 0xf0, -2, first), ASYM_OUTCOME_DONE, 0);
        f->thread->nice = own;
        f->thread->reset_on_fork = true;
        expect(f, boost(ASYM_ACTION_STEER, 0xf0, 0x0f, own, lent), ASYM_OUTCOME_DONE, 0);
        expect(f, boost(ASYM_ACTION_RELEASE, 0x0f, 0xff, lent, own), ASYM_OUTCOME_DONE, 0);
        assert_int_equal(f->thread->nice, own);
        assert_true(f->thread->reset_on_fork);
    }
}

/* The thread has raised the value that asymd lent it, and raises it again: the core has seen the first. The mask stays. */
TEST_F(a_raised_boost_is_taken_back_from_a_thread_that_stays_steered)
{
    expect(f, boost(ASYM_ACTION_STEER, 0xff, 0xf0, 0, -5), ASYM_OUTCOME_DONE, 0);
    f->thread->nice = -3;
    expect(f, boost(ASYM_ACTION_STEER, 0xf0, 0xf0, -4, 0), ASYM_OUTCOME_DONE, 0);
    assert_mask(&f->thread->mask, 0xf0);
    assert_int_equal(f->thread->nice, 0);
    assert_false(f->thread->reset_on_fork);
}

static bool is_under_way(const struct fake_thread *t)
{
    struct asym_ledger *file = NULL;
    assert_int_equal(asym_ledger_peek(watched->tree.path, &file, NULL), 0);
    const struct asym_ledger_entry *e = asym_ledger_find(file, t->tid);
    assert_non_null(e);
    const bool under_way = e->under_way && e->transit_cpu == 5 + 1;
    asym_ledger_close(file);
    return under_way;
}

/* The file must say that the thread is under way before the kernel puts it on that CPU. */
static void is_under_way_first(const struct fake_thread *t)
{
    assert_true(t->n_set_mask > 0 || is_under_way(t));
}

TEST_F(a_thread_that_moves_is_put_on_its_transit_cpu_first)
{
    watched = f;
    fake_kernel_watch(is_under_way_first);
    struct asym_action a = action(ASYM_ACTION_STEER, 0xff, 0xf0);
    a.transit_cpu = 5 + 1;
    expect(f, a, ASYM_OUTCOME_DONE, 0);
    assert_int_equal(f->thread->n_set_mask, 2);
    assert_mask(&f->thread->set[0], 0x20);
    assert_mask(&f->thread->set[1], 0xf0);
    assert_false(asym_ledger_find(f->ledger, TID)->under_way);
    assert_true(asym_ledger_find(f->ledger, TID)->transit_until == 1000 * ASYM_SEC + ASYM_LEDGER_LATE);
    assert_false(is_under_way(f->thread));
    a.transit_cpu = 1 + 1; /* not in the mask */
    a.expect = fake_mask(0xf0);
    expect(f, a, ASYM_OUTCOME_DONE, 0);
    assert_int_equal(f->thread->n_set_mask, 3);
}

TEST_F(a_thread_that_cannot_go_on_goes_back)
{
    steer(f, 0xff, 0xf0);
    struct asym_action a = action(ASYM_ACTION_STEER, 0xf0, 0x0f);
    a.transit_cpu = 2 + 1;
    fake_kernel_fail(f->thread, FAKE_SET_MASK, -EINVAL, 1);
    expect(f, a, ASYM_OUTCOME_RETRY, -EINVAL);
    assert_mask(&f->thread->mask, 0x04); /* the kernel also refuses the previous mask */
    assert_int_equal(asym_ledger_count(f->ledger), 1);
    fake_kernel_fail(f->thread, FAKE_SET_MASK, 0, 0);
    expect(f, action(ASYM_ACTION_FORGET, 0x04, 0xff), ASYM_OUTCOME_DONE, 0);
    assert_mask(&f->thread->set[2], 0xff);
}

/* The kernel refuses the new mask and the previous one: the thread does not stay on its transit CPU if it can get the original. */
TEST_F(a_thread_that_is_stranded_on_its_transit_cpu_gets_its_original_mask)
{
    steer(f, 0xff, 0xf0);
    struct asym_action a = action(ASYM_ACTION_STEER, 0xf0, 0x0f);
    a.transit_cpu = 2 + 1;
    fake_kernel_fail_times(f->thread, FAKE_SET_MASK, -EINVAL, 1, 2);
    expect(f, a, ASYM_OUTCOME_RETRY, -EINVAL);
    assert_int_equal(f->thread->mask.w[0] & 0xff, 0xff);
    assert_int_equal(asym_ledger_count(f->ledger), 0);
}

/* A program that had set the flag itself keeps it. */
TEST_F(a_thread_with_its_own_reset_on_fork_keeps_it_without_the_boost)
{
    f->thread->reset_on_fork = true;
    expect(f, boost(ASYM_ACTION_STEER, 0xff, 0xf0, 0, -5), ASYM_OUTCOME_DONE, 0);
    expect(f, boost(ASYM_ACTION_STEER, 0xf0, 0x0f, -5, 0), ASYM_OUTCOME_DONE, 0);
    assert_int_equal(f->thread->nice, 0);
    assert_true(f->thread->reset_on_fork);
}

/* By sched_setscheduler without the flag. */
TEST_F(a_reset_on_fork_that_its_owner_clears_stays_clear)
{
    for (int i = 0; i < 2; i++) {
        f->thread->reset_on_fork = true;
        expect(f, boost(ASYM_ACTION_STEER, 0xff, 0xf0, 0, -5), ASYM_OUTCOME_DONE, 0);
        f->thread->reset_on_fork = false;
        if (i == 0)
            expect(f, boost(ASYM_ACTION_STEER, 0xf0, 0x0f, -5, -6), ASYM_OUTCOME_DONE, 0);
        expect(f, boost(ASYM_ACTION_RELEASE, 0xf0, 0xff, -5, 0), ASYM_OUTCOME_DONE, 0);
        assert_false(f->thread->reset_on_fork);
    }
}

/* While asymd lends it nothing. */
TEST_F(a_reset_on_fork_that_its_owner_sets_later_stays_set)
{
    watched = f;
    expect(f, boost(ASYM_ACTION_STEER, 0xff, 0xf0, 0, -5), ASYM_OUTCOME_DONE, 0);
    expect(f, boost(ASYM_ACTION_STEER, 0xf0, 0x0f, -5, 0), ASYM_OUTCOME_DONE, 0);
    f->thread->reset_on_fork = true;
    expect_written(f, boost(ASYM_ACTION_STEER, 0x0f, 0xf0, 0, -5));
    expect(f, boost(ASYM_ACTION_RELEASE, 0xf0, 0xff, -5, 0), ASYM_OUTCOME_DONE, 0);
    assert_true(f->thread->reset_on_fork);
}

TEST_F(a_refusal_leaves_nothing_behind)
{
    static const struct {
        enum fake_call call;
        int error;
        enum asym_outcome_kind kind;
    } rows[] = {
        {FAKE_GET_SCHED, -ESRCH, ASYM_OUTCOME_GONE},     {FAKE_GET_STAT, -ESRCH, ASYM_OUTCOME_GONE},
        {FAKE_GET_MASK, -ESRCH, ASYM_OUTCOME_GONE},      {FAKE_SET_MASK, -EPERM, ASYM_OUTCOME_HANDS_OFF},
        {FAKE_SET_MASK, -EINVAL, ASYM_OUTCOME_RETRY},    {FAKE_SET_MASK, -ESRCH, ASYM_OUTCOME_GONE},
        {FAKE_SET_NICE, -EPERM, ASYM_OUTCOME_HANDS_OFF}, {FAKE_SET_NICE, -EACCES, ASYM_OUTCOME_HANDS_OFF},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        fake_kernel_fail(f->thread, rows[i].call, rows[i].error, 0);
        expect(f, boost(ASYM_ACTION_STEER, 0xff, 0xf0, 0, -5), rows[i].kind, rows[i].error);
        fake_kernel_fail(f->thread, rows[i].call, 0, 0);
        assert_mask(&f->thread->mask, 0xff);
        assert_int_equal(f->thread->nice, 0);
        assert_false(f->thread->reset_on_fork);
        assert_int_equal(asym_ledger_count(f->ledger), 0);
    }
}

/* The thread keeps its present mask, and its entry stays in the ledger. */
TEST_F(a_steered_thread_that_may_be_asked_again_stays_steered)
{
    steer(f, 0xff, 0xf0);
    fake_kernel_fail(f->thread, FAKE_SET_MASK, -EINVAL, 0);
    expect(f, boost(ASYM_ACTION_STEER, 0xf0, 0x0f, 0, -5), ASYM_OUTCOME_RETRY, -EINVAL);
    assert_mask(&f->thread->mask, 0xf0);
    assert_int_equal(f->thread->nice, 0);
    assert_int_equal(asym_ledger_count(f->ledger), 1);
    fake_kernel_fail(f->thread, FAKE_SET_MASK, 0, 0);
    expect(f, action(ASYM_ACTION_RELEASE, 0xf0, 0xff), ASYM_OUTCOME_DONE, 0);
}

TEST_F(a_release_that_the_kernel_refuses_stays_on_record)
{
    steer(f, 0xff, 0xf0);
    fake_kernel_fail(f->thread, FAKE_SET_MASK, -EPERM, 0);
    expect(f, action(ASYM_ACTION_RELEASE, 0xf0, 0xff), ASYM_OUTCOME_HANDS_OFF, -EPERM);
    assert_int_equal(asym_ledger_count(f->ledger), 1);
    fake_kernel_end(TID);
    expect(f, action(ASYM_ACTION_RELEASE, 0xf0, 0xff), ASYM_OUTCOME_GONE, -ESRCH);
    assert_int_equal(asym_ledger_count(f->ledger), 0);
}

TEST_F(a_tid_that_is_used_again_is_another_thread)
{
    steer(f, 0xff, 0xf0);
    f->thread->start = 200000;
    struct asym_action a = action(ASYM_ACTION_RELEASE, 0xf0, 0xff);
    a.id.start = 200000;
    expect(f, a, ASYM_OUTCOME_DONE, 0);
    assert_mask(&f->thread->mask, 0xf0);
    assert_int_equal(asym_ledger_count(f->ledger), 0);
    a.kind = ASYM_ACTION_STEER;
    a.mask = fake_mask(0x0f);
    expect(f, a, ASYM_OUTCOME_DONE, 0);
    /* The core lets the earlier one go, whose record is gone: that of the later one stays. */
    expect(f, action(ASYM_ACTION_RELEASE, 0xf0, 0xff), ASYM_OUTCOME_GONE, -ESRCH);
    assert_int_equal(asym_ledger_count(f->ledger), 1);
}

/* Someone else has set the mask by now. The boost is still asymd's. */
TEST_F(a_thread_that_is_forgotten_keeps_its_mask_and_gives_its_boost_back)
{
    expect(f, boost(ASYM_ACTION_STEER, 0xff, 0xf0, 0, -5), ASYM_OUTCOME_DONE, 0);
    f->thread->mask = fake_mask(0x81);
    expect(f, action(ASYM_ACTION_FORGET, 0x81, 0x81), ASYM_OUTCOME_DONE, 0);
    assert_mask(&f->thread->mask, 0x81);
    assert_int_equal(f->thread->n_set_mask, 1);
    assert_int_equal(f->thread->nice, 0);
    assert_false(f->thread->reset_on_fork);
    assert_int_equal(asym_ledger_count(f->ledger), 0);
}

TEST_F(a_boost_that_the_kernel_keeps_stays_on_record_and_the_mask_does_not)
{
    struct asym_restore_report report;
    expect(f, boost(ASYM_ACTION_STEER, 0xff, 0xf0, 0, -5), ASYM_OUTCOME_DONE, 0);
    fake_kernel_fail(f->thread, FAKE_SET_NICE, -EPERM, 0);
    expect(f, action(ASYM_ACTION_FORGET, 0xf0, 0xf0), ASYM_OUTCOME_HANDS_OFF, -EPERM);
    fake_kernel_fail(f->thread, FAKE_SET_NICE, 0, 0);
    asym_ledger_restore(f->ledger, &report);
    assert_mask(&f->thread->mask, 0xf0);
    assert_int_equal(f->thread->nice, 0);
    assert_int_equal(report.restored, 1);
}

/* A thread without an entry has inherited 0xf0 and nice -5 from a creator that originally had 0xff and nice 0. */
TEST_F(what_was_inherited_is_repaired)
{
    f->thread->mask = fake_mask(0xf0);
    f->thread->nice = -5;
    f->thread->reset_on_fork = true;
    expect(f, boost(ASYM_ACTION_REPAIR, 0xf0, 0xff, -5, 0), ASYM_OUTCOME_DONE, 0);
    assert_mask(&f->thread->mask, 0xff);
    assert_false(f->thread->set_full_cpuset);
    assert_int_equal(f->thread->nice, 0);
    assert_true(f->thread->reset_on_fork); /* the thread's own flag */
    assert_int_equal(asym_ledger_count(f->ledger), 0);
}

/* Another thread had this number before, and called exec. Its record is of no use any more. */
TEST_F(a_repair_drops_the_record_of_the_former_leader)
{
    expect(f, boost(ASYM_ACTION_STEER, 0xff, 0x0f, 0, -5), ASYM_OUTCOME_DONE, 0);
    f->thread->mask = fake_mask(0xf0);
    f->thread->nice = 0;
    expect(f, action(ASYM_ACTION_REPAIR, 0x3c, 0xff), ASYM_OUTCOME_RETRY, -EAGAIN);
    assert_int_equal(asym_ledger_count(f->ledger), 1);
    expect(f, action(ASYM_ACTION_REPAIR, 0xf0, 0xff), ASYM_OUTCOME_DONE, 0);
    assert_mask(&f->thread->mask, 0xff);
    assert_int_equal(asym_ledger_count(f->ledger), 0);
    steer(f, 0xff, 0xf0);
    expect(f, action(ASYM_ACTION_RELEASE, 0xf0, 0xff), ASYM_OUTCOME_DONE, 0);
    assert_mask(&f->thread->mask, 0xff);
}

static struct asym_action of(int32_t tid, struct asym_action a)
{
    a.id.tid = tid;
    return a;
}

/*
 * The boost brought the flag. The kernel keeps both at exec, and the leader has no record. The thread may have raised its nice
 * value, and an action on it may have failed before the repair. A flag of its own stays.
 */
TEST_F(a_boost_and_its_flag_that_came_by_exec_are_taken_back)
{
    static const struct {
        int8_t nice;
        bool own_flag, fails;
        enum asym_action_kind kind; /* of the action that fails */
    } rows[] = {
        {.nice = -5},
        {.nice = -5, .own_flag = true},
        {.nice = -3},
        {.nice = -3, .own_flag = true},
        {.nice = -5, .fails = true, .kind = ASYM_ACTION_STEER},
        {.nice = -5, .fails = true, .kind = ASYM_ACTION_RELEASE},
        {.nice = -3, .fails = true, .kind = ASYM_ACTION_RELEASE, .own_flag = true},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct fake_thread *leader = fake_kernel_thread(PID, PID, fake_mask(0xf0));
        f->thread->reset_on_fork = rows[i].own_flag;
        expect(f, boost(ASYM_ACTION_STEER, 0xff, 0xf0, 0, -5), ASYM_OUTCOME_DONE, 0);
        leader->nice = rows[i].nice;
        leader->reset_on_fork = f->thread->reset_on_fork;
        assert_true(leader->reset_on_fork);
        fake_kernel_end(TID);
        if (rows[i].fails)
            expect(f, boost(rows[i].kind, 0xf0, 0xff, -5, 0), ASYM_OUTCOME_GONE, -ESRCH);
        assert_int_equal(asym_ledger_count(f->ledger), !rows[i].fails);
        expect(f, of(PID, boost(ASYM_ACTION_REPAIR, 0xf0, 0xff, rows[i].nice, 0)), ASYM_OUTCOME_DONE, 0);
        assert_mask(&leader->mask, 0xff);
        assert_int_equal(leader->nice, 0);
        assert_int_equal(leader->reset_on_fork, rows[i].own_flag);
        start_over(f);
    }
}

/* Both workers have ended. The one with a flag of its own had the leader's nice value, or one that it could raise to that. */
TEST_F(the_flag_at_exec_is_that_of_the_worker_with_the_same_nice_value)
{
    static const int8_t boosts[][2] = {{-3, -5}, {-5, -3}};
    for (size_t i = 0; i < ASYM_LENGTH(boosts); i++) {
        struct fake_thread *leader = fake_kernel_thread(PID, PID, fake_mask(0xf0));
        fake_kernel_thread(PID, TID + 1, fake_mask(0xff));
        f->thread->reset_on_fork = true;
        for (int k = 0; k < 2; k++)
            expect(f, of(TID + k, boost(ASYM_ACTION_STEER, 0xff, 0xf0, 0, boosts[i][k])), ASYM_OUTCOME_DONE, 0);
        leader->nice = -3;
        leader->reset_on_fork = true;
        fake_kernel_end(TID);
        fake_kernel_end(TID + 1);
        expect(f, of(PID, boost(ASYM_ACTION_REPAIR, 0xf0, 0xff, -3, 0)), ASYM_OUTCOME_DONE, 0);
        assert_int_equal(leader->reset_on_fork, boosts[i][0] == -3);
        start_over(f);
    }
}

TEST_F(a_repaired_thread_gets_all_of_its_cpuset)
{
    struct asym_action a = action(ASYM_ACTION_REPAIR, 0xf0, 0xff);
    a.full_cpuset = true;
    f->thread->mask = fake_mask(0xf0);
    expect(f, a, ASYM_OUTCOME_DONE, 0);
    assert_true(f->thread->set_full_cpuset);
    fake_kernel_cpus(f->ledger, "0-7", "0-7", "7"); /* CPU 7 is isolated: a mask of all ones would allow it */
    f->thread->mask = fake_mask(0xf0);
    expect(f, a, ASYM_OUTCOME_DONE, 0);
    assert_false(f->thread->set_full_cpuset);
    assert_mask(&f->thread->mask, 0xff);
}

TEST_F(a_repair_changes_only_what_was_inherited)
{
    static const struct {
        const char *what;
        uint64_t mask, want_mask;
        int8_t nice, want_nice;
        uint32_t policy;
        int error;
    } rows[] = {
        {"both", 0xf0, 0xff, -5, 0, SCHED_OTHER, 0},
        {"it has the mask", 0xff, 0xff, -5, 0, SCHED_OTHER, 0},
        {"it has raised the nice value", 0xf0, 0xff, -3, 0, SCHED_OTHER, 0},
        {"a nice value of its own", 0xf0, 0xff, 7, 7, SCHED_OTHER, 0},
        {"a lower one", 0xf0, 0xff, -9, -9, SCHED_OTHER, 0},
        {"the nice value that it is to have", 0xf0, 0xff, 0, 0, SCHED_OTHER, 0},
        {"nice says nothing there", 0xf0, 0xff, -5, -5, SCHED_IDLE, 0},
        {"a mask of its own", 0x81, 0x81, -5, 0, SCHED_OTHER, -EAGAIN},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        f->thread->mask = fake_mask(rows[i].mask);
        f->thread->nice = rows[i].nice;
        f->thread->policy = rows[i].policy;
        f->thread->n_set_mask = f->thread->n_set_nice = 0;
        expect(f, boost(ASYM_ACTION_REPAIR, 0xf0, 0xff, -5, 0), rows[i].error ? ASYM_OUTCOME_RETRY : ASYM_OUTCOME_DONE,
               rows[i].error);
        if (f->thread->mask.w[0] != rows[i].want_mask || f->thread->nice != rows[i].want_nice ||
            f->thread->n_set_mask != (rows[i].mask != rows[i].want_mask) ||
            f->thread->n_set_nice != (rows[i].nice != rows[i].want_nice))
            fail_msg("%s: mask %#llx, nice %d", rows[i].what, (unsigned long long)f->thread->mask.w[0],
                     f->thread->nice);
    }
}

TEST_F(a_repair_without_a_boost_leaves_nice_alone)
{
    f->thread->mask = fake_mask(0xf0);
    expect(f, action(ASYM_ACTION_REPAIR, 0xf0, 0xff), ASYM_OUTCOME_DONE, 0);
    assert_int_equal(f->thread->n_set_nice, 0);
    f->thread->start++;
    expect(f, action(ASYM_ACTION_REPAIR, 0xf0, 0xff), ASYM_OUTCOME_GONE, -ESRCH);
}

/* The fork guard has released the process, and the snapshot behind the plan may be older than that. */
TEST_F(a_process_that_was_released_just_now_is_not_steered)
{
    steer(f, 0xff, 0xf0);
    const struct asym_process_event forked = {ASYM_PROCESS_EVENT_FORK, PID + 9, PID + 9, TID, PID, 1000 * ASYM_SEC};
    asym_fork_guard_on_event(f->ledger, &forked);
    assert_int_equal(asym_ledger_count(f->ledger), 0);
    f->thread->mask = fake_mask(0xff);
    expect(f, action(ASYM_ACTION_STEER, 0xff, 0x0f), ASYM_OUTCOME_RETRY, -EAGAIN);
    assert_mask(&f->thread->mask, 0xff);
    fake_kernel_wait(ASYM_SEC + 1);
    steer(f, 0xff, 0x0f);
}

/* If the ledger cannot be written, the actuator steers no thread, but still releases threads. */
TEST_F(without_a_record_nothing_is_steered)
{
    struct fake_thread *other = fake_kernel_thread(PID, TID + 1, fake_mask(0xff));
    steer(f, 0xff, 0xf0);
    struct asym_action actions[] = {action(ASYM_ACTION_RELEASE, 0xf0, 0xff), action(ASYM_ACTION_STEER, 0xff, 0x0f)};
    struct asym_outcome outcomes[2];
    actions[1].id.tid = TID + 1;
    signal(SIGXFSZ, SIG_IGN);
    limit_files(1);
    const int r = f->actuator->apply(f->actuator, actions, 2, outcomes);
    limit_files(RLIM_INFINITY);
    assert_int_equal(r, -EFBIG);
    assert_int_equal(outcomes[0].kind, ASYM_OUTCOME_DONE);
    assert_int_equal(outcomes[1].kind, ASYM_OUTCOME_RETRY);
    assert_int_equal(outcomes[1].error, -EFBIG);
    assert_true(f->thread->set_full_cpuset);
    assert_int_equal(other->n_set_mask, 0);
    assert_int_equal(asym_ledger_count(f->ledger), 0);
    steer(f, 0xff, 0xf0);
}

TEST_F(a_boost_without_a_record_explains_no_nice_value)
{
    const struct asym_action a = boost(ASYM_ACTION_STEER, 0xf0, 0xf0, 0, -5);
    struct asym_outcome outcome;
    steer(f, 0xff, 0xf0);
    signal(SIGXFSZ, SIG_IGN);
    limit_files(1);
    assert_int_equal(f->actuator->apply(f->actuator, &a, 1, &outcome), -EFBIG);
    limit_files(RLIM_INFINITY);
    f->thread->nice = -3;
    expect(f, action(ASYM_ACTION_RELEASE, 0xf0, 0xff), ASYM_OUTCOME_HANDS_OFF, -ESTALE);
    assert_int_equal(f->thread->nice, -3);
}

TEST_MAIN
