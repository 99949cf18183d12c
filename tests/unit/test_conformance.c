/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every policy obeys (policies.md), for every policy, on machines and loads made up from seeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <asym/engine.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/parse.h"
#include "support/count.h"
#include "support/generate.h"

#define N_SEEDS    300
#define BIG_LOAD   20000
#define PARAMS_MAX 256

/* One policy at work on one generated machine. */
struct run {
    const struct asym_policy *policy;
    unsigned seed;
    bool uniform;
    struct gen g;
    struct asym_machine machine;
    struct gen_load *load;
    struct asym_engine *e;
    const struct asym_plan *plan;
    const struct asym_action *actions;
    size_t n_actions;
    struct asym_mask *may; /* per task, as found at first */
    struct asym_outcome *outcomes;
};

#define CHECK(r, condition)                                                                                            \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail_msg("policy %s, seed %u: %s", (r)->policy->name, (r)->seed, #condition);                              \
    } while (0)

static struct asym_engine *new_engine(const struct asym_policy *policy, asym_usec swap_period)
{
    union {
        double aligned;
        char bytes[PARAMS_MAX];
    } params = {.bytes = {0}};
    gen_params(policy, &params);
    const struct asym_engine_config config = {
        .policy = policy,
        .params = &params,
        .classify = {.serial_max_threads = 2, .hp_threshold = UINT32_MAX, .amp_boost = ASYM_SEC, .hysteresis = 1},
        .enforce = {.pin = -1,
                    .swap_period = swap_period,
                    .settle = 500 * ASYM_MSEC,
                    .fork_holdoff = 10 * ASYM_SEC,
                    .release = 5 * ASYM_SEC},
    };
    struct asym_engine *e = NULL;
    assert_true(policy->params_size <= PARAMS_MAX);
    assert_int_equal(asym_engine_new(&config, &e), 0);
    return e;
}

/* Most loads are small, some are large: the rules do not care, and the time is better spent on more machines. */
static unsigned choose_threads(struct gen *g, unsigned seed)
{
    if (seed == N_SEEDS - 1)
        return BIG_LOAD;
    return seed % 50 == 0 ? 0 : gen_size(g, seed % 10 == 9 ? 2000 : 300);
}

static void setup(struct run *r, const struct asym_policy *policy, unsigned seed, asym_usec swap_period)
{
    *r = (struct run){.policy = policy, .seed = seed, .uniform = seed % 3 == 0, .g = {.state = seed}};
    gen_machine(&r->g, &r->machine);
    r->load = gen_load_random(&r->g, &r->machine, choose_threads(&r->g, seed), r->uniform);
    assert_non_null(r->load);
    r->e = new_engine(policy, swap_period);
    r->may = calloc(r->load->s.n_tasks + 1, sizeof *r->may);
    r->outcomes = calloc(2 * r->load->s.n_tasks + 1, sizeof *r->outcomes);
    assert_true(r->may && r->outcomes);
    for (size_t i = 0; i < r->load->s.n_tasks; i++) {
        r->may[i] = asym_mask_and(&r->load->masks[i], &r->load->cpusets[i]);
        r->may[i] = asym_mask_and(&r->may[i], &r->machine.usable);
    }
}

static void teardown(struct run *r)
{
    asym_engine_free(r->e);
    gen_load_free(r->load);
    free(r->may);
    free(r->outcomes);
}

static void step(struct run *r)
{
    assert_int_equal(asym_engine_step(r->e, &r->load->s, &r->plan, &r->actions, &r->n_actions), 0);
}

/* All actions succeed, and every thread runs where it was sent. */
static void follow(struct run *r)
{
    assert_true(r->n_actions <= 2 * r->load->s.n_tasks);
    gen_load_apply(r->load, r->actions, r->n_actions);
    gen_load_move(r->load, r->plan);
    asym_engine_outcomes(r->e, r->outcomes, r->n_actions);
}

/* Several steps of a life: all at work, a while later again, many gone serial, all at work again. */
static void live(struct run *r, void (*check)(struct run *))
{
    for (unsigned k = 0; k < 4; k++) {
        if (k == 2)
            gen_load_calm(&r->g, r->load);
        for (size_t a = 0; k == 3 && a < r->load->s.n_apps; a++)
            gen_load_share(r->load, a, 1);
        step(r);
        check(r);
        follow(r);
        gen_load_pass(r->load, 100 * ASYM_MSEC);
    }
}

static void for_all(asym_usec swap_period, void (*body)(struct run *))
{
    for (size_t p = 0; asym_policy_at(p); p++) {
        for (unsigned seed = 0; seed < N_SEEDS; seed++) {
            struct run r;
            setup(&r, asym_policy_at(p), seed, swap_period);
            body(&r);
            teardown(&r);
        }
    }
}

/* --- what is checked of each plan --- */

/* A window of smt-*: the thread is alone on its core, whose other CPUs are kept clear of all threads. */
static bool holds_core(const struct asym_plan_task *t)
{
    return t->reason == ASYM_WHY_SMT_SOLO || t->reason == ASYM_WHY_SMT_MEASURED_ALONE;
}

static void set_held(const struct run *r, struct asym_mask *ret_held)
{
    bool held[ASYM_MAX_CPUS] = {0};
    *ret_held = (struct asym_mask){0};
    for (size_t i = 0; i < r->plan->n_tasks; i++)
        if (holds_core(&r->plan->tasks[i]))
            held[r->machine.cpus[r->plan->tasks[i].target].core] = true;
    ASYM_MASK_FOREACH (c, &r->machine.usable)
        if (held[r->machine.cpus[c].core])
            asym_mask_set(ret_held, (unsigned)c);
}

/* Did the policy place it? An idle thread, and one that waits for the next swap, may keep what it was given before. */
static bool is_placed(const struct asym_plan_task *t)
{
    return t->target >= 0 && t->reason > ASYM_WHY_LAST_EXCLUSION;
}

static bool may_keep(enum asym_reason reason)
{
    return reason == ASYM_WHY_IDLE || reason == ASYM_WHY_NEXT_SWAP;
}

static void check_targets(struct run *r)
{
    const struct asym_snapshot *s = &r->load->s;
    CHECK(r, r->plan->n_tasks == s->n_tasks && r->plan->n_apps == s->n_apps);
    for (size_t i = 0; i < s->n_tasks; i++) {
        const struct asym_plan_task *t = &r->plan->tasks[i];
        if (t->target < 0)
            continue;
        CHECK(r, asym_mask_has(&r->may[i], t->target));
        CHECK(r, asym_mask_within(&t->mask, &r->may[i]));
        CHECK(r, asym_mask_has(&t->mask, t->target));
        CHECK(r, t->nice >= -20 && t->nice <= 19);
    }
}

static void check_reasons(struct run *r)
{
    char text[256];
    for (size_t i = 0; i < r->plan->n_tasks; i++) {
        const struct asym_plan_task *t = &r->plan->tasks[i];
        CHECK(r, t->reason != ASYM_WHY_NONE);
        CHECK(r, t->target >= 0 || t->reason <= ASYM_WHY_LAST_EXCLUSION);
        CHECK(r, t->target < 0 || t->reason > ASYM_WHY_LAST_EXCLUSION || may_keep(t->reason));
        CHECK(r, asym_reason_text(t->reason, t->figure, text, sizeof text)[0] != '\0');
        CHECK(r, !strstr(text, "nan") && !strstr(text, "inf"));
    }
    for (size_t k = 0; k < r->n_actions; k++)
        CHECK(r, r->actions[k].reason != ASYM_WHY_NONE || r->actions[k].kind == ASYM_ACTION_REPAIR);
}

static void check_claims(struct run *r)
{
    struct asym_mask claimed = {0};
    for (size_t i = 0; i < r->plan->n_tasks; i++) {
        const struct asym_plan_task *t = &r->plan->tasks[i];
        if (!t->claim)
            continue;
        CHECK(r, t->target >= 0 && !asym_mask_has(&claimed, t->target));
        asym_mask_set(&claimed, (unsigned)t->target);
    }
    for (size_t i = 0; i < r->plan->n_tasks; i++) {
        const struct asym_plan_task *t = &r->plan->tasks[i];
        if (!is_placed(t))
            continue;
        struct asym_mask shared = asym_mask_and(&t->mask, &claimed);
        /* All it may have of its pin set is claimed: there is nowhere else. */
        CHECK(r, t->claim ? asym_mask_equal(&shared, &t->mask)
                          : asym_mask_empty(&shared) || asym_mask_equal(&shared, &t->mask));
        if (!t->claim && !asym_mask_empty(&shared)) {
            struct asym_mask free_cpus = asym_mask_minus(&r->may[i], &claimed);
            CHECK(r, asym_mask_empty(&free_cpus));
        }
    }
}

static void count_loads(const struct asym_plan *plan, unsigned loads[ASYM_MAX_CPUS])
{
    memset(loads, 0, ASYM_MAX_CPUS * sizeof loads[0]);
    for (size_t i = 0; i < plan->n_tasks; i++)
        if (is_placed(&plan->tasks[i]))
            loads[plan->tasks[i].target]++;
}

static void check_fast_busy(struct run *r)
{
    unsigned loads[ASYM_MAX_CPUS];
    struct asym_mask idle = {0}, held;
    count_loads(r->plan, loads);
    set_held(r, &held);
    /* the exception that policies.md names: siblings that a window of smt-* keeps clear */
    ASYM_MASK_FOREACH (c, &r->machine.fast)
        if (loads[c] == 0 && !asym_mask_has(&held, c))
            asym_mask_set(&idle, (unsigned)c);
    for (size_t i = 0; i < r->plan->n_tasks; i++) {
        int32_t target = r->plan->tasks[i].target;
        if (is_placed(&r->plan->tasks[i]) && asym_mask_has(&r->machine.slow, target) && loads[target] >= 2)
            CHECK(r, !asym_mask_meets(&r->may[i], &idle));
    }
}

/* Where threads weigh what their nice value says, few heavy ones stand against many light ones. */
static bool counts_threads(const struct asym_policy *policy)
{
    return strcmp(policy->name, "response-time") != 0;
}

/* Claimed CPUs are held by one thread each whatever the others carry; so are cores, in the windows of smt-*. */
static void check_spread(struct run *r)
{
    unsigned loads[ASYM_MAX_CPUS];
    struct asym_mask claimed;
    if (!r->uniform || !counts_threads(r->policy))
        return;
    count_loads(r->plan, loads);
    set_held(r, &claimed);
    size_t steered = 0;
    for (size_t i = 0; i < r->plan->n_tasks; i++) {
        steered += is_placed(&r->plan->tasks[i]);
        if (r->plan->tasks[i].claim)
            asym_mask_set(&claimed, (unsigned)r->plan->tasks[i].target);
    }
    for (unsigned k = 0; steered > 0 && k < r->machine.n_types; k++) {
        struct asym_mask cpus = asym_mask_minus(&r->machine.types[k].cpus, &claimed);
        unsigned least = UINT32_MAX, most = 0;
        ASYM_MASK_FOREACH (c, &cpus) {
            least = ASYM_MIN(least, loads[c]);
            most = ASYM_MAX(most, loads[c]);
        }
        CHECK(r, asym_mask_empty(&cpus) || most - least <= 1);
    }
}

static void body_targets(struct run *r)
{
    live(r, check_targets);
}

static void body_reasons(struct run *r)
{
    live(r, check_reasons);
}

static void body_claims(struct run *r)
{
    live(r, check_claims);
}

static void body_fast_busy(struct run *r)
{
    live(r, check_fast_busy);
}

static void body_spread(struct run *r)
{
    live(r, check_spread);
}

static void a_thread_stays_where_it_is_allowed(void **state)
{
    (void)state;
    for_all(100 * ASYM_MSEC, body_targets);
}

static void every_thread_is_told_why(void **state)
{
    (void)state;
    for_all(100 * ASYM_MSEC, body_reasons);
}

static void a_claim_is_exclusive(void **state)
{
    (void)state;
    for_all(100 * ASYM_MSEC, body_claims);
}

static void no_fast_cpu_is_idle_while_a_slow_one_has_two(void **state)
{
    (void)state;
    for_all(100 * ASYM_MSEC, body_fast_busy);
}

static void threads_are_spread_evenly_within_a_type(void **state)
{
    (void)state;
    for_all(100 * ASYM_MSEC, body_spread);
}

static bool same_action(const struct asym_action *a, const struct asym_action *b)
{
    return a->kind == b->kind && memcmp(&a->id, &b->id, sizeof a->id) == 0 && asym_mask_equal(&a->expect, &b->expect) &&
           asym_mask_equal(&a->mask, &b->mask) && a->expect_nice == b->expect_nice && a->nice == b->nice &&
           a->whole == b->whole && a->reason == b->reason && memcmp(a->figure, b->figure, sizeof a->figure) == 0;
}

static bool same_task(const struct asym_plan_task *a, const struct asym_plan_task *b)
{
    return a->target == b->target && a->claim == b->claim && a->moves == b->moves && a->nice == b->nice &&
           a->class == b->class && a->reason == b->reason && memcmp(a->figure, b->figure, sizeof a->figure) == 0 &&
           asym_mask_equal(&a->mask, &b->mask);
}

/* Another engine, at other addresses, is shown the same life. */
static void body_same(struct run *r)
{
    struct run other;
    setup(&other, r->policy, r->seed, 100 * ASYM_MSEC);
    for (unsigned k = 0; k < 3; k++) {
        if (k == 2) {
            gen_load_calm(&r->g, r->load);
            gen_load_calm(&other.g, other.load);
        }
        step(r);
        step(&other);
        CHECK(r, r->n_actions == other.n_actions && r->plan->n_moves == other.plan->n_moves);
        for (size_t i = 0; i < r->plan->n_tasks; i++)
            CHECK(r, same_task(&r->plan->tasks[i], &other.plan->tasks[i]));
        for (size_t i = 0; i < r->n_actions; i++)
            CHECK(r, same_action(&r->actions[i], &other.actions[i]));
        follow(r);
        follow(&other);
        gen_load_pass(r->load, 100 * ASYM_MSEC);
        gen_load_pass(other.load, 100 * ASYM_MSEC);
    }
    teardown(&other);
}

static void the_same_input_gives_the_same_plan(void **state)
{
    (void)state;
    for_all(100 * ASYM_MSEC, body_same);
}

/* With a swap period of zero the policy is asked again, rather than its answers kept. */
static void check_sticky(struct run *r)
{
    follow(r);
    step(r);
    CHECK(r, r->n_actions == 0);
    CHECK(r, r->plan->n_moves == 0);
}

static void body_sticky(struct run *r)
{
    live(r, check_sticky);
}

static void a_second_plan_at_the_same_time_changes_nothing(void **state)
{
    (void)state;
    for_all(0, body_sticky);
    for_all(100 * ASYM_MSEC, body_sticky);
}

/* Turns, and windows: what makes threads move as time passes is what these policies are there for. */
static bool in_turns(const struct asym_plan *plan)
{
    for (size_t i = 0; i < plan->n_tasks; i++) {
        const enum asym_reason reason = plan->tasks[i].reason;
        if (reason == ASYM_WHY_MP_TURN || reason == ASYM_WHY_HAD_FAST_TIME || reason == ASYM_WHY_WAITS_TURN ||
            reason == ASYM_WHY_MONITORED || holds_core(&plan->tasks[i]))
            return true;
    }
    return false;
}

static void body_still(struct run *r)
{
    step(r);
    for (unsigned k = 0; k < 3; k++) {
        if (in_turns(r->plan))
            return;
        follow(r);
        gen_load_pass(r->load, 100 * ASYM_MSEC);
        step(r);
        if (in_turns(r->plan))
            return;
        CHECK(r, r->n_actions == 0 && r->plan->n_moves == 0);
    }
}

static void nothing_moves_as_time_passes_but_for_turns(void **state)
{
    (void)state;
    for_all(100 * ASYM_MSEC, body_still);
}

/*
 * Threads that take turns are set masks that were not set before, and a table of those doubles once more now and then:
 * one step of many may allocate, a plan as such may not. The largest loads would only take longer.
 */
static void body_allocations(struct run *r)
{
    if (r->load->s.n_tasks > 300)
        return;
    live(r, check_targets);
    unsigned grown = 0;
    for (unsigned k = 0; k < 16; k++) {
        size_t before = count_allocations;
        step(r);
        follow(r);
        grown += count_allocations != before;
        gen_load_pass(r->load, 100 * ASYM_MSEC);
    }
    CHECK(r, grown <= 1);
}

static void a_warm_engine_allocates_nothing(void **state)
{
    (void)state;
    count_begin();
    size_t before = count_allocations;
    void *volatile one = malloc(1); /* or the compiler leaves it out */
    free(one);
    assert_true(count_allocations > before);
    for_all(100 * ASYM_MSEC, body_allocations);
}

static void check_default(const struct asym_option *o)
{
    double number = 0;
    int64_t whole = 0;
    asym_usec duration;
    bool flag;
    size_t len = strlen(o->def);
    if (o->allow_auto && strcmp(o->def, "auto") == 0)
        return;
    switch (o->type) {
    case ASYM_OPTION_BOOL:
        assert_int_equal(asym_parse_bool(o->def, len, &flag), 0);
        return;
    case ASYM_OPTION_COUNT:
    case ASYM_OPTION_NICE:
        assert_int_equal(asym_parse_i64(o->def, len, &whole), 0);
        number = (double)whole;
        break;
    case ASYM_OPTION_NUMBER:
        assert_int_equal(asym_parse_number(o->def, len, &number), 0);
        break;
    case ASYM_OPTION_DURATION:
        assert_int_equal(asym_parse_duration(o->def, len, &duration), 0);
        number = (double)duration;
        break;
    default:
        return;
    }
    assert_true(number >= o->min && number <= o->max);
}

static void rows_are_complete_and_names_are_their_own(void **state)
{
    (void)state;
    for (size_t p = 0; asym_policy_at(p); p++) {
        const struct asym_policy *policy = asym_policy_at(p);
        assert_true(policy->name && policy->name[0] && policy->summary && policy->source && policy->plan);
        assert_null(strchr(policy->summary, '\n'));
        assert_ptr_equal(asym_policy_find(policy->name), policy);
        assert_int_equal(policy->needs >> ASYM_N_SIGNALS, 0);
        assert_true(policy->pin >= ASYM_PIN_CPU && policy->pin <= ASYM_PIN_TYPE);
        for (size_t q = 0; q < p; q++)
            assert_string_not_equal(asym_policy_at(q)->name, policy->name);
    }
    assert_non_null(asym_policy_at(0));
    assert_null(asym_policy_find("no such policy"));
}

static void options_of_policies_have_defaults_in_range(void **state)
{
    (void)state;
    for (size_t p = 0; asym_policy_at(p); p++) {
        const struct asym_policy *policy = asym_policy_at(p);
        assert_true(policy->options || policy->params_size == 0);
        for (const struct asym_option *o = policy->options; o && o->key; o++) {
            assert_null(o->section);
            assert_true(o->offset < policy->params_size);
            assert_true(o->help && o->help[0] && o->def);
            check_default(o);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_complete_and_names_are_their_own),
        cmocka_unit_test(options_of_policies_have_defaults_in_range),
        cmocka_unit_test(a_thread_stays_where_it_is_allowed),
        cmocka_unit_test(every_thread_is_told_why),
        cmocka_unit_test(a_claim_is_exclusive),
        cmocka_unit_test(no_fast_cpu_is_idle_while_a_slow_one_has_two),
        cmocka_unit_test(threads_are_spread_evenly_within_a_type),
        cmocka_unit_test(the_same_input_gives_the_same_plan),
        cmocka_unit_test(a_second_plan_at_the_same_time_changes_nothing),
        cmocka_unit_test(nothing_moves_as_time_passes_but_for_turns),
        cmocka_unit_test(a_warm_engine_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
