/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that are born by the ten thousand: what is told of them is taken at a bounded share of a CPU, by no real-time thread. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/attack.h"
#include "support/live.h"
#include "support/must.h"
#include "support/service.h"

#define SECONDS 60

static void give_birth(void)
{
    asym_attack_become_stranger(SECONDS);
    MUST(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    for (;;)
        if (vfork() == 0)
            _exit(0);
}

/* The thread of asymd that is not its first; 0: there is none. */
static pid_t guard_of(pid_t asymd)
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
    (void)none;
    return (sched_getscheduler(tid) & ~SCHED_RESET_ON_FORK) == SCHED_FIFO;
}

static int is_ordinary(pid_t tid, int none)
{
    return !is_realtime(tid, none);
}

/* 42 % before, with SCHED_FIFO. */
static void a_storm_of_births_costs_a_bounded_share(void **state)
{
    (void)state;
    pid_t other = fork();
    assert_true(other >= 0);
    if (other == 0) {
        asym_attack_begin(SECONDS);
        for (;;)
            pause();
    }
    pid_t asymd = asym_service_start(other, NULL);
    asym_live_sleep(1);
    const pid_t guard = guard_of(asymd);
    if (guard == 0)
        fail_msg("asymd has no thread that takes births: socket(AF_NETLINK, NETLINK_CONNECTOR) needs CAP_NET_ADMIN");
    assert_true(is_realtime(guard, 0));
    pid_t attacker = fork();
    assert_true(attacker >= 0);
    if (attacker == 0)
        give_birth();
    const int yields = asym_live_await(is_ordinary, guard, 0, 1, 10);
    const double share = asym_attack_share(asymd, 4);
    asym_live_end(attacker, SIGKILL);
    const int is_back = asym_live_await(is_realtime, guard, 0, 1, 20);
    printf("%.1f %% of a CPU\n", 100 * share);
    const double stop = asym_attack_stop(asymd, 20);
    asym_live_end(other, SIGKILL);
    assert_true(stop >= 0);
    assert_true(share < 0.15);
    assert_true(yields);
    assert_true(is_back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_storm_of_births_costs_a_bounded_share)};
    return cmocka_run_group_tests(tests, asym_service_set_up, asym_service_tear_down);
}
