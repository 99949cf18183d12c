/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Phases, classes and the boost of SP, as the engine sees them over time. */

#include <math.h>
#include <stdio.h>

#include "core/classify.h"
#include "support/engine-fixture.h"
#include "support/test.h"

#define TICK (100 * ASYM_MSEC)

/* An application with threads 100, 101 and 102. The test sets its runnable count. */
static void setup(struct engine_fixture *w)
{
    engine_fixture_init(w);
    unsigned p = engine_fixture_proc(w, 100);
    for (int32_t tid = 100; tid < 103; tid++)
        engine_fixture_thread(w, p, tid, 5);
}

#define TEST_F(name) TEST_IN(name, struct engine_fixture, w, setup, engine_fixture_done)

static void configure(struct engine_fixture *w)
{
    assert_int_equal(asym_engine_configure(w->engine, &w->config), 0);
}

/* One tick with this count; thread i is runnable for share[i]. */
static void tick(struct engine_fixture *w, double count, double a, double b, double c)
{
    const double share[] = {a, b, c};
    for (size_t i = 0; i < 3; i++)
        w->threads[i].task.runnable = share[i];
    w->runnable[0] = count;
    engine_fixture_run(w, TICK);
}

static enum asym_class class_of(struct engine_fixture *w, int32_t tid)
{
    return engine_fixture_planned(w, tid)->class;
}

TEST_F(phases_begin_at_half_a_thread_above_their_counts)
{
    static const struct {
        double count;
        enum asym_phase phase;
        enum asym_class class;
    } rows[] = {
        {0, ASYM_PHASE_IDLE, ASYM_CLASS_NONE},      {0.49, ASYM_PHASE_IDLE, ASYM_CLASS_NONE},
        {0.5, ASYM_PHASE_SERIAL, ASYM_CLASS_MP},    {1, ASYM_PHASE_SERIAL, ASYM_CLASS_MP},
        {2, ASYM_PHASE_SERIAL, ASYM_CLASS_MP},      {2.1, ASYM_PHASE_SERIAL, ASYM_CLASS_MP},
        {2.49, ASYM_PHASE_SERIAL, ASYM_CLASS_MP},   {2.5, ASYM_PHASE_PARALLEL, ASYM_CLASS_MP},
        {3, ASYM_PHASE_PARALLEL, ASYM_CLASS_MP},    {5, ASYM_PHASE_PARALLEL, ASYM_CLASS_MP},
        {5.49, ASYM_PHASE_PARALLEL, ASYM_CLASS_MP}, {5.5, ASYM_PHASE_PARALLEL, ASYM_CLASS_HP},
        {6, ASYM_PHASE_PARALLEL, ASYM_CLASS_HP},    {20000, ASYM_PHASE_PARALLEL, ASYM_CLASS_HP},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        tick(w, rows[i].count, 1, 1, 1);
        assert_int_equal(w->plan->apps[0].phase, rows[i].phase);
        assert_int_equal(w->plan->apps[0].class, rows[i].class);
        assert_float_equal(w->plan->apps[0].runnable, rows[i].count, 0);
    }
}

/* A program that needs half of a CPU: it is active from half on, down to a quarter. */
TEST_F(a_program_at_half_of_a_cpu_does_not_flicker)
{
    static const struct {
        double count;
        bool is_active;
    } rows[] = {{0.4, false},  {0.5, true},  {0.4, true}, {0.25, true},
                {0.24, false}, {0.4, false}, {0.6, true}, {0, false}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        tick(w, rows[i].count, rows[i].count, 0, 0);
        assert_int_equal(w->plan->apps[0].phase, rows[i].is_active ? ASYM_PHASE_SERIAL : ASYM_PHASE_IDLE);
        assert_int_equal(w->plan->apps[0].class, rows[i].is_active ? ASYM_CLASS_MP : ASYM_CLASS_NONE);
        assert_int_equal(strcmp(asym_classify_word(&w->plan->apps[0], false), "idle") != 0, rows[i].is_active);
    }
}

TEST_F(hp_threshold_is_the_setting_or_fast_cores_and_one)
{
    assert_int_equal(asym_hp_threshold(&w->config.classify, &w->machine), 5);
    w->machine.cpus[7].core = w->machine.cpus[6].core; /* two hardware threads of one core */
    assert_int_equal(asym_machine_finish(&w->machine), 0);
    assert_int_equal(asym_hp_threshold(&w->config.classify, &w->machine), 4);
    w->config.classify.hp_threshold = 2;
    assert_int_equal(asym_hp_threshold(&w->config.classify, &w->machine), 2);
    configure(w);
    tick(w, 2, 1, 1, 0);
    assert_int_equal(w->plan->apps[0].class, ASYM_CLASS_MP);
    tick(w, 3, 1, 1, 1);
    assert_int_equal(w->plan->apps[0].class, ASYM_CLASS_HP);
    assert_int_equal(class_of(w, 101), ASYM_CLASS_HP);
}

TEST_F(a_program_with_high_nice_values_is_highly_parallel)
{
    w->config.classify.background_nice = 10;
    configure(w);
    for (size_t i = 0; i < 3; i++)
        w->threads[i].task.nice = 10;
    tick(w, 3, 1, 1, 1);
    tick(w, 1, 1, 0, 0);
    assert_int_equal(w->plan->apps[0].phase, ASYM_PHASE_PARALLEL);
    assert_int_equal(class_of(w, 100), ASYM_CLASS_HP);
    w->threads[1].task.nice = 9;
    tick(w, 1, 1, 0, 0); /* the thread with a lower nice value does not run */
    assert_int_equal(class_of(w, 100), ASYM_CLASS_HP);
    tick(w, 1, 0.5, 0.5, 0);
    assert_int_equal(w->plan->apps[0].phase, ASYM_PHASE_SERIAL);
    assert_int_equal(class_of(w, 100), ASYM_CLASS_MP);
    tick(w, 0, 0, 0, 0);
    assert_int_equal(w->plan->apps[0].phase, ASYM_PHASE_IDLE);
    w->config.classify.background_nice = 0;
    configure(w);
    w->threads[1].task.nice = 19;
    tick(w, 1, 1, 0, 0);
    assert_int_equal(class_of(w, 100), ASYM_CLASS_MP);
}

TEST_F(the_nice_value_that_a_rule_lends_counts)
{
    const struct asym_rule_facts rule = {.has_nice = true, .nice = 12};
    w->config.classify.background_nice = 10;
    configure(w);
    w->procs[0].rule_facts = &rule;
    tick(w, 1, 1, 0, 0);
    assert_int_equal(class_of(w, 100), ASYM_CLASS_HP);
}

TEST_F(a_rule_decides_before_the_nice_value)
{
    const struct asym_rule_facts rule = {.policy_class = ASYM_RULE_CLASS_SERIAL};
    w->config.classify.background_nice = 10;
    configure(w);
    w->procs[0].rule_facts = &rule;
    for (size_t i = 0; i < 3; i++)
        w->threads[i].task.nice = 19;
    tick(w, 1, 1, 0, 0);
    assert_int_equal(class_of(w, 100), ASYM_CLASS_MP);
}

/* A build: its compilers count as parallel by a rule, its linker as serial. */
TEST_F(one_process_that_counts_as_parallel_makes_its_job_parallel)
{
    static const struct asym_rule_facts serial = {.policy_class = ASYM_RULE_CLASS_SERIAL},
                                        parallel = {.policy_class = ASYM_RULE_CLASS_PARALLEL};
    static const struct {
        const struct asym_rule_facts *first, *second;
        enum asym_class class;
    } rows[] = {
        {&serial, &parallel, ASYM_CLASS_HP}, {&parallel, &serial, ASYM_CLASS_HP}, {NULL, &parallel, ASYM_CLASS_HP},
        {&serial, NULL, ASYM_CLASS_MP},      {NULL, &serial, ASYM_CLASS_MP},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const struct asym_proc procs[] = {{.rule_facts = rows[i].first}, {.rule_facts = rows[i].second}};
        const struct asym_task tasks[] = {{.proc = 0, .runnable = 1}, {.proc = 1, .runnable = 1}};
        const struct asym_snapshot s = {.now = 1, .machine = &w->machine, .procs = procs, .tasks = tasks};
        const struct asym_app app = {.n_tasks = 2, .n_procs = 2, .runnable_mean = 2};
        struct asym_app_state made = {.seen = 0};
        asym_classify(&w->config.classify, &s, &app, 0, &made);
        assert_int_equal(made.class.value, rows[i].class);
        assert_int_equal(made.class_by, ASYM_CLASS_BY_RULE);
    }
}

TEST_F(the_instant_estimator_counts_threads_in_state_r)
{
    w->config.classify.estimator = ASYM_ESTIMATOR_INSTANT;
    configure(w);
    w->threads[2].task.state = 'S';
    tick(w, 9, 1, 1, 0);
    assert_float_equal(w->plan->apps[0].runnable, 2, 0);
    assert_int_equal(w->plan->apps[0].phase, ASYM_PHASE_SERIAL);
}

/*
 * A tick: the count, and for how much of it each thread is runnable. says: phase and class of the program, and the classes of the
 * threads; x is any but SP, a point is any.
 */
struct step {
    double count, share[3];
    uint32_t flags[3];
    unsigned times; /* 0: once */
    const char *says;
    unsigned since; /* tick in which the SP thread, or thread 100 without one, got its class; 0: not asserted */
};

#define RUN(n, a, b, c)                                                                                                \
    {                                                                                                                  \
        .count = n, .share = { a, b, c }                                                                               \
    }
#define AT(n, a, b, c, ...)                                                                                            \
    {                                                                                                                  \
        .count = n, .share = {a, b, c}, __VA_ARGS__                                                                    \
    }

static const struct story {
    const char *name;
    unsigned hysteresis; /* after the first tick; 0: the default */
    unsigned serial_max_threads, rounds;
    bool no_boost;
    struct step steps[8];
} stories[] = {
    {"serial_max_threads bounds the serial phase", .serial_max_threads = 1,
     .steps = {AT(1, 1, 0, 0, .says = "S. ..."), AT(2, 1, 1, 0, .says = "P. ...")}},
    /* One interval with the old value: the count starts again. */
    {"a class changes only after it has held", .hysteresis = 3,
     .steps = {RUN(1, 1, 0, 0), RUN(6, 1, 1, 1), AT(6, 1, 1, 1, .says = "SM ..."), RUN(1, 1, 0, 0), RUN(6, 1, 1, 1),
               AT(6, 1, 1, 1, .says = ".M ..."), AT(6, 1, 1, 1, .says = "PH ...")}},
    {"other values on the way do not add up", .hysteresis = 2,
     .steps = {RUN(1, 1, 0, 0), RUN(6, 1, 1, 1), AT(0, 0, 0, 0, .says = "S. ..."), AT(0, 0, 0, 0, .says = "I. ...")}},
    {"the one runnable thread after a parallel phase is in a serial phase",
     .steps = {AT(3, 1, 1, 1, .says = ".. .M."), AT(1, 0.02, 0.98, 0, .says = ".M MS.")}},
    /* Serial by serial_max_threads, but more than one thread. */
    {"two threads are parallel enough for a serial phase after them",
     .steps = {AT(2, 1, 1, 0, .says = "S. ..."), AT(1, 1, 0, 0, .says = ".. S..")}},
    {"an application that was never parallel has no serial phase", .rounds = 3,
     .steps = {AT(1.4, 1, 0.4, 0, .says = ".. M.."), AT(0.6, 0.6, 0, 0, .says = ".. M.."), RUN(0.1, 0.1, 0, 0)}},
    /* The boost does not begin again by itself. */
    {"a serial phase lasts for amp_boost and not longer",
     .steps = {RUN(3, 1, 1, 1), RUN(1, 1, 0, 0), AT(1, 1, 0, 0, .times = 9, .says = ".. S..", .since = 2),
               AT(1, 1, 0, 0, .says = ".. M..", .since = 12), AT(1, 1, 0, 0, .says = ".. M..")}},
    {"a serial phase ends with the next parallel phase and begins anew after it",
     .steps = {RUN(3, 1, 1, 1), RUN(1, 1, 0, 0), AT(3, 1, 1, 1, .says = ".. M.."),
               AT(1, 1, 0, 0, .says = ".. S..", .since = 4)}},
    {"flicker below one and a half does not end a serial phase",
     .steps = {RUN(3, 1, 1, 1), RUN(1.3, 0.9, 0.4, 0), RUN(1.49, 1, 0.49, 0), AT(0.6, 0.6, 0, 0, .says = ".. S.."),
               AT(1.5, 1, 0.5, 0, .says = ".. M..")}},
    /* The worker that ended last was busier in the first interval. There is one boost for both, not one each. */
    {"the serial phase follows the thread that does the serial work",
     .steps = {RUN(3, 1, 1, 1), AT(1.4, 0.6, 0.8, 0, .says = ".. .S."),
               AT(1, 1, 0.01, 0, .says = ".. SM.", .since = 2)}},
    /* The others were busier in the interval before. */
    {"a thread that the kernel calls alone is the serial one",
     .steps = {RUN(3, 1, 1, 1), AT(1, 1, 0.2, 0.9, .flags = {0, ASYM_TASK_ALONE}, .says = ".. .S.")}},
    {"a spinning thread is not the serial one",
     .steps = {RUN(3, 1, 1, 1), AT(0.9, 1, 0.9, 0, .flags = {ASYM_TASK_SPINNING}, .says = ".. .S.")}},
    {"a master is serial at once whatever the count, and no longer when the parallel phase begins", .hysteresis = 3,
     .steps = {RUN(3, 1, 1, 1), RUN(3, 1, 1, 1), RUN(3, 1, 1, 1),
               AT(3, 1, 1, 1, .flags = {0, ASYM_TASK_MASTER}, .says = ".. xS."),
               AT(3, 1, 1, 1, .flags = {0, ASYM_TASK_MASTER}, .says = ".. .S.", .since = 4),
               AT(3, 1, 1, 1, .says = ".. .x."),
               AT(3, 1, 1, 1, .flags = {0, ASYM_TASK_MASTER}, .says = ".. .S.", .since = 7)}},
    /* The program reported the serial phase and its end, so the thread count decides neither. */
    {"the end of a reported phase ends the boost",
     .steps = {RUN(3, 1, 1, 1), AT(1, 1, 0, 0, .flags = {ASYM_TASK_MASTER}, .says = ".. S.."),
               AT(1, 1, 0, 0, .says = ".. M..")}},
    {"a master that waits is not serial",
     .steps = {AT(2, 1, 1, 1, .flags = {ASYM_TASK_MASTER | ASYM_TASK_SPINNING}, .says = ".. x..")}},
    {"a short pause does not break the transition",
     .steps = {RUN(3, 1, 1, 1), RUN(0.2, 0.2, 0, 0), AT(1, 1, 0, 0, .says = ".. S..")}},
    {"a long pause does",
     .steps = {RUN(3, 1, 1, 1), AT(0.2, 0.2, 0, 0, .times = 12), AT(1, 1, 0, 0, .says = ".. M..")}},
    {"there is no boost with amp_boost 0", .no_boost = true,
     .steps = {RUN(3, 1, 1, 1), AT(1, 1, 0, 0, .says = ".. M..")}},
    {"hysteresis holds for the serial phase too", .hysteresis = 2,
     .steps = {RUN(3, 1, 1, 1), RUN(3, 1, 1, 1), AT(1, 1, 0, 0, .says = ".. M.."), AT(1, 1, 0, 0, .says = ".. S.."),
               AT(3, 1, 1, 1, .says = ".. S.."), AT(3, 1, 1, 1, .says = ".. M..")}},
};

static void check(struct engine_fixture *w, const struct step *step, unsigned n)
{
    static const char phases[] = {[ASYM_PHASE_IDLE] = 'I', [ASYM_PHASE_SERIAL] = 'S', [ASYM_PHASE_PARALLEL] = 'P'};
    static const char classes[] = {
        [ASYM_CLASS_NONE] = '-', [ASYM_CLASS_MP] = 'M', [ASYM_CLASS_HP] = 'H', [ASYM_CLASS_SP] = 'S'};
    const char *says = step->says ? step->says : ".. ...";
    const char *sp = strchr(says + 3, 'S');
    assert_true(says[0] == '.' || says[0] == phases[w->plan->apps[0].phase]);
    assert_true(says[1] == '.' || says[1] == classes[w->plan->apps[0].class]);
    for (int i = 0; i < 3; i++) {
        const char class = classes[class_of(w, 100 + i)];
        assert_true(says[3 + i] == '.' || (says[3 + i] == 'x' ? class != 'S' : says[3 + i] == class));
    }
    if (step->since)
        assert_int_equal(w->orders.threads[sp ? sp - says - 3 : 0].class_since, w->now - (n - step->since) * TICK);
}

static void tell(void **state)
{
    const struct story *story = *state;
    ASYM_CLEANUP(engine_fixture_done) struct engine_fixture w;
    unsigned n = 0;
    setup(&w);
    if (story->serial_max_threads)
        w.config.classify.serial_max_threads = story->serial_max_threads;
    if (story->no_boost)
        w.config.classify.amp_boost = 0;
    configure(&w);
    for (unsigned k = 0; k < ASYM_MAX(story->rounds, 1U) * ASYM_LENGTH(story->steps); k++) {
        const struct step *s = &story->steps[k % ASYM_LENGTH(story->steps)];
        for (unsigned i = 0; (s->says || s->count > 0) && i < ASYM_MAX(s->times, 1U); i++) {
            for (size_t t = 0; t < 3; t++)
                w.threads[t].task.flags = s->flags[t];
            tick(&w, s->count, s->share[0], s->share[1], s->share[2]);
            check(&w, s, ++n);
        }
        if (n == 1 && story->hysteresis) {
            w.config.classify.hysteresis = story->hysteresis;
            configure(&w);
        }
    }
}

TEST_ROWS(tell, stories)

TEST_F(an_application_that_is_not_listed_is_idle)
{
    w->config.classify.hysteresis = 2;
    configure(w);
    tick(w, 6, 1, 1, 1);
    tick(w, 6, 1, 1, 1);
    assert_int_equal(w->plan->apps[0].class, ASYM_CLASS_HP);
    size_t n_procs = w->n_procs, n_threads = w->n_threads;
    w->n_procs = w->n_threads = 0;
    engine_fixture_run(w, TICK);
    engine_fixture_run(w, TICK);
    w->n_procs = n_procs;
    w->n_threads = n_threads;
    tick(w, 6, 1, 1, 1);
    assert_int_equal(w->plan->apps[0].class, ASYM_CLASS_NONE);
}

TEST_F(phase_since_tells_seniority)
{
    tick(w, 3, 1, 1, 1);
    asym_usec since = w->now;
    tick(w, 6, 1, 1, 1);
    tick(w, 4, 1, 1, 1);
    assert_int_equal(w->orders.apps[0].phase_since, since);
    tick(w, 1, 1, 0, 0);
    tick(w, 3, 1, 1, 1);
    assert_int_equal(w->orders.apps[0].phase_since, w->now);
}

TEST_F(a_master_is_sp_for_amp_boost_once_a_phase)
{
    w->threads[0].task.flags = ASYM_TASK_MASTER;
    int ticks = 0;
    for (int i = 0; i < 30; i++) {
        tick(w, 1, 1, 0, 0);
        ticks += class_of(w, 100) == ASYM_CLASS_SP;
    }
    assert_int_equal(ticks, w->config.classify.amp_boost / TICK);
}

TEST_F(class_since_is_when_the_thread_got_its_class)
{
    tick(w, 3, 1, 1, 1);
    asym_usec since = w->now;
    tick(w, 4, 1, 1, 1);
    assert_int_equal(w->orders.threads[2].class_since, since);
    tick(w, 6, 1, 1, 1);
    assert_int_equal(w->orders.threads[2].class_since, w->now);
}

TEST_F(counts_that_make_no_sense_are_idle)
{
    struct asym_app_state m = {0};
    struct asym_app app = {.runnable_mean = -1};
    const struct asym_snapshot s = {.machine = &w->machine, .now = ASYM_SEC};
    asym_classify(&w->config.classify, &s, &app, 0, &m);
    assert_int_equal(m.phase.value, ASYM_PHASE_IDLE);
    app.runnable_mean = NAN;
    asym_classify(&w->config.classify, &s, &app, 0, &m);
    assert_int_equal(m.phase.value, ASYM_PHASE_IDLE);
    app.runnable_mean = 1e300;
    asym_classify(&w->config.classify, &s, &app, 0, &m);
    assert_int_equal(m.class.value, ASYM_CLASS_HP);
}

TEST_MAIN
