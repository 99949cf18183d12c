/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The dry run as JSON: schema asymd.plan/1. Keys are a promise; add freely, change nothing. */
#include "daemon/report.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "daemon/json.h"

static json_t *groups(const struct asym_machine *m, unsigned n, size_t field, unsigned least)
{
    json_t *array = json_array();
    for (unsigned g = 0; g < n; g++) {
        struct asym_mask cpus = {0};
        ASYM_MASK_FOREACH (c, &m->usable) {
            if (*(const int16_t *)(const void *)((const char *)&m->cpus[c] + field) == (int)g)
                asym_mask_set(&cpus, (unsigned)c);
        }
        if (asym_mask_count(&cpus) >= least)
            json_array_append_new(array, asym_json_cpus(&cpus));
    }
    return array;
}

static json_t *core_types(const struct asym_machine *m)
{
    json_t *array = json_array();
    for (unsigned t = 0; t < m->n_types; t++)
        json_array_append_new(array, json_pack("{s:s, s:o, s:o, s:s}", "name", m->types[t].name, "cpus",
                                               asym_json_cpus(&m->types[t].cpus), "speed",
                                               asym_json_number(m->types[t].speed, 3), "source",
                                               asym_origin_name(m->types[t].origin)));
    return array;
}

static json_t *machine(const struct asym_report *r)
{
    const struct asym_machine *m = r->snapshot->machine;
    return json_pack("{s:i, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "cpus", (int)asym_mask_count(&m->usable),
                     "asymmetric", asym_machine_is_asymmetric(m), "assumed", r->assumed_slow, "fast",
                     asym_json_cpus(&m->fast), "slow", asym_json_cpus(&m->slow), "core_types", core_types(m), "llc",
                     groups(m, m->n_llcs, offsetof(struct asym_cpu, llc), 1), "smt",
                     groups(m, m->n_cores, offsetof(struct asym_cpu, core), 2), "numa",
                     groups(m, m->n_nodes, offsetof(struct asym_cpu, node), 1));
}

static void add_setting(json_t *object, const struct asym_option *row, const void *base)
{
    char key[96];
    json_t *value = asym_json_option(row, base, key, sizeof key);
    json_object_set_new(object, key, value);
}

/* The sections of the settings that decide a plan; hp_threshold as in force on this machine. */
static json_t *policy(const struct asym_report *r)
{
    json_t *settings = json_object();
    const struct asym_classify_settings *c = &r->settings->classify;
    const struct asym_enforce_settings *e = &r->settings->enforce;
    const void *params = asym_settings_params(r->settings, r->policy);
    json_object_set_new(settings, "hp_threshold", json_integer(asym_hp_threshold(c, r->snapshot->machine)));
    json_object_set_new(settings, "serial_max_threads", json_integer(c->serial_max_threads));
    json_object_set_new(settings, "estimator", json_string(c->estimator == ASYM_ESTIMATOR_MEAN ? "mean" : "instant"));
    json_object_set_new(settings, "hysteresis", json_integer(c->hysteresis));
    json_object_set_new(settings, "amp_boost_ms", asym_json_number((double)c->amp_boost / 1000, 3));
    json_object_set_new(settings, "swap_period_ms", asym_json_number((double)e->swap_period / 1000, 3));
    json_object_set_new(settings, "pin",
                        json_string(asym_pin_name(e->pin < 0 ? r->policy->pin : (enum asym_pin)e->pin)));
    for (const struct asym_option *o = r->policy->options; o && o->key && params; o++)
        add_setting(settings, o, params);
    return json_pack("{s:s, s:o}", "name", r->policy->name, "settings", settings);
}

static json_t *signals(const struct asym_snapshot *s)
{
    json_t *available = json_array(), *missing = json_array();
    for (int k = 0; k < ASYM_N_SIGNALS; k++) {
        const char *name = asym_signal_name((enum asym_signal)k);
        if (s->missing[k])
            json_array_append_new(missing, json_pack("{s:s, s:s}", "name", name, "why", s->missing[k]));
        else
            json_array_append_new(available, json_string(name));
    }
    return json_pack("{s:o, s:o}", "available", available, "missing", missing);
}

static json_t *comm(const char *name)
{
    return asym_json_bytes(name, strnlen(name, ASYM_COMM_LEN));
}

static json_t *app_id(const struct asym_app *app)
{
    if (app->cgroup) {
        json_t *path = asym_json_bytes(app->cgroup, strlen(app->cgroup));
        json_t *id = json_sprintf("cgroup:%s", path ? json_string_value(path) : "");
        json_decref(path);
        return id;
    }
    return json_sprintf("pid:%d", (int)app->id.tgid);
}

static json_t *thread(const struct asym_task *t, const struct asym_plan_task *p)
{
    char why[192];
    asym_reason_text(p->reason, p->figure, why, sizeof why);
    json_t *o = json_object();
    json_object_set_new(o, "tid", json_integer(t->id.tid));
    json_object_set_new(o, "comm", comm(t->comm));
    json_object_set_new(o, "class", json_string(asym_class_name(p->class)));
    json_object_set_new(o, "cpu", json_integer(t->cpu));
    json_object_set_new(o, "target", p->target < 0 ? json_null() : json_integer(p->target));
    json_object_set_new(o, "mask", asym_json_cpus(&p->mask));
    json_object_set_new(o, "old_mask", asym_json_cpus(t->mask));
    json_object_set_new(o, "nice", json_integer(t->nice));
    json_object_set_new(o, "new_nice", json_integer(p->nice));
    json_object_set_new(o, "moves", json_boolean(p->moves));
    json_object_set_new(o, "reason", json_string(why));
    return o;
}

static json_t *application(const struct asym_report *r, size_t a)
{
    const struct asym_app *app = &r->snapshot->apps[a];
    const struct asym_plan_app *plan = &r->plan->apps[a];
    json_t *threads = json_array();
    for (uint32_t i = app->first_task; i < app->first_task + app->n_tasks; i++)
        json_array_append_new(threads, thread(&r->snapshot->tasks[i], &r->plan->tasks[i]));
    return json_pack("{s:o, s:o, s:o, s:s, s:s, s:o}", "id", app_id(app), "comm", comm(app->comm), "runnable",
                     asym_json_number(plan->runnable, 3), "phase", asym_phase_name(plan->phase), "class",
                     asym_class_name(plan->class), "threads", threads);
}

static json_t *exclusion(const struct asym_report *r, size_t a)
{
    const struct asym_app *app = &r->snapshot->apps[a];
    char why[192];
    asym_reason_text(r->plan->apps[a].excluded, r->plan->apps[a].figure, why, sizeof why);
    return json_pack("{s:o, s:o, s:s}", "id", app_id(app), "comm", comm(app->comm), "why", why);
}

static json_t *sight(const struct asym_sight *s)
{
    json_t *o = json_pack("{s:i, s:i, s:i, s:i, s:i, s:b, s:b}", "processes", (int)s->n_procs, "threads",
                          (int)s->n_threads, "denied", (int)s->n_denied, "foreign", (int)s->n_foreign, "unkept",
                          (int)s->n_unkept, "hidepid", s->hidepid, "births", s->births);
    if (s->births_why)
        json_object_set_new(o, "births_why", json_string(s->births_why));
    return o;
}

int asym_report_json(const struct asym_report *r, FILE *out)
{
    json_t *applications = json_array(), *excluded = json_array();
    for (size_t a = 0; a < r->plan->n_apps; a++) {
        if (r->plan->apps[a].excluded != ASYM_WHY_NONE)
            json_array_append_new(excluded, exclusion(r, a));
        else if (r->plan->apps[a].phase != ASYM_PHASE_IDLE)
            json_array_append_new(applications, application(r, a));
    }
    json_t *o = json_object();
    json_object_set_new(o, "schema", json_string("asymd.plan/1"));
    json_object_set_new(o, "machine", machine(r));
    json_object_set_new(o, "policy", policy(r));
    json_object_set_new(o, "signals", signals(r->snapshot));
    json_object_set_new(o, "observed_ms", asym_json_number(r->observed_ms, 1));
    json_object_set_new(o, "scan_cpu_us", asym_json_number(r->scan_cpu_us, 0));
    json_object_set_new(o, "applications", applications);
    json_object_set_new(o, "excluded", excluded);
    json_object_set_new(o, "sight", sight(&r->snapshot->sight));
    json_object_set_new(o, "moves", json_integer((json_int_t)r->plan->n_moves));
    return asym_json_print(o, out);
}
