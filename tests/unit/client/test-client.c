/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The values that the client reads from answers, and the errors that it makes of refusals, against a service with fixed answers. */
#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macro.h"
#include "client/client-internal.h"
#include "client/client.h"
#include "support/fake-service.h"
#include "support/process.h"
#include "support/test.h"

/* Longer than a busy machine needs for an answer, and as long as asymctl watch waits. */
#define LONG  (60 * ASYM_SEC)
#define SHORT (50 * ASYM_MSEC)

static struct asym_client *client;
static struct asym_error err;

/* The linker puts this before sd_bus_call (tests/CMakeLists.txt). */
static uint64_t timeout;
static bool may_ask;
int __real_sd_bus_call(sd_bus *bus, sd_bus_message *m, uint64_t usec, sd_bus_error *error, sd_bus_message **ret);
int __wrap_sd_bus_call(sd_bus *bus, sd_bus_message *m, uint64_t usec, sd_bus_error *error, sd_bus_message **ret);
int __wrap_sd_bus_call(sd_bus *bus, sd_bus_message *m, uint64_t usec, sd_bus_error *error, sd_bus_message **ret)
{
    timeout = usec;
    may_ask = sd_bus_get_allow_interactive_authorization(bus) > 0;
    return __real_sd_bus_call(bus, m, usec, error, ret);
}

/* And this before sd_bus_wait. */
static uint64_t longest_wait;
int __real_sd_bus_wait(sd_bus *bus, uint64_t usec);
int __wrap_sd_bus_wait(sd_bus *bus, uint64_t usec);
int __wrap_sd_bus_wait(sd_bus *bus, uint64_t usec)
{
    longest_wait = ASYM_MAX(longest_wait, usec);
    return __real_sd_bus_wait(bus, usec);
}

/* And this before sd_bus_call_async. */
static unsigned n_questions;
int __real_sd_bus_call_async(sd_bus *bus, sd_bus_slot **slot, sd_bus_message *m, sd_bus_message_handler_t handler,
                             void *userdata, uint64_t usec);
int __wrap_sd_bus_call_async(sd_bus *bus, sd_bus_slot **slot, sd_bus_message *m, sd_bus_message_handler_t handler,
                             void *userdata, uint64_t usec);
int __wrap_sd_bus_call_async(sd_bus *bus, sd_bus_slot **slot, sd_bus_message *m, sd_bus_message_handler_t handler,
                             void *userdata, uint64_t usec)
{
    n_questions++;
    return __real_sd_bus_call_async(bus, slot, m, handler, userdata, usec);
}

static void open_client(enum fake_service_kind kind)
{
    err = (struct asym_error){""};
    fake_service_start(kind);
    assert_int_equal(asym_client_open(&client, &err), 0);
}

static void close_client(void)
{
    asym_client_close(client);
    client = NULL;
    fake_service_stop();
}

TEST(a_status_has_every_field)
{
    struct asym_client_status s;
    open_client(FAKE_SERVICE_PAUSED);
    assert_int_equal(asym_client_get_status(client, &s, &err), 0);
    assert_string_equal(s.version, "0.1.0");
    assert_int_equal(s.start, 1780000000000000);
    assert_string_equal(s.policy, "pa");
    assert_string_equal(s.fast_cpus, "0-3");
    assert_string_equal(s.slow_cpus, "4-7");
    assert_int_equal(s.threads_steered, 12);
    assert_int_equal(s.changes, 1204);
    assert_int_equal(s.changes_last_minute, 14);
    assert_int_equal(s.interval, 100 * ASYM_MSEC);
    assert_int_equal(s.memory, 4300000);
    assert_true(s.cpu_usage > 0.003 && s.cpu_usage < 0.0032);
    assert_int_equal(s.orders, 3);
    assert_true(s.paused);
    assert_int_equal(s.paused_until, s.start + 90 * ASYM_SEC);
    assert_string_equal(s.profile, "");
    assert_int_equal(s.n_lacks, 1);
    assert_string_equal(s.lacks[0], "asymd cannot count instructions: this machine has no PMU");
    asym_client_status_done(&s);
    close_client();
}

TEST(lists_have_every_item)
{
    struct asym_client_status s;
    open_client(FAKE_SERVICE_HOSTILE);
    assert_int_equal(asym_client_get_status(client, &s, &err), 0);
    assert_int_equal(s.n_cpus, 8);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(s.cpus[i].cpu, i);
        assert_int_equal(s.cpus[i].type, i / 4);
        assert_int_equal(s.cpus[i].smt_rank, i < 4 ? i % 2 : 0);
        assert_true(s.cpus[i].fast == (i < 4));
        assert_string_equal(s.cpus[i].type_name, i < 4 ? "P-core" : "E-core");
    }
    assert_int_equal(s.n_apps, 1004);
    assert_string_equal(s.apps[0].comm, "\033[2J\r\nevil\\");
    assert_int_equal(s.apps[1000].pid, 1099);
    assert_string_equal(s.apps[1003].comm, "idler");
    asym_client_status_done(&s);
    assert_int_equal(s.n_apps, 0);
    close_client();
}

TEST(explanations_and_counters_are_read)
{
    struct asym_client_explanation e;
    struct asym_client_counters c;
    open_client(FAKE_SERVICE_PLAIN);
    assert_int_equal(asym_client_explain(client, 4711, &e, &err), 0);
    assert_int_equal(e.n_sentences, 2);
    assert_string_equal(e.sentences[1], "It would get fast CPUs if gzip (4712) stopped.");
    assert_int_equal(e.n_evidence, 2);
    assert_string_equal(e.evidence[0].name, "runnable threads");
    assert_string_equal(e.evidence[0].value, "7.9");
    assert_int_equal(e.n_decisions, 10);
    assert_true(e.decisions[0].time > e.decisions[9].time);
    assert_int_equal(e.decisions[9].from, 4);
    assert_int_equal(e.decisions[9].to, 0);
    assert_string_equal(e.decisions[9].what, "steer");
    /* The service leaves this key out. */
    assert_string_equal(e.decisions[9].comm, "");
    asym_client_explanation_done(&e);
    assert_int_equal(asym_client_get_counters(client, &c, &err), 0);
    assert_int_equal(c.n_counters, 5);
    assert_string_equal(c.counters[1].name, "cpu_seconds_total");
    assert_string_equal(c.counters[1].kind, "counter");
    asym_client_counters_done(&c);
    close_client();
}

/* A process of that number is refused with an error of the interface. */
TEST(each_error_of_the_service_has_its_number)
{
    struct asym_client_app app;
    static const struct {
        uint32_t pid;
        int error;
        const char *text;
    } rows[] = {{404, -ESRCH, "does not know process 404"}, {403, -ESRCH, "does not know"}};
    struct asym_client_explanation e;
    open_client(FAKE_SERVICE_PLAIN);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        assert_int_equal(asym_client_get_application(client, rows[i].pid, &app, &err), rows[i].error);
        assert_non_null(strstr(err.text, rows[i].text));
    }
    assert_int_equal(asym_client_explain(client, 403, &e, &err), -EBUSY);
    assert_non_null(strstr(err.text, "too many calls"));
    close_client();
}

TEST(changes_that_fail_say_why)
{
    open_client(FAKE_SERVICE_DENIED);
    assert_int_equal(asym_client_pause(client, 90, &err), -EACCES);
    assert_non_null(strstr(err.text, "run it as root"));
    close_client();
    open_client(FAKE_SERVICE_REFUSES);
    assert_int_equal(asym_client_set_policy(client, "ipc-driven", false, &err), -ENODATA);
    assert_non_null(strstr(err.text, "no PMU"));
    assert_null(strchr(err.text, '\033'));
    close_client();
}

TEST(changes_carry_their_arguments)
{
    open_client(FAKE_SERVICE_PLAIN);
    assert_int_equal(asym_client_pause(client, 90, &err), 0);
    assert_int_equal(asym_client_resume(client, &err), 0);
    assert_int_equal(asym_client_reload(client, &err), 0);
    assert_int_equal(asym_client_set_policy(client, "rr", true, &err), 0);
    assert_int_equal(asym_client_set_program(client, 7, "slow", &err), 0);
    assert_string_equal(fake_service_calls(), "Pause 90;Resume;Reload;SetPolicy rr 1;SetProgram 7 slow;");
    close_client();
}

TEST(answers_of_other_types_are_of_another_version)
{
    struct asym_client_status s;
    open_client(FAKE_SERVICE_OTHER);
    assert_int_equal(asym_client_get_status(client, &s, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "same version"));
    close_client();
}

TEST(without_a_service_the_error_says_how_to_start_it)
{
    setenv("ASYMD_BUS", "/nonexistent/bus", 1);
    assert_int_equal(asym_client_open(&client, &err), -ENOTCONN);
    assert_non_null(strstr(err.text, "systemctl start asymd"));
    unsetenv("ASYMD_BUS");
}

/* In a child that is not root. socket: what only root may use. */
static void ask_as_user(const char *socket)
{
    struct asym_client *c = NULL;
    struct asym_client_status s;
    if (geteuid() == 0 && setuid(65534) < 0)
        _exit(1);
    if (client_open(socket, true, &c, &err) < 0)
        _exit(2);
    if (asym_client_get_status(c, &s, &err) != -EACCES)
        _exit(3);
    _exit(strstr(err.text, "Run this as root") && strstr(err.text, "systemctl reload dbus") ? 42 : 4);
}

/* The bus daemon has not read asymd's policy, and the user may not use the socket: asymd may run. */
TEST(a_user_without_the_name_on_the_bus_learns_that_root_can_ask)
{
    struct asym_client_status s;
    char dir[] = "/tmp/asymd-client-XXXXXX", path[64], address[128];
    int status;
    fake_service_start(FAKE_SERVICE_NO_NAME);
    snprintf(address, sizeof address, "unix:path=%s", getenv("ASYMD_BUS"));
    setenv("DBUS_SYSTEM_BUS_ADDRESS", address, 1);
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/bus", dir);
    /* Without the socket, nothing says that asymd could run. */
    assert_int_equal(client_open(path, true, &client, &err), 0);
    assert_int_equal(asym_client_get_status(client, &s, &err), -ENOTCONN);
    asym_client_close(client);
    assert_int_equal(chmod(dir, 0), 0);
    const pid_t child = asym_process_fork();
    assert_true(child >= 0);
    if (child == 0)
        ask_as_user(path);
    assert_int_equal(asym_process_wait(child, 10, &status), 0);
    assert_int_equal(WEXITSTATUS(status), 42);
    assert_int_equal(rmdir(dir), 0);
    unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
    client = NULL;
    fake_service_stop();
}

/* The calls around changes, a letter each. */
static char around[8];

static void *before_change(void)
{
    strcat(around, "b");
    return around;
}

static void after_change(void *ctx)
{
    assert_ptr_equal(ctx, around);
    strcat(around, "a");
}

/* polkit's agent ends with the call. On the socket polkit is not asked. */
TEST(a_change_on_the_system_bus_waits_longer_than_asymd_waits_for_polkit)
{
    struct asym_client_status s;
    char address[128];
    open_client(FAKE_SERVICE_PLAIN);
    asym_client_around_changes(client, before_change, after_change);
    assert_int_equal(asym_client_pause(client, 90, &err), 0);
    assert_in_range(timeout, 1, ASYM_BUS_POLKIT_WITHIN);
    assert_string_equal(around, "");
    close_client();
    fake_service_start(FAKE_SERVICE_NO_NAME);
    snprintf(address, sizeof address, "unix:path=%s", getenv("ASYMD_BUS"));
    setenv("DBUS_SYSTEM_BUS_ADDRESS", address, 1);
    assert_int_equal(client_open("/nonexistent/bus", true, &client, &err), 0);
    assert_int_equal(asym_client_pause(client, 90, &err), -ENOTCONN);
    assert_false(may_ask);
    assert_in_range(timeout, 1, 5 * ASYM_SEC);
    asym_client_around_changes(client, before_change, after_change);
    assert_int_equal(asym_client_pause(client, 90, &err), -ENOTCONN);
    assert_true(may_ask);
    assert_string_equal(around, "ba");
    assert_true(timeout > ASYM_BUS_POLKIT_WITHIN);
    assert_int_equal(asym_client_get_status(client, &s, &err), -ENOTCONN);
    assert_in_range(timeout, 1, ASYM_BUS_POLKIT_WITHIN);
    assert_string_equal(around, "ba");
    unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
    close_client();
}

struct events {
    unsigned n;
    struct asym_client_decision last;
    char comm[32];
};

static void on_event(void *ctx, const struct asym_client_decision *event)
{
    struct events *e = ctx;
    e->n++;
    e->last = *event;
    strncpy(e->comm, event->comm, sizeof e->comm - 1);
}

/* The first question learns where the decisions begin. Then there are two, and then asymd ends, or another one runs. */
TEST(each_decision_arrives_and_then_the_end)
{
    static const struct {
        enum fake_service_kind kind;
        const char *end;
    } rows[] = {{FAKE_SERVICE_ENDS, "asymd has ended"}, {FAKE_SERVICE_AGAIN, "asymd has ended, and another one runs"}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_client_since since = {.number = 0};
        struct events e = {.n = 0};
        open_client(rows[i].kind);
        assert_int_equal(asym_client_get_decisions(client, &since, LONG, on_event, &e, &err), 0);
        assert_int_equal(e.n, 0);
        assert_int_equal(since.number, 7);
        assert_int_equal(asym_client_get_decisions(client, &since, LONG, on_event, &e, &err), 0);
        assert_int_equal(e.n, 2);
        assert_int_equal(since.number, 9);
        assert_string_equal(e.comm, "gzip");
        assert_int_equal(e.last.pid, 4712);
        assert_int_equal(e.last.tid, 4721);
        assert_int_equal(e.last.from, 4);
        assert_int_equal(e.last.to, -1);
        assert_int_equal(asym_client_get_decisions(client, &since, LONG, on_event, &e, &err), -ENOTCONN);
        assert_string_equal(err.text, rows[i].end);
        close_client();
    }
}

/* More than a report has: the client asks again at once. */
TEST(decisions_that_asymd_does_not_remember_are_counted)
{
    struct asym_client_since since = {.number = 0};
    struct events e = {.n = 0};
    open_client(FAKE_SERVICE_BEHIND);
    assert_int_equal(asym_client_get_decisions(client, &since, LONG, on_event, &e, &err), 0);
    assert_int_equal(since.lost, 0);
    assert_int_equal(asym_client_get_decisions(client, &since, LONG, on_event, &e, &err), 0);
    assert_int_equal(since.lost, 2);
    assert_int_equal(since.number, 11);
    assert_int_equal(e.n, 2);
    assert_int_equal(asym_client_get_decisions(client, &since, LONG, on_event, &e, &err), 0);
    assert_int_equal(since.lost, 0);
    close_client();
}

/* asymd refuses, or leaves the question unread. The question is asked once, and the next call takes its answer. */
TEST(a_call_for_decisions_does_not_wait_for_asymd)
{
    static const enum fake_service_kind kinds[] = {FAKE_SERVICE_FULL, FAKE_SERVICE_STUCK};
    for (size_t i = 0; i < ASYM_LENGTH(kinds); i++) {
        struct asym_client_since since = {.number = 0};
        struct events e = {.n = 0};
        open_client(kinds[i]);
        const unsigned answered = kinds[i] == FAKE_SERVICE_FULL ? 5 : 2;
        timeout = n_questions = 0;
        for (unsigned k = 0; k < 5; k++) {
            longest_wait = 0;
            assert_int_equal(asym_client_get_decisions(client, &since, k < answered ? LONG : SHORT, on_event, &e, &err),
                             0);
            assert_true(longest_wait <= (k < answered ? LONG : SHORT) && (k < answered || longest_wait > 0));
        }
        assert_int_equal(since.number, kinds[i] == FAKE_SERVICE_FULL ? 0 : 9);
        assert_int_equal(n_questions, kinds[i] == FAKE_SERVICE_FULL ? 5 : 3);
        assert_int_equal(timeout, 0);
        close_client();
    }
}

TEST_MAIN
