/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The service beside another process that changes the cpuset of steered threads. Needs two CPUs. */
#include <signal.h>
#include <sys/mman.h>

#include "base/mask.h"
#include "linux/sys/thread.h"
#include "support/cgroup.h"
#include "support/live.h"
#include "support/service.h"
#include "support/test.h"

#define CHANGES 30

/*
 * When a cpuset changes, the kernel changes the masks of its threads. asymd must not take such a mask for a choice of the
 * program, at any moment of a sample: it would never steer those threads again.
 */
TEST_WITH(a_cpuset_that_comes_and_goes_loses_no_thread, asym_service_set_up, asym_service_tear_down)
{
    char both[32], one[16], text[8192] = "";
    struct asym_mask all_cpus;
    assert_int_equal(asym_thread_get_mask(0, &all_cpus), 0);
    const int first = asym_mask_next(&all_cpus, 0);
    snprintf(both, sizeof both, "%d,%d", first, asym_mask_next(&all_cpus, first + 1));
    snprintf(one, sizeof one, "%d", asym_mask_next(&all_cpus, first + 1));
    const char *const more[] = {"--policy=rr", "--set=enforce.pin=cpu", "--interval=20ms", NULL};
    int out = memfd_create("said", MFD_CLOEXEC);
    assert_true(out >= 0);
    asym_cpuset_make(both);
    pid_t load = asym_service_spin("2");
    asym_cpuset_join(load);
    pid_t asymd = asym_service_start_to(load, more, out);
    assert_true(asym_live_await(asym_live_narrow_threads, load, 2, 2, ASYM_LIVE_PATIENCE));
    for (int i = 0; i < CHANGES; i++) {
        asym_cpuset_set(i % 2 ? both : one);
        asym_live_sleep(0.05 + 0.013 * i);
    }
    asym_cpuset_set(both);
    const bool steered = asym_live_await(asym_live_narrow_threads, load, 2, 2, ASYM_LIVE_PATIENCE);
    asym_live_signal(asymd, SIGTERM);
    assert_int_equal(asym_live_wait(asymd), 0);
    assert_true(pread(out, text, sizeof text - 1, 0) >= 0);
    close(out);
    if (!steered || strstr(text, "left alone"))
        fail_msg("%s: %s", steered ? "steered again" : "not steered again", text);
    assert_true(asym_live_narrow_threads(load, 2) == 0);
    asym_live_end(load, SIGKILL);
    asym_cpuset_remove();
}

TEST_MAIN
