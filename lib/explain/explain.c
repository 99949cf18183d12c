/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collects the facts that explain how a thread or a program stands. */
#include "explain/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "config/settings.h"
#include "core/thread-state.h"

/* These pass by themselves. */
static bool passes(const struct asym_reason *reason)
{
    static const enum asym_exclusion passing[] = {ASYM_WHY_SETTLING,    ASYM_WHY_FORKED,     ASYM_WHY_UNKNOWN,
                                                  ASYM_WHY_COUNTS_LATE, ASYM_WHY_HARDLY_RAN, ASYM_WHY_NEXT_SWAP};
    for (size_t i = 0; i < ASYM_LENGTH(passing); i++)
        if (reason == asym_why(passing[i]))
            return true;
    return false;
}

static enum asym_standing standing_of(const struct asym_explanation *e)
{
    const struct asym_machine *m = e->context.machine;
    const struct asym_reason *reason = e->reason;
    const int32_t target = e->thread ? e->thread->target : -1;
    if (reason && reason->kind == ASYM_REASON_EXCLUDED)
        return passes(reason) ? ASYM_STANDING_WAITS : ASYM_STANDING_LEFT_ALONE;
    if (!reason || reason->kind == ASYM_REASON_IDLE || (e->thread && e->thread->seen != e->now))
        return ASYM_STANDING_IDLE;
    if (target < 0)
        return ASYM_STANDING_UNSTEERED;
    if (asym_mask_empty(&m->slow))
        return ASYM_STANDING_STEERED;
    return asym_mask_has(&m->fast, target) ? ASYM_STANDING_STEERED_FAST : ASYM_STANDING_STEERED_SLOW;
}

const struct asym_reason *asym_explain_reason_now(const struct asym_reason *old, bool is_current,
                                                  const struct asym_proc *proc)
{
    if (is_current || !proc)
        return old;
    const enum asym_exclusion why = asym_lasting_exclusion(proc);
    return why != ASYM_WHY_NONE || asym_is_lasting_exclusion(old) ? asym_why(why != ASYM_WHY_NONE ? why : ASYM_WHY_IDLE)
                                                                  : old;
}

static void set_reason(struct asym_explanation *e)
{
    const struct asym_monitor_thread *t = e->thread;
    const struct asym_reason *old = t ? t->reason : e->app->reason;
    const bool is_current = t ? t->seen == e->now : e->app->seen == e->now && e->app->runnable > 0;
    e->reason = asym_explain_reason_now(old, is_current, e->context.proc);
    if (e->reason != old)
        return;
    memcpy(e->figure, t ? t->figure : e->app->figure, sizeof e->figure);
    e->reason_since = t ? t->reason_since : 0;
}

/* Returns the thread of the program that was seen last; among several of them, the one that ran most. */
static const struct asym_monitor_thread *busiest(const struct asym_monitor *m, const struct asym_monitor_app *app)
{
    const struct asym_monitor_thread *best = NULL, *t;
    for (size_t i = 0; (t = asym_monitor_thread_at(m, i)); i++) {
        if (!asym_taskid_equal(&t->app, &app->id))
            continue;
        if (!best || t->seen > best->seen || (t->seen == best->seen && t->running > best->running))
            best = t;
    }
    return best;
}

/* The user can end these by asymctl adopt. They are reasons of a thread, so other threads of the program can be steered. */
static bool is_adoptable(const struct asym_reason *reason)
{
    return reason == asym_why(ASYM_WHY_FOREIGN) || reason == asym_why(ASYM_WHY_DENIED) ||
           reason == asym_why(ASYM_WHY_OWN_MASK) || reason == asym_why(ASYM_WHY_FOREIGN_NICE);
}

static bool is_main(const struct asym_monitor_thread *t)
{
    return t->id.tid == t->id.tgid;
}

static bool comes_before(const struct asym_monitor_thread *a, const struct asym_monitor_thread *b)
{
    return is_main(a) != is_main(b) ? is_main(b) : a->id.tid < b->id.tid;
}

/*
 * A thread that the last snapshot with the program did not list may have ended: it does not count. In a cgroup only those of the
 * same process count: the user may not be allowed to see the others.
 */
static void find_left_alone(const struct asym_monitor *m, struct asym_explanation *e)
{
    const struct asym_monitor_thread *t;
    for (size_t i = 0; e->of_program && e->thread && (t = asym_monitor_thread_at(m, i)); i++) {
        if (t == e->thread || t->seen != e->app->seen || t->id.tgid != e->thread->id.tgid || !is_adoptable(t->reason))
            continue;
        if (e->n_left_alone++ == 0 || comes_before(t, e->left_alone))
            e->left_alone = t;
    }
}

static void add_holder(struct asym_explanation *e, const struct asym_monitor_app *app)
{
    size_t i = ASYM_MIN(e->n_holders, (size_t)ASYM_EXPLAIN_HOLDERS - 1);
    if (e->n_holders++ >= ASYM_EXPLAIN_HOLDERS && e->holders[i]->n_fast >= app->n_fast)
        return;
    for (; i > 0 && e->holders[i - 1]->n_fast < app->n_fast; i--)
        e->holders[i] = e->holders[i - 1];
    e->holders[i] = app;
}

/* Threads that sleep or have ended keep their last target: only those of the last snapshot count, as in n_free_fast. */
static void count_shares(const struct asym_monitor *m, struct asym_explanation *e)
{
    const struct asym_mask *fast = &e->context.machine->fast;
    struct asym_mask own = {0}, held = {0};
    const struct asym_monitor_thread *t;
    if (e->standing != ASYM_STANDING_STEERED_SLOW)
        return;
    for (size_t i = 0; (t = asym_monitor_thread_at(m, i)); i++)
        if (t->seen == e->now && t->target >= 0 && asym_mask_has(fast, t->target))
            asym_mask_set(e->app && asym_taskid_equal(&t->app, &e->app->id) ? &own : &held, (unsigned)t->target);
    e->n_own_fast = asym_mask_count(&own);
    e->n_held_fast = asym_mask_count(&held);
}

int asym_explain(const struct asym_monitor *m, const struct asym_explain_context *context, int32_t id,
                 struct asym_explanation *ret)
{
    struct asym_explanation e = {.context = *context};
    struct asym_monitor_totals totals;
    asym_monitor_totals(m, &totals);
    e.now = totals.now;
    e.app = asym_monitor_app_of(m, id);
    e.of_program = e.app != NULL;
    e.thread = e.app ? busiest(m, e.app) : asym_monitor_thread_of(m, id);
    if (!e.app && e.thread)
        e.app = asym_monitor_app_of(m, e.thread->id.tgid);
    if (!e.app && !e.thread)
        return -ESRCH;
    set_reason(&e);
    e.standing = standing_of(&e);
    const struct asym_monitor_app *app;
    for (size_t at = 0; (app = asym_monitor_app_next(m, &at));)
        if (app != e.app && app->n_fast > 0)
            add_holder(&e, app);
    ASYM_MASK_FOREACH (c, &context->machine->fast) {
        e.n_fast_cpus++;
        e.n_free_fast += asym_monitor_cpu_of(m, (unsigned)c)->threads == 0;
    }
    count_shares(m, &e);
    find_left_alone(m, &e);
    *ret = e;
    return 0;
}

/* The bytes of a list of CPUs in a sentence, and of what a rule does. */
enum { LIST = 96, EFFECT = 192 };

/* Returns the CPUs that the rule leaves the thread. An unknown rule, or an unknown own affinity, leaves all CPUs. */
static struct asym_mask allowed_by(const struct asym_explanation *e)
{
    static const struct asym_proc unknown = {.rule = ASYM_RULE_STEER};
    const struct asym_machine *m = e->context.machine;
    const struct asym_proc *proc = e->context.proc ? e->context.proc : &unknown;
    return asym_allowed_cpus(e->context.own_mask, &m->usable, proc, m);
}

bool asym_explain_may_be_fast(const struct asym_explanation *e)
{
    const struct asym_mask allowed = allowed_by(e);
    return asym_mask_meets(&allowed, &e->context.machine->fast);
}

/* A rule is in force while the thread has the CPUs that the rule leaves. */
enum force {
    IN_FORCE,
    LATER,     /* asymd steers the thread later: for example when its process is old enough */
    SUSPENDED, /* not while asymd leaves the thread alone, or steers nothing */
};

/* If the affinity of the thread is not known, a thread that waits has not got those CPUs yet, and any other thread has them. */
static enum force force_of(const struct asym_explanation *e, const struct asym_mask *allowed)
{
    if (e->context.paused || e->standing == ASYM_STANDING_LEFT_ALONE || e->standing == ASYM_STANDING_UNSTEERED)
        return SUSPENDED;
    if (!e->context.mask)
        return e->standing == ASYM_STANDING_WAITS ? LATER : IN_FORCE;
    const struct asym_mask now = asym_mask_and(e->context.mask, &e->context.machine->online);
    return asym_mask_within(&now, allowed) ? IN_FORCE : LATER;
}

/* The question is about a program, or about a thread of it that may have other CPUs than the rest. */
static const char *subject_of(const struct asym_explanation *e)
{
    return e->of_program ? "the program" : "the thread";
}

/* The list of CPUs; one that is too long for a sentence becomes their number. */
static const char *name_cpus(const struct asym_mask *cpus, char buf[LIST])
{
    char list[ASYM_MASK_LIST_MAX];
    const unsigned n = asym_mask_count(cpus);
    asym_mask_format_list(cpus, list, sizeof list);
    const int len = snprintf(buf, LIST, "CPU%s %s", n == 1 ? "" : "s", list);
    if (len < 0 || len >= LIST)
        snprintf(buf, LIST, "%u CPUs", n);
    return buf;
}

/* Writes why the rule narrows nothing, after the name of the rule. */
static void describe_no_effect(const struct asym_explanation *e, const char *speed, const struct asym_mask *allowed,
                               char buf[EFFECT])
{
    const struct asym_machine *m = e->context.machine;
    const struct asym_mask *cpus = asym_rule_cpus(e->context.proc);
    if (asym_mask_empty(allowed))
        snprintf(buf, EFFECT, "has no effect, because no CPU that %s may use is online", subject_of(e));
    else if (cpus && !asym_mask_meets(cpus, &m->online))
        snprintf(buf, EFFECT, "has no effect, because no CPU of the rule is online");
    else if (asym_mask_empty(&m->slow) && !cpus)
        snprintf(buf, EFFECT, "has no effect, because no CPU is slow");
    else
        snprintf(buf, EFFECT, "has no effect, because %s may use no %sCPU%s", subject_of(e), speed,
                 cpus ? " of the rule" : "");
}

/*
 * Writes what the rule does to the CPUs of the thread, after the name of the rule; "": it names none. Returns whether the rule
 * narrows them, now or as soon as asymd steers the thread.
 */
static bool describe_cpus(const struct asym_explanation *e, char buf[EFFECT])
{
    static const char *const keeps[] = {[IN_FORCE] = "keeps", [LATER] = "will keep", [SUSPENDED] = "would keep"};
    const struct asym_machine *m = e->context.machine;
    const struct asym_proc *proc = e->context.proc;
    const struct asym_mask *listed = asym_rule_cpus(proc);
    const bool fast = proc->rule == ASYM_RULE_FAST, slow = proc->rule == ASYM_RULE_SLOW;
    const struct asym_mask allowed = allowed_by(e);
    const enum force force = force_of(e, &allowed);
    /* Where all CPUs are alike, all of them count as fast: a rule for fast ones leaves them all. */
    const bool is_by_speed = (fast || slow) && !asym_mask_empty(&m->slow) &&
                             asym_mask_within(&allowed, fast ? &m->fast : &m->slow);
    const bool is_by_list = listed && asym_mask_within(&allowed, listed);
    const char *speed = fast ? "fast " : slow ? "slow " : "";
    char cpus[LIST];
    *buf = '\0';
    if (!fast && !slow && !listed)
        return false;
    if (asym_mask_empty(&allowed) || (!is_by_speed && !is_by_list)) {
        describe_no_effect(e, speed, &allowed, buf);
        return false;
    }
    snprintf(buf, EFFECT, "%s %s on %s%s%s", keeps[force], subject_of(e), is_by_speed ? speed : "",
             name_cpus(&allowed, cpus),
             listed && !asym_mask_meets(listed, &m->online) ? "; no CPU of the rule's list is online" : "");
    return force != SUSPENDED;
}

static const char *describe_order(const struct asym_explanation *e, char buf[EFFECT])
{
    if (e->context.proc->rule == ASYM_RULE_IGNORE)
        snprintf(buf, EFFECT, "makes asymd leave the program alone until the program ends");
    else if (e->context.proc->rule == ASYM_RULE_STEER)
        snprintf(buf, EFFECT, "comes before the rules of the configuration");
    else
        describe_cpus(e, buf);
    return buf;
}

/* Returns the order of a user that the rule is; NULL: it is none, or the user is not known. */
static const struct asym_override *order_of(const struct asym_explanation *e)
{
    const struct asym_override *order = e->context.order;
    const struct asym_proc *proc = e->context.proc;
    const bool is_order = proc->rule_name && strcmp(proc->rule_name, asym_overrides_rule_name) == 0;
    return is_order && order && order->ruled && order->rule == proc->rule ? order : NULL;
}

bool asym_explain_user_ignores(const struct asym_explanation *e)
{
    const struct asym_proc *proc = e->context.proc;
    return proc && proc->rule == ASYM_RULE_IGNORE && !e->context.rule_pending && order_of(e);
}

static void write_order(const struct asym_explanation *e, char *buf, size_t size)
{
    const struct asym_override *order = order_of(e);
    const struct asym_proc *proc = e->context.proc;
    char effect[EFFECT], user[32] = "a user";
    if (order)
        snprintf(user, sizeof user, "uid %" PRIu32, order->ruled_by);
    snprintf(buf, size, "A rule that %s has set (asymctl set %d %s) %s. To undo the rule: asymctl set %d auto.", user,
             (int)proc->id.tgid, asym_rule_action_name(proc->rule), describe_order(e, effect), (int)proc->id.tgid);
}

static void write_match(const struct asym_explanation *e, char *buf, size_t size)
{
    char effect[EFFECT], undo[96] = "";
    if (describe_cpus(e, effect))
        snprintf(undo, sizeof undo, " To undo that until the program ends: asymctl set %d steer.",
                 (int)e->context.proc->id.tgid);
    snprintf(buf, size, "The rule \"%s\" %s.%s", e->context.proc->rule_name, *effect ? effect : "matches", undo);
}

const char *asym_explain_rule(const struct asym_explanation *e, char *buf, size_t size)
{
    const struct asym_proc *proc = e->context.proc;
    if (!proc)
        return NULL;
    if (e->context.rule_pending)
        snprintf(buf, size, "asymd has not compared the program with its rules yet.");
    else if (!proc->rule_name)
        snprintf(buf, size, "No rule matches.");
    else if (strcmp(proc->rule_name, asym_overrides_rule_name) == 0)
        write_order(e, buf, size);
    else
        write_match(e, buf, size);
    return buf;
}

const char *asym_explain_rule_evidence(const struct asym_explanation *e, char *buf, size_t size)
{
    const struct asym_proc *proc = e->context.proc;
    const struct asym_override *order = proc ? order_of(e) : NULL;
    if (!proc)
        snprintf(buf, size, "not known");
    else if (e->context.rule_pending)
        snprintf(buf, size, "not compared yet");
    else if (order)
        snprintf(buf, size, "set by uid %" PRIu32 " (%s)", order->ruled_by, asym_rule_action_name(proc->rule));
    else if (proc->rule_name)
        snprintf(buf, size, "%s (%s)", proc->rule_name, asym_rule_action_name(proc->rule));
    else
        snprintf(buf, size, proc->rule == ASYM_RULE_UNLISTED ? "none, and asymd.default is ignore" : "none");
    return buf;
}
