/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The service and a program that reports what its threads do, end to end. The program waits by spinning, so that the kernel's
 * data alone do not show its serial phases, and asymd samples once a second: every faster reaction comes from a report.
 */
#include <signal.h>

#include <asym/rtx.h>

#include "support/live.h"
#include "support/service.h"
#include "support/talker.h"
#include "support/test.h"

static struct asym_talker start_talker(void)
{
    static const char *const command[] = {"tests/load-talker", NULL};
    return asym_talker_start(command);
}

static pid_t start_service(pid_t target, const char *more)
{
    const char *const argv[] = {"--interval=1s", "--set=asymd.cpu_budget=50", more, NULL};
    return asym_service_start(target, argv);
}

/* After a restart of asymd the program reports again. */
TEST_WITH(a_serial_phase_has_its_cpu_long_before_the_next_sample, asym_service_set_up, asym_service_tear_down)
{
    char text[1024];
    struct asym_talker talker = start_talker();
    pid_t asymd = start_service(talker.pid, NULL);
    asym_talker_await_answer(&talker);
    assert_true(asym_talker_answers(&talker, ASYM_TALKER_LAST * 3 / 4));
    asym_live_end(asymd, SIGKILL);
    assert_int_equal(asym_service_restore(text, sizeof text), 0);
    asymd = start_service(talker.pid, NULL);
    asym_talker_await_answer(&talker);
    assert_true(asym_talker_answers(&talker, ASYM_TALKER_LAST / 2));
    asym_talker_stop(&talker, asymd);
}

/* The same without the directory of RTX: the reactions in the test above come from reports. */
TEST_WITH(a_program_that_asymd_does_not_serve_gets_no_cpu_early, asym_service_set_up, asym_service_tear_down)
{
    struct asym_talker talker = start_talker();
    pid_t asymd = start_service(talker.pid, "--set=rtx.listen=no");
    asym_talker_await_known(&talker);
    assert_false(asym_talker_answers(&talker, ASYM_TALKER_LAST / 4 + 1));
    asym_talker_stop(&talker, asymd);
}

/*
 * Each serial phase begins within notify_min of the end of the one before, which the program has reported: it does not report
 * the begin itself. asymd takes two samples of its own meanwhile at most, in two phases of twenty. With none in the whole test, a
 * thread that the first sample left out, or whose mask looked foreign in it, had no CPU at all. A phase begins when every worker
 * has run, with several workers to a CPU. If that is late, the program reports the begin after all; with 20 ms, most begins were
 * late.
 */
TEST_WITH(what_begins_within_notify_min_has_its_cpu_when_that_is_over, asym_service_set_up, asym_service_tear_down)
{
    static const char *const command[] = {"tests/load-talker", NULL};
    setenv(ASYM_RTX_NOTIFY_MIN_ENV, "60000", 1);
    struct asym_talker talker = asym_talker_start_with(command, "3", "150", "5");
    unsetenv(ASYM_RTX_NOTIFY_MIN_ENV);
    pid_t asymd = start_service(talker.pid, "--interval=3s");
    asym_talker_await_answer(&talker);
    assert_true(asym_talker_answers(&talker, ASYM_TALKER_LAST * 3 / 4));
    asym_talker_stop(&talker, asymd);
}

TEST_WITH(the_dry_run_and_check_name_it, asym_service_set_up, asym_service_tear_down)
{
    static char text[262144];
    ASYM_CLEANUP(asym_talker_end) struct asym_talker talker = start_talker();
    const char *pid = asym_live_pid_option(talker.pid);
    asym_live_sleep(0.7);
    const char *const dry[] = {ASYM_SERVICE, "--dry-run", "--json", "--duration=300ms", pid, NULL};
    assert_int_equal(asym_live_run(dry, text, sizeof text), 0);
    assert_non_null(strstr(text, "\"rtx\": \"reports\""));
    const char *const check[] = {ASYM_SERVICE, "--check", "--json", pid, NULL};
    assert_int_equal(asym_live_run(check, text, sizeof text), 0);
    assert_non_null(strstr(text, asym_live_text("load-talker (%d)", (int)talker.pid)));
}

TEST_MAIN
