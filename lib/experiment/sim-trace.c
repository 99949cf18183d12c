/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiment/sim-trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "experiment/trace-text.h"

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
    asym_trace_text(out, name);
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
    asym_trace_text(t->out, name);
    fputs(",\"args\":{\"thread\":", t->out);
    put_name(t->out, e, "");
    fprintf(t->out, ",\"nice\":%d,\"why\":", e->action->nice);
    asym_trace_text(t->out, asym_reason_text(e->action->reason, e->action->figure, why, sizeof why));
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

static void put_tracks(struct trace *t, const struct asym_machine *m)
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
        put_tracks(t, s->machine);
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
