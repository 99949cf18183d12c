/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The answers about processes: under hidepid a user learns of the user's own, and an answer has a bound of threads. */

#include "daemon/asymd/service-internal.h"
#include "report/json.h"
#include "support/engine-fixture.h"
#include "support/json.h"
#include "support/tree.h"
#include "support/test.h"

/* Above all numbers that the kernel gives. */
#define FIRST_TID 5000000
#define N_THREADS 200

static struct asym_run run;
static struct asym_machine machine;
static struct asym_source source;
static struct asym_service service;
static struct tree tree;

static const struct asym_bus_caller ROOT = {.uid = 0, .is_root = true}, USER = {.uid = 2002}, OTHER = {.uid = 2003};

static int set_up(void **state)
{
    tree_make(&tree);
    tree_machine(&tree, "0", "0");
    run = (struct asym_run){.machine = &machine, .policy = &engine_fixture_policy_type};
    assert_int_equal(asym_settings_new(&run.settings), 0);
    service = (struct asym_service){.run = &run, .observer.source = &source};
    assert_int_equal(asym_service_control_open(&service), 0);
    return asym_root_open(tree.path, &run.root, NULL);
}

static int tear_down(void **state)
{
    asym_bus_report_forget(&service, UINT64_MAX);
    asym_service_control_close(&service);
    asym_settings_free(run.settings);
    asym_root_done(&run.root);
    tree_remove(&tree);
    return 0;
}

static void write_thread(int pid, int tid, unsigned start)
{
    char file[64];
    snprintf(file, sizeof file, "proc/%d/task/%d/stat", pid, tid);
    tree_write(
        &tree, file,
        "%d (x) S 1 10 10 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 %u 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0\n", tid,
        start);
}

/* Process 10 of user 2002, with the threads 10 and 11. */
static void write_process(unsigned start)
{
    tree_write(&tree, "proc/10/status", "Uid:\t2002\t2002\t2002\t2002\n");
    write_thread(10, 10, start);
    write_thread(10, 11, start + 7);
}

TEST_WITH(where_proc_hides_processes_only_the_owner_and_root_see_one, set_up, tear_down)
{
    const struct asym_taskid leader = {10, 10, 500}, thread = {11, 10, 507};
    write_process(500);
    assert_true(asym_bus_may_see(&service, &OTHER, &leader));
    service.hidepid = true;
    assert_false(asym_bus_may_see(&service, &OTHER, &leader));
    assert_false(asym_bus_may_see(&service, &OTHER, &thread));
    assert_true(asym_bus_may_see(&service, &USER, &leader));
    assert_true(asym_bus_may_see(&service, &USER, &thread));
    assert_true(asym_bus_may_see(&service, &ROOT, &leader));
}

/* asymd can see all processes, but that does not mean that the caller can. */
TEST_WITH(what_asymd_itself_can_see_does_not_matter, set_up, tear_down)
{
    const struct asym_taskid leader = {10, 10, 500};
    write_process(500);
    service.cycle.snapshot.coverage.hidepid = false;
    service.hidepid = true;
    assert_false(asym_bus_may_see(&service, &OTHER, &leader));
    service.cycle.snapshot.coverage.hidepid = true;
    service.hidepid = false;
    assert_true(asym_bus_may_see(&service, &OTHER, &leader));
}

/* A user starts processes until one has the number of a dead one. */
TEST_WITH(a_number_that_the_kernel_has_reused_shows_nothing, set_up, tear_down)
{
    static const struct asym_taskid others[] = {
        {10, 10, 499}, {11, 10, 500}, {12, 10, 500}, {13, 13, 500}, {0, 0, 500}};
    write_process(500);
    service.hidepid = true;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_false(asym_bus_may_see(&service, &USER, &others[i]));
        assert_true(asym_bus_may_see(&service, &ROOT, &others[i]));
    }
}

/* The next snapshots have a decision for each thread: asymd has set its mask. */
static bool is_steering;

/* A snapshot with this program, which has these threads. */
static void record(const struct asym_taskid *id, const struct asym_task *tasks, const struct asym_plan_task *plans,
                   size_t n)
{
    static asym_usec now = 5;
    const struct asym_plan_app plan_app = {.phase = ASYM_PHASE_PARALLEL};
    const struct asym_proc proc = {.id = *id};
    const struct asym_app app = {.id = *id, .n_tasks = (uint32_t)n, .n_threads = (uint32_t)n};
    const struct asym_snapshot s = {.now = now++,
                                    .machine = &machine,
                                    .apps = &app,
                                    .procs = &proc,
                                    .tasks = tasks,
                                    .n_apps = 1,
                                    .n_procs = 1,
                                    .n_tasks = n};
    const struct asym_plan plan = {.apps = &plan_app, .tasks = plans, .n_apps = 1, .n_tasks = n};
    ASYM_AUTO_FREE struct asym_action *actions = calloc(n, sizeof *actions);
    ASYM_AUTO_FREE struct asym_outcome *outcomes = calloc(n, sizeof *outcomes);
    assert_true(actions && outcomes);
    for (size_t i = 0; i < n; i++)
        actions[i] = (struct asym_action){.id = tasks[i].id, .reason = plans[i].reason};
    const struct asym_feedback feedback = {&s, &plan, actions, outcomes, is_steering ? n : 0};
    asym_monitor_record(service.control.monitor, &feedback);
}

/* A program whose thread i ran a share that no other has; the order of the shares is not that of the numbers. */
static void record_program(size_t n)
{
    ASYM_AUTO_FREE struct asym_task *tasks = calloc(n, sizeof *tasks);
    ASYM_AUTO_FREE struct asym_plan_task *plans = calloc(n, sizeof *plans);
    const struct asym_taskid id = {FIRST_TID, FIRST_TID, 1};
    assert_true(tasks && plans);
    for (size_t i = 0; i < n; i++) {
        tasks[i].id = (struct asym_taskid){FIRST_TID + (int32_t)i, FIRST_TID, 1};
        tasks[i].running = (double)(i * 37 % n) / (double)n;
        plans[i].reason = &engine_fixture_placed;
        plans[i].target = -1;
    }
    record(&id, tasks, plans, n);
}

static asym_usec instant = 100 * ASYM_SEC;

/* Returns a report; NULL: asymd does not know the process. */
static json_t *report(const struct asym_bus_caller *caller, const char *topic, uint64_t argument)
{
    ASYM_AUTO_FREE char *text = NULL;
    const int r = asym_bus_report(&service, caller, topic, argument, instant, &text);
    assert_true(r == 0 || r == -ESRCH);
    json_t *json = text ? json_loads(text, 0, NULL) : NULL;
    assert_true(r < 0 || json);
    return json;
}

/* Checks the threads of the report on the program: most busy first, and the number of the others. */
static void expect_threads(size_t n_listed, uint32_t expected_left_out)
{
    ASYM_AUTO_JSON json_t *program = report(&ROOT, "program", FIRST_TID);
    json_t *threads, *thread;
    double before = 1;
    int left_out;
    size_t i;
    assert_int_equal(json_unpack(program, "{s:i, s:o}", "own_threads_left_out", &left_out, "own_threads", &threads), 0);
    assert_int_equal(left_out, expected_left_out);
    json_array_foreach(threads, i, thread)
    {
        const double running = json_number_value(json_object_get(thread, "running"));
        assert_true(running < before);
        before = running;
    }
    assert_int_equal(json_array_size(threads), n_listed);
    /* The shares are 0/n, 1/n and so on, so the least of the busiest says that no busier one is left out. */
    const double least = (double)expected_left_out / (double)(n_listed + expected_left_out);
    assert_true(before > least - 0.001 && before < least + 0.001);
}

TEST_WITH(the_busiest_threads_are_listed_and_the_others_counted, set_up, tear_down)
{
    record_program(N_THREADS);
    expect_threads(ASYM_BUS_OWN_THREADS, N_THREADS - ASYM_BUS_OWN_THREADS);
}

TEST_WITH(of_few_threads_none_is_left_out, set_up, tear_down)
{
    record_program(ASYM_BUS_OWN_THREADS);
    expect_threads(ASYM_BUS_OWN_THREADS, 0);
}

/* Returns the user of the application of process 10, or 0: it is not listed. */
static uint32_t listed_uid(const struct asym_bus_caller *caller, unsigned start)
{
    const struct asym_task task = {.id = (struct asym_taskid){10, 10, start}};
    const struct asym_plan_task plan = {.target = -1, .reason = &engine_fixture_placed};
    record(&(struct asym_taskid){10, 10, start}, &task, &plan, 1);
    instant += ASYM_BUS_KEEP;
    ASYM_AUTO_JSON json_t *program = report(caller, "program", 10);
    return program ? (uint32_t)json_integer_value(json_object_get(program, "uid")) : 0;
}

/* asymd's list has a program that has ended; the kernel has given its number to a process of another user. */
TEST_WITH(the_user_of_an_application_is_not_that_of_a_later_process, set_up, tear_down)
{
    const uint32_t none = UINT32_MAX, not_listed = 0;
    write_process(500);
    assert_int_equal(listed_uid(&OTHER, 500), 2002);
    assert_int_equal(listed_uid(&OTHER, 499), none);
    service.hidepid = true;
    assert_int_equal(listed_uid(&USER, 500), 2002);
    assert_int_equal(listed_uid(&USER, 499), not_listed);
    assert_int_equal(listed_uid(&OTHER, 500), not_listed);
    assert_int_equal(listed_uid(&ROOT, 500), 2002);
    assert_int_equal(listed_uid(&ROOT, 499), none);
}

/* D-Bus refuses bytes that are no UTF-8, and some characters: the text of a report is ASCII. */
TEST_WITH(names_of_any_bytes_are_in_a_report, set_up, tear_down)
{
    static const char *const rows[][2] = {{"gr\xc3\xbc\xc3\x9f\t", "\"comm\":\"gr\\u00FC\\u00DF\\t\""},
                                          {"\xef\xbf\xbf", "\"comm\":\"\\uFFFF\""},
                                          {"\xff", "\"comm\":\"\\\\xff\""}};
    const struct asym_plan_task plan = {.target = -1, .reason = &engine_fixture_placed};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_task task = {.id = {10, 10, i}};
        ASYM_AUTO_FREE char *text = NULL;
        snprintf(task.comm, sizeof task.comm, "%s", rows[i][0]);
        record(&task.id, &task, &plan, 1);
        assert_int_equal(asym_bus_report(&service, &ROOT, "thread", 10, instant, &text), 0);
        assert_non_null(strstr(text, rows[i][1]));
    }
}

static bool is_crowded(const struct asym_bus_caller *caller)
{
    ASYM_AUTO_JSON json_t *program = report(caller, "program", FIRST_TID);
    return json_integer_value(json_object_get(program, "own_threads_left_out")) > 0;
}

/* Users with one view share a report for a second, and an order ends that. root gets each report anew. */
TEST_WITH(a_report_for_users_is_kept_for_a_second, set_up, tear_down)
{
    record_program(ASYM_BUS_OWN_THREADS);
    assert_false(is_crowded(&USER));
    record_program(ASYM_BUS_OWN_THREADS + 1);
    assert_false(is_crowded(&USER));
    assert_false(is_crowded(&OTHER));
    assert_true(is_crowded(&ROOT));
    instant += ASYM_BUS_KEEP - 1;
    assert_false(is_crowded(&USER));
    instant++;
    assert_true(is_crowded(&USER));
    record_program(ASYM_BUS_OWN_THREADS);
    assert_true(is_crowded(&USER));
    asym_bus_report_forget(&service, UINT64_MAX);
    assert_false(is_crowded(&USER));
}

/* The job of process 10 of user 2002 has process 12 of user 2003, too. asymd has steered a thread of each. */
static void record_job_of_two_users(void)
{
    const struct asym_task tasks[] = {{.id = {10, 10, 500}}, {.id = {12, 12, 512}}};
    const struct asym_plan_task plan = {.target = -1, .reason = &engine_fixture_placed}, plans[] = {plan, plan};
    write_process(500);
    tree_write(&tree, "proc/12/status", "Uid:\t2003\t2003\t2003\t2003\n");
    write_thread(12, 12, 512);
    is_steering = true;
    record(&tasks[0].id, tasks, plans, 2);
    is_steering = false;
}

static size_t count_listed(const struct asym_bus_caller *caller, const char *topic, uint64_t argument)
{
    ASYM_AUTO_JSON json_t *json = report(caller, topic, argument);
    const json_t *own_threads = json_object_get(json, "own_threads");
    const json_t *why = json_array_get(json_object_get(json, "explanations"), 0);
    return json_array_size(own_threads ? own_threads : json_object_get(why ? why : json, "decisions"));
}

TEST_WITH(of_a_job_of_two_users_each_learns_of_the_own_threads, set_up, tear_down)
{
    static const char *const topics[] = {"program", "why", "decisions"};
    record_job_of_two_users();
    for (size_t i = 0; i < ASYM_LENGTH(topics); i++) {
        const uint64_t argument = strcmp(topics[i], "decisions") == 0 ? 0 : 10;
        service.hidepid = false;
        assert_int_equal(count_listed(&USER, topics[i], argument), 2);
        service.hidepid = true;
        assert_int_equal(count_listed(&USER, topics[i], argument), 1);
        assert_int_equal(count_listed(&ROOT, topics[i], argument), 2);
    }
}

/* Returns the one sentence of the answer, which has no threads. */
static const char *asked_for_waits(const struct asym_bus_caller *caller)
{
    static char text[512];
    ASYM_AUTO_JSON json_t *json = report(caller, "waits", 10);
    assert_non_null(json);
    assert_int_equal(json_array_size(json_object_get(json, "threads")), 0);
    assert_int_equal(json_array_size(json_object_get(json, "sentences")), 1);
    assert_false(asym_json_get_flag(json, "measuring"));
    snprintf(text, sizeof text, "%s", json_string_value(json_array_get(json_object_get(json, "sentences"), 0)));
    return text;
}

/* That stands nowhere in /proc, so it does not matter what /proc shows. */
TEST_WITH(who_waits_for_whom_is_for_root_and_for_the_user_of_the_program, set_up, tear_down)
{
    record_job_of_two_users();
    service.hidepid = false;
    assert_non_null(strstr(asked_for_waits(&OTHER), "only root and the user of a program can ask"));
    assert_non_null(strstr(asked_for_waits(&USER), "observes without BPF programs"));
    assert_non_null(strstr(asked_for_waits(&ROOT), "observes without BPF programs"));
    service.hidepid = true;
    assert_null(report(&OTHER, "waits", 10));
    assert_null(report(&ROOT, "waits", 4711));
}

/* Both ask at the same instant. */
TEST_WITH(where_proc_hides_processes_a_report_is_kept_for_one_user, set_up, tear_down)
{
    record_job_of_two_users();
    service.hidepid = true;
    ASYM_AUTO_JSON json_t *shown = report(&USER, "program", 10), *hidden = report(&OTHER, "program", 10);
    assert_non_null(shown);
    assert_null(hidden);
}

static size_t count_kept(void)
{
    size_t n = 0;
    for (size_t i = 0; i < ASYM_BUS_KEPT; i++)
        n += service.kept[i].text != NULL;
    return n;
}

/* Reports are kept by topic and argument. A ninth takes the place of the oldest; decisions and root's reports have none. */
TEST_WITH(a_few_reports_are_kept, set_up, tear_down)
{
    char *text = NULL;
    record_program(ASYM_BUS_OWN_THREADS);
    json_decref(report(&USER, "decisions", 0));
    json_decref(report(&ROOT, "program", FIRST_TID));
    assert_int_equal(count_kept(), 0);
    for (uint64_t i = 0; i <= ASYM_BUS_KEPT; i++, instant++) {
        json_decref(report(&USER, "thread", FIRST_TID + i));
        assert_int_equal(count_kept(), ASYM_MIN(i + 1, (uint64_t)ASYM_BUS_KEPT));
    }
    for (size_t i = 0; i < ASYM_BUS_KEPT; i++)
        assert_int_not_equal(service.kept[i].argument, FIRST_TID);
    assert_int_equal(asym_bus_report(&service, &USER, "counters", 1, instant, &text), -EINVAL);
    assert_int_equal(asym_bus_report(&service, &USER, "status", 1, instant, &text), -EINVAL);
    assert_int_equal(asym_bus_report(&service, &USER, "no topic", 0, instant, &text), -EINVAL);
    assert_int_equal(count_kept(), ASYM_BUS_KEPT);
    asym_bus_report_forget(&service, instant - 1);
    assert_int_equal(count_kept(), 1);
}

/* More decisions than one report has, each on a thread of its own. */
TEST_WITH(decisions_come_in_batches_and_the_lost_ones_are_counted, set_up, tear_down)
{
    static const struct {
        uint64_t since, first;
        size_t n;
        uint64_t next, left;
    } rows[] = {{0, 1, ASYM_BUS_DECISIONS, ASYM_BUS_DECISIONS, 6},
                {ASYM_BUS_DECISIONS, ASYM_BUS_DECISIONS + 1, 6, ASYM_BUS_DECISIONS + 6, 0},
                {ASYM_BUS_DECISIONS + 6, 0, 0, ASYM_BUS_DECISIONS + 6, 0},
                {ASYM_BUS_DECISIONS + 7, 0, 0, ASYM_BUS_DECISIONS + 6, 0}};
    service.control.started = 77;
    is_steering = true;
    record_program(ASYM_BUS_DECISIONS + 6);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ASYM_AUTO_JSON json_t *json = report(&USER, "decisions", rows[i].since);
        json_t *list = json_object_get(json, "decisions");
        const json_t *first = json_object_get(json_array_get(list, 0), "tid");
        assert_int_equal(json_array_size(list), rows[i].n);
        assert_int_equal(first ? json_integer_value(first) - FIRST_TID + 1 : 0, rows[i].first);
        assert_json(json, "{'next': %d, 'left': %d, 'lost': 0, 'start_us': 77}", (int)rows[i].next, (int)rows[i].left);
    }
    /* The monitor keeps the last decisions of each thread. */
    for (int i = 0; i < ASYM_MONITOR_DECISIONS; i++)
        record_program(1);
    is_steering = false;
    ASYM_AUTO_JSON json_t *json = report(&USER, "decisions", 0);
    assert_json(json, "{'next': %d, 'lost': 1}", ASYM_BUS_DECISIONS + 1);
}

TEST_MAIN
