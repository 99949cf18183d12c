/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/status.h"

#include <string.h>

#include "report/json.h"

int asym_status_ask(struct asym_client *client, struct asym_status *ret, struct asym_error *err)
{
    struct asym_status s = {.now = 0};
    int r = asym_client_get_state(client, &s.state, err);
    if (r >= 0)
        r = asym_client_list_cpus(client, &s.cpus, err);
    if (r >= 0)
        r = asym_client_list_applications(client, &s.apps, err);
    if (r < 0)
        asym_status_done(&s);
    else
        *ret = s;
    return r;
}

void asym_status_done(struct asym_status *status)
{
    asym_client_state_done(&status->state);
    asym_client_cpus_done(&status->cpus);
    asym_client_apps_done(&status->apps);
}

static json_t *text(const char *s)
{
    return asym_json_bytes(s, strlen(s));
}

static json_t *cpus_json(const struct asym_client_cpus *cpus)
{
    json_t *list = json_array();
    for (size_t i = 0; i < cpus->n; i++) {
        const struct asym_client_cpu *c = &cpus->cpu[i];
        asym_json_append(&list,
                         json_pack("{s:I, s:I, s:I, s:o, s:o, s:b, s:o, s:I, s:I, s:o}", "cpu", (json_int_t)c->cpu,
                                   "type", (json_int_t)c->type, "smt_rank", (json_int_t)c->smt_rank, "type_name",
                                   text(c->type_name), "speed", asym_json_number(c->speed, 3), "fast", (int)c->fast,
                                   "busy", asym_json_number(c->busy, 4), "threads", (json_int_t)c->threads, "tid",
                                   (json_int_t)c->tid, "comm", text(c->comm)));
    }
    return list;
}

static json_t *apps_json(const struct asym_client_apps *apps)
{
    json_t *list = json_array();
    for (size_t i = 0; i < apps->n; i++) {
        const struct asym_client_app *a = &apps->app[i];
        asym_json_append(&list,
                         json_pack("{s:I, s:I, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:I, s:o}", "pid",
                                   (json_int_t)a->pid, "processes", (json_int_t)a->processes, "cgroup", text(a->cgroup),
                                   "comm", text(a->comm), "uid", (json_int_t)a->uid, "phase", text(a->phase), "class",
                                   text(a->class), "class_name", text(a->class_name), "runnable",
                                   asym_json_number(a->runnable, 3), "running", asym_json_number(a->running, 3),
                                   "threads", (json_int_t)a->threads, "steered", (json_int_t)a->steered, "fast_share",
                                   asym_json_number(a->fast_share, 4), "moves_per_minute",
                                   (json_int_t)a->moves_per_minute, "reason", text(a->reason)));
    }
    return list;
}

/* The properties that are texts and numbers. */
static json_t *state_json(const struct asym_client_state *s)
{
    json_t *lacks = json_array();
    for (size_t i = 0; i < s->n_lacks; i++)
        asym_json_append(&lacks, text(s->lacks[i]));
    return json_pack("{s:s, s:o, s:I, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:I, s:b, s:I, s:o, s:o, s:o}",
                     "schema", "asymctl.status/1", "version", text(s->version), "start_us", (json_int_t)s->start,
                     "policy", text(s->policy), "policy_reason", text(s->policy_reason), "fast_cpus",
                     text(s->fast_cpus), "slow_cpus", text(s->slow_cpus), "threads_steered",
                     (json_int_t)s->threads_steered, "changes", (json_int_t)s->changes, "changes_last_minute",
                     (json_int_t)s->changes_last_minute, "interval_us", (json_int_t)s->interval, "cpu_usage",
                     asym_json_number(s->cpu_usage, 6), "memory_bytes", (json_int_t)s->memory, "paused", (int)s->paused,
                     "paused_until_us", (json_int_t)s->paused_until, "observer", text(s->observer), "profile",
                     text(s->profile), "lacks", lacks);
}

int asym_status_json(const struct asym_status *status, FILE *out)
{
    json_t *json = state_json(&status->state);
    asym_json_set(&json, "cpus", cpus_json(&status->cpus));
    asym_json_set(&json, "applications", apps_json(&status->apps));
    return asym_json_print(json, out);
}
