/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymd/service-internal.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"
#include "report/json.h"

/* The uid of an application that is a cgroup: no user. */
#define NO_USER ((uint32_t)-1)

/* A report in the making: it is for one caller. */
struct report {
    struct asym_service *s;
    const struct asym_monitor *monitor;
    const struct asym_bus_caller *caller;
};

/* The owner of the process that asymd knew by this number and start time. Not that of a later process with its number. */
static uint32_t owner_of(const struct asym_service *s, const struct asym_taskid *id)
{
    uint32_t uid;
    return asym_proc_owner_known(s->owners, &s->run->root, id, &uid) >= 0 ? uid : NO_USER;
}

/* A job belongs to the user of its leader; if that has ended, to the user of the process that ran most. */
static uint32_t owner_of_app(const struct asym_service *s, const struct asym_monitor_app *app)
{
    const uint32_t uid = owner_of(s, &app->id);
    return uid == NO_USER && app->id.tid > 0 ? owner_of(s, &app->busiest) : uid;
}

static bool sees_all(const struct asym_service *s, const struct asym_bus_caller *caller)
{
    return caller->is_root || !s->hidepid;
}

bool asym_bus_may_see(const struct asym_service *s, const struct asym_bus_caller *caller, const struct asym_taskid *id)
{
    return sees_all(s, caller) || owner_of(s, id) == (uint32_t)caller->uid;
}

/* The same for an application: a job is its leader's user's, or after its end that of the process that ran most. */
static bool may_see_app(const struct asym_service *s, const struct asym_bus_caller *caller,
                        const struct asym_monitor_app *app)
{
    return sees_all(s, caller) || owner_of_app(s, app) == (uint32_t)caller->uid;
}

static json_t *reason_json(const struct asym_reason *reason, const double figure[2])
{
    char text[1024];
    return asym_json_text(asym_reason_text(reason, figure, text, sizeof text));
}

static const char *class_text(enum asym_class class)
{
    return class == ASYM_CLASS_NONE ? "" : asym_class_name(class);
}

static void add_lack(void *ctx, bool missed, const char *sentence)
{
    json_t **list = ctx;
    asym_json_append(list, asym_json_text(sentence));
}

/*
 * The load of the last second by the kernel, or, in the first seconds of a user's questions, that of the threads that asymd follows
 * in the last sample. So asymd reads a file of the kernel only while users look at the answer.
 */
static double busy_of(const struct report *r, unsigned cpu)
{
    return r->s->load.n > 1 ? r->s->load.share[cpu] : asym_monitor_cpu_of(r->monitor, cpu)->busy;
}

static json_t *cpu_json(const struct report *r, unsigned cpu)
{
    const struct asym_machine *machine = r->s->run->machine;
    const struct asym_cpu *c = &machine->cpus[cpu];
    const struct asym_monitor_cpu *now = asym_monitor_cpu_of(r->monitor, cpu);
    const bool shown = now->last.tid > 0 && asym_bus_may_see(r->s, r->caller, &now->last);
    const bool has_type = c->type >= 0 && (unsigned)c->type < machine->n_types;
    return json_pack("{s:i, s:i, s:i, s:o, s:o, s:b, s:o, s:I, s:i, s:o}", "cpu", (int)cpu, "type",
                     has_type ? (int)c->type : 0, "smt_rank", (int)c->smt_rank, "type_name",
                     asym_json_text(has_type ? machine->types[c->type].name : ""), "speed",
                     asym_json_number(c->speed, 3), "fast", (int)asym_mask_has(&machine->fast, (int)cpu), "busy",
                     asym_json_number(busy_of(r, cpu), 4), "threads", (json_int_t)now->threads, "tid",
                     shown ? (int)now->last.tid : 0, "comm", asym_json_text(shown ? now->comm : ""));
}

/* reason: that of the application, unless rules or orders have changed it. */
static json_t *app_json(const struct report *r, const struct asym_monitor_app *app, const struct asym_reason *reason)
{
    return json_pack("{s:I, s:I, s:o, s:o, s:I, s:s, s:s, s:s, s:o, s:o, s:I, s:I, s:o, s:I, s:o}", "pid",
                     (json_int_t)asym_explain_number(app), "processes", (json_int_t)app->n_procs, "cgroup",
                     asym_json_text(app->cgroup), "comm", asym_json_text(app->comm), "uid",
                     (json_int_t)owner_of_app(r->s, app), "phase", asym_phase_name(app->phase), "class",
                     class_text(app->has_sp ? ASYM_CLASS_SP : app->class), "class_name", asym_explain_class_name(app),
                     "runnable", asym_json_number(app->runnable, 3), "running", asym_json_number(app->running, 3),
                     "threads", (json_int_t)app->n_threads, "steered", (json_int_t)app->n_steered, "fast_share",
                     asym_json_number(app->fast_share, 4), "moves_per_minute", (json_int_t)app->moves, "reason",
                     reason_json(reason, reason == app->reason ? app->figure : (const double[2]){0, 0}));
}

/* Lists the interfaces and helpers by which asymd observes. */
static json_t *observer_json(const struct asym_service *s)
{
    char buf[128];
    const struct asym_coverage *c = &s->cycle.snapshot.coverage;
    const char *const *missing = s->cycle.snapshot.missing;
    struct asym_text text = asym_text_in(buf, sizeof buf);
    asym_text_add(&text, "%s", c->sampled ? "thread states" : "schedstat");
    if (c->process_events)
        asym_text_add(&text, ", process events");
    for (size_t i = ASYM_OBSERVER_PROCFS + 1; i < ASYM_N_OBSERVERS; i++)
        if (s->observer.observers.links[i])
            asym_text_add(&text, ", %s", asym_observers[i]->name);
    if (s->rtx)
        asym_text_add(&text, ", reports of programs");
    if (!missing[ASYM_SIGNAL_IPC])
        asym_text_add(&text, ", instructions");
    if (!missing[ASYM_SIGNAL_STALL])
        asym_text_add(&text, ", cache misses");
    return asym_json_text(buf);
}

static json_t *facts_json(const struct report *r)
{
    const struct asym_service *s = r->s;
    struct asym_service_facts f;
    struct asym_monitor_totals t;
    json_t *lacks = json_array();
    asym_service_facts(s, &f);
    asym_monitor_totals(r->monitor, &t);
    asym_service_lacks(s, add_lack, &lacks);
    return json_pack(
        "{s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:I, s:b, s:I, s:I, s:o, s:o, s:o}", "schema",
        "asymctl.status/1", "version", ASYM_VERSION, "start_us", (json_int_t)s->control.started, "policy",
        asym_json_text(f.policy), "policy_reason", asym_json_text(f.policy_reason), "fast_cpus",
        asym_json_cpus(&s->run->machine->fast), "slow_cpus", asym_json_cpus(&s->run->machine->slow), "threads_steered",
        (json_int_t)f.threads_steered, "changes", (json_int_t)t.changes, "changes_last_minute",
        (json_int_t)t.changes_last_minute, "interval_us", (json_int_t)asym_service_interval(s), "cpu_usage",
        asym_json_number(s->budget.percent / 100, 6), "memory_bytes", (json_int_t)asym_service_memory(), "paused",
        (int)f.paused, "paused_until_us", (json_int_t)f.paused_until, "orders",
        (json_int_t)asym_overrides_count(s->control.overrides), "observer", observer_json(s), "profile",
        asym_json_text(s->run->capabilities.profiles ? s->run->settings->counters.profiles : NULL), "lacks", lacks);
}

static int report_status(const struct report *r, uint64_t argument, json_t **ret)
{
    json_t *status = facts_json(r), *cpus = json_array(), *apps = json_array();
    const struct asym_machine *machine = r->s->run->machine;
    const struct asym_monitor_app *app;
    r->s->load_asked = asym_clock_now();
    for (unsigned cpu = 0; cpu < machine->n_cpus; cpu++)
        if (asym_mask_has(&machine->usable, (int)cpu))
            asym_json_append(&cpus, cpu_json(r, cpu));
    for (size_t at = 0, n = 0; n < ASYM_BUS_APPLICATIONS && (app = asym_monitor_app_next(r->monitor, &at)); n++)
        if (may_see_app(r->s, r->caller, app))
            asym_json_append(&apps, app_json(r, app, app->reason));
    asym_json_set(&status, "cpus", cpus);
    asym_json_set(&status, "applications", apps);
    *ret = status;
    return 0;
}

/* A number of a process or thread that the kernel could give, or -1. */
static int32_t id_of(uint64_t argument)
{
    return argument > 0 && argument <= INT_MAX ? (int32_t)argument : -1;
}

/* The busiest threads of an application first; n counts those beyond the array, too. A job can have those of several users. */
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
        if (asym_taskid_equal(&t->app, &app->id) && t->seen == app->seen)
            add_own_thread(&own, t);
    return own;
}

/* Returns whether the last snapshot lists it, so that its reason is that of today. */
static bool is_current(const struct report *r, asym_usec seen)
{
    struct asym_monitor_totals totals;
    asym_monitor_totals(r->monitor, &totals);
    return seen == totals.now;
}

/* The masks of a thread that has ended are empty. */
static json_t *thread_json(const struct report *r, const struct asym_monitor_thread *t)
{
    struct asym_service_thread now = {.nice = 0};
    struct asym_proc proc;
    const bool known = asym_service_proc_of(r->s, &t->id, &proc) >= 0;
    const struct asym_reason *reason = asym_explain_reason_now(t->reason, is_current(r, t->seen), known ? &proc : NULL);
    asym_service_settings_of(r->s, &t->id, &now);
    return json_pack("{s:i, s:i, s:i, s:i, s:o, s:s, s:o, s:o, s:i, s:i, s:o, s:o, s:o}", "tid", (int)t->id.tid, "pid",
                     (int)t->id.tgid, "cpu", (int)t->cpu, "target", (int)t->target, "comm", asym_json_text(t->comm),
                     "class", class_text(t->class), "runnable", asym_json_number(t->runnable, 3), "running",
                     asym_json_number(t->running, 3), "nice", now.nice, "own_nice", now.own_nice, "mask",
                     asym_json_cpus(&now.mask), "own_mask", asym_json_cpus(&now.own_mask), "reason",
                     reason_json(reason, reason == t->reason ? t->figure : (const double[2]){0, 0}));
}

/* Returns CLOCK_REALTIME in microseconds for a CLOCK_MONOTONIC time of the monitor; 0 for 0. */
static uint64_t realtime_of(asym_usec monotonic)
{
    const asym_usec now = asym_clock_now(), ago = now > monotonic ? now - monotonic : 0;
    return monotonic == 0 ? 0 : asym_clock_read(CLOCK_REALTIME) - ago;
}

static json_t *decision_json(const struct asym_monitor_decision *d)
{
    return json_pack("{s:I, s:i, s:i, s:o, s:i, s:i, s:i, s:s, s:s, s:o}", "time_us", (json_int_t)realtime_of(d->time),
                     "pid", (int)d->id.tgid, "tid", (int)d->id.tid, "comm", asym_json_text(d->comm), "from",
                     (int)d->from, "to", (int)d->to, "nice", (int)d->nice, "class", class_text(d->class), "what",
                     asym_monitor_what_name(d->what), "reason", reason_json(d->reason, d->figure));
}

static int report_program(const struct report *r, uint64_t argument, json_t **ret)
{
    const struct asym_monitor_app *app = asym_monitor_app_of(r->monitor, id_of(argument));
    if (!app || !may_see_app(r->s, r->caller, app))
        return -ESRCH;
    struct asym_proc proc;
    const bool known = asym_service_proc_of(r->s, &app->busiest, &proc) >= 0;
    const bool runs = is_current(r, app->seen) && app->runnable > 0;
    const struct own_threads own = find_own_threads(r->monitor, app);
    const size_t listed = ASYM_MIN(own.n, (size_t)ASYM_BUS_OWN_THREADS);
    json_t *program = app_json(r, app, asym_explain_reason_now(app->reason, runs, known ? &proc : NULL)),
           *threads = json_array();
    for (size_t i = 0; i < listed; i++)
        if (asym_bus_may_see(r->s, r->caller, &own.thread[i]->id))
            asym_json_append(&threads, thread_json(r, own.thread[i]));
    asym_json_set(&program, "schema", json_string("asymd.program/1"));
    asym_json_set(&program, "rule", asym_json_text(known ? proc.rule_name : NULL));
    asym_json_set(&program, "own_threads", threads);
    asym_json_set(&program, "own_threads_left_out", json_integer((json_int_t)(own.n - listed)));
    *ret = program;
    return 0;
}

/* The last decisions on some threads, the newest first. */
struct last_decisions {
    struct asym_monitor_decision decision[ASYM_BUS_LAST_DECISIONS];
    size_t n;
};

static void add_decisions(struct last_decisions *last, const struct report *r, const struct asym_monitor_thread *t)
{
    struct asym_monitor_decision d[ASYM_MONITOR_DECISIONS];
    const size_t n = asym_bus_may_see(r->s, r->caller, &t->id) ? asym_monitor_decisions(r->monitor, t, d) : 0;
    for (size_t i = 0; i < n; i++) {
        size_t at = last->n;
        for (; at > 0 && last->decision[at - 1].number < d[i].number; at--)
            if (at < ASYM_BUS_LAST_DECISIONS)
                last->decision[at] = last->decision[at - 1];
        if (at == ASYM_BUS_LAST_DECISIONS)
            return;
        last->decision[at] = d[i];
        last->n = ASYM_MIN(last->n + 1, (size_t)ASYM_BUS_LAST_DECISIONS);
    }
}

static json_t *last_decisions_json(const struct last_decisions *last)
{
    json_t *list = json_array();
    for (size_t i = 0; i < last->n; i++)
        asym_json_append(&list, decision_json(&last->decision[i]));
    return list;
}

static int report_thread(const struct report *r, uint64_t argument, json_t **ret)
{
    const struct asym_monitor_thread *t = asym_monitor_thread_of(r->monitor, id_of(argument));
    struct last_decisions last = {.n = 0};
    if (!t || !asym_bus_may_see(r->s, r->caller, &t->id))
        return -ESRCH;
    add_decisions(&last, r, t);
    json_t *thread = thread_json(r, t);
    asym_json_set(&thread, "schema", json_string("asymd.thread/1"));
    asym_json_set(&thread, "decisions", last_decisions_json(&last));
    *ret = thread;
    return 0;
}

static void add_sentence(void *ctx, const char *sentence)
{
    json_t **list = ctx;
    asym_json_append(list, asym_json_text(sentence));
}

static void add_evidence(void *ctx, const char *name, const char *value)
{
    json_t **list = ctx;
    asym_json_append(list, json_pack("{s:s, s:o}", "name", name, "value", asym_json_text(value)));
}

/* Another user's processes that hold the fast CPUs are in an explanation: hidepid hides them from all but root. */
static void hide_holders(struct asym_explanation *e, const struct report *r)
{
    size_t n = 0;
    if (sees_all(r->s, r->caller))
        return;
    for (size_t i = 0; i < ASYM_EXPLAIN_HOLDERS && i < e->n_holders; i++)
        if (may_see_app(r->s, r->caller, e->holders[i]))
            e->holders[n++] = e->holders[i];
    e->hides_holders = e->n_holders > n;
    e->n_holders = n;
}

/* The busiest thread of a program may have ended, and the program not. A cgroup can have processes of several users. */
static bool may_see_subject(const struct report *r, const struct asym_explanation *e)
{
    if (e->thread && !(e->of_program && e->app->id.tid > 0))
        return asym_bus_may_see(r->s, r->caller, &e->thread->id);
    return may_see_app(r->s, r->caller, e->app);
}

static json_t *decisions_of(const struct report *r, const struct asym_explanation *e)
{
    struct last_decisions last = {.n = 0};
    const struct own_threads own = e->of_program && e->app ? find_own_threads(r->monitor, e->app)
                                                           : (struct own_threads){.n = 0};
    for (size_t i = 0; i < ASYM_MIN(own.n, (size_t)ASYM_BUS_OWN_THREADS); i++)
        add_decisions(&last, r, own.thread[i]);
    if (own.n == 0 && e->thread)
        add_decisions(&last, r, e->thread);
    return last_decisions_json(&last);
}

static int report_why(const struct report *r, uint64_t argument, json_t **ret)
{
    struct asym_service_explanation e;
    const int32_t id = id_of(argument);
    if (asym_service_explain(r->s, id, &e) < 0 || !may_see_subject(r, &e.e) ||
        asym_service_explain_now(r->s, id, &e) < 0)
        return -ESRCH;
    hide_holders(&e.e, r);
    json_t *sentences = json_array(), *evidence = json_array();
    asym_explain_sentences(&e.e, add_sentence, &sentences);
    asym_explain_evidence(&e.e, add_evidence, &evidence);
    *ret = json_pack("{s:s, s:[{s:i, s:o, s:o, s:o}]}", "schema", "asymctl.why/1", "explanations", "id", (int)id,
                     "sentences", sentences, "evidence", evidence, "decisions", decisions_of(r, &e.e));
    return 0;
}

static int report_waits(const struct report *r, uint64_t argument, json_t **ret)
{
    struct asym_service_explanation e;
    const int32_t id = id_of(argument);
    if (asym_service_explain(r->s, id, &e) < 0 || !may_see_subject(r, &e.e))
        return -ESRCH;
    *ret = asym_service_waits(r->s, r->caller, &e.e, id, asym_clock_now());
    return 0;
}

static int report_counters(const struct report *r, uint64_t argument, json_t **ret)
{
    *ret = json_pack("{s:s, s:o}", "schema", "asymctl.stats/1", "counters", asym_service_counters(r->s));
    return 0;
}

/* A decision on a process that has ended belongs to no user: where /proc hides processes, only root gets it. */
static int report_decisions(const struct report *r, uint64_t since, json_t **ret)
{
    ASYM_AUTO_FREE const struct asym_monitor_decision **all = NULL;
    uint64_t next = asym_monitor_last_decision(r->monitor);
    size_t n_known = 0;
    if (asym_monitor_decisions_since(r->monitor, since, &all, &n_known) < 0)
        return -ENOMEM;
    const size_t n = ASYM_MIN(n_known, (size_t)ASYM_BUS_DECISIONS);
    if (n < n_known)
        next = all[n - 1]->number;
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        if (asym_bus_may_see(r->s, r->caller, &all[i]->id))
            asym_json_append(&list, decision_json(all[i]));
    *ret = json_pack("{s:s, s:I, s:I, s:I, s:I, s:o}", "schema", "asymd.decisions/1", "start_us",
                     (json_int_t)r->s->control.started, "next", (json_int_t)next, "lost",
                     (json_int_t)(next > since ? next - since - n : 0), "left", (json_int_t)(n_known - n), "decisions",
                     list);
    return 0;
}

static const struct topic {
    const char *name;
    int (*make)(const struct report *r, uint64_t argument, json_t **ret); /* NULL in *ret: no memory */
    bool has_argument, is_kept;
} topics[] = {
    {"status", report_status, false, true},     {"program", report_program, true, true},
    {"thread", report_thread, true, true},      {"why", report_why, true, true},
    {"counters", report_counters, false, true}, {"decisions", report_decisions, true, false},
    {"waits", report_waits, true, false},
};

static const struct topic *find_topic(const char *name)
{
    for (size_t i = 0; i < ASYM_LENGTH(topics); i++)
        if (strcmp(topics[i].name, name) == 0)
            return &topics[i];
    return NULL;
}

/* Returns the place of this report, which may hold one that is too old, or the place of the oldest. */
static struct asym_bus_kept *find_kept(struct asym_service *s, const struct asym_bus_kept *wanted)
{
    struct asym_bus_kept *place = s->kept;
    for (size_t i = 0; i < ASYM_BUS_KEPT; i++) {
        struct asym_bus_kept *k = &s->kept[i];
        if (k->topic == wanted->topic && k->argument == wanted->argument && k->view == wanted->view)
            return k;
        if (k->made < place->made)
            place = k;
    }
    return place;
}

void asym_bus_report_forget(struct asym_service *s, asym_usec before)
{
    for (size_t i = 0; i < ASYM_BUS_KEPT; i++)
        if (s->kept[i].made < before) {
            free(s->kept[i].text);
            s->kept[i] = (struct asym_bus_kept){.topic = NULL};
        }
}

static int make_text(struct asym_service *s, const struct asym_bus_caller *caller, const struct topic *topic,
                     uint64_t argument, char **ret)
{
    const struct report report = {s, s->control.monitor, caller};
    ASYM_AUTO_JSON json_t *json = NULL;
    const int r = topic->make(&report, argument, &json);
    if (r < 0)
        return r;
    /* D-Bus refuses characters that JSON may hold. */
    *ret = json ? json_dumps(json, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15)) : NULL;
    return *ret ? 0 : -ENOMEM;
}

int asym_bus_report(struct asym_service *s, const struct asym_bus_caller *caller, const char *name, uint64_t argument,
                    asym_usec now, char **ret)
{
    const struct topic *topic = find_topic(name);
    if (!topic || (argument != 0 && !topic->has_argument))
        return -EINVAL;
    if (caller->is_root || !topic->is_kept)
        return make_text(s, caller, topic, argument, ret);
    const uid_t view = sees_all(s, caller) ? (uid_t)-1 : caller->uid;
    struct asym_bus_kept wanted = {.topic = topic->name, .argument = argument, .view = view, .made = now};
    struct asym_bus_kept *kept = find_kept(s, &wanted);
    const bool is_same = kept->topic == wanted.topic && kept->argument == argument && kept->view == view;
    if (!is_same || now - kept->made >= ASYM_BUS_KEEP) {
        const int r = make_text(s, caller, topic, argument, &wanted.text);
        if (r < 0)
            return r;
        if (strlen(wanted.text) > ASYM_BUS_KEPT_BYTES) {
            *ret = wanted.text;
            return 0;
        }
        free(kept->text);
        *kept = wanted;
    }
    *ret = strdup(kept->text);
    return *ret ? 0 : -ENOMEM;
}
