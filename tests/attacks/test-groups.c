/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads with 65,536 supplementary groups: the kernel needs milliseconds for the status of each. The test needs root. */
#include <pthread.h>
#include <signal.h>
#include <grp.h>

#include "support/attack.h"
#include "support/bus-daemon.h"
#include "support/live.h"
#include "support/must.h"
#include "support/namespace.h"
#include "support/process.h"
#include "support/service.h"
#include "support/test.h"

#define GROUPS  65536
#define THREADS 200

/* The budget, share of a CPU. asymd needs the first seconds to lengthen its interval. */
#define PROMISED 0.01
#define SETTLE   6
#define PERIOD   2
#define SECONDS  ASYM_ATTACK_LIFETIME(SETTLE, PERIOD)

/* CPU time, in seconds, until it steers most threads, and for so many calls. */
#define CALLS     4
#define MOST_USED 1.0

static void *pulse(void *arg)
{
    for (;;) {
        asym_attack_run(3000); /* all together need more CPUs than there are: a highly parallel program */
        usleep(100000 + (useconds_t)(uintptr_t)arg * 100);
    }
    return NULL;
}

static void belong_to_many(void)
{
    static gid_t groups[GROUPS];
    for (size_t i = 0; i < GROUPS; i++)
        groups[i] = (gid_t)(100000 + i);
    if (setgroups(GROUPS, groups) < 0) {
        perror("setgroups of 65536 groups (it needs CAP_SETGID)");
        _exit(1);
    }
    alarm(SECONDS);
    for (size_t i = 1; i < THREADS; i++) {
        pthread_t t;
        MUST(pthread_create(&t, NULL, pulse, (void *)i) == 0);
    }
    pulse(NULL);
}

static pid_t start_attacker(void)
{
    const pid_t attacker = asym_process_fork_session();
    if (attacker == 0)
        belong_to_many();
    assert_true(asym_live_await(asym_live_ran_threads, attacker, 0, THREADS, ASYM_LIVE_PATIENCE));
    return attacker;
}

/* Within its budget, asymd takes some samples until it steers most of them. Returns how many threads it steers then. */
static int await_steered(pid_t attacker)
{
    asym_live_await(asym_live_narrow_threads, attacker, asym_live_cpus(), THREADS / 2 + 1, ASYM_LIVE_PATIENCE);
    return asym_live_narrow_threads(attacker, asym_live_cpus());
}

/* 31 % of a CPU before the fix, and no thread was steered. */
TEST(their_masks_are_known_at_little_cost)
{
    const pid_t attacker = start_attacker();
    pid_t asymd = asym_service_start(attacker, NULL);
    const int steered = await_steered(attacker);
    asym_attack_settle(asymd, 2 * PROMISED, SETTLE);
    const double share = asym_attack_share(asymd, PERIOD, 2 * PROMISED);
    printf("%.1f %% of a CPU, %d of %d threads steered\n", 100 * share, steered, THREADS);
    const double stop = asym_attack_stop(asymd, 20);
    asym_live_end(attacker, SIGKILL);
    assert_true(stop >= 0);
    assert_true(share < 2 * PROMISED);
    assert_true(steered > THREADS / 2);
}

/* The kernel has more possible CPUs than online ones from now on, for this process and for those that it starts. */
static void pretend_that_cpus_are_offline(void)
{
    char name[] = "/tmp/asymd-possible-XXXXXX";
    const int fd = mkstemp(name);
    assert_true(fd >= 0);
    assert_true(dprintf(fd, "0-%d\n", 2 * asym_live_cpus() - 1) > 0);
    close(fd);
    assert_int_equal(asym_namespace_enter(), 0);
    assert_int_equal(asym_namespace_cover(name, "/sys/devices/system/cpu/possible"), 0);
    unlink(name);
}

/*
 * Only status shows offline CPUs. The actuator read it before it first changed a thread, and a call over the bus for each thread
 * that it lists: 200 and 64 times 24 ms.
 */
TEST(with_offline_cpus_a_change_and_a_call_cost_little_too)
{
    pretend_that_cpus_are_offline();
    const pid_t attacker = start_attacker();
    const pid_t asymd = asym_service_start(attacker, NULL);
    sd_bus *bus = asym_bus_daemon_direct(asym_service_dir());
    const int steered = await_steered(attacker);
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(asym_bus_daemon_call(bus, "GetReport", NULL, "st", "program", (uint64_t)attacker), 0);
    sd_bus_close_unref(bus);
    const double used = asym_attack_cpu(asymd);
    printf("%.2f s of CPU time, %d of %d threads steered\n", used, steered, THREADS);
    const double stop = asym_attack_stop(asymd, 20);
    asym_live_end(attacker, SIGKILL);
    assert_true(stop >= 0);
    assert_true(used < MOST_USED);
    assert_true(steered > THREADS / 2);
}

TEST_MAIN_WITH(asym_service_set_up, asym_service_tear_down)
