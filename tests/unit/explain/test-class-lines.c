/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The log gets a line for these changes of class. */

#include "explain/monitor.h"
#include "support/test.h"

static const struct asym_reason why = {.text = "because of %g"};

/* More applications than lines for all of them. */
enum { APPS = ASYM_CLASS_LOG_ALL + 20 };

/* Applications with two threads each, of which the first n_apps run, and what the log got of them. */
struct fixture {
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

static void setup(struct fixture *f)
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

static void teardown(struct fixture *f)
{
    asym_monitor_free(f->monitor);
}

#define TEST_F(name) TEST_IN(name, struct fixture, f, setup, teardown)

/* Carries the plan out, and says which changes of class got a line. */
static void enforce(struct fixture *f)
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
static void cycle(struct fixture *f, asym_usec after, size_t app, enum asym_class class)
{
    f->snapshot.now += after;
    f->snapshot.n_apps = f->plan.n_apps = f->n_apps;
    f->snapshot.n_tasks = f->plan.n_tasks = 2 * f->n_apps;
    f->plan_tasks[2 * app].class = f->plan_tasks[2 * app + 1].class = class;
    enforce(f);
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
    enforce(f);
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

TEST_F(an_application_that_has_ended_is_forgotten)
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

TEST_MAIN
