/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread that sets its own mask first, but does not run for a long time, as on a busy machine. If asymd steered it before
 * that, asymd would take its mask for a change by another process.
 */
#include <signal.h>
#include <sys/mman.h>

#include "support/live.h"
#include "support/service.h"
#include "support/test.h"

/* Two threads stay narrow for ten samples. For a moment all three may be narrow: two inherit the mask of the first. */
static int two_stay_narrow(pid_t pid, int cpus)
{
    static double since;
    if (since == 0 || asym_live_narrow_threads(pid, cpus) != 2)
        since = asym_live_now();
    return asym_live_now() - since >= 0.5;
}

TEST_WITH(a_thread_that_sets_its_mask_late_is_steered_like_any_other, asym_service_set_up, asym_service_tear_down)
{
    const int cpus = asym_live_cpus();
    char text[8192] = "", printed[64] = "";
    int output;
    long ran = -1;
    const int out = memfd_create("said", MFD_CLOEXEC);
    assert_true(out >= 0);
    const pid_t load = asym_live_start_piped((const char *const[]){"tests/load-ownmask", NULL}, &output);
    /* asymd plans at every sample, but only one plan concerns the waiting thread, and asymd releases nothing meanwhile. */
    const char *const more[] = {"--set=enforce.swap_period=10ms", "--set=enforce.release=100s", NULL};
    const pid_t asymd = asym_service_start_to(load, more, out);
    /* The waiting thread is older than the working one beside it: a sample that lists the latter lists both. */
    assert_true(asym_live_await(asym_live_narrow_threads, load, cpus, 1, ASYM_LIVE_PATIENCE));
    asym_live_signal(load, SIGUSR1);
    assert_true(asym_live_await(two_stay_narrow, load, cpus, 1, ASYM_LIVE_PATIENCE));
    asym_live_signal(load, SIGUSR2);
    assert_true(read(output, printed, sizeof printed - 1) > 0);
    assert_int_equal(sscanf(printed, "ran=%ld", &ran), 1);
    print_message("its mask was set after %ld us of CPU time\n", ran);
    assert_in_range(ran, 0, 999);
    const bool steered = asym_live_await(asym_live_narrow_threads, load, cpus, 3, ASYM_LIVE_PATIENCE);
    asym_live_signal(asymd, SIGTERM);
    assert_int_equal(asym_live_wait(asymd), 0);
    assert_true(pread(out, text, sizeof text - 1, 0) >= 0);
    if (!steered || strstr(text, "left alone"))
        fail_msg("%s: %s", steered ? "steered" : "not steered", text);
    asym_live_end(load, SIGKILL);
    close(output);
    close(out);
}

TEST_MAIN
