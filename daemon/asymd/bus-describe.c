/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymd/bus-describe.h"

#include <errno.h>

#include "base/macro.h"
#include "base/mask.h"
#include "daemon/asymd/service-control.h"
#include "daemon/asymd/service-internal.h"
#include "explain/explain-text.h"
#include "linux/observe/proc-owner.h"

/* A list of 1,024 CPUs of which every other one is missing has 2,500 bytes. */
enum { LIST_SIZE = 4096, REASON_SIZE = 512, COMM_TEXT = 4 * ASYM_COMM_LEN };

/* The uid of an application that is a cgroup: no user. */
#define NO_USER ((uint32_t)-1)

static int append_text(sd_bus_message *m, const char *key, const char *text)
{
    char valid[LIST_SIZE];
    return sd_bus_message_append(m, "{sv}", key, "s", asym_bus_text(text ? text : "", valid, sizeof valid));
}

const char *asym_bus_reason(const struct asym_reason *reason, const double figure[2], char *buf, size_t size)
{
    char text[REASON_SIZE];
    return asym_bus_text(asym_reason_text(reason, figure, text, sizeof text), buf, size);
}

static int append_reason(sd_bus_message *m, const struct asym_reason *reason, const double figure[2])
{
    char text[REASON_SIZE];
    return append_text(m, "reason", asym_reason_text(reason, figure, text, sizeof text));
}

static int append_mask(sd_bus_message *m, const char *key, const struct asym_mask *mask)
{
    char list[LIST_SIZE];
    return append_text(m, key, asym_mask_format_list(mask, list, sizeof list));
}

/* The owner of the process that asymd knew by this number and start time. Not that of a later process with its number. */
static uint32_t owner(const struct asym_service *s, const struct asym_taskid *id)
{
    uint32_t uid;
    return asym_proc_owner_known(s->owners, &s->run->root, id, &uid) >= 0 ? uid : NO_USER;
}

/* A job belongs to the user of its leader; if that has ended, to the user of the process that ran most. */
static uint32_t owner_of_app(const struct asym_service *s, const struct asym_monitor_app *app)
{
    const uint32_t uid = owner(s, &app->id);
    return uid == NO_USER && app->id.tid > 0 ? owner(s, &app->rule_owner) : uid;
}

static bool sees_all(const struct asym_service *s, const struct asym_bus_caller *caller)
{
    return caller->is_root || !s->hidepid.hides;
}

bool asym_bus_may_see(const struct asym_service *s, const struct asym_bus_caller *caller, const struct asym_taskid *id)
{
    return sees_all(s, caller) || owner(s, id) == (uint32_t)caller->uid;
}

bool asym_bus_may_see_app(const struct asym_service *s, const struct asym_bus_caller *caller,
                          const struct asym_monitor_app *app)
{
    return sees_all(s, caller) || owner_of_app(s, app) == (uint32_t)caller->uid;
}

int asym_bus_append_cpu(sd_bus_message *m, const struct asym_service *s, const struct asym_bus_caller *caller,
                        unsigned cpu)
{
    const struct asym_machine *machine = s->run->machine;
    const struct asym_cpu *c = &machine->cpus[cpu];
    const struct asym_monitor_cpu *now = asym_monitor_cpu_of(asym_service_monitor(s), cpu);
    const bool shown = now->last.tid > 0 && asym_bus_may_see(s, caller, &now->last);
    const bool has_type = c->type >= 0 && (unsigned)c->type < machine->n_types;
    int r = sd_bus_message_open_container(m, 'a', "{sv}");
    if (r >= 0)
        r = sd_bus_message_append(m, "{sv}{sv}{sv}{sv}{sv}", "cpu", "u", (uint32_t)cpu, "type", "u",
                                  (uint32_t)(has_type ? c->type : 0), "smt_rank", "u", (uint32_t)c->smt_rank, "speed",
                                  "d", c->speed, "fast", "b", (int)asym_mask_has(&machine->fast, (int)cpu));
    if (r >= 0)
        r = append_text(m, "type_name", has_type ? machine->types[c->type].name : "");
    if (r >= 0)
        r = sd_bus_message_append(m, "{sv}{sv}{sv}", "busy", "d", asym_service_cpu_busy(s, cpu), "threads", "u",
                                  now->threads, "tid", "u", (uint32_t)(shown ? now->last.tid : 0));
    if (r >= 0)
        r = append_text(m, "comm", shown ? now->comm : "");
    return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_app_entries(sd_bus_message *m, const struct asym_monitor_app *app, uint32_t uid)
{
    const enum asym_class class = app->has_sp ? ASYM_CLASS_SP : app->class;
    int r = sd_bus_message_append(m, "{sv}{sv}{sv}", "pid", "u", (uint32_t)asym_explain_number(app), "uid", "u", uid,
                                  "processes", "u", app->n_procs);
    if (r >= 0)
        r = append_text(m, "cgroup", app->cgroup);
    if (r >= 0)
        r = append_text(m, "comm", app->comm);
    if (r >= 0)
        r = sd_bus_message_append(m, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "phase", "s", asym_phase_name(app->phase), "class",
                                  "s", class == ASYM_CLASS_NONE ? "" : asym_class_name(class), "runnable", "d",
                                  app->runnable, "threads", "u", app->n_threads, "steered", "u", app->n_steered,
                                  "fast_share", "d", app->fast_share, "moves_per_minute", "u", app->moves);
    if (r >= 0)
        r = append_text(m, "class_name", asym_explain_class_name(app));
    if (r >= 0)
        r = sd_bus_message_append(m, "{sv}", "running", "d", app->running);
    return r < 0 ? r : append_reason(m, app->reason, app->figure);
}

int asym_bus_append_app(sd_bus_message *m, const struct asym_service *s, const struct asym_bus_caller *caller,
                        const struct asym_monitor_app *app)
{
    if (!asym_bus_may_see_app(s, caller, app))
        return 0;
    int r = sd_bus_message_open_container(m, 'a', "{sv}");
    if (r >= 0)
        r = append_app_entries(m, app, owner_of_app(s, app));
    return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_thread_entries(sd_bus_message *m, const struct asym_service *s, const struct asym_monitor_thread *t)
{
    struct asym_mask mask = {{0}}, own = {{0}};
    asym_service_masks(s, &t->id, &mask, &own);
    int r = sd_bus_message_append(m, "{sv}{sv}{sv}{sv}", "tid", "u", (uint32_t)t->id.tid, "pid", "u",
                                  (uint32_t)t->id.tgid, "cpu", "i", t->cpu, "target", "i", t->target);
    if (r >= 0)
        r = append_text(m, "comm", t->comm);
    if (r >= 0)
        r = sd_bus_message_append(m, "{sv}{sv}{sv}{sv}{sv}", "class", "s",
                                  t->class == ASYM_CLASS_NONE ? "" : asym_class_name(t->class), "runnable", "d",
                                  t->runnable, "running", "d", t->running, "nice", "i", (int32_t)t->nice, "own_nice",
                                  "i", (int32_t)t->own_nice);
    if (r >= 0)
        r = append_mask(m, "mask", &mask);
    if (r >= 0)
        r = append_mask(m, "own_mask", &own);
    return r < 0 ? r : append_reason(m, t->reason, t->figure);
}

static int append_decision(sd_bus_message *m, const struct asym_monitor_decision *d)
{
    char reason[REASON_SIZE];
    return sd_bus_message_append(m, "(tiisss)", asym_service_realtime(d->time), d->from, d->to,
                                 asym_monitor_what_name(d->what),
                                 d->class == ASYM_CLASS_NONE ? "" : asym_class_name(d->class),
                                 asym_bus_reason(d->reason, d->figure, reason, sizeof reason));
}

static int append_decisions(sd_bus_message *m, const struct asym_service *s, const struct asym_monitor_thread *t)
{
    struct asym_monitor_decision decisions[ASYM_MONITOR_DECISIONS];
    const size_t n = asym_monitor_decisions(asym_service_monitor(s), t, decisions);
    int r = sd_bus_message_open_container(m, 'e', "sv");
    if (r >= 0)
        r = sd_bus_message_append(m, "s", "decisions");
    if (r >= 0)
        r = sd_bus_message_open_container(m, 'v', "a(tiisss)");
    if (r >= 0)
        r = sd_bus_message_open_container(m, 'a', "(tiisss)");
    for (size_t i = 0; i < n && r >= 0; i++)
        r = append_decision(m, &decisions[i]);
    for (int i = 0; i < 3 && r >= 0; i++)
        r = sd_bus_message_close_container(m);
    return r;
}

int asym_bus_append_thread(sd_bus_message *m, const struct asym_service *s, const struct asym_monitor_thread *t)
{
    int r = sd_bus_message_open_container(m, 'a', "{sv}");
    if (r >= 0)
        r = append_thread_entries(m, s, t);
    if (r >= 0)
        r = append_decisions(m, s, t);
    return r < 0 ? r : sd_bus_message_close_container(m);
}

static bool is_same(const struct asym_taskid *a, const struct asym_taskid *b)
{
    return a->tid == b->tid && a->tgid == b->tgid && a->start == b->start;
}

/* The busiest threads of an application first; n counts those beyond the array, too. */
struct own_threads {
    const struct asym_monitor_thread *thread[ASYM_BUS_OWN_THREADS];
    size_t n;
};

static void add_own_thread(struct own_threads *own, const struct asym_monitor_thread *t)
{
    size_t i = ASYM_MIN(own->n, (size_t)ASYM_BUS_OWN_THREADS - 1);
    if (own->n++ >= ASYM_BUS_OWN_THREADS && own->thread[i]->running >= t->running)
        return;
    for (; i > 0 && own->thread[i - 1]->running < t->running; i--)
        own->thread[i] = own->thread[i - 1];
    own->thread[i] = t;
}

/* The threads that the last snapshot with the application listed. */
static struct own_threads find_own_threads(const struct asym_monitor *monitor, const struct asym_monitor_app *app)
{
    struct own_threads own = {.n = 0};
    const struct asym_monitor_thread *t;
    for (size_t i = 0; (t = asym_monitor_thread_at(monitor, i)); i++)
        if (is_same(&t->app, &app->id) && t->seen == app->seen)
            add_own_thread(&own, t);
    return own;
}

static int append_own_threads(sd_bus_message *m, const struct asym_service *s, const struct own_threads *own)
{
    int r = sd_bus_message_open_container(m, 'a', "a{sv}");
    for (size_t i = 0; r >= 0 && i < own->n && i < ASYM_BUS_OWN_THREADS; i++) {
        r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r >= 0)
            r = append_thread_entries(m, s, own->thread[i]);
        if (r >= 0)
            r = sd_bus_message_close_container(m);
    }
    return r < 0 ? r : sd_bus_message_close_container(m);
}

int asym_bus_append_whole_app(sd_bus_message *m, const struct asym_service *s, const struct asym_monitor_app *app)
{
    const struct own_threads own = find_own_threads(asym_service_monitor(s), app);
    const size_t left_out = own.n - ASYM_MIN(own.n, (size_t)ASYM_BUS_OWN_THREADS);
    int r = sd_bus_message_open_container(m, 'a', "{sv}");
    if (r >= 0)
        r = append_app_entries(m, app, owner_of_app(s, app));
    if (r >= 0)
        r = append_text(m, "rule", app->rule_name);
    if (r >= 0)
        r = sd_bus_message_append(m, "{sv}", "own_threads_left_out", "u", (uint32_t)left_out);
    if (r >= 0)
        r = sd_bus_message_open_container(m, 'e', "sv");
    if (r >= 0)
        r = sd_bus_message_append(m, "s", "own_threads");
    if (r >= 0)
        r = sd_bus_message_open_container(m, 'v', "aa{sv}");
    if (r >= 0)
        r = append_own_threads(m, s, &own);
    for (int i = 0; i < 3 && r >= 0; i++)
        r = sd_bus_message_close_container(m);
    return r;
}
