/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests the rules of docs/policies.md for every policy, on machines and loads generated from seeds. */

#include <asym/engine.h>

#include "base/mask.h"
#include "support/count.h"
#include "support/generate.h"
#include "support/rounds.h"
#include "support/wanted.h"
#include "support/reason-text.h"
#include "support/test.h"

#define N_SEEDS     300
#define BIG_LOAD    5000
#define FEW_THREADS 60
#define PARAMS_MAX  256

/*
 * How many machines a test tries, and the most threads on them. Each plan of one life is checked by all rules. Plans of repeated
 * input leave out the large loads, which would only take longer.
 */
struct extent {
    unsigned seeds, most_threads;
};
static const struct extent all_loads = {N_SEEDS, BIG_LOAD}, usual_loads = {N_SEEDS * 2 / 3, 300},
                           some_loads = {N_SEEDS / 3, 300};

/* The default of [enforce] exclusive_from. */
#define EXCLUSIVE_FROM 0.7

/* One policy at work on one generated machine. */
struct run {
    const struct asym_policy *policy;
    unsigned seed;
    bool uniform;
    bool is_calmed; /* threads have slept: beside one of a low duty, asym finds a better seat than on a slow core */
    struct gen g;
    struct asym_machine machine;
    struct gen_load *load;
    struct asym_engine *e;
    const struct asym_plan *plan;
    const struct asym_action *actions;
    size_t n_actions;
    struct asym_mask *allowed; /* per task, as found at first */
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
                    .release = 5 * ASYM_SEC,
                    .exclusive_from = EXCLUSIVE_FROM},
    };
    struct asym_engine *e = NULL;
    assert_true(policy->params_size <= PARAMS_MAX);
    assert_int_equal(asym_engine_new(&config, &e), 0);
    return e;
}

/* Most loads are small, a few are large: the rules do not depend on the size, and small loads leave time for more machines. */
static unsigned choose_threads(struct gen *g, unsigned seed, unsigned most)
{
    if (most == FEW_THREADS)
        return gen_size(g, most);
    if (seed == N_SEEDS - 1)
        return BIG_LOAD;
    return seed % 50 == 0 ? 0 : gen_size(g, seed % 10 == 9 ? 2000 : 300);
}

/* Returns false, and makes nothing, if the seed has more threads than most. */
static bool setup(struct run *r, const struct asym_policy *policy, unsigned seed, unsigned most, asym_usec swap_period)
{
    *r = (struct run){.policy = policy, .seed = seed, .uniform = seed % 3 == 0, .g = {.state = seed}};
    gen_machine(&r->g, &r->machine);
    const unsigned n = choose_threads(&r->g, seed, most);
    if (n > most)
        return false;
    r->load = gen_load_random(&r->g, &r->machine, n, r->uniform);
    assert_non_null(r->load);
    r->e = new_engine(policy, swap_period);
    r->allowed = calloc(r->load->s.n_tasks + 1, sizeof *r->allowed);
    r->outcomes = calloc(2 * r->load->s.n_tasks + 1, sizeof *r->outcomes);
    assert_true(r->allowed && r->outcomes);
    for (size_t i = 0; i < r->load->s.n_tasks; i++) {
        r->allowed[i] = asym_mask_and(&r->load->masks[i], &r->load->cpusets[i]);
        r->allowed[i] = asym_mask_and(&r->allowed[i], &r->machine.usable);
    }
    return true;
}

static void teardown(struct run *r)
{
    asym_engine_free(r->e);
    gen_load_free(r->load);
    free(r->allowed);
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

/* Several steps: all threads run, the same some time later, many applications become serial, all threads run again. */
static void live(struct run *r, void (*check)(struct run *))
{
    for (unsigned k = 0; k < 4; k++) {
        if (k == 2)
            gen_load_calm(&r->g, r->load);
        r->is_calmed = k >= 2;
        for (size_t a = 0; k == 3 && a < r->load->s.n_apps; a++)
            gen_load_share(r->load, a, 1);
        step(r);
        check(r);
        follow(r);
        gen_load_pass(r->load, 100 * ASYM_MSEC);
    }
}

static void for_all(struct extent extent, asym_usec swap_period, void (*body)(struct run *))
{
    const unsigned stride = asym_rounds_stride();
    for (size_t p = 0; asym_policy_at(p); p++) {
        for (unsigned seed = (extent.seeds - 1) % stride; seed < extent.seeds; seed += stride) {
            struct run r;
            if (!policy_is_wanted(asym_policy_at(p)) ||
                !setup(&r, asym_policy_at(p), seed, extent.most_threads, swap_period))
                continue;
            body(&r);
            teardown(&r);
        }
    }
}

/* --- checks of each plan --- */

/* A window of smt-*: the thread is alone on its core, whose other CPUs are kept clear of all threads. */
static bool holds_core(const struct asym_plan_task *t)
{
    return t->reason->holds_core;
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

/* Returns true if the policy placed the thread. A thread that is idle or waits for the next swap may keep its last CPU. */
static bool is_placed(const struct asym_plan_task *t)
{
    return t->target >= 0 && t->reason->kind == ASYM_REASON_PLACED;
}

static void check_targets(struct run *r)
{
    const struct asym_snapshot *s = &r->load->s;
    CHECK(r, r->plan->n_tasks == s->n_tasks && r->plan->n_apps == s->n_apps);
    for (size_t i = 0; i < s->n_tasks; i++) {
        const struct asym_plan_task *t = &r->plan->tasks[i];
        if (t->target < 0)
            continue;
        CHECK(r, asym_mask_has(&r->allowed[i], t->target));
        CHECK(r, asym_mask_within(t->mask, &r->allowed[i]));
        CHECK(r, asym_mask_has(t->mask, t->target));
        CHECK(r, t->nice >= -20 && t->nice <= 19);
    }
}

static void check_reasons(struct run *r)
{
    for (size_t i = 0; i < r->plan->n_tasks; i++) {
        const struct asym_plan_task *t = &r->plan->tasks[i];
        CHECK(r, t->reason && why_is_sound(t->reason, t->figure));
        CHECK(r, (t->target >= 0) == (t->reason->kind == ASYM_REASON_PLACED) || t->reason == asym_why(ASYM_WHY_IDLE) ||
                     t->reason == asym_why(ASYM_WHY_NEXT_SWAP));
    }
    for (size_t k = 0; k < r->n_actions; k++)
        CHECK(r, r->actions[k].reason || r->actions[k].kind == ASYM_ACTION_REPAIR);
}

static void check_exclusive(struct run *r)
{
    struct asym_mask reserved = {0};
    for (size_t i = 0; i < r->plan->n_tasks; i++) {
        const struct asym_plan_task *t = &r->plan->tasks[i];
        if (!t->exclusive)
            continue;
        CHECK(r, t->target >= 0 && !asym_mask_has(&reserved, t->target));
        asym_mask_set(&reserved, (unsigned)t->target);
    }
    for (size_t i = 0; i < r->plan->n_tasks; i++) {
        const struct asym_plan_task *t = &r->plan->tasks[i];
        if (!is_placed(t))
            continue;
        struct asym_mask shared = asym_mask_and(t->mask, &reserved);
        /* A thread shares an exclusive CPU only if all CPUs that it may use in its pin set are exclusive. */
        CHECK(r, t->exclusive ? asym_mask_equal(&shared, t->mask)
                              : asym_mask_empty(&shared) || asym_mask_equal(&shared, t->mask));
        if (!t->exclusive && !asym_mask_empty(&shared)) {
            struct asym_mask free_cpus = asym_mask_minus(&r->allowed[i], &reserved);
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

/* The CPUs of threads that sleep for a moment: asym keeps their seats. */
static void add_sleepers(const struct run *r, struct asym_mask *held)
{
    for (size_t i = 0; i < r->plan->n_tasks && r->policy->pin == ASYM_PIN_EACH; i++)
        if (r->plan->tasks[i].target >= 0 && r->plan->tasks[i].reason->kind == ASYM_REASON_IDLE)
            asym_mask_set(held, (unsigned)r->plan->tasks[i].target);
}

/* A thread that ranks above the crowd under asym does not wait for it. */
static bool runs_first(const struct run *r, const struct asym_plan_task *t)
{
    return r->policy->pin == ASYM_PIN_EACH && !t->reason->rotates;
}

static void check_fast_busy(struct run *r)
{
    unsigned loads[ASYM_MAX_CPUS];
    struct asym_mask idle = {0}, held;
    count_loads(r->plan, loads);
    set_held(r, &held);
    add_sleepers(r, &held);
    /* the exception that docs/policies.md names: siblings that a window of smt-* keeps clear */
    ASYM_MASK_FOREACH (c, &r->machine.fast)
        if (loads[c] == 0 && !asym_mask_has(&held, c))
            asym_mask_set(&idle, (unsigned)c);
    struct asym_mask alone = idle;
    ASYM_MASK_FOREACH (c, &idle)
        for (int s = r->machine.cpus[c].sibling; s != (int)c; s = r->machine.cpus[s].sibling)
            if (loads[s] > 0)
                asym_mask_clear(&alone, (unsigned)c);
    for (size_t i = 0; i < r->plan->n_tasks; i++) {
        int32_t target = r->plan->tasks[i].target;
        if (is_placed(&r->plan->tasks[i]) && asym_mask_has(&r->machine.slow, target) && loads[target] >= 2)
            CHECK(r, !asym_mask_meets(&r->allowed[i], runs_first(r, &r->plan->tasks[i]) ? &alone : &idle));
    }
}

/* Returns the CPUs of idle cores, without those that a window of smt-* keeps clear. */
static struct asym_mask idle_cores(const struct run *r, const unsigned *loads)
{
    struct asym_mask cores = {0}, held;
    set_held(r, &held);
    add_sleepers(r, &held);
    ASYM_MASK_FOREACH (c, &r->machine.usable) {
        unsigned sum = loads[c];
        for (int s = r->machine.cpus[c].sibling; s != c; s = r->machine.cpus[s].sibling)
            sum += loads[s];
        if (sum == 0 && !asym_mask_has(&held, c))
            asym_mask_set(&cores, (unsigned)c);
    }
    return cores;
}

static bool may_have_better(const struct run *r, size_t task, const struct asym_mask *idle)
{
    const struct asym_machine *m = &r->machine;
    const struct asym_mask open = asym_mask_and(&r->allowed[task], idle);
    const unsigned row = m->types[m->cpus[r->plan->tasks[task].target].type].row[1];
    ASYM_MASK_FOREACH (c, &open)
        if (asym_machine_row(m, c, false) < row)
            return true;
    return false;
}

/* The exceptions that docs/policies.md names: they leave a thread beside another one of its core. */
static bool fills_seats(const struct run *r)
{
    const char *name = r->policy->name;
    return strcmp(name, "response-time") != 0 && strcmp(name, "hass") != 0 && strcmp(name, "ipc-driven") != 0 &&
           (r->uniform || strcmp(name, "priority") != 0);
}

/*
 * No second thread is on a core while an idle core that adds more could have one of the two. Where a thread of the core holds its
 * CPU or may run on no such core, it is the first, and the other had no choice.
 */
static void check_seats(struct run *r)
{
    unsigned loads[ASYM_MAX_CPUS], busy[ASYM_MAX_CPUS] = {0}, n[ASYM_MAX_CPUS] = {0}, may[ASYM_MAX_CPUS] = {0};
    if (!fills_seats(r) || (r->policy->pin == ASYM_PIN_EACH && r->is_calmed))
        return;
    count_loads(r->plan, loads);
    const struct asym_mask idle = idle_cores(r, loads);
    ASYM_MASK_FOREACH (c, &r->machine.usable)
        busy[r->machine.cpus[c].core] += loads[c] > 0;
    for (size_t i = 0; i < r->plan->n_tasks; i++) {
        const struct asym_plan_task *t = &r->plan->tasks[i];
        if (!is_placed(t) || busy[r->machine.cpus[t->target].core] < 2)
            continue;
        n[r->machine.cpus[t->target].core]++;
        may[r->machine.cpus[t->target].core] += !t->exclusive && loads[t->target] == 1 && may_have_better(r, i, &idle);
    }
    for (unsigned core = 0; core < r->machine.n_cores; core++)
        CHECK(r, n[core] == 0 || may[core] < n[core]);
}

/* response-time weighs threads by nice value, so few heavy threads balance many light ones, and counts may differ. */
static bool counts_threads(const struct asym_policy *policy)
{
    return strcmp(policy->name, "response-time") != 0;
}

/* asym counts a hyperthread by what it adds to its core: where others have a CPU each, it has less than they have. */
static double share_of(const struct run *r, const unsigned *loads, int cpu)
{
    const struct asym_cpu *cpus = r->machine.cpus;
    unsigned beside = 0;
    for (int s = cpus[cpu].sibling; s != cpu; s = cpus[s].sibling)
        beside += loads[s];
    return r->policy->pin == ASYM_PIN_EACH && beside > 0 ? (1 + r->machine.smt_gain) / 2 : 1;
}

/*
 * One thread holds an exclusive CPU, or shares it with a crowd, whatever the load of the others; in a window of smt-* it holds the
 * whole core.
 */
static void check_spread(struct run *r)
{
    unsigned loads[ASYM_MAX_CPUS];
    struct asym_mask reserved;
    if (!r->uniform || !counts_threads(r->policy))
        return;
    count_loads(r->plan, loads);
    set_held(r, &reserved);
    add_sleepers(r, &reserved);
    size_t steered = 0;
    for (size_t i = 0; i < r->plan->n_tasks; i++) {
        steered += is_placed(&r->plan->tasks[i]);
        /* A light thread would hold its CPU if it slept less. */
        if (r->plan->tasks[i].exclusive || (r->plan->tasks[i].light && is_placed(&r->plan->tasks[i])))
            asym_mask_set(&reserved, (unsigned)r->plan->tasks[i].target);
    }
    for (unsigned k = 0; steered > 0 && k < r->machine.n_types; k++) {
        struct asym_mask cpus = asym_mask_minus(&r->machine.types[k].cpus, &reserved);
        double least = UINT32_MAX, most = 0, one = 1;
        ASYM_MASK_FOREACH (c, &cpus) {
            const double share = share_of(r, loads, c);
            least = ASYM_MIN(least, loads[c] / share);
            most = ASYM_MAX(most, loads[c] / share);
            one = ASYM_MAX(one, 1 / share);
        }
        CHECK(r, asym_mask_empty(&cpus) || most - least <= one + 1e-9);
    }
}

static void check_rules(struct run *r)
{
    check_targets(r);
    check_reasons(r);
    check_exclusive(r);
    check_fast_busy(r);
    check_seats(r);
    check_spread(r);
}

/*
 * After the life, threads that take turns get masks that no thread had before, and the mask table doubles from time to time. So
 * one step of many may allocate, but a plan may not.
 */
static void check_allocations(struct run *r)
{
    unsigned grown = 0;
    for (unsigned k = 0; k < 8; k++) {
        size_t before = count_allocations;
        step(r);
        follow(r);
        grown += count_allocations != before;
        gen_load_pass(r->load, 200 * ASYM_MSEC);
    }
    CHECK(r, grown <= 1);
}

/* Nothing has changed since the last plan, so this one changes nothing. The first thread that it changes helps to find out why. */
static void check_still(const struct run *r)
{
    char had[256], gets[256];
    if (r->n_actions > 0) {
        const struct asym_action *a = &r->actions[0];
        fail_msg("policy %s, seed %u: %zu actions in a second plan; the first: thread %d had CPUs %s, and gets %s",
                 r->policy->name, r->seed, r->n_actions, a->id.tid, asym_mask_format_list(&a->expect, had, sizeof had),
                 asym_mask_format_list(&a->mask, gets, sizeof gets));
    }
    CHECK(r, r->plan->n_moves == 0);
}

/* With a swap period of zero the engine calls the policy again; otherwise it keeps the last plan. */
static void check_twice(struct run *r)
{
    check_rules(r);
    if (r->load->s.n_tasks > usual_loads.most_threads || (r->seed >= usual_loads.seeds && r->seed < N_SEEDS))
        return;
    follow(r);
    step(r);
    check_still(r);
}

static void body_rules(struct run *r)
{
    live(r, check_twice);
    if (r->load->s.n_tasks <= usual_loads.most_threads)
        check_allocations(r);
}

/*
 * One life for all rules: each rule for itself would make the same plans again. A second plan at the same time changes nothing,
 * and a warm engine allocates nothing. The condition that fails stands in the message.
 */
TEST(plans_obey_the_rules_are_made_twice_alike_and_without_memory)
{
    count_begin();
    size_t before = count_allocations;
    void *volatile one = malloc(1); /* volatile, or the compiler removes the call */
    free(one);
    assert_true(count_allocations > before);
    for_all(all_loads, 0, body_rules);
    for_all(some_loads, 100 * ASYM_MSEC, body_rules);
}

/* In a monitoring turn a thread keeps to the core type that it is measured on. */
static bool is_measured(const struct run *r, const struct asym_plan_task *t)
{
    return t->counted && t->reason->rotates && r->policy->pin != ASYM_PIN_EACH;
}

/* A generated thread runs for one half of its runnable time, and waits for the other. */
static double duty_of(const struct asym_task *task)
{
    return task->running / (1 - (task->runnable - task->running));
}

/* Under asym each thread has a width of its own: those that may use cpu leave target to the others. */
static bool others_may_leave(const struct run *r, int32_t target, int cpu)
{
    double demand = 0;
    for (size_t i = 0; i < r->plan->n_tasks; i++)
        if (r->plan->tasks[i].target == target && !asym_mask_has(r->plan->tasks[i].mask, cpu))
            demand += duty_of(&r->load->tasks[i]);
    return r->policy->pin == ASYM_PIN_EACH && demand < 1.26;
}

/*
 * While a thread waits, no CPU that it may use is idle: its mask has each CPU whose threads sleep most of the time. A
 * thread waits if the threads on its CPU want a quarter more than there is of it. Excepted are: policies that keep threads apart,
 * and measure that (smt-*); a thread in a monitoring turn, which keeps to its core type; one of a program that waits for all of its
 * threads (asym), as its pace must stay known; CPUs in the windows of smt-*; and CPUs on which no thread is planned (response-time
 * leaves slow ones idle).
 */
static void check_conserves(struct run *r)
{
    double demand[ASYM_MAX_CPUS] = {0};
    struct asym_mask used = {0}, held;
    set_held(r, &held);
    for (size_t i = 0; i < r->plan->n_tasks; i++) {
        const struct asym_plan_task *t = &r->plan->tasks[i];
        if (!is_placed(t))
            continue;
        demand[t->target] += t->exclusive ? 1 : duty_of(&r->load->tasks[i]);
        asym_mask_set(&used, (unsigned)t->target);
    }
    for (size_t i = 0; i < r->plan->n_tasks; i++) {
        const struct asym_plan_task *t = &r->plan->tasks[i];
        if (!is_placed(t) || t->exclusive || is_measured(r, t) || runs_first(r, t) || demand[t->target] < 1.26 ||
            strstr(t->reason->text, "they take turns"))
            continue;
        ASYM_MASK_FOREACH (c, &r->allowed[i])
            if (demand[c] < 0.55 && asym_mask_has(&used, c) && !asym_mask_has(&held, c))
                CHECK(r, asym_mask_has(t->mask, c) || others_may_leave(r, t->target, c));
    }
}

/* A light thread may use the CPUs of its type that have light threads only: whichever of them wakes finds an idle one. */
static void check_roams(struct run *r)
{
    struct asym_mask busy;
    set_held(r, &busy);
    for (size_t i = 0; i < r->plan->n_tasks; i++)
        if (is_placed(&r->plan->tasks[i]) && !r->plan->tasks[i].light)
            asym_mask_set(&busy, (unsigned)r->plan->tasks[i].target);
    for (size_t i = 0; i < r->plan->n_tasks; i++) {
        const struct asym_plan_task *t = &r->plan->tasks[i];
        if (!is_placed(t) || !t->light || t->exclusive)
            continue;
        struct asym_mask open = asym_mask_and(&r->allowed[i], &r->machine.types[r->machine.cpus[t->target].type].cpus);
        open = asym_mask_minus(&open, &busy);
        CHECK(r, asym_mask_within(&open, t->mask));
    }
}

/* asym keeps new threads on one core type until it knows their paces, for 3 s. */
#define TRIAL      12
#define TRIAL_STEP (300 * ASYM_MSEC)

/* Threads of all duties; then the same ones a second time. */
static void body_conserves(struct run *r)
{
    for (size_t i = 0; i < r->load->s.n_tasks; i++)
        gen_load_share_one(r->load, i, 0.05 + 0.01 * gen_below(&r->g, 96));
    const unsigned trial = r->policy->pin == ASYM_PIN_EACH ? TRIAL : 0;
    for (unsigned k = 0; k < trial + 2 && !r->policy->apart; k++) {
        step(r);
        if (k >= trial)
            check_conserves(r);
        check_roams(r);
        check_exclusive(r);
        follow(r);
        gen_load_pass(r->load, trial > 0 ? TRIAL_STEP : 100 * ASYM_MSEC);
    }
}

TEST(no_cpu_is_idle_while_a_thread_that_may_use_it_waits)
{
    for_all(some_loads, 100 * ASYM_MSEC, body_conserves);
}

/* The policies that rank all threads for the fast CPUs at each plan. asym weighs them by much else, too; pa gives its highly
 * parallel ones no rank (test-policy-asym.c, test-policy-pa.c); hass assigns a thread once. */
static bool ranks_threads(const struct asym_policy *policy)
{
    static const char *const names[] = {"mintlp", "rr", "static-ipc", "ipc-driven", "eshmp"};
    for (size_t i = 0; i < ASYM_LENGTH(names); i++)
        if (strcmp(policy->name, names[i]) == 0)
            return true;
    return false;
}

/* The fast CPUs that have one thread each, which spins, and no other on their cores. */
static struct asym_mask spun_on(const struct run *r)
{
    unsigned loads[ASYM_MAX_CPUS];
    struct asym_mask cpus = {0};
    count_loads(r->plan, loads);
    for (size_t i = 0; i < r->plan->n_tasks; i++) {
        const int32_t target = r->plan->tasks[i].target;
        unsigned n = is_placed(&r->plan->tasks[i]) && asym_mask_has(&r->machine.fast, target) ? loads[target] : 0;
        for (int s = n ? r->machine.cpus[target].sibling : target; s != target; s = r->machine.cpus[s].sibling)
            n += loads[s];
        if (n == 1 && r->load->tasks[i].flags & ASYM_TASK_SPINNING)
            asym_mask_set(&cpus, (unsigned)target);
    }
    return cpus;
}

/* A third of the threads spin, others from one plan to the next. */
static void body_spinning(struct run *r)
{
    for (unsigned k = 0; k < 6 && ranks_threads(r->policy); k++) {
        for (size_t i = 0; i < r->load->s.n_tasks; i++)
            r->load->tasks[i].flags = gen_below(&r->g, 3) == 0 ? ASYM_TASK_SPINNING : 0;
        step(r);
        const struct asym_mask spun = spun_on(r);
        for (size_t i = 0; i < r->plan->n_tasks; i++) {
            const struct asym_plan_task *t = &r->plan->tasks[i];
            const bool works = is_placed(t) && !(r->load->tasks[i].flags & ASYM_TASK_SPINNING) && !is_measured(r, t);
            if (works && asym_mask_has(&r->machine.slow, t->target))
                CHECK(r, !asym_mask_meets(&r->allowed[i], &spun));
        }
        check_reasons(r);
        follow(r);
        gen_load_pass(r->load, 100 * ASYM_MSEC);
    }
}

/* "... hints that would help it to avoid mapping spinning threads to fast cores" (Saez 2010, 2.2): such a thread is no work. */
TEST(no_thread_that_spins_has_a_fast_cpu_that_one_that_works_could_have)
{
    for_all(some_loads, 100 * ASYM_MSEC, body_spinning);
}

/* Machines with few threads on which a policy once broke a rule: thousands of seeds have one. */
static const struct found {
    const char *policy;
    unsigned seed;
    asym_usec swap_period;
    void (*body)(struct run *);
} found[] = {
    {"eshmp", 9539, 100 * ASYM_MSEC, body_spinning},
    {"serial-first", 430, 0, body_rules},
    {"serial-first", 4928, 0, body_rules},
    {"asym", 15579, 0, body_rules},
    {"asym", 19659, 0, body_rules},
    {"asym", 15965, 0, body_rules},
    {"asym", 19019, 0, body_rules},
    {"asym", 46334, 0, body_rules},
    {"asym", 64534, 0, body_rules},
    {"asym", 5308, 100 * ASYM_MSEC, body_conserves},
    {"asym", 7451, 100 * ASYM_MSEC, body_conserves},
};

TEST(a_machine_on_which_a_policy_once_broke_a_rule)
{
    for (const struct found *f = found; f < found + ASYM_LENGTH(found); f++) {
        struct run r;
        if (!policy_is_wanted(asym_policy_find(f->policy)))
            continue;
        assert_true(setup(&r, asym_policy_find(f->policy), f->seed, FEW_THREADS, f->swap_period));
        f->body(&r);
        teardown(&r);
    }
}

static bool same_action(const struct asym_action *a, const struct asym_action *b)
{
    return a->kind == b->kind && memcmp(&a->id, &b->id, sizeof a->id) == 0 && asym_mask_equal(&a->expect, &b->expect) &&
           asym_mask_equal(&a->mask, &b->mask) && a->expect_nice == b->expect_nice && a->nice == b->nice &&
           a->full_cpuset == b->full_cpuset && a->reason == b->reason &&
           memcmp(a->figure, b->figure, sizeof a->figure) == 0;
}

static bool same_task(const struct asym_plan_task *a, const struct asym_plan_task *b)
{
    return a->target == b->target && a->exclusive == b->exclusive && a->moves == b->moves && a->nice == b->nice &&
           a->class == b->class && a->reason == b->reason && memcmp(a->figure, b->figure, sizeof a->figure) == 0 &&
           asym_mask_equal(a->mask, b->mask);
}

/* A second engine, at other addresses, gets the same input. */
static void body_same(struct run *r)
{
    struct run other;
    assert_true(setup(&other, r->policy, r->seed, some_loads.most_threads, 100 * ASYM_MSEC));
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

TEST(the_same_input_gives_the_same_plan)
{
    for_all(some_loads, 100 * ASYM_MSEC, body_same);
}

/* A policy with turns or windows moves threads as time passes; that is its purpose. */
static bool has_rotation(const struct asym_plan *plan)
{
    for (size_t i = 0; i < plan->n_tasks; i++)
        if (plan->tasks[i].reason->rotates)
            return true;
    return false;
}

/* A turn lasts for a swap period, or for the policy's own period. Within a turn no thread moves. */
#define WITHIN_TURN (10 * ASYM_MSEC)

/* A window of smt-* begins and ends at any time. */
static bool in_window(const struct asym_plan *plan)
{
    for (size_t i = 0; i < plan->n_tasks; i++)
        if (holds_core(&plan->tasks[i]))
            return true;
    return false;
}

static void body_still(struct run *r)
{
    step(r);
    for (unsigned k = 0; k < 3; k++) {
        const bool rotation = has_rotation(r->plan), window = in_window(r->plan);
        follow(r);
        gen_load_pass(r->load, rotation ? WITHIN_TURN : 100 * ASYM_MSEC);
        step(r);
        if (!window && !in_window(r->plan) && (rotation || !has_rotation(r->plan)))
            check_still(r);
    }
}

TEST(nothing_moves_as_time_passes_but_for_turns)
{
    for_all(some_loads, 100 * ASYM_MSEC, body_still);
}

TEST(rows_are_complete_and_names_are_their_own)
{
    for (size_t p = 0; asym_policy_at(p); p++) {
        const struct asym_policy *policy = asym_policy_at(p);
        assert_true(policy->name && policy->name[0] && policy->summary && policy->source && policy->plan);
        assert_null(strchr(policy->summary, '\n'));
        assert_ptr_equal(asym_policy_find(policy->name), policy);
        assert_int_equal(policy->needs >> ASYM_N_SIGNALS, 0);
        assert_true(policy->pin >= ASYM_PIN_CPU && policy->pin != ASYM_PIN_ALL && policy->pin <= ASYM_PIN_EACH);
        for (size_t q = 0; q < p; q++)
            assert_string_not_equal(asym_policy_at(q)->name, policy->name);
    }
    assert_non_null(asym_policy_at(0));
    assert_null(asym_policy_find("no such policy"));
}

TEST_MAIN
