/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which changes of class get a line in the log, and the journal's fields of a line about a thread. */
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include <unistd.h>

#include "app/class-log.h"
#include "app/log.h"
#include "base/macro.h"
#include "base/mask.h"
#include "support/test.h"

static const struct asym_reason why = {.text = "because of %g"};

/* More applications than lines for all of them. */
enum { APPS = ASYM_CLASS_LOG_ALL + 20 };

/* Applications with two threads each, of which the first n_apps run, and what the log got of them. */
struct fixture {
    struct asym_class_log *log;
    struct asym_app apps[APPS];
    struct asym_task tasks[2 * APPS];
    struct asym_plan_app plan_apps[APPS];
    struct asym_plan_task plan_tasks[2 * APPS];
    struct asym_snapshot snapshot;
    struct asym_plan plan;
    size_t n_apps;
    char said[4096];
};

static void setup(struct fixture *f)
{
    f->log = asym_class_log_new();
    assert_non_null(f->log);
    f->n_apps = 1;
    f->snapshot = (struct asym_snapshot){.now = 1000 * ASYM_SEC, .apps = f->apps, .tasks = f->tasks};
    for (int i = 0; i < APPS; i++) {
        f->apps[i] = (struct asym_app){.id = {100 + i, 100 + i, 7}, .first_task = 2 * (uint32_t)i, .n_tasks = 2};
        snprintf(f->apps[i].comm, sizeof f->apps[i].comm, "app%d", i);
    }
    for (int i = 0; i < 2 * APPS; i++) {
        f->tasks[i].id = (struct asym_taskid){1000 + i, 100 + i / 2, 7};
        f->plan_tasks[i] = (struct asym_plan_task){.target = i, .class = ASYM_CLASS_MP, .reason = &why};
    }
    f->plan = (struct asym_plan){.apps = f->plan_apps, .tasks = f->plan_tasks};
}

static void teardown(struct fixture *f)
{
    asym_class_log_free(f->log);
}

#define TEST_F(name) TEST_IN(name, struct fixture, f, setup, teardown)

static void on_event(void *ctx, const struct asym_task *task, const struct asym_plan_task *plan, unsigned n_left_out)
{
    struct fixture *f = ctx;
    const size_t used = strlen(f->said);
    const int n = snprintf(f->said + used, sizeof f->said - used, "%d>%s", task->id.tid, asym_class_name(plan->class));
    snprintf(f->said + used + n, sizeof f->said - used - (size_t)n, n_left_out ? " (%u);" : ";", n_left_out);
}

/* A cycle after that time, in which all threads of an application have the class. */
static void cycle(struct fixture *f, asym_usec after, size_t app, enum asym_class class)
{
    f->snapshot.now += after;
    f->snapshot.n_apps = f->plan.n_apps = f->n_apps;
    f->snapshot.n_tasks = f->plan.n_tasks = 2 * f->n_apps;
    f->plan_tasks[2 * app].class = f->plan_tasks[2 * app + 1].class = class;
    assert_int_equal(asym_class_log_update(f->log, &f->snapshot, &f->plan, on_event, f), 0);
}

static void expect(struct fixture *f, const char *said)
{
    assert_string_equal(f->said, said);
    f->said[0] = '\0';
}

TEST_F(a_change_has_one_line_whatever_the_number_of_threads)
{
    cycle(f, 0, 0, ASYM_CLASS_MP);
    expect(f, "1000>MP;");
    for (int i = 0; i < 40; i++)
        cycle(f, ASYM_SEC, 0, ASYM_CLASS_MP);
    expect(f, "");
    cycle(f, ASYM_SEC, 0, ASYM_CLASS_HP);
    expect(f, "1000>HP;");
}

TEST_F(the_thread_of_a_serial_phase_stands_for_its_application)
{
    cycle(f, 0, 0, ASYM_CLASS_HP);
    f->plan_tasks[1].class = ASYM_CLASS_SP;
    f->said[0] = '\0';
    f->snapshot.now += ASYM_SEC;
    assert_int_equal(asym_class_log_update(f->log, &f->snapshot, &f->plan, on_event, f), 0);
    expect(f, "1001>SP;");
}

TEST_F(a_program_that_is_not_steered_or_idle_has_no_line)
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

static void flips(struct fixture *f, unsigned n, asym_usec each)
{
    for (unsigned i = 0; i < n; i++)
        cycle(f, each, 0, i % 2 == 0 ? ASYM_CLASS_HP : ASYM_CLASS_MP);
}

TEST_F(of_a_program_that_flips_some_changes_have_a_line_and_the_others_are_counted)
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

TEST_F(each_application_has_lines_of_its_own)
{
    f->n_apps = 2;
    cycle(f, 0, 0, ASYM_CLASS_MP);
    flips(f, 13, ASYM_SEC);
    f->said[0] = '\0';
    cycle(f, ASYM_SEC, 1, ASYM_CLASS_HP);
    expect(f, "1002>HP;");
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

TEST_F(all_applications_together_have_a_bound)
{
    f->n_apps = APPS;
    cycle(f, 0, 0, ASYM_CLASS_MP);
    assert_int_equal(count(f->said, "MP;"), ASYM_CLASS_LOG_ALL);
    expect(f, f->said);
    /* It earns one in a second, and the first one pays a debt. */
    cycle(f, ASYM_SEC / 2, APPS - 1, ASYM_CLASS_HP);
    expect(f, "");
    cycle(f, 2 * ASYM_SEC, APPS - 1, ASYM_CLASS_MP);
    expect(f, "1158>MP (2);");
}

/* The log's limit for messages of one kind would be one for all applications. */
TEST(the_log_writes_each_line_about_a_class)
{
    struct asym_task task = {.id = {.tid = 12, .tgid = 11}};
    const struct asym_log_thread line = {.task = &task, .cpu = -1};
    struct asym_log log;
    static char text[8192];
    FILE *file = tmpfile();
    const int own = dup(STDERR_FILENO);
    assert_non_null(file);
    assert_true(own >= 0);
    asym_log_init(&log);
    dup2(fileno(file), STDERR_FILENO);
    for (int i = 0; i < 2 * ASYM_LOG_LIMIT_MESSAGES; i++)
        asym_log_event(&log, LOG_INFO, &line, "program %d is serial", i);
    asym_log_done(&log);
    dup2(own, STDERR_FILENO);
    close(own);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_int_equal(count(text, "asymd: program"), 2 * ASYM_LOG_LIMIT_MESSAGES);
    assert_int_equal(count(text, "left out"), 0);
}

TEST_F(an_application_that_has_ended_is_forgotten)
{
    cycle(f, 0, 0, ASYM_CLASS_MP);
    flips(f, 8, ASYM_SEC);
    f->said[0] = '\0';
    f->n_apps = 0;
    cycle(f, ASYM_CLASS_LOG_PERIOD, 0, ASYM_CLASS_MP);
    f->n_apps = 1;
    cycle(f, ASYM_SEC, 0, ASYM_CLASS_MP);
    expect(f, "1000>MP;"); /* it is a new one now */
}

TEST(a_line_about_a_thread_has_the_fields_that_are_known)
{
    char fields[ASYM_LOG_FIELDS][ASYM_LOG_FIELD_SIZE];
    struct asym_task task = {.id = {.tid = 12, .tgid = 11}, .comm = "a\nb"};
    struct asym_mask mask = {.w = {0xf0}};
    struct asym_log_thread line = {.task = &task, .class = ASYM_CLASS_SP, .cpu = -1};
    static const char *const least[] = {"ASYM_PID=11", "ASYM_TID=12", "ASYM_COMM=a\\x0ab", "ASYM_CLASS=SP"};
    static const char *const more[] = {"ASYM_POLICY=pa", "ASYM_REASON=because of 3", "ASYM_CPU=5", "ASYM_MASK=4-7"};
    assert_int_equal(asym_log_fields(&line, fields), ASYM_LENGTH(least));
    for (size_t i = 0; i < ASYM_LENGTH(least); i++)
        assert_string_equal(fields[i], least[i]);
    line.policy = "pa";
    line.reason = &why;
    line.figure[0] = 3;
    line.cpu = 5;
    line.mask = &mask;
    assert_int_equal(asym_log_fields(&line, fields), ASYM_LENGTH(least) + ASYM_LENGTH(more));
    for (size_t i = 0; i < ASYM_LENGTH(more); i++)
        assert_string_equal(fields[ASYM_LENGTH(least) + i], more[i]);
}

/* The level is the position of the word in the row of asymd.log_level. */
TEST(the_levels_are_those_of_syslog)
{
    static const int levels[] = {LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG};
    struct asym_log log = {.level = 0};
    for (int i = 0; i < (int)ASYM_LENGTH(levels); i++) {
        asym_log_set_level(&log, i);
        assert_int_equal(log.level, levels[i]);
    }
}

TEST_MAIN
