/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "explain/explain-rule.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "core/exclusion.h"
#include "core/overrides.h"

/* The bytes of a list of CPUs in a sentence, and of what a rule does. */
enum { LIST = 96, EFFECT = 192 };

static const char *const actions[] = {
    [ASYM_RULE_STEER] = "steer", [ASYM_RULE_IGNORE] = "ignore",       [ASYM_RULE_FAST] = "fast",
    [ASYM_RULE_SLOW] = "slow",   [ASYM_RULE_UNLISTED] = "not listed",
};

/* The rule of the thread; without a thread, of the program. */
struct rule {
    enum asym_rule_action action;
    const char *name; /* NULL: none */
    const struct asym_mask *cpus;
    bool forgotten;
    int32_t pid; /* of the process that has the rule */
};

static struct rule rule_of(const struct asym_explanation *e)
{
    const struct asym_monitor_thread *t = e->thread;
    const struct asym_monitor_app *app = e->app;
    if (t)
        return (struct rule){t->rule, t->rule_name, t->rule_cpus, t->rule_forgotten, t->id.tgid};
    return (struct rule){app->rule, app->rule_name, app->rule_cpus, app->rule_forgotten, app->rule_owner.tgid};
}

/* Returns the CPUs that the rule leaves the thread. An unknown own affinity counts as all CPUs. */
static struct asym_mask allowed_by(const struct asym_explanation *e, const struct rule *rule)
{
    const struct asym_machine *m = e->context.machine;
    const struct asym_rule_facts facts = {.cpus = rule->cpus ? *rule->cpus : (struct asym_mask){{0}}};
    const struct asym_proc proc = {.rule = rule->action, .rule_facts = &facts};
    return asym_allowed_cpus(e->context.own_mask, &m->usable, &proc, m);
}

bool asym_explain_may_be_fast(const struct asym_explanation *e)
{
    const struct rule rule = rule_of(e);
    const struct asym_mask allowed = allowed_by(e, &rule);
    return asym_mask_meets(&allowed, &e->context.machine->fast);
}

static bool is_pending(const struct asym_explanation *e, const struct rule *rule)
{
    return e->context.rule_pending || rule->forgotten;
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
static void describe_no_effect(const struct asym_explanation *e, const struct rule *rule, const char *speed,
                               const struct asym_mask *allowed, char buf[EFFECT])
{
    const struct asym_machine *m = e->context.machine;
    if (asym_mask_empty(allowed))
        snprintf(buf, EFFECT, "has no effect, because no CPU that %s may use is online", subject_of(e));
    else if (rule->cpus && !asym_mask_meets(rule->cpus, &m->online))
        snprintf(buf, EFFECT, "has no effect, because no CPU of the rule is online");
    else if (asym_mask_empty(&m->slow) && !rule->cpus)
        snprintf(buf, EFFECT, "has no effect, because no CPU is slow");
    else
        snprintf(buf, EFFECT, "has no effect, because %s may use no %sCPU%s", subject_of(e), speed,
                 rule->cpus ? " of the rule" : "");
}

/*
 * Writes what the rule does to the CPUs of the thread, after the name of the rule; "": it names none. Returns whether the rule
 * narrows them, now or as soon as asymd steers the thread.
 */
static bool describe_cpus(const struct asym_explanation *e, const struct rule *rule, char buf[EFFECT])
{
    static const char *const keeps[] = {[IN_FORCE] = "keeps", [LATER] = "will keep", [SUSPENDED] = "would keep"};
    const struct asym_machine *m = e->context.machine;
    const bool fast = rule->action == ASYM_RULE_FAST, slow = rule->action == ASYM_RULE_SLOW;
    const struct asym_mask allowed = allowed_by(e, rule);
    const enum force force = force_of(e, &allowed);
    /* Where all CPUs are alike, all of them count as fast: a rule for fast ones leaves them all. */
    const bool is_by_speed = (fast || slow) && !asym_mask_empty(&m->slow) &&
                             asym_mask_within(&allowed, fast ? &m->fast : &m->slow);
    const bool is_by_list = rule->cpus && asym_mask_within(&allowed, rule->cpus);
    const char *speed = fast ? "fast " : slow ? "slow " : "";
    char cpus[LIST];
    *buf = '\0';
    if (!fast && !slow && !rule->cpus)
        return false;
    if (asym_mask_empty(&allowed) || (!is_by_speed && !is_by_list)) {
        describe_no_effect(e, rule, speed, &allowed, buf);
        return false;
    }
    snprintf(buf, EFFECT, "%s %s on %s%s%s", keeps[force], subject_of(e), is_by_speed ? speed : "",
             name_cpus(&allowed, cpus),
             rule->cpus && !asym_mask_meets(rule->cpus, &m->online) ? "; no CPU of the rule's list is online" : "");
    return force != SUSPENDED;
}

static const char *describe_order(const struct asym_explanation *e, const struct rule *rule, char buf[EFFECT])
{
    if (rule->action == ASYM_RULE_IGNORE)
        snprintf(buf, EFFECT, "makes asymd leave the program alone until the program ends");
    else if (rule->action == ASYM_RULE_STEER)
        snprintf(buf, EFFECT, "comes before the rules of the configuration");
    else
        describe_cpus(e, rule, buf);
    return buf;
}

/* Returns the order of a user that the rule is; NULL: it is none, or the user is not known. */
static const struct asym_override *order_of(const struct asym_explanation *e, const struct rule *rule)
{
    const struct asym_override *order = e->context.order;
    const bool is_order = rule->name && strcmp(rule->name, asym_overrides_rule_name) == 0;
    return is_order && order && order->ruled && order->rule == rule->action ? order : NULL;
}

bool asym_explain_user_ignores(const struct asym_explanation *e)
{
    const struct rule rule = rule_of(e);
    return rule.action == ASYM_RULE_IGNORE && !is_pending(e, &rule) && order_of(e, &rule);
}

static void write_order(const struct asym_explanation *e, const struct rule *rule, char *buf, size_t size)
{
    const struct asym_override *order = order_of(e, rule);
    char effect[EFFECT], user[32] = "a user";
    if (order)
        snprintf(user, sizeof user, "uid %" PRIu32, order->ruled_by);
    snprintf(buf, size, "A rule that %s has set (asymctl set %d %s) %s. To undo the rule: asymctl set %d auto.", user,
             (int)rule->pid, actions[rule->action], describe_order(e, rule, effect), (int)rule->pid);
}

static void write_match(const struct asym_explanation *e, const struct rule *rule, char *buf, size_t size)
{
    char effect[EFFECT], undo[96] = "";
    if (describe_cpus(e, rule, effect))
        snprintf(undo, sizeof undo, " To undo that until the program ends: asymctl set %d steer.", (int)rule->pid);
    snprintf(buf, size, "The rule \"%s\" %s.%s", rule->name, *effect ? effect : "matches", undo);
}

const char *asym_explain_rule(const struct asym_explanation *e, char *buf, size_t size)
{
    const struct rule rule = rule_of(e);
    if (is_pending(e, &rule))
        snprintf(buf, size, "asymd has not compared the program with its rules yet.");
    else if (!rule.name)
        snprintf(buf, size, "No rule matches.");
    else if (strcmp(rule.name, asym_overrides_rule_name) == 0)
        write_order(e, &rule, buf, size);
    else
        write_match(e, &rule, buf, size);
    return buf;
}

const char *asym_explain_rule_evidence(const struct asym_explanation *e, char *buf, size_t size)
{
    const struct rule rule = rule_of(e);
    const struct asym_override *order = order_of(e, &rule);
    if (is_pending(e, &rule))
        snprintf(buf, size, "not compared yet");
    else if (order)
        snprintf(buf, size, "set by uid %" PRIu32 " (%s)", order->ruled_by, actions[rule.action]);
    else if (rule.name)
        snprintf(buf, size, "%s (%s)", rule.name, actions[rule.action]);
    else
        snprintf(buf, size, rule.action == ASYM_RULE_UNLISTED ? "none, and asymd.default is ignore" : "none");
    return buf;
}
