/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/turns.h"

#include "base/mask.h"
#include "support/test.h"

void turns_begin(struct turns *w, const struct asym_engine_config *config, unsigned n_cpus, unsigned n_fast,
                 const unsigned *sizes, size_t n)
{
    *w = (struct turns){0};
    gen_plain_machine(&w->machine, n_cpus, n_fast);
    w->load = gen_load_new(&w->machine, sizes, n);
    assert_non_null(w->load);
    assert_int_equal(asym_engine_new(config, &w->e), 0);
}

void turns_begin_policy(struct turns *w, const char *policy, const char *sp_boost, asym_usec swap_period,
                        unsigned n_cpus, unsigned n_fast, const unsigned *sizes, size_t n)
{
    assert_non_null(asym_policy_find(policy));
    const struct gen_params_room params = gen_params_with(asym_policy_find(policy), sp_boost ? "sp_boost" : NULL,
                                                          sp_boost);
    const struct asym_engine_config config = {
        .policy = asym_policy_find(policy),
        .params = &params,
        .classify = {.serial_max_threads = 2,
                     .hp_threshold = UINT32_MAX,
                     .amp_boost = ASYM_SEC,
                     .hysteresis = 1,
                     .background_nice = 10},
        .enforce = {.pin = -1, .swap_period = swap_period, .release = 5 * ASYM_SEC, .exclusive_from = 0.7},
    };
    turns_begin(w, &config, n_cpus, n_fast, sizes, n);
}

void turns_end(struct turns *w)
{
    asym_engine_free(w->e);
    gen_load_free(w->load);
}

void pass(struct turns *w, asym_usec time)
{
    const struct asym_action *actions;
    gen_load_pass(w->load, time);
    assert_int_equal(asym_engine_step(w->e, &w->load->s, &w->plan, &actions, &w->n_actions), 0);
    assert_true(w->n_actions <= ASYM_LENGTH(w->outcomes));
    gen_load_apply(w->load, actions, w->n_actions);
    gen_load_move(w->load, w->plan);
    asym_engine_outcomes(w->e, w->outcomes, w->n_actions);
}

void turn(struct turns *w)
{
    pass(w, TURN);
}

void count_turns(struct turns *w, unsigned turns, unsigned *had)
{
    for (unsigned k = 0; k < turns; k++) {
        turn(w);
        for (size_t i = 0; i < w->plan->n_tasks; i++)
            had[i] += is_fast(w, i);
    }
}

bool is_fast(const struct turns *w, size_t i)
{
    return asym_mask_has(&w->machine.fast, w->plan->tasks[i].target);
}

unsigned count_on(const struct turns *w, int cpu)
{
    unsigned n = 0;
    for (size_t i = 0; i < w->plan->n_tasks; i++)
        n += w->plan->tasks[i].target == cpu;
    return n;
}
