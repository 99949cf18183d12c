/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work conservation on a kernel: a program that sleeps for a part of each 10 ms, beside busy threads that have too few CPUs. It
 * keeps its fast CPUs, and they use them while it sleeps.
 */
#include <dirent.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/live.h"
#include "support/service.h"

enum { SAMPLES = 50 };

/* Returns all CPUs that some thread of the process may use. */
static cpu_set_t cpus_of_all(pid_t pid)
{
    char path[64];
    cpu_set_t all, one;
    CPU_ZERO(&all);
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        if (atoi(e->d_name) > 0 && sched_getaffinity(atoi(e->d_name), sizeof one, &one) == 0)
            CPU_OR(&all, &all, &one);
    closedir(d);
    return all;
}

static void a_program_that_sleeps_keeps_no_cpu_from_busy_ones(void **state)
{
    (void)state;
    const int cpus = asym_live_cpus();
    char threads[16], beside[32];
    const char *const argv[] = {"tests/load-duty", "4", "10", "120", NULL};
    snprintf(threads, sizeof threads, "%d", 3 * cpus);
    pid_t sleeper = asym_live_start(argv, -1), busy = asym_service_spin(threads);
    snprintf(beside, sizeof beside, "--pid=%d", (int)busy);
    const char *const more[] = {beside, NULL};
    pid_t asymd = asym_service_start(sleeper, more);
    assert_true(asym_live_await(asym_live_narrow_threads, sleeper, cpus, 1, ASYM_LIVE_PATIENCE));
    assert_true(asym_live_await(asym_live_narrow_threads, busy, cpus, 1, ASYM_LIVE_PATIENCE));
    asym_live_sleep(1.5); /* the mean of a second */
    cpu_set_t own, last, used;
    int shared = 0, changes = 0;
    for (int k = 0; k < SAMPLES; k++) {
        assert_int_equal(sched_getaffinity(sleeper, sizeof own, &own), 0);
        used = cpus_of_all(busy);
        shared += CPU_COUNT(&used) == cpus;
        changes += k > 0 && !CPU_EQUAL(&own, &last);
        last = own;
        asym_live_sleep(0.1);
    }
    print_message("its CPUs shared in %d of %d samples, its mask changed %d times\n", shared, SAMPLES, changes);
    assert_int_equal(shared, SAMPLES);
    assert_true(changes <= SAMPLES / 10);
    asym_live_end(asymd, SIGTERM);
    asym_live_end(busy, SIGKILL);
    asym_live_end(sleeper, SIGKILL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_program_that_sleeps_keeps_no_cpu_from_busy_ones, asym_service_set_up,
                                        asym_service_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
