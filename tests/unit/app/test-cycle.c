/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The contract of asym/port.h: which calls a cycle makes, which calls the sources of a chain forward, and in which order. */

#include "base/mask.h"
#include "app/cycle.h"
#include "linux/perf/sampler.h"
#include "linux/rtx/rtx-overlay.h"
#include "linux/enforce/enforce.h"
#include "sim/sim.h"
#include "support/test.h"

/* The calls up to now, a letter each: n(ext) f(eedback) r(efresh) a(pply) w(atch a thread's counters). */
static char calls[64];

static void note(char call)
{
    const size_t n = strlen(calls);
    assert_true(n + 1 < sizeof calls);
    calls[n] = call;
    calls[n + 1] = '\0';
}

/* A link around a simulated machine, or the innermost source with a thread of its own. */
static struct {
    struct asym_source source;
    struct asym_feedback last;
    bool refresh;
} chain_end;

static struct asym_task task;
static struct asym_app app = {.n_tasks = 1};
static struct asym_proc proc;
static struct asym_machine machine;
static struct asym_mask cpus;

static int link_next(struct asym_source *source, struct asym_snapshot *ret)
{
    assert_ptr_equal(source, &chain_end.source);
    note('n');
    if (source->inner)
        return source->inner->next(source->inner, ret);
    *ret = (struct asym_snapshot){.now = 1000,
                                  .machine = &machine,
                                  .apps = &app,
                                  .procs = &proc,
                                  .tasks = &task,
                                  .n_apps = 1,
                                  .n_procs = 1,
                                  .n_tasks = 1,
                                  .refreshed = chain_end.refresh};
    chain_end.refresh = false;
    return 1;
}

static void link_feedback(struct asym_source *source, const struct asym_feedback *feedback)
{
    assert_ptr_equal(source, &chain_end.source);
    note('f');
    chain_end.last = *feedback;
}

static void link_refresh(struct asym_source *source)
{
    assert_ptr_equal(source, &chain_end.source);
    note('r');
    chain_end.refresh = true;
}

static int set_up(void **state)
{
    calls[0] = '\0';
    memset(&chain_end, 0, sizeof chain_end);
    chain_end.source = (struct asym_source){.next = link_next, .feedback = link_feedback, .refresh = link_refresh};
    cpus = (struct asym_mask){0};
    asym_mask_set(&cpus, 0);
    task = (struct asym_task){.id = {.tid = 11, .tgid = 11, .start = 1}, .state = 'R', .mask = &cpus, .cpuset = &cpus};
    return 0;
}

/* The actuator of the simulated machine. error: what apply returns in addition. */
static struct {
    struct asym_actuator actuator;
    struct asym_actuator *inner;
    int error;
} hand;

static int hand_apply(struct asym_actuator *actuator, const struct asym_action *actions, size_t n,
                      struct asym_outcome *ret_outcomes)
{
    assert_ptr_equal(actuator, &hand.actuator);
    note('a');
    const int r = hand.inner->apply(hand.inner, actions, n, ret_outcomes);
    return hand.error ? hand.error : r;
}

struct simulated {
    struct asym_scenario *scenario;
    struct asym_sim *sim;
    struct asym_cycle cycle;
};

/* One serial program on a machine with one fast CPU. The engine steers it once it has settled. */
static void begin(struct simulated *s)
{
    static const char text[] = "[machine]\ncounts=3,1\nspeeds=1,2\n[run]\nduration=5s\n"
                               "[program serial]\nstep=serial 1000G\n[program parallel]\nthreads=8\n"
                               "step=parallel 1000G chunk=1M\n";
    struct asym_error err = {""};
    *s = (struct simulated){.scenario = NULL};
    if (asym_scenario_parse(text, strlen(text), "test", &s->scenario, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(asym_sim_new(s->scenario, -1, 1, &s->sim), 0);
    const struct asym_policy *pa = asym_policy_find("pa");
    const struct asym_engine_config config = asym_settings_engine_config(s->scenario->settings, pa);
    chain_end.source.inner = asym_sim_source(s->sim, 100 * ASYM_MSEC);
    hand.inner = asym_sim_actuator(s->sim);
    hand.actuator = (struct asym_actuator){.apply = hand_apply};
    hand.error = 0;
    assert_int_equal(asym_cycle_init(&s->cycle, &config, &chain_end.source, &hand.actuator), 0);
}

static void end(struct simulated *s)
{
    asym_cycle_done(&s->cycle);
    asym_sim_free(s->sim);
    asym_scenario_free(s->scenario);
}

TEST_WITH(a_cycle_samples_applies_and_gives_feedback_in_this_order, set_up, NULL)
{
    struct simulated s;
    begin(&s);
    size_t steered = 0;
    for (int i = 0; i < 20; i++) {
        calls[0] = '\0';
        assert_int_equal(asym_cycle_plan(&s.cycle), 1);
        assert_string_equal(calls, "n");
        assert_int_equal(asym_cycle_enforce(&s.cycle), 0);
        assert_string_equal(calls, "naf");
        assert_ptr_equal(chain_end.last.snapshot, &s.cycle.snapshot);
        assert_ptr_equal(chain_end.last.plan, s.cycle.plan);
        assert_ptr_equal(chain_end.last.actions, s.cycle.actions);
        assert_int_equal(chain_end.last.n_actions, s.cycle.n_actions);
        for (size_t k = 0; k < chain_end.last.n_actions; k++)
            assert_int_equal(chain_end.last.outcomes[k].kind, ASYM_OUTCOME_DONE);
        steered += chain_end.last.n_actions;
    }
    assert_true(steered > 0);
    end(&s);
}

/* The feedback comes even if the actuator applied nothing: the plan decides which threads the monitor counts. */
TEST_WITH(an_actuator_that_fails_does_not_keep_the_feedback_back, set_up, NULL)
{
    static const int errors[] = {-ENOSPC, -ENOMEM};
    for (size_t i = 0; i < ASYM_LENGTH(errors); i++) {
        struct simulated s;
        begin(&s);
        calls[0] = '\0';
        hand.error = errors[i];
        assert_int_equal(asym_cycle_plan(&s.cycle), 1);
        assert_int_equal(asym_cycle_enforce(&s.cycle), errors[i]);
        assert_string_equal(calls, "naf");
        end(&s);
    }
}

TEST_WITH(a_dry_run_reports_to_the_source_that_nothing_was_done, set_up, NULL)
{
    struct simulated s;
    begin(&s);
    size_t planned = 0;
    s.cycle.actuator = asym_actuator_dry();
    for (int i = 0; i < 20; i++) {
        assert_int_equal(asym_cycle_plan(&s.cycle), 1);
        assert_int_equal(asym_cycle_enforce(&s.cycle), 0);
        for (size_t k = 0; k < chain_end.last.n_actions; k++)
            assert_int_equal(chain_end.last.outcomes[k].error, -ECANCELED);
        planned += chain_end.last.n_actions;
    }
    assert_true(planned > 0);
    s.cycle.actuator->close(s.cycle.actuator);
    end(&s);
}

TEST_WITH(a_source_without_feedback_and_refresh_is_a_source, set_up, NULL)
{
    struct simulated s;
    begin(&s);
    chain_end.source.feedback = NULL;
    chain_end.source.refresh = NULL;
    asym_source_refresh(s.cycle.source);
    assert_int_equal(asym_cycle_plan(&s.cycle), 1);
    assert_int_equal(asym_cycle_enforce(&s.cycle), 0);
    assert_string_equal(calls, "na");
    end(&s);
}

/* Counters that count nothing and note which threads they watch. */
static int watch(struct asym_counters *c, const struct asym_taskid *id)
{
    assert_int_equal(id->tid, task.id.tid);
    note('w');
    return 0;
}

static int unwatch(struct asym_counters *c, const struct asym_taskid *id)
{
    return 0;
}

static int read_counts(struct asym_counters *c, const struct asym_taskid *id, struct asym_counts *ret)
{
    *ret = (struct asym_counts){.valid = 0};
    return 0;
}

static void close_counters(struct asym_counters *c)
{
}

static size_t ask(struct asym_rtxd_provider *provider, asym_usec now, unsigned how,
                  const struct asym_rtxd_program_report **ret)
{
    *ret = NULL;
    return 0;
}

static asym_usec now(void)
{
    return 1000;
}

static struct asym_counters counters = {
    .watch = watch, .unwatch = unwatch, .read = read_counts, .close = close_counters};
static struct asym_rtxd_provider provider = {.ask = ask};

static struct asym_source *rtx_overlay(struct asym_source *inner)
{
    struct asym_source *source;
    const struct asym_rtxd_overlay_config config = {.inner = inner, .provider = &provider, .now = now};
    assert_int_equal(asym_rtxd_overlay_new(&config, &source), 0);
    return source;
}

static struct asym_source *ledger_overlay(struct asym_source *inner)
{
    struct asym_source *source;
    assert_int_equal(asym_ledger_overlay_new(inner, "/nonexistent-asymd", &source, NULL), 0);
    return source;
}

static struct asym_source *sampler(struct asym_source *inner)
{
    struct asym_source *source;
    const struct asym_sampler_config config = {.source = inner, .counters = &counters};
    assert_int_equal(asym_sampler_new(&config, &source), 0);
    return source;
}

/* Each link alone around the innermost source; the last row is the chain of the service, with a ledger overlay too. */
static const struct {
    const char *name;
    struct asym_source *(*link[3])(struct asym_source *inner);
    const char *after_feedback;
} chains[] = {
    {"rtx overlay", {rtx_overlay}, "f"},
    {"ledger overlay", {ledger_overlay}, "f"},
    {"sampler", {sampler}, "fw"},
    {"all", {ledger_overlay, rtx_overlay, sampler}, "fw"},
};

/* The innermost source gets the feedback first; the monitor counts last, when threads are where the plan wants them. */
TEST_WITH(refresh_and_feedback_reach_the_innermost_source_through_every_link, set_up, NULL)
{
    for (size_t i = 0; i < ASYM_LENGTH(chains); i++) {
        struct asym_source *built[4] = {&chain_end.source};
        size_t n = 0;
        struct asym_snapshot s;
        struct asym_plan_task planned = {.target = -1, .counted = true};
        const struct asym_plan plan = {.tasks = &planned, .n_tasks = 1};
        const struct asym_feedback feedback = {.snapshot = &s, .plan = &plan};
        for (; n < ASYM_LENGTH(chains[i].link) && chains[i].link[n]; n++)
            built[n + 1] = chains[i].link[n](built[n]);
        calls[0] = '\0';
        asym_source_refresh(built[n]);
        assert_int_equal(built[n]->next(built[n], &s), 1);
        if (strcmp(calls, "rn") != 0 || !s.refreshed)
            fail_msg("%s: calls are %s, refreshed is %d", chains[i].name, calls, (int)s.refreshed);
        /* A refresh holds for one call. */
        assert_int_equal(built[n]->next(built[n], &s), 1);
        assert_false(s.refreshed);
        calls[0] = '\0';
        asym_source_feedback(built[n], &feedback);
        if (strcmp(calls, chains[i].after_feedback) != 0 || chain_end.last.plan != &plan)
            fail_msg("%s: calls are %s, not %s", chains[i].name, calls, chains[i].after_feedback);
        for (; n > 0; n--)
            built[n]->close(built[n]);
    }
}

TEST_MAIN
