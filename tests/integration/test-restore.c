/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Restoring while the surroundings change: cpusets change, parents end, processes call exec, and threads come and go between
 * kills. The test steers only processes that it started itself. It needs two CPUs, and fails with a message on one.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/mask.h"
#include "linux/enforce/enforce.h"
#include "linux/sys/thread.h"
#include "support/cgroup.h"
#include "support/generate.h"
#include "support/live.h"
#include "support/rounds.h"
#include "support/process.h"
#include "support/steered.h"
#include "support/test.h"

#define SLOTS 220

struct shared {
    atomic_int tids[SLOTS];
    atomic_int ready, go;
};

static struct shared *shared;

static int set_up(void **state)
{
    shared = asym_live_share(sizeof *shared);
    return steered_set_up(state);
}

static void sleep_on(void)
{
    for (;;)
        pause();
}

static pid_t start_by(pid_t (*fork_child)(void), void (*run)(void))
{
    const pid_t pid = fork_child();
    assert_true(pid >= 0);
    if (pid == 0) {
        run();
        _exit(0);
    }
    return pid;
}

static pid_t start(void (*run)(void))
{
    return start_by(asym_process_fork, run);
}

/* Restores from the ledger file alone, as the next asymd would. */
static struct asym_restore_report restore_anew(void)
{
    close_ledger();
    open_ledger();
    return restore();
}

/*
 * Item 3 of what steering must not break. The kernel cuts the mask of a steered thread to a changed cpuset: the result is
 * neither asymd's mask nor the original one. It still counts as asymd's, and the restored mask grows with the cpuset.
 */
TEST_WITH(a_cpuset_that_changes_leaves_no_thread_pinned, set_up, steered_tear_down)
{
    char both[32], one[16], other[16];
    snprintf(both, sizeof both, "%d,%d", asym_mask_next(&first, 0), asym_mask_next(&last, 0));
    snprintf(one, sizeof one, "%d", asym_mask_next(&first, 0));
    snprintf(other, sizeof other, "%d", asym_mask_next(&last, 0));
    asym_cpuset_make(both);
    const struct asym_mask pair = asym_mask_or(&first, &last);
    pid_t pid = start(sleep_on);
    asym_cpuset_join(pid);
    open_ledger();
    assert_int_equal(steer(pid, pid, &pair, &first), 0);
    asym_cpuset_set(other);
    assert_true(has(pid, &last));
    const struct asym_restore_report report = restore_anew();
    assert_int_equal(report.restored, 1);
    assert_true(has(pid, &last)); /* the restored mask never leaves the cpuset, */
    asym_cpuset_set(both);
    assert_true(has(pid, &pair)); /* and grows with it */
    /* The cpuset lacks the CPU of this action: the kernel refuses it, and the ledger keeps no entry. */
    asym_cpuset_set(one);
    assert_int_equal(steer(pid, pid, &first, &last), -EINVAL);
    assert_int_equal(asym_ledger_count(ledger), 0);
    assert_true(has(pid, &first));
    asym_cpuset_set(both);
    assert_true(has(pid, &pair));
    /* No policy plans a boost without its mask. */
    assert_int_equal(steer(pid, pid, &pair, &first), 0);
    asym_cpuset_set(one);
    struct asym_action boost = action(ASYM_ACTION_STEER, pid, pid, &first, &last);
    boost.nice = -5;
    assert_int_equal(apply(&boost), -EINVAL);
    assert_int_equal(getpriority(PRIO_PROCESS, (id_t)pid), 0);
    asym_cpuset_set(both);
    assert_int_equal(restore_anew().restored, 1);
    assert_true(has(pid, &pair));
    asym_live_end(pid, SIGKILL);
    asym_cpuset_remove();
}

static void leave_an_orphan(void)
{
    shared->tids[1] = (int)getpid();
    shared->ready = 1;
    while (shared->go == 0)
        usleep(200);
    pid_t pid = asym_process_fork_orphan(60);
    if (pid == 0) {
        shared->tids[0] = (int)getpid();
        sleep_on();
    }
    while (shared->go == 1)
        usleep(200);
}

/* The process that runs the tests may be a reaper of orphans, and may lead their session. */
static void lead_a_session(void)
{
    pid_t pid = asym_process_fork();
    if (pid == 0) {
        leave_an_orphan();
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    shared->go = 3;
    sleep_on();
}

/* The creator has ended. Its child now belongs to the process that reaps orphans: init, or a subreaper. */
TEST_WITH(an_orphan_has_inherited, set_up, steered_tear_down)
{
    pid_t leader = start_by(asym_process_fork_session, lead_a_session);
    await(&shared->ready, 1);
    pid_t pid = shared->tids[1];
    open_ledger();
    assert_int_equal(steer(pid, pid, &all_cpus, &first), 0);
    shared->go = 1;
    await(&shared->tids[0], 1);
    pid_t orphan = shared->tids[0];
    shared->go = 2;
    ASYM_LIVE_AWAIT(shared->go == 3);
    assert_true(has(orphan, &first));
    const struct asym_restore_report report = restore_anew();
    bool free_again = has(orphan, &all_cpus);
    asym_live_signal(orphan, SIGKILL);
    asym_live_end(leader, SIGKILL);
    assert_int_equal(report.gone, 1);
    assert_int_equal(report.inherited, 1);
    assert_true(free_again);
}

static pid_t fork_sleeper(void)
{
    pid_t pid = asym_process_fork_orphan(60);
    if (pid == 0)
        sleep_on();
    return pid;
}

/*
 * The session's leader ends. The remaining process has two children; it forks the second after the test has steered the first.
 */
static void leave_a_session(void)
{
    if (asym_process_fork_orphan(60) > 0)
        _exit(0);
    shared->tids[0] = (int)fork_sleeper();
    while (shared->go == 0)
        usleep(200);
    shared->tids[1] = (int)fork_sleeper();
    while (shared->go == 1)
        usleep(200);
    _exit(0);
}

/* Not all children of init in the session come from the steered process: the parent of some existed before it. */
TEST_WITH(a_sibling_in_a_session_without_a_leader_has_inherited_nothing, set_up, steered_tear_down)
{
    assert_int_equal(asym_live_wait(start_by(asym_process_fork_session, leave_a_session)), 0);
    await(&shared->tids[0], 1);
    pid_t pid = shared->tids[0];
    asym_live_sleep(0.05);
    open_ledger();
    assert_int_equal(steer(pid, pid, &all_cpus, &first), 0);
    shared->go = 1;
    await(&shared->tids[1], 1);
    pid_t sibling = shared->tids[1];
    int set = asym_thread_set_mask(sibling, &first, false);
    const struct asym_restore_report report = restore_anew();
    bool kept = has(sibling, &first), given_back = has(pid, &all_cpus);
    shared->go = 2;
    asym_live_signal(pid, SIGKILL);
    asym_live_signal(sibling, SIGKILL);
    assert_int_equal(set, 0);
    assert_int_equal(report.inherited, 0);
    assert_true(kept && given_back);
}

static void *exec_when_signalled(void *arg)
{
    shared->tids[0] = (int)gettid();
    while (shared->go == 0)
        usleep(200);
    if (shared->go == 1)
        execlp("sleep", "sleep", "60", (char *)NULL);
    return arg;
}

static void exec_from_a_thread(void)
{
    pthread_t t;
    if (pthread_create(&t, NULL, exec_when_signalled, NULL) == 0)
        pthread_join(t, NULL);
    sleep_on();
}

static void await_end(pid_t pid, pid_t tid)
{
    ASYM_LIVE_AWAIT(asym_thread_is_of(pid, tid) != 0);
}

/* exec gives the calling thread the leader's tid and start time, and keeps its mask: it matches neither ledger entry. */
static pid_t exec_while_steered(bool leader_is_steered, struct asym_taskid *ret_former)
{
    const pid_t pid = start(exec_from_a_thread);
    await(&shared->tids[0], 1);
    const pid_t tid = shared->tids[0];
    struct asym_stat stat;
    assert_int_equal(asym_thread_get_stat(pid, tid, &stat), 0);
    *ret_former = (struct asym_taskid){tid, pid, stat.start};
    open_ledger();
    if (leader_is_steered)
        assert_int_equal(steer(pid, pid, &all_cpus, &first), 0);
    assert_int_equal(steer(pid, tid, &all_cpus, &last), 0);
    shared->go = 1;
    await_end(pid, tid);
    assert_true(has(pid, &last));
    return pid;
}

TEST_WITH(what_a_thread_took_along_by_exec_is_found, set_up, steered_tear_down)
{
    /* The file does not have the image of a process, which tells of the exec where the leader has no record. */
    static const struct {
        bool leader_is_steered;
        struct asym_restore_report (*restore)(void);
    } rows[] = {{true, restore_anew}, {true, restore}, {false, restore}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_taskid former;
        shared->tids[0] = shared->go = 0;
        const pid_t pid = exec_while_steered(rows[i].leader_is_steered, &former);
        const struct asym_restore_report report = rows[i].restore();
        if (report.gone != 1 || report.inherited != 1 || !has(pid, &all_cpus))
            fail_msg("row %zu: %zu gone, %zu inherited", i, report.gone, report.inherited);
        asym_live_end(pid, SIGKILL);
        close_ledger();
    }
}

/* A sample may show that the thread has ended before one shows the new program, and asymd may be stopped in between. */
TEST_WITH(the_record_of_a_thread_that_called_exec_is_not_forgotten_in_vain, set_up, steered_tear_down)
{
    struct asym_taskid former;
    const pid_t pid = exec_while_steered(false, &former);
    struct asym_action a = action(ASYM_ACTION_RELEASE, pid, pid, &last, &all_cpus);
    a.id = former;
    assert_int_equal(apply(&a), -ESRCH);
    assert_true(has(pid, &all_cpus));
    asym_live_end(pid, SIGKILL);
}

/* The main thread has ended, and a thread that asymd has not steered has chosen the mask of the one that ends. */
static void *pin_itself(void *arg)
{
    asym_thread_set_mask((int)gettid(), &last, false);
    shared->tids[1] = (int)gettid();
    sleep_on();
    return arg;
}

static void end_the_main_thread(void)
{
    pthread_t t;
    pthread_create(&t, NULL, exec_when_signalled, NULL);
    pthread_create(&t, NULL, pin_itself, NULL);
    pthread_exit(NULL);
}

TEST_WITH(the_end_of_the_main_thread_is_no_exec, set_up, steered_tear_down)
{
    const pid_t pid = start(end_the_main_thread);
    await(&shared->tids[0], 1);
    await(&shared->tids[1], 1);
    const pid_t tid = shared->tids[0], pinned = shared->tids[1];
    asym_live_sleep(0.05);
    open_ledger();
    assert_int_equal(steer(pid, tid, &all_cpus, &last), 0);
    struct asym_action a = action(ASYM_ACTION_RELEASE, pid, tid, &last, &all_cpus);
    shared->go = 2;
    await_end(pid, tid);
    assert_int_equal(apply(&a), -ESRCH);
    assert_true(has(pinned, &last));
    asym_live_end(pid, SIGKILL);
}

/* The leader has chosen the mask itself, and has not called exec. */
TEST_WITH(the_end_of_a_thread_changes_no_leader, set_up, steered_tear_down)
{
    const pid_t pid = start(exec_from_a_thread);
    await(&shared->tids[0], 1);
    /* Starts are whole clock ticks: what starts in the tick of the steering may have inherited. */
    asym_live_sleep(0.05);
    open_ledger();
    assert_int_equal(steer(pid, shared->tids[0], &all_cpus, &last), 0);
    assert_int_equal(asym_thread_set_mask(pid, &last, false), 0);
    shared->go = 2;
    await_end(pid, shared->tids[0]);
    const struct asym_restore_report report = restore();
    assert_int_equal(report.gone, 1);
    assert_true(has(pid, &last));
    asym_live_end(pid, SIGKILL);
}

/* 200 threads at a time come and go, each with a nice value that depends on its slot. */

static int nice_of_slot(size_t k)
{
    return (int)(k % 3) * 4;
}

static void *live_a_while(void *arg)
{
    atomic_int *slot = arg;
    size_t k = (size_t)(slot - shared->tids);
    setpriority(PRIO_PROCESS, (id_t)gettid(), nice_of_slot(k));
    *slot = (int)gettid();
    usleep((useconds_t)(20000 + k * 7919 % 200000));
    *slot = 0;
    return NULL;
}

static void come_and_go(void)
{
    pthread_t threads[200];
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 32768);
    for (size_t k = 0; k < 200; k++)
        pthread_create(&threads[k], &attr, live_a_while, &shared->tids[k]);
    shared->ready = 1;
    for (size_t k = 0;; k = (k + 1) % 200) {
        pthread_join(threads[k], NULL);
        while (pthread_create(&threads[k], &attr, live_a_while, &shared->tids[k]) != 0)
            usleep(1000);
    }
}

/* The actions that all living threads get, one after the other; the last is a release. */
static const struct pass {
    enum asym_action_kind kind;
    const struct asym_mask *mask;
    bool boosted, by_transit_cpu;
} passes[] = {
    {ASYM_ACTION_STEER, &last, false, false},
    {ASYM_ACTION_STEER, &first, true, false},
    /* via a CPU that its mask before lacks; only threads that never have a boost, because no policy plans one for a whole mask */
    {ASYM_ACTION_STEER, &all_cpus, false, true},
    {ASYM_ACTION_RELEASE, &all_cpus, false, false},
};

static size_t collect(pid_t pid, struct asym_action *actions, const struct pass *pass)
{
    size_t n = 0;
    for (size_t k = 0; k < 200; k++) {
        struct asym_stat stat;
        struct asym_mask found;
        int tid = shared->tids[k];
        if (tid == 0 || (pass->by_transit_cpu && k % 2) || asym_thread_get_stat(pid, tid, &stat) < 0 ||
            asym_thread_get_mask(tid, &found) < 0)
            continue;
        int own = nice_of_slot(k);
        actions[n++] = (struct asym_action){.kind = pass->kind,
                                            .id = {tid, pid, stat.start},
                                            .expect = found,
                                            .mask = *pass->mask,
                                            .transit_cpu = pass->by_transit_cpu ? (uint32_t)asym_mask_next(&last, 0) + 1
                                                                                : 0,
                                            .expect_nice = stat.nice,
                                            .nice = (int8_t)(pass->boosted && k % 2 ? own - 7 : own),
                                            .full_cpuset = pass->kind == ASYM_ACTION_RELEASE};
    }
    return n;
}

static pid_t victim;

static void steer_back_and_forth(void)
{
    static struct asym_action actions[200];
    static struct asym_outcome outcomes[200];
    open_ledger();
    for (size_t i = 0;; i = (i + 1) % ASYM_LENGTH(passes)) {
        size_t n = collect(victim, actions, &passes[i]);
        if (actuator->apply(actuator, actions, n, outcomes) < 0)
            _exit(3);
        shared->go++;
    }
}

/* Returns the number of the victim's threads without all CPUs, without their slot's nice value, or with reset-on-fork. */
static int odd_threads(void)
{
    int odd = 0;
    for (size_t k = 0; k < 200; k++) {
        struct asym_mask found;
        struct asym_thread_sched sched;
        int tid = shared->tids[k];
        if (tid == 0 || asym_thread_get_mask(tid, &found) < 0 || asym_thread_get_sched(tid, &sched) < 0 ||
            shared->tids[k] != tid)
            continue;
        odd += !asym_mask_equal(&found, &all_cpus) || sched.nice != nice_of_slot(k) || sched.reset_on_fork;
    }
    return odd;
}

/*
 * The test runs without the fork guard. Between the kills, the unsteered main thread of a process with steered threads starts
 * new threads, and steered threads end.
 */
TEST_WITH(after_each_kill_every_thread_that_is_left_has_its_own, set_up, steered_tear_down)
{
    struct gen g = {.state = 2012}; /* so that a failure can be repeated */
    struct asym_restore_report sum = {0};
    victim = start(come_and_go);
    await(&shared->ready, 1);
    const unsigned rounds = asym_rounds(100);
    for (unsigned round = 0; round < rounds; round++) {
        shared->go = 0;
        pid_t steerer = start(steer_back_and_forth);
        await(&shared->go, 1);
        asym_live_sleep(gen_below(&g, 30000) / 1e6);
        asym_live_signal(steerer, SIGKILL);
        assert_int_equal(asym_live_wait(steerer), 128 + SIGKILL);
        open_ledger();
        const struct asym_restore_report report = restore_anew();
        assert_int_equal(odd_threads(), 0);
        close_ledger();
        sum.restored += report.restored;
        sum.inherited += report.inherited;
        sum.gone += report.gone;
        sum.foreign += report.foreign;
    }
    print_message("%u kills while threads come and go: %zu restored, %zu with inherited affinity, %zu gone, %zu "
                  "foreign; none left odd\n",
                  rounds, sum.restored, sum.inherited, sum.gone, sum.foreign);
    assert_true(sum.restored > rounds * 10 && sum.gone > 0);
    assert_int_equal(sum.foreign, 0);
    asym_live_end(victim, SIGKILL);
}

TEST_MAIN
