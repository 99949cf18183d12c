/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bus announces changed properties. No cycle runs: the test changes what a cycle would have changed. */

#include "base/clock.h"
#include "daemon/asymd/bus-report.h"
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
    struct asym_app *apps = calloc(n + 1, sizeof *apps);
    struct asym_proc *procs = calloc(n + 1, sizeof *procs);
    struct asym_task *tasks = calloc(n + 1, sizeof *tasks);
    struct asym_plan_app *plan_apps = calloc(n + 1, sizeof *plan_apps);
    struct asym_plan_task *plan_tasks = calloc(n + 1, sizeof *plan_tasks);
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
    free(apps);
    free(procs);
    free(tasks);
    free(plan_apps);
    free(plan_tasks);
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
        char *text;
        record_applications(f, rows[i].known, NULL);
        assert_int_equal(asym_bus_report(&f->s, &caller, "status", 0, asym_clock_now(), &text), 0);
        ASYM_AUTO_JSON json_t *status = json_loads(text, 0, NULL);
        assert_int_equal(json_array_size(json_object_get(status, "applications")), rows[i].listed);
        free(text);
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

TEST_MAIN
