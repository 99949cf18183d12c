/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bus announces changed properties to a subscriber. No cycle runs: the test changes what a cycle would have changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/macro.h"
#include "daemon/asymd/service-internal.h"
#include "linux/enforce/ledger-internal.h"
#include "support/engine-fixture.h"
#include "support/tree.h"

#define PROPERTIES "org.freedesktop.DBus.Properties"

struct bus_fixture {
    struct tree tree;
    struct asym_invocation cli;
    struct asym_machine machine;
    struct asym_run run;
    struct asym_source source;
    struct asym_service s;
    struct engine_fixture w; /* threads that a cycle would have steered */
    sd_bus *client;
    char heard[512]; /* "NAME=VALUE;" for each property of each signal */
    unsigned n_signals;
};

/* Notes the property at which the message stands. */
static void hear_property(struct bus_fixture *f, sd_bus_message *m)
{
    const size_t used = strlen(f->heard);
    char *end = f->heard + used;
    const size_t left = sizeof f->heard - used;
    const char *name, *type, *text;
    uint64_t number;
    uint32_t count;
    double share;
    assert_true(sd_bus_message_read(m, "s", &name) > 0);
    assert_true(sd_bus_message_peek_type(m, NULL, &type) > 0);
    if (strcmp(type, "t") == 0) {
        assert_true(sd_bus_message_read(m, "v", "t", &number) > 0);
        snprintf(end, left, "%s=%llu;", name, (unsigned long long)number);
    } else if (strcmp(type, "u") == 0) {
        assert_true(sd_bus_message_read(m, "v", "u", &count) > 0);
        snprintf(end, left, "%s=%u;", name, count);
    } else if (strcmp(type, "d") == 0) {
        assert_true(sd_bus_message_read(m, "v", "d", &share) > 0);
        snprintf(end, left, "%s=%.4f;", name, share);
    } else {
        assert_true(sd_bus_message_read(m, "v", "s", &text) > 0);
        snprintf(end, left, "%s=%s;", name, text);
    }
}

static void hear(struct bus_fixture *f, sd_bus_message *m)
{
    if (sd_bus_message_is_signal(m, PROPERTIES, "PropertiesChanged") <= 0)
        return;
    f->n_signals++;
    assert_true(sd_bus_message_skip(m, "s") >= 0);
    assert_true(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
    while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
        hear_property(f, m);
        assert_true(sd_bus_message_exit_container(m) >= 0);
    }
}

/* Calls a method, and hears what comes before its answer: a connection keeps the order of messages. */
static void call(struct bus_fixture *f, const char *interface, const char *method)
{
    sd_bus_message *m = NULL;
    uint64_t cookie, answered = 0;
    assert_true(sd_bus_message_new_method_call(f->client, &m, NULL, ASYM_BUS_PATH, interface, method) >= 0);
    assert_true(sd_bus_send(f->client, m, &cookie) >= 0);
    m = sd_bus_message_unref(m);
    for (unsigned i = 0; i < 1000 && answered != cookie; i++) {
        while (sd_event_run(f->s.event, 0) > 0)
            ;
        assert_true(sd_bus_process(f->client, &m) >= 0);
        if (m) {
            hear(f, m);
            sd_bus_message_get_reply_cookie(m, &answered);
            assert_false(sd_bus_message_is_method_error(m, NULL));
        }
        m = sd_bus_message_unref(m);
    }
    assert_int_equal(answered, cookie);
}

static void subscribe(struct bus_fixture *f)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    assert_int_equal(asym_bus_add_direct(f->s.bus, ends[0]), 0);
    assert_true(sd_bus_new(&f->client) >= 0);
    assert_true(sd_bus_set_fd(f->client, ends[1], ends[1]) >= 0);
    assert_true(sd_bus_start(f->client) >= 0);
    call(f, ASYM_BUS_INTERFACE, "Subscribe");
}

/* asymd observes with process events, and counts neither instructions nor cache misses. */
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
    s->cycle.snapshot.coverage.process_events = true;
    s->cycle.snapshot.missing[ASYM_SIGNAL_IPC] = s->cycle.snapshot.missing[ASYM_SIGNAL_STALL] = "no PMU";
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
    subscribe(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct bus_fixture *f = *state;
    sd_bus_close_unref(f->client);
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
    call(f, "org.freedesktop.DBus.Peer", "Ping");
    assert_string_equal(f->heard, expected);
    assert_int_equal(f->n_signals, *expected ? 1 : 0);
    f->heard[0] = '\0';
    f->n_signals = 0;
}

static void change_nothing(struct bus_fixture *f)
{
    (void)f;
}

/* By less than a tenth of the budget of 1 % each time: the second time it is more than that above the announced usage. */
static void use_a_little_more_cpu_time(struct bus_fixture *f)
{
    f->s.budget.percent += 0.075;
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

static void sample_less_often(struct bus_fixture *f)
{
    f->s.budget.least = 2 * f->run.settings->daemon.interval;
}

/* By less than a tenth each time: the second time it is more than a tenth above the announced one. */
static void sample_a_little_less_often(struct bus_fixture *f)
{
    f->s.budget.least = f->s.budget.least * 106 / 100;
}

static void lose_process_events(struct bus_fixture *f)
{
    f->s.cycle.snapshot.coverage.process_events = false;
}

static void count_instructions(struct bus_fixture *f)
{
    f->s.cycle.snapshot.missing[ASYM_SIGNAL_IPC] = NULL;
}

static void go_back(struct bus_fixture *f)
{
    f->s.budget.least = 0;
    f->s.cycle.snapshot.coverage.process_events = true;
    f->s.cycle.snapshot.missing[ASYM_SIGNAL_IPC] = "no PMU";
}

/* An order announces at once, and with it what has changed without an order since the last housekeeping. */
static void sample_less_often_and_order_another_policy(struct bus_fixture *f)
{
    sample_less_often(f);
    f->run.policy = &engine_fixture_policy_cpu;
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
        {use_a_little_more_cpu_time, ""},
        {use_a_little_more_cpu_time, "CPUUsage=0.0015;"},
        {use_a_little_more_cpu_time, ""},
        {steer_a_thread, "ThreadsSteered=1;Changes=1;"},
        {forget_the_thread, "ThreadsSteered=0;"},
        {sample_less_often, "Interval=200000;"},
        {sample_a_little_less_often, ""},
        {sample_a_little_less_often, "Interval=224720;"},
        {lose_process_events, "Observer=schedstat;"},
        {count_instructions, "Observer=schedstat, instructions;"},
        {go_back, "Interval=100000;Observer=schedstat, process events;"},
        {sample_less_often_and_order_another_policy, "Policy=orders-cpu;Interval=200000;"},
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

/* A new subscriber reads the counters: it hears only of later changes. */
static void a_subscriber_hears_of_counters_that_change_later(void **state)
{
    struct bus_fixture *f = *state;
    call(f, ASYM_BUS_INTERFACE, "Unsubscribe");
    steer_a_thread(f);
    f->s.budget.percent += 50;
    asym_service_bus_housekeeping(&f->s, asym_clock_now());
    call(f, ASYM_BUS_INTERFACE, "Subscribe");
    asym_service_bus_housekeeping(&f->s, asym_clock_now());
    assert_heard(f, "");
    forget_the_thread(f);
    asym_service_bus_housekeeping(&f->s, asym_clock_now());
    assert_heard(f, "ThreadsSteered=0;");
}

/* The test calls what an order, a reload and hotplug call. The interval stands for all properties. */
static void asym_service_changed_announces_without_housekeeping(void **state)
{
    struct bus_fixture *f = *state;
    assert_int_equal(asym_settings_set(f->run.settings, "asymd.interval=70ms", "test", NULL), 0);
    asym_service_changed(&f->s);
    assert_heard(f, "Interval=70000;");
    asym_service_bus_housekeeping(&f->s, asym_clock_now());
    assert_heard(f, "");
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_change_is_announced_once),
        T(a_subscriber_hears_of_counters_that_change_later),
        T(asym_service_changed_announces_without_housekeeping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
