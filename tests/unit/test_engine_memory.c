/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine when memory runs out, and that it does not need ever more of it. The two files that allocate are compiled
 * in here with an allocator that fails on request.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "base/macro.h"
#include "base/mask.h"
#include "support/world.h"

static long allocations_left = -1; /* below 0: as many as wanted */

static bool refused(void)
{
    if (allocations_left < 0)
        return false;
    if (allocations_left == 0)
        return true;
    allocations_left--;
    return false;
}

static void *scarce_malloc(size_t size)
{
    return refused() ? NULL : malloc(size);
}

static void *scarce_calloc(size_t n, size_t size)
{
    return refused() ? NULL : calloc(n, size);
}

#define malloc(size)    scarce_malloc(size)
#define calloc(n, size) scarce_calloc(n, size)
#include "core/engine.c"
#include "core/table.c"
#undef malloc
#undef calloc

#define TICK (100 * ASYM_MSEC)

static void a_new_engine_without_memory_is_refused(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
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
    world_done(&w);
}

/* Two applications of a few threads each, one thread with its own nice, one newborn. */
static void populate(struct world *w)
{
    for (int32_t pid = 100; pid < 500; pid += 100) {
        unsigned p = world_proc(w, pid);
        for (int32_t i = 0; i < 12; i++)
            world_thread(w, p, pid + i, i % 8)->cpuset = world_cpus(i % 2 ? "0-7" : "0-6");
    }
    for (size_t i = 0; i < w->n_threads; i++)
        w->threads[i].mask = w->threads[i].cpuset;
}

static void a_step_without_memory_changes_nothing_and_can_be_repeated(void **state)
{
    (void)state;
    unsigned failures = 0;
    for (long n = 0;; n++) {
        struct world w;
        world_init(&w);
        populate(&w);
        allocations_left = n;
        int r = world_try_step(&w, TICK);
        allocations_left = -1;
        if (r < 0) {
            assert_int_equal(r, -ENOMEM);
            asym_engine_outcomes(w.engine, NULL, 0);
            failures++;
        }
        world_run(&w, TICK);
        for (size_t i = 0; i < w.n_threads; i++)
            assert_int_equal(world_planned(&w, w.threads[i].task.id.tid)->target, w.threads[i].task.id.tid % 100 % 8);
        world_done(&w);
        if (r == 0)
            break;
        assert_true(n < 1000);
    }
    assert_true(failures > 10);
}

static void memory_that_runs_out_while_steering_loses_nothing(void **state)
{
    (void)state;
    for (long n = 0; n < 8; n++) {
        struct world w;
        world_init(&w);
        populate(&w);
        world_run(&w, TICK);
        for (size_t i = 0; i < 12; i++)
            world_thread(&w, 3, (int32_t)(420 + i), 4);
        allocations_left = n;
        for (int i = 0; i < 5; i++) {
            int r = world_try_step(&w, TICK);
            assert_true(r == 0 || r == -ENOMEM);
            if (r == 0)
                world_apply(&w);
        }
        allocations_left = -1;
        for (size_t i = 0; i < w.n_threads; i++)
            w.threads[i].listed = false;
        world_run(&w, 6 * ASYM_SEC);
        for (size_t i = 0; i < w.n_threads; i++)
            assert_true(asym_mask_equal(&w.threads[i].mask, &w.threads[i].cpuset));
        world_done(&w);
    }
}

static void a_configuration_without_memory_leaves_the_old_one(void **state)
{
    (void)state;
    for (long n = 0; n < 3; n++) {
        struct world w;
        world_init(&w);
        populate(&w);
        world_run(&w, TICK);
        w.config.policy = &world_policy_cpu;
        allocations_left = n;
        assert_int_equal(asym_engine_configure(w.engine, &w.config), -ENOMEM);
        allocations_left = -1;
        world_run(&w, TICK);
        world_assert_mask(&w.threads[5].mask, "4-7");
        assert_int_equal(w.orders.state[0], 1);
        world_done(&w);
    }
}

static void an_untouchable_is_kept_also_when_there_is_no_memory_to_put_it_by(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    struct world_thread *t = world_thread(&w, world_proc(&w, 100), 100, 5);
    world_step(&w, TICK);
    world_answer(&w, ASYM_VERDICT_HANDS_OFF, -EPERM);
    t->listed = false;
    allocations_left = 0;
    world_run(&w, 3600 * ASYM_SEC);
    allocations_left = -1;
    t->listed = true;
    world_run(&w, TICK);
    assert_int_equal(world_planned(&w, 100)->reason, ASYM_WHY_DENIED);
    world_done(&w);
}

static void memory_is_bounded_by_what_is_alive(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_thread(&w, world_proc(&w, 100), 100, 5);
    uint32_t most_threads = 0, most_apps = 0, most_masks = 0;
    for (int32_t i = 0; i < 5000; i++) {
        /* a process a tick; it runs for one tick, is steered, and is gone */
        struct world_thread *t = &w.threads[0];
        t->task.id = w.procs[0].id = (struct asym_taskid){1000 + i, 1000 + i, (uint64_t)i};
        /* each in a cpuset of its own, so that there is no end of masks either */
        t->mask = t->cpuset = (struct asym_mask){{0xff, (uint64_t)i + 1}};
        w.orders.of[t->task.id.tid % 1000].cpu = 5;
        world_run(&w, TICK);
        assert_non_null(world_action(&w, 1000 + i));
        most_threads = ASYM_MAX(most_threads, w.engine->threads.n);
        most_apps = ASYM_MAX(most_apps, w.engine->apps.n);
        most_masks = ASYM_MAX(most_masks, w.engine->masks.n_live);
    }
    /* released after 5 s, of 50 ticks, and known for 10 s in all */
    assert_in_range(most_threads, 50, 110);
    assert_in_range(most_apps, 1, 20);
    assert_in_range(most_masks, 1, 2000);
    world_done(&w);
}

static void a_table_finds_what_was_put_in_and_nothing_else(void **state)
{
    (void)state;
    struct asym_table t;
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
    asym_table_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_engine_without_memory_is_refused),
        cmocka_unit_test(a_step_without_memory_changes_nothing_and_can_be_repeated),
        cmocka_unit_test(memory_that_runs_out_while_steering_loses_nothing),
        cmocka_unit_test(a_configuration_without_memory_leaves_the_old_one),
        cmocka_unit_test(an_untouchable_is_kept_also_when_there_is_no_memory_to_put_it_by),
        cmocka_unit_test(memory_is_bounded_by_what_is_alive),
        cmocka_unit_test(a_table_finds_what_was_put_in_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
