/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The facts, counters and state of a running service, as the bus and systemd get them. */
#include "daemon/asymd/service-internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "app/policy-setup.h"
#include "base/clock.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"
#include "linux/sys/thread.h"
#include "report/report.h"

uint64_t asym_service_memory(void)
{
    uint64_t size, pages = 0;
    ASYM_AUTO_FCLOSE FILE *f = fopen("/proc/self/statm", "re");
    if (!f || fscanf(f, "%" SCNu64 " %" SCNu64, &size, &pages) != 2)
        return 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void write_policy_reason(const struct asym_service *s, char *buf, size_t size)
{
    const struct asym_settings *settings = s->run->settings;
    const char *overridden = asym_settings_overridden(settings, "asymd", "policy");
    struct asym_text text = asym_text_in(buf, size);
    if (s->run->policy_why)
        asym_text_add(&text, "auto chose it: %s; auto is ", s->run->policy_why);
    if (s->control.policy)
        asym_text_add(&text, "%s", s->control.policy_reason);
    else if (asym_settings_is_default(settings, "asymd", "policy"))
        asym_text_add(&text, "the default");
    else
        asym_text_add(&text, "set by %s", asym_settings_origin(settings, "asymd", "policy"));
    if (overridden)
        asym_text_add(&text, ", which overrides %s%s", overridden, s->control.policy ? " until asymd ends" : "");
}

void asym_service_facts(const struct asym_service *s, struct asym_service_facts *ret)
{
    *ret = (struct asym_service_facts){
        .policy = s->run->policy->name,
        .paused = asym_overrides_is_paused(s->control.overrides),
        .paused_until = s->control.paused_until,
        .threads_steered = (uint32_t)asym_ledger_count(s->ledger),
    };
    write_policy_reason(s, ret->policy_reason, sizeof ret->policy_reason);
}

void asym_service_lacks(const struct asym_service *s, void (*say)(void *ctx, bool missed, const char *sentence),
                        void *ctx)
{
    const struct asym_alike *alike = asym_describe_alike(s->run->machine, &s->run->notes);
    if (s->run->cli->n_pids > 0)
        say(ctx, true, "asymd follows only the processes of --pid: its plan counts no other load of a CPU.");
    if (s->ledger_failed)
        say(ctx, true, "asymd cannot write the ledger, so it steers nothing.");
    if (alike) {
        char text[192];
        snprintf(text, sizeof text, "There is no fast CPU to give to a thread: %s.", alike->why);
        say(ctx, true, text);
    }
    if (s->run->keep_nice)
        say(ctx, true, "asymd changes no nice value, because it could not restore it.");
    for (size_t i = 0; i < s->rivals.n; i++) {
        const struct asym_fact *f = &s->rivals.lines[i].fact;
        char text[512];
        snprintf(text, sizeof text, "%s: %s%s%s.", s->rivals.lines[i].name, f->text, *f->remedy ? "; remedy: " : "",
                 f->remedy);
        say(ctx, true, text);
    }
    asym_coverage_each(&s->cycle.snapshot.coverage, say, ctx);
}

/*
 * The file status would show offline CPUs too. But a process can have so many groups that the kernel writes that file for
 * milliseconds, and an ordinary user may ask for 64 threads in one call.
 */
int asym_service_settings_of(const struct asym_service *s, const struct asym_taskid *id,
                             struct asym_service_thread *ret)
{
    struct asym_stat stat;
    struct asym_mask mask;
    struct asym_ledger_own own;
    int r = asym_thread_get_stat_of(id, &stat);
    if (r >= 0)
        r = asym_thread_get_mask(id->tid, &mask);
    if (r < 0)
        return r;
    const bool set = asym_ledger_own(s->ledger, id, &mask, stat.nice, &own);
    *ret = (struct asym_service_thread){
        .mask = mask, .own_mask = set ? own.mask : mask, .nice = stat.nice, .own_nice = set ? own.nice : stat.nice};
    return 0;
}

int asym_service_proc_of(struct asym_service *s, const struct asym_taskid *id, struct asym_proc *ret)
{
    const int r = asym_observer_rule_of(&s->observer, id, ret);
    if (r < 0)
        return r;
    asym_overrides_apply(s->control.overrides, ret);
    return r > 0 || ret->rule_name;
}

static struct asym_explain_context explain_context(struct asym_service *s, struct asym_service_explanation *ret)
{
    ret->config = asym_run_engine_config(s->run);
    return (struct asym_explain_context){
        .machine = s->run->machine,
        .config = &ret->config,
        .paused = asym_overrides_is_paused(s->control.overrides),
    };
}

int asym_service_explain(struct asym_service *s, int32_t id, struct asym_service_explanation *ret)
{
    const struct asym_explain_context context = explain_context(s, ret);
    return asym_explain(s->control.monitor, &context, id, &ret->e);
}

int asym_service_explain_now(struct asym_service *s, int32_t id, struct asym_service_explanation *ret)
{
    struct asym_explain_context context = explain_context(s, ret);
    int r = asym_explain(s->control.monitor, &context, id, &ret->e);
    if (r < 0)
        return r;
    const struct asym_monitor_thread *thread = ret->e.thread;
    r = asym_service_proc_of(s, thread ? &thread->id : &ret->e.app->busiest, &ret->proc);
    if (r >= 0) {
        context.proc = &ret->proc;
        context.rule_pending = r == 0;
        context.order = asym_overrides_find(s->control.overrides, &ret->proc.id);
    }
    if (thread && asym_service_settings_of(s, &thread->id, &ret->thread) >= 0) {
        context.mask = &ret->thread.mask;
        context.own_mask = &ret->thread.own_mask;
        context.nice = ret->thread.nice;
        context.own_nice = ret->thread.own_nice;
    }
    return asym_explain(s->control.monitor, &context, id, &ret->e);
}

static double seconds(asym_usec time)
{
    return (double)time / (double)ASYM_SEC;
}

/* The counts of a table, with two labels or one. */
static void add_counts(json_t **list, const struct asym_monitor_totals *t)
{
    static const char *const outcomes[] = {"done", "gone", "retry", "hands_off"};
    char labels[64];
    for (size_t i = 0; i < 16; i++) {
        const size_t kind = i / 4, outcome = i % 4;
        snprintf(labels, sizeof labels, "{kind=\"%s\",outcome=\"%s\"}", asym_action_name((enum asym_action_kind)kind),
                 outcomes[outcome]);
        asym_metric_add(list, ASYM_METRIC_ACTIONS, labels, (double)t->actions[kind][outcome]);
    }
    for (size_t i = 0; i < ASYM_LENGTH(t->n_class); i++) {
        snprintf(labels, sizeof labels, "{class=\"%s\"}", asym_class_name((enum asym_class)i));
        asym_metric_add(list, ASYM_METRIC_THREADS_BY_CLASS, labels, t->n_class[i]);
    }
}

json_t *asym_service_counters(const struct asym_service *s)
{
    const struct asym_machine *machine = s->run->machine;
    struct asym_monitor_totals t;
    struct asym_bus_totals bus;
    json_t *list = json_array();
    asym_monitor_totals(s->control.monitor, &t);
    asym_bus_totals(s->bus, &bus);
    const struct {
        enum asym_metric_id id;
        double value;
    } rows[] = {
        {ASYM_METRIC_CYCLES, (double)t.n_cycles},
        {ASYM_METRIC_PROMPT_CYCLES, (double)t.n_prompt},
        {ASYM_METRIC_CHANGES, (double)t.changes},
        {ASYM_METRIC_LEFT_ALONE, (double)t.left_alone},
        {ASYM_METRIC_LOST_EVENTS, (double)t.lost_events},
        {ASYM_METRIC_NOT_REMEMBERED, (double)t.n_unremembered},
        {ASYM_METRIC_CHANGES_LAST_MINUTE, t.changes_last_minute},
        {ASYM_METRIC_PROCESSES, t.n_procs},
        {ASYM_METRIC_THREADS, t.n_threads},
        {ASYM_METRIC_APPLICATIONS_OF_INTEREST, t.n_apps},
        {ASYM_METRIC_THREADS_OF_INTEREST, t.n_listed},
        {ASYM_METRIC_THREADS_PLACED, t.n_steered},
        {ASYM_METRIC_CPU_SECONDS, seconds(asym_service_cpu_time(s))},
        {ASYM_METRIC_OBSERVE_CPU_SECONDS, seconds(s->cycle.source_cpu)},
        {ASYM_METRIC_PLAN_CPU_SECONDS, seconds(s->cycle.plan_cpu)},
        {ASYM_METRIC_START_TIME_SECONDS, seconds(s->control.started)},
        {ASYM_METRIC_INTERVAL_SECONDS, seconds(asym_service_interval(s))},
        {ASYM_METRIC_RESIDENT_MEMORY_BYTES, (double)asym_service_memory()},
        {ASYM_METRIC_THREADS_STEERED, (double)asym_ledger_count(s->ledger)},
        {ASYM_METRIC_FAST_CPUS, asym_mask_count(&machine->fast)},
        {ASYM_METRIC_SLOW_CPUS, asym_mask_count(&machine->slow)},
        {ASYM_METRIC_REPORTING_PROGRAMS, (double)asym_rtx_service_count(s->rtx)},
        {ASYM_METRIC_PROCESSES_WITH_ORDERS, (double)asym_overrides_count(s->control.overrides)},
        {ASYM_METRIC_PAUSED, asym_overrides_is_paused(s->control.overrides)},
        /* Without a bus no user asks. */
        {ASYM_METRIC_BUS_CALLS, (double)bus.calls},
        {ASYM_METRIC_BUS_REFUSED, (double)bus.refused},
        {ASYM_METRIC_BUS_LOST, (double)bus.lost},
        {ASYM_METRIC_BUS_CPU_SECONDS, seconds(asym_bus_spent(s->bus))},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        asym_metric_add(&list, rows[i].id, NULL, rows[i].value);
    add_counts(&list, &t);
    return list;
}

asym_usec asym_service_interval(const struct asym_service *s)
{
    return ASYM_MAX(s->run->settings->daemon.interval, s->budget.least);
}

asym_usec asym_service_cpu_time(const struct asym_service *s)
{
    return asym_clock_process_cpu() + asym_proc_reader_spent(s->observer.reader);
}

void asym_service_status(struct asym_service *s)
{
    const struct asym_machine *m = s->run->machine;
    asym_notify_status(&s->notify,
                       "%spolicy %s on %u fast and %u slow CPUs%s; %zu threads steered, %zu changes, %zu program%s; "
                       "%.2f %% CPU every %.0f ms%s%s",
                       asym_overrides_is_paused(s->control.overrides) ? "paused; " : "", s->run->policy->name,
                       asym_mask_count(&m->fast), asym_mask_count(&m->slow),
                       s->run->assumed_slow ? " (no CPU was slowed)" : "", asym_ledger_count(s->ledger), s->n_changes,
                       asym_rtx_service_count(s->rtx), asym_rtx_service_count(s->rtx) == 1 ? " reports" : "s report",
                       s->budget.percent, (double)asym_service_interval(s) / 1000,
                       *s->reload_error ? "; the new configuration is bad: " : "", s->reload_error);
}

void asym_service_changed(struct asym_service *s)
{
    if (s->control.changed)
        s->control.changed(s);
}
