/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads with 65,536 supplementary groups, whose status takes the kernel milliseconds. It takes root to make them. */
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
#include <grp.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/attack.h"
#include "support/live.h"
#include "support/must.h"
#include "support/service.h"

#define GROUPS  65536
#define THREADS 200
#define SECONDS 60

static void *pulse(void *arg)
{
    for (;;) {
        asym_attack_run(100);
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
    asym_attack_begin(SECONDS);
    for (size_t i = 1; i < THREADS; i++) {
        pthread_t t;
        MUST(pthread_create(&t, NULL, pulse, (void *)i) == 0);
    }
    pulse(NULL);
}

/* 31 % before, and none was steered. */
static void their_masks_are_known_at_little_cost(void **state)
{
    (void)state;
    pid_t attacker = fork();
    assert_true(attacker >= 0);
    if (attacker == 0)
        belong_to_many();
    asym_live_sleep(1);
    pid_t asymd = asym_service_start(attacker, NULL);
    asym_live_sleep(3);
    const double share = asym_attack_share(asymd, 4);
    const int steered = asym_live_narrow_threads(attacker, asym_live_cpus());
    printf("%.1f %% of a CPU, %d of %d threads steered\n", 100 * share, steered, THREADS);
    const double stop = asym_attack_stop(asymd, 20);
    asym_live_end(attacker, SIGKILL);
    assert_true(stop >= 0);
    assert_true(share < 0.12);
    assert_true(steered > THREADS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(their_masks_are_known_at_little_cost)};
    return cmocka_run_group_tests(tests, asym_service_set_up, asym_service_tear_down);
}
