/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Transit CPUs of running threads whose new mask leaves out their CPU. CPUs 0-3 are slow, 4-7 fast; two LLCs. */
#include <stdio.h>

#include "base/macro.h"
#include "base/mask.h"
#include "support/engine-fixture.h"
#include "support/test.h"

#define TICK (100 * ASYM_MSEC)

/* A thread that runs on one CPU and has another as its target. */
static struct engine_fixture_thread *runner(struct engine_fixture *w, unsigned proc, int32_t tid, int32_t on,
                                            int32_t to)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, proc, tid, to);
    t->task.cpu = on;
    return t;
}

/* -1: no transit CPU */
static int transit_cpu(const struct engine_fixture *w, int32_t tid)
{
    const struct asym_action *a = engine_fixture_action(w, tid);
    assert_non_null(a);
    assert_true(a->transit_cpu == 0 || asym_mask_has(&a->mask, (int)a->transit_cpu - 1));
    return (int)a->transit_cpu - 1;
}

/* Threads 100, 101 and so on: the CPU on which each runs, its target, the CPU to which it goes first, and its kind. */
enum { NONE = -1, ANY = -2 }; /* no transit CPU; not asserted */
enum { OF_PROGRAM, SLEEPS, EXCLUSIVE, IGNORED, SELF };

static const struct placement {
    const char *name;
    int32_t favoured, sibling; /* this CPU is favoured; this one is on the core of the one before it; 0: none */
    size_t n;
    int32_t rows[8][4];
    const char *mask; /* of thread 100; NULL: not asserted */
} cases[] = {
    /* One that stays on its CPU needs no transit CPU. */
    {"it goes to a CPU where no thread runs", .n = 4, .mask = "0-3",
     .rows = {{4, 0, 2}, {0, 1, NONE}, {1, 2, ANY}, {3, 3, ANY}}},
    /* The serial thread takes a fast CPU, and the thread there gets the CPU that the serial one left. */
    {"one that makes room gets the CPU that is left", .n = 5, .mask = "4",
     .rows = {{1, 4, NONE, EXCLUSIVE}, {4, 3, 1}, {0, 0, ANY}, {2, 2, ANY}, {3, 3, ANY}}},
    {"of idle CPUs that are equal it gets the favoured one", .n = 2, .favoured = 2, .rows = {{4, 0, 2}, {0, 0, ANY}}},
    {"no two are sent to one CPU", .n = 8,
     .rows = {{0, 4, 4}, {1, 5, 5}, {2, 6, 6}, {3, 7, 7}, {4, 0, 0}, {5, 1, 1}, {6, 2, 2}, {7, 3, 3}}},
    {"without an idle CPU the kernel chooses", .n = 5,
     .rows = {{0, 0, ANY}, {1, 1, ANY}, {2, 2, ANY}, {3, 3, ANY}, {4, 0, NONE}}},
    {"one that sleeps takes no CPU and needs none", .n = 3,
     .rows = {{0, 0, ANY, SLEEPS}, {4, 1, NONE, SLEEPS}, {5, 0, 0}}},
    {"an unsteered thread occupies its CPU too", .n = 3, .rows = {{2, 2, ANY, IGNORED}, {4, 2, 1}, {0, 0, ANY}}},
    {"the CPU of asymd counts as idle but comes last", .n = 5,
     .rows = {{2, 2, ANY, SELF}, {4, 2, 0}, {5, 2, 2}, {1, 1, ANY}, {3, 3, ANY}}},
    {"idle cores come before idle siblings", .n = 3, .sibling = 3, .rows = {{4, 2, 0}, {3, 3, ANY}, {1, 1, ANY}}},
};

static void check_case(void **state)
{
    const struct placement *c = *state;
    ENGINE_FIXTURE(w);
    const unsigned p = engine_fixture_proc(&w, 100), ignored = engine_fixture_proc(&w, 200),
                   self = engine_fixture_proc(&w, 300);
    w.procs[ignored].rule = ASYM_RULE_IGNORE;
    w.procs[self].flags = ASYM_PROC_SELF;
    if (c->favoured)
        w.machine.cpus[c->favoured].favour = 1;
    if (c->sibling)
        w.machine.cpus[c->sibling].core = w.machine.cpus[c->sibling - 1].core;
    assert_int_equal(asym_machine_finish(&w.machine), 0);
    for (size_t k = 0; k < c->n; k++) {
        const int32_t *row = c->rows[k], tid = 100 + (int32_t)k, how = row[3];
        const unsigned proc = how == IGNORED ? ignored : how == SELF ? self : p;
        runner(&w, proc, tid, row[0], row[1])->task.state = how == SLEEPS ? 'S' : 'R';
        engine_fixture_order(&w, tid, row[1], how == EXCLUSIVE);
    }
    engine_fixture_step(&w, TICK);
    for (size_t k = 0; k < c->n; k++)
        if (c->rows[k][2] != ANY)
            assert_int_equal(transit_cpu(&w, 100 + (int32_t)k), c->rows[k][2]);
    if (c->mask)
        engine_fixture_assert_mask(&engine_fixture_action(&w, 100)->mask, c->mask);
}

TEST_ROWS(check_case, cases)

/* 100 takes CPU 4, and would leave its CPU for one where 101 still runs, if its action came first. */
TEST_ENGINE(others_leave_a_cpu_before_a_thread_takes_it_exclusively)
{
    static const int32_t rows[][2] = {{1, 4}, {4, 3}, {0, 0}, {5, 2}, {5, 5}}, order[] = {101, 103, 100, 104, 102};
    const unsigned p = engine_fixture_proc(w, 100);
    for (int32_t i = 0; i < 5; i++)
        runner(w, p, 100 + i, rows[i][0], rows[i][1]);
    engine_fixture_order(w, 100, 4, true);
    engine_fixture_order(w, 104, 5, true);
    engine_fixture_step_asks(w, TICK, ASYM_LENGTH(order));
    for (size_t i = 0; i < w->n; i++)
        assert_int_equal(w->actions[i].id.tid, order[i]);
}

/* A refresh repeats the CPU of the last sample: the engine must not move the thread off it a second time. */
TEST_ENGINE(a_thread_that_has_moved_occupies_its_new_cpu)
{
    const unsigned p = engine_fixture_proc(w, 100);
    struct engine_fixture_thread *t = runner(w, p, 100, 5, 5);
    runner(w, p, 101, 4, 3);
    for (int32_t i = 0; i < 3; i++)
        runner(w, p, 102 + i, i, i);
    engine_fixture_run(w, TICK);
    assert_int_equal(transit_cpu(w, 101), 3);
    engine_fixture_order(w, 100, 3, false);
    engine_fixture_step(w, TICK);
    assert_int_equal(t->task.cpu, 5);
    assert_null(engine_fixture_action(w, 101));
    assert_int_equal(transit_cpu(w, 100), -1);
}

TEST_MAIN
