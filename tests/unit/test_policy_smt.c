/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The policies for cores with several hardware threads (Snavely 2002), in engines, with counters that the test makes up. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <asym/engine.h>

#include "base/macro.h"
#include "base/mask.h"
#include "policy/smt-place.h"
#include "support/generate.h"

#define LOOK   (100 * ASYM_MSEC)
#define N_MOST 64

struct world {
    struct asym_machine machine;
    struct gen_load *load;
    struct asym_engine *e;
    const struct asym_plan *plan;
    size_t n_actions;
    struct asym_outcome outcomes[2 * N_MOST];
    struct asym_sample samples[N_MOST];
    unsigned char params[256];
    /* IPC of thread i alone, and what part of it is left beside thread k on its core; NULL: nothing is counted */
    double (*alone)(size_t i);
    double (*beside)(size_t i, size_t k);
};

/* n_cpus CPUs, `siblings` to a core, all alike; an application of one thread for each of the n. */
static void begin_weighing(struct world *w, const char *name, enum asym_smt_weights weights, unsigned n_cpus,
                           unsigned siblings, unsigned n)
{
    unsigned ones[N_MOST];
    const struct asym_policy *policy = asym_policy_find(name);
    *w = (struct world){0};
    for (size_t i = 0; i < N_MOST; i++)
        ones[i] = 1;
    assert_non_null(policy);
    assert_true(policy->params_size <= sizeof w->params);
    gen_params(policy, w->params);
    ((struct asym_smt_params *)(void *)w->params)->weights = (int)weights;
    const struct asym_engine_config config = {
        .policy = policy,
        .params = w->params,
        .classify = {.serial_max_threads = 2, .hp_threshold = UINT32_MAX, .amp_boost = ASYM_SEC, .hysteresis = 1},
        .enforce = {.pin = -1, .swap_period = ASYM_SEC, .release = 5 * ASYM_SEC},
    };
    gen_plain_machine(&w->machine, n_cpus, n_cpus);
    for (unsigned c = 0; c < n_cpus; c++)
        w->machine.cpus[c].core = w->machine.cpus[c].freq_domain = (int16_t)(c / siblings);
    assert_int_equal(asym_machine_finish(&w->machine), 0);
    w->load = gen_load_new(&w->machine, ones, n);
    assert_non_null(w->load);
    assert_int_equal(asym_engine_new(&config, &w->e), 0);
}

static void begin_on(struct world *w, const char *name, unsigned n_cpus, unsigned siblings, unsigned n)
{
    begin_weighing(w, name, ASYM_SMT_NICE, n_cpus, siblings, n);
}

static void end(struct world *w)
{
    asym_engine_free(w->e);
    gen_load_free(w->load);
}

/* A thread that sleeps is on no core, and with nobody. */
static int core_of(const struct world *w, size_t i)
{
    if (w->plan->tasks[i].target < 0)
        return -1 - (int)i;
    return w->machine.cpus[w->plan->tasks[i].target].core;
}

/* What the counters say of thread i since the last look, when it was where that look's plan had sent it. */
static double ipc_of(const struct world *w, size_t i)
{
    double ipc = w->alone(i);
    for (size_t k = 0; k < w->plan->n_tasks; k++)
        if (k != i && core_of(w, k) == core_of(w, i))
            ipc *= w->beside(i, k);
    return ipc;
}

static void count(struct world *w)
{
    w->load->s.samples = w->samples;
    w->load->s.n_samples = 0;
    for (size_t i = 0; w->alone && w->plan && i < w->plan->n_tasks; i++)
        if (w->plan->tasks[i].monitor)
            w->samples[w->load->s.n_samples++] = (struct asym_sample){
                .task = (uint32_t)i, .seconds = 0.1, .instructions = 1e8 * ipc_of(w, i), .cycles = 1e8};
}

/* Time passes, and everything succeeds. */
static void look(struct world *w)
{
    const struct asym_action *actions;
    gen_load_pass(w->load, LOOK);
    count(w);
    assert_int_equal(asym_engine_step(w->e, &w->load->s, &w->plan, &actions, &w->n_actions), 0);
    assert_true(w->n_actions <= ASYM_LENGTH(w->outcomes));
    gen_load_apply(w->load, actions, w->n_actions);
    gen_load_move(w->load, w->plan);
    asym_engine_outcomes(w->e, w->outcomes, w->n_actions);
}

static unsigned others_on_core(const struct world *w, size_t i)
{
    unsigned n = 0;
    for (size_t k = 0; k < w->plan->n_tasks; k++)
        n += k != i && core_of(w, k) == core_of(w, i);
    return n;
}

static bool is_alone(const struct world *w, size_t i)
{
    return w->plan->tasks[i].reason == ASYM_WHY_SMT_SOLO || w->plan->tasks[i].reason == ASYM_WHY_SMT_MEASURED_ALONE;
}

/* How many of n looks thread i is alone by its share in. */
static unsigned looks_alone(struct world *w, size_t i, unsigned n)
{
    unsigned hits = 0;
    for (unsigned k = 0; k < n; k++) {
        look(w);
        hits += w->plan->tasks[i].reason == ASYM_WHY_SMT_SOLO;
        if (is_alone(w, i)) {
            assert_true(w->plan->tasks[i].claim);
            assert_int_equal(others_on_core(w, i), 0);
        }
    }
    return hits;
}

/* Which core each thread will have its seat on, under any of the policies: nice values do not change that. */
static void foresee(unsigned n_cpus, unsigned siblings, unsigned n, int *ret_core)
{
    struct world w;
    begin_on(&w, "smt-naive", n_cpus, siblings, n);
    look(&w);
    for (size_t i = 0; i < n; i++)
        ret_core[i] = core_of(&w, i);
    end(&w);
}

static size_t partner_of(const int *core, size_t n, size_t i)
{
    for (size_t k = 0; k < n; k++)
        if (k != i && core[k] == core[i])
            return k;
    return n;
}

static void set_nice(struct world *w, size_t i, int nice)
{
    w->load->tasks[i].nice = (int8_t)nice;
}

/* --- smt-naive --- */

static void threads_that_fit_on_cores_are_left_in_peace(void **state)
{
    (void)state;
    struct world w;
    begin_on(&w, "smt-naive", 8, 2, 4);
    set_nice(&w, 0, -20);
    look(&w);
    for (unsigned k = 0; k < 30; k++) {
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(others_on_core(&w, i), 0);
            assert_int_equal(w.plan->tasks[i].reason, ASYM_WHY_SMT_OWN_CORE);
        }
        look(&w);
        assert_int_equal(w.n_actions, 0);
    }
    end(&w);
}

static void equal_shares_need_no_windows(void **state)
{
    (void)state;
    struct world w;
    begin_on(&w, "smt-naive", 8, 2, 8);
    look(&w);
    for (unsigned k = 0; k < 30; k++) {
        for (size_t i = 0; i < 8; i++) {
            assert_int_equal(others_on_core(&w, i), 1);
            assert_int_equal(w.plan->tasks[i].reason, ASYM_WHY_SMT_SHARED);
            assert_true(fabs(w.plan->tasks[i].figure[0] - 50) < 1e-9);
        }
        look(&w);
        assert_int_equal(w.n_actions, 0);
    }
    end(&w);
}

/* Weights 19 - p: 15 beside 5 is 75 % beside 25 %, so that it is alone for half of the time (the source's example). */
static void three_quarters_of_a_core_are_half_of_the_time_alone(void **state)
{
    (void)state;
    struct world w;
    int core[4];
    foresee(4, 2, 4, core);
    const size_t beside = partner_of(core, 4, 0);
    begin_weighing(&w, "smt-naive", ASYM_SMT_SOURCE, 4, 2, 4);
    set_nice(&w, 0, 4);
    set_nice(&w, beside, 14);
    assert_in_range(looks_alone(&w, 0, 1000), 480, 520);
    char text[128];
    while (w.plan->tasks[0].reason != ASYM_WHY_SMT_SOLO)
        look(&w);
    asym_reason_text(w.plan->tasks[0].reason, w.plan->tasks[0].figure, text, sizeof text);
    assert_non_null(strstr(text, "its share is 75 %"));
    assert_int_equal(w.plan->tasks[beside].reason, ASYM_WHY_SMT_GUEST);
    end(&w);
}

/* Where all cores have somebody who wants to be alone there, they take turns, and never are all held. */
static void not_all_cores_are_held_at_once(void **state)
{
    (void)state;
    struct world w;
    int core[12], chosen[6];
    unsigned had[6] = {0};
    foresee(12, 2, 12, core);
    for (int i = 0; i < 12; i++)
        chosen[core[i]] = i;
    begin_on(&w, "smt-naive", 12, 2, 12);
    for (size_t c = 0; c < 6; c++)
        set_nice(&w, (size_t)chosen[c], -10);
    for (unsigned k = 0; k < 600; k++) {
        look(&w);
        unsigned held = 0;
        for (size_t c = 0; c < 6; c++) {
            held += is_alone(&w, (size_t)chosen[c]);
            had[c] += is_alone(&w, (size_t)chosen[c]);
        }
        assert_in_range(held, 2, 3);
    }
    for (size_t c = 0; c < 6; c++)
        assert_in_range(had[c], 285, 315);
    end(&w);
}

static void who_has_nowhere_else_to_go_is_not_driven_out(void **state)
{
    (void)state;
    struct world w;
    begin_on(&w, "smt-naive", 4, 2, 2);
    for (size_t i = 0; i < 2; i++) {
        w.load->cpusets[i] = (struct asym_mask){.w = {3}};
        w.load->masks[i] = w.load->cpusets[i];
    }
    gen_load_intern(w.load);
    set_nice(&w, 0, -10);
    unsigned crowded = 0;
    for (unsigned k = 0; k < 50; k++) {
        look(&w);
        crowded += w.plan->tasks[0].reason == ASYM_WHY_SMT_CROWDED;
        assert_int_equal(others_on_core(&w, 0), 1);
        assert_false(w.plan->tasks[0].claim);
    }
    assert_in_range(crowded, 30, 49);
    end(&w);
}

/* One that mostly sleeps is not entitled to an empty core meanwhile, whatever its nice value. */
static void a_share_is_no_more_than_what_is_wanted(void **state)
{
    (void)state;
    struct world w;
    begin_on(&w, "smt-naive", 4, 2, 4);
    set_nice(&w, 0, -20);
    gen_load_share(w.load, 0, 0.5);
    assert_int_equal(looks_alone(&w, 0, 100), 0);
    gen_load_share(w.load, 0, 0.75);
    assert_in_range(looks_alone(&w, 0, 1000), 480, 520);
    end(&w);
}

/* Guests go where it is emptiest, and home again to the CPU that they came from. */
static void guests_go_home(void **state)
{
    (void)state;
    struct world w;
    int core[5];
    foresee(8, 2, 5, core);
    size_t one = 0;
    while (partner_of(core, 5, one) >= 5)
        one++;
    begin_on(&w, "smt-naive", 8, 2, 5);
    set_nice(&w, one, -5);
    int32_t home[5] = {-1, -1, -1, -1, -1};
    for (unsigned k = 0; k < 100; k++) {
        look(&w);
        for (size_t i = 0; i < 5; i++) {
            if (w.plan->tasks[i].reason == ASYM_WHY_SMT_GUEST) {
                assert_int_equal(others_on_core(&w, i), 1);
                continue;
            }
            assert_true(home[i] < 0 || home[i] == w.plan->tasks[i].target);
            home[i] = w.plan->tasks[i].target;
        }
    }
    end(&w);
}

/* The windows of a rotation are laid when it begins: who sleeps and wakes meanwhile does not shift those of others. */
static void windows_stay_where_they_were_laid(void **state)
{
    (void)state;
    bool alone[2][200];
    for (unsigned flicker = 0; flicker < 2; flicker++) {
        struct world w;
        int core[8];
        foresee(8, 2, 8, core);
        begin_on(&w, "smt-naive", 8, 2, 8);
        size_t first = 0, last = 0;
        for (size_t i = 0; i < 8; i++) {
            first = core[i] < core[first] ? i : first;
            last = core[i] > core[last] ? i : last;
        }
        set_nice(&w, first, -10);
        set_nice(&w, last, -4);
        for (unsigned k = 0; k < 200; k++) {
            gen_load_share(w.load, first, flicker && (w.load->s.now + LOOK) % ASYM_SEC > ASYM_SEC / 2 ? 0 : 1);
            look(&w);
            alone[flicker][k] = is_alone(&w, last);
        }
        end(&w);
    }
    assert_memory_equal(alone[0], alone[1], sizeof alone[0]);
}

/* --- smt-symb --- */

#define SAMPLE  (4 * ASYM_SEC)
#define SYMBIOS (60 * ASYM_SEC)

static double two(size_t i)
{
    return i % 2 ? 0.5 : 2;
}

static double by_a_quarter(size_t i, size_t k)
{
    (void)i;
    (void)k;
    return 0.75;
}

static double to_six_tenths(size_t i, size_t k)
{
    (void)i;
    (void)k;
    return 0.6;
}

/* To where the stage that begins `from` after the first look begins. */
static void look_until(struct world *w, asym_usec first, asym_usec from)
{
    while (w->load->s.now + LOOK < first + from)
        look(w);
}

/*
 * 75 % of a core beside 25 %: that is what the first gets anyhow where it keeps 3/4 of its speed beside the other; where it
 * keeps 6/10, it is alone for 3/8 of the time, as (1 - 0.75) / (1 - 0.6) = 5/8; unmeasured, for half, as under smt-naive.
 */
static void who_gets_along_shares_for_longer(void **state)
{
    (void)state;
    static const struct {
        double (*beside)(size_t i, size_t k);
        unsigned least, most;
    } rows[] = {{by_a_quarter, 0, 0}, {to_six_tenths, 195, 225}, {NULL, 260, 300}};
    for (size_t row = 0; row < ASYM_LENGTH(rows); row++) {
        struct world w;
        int core[4];
        foresee(4, 2, 4, core);
        begin_weighing(&w, "smt-symb", ASYM_SMT_SOURCE, 4, 2, 4);
        w.alone = rows[row].beside ? two : NULL;
        w.beside = rows[row].beside;
        set_nice(&w, 0, 4);
        set_nice(&w, partner_of(core, 4, 0), 14);
        look(&w);
        const asym_usec first = w.load->s.now;
        look_until(&w, first, SAMPLE);
        assert_in_range(looks_alone(&w, 0, 560), rows[row].least, rows[row].most);
        end(&w);
    }
}

static void only_what_is_measured_is_counted(void **state)
{
    (void)state;
    struct world w;
    unsigned alone[4] = {0}, together[4] = {0};
    begin_on(&w, "smt-symb", 4, 2, 4);
    w.alone = two;
    w.beside = by_a_quarter;
    look(&w);
    const asym_usec first = w.load->s.now;
    for (; w.load->s.now < first + SAMPLE + 2 * ASYM_SEC; look(&w)) {
        for (size_t i = 0; i < 4; i++) {
            const struct asym_plan_task *t = &w.plan->tasks[i];
            const bool in_sample = w.load->s.now < first + SAMPLE;
            alone[i] += t->reason == ASYM_WHY_SMT_MEASURED_ALONE;
            together[i] += t->reason == ASYM_WHY_SMT_MEASURED;
            assert_int_equal(t->monitor,
                             t->reason == ASYM_WHY_SMT_MEASURED_ALONE || t->reason == ASYM_WHY_SMT_MEASURED);
            assert_true(in_sample || !t->monitor);
            assert_int_equal(is_alone(&w, i), t->reason == ASYM_WHY_SMT_MEASURED_ALONE);
            assert_true(!is_alone(&w, i) || others_on_core(&w, i) == 0);
        }
    }
    for (size_t i = 0; i < 4; i++) {
        assert_in_range(alone[i], 3, 7);
        assert_int_equal(together[i], 20);
    }
    end(&w);
}

/* After the symbios phase it is measured anew: what was true before may be so no longer. */
static void it_is_measured_again(void **state)
{
    (void)state;
    struct world w;
    int core[4];
    foresee(4, 2, 4, core);
    begin_weighing(&w, "smt-symb", ASYM_SMT_SOURCE, 4, 2, 4);
    w.alone = two;
    w.beside = by_a_quarter;
    set_nice(&w, 0, 4);
    set_nice(&w, partner_of(core, 4, 0), 14);
    look(&w);
    const asym_usec first = w.load->s.now;
    look_until(&w, first, SAMPLE);
    assert_int_equal(looks_alone(&w, 0, 500), 0);
    w.beside = to_six_tenths;
    look_until(&w, first, 2 * SAMPLE + SYMBIOS);
    assert_in_range(looks_alone(&w, 0, 560), 195, 225);
    /* who sleeps through the next sample phase is as little known as at first */
    gen_load_share(w.load, 0, 0);
    look_until(&w, first, 3 * SAMPLE + 2 * SYMBIOS + ASYM_SEC);
    gen_load_share(w.load, 0, 1);
    look(&w);
    assert_in_range(looks_alone(&w, 0, 560), 260, 300);
    end(&w);
}

/* --- smt-sos --- */

/* Likes hinder each other. Kinds are set by the test. */
static bool kind_of[N_MOST];

static double by_kind(size_t i, size_t k)
{
    return kind_of[i] == kind_of[k] ? 0.5 : 0.9;
}

static void those_that_get_along_are_brought_together(void **state)
{
    (void)state;
    struct world w;
    int core[4];
    foresee(4, 2, 4, core);
    for (size_t i = 0; i < 4; i++)
        kind_of[i] = core[i];
    begin_on(&w, "smt-sos", 4, 2, 4);
    w.alone = two;
    w.beside = by_kind;
    look(&w);
    const asym_usec first = w.load->s.now;
    look_until(&w, first, SAMPLE);
    for (unsigned k = 0; k < 500; k++) {
        look(&w);
        assert_true(k == 0 || w.n_actions == 0);
        for (size_t i = 0; i < 4; i++)
            for (size_t j = 0; j < i; j++)
                assert_true(core_of(&w, i) != core_of(&w, j) || kind_of[i] != kind_of[j]);
    }
    end(&w);
}

/* Those that get along already, or of whom nothing is known, are left together. */
static void what_is_best_already_stays(void **state)
{
    (void)state;
    for (unsigned counted = 0; counted < 2; counted++) {
        struct world w;
        int core[4];
        bool seen[2] = {false};
        foresee(4, 2, 4, core);
        for (size_t i = 0; i < 4; i++) {
            kind_of[i] = seen[core[i]];
            seen[core[i]] = true;
        }
        begin_on(&w, "smt-sos", 4, 2, 4);
        w.alone = counted ? two : NULL;
        w.beside = by_kind;
        look(&w);
        const asym_usec first = w.load->s.now;
        look_until(&w, first, SAMPLE);
        look(&w);
        for (size_t i = 0; i < 4; i++)
            assert_int_equal(core_of(&w, i), core[i]);
        end(&w);
    }
}

/* As good as any, and as bad as any: from 0.3 to 1. */
static double by_chance(size_t i, size_t k)
{
    struct gen g = {.state = i * N_MOST + k};
    return 0.3 + gen_below(&g, 701) / 1000.0;
}

/* What the plan in force brings: the sum of IPC achieved over IPC alone. */
static double speedup_of(const struct world *w)
{
    double sum = 0;
    for (size_t i = 0; i < w->plan->n_tasks; i++)
        sum += ipc_of(w, i) / w->alone(i);
    return sum;
}

/* On 4 and on 16 cores of 2 and of 4 contexts, full, half empty and with more threads than CPUs. */
static void of_the_pairings_tried_the_best_runs(void **state)
{
    (void)state;
    static const unsigned rows[][3] = {{8, 2, 8},   {8, 2, 6},   {8, 2, 12}, {16, 4, 16},
                                       {32, 2, 32}, {16, 4, 13}, {8, 2, 5},  {4, 2, 3}};
    unsigned turned = 0;
    for (size_t row = 0; row < ASYM_LENGTH(rows); row++) {
        struct world w;
        double speedup[ASYM_SMT_PAIRINGS] = {0}, best = 0;
        begin_on(&w, "smt-sos", rows[row][0], rows[row][1], rows[row][2]);
        w.alone = two;
        w.beside = by_chance;
        look(&w);
        const asym_usec first = w.load->s.now;
        look_until(&w, first, SAMPLE / 2);
        for (unsigned k = 0; k < ASYM_SMT_PAIRINGS; k++) {
            look(&w);
            best = ASYM_MAX(best, speedup[k] = speedup_of(&w));
            look_until(&w, first, SAMPLE / 2 + (k + 1) * SAMPLE / 2 / ASYM_SMT_PAIRINGS);
        }
        look(&w);
        assert_true(speedup_of(&w) >= best / 1.01 - 1e-9);
        assert_true(speedup_of(&w) >= speedup[0] - 1e-9);
        turned += speedup_of(&w) > speedup[0] + 1e-9;
        end(&w);
    }
    assert_true(turned > 2);
}

/* Of a thread that sleeps in one of them nothing is known of how the pairings compare. */
static void who_sleeps_does_not_decide(void **state)
{
    (void)state;
    struct world w;
    int core[4];
    foresee(4, 2, 4, core);
    begin_on(&w, "smt-sos", 4, 2, 4);
    w.alone = two;
    w.beside = by_a_quarter;
    look(&w);
    const asym_usec first = w.load->s.now;
    look_until(&w, first, SAMPLE / 2);
    gen_load_share(w.load, 0, 0);
    look_until(&w, first, SAMPLE / 2 + SAMPLE / 2 / ASYM_SMT_PAIRINGS);
    gen_load_share(w.load, 0, 1);
    look_until(&w, first, SAMPLE);
    look(&w);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(core_of(&w, i), core[i]);
    end(&w);
}

static void pairings_are_of_one_cache_and_one_type(void **state)
{
    (void)state;
    struct world w;
    begin_on(&w, "smt-sos", 16, 2, 16);
    for (unsigned c = 0; c < 16; c++)
        w.machine.cpus[c].llc = (int16_t)(c / 8);
    assert_int_equal(asym_machine_finish(&w.machine), 0);
    w.alone = two;
    w.beside = by_chance;
    look(&w);
    const asym_usec first = w.load->s.now;
    int16_t llc[16];
    unsigned pairings = 0;
    look_until(&w, first, SAMPLE / 2);
    for (unsigned k = 0; k < 20; k++) {
        look(&w);
        for (size_t i = 0; i < 16; i++) {
            const struct asym_plan_task *t = &w.plan->tasks[i];
            llc[i] = k == 0 ? w.machine.cpus[t->target].llc : llc[i];
            assert_int_equal(w.machine.cpus[t->target].llc, llc[i]);
            assert_int_equal(t->reason, ASYM_WHY_SMT_PAIRING);
            assert_true(t->monitor);
            pairings |= 1u << (unsigned)t->figure[0];
        }
    }
    assert_int_equal(pairings, 2 + 4 + 8 + 16);
    end(&w);
}

static void sos_keeps_shares_as_symb_does(void **state)
{
    (void)state;
    struct world w;
    int core[4];
    foresee(4, 2, 4, core);
    begin_weighing(&w, "smt-sos", ASYM_SMT_SOURCE, 4, 2, 4);
    w.alone = two;
    w.beside = to_six_tenths;
    set_nice(&w, 0, 4);
    set_nice(&w, partner_of(core, 4, 0), 14);
    look(&w);
    const asym_usec first = w.load->s.now;
    look_until(&w, first, SAMPLE);
    assert_in_range(looks_alone(&w, 0, 560), 195, 225);
    end(&w);
}

static void icount_sos_pairs_and_leaves_shares_to_the_fetch_unit(void **state)
{
    (void)state;
    struct world w;
    int core[4];
    foresee(4, 2, 4, core);
    for (size_t i = 0; i < 4; i++)
        kind_of[i] = core[i];
    begin_on(&w, "smt-icount-sos", 4, 2, 4);
    w.alone = two;
    w.beside = by_kind;
    set_nice(&w, 0, -20);
    look(&w);
    const asym_usec first = w.load->s.now;
    look_until(&w, first, SAMPLE);
    assert_int_equal(looks_alone(&w, 0, 300), 0);
    assert_int_equal(w.plan->tasks[0].reason, ASYM_WHY_SMT_FETCH);
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(core_of(&w, i) != core_of(&w, j) || kind_of[i] != kind_of[j]);
    assert_non_null(asym_policy_find("smt-icount-sos")->refuses);
    end(&w);
}

/* --- smt-icount --- */

static void icount_leaves_shares_to_the_fetch_unit_and_cannot_run_live(void **state)
{
    (void)state;
    struct world w;
    begin_on(&w, "smt-icount", 4, 2, 4);
    set_nice(&w, 0, -20);
    assert_int_equal(looks_alone(&w, 0, 30), 0);
    assert_int_equal(w.plan->tasks[0].reason, ASYM_WHY_SMT_FETCH);
    assert_true(w.plan->tasks[0].figure[0] > 95);
    assert_non_null(asym_policy_find("smt-icount")->refuses);
    assert_null(asym_policy_find("smt-naive")->refuses);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_fit_on_cores_are_left_in_peace),
        cmocka_unit_test(equal_shares_need_no_windows),
        cmocka_unit_test(three_quarters_of_a_core_are_half_of_the_time_alone),
        cmocka_unit_test(not_all_cores_are_held_at_once),
        cmocka_unit_test(who_has_nowhere_else_to_go_is_not_driven_out),
        cmocka_unit_test(a_share_is_no_more_than_what_is_wanted),
        cmocka_unit_test(guests_go_home),
        cmocka_unit_test(windows_stay_where_they_were_laid),
        cmocka_unit_test(who_gets_along_shares_for_longer),
        cmocka_unit_test(only_what_is_measured_is_counted),
        cmocka_unit_test(it_is_measured_again),
        cmocka_unit_test(those_that_get_along_are_brought_together),
        cmocka_unit_test(what_is_best_already_stays),
        cmocka_unit_test(of_the_pairings_tried_the_best_runs),
        cmocka_unit_test(who_sleeps_does_not_decide),
        cmocka_unit_test(pairings_are_of_one_cache_and_one_type),
        cmocka_unit_test(sos_keeps_shares_as_symb_does),
        cmocka_unit_test(icount_sos_pairs_and_leaves_shares_to_the_fetch_unit),
        cmocka_unit_test(icount_leaves_shares_to_the_fetch_unit_and_cannot_run_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
