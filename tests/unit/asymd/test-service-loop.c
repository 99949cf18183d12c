/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program reports a phase while a snapshot is in progress. The source of the test completes no snapshot. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/asymd/service-internal.h"

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
    (void)source;
    (void)ret;
    note("n");
    return next_returns;
}

static void refresh(struct asym_source *source)
{
    (void)source;
    note("r");
}

static int set_up(void **state)
{
    (void)state;
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
static void a_report_waits_for_the_snapshot_in_progress(void **state)
{
    (void)state;
    struct asym_service s = {.cycle = {.source = &source}};
    assert_int_equal(sd_event_new(&s.event), 0);
    next_returns = -EINPROGRESS;
    assert_int_equal(asym_service_cycle(&s), -EINPROGRESS);
    expect_calls("n");
    for (int i = 0; i < 3; i++)
        assert_int_equal(asym_service_prompt_cycle(&s), 0);
    expect_calls("");
    /* The snapshot ends, here by an error. The next report is served at once. */
    next_returns = -EIO;
    assert_int_equal(asym_service_cycle(&s), -EIO);
    expect_calls("n");
    next_returns = -EINPROGRESS;
    assert_int_equal(asym_service_prompt_cycle(&s), 0);
    expect_calls("rn");
    assert_true(s.sampling);
    sd_event_unref(s.event);
}

static void an_error_between_two_snapshots_ends_the_loop(void **state)
{
    (void)state;
    struct asym_service s = {.cycle = {.source = &source}};
    int status = -1;
    assert_int_equal(sd_event_new(&s.event), 0);
    next_returns = -EIO;
    assert_int_equal(asym_service_prompt_cycle(&s), 0);
    expect_calls("rn");
    assert_int_equal(s.error, -EIO);
    assert_int_equal(sd_event_get_exit_code(s.event, &status), 0);
    assert_int_equal(status, ASYM_EXIT_FAILED);
    sd_event_unref(s.event);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_report_waits_for_the_snapshot_in_progress, set_up),
        cmocka_unit_test_setup(an_error_between_two_snapshots_ends_the_loop, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
