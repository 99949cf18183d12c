/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/settings.h"
#include "support/engine-fixture.h"

#include "base/arena.h"
#include "base/mask.h"
#include "support/test.h"

const struct asym_reason engine_fixture_placed = {.text = "ordered"};
const struct asym_reason engine_fixture_turn = {.text = "ordered for a turn", .rotates = true};
const struct asym_reason engine_fixture_unsteered = {.text = "ordered to stay", .kind = ASYM_REASON_UNSTEERED};

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct engine_fixture_orders *o = ((const struct engine_fixture_params *)in->params)->orders;
    if (o->small_arena > 0) {
        o->small_arena--;
        assert_null(asym_arena_take(in->arena, in->arena->size + 1, 1));
        return -ENOBUFS;
    }
    if (o->error)
        return o->error;
    o->calls++;
    o->n_apps = in->n_apps;
    o->n_threads = in->n_threads;
    o->interval = in->interval;
    o->since_swap = in->since_swap;
    o->unsteered = in->unsteered;
    o->n_nice_groups = in->n_nice_groups;
    o->unsteered_weight = in->unsteered_weight;
    memcpy(o->asleep, in->asleep, in->machine->n_cpus * sizeof o->asleep[0]);
    *in->spare = o->spare;
    *in->again = o->again;
    o->policy_state = (*(unsigned char *)in->state)++;
    assert_in_range(in->n_threads, 1, ENGINE_FIXTURE_THREADS);
    memcpy(o->apps, in->apps, in->n_apps * sizeof *in->apps);
    memcpy(o->threads, in->threads, in->n_threads * sizeof *in->threads);
    for (size_t i = 0; i < in->n_threads; i++) {
        const struct asym_policy_thread *t = &in->threads[i];
        const struct engine_fixture_order *order = &o->of[t->id.tid % 1000];
        assert_false(asym_mask_empty(t->allowed));
        o->state[i] = (*(unsigned char *)t->state)++;
        ret[i] = (struct asym_assignment){
            .cpu = order->cpu,
            .exclusive = order->exclusive,
            .counted = order->counted,
            .width = order->width,
            .nice_delta = order->delta,
            .reason = order->cpu < 0    ? &engine_fixture_unsteered
                      : order->in_turns ? &engine_fixture_turn
                                        : &engine_fixture_placed,
        };
    }
    return 0;
}

static void exchange(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct engine_fixture_orders *o = ((const struct engine_fixture_params *)in->params)->orders;
    o->exchanges++;
    o->interval = in->interval;
    for (size_t i = 0; i < in->n_threads; i++)
        assert_true(ret[i].reason || ret[i].cpu == -1);
    const struct asym_assignment first = ret[0];
    ret[0] = ret[in->n_threads - 1];
    ret[in->n_threads - 1] = first;
    if (!ret[0].reason)
        ret[0] = (struct asym_assignment){.cpu = -1, .reason = &engine_fixture_placed};
}

#define POLICY(...)                                                                                                    \
    {                                                                                                                  \
        .params_size = sizeof(struct engine_fixture_params), .state_size = 1, .plan = plan, __VA_ARGS__                \
    }

const struct asym_policy engine_fixture_policy_type = POLICY(.name = "orders-type", .pin = ASYM_PIN_TYPE,
                                                             .task_state_size = 1);
const struct asym_policy engine_fixture_policy_cpu = POLICY(.name = "orders-cpu", .pin = ASYM_PIN_CPU,
                                                            .task_state_size = 24);
const struct asym_policy engine_fixture_policy_each = POLICY(.name = "orders-each", .pin = ASYM_PIN_EACH,
                                                             .task_state_size = 1);
const struct asym_policy engine_fixture_policy_reacts = POLICY(.name = "orders-reacts", .pin = ASYM_PIN_TYPE,
                                                               .task_state_size = 1, .reacts = true,
                                                               .serves_alone = true);
const struct asym_policy engine_fixture_policy_exchanges = POLICY(.name = "orders-exchanges", .pin = ASYM_PIN_CPU,
                                                                  .task_state_size = 1, .reacts = true,
                                                                  .exchange = exchange);
const struct asym_policy engine_fixture_policy_every_snapshot = POLICY(.name = "orders-own-period",
                                                                       .pin = ASYM_PIN_TYPE, .task_state_size = 1,
                                                                       .every_snapshot = true);

void engine_fixture_machine(struct asym_machine *m, unsigned n_slow, unsigned n_fast, unsigned llc)
{
    memset(m, 0, sizeof *m);
    m->generation = 1;
    m->n_cpus = n_slow + n_fast;
    for (unsigned c = 0; c < m->n_cpus; c++) {
        asym_mask_set(&m->online, c);
        asym_mask_set(&m->usable, c);
        m->cpus[c] = (struct asym_cpu){
            .speed = c < n_slow ? 1 : 2,
            .core = (int16_t)c,
            .llc = (int16_t)(c / llc),
            .freq_domain = (int16_t)c,
            .origin = ASYM_ORIGIN_CPUFREQ,
        };
    }
    assert_int_equal(asym_machine_finish(m), 0);
}

void engine_fixture_init(struct engine_fixture *w)
{
    struct asym_settings *defaults;
    memset(w, 0, sizeof *w);
    engine_fixture_machine(&w->machine, 4, 4, 4);
    assert_int_equal(asym_settings_new(&defaults), 0);
    w->now = 1000 * ASYM_SEC;
    w->params.orders = &w->orders;
    w->config = (struct asym_engine_config){
        .policy = &engine_fixture_policy_type,
        .params = &w->params,
        .classify = defaults->classify,
        .enforce = defaults->enforce,
    };
    asym_settings_free(defaults);
    assert_int_equal(asym_engine_new(&w->config, &w->engine), 0);
}

void engine_fixture_done(struct engine_fixture *w)
{
    asym_engine_free(w->engine);
    w->engine = NULL;
}

unsigned engine_fixture_proc(struct engine_fixture *w, int32_t pid)
{
    assert_true(w->n_procs < ENGINE_FIXTURE_PROCS);
    w->procs[w->n_procs] = (struct asym_proc){
        .id = {pid, pid, (uint64_t)pid * 10},
        .ppid = 1,
        .app = (uint32_t)w->n_procs,
        .born = w->now - 60 * ASYM_SEC,
    };
    w->runnable[w->n_procs] = -1;
    return (unsigned)w->n_procs++;
}

struct engine_fixture_thread *engine_fixture_thread(struct engine_fixture *w, unsigned proc, int32_t tid, int32_t cpu)
{
    assert_true(w->n_threads < ENGINE_FIXTURE_THREADS);
    struct engine_fixture_thread *t = &w->threads[w->n_threads++];
    *t = (struct engine_fixture_thread){
        .task = {.id = {tid, w->procs[proc].id.tgid, (uint64_t)tid * 10},
                 .proc = proc,
                 .comm = "thread",
                 .state = 'R',
                 .runnable = 1,
                 .running = 1},
        .mask = w->machine.online,
        .cpuset = w->machine.online,
        .listed = true,
    };
    engine_fixture_order(w, tid, cpu, false);
    return t;
}

void engine_fixture_order(struct engine_fixture *w, int32_t tid, int32_t cpu, bool exclusive)
{
    w->orders.of[tid % 1000].cpu = cpu;
    w->orders.of[tid % 1000].exclusive = exclusive;
}

void engine_fixture_sample(struct engine_fixture *w, asym_usec dt)
{
    struct asym_snapshot s = {
        .machine = &w->machine,
        .interval = dt,
        .urgent = w->urgent,
        .refreshed = w->refreshed,
        .paused = w->paused,
        .ignored = w->ignored,
        .n_ignored = w->n_ignored,
        .apps = w->s_apps,
        .procs = w->procs,
        .samples = w->s_samples,
        .tasks = w->s_tasks,
        .n_apps = w->n_procs,
        .n_procs = w->n_procs,
    };
    s.now = w->now += dt;
    for (unsigned p = 0; p < w->n_procs; p++) {
        struct asym_app *app = &w->s_apps[p];
        *app = (struct asym_app){
            .id = w->procs[p].id, .comm = "app", .first_task = (uint32_t)s.n_tasks, .n_procs = w->job ? w->job : 1};
        for (size_t i = 0; i < w->n_threads; i++) {
            struct engine_fixture_thread *t = &w->threads[i];
            if (!t->listed || t->task.proc != p)
                continue;
            t->task.mask = &t->mask;
            t->task.cpuset = &t->cpuset;
            if (t->instructions > 0)
                w->s_samples[s.n_samples++] = (struct asym_sample){
                    .task = (uint32_t)s.n_tasks, .seconds = 1, .instructions = t->instructions, .cycles = -1};
            w->s_of[s.n_tasks] = t;
            w->s_tasks[s.n_tasks++] = t->task;
            app->n_tasks++;
            app->n_threads++;
            app->runnable_mean += t->task.runnable;
            app->runnable_instant += t->task.state == 'R';
        }
        if (w->runnable[p] >= 0)
            app->runnable_mean = w->runnable[p];
    }
    w->snapshot = s;
}

int engine_fixture_try_step(struct engine_fixture *w, asym_usec dt)
{
    engine_fixture_sample(w, dt);
    return asym_engine_step(w->engine, &w->snapshot, &w->plan, &w->actions, &w->n);
}

void engine_fixture_step(struct engine_fixture *w, asym_usec dt)
{
    assert_int_equal(engine_fixture_try_step(w, dt), 0);
}

void engine_fixture_apply(struct engine_fixture *w)
{
    struct asym_outcome *outcomes = w->outcomes;
    assert_true(w->n <= ASYM_LENGTH(w->outcomes));
    for (size_t a = 0; a < w->n; a++) {
        const struct asym_action *action = &w->actions[a];
        outcomes[a] = (struct asym_outcome){ASYM_OUTCOME_GONE, -ESRCH};
        for (size_t i = 0; i < w->n_threads; i++) {
            struct engine_fixture_thread *t = &w->threads[i];
            if (t->task.id.tid != action->id.tid || t->task.id.start != action->id.start)
                continue;
            assert_true(asym_mask_equal(&t->mask, &action->expect));
            assert_int_equal(t->task.nice, action->expect_nice);
            t->mask = action->full_cpuset ? t->cpuset : asym_mask_and(&action->mask, &t->cpuset);
            t->task.nice = action->nice;
            outcomes[a] = (struct asym_outcome){ASYM_OUTCOME_DONE, 0};
        }
    }
    asym_engine_outcomes(w->engine, outcomes, w->n);
}

void engine_fixture_run(struct engine_fixture *w, asym_usec dt)
{
    engine_fixture_step(w, dt);
    engine_fixture_apply(w);
}

void engine_fixture_answer(struct engine_fixture *w, enum asym_outcome_kind kind, int error)
{
    struct asym_outcome *outcomes = w->outcomes;
    assert_true(w->n <= ASYM_LENGTH(w->outcomes));
    for (size_t a = 0; a < w->n; a++)
        outcomes[a] = (struct asym_outcome){kind, error};
    asym_engine_outcomes(w->engine, outcomes, w->n);
}

const struct asym_action *engine_fixture_action(const struct engine_fixture *w, int32_t tid)
{
    const struct asym_action *found = NULL;
    for (size_t a = 0; a < w->n; a++) {
        if (w->actions[a].id.tid != tid)
            continue;
        assert_null(found);
        found = &w->actions[a];
    }
    return found;
}

const struct asym_plan_task *engine_fixture_planned(const struct engine_fixture *w, int32_t tid)
{
    for (size_t i = 0; i < w->plan->n_tasks; i++)
        if (w->s_tasks[i].id.tid == tid)
            return &w->plan->tasks[i];
    fail_msg("thread %d is not in the plan", tid);
    return NULL;
}

struct asym_mask engine_fixture_cpus(const char *list)
{
    struct asym_mask m = {0};
    assert_int_equal(asym_mask_parse_list(list, strlen(list), &m), 0);
    return m;
}

void engine_fixture_assert_mask(const struct asym_mask *m, const char *list)
{
    char text[ASYM_MASK_LIST_MAX];
    assert_string_equal(asym_mask_format_list(m, text, sizeof text), list);
}
