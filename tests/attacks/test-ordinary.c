/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The configuration tells an asymd of an ordinary user to boost. The kernel would let it set reset-on-fork and raise nice
 * values, but not undo either. So asymd must change neither, and must log that.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "linux/sys/thread.h"
#include "support/live.h"
#include "support/must.h"
#include "support/service.h"
#include "support/stranger.h"
#include "support/test.h"

/* The parallel phase. The serial phase follows, which the policy pa boosts. */
#define PARALLEL_SECONDS 1.5

static void *spin(void *arg)
{
    for (double end = asym_live_now() + PARALLEL_SECONDS; !arg || asym_live_now() < end;)
        ;
    return NULL;
}

static void run_phases(void *arg)
{
    pthread_t others[2];
    for (size_t i = 0; i < ASYM_LENGTH(others); i++)
        MUST(pthread_create(&others[i], NULL, spin, others) == 0);
    spin(arg);
}

/* With this sp_boost: checks the thread while asymd runs and after it, and the log of asymd. */
static void boost_by(const char *sp_boost)
{
    char text[4096] = "";
    const int own = getpriority(PRIO_PROCESS, 0), out = memfd_create("said", MFD_CLOEXEC);
    pid_t victim = asym_stranger_start(run_phases, NULL);
    const char *const argv[] = {ASYM_SERVICE,
                                "--service",
                                "--policy=pa",
                                "--interval=50ms",
                                asym_live_text("--slow=%d", asym_live_cpus() / 2),
                                sp_boost,
                                asym_service_dir_option(),
                                asym_live_pid_option(victim),
                                "--set=classify.amp_boost=60s",
                                "--set=rtx.listen=no",
                                NULL};
    assert_int_equal(chown(asym_service_dir(), asym_stranger_uid(), (gid_t)-1), 0);
    assert_true(out >= 0);
    pid_t asymd = asym_stranger_exec(argv, out);
    const int narrow = asym_live_await(asym_live_narrow_threads, victim, asym_live_cpus(), 1, ASYM_LIVE_PATIENCE);
    asym_live_sleep(PARALLEL_SECONDS + 1.5);
    asym_live_signal(asymd, SIGTERM);
    const int status = asym_live_wait(asymd);
    assert_true(pread(out, text, sizeof text - 1, 0) >= 0);
    close(out);
    struct asym_thread_sched after;
    assert_int_equal(asym_thread_get_sched(victim, &after), 0);
    print_message("%s: steered %d; afterwards nice %d, reset-on-fork %d, exit status %d\n", sp_boost, narrow,
                  after.nice, after.reset_on_fork, status);
    assert_int_equal(after.nice, own);
    assert_false(after.reset_on_fork);
    assert_int_equal(asym_live_odd_threads(victim, asym_live_cpus(), 0), 0);
    assert_true(narrow); /* asymd still sets masks: it can restore those */
    assert_int_equal(status, 0);
    if (!strstr(text, "policy.pa.sp_boost has no effect") || !strstr(text, "CAP_SYS_NICE"))
        fail_msg("it says only: %s", text);
    asym_live_end(victim, SIGKILL);
}

TEST_WITH(an_ordinary_user_lowers_nothing, asym_service_set_up, asym_service_tear_down)
{
    boost_by("--set=policy.pa.sp_boost=-5");
}

TEST_WITH(an_ordinary_user_raises_nothing, asym_service_set_up, asym_service_tear_down)
{
    boost_by("--set=policy.pa.sp_boost=5");
}

TEST_MAIN
