/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests the fork guard, event by event, against a fake kernel. */

#include "base/mask.h"
#include "linux/enforce/enforce.h"
#include "linux/observe/process-events.h"
#include "linux/enforce/ledger-internal.h"
#include "support/fake-kernel.h"
#include "support/test.h"
#include "support/tree.h"

/* No real process has these numbers: kernel.pid_max is at most 4194304. */
#define PID   2000000000 /* a process with two threads: its leader and TID */
#define TID   2000000001
#define OTHER 2000000100 /* another process */
#define CHILD 2000000200

#define NOW   (1000 * ASYM_SEC)

struct fork_guard_fixture {
    struct tree tree;
    struct asym_ledger *ledger;
    struct fake_thread *leader, *thread, *other;
};

/* Steers the thread: it keeps its present mask and from as originals, and gets 0xf0 and the nice value. */
static struct asym_ledger_entry *steered(struct fork_guard_fixture *f, struct fake_thread *t, int8_t from, int8_t nice)
{
    const struct asym_taskid id = {t->tid, t->tgid, t->start};
    struct asym_ledger_entry *e = asym_ledger_add(f->ledger, &id);
    assert_non_null(e);
    e->original = e->before = t->mask;
    e->set = fake_mask(0xf0);
    e->original_nice = e->before_nice = from;
    e->set_nice = nice;
    e->boosted = nice != from;
    e->full_cpuset = t->mask.w[0] == 0xff;
    e->in_force = true;
    e->since = 100000;
    assert_int_equal(asym_ledger_note(f->ledger, e), 0);
    t->mask = e->set;
    t->nice = nice;
    t->reset_on_fork = e->boosted;
    return e;
}

/* The machine has CPUs 0-7. Both threads of the first process and the only thread of the other are steered. */
static void set_up(struct fork_guard_fixture *f)
{
    fake_kernel_reset();
    tree_make(&f->tree);
    assert_int_equal(asym_ledger_open(f->tree.path, &f->ledger, NULL), 0);
    fake_kernel_cpus(f->ledger, "0-7", "0-7", "");
    f->leader = fake_kernel_thread(PID, PID, fake_mask(0xff));
    f->thread = fake_kernel_thread(PID, TID, fake_mask(0xff));
    f->other = fake_kernel_thread(OTHER, OTHER, fake_mask(0xff));
    steered(f, f->leader, 0, 0);
    steered(f, f->thread, 0, 0);
    steered(f, f->other, 0, 0);
}

static void tear_down(struct fork_guard_fixture *f)
{
    asym_ledger_close(f->ledger);
    tree_remove(&f->tree);
}

#define TEST_F(name) TEST_IN(name, struct fork_guard_fixture, f, set_up, tear_down)

/* The kernel stamps the event with the time of the fork. */
static void deliver_born(struct fork_guard_fixture *f, enum asym_process_event_kind kind, int32_t tgid, int32_t pid,
                         int32_t parent, asym_usec born)
{
    const struct fake_thread *creator = fake_kernel_find(parent);
    const struct asym_process_event event = {.kind = kind,
                                             .pid = pid,
                                             .tgid = tgid,
                                             .parent_pid = kind == ASYM_PROCESS_EVENT_FORK ? parent : 0,
                                             .parent_tgid = kind != ASYM_PROCESS_EVENT_FORK ? tgid
                                                            : creator                       ? creator->tgid
                                                            : parent == TID                 ? PID
                                                                                            : parent,
                                             .when = born};
    asym_fork_guard_on_event(f->ledger, &event);
}

static void deliver(struct fork_guard_fixture *f, enum asym_process_event_kind kind, int32_t tgid, int32_t pid,
                    int32_t parent)
{
    deliver_born(f, kind, tgid, pid, parent, NOW);
}

/* A child right after fork: it has its creator's mask, and 0 for a negative nice value if reset-on-fork is set. */
static struct fake_thread *child_of(const struct fake_thread *creator, int32_t tgid, int32_t tid)
{
    struct fake_thread *t = fake_kernel_thread(tgid, tid, creator->mask);
    t->start = 100000;
    t->ppid = creator->tgid;
    t->nice = creator->reset_on_fork && creator->nice < 0 ? 0 : creator->nice;
    return t;
}

static void assert_thread(const struct fake_thread *t, uint64_t bits, int8_t nice)
{
    const struct asym_mask want = fake_mask(bits);
    if (!asym_mask_equal(&t->mask, &want) || t->nice != nice)
        fail_msg("thread %d: mask %#llx, nice %d", t->tid, (unsigned long long)t->mask.w[0], t->nice);
}

TEST_F(a_fork_repairs_the_child_and_releases_the_process)
{
    struct fake_thread *child = child_of(f->thread, CHILD, CHILD);
    deliver(f, ASYM_PROCESS_EVENT_FORK, CHILD, CHILD, TID);
    assert_thread(child, 0xff, 0);
    assert_true(child->set_full_cpuset);
    assert_thread(f->leader, 0xff, 0);
    assert_thread(f->thread, 0xff, 0);
    assert_thread(f->other, 0xf0, 0);
    assert_int_equal(asym_ledger_count(f->ledger), 1);
    assert_true(asym_ledger_was_released(f->ledger, PID, NOW));
    assert_false(asym_ledger_was_released(f->ledger, OTHER, 0));
}

/* The file must show the release, because asymd may be killed after the fork. */
TEST_F(a_release_is_on_record)
{
    struct asym_ledger *again = NULL;
    child_of(f->thread, CHILD, CHILD);
    deliver(f, ASYM_PROCESS_EVENT_FORK, CHILD, CHILD, TID);
    assert_int_equal(asym_ledger_peek(f->tree.path, &again, NULL), 0);
    assert_int_equal(asym_ledger_count(again), 1);
    assert_non_null(asym_ledger_find(again, OTHER));
    asym_ledger_close(again);
}

TEST_F(a_fork_of_a_process_that_is_not_steered_changes_nothing)
{
    struct fake_thread *stranger = fake_kernel_thread(CHILD, CHILD, fake_mask(0xf0));
    struct fake_thread *child = child_of(stranger, CHILD + 1, CHILD + 1);
    deliver(f, ASYM_PROCESS_EVENT_FORK, CHILD + 1, CHILD + 1, CHILD);
    assert_thread(child, 0xf0, 0);
    assert_int_equal(child->n_set_mask, 0);
    assert_int_equal(asym_ledger_count(f->ledger), 3);
}

TEST_F(a_child_that_has_chosen_for_itself_keeps_that)
{
    struct fake_thread *child = child_of(f->thread, CHILD, CHILD);
    child->mask = fake_mask(0x01);
    deliver(f, ASYM_PROCESS_EVENT_FORK, CHILD, CHILD, TID);
    assert_thread(child, 0x01, 0);
    assert_thread(f->thread, 0xff, 0);
}

/* Reset-on-fork gives the child 0. Without asymd the child would have its creator's nice value. */
TEST_F(a_child_of_a_boosted_thread_has_its_creators_nice_value)
{
    struct fake_thread *boosted = fake_kernel_thread(CHILD, CHILD, fake_mask(0xff));
    steered(f, boosted, 5, -5);
    struct fake_thread *child = child_of(boosted, CHILD + 1, CHILD + 1);
    assert_thread(child, 0xf0, 0);
    deliver(f, ASYM_PROCESS_EVENT_FORK, CHILD + 1, CHILD + 1, CHILD);
    assert_thread(child, 0xff, 5);
    assert_thread(boosted, 0xff, 5);
    assert_false(boosted->reset_on_fork);
}

/* The kernel does not name the creating thread. The fork guard takes one whose mask and nice value the new thread has. */
TEST_F(a_new_thread_is_repaired_and_its_process_stays_steered)
{
    struct fake_thread *newborn = child_of(f->thread, PID, TID + 1), *own;
    struct fake_thread *child = child_of(newborn, CHILD, CHILD);
    deliver(f, ASYM_PROCESS_EVENT_CLONE, PID, TID + 1, 0);
    assert_thread(newborn, 0xff, 0);
    assert_thread(f->thread, 0xf0, 0);
    assert_int_equal(asym_ledger_count(f->ledger), 3);
    own = fake_kernel_thread(PID, TID + 2, fake_mask(0x30));
    deliver(f, ASYM_PROCESS_EVENT_CLONE, PID, TID + 2, 0);
    assert_thread(own, 0x30, 0);
    deliver(f, ASYM_PROCESS_EVENT_FORK, CHILD, CHILD, TID + 1);
    assert_thread(child, 0xff, 0);
    assert_thread(f->thread, 0xff, 0);
    assert_int_equal(asym_ledger_count(f->ledger), 1);
}

TEST_F(the_nice_value_decides_between_two_possible_creators)
{
    struct fake_thread *a = fake_kernel_thread(CHILD, CHILD, fake_mask(0xf3));
    struct fake_thread *b = fake_kernel_thread(CHILD, CHILD + 1, fake_mask(0xfc));
    steered(f, a, 0, 0);
    steered(f, b, 7, 7);
    for (int i = 0; i < 2; i++) {
        struct fake_thread *newborn = child_of(i ? b : a, CHILD, CHILD + 2 + i);
        deliver(f, ASYM_PROCESS_EVENT_CLONE, CHILD, newborn->tid, 0);
        assert_thread(newborn, i ? 0xfc : 0xf3, i ? 7 : 0);
    }
}

/* Events wait in a queue. By now the core may steer the new thread itself. */
TEST_F(a_new_thread_that_is_steered_by_now_is_left_alone)
{
    struct fake_thread *newborn = fake_kernel_thread(PID, TID + 1, fake_mask(0xff));
    steered(f, newborn, 0, 0);
    deliver(f, ASYM_PROCESS_EVENT_CLONE, PID, TID + 1, 0);
    assert_thread(newborn, 0xf0, 0);
    newborn->start++; /* the kernel reused the number: the entry is of an earlier thread */
    deliver(f, ASYM_PROCESS_EVENT_CLONE, PID, TID + 1, 0);
    assert_thread(newborn, 0xff, 0);
    const struct fake_thread *later = child_of(f->thread, PID, TID + 2); /* the event is of an earlier thread */
    deliver_born(f, ASYM_PROCESS_EVENT_CLONE, PID, TID + 2, 0, NOW - ASYM_SEC);
    assert_thread(later, 0xf0, 0);
    deliver(f, ASYM_PROCESS_EVENT_CLONE, PID, TID + 2, 0);
    assert_thread(later, 0xff, 0);
}

/* The child had a narrowed mask until its repair. Its own children may have inherited that until then, and not later. */
TEST_F(children_of_a_child_are_repaired_too)
{
    struct fake_thread *child = child_of(f->thread, CHILD, CHILD);
    struct fake_thread *grandchild = child_of(child, CHILD + 1, CHILD + 1), *late;
    struct fake_thread *last = child_of(grandchild, CHILD + 3, CHILD + 3);
    deliver(f, ASYM_PROCESS_EVENT_FORK, CHILD, CHILD, TID);
    deliver(f, ASYM_PROCESS_EVENT_FORK, CHILD + 1, CHILD + 1, CHILD);
    assert_thread(grandchild, 0xff, 0);
    deliver(f, ASYM_PROCESS_EVENT_FORK, CHILD + 3, CHILD + 3, CHILD + 1);
    assert_thread(last, 0xff, 0);
    late = fake_kernel_thread(CHILD + 2, CHILD + 2, fake_mask(0xf0));
    deliver_born(f, ASYM_PROCESS_EVENT_FORK, CHILD + 2, CHILD + 2, CHILD, NOW + ASYM_LEDGER_LATE + 1);
    assert_thread(late, 0xf0, 0);
}

TEST_F(a_second_child_of_a_process_released_is_repaired)
{
    struct fake_thread *first = child_of(f->thread, CHILD, CHILD), *second = child_of(f->leader, CHILD + 1, CHILD + 1);
    struct fake_thread *newborn = child_of(f->leader, PID, TID + 1);
    deliver(f, ASYM_PROCESS_EVENT_FORK, CHILD, CHILD, TID);
    deliver(f, ASYM_PROCESS_EVENT_FORK, CHILD + 1, CHILD + 1, PID);
    deliver(f, ASYM_PROCESS_EVENT_CLONE, PID, TID + 1, 0);
    assert_thread(first, 0xff, 0);
    assert_thread(second, 0xff, 0);
    assert_thread(newborn, 0xff, 0);
    /* Too late to have inherited anything. */
    struct fake_thread *late = fake_kernel_thread(CHILD + 2, CHILD + 2, fake_mask(0xf0));
    deliver_born(f, ASYM_PROCESS_EVENT_FORK, CHILD + 2, CHILD + 2, TID, NOW + ASYM_LEDGER_LATE + 1);
    assert_thread(late, 0xf0, 0);
}

/* The core has steered the child itself before the fork guard reads the event: its mask is its own. */
TEST_F(a_child_that_is_steered_by_now_is_left_alone)
{
    struct fake_thread *child = fake_kernel_thread(CHILD, CHILD, fake_mask(0xff));
    steered(f, child, 0, 0);
    deliver(f, ASYM_PROCESS_EVENT_FORK, CHILD, CHILD, TID);
    assert_thread(child, 0xf0, 0);
    assert_thread(f->thread, 0xff, 0);
    assert_int_equal(asym_ledger_count(f->ledger), 2);
}

/* A thread has chosen the mask that asymd gave to another thread of its process. */
TEST_F(a_child_of_a_thread_that_chose_that_mask_keeps_it)
{
    struct fake_thread *chooser = fake_kernel_thread(CHILD, CHILD, fake_mask(0xf0));
    struct fake_thread *creator = fake_kernel_thread(CHILD, CHILD + 1, fake_mask(0xff));
    steered(f, creator, 0, 0);
    struct fake_thread *own = child_of(chooser, CHILD + 2, CHILD + 2), *other = child_of(creator, CHILD + 3, CHILD + 3);
    deliver(f, ASYM_PROCESS_EVENT_FORK, CHILD + 3, CHILD + 3, CHILD + 1);
    deliver(f, ASYM_PROCESS_EVENT_FORK, CHILD + 2, CHILD + 2, CHILD);
    assert_thread(chooser, 0xf0, 0);
    assert_thread(own, 0xf0, 0);
    assert_thread(creator, 0xff, 0);
    assert_thread(other, 0xff, 0);
}

/* The thread that called exec now has the leader's TID, and still has its own mask. */
TEST_F(an_exec_repairs_the_image_and_releases_the_process)
{
    fake_kernel_end(TID);
    deliver(f, ASYM_PROCESS_EVENT_EXEC, PID, PID, 0);
    assert_thread(f->leader, 0xff, 0);
    assert_thread(f->other, 0xf0, 0);
    assert_int_equal(asym_ledger_count(f->ledger), 1);
    assert_true(asym_ledger_was_released(f->ledger, PID, NOW));
    deliver(f, ASYM_PROCESS_EVENT_EXEC, CHILD, CHILD, 0);
    assert_false(asym_ledger_was_released(f->ledger, CHILD, 0));
}

TEST_F(an_exec_of_a_boosted_thread_gives_nice_and_flag_back)
{
    struct fake_thread *leader = fake_kernel_thread(CHILD, CHILD, fake_mask(0xff));
    struct fake_thread *caller = fake_kernel_thread(CHILD, CHILD + 1, fake_mask(0x7f));
    steered(f, caller, 3, -5);
    leader->mask = caller->mask;
    leader->nice = caller->nice;
    leader->reset_on_fork = true;
    fake_kernel_end(CHILD + 1);
    deliver(f, ASYM_PROCESS_EVENT_EXEC, CHILD, CHILD, 0);
    assert_int_equal(leader->nice, 3);
    assert_false(leader->reset_on_fork);
    assert_int_equal(leader->n_set_mask, 1);
    assert_int_equal(asym_ledger_count(f->ledger), 3);
}

static enum asym_outcome_kind apply(struct fork_guard_fixture *f, const struct asym_action *action)
{
    struct asym_actuator *actuator = NULL;
    struct asym_outcome outcome;
    assert_int_equal(asym_actuator_linux_new(f->ledger, &actuator), 0);
    assert_int_equal(actuator->apply(actuator, action, 1, &outcome), 0);
    actuator->close(actuator);
    return outcome.kind;
}

/* The thread calls exec. An action between its taking of the leader's TID and the load of the program finds no such thread. */
static void take_over(struct fork_guard_fixture *f, struct fake_thread *leader, struct fake_thread *caller)
{
    const struct asym_action release = {.kind = ASYM_ACTION_RELEASE, .id = {caller->tid, caller->tgid, caller->start}};
    leader->mask = caller->mask;
    fake_kernel_end(caller->tid);
    assert_int_equal(apply(f, &release), ASYM_OUTCOME_GONE);
    assert_null(asym_ledger_find(f->ledger, release.id.tid));
}

TEST_F(an_exec_of_a_thread_that_has_seemed_to_end_repairs_the_image)
{
    struct fake_thread *leader = fake_kernel_thread(CHILD, CHILD, fake_mask(0xff));
    struct fake_thread *caller = fake_kernel_thread(CHILD, CHILD + 1, fake_mask(0xff));
    steered(f, caller, 0, 0);
    take_over(f, leader, caller);
    asym_ledger_add_pending(f->ledger, asym_ledger_find(f->ledger, OTHER), OTHER + 1, OTHER, NOW + ASYM_SEC);
    /* Too late: an earlier process had this number. */
    deliver_born(f, ASYM_PROCESS_EVENT_EXEC, CHILD, CHILD, 0, NOW + ASYM_LEDGER_LATE + 1);
    assert_thread(leader, 0xf0, 0);
    deliver(f, ASYM_PROCESS_EVENT_EXEC, CHILD, CHILD, 0);
    assert_thread(leader, 0xff, 0);
    assert_true(asym_ledger_was_released(f->ledger, CHILD, NOW));
}

/* The leader dies by the exec: the event of its end may come after that of the exec, and under the caller's number. */
TEST_F(an_exec_repairs_the_image_although_the_former_leader_is_on_record)
{
    asym_ledger_find(f->ledger, TID)->set = f->thread->mask = fake_mask(0x30);
    take_over(f, f->leader, f->thread);
    deliver(f, ASYM_PROCESS_EVENT_EXEC, PID, PID, 0);
    assert_thread(f->leader, 0xff, 0);
    assert_int_equal(asym_ledger_count(f->ledger), 1);
}

/* asymd had given the former leader the mask that the caller has chosen for itself. */
TEST_F(an_exec_keeps_a_mask_that_the_former_leader_had)
{
    deliver(f, ASYM_PROCESS_EVENT_EXIT, PID, PID, 0);
    asym_ledger_forget(f->ledger, asym_ledger_find(f->ledger, TID));
    deliver(f, ASYM_PROCESS_EVENT_EXEC, PID, PID, 0);
    assert_thread(f->leader, 0xf0, 0);
}

/*
 * An exec ends the leader, which keeps what it was lent; then its number has the caller, with what that was lent. The plan is of
 * before.
 */
TEST_F(no_entry_begins_under_the_number_of_a_leader_that_has_ended)
{
    for (int32_t i = 0; i < 2; i++) {
        const int32_t pid = CHILD + 2 * i;
        struct fake_thread *leader = fake_kernel_thread(pid, pid, fake_mask(0xff));
        steered(f, i ? fake_kernel_thread(pid, pid + 1, fake_mask(0xff)) : leader, 0, -5);
        leader->mask = fake_mask(0xf0);
        leader->nice = -5;
        deliver(f, ASYM_PROCESS_EVENT_EXIT, pid, pid, 0);
        const struct asym_action steer = {.kind = ASYM_ACTION_STEER,
                                          .id = {pid, pid, leader->start},
                                          .expect = leader->mask,
                                          .expect_nice = -5,
                                          .mask = fake_mask(0x0f)};
        assert_int_equal(apply(f, &steer), ASYM_OUTCOME_RETRY);
        assert_null(asym_ledger_find(f->ledger, pid));
        assert_thread(leader, 0xf0, -5);
    }
}

/* The events of its last children may come after its exit. */
TEST_F(a_thread_that_ends_is_forgotten_and_its_children_are_not)
{
    struct fake_thread *child = child_of(f->thread, CHILD, CHILD);
    fake_kernel_end(TID);
    deliver(f, ASYM_PROCESS_EVENT_EXIT, PID, TID, 0);
    assert_false(asym_ledger_was_released(f->ledger, PID, 0));
    assert_int_equal(asym_ledger_count(f->ledger), 2);
    assert_null(asym_ledger_find(f->ledger, TID));
    deliver(f, ASYM_PROCESS_EVENT_FORK, CHILD, CHILD, TID);
    assert_thread(child, 0xff, 0);
    deliver(f, ASYM_PROCESS_EVENT_EXIT, CHILD, OTHER, 0); /* an earlier process had this number */
    assert_non_null(asym_ledger_find(f->ledger, OTHER));
    deliver(f, ASYM_PROCESS_EVENT_EXIT, CHILD, CHILD, 0);
    assert_false(asym_ledger_was_released(f->ledger, CHILD, 0));
}

/* A child of a boosted thread has nice 0, which the other thread with the same mask does not explain. */
TEST_F(a_boost_explains_the_nice_value_of_a_child)
{
    struct fake_thread *calm = fake_kernel_thread(CHILD, CHILD, fake_mask(0xff));
    struct fake_thread *boosted = fake_kernel_thread(CHILD, CHILD + 1, fake_mask(0xff));
    steered(f, calm, 7, 7);
    steered(f, boosted, 7, -5);
    struct fake_thread *newborn = child_of(boosted, CHILD, CHILD + 2);
    deliver(f, ASYM_PROCESS_EVENT_CLONE, CHILD, newborn->tid, 0);
    assert_thread(newborn, 0xff, 7);
}

/* In a storm of forks events wait for seconds, and the kernel may reuse a number in that time. */
TEST_F(the_late_event_of_an_earlier_thread_forgets_no_later_one)
{
    asym_ledger_find(f->ledger, OTHER)->id.start = 99900;
    deliver_born(f, ASYM_PROCESS_EVENT_EXIT, OTHER, OTHER, 0, NOW - 2 * ASYM_SEC);
    assert_non_null(asym_ledger_find(f->ledger, OTHER));
    deliver_born(f, ASYM_PROCESS_EVENT_EXIT, OTHER, OTHER, 0, NOW - ASYM_SEC);
    assert_null(asym_ledger_find(f->ledger, OTHER));
}

TEST_F(what_the_kernel_refuses_to_take_back_stays_on_record)
{
    struct fake_thread *child = child_of(f->thread, CHILD, CHILD);
    fake_kernel_fail(f->thread, FAKE_SET_MASK, -EPERM, 0);
    deliver(f, ASYM_PROCESS_EVENT_FORK, CHILD, CHILD, TID);
    assert_thread(child, 0xff, 0);
    assert_thread(f->leader, 0xff, 0);
    assert_thread(f->thread, 0xf0, 0);
    assert_non_null(asym_ledger_find(f->ledger, TID));
    assert_int_equal(asym_ledger_count(f->ledger), 2);
}

TEST_F(a_child_that_is_gone_already_does_no_harm)
{
    struct fake_thread *grandchild = child_of(f->thread, CHILD + 1, CHILD + 1);
    deliver(f, ASYM_PROCESS_EVENT_FORK, CHILD, CHILD, TID);
    assert_thread(f->thread, 0xff, 0);
    deliver(f, ASYM_PROCESS_EVENT_FORK, CHILD + 1, CHILD + 1, CHILD);
    assert_thread(grandchild, 0xff, 0);
}

/* The ledger does not know these processes; empty events and the loss of some change nothing, either. */
TEST_F(events_that_do_not_concern_it_change_nothing)
{
    for (int kind = ASYM_PROCESS_EVENT_FORK; kind <= ASYM_PROCESS_EVENT_LOST; kind++) {
        deliver(f, (enum asym_process_event_kind)kind, INT32_MAX, INT32_MAX, INT32_MAX - 1);
        deliver_born(f, (enum asym_process_event_kind)kind, 0, 0, 0, 0);
    }
    assert_int_equal(asym_ledger_count(f->ledger), 3);
    assert_thread(f->thread, 0xf0, 0);
}

TEST_MAIN
