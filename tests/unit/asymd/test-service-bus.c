/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bus announces changed properties. No cycle runs: the test changes what a cycle would have changed. The table of
 * org.asymd.Manager: the installed XML says the same, and each method has its function.
 */
#include <sys/socket.h>

#include "base/clock.h"
#include "daemon/asymd/service-internal.h"
#include "linux/enforce/ledger-internal.h"
#include "report/json.h"
#include "support/engine-fixture.h"
#include "support/tree.h"
#include "support/test.h"

struct bus_fixture {
    struct tree tree;
    struct asym_invocation cli;
    struct asym_machine machine;
    struct asym_run run;
    struct asym_source source;
    struct asym_service s;
    struct engine_fixture w; /* threads that a cycle would have steered */
    asym_usec now;           /* of the next snapshot */
    char heard[512];         /* "NAME;" for each property that was announced, and "." behind those of one signal */
};

static struct bus_fixture *fixture;

WRAPPED(void, asym_bus_emit_changed, struct asym_bus *bus, char *const *names)
{
    char *heard = fixture->heard;
    assert_ptr_equal(bus, fixture->s.bus);
    for (; *names; names++)
        snprintf(heard + strlen(heard), sizeof fixture->heard - strlen(heard), "%s;", *names);
    strcat(heard, ".");
}

static int set_up(void **state)
{
    struct bus_fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/system_bus_socket", 1);
    tree_make(&f->tree);
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

/* An order announces at once, and with it what has changed without an order since the last housekeeping. */
static void forget_and_order_another_policy(struct bus_fixture *f)
{
    asym_ledger_remove(f->s.ledger, asym_ledger_find(f->s.ledger, 100));
    f->run.policy = &engine_fixture_policy_cpu;
    f->s.control.paused_until = 7;
    asym_service_changed(&f->s);
}

TEST_WITH(a_change_is_announced_once, set_up, tear_down)
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

/* Lets the service know n applications of one thread each. Their processes have ended. cgroup: of each; NULL: none. */
static void record_applications(struct bus_fixture *f, size_t n, const char *cgroup)
{
    ASYM_AUTO_FREE struct asym_app *apps = calloc(n + 1, sizeof *apps);
    ASYM_AUTO_FREE struct asym_proc *procs = calloc(n + 1, sizeof *procs);
    ASYM_AUTO_FREE struct asym_task *tasks = calloc(n + 1, sizeof *tasks);
    ASYM_AUTO_FREE struct asym_plan_app *plan_apps = calloc(n + 1, sizeof *plan_apps);
    ASYM_AUTO_FREE struct asym_plan_task *plan_tasks = calloc(n + 1, sizeof *plan_tasks);
    assert_true(apps && procs && tasks && plan_apps && plan_tasks);
    for (uint32_t i = 0; i < n; i++) {
        const struct asym_taskid id = {(int32_t)i + 1, (int32_t)i + 1, 1};
        apps[i] = (struct asym_app){.id = id, .cgroup = cgroup, .first_task = i, .n_tasks = 1, .n_threads = 1};
        procs[i] = (struct asym_proc){.id = id, .app = i};
        tasks[i] = (struct asym_task){.id = id, .proc = i};
        plan_tasks[i] = (struct asym_plan_task){.target = -1, .reason = &engine_fixture_placed};
    }
    const struct asym_snapshot s = {.now = f->now++,
                                    .machine = &f->machine,
                                    .apps = apps,
                                    .procs = procs,
                                    .tasks = tasks,
                                    .n_apps = n,
                                    .n_procs = n,
                                    .n_tasks = n};
    const struct asym_plan plan = {.apps = plan_apps, .tasks = plan_tasks, .n_apps = n, .n_tasks = n};
    const struct asym_feedback feedback = {&s, &plan, NULL, NULL, 0};
    asym_monitor_record(f->s.control.monitor, &feedback);
}

TEST_WITH(a_status_has_a_bound_of_applications, set_up, tear_down)
{
    struct bus_fixture *f = *state;
    const struct asym_bus_caller caller = {.is_root = true};
    static const struct {
        size_t known, listed;
    } rows[] = {{0, 0},
                {3, 3},
                {ASYM_BUS_APPLICATIONS, ASYM_BUS_APPLICATIONS},
                {ASYM_BUS_APPLICATIONS + 1, ASYM_BUS_APPLICATIONS},
                {3 * ASYM_BUS_APPLICATIONS, ASYM_BUS_APPLICATIONS}};
    assert_int_equal(ASYM_BUS_APPLICATIONS, 1024); /* org.asymd.Manager(5) says so */
    f->now = 5;
    f->machine.n_types = 1;
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ASYM_AUTO_FREE char *text;
        record_applications(f, rows[i].known, NULL);
        assert_int_equal(asym_bus_report(&f->s, &caller, "status", 0, asym_clock_now(), &text), 0);
        ASYM_AUTO_JSON json_t *status = json_loads(text, 0, NULL);
        assert_int_equal(json_array_size(json_object_get(status, "applications")), rows[i].listed);
    }
}

/* The reports that a user gets again are the bus's memory: housekeeping frees what is too old, and none is large. */
TEST_WITH(what_the_bus_keeps_has_a_bound, set_up, tear_down)
{
    struct bus_fixture *f = *state;
    const struct asym_bus_caller caller = {.uid = 2002};
    char *text, cgroup[4096] = "";
    memset(cgroup, 'x', sizeof cgroup - 1);
    f->now = 5;
    f->machine.n_types = 1;
    for (int i = 0; i < 2; i++) {
        record_applications(f, i == 0 ? 32 : 512, cgroup);
        const asym_usec now = asym_clock_now();
        f->s.hidepid = false;
        assert_int_equal(asym_bus_report(&f->s, &caller, "status", 0, now, &text), 0);
        assert_int_equal(strlen(text) > ASYM_BUS_KEPT_BYTES, i);
        free(text);
        assert_int_equal(f->s.kept[0].text != NULL, i == 0);
        asym_service_bus_housekeeping(&f->s, now);
        assert_int_equal(f->s.kept[0].text != NULL, i == 0);
        asym_service_bus_housekeeping(&f->s, now + ASYM_BUS_KEEP + 1);
        assert_null(f->s.kept[0].text);
    }
}

enum { TEXT_SIZE = 32768 };

static sd_event *event;
static struct asym_bus *bus;
static sd_bus *client;
static const struct asym_invocation cli;
static struct asym_run run = {.cli = &cli};
static struct asym_service service = {.run = &run};

static int set_up_client(void **state)
{
    int ends[2];
    assert_true(sd_event_new(&event) >= 0);
    const struct asym_bus_config config = {
        .event = event,
        .no_system_bus = true,
        .vtable = asym_bus_manager_vtable,
        .methods = asym_bus_manager_methods,
        .userdata = &service,
    };
    assert_int_equal(asym_bus_open(&config, &bus, NULL), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    assert_int_equal(asym_bus_add_direct(bus, ends[0]), 0);
    assert_true(sd_bus_new(&client) >= 0);
    assert_true(sd_bus_set_fd(client, ends[1], ends[1]) >= 0);
    assert_true(sd_bus_start(client) >= 0);
    return 0;
}

static int tear_down_client(void **state)
{
    sd_bus_close_unref(client);
    asym_bus_close(bus);
    sd_event_unref(event);
    return 0;
}

/* Sends a call, which is freed, and returns the answer. */
static sd_bus_message *ask(sd_bus_message *call)
{
    sd_bus_message *reply = NULL;
    uint64_t cookie, answered = 0;
    assert_true(sd_bus_send(client, call, &cookie) >= 0);
    sd_bus_message_unref(call);
    for (unsigned i = 0; i < 1000 && answered != cookie; i++) {
        while (sd_event_run(event, 0) > 0)
            ;
        sd_bus_message_unref(reply);
        assert_true(sd_bus_process(client, &reply) >= 0);
        if (reply)
            sd_bus_message_get_reply_cookie(reply, &answered);
    }
    assert_int_equal(answered, cookie);
    return reply;
}

/* An attribute of a tag, or "". */
static void attribute(const char *tag, const char *end, const char *name, char *ret, size_t size)
{
    char wanted[32];
    ret[0] = '\0';
    snprintf(wanted, sizeof wanted, " %s=\"", name);
    const char *at = strstr(tag, wanted);
    if (!at || at > end)
        return;
    at += strlen(wanted);
    snprintf(ret, size, "%.*s", (int)strcspn(at, "\""), at);
}

/*
 * Writes a line for each element of the interface: its tag, and the attributes in one order. Comments, closing tags and space
 * are left out: sd-bus and people write them differently.
 */
static void normalize(const char *xml, char *ret, size_t size)
{
    static const char *const names[] = {"name", "type", "direction", "access", "value"};
    const char *at = strstr(xml, "<interface name=\"" ASYM_BUS_INTERFACE "\">");
    size_t used = 0;
    assert_non_null(at);
    const char *last = strstr(at, "</interface>");
    assert_non_null(last);
    while ((at = strchr(at, '<')) && at < last) {
        const char *end = strchr(at, '>');
        if (at[1] != '/' && at[1] != '!') {
            used += (size_t)snprintf(ret + used, size - used, "%.*s", (int)strcspn(at + 1, " />"), at + 1);
            for (size_t i = 0; i < ASYM_LENGTH(names); i++) {
                char value[128];
                attribute(at, end, names[i], value, sizeof value);
                used += (size_t)snprintf(ret + used, size - used, " %s", value);
            }
            used += (size_t)snprintf(ret + used, size - used, "\n");
        }
        assert_true(used < size);
        at = end;
    }
}

TEST_WITH(the_installed_xml_is_what_the_object_says, set_up_client, tear_down_client)
{
    static char said[TEXT_SIZE], installed[TEXT_SIZE], a[TEXT_SIZE], b[TEXT_SIZE];
    /* Writes the XML that the server gives for its object. */
    sd_bus_message *m = NULL;
    const char *text;
    assert_true(sd_bus_message_new_method_call(client, &m, NULL, ASYM_BUS_PATH, "org.freedesktop.DBus.Introspectable",
                                               "Introspect") >= 0);
    ASYM_CLEANUP(sd_bus_message_unrefp) sd_bus_message *reply = ask(m);
    assert_true(sd_bus_message_read(reply, "s", &text) > 0);
    assert_in_range(snprintf(said, sizeof said, "%s", text), 1, sizeof said - 1);
    file_read(ASYM_TEST_SOURCE "/dbus/org.asymd.Manager.xml", installed, sizeof installed);
    normalize(said, a, sizeof a);
    normalize(installed, b, sizeof b);
    assert_string_equal(a, b);
}

TEST(the_comparison_sees_a_difference)
{
    static char installed[TEXT_SIZE], a[TEXT_SIZE], b[TEXT_SIZE];
    file_read(ASYM_TEST_SOURCE "/dbus/org.asymd.Manager.xml", installed, sizeof installed);
    normalize(installed, a, sizeof a);
    char *type = strstr(installed, "type=\"b\" direction=\"in\"");
    assert_non_null(type);
    type[6] = 'u';
    normalize(installed, b, sizeof b);
    assert_string_not_equal(a, b);
}

/* Calls that change something are the ones that ask for a permission. */
TEST(methods_that_change_something_need_a_permission)
{
    static const char *const manage[] = {"SetPolicy", "Pause", "Resume", "Reload", "SetProgram", "SetRule"};
    static char installed[TEXT_SIZE];
    size_t n_managing = 0, n_methods = 0;
    file_read(ASYM_TEST_SOURCE "/dbus/org.asymd.Manager.xml", installed, sizeof installed);
    for (const struct asym_bus_method *m = asym_bus_manager_methods; m->name; m++) {
        char tag[64];
        bool expected = false;
        snprintf(tag, sizeof tag, "<method name=\"%s\"", m->name);
        assert_non_null(strstr(installed, tag));
        for (size_t i = 0; i < ASYM_LENGTH(manage); i++)
            expected |= strcmp(manage[i], m->name) == 0;
        assert_int_equal(m->manages, expected);
        n_managing += m->manages;
        n_methods++;
    }
    assert_int_equal(n_managing, ASYM_LENGTH(manage));
    for (const char *at = installed; (at = strstr(at, "<method ")); at++)
        n_methods--;
    assert_int_equal(n_methods, 0);
}

TEST(errors_have_the_names_of_the_manual)
{
    static const struct {
        int r;
        const char *text, *name, *message;
    } rows[] = {
        {-ESRCH, "gone", ASYM_BUS_ERROR_NO_SUCH_PROCESS, "gone"},
        {-EINVAL, "bad", SD_BUS_ERROR_INVALID_ARGS, "bad"},
        {-EOPNOTSUPP, "no\xff", ASYM_BUS_ERROR_NOT_POSSIBLE, "no\\xff"},
        {-ENODATA, "no PMU", ASYM_BUS_ERROR_NO_SIGNAL, "no PMU"},
        {-ENOSPC, "", ASYM_BUS_ERROR_NOT_POSSIBLE, "No space left on device"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        struct asym_error err;
        snprintf(err.text, sizeof err.text, "%s", rows[i].text);
        assert_int_equal(asym_bus_manager_fail(&error, rows[i].r, &err), rows[i].r);
        assert_string_equal(error.name, rows[i].name);
        assert_string_equal(error.message, rows[i].message);
        sd_bus_error_free(&error);
    }
}

static sd_bus_message *ask_report(const char *topic, uint64_t argument)
{
    sd_bus_message *m = NULL;
    assert_true(sd_bus_message_new_method_call(client, &m, NULL, ASYM_BUS_PATH, ASYM_BUS_INTERFACE, "GetReport") >= 0);
    assert_true(sd_bus_message_append(m, "st", topic, argument) >= 0);
    return ask(m);
}

TEST_WITH(a_question_without_an_answer_is_an_error, set_up_client, tear_down_client)
{
    static const struct {
        const char *topic;
        uint64_t argument;
        const char *error;
    } rows[] = {{"no-topic", 0, SD_BUS_ERROR_INVALID_ARGS},
                {"program", UINT64_MAX, ASYM_BUS_ERROR_NO_SUCH_PROCESS},
                {"thread", UINT32_MAX, ASYM_BUS_ERROR_NO_SUCH_PROCESS},
                {"thread", ((uint64_t)1 << 32) + 1, ASYM_BUS_ERROR_NO_SUCH_PROCESS}};
    assert_int_equal(asym_monitor_new(&service.control.monitor), 0);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ASYM_CLEANUP(sd_bus_message_unrefp) sd_bus_message *reply = ask_report(rows[i].topic, rows[i].argument);
        assert_true(sd_bus_message_is_method_error(reply, rows[i].error) > 0);
    }
    asym_monitor_free(ASYM_TAKE(service.control.monitor));
}

TEST_WITH(the_decisions_of_a_new_asymd_are_none, set_up_client, tear_down_client)
{
    const char *text;
    assert_int_equal(asym_monitor_new(&service.control.monitor), 0);
    sd_bus_message *reply = ask_report("decisions", UINT64_MAX);
    assert_true(sd_bus_message_read(reply, "s", &text) > 0);
    assert_string_equal(text, "{\"schema\":\"asymd.decisions/1\",\"start_us\":0,\"next\":0,\"lost\":0,\"left\":0,"
                              "\"decisions\":[]}");
    sd_bus_message_unref(reply);
    asym_monitor_free(ASYM_TAKE(service.control.monitor));
}

/* These orders must not reach the service: it is not complete. */
TEST_WITH(an_order_with_a_wrong_argument_does_not_reach_the_service, set_up_client, tear_down_client)
{
    static const struct {
        const char *method;
        uint32_t pid;
        const char *action, *error;
    } rows[] = {
        {"SetProgram", 0, "fast", ASYM_BUS_ERROR_NO_SUCH_PROCESS},
        {"SetProgram", UINT32_MAX, "sideways", ASYM_BUS_ERROR_NO_SUCH_PROCESS},
        {"SetProgram", 1, "sideways", SD_BUS_ERROR_INVALID_ARGS},
        {"SetProgram", 0, "auto", ASYM_BUS_ERROR_NO_SUCH_PROCESS},
        {"SetProgram", 1, "", SD_BUS_ERROR_INVALID_ARGS},
        {"SetRule", 0, "fast", ASYM_BUS_ERROR_NO_SUCH_PROCESS},
        {"SetRule", 1, "sideways", SD_BUS_ERROR_INVALID_ARGS},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        sd_bus_message *m = NULL;
        assert_true(
            sd_bus_message_new_method_call(client, &m, NULL, ASYM_BUS_PATH, ASYM_BUS_INTERFACE, rows[i].method) >= 0);
        assert_true(sd_bus_message_append(m, "u", rows[i].pid) >= 0);
        assert_true(sd_bus_message_append(m, "s", rows[i].action) >= 0);
        ASYM_CLEANUP(sd_bus_message_unrefp) sd_bus_message *reply = ask(m);
        if (!sd_bus_message_is_method_error(reply, rows[i].error))
            fail_msg("row %zu: %s", i, sd_bus_message_get_error(reply)->name);
    }
}

TEST_MAIN
