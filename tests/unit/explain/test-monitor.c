/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The monitor's memory of cycles that the engine has planned and the test has carried out, and the changes of class that have a
 * line in the log.
 */
#include "support/captured-log.h"
#include "support/monitor-fixture.h"
#include "support/test.h"

static void run_times(struct monitor_fixture *f, unsigned n, asym_usec dt)
{
    for (unsigned i = 0; i < n; i++)
        run(f, dt);
}

static struct asym_monitor_totals totals(const struct monitor_fixture *f)
{
    struct asym_monitor_totals t;
    asym_monitor_totals(f->m, &t);
    return t;
}

TEST_F(a_steered_thread_is_known_with_its_class_reason_and_cpu)
{
    struct engine_fixture_thread *t = engine_fixture_thread(&f->w, engine_fixture_proc(&f->w, 100), 100, 5);
    t->task.cpu = 2;
    memcpy(t->task.comm, "gzip", 5);
    run(f, TICK);
    const asym_usec began = f->w.now;
    run_times(f, 5, TICK);
    const struct asym_monitor_thread *known = asym_monitor_thread_of(f->m, 100);
    assert_non_null(known);
    assert_string_equal(known->comm, "gzip");
    assert_int_equal(known->target, 5);
    assert_int_equal(known->cpu, 2);
    assert_ptr_equal(known->reason, &engine_fixture_placed);
    assert_int_equal(known->reason_since, began);
    assert_int_equal(known->class, ASYM_CLASS_MP);
    assert_int_equal(known->class_since, began);
    assert_int_equal(known->seen, f->w.now);
    assert_null(asym_monitor_thread_of(f->m, 101));
    const struct asym_monitor_app *app = asym_monitor_app_of(f->m, 100);
    assert_non_null(app);
    assert_int_equal(app->n_steered, 1);
    assert_int_equal(app->n_fast, 1);
    assert_int_equal(app->phase, ASYM_PHASE_SERIAL);
    assert_ptr_equal(app->reason, &engine_fixture_placed);
    assert_ptr_equal(asym_monitor_app_next(f->m, &(size_t){0}), app);
    assert_null(asym_monitor_app_next(f->m, &(size_t){1}));
    const struct asym_monitor_cpu *cpu = asym_monitor_cpu_of(f->m, 2);
    assert_int_equal(cpu->last.tid, 100);
    assert_string_equal(cpu->comm, "gzip");
    assert_true(cpu->busy == 1);
    assert_int_equal(asym_monitor_cpu_of(f->m, 5)->threads, 1);
    assert_int_equal(asym_monitor_cpu_of(f->m, 5)->last.tid, 0);
}

TEST_F(the_last_ten_decisions_stand_newest_first)
{
    struct asym_monitor_decision d[ASYM_MONITOR_DECISIONS];
    f->w.config.policy = &engine_fixture_policy_cpu;
    assert_int_equal(asym_engine_configure(f->w.engine, &f->w.config), 0);
    struct engine_fixture_thread *t = engine_fixture_thread(&f->w, engine_fixture_proc(&f->w, 100), 100, 0);
    for (int i = 0; i < 13; i++) {
        engine_fixture_order(&f->w, 100, 1 + i % 2, false);
        run(f, TICK);
        t->task.cpu = 1 + i % 2;
    }
    engine_fixture_order(&f->w, 100, -1, false);
    run(f, TICK);
    const struct asym_monitor_thread *known = asym_monitor_thread_of(f->m, 100);
    assert_int_equal(asym_monitor_decisions(f->m, known, d), 10);
    assert_int_equal(d[0].what, ASYM_MONITOR_RELEASE);
    assert_int_equal(d[0].to, -1);
    assert_int_equal(d[0].from, 1);
    assert_int_equal(d[0].time, f->w.now);
    assert_ptr_equal(d[0].reason, &engine_fixture_unsteered);
    for (size_t i = 1; i < 10; i++) {
        assert_int_equal(d[i].what, ASYM_MONITOR_STEER);
        assert_int_equal(d[i].time, f->w.now - i * TICK);
        assert_int_equal(d[i].to, i % 2 ? 1 : 2);
        assert_int_equal(d[i].from, i % 2 ? 2 : 1);
    }
    assert_int_equal(known->target, -1);
    assert_int_equal(asym_monitor_app_of(f->m, 100)->moves, 12);
    const struct asym_monitor_totals sum = totals(f);
    assert_int_equal(sum.changes, 14);
    assert_int_equal(sum.changes_last_minute, 14);
    assert_int_equal(sum.actions[ASYM_ACTION_STEER][ASYM_OUTCOME_DONE], 13);
    assert_int_equal(sum.actions[ASYM_ACTION_RELEASE][ASYM_OUTCOME_DONE], 1);
    assert_int_equal(sum.n_cycles, 14);
}

TEST_F(a_thread_is_left_alone_since_its_mask_was_changed)
{
    struct engine_fixture_thread *t = engine_fixture_thread(&f->w, engine_fixture_proc(&f->w, 100), 100, 5);
    run(f, TICK);
    t->mask = engine_fixture_cpus("3");
    run_times(f, 4, TICK);
    struct asym_monitor_decision d[ASYM_MONITOR_DECISIONS];
    const struct asym_monitor_thread *known = asym_monitor_thread_of(f->m, 100);
    assert_ptr_equal(known->reason, asym_why(ASYM_WHY_FOREIGN));
    assert_int_equal(asym_monitor_decisions(f->m, known, d), 2);
    assert_int_equal(d[0].what, ASYM_MONITOR_LEAVE_ALONE);
    assert_ptr_equal(d[0].reason, asym_why(ASYM_WHY_FOREIGN));
    const asym_usec since = known->reason_since;
    assert_int_equal(d[0].time, since);
    assert_int_equal(totals(f).left_alone, 1);
    /* it sleeps for an hour, and this is remembered */
    t->listed = false;
    run_times(f, 360, 10 * ASYM_SEC);
    known = asym_monitor_thread_of(f->m, 100);
    assert_non_null(known);
    assert_int_equal(known->reason_since, since);
}

TEST_F(a_refusal_counts_as_left_alone_and_a_retry_as_nothing)
{
    engine_fixture_thread(&f->w, engine_fixture_proc(&f->w, 100), 100, 5);
    engine_fixture_step(&f->w, TICK);
    engine_fixture_answer(&f->w, ASYM_OUTCOME_RETRY, -EAGAIN);
    record(f);
    assert_int_equal(totals(f).changes, 0);
    assert_int_equal(totals(f).actions[ASYM_ACTION_STEER][ASYM_OUTCOME_RETRY], 1);
    engine_fixture_step(&f->w, TICK);
    engine_fixture_answer(&f->w, ASYM_OUTCOME_HANDS_OFF, -EPERM);
    record(f);
    struct asym_monitor_decision d[ASYM_MONITOR_DECISIONS];
    const struct asym_monitor_thread *known = asym_monitor_thread_of(f->m, 100);
    assert_int_equal(asym_monitor_decisions(f->m, known, d), 1);
    assert_int_equal(d[0].what, ASYM_MONITOR_LEAVE_ALONE);
    assert_ptr_equal(d[0].reason, asym_why(ASYM_WHY_DENIED));
    assert_int_equal((int)d[0].figure[0], EPERM);
    assert_int_equal(totals(f).changes, 0);
    assert_ptr_equal(known->reason, asym_why(ASYM_WHY_DENIED));
    assert_int_equal(known->target, -1);
}

TEST_F(shares_and_moves_are_of_the_last_minute)
{
    struct engine_fixture_thread *t = engine_fixture_thread(&f->w, engine_fixture_proc(&f->w, 100), 100, 5);
    t->task.cpu = 1; /* a slow CPU */
    run_times(f, 30, ASYM_SEC);
    t->task.cpu = 5;
    run_times(f, 10, ASYM_SEC);
    const struct asym_monitor_app *app = asym_monitor_app_of(f->m, 100);
    assert_float_equal(app->fast_share, 0.25, 1e-6);
    assert_true(app->running == 1);
    run_times(f, 60, ASYM_SEC);
    assert_float_equal(app->fast_share, 1, 1e-6);
    engine_fixture_order(&f->w, 100, 6, false);
    run(f, ASYM_SEC);
    assert_int_equal(app->moves, 1);
    assert_int_equal(totals(f).changes_last_minute, 0); /* the mask of the type stays */
    run_times(f, 61, ASYM_SEC);
    assert_int_equal(app->moves, 0);
    /* a refresh repeats the shares of the last snapshot */
    t->task.cpu = 1;
    run(f, 30 * ASYM_SEC);
    const double share = app->fast_share;
    for (int i = 0; i < 10; i++) {
        engine_fixture_run(&f->w, 1);
        f->w.snapshot.refreshed = true;
        f->w.snapshot.interval = 30 * ASYM_SEC;
        record(f);
    }
    assert_float_equal(app->fast_share, share, 1e-6);
    assert_int_equal(totals(f).n_prompt, 10);
}

/* The time with one runnable thread, by the time with any (Saez 2010, 3.1). */
TEST_F(the_sequential_part_is_of_the_last_minute)
{
    const unsigned p = engine_fixture_proc(&f->w, 100);
    engine_fixture_thread(&f->w, p, 100, 5);
    struct engine_fixture_thread *second = engine_fixture_thread(&f->w, p, 101, 6),
                                 *third = engine_fixture_thread(&f->w, p, 102, 7);
    third->task.runnable = 0.1;
    second->task.runnable = 0.2;
    run_times(f, 10, ASYM_SEC);
    const struct asym_monitor_app *app = asym_monitor_app_of(f->m, 100);
    assert_float_equal(app->sequential_share, 0.8, 1e-6);
    second->task.runnable = 1;
    run_times(f, 10, ASYM_SEC);
    assert_float_equal(app->sequential_share, 0.4, 1e-6);
    /* One that spins does nothing. */
    second->task.flags = ASYM_TASK_SPINNING;
    run_times(f, 100, ASYM_SEC);
    assert_float_equal(app->sequential_share, 0.9, 1e-6);
}

TEST_F(changes_of_the_last_minute_are_those_and_no_others)
{
    engine_fixture_thread(&f->w, engine_fixture_proc(&f->w, 100), 100, 5);
    run(f, ASYM_SEC);
    assert_int_equal(totals(f).changes_last_minute, 1);
    run_times(f, 59, ASYM_SEC);
    assert_int_equal(totals(f).changes_last_minute, 1);
    run(f, ASYM_SEC);
    assert_int_equal(totals(f).changes_last_minute, 0);
    f->w.paused = true;
    run(f, ASYM_SEC);
    assert_int_equal(totals(f).changes_last_minute, 1);
    run(f, 500 * ASYM_SEC);
    assert_int_equal(totals(f).changes_last_minute, 0);
    assert_int_equal(totals(f).changes, 2);
}

/* Returns how many decisions there are since that number, and copies the last one. */
static size_t count_since(struct monitor_fixture *f, uint64_t since, struct asym_monitor_decision *ret_last)
{
    ASYM_AUTO_FREE const struct asym_monitor_decision **all = NULL;
    size_t n = 0;
    assert_int_equal(asym_monitor_decisions_since(f->m, since, &all, &n), 0);
    for (size_t i = 0; i < n; i++)
        assert_true(all[i]->number > (i > 0 ? all[i - 1]->number : since));
    if (n > 0)
        *ret_last = *all[n - 1];
    return n;
}

TEST_F(each_decision_has_a_number)
{
    struct asym_monitor_decision last;
    struct engine_fixture_thread *t = engine_fixture_thread(&f->w, engine_fixture_proc(&f->w, 100), 100, 5);
    memcpy(t->task.comm, "a\nb", 4);
    assert_int_equal(asym_monitor_last_decision(f->m), 0);
    assert_int_equal(count_since(f, 0, &last), 0);
    run(f, TICK);
    run(f, TICK);
    assert_int_equal(count_since(f, 0, &last), 1);
    assert_int_equal(last.what, ASYM_MONITOR_STEER);
    assert_int_equal(last.to, 5);
    assert_string_equal(last.comm, "a\nb");
    t->listed = false;
    run(f, 20 * ASYM_SEC);
    assert_int_equal(asym_monitor_last_decision(f->m), 2);
    assert_int_equal(count_since(f, 0, &last), 2);
    assert_int_equal(count_since(f, 1, &last), 1);
    assert_int_equal(last.what, ASYM_MONITOR_RELEASE);
    assert_ptr_equal(last.reason, asym_why(ASYM_WHY_IDLE));
    assert_int_equal(count_since(f, 2, &last), 0);
    assert_int_equal(count_since(f, UINT64_MAX, &last), 0);
}

TEST_F(a_new_thread_with_an_old_number_has_no_history)
{
    struct asym_monitor_decision d[ASYM_MONITOR_DECISIONS];
    struct engine_fixture_thread *t = engine_fixture_thread(&f->w, engine_fixture_proc(&f->w, 100), 100, 5);
    run(f, TICK);
    t->task.id.start++;
    t->task.flags = ASYM_TASK_NO_SETAFFINITY;
    run(f, TICK);
    const struct asym_monitor_thread *known = asym_monitor_thread_of(f->m, 100);
    assert_int_equal(known->id.start, t->task.id.start);
    assert_int_equal(asym_monitor_decisions(f->m, known, d), 0);
}

/* The monitor still remembers the process that had the PID before. */
TEST_F(a_pid_that_the_kernel_has_reused_names_the_present_process)
{
    struct engine_fixture_thread *t = engine_fixture_thread(&f->w, engine_fixture_proc(&f->w, 100), 100, 5);
    run(f, TICK);
    const uint64_t before = asym_monitor_app_of(f->m, 100)->id.start;
    f->w.procs[0].id.start++;
    t->task.id.start++;
    run(f, TICK);
    assert_int_equal(asym_monitor_app_of(f->m, 100)->id.start, before + 1);
    assert_int_equal(asym_monitor_thread_of(f->m, 100)->id.start, t->task.id.start);
}

TEST_F(what_is_gone_is_forgotten)
{
    struct engine_fixture_thread *t = engine_fixture_thread(&f->w, engine_fixture_proc(&f->w, 100), 100, 5);
    run(f, TICK);
    t->listed = false;
    f->w.n_procs = 0;
    run(f, ASYM_SEC);
    assert_null(asym_monitor_app_next(f->m, &(size_t){0}));
    assert_non_null(asym_monitor_app_of(f->m, 100));
    run(f, ASYM_MONITOR_KEEP / 2);
    assert_non_null(asym_monitor_thread_of(f->m, 100));
    run(f, ASYM_MONITOR_KEEP / 2);
    assert_null(asym_monitor_thread_of(f->m, 100));
    assert_null(asym_monitor_app_of(f->m, 100));
}

TEST_F(a_cgroup_is_found_by_each_of_its_processes)
{
    engine_fixture_thread(&f->w, engine_fixture_proc(&f->w, 100), 100, 5);
    engine_fixture_step(&f->w, TICK);
    char path[] = "/system.slice/x.service";
    f->w.s_apps[0].id = (struct asym_taskid){0, 0, 77};
    f->w.s_apps[0].cgroup = path;
    f->w.snapshot.n_tasks = 1;
    record(f);
    path[1] = '#'; /* the monitor has a copy */
    const struct asym_monitor_app *app = asym_monitor_app_of(f->m, 100);
    assert_non_null(app);
    assert_int_equal(app->id.tid, 0);
    assert_string_equal(app->cgroup, "/system.slice/x.service");
    assert_null(asym_monitor_app_of(f->m, 0));
}

/* A machine with more threads than the monitor remembers, each with a decision in each cycle. */
TEST_F(its_memory_has_a_bound)
{
    enum { N = ASYM_MONITOR_THREADS + 1000 };
    ASYM_AUTO_FREE struct asym_task *tasks = calloc(N, sizeof *tasks);
    ASYM_AUTO_FREE struct asym_plan_task *plans = calloc(N, sizeof *plans);
    ASYM_AUTO_FREE struct asym_action *actions = calloc(N, sizeof *actions);
    ASYM_AUTO_FREE struct asym_outcome *outcomes = calloc(N, sizeof *outcomes);
    struct asym_plan_app plan_app = {.phase = ASYM_PHASE_PARALLEL};
    const struct asym_proc proc = {.id = {1, 1, 1}};
    const struct asym_app app = {.id = {1, 1, 1}, .n_tasks = N};
    assert_true(tasks && plans && actions && outcomes);
    for (int32_t i = 0; i < N; i++) {
        tasks[i].id = actions[i].id = (struct asym_taskid){i + 1, 1, 1};
        plans[i].reason = actions[i].reason = &engine_fixture_placed;
    }
    /* asymd leaves one of them alone. While there is room, the monitor remembers that for as long as it can. */
    outcomes[0] = (struct asym_outcome){ASYM_OUTCOME_HANDS_OFF, -EBUSY};
    struct asym_snapshot s = {.now = 5, .machine = &f->w.machine, .apps = &app, .procs = &proc, .tasks = tasks};
    s.n_apps = s.n_procs = 1;
    s.n_tasks = N;
    const struct asym_plan plan = {.apps = &plan_app, .tasks = plans, .n_apps = 1, .n_tasks = N};
    const struct asym_feedback feedback = {&s, &plan, actions, outcomes, N};
    for (int i = 0; i < 3; i++, s.now += ASYM_SEC)
        asym_monitor_record(f->m, &feedback);
    assert_int_equal(totals(f).n_unremembered, 3 * 1000);
    assert_null(asym_monitor_thread_at(f->m, ASYM_MONITOR_THREADS));
    size_t n = 0;
    struct asym_monitor_decision d[ASYM_MONITOR_DECISIONS];
    for (size_t i = 0; i < ASYM_MONITOR_THREADS; i++)
        n += asym_monitor_decisions(f->m, asym_monitor_thread_at(f->m, i), d) > 0;
    assert_int_equal(n, ASYM_MONITOR_HISTORIES);
    assert_ptr_equal(asym_monitor_thread_of(f->m, 1)->reason, asym_why(ASYM_WHY_FOREIGN));
    /* those that ended make room for others */
    for (int32_t i = 0; i < N; i++)
        tasks[i].id = actions[i].id = (struct asym_taskid){i + 100001, 1, 1};
    for (int i = 0; i < 3; i++, s.now += 11 * ASYM_SEC)
        asym_monitor_record(f->m, &feedback);
    assert_non_null(asym_monitor_thread_of(f->m, 100001));
    assert_null(asym_monitor_thread_of(f->m, 1));
}

/* Two threads on one CPU, one of them steered: the CPU is busy once, and the application has the reason of the busier one. */
TEST_F(an_application_has_the_reason_of_its_busiest_thread)
{
    const unsigned p = engine_fixture_proc(&f->w, 100);
    struct engine_fixture_thread *a = engine_fixture_thread(&f->w, p, 100, -1);
    struct engine_fixture_thread *b = engine_fixture_thread(&f->w, p, 101, 5);
    struct engine_fixture_thread *c = engine_fixture_thread(&f->w, p, 102, -1);
    a->task.running = c->task.running = 0.5;
    b->task.running = 0.75;
    a->task.cpu = b->task.cpu = c->task.cpu = 5;
    run(f, TICK);
    run(f, TICK);
    assert_ptr_equal(asym_monitor_thread_of(f->m, 100)->reason, &engine_fixture_unsteered);
    assert_ptr_equal(asym_monitor_app_of(f->m, 100)->reason, &engine_fixture_placed);
    assert_true(asym_monitor_cpu_of(f->m, 5)->busy == 1);
    assert_int_equal(asym_monitor_cpu_of(f->m, 5)->last.tid, 101);
}

/* One step a call, not one a remembered application: a user's programs must not make a list of them slow. */
TEST_F(a_walk_over_the_applications_goes_on_where_it_was)
{
    enum { N = ASYM_MONITOR_APPS };
    ASYM_AUTO_FREE struct asym_app *apps = calloc(N, sizeof *apps);
    ASYM_AUTO_FREE struct asym_plan_app *plans = calloc(N, sizeof *plans);
    struct asym_snapshot s = {.now = 5, .machine = &f->w.machine, .apps = apps, .n_apps = N};
    const struct asym_plan plan = {.apps = plans, .n_apps = N};
    const struct asym_feedback feedback = {&s, &plan, NULL, NULL, 0};
    size_t at = 0, n = 0, sum = 0;
    assert_true(apps && plans);
    for (int32_t i = 0; i < N; i++)
        apps[i].id = (struct asym_taskid){i + 1, i + 1, 1};
    asym_monitor_record(f->m, &feedback);
    /* the last snapshot has the odd half */
    s.now++;
    s.n_apps = N / 2;
    for (int32_t i = 0; i < N / 2; i++)
        apps[i].id = (struct asym_taskid){2 * i + 1, 2 * i + 1, 1};
    asym_monitor_record(f->m, &feedback);
    for (const struct asym_monitor_app *app; (app = asym_monitor_app_next(f->m, &at)); n++) {
        assert_int_equal(app->id.tid % 2, 1);
        assert_true(at > n && at <= N);
        assert_int_equal(asym_monitor_app_next(f->m, &(size_t){at - 1})->id.tid, app->id.tid);
        sum += (size_t)app->id.tid;
    }
    assert_int_equal(n, N / 2);
    assert_int_equal(sum, n * n);
    assert_int_equal(at, N);
    assert_null(asym_monitor_app_next(f->m, &at));
}

static const struct asym_reason why = {.text = "because of %g"};

/* More applications than lines for all of them. */
enum { APPS = ASYM_CLASS_LOG_ALL + 20 };

/* Applications with two threads each, of which the first n_apps run, and what the log got of them. */
struct lines_fixture {
    struct asym_monitor *monitor;
    struct asym_machine machine;
    struct asym_proc procs[APPS];
    struct asym_app apps[APPS];
    struct asym_task tasks[2 * APPS];
    struct asym_plan_app plan_apps[APPS];
    struct asym_plan_task plan_tasks[2 * APPS];
    struct asym_snapshot snapshot;
    struct asym_plan plan;
    size_t n_apps;
    char said[4096];
};

static void set_up_lines(struct lines_fixture *f)
{
    assert_int_equal(asym_monitor_new(&f->monitor), 0);
    f->n_apps = 1;
    f->snapshot = (struct asym_snapshot){
        .now = 1000 * ASYM_SEC, .machine = &f->machine, .apps = f->apps, .procs = f->procs, .tasks = f->tasks};
    for (int i = 0; i < APPS; i++) {
        f->apps[i] = (struct asym_app){.id = {100 + i, 100 + i, 7}, .first_task = 2 * (uint32_t)i, .n_tasks = 2};
        f->procs[i] = (struct asym_proc){.id = f->apps[i].id, .app = (uint32_t)i};
        snprintf(f->apps[i].comm, sizeof f->apps[i].comm, "app%d", i);
    }
    for (int i = 0; i < 2 * APPS; i++) {
        f->tasks[i] = (struct asym_task){.id = {1000 + i, 100 + i / 2, 7}, .proc = (uint32_t)i / 2};
        f->plan_tasks[i] = (struct asym_plan_task){.target = i, .class = ASYM_CLASS_MP, .reason = &why};
    }
    f->plan = (struct asym_plan){.apps = f->plan_apps, .tasks = f->plan_tasks};
}

static void tear_down_lines(struct lines_fixture *f)
{
    asym_monitor_free(f->monitor);
}

#define TEST_LINES(name) TEST_IN(name, struct lines_fixture, f, set_up_lines, tear_down_lines)

/* Carries the plan out, and says which changes of class got a line. */
static void enforce(struct lines_fixture *f)
{
    asym_monitor_record(f->monitor, &(struct asym_feedback){.snapshot = &f->snapshot, .plan = &f->plan});
    for (size_t i = 0; i < f->n_apps; i++) {
        unsigned n_left_out;
        const struct asym_plan_task *shown = asym_monitor_class_line(f->monitor, &f->snapshot, &f->plan, i,
                                                                     &n_left_out);
        const size_t used = strlen(f->said);
        if (!shown)
            continue;
        const int n = snprintf(f->said + used, sizeof f->said - used, "%d>%s", f->tasks[shown - f->plan_tasks].id.tid,
                               asym_class_name(shown->class));
        snprintf(f->said + used + n, sizeof f->said - used - (size_t)n, n_left_out ? " (%u);" : ";", n_left_out);
    }
}

/* A cycle after that time, in which all threads of an application have the class. */
static void cycle(struct lines_fixture *f, asym_usec after, size_t app, enum asym_class class)
{
    f->snapshot.now += after;
    f->snapshot.n_apps = f->plan.n_apps = f->n_apps;
    f->snapshot.n_tasks = f->plan.n_tasks = 2 * f->n_apps;
    f->plan_tasks[2 * app].class = f->plan_tasks[2 * app + 1].class = class;
    enforce(f);
}

static void expect(struct lines_fixture *f, const char *said)
{
    assert_string_equal(f->said, said);
    f->said[0] = '\0';
}

TEST_LINES(a_change_has_one_line_whatever_the_number_of_threads)
{
    cycle(f, 0, 0, ASYM_CLASS_MP);
    expect(f, "1000>MP;");
    for (int i = 0; i < 40; i++)
        cycle(f, ASYM_SEC, 0, ASYM_CLASS_MP);
    expect(f, "");
    cycle(f, ASYM_SEC, 0, ASYM_CLASS_HP);
    expect(f, "1000>HP;");
}

TEST_LINES(the_thread_of_a_serial_phase_stands_for_its_application)
{
    cycle(f, 0, 0, ASYM_CLASS_HP);
    f->plan_tasks[1].class = ASYM_CLASS_SP;
    f->said[0] = '\0';
    f->snapshot.now += ASYM_SEC;
    enforce(f);
    expect(f, "1001>SP;");
}

TEST_LINES(a_program_that_is_not_steered_or_idle_has_no_line)
{
    f->plan_tasks[0].target = f->plan_tasks[1].target = -1;
    cycle(f, 0, 0, ASYM_CLASS_HP);
    expect(f, "");
    f->plan_tasks[1].target = 1;
    cycle(f, ASYM_SEC, 0, ASYM_CLASS_HP);
    expect(f, "1001>HP;");
    /* It was idle for a moment, and comes back as it was. */
    cycle(f, ASYM_SEC, 0, ASYM_CLASS_NONE);
    cycle(f, ASYM_SEC, 0, ASYM_CLASS_HP);
    expect(f, "");
}

static void flips(struct lines_fixture *f, unsigned n, asym_usec each)
{
    for (unsigned i = 0; i < n; i++)
        cycle(f, each, 0, i % 2 == 0 ? ASYM_CLASS_HP : ASYM_CLASS_MP);
}

TEST_LINES(of_a_program_that_flips_some_changes_have_a_line_and_the_others_are_counted)
{
    cycle(f, 0, 0, ASYM_CLASS_MP);
    flips(f, 12, 3 * ASYM_SEC / 2);
    expect(f, "1000>MP;1000>HP;1000>MP;");
    /* It earns a line in 20 s. */
    flips(f, 20, 3 * ASYM_SEC / 2);
    expect(f, "1000>MP (11);1000>HP (12);");
    cycle(f, 2 * ASYM_CLASS_LOG_PERIOD, 0, ASYM_CLASS_HP);
    expect(f, "1000>HP (5);");
    cycle(f, ASYM_SEC, 0, ASYM_CLASS_MP);
    expect(f, "1000>MP;");
}

TEST_LINES(each_application_has_lines_of_its_own)
{
    f->n_apps = 2;
    cycle(f, 0, 0, ASYM_CLASS_MP);
    flips(f, 13, ASYM_SEC);
    f->said[0] = '\0';
    cycle(f, ASYM_SEC, 1, ASYM_CLASS_HP);
    expect(f, "1002>HP;");
}

TEST_LINES(all_applications_together_have_a_bound)
{
    f->n_apps = APPS;
    cycle(f, 0, 0, ASYM_CLASS_MP);
    assert_int_equal(captured_log_count(f->said, "MP;"), ASYM_CLASS_LOG_ALL);
    expect(f, f->said);
    /* It earns one in a second, and the first one pays a debt. */
    cycle(f, ASYM_SEC / 2, APPS - 1, ASYM_CLASS_HP);
    expect(f, "");
    cycle(f, 2 * ASYM_SEC, APPS - 1, ASYM_CLASS_MP);
    expect(f, "1158>MP (2);");
}

TEST_LINES(an_application_that_has_ended_is_forgotten)
{
    cycle(f, 0, 0, ASYM_CLASS_MP);
    flips(f, 8, ASYM_SEC);
    f->said[0] = '\0';
    f->n_apps = 0;
    cycle(f, ASYM_MONITOR_KEEP, 0, ASYM_CLASS_MP);
    f->n_apps = 1;
    cycle(f, ASYM_SEC, 0, ASYM_CLASS_MP);
    expect(f, "1000>MP;"); /* it is a new one now */
}

/* -- histories in few slots: the one that was used least recently makes room -- */

enum { SLOTS = 3, THREADS = 8 };

struct histories {
    struct asym_histories h;
    uint32_t slot[THREADS]; /* of each thread */
};

static struct asym_taskid id_of(int32_t thread)
{
    return (struct asym_taskid){thread, 1, 5};
}

/* A decision on the thread at that time. */
static void decide(struct histories *t, int32_t thread, asym_usec time)
{
    const struct asym_monitor_decision d = {.number = time, .time = time, .id = id_of(thread)};
    t->slot[thread] = asym_histories_add(&t->h, t->slot[thread], &d);
    assert_in_range(t->slot[thread], 1, SLOTS);
}

static size_t read_back(const struct histories *t, int32_t thread,
                        struct asym_monitor_decision ret[ASYM_MONITOR_DECISIONS])
{
    const struct asym_taskid id = id_of(thread);
    return asym_histories_read(&t->h, t->slot[thread], &id, ret);
}

TEST(the_least_recently_used_makes_room_each_time)
{
    struct asym_monitor_decision d[ASYM_MONITOR_DECISIONS];
    struct histories t = {.slot = {0}};
    /* The threads whose histories are there after each decision, a bit each. */
    static const struct {
        int32_t thread;
        unsigned kept;
    } rows[] = {{0, 0x01}, {1, 0x03}, {2, 0x07}, {0, 0x07}, {3, 0x0d}, {4, 0x19},
                {3, 0x19}, {5, 0x38}, {3, 0x38}, {6, 0x68}, {7, 0xc8}, {0, 0xc1}};
    assert_int_equal(asym_histories_init(&t.h, SLOTS), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned kept = 0;
        decide(&t, rows[i].thread, i + 1);
        for (int32_t k = 0; k < THREADS; k++)
            kept |= (read_back(&t, k, d) > 0 ? 1u : 0u) << k;
        if (kept != rows[i].kept)
            fail_msg("row %zu: %#x is there, not %#x", i, kept, rows[i].kept);
        assert_true(read_back(&t, rows[i].thread, d) > 0);
        assert_int_equal(d[0].time, i + 1);
    }
    asym_histories_done(&t.h);
}

/* A thread that has lost its slot begins anew, and a later thread of its number has none of its decisions. */
TEST(a_history_is_of_one_thread)
{
    struct asym_monitor_decision d[ASYM_MONITOR_DECISIONS];
    struct histories t = {.slot = {0}};
    const struct asym_taskid later = {0, 1, 6};
    assert_int_equal(asym_histories_init(&t.h, SLOTS), 0);
    for (asym_usec i = 1; i <= 2; i++)
        decide(&t, 0, i);
    assert_int_equal(read_back(&t, 0, d), 2);
    assert_int_equal(asym_histories_read(&t.h, t.slot[0], &later, d), 0);
    assert_int_equal(asym_histories_read(&t.h, 0, &later, d), 0);
    for (int32_t k = 1; k <= SLOTS; k++)
        decide(&t, k, 10);
    assert_int_equal(read_back(&t, 0, d), 0);
    decide(&t, 0, 20);
    assert_int_equal(read_back(&t, 0, d), 1);
    for (asym_usec i = 21; i < 21 + 2 * ASYM_MONITOR_DECISIONS; i++)
        decide(&t, 0, i);
    assert_int_equal(read_back(&t, 0, d), ASYM_MONITOR_DECISIONS);
    for (asym_usec i = 0; i < ASYM_MONITOR_DECISIONS; i++)
        assert_int_equal(d[i].time, 20 + 2 * ASYM_MONITOR_DECISIONS - i);
    asym_histories_done(&t.h);
}

/* Three threads decide in turn, the first one twice as often: its oldest decisions are lost. */
TEST(decisions_since_a_number_are_in_order)
{
    enum { LAST = 4 * ASYM_MONITOR_DECISIONS };
    struct histories t = {.slot = {0}};
    assert_int_equal(asym_histories_init(&t.h, SLOTS), 0);
    for (asym_usec i = 1; i <= LAST; i++)
        decide(&t, i % 2 ? 0 : i % 4 ? 1 : 2, i);
    for (uint64_t since = 0; since <= LAST; since++) {
        const struct asym_monitor_decision **all = NULL;
        size_t n = 0, lost = 0;
        assert_int_equal(asym_histories_since(&t.h, since, &all, &n), 0);
        for (uint64_t number = since + 1; number <= LAST; number++) {
            const size_t at = number - since - 1 - lost;
            const bool is_kept = number % 2 == 0 || number > LAST - 2 * ASYM_MONITOR_DECISIONS;
            lost += !is_kept;
            assert_true(!is_kept || (at < n && all[at]->number == number));
        }
        assert_int_equal(n, LAST - since - lost);
        free(all);
    }
    asym_histories_done(&t.h);
}

TEST_MAIN
