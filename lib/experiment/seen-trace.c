/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiment/seen-trace.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "experiment/trace-text.h"

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

static void put_tracks(struct asym_seen_trace *t, const struct asym_machine *m)
{
    ASYM_MASK_FOREACH (c, &m->usable) {
        char name[96];
        const int16_t type = m->cpus[c].type;
        snprintf(name, sizeof name, "CPU %d, %s, speed %.3g", c, type >= 0 ? m->types[type].name : "?",
                 m->cpus[c].speed);
        fprintf(t->out, ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":", c);
        asym_trace_text(t->out, name);
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
    asym_trace_text(t->out, task->comm);
    fprintf(t->out, ",\"cat\":\"%s\",\"args\":{\"tid\":%d,\"pid\":%d,\"class\":\"%s\",\"ran_us\":%.0f,\"why\":",
            asym_class_name(plan->class), task->id.tid, task->id.tgid, asym_class_name(plan->class), ran);
    asym_trace_text(t->out, asym_reason_text(plan->reason, plan->figure, why, sizeof why));
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
    asym_trace_text(t->out, name);
    fprintf(t->out, ",\"args\":{\"tid\":%d,\"class\":\"%s\",\"nice\":%d,\"cpus\":", task->id.tid,
            asym_class_name(plan->class), plan->nice);
    asym_trace_text(t->out, asym_mask_format_list(&plan->mask, cpus, sizeof cpus));
    fputs(",\"why\":", t->out);
    asym_trace_text(t->out, asym_reason_text(plan->reason, plan->figure, why, sizeof why));
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
        put_tracks(t, s->machine);
    t->generation = s->machine->generation + 1;
    put_slices(t, s, plan);
    const int r = t->has_service ? 0 : put_decisions(t, s, plan);
    return r < 0 ? r : ferror(t->out) ? -EIO : 0;
}

int asym_seen_trace_decide(struct asym_seen_trace *t, const struct asym_seen_decision *d)
{
    char name[160];
    const int32_t cpu = d->to >= 0 ? d->to : d->from;
    if (d->to >= 0)
        snprintf(name, sizeof name, "%.60s %.60s to CPU %d", d->what, d->comm, d->to);
    else
        snprintf(name, sizeof name, "%.60s %.60s", d->what, d->comm);
    fprintf(t->out, ",\n{\"ph\":\"i\",\"s\":\"%s\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"name\":", cpu >= 0 ? "t" : "p",
            cpu >= 0 ? cpu : 0, d->at > t->first ? (double)(d->at - t->first) : 0.0);
    asym_trace_text(t->out, name);
    fprintf(t->out, ",\"cat\":\"asymd\",\"args\":{\"tid\":%u,\"from\":%d,\"nice\":%d,\"class\":", d->tid, d->from,
            d->nice);
    asym_trace_text(t->out, d->class);
    fputs(",\"why\":", t->out);
    asym_trace_text(t->out, d->reason);
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
