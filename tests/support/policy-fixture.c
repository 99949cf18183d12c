/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/policy-fixture.h"

#include "base/arena.h"
#include "base/mask.h"
#include "support/test.h"

#define TURN (100 * ASYM_MSEC)

void policy_fixture_begin(struct policy_fixture *w, const char *policy, const double *speeds, size_t n)
{
    *w = (struct policy_fixture){.policy = asym_policy_find(policy), .now = 1000 * ASYM_SEC};
    w->machine = (struct asym_machine){.generation = 1, .n_cpus = (unsigned)n};
    for (unsigned c = 0; c < n; c++) {
        asym_mask_set(&w->machine.online, c);
        w->machine.cpus[c] = (struct asym_cpu){
            .speed = speeds[c],
            .core = (int16_t)c,
            .freq_domain = (int16_t)c,
            .origin = ASYM_ORIGIN_CPUFREQ,
        };
    }
    w->machine.usable = w->machine.online;
    assert_int_equal(asym_machine_finish(&w->machine), 0);
    assert_non_null(w->policy);
    assert_true(w->policy->task_state_size <= POLICY_FIXTURE_STATE && w->policy->state_size <= sizeof w->state);
}

unsigned policy_fixture_enter(struct policy_fixture *w, unsigned n)
{
    const unsigned app = w->n_apps++, first = w->n_threads;
    assert_true(w->n_apps <= POLICY_FIXTURE_MOST && first + n <= POLICY_FIXTURE_MOST);
    w->apps[app] = (struct policy_fixture_app){
        .phase = n > 2 ? ASYM_PHASE_PARALLEL : ASYM_PHASE_SERIAL,
        .runnable = n,
        .since = w->now,
        .first = first,
        .n = n,
        .here = true,
    };
    for (unsigned t = first; t < first + n; t++)
        w->threads[t] = (struct policy_fixture_thread){
            .app = app, .here = true, .start = t, .runnable = 1, .preferred_cpu = -1, .allowed = &w->machine.usable};
    w->n_threads += n;
    return first;
}

void policy_fixture_leave(struct policy_fixture *w, unsigned app)
{
    for (unsigned t = w->apps[app].first; t < w->apps[app].first + w->apps[app].n; t++)
        w->threads[t].here = false;
}

void policy_fixture_phase(struct policy_fixture *w, unsigned app, enum asym_phase phase, double runnable)
{
    w->apps[app].phase = phase;
    w->apps[app].runnable = runnable;
    w->apps[app].since = w->now;
}

/* The input of the policy, and the fixture's thread for each of its threads. */
struct policy_inputs {
    struct asym_policy_app apps[POLICY_FIXTURE_MOST];
    struct asym_policy_thread threads[POLICY_FIXTURE_MOST];
    unsigned of[POLICY_FIXTURE_MOST];
    size_t n_apps, n_threads;
    struct asym_assignment ret[POLICY_FIXTURE_MOST];
    float asleep[ASYM_MAX_CPUS];
};

static void add_app(struct policy_fixture *w, unsigned a, struct policy_inputs *v)
{
    const struct policy_fixture_app *app = &w->apps[a];
    const struct asym_taskid id = {.tid = (int32_t)app->first + 100, .tgid = (int32_t)app->first + 100, .start = 1};
    const size_t first = v->n_threads;
    for (unsigned t = app->first; t < app->first + app->n; t++) {
        struct policy_fixture_thread *thread = &w->threads[t];
        if (!thread->here)
            continue;
        v->of[v->n_threads] = t;
        v->threads[v->n_threads++] = (struct asym_policy_thread){
            .id = {.tid = (int32_t)t + 100, .tgid = id.tgid, .start = thread->start},
            .app = (uint32_t)v->n_apps,
            .proc = thread->proc,
            .spinning = thread->spinning,
            .class = ASYM_CLASS_MP,
            .preferred_cpu = asym_mask_has(thread->allowed, thread->preferred_cpu) ? thread->preferred_cpu : -1,
            .allowed = thread->allowed,
            .runnable = thread->runnable,
            .running = thread->runnable,
            .duty = thread->runnable,
            .light = (thread->runnable < w->light_from),
            .nice = (int8_t)thread->nice,
            .nice_group = thread->nice_group,
            .master = thread->master,
            .in_phase = thread->in_phase,
            .alone = thread->alone,
            .critical = thread->critical,
            .awake = thread->awake,
            .profile = thread->profile,
            .sample = thread->sample.instructions > 0 ? &thread->sample : NULL,
            .sampled_on = (int16_t)(thread->sample.instructions > 0 ? w->machine.cpus[thread->preferred_cpu].type : -1),
            .state = thread->state,
        };
    }
    if (v->n_threads == first)
        return;
    v->apps[v->n_apps++] = (struct asym_policy_app){
        .id = id,
        .phase = app->phase,
        .class = ASYM_CLASS_MP,
        .class_by = app->class_by,
        .runnable = app->runnable,
        .phase_since = app->since,
        .first_thread = (uint32_t)first,
        .n_threads = (uint32_t)(v->n_threads - first),
    };
}

static uint32_t count_nice_groups(const struct policy_inputs *v)
{
    uint32_t most = 0;
    for (size_t i = 0; i < v->n_threads; i++)
        most = ASYM_MAX(most, v->threads[i].nice_group);
    return most;
}

enum how { MEASURED, REFRESHED, EXCHANGE };

static int call(const struct policy_fixture *w, const struct asym_policy_input *in, struct asym_assignment *ret,
                enum how how)
{
    if (how != EXCHANGE)
        return w->policy->plan(in, ret);
    w->policy->exchange(in, ret);
    return 0;
}

static void ask(struct policy_fixture *w, struct policy_inputs *v, enum how how)
{
    static const double no_params[32];
    struct asym_arena arena = {.size = 0};
    int r;
    do {
        const size_t size = arena.wanted;
        free(arena.base);
        arena = (struct asym_arena){.base = malloc(size + 1), .size = size};
        assert_non_null(arena.base);
        const struct asym_policy_input in = {
            .machine = &w->machine,
            .now = w->now,
            .interval = how == MEASURED ? w->unmeasured : 0,
            .apps = v->apps,
            .threads = v->threads,
            .n_apps = v->n_apps,
            .n_threads = v->n_threads,
            .n_nice_groups = count_nice_groups(v),
            .unsteered = w->unsteered,
            .unsteered_weight = w->unsteered > 0 ? 1 / ASYM_MAX(1, w->unsteered) : 0,
            .asleep = v->asleep,
            .spare = &w->spare,
            .swap_period = w->swap_period,
            .again = &w->again,
            .params = w->params ? w->params : no_params,
            .state = w->state,
            .arena = &arena,
        };
        r = call(w, &in, v->ret, how);
    } while (r == -ENOBUFS || (how == EXCHANGE && arena.wanted > arena.size));
    free(arena.base);
    assert_int_equal(r, 0);
}

static void plan(struct policy_fixture *w, asym_usec time, enum how how)
{
    static struct policy_inputs v;
    v.n_apps = v.n_threads = 0;
    w->now += time;
    for (unsigned a = 0; a < w->n_apps; a++)
        add_app(w, a, &v);
    if (how != EXCHANGE)
        w->spare = (struct asym_mask){0};
    for (size_t i = 0; how == EXCHANGE && i < v.n_threads; i++)
        v.ret[i] = w->threads[v.of[i]].answer;
    w->unmeasured += time;
    ask(w, &v, how);
    w->unmeasured = how == MEASURED ? 0 : w->unmeasured;
    w->moved = 0;
    memset(w->count, 0, sizeof w->count);
    for (size_t i = 0; i < v.n_threads; i++) {
        struct policy_fixture_thread *t = &w->threads[v.of[i]];
        t->answer = v.ret[i];
        if (how == EXCHANGE && t->answer.cpu < 0)
            continue;
        assert_non_null(t->answer.reason);
        if (t->answer.reason->kind == ASYM_REASON_UNSTEERED) {
            assert_int_equal(t->answer.cpu, -1);
            continue;
        }
        assert_true(t->answer.reason->kind == ASYM_REASON_PLACED);
        assert_true(asym_mask_has(t->allowed, t->answer.cpu));
        w->moved += v.threads[i].preferred_cpu >= 0 && v.threads[i].preferred_cpu != t->answer.cpu;
        w->count[t->answer.cpu]++;
        t->preferred_cpu = t->answer.cpu;
    }
}

void policy_fixture_plan(struct policy_fixture *w)
{
    plan(w, TURN, MEASURED);
}

void policy_fixture_plan_after(struct policy_fixture *w, asym_usec time)
{
    plan(w, time, MEASURED);
}

void policy_fixture_plan_again(struct policy_fixture *w)
{
    plan(w, 0, MEASURED);
}

void policy_fixture_plan_refreshed(struct policy_fixture *w, asym_usec time)
{
    plan(w, time, REFRESHED);
}

void policy_fixture_exchange(struct policy_fixture *w, asym_usec time)
{
    plan(w, time, EXCHANGE);
}
