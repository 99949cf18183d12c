/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiment/traces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"
#include "report/json.h"

/* Write a text of any bytes as a JSON string. */
static void put_text(FILE *out, const char *text)
{
    char clean[256];
    asym_text_escape(text, strlen(text), clean, sizeof clean);
    fputc('"', out);
    for (const char *c = clean; *c; c++) {
        if (*c == '"' || *c == '\\')
            fputc('\\', out);
        fputc(*c, out);
    }
    fputc('"', out);
}

/*
 * A trace of what a source saw, in the Chrome JSON format, which Perfetto opens: a track for each CPU, with a slice for each
 * thread that ran there and its class, and an instant where the plan for a thread changes, or for each decision of a service.
 *
 * A snapshot says how long a thread ran in an interval and on which CPU it was last. It does not say when. So the slices of an
 * interval follow each other in the order of the snapshot. If they do not fit into it, because a thread ran elsewhere, too, all
 * slices of that CPU shrink by one factor. The arguments of a slice have the time that the thread ran.
 */

/* The plan for a thread when it last changed. */
struct planned {
    struct asym_taskid id;
    int32_t target; /* + 1; 0: the thread was not steered */
};

void asym_seen_trace_begin(struct asym_seen_trace *t, FILE *out)
{
    *t = (struct asym_seen_trace){.out = out};
    asym_table_init(&t->planned, sizeof(struct planned));
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
          "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"CPUs\"}}",
          out);
}

static void put_seen_tracks(struct asym_seen_trace *t, const struct asym_machine *m)
{
    ASYM_MASK_FOREACH (c, &m->usable) {
        char name[96];
        const int16_t type = m->cpus[c].type;
        snprintf(name, sizeof name, "CPU %d, %s, speed %.3g", c, type >= 0 ? m->types[type].name : "?",
                 m->cpus[c].speed);
        fprintf(t->out, ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":", c);
        put_text(t->out, name);
        fprintf(t->out,
                "}},\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%d}}",
                c, c);
    }
}

static void put_slice(struct asym_seen_trace *t, const struct asym_task *task, const struct asym_plan_task *plan,
                      double from, double length, double ran)
{
    char why[256];
    fprintf(t->out, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"name\":", task->cpu, from,
            length);
    put_text(t->out, task->comm);
    fprintf(t->out, ",\"cat\":\"%s\",\"args\":{\"tid\":%d,\"pid\":%d,\"class\":\"%s\",\"ran_us\":%.0f,\"why\":",
            asym_class_name(plan->class), task->id.tid, task->id.tgid, asym_class_name(plan->class), ran);
    put_text(t->out, asym_reason_text(plan->reason, plan->figure, why, sizeof why));
    fputs("}}", t->out);
    t->slices++;
}

static void put_slices(struct asym_seen_trace *t, const struct asym_snapshot *s, const struct asym_plan *plan)
{
    const double interval = (double)s->interval, end = (double)(s->now - t->first);
    memset(t->used, 0, sizeof t->used);
    for (size_t i = 0; i < s->n_tasks; i++)
        t->used[s->tasks[i].cpu] += s->tasks[i].running * interval;
    for (size_t c = 0; c < ASYM_LENGTH(t->at); c++)
        t->at[c] = end - interval;
    for (size_t i = 0; i < s->n_tasks; i++) {
        const struct asym_task *task = &s->tasks[i];
        const double ran = task->running * interval;
        const double length = t->used[task->cpu] > interval ? ran * interval / t->used[task->cpu] : ran;
        if (!(ran > 0))
            continue;
        put_slice(t, task, &plan->tasks[i], t->at[task->cpu], length, ran);
        t->at[task->cpu] += length;
    }
}

static void put_decision(struct asym_seen_trace *t, const struct asym_snapshot *s, const struct asym_task *task,
                         const struct asym_plan_task *plan)
{
    char name[64], why[256], cpus[ASYM_MASK_LIST_MAX];
    const int32_t cpu = plan->target >= 0 ? plan->target : task->cpu;
    if (plan->target >= 0)
        snprintf(name, sizeof name, "%s to CPU %d", task->comm, plan->target);
    else
        snprintf(name, sizeof name, "%s is left alone", task->comm);
    fprintf(t->out, ",\n{\"ph\":\"i\",\"s\":\"t\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"name\":", cpu,
            (double)(s->now - t->first));
    put_text(t->out, name);
    fprintf(t->out, ",\"args\":{\"tid\":%d,\"class\":\"%s\",\"nice\":%d,\"cpus\":", task->id.tid,
            asym_class_name(plan->class), plan->nice);
    put_text(t->out, asym_mask_format_list(plan->mask, cpus, sizeof cpus));
    fputs(",\"why\":", t->out);
    put_text(t->out, asym_reason_text(plan->reason, plan->figure, why, sizeof why));
    fputs("}}", t->out);
    t->decisions++;
}

static int put_decisions(struct asym_seen_trace *t, const struct asym_snapshot *s, const struct asym_plan *plan)
{
    for (size_t i = 0; i < plan->n_tasks; i++) {
        struct planned *p = asym_table_get(&t->planned, &s->tasks[i].id);
        if (!p)
            return -ENOMEM;
        if (p->target == plan->tasks[i].target + 1)
            continue;
        p->target = plan->tasks[i].target + 1;
        put_decision(t, s, &s->tasks[i], &plan->tasks[i]);
    }
    return 0;
}

int asym_seen_trace_add(struct asym_seen_trace *t, const struct asym_snapshot *s, const struct asym_plan *plan)
{
    if (t->first == 0)
        t->first = s->now - s->interval;
    if (t->generation == 0 || t->generation != s->machine->generation + 1)
        put_seen_tracks(t, s->machine);
    t->generation = s->machine->generation + 1;
    put_slices(t, s, plan);
    const int r = t->has_service ? 0 : put_decisions(t, s, plan);
    return r < 0 ? r : ferror(t->out) ? -EIO : 0;
}

int asym_seen_trace_decide(struct asym_seen_trace *t, asym_usec at, const json_t *decision)
{
    const char *what = asym_json_get_text(decision, "what"), *comm = asym_json_get_text(decision, "comm");
    const int from = (int)asym_json_get_int(decision, "from"), to = (int)asym_json_get_int(decision, "to");
    const int cpu = to >= 0 ? to : from;
    char name[160];
    if (to >= 0)
        snprintf(name, sizeof name, "%.60s %.60s to CPU %d", what, comm, to);
    else
        snprintf(name, sizeof name, "%.60s %.60s", what, comm);
    fprintf(t->out, ",\n{\"ph\":\"i\",\"s\":\"%s\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"name\":", cpu >= 0 ? "t" : "p",
            cpu >= 0 ? cpu : 0, at > t->first ? (double)(at - t->first) : 0.0);
    put_text(t->out, name);
    fprintf(t->out, ",\"cat\":\"asymd\",\"args\":{\"tid\":%d,\"from\":%d,\"nice\":%d,\"class\":",
            (int)asym_json_get_int(decision, "tid"), from, (int)asym_json_get_int(decision, "nice"));
    put_text(t->out, asym_json_get_text(decision, "class"));
    fputs(",\"why\":", t->out);
    put_text(t->out, asym_json_get_text(decision, "reason"));
    fputs("}}", t->out);
    t->decisions++;
    return ferror(t->out) ? -EIO : 0;
}

int asym_seen_trace_end(struct asym_seen_trace *t)
{
    fputs("\n]}\n", t->out);
    asym_table_done(&t->planned);
    return fflush(t->out) == 0 && !ferror(t->out) ? 0 : -EIO;
}

/* Writes a trial as a Chrome trace for Perfetto or chrome://tracing: a track per CPU, and actions with their reasons. */

/* Slots of classes by tid. Two threads with one slot overwrite each other, which only mislabels a slice of the trace. */
enum { N_CLASSES = 1 << 16 };

struct trace {
    FILE *out;
    const struct asym_scenario *scenario;
    uint64_t since[ASYM_MAX_CPUS]; /* when the thread that runs there began to run */
    unsigned char class[N_CLASSES];
    bool named;
};

static void put_name(FILE *out, const struct asym_sim_event *e, const char *suffix)
{
    char name[128];
    snprintf(name, sizeof name, "%s.%u/%u%s", e->program, e->instance, e->rank, suffix);
    put_text(out, name);
}

static void put_run(struct trace *t, const struct asym_sim_event *e)
{
    const uint64_t from = t->since[e->cpu];
    const enum asym_class class = (enum asym_class)t->class[(uint32_t)e->id.tid % N_CLASSES];
    fprintf(t->out, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"name\":", e->cpu,
            (double)from / 1e3, (double)(e->at - from) / 1e3);
    put_name(t->out, e, e->spinning ? " spins" : "");
    fprintf(t->out, ",\"cat\":\"%s\",\"args\":{\"tid\":%d,\"class\":\"%s\"}}", asym_class_name(class), e->id.tid,
            asym_class_name(class));
}

static void put_change(struct trace *t, const struct asym_sim_event *e)
{
    char why[256], cpus[ASYM_MASK_LIST_MAX], name[64];
    asym_mask_format_list(&e->action->mask, cpus, sizeof cpus);
    snprintf(name, sizeof name, "%s %.40s", e->kind == ASYM_SIM_STEERED ? "steered to" : "released to", cpus);
    fprintf(t->out, ",\n{\"ph\":\"i\",\"s\":\"t\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"name\":", ASYM_MAX(e->cpu, 0),
            (double)e->at / 1e3);
    put_text(t->out, name);
    fputs(",\"args\":{\"thread\":", t->out);
    put_name(t->out, e, "");
    fprintf(t->out, ",\"nice\":%d,\"why\":", e->action->nice);
    put_text(t->out, asym_reason_text(e->action->reason, e->action->figure, why, sizeof why));
    fputs("}}", t->out);
}

static void on_event(void *ctx, const struct asym_sim_event *e)
{
    struct trace *t = ctx;
    if (e->kind == ASYM_SIM_STEERED || e->kind == ASYM_SIM_RELEASED)
        put_change(t, e);
    else if (e->kind == ASYM_SIM_RUNS)
        t->since[e->cpu] = e->at;
    else if (e->at > t->since[e->cpu])
        put_run(t, e);
}

static void put_sim_tracks(struct trace *t, const struct asym_machine *m)
{
    double slowest = t->scenario->machine.speeds[0];
    for (unsigned k = 1; k < t->scenario->machine.n_types; k++)
        slowest = ASYM_MIN(slowest, t->scenario->machine.speeds[k]);
    ASYM_MASK_FOREACH (c, &m->usable) {
        const struct asym_cpu *cpu = &m->cpus[c];
        const double ghz = t->scenario->machine.frequency * slowest * cpu->speed;
        fprintf(
            t->out,
            ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"CPU %d, speed %g\"}}",
            c, c, cpu->speed);
        fprintf(t->out,
                ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%d}}", c,
                c);
        fprintf(t->out, ",\n{\"ph\":\"C\",\"pid\":1,\"ts\":0,\"name\":\"GHz of CPU %d\",\"args\":{\"GHz\":%g}}", c,
                ghz);
    }
}

static void on_plan(void *ctx, const struct asym_snapshot *s, const struct asym_plan *plan)
{
    struct trace *t = ctx;
    if (!t->named)
        put_sim_tracks(t, s->machine);
    t->named = true;
    for (size_t i = 0; i < plan->n_tasks; i++)
        t->class[(uint32_t)s->tasks[i].id.tid % N_CLASSES] = (unsigned char)plan->tasks[i].class;
}

int asym_sim_trace_write(const struct asym_sim_trial *trial, const char *path, const volatile sig_atomic_t *stop)
{
    ASYM_AUTO_FREE struct trace *t = calloc(1, sizeof *t);
    ASYM_AUTO_FCLOSE FILE *out = fopen(path, "we");
    if (!t || !out)
        return t ? -errno : -ENOMEM;
    t->out = out;
    t->scenario = trial->scenario;
    const struct asym_sim_watch watch = {.sim = {.event = on_event, .ctx = t}, .planned = on_plan, .ctx = t};
    struct asym_sim_trial copy = *trial;
    copy.watch = &watch;
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
          "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"CPUs\"}}",
          out);
    asym_sim_trial_run(&copy, stop);
    fputs("\n]}\n", out);
    if (copy.error < 0)
        return copy.error;
    return fflush(out) == 0 && !ferror(out) ? 0 : -EIO;
}
