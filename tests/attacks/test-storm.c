/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes start by the ten thousand. asymd must read their events at a bounded share of a CPU, without a real-time thread. */
#include <sched.h>
#include <signal.h>
#include <dirent.h>

#include "support/attack.h"
#include "support/live.h"
#include "support/must.h"
#include "support/process.h"
#include "support/service.h"
#include "support/test.h"

/* The fork guard takes at most twice the budget of 1 %, and samples take the budget. The period lets the interval settle. */
#define PROMISED 0.03
#define SETTLE   3
#define PERIOD   3
#define SECONDS  ASYM_ATTACK_LIFETIME(SETTLE, PERIOD)
/* Before and after the attack the test waits for the fork guard's priority. */
#define OTHER_SECONDS (SECONDS + 120)

static void give_birth(void)
{
    asym_attack_become_stranger(SECONDS);
    MUST(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    for (;;)
        if (vfork() == 0)
            _exit(0);
}

/* The other thread of asymd, which runs the fork guard; 0: none. */
static pid_t fork_guard_of(pid_t asymd)
{
    char path[64];
    pid_t found = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)asymd);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (atoi(e->d_name) > 0 && atoi(e->d_name) != asymd)
            found = (pid_t)atoi(e->d_name);
    if (d)
        closedir(d);
    return found;
}

static int is_realtime(pid_t tid, int none)
{
    return (sched_getscheduler(tid) & ~SCHED_RESET_ON_FORK) == SCHED_FIFO;
}

/* At its start asymd has an ordinary thread for a moment, by which it tries whether it may boost. */
static int has_fork_guard(pid_t asymd, int none)
{
    return is_realtime(fork_guard_of(asymd), 0);
}

static int is_ordinary(pid_t tid, int none)
{
    return !is_realtime(tid, none);
}

/* 42 % of a CPU before the fix, with SCHED_FIFO. */
TEST(a_storm_of_forks_costs_a_bounded_share)
{
    pid_t other = asym_process_fork();
    if (other == 0) {
        alarm(OTHER_SECONDS);
        for (;;)
            pause();
    }
    pid_t asymd = asym_service_start(other, NULL);
    /* Forks of other processes on this machine count, too: the fork guard may have given up its priority already. */
    const int is_guarded = asym_live_await(has_fork_guard, asymd, 0, 1, 60);
    const pid_t fork_guard = fork_guard_of(asymd);
    if (!is_guarded)
        fail_msg("asymd has no thread with a real-time priority that receives process events: socket(AF_NETLINK, "
                 "NETLINK_CONNECTOR) needs CAP_NET_ADMIN, sched_setscheduler(SCHED_FIFO) CAP_SYS_NICE");
    pid_t attacker = asym_process_fork();
    if (attacker == 0)
        give_birth();
    const int yields = asym_live_await(is_ordinary, fork_guard, 0, 1, 10);
    asym_attack_settle(asymd, 2 * PROMISED, SETTLE);
    const double share = asym_attack_share(asymd, PERIOD, 2 * PROMISED);
    asym_live_end(attacker, SIGKILL);
    const int is_back = asym_live_await(is_realtime, fork_guard, 0, 1, 20);
    printf("%.1f %% of a CPU\n", 100 * share);
    const double stop = asym_attack_stop(asymd, 20);
    asym_live_end(other, SIGKILL);
    assert_true(stop >= 0);
    assert_true(share < 2 * PROMISED);
    assert_true(yields);
    assert_true(is_back);
}

TEST_MAIN_WITH(asym_service_set_up, asym_service_tear_down)
