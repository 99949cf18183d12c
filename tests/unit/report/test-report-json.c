/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plan as JSON (asymd.plan/1) has every key and type that the schema promises. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/macro.h"
#include "base/mask.h"
#include "report/json.h"
#include "report/report.h"
#include "support/report-fixture.h"
#include "support/test.h"

static struct asym_report report_of(const struct report_fixture *s)
{
    return (struct asym_report){
        .snapshot = &s->snapshot,
        .plan = &s->plan,
        .policy = asym_policy_find("pa"),
        .settings = s->settings,
        .observed_ms = 500.24,
        .scan_cpu_us = 812.34,
    };
}

static char *print(const struct asym_report *r)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(asym_report_json(r, out), 0);
    fclose(out);
    assert_int_equal(text[strlen(text) - 1], '\n');
    return text;
}

static json_t *parse(const struct asym_report *r)
{
    ASYM_AUTO_FREE char *text = print(r);
    json_error_t error;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!json)
        fail_msg("line %d: %s in:\n%s", error.line, error.text, text);
    return json;
}

static json_t *parse_report(const struct report_fixture *s)
{
    const struct asym_report r = report_of(s);
    return parse(&r);
}

/* Returns the member with this name, which must exist. */
static json_t *get(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    if (!value)
        fail_msg("no key '%s'", key);
    return value;
}

static const char *text(json_t *object, const char *key)
{
    json_t *value = get(object, key);
    if (!json_is_string(value))
        fail_msg("'%s' is no string", key);
    return json_string_value(value);
}

static json_int_t integer(json_t *object, const char *key)
{
    json_t *value = get(object, key);
    if (!json_is_integer(value))
        fail_msg("'%s' is no whole number", key);
    return json_integer_value(value);
}

static double number(json_t *object, const char *key)
{
    json_t *value = get(object, key);
    if (!json_is_number(value))
        fail_msg("'%s' is no number", key);
    return json_number_value(value);
}

static bool truth(json_t *object, const char *key)
{
    json_t *value = get(object, key);
    if (!json_is_boolean(value))
        fail_msg("'%s' is no boolean", key);
    return json_is_true(value);
}

static json_t *list(json_t *object, const char *key, size_t n)
{
    json_t *value = get(object, key);
    assert_true(json_is_array(value));
    if (json_array_size(value) != n)
        fail_msg("'%s' has %zu entries, not %zu", key, json_array_size(value), n);
    return value;
}

static void assert_texts(json_t *array, const char *const *texts)
{
    for (size_t i = 0; texts[i]; i++)
        assert_string_equal(json_string_value(json_array_get(array, i)), texts[i]);
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

TEST_OF(the_machine_is_as_promised, one_program())
{
    ASYM_AUTO_JSON json_t *root = parse_report(s);
    assert_string_equal(text(root, "schema"), "asymd.plan/1");
    json_t *m = get(root, "machine");
    assert_int_equal(integer(m, "cpus"), 8);
    assert_true(truth(m, "asymmetric"));
    assert_string_equal(text(m, "fast"), "4-7");
    assert_string_equal(text(m, "slow"), "0-3");
    json_t *types = list(m, "core_types", 2), *fast = json_array_get(types, 0);
    assert_string_equal(text(fast, "name"), "fast");
    assert_string_equal(text(fast, "cpus"), "4-7");
    assert_string_equal(text(fast, "source"), "cpufreq");
    assert_true(number(fast, "speed") == 2.0);
    assert_true(number(json_array_get(types, 1), "speed") == 1.0);
    assert_texts(list(m, "llc", 2), (const char *const[]){"0-3", "4-7", NULL});
    assert_texts(list(m, "smt", 4), (const char *const[]){"0-1", "2-3", "4-5", "6-7", NULL});
    assert_texts(list(m, "numa", 1), (const char *const[]){"0-7", NULL});
}

TEST_OF(a_machine_that_is_all_alike_has_no_slow_cpus, report_fixture_new(2, 0, 1))
{
    ASYM_AUTO_JSON json_t *root = parse_report(s);
    json_t *m = get(root, "machine");
    assert_false(truth(m, "asymmetric"));
    assert_string_equal(text(m, "slow"), "");
    assert_string_equal(text(m, "fast"), "0-1");
    assert_string_equal(text(json_array_get(list(m, "core_types", 1), 0), "source"), "none");
}

TEST_OF(settings_carry_their_units_and_no_auto, one_program())
{
    struct asym_error err;
    assert_int_equal(asym_settings_set(s->settings, "enforce.settle=1500us", "--set", &err), 0);
    ASYM_AUTO_JSON json_t *root = parse_report(s);
    json_t *policy = get(root, "policy"), *settings = get(policy, "settings");
    assert_string_equal(text(policy, "name"), "pa");
    assert_int_equal(integer(settings, "hp_threshold"), 3);
    assert_int_equal(integer(settings, "amp_boost_ms"), 1000);
    assert_int_equal(integer(settings, "swap_period_ms"), 100);
    assert_int_equal(integer(settings, "fork_holdoff_ms"), 10000);
    assert_int_equal(integer(settings, "release_ms"), 5000);
    assert_true(number(settings, "settle_ms") == 1.5);
    assert_int_equal(integer(settings, "serial_max_threads"), 2);
    assert_int_equal(integer(settings, "hysteresis"), 1);
    assert_string_equal(text(settings, "estimator"), "mean");
    assert_string_equal(text(settings, "pin"), "type");
    assert_int_equal(integer(settings, "sp_boost"), -5);
    assert_null(json_object_get(settings, "amp_boost"));
}

TEST_OF(settings_that_were_set_stand_there, one_program())
{
    struct asym_error err;
    static const char *const set[] = {"classify.hp_threshold=17", "enforce.pin=llc", "policy.pa.sp_boost=-3"};
    for (size_t i = 0; i < ASYM_LENGTH(set); i++)
        assert_int_equal(asym_settings_set(s->settings, set[i], "--set", &err), 0);
    ASYM_AUTO_JSON json_t *root = parse_report(s);
    json_t *settings = get(get(root, "policy"), "settings");
    assert_int_equal(integer(settings, "hp_threshold"), 17);
    assert_string_equal(text(settings, "pin"), "llc");
    assert_int_equal(integer(settings, "sp_boost"), -3);
}

TEST_OF(signals_are_there_or_missing_with_why, one_program())
{
    ASYM_AUTO_JSON json_t *root = parse_report(s);
    json_t *signals = get(root, "signals");
    assert_texts(list(signals, "available", 3), (const char *const[]){"runnable", "profile", "smt", NULL});
    json_t *missing = list(signals, "missing", 2);
    assert_string_equal(text(json_array_get(missing, 0), "name"), "ipc");
    assert_string_equal(text(json_array_get(missing, 0), "why"), "no counters");
}

TEST_OF(an_application_and_its_thread_are_as_promised, one_program())
{
    ASYM_AUTO_JSON json_t *root = parse_report(s);
    json_t *app = json_array_get(list(root, "applications", 1), 0);
    assert_string_equal(text(app, "id"), "pid:1234");
    assert_string_equal(text(app, "comm"), "program");
    assert_true(number(app, "runnable") == 3.98);
    assert_string_equal(text(app, "phase"), "parallel");
    assert_string_equal(text(app, "class"), "HP");
    json_t *t = json_array_get(list(app, "threads", 1), 0);
    assert_int_equal(integer(t, "tid"), 1240);
    assert_string_equal(text(t, "comm"), "worker");
    assert_string_equal(text(t, "class"), "HP");
    assert_int_equal(integer(t, "cpu"), 1);
    assert_int_equal(integer(t, "target"), 3);
    assert_string_equal(text(t, "mask"), "0-3");
    assert_string_equal(text(t, "old_mask"), "0-7");
    assert_int_equal(integer(t, "nice"), 0);
    assert_int_equal(integer(t, "new_nice"), -5);
    assert_true(truth(t, "moves"));
    assert_string_equal(text(t, "reason"), "4.0 runnable threads, more than 2");
    assert_int_equal(integer(root, "moves"), 1);
    assert_true(number(root, "observed_ms") == 500.2);
    assert_true(number(root, "scan_cpu_us") == 812.3);
    list(root, "excluded", 0);
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
    list(json_array_get(list(root, "applications", 1), 0), "threads", 1);
    json_t *excluded = list(root, "excluded", 2), *thread = json_array_get(excluded, 0),
           *app = json_array_get(excluded, 1);
    assert_string_equal(text(app, "id"), "pid:77");
    assert_string_equal(text(app, "comm"), "kworker");
    assert_string_equal(text(app, "why"), "kernel thread");
    assert_string_equal(text(thread, "id"), "tid:1241");
    assert_int_equal(integer(thread, "pid"), 1234);
    assert_string_equal(text(thread, "why"), "has an affinity of its own");
    assert_int_equal(integer(root, "idle_applications"), 1);
}

TEST_OF(under_a_policy_that_steers_nothing_threads_stay_where_they_are, one_program())
{
    s->plan_tasks[0] = (struct asym_plan_task){.target = -1, .reason = &report_fixture_unsteered, .mask = &s->all};
    s->plan.n_moves = 0;
    struct asym_report r = report_of(s);
    r.policy = asym_policy_find("none");
    ASYM_AUTO_JSON json_t *root = parse(&r);
    json_t *t = json_array_get(get(json_array_get(list(root, "applications", 1), 0), "threads"), 0);
    assert_int_equal(integer(t, "target"), 1);
    assert_string_equal(text(t, "mask"), "0-7");
    assert_false(truth(t, "moves"));
    list(root, "excluded", 0);
    assert_null(json_object_get(get(get(root, "policy"), "settings"), "sp_boost"));
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
    json_t *apps = list(root, "applications", ASYM_LENGTH(rows));
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        json_t *app = json_array_get(apps, i);
        assert_string_equal(text(app, "comm"), rows[i].escaped);
        assert_string_equal(text(json_array_get(get(app, "threads"), 0), "comm"), rows[i].escaped);
    }
    assert_string_equal(text(json_array_get(apps, 0), "id"), "cgroup:/a\\x0ab\\xff");
    assert_int_equal(json_integer_value(get(json_array_get(apps, 1), "processes")), 9);
    report_fixture_free(s);
}

TEST(what_is_not_finite_is_null)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < ASYM_LENGTH(odd); i++) {
        struct report_fixture *s = one_program();
        struct asym_report r = report_of(s);
        r.scan_cpu_us = r.observed_ms = odd[i];
        s->plan_apps[0].runnable = odd[i];
        ASYM_AUTO_JSON json_t *root = parse(&r);
        assert_true(json_is_null(get(root, "scan_cpu_us")));
        assert_true(json_is_null(get(json_array_get(get(root, "applications"), 0), "runnable")));
        report_fixture_free(s);
    }
}

TEST_OF(numbers_are_rounded_to_what_was_measured, one_program())
{
    s->plan_apps[0].runnable = 1.0 / 3;
    const struct asym_report r = report_of(s);
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
    const char *cpus = text(json_array_get(get(json_array_get(get(root, "applications"), 0), "threads"), 0), "mask");
    assert_int_equal(asym_mask_parse_list(cpus, strlen(cpus), &back), 0);
    assert_true(asym_mask_equal(&odd, &back));
}

TEST_OF(what_could_not_be_seen_is_there, one_program())
{
    s->snapshot.coverage = (struct asym_coverage){
        .n_procs = 5, .n_denied = 12, .hidepid = true, .process_events_why = "no"};
    ASYM_AUTO_JSON json_t *without_remark = parse_report(s);
    assert_null(json_object_get(get(without_remark, "coverage"), "procfs"));
    s->snapshot.coverage.remarks[ASYM_OBSERVER_PROCFS] = "The map was full 2 times.";
    ASYM_AUTO_JSON json_t *root = parse_report(s);
    json_t *coverage = get(root, "coverage");
    assert_string_equal(text(coverage, "procfs"), "The map was full 2 times.");
    assert_int_equal(integer(coverage, "processes"), 5);
    assert_int_equal(integer(coverage, "denied"), 12);
    assert_true(truth(coverage, "hidepid"));
    assert_false(truth(coverage, "process_events"));
    assert_string_equal(text(coverage, "process_events_why"), "no");
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
    json_t *apps = list(root, "applications", 200);
    for (size_t i = 0; i < 200; i++)
        list(json_array_get(apps, i), "threads", 50);
    assert_int_equal(integer(root, "moves"), 10000);
}

TEST_OF(a_full_disk_is_reported, one_program())
{
    const struct asym_report r = report_of(s);
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    setvbuf(full, NULL, _IONBF, 0);
    assert_true(asym_report_json(&r, full) < 0);
    fclose(full);
}

TEST_MAIN
