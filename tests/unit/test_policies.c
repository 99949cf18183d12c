/* SPDX-License-Identifier: GPL-2.0-or-later */
/* none, mintlp, busyfcs and rr, worked by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <asym/engine.h>
#include <asym/settings.h>

#include "base/macro.h"
#include "base/mask.h"
#include "support/generate.h"

#define TURN   (100 * ASYM_MSEC)
#define N_MOST 64

struct world {
    struct asym_machine machine;
    struct gen_load *load;
    struct asym_engine *e;
    const struct asym_plan *plan;
    size_t n_actions;
    struct asym_outcome outcomes[2 * N_MOST];
};

static void begin_swapping(struct world *w, const char *policy, asym_usec swap_period, unsigned n_cpus, unsigned n_fast,
                           const unsigned *sizes, size_t n)
{
    const struct asym_engine_config config = {
        .policy = asym_policy_find(policy),
        .classify = {.serial_max_threads = 2, .hp_threshold = UINT32_MAX, .amp_boost = ASYM_SEC, .hysteresis = 1},
        .enforce = {.pin = -1, .swap_period = swap_period, .release = 5 * ASYM_SEC},
    };
    *w = (struct world){0};
    assert_non_null(config.policy);
    assert_int_equal(config.policy->params_size, 0);
    gen_plain_machine(&w->machine, n_cpus, n_fast);
    w->load = gen_load_new(&w->machine, sizes, n);
    assert_non_null(w->load);
    assert_int_equal(asym_engine_new(&config, &w->e), 0);
}

static void begin(struct world *w, const char *policy, unsigned n_cpus, unsigned n_fast, const unsigned *sizes,
                  size_t n)
{
    begin_swapping(w, policy, TURN, n_cpus, n_fast, sizes, n);
}

static void end(struct world *w)
{
    asym_engine_free(w->e);
    gen_load_free(w->load);
}

/* A turn passes, and everything succeeds. */
static void turn(struct world *w)
{
    const struct asym_action *actions;
    gen_load_pass(w->load, TURN);
    assert_int_equal(asym_engine_step(w->e, &w->load->s, &w->plan, &actions, &w->n_actions), 0);
    assert_true(w->n_actions <= ASYM_LENGTH(w->outcomes));
    gen_load_apply(w->load, actions, w->n_actions);
    gen_load_move(w->load, w->plan);
    asym_engine_outcomes(w->e, w->outcomes, w->n_actions);
}

static bool is_fast(const struct world *w, size_t i)
{
    return asym_mask_has(&w->machine.fast, w->plan->tasks[i].target);
}

static unsigned count_on(const struct world *w, int cpu)
{
    unsigned n = 0;
    for (size_t i = 0; i < w->plan->n_tasks; i++)
        n += w->plan->tasks[i].target == cpu;
    return n;
}

static void none_steers_nothing_but_classifies(void **state)
{
    (void)state;
    struct world w;
    const unsigned sizes[] = {1, 6};
    begin(&w, "none", 4, 2, sizes, 2);
    turn(&w);
    assert_int_equal(w.n_actions, 0);
    assert_int_equal(w.plan->apps[0].class, ASYM_CLASS_MP);
    assert_int_equal(w.plan->apps[0].phase, ASYM_PHASE_SERIAL);
    assert_int_equal(w.plan->apps[1].class, ASYM_CLASS_HP);
    assert_int_equal(w.plan->apps[1].phase, ASYM_PHASE_PARALLEL);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(w.plan->tasks[i].target, -1);
        assert_int_equal(w.plan->tasks[i].reason, ASYM_WHY_POLICY_NONE);
    }
    end(&w);
}

static void mintlp_fills_fast_cpus_in_order_of_parallelism(void **state)
{
    (void)state;
    struct world w;
    const unsigned sizes[] = {4, 1, 2}; /* threads 0-3, 4, 5-6 */
    begin(&w, "mintlp", 6, 3, sizes, 3);
    turn(&w);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(is_fast(&w, i), i >= 4);
        assert_int_equal(w.plan->tasks[i].reason, i >= 4 ? ASYM_WHY_LOW_TLP : ASYM_WHY_HIGH_TLP);
        assert_false(w.plan->tasks[i].claim);
    }
    for (int c = 0; c < 3; c++)
        assert_int_equal(count_on(&w, c), 1);
    for (int c = 3; c < 6; c++)
        assert_in_range(count_on(&w, c), 1, 2);
    end(&w);
}

static void mintlp_knows_no_fairness_and_does_not_migrate_for_noise(void **state)
{
    (void)state;
    struct world w;
    const unsigned sizes[] = {2, 2};
    begin(&w, "mintlp", 4, 2, sizes, 2);
    turn(&w);
    for (unsigned k = 0; k < 10; k++) {
        /* 2.0 beside 1.96, now this way, now that */
        gen_load_share(w.load, 0, k % 2 ? 1 : 0.98);
        gen_load_share(w.load, 1, k % 2 ? 0.98 : 1);
        turn(&w);
        assert_int_equal(w.n_actions, 0);
        assert_true(is_fast(&w, 0) && is_fast(&w, 1));
    }
    end(&w);
}

static void a_thread_that_must_share_does_not_push_the_holder_out(void **state)
{
    (void)state;
    static const char *const policies[] = {"mintlp", "rr"};
    for (size_t k = 0; k < ASYM_LENGTH(policies); k++) {
        struct world w;
        const unsigned sizes[] = {3};
        /* A swap period of zero: the policy is asked again at the same time. */
        begin_swapping(&w, policies[k], 0, 4, 1, sizes, 1);
        /* The first may run on the fast CPU alone, but the second is there already. */
        w.load->masks[0] = w.load->cpusets[0] = w.machine.fast;
        gen_load_intern(w.load);
        for (size_t i = 0; i < 3; i++)
            w.load->tasks[i].cpu = i == 1 ? 0 : 2;
        turn(&w);
        int32_t first = w.plan->tasks[1].target;
        gen_load_pass(w.load, 0);
        const struct asym_action *actions;
        assert_int_equal(asym_engine_step(w.e, &w.load->s, &w.plan, &actions, &w.n_actions), 0);
        assert_int_equal(w.plan->tasks[1].target, first);
        assert_int_equal(w.n_actions, 0);
        end(&w);
    }
}

static void busyfcs_keeps_fast_cpus_busy_before_slow_ones(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= 12; n++) {
        struct world w;
        begin(&w, "busyfcs", 6, 2, &n, 1);
        for (size_t i = 0; i < n; i++)
            w.load->tasks[i].cpu = 5;
        turn(&w);
        /* An even share each, and one more on fast CPUs first. */
        for (int c = 0; c < 6; c++)
            assert_in_range(count_on(&w, c), n / 6, n / 6 + (n % 6 != 0));
        for (int c = 0; c < 2; c++)
            assert_int_equal(count_on(&w, c), n / 6 + (n % 6 > (unsigned)c));
        for (size_t i = 0; i < n; i++)
            assert_int_equal(w.plan->tasks[i].reason,
                             is_fast(&w, i) ? ASYM_WHY_FAST_BUSY_FIRST : ASYM_WHY_FAST_ALL_BUSY);
        turn(&w);
        assert_int_equal(w.n_actions, 0);
        end(&w);
    }
}

static void rr_gives_all_threads_equal_fast_time(void **state)
{
    (void)state;
    struct world w;
    const unsigned sizes[] = {1, 6}; /* parallelism does not count */
    unsigned had[7] = {0};
    begin(&w, "rr", 7, 2, sizes, 2);
    for (unsigned k = 0; k < 70; k++) {
        turn(&w);
        for (size_t i = 0; i < 7; i++)
            had[i] += is_fast(&w, i);
    }
    for (size_t i = 0; i < 7; i++)
        assert_in_range(had[i], 19, 21);
    end(&w);
}

static void rr_does_not_let_a_newcomer_catch_up(void **state)
{
    (void)state;
    struct world w;
    const unsigned sizes[] = {1, 1, 1};
    unsigned had[3] = {0};
    begin(&w, "rr", 3, 1, sizes, 3);
    gen_load_share(w.load, 2, 0);
    for (unsigned k = 0; k < 40; k++)
        turn(&w);
    gen_load_share(w.load, 2, 1);
    for (unsigned k = 0; k < 30; k++) {
        turn(&w);
        for (size_t i = 0; i < 3; i++)
            had[i] += is_fast(&w, i);
    }
    for (size_t i = 0; i < 3; i++)
        assert_in_range(had[i], 9, 11);
    end(&w);
}

static void siblings_fill_after_cores(void **state)
{
    (void)state;
    static const char *const policies[] = {"mintlp", "busyfcs", "rr"};
    for (size_t k = 0; k < ASYM_LENGTH(policies); k++) {
        struct world w;
        const unsigned n = 4;
        begin(&w, policies[k], 8, 8, &n, 1);
        for (unsigned c = 0; c < 8; c++)
            w.machine.cpus[c].core = w.machine.cpus[c].freq_domain = (int16_t)(c / 2);
        assert_int_equal(asym_machine_finish(&w.machine), 0);
        turn(&w);
        for (int c = 0; c < 8; c += 2)
            assert_int_equal(count_on(&w, c) + count_on(&w, c + 1), 1);
        end(&w);
    }
}

/* Of CPUs that are equal in all else the favoured one is filled first. */
static void new_threads_take_favoured_cpus_first(void **state)
{
    (void)state;
    static const char *const policies[] = {"mintlp", "busyfcs", "rr", "response-time", "throughput"};
    for (size_t k = 0; k < ASYM_LENGTH(policies); k++) {
        struct world w;
        const unsigned n = 2;
        begin(&w, policies[k], 8, 4, &n, 1);
        w.machine.cpus[1].favour = w.machine.cpus[3].favour = 7;
        assert_int_equal(asym_machine_finish(&w.machine), 0);
        for (size_t i = 0; i < n; i++)
            w.load->tasks[i].cpu = 7; /* on no fast CPU yet */
        turn(&w);
        assert_int_equal(count_on(&w, 1) + count_on(&w, 3), 2);
        end(&w);
    }
}

static struct asym_engine_config config_of(const struct asym_settings *s, const struct asym_policy *policy)
{
    return (struct asym_engine_config){
        .policy = policy, .params = asym_settings_params(s, policy), .classify = s->classify, .enforce = s->enforce};
}

/* Threads that have another target than the CPU they run on, and those that are let go though they run. */
static size_t handed_over(const struct asym_plan *plan, const struct gen_load *load, const struct asym_action *actions,
                          size_t n, size_t *ret_released)
{
    size_t moved = 0;
    *ret_released = 0;
    for (size_t i = 0; i < plan->n_tasks; i++)
        moved += plan->tasks[i].target >= 0 && plan->tasks[i].target != load->tasks[i].cpu;
    for (size_t i = 0; i < n; i++)
        *ret_released += actions[i].kind == ASYM_ACTION_RELEASE;
    return moved;
}

static size_t step_and_count(struct world *w, size_t *ret_released)
{
    const struct asym_action *actions;
    size_t n;
    gen_load_pass(w->load, TURN);
    assert_int_equal(asym_engine_step(w->e, &w->load->s, &w->plan, &actions, &n), 0);
    return handed_over(w->plan, w->load, actions, n, ret_released);
}

/* The migrations of b when it starts from nothing on the threads as they stand. */
static size_t from_scratch(const struct world *w, const struct asym_engine_config *config)
{
    struct world other = *w;
    size_t released;
    assert_int_equal(asym_engine_new(config, &other.e), 0);
    /* What a has set is no mask of the threads' own. */
    ASYM_AUTO_FREE struct asym_mask *masks = malloc(w->load->s.n_tasks * sizeof *masks);
    assert_non_null(masks);
    memcpy(masks, w->load->masks, w->load->s.n_tasks * sizeof *masks);
    memcpy(w->load->masks, w->load->cpusets, w->load->s.n_tasks * sizeof *masks);
    gen_load_intern(w->load);
    /* Nor is a boost. */
    int8_t nice[N_MOST];
    for (size_t i = 0; i < w->load->s.n_tasks; i++) {
        nice[i] = w->load->tasks[i].nice;
        w->load->tasks[i].nice = 0;
    }
    const size_t moved = step_and_count(&other, &released);
    for (size_t i = 0; i < w->load->s.n_tasks; i++)
        w->load->tasks[i].nice = nice[i];
    memcpy(w->load->masks, masks, w->load->s.n_tasks * sizeof *masks);
    gen_load_intern(w->load);
    asym_engine_free(other.e);
    return moved;
}

/*
 * Another policy takes over what runs as it stands: it lets go of nobody only to take them again, and moves no more than it
 * would on threads that nobody had steered.
 */
static void a_switch_of_policies_is_no_storm(void **state)
{
    (void)state;
    const unsigned sizes[] = {1, 1, 2, 6, 12};
    struct asym_settings *settings;
    size_t storms = 0, moved = 0, most = 0;
    assert_int_equal(asym_settings_new(&settings), 0);
    for (size_t a = 1; asym_policy_at(a); a++) {
        for (size_t b = 1; asym_policy_at(b); b++) {
            if (a == b)
                continue; /* a reload: state and turns go on */
            struct world w;
            size_t released, before, after;
            const struct asym_engine_config first = config_of(settings, asym_policy_at(a)),
                                            second = config_of(settings, asym_policy_at(b));
            w = (struct world){0};
            gen_plain_machine(&w.machine, 8, 4);
            w.load = gen_load_new(&w.machine, sizes, ASYM_LENGTH(sizes));
            assert_int_equal(asym_engine_new(&first, &w.e), 0);
            for (int i = 0; i < 5; i++)
                turn(&w);
            before = from_scratch(&w, &second);
            assert_int_equal(asym_engine_configure(w.e, &second), 0);
            after = step_and_count(&w, &released);
            asym_engine_outcomes(w.e, NULL, 0);
            if (after > before || released > 0)
                print_message("%s to %s: %zu moved, %zu from scratch, %zu let go\n", asym_policy_at(a)->name,
                              asym_policy_at(b)->name, after, before, released);
            storms += after > before || released > 0;
            moved += after;
            most += before;
            end(&w);
        }
    }
    print_message("all switches: %zu migrations, %zu from scratch\n", moved, most);
    assert_int_equal(storms, 0);
    asym_settings_free(settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_steers_nothing_but_classifies),
        cmocka_unit_test(mintlp_fills_fast_cpus_in_order_of_parallelism),
        cmocka_unit_test(mintlp_knows_no_fairness_and_does_not_migrate_for_noise),
        cmocka_unit_test(a_thread_that_must_share_does_not_push_the_holder_out),
        cmocka_unit_test(busyfcs_keeps_fast_cpus_busy_before_slow_ones),
        cmocka_unit_test(rr_gives_all_threads_equal_fast_time),
        cmocka_unit_test(rr_does_not_let_a_newcomer_catch_up),
        cmocka_unit_test(siblings_fill_after_cores),
        cmocka_unit_test(new_threads_take_favoured_cpus_first),
        cmocka_unit_test(a_switch_of_policies_is_no_storm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
