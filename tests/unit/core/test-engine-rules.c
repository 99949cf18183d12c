/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The effect of the CPUs, the nice value and the class of a rule on the plan. */
#include <asym/engine.h>

#include "support/engine-fixture.h"
#include "support/test.h"

#define TICK (100 * ASYM_MSEC)

/* A process with one thread, which the policy puts on CPU 5, one of the fast CPUs 4-7. */
static struct engine_fixture_thread *ruled(struct engine_fixture *w, const struct asym_rule_facts *facts)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    w->procs[0].rule_name = "rule one";
    w->procs[0].rule_facts = facts;
    return t;
}

TEST_ENGINE(cpus_bound_what_the_policy_may_choose)
{
    const struct asym_rule_facts facts = {.cpus = engine_fixture_cpus("2-5")};
    struct engine_fixture_thread *t = ruled(w, &facts);
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(w->orders.threads[0].allowed, "2-5");
    engine_fixture_assert_mask(&t->mask, "4-5");
    engine_fixture_assert_why(w, 100, &engine_fixture_placed);
}

TEST(cpus_that_leave_none_are_ignored)
{
    static const struct {
        const char *cpus, *cpuset, *allowed;
        enum asym_rule_action action;
    } rows[] = {
        {"8-9", "0-7", "0-7", ASYM_RULE_STEER},                                        /* the machine has no such CPU */
        {"2-9", "0-7", "2-7", ASYM_RULE_STEER},                                        /* it has some of them */
        {"0-1", "4-7", "4-7", ASYM_RULE_STEER},                                        /* the cpuset leaves them out */
        {"0-1,4", "3-7", "4", ASYM_RULE_STEER}, {"2-5", "0-7", "4-5", ASYM_RULE_FAST}, /* fast within the CPUs */
        {"2-5", "0-7", "2-3", ASYM_RULE_SLOW},  {"0-1", "0-7", "0-1", ASYM_RULE_FAST}, /* none of the CPUs is fast */
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ENGINE_FIXTURE(w);
        const struct asym_rule_facts facts = {.cpus = engine_fixture_cpus(rows[i].cpus)};
        struct engine_fixture_thread *t = ruled(&w, &facts);
        w.procs[0].rule = rows[i].action;
        t->mask = t->cpuset = engine_fixture_cpus(rows[i].cpuset);
        engine_fixture_step(&w, TICK);
        engine_fixture_assert_mask(w.orders.threads[0].allowed, rows[i].allowed);
    }
}

/* Both have the same own mask and cpuset. */
TEST_ENGINE(each_process_has_the_cpus_of_its_own_rule)
{
    const struct asym_rule_facts one = {.cpus = engine_fixture_cpus("2-5")}, two = {.cpus = engine_fixture_cpus("6-7")};
    ruled(w, &one);
    engine_fixture_thread(w, engine_fixture_proc(w, 200), 200, 6);
    w->procs[1].rule_facts = &two;
    engine_fixture_thread(w, engine_fixture_proc(w, 300), 300, 6);
    engine_fixture_step(w, TICK);
    engine_fixture_assert_mask(w->orders.threads[0].allowed, "2-5");
    engine_fixture_assert_mask(w->orders.threads[1].allowed, "6-7");
    engine_fixture_assert_mask(w->orders.threads[2].allowed, "0-7");
}

TEST_ENGINE(cpus_hold_although_the_policy_leaves_the_thread_alone)
{
    const struct asym_rule_facts facts = {.cpus = engine_fixture_cpus("2-5")};
    struct engine_fixture_thread *t = ruled(w, &facts);
    engine_fixture_order(w, 100, -1, false);
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&t->mask, "2-5");
    const struct asym_plan_task *plan = engine_fixture_planned(w, 100);
    assert_ptr_equal(plan->reason, &asym_reason_rule);
    assert_int_equal(plan->target, 2); /* it ran on CPU 0, which the rule leaves out */
    engine_fixture_run_asks(w, TICK, 0);
    /* Without the rule the thread gets its own mask back. */
    w->procs[0].rule_facts = NULL;
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&t->mask, "0-7");
    engine_fixture_assert_why(w, 100, &engine_fixture_unsteered);
}

TEST_ENGINE(the_mask_of_a_rule_is_no_foreign_mask)
{
    const struct asym_rule_facts facts = {.cpus = engine_fixture_cpus("2-5")},
                                 other = {.cpus = engine_fixture_cpus("6-7")};
    struct engine_fixture_thread *t = ruled(w, &facts);
    engine_fixture_order(w, 100, -1, false);
    engine_fixture_run(w, TICK);
    w->procs[0].rule_facts = &other;
    for (int i = 0; i < 5; i++)
        engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&t->mask, "6-7");
    engine_fixture_assert_why(w, 100, &asym_reason_rule);
}

TEST(a_nice_value_of_a_rule_is_set_and_restored)
{
    static const int8_t values[] = {-5, 0, 10};
    static const int32_t cpus[] = {5, -1}; /* -1: the policy leaves the thread alone */
    for (size_t i = 0; i < ASYM_LENGTH(values) * ASYM_LENGTH(cpus); i++) {
        ENGINE_FIXTURE(w);
        const struct asym_rule_facts facts = {.nice = values[i / 2], .has_nice = true};
        struct engine_fixture_thread *t = ruled(&w, &facts);
        t->task.nice = 2;
        engine_fixture_order(&w, 100, cpus[i % 2], false);
        engine_fixture_run(&w, TICK);
        assert_int_equal(t->task.nice, values[i / 2]);
        engine_fixture_assert_mask(&t->mask, cpus[i % 2] < 0 ? "0-7" : "4-7");
        engine_fixture_run_asks(&w, TICK, 0);
        w.procs[0].rule_facts = NULL;
        w.procs[0].rule = ASYM_RULE_IGNORE;
        engine_fixture_run(&w, TICK);
        assert_int_equal(t->task.nice, 2);
        engine_fixture_assert_mask(&t->mask, "0-7");
    }
}

/* With a nice value only, asymd has to set a mask as well: it must not keep the thread off CPUs that its cpuset gains. */
TEST_ENGINE(a_nice_value_alone_leaves_all_cpus)
{
    const struct asym_rule_facts facts = {.nice = 10, .has_nice = true};
    struct engine_fixture_thread *t = ruled(w, &facts);
    t->mask = t->cpuset = engine_fixture_cpus("0-5");
    engine_fixture_order(w, 100, -1, false);
    engine_fixture_run(w, TICK);
    assert_int_equal(t->task.nice, 10);
    t->cpuset = engine_fixture_cpus("0-7");
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&t->mask, "0-7");
    engine_fixture_assert_why(w, 100, &asym_reason_rule);
}

TEST_ENGINE(the_boost_of_a_policy_counts_from_the_rules_value)
{
    const struct asym_rule_facts facts = {.nice = 10, .has_nice = true};
    struct engine_fixture_thread *t = ruled(w, &facts);
    w->orders.of[100].delta = -3;
    engine_fixture_run(w, TICK);
    assert_int_equal(w->orders.threads[0].nice, 10);
    assert_int_equal(t->task.nice, 7);
}

/* An ordinary user's asymd could not give the value back. */
TEST_ENGINE(no_rule_sets_what_asymd_cannot_restore)
{
    const struct asym_rule_facts facts = {.nice = 10, .has_nice = true};
    struct engine_fixture_thread *t = ruled(w, &facts);
    w->config.keep_nice = true;
    assert_int_equal(asym_engine_configure(w->engine, &w->config), 0);
    engine_fixture_run(w, TICK);
    assert_int_equal(w->orders.threads[0].nice, 0);
    assert_int_equal(t->task.nice, 0);
    engine_fixture_assert_mask(&t->mask, "4-7");
}

TEST_ENGINE(a_user_who_renices_the_program_wins)
{
    const struct asym_rule_facts facts = {.nice = 10, .has_nice = true};
    struct engine_fixture_thread *t = ruled(w, &facts);
    engine_fixture_run(w, TICK);
    t->task.nice = 4;
    for (int i = 0; i < 3; i++)
        engine_fixture_run(w, TICK);
    assert_int_equal(t->task.nice, 4);
}

/* A child of the thread that runs at nice 10 inherits the value, whatever its own rule is. */
TEST_ENGINE(a_child_gets_the_nice_value_of_its_creator_before_the_rule)
{
    const struct asym_rule_facts facts = {.nice = 10, .has_nice = true};
    struct engine_fixture_thread *t = ruled(w, &facts);
    engine_fixture_run(w, TICK);
    struct engine_fixture_thread *child = engine_fixture_thread(w, engine_fixture_proc(w, 200), 200, -1);
    w->procs[1].ppid = 100;
    w->procs[1].id.start = 5000;
    child->task.id.start = 5000;
    w->procs[1].born = w->now;
    child->task.flags = ASYM_TASK_NEWBORN;
    child->task.nice = 10;
    child->mask = t->mask;
    engine_fixture_run(w, TICK);
    assert_int_equal(child->task.nice, 0);
    engine_fixture_assert_mask(&child->mask, "0-7");
}

static const struct asym_plan_app *planned_app(const struct engine_fixture *w)
{
    return &w->plan->apps[0];
}

TEST(a_class_overrides_the_count)
{
    static const struct {
        enum asym_rule_class class;
        double runnable;
        enum asym_phase phase;
        enum asym_class of;
    } rows[] = {
        {ASYM_RULE_CLASS_AUTO, 20, ASYM_PHASE_PARALLEL, ASYM_CLASS_HP},
        {ASYM_RULE_CLASS_SERIAL, 20, ASYM_PHASE_SERIAL, ASYM_CLASS_MP},
        {ASYM_RULE_CLASS_AUTO, 1, ASYM_PHASE_SERIAL, ASYM_CLASS_MP},
        {ASYM_RULE_CLASS_PARALLEL, 1, ASYM_PHASE_PARALLEL, ASYM_CLASS_HP},
        {ASYM_RULE_CLASS_PARALLEL, 0.4, ASYM_PHASE_IDLE, ASYM_CLASS_NONE},
        {ASYM_RULE_CLASS_SERIAL, 0.4, ASYM_PHASE_IDLE, ASYM_CLASS_NONE},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ENGINE_FIXTURE(w);
        const struct asym_rule_facts facts = {.policy_class = rows[i].class};
        ruled(&w, &facts);
        w.runnable[0] = rows[i].runnable;
        engine_fixture_step(&w, TICK);
        assert_int_equal(planned_app(&w)->phase, rows[i].phase);
        assert_int_equal(planned_app(&w)->class, rows[i].of);
    }
}

/* By the count, the one thread that is left would be in a serial phase. */
TEST(a_parallel_program_by_rule_has_no_serial_phase)
{
    static const struct {
        enum asym_rule_class class;
        enum asym_class of;
    } rows[] = {
        {ASYM_RULE_CLASS_AUTO, ASYM_CLASS_SP},
        {ASYM_RULE_CLASS_SERIAL, ASYM_CLASS_SP},
        {ASYM_RULE_CLASS_PARALLEL, ASYM_CLASS_HP},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ENGINE_FIXTURE(w);
        const struct asym_rule_facts facts = {.policy_class = rows[i].class};
        ruled(&w, &facts);
        w.runnable[0] = 4;
        engine_fixture_run(&w, TICK);
        w.runnable[0] = 1;
        engine_fixture_run(&w, TICK);
        assert_int_equal(engine_fixture_planned(&w, 100)->class, rows[i].of);
    }
}

TEST_ENGINE(without_a_rule_an_allow_list_steers_nothing)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    engine_fixture_run(w, TICK);
    w->procs[0].rule = ASYM_RULE_UNLISTED;
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&t->mask, "0-7");
    engine_fixture_assert_why(w, 100, asym_why(ASYM_WHY_UNLISTED));
    assert_ptr_equal(planned_app(w)->excluded, asym_why(ASYM_WHY_UNLISTED));
}

/* The user has not seen the program that a rule of the library matches. */
TEST_ENGINE(a_rule_of_the_library_protects_programs_that_count_late)
{
    const struct asym_rule_facts library = {.library = true}, own = {.library = false};
    ruled(w, &library);
    w->procs[0].flags = ASYM_PROC_COUNTS_LATE;
    engine_fixture_step(w, TICK);
    engine_fixture_assert_why(w, 100, asym_why(ASYM_WHY_COUNTS_LATE));
    w->procs[0].rule_facts = &own;
    engine_fixture_step(w, TICK);
    engine_fixture_assert_why(w, 100, &engine_fixture_placed);
}

TEST_MAIN
