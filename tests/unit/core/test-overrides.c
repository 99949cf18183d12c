/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The orders of the user while asymd runs: the source adds them to the snapshots, and the engine obeys. */
#include <string.h>

#include <errno.h>

#include "base/macro.h"
#include "core/overrides.h"
#include "support/engine-fixture.h"
#include "support/test.h"

#define TICK (100 * ASYM_MSEC)

/* The engine */

static struct engine_fixture_thread *steered(struct engine_fixture *w, int32_t pid)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, pid), pid, 5);
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&t->mask, "4-7");
    return t;
}

static void assert_put_back(struct engine_fixture *w, struct engine_fixture_thread *t, enum asym_exclusion why)
{
    const struct asym_action *a = engine_fixture_action(w, t->task.id.tid);
    assert_non_null(a);
    assert_int_equal(a->kind, ASYM_ACTION_RELEASE);
    assert_ptr_equal(a->reason, asym_why(why));
    engine_fixture_apply(w);
    engine_fixture_assert_mask(&t->mask, "0-7");
}

TEST_ENGINE(a_pause_puts_back_threads_that_run_and_threads_that_sleep)
{
    struct engine_fixture_thread *runs = steered(w, 100), *sleeps = steered(w, 200);
    sleeps->listed = false;
    w->paused = true;
    engine_fixture_step_asks(w, TICK, 2);
    engine_fixture_assert_why(w, 100, asym_why(ASYM_WHY_PAUSED));
    assert_int_equal(engine_fixture_planned(w, 100)->target, -1);
    assert_int_equal(engine_fixture_action(w, 200)->kind, ASYM_ACTION_RELEASE);
    assert_put_back(w, runs, ASYM_WHY_PAUSED);
    engine_fixture_assert_mask(&sleeps->mask, "0-7");
    sleeps->listed = true;
    for (int i = 0; i < 30; i++) {
        engine_fixture_run_asks(w, TICK, 0);
        engine_fixture_assert_why(w, 200, asym_why(ASYM_WHY_PAUSED));
    }
    assert_int_equal(w->plan->apps[0].phase, ASYM_PHASE_SERIAL); /* it observes on */
}

/* Also less than a swap period after the last plan. */
TEST(after_the_pause_the_first_snapshot_steers)
{
    static const asym_usec pauses[] = {TICK, 61 * ASYM_SEC};
    for (size_t i = 0; i < ASYM_LENGTH(pauses); i++) {
        ENGINE_FIXTURE(w);
        struct engine_fixture_thread *t = steered(&w, 100);
        w.config.enforce.swap_period = 60 * ASYM_SEC;
        assert_int_equal(asym_engine_configure(w.engine, &w.config), 0);
        engine_fixture_run(&w, TICK);
        w.paused = true;
        engine_fixture_run(&w, pauses[i]);
        engine_fixture_assert_mask(&t->mask, "0-7");
        w.paused = false;
        engine_fixture_run(&w, pauses[i]);
        engine_fixture_assert_mask(&t->mask, "4-7");
    }
}

TEST_ENGINE(hotplug_during_a_pause_steers_nothing)
{
    steered(w, 100);
    w->paused = true;
    engine_fixture_run(w, TICK);
    w->machine.online = w->machine.usable = engine_fixture_cpus("0-6");
    assert_int_equal(asym_machine_finish(&w->machine), 0);
    w->machine.generation++;
    assert_int_equal(asym_engine_configure(w->engine, &w->config), 0);
    engine_fixture_run_asks(w, TICK, 0);
}

TEST(an_ignored_process_is_put_back_also_while_it_sleeps)
{
    for (int sleeps = 0; sleeps < 2; sleeps++) {
        ENGINE_FIXTURE(w);
        struct engine_fixture_thread *t = steered(&w, 200), *other = steered(&w, 100);
        static const struct asym_taskid ignored[] = {{50, 50, 1}, {200, 200, 2000}, {300, 300, 1}};
        w.ignored = ignored;
        w.n_ignored = ASYM_LENGTH(ignored);
        w.procs[0].rule = sleeps ? ASYM_RULE_STEER : ASYM_RULE_IGNORE;
        t->listed = !sleeps;
        engine_fixture_step_asks(&w, TICK, 1);
        assert_put_back(&w, t, ASYM_WHY_RULE_IGNORE);
        engine_fixture_assert_mask(&other->mask, "4-7");
    }
}

/* The source */

static struct {
    struct asym_source source;
    struct asym_proc procs[3];
    size_t n_procs;
    int r;
    unsigned n_feedbacks, n_refreshes;
} inner;

static int inner_next(struct asym_source *source, struct asym_snapshot *ret)
{
    *ret = (struct asym_snapshot){.now = 7, .procs = inner.procs, .n_procs = inner.n_procs};
    return inner.r;
}

static void inner_feedback(struct asym_source *source, const struct asym_feedback *f)
{
    inner.n_feedbacks++;
}

static void inner_refresh(struct asym_source *source)
{
    inner.n_refreshes++;
}

static struct asym_overrides *o;

static int setup_source(void **state)
{
    memset(&inner, 0, sizeof inner);
    inner.source = (struct asym_source){.next = inner_next, .feedback = inner_feedback, .refresh = inner_refresh};
    inner.r = 1;
    inner.n_procs = ASYM_LENGTH(inner.procs);
    for (int32_t i = 0; i < 3; i++)
        inner.procs[i] = (struct asym_proc){
            .id = {30 - 10 * i, 30 - 10 * i, 5}, .rule = ASYM_RULE_FAST, .rule_name = "conf"};
    assert_int_equal(asym_overrides_new(&inner.source, &o), 0);
    return 0;
}

static int teardown_source(void **state)
{
    struct asym_source *source = asym_overrides_source(o);
    source->close(source);
    return 0;
}

static struct asym_snapshot take(void)
{
    struct asym_snapshot s;
    memset(&s, 0xff, sizeof s);
    struct asym_source *source = asym_overrides_source(o);
    assert_int_equal(source->next(source, &s), 1);
    return s;
}

static const struct asym_taskid p20 = {20, 20, 5}, p10 = {10, 10, 5};

TEST_WITH(without_orders_the_snapshot_is_the_inner_one, setup_source, teardown_source)
{
    const struct asym_snapshot s = take();
    assert_ptr_equal(s.procs, inner.procs);
    assert_false(s.paused);
    assert_int_equal(s.n_ignored, 0);
}

TEST_WITH(orders_are_facts_of_their_process_only, setup_source, teardown_source)
{
    assert_int_equal(asym_overrides_set_rule(o, &p20, ASYM_RULE_SLOW, 0), 0);
    assert_int_equal(asym_overrides_unset_rule(o, &p10, 99), 0);
    asym_overrides_pause(o, true);
    struct asym_snapshot s = take();
    assert_true(s.paused);
    assert_int_equal(s.n_procs, 3);
    assert_int_equal(s.procs[0].id.tgid, 30);
    assert_int_equal(s.procs[0].rule, ASYM_RULE_FAST);
    assert_string_equal(s.procs[0].rule_name, "conf");
    assert_int_equal(s.procs[1].rule, ASYM_RULE_SLOW);
    assert_string_equal(s.procs[1].rule_name, asym_overrides_rule_name);
    assert_int_equal(s.procs[1].adopted, 0);
    assert_int_equal(s.procs[2].adopted, 99);
    assert_int_equal(s.procs[2].rule, ASYM_RULE_FAST);
    assert_string_equal(inner.procs[1].rule_name, "conf"); /* the inner source keeps its own */
    asym_overrides_pause(o, false);
    s = take();
    assert_false(s.paused);
    assert_int_equal(s.procs[1].rule, ASYM_RULE_SLOW);
}

/* The engine puts back the threads of such a process that sleep. Each other rule ends that, and so does the end of the rule. */
TEST_WITH(the_processes_that_the_user_ignores_are_listed, setup_source, teardown_source)
{
    for (int again = 0; again < 2; again++) {
        assert_int_equal(asym_overrides_set_rule(o, &p20, ASYM_RULE_IGNORE, 0), 0);
        struct asym_snapshot s = take();
        assert_int_equal(s.procs[1].rule, ASYM_RULE_IGNORE);
        assert_int_equal(s.n_ignored, 1);
        assert_int_equal(s.ignored[0].tgid, 20);
        assert_int_equal(
            again ? asym_overrides_unset_rule(o, &p20, 3) : asym_overrides_set_rule(o, &p20, ASYM_RULE_STEER, 0), 0);
        s = take();
        assert_int_equal(s.n_ignored, 0);
        assert_int_equal(s.procs[1].rule, again ? ASYM_RULE_FAST : ASYM_RULE_STEER);
    }
}

TEST_WITH(an_order_replaces_the_whole_rule, setup_source, teardown_source)
{
    static const struct asym_rule_facts facts = {.cpus = {.w = {0x3}}, .library = true};
    inner.procs[1].rule_facts = &facts;
    assert_int_equal(asym_overrides_set_rule(o, &p20, ASYM_RULE_FAST, 0), 0);
    assert_null(take().procs[1].rule_facts);
    inner.procs[1].rule_facts = NULL;
}

/* The order came after the sample: the source returns the last snapshot again, which has the process that ended. */
TEST_WITH(a_snapshot_older_than_the_order_does_not_drop_it, setup_source, teardown_source)
{
    const struct asym_taskid later = {20, 20, 6};
    assert_int_equal(asym_overrides_set_rule(o, &later, ASYM_RULE_IGNORE, 0), 0);
    struct asym_snapshot s = take();
    assert_int_equal(s.procs[1].rule, ASYM_RULE_FAST);
    assert_int_equal(asym_overrides_count(o), 1);
    inner.procs[1].id.start = 6;
    s = take();
    assert_int_equal(s.procs[1].rule, ASYM_RULE_IGNORE);
    assert_int_equal(asym_overrides_count(o), 1);
}

/* A process without an order gets one, too: from then on the masks that its threads have count as their own. */
TEST_WITH(the_rules_decide_again, setup_source, teardown_source)
{
    assert_int_equal(asym_overrides_unset_rule(o, &p20, 2), 0);
    assert_int_equal(take().procs[1].adopted, 2);
    assert_int_equal(asym_overrides_count(o), 0);
    assert_int_equal(asym_overrides_set_rule(o, &p20, ASYM_RULE_SLOW, 0), 0);
    assert_int_equal(take().procs[1].adopted, 2);
    assert_int_equal(asym_overrides_count(o), 1);
    assert_int_equal(asym_overrides_unset_rule(o, &p20, 3), 0);
    const struct asym_snapshot s = take();
    assert_int_equal(s.procs[1].rule, ASYM_RULE_FAST);
    assert_string_equal(s.procs[1].rule_name, "conf");
    assert_int_equal(s.procs[1].adopted, 3);
    assert_int_equal(asym_overrides_count(o), 0);
}

TEST_WITH(a_later_process_with_the_number_has_no_order, setup_source, teardown_source)
{
    assert_int_equal(asym_overrides_set_rule(o, &p20, ASYM_RULE_IGNORE, 0), 0);
    inner.procs[1].id.start = 6;
    struct asym_snapshot s = take();
    assert_int_equal(s.procs[1].rule, ASYM_RULE_FAST);
    assert_int_equal(s.n_ignored, 0);
    assert_int_equal(asym_overrides_count(o), 0);
    /* and an order for the new one replaces one for the old one */
    assert_int_equal(asym_overrides_set_rule(o, &p20, ASYM_RULE_IGNORE, 0), 0);
    assert_int_equal(asym_overrides_set_rule(o, &(struct asym_taskid){20, 20, 6}, ASYM_RULE_SLOW, 0), 0);
    assert_int_equal(asym_overrides_count(o), 1);
    assert_null(asym_overrides_find(o, &p20));
    assert_int_equal(take().n_ignored, 0);
}

static bool has_ended(const struct asym_taskid *proc)
{
    return proc->tgid != 20;
}

TEST_WITH(orders_are_bounded_and_those_of_the_dead_make_room, setup_source, teardown_source)
{
    for (int32_t i = ASYM_OVERRIDES_MAX; i-- > 0;)
        assert_int_equal(asym_overrides_set_rule(o, &(struct asym_taskid){10 + i, 10 + i, 5}, ASYM_RULE_IGNORE, 0), 0);
    const struct asym_taskid more = {5000, 5000, 5};
    assert_int_equal(asym_overrides_unset_rule(o, &more, 1), -ENOSPC);
    assert_int_equal(asym_overrides_set_rule(o, &more, ASYM_RULE_SLOW, 0), -ENOSPC);
    assert_int_equal(asym_overrides_set_rule(o, &p20, ASYM_RULE_SLOW, 0), 0); /* one that is there */
    struct asym_snapshot s = take();
    assert_int_equal(s.n_ignored, ASYM_OVERRIDES_MAX - 1);
    for (size_t i = 1; i < s.n_ignored; i++)
        assert_true(s.ignored[i - 1].tgid < s.ignored[i].tgid);
    asym_overrides_forget(o, has_ended);
    assert_int_equal(asym_overrides_count(o), 1);
    assert_non_null(asym_overrides_find(o, &p20));
    assert_int_equal(take().n_ignored, 0); /* the rest of them has another rule */
    assert_int_equal(asym_overrides_unset_rule(o, &more, 1), 0);
}

TEST_WITH(the_orders_hold_for_a_process_that_is_in_no_snapshot, setup_source, teardown_source)
{
    struct asym_proc proc = {.id = p20, .rule = ASYM_RULE_UNLISTED};
    asym_overrides_apply(o, &proc);
    assert_int_equal(proc.rule, ASYM_RULE_UNLISTED);
    assert_int_equal(asym_overrides_unset_rule(o, &p20, 7), 0);
    asym_overrides_apply(o, &proc);
    assert_int_equal(proc.adopted, 7);
    assert_int_equal(proc.rule, ASYM_RULE_UNLISTED);
    assert_int_equal(asym_overrides_set_rule(o, &p20, ASYM_RULE_SLOW, 0), 0);
    asym_overrides_apply(o, &proc);
    assert_int_equal(proc.rule, ASYM_RULE_SLOW);
    assert_string_equal(proc.rule_name, asym_overrides_rule_name);
    proc = (struct asym_proc){.id = {20, 20, 6}, .rule = ASYM_RULE_IGNORE};
    asym_overrides_apply(o, &proc);
    assert_int_equal(proc.rule, ASYM_RULE_IGNORE);
}

TEST_WITH(the_overlay_hands_on_ends_errors_feedback_and_refreshes, setup_source, teardown_source)
{
    struct asym_source *source = asym_overrides_source(o);
    static const int results[] = {0, -EINPROGRESS, -EIO};
    struct asym_snapshot s = {.now = 42};
    for (size_t i = 0; i < ASYM_LENGTH(results); i++) {
        inner.r = results[i];
        assert_int_equal(source->next(source, &s), results[i]);
        assert_int_equal(s.now, 42);
    }
    asym_source_feedback(source, &(struct asym_feedback){.n_actions = 0});
    asym_source_refresh(source);
    assert_int_equal(inner.n_feedbacks, 1);
    assert_int_equal(inner.n_refreshes, 1);
}

TEST_MAIN
