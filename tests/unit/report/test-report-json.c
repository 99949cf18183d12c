/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plan as JSON (asymd.plan/1) has every key and type that the schema promises. */
#include <math.h>

#include "base/mask.h"
#include "report/json.h"
#include "support/json.h"
#include "support/report-fixture.h"
#include "support/test.h"

static char *print(const struct asym_report *r)
{
    char *text = PRINTED(asym_report_json(r, out));
    assert_int_equal(text[strlen(text) - 1], '\n');
    return text;
}

static json_t *parse(const struct asym_report *r)
{
    ASYM_AUTO_FREE char *text = print(r);
    return json_of(text);
}

static json_t *parse_report(const struct report_fixture *s)
{
    const struct asym_report r = report_fixture_report(s);
    return parse(&r);
}

static struct report_fixture *one_program(void)
{
    struct report_fixture *s = report_fixture_new(8, 4, 8);
    report_fixture_app(s, "program", 1234, ASYM_PHASE_PARALLEL, ASYM_CLASS_HP, 3.98);
    struct asym_plan_task *t = report_fixture_thread(s, "worker", 1240, 1);
    report_fixture_steer(s, t, 3, "0-3", &report_fixture_many);
    t->figure[0] = 3.98;
    t->figure[1] = 2;
    t->nice = -5;
    return s;
}

TEST_OF(a_plan_is_as_promised, one_program())
{
    ASYM_AUTO_JSON json_t *root = parse_report(s);
    assert_json(root, "{'schema': 'asymd.plan/1', 'moves': 1, 'observed_ms': 500.2, 'scan_cpu_us': 812.3, "
                      "'excluded': []}");
    assert_json(json_at(root, "machine"),
                "{'cpus': 8, 'asymmetric': true, 'fast': '4-7', 'slow': '0-3',"
                " 'core_types': [{'name': 'fast', 'cpus': '4-7', 'source': 'cpufreq', 'speed': 2.0}, {'speed': 1.0}],"
                " 'llc': ['0-3', '4-7'], 'smt': ['0-1', '2-3', '4-5', '6-7'], 'numa': ['0-7']}");
    assert_json(json_at(root, "signals"), "{'available': ['runnable', 'profile', 'smt'],"
                                          " 'missing': [{'name': 'ipc', 'why': 'no counters'}, {}]}");
    assert_json(json_at(root, "applications"),
                "[{'id': 'pid:1234', 'comm': 'program', 'runnable': 3.98, 'phase': 'parallel', 'class': 'HP',"
                "  'threads': [{'tid': 1240, 'comm': 'worker', 'class': 'HP', 'cpu': 1, 'target': 3, 'mask': '0-3',"
                "  'old_mask': '0-7', 'nice': 0, 'new_nice': -5, 'moves': true,"
                "  'reason': '4.0 runnable threads, more than 2'}]}]");
}

TEST_OF(a_machine_that_is_all_alike_has_no_slow_cpus, report_fixture_new(2, 0, 1))
{
    ASYM_AUTO_JSON json_t *root = parse_report(s);
    assert_json(json_at(root, "machine"),
                "{'asymmetric': false, 'slow': '', 'fast': '0-1', 'core_types': [{'source': 'none'}]}");
}

/* Each has its unit, and the value that it was set to, or its own and no auto. */
TEST_OF(settings_carry_their_units_and_what_was_set, one_program())
{
    static const char *const set[] = {"classify.hp_threshold=17", "enforce.pin=llc", "policy.pa.sp_boost=-3"};
    assert_int_equal(asym_settings_set(s->settings, "enforce.settle=1500us", "--set", NULL), 0);
    ASYM_AUTO_JSON json_t *root = parse_report(s);
    assert_json(json_at(root, "policy"),
                "{'name': 'pa', 'settings': {'hp_threshold': 3, 'amp_boost_ms': 1000, 'swap_period_ms': 100,"
                " 'fork_holdoff_ms': 10000, 'release_ms': 5000, 'settle_ms': 1.5, 'serial_max_threads': 2,"
                " 'hysteresis': 1, 'estimator': 'mean', 'pin': 'type', 'sp_boost': -5}}");
    assert_null(json_object_get(json_at(root, "policy.settings"), "amp_boost"));
    for (size_t i = 0; i < ASYM_LENGTH(set); i++)
        assert_int_equal(asym_settings_set(s->settings, set[i], "--set", NULL), 0);
    ASYM_AUTO_JSON json_t *after = parse_report(s);
    assert_json(json_at(after, "policy.settings"), "{'hp_threshold': 17, 'pin': 'llc', 'sp_boost': -3}");
}

TEST_OF(only_active_ones_are_applications_and_the_excluded_say_why, one_program())
{
    struct asym_plan_task *own = report_fixture_thread(s, "own", 1241, 0);
    own->target = -1;
    own->reason = asym_why(ASYM_WHY_OWN_MASK);
    struct asym_plan_task *idle = report_fixture_thread(s, "idle", 1242, 0);
    idle->target = -1;
    idle->reason = asym_why(ASYM_WHY_IDLE);
    report_fixture_app(s, "sleeper", 50, ASYM_PHASE_IDLE, ASYM_CLASS_NONE, 0.2);
    report_fixture_app(s, "kworker", 77, ASYM_PHASE_IDLE, ASYM_CLASS_NONE, 0.01)->excluded = asym_why(ASYM_WHY_KERNEL);
    ASYM_AUTO_JSON json_t *root = parse_report(s);
    assert_json(root, "{'applications': [{'threads': [{}]}], 'idle_applications': 1, 'excluded': ["
                      "{'id': 'tid:1241', 'pid': 1234, 'why': 'has an affinity of its own'}, "
                      "{'id': 'pid:77', 'comm': 'kworker', 'why': 'kernel thread'}]}");
}

TEST_OF(under_a_policy_that_steers_nothing_threads_stay_where_they_are, one_program())
{
    s->plan_tasks[0] = (struct asym_plan_task){.target = -1, .reason = &report_fixture_unsteered, .mask = &s->all};
    s->plan.n_moves = 0;
    struct asym_report r = report_fixture_report(s);
    r.policy = asym_policy_find("none");
    ASYM_AUTO_JSON json_t *root = parse(&r);
    assert_json(root, "{'applications': [{'threads': [{'target': 1, 'mask': '0-7', 'moves': false}]}],"
                      " 'excluded': []}");
    assert_null(json_object_get(json_at(root, "policy.settings"), "sp_boost"));
}

TEST(hostile_names_are_valid_utf8_and_escaped)
{
    static const struct {
        const char *raw, *escaped;
    } rows[] = {
        {") S 1\n2", ") S 1\\x0a2"},
        {"\xff\xfe", "\\xff\\xfe"},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"}, /* a surrogate */
        {"\xc0\xaf", "\\xc0\\xaf"},          /* overlong */
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"\"quote\"\\", "\"quote\"\\\\"},
        {"", ""},
    };
    struct report_fixture *s = report_fixture_new(4, 2, 16);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        report_fixture_app(s, rows[i].raw, 1, ASYM_PHASE_SERIAL, ASYM_CLASS_MP, 1);
        report_fixture_thread(s, rows[i].raw, 1, 0);
    }
    s->apps[0].cgroup = "/a\nb\xff";
    s->apps[1].n_procs = 9;
    ASYM_AUTO_JSON json_t *root = parse_report(s);
    json_t *apps = json_at(root, "applications"), *app;
    size_t i;
    assert_int_equal(json_array_size(apps), ASYM_LENGTH(rows));
    json_array_foreach(apps, i, app)
    {
        assert_string_equal(json_string_value(json_at(app, "comm")), rows[i].escaped);
        assert_string_equal(json_string_value(json_at(app, "threads.0.comm")), rows[i].escaped);
    }
    assert_string_equal(json_string_value(json_at(apps, "0.id")), "cgroup:/a\\x0ab\\xff");
    assert_json(json_at(apps, "1.processes"), "9");
    report_fixture_free(s);
}

TEST(what_is_not_finite_is_null)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < ASYM_LENGTH(odd); i++) {
        struct report_fixture *s = one_program();
        struct asym_report r = report_fixture_report(s);
        r.scan_cpu_us = r.observed_ms = odd[i];
        s->plan_apps[0].runnable = odd[i];
        ASYM_AUTO_JSON json_t *root = parse(&r);
        assert_json(root, "{'scan_cpu_us': null, 'applications': [{'runnable': null}]}");
        report_fixture_free(s);
    }
}

TEST_OF(numbers_are_rounded_to_what_was_measured, one_program())
{
    s->plan_apps[0].runnable = 1.0 / 3;
    const struct asym_report r = report_fixture_report(s);
    ASYM_AUTO_FREE char *printed = print(&r);
    assert_non_null(strstr(printed, "\"runnable\": 0.333,"));
}

TEST_OF(lists_of_a_thousand_odd_cpus_are_whole, report_fixture_new(1024, 512, 2))
{
    struct asym_mask odd = {0}, back;
    for (unsigned c = 1; c < 1024; c += 2)
        asym_mask_set(&odd, c);
    report_fixture_app(s, "app", 1, ASYM_PHASE_SERIAL, ASYM_CLASS_MP, 1);
    report_fixture_thread(s, "app", 1, 1);
    s->plan_tasks[0].mask = &odd;
    ASYM_AUTO_JSON json_t *root = parse_report(s);
    const char *cpus = json_string_value(json_at(root, "applications.0.threads.0.mask"));
    assert_int_equal(asym_mask_parse_list(cpus, strlen(cpus), &back), 0);
    assert_true(asym_mask_equal(&odd, &back));
}

TEST_OF(what_could_not_be_seen_is_there, one_program())
{
    s->snapshot.coverage = (struct asym_coverage){
        .n_procs = 5, .n_denied = 12, .hidepid = true, .process_events_why = "no"};
    ASYM_AUTO_JSON json_t *without_remark = parse_report(s);
    assert_null(json_object_get(json_at(without_remark, "coverage"), "procfs"));
    s->snapshot.coverage.remarks[ASYM_OBSERVER_PROCFS] = "The map was full 2 times.";
    ASYM_AUTO_JSON json_t *root = parse_report(s);
    assert_json(json_at(root, "coverage"), "{'procfs': 'The map was full 2 times.', 'processes': 5, 'denied': 12,"
                                           " 'hidepid': true, 'process_events': false, 'process_events_why': 'no'}");
}

TEST_OF(ten_thousand_threads_are_all_there, report_fixture_new(256, 128, 10000))
{
    for (int i = 0; i < 10000; i++) {
        if (i % 50 == 0)
            report_fixture_app(s, "big", i + 1, ASYM_PHASE_PARALLEL, ASYM_CLASS_HP, 50);
        report_fixture_steer(s, report_fixture_thread(s, "big", i + 1, i % 256), (i + 1) % 256, "0-127",
                             &report_fixture_many);
    }
    ASYM_AUTO_JSON json_t *root = parse_report(s);
    json_t *apps = json_at(root, "applications"), *app;
    size_t i;
    assert_int_equal(json_array_size(apps), 200);
    json_array_foreach(apps, i, app) assert_int_equal(json_array_size(json_at(app, "threads")), 50);
    assert_json(root, "{'moves': 10000}");
}

TEST_OF(a_full_disk_is_reported, one_program())
{
    const struct asym_report r = report_fixture_report(s);
    ASYM_AUTO_FCLOSE FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    setvbuf(full, NULL, _IONBF, 0);
    assert_true(asym_report_json(&r, full) < 0);
}

TEST_MAIN
