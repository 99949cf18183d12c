/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Serial threads first (Morad 2008, 6). A thread of an application in its serial phase gets nice serial_boost and a CPU to
 * itself, on the best seat that no other serial thread has. Parallel threads give way to it and do not make a CPU busy. So it
 * runs as fast as it would alone, as the source's table 3 promises. The other threads go to CPUs in proportion to speed,
 * and no CPU is idle before any has two. If serial threads would leave no CPU, all threads are placed that way.
 *
 * When two or more applications are parallel, each with as many runnable threads as there are CPUs, the one that has been
 * parallel for longest, the senior, gets the same boost. The boost ends when its phase ends, when the phase of all others
 * ends, or after seniority_timeout. Then the next application gets it, in the order in which they became parallel.
 *
 * The source moves a thread as soon as its application becomes serial. asymd knows that moment where the kernel (BPF) or the
 * program (RTX) tells it: then one thread leads, which runs alone, or is a master in a phase that the program reports. It alone is
 * served: the others of its application wait for the one that is alone, those of its process for a master. A master without phases
 * may work beside its team, so it does not lead: there the number of runnable threads says what the program is.
 *
 * Deviations from the source:
 * - It subtracts 10 from the dynamic priority, which Linux no longer has. Here the nice value becomes -10, unless it is
 *   lower already.
 * - It grants CPUs by priority alone. A kernel that shares CPUs by weight needs an exclusive CPU for the same effect.
 * - An application counts as serial while helper threads of it run now and then. A thread that is runnable for less than a
 *   quarter of the time gets the boost, but is placed like the others; a light one shares its CPU with a crowd.
 * - Serial threads keep the order in which their phases began, so that a later one never takes the CPU of an earlier one.
 * - A CPU that is the only choice of another thread becomes exclusive last.
 */
#include <asym/policy.h>

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"
#include "policy/placement/balance.h"
#include "policy/placement/spread.h"

/* A thread that is runnable for this share of the time gets the CPU of a serial thread; half of the share is enough to keep it. */
#define MUCH 0.25

struct params {
    int serial_boost;
    asym_usec seniority_timeout;
};

struct state {
    struct asym_taskid senior; /* tid 0: there is no senior */
    asym_usec phase_since;     /* when its phase began */
    asym_usec boosted_since;
    bool too_many; /* serial threads of the last plan: a CPU each would have left none to the rest */
};

/* A plan treats a thread like a parallel one, or boosts it as a serial one, or also gives it a CPU to itself. */
enum role { ROLE_PARALLEL, ROLE_SERIAL, ROLE_MUCH };

struct thread_state {
    bool known; /* an earlier plan placed it */
    bool much;  /* it was runnable for long enough to have a CPU to itself */
};

/* Threads, by the way they are placed. */
struct lists {
    uint32_t *apps, *scratch;
    uint32_t *serial, *others; /* serial: the thread longest in its phase first */
    size_t n_serial, n_others;
    enum role *roles; /* per thread */
    struct asym_mask reserved;
};

static struct thread_state *state_of(const struct asym_policy_input *in, size_t t)
{
    return in->threads[t].state;
}

/* --- the senior --- */

/* A program in the background does not contend. */
static bool is_parallel(const struct asym_policy_app *app)
{
    return app->phase == ASYM_PHASE_PARALLEL && app->class_by != ASYM_CLASS_BY_NICE;
}

static bool is_contender(const struct asym_policy_input *in, const struct asym_policy_app *app)
{
    return is_parallel(app) && app->runnable + 0.5 >= asym_mask_count(&in->machine->usable);
}

/* The application that became parallel first comes first; on a tie, the lower number. */
static int by_seniority(const struct asym_policy_app *a, const struct asym_taskid *id, asym_usec phase_since)
{
    if (a->phase_since != phase_since)
        return a->phase_since < phase_since ? -1 : 1;
    return a->id.tid < id->tid ? -1 : a->id.tid > id->tid;
}

/* Returns the senior of all contenders, or of those behind s; NULL if there are none. */
static const struct asym_policy_app *first_behind(const struct asym_policy_input *in, const struct state *s)
{
    const struct asym_policy_app *first = NULL;
    for (size_t i = 0; i < in->n_apps; i++) {
        const struct asym_policy_app *app = &in->apps[i];
        if (!is_contender(in, app) || (s && by_seniority(app, &s->senior, s->phase_since) <= 0))
            continue;
        if (!first || by_seniority(app, &first->id, first->phase_since) < 0)
            first = app;
    }
    return first;
}

/* Returns true if the senior is still parallel, in the same phase, and another application is parallel too. */
static bool still_contends(const struct asym_policy_input *in, const struct state *s)
{
    bool parallel = false, others = false;
    for (size_t i = 0; i < in->n_apps; i++) {
        const struct asym_policy_app *app = &in->apps[i];
        if (!is_parallel(app))
            continue;
        if (app->id.tid == s->senior.tid && app->id.start == s->senior.start && app->phase_since == s->phase_since)
            parallel = true;
        else
            others = true;
    }
    return parallel && others;
}

static struct state choose_senior(const struct asym_policy_input *in)
{
    const struct params *params = in->params;
    const struct state *s = in->state;
    const bool contends = s->senior.tid != 0 && still_contends(in, s);
    if (contends && (params->seniority_timeout == 0 || in->now - s->boosted_since < params->seniority_timeout))
        return *s;
    size_t contenders = 0;
    for (size_t i = 0; i < in->n_apps; i++)
        contenders += is_contender(in, &in->apps[i]);
    if (contenders < 2)
        return (struct state){.too_many = s->too_many};
    const struct asym_policy_app *next = contends ? first_behind(in, s) : NULL;
    if (!next)
        next = first_behind(in, NULL);
    return (struct state){
        .senior = next->id, .phase_since = next->phase_since, .boosted_since = in->now, .too_many = s->too_many};
}

/* --- placement --- */

/* A serial phase that only the program reports counts as the newest. */
static asym_usec serial_since(const struct asym_policy_input *in, uint32_t a)
{
    return in->apps[a].phase == ASYM_PHASE_SERIAL ? in->apps[a].phase_since : UINT64_MAX;
}

static int by_phase(uint32_t a, uint32_t b, const void *ctx)
{
    const asym_usec x = serial_since(ctx, a), y = serial_since(ctx, b);
    return x < y ? -1 : x > y;
}

static bool leads(const struct asym_policy_thread *thread)
{
    return (thread->alone || thread->in_phase) && !thread->spinning;
}

static bool has_leader(const struct asym_policy_input *in, uint32_t first, uint32_t end, bool master)
{
    for (uint32_t t = first; t < end; t++)
        if (leads(&in->threads[t]) && (master || in->threads[t].alone))
            return true;
    return false;
}

static enum role role_of(const struct asym_policy_input *in, uint32_t t, bool led)
{
    const struct asym_policy_thread *thread = &in->threads[t];
    if (led)
        return leads(thread) ? ROLE_MUCH : ROLE_PARALLEL;
    if (in->apps[thread->app].phase != ASYM_PHASE_SERIAL || thread->spinning)
        return ROLE_PARALLEL;
    return thread->runnable >= (state_of(in, t)->much ? MUCH / 2 : MUCH) ? ROLE_MUCH : ROLE_SERIAL;
}

/* The kernel says who is alone in an application. A master says nothing about other processes. Returns true if one leads. */
static bool set_roles(const struct asym_policy_input *in, struct lists *l, const struct asym_policy_app *app)
{
    const uint32_t end = app->first_thread + app->n_threads;
    const bool alone = has_leader(in, app->first_thread, end, false);
    bool any = alone;
    for (uint32_t first = app->first_thread, next; first < end; first = next) {
        for (next = first + 1; next < end && in->threads[next].proc == in->threads[first].proc;)
            next++;
        const bool led = alone || has_leader(in, first, next, true);
        for (uint32_t t = first; t < next; t++)
            l->roles[t] = role_of(in, t, led);
        any |= led;
    }
    return any;
}

static void line_up(const struct asym_policy_input *in, struct lists *l)
{
    size_t n_apps = 0;
    for (uint32_t a = 0; a < in->n_apps; a++) {
        const struct asym_policy_app *app = &in->apps[a];
        if (set_roles(in, l, app) || app->phase == ASYM_PHASE_SERIAL)
            l->apps[n_apps++] = a;
        for (uint32_t t = app->first_thread; t < app->first_thread + app->n_threads; t++)
            if (l->roles[t] != ROLE_MUCH)
                l->others[l->n_others++] = t;
    }
    asym_sort_index(l->apps, n_apps, l->scratch, by_phase, in);
    for (size_t i = 0; i < n_apps; i++) {
        const struct asym_policy_app *app = &in->apps[l->apps[i]];
        for (uint32_t t = app->first_thread; t < app->first_thread + app->n_threads; t++)
            if (l->roles[t] == ROLE_MUCH)
                l->serial[l->n_serial++] = t;
    }
}

/* Returns the CPUs that are the only choice of a thread in others. */
static struct asym_mask only_choices(const struct asym_spread *sp, const struct lists *l)
{
    struct asym_mask only = {0};
    for (size_t i = 0; i < l->n_others; i++) {
        const struct asym_mask *allowed = sp->in->threads[l->others[i]].allowed;
        const int first = asym_mask_next(allowed, 0);
        if (asym_mask_next(allowed, first + 1) < 0)
            asym_mask_set(&only, (unsigned)first);
    }
    return only;
}

/*
 * Give each serial thread a seat, in the order of the rows, as long as there are any. The CPUs that are the only choice of another
 * thread come last.
 */
static void give_exclusive(struct asym_spread *sp, struct lists *l)
{
    const struct asym_machine *m = sp->in->machine;
    const struct asym_mask only = only_choices(sp, l), free_cpus = asym_mask_minus(&m->usable, &only);
    asym_spread_give_rows(sp, l->serial, l->n_serial, &free_cpus, m->n_rows, true);
    asym_spread_give_rows(sp, l->serial, l->n_serial, &only, m->n_rows, true);
    for (size_t i = 0; i < l->n_serial; i++)
        if (sp->ret[l->serial[i]].cpu >= 0)
            asym_mask_set(&l->reserved, (unsigned)sp->ret[l->serial[i]].cpu);
}

/* The threads that no other CPU is open to share those of light threads. */
static void place_beside_light(struct asym_balance *b, struct lists *l, const struct asym_mask *open)
{
    struct asym_mask cpus = *open;
    for (size_t i = 0; i < l->n_serial; i++)
        if (b->sp->in->threads[l->serial[i]].light && b->sp->ret[l->serial[i]].cpu >= 0)
            asym_mask_set(&cpus, (unsigned)b->sp->ret[l->serial[i]].cpu);
    asym_balance_place(b, l->serial, l->n_serial, &cpus);
    asym_balance_place(b, l->others, l->n_others, &cpus);
}

/*
 * Returns whether the serial threads would leave no CPU to the rest. One with few CPUs may find them taken if the others stay where
 * they are, and then one CPU is left; so it depends on the last plan, too.
 */
static bool are_too_many(const struct asym_policy_input *in, const struct lists *l)
{
    struct state *s = in->state;
    const size_t n_cpus = asym_mask_count(&in->machine->usable);
    const bool all = asym_mask_count(&l->reserved) == n_cpus || (s->too_many && l->n_serial >= n_cpus);
    s->too_many = all && in->n_threads > n_cpus;
    return s->too_many;
}

static void place(struct asym_balance *b, struct lists *l)
{
    struct asym_spread *sp = b->sp;
    give_exclusive(sp, l);
    /* Serial threads would leave no CPU to the rest: they share CPUs like the others, but are placed first. */
    if (are_too_many(sp->in, l)) {
        for (size_t t = 0; t < sp->in->n_threads; t++)
            sp->ret[t].cpu = -1;
        memset(sp->load, 0, sp->in->machine->n_cpus * sizeof *sp->load);
        l->reserved = (struct asym_mask){0};
    }
    ASYM_MASK_FOREACH (c, &l->reserved)
        b->load[c] = 1;
    const struct asym_mask open = asym_mask_minus(&sp->in->machine->usable, &l->reserved);
    sp->reserved = l->reserved;
    for (size_t i = 0; i < l->n_serial; i++)
        sp->ret[l->serial[i]].exclusive = sp->ret[l->serial[i]].cpu >= 0 && !sp->in->threads[l->serial[i]].light;
    asym_balance_place(b, l->serial, asym_spread_able(sp, l->serial, l->n_serial, &open), &open);
    asym_balance_place(b, l->others, asym_spread_able(sp, l->others, l->n_others, &open), &open);
    place_beside_light(b, l, &open);
    asym_spread_fill_fast(sp);
}

/* --- reasons --- */

static const struct asym_reason serial = {.text = "serial: a CPU to itself",
                                          .sentence = "belongs to a serial program, so it has a CPU to itself"};
static const struct asym_reason serial_shares = {
    .text = "serial: shares a CPU (%.0f threads want a CPU each, %.0f can have one)",
    .sentence = "belongs to a serial program and shares a CPU: %.0f threads of such programs want a CPU each, and %.0f "
                "can have one"};
static const struct asym_reason serial_light = {
    .text = "serial, but sleeps %.0f %% of the time: shares a CPU, and runs there first",
    .sentence =
        "belongs to a serial program, but sleeps %.0f %% of the time, so it shares a CPU, and runs there first"};
static const struct asym_reason senior_app = {
    .text = "parallel the longest: boosted for %.2f s more of %.2f s",
    .sentence =
        "belongs to the program that has been parallel the longest, so it is boosted for %.2f s more of %.2f s"};

static void boost(const struct asym_policy_input *in, size_t t, struct asym_assignment *a)
{
    const struct params *params = in->params;
    a->nice_delta = (int8_t)ASYM_MIN(0, params->serial_boost - in->threads[t].nice);
}

static void explain_serial(const struct asym_balance *b, const struct lists *l, size_t t)
{
    struct asym_assignment *a = &b->sp->ret[t];
    if (a->exclusive) {
        a->reason = &serial;
    } else if (l->roles[t] == ROLE_MUCH && !b->sp->in->threads[t].light) {
        a->reason = &serial_shares;
        a->figure[0] = (double)l->n_serial;
        a->figure[1] = asym_mask_count(&b->sp->in->machine->usable);
    } else {
        a->reason = &serial_light;
        a->figure[0] = 100 * (1 - b->sp->in->threads[t].duty);
    }
}

static void explain(const struct asym_balance *b, const struct lists *l, const struct state *s)
{
    const struct asym_policy_input *in = b->sp->in;
    const struct params *params = in->params;
    const struct asym_mask open = asym_mask_minus(&in->machine->usable, &l->reserved);
    const double total = asym_proportion_total(in->machine, &open);
    for (size_t t = 0; t < in->n_threads; t++) {
        const struct asym_policy_app *app = &in->apps[in->threads[t].app];
        struct asym_assignment *a = &b->sp->ret[t];
        const bool senior = s->senior.tid != 0 && app->id.tid == s->senior.tid && app->id.start == s->senior.start;
        if (l->roles[t] != ROLE_PARALLEL) {
            boost(in, t, a);
            explain_serial(b, l, t);
        } else if (senior) {
            boost(in, t, a);
            a->reason = &senior_app;
            const asym_usec age = ASYM_MIN(in->now - s->boosted_since, params->seniority_timeout);
            a->figure[0] = (double)(params->seniority_timeout - age) / (double)ASYM_SEC;
            a->figure[1] = (double)params->seniority_timeout / (double)ASYM_SEC;
        } else {
            asym_proportion_explain(b, t, in->n_threads - asym_mask_count(&l->reserved), total);
        }
    }
}

static void take_memory(const struct asym_policy_input *in, struct lists *l)
{
    const size_t n = in->n_threads + 1;
    *l = (struct lists){
        .apps = asym_arena_take(in->arena, in->n_apps + 1, sizeof *l->apps),
        .scratch = asym_arena_take(in->arena, ASYM_MAX(in->n_apps + 1, n), sizeof *l->scratch),
        .serial = asym_arena_take(in->arena, n, sizeof *l->serial),
        .others = asym_arena_take(in->arena, n, sizeof *l->others),
        .roles = asym_arena_take(in->arena, n, sizeof *l->roles),
    };
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_spread sp;
    struct asym_balance b;
    struct lists l;
    struct state *state = in->state;
    asym_spread_init(&sp, in, ret);
    asym_balance_init(&b, &sp, &asym_proportion_rule);
    take_memory(in, &l);
    if (asym_arena_is_short(in->arena))
        return -ENOBUFS;
    *state = choose_senior(in);
    line_up(in, &l);
    for (size_t t = 0; t < in->n_threads; t++) {
        b.known[t] = state_of(in, t)->known;
        *state_of(in, t) = (struct thread_state){.known = true, .much = l.roles[t] == ROLE_MUCH};
    }
    place(&b, &l);
    explain(&b, &l, state);
    return 0;
}

static const struct asym_option options[] = {
    ASYM_OPTION(struct params, NICE, serial_boost, .def = "-10", .min = -20, .max = 19,
                .help = "The nice value that serial threads and the senior application get, unless theirs is lower "
                        "(Morad 2008, 6)."),
    ASYM_OPTION(struct params, DURATION, seniority_timeout, .def = "1s", .min = 0, .max = 3600e6,
                .help = "After this time the next parallel application becomes the senior; 0s means never (Morad "
                        "2008, 6)."),
    {.key = NULL},
};

const struct asym_policy asym_policy_serial_first = {
    .name = "serial-first",
    .summary = "serial threads get fast CPUs to themselves; the others share the rest by speed",
    .source = "Morad 2008, 6",
    .pin = ASYM_PIN_CPU,
    .reacts = true,
    .serves_alone = true,
    .params_size = sizeof(struct params),
    .state_size = sizeof(struct state),
    .task_state_size = sizeof(struct thread_state),
    .options = options,
    .plan = plan,
};
