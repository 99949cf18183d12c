/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs at the edges of /proc, all at once: a leader that has ended before its threads, zombies, names that look like fields
 * of stat or end a line, names that change, and a thread that calls exec while it is no leader.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "support/live.h"
#include "support/must.h"
#include "support/process.h"
#include "support/service.h"
#include "support/test.h"

/* The kernel keeps 15 bytes of a name. */
static const char *const names[] = {
    ") R 1 1 1 0 -1 ",  "a\nb\n1 (c) R 2", "((((((((((((((((",
    "))))))))))))))))", " two  spaces ",   "\xff\xc3(\xe2\x82",
    "\x1b[2J\x07\x7f",  "\\n\\\\ \t\r",    "",
};

/* The processes of the test, children of one that sleeps. */
enum { LEADERLESS, NAMED, CHANGING, EXECUTING, EXECUTING_BESIDE_A_SLEEPER, ZOMBIE, N_PROGRAMS };

struct shared {
    pid_t pids[N_PROGRAMS];
    atomic_bool may_execute;
};

static struct shared *shared;

/* The busy threads of each program, at first and after the exec. */
static const int busy[N_PROGRAMS] =
    {[LEADERLESS] = 2, [NAMED] = ASYM_LENGTH(names), [CHANGING] = 2, [EXECUTING] = 3, [EXECUTING_BESIDE_A_SLEEPER] = 1},
                 busy_then[N_PROGRAMS] = {[LEADERLESS] = 2,
                                          [NAMED] = ASYM_LENGTH(names),
                                          [CHANGING] = 2,
                                          [EXECUTING] = 2,
                                          [EXECUTING_BESIDE_A_SLEEPER] = 2};

static void set_name(size_t i)
{
    MUST(prctl(PR_SET_NAME, names[i % ASYM_LENGTH(names)]) == 0);
}

static void *spin_named(void *name)
{
    set_name((size_t)(uintptr_t)name);
    for (volatile unsigned long count = 0;; count++)
        ;
    return NULL;
}

static void *spin_and_change(void *name)
{
    for (size_t i = (size_t)(uintptr_t)name;; i++) {
        set_name(i);
        for (volatile unsigned long count = 0; count < 1000000; count++)
            ;
    }
    return NULL;
}

static void *spin_then_execute(void *unused)
{
    /* The kernel keeps this for each thread, and the thread that calls exec becomes the leader. */
    asym_process_end_with(getppid());
    for (volatile unsigned long count = 0; !atomic_load(&shared->may_execute); count++)
        ;
    execl(ASYM_TEST_BIN "/tests/load-spin", ")", "2", "120", (char *)NULL);
    _exit(1);
}

static void start_thread(void *(*fn)(void *), size_t name)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, fn, (void *)(uintptr_t)name) == 0);
}

static void run_leaderless(void)
{
    set_name(0);
    start_thread(spin_named, 1);
    start_thread(spin_named, 0);
    pthread_exit(NULL);
}

static void run_named(void)
{
    for (size_t i = 1; i < ASYM_LENGTH(names); i++)
        start_thread(spin_named, i);
    spin_named(NULL);
}

static void run_changing(void)
{
    start_thread(spin_and_change, 3);
    spin_and_change(NULL);
}

static void run_executing(void)
{
    start_thread(spin_named, 1);
    start_thread(spin_then_execute, 0);
    spin_named(NULL);
}

/* asymd never sees the leader run before another thread has its number. */
static void run_executing_beside_a_sleeper(void)
{
    start_thread(spin_then_execute, 0);
    for (;;)
        pause();
}

static void run_zombie(void)
{
    set_name(3);
    _exit(0);
}

static void (*const programs[N_PROGRAMS])(void) = {
    [LEADERLESS] = run_leaderless, [NAMED] = run_named,
    [CHANGING] = run_changing,     [EXECUTING] = run_executing,
    [ZOMBIE] = run_zombie,         [EXECUTING_BESIDE_A_SLEEPER] = run_executing_beside_a_sleeper};

/* The parent reaps no child, so that the zombie stays. The children end with it. */
static pid_t start_programs(void)
{
    shared = asym_live_share(sizeof *shared);
    const pid_t parent = asym_process_fork();
    if (parent > 0)
        return parent;
    alarm(120);
    for (size_t i = 0; i < N_PROGRAMS; i++) {
        const pid_t pid = asym_process_fork();
        if (pid == 0) {
            programs[i]();
            _exit(1);
        }
        shared->pids[i] = pid;
    }
    for (;;)
        pause();
}

static void assert_steered(const int *wanted)
{
    const int cpus = asym_live_cpus();
    for (size_t i = 0; i < N_PROGRAMS; i++) {
        const pid_t pid = shared->pids[i];
        if (!asym_live_await(asym_live_narrow_threads, pid, cpus, wanted[i], ASYM_LIVE_PATIENCE))
            fail_msg("program %zu: asymd steers %d of %d threads", i, asym_live_narrow_threads(pid, cpus), wanted[i]);
    }
}

static void assert_all_have_their_own_masks(void)
{
    for (size_t i = 0; i < N_PROGRAMS; i++) {
        const int odd = asym_live_odd_threads(shared->pids[i], asym_live_cpus(), 0);
        if (odd > 0)
            fail_msg("program %zu (%d): odd %d, narrow %d, leader's nice %d", i, (int)shared->pids[i], odd,
                     asym_live_narrow_threads(shared->pids[i], asym_live_cpus()),
                     getpriority(PRIO_PROCESS, (id_t)shared->pids[i]));
    }
}

static void await_exec(pid_t pid)
{
    char path[64], name[32];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    for (const double end = asym_live_now() + ASYM_LIVE_PATIENCE; asym_live_now() < end; asym_live_sleep(0.01)) {
        file_read(path, name, sizeof name);
        if (strcmp(name, "load-spin\n") == 0)
            return;
    }
    fail_msg("the program has not called exec");
}

TEST_WITH(the_service_steers_them_all_and_puts_everything_back, asym_service_set_up, asym_service_tear_down)
{
    const pid_t parent = start_programs();
    ASYM_LIVE_AWAIT(shared->pids[ZOMBIE] > 0 && asym_process_state(shared->pids[ZOMBIE]) == 'Z');
    ASYM_LIVE_AWAIT(asym_process_state(shared->pids[LEADERLESS]) == 'Z');
    assert_int_equal(asym_process_state(shared->pids[ZOMBIE]), 'Z');
    assert_int_equal(asym_process_state(shared->pids[LEADERLESS]), 'Z');
    const pid_t asymd = asym_service_start(parent, NULL);
    assert_steered(busy);
    atomic_store(&shared->may_execute, true);
    await_exec(shared->pids[EXECUTING]);
    await_exec(shared->pids[EXECUTING_BESIDE_A_SLEEPER]);
    /* Names change, and asymd finds the new program's threads. */
    asym_live_sleep(1);
    assert_steered(busy_then);
    asym_live_signal(asymd, SIGTERM);
    assert_int_equal(asym_live_wait(asymd), 0);
    assert_all_have_their_own_masks();
    asym_live_end(parent, SIGKILL);
}

TEST_MAIN
