/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fork guard, event by event. Most tests here deliver the fork events themselves, late and in an order of their choice, as
 * an overloaded fork guard gets them. They steer only processes that they started. They need two CPUs, and fail with a message
 * on one.
 */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/mask.h"
#include "linux/enforce/enforce.h"
#include "linux/observe/process-events.h"
#include "linux/sys/thread.h"
#include "support/live.h"
#include "support/process.h"
#include "support/rounds.h"
#include "support/steered.h"
#include "support/test.h"

/* Orders to a process of the tests. */
enum order { NOTHING, FORK, THREAD, END };

#define NODES 8

/* A process that waits for orders, or a thread of one (tgid and tid differ). */
struct node {
    atomic_int tid, tgid;
    atomic_int order, child; /* FORK, THREAD: the node of the new process or thread */
    asym_usec born;          /* a time after its fork, in the test's clock */
};

static struct node *nodes; /* shared with all test processes */
static pid_t test;         /* this process */

static void run_node(struct node *n);

static void *run_thread(void *node)
{
    run_node(node);
    return NULL;
}

/* The test waits for tid: it is the last. */
static void introduce(struct node *n)
{
    n->tgid = (int)getpid();
    n->tid = (int)gettid();
}

static void run_node(struct node *n)
{
    for (introduce(n);;) {
        pthread_t t;
        struct node *child = &nodes[n->child];
        switch (atomic_load(&n->order)) {
        case FORK:
            if (asym_process_fork_orphan(60) == 0) {
                n = child;
                introduce(n);
                continue;
            }
            break;
        case THREAD:
            pthread_create(&t, NULL, run_thread, child);
            break;
        case END:
            _exit(0);
        default:
            usleep(200);
            /* Nodes outlive their creators, but not the test. */
            if (asym_process_signal(test, 0) < 0)
                _exit(1);
            continue;
        }
        n->order = NOTHING;
    }
}

/* Starts node 0 with this nice value. */
static void start_root(int nice)
{
    test = getpid();
    pid_t pid = asym_process_fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGCHLD, SIG_IGN);
        setpriority(PRIO_PROCESS, 0, nice);
        run_node(nodes);
    }
    await(&nodes[0].tid, 1);
    nodes[0].born = (asym_usec)(asym_live_now() * 1e6);
}

static void grow(int parent, enum order order, int child)
{
    nodes[parent].child = child;
    nodes[parent].order = (int)order;
    await(&nodes[child].tid, 1);
    nodes[child].born = (asym_usec)(asym_live_now() * 1e6);
    /* The child may run before its creator has cleared the order, and the creator would then clear the next order. */
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; nodes[parent].order != NOTHING && asym_live_now() < end;)
        asym_live_sleep(0.0002);
    assert_int_equal(nodes[parent].order, NOTHING);
}

static bool node_has(int k, const struct asym_mask *mask)
{
    return has(nodes[k].tid, mask);
}

static int nice_of(int k)
{
    struct asym_thread_sched sched;
    assert_int_equal(asym_thread_get_sched(nodes[k].tid, &sched), 0);
    return sched.nice;
}

static int set_up(void **state)
{
    nodes = share(NODES * sizeof *nodes);
    steered_set_up(state);
    open_ledger();
    return 0;
}

static int tear_down(void **state)
{
    for (int k = 0; k < NODES; k++) {
        /* A process that has not introduced itself yet reads its order later. */
        nodes[k].order = END;
        if (nodes[k].tgid > 0 && asym_thread_is_of(nodes[k].tgid, nodes[k].tid) == 0)
            asym_process_signal(nodes[k].tgid, SIGKILL);
    }
    while (waitpid(-1, NULL, 0) > 0)
        ;
    munmap(nodes, NODES * sizeof *nodes);
    return steered_tear_down(state);
}

static int steer_node(int k, const struct asym_mask *mask, int expect_nice, int nice)
{
    struct asym_action a = action(ASYM_ACTION_STEER, nodes[k].tgid, nodes[k].tid, &all_cpus, mask);
    a.expect_nice = (int8_t)expect_nice;
    a.nice = (int8_t)nice;
    return apply(&a);
}

/* later: seconds to add to the event's time. The kernel stamps a fork at once; the fork guard reads it later. */
static void deliver(enum asym_process_event_kind kind, int k, int parent, double later)
{
    struct asym_process_event event = {
        .kind = kind, .pid = nodes[k].tid, .tgid = nodes[k].tgid, .when = nodes[k].born + (asym_usec)(later * 1e6)};
    if (kind == ASYM_PROCESS_EVENT_FORK)
        event.parent_pid = nodes[parent].tid;
    if (kind == ASYM_PROCESS_EVENT_FORK || kind == ASYM_PROCESS_EVENT_CLONE)
        event.parent_tgid = nodes[parent].tgid;
    asym_fork_guard_on_event(ledger, &event);
}

TEST_WITH(a_fork_from_any_thread_releases_all_of_the_process, set_up, tear_down)
{
    start_root(0);
    grow(0, THREAD, 1);
    grow(0, THREAD, 2);
    assert_int_equal(steer_node(0, &first, 0, 0), 0);
    assert_int_equal(steer_node(1, &last, 0, -3), 0);
    grow(2, FORK, 3);
    deliver(ASYM_PROCESS_EVENT_FORK, 3, 2, 0);
    assert_true(node_has(0, &all_cpus) && node_has(1, &all_cpus) && node_has(3, &all_cpus));
    assert_int_equal(nice_of(1), 0);
    assert_int_equal(asym_ledger_count(ledger), 0);
    assert_int_equal(steer_node(0, &first, 0, 0), -EAGAIN);
}

TEST_WITH(children_have_the_nice_value_that_their_creator_had, set_up, tear_down)
{
    static const int from_to[][2] = {{0, -7}, {5, -7}, {10, 3}, {-4, -15}, {7, 0}};
    for (size_t i = 0; i < sizeof from_to / sizeof *from_to; i++) {
        const int own = from_to[i][0], boosted = from_to[i][1];
        memset(nodes, 0, NODES * sizeof *nodes);
        start_root(own);
        assert_int_equal(steer_node(0, &first, own, boosted), 0);
        assert_int_equal(nice_of(0), boosted);
        grow(0, FORK, 1);
        grow(1, FORK, 2);
        deliver(ASYM_PROCESS_EVENT_FORK, 1, 0, 0);
        deliver(ASYM_PROCESS_EVENT_FORK, 2, 1, 0);
        for (int k = 0; k <= 2; k++)
            assert_int_equal(nice_of(k), own);
        struct asym_thread_sched sched;
        for (int k = 0; k <= 2; k++) {
            assert_int_equal(asym_thread_get_sched(nodes[k].tid, &sched), 0);
            assert_false(sched.reset_on_fork);
            asym_process_signal(nodes[k].tgid, SIGKILL);
        }
    }
}

/* The race itself, with the proc connector and the fork guard's thread. */

static void fork_guard_without_priority(void)
{
    int found = 0;
    DIR *d = opendir("/proc/self/task");
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        const int tid = atoi(e->d_name);
        if (tid > 0 && tid != (int)getpid() && sched_setscheduler(tid, SCHED_OTHER, &(struct sched_param){0}) == 0)
            found++;
    }
    closedir(d);
    assert_int_equal(found, 1);
}

/* The first child of each process reads its mask at once, before any program that must be loaded first. */
static int narrow_first_children(int n, int in_program)
{
    int narrow = 0;
    for (int i = 0; i < n; i++) {
        int fds[2];
        char seen = 0;
        memset(nodes, 0, NODES * sizeof *nodes);
        assert_int_equal(pipe(fds), 0);
        pid_t pid = asym_process_fork();
        if (pid == 0) {
            introduce(&nodes[0]);
            while (nodes[0].order == NOTHING)
                usleep(200);
            pid_t child = asym_process_fork();
            if (child == 0) {
                dup2(fds[1], STDOUT_FILENO);
                if (in_program)
                    execlp("nproc", "nproc", (char *)NULL);
                seen = (char)('0' + asym_live_cpus());
                _exit(write(fds[1], &seen, 1) == 1 ? 0 : 1);
            }
            waitpid(child, NULL, 0);
            _exit(0);
        }
        await(&nodes[0].tid, 1);
        assert_int_equal(steer_node(0, &first, 0, 0), 0);
        nodes[0].order = FORK;
        assert_int_equal(asym_live_wait(pid), 0);
        assert_int_equal(read(fds[0], &seen, 1), 1);
        narrow += seen == '1';
        close(fds[0]);
        close(fds[1]);
        memset(nodes, 0, NODES * sizeof *nodes);
    }
    return narrow;
}

/* The test prints how often the first child loses the race, and asserts no limit. */
TEST_WITH(first_children_that_see_the_mask_before_the_fork_guard_acts, set_up, tear_down)
{
    struct asym_process_events *process_events;
    struct asym_error err;
    const int n = (int)asym_rounds(200);
    for (int realtime = 1; realtime >= 0; realtime--) {
        bool permitted;
        if (asym_process_events_open(&process_events, &err) < 0)
            fail_msg("this test needs the proc connector: %s", err.text);
        assert_int_equal(asym_process_events_watch(process_events, asym_fork_guard_on_event, ledger, &permitted), 0);
        /* A fork guard without CPU budget is late; this test is about one with budget. */
        asym_process_events_limit(process_events, 100);
        if (!realtime && permitted)
            fork_guard_without_priority();
        for (int loaded = 0; loaded <= 1; loaded++) {
            const char *const argv[] = {"tests/load-spin", "4", "120", NULL};
            pid_t load = loaded ? asym_live_start(argv, -1) : -1;
            int program = narrow_first_children(n, 1), at_once = narrow_first_children(n, 0);
            if (loaded)
                asym_live_end(load, SIGKILL);
            print_message(
                "first children that saw fewer CPUs, fork guard %s, %s: nproc %d of %d, the bare child %d of %d\n",
                realtime ? (permitted ? "real-time" : "not permitted to be real-time") : "without priority",
                loaded ? "loaded" : "idle", program, n, at_once, n);
        }
        asym_process_events_close(process_events);
        assert_int_equal(asym_ledger_count(ledger), 0);
    }
}

TEST_MAIN
