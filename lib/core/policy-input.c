/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Build a policy's input from the snapshot, call it, and store its assignments in the thread states. */
#include "core/engine-internal.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"

/* Reports dereference the reason: a policy that gives none must not end the service. */
static const struct asym_reason unexplained = {.text = "the policy gives no reason"};

/* The size of a policy's first arena, by threads and CPUs. The engine grows it when the policy asks for more. */
#define ARENA_FIRST(n_threads, n_cpus) (4096 + 64 * (n_threads) + 256 * (n_cpus))

/* A policy that asks for more has a bug: 20,000 threads need some megabytes. */
#define ARENA_MOST ((size_t)256 << 20)

/* Many threads have equal original masks, cpusets and rules: cache their allowed CPUs. */
struct allowed_cache {
    struct allowed_entry {
        uint32_t original, cpuset, rule, allowed;
        const struct asym_mask *cpus; /* of the rule */
        bool full;
    } entry[64];
};

static uint32_t allowed_of(const struct asym_step *st, const struct asym_task_ref *ref, struct allowed_cache *cache)
{
    struct asym_mask_table *masks = &st->e->masks;
    const uint32_t original = ref->thread_state->extent == ASYM_ORIGINAL_CPUSET ? ASYM_MASK_NONE
                                                                                : ref->thread_state->original;
    const enum asym_rule_action rule = ref->seen.proc->rule;
    const struct asym_mask *cpus = asym_rule_cpus(ref->seen.proc);
    const uint32_t h = original * 31 + ref->seen.cpuset * 7 + rule;
    struct allowed_entry *entry = &cache->entry[h % ASYM_LENGTH(cache->entry)];
    if (!entry->full || entry->original != original || entry->cpuset != ref->seen.cpuset || entry->rule != rule ||
        entry->cpus != cpus) {
        const struct asym_mask allowed = asym_allowed_cpus(
            original == ASYM_MASK_NONE ? NULL : asym_mask_table_at(masks, original), ref->seen.task->cpuset,
            ref->seen.proc, st->s->machine);
        *entry = (struct allowed_entry){original, ref->seen.cpuset, rule, asym_mask_table_id(masks, &allowed), cpus,
                                        true};
    }
    return entry->allowed;
}

/*
 * Within a mask of several CPUs the kernel mostly runs the thread on another CPU than its target. A thread that is about to
 * get an exclusive CPU prefers its present one: else it and another thread would have to swap CPUs at that moment.
 */
static int32_t preferred_cpu_of(const struct asym_thread_state *m, const struct asym_task *task,
                                const struct asym_mask *allowed)
{
    const bool expects_exclusive = task->flags & ASYM_TASK_MASTER || m->class == ASYM_CLASS_SP;
    if (expects_exclusive && asym_mask_has(allowed, task->cpu) && asym_mask_has(task->mask, task->cpu))
        return task->cpu;
    if ((m->state == ASYM_AFFINITY_STEERED || m->state == ASYM_AFFINITY_FITS) && asym_mask_has(allowed, m->given))
        return m->given;
    return asym_mask_has(allowed, task->cpu) ? task->cpu : -1;
}

static void note_class(const struct asym_step *st, struct asym_thread_state *m, const struct asym_app_state *app)
{
    asym_usec since = st->s->now;
    enum asym_class class = asym_classify_thread(app, &m->id, &since);
    if (m->class != class || m->class_since == 0 || class == ASYM_CLASS_SP)
        m->class_since = since;
    m->class = class;
}

/*
 * A process of a job has the class of the job at once, but each that asymd steers is a change, and most compilers of a build end
 * soon. Where n threads of a job are runnable, each process waits n seconds: so there is at most one such change a second.
 */
static const struct asym_enforce_settings *settings_for(const struct asym_step *st, const struct asym_app *app,
                                                        const struct asym_thread_state *m,
                                                        struct asym_enforce_settings *of_job)
{
    const struct asym_enforce_settings *settings = &st->e->config.enforce;
    if (app->n_procs < 2 || m->state == ASYM_AFFINITY_STEERED)
        return settings;
    const double runnable = round(asym_classify_runnable(&st->e->config.classify, app));
    if (runnable < 2)
        return settings;
    const double wait = ASYM_MIN(runnable * (double)ASYM_SEC, (double)settings->fork_holdoff);
    *of_job = *settings;
    of_job->settle = ASYM_MAX(settings->settle, (asym_usec)wait);
    return of_job;
}

static bool has_exchange(const struct asym_step *st)
{
    const struct asym_engine *e = st->e;
    return st->s->urgent == ASYM_URGENT_PHASE && e->config.policy->exchange && !e->dirty &&
           st->s->machine->generation == e->generation;
}

/* The CPU of a thread that sleeps is the one that an exchange gives to another. */
static bool may_lend(const struct asym_step *st, const struct asym_thread_state *m)
{
    return st->s->refreshed && has_exchange(st) && m->assigned == st->e->plan && m->assignment.cpu >= 0;
}

/* Returns why asymd does not map this thread, whatever CPUs are free; ASYM_WHY_NONE: it may. */
static enum asym_exclusion objection(const struct asym_step *st, const struct asym_app_state *app, uint32_t index,
                                     double ret_figure[2])
{
    const struct asym_task *task = st->refs[index].seen.task;
    const struct asym_thread_state *m = st->refs[index].thread_state;
    /* Its number may belong to the thread of its process that calls exec just now: the next sample tells. */
    if (task->flags & ASYM_TASK_ENDED)
        return ASYM_WHY_IDLE;
    const struct asym_proc *proc = st->refs[index].seen.proc;
    struct asym_enforce_settings of_job;
    const struct asym_enforce_settings *settings = settings_for(st, &st->s->apps[proc->app], m, &of_job);
    enum asym_exclusion reason = asym_eligible(m, task, proc, st->s->now, settings, ret_figure);
    if (reason != ASYM_WHY_NONE)
        return reason;
    if (st->s->paused)
        return ASYM_WHY_PAUSED;
    if ((app->phase.value == ASYM_PHASE_IDLE || !asym_task_is_active(task)) && !may_lend(st, m))
        return ASYM_WHY_IDLE;
    /* An inherited mask is repaired first. For a suspected external change, the next samples decide. */
    return m->state == ASYM_AFFINITY_INHERITED || m->suspected ? ASYM_WHY_NEXT_SWAP : ASYM_WHY_NONE;
}

/* The core type that the thread's mask confined it to during the sample; -1: its mask allows several. */
static int16_t sampled_on(const struct asym_machine *machine, const struct asym_task *task)
{
    const struct asym_mask had = asym_mask_and(task->mask, &machine->usable);
    const int cpu = asym_mask_next(&had, 0);
    if (cpu < 0)
        return -1;
    const int16_t type = machine->cpus[cpu].type;
    return type >= 0 && asym_mask_within(&had, &machine->types[type].cpus) ? type : -1;
}

/*
 * Give the thread its sample, if it has one. Samples and tasks have the same order. A loop that spins "uses the CPU pipeline very
 * efficiently" (Saez 2010, 2.2.1), and its counts say nothing of the thread's work: a thread that spins has none.
 */
static void add_sample(struct asym_step *st, uint32_t index, struct asym_policy_thread *thread)
{
    const struct asym_snapshot *s = st->s;
    while (st->next_sample < s->n_samples && s->samples[st->next_sample].task < index)
        st->next_sample++;
    thread->sampled_on = -1;
    if (st->next_sample >= s->n_samples || s->samples[st->next_sample].task != index || thread->spinning)
        return;
    thread->sample = &s->samples[st->next_sample];
    thread->sampled_on = sampled_on(s->machine, st->refs[index].seen.task);
}

/* Returns the share of a CPU that a thread needs which asymd does not steer; 0 if it is asymd's own or the kernel's. */
static double need_of(const struct asym_task_ref *ref)
{
    const bool is_own = ref->seen.proc->flags & (ASYM_PROC_SELF | ASYM_PROC_KERNEL);
    return is_own || ref->seen.task->flags & ASYM_TASK_ENDED ? 0 : ref->seen.task->runnable;
}

/* Number the groups of the threads, so that a policy needs no search. asym_step_policy_input has made room. */
static uint32_t number_nice_group(struct asym_step *st, const struct asym_task *task)
{
    const struct asym_policy_thread *last = st->n_policy_threads > 0 ? &st->policy_threads[st->n_policy_threads - 1]
                                                                     : NULL;
    const struct asym_taskid id = {.tid = st->s->procs[task->proc].nice_group};
    if (last && last->proc == task->proc)
        return last->nice_group;
    struct asym_proc_entry *entry = id.tid != 0 ? asym_table_get(&st->e->nice_groups, &id) : NULL;
    if (entry && entry->index == 0)
        entry->index = st->e->nice_groups.n;
    return entry ? entry->index : 0;
}

static struct asym_policy_thread policy_thread_of(struct asym_step *st, const struct asym_task_ref *ref,
                                                  uint32_t allowed)
{
    const struct asym_task *task = ref->seen.task;
    struct asym_thread_state *m = ref->thread_state;
    const struct asym_mask *cpus = asym_mask_table_at(&st->e->masks, allowed);
    return (struct asym_policy_thread){
        .id = task->id,
        .app = (uint32_t)st->n_policy_apps,
        .proc = task->proc,
        .class = m->class,
        .class_since = m->class_since,
        .preferred_cpu = preferred_cpu_of(m, task, cpus),
        .allowed = cpus,
        .runnable = task->runnable,
        .running = task->running,
        .critical = task->critical,
        .duty = asym_duty_share(&m->duty),
        .awake = task->state == 'R',
        .light = m->duty.light,
        .nice = asym_nice_by_rule(m, ref->seen.proc, st->e->config.keep_nice),
        .nice_group = number_nice_group(st, task),
        .master = task->flags & ASYM_TASK_MASTER,
        .in_phase = task->flags & ASYM_TASK_PHASE,
        .spinning = task->flags & ASYM_TASK_SPINNING,
        .alone = task->flags & ASYM_TASK_ALONE,
        .profile = ref->seen.proc->profile,
        .state = st->e->config.policy->task_state_size ? (void *)(m + 1) : NULL,
    };
}

/* Add the thread to the policy's input, or note why asymd does not steer it. */
static void add_thread(struct asym_step *st, const struct asym_app_state *app, uint32_t index,
                       struct allowed_cache *cache, double *unsteered)
{
    const struct asym_task_ref *ref = &st->refs[index];
    struct asym_policy_thread *thread = &st->policy_threads[st->n_policy_threads];
    struct asym_plan_task *out = &st->tasks[index];
    note_class(st, ref->thread_state, app);
    *out = (struct asym_plan_task){.target = -1, .nice = ref->seen.task->nice, .class = ref->thread_state->class};
    enum asym_exclusion exclusion = objection(st, app, index, out->figure);
    const uint32_t allowed = exclusion == ASYM_WHY_NONE ? allowed_of(st, ref, cache) : ASYM_MASK_NONE;
    if (exclusion == ASYM_WHY_NONE && allowed == ASYM_MASK_NONE)
        exclusion = ASYM_WHY_NOTHING_FREE;
    out->reason = asym_why(exclusion);
    if (out->reason) {
        *unsteered += need_of(ref);
        return;
    }
    *thread = policy_thread_of(st, ref, allowed);
    st->policy_refs[st->n_policy_threads++] = (struct asym_policy_ref){.task = index, .allowed = allowed};
    add_sample(st, index, thread);
}

/* If asymd may steer no thread of an application, reports show it as excluded, with its first thread's reason. */
static void note_exclusion(struct asym_plan_app *out, const struct asym_plan_task *tasks, uint32_t n, size_t n_threads)
{
    if (n_threads > 0 || n == 0)
        return;
    out->excluded = tasks[0].reason;
    memcpy(out->figure, tasks[0].figure, sizeof out->figure);
}

int asym_step_policy_input(struct asym_step *st)
{
    const struct asym_snapshot *s = st->s;
    struct allowed_cache cache = {0};
    asym_table_clear(&st->e->nice_groups);
    if (asym_table_reserve(&st->e->nice_groups, s->n_procs) < 0)
        return -ENOMEM;
    for (size_t a = 0; a < s->n_apps; a++) {
        const struct asym_app *app = &s->apps[a];
        const struct asym_app_state *state = st->app_states[a];
        size_t first = st->n_policy_threads;
        struct asym_plan_app *out = &st->apps[a];
        asym_step_observe_app(st, a);
        *out = (struct asym_plan_app){
            .phase = (enum asym_phase)state->phase.value,
            .class = (enum asym_class)state->class.value,
            .class_by = state->class_by,
            .runnable = asym_classify_runnable(&st->e->config.classify, app),
        };
        double unsteered = 0;
        for (uint32_t i = 0; i < app->n_tasks; i++)
            add_thread(st, state, app->first_task + i, &cache, &unsteered);
        st->unsteered += unsteered;
        st->unsteered_weight += unsteered / ASYM_MAX(1, out->runnable);
        note_exclusion(out, st->tasks + app->first_task, app->n_tasks, st->n_policy_threads - first);
        if (st->n_policy_threads == first)
            continue;
        st->policy_apps[st->n_policy_apps++] = (struct asym_policy_app){
            .id = app->id,
            .phase = out->phase,
            .class = out->class,
            .class_by = out->class_by,
            .runnable = out->runnable,
            .phase_since = state->phase.since,
            .unsteered = unsteered,
            .first_thread = (uint32_t)first,
            .n_threads = (uint32_t)(st->n_policy_threads - first),
        };
    }
    return st->e->masks.failed ? -ENOMEM : 0;
}

/* A thread with a wider mask wakes where there is room: its seat is free. */
static void add_asleep(struct asym_step *st, const struct asym_thread_state *m)
{
    const int pin = st->e->config.enforce.pin;
    const bool is_bound = (pin < 0 ? m->assignment.width : (enum asym_pin)pin) == ASYM_PIN_CPU;
    if (m->state == ASYM_AFFINITY_STEERED && is_bound && asym_mask_has(&st->s->machine->usable, m->given))
        st->asleep[m->given] += (float)asym_duty_asleep(&m->duty, st->s->now);
}

/* A steered thread that the snapshot does not list sleeps, or is gone: it needs its CPU again when it wakes. */
static int note_asleep(struct asym_step *st)
{
    const struct asym_engine *e = st->e;
    const size_t n = st->s->machine->n_cpus;
    st->asleep = asym_pool_reserve(&st->e->pools.asleep, n, sizeof *st->asleep);
    if (!st->asleep)
        return -ENOMEM;
    memset(st->asleep, 0, n * sizeof *st->asleep);
    if (e->config.policy->pin != ASYM_PIN_EACH)
        return 0;
    for (uint32_t i = 0; i < e->threads.n && asym_step_has_unlisted(st); i++) {
        const struct asym_thread_state *m = asym_table_at(&e->threads, i);
        if (m->seen != e->step)
            add_asleep(st, m);
    }
    for (size_t i = 0; i < st->s->n_tasks && st->n_policy_threads < st->s->n_tasks; i++)
        if (st->tasks[i].reason == asym_why(ASYM_WHY_IDLE))
            add_asleep(st, st->refs[i].thread_state);
    return 0;
}

/* measured: the time for which the measurements count. */
static struct asym_policy_input input_of(struct asym_step *st, asym_usec measured, struct asym_arena *arena)
{
    struct asym_engine *e = st->e;
    return (struct asym_policy_input){
        .machine = st->s->machine,
        .now = st->s->now,
        .interval = measured,
        .swap_period = e->config.enforce.swap_period,
        .since_swap = st->s->now - e->swap_began,
        .apps = st->policy_apps,
        .threads = st->policy_threads,
        .n_apps = st->n_policy_apps,
        .n_threads = st->n_policy_threads,
        .n_nice_groups = e->nice_groups.n,
        .unsteered = st->unsteered,
        .unsteered_weight = st->unsteered > 0 ? st->unsteered_weight / st->unsteered : 0,
        .asleep = st->asleep,
        .spare = &e->spare,
        .again = &e->again,
        .amp_boost = e->config.classify.amp_boost,
        .hp_threshold = st->classify.hp_threshold,
        .params = e->params,
        .state = e->policy_state,
        .arena = arena,
    };
}

/* Call the policy, with a larger arena as long as it returns -ENOBUFS. */
static int ask(struct asym_step *st, struct asym_assignment *answers)
{
    struct asym_engine *e = st->e;
    size_t size = ASYM_MAX(e->pools.arena.capacity, ARENA_FIRST(st->n_policy_threads, st->s->machine->n_cpus));
    do {
        struct asym_arena arena = {.base = asym_pool_reserve(&e->pools.arena, size, 1), .size = size};
        if (!arena.base)
            return -ENOMEM;
        const asym_usec measured = e->measured && !st->s->refreshed ? st->s->now - e->measured : 0;
        const struct asym_policy_input input = input_of(st, measured, &arena);
        e->spare = (struct asym_mask){0};
        e->again = 0;
        int r = e->config.policy->plan(&input, answers);
        if (r != -ENOBUFS)
            return r;
        size = ASYM_MAX(size * 2, arena.wanted);
    } while (size <= ARENA_MOST);
    return -ENOMEM;
}

static bool is_reaction(const struct asym_policy *policy, enum asym_urgency urgent)
{
    return urgent == ASYM_URGENT_REPORT ? policy->reacts : urgent == ASYM_URGENT_PHASE && policy->serves_alone;
}

/*
 * A timer of one swap period fires a little early or a little late. Without the slack, an early timer would cost a whole
 * period. Counting from the time when the swap was due keeps the mean rate.
 */
static bool time_to_plan(struct asym_engine *e, const struct asym_snapshot *s)
{
    const asym_usec period = e->config.policy->every_snapshot ? 0 : e->config.enforce.swap_period;
    const asym_usec slack = ASYM_MIN(period / 20, 5 * ASYM_MSEC);
    const bool is_fresh = s->interval > 0 && !s->refreshed;
    const bool asked = is_fresh && e->again != 0 && s->now + ASYM_MSEC >= e->last_plan + e->again;
    /* Measurements are for the plan of the period: if one without any took its place, a program with many phases had no other. */
    const bool due = (!s->refreshed || period == 0) && s->now + slack >= e->next_swap;
    /* A phase does not wait for the swap period and does not use it up. */
    if (!due && !e->dirty && s->machine->generation == e->generation)
        return asked || is_reaction(e->config.policy, s->urgent);
    e->swap_began = s->now;
    bool in_step = due && e->next_swap != 0 && s->now < e->next_swap + period;
    e->next_swap = in_step ? e->next_swap + period : s->now + period;
    return true;
}

/* *ret_answers: of the policy, one for each of its threads; the engine keeps them. */
static int map_anew(struct asym_step *st, const struct asym_assignment **ret_answers)
{
    struct asym_engine *e = st->e;
    struct asym_assignment *answers = asym_pool_reserve(&e->pools.assignments, st->n_policy_threads, sizeof *answers);
    if (!answers || note_asleep(st) < 0)
        return -ENOMEM;
    int r = ask(st, answers);
    if (r < 0)
        return r;
    e->again = e->again != 0 ? ASYM_MAX(e->again, ASYM_AGAIN_LEAST) : 0;
    e->plan++;
    e->last_plan = st->s->now;
    if (!st->s->refreshed)
        e->measured = st->s->now;
    e->generation = st->s->machine->generation;
    e->dirty = false;
    *ret_answers = answers;
    return 0;
}

static void take_answer(struct asym_step *st, size_t i, const struct asym_assignment *answer)
{
    struct asym_thread_state *m = st->refs[st->policy_refs[i].task].thread_state;
    m->assignment = *answer;
    m->assigned = st->e->plan;
}

/* Let the policy exchange CPUs of the last plan. */
static int exchange(struct asym_step *st)
{
    struct asym_engine *e = st->e;
    struct asym_arena arena = {.base = e->pools.arena.items, .size = e->pools.arena.capacity};
    struct asym_assignment *answers = asym_pool_reserve(&e->pools.assignments, st->n_policy_threads, sizeof *answers);
    if (!answers || note_asleep(st) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < st->n_policy_threads; i++) {
        const struct asym_thread_state *m = st->refs[st->policy_refs[i].task].thread_state;
        answers[i] = m->assigned == e->plan ? m->assignment : (struct asym_assignment){.cpu = -1};
    }
    const struct asym_policy_input input = input_of(st, 0, &arena);
    e->config.policy->exchange(&input, answers);
    for (size_t i = 0; i < st->n_policy_threads; i++)
        if (answers[i].reason)
            take_answer(st, i, &answers[i]);
    return 0;
}

/*
 * The CPUs and the nice value of a rule hold under every policy, also for a thread that the policy leaves alone. With a nice
 * value only, the thread keeps all CPUs of its own.
 */
static void obey_rule(const struct asym_step *st, size_t i, struct asym_plan_task *out)
{
    struct asym_task_ref *ref = &st->refs[st->policy_refs[i].task];
    const struct asym_thread_state *m = ref->thread_state;
    const struct asym_mask *cpus = asym_rule_cpus(ref->seen.proc);
    const bool holds = cpus && asym_mask_within(st->policy_threads[i].allowed, cpus);
    const bool lends = asym_nice_by_rule(m, ref->seen.proc, st->e->config.keep_nice) != m->original_nice;
    if (!holds && !lends)
        return;
    ref->plan_mask = st->policy_refs[i].allowed;
    if (!holds)
        ref->plan_mask = m->extent == ASYM_ORIGINAL_CPUSET ? ref->seen.cpuset : m->original;
    out->reason = &asym_reason_rule;
    out->target = ref->seen.task->cpu;
    if (!asym_mask_has(st->policy_threads[i].allowed, out->target))
        out->target = asym_mask_next(st->policy_threads[i].allowed, 0);
}

/* answer: that of the policy; NULL: the policy did not plan, so that the last one holds. */
static void plan_thread(struct asym_step *st, size_t i, const struct asym_assignment *answer)
{
    struct asym_plan_task *out = &st->tasks[st->policy_refs[i].task];
    const struct asym_task_ref *ref = &st->refs[st->policy_refs[i].task];
    const struct asym_thread_state *m = ref->thread_state;
    const struct asym_assignment *a = &m->assignment;
    if (answer)
        take_answer(st, i, answer);
    if (m->assigned != st->e->plan || (a->cpu >= 0 && !asym_mask_has(st->policy_threads[i].allowed, a->cpu))) {
        out->reason = asym_why(ASYM_WHY_NEXT_SWAP);
        return;
    }
    out->reason = a->reason ? a->reason : &unexplained;
    out->target = a->cpu < 0 ? -1 : a->cpu;
    if (a->cpu < 0)
        obey_rule(st, i, out);
    if (out->target >= 0)
        out->nice = asym_planned_nice(ref, st->e->config.keep_nice, out->reason != &asym_reason_rule);
    st->policy_refs[i].width = a->width;
    out->light = m->duty.light && a->cpu >= 0;
    out->exclusive = a->exclusive && a->cpu >= 0 && (!out->light || out->reason->holds_core);
    out->counted = a->counted;
    memcpy(out->figure, a->figure, sizeof out->figure);
    if (out->exclusive)
        asym_mask_set(&st->held, (unsigned)out->target);
    if (out->target >= 0 && !out->light)
        asym_mask_set(&st->busy, (unsigned)out->target);
}

int asym_step_plan(struct asym_step *st)
{
    struct asym_engine *e = st->e;
    const struct asym_assignment *answers = NULL;
    /* Without threads to map, the swap stays due: the first new thread does not wait. */
    if (st->n_policy_threads > 0) {
        const asym_usec next_swap = e->next_swap, began = e->swap_began;
        int r = time_to_plan(e, st->s) ? map_anew(st, &answers) : has_exchange(st) ? exchange(st) : 0;
        if (r < 0) {
            e->next_swap = next_swap;
            e->swap_began = began;
            return r;
        }
    } else {
        /* A resumption is a refreshed snapshot, which is never due: the plan of before the pause must not go into force. */
        e->dirty |= st->s->paused;
        e->again = 0;
        e->measured = e->measured && !st->s->refreshed ? st->s->now : e->measured;
    }
    for (size_t i = 0; i < st->n_policy_threads; i++)
        plan_thread(st, i, answers ? &answers[i] : NULL);
    return 0;
}
