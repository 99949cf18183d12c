/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bus announces changed properties. No cycle runs: the test changes what a cycle would have changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/macro.h"
#include "daemon/asymd/service-internal.h"
#include "linux/enforce/ledger-internal.h"
#include "support/engine-fixture.h"
#include "support/tree.h"

struct bus_fixture {
    struct tree tree;
    struct asym_invocation cli;
    struct asym_machine machine;
    struct asym_run run;
    struct asym_source source;
    struct asym_service s;
    struct engine_fixture w; /* threads that a cycle would have steered */
    char heard[512];         /* "NAME;" for each property that was announced, and "." behind those of one signal */
};

static struct bus_fixture *fixture;

void __wrap_asym_bus_emit_changed(struct asym_bus *bus, char *const *names);
void __wrap_asym_bus_emit_changed(struct asym_bus *bus, char *const *names)
{
    char *heard = fixture->heard;
    assert_ptr_equal(bus, fixture->s.bus);
    for (; *names; names++)
        snprintf(heard + strlen(heard), sizeof fixture->heard - strlen(heard), "%s;", *names);
    strcat(heard, ".");
}

static void open_service(struct bus_fixture *f)
{
    struct asym_service *s = &f->s;
    char option[256];
    f->run = (struct asym_run){.cli = &f->cli, .machine = &f->machine, .policy = &engine_fixture_policy_type};
    assert_int_equal(asym_settings_new(&f->run.settings), 0);
    snprintf(option, sizeof option, "asymd.state_dir=%s", f->tree.path);
    assert_int_equal(asym_settings_set(f->run.settings, option, "test", NULL), 0);
    s->run = &f->run;
    s->observer.source = &f->source;
    assert_int_equal(asym_service_control_open(s), 0);
    assert_int_equal(sd_event_new(&s->event), 0);
    assert_int_equal(asym_ledger_open(f->tree.path, &s->ledger, NULL), 0);
    engine_fixture_init(&f->w);
    asym_service_bus_open(s);
    assert_non_null(s->bus);
}

static int set_up(void **state)
{
    struct bus_fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/system_bus_socket", 1);
    tree_make(&f->tree);
    open_service(f);
    *state = fixture = f;
    return 0;
}

static int tear_down(void **state)
{
    struct bus_fixture *f = *state;
    asym_service_bus_close(&f->s);
    engine_fixture_done(&f->w);
    asym_service_control_close(&f->s);
    asym_ledger_close(f->s.ledger);
    sd_event_unref(f->s.event);
    asym_settings_free(f->run.settings);
    tree_remove(&f->tree);
    free(f);
    return 0;
}

/* Properties that change together come in one signal. */
static void assert_heard(struct bus_fixture *f, const char *expected)
{
    assert_string_equal(f->heard, expected);
    f->heard[0] = '\0';
}

static void change_nothing(struct bus_fixture *f)
{
    (void)f;
}

/* The ledger has the thread, and the monitor has heard of the change, as after a cycle. */
static void steer_a_thread(struct bus_fixture *f)
{
    struct engine_fixture *w = &f->w;
    assert_non_null(asym_ledger_add(f->s.ledger, &(struct asym_taskid){.tid = 100, .tgid = 100, .start = 1}));
    engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 0);
    engine_fixture_run(w, 100 * ASYM_MSEC);
    assert_int_equal(w->n, 1);
    const struct asym_feedback feedback = {&w->snapshot, w->plan, w->actions, w->outcomes, w->n};
    asym_monitor_record(f->s.control.monitor, &feedback);
}

static void forget_the_thread(struct bus_fixture *f)
{
    asym_ledger_remove(f->s.ledger, asym_ledger_find(f->s.ledger, 100));
}

/* An order announces at once, and with it what has changed without an order since the last housekeeping. */
static void forget_and_order_another_policy(struct bus_fixture *f)
{
    forget_the_thread(f);
    f->run.policy = &engine_fixture_policy_cpu;
    f->s.control.paused_until = 7;
    asym_service_changed(&f->s);
}

static void a_change_is_announced_once(void **state)
{
    struct bus_fixture *f = *state;
    static const struct {
        void (*change)(struct bus_fixture *f);
        const char *heard;
    } rows[] = {
        {change_nothing, ""},
        {steer_a_thread, "ThreadsSteered;."},
        {forget_and_order_another_policy, "Policy;ThreadsSteered;PausedUntil;."},
        {change_nothing, ""},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        rows[i].change(f);
        asym_service_bus_housekeeping(&f->s, asym_clock_now());
        assert_heard(f, rows[i].heard);
        asym_service_bus_housekeeping(&f->s, asym_clock_now());
        assert_heard(f, "");
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_change_is_announced_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
