/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine when memory runs out; its memory use must not grow without bound. This test compiles the files that allocate
 * with an allocator that fails on request.
 */

#include "base/mask.h"
#include "support/engine-fixture.h"
#include "support/scarce-memory.h"

#include "base/hash.c"
#include "base/grow.c"
#include "core/engine.c"
#include "core/task-table.c"
#include "support/test.h"
#undef malloc
#undef calloc

#define TICK (100 * ASYM_MSEC)

TEST(a_new_engine_without_memory_is_refused)
{
    ENGINE_FIXTURE(w);
    bool succeeded = false;
    for (long n = 0; n < 50 && !succeeded; n++) {
        struct asym_engine *e = NULL;
        allocations_left = n;
        int r = asym_engine_new(&w.config, &e);
        allocations_left = -1;
        succeeded = r == 0;
        assert_true(succeeded || r == -ENOMEM);
        assert_true(succeeded == (e != NULL));
        asym_engine_free(e);
    }
    assert_true(succeeded);
}

/* Two applications of a few threads each, one thread with its own nice, one newborn. */
static void populate(struct engine_fixture *w)
{
    for (int32_t pid = 100; pid < 500; pid += 100) {
        unsigned p = engine_fixture_proc(w, pid);
        for (int32_t i = 0; i < 12; i++)
            engine_fixture_thread(w, p, pid + i, i % 8)->cpuset = engine_fixture_cpus(i % 2 ? "0-7" : "0-6");
    }
    for (size_t i = 0; i < w->n_threads; i++)
        w->threads[i].mask = w->threads[i].cpuset;
}

TEST(a_step_without_memory_changes_nothing_and_can_be_repeated)
{
    unsigned failures = 0;
    for (long n = 0;; n++) {
        ENGINE_FIXTURE(w);
        populate(&w);
        allocations_left = n;
        int r = engine_fixture_try_step(&w, TICK);
        allocations_left = -1;
        if (r < 0) {
            assert_int_equal(r, -ENOMEM);
            asym_engine_outcomes(w.engine, NULL, 0);
            failures++;
        }
        engine_fixture_run(&w, TICK);
        for (size_t i = 0; i < w.n_threads; i++)
            assert_int_equal(engine_fixture_planned(&w, w.threads[i].task.id.tid)->target,
                             w.threads[i].task.id.tid % 100 % 8);
        if (r == 0)
            break;
        assert_true(n < 1000);
    }
    assert_true(failures > 10);
}

TEST(memory_that_runs_out_while_steering_loses_nothing)
{
    for (long n = 0; n < 8; n++) {
        ENGINE_FIXTURE(w);
        populate(&w);
        engine_fixture_run(&w, TICK);
        for (size_t i = 0; i < 12; i++)
            engine_fixture_thread(&w, 3, (int32_t)(420 + i), 4);
        allocations_left = n;
        for (int i = 0; i < 5; i++) {
            int r = engine_fixture_try_step(&w, TICK);
            assert_true(r == 0 || r == -ENOMEM);
            if (r == 0)
                engine_fixture_apply(&w);
        }
        allocations_left = -1;
        for (size_t i = 0; i < w.n_threads; i++)
            w.threads[i].listed = false;
        engine_fixture_run(&w, 6 * ASYM_SEC);
        for (size_t i = 0; i < w.n_threads; i++)
            assert_true(asym_mask_equal(&w.threads[i].mask, &w.threads[i].cpuset));
    }
}

TEST(a_configuration_without_memory_leaves_the_old_one)
{
    for (long n = 0; n < 3; n++) {
        ENGINE_FIXTURE(w);
        populate(&w);
        engine_fixture_run(&w, TICK);
        w.config.policy = &engine_fixture_policy_cpu;
        allocations_left = n;
        assert_int_equal(asym_engine_configure(w.engine, &w.config), -ENOMEM);
        allocations_left = -1;
        engine_fixture_run(&w, TICK);
        engine_fixture_assert_mask(&w.threads[5].mask, "4-7");
        assert_int_equal(w.orders.state[0], 1);
    }
}

TEST(an_untouchable_is_kept_also_when_there_is_no_memory_to_put_it_by)
{
    ENGINE_FIXTURE(w);
    struct engine_fixture_thread *t = engine_fixture_thread(&w, engine_fixture_proc(&w, 100), 100, 5);
    engine_fixture_step(&w, TICK);
    engine_fixture_answer(&w, ASYM_OUTCOME_HANDS_OFF, -EPERM);
    t->listed = false;
    allocations_left = 0;
    engine_fixture_run(&w, 3600 * ASYM_SEC);
    allocations_left = -1;
    t->listed = true;
    engine_fixture_run(&w, TICK);
    engine_fixture_assert_why(&w, 100, asym_why(ASYM_WHY_DENIED));
}

TEST(memory_is_bounded_by_what_is_alive)
{
    ENGINE_FIXTURE(w);
    engine_fixture_thread(&w, engine_fixture_proc(&w, 100), 100, 5);
    uint32_t most_threads = 0, most_apps = 0, most_masks = 0;
    for (int32_t i = 0; i < 5000; i++) {
        /* Each tick has a new process: it runs for one tick, asymd steers it, and it is gone. */
        struct engine_fixture_thread *t = &w.threads[0];
        t->task.id = w.procs[0].id = (struct asym_taskid){1000 + i, 1000 + i, (uint64_t)i};
        /* Each process has its own cpuset, so each tick brings a new mask too. */
        t->mask = t->cpuset = (struct asym_mask){{0xff, (uint64_t)i + 1}};
        w.orders.of[t->task.id.tid % 1000].cpu = 5;
        engine_fixture_run(&w, TICK);
        assert_non_null(engine_fixture_action(&w, 1000 + i));
        most_threads = ASYM_MAX(most_threads, w.engine->threads.n);
        most_apps = ASYM_MAX(most_apps, w.engine->apps.n);
        most_masks = ASYM_MAX(most_masks, (uint32_t)w.engine->masks.index.n);
    }
    /* The engine releases it after 5 s, or 50 ticks, and keeps its state for 10 s. */
    assert_in_range(most_threads, 50, 110);
    assert_in_range(most_apps, 1, 20);
    assert_in_range(most_masks, 1, 2000);
}

TEST(a_table_finds_what_was_put_in_and_nothing_else)
{
    ASYM_CLEANUP(asym_table_done) struct asym_table t;
    asym_table_init(&t, sizeof(struct asym_taskid) + 8);
    for (int32_t i = 0; i < 1000; i++)
        assert_non_null(asym_table_get(&t, &(struct asym_taskid){i % 100, i / 2, (uint64_t)i}));
    assert_int_equal(t.n, 1000);
    for (int32_t i = 0; i < 1000; i += 3)
        asym_table_remove(&t, &(struct asym_taskid){i % 100, i / 2, (uint64_t)i});
    asym_table_remove(&t, &(struct asym_taskid){5, 5, 5});
    for (int32_t i = 0; i < 1000; i++) {
        const struct asym_taskid id = {i % 100, i / 2, (uint64_t)i};
        assert_true((asym_table_find(&t, &id) != NULL) == (i % 3 != 0));
        assert_null(asym_table_find(&t, &(struct asym_taskid){i % 100, i / 2, (uint64_t)i + 1}));
    }
    for (uint32_t i = 0; i < t.n; i++)
        assert_ptr_equal(asym_table_find(&t, asym_table_at(&t, i)), asym_table_at(&t, i));
    asym_table_clear(&t);
    assert_null(asym_table_find(&t, &(struct asym_taskid){1, 0, 1}));
}

TEST_MAIN
