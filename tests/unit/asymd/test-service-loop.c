/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The turns of the loop, and reports while a snapshot is in progress. The source of the test completes no snapshot. */

#include "base/clock.h"
#include "daemon/asymd/service-internal.h"
#include "support/captured-log.h"
#include "support/test.h"

/* The calls up to now, a letter each: n(ext) r(efresh). */
static char calls[16];
static int next_returns;

static void note(const char *call)
{
    assert_true(strlen(calls) + 1 < sizeof calls);
    strcat(calls, call);
}

static int next(struct asym_source *source, struct asym_snapshot *ret)
{
    note("n");
    return next_returns;
}

static void refresh(struct asym_source *source)
{
    note("r");
}

static int set_up(void **state)
{
    calls[0] = '\0';
    return 0;
}

static struct asym_source source = {.next = next, .refresh = refresh};

static void expect_calls(const char *expected)
{
    assert_string_equal(calls, expected);
    calls[0] = '\0';
}

/* docs/known-limits.md states this limit. */
TEST_WITH(a_report_waits_for_the_snapshot_in_progress, set_up, NULL)
{
    struct asym_settings settings = {.daemon = {.interval = 100 * ASYM_MSEC}};
    struct asym_run run = {.log = {.level = LOG_DEBUG}, .settings = &settings};
    struct asym_service s = {.run = &run, .cycle = {.source = &source}};
    assert_int_equal(sd_event_new(&s.event), 0);
    next_returns = -EINPROGRESS;
    assert_int_equal(asym_service_cycle(&s), -EINPROGRESS);
    expect_calls("n");
    for (int i = 0; i < 3; i++)
        assert_int_equal(asym_service_prompt_cycle(&s), 0);
    expect_calls("");
    /* The snapshot ends, here by an error. The next report is served at once. */
    next_returns = -EIO;
    assert_int_equal(asym_service_cycle(&s), 0);
    expect_calls("n");
    next_returns = -EINPROGRESS;
    assert_int_equal(asym_service_prompt_cycle(&s), 0);
    expect_calls("rn");
    assert_true(s.sampling);
    sd_event_unref(s.event);
}

/* Programs and policies ask for early samples: their number says nothing. */
TEST_WITH(failed_samples_are_skipped_and_a_hundred_intervals_of_them_end_the_loop, set_up, NULL)
{
    struct asym_settings settings = {.daemon = {.interval = 3600 * ASYM_SEC}};
    struct asym_run run = {.log = {.level = LOG_DEBUG}, .settings = &settings};
    struct asym_service s = {.run = &run, .cycle = {.source = &source}};
    char text[4096];
    int status = -1;
    assert_int_equal(sd_event_new(&s.event), 0);
    next_returns = -ENOMEM;
    captured_log_begin();
    for (int i = 0; i < 10 * ASYM_SERVICE_FAILED_MOST; i++) {
        assert_int_equal(asym_service_prompt_cycle(&s), 0);
        expect_calls("rn");
        assert_int_equal(s.error, 0);
    }
    settings.daemon.interval = 0;
    assert_int_equal(asym_service_prompt_cycle(&s), 0);
    captured_log_end(text, sizeof text);
    const char *said = strstr(text, "a sample failed: Cannot allocate memory");
    assert_non_null(said);
    assert_null(strstr(said + 1, "a sample failed"));
    assert_int_equal(s.error, -ENOMEM);
    assert_int_equal(sd_event_get_exit_code(s.event, &status), 0);
    assert_int_equal(status, ASYM_EXIT_FAILED);
    sd_event_unref(s.event);
}

/* The linker gives the loop this function (tests/CMakeLists.txt). */
WRAPPED(void, asym_bus_begin_turn, struct asym_bus *bus)
{
    assert_null(bus);
    note("b");
}

/* So is this one. */
WRAPPED(void, asym_service_housekeeping, struct asym_service *s, asym_usec now)
{
    assert_non_null(s->housekeeping);
    assert_in_range(now, asym_clock_now() - ASYM_SEC, asym_clock_now());
    note("h");
}

/* And this one. */
WRAPPED(void, asym_service_update_budget, struct asym_service *s, asym_usec now)
{
    assert_ptr_equal(s->event, sd_event_source_get_event(s->timer));
    assert_in_range(now, asym_clock_now() - ASYM_SEC, asym_clock_now());
    note("B");
}

/* Without it the samples of a busy machine take as much CPU time as they like. Each piece of a sample counts. */
TEST_WITH(each_sample_is_held_to_the_budget, set_up, NULL)
{
    struct asym_settings settings = {.daemon = {.interval = 100 * ASYM_MSEC}};
    struct asym_run run = {.settings = &settings};
    struct asym_service s = {.run = &run, .cycle = {.source = &source}};
    asym_service_block_signals();
    next_returns = -EINPROGRESS;
    assert_int_equal(asym_service_attach(&s), 0);
    assert_int_equal(sd_event_source_set_enabled(s.housekeeping, SD_EVENT_OFF), 0);
    for (int i = 0; i < 3; i++) {
        uint64_t due;
        assert_ptr_equal(run.prompt.sample, i == 0 ? s.timer : NULL);
        run.prompt.is_realtime = i < 2;
        run.prompt.sample = i == 1 ? NULL : s.timer;
        assert_true(sd_event_run(s.event, 60 * ASYM_SEC) > 0);
        expect_calls("nB");
        assert_int_equal(sd_event_source_get_time(s.timer, &due), 0);
        /* Only the first piece of a sample has the real-time priority, where asymd waits with it. */
        assert_int_equal(due == 0, i == 0);
    }
    sd_event_source_unref(s.timer);
    sd_event_source_unref(s.housekeeping);
    sd_event_unref(s.event);
}

/* The interval between two samples can be a minute: no sample comes in this test. */
TEST_WITH(housekeeping_does_not_wait_for_a_sample, set_up, NULL)
{
    struct asym_run run = {.log = {.level = LOG_DEBUG}};
    struct asym_service s = {.run = &run, .cycle = {.source = &source}};
    uint64_t due = 0;
    asym_service_block_signals();
    assert_int_equal(asym_service_attach(&s), 0);
    assert_int_equal(sd_event_source_set_enabled(s.timer, SD_EVENT_OFF), 0);
    assert_ptr_equal(run.prompt.housekeeping, s.housekeeping);
    for (int i = 0; i < 2; i++) {
        /* The test does not wait for it. */
        assert_int_equal(sd_event_source_get_time(s.housekeeping, &due), 0);
        assert_true(due <= asym_clock_now() + ASYM_SERVICE_HOUSEKEEPING);
        assert_int_equal(sd_event_source_set_time(s.housekeeping, asym_clock_now()), 0);
        assert_true(sd_event_run(s.event, ASYM_SEC) > 0);
        expect_calls("h");
    }
    /* It comes before a sample, or the rest of one, which would have its real-time priority. */
    assert_int_equal(sd_event_source_set_time(s.timer, asym_clock_now()), 0);
    assert_int_equal(sd_event_source_set_enabled(s.timer, SD_EVENT_ONESHOT), 0);
    assert_int_equal(sd_event_source_set_time(s.housekeeping, asym_clock_now()), 0);
    assert_true(sd_event_run(s.event, ASYM_SEC) > 0);
    expect_calls("h");
    sd_event_source_unref(s.timer);
    sd_event_source_unref(s.housekeeping);
    sd_event_unref(s.event);
}

/* Ends the loop in its third turn. */
static int on_event(sd_event_source *event_source, void *userdata)
{
    unsigned *n_turns = userdata;
    note("e");
    if (++*n_turns == 3)
        return sd_event_exit(sd_event_source_get_event(event_source), ASYM_EXIT_DONE);
    return sd_event_source_set_enabled(event_source, SD_EVENT_ON);
}

/* The bus bounds what it does in a turn, so it must know of each one. */
TEST_WITH(the_loop_tells_the_bus_of_each_turn, set_up, NULL)
{
    struct asym_run run = {.log = {.level = LOG_DEBUG}};
    struct asym_service s = {.run = &run, .cycle = {.source = &source}};
    sd_event_source *defer = NULL;
    unsigned n_turns = 0;
    assert_int_equal(sd_event_new(&s.event), 0);
    assert_int_equal(sd_event_add_defer(s.event, &defer, on_event, &n_turns), 0);
    assert_int_equal(asym_service_loop(&s), ASYM_EXIT_DONE);
    /* sd-event needs a turn of its own to end. */
    expect_calls("bebebeb");
    sd_event_source_unref(defer);
    sd_event_unref(s.event);
}

TEST_MAIN
