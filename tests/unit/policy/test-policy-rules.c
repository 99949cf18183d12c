/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests the rules of every policy (docs/policies.md) by direct calls, with classes, RTX marks, preferred CPUs and masks that
 * the engine would rarely produce. test-conformance.c tests the policies through the engine.
 */

#include <asym/policy.h>
#include <asym/snapshot.h>

#include "base/arena.h"
#include "base/mask.h"
#include "support/generate.h"
#include "support/rounds.h"
#include "support/wanted.h"
#include "support/reason-text.h"
#include "support/test.h"

#define N_SEEDS  300
#define BIG_LOAD 20000
#define TURN     (100 * ASYM_MSEC)

/* How many machines a test tries, and the most threads on them. Plans of repeated input leave out the large loads. */
struct extent {
    unsigned seeds, most_threads;
};
static const struct extent all_loads = {N_SEEDS, BIG_LOAD}, usual_loads = {N_SEEDS, 300},
                           some_loads = {N_SEEDS / 3, 300};

/* One policy and all its input. */
struct direct {
    const struct asym_policy *policy;
    unsigned seed;
    struct gen g;
    struct asym_machine machine;
    size_t n, n_apps, n_masks, stride;
    struct asym_policy_app *apps;
    struct asym_policy_thread *threads;
    struct asym_mask *masks;
    struct asym_assignment *ret;
    struct asym_sample *samples;
    unsigned char *state, *states, *params, *memory;
    size_t memory_size;
    asym_usec now, interval;
};

#define CHECK(d, condition)                                                                                            \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail_msg("policy %s, seed %u: %s", (d)->policy->name, (d)->seed, #condition);                              \
    } while (0)

static void *items(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);
    assert_non_null(p);
    return p;
}

static void make_masks(struct direct *d)
{
    for (size_t i = 0; i < d->n_masks; i++) {
        unsigned how = i == 0 ? 0 : gen_below(&d->g, 5);
        struct asym_mask *m = &d->masks[i];
        if (how == 1 && !asym_mask_empty(&d->machine.slow))
            *m = d->machine.slow;
        else if (how == 2)
            *m = d->machine.fast;
        else
            *m = d->machine.usable;
        ASYM_MASK_FOREACH (c, &d->machine.usable)
            if (how >= 3 && gen_below(&d->g, how) > 0)
                asym_mask_clear(m, (unsigned)c);
        if (asym_mask_empty(m))
            *m = d->machine.usable;
        /* The engine guarantees that equal sets have equal addresses. */
        for (size_t k = 0; k < i; k++)
            if (asym_mask_equal(&d->masks[k], m))
                *m = d->masks[k];
    }
}

static const struct asym_mask *choose_mask(struct direct *d)
{
    size_t i = gen_below(&d->g, 3) == 0 ? gen_below(&d->g, (unsigned)d->n_masks) : 0;
    for (size_t k = 0; k < i; k++)
        if (asym_mask_equal(&d->masks[k], &d->masks[i]))
            return &d->masks[k];
    return &d->masks[i];
}

static void mark(struct direct *d, struct asym_policy_thread *t)
{
    const struct asym_policy_app *app = &d->apps[t->app];
    t->class = gen_below(&d->g, 12) == 0 ? ASYM_CLASS_SP : app->class;
    t->class_since = d->now - gen_below(&d->g, 8) * TURN;
    t->master = gen_below(&d->g, 30) == 0;
    t->spinning = gen_below(&d->g, 20) == 0;
    t->runnable = gen_below(&d->g, 3) == 0 ? gen_below(&d->g, 101) / 100.0 : 1;
    t->running = t->runnable / 2;
    t->nice = (int8_t)(gen_below(&d->g, 4) == 0 ? (int)gen_below(&d->g, 40) - 20 : 0);
}

static void make_threads(struct direct *d)
{
    const struct asym_mask cores = asym_machine_cores(&d->machine, &d->machine.fast);
    unsigned threshold = asym_mask_count(&cores) + 1;
    for (uint32_t first = 0; first < d->n; d->n_apps++) {
        uint32_t left = (uint32_t)d->n - first, n = gen_size(&d->g, left < 40 ? left : 40);
        d->apps[d->n_apps] = (struct asym_policy_app){
            .id = {.tid = (int32_t)first + 100, .tgid = (int32_t)first + 100, .start = 1},
            .phase = n > 2 ? ASYM_PHASE_PARALLEL : ASYM_PHASE_SERIAL,
            .class = n > threshold ? ASYM_CLASS_HP : ASYM_CLASS_MP,
            .runnable = n + gen_below(&d->g, 80) / 100.0 - 0.4,
            .first_thread = first,
            .n_threads = n,
        };
        for (uint32_t t = first; t < first + n; t++) {
            const struct asym_mask *may = choose_mask(d);
            int preferred_cpu = (int)gen_below(&d->g, d->machine.n_cpus);
            d->threads[t] = (struct asym_policy_thread){
                .id = {.tid = (int32_t)t + 100, .tgid = (int32_t)first + 100, .start = 1},
                .app = (uint32_t)d->n_apps,
                .preferred_cpu = asym_mask_has(may, preferred_cpu) ? preferred_cpu : -1,
                .allowed = may,
                .sampled_on = -1,
            };
            mark(d, &d->threads[t]);
        }
        first += n;
    }
}

/* Makes the input of a seed, which is the same for each policy. */
static void make_input(struct direct *d, unsigned seed)
{
    *d = (struct direct){.seed = seed, .g = {.state = seed}, .now = 1000 * ASYM_SEC};
    gen_machine(&d->g, &d->machine);
    d->n = seed % 40 == 0 ? 0 : seed == N_SEEDS - 1 ? BIG_LOAD : gen_size(&d->g, seed % 10 == 9 ? 4000 : 300);
    d->n_masks = seed % 4 == 0 ? 1 : 1 + gen_below(&d->g, 40);
    d->apps = items(d->n, sizeof *d->apps);
    d->threads = items(d->n, sizeof *d->threads);
    d->masks = items(d->n_masks, sizeof *d->masks);
    make_masks(d);
    make_threads(d);
}

static void free_input(struct direct *d)
{
    free(d->apps);
    free(d->threads);
    free(d->masks);
}

/* A copy of the input that plans may change, with the memory of one policy. */
static void setup(struct direct *d, const struct asym_policy *policy, const struct direct *input)
{
    *d = *input;
    d->policy = policy;
    d->stride = (policy->task_state_size + 15) & ~(size_t)15;
    d->threads = items(d->n, sizeof *d->threads);
    d->ret = items(d->n, sizeof *d->ret);
    d->samples = items(d->n, sizeof *d->samples);
    d->state = items(policy->state_size, 1);
    d->states = items(d->n * d->stride, 1);
    d->params = items(policy->params_size, 1);
    gen_params(policy, d->params);
    for (size_t t = 0; t < d->n; t++) {
        d->threads[t] = input->threads[t];
        d->threads[t].state = policy->task_state_size ? d->states + t * d->stride : NULL;
    }
}

static void teardown(struct direct *d)
{
    void *const all[] = {d->threads, d->ret, d->samples, d->state, d->states, d->params, d->memory};
    for (size_t i = 0; i < ASYM_LENGTH(all); i++)
        free(all[i]);
}

static int try_plan(struct direct *d, size_t size, struct asym_arena *arena)
{
    *arena = (struct asym_arena){.base = d->memory, .size = size};
    static const float asleep[ASYM_MAX_CPUS];
    struct asym_mask spare = {0};
    asym_usec again = 0;
    if (size > 0)
        memset(d->memory, 0xff, size); /* of an earlier plan */
    const struct asym_policy_input in = {
        .machine = &d->machine,
        .now = d->now,
        .interval = d->interval,
        .apps = d->apps,
        .threads = d->threads,
        .n_apps = d->n_apps,
        .n_threads = d->n,
        .asleep = asleep,
        .spare = &spare,
        .again = &again,
        .params = d->params,
        .state = d->state,
        .arena = arena,
    };
    return d->policy->plan(&in, d->ret);
}

/* Grow the arena as long as it is too small, as the engine does. */
static void plan(struct direct *d)
{
    struct asym_arena arena;
    while (try_plan(d, d->memory_size, &arena) == -ENOBUFS) {
        CHECK(d, arena.wanted > d->memory_size);
        d->memory_size = arena.wanted;
        free(d->memory);
        d->memory = items(d->memory_size, 1);
    }
}

/* Every thread runs where it was sent. */
static void follow(struct direct *d)
{
    for (size_t t = 0; t < d->n; t++)
        if (d->ret[t].cpu >= 0)
            d->threads[t].preferred_cpu = d->ret[t].cpu;
}

static void pass(struct direct *d)
{
    d->now += TURN;
    d->interval = TURN;
}

static void for_all(struct extent extent, void (*body)(struct direct *))
{
    const unsigned stride = asym_rounds_stride();
    for (unsigned seed = (extent.seeds - 1) % stride; seed < extent.seeds; seed += stride) {
        struct direct input, d;
        make_input(&input, seed);
        for (size_t p = 0; input.n <= extent.most_threads && asym_policy_at(p); p++) {
            if (!policy_is_wanted(asym_policy_at(p)))
                continue;
            setup(&d, asym_policy_at(p), &input);
            body(&d);
            teardown(&d);
        }
        free_input(&input);
    }
}

/* Several plans, between which some threads change class, are marked or sleep. */
static void live(struct direct *d, void (*check)(struct direct *))
{
    for (unsigned k = 0; k < 5; k++) {
        plan(d);
        check(d);
        follow(d);
        pass(d);
        d->interval = TURN;
        for (size_t t = 0; k >= 2 && t < d->n; t++)
            if (gen_below(&d->g, 8) == 0)
                mark(d, &d->threads[t]);
    }
}

/* --- rules 2 and 3 --- */

/* A window of smt-*: the thread is alone on its core, whose other CPUs are kept clear of all threads. */
static bool holds_core(const struct asym_assignment *a)
{
    return a->reason->holds_core;
}

static struct asym_mask held_cpus(const struct direct *d)
{
    bool held[ASYM_MAX_CPUS] = {0};
    struct asym_mask cpus = {0};
    for (size_t t = 0; t < d->n; t++)
        if (holds_core(&d->ret[t]))
            held[d->machine.cpus[d->ret[t].cpu].core] = true;
    ASYM_MASK_FOREACH (c, &d->machine.usable)
        if (held[d->machine.cpus[c].core])
            asym_mask_set(&cpus, (unsigned)c);
    return cpus;
}

static void check_answers(struct direct *d)
{
    struct asym_mask reserved = {0};
    for (size_t t = 0; t < d->n; t++) {
        const struct asym_assignment *a = &d->ret[t];
        CHECK(d, a->cpu < 0 || asym_mask_has(d->threads[t].allowed, a->cpu));
        CHECK(d, a->reason &&
                     (a->cpu < 0 ? a->reason->kind == ASYM_REASON_UNSTEERED : a->reason->kind == ASYM_REASON_PLACED));
        CHECK(d, why_is_sound(a->reason, a->figure));
        if (!a->exclusive)
            continue;
        CHECK(d, !asym_mask_has(&reserved, a->cpu));
        asym_mask_set(&reserved, (unsigned)a->cpu);
    }
    /* A thread shares an exclusive CPU only if it may run nowhere else. */
    for (size_t t = 0; t < d->n; t++)
        if (!d->ret[t].exclusive && asym_mask_has(&reserved, d->ret[t].cpu))
            CHECK(d, asym_mask_within(d->threads[t].allowed, &reserved));
}

static void count_loads(const struct direct *d, unsigned loads[ASYM_MAX_CPUS])
{
    memset(loads, 0, ASYM_MAX_CPUS * sizeof loads[0]);
    for (size_t t = 0; t < d->n; t++)
        if (d->ret[t].cpu >= 0)
            loads[d->ret[t].cpu]++;
}

/* Under asym a thread that sleeps leaves a seat: test-conformance.c has the rule by duties. */
static void check_fast_busy(struct direct *d)
{
    unsigned loads[ASYM_MAX_CPUS];
    struct asym_mask idle = {0};
    if (d->policy->pin == ASYM_PIN_EACH)
        return;
    count_loads(d, loads);
    /* the exception that docs/policies.md names: siblings that a window of smt-* keeps clear */
    const struct asym_mask held = held_cpus(d);
    ASYM_MASK_FOREACH (c, &d->machine.fast)
        if (loads[c] == 0 && !asym_mask_has(&held, c))
            asym_mask_set(&idle, (unsigned)c);
    for (size_t t = 0; t < d->n; t++)
        if (asym_mask_has(&d->machine.slow, d->ret[t].cpu) && loads[d->ret[t].cpu] >= 2)
            CHECK(d, !asym_mask_meets(d->threads[t].allowed, &idle));
}

/*
 * If all threads may run anywhere, no two CPUs of a type that are not exclusive differ by two threads. A window of smt-*
 * makes a whole core exclusive. response-time evens out weights by nice value, and asym duties by speed, not counts.
 */
static void check_even(struct direct *d)
{
    unsigned loads[ASYM_MAX_CPUS];
    if (d->n_masks > 1 || strcmp(d->policy->name, "response-time") == 0 || d->policy->pin == ASYM_PIN_EACH)
        return;
    struct asym_mask reserved = held_cpus(d);
    count_loads(d, loads);
    for (size_t t = 0; t < d->n; t++)
        if (d->ret[t].exclusive)
            asym_mask_set(&reserved, (unsigned)d->ret[t].cpu);
    for (unsigned k = 0; k < d->machine.n_types; k++) {
        struct asym_mask cpus = asym_mask_minus(&d->machine.types[k].cpus, &reserved);
        unsigned least = UINT32_MAX, most = 0;
        ASYM_MASK_FOREACH (c, &cpus) {
            least = ASYM_MIN(least, loads[c]);
            most = ASYM_MAX(most, loads[c]);
        }
        CHECK(d, asym_mask_empty(&cpus) || most - least <= 1);
    }
}

/* Make a sample for each thread that the policy monitors. */
static void count(struct direct *d)
{
    for (size_t t = 0; t < d->n; t++) {
        const int32_t cpu = d->ret[t].cpu;
        d->threads[t].sample = NULL;
        d->threads[t].sampled_on = -1;
        if (!d->ret[t].counted || cpu < 0 || gen_below(&d->g, 10) == 0)
            continue;
        d->samples[t] = (struct asym_sample){
            .seconds = 0.1, .cycles = 1e8, .instructions = 1e6 * gen_below(&d->g, 300)};
        d->threads[t].sample = &d->samples[t];
        d->threads[t].sampled_on = gen_below(&d->g, 10) == 0 ? -1 : d->machine.cpus[cpu].type;
    }
}

/* Run through all stages of a policy that keeps its own periods, and into the second round of them. */
static void live_long(struct direct *d, void (*check)(struct direct *))
{
    if (!d->policy->every_snapshot)
        return;
    for (unsigned k = 0; k < 24; k++) {
        plan(d);
        check(d);
        follow(d);
        count(d);
        d->interval = k == 12 ? 55 * ASYM_SEC : 430 * ASYM_MSEC;
        d->now += d->interval;
        for (size_t t = 0; t < d->n; t++)
            if (gen_below(&d->g, 40) == 0)
                mark(d, &d->threads[t]);
    }
}

static void check_all(struct direct *d)
{
    check_answers(d);
    check_fast_busy(d);
    check_even(d);
}

static void body_stages(struct direct *d)
{
    live_long(d, check_all);
}

TEST(policies_with_stages_obey_in_all_of_them)
{
    for_all(some_loads, body_stages);
}

static void body_rules(struct direct *d)
{
    live(d, check_all);
}

/* One life for all rules: each rule for itself would make the same plans again. */
TEST(answers_are_allowed_reasoned_exclusive_even_and_on_fast_cpus_first)
{
    for_all(all_loads, body_rules);
}

/* --- rules 4 and 5. test-conformance.c has the first one, and that without turns no thread moves as time passes. --- */

static void check_sticky(struct direct *d)
{
    ASYM_AUTO_FREE struct asym_assignment *before = items(d->n, sizeof *before);
    memcpy(before, d->ret, d->n * sizeof *before);
    follow(d);
    d->interval = 0;
    plan(d);
    for (size_t t = 0; t < d->n; t++)
        CHECK(d, d->ret[t].cpu == before[t].cpu && d->ret[t].exclusive == before[t].exclusive);
}

static void body_sticky(struct direct *d)
{
    live(d, check_sticky);
    live_long(d, check_sticky);
}

TEST(a_second_plan_at_the_same_time_moves_no_thread)
{
    for_all(some_loads, body_sticky);
}

/* Try arenas from 0 to the full size in eighths: the policy must fail before it writes to a state. */
static void body_small_arena(struct direct *d)
{
    struct asym_arena arena;
    plan(d);
    follow(d);
    pass(d);
    size_t bytes = d->n * d->stride;
    ASYM_AUTO_FREE unsigned char *state = items(d->policy->state_size, 1), *states = items(bytes, 1);
    memcpy(state, d->state, d->policy->state_size);
    memcpy(states, d->states, bytes);
    for (size_t k = 0; k < 8; k++) {
        size_t size = d->memory_size * k / 8;
        if (d->memory_size > 0)
            CHECK(d, try_plan(d, size, &arena) == -ENOBUFS && arena.wanted > size);
        CHECK(d, memcmp(state, d->state, d->policy->state_size) == 0 && memcmp(states, d->states, bytes) == 0);
    }
    CHECK(d, try_plan(d, d->memory_size, &arena) == 0);
}

TEST(a_small_arena_is_refused_before_state_is_changed)
{
    for_all(some_loads, body_small_arena);
}

/* --- promises of single policies beyond the rules, for any masks --- */

/* Returns the thread that holds a CPU of that core exclusively; -1 if there is none. */
static int32_t holder_of(const struct direct *d, int cpu)
{
    for (size_t t = 0; t < d->n; t++)
        if (d->ret[t].exclusive && d->machine.cpus[d->ret[t].cpu].core == d->machine.cpus[cpu].core)
            return (int32_t)t;
    return -1;
}

/* Returns the first thread on the CPU; -1 if there is none. */
static int32_t thread_on(const struct direct *d, int cpu)
{
    for (size_t t = 0; t < d->n; t++)
        if (d->ret[t].cpu == cpu)
            return (int32_t)t;
    return -1;
}

static bool has_busy_sibling(const struct direct *d, const unsigned *loads, int cpu)
{
    for (int s = d->machine.cpus[cpu].sibling; s != cpu; s = d->machine.cpus[s].sibling)
        if (loads[s] > 0)
            return true;
    return false;
}

static unsigned rank_in_pa(const struct asym_policy_thread *t)
{
    if (t->spinning)
        return 3;
    if (t->master || t->class == ASYM_CLASS_SP)
        return 1;
    return t->class == ASYM_CLASS_MP ? 2 : 3;
}

static void check_pa(struct direct *d)
{
    int32_t holders[ASYM_MAX_CPUS];
    if (asym_mask_empty(&d->machine.slow))
        return;
    ASYM_MASK_FOREACH (c, &d->machine.fast)
        holders[c] = holder_of(d, c);
    for (size_t t = 0; t < d->n; t++) {
        const struct asym_policy_thread *x = &d->threads[t];
        struct asym_mask fast = asym_mask_and(x->allowed, &d->machine.fast);
        CHECK(d, !d->ret[t].exclusive || (rank_in_pa(x) < 3 && asym_mask_has(&d->machine.fast, d->ret[t].cpu)));
        if (d->ret[t].exclusive || rank_in_pa(x) == 3)
            continue;
        /* The thread holds no CPU, so each fast core that it may use is held by a thread of the same or a better rank. */
        ASYM_MASK_FOREACH (c, &fast) {
            CHECK(d, holders[c] >= 0);
            const struct asym_policy_thread *h = &d->threads[holders[c]];
            CHECK(d, rank_in_pa(h) <= rank_in_pa(x));
            CHECK(d, rank_in_pa(x) != 1 || h->class_since <= x->class_since);
        }
    }
}

static void check_mintlp(struct direct *d)
{
    unsigned loads[ASYM_MAX_CPUS];
    if (asym_mask_empty(&d->machine.slow))
        return;
    count_loads(d, loads);
    for (size_t t = 0; t < d->n; t++) {
        const struct asym_policy_thread *x = &d->threads[t];
        struct asym_mask fast = asym_mask_and(x->allowed, &d->machine.fast);
        if (!asym_mask_has(&d->machine.slow, d->ret[t].cpu))
            continue;
        ASYM_MASK_FOREACH (c, &fast) {
            /* A slow core adds more than the second hardware thread of a fast one. */
            if (loads[d->ret[t].cpu] == 1 && has_busy_sibling(d, loads, c))
                continue;
            CHECK(d, loads[c] > 0);
            int32_t h = thread_on(d, c);
            /* Threads that may run on fast CPUs only may share one with its holder. */
            if (loads[c] > 1)
                continue;
            const struct asym_policy_thread *y = &d->threads[h];
            CHECK(d, x->spinning >= y->spinning);
            if (x->spinning == y->spinning)
                CHECK(d, (int)(d->apps[y->app].runnable + 0.5) <= (int)(d->apps[x->app].runnable + 0.5));
        }
    }
}

static void check_busyfcs(struct direct *d)
{
    unsigned loads[ASYM_MAX_CPUS], cores[ASYM_MAX_CPUS] = {0};
    struct asym_mask idle = {0};
    count_loads(d, loads);
    ASYM_MASK_FOREACH (c, &d->machine.usable)
        cores[d->machine.cpus[c].core] += loads[c];
    ASYM_MASK_FOREACH (c, &d->machine.fast)
        if (cores[d->machine.cpus[c].core] == 0)
            asym_mask_set(&idle, (unsigned)c);
    for (size_t t = 0; t < d->n; t++)
        if (asym_mask_has(&d->machine.slow, d->ret[t].cpu))
            CHECK(d, !asym_mask_meets(d->threads[t].allowed, &idle));
}

static void for_seeds(const char *policy, void (*check)(struct direct *))
{
    const unsigned stride = asym_rounds_stride();
    for (unsigned seed = (N_SEEDS - 1) % stride; seed < N_SEEDS; seed += stride) {
        struct direct input, d;
        make_input(&input, seed);
        setup(&d, asym_policy_find(policy), &input);
        if (d.n <= usual_loads.most_threads)
            live(&d, check);
        teardown(&d);
        free_input(&input);
    }
}

TEST(pa_gives_no_fast_cpu_to_a_lower_class_that_a_higher_one_could_use)
{
    for_seeds("pa", check_pa);
}

TEST(mintlp_gives_no_fast_cpu_to_more_parallelism_than_waits_for_it)
{
    for_seeds("mintlp", check_mintlp);
}

TEST(busyfcs_leaves_no_fast_core_idle_while_a_slow_cpu_works)
{
    for_seeds("busyfcs", check_busyfcs);
}

TEST_MAIN
