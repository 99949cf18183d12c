/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl trial beside a running asymd: it pauses and resumes it, and leaves it steering however it ends. */
#include <fcntl.h>
#include <signal.h>

#include <jansson.h>

#include "support/bus-daemon.h"
#include "support/live.h"
#include "support/service.h"
#include "support/test.h"

#define TRIAL "daemon/asymctl", "trial", "--config=/dev/null"

static sd_bus *bus;
static pid_t asymd, load;

static int set_up(void **state)
{
    asym_service_set_up(state);
    asym_service_export_bus();
    /* The tests wait for blocks most of their time, beside tests that need the CPUs. */
    load = asym_live_start((const char *const[]){"tests/load-duty", "1", "20", "120", NULL}, -1);
    asymd = asym_service_start(load, (const char *const[]){"--policy=auto", NULL});
    bus = asym_bus_daemon_direct(asym_service_dir());
    return 0;
}

static int tear_down(void **state)
{
    sd_bus_flush_close_unref(bus);
    asym_live_end(asymd, SIGTERM);
    asym_live_end(load, SIGKILL);
    return asym_service_tear_down(state);
}

/* For asym_live_await: has asymd been paused? */
static int is_paused(pid_t unused, int wanted)
{
    int paused = 0;
    assert_int_equal(asym_bus_daemon_get(bus, "Paused", 'b', &paused), 0);
    return paused == wanted;
}

TEST_WITH(a_trial_alternates_and_reports_its_pairs, set_up, tear_down)
{
    static const char *const argv[] = {TRIAL,    "--time=12s", "--block=3s", "--metric=echo frames: 60; exec sleep 60",
                                       "--json", "absent",     NULL};
    char text[8192];
    assert_int_equal(asym_live_run(argv, text, sizeof text), 0);
    const char *schema, *verdict;
    int pairs, of_absent, of_machine;
    static const char said[] = "asymctl: trial: no program or thread that has run so far has the name absent\n";
    assert_int_equal(strncmp(text, said, strlen(said)), 0);
    json_t *report = json_loads(text + strlen(said), 0, NULL);
    assert_non_null(report);
    assert_int_equal(json_unpack(report, "{s:s, s:[{s:i}, {s:i, s:s}], s:{s:i}}", "schema", &schema, "programs",
                                 "pairs", &of_absent, "pairs", &pairs, "verdict", &verdict, "machine", "pairs",
                                 &of_machine),
                     0);
    assert_string_equal(schema, "asymctl.trial/1");
    if (of_absent != 0 || pairs != 2 || of_machine != 2)
        fail_msg("expected 0, 2 and 2 pairs: %s", text);
    assert_string_equal(verdict, "none"); /* each block had the same number */
    json_decref(report);
    assert_true(is_paused(0, 0));
    uint64_t until = 1;
    assert_int_equal(asym_bus_daemon_get(bus, "PausedUntil", 't', &until), 0);
    assert_int_equal(until, 0);
}

TEST_WITH(an_interrupted_trial_leaves_asymd_steering, set_up, tear_down)
{
    static const char *const argv[] = {TRIAL, "--time=12s", "--block=3s", NULL};
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    const struct {
        int out, status;
    } cases[] = {{-1, 0}, {full, 1}}; /* a report that cannot be written is an error */
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        const pid_t trial = asym_live_start(argv, cases[i].out);
        assert_true(asym_live_await(is_paused, 0, 1, 1, ASYM_LIVE_PATIENCE));
        asym_live_signal(trial, SIGINT);
        assert_int_equal(asym_live_wait(trial), cases[i].status);
        assert_true(is_paused(0, 0));
    }
    close(full);
}

/* In a block of steering: the trial ends, and does not undo what the other user wants. */
TEST_WITH(a_pause_of_another_user_ends_the_trial_and_stays, set_up, tear_down)
{
    static const char *const argv[] = {TRIAL, "--time=12s", "--block=3s", NULL};
    const pid_t trial = asym_live_start(argv, -1);
    assert_true(asym_live_await(is_paused, 0, 1, 1, ASYM_LIVE_PATIENCE));
    assert_true(asym_live_await(is_paused, 0, 0, 1, ASYM_LIVE_PATIENCE));
    assert_int_equal(asym_bus_daemon_call(bus, "Pause", NULL, "t", (uint64_t)0), 0);
    assert_int_equal(asym_live_wait(trial), 1);
    assert_true(is_paused(0, 1));
}

TEST_WITH(a_paused_asymd_is_left_paused, set_up, tear_down)
{
    static const char *const argv[] = {TRIAL, NULL};
    char text[1024];
    assert_int_equal(asym_bus_daemon_call(bus, "Pause", NULL, "t", (uint64_t)0), 0);
    assert_int_equal(asym_live_run(argv, text, sizeof text), 1);
    assert_non_null(strstr(text, "asymd is paused: run asymctl resume first"));
    assert_true(is_paused(0, 1));
}

TEST_MAIN
