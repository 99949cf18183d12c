/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The dry run as JSON, schema asymd.plan/1. Keys and units are a promise: a change may add keys, but change none. */
#include "report/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "report/json.h"

static json_t *core_types(const struct asym_machine *m)
{
    json_t *list = json_array();
    for (unsigned t = 0; t < m->n_types; t++) {
        const struct asym_core_type *type = &m->types[t];
        struct asym_mask favoured;
        if (!asym_machine_favoured(m, t, &favoured))
            favoured = (struct asym_mask){0};
        asym_json_append(&list,
                         json_pack("{s:o, s:o, s:o, s:s, s:o}", "name",
                                   asym_json_bytes(type->name, strnlen(type->name, sizeof type->name)), "cpus",
                                   asym_json_cpus(&type->cpus), "speed", asym_json_number(type->speed, 4), "source",
                                   asym_origin_name(type->origin), "favoured", asym_json_cpus(&favoured)));
    }
    return list;
}

/* Returns the CPU lists of n groups with at least that many CPUs; a CPU has the number of its group at offset. */
static json_t *groups(const struct asym_machine *m, size_t offset, unsigned n, unsigned least)
{
    ASYM_AUTO_FREE struct asym_mask *masks = calloc(n + 1, sizeof *masks);
    if (!masks)
        return NULL;
    ASYM_MASK_FOREACH (c, &m->usable) {
        int16_t group;
        memcpy(&group, (const char *)&m->cpus[c] + offset, sizeof group);
        if (group >= 0 && (unsigned)group < n)
            asym_mask_set(&masks[group], (unsigned)c);
    }
    json_t *list = json_array();
    for (unsigned g = 0; g < n; g++)
        if (asym_mask_count(&masks[g]) >= least)
            asym_json_append(&list, asym_json_cpus(&masks[g]));
    return list;
}

static json_t *machine(const struct asym_report *r)
{
    const struct asym_machine *m = r->snapshot->machine;
    return json_pack("{s:i, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "cpus", (int)asym_mask_count(&m->usable),
                     "asymmetric", (int)asym_machine_is_asymmetric(m), "assumed_slow", (int)r->assumed_slow, "fast",
                     asym_json_cpus(&m->fast), "slow", asym_json_cpus(&m->slow), "isolated",
                     asym_json_cpus(&m->isolated), "core_types", core_types(m), "llc",
                     groups(m, offsetof(struct asym_cpu, llc), m->n_llcs, 1), "smt",
                     groups(m, offsetof(struct asym_cpu, core), m->n_cores, 2), "numa",
                     groups(m, offsetof(struct asym_cpu, node), m->n_nodes, 1));
}

struct settings_of {
    const struct asym_report *report;
    char own[64]; /* the section of the policy */
    json_t *object;
};

static int add_setting(void *ctx, const char *section, const struct asym_option *row, const char *value,
                       const char *origin)
{
    struct settings_of *s = ctx;
    const struct asym_settings *settings = s->report->settings;
    const void *base = settings;
    char key[80];
    if (strcmp(section, s->own) == 0)
        base = asym_settings_params(settings, s->report->policy);
    else if (strcmp(section, "classify") != 0 && strcmp(section, "enforce") != 0)
        return 0;
    json_t *json = asym_json_option(row, base, key, sizeof key);
    asym_json_set(&s->object, key, json);
    return 0;
}

static json_t *policy(const struct asym_report *r)
{
    const struct asym_settings *settings = r->settings;
    struct settings_of s = {.report = r, .object = json_object()};
    int pin = settings->enforce.pin >= 0 ? settings->enforce.pin : (int)r->policy->pin;
    snprintf(s.own, sizeof s.own, "policy.%s", r->policy->name);
    asym_settings_each(settings, add_setting, &s);
    /* The values that "auto" has here. */
    asym_json_set(&s.object, "hp_threshold",
                  json_integer(asym_hp_threshold(&settings->classify, r->snapshot->machine)));
    asym_json_set(&s.object, "pin", json_string(asym_pin_name((enum asym_pin)pin)));
    return json_pack("{s:s, s:o}", "name", r->policy->name, "settings", s.object);
}

static json_t *signals(const struct asym_snapshot *s)
{
    json_t *available = json_array(), *missing = json_array();
    for (int k = 0; k < ASYM_N_SIGNALS; k++) {
        const char *name = asym_signal_name((enum asym_signal)k);
        if (s->missing[k])
            asym_json_append(&missing, json_pack("{s:s, s:s}", "name", name, "why", s->missing[k]));
        else
            asym_json_append(&available, json_string(name));
    }
    return json_pack("{s:o, s:o}", "available", available, "missing", missing);
}

static json_t *comm(const char name[ASYM_COMM_LEN])
{
    return asym_json_bytes(name, strnlen(name, ASYM_COMM_LEN));
}

/* "pid:1234", or "cgroup:/path" where applications are cgroups. */
static json_t *app_id(const struct asym_app *app)
{
    char text[4096];
    if (app->cgroup)
        snprintf(text, sizeof text, "cgroup:%s", app->cgroup);
    else
        snprintf(text, sizeof text, "pid:%" PRId32, app->id.tgid);
    return asym_json_shown(text);
}

static json_t *why(const struct asym_reason *reason, const double figure[2])
{
    char text[256];
    return json_string(asym_reason_text(reason, figure, text, sizeof text));
}

static const char *detection_name(const struct asym_report *r, size_t a)
{
    static const char *const names[] = {[ASYM_RTXD_DETECTION_NONE] = "silent",
                                        [ASYM_RTXD_DETECTION_REPORTS] = "reports",
                                        [ASYM_RTXD_DETECTION_SUSPECT] = "suspect"};
    return r->detection ? names[r->detection[a]] : NULL;
}

static json_t *thread(const struct asym_task *task, const struct asym_plan_task *plan)
{
    /* A policy that steers nothing leaves the thread where it is. */
    int target = plan->target >= 0 ? plan->target : task->cpu;
    return json_pack("{s:i, s:o, s:s, s:i, s:i, s:o, s:o, s:i, s:i, s:b, s:b, s:o}", "tid", (int)task->id.tid, "comm",
                     comm(task->comm), "class", asym_class_name(plan->class), "cpu", (int)task->cpu, "target", target,
                     "mask", asym_json_cpus(plan->mask), "old_mask", asym_json_cpus(task->mask), "nice",
                     (int)task->nice, "new_nice", (int)plan->nice, "moves", (int)plan->moves, "exclusive",
                     (int)plan->exclusive, "reason", why(plan->reason, plan->figure));
}

static json_t *excluded_thread(const struct asym_task *task, const struct asym_plan_task *plan)
{
    char id[32];
    snprintf(id, sizeof id, "tid:%" PRId32, task->id.tid);
    return json_pack("{s:s, s:i, s:o, s:o}", "id", id, "pid", (int)task->id.tgid, "comm", comm(task->comm), "why",
                     why(plan->reason, plan->figure));
}

struct lists {
    json_t *applications, *excluded;
    size_t n_idle;
};

static json_t *threads_of(const struct asym_report *r, const struct asym_app *app, struct lists *lists)
{
    json_t *threads = json_array();
    for (uint32_t i = app->first_task; i < app->first_task + app->n_tasks; i++) {
        const struct asym_task *task = &r->snapshot->tasks[i];
        const struct asym_plan_task *plan = &r->plan->tasks[i];
        if (asym_report_lists_thread(plan))
            asym_json_append(&threads, thread(task, plan));
        else if (asym_report_excludes(plan->reason))
            asym_json_append(&lists->excluded, excluded_thread(task, plan));
    }
    return threads;
}

static void add_app(const struct asym_report *r, size_t a, struct lists *lists)
{
    const struct asym_app *app = &r->snapshot->apps[a];
    const struct asym_plan_app *plan = &r->plan->apps[a];
    if (asym_report_excludes(plan->excluded))
        asym_json_append(&lists->excluded, json_pack("{s:o, s:o, s:o}", "id", app_id(app), "comm", comm(app->comm),
                                                     "why", why(plan->excluded, plan->figure)));
    else if (!asym_report_lists_app(plan))
        lists->n_idle++;
    else
        asym_json_append(&lists->applications,
                         json_pack("{s:o, s:o, s:I, s:o, s:s, s:s, s:s?, s:o}", "id", app_id(app), "comm",
                                   comm(app->comm), "processes", (json_int_t)app->n_procs, "runnable",
                                   asym_json_number(plan->runnable, 3), "phase", asym_phase_name(plan->phase), "class",
                                   asym_class_name(plan->class), "rtx", detection_name(r, a), "threads",
                                   threads_of(r, app, lists)));
}

/* Add what the observers could not see, by their names. */
static void add_remarks(const struct asym_coverage *s, json_t **coverage)
{
    static const char *const names[] = {
#define ASYM_OBSERVER(NAME, name) #name,
#include <asym/observers.def>
#undef ASYM_OBSERVER
    };
    for (size_t i = 0; i < ASYM_N_OBSERVERS; i++)
        if (s->remarks[i])
            asym_json_set(coverage, names[i], json_string(s->remarks[i]));
}

static json_t *coverage(const struct asym_coverage *s)
{
    json_t *all = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:b, s:s?}", "processes",
                            (json_int_t)s->n_procs, "threads", (json_int_t)s->n_threads, "denied",
                            (json_int_t)s->n_denied, "foreign", (json_int_t)s->n_foreign, "unkept",
                            (json_int_t)s->n_unkept, "lost_events", (json_int_t)s->n_lost_events, "uncounted",
                            (json_int_t)s->n_uncounted, "sampled", (int)s->sampled, "hidepid", (int)s->hidepid,
                            "process_events", (int)s->process_events, "process_events_why", s->process_events_why);
    add_remarks(s, &all);
    return all;
}

int asym_report_json(const struct asym_report *r, FILE *out)
{
    struct lists lists = {.applications = json_array(), .excluded = json_array()};
    for (size_t a = 0; a < r->snapshot->n_apps; a++)
        add_app(r, a, &lists);
    json_t *root = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:I}", "schema", "asymd.plan/1",
                             "machine", machine(r), "policy", policy(r), "signals", signals(r->snapshot), "observed_ms",
                             asym_json_number(r->observed_ms, 1), "scan_cpu_us", asym_json_number(r->scan_cpu_us, 1),
                             "applications", lists.applications, "excluded", lists.excluded, "idle_applications",
                             (json_int_t)lists.n_idle, "coverage", coverage(&r->snapshot->coverage), "moves",
                             (json_int_t)r->plan->n_moves);
    return asym_json_print(root, out);
}
