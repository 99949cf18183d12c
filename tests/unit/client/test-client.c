/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The values that the client reads from answers, and the errors that it makes of refusals, against a service with fixed answers. */
#include <sys/stat.h>
#include <sys/wait.h>

#include <asym/manager.h>
#include <systemd/sd-bus.h>

#include "base/macro.h"
#include "client/client.h"
#include "report/json.h"
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
WRAPPED(int, sd_bus_call, sd_bus *bus, sd_bus_message *m, uint64_t usec, sd_bus_error *error, sd_bus_message **ret)
{
    timeout = usec;
    may_ask = sd_bus_get_allow_interactive_authorization(bus) > 0;
    return __real_sd_bus_call(bus, m, usec, error, ret);
}

/* And this before sd_bus_wait. */
static uint64_t longest_wait;
WRAPPED(int, sd_bus_wait, sd_bus *bus, uint64_t usec)
{
    longest_wait = ASYM_MAX(longest_wait, usec);
    return __real_sd_bus_wait(bus, usec);
}

/* And this before sd_bus_call_async. */
static unsigned n_questions;
WRAPPED(int, sd_bus_call_async, sd_bus *bus, sd_bus_slot **slot, sd_bus_message *m, sd_bus_message_handler_t handler,
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

/* The tests of the verbs assert the meaning of the keys. */
TEST(a_report_is_json_with_the_texts_that_programs_have_chosen)
{
    ASYM_AUTO_JSON json_t *status = NULL;
    ASYM_AUTO_JSON json_t *why = NULL;
    open_client(FAKE_SERVICE_HOSTILE);
    assert_int_equal(asym_client_get_report(client, "status", 0, &status, &err), 0);
    const json_t *apps = json_object_get(status, "applications"), *app = json_array_get(apps, 0);
    assert_int_equal(json_array_size(apps), 1004);
    assert_string_equal(asym_json_get_text(app, "comm"), "\033[2J\r\nevil\\");
    assert_int_equal(asym_json_get_int(json_array_get(apps, 1000), "pid"), 1099);
    assert_int_equal(asym_client_get_report(client, "why", 4711, &why, &err), 0);
    assert_int_equal(asym_json_get_int(json_array_get(json_object_get(why, "explanations"), 0), "id"), 4711);
    close_client();
}

/*
 * A process of that number is refused with an error of the interface, or of the bus daemon. test-service-verbs.c has what else
 * fails, and the arguments of changes.
 */
TEST(each_error_of_the_service_has_its_number)
{
    static const struct {
        const char *topic;
        uint64_t pid;
        int error;
        const char *text;
    } rows[] = {{"program", 404, -ESRCH, "does not know process 404"},
                {"program", 403, -ESRCH, "does not know"},
                {"why", 403, -EBUSY, "too many calls"},
                {"why", 408, -ETIMEDOUT, "asymd did not answer within 5 s"}};
    open_client(FAKE_SERVICE_PLAIN);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        json_t *report = NULL;
        assert_int_equal(asym_client_get_report(client, rows[i].topic, rows[i].pid, &report, &err), rows[i].error);
        assert_non_null(strstr(err.text, rows[i].text));
        assert_null(report);
    }
    close_client();
}

static int pause_asymd(void)
{
    const uint64_t seconds = 90;
    return asym_client_change(client, &err, "Pause", "t", seconds);
}

/* In a child that is not root. socket: what only root may use. */
static void ask_as_user(const char *socket)
{
    struct asym_client *c = NULL;
    json_t *status = NULL;
    if (geteuid() == 0 && setuid(65534) < 0)
        _exit(1);
    if (client_open(socket, true, &c, &err) < 0)
        _exit(2);
    if (asym_client_get_report(c, "status", 0, &status, &err) != -EACCES)
        _exit(3);
    _exit(strstr(err.text, "Run this as root") && strstr(err.text, "systemctl reload dbus") ? 42 : 4);
}

/* The bus daemon has not read asymd's policy, and the user may not use the socket: asymd may run. */
TEST(a_user_without_the_name_on_the_bus_learns_that_root_can_ask)
{
    json_t *report = NULL;
    char dir[] = "/tmp/asymd-client-XXXXXX", path[64], address[128];
    int status;
    fake_service_start(FAKE_SERVICE_NO_NAME);
    snprintf(address, sizeof address, "unix:path=%s", getenv("ASYMD_BUS"));
    setenv("DBUS_SYSTEM_BUS_ADDRESS", address, 1);
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/bus", dir);
    /* Without the socket, nothing says that asymd could run. */
    assert_int_equal(client_open(path, true, &client, &err), 0);
    assert_int_equal(asym_client_get_report(client, "status", 0, &report, &err), -ENOTCONN);
    asym_client_close(client);
    assert_int_equal(chmod(dir, 0), 0);
    const pid_t child = asym_process_fork();
    if (child == 0)
        ask_as_user(path);
    assert_int_equal(asym_process_wait(child, 10, &status), 0);
    assert_int_equal(WEXITSTATUS(status), 42);
    assert_int_equal(rmdir(dir), 0);
    unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
    client = NULL;
    fake_service_stop();
}

/* On the socket polkit is not asked. */
TEST(a_change_on_the_system_bus_waits_longer_than_asymd_waits_for_polkit)
{
    json_t *status = NULL;
    char address[128];
    open_client(FAKE_SERVICE_PLAIN);
    asym_client_let_polkit_ask(client);
    assert_int_equal(pause_asymd(), 0);
    assert_in_range(timeout, 1, ASYM_BUS_POLKIT_WITHIN);
    close_client();
    fake_service_start(FAKE_SERVICE_NO_NAME);
    snprintf(address, sizeof address, "unix:path=%s", getenv("ASYMD_BUS"));
    setenv("DBUS_SYSTEM_BUS_ADDRESS", address, 1);
    assert_int_equal(client_open("/nonexistent/bus", true, &client, &err), 0);
    assert_int_equal(pause_asymd(), -ENOTCONN);
    assert_false(may_ask);
    assert_in_range(timeout, 1, 5 * ASYM_SEC);
    asym_client_let_polkit_ask(client);
    assert_int_equal(pause_asymd(), -ENOTCONN);
    assert_true(may_ask);
    assert_true(timeout > ASYM_BUS_POLKIT_WITHIN);
    assert_int_equal(asym_client_get_report(client, "status", 0, &status, &err), -ENOTCONN);
    assert_in_range(timeout, 1, ASYM_BUS_POLKIT_WITHIN);
    unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
    close_client();
}

struct events {
    unsigned n;
    char last[256];
};

static void on_event(void *ctx, const json_t *event)
{
    struct events *e = ctx;
    e->n++;
    snprintf(e->last, sizeof e->last, "%s %d %d %d %d", asym_json_get_text(event, "comm"),
             (int)asym_json_get_int(event, "pid"), (int)asym_json_get_int(event, "tid"),
             (int)asym_json_get_int(event, "from"), (int)asym_json_get_int(event, "to"));
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
        assert_string_equal(e.last, "gzip 4712 4721 4 -1");
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
