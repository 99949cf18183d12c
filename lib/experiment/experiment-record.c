/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiment/experiment.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/macro.h"
#include "base/mask.h"
#include "core/task-table.h"

/* Instructions of a second on a core of speed 1, as the simulator has them by default. */
#define RATE 1e9

/* The least work of a step: less than that is a wait. */
#define LEAST 1e5

/* An application of more phases than this becomes a loop of its mean phases; a script has 64 steps at most. */
enum { MAX_PHASES = 40 };

enum phase { IDLE, SERIAL, PARALLEL, N_PHASES };

struct step {
    enum phase phase;
    double work; /* instructions */
    double time; /* microseconds */
};

struct load {
    struct asym_taskid id;
    char comm[ASYM_COMM_LEN];
    double cpu;            /* seconds */
    double lost;           /* of these, seconds while less than half a thread was runnable */
    unsigned threads;      /* most runnable threads, rounded */
    asym_usec first, last; /* ends of the first and the last interval in which it was seen */
    struct step *steps;
    size_t n, capacity;
};

struct reading {
    struct asym_table loads;
    size_t room; /* steps for which memory was taken */
    asym_usec first, last;
    double speeds[ASYM_MAX_TYPES];
    unsigned counts[ASYM_MAX_TYPES], smt[ASYM_MAX_TYPES], n_types; /* cores of a type, hardware threads of a core */
    double smt_gain;
    double busy[ASYM_MAX_CPUS]; /* hardware threads of each core that were busy in the interval, on average */
    bool uneven, masks;         /* cores of a type have more CPUs than others; some thread may run on some CPUs only */
};

static void reading_done(struct reading *r)
{
    for (uint32_t i = 0; i < r->loads.n; i++)
        free(((struct load *)asym_table_at(&r->loads, i))->steps);
    asym_table_done(&r->loads);
}

static int add_step(struct reading *r, struct load *l, enum phase phase, double work, double time)
{
    if (l->n == 0 || l->steps[l->n - 1].phase != phase) {
        if (l->n == l->capacity) {
            const size_t larger = l->capacity * 2 + 2;
            if (r->room + larger - l->capacity > ASYM_RECORD_MAX_PHASES)
                return -E2BIG;
            struct step *grown = reallocarray(l->steps, larger, sizeof *grown);
            if (!grown)
                return -ENOMEM;
            l->steps = grown;
            r->room += larger - l->capacity;
            l->capacity = larger;
        }
        l->steps[l->n++] = (struct step){.phase = phase};
    }
    l->steps[l->n - 1].work += work;
    l->steps[l->n - 1].time += time;
    return 0;
}

static void count_busy(struct reading *r, const struct asym_snapshot *s)
{
    memset(r->busy, 0, sizeof r->busy);
    for (size_t i = 0; i < s->n_tasks; i++) {
        const int core = s->machine->cpus[s->tasks[i].cpu].core;
        if (core >= 0)
            r->busy[core] += s->tasks[i].running;
    }
}

/* Instructions of a second. Busy hardware threads of a core share what the core does. */
static double rate_of(const struct reading *r, const struct asym_machine *m, int cpu)
{
    const struct asym_cpu *c = &m->cpus[cpu];
    const bool is_known = c->core >= 0 && c->type >= 0;
    const double n = is_known ? fmax(fmin(r->busy[c->core], m->types[c->type].siblings), 1) : 1;
    return (c->speed > 0 ? c->speed : 1) * (1 + m->smt_gain * (n - 1)) / n * RATE;
}

static void add_up(const struct reading *r, const struct asym_snapshot *s, const struct asym_app *app, double *ret_cpu,
                   double *ret_work)
{
    const double interval = (double)s->interval / ASYM_SEC;
    *ret_cpu = *ret_work = 0;
    for (uint32_t i = app->first_task; i < app->first_task + app->n_tasks; i++) {
        const struct asym_task *task = &s->tasks[i];
        *ret_cpu += task->running * interval;
        *ret_work += task->running * interval * rate_of(r, s->machine, task->cpu);
    }
}

static int add_app(struct reading *r, const struct asym_snapshot *s, const struct asym_app *app)
{
    double cpu, work;
    if (r->loads.n == ASYM_RECORD_MAX_APPLICATIONS && !asym_table_find(&r->loads, &app->id))
        return -E2BIG;
    struct load *l = asym_table_get(&r->loads, &app->id);
    if (!l)
        return -ENOMEM;
    add_up(r, s, app, &cpu, &work);
    const enum phase phase = app->runnable_mean < 0.5 ? IDLE : app->runnable_mean < 1.5 ? SERIAL : PARALLEL;
    if (l->n == 0 && phase == IDLE)
        return 0;
    if (l->n == 0) {
        memcpy(l->comm, app->comm, sizeof l->comm);
        l->first = s->now;
    } else if (s->now - s->interval > l->last) {
        const int added = add_step(r, l, IDLE, 0, (double)(s->now - s->interval - l->last));
        if (added < 0)
            return added;
    }
    l->last = s->now;
    l->cpu += cpu;
    l->lost += phase == IDLE ? cpu : 0;
    l->threads = ASYM_MAX(l->threads, (unsigned)lround(fmin(app->runnable_mean, 1e5)));
    return add_step(r, l, phase, phase == IDLE ? 0 : work, (double)s->interval);
}

static void note_machine(struct reading *r, const struct asym_machine *m)
{
    r->n_types = ASYM_MIN(m->n_types, 16u);
    for (unsigned t = 0; t < r->n_types; t++) {
        const struct asym_mask cores = asym_machine_cores(m, &m->types[t].cpus);
        const unsigned n = asym_mask_count(&m->types[t].cpus);
        r->counts[t] = asym_mask_count(&cores);
        r->smt[t] = (n + r->counts[t] / 2) / r->counts[t];
        r->uneven |= r->counts[t] * r->smt[t] != n;
        r->speeds[t] = m->types[t].speed;
    }
    r->smt_gain = m->smt_gain;
}

static int read_record(struct asym_record_reader *reader, struct reading *r, struct asym_error *err)
{
    struct asym_source *source = asym_record_reader_source(reader);
    struct asym_snapshot s;
    int got = asym_record_reader_rewind(reader);
    while (got >= 0 && (got = source->next(source, &s)) > 0) {
        if (r->first == 0) {
            r->first = s.now - s.interval;
            note_machine(r, s.machine);
        }
        r->last = s.now;
        count_busy(r, &s);
        for (size_t i = 0; i < s.n_tasks; i++)
            r->masks |= !asym_mask_within(&s.machine->usable, s.tasks[i].mask);
        for (size_t a = 0; got >= 0 && s.interval > 0 && a < s.n_apps; a++)
            got = add_app(r, &s, &s.apps[a]);
    }
    if (got == -E2BIG)
        return asym_record_reader_refuse(reader, "the record has more applications or phases than asymctl keeps", err);
    if (got == -EBADMSG)
        return asym_fail(err, got, "%s", asym_record_reader_error(reader));
    return got < 0 ? asym_fail(err, got, "%s", strerror(-got)) : 0;
}

/* A thread issues one instruction a cycle, and a core 1 + smt_gain. */
static void put_machine(const struct reading *r, FILE *out)
{
    fputs("[machine]\ncounts = ", out);
    for (unsigned t = 0; t < r->n_types; t++)
        fprintf(out, "%s%u", t ? "," : "", r->counts[t]);
    fputs("\nspeeds = ", out);
    for (unsigned t = 0; t < r->n_types; t++)
        fprintf(out, "%s%.4f", t ? "," : "", r->speeds[t]);
    fputs("\nsmt = ", out);
    for (unsigned t = 0; t < r->n_types; t++)
        fprintf(out, "%s%u", t ? "," : "", r->smt[t]);
    fprintf(out, "\nmax_ipc = %.4f\n", 1 + r->smt_gain);
}

static void put_step(FILE *out, enum phase phase, double work, double time)
{
    if (phase == IDLE || work < LEAST)
        fprintf(out, "step = io %.0fus\n", fmax(time, 1));
    else
        fprintf(out,
                phase == SERIAL ? "step = serial %.0f memory=record\n"
                                : "step = parallel %.0f chunk=1M memory=record\n",
                work);
}

static void put_loop(const struct load *l, FILE *out)
{
    double work[N_PHASES] = {0}, time[N_PHASES] = {0};
    unsigned n[N_PHASES] = {0};
    for (size_t i = 0; i < l->n; i++) {
        work[l->steps[i].phase] += l->steps[i].work;
        time[l->steps[i].phase] += l->steps[i].time;
        n[l->steps[i].phase]++;
    }
    const unsigned times = ASYM_MAX(ASYM_MAX(n[SERIAL], n[PARALLEL]), 1u);
    fprintf(out, "step = loop %u\n", times);
    for (int p = PARALLEL; p >= IDLE; p--)
        if (n[p] > 0)
            put_step(out, (enum phase)p, work[p] / times, time[p] / times);
    fputs("step = end\n", out);
}

struct program_name {
    char text[48];
};

static bool is_taken(const struct program_name *names, size_t n, const char *text)
{
    size_t i = 0;
    while (i < n && strcmp(names[i].text, text) != 0)
        i++;
    return i < n;
}

/* The kernel gives the number of a process that has ended to another one, so names[n] gets an index if it repeats. */
static const char *name_program(struct program_name *names, size_t n, const struct load *l)
{
    char *text = names[n].text, comm[ASYM_COMM_LEN] = "";
    for (size_t i = 0; i + 1 < sizeof comm && l->comm[i]; i++)
        comm[i] = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.", l->comm[i]) ? l->comm[i]
                                                                                                         : '_';
    snprintf(text, sizeof names[n].text, "%s-%d", comm, l->id.tgid);
    for (unsigned index = 2; is_taken(names, n, text); index++)
        snprintf(text, sizeof names[n].text, "%s-%d-%u", comm, l->id.tgid, index);
    return text;
}

static void put_program(const struct reading *r, const struct load *l, const char *name, FILE *out)
{
    fprintf(out, "[program \"%s\"]\nthreads = %u\npasses = 1\nstart = %.0fus\n", name, ASYM_MAX(l->threads, 1u),
            (double)(l->first - r->first));
    if (l->n > MAX_PHASES) {
        put_loop(l, out);
        return;
    }
    for (size_t i = 0; i < l->n; i++)
        if (l->steps[i].phase != IDLE || i + 1 < l->n)
            put_step(out, l->steps[i].phase, l->steps[i].work, l->steps[i].time);
}

static void put_settings(const struct asym_record_head *head, FILE *out)
{
    char section[64] = "";
    fprintf(out, "[asymd]\npolicy = %s\n", head->policy);
    for (size_t i = 0; i < head->n_settings; i++) {
        const char *name = head->settings[i].name, *dot = strrchr(name, '.');
        const size_t len = dot ? (size_t)(dot - name) : 0;
        if (!dot || len >= sizeof section)
            continue;
        if (strncmp(section, name, len) != 0 || section[len] != '\0') {
            memcpy(section, name, len);
            section[len] = '\0';
            fprintf(out, "[%s]\n", section);
        }
        fprintf(out, "%s = %s\n", dot + 1, head->settings[i].value);
    }
}

static int by_cpu(const void *a, const void *b)
{
    const struct load *x = *(const struct load *const *)a, *y = *(const struct load *const *)b;
    return x->cpu < y->cpu ? 1 : x->cpu > y->cpu ? -1 : x->id.tgid - y->id.tgid;
}

/* Returns the applications that ran, those with most CPU time first; NULL: no memory. The caller frees the list. */
static const struct load **sort_loads(struct reading *r, size_t *ret_n)
{
    const struct load **list = calloc(r->loads.n + 1, sizeof *list);
    *ret_n = 0;
    for (uint32_t i = 0; list && i < r->loads.n; i++) {
        const struct load *l = asym_table_at(&r->loads, i);
        if (l->n > 0 && l->cpu > 0)
            list[(*ret_n)++] = l;
    }
    if (list)
        qsort(list, *ret_n, sizeof(const struct load *), by_cpu);
    return list;
}

static void put_notes(const struct reading *r, const struct load *const *list, size_t n, bool other_machine, FILE *out)
{
    double all = 0, taken = 0;
    for (size_t i = 0; i < n; i++) {
        all += list[i]->cpu;
        taken += i < ASYM_RECORD_SCENARIO_PROGRAMS ? list[i]->cpu - list[i]->lost : 0;
    }
    fprintf(out, "The scenario has %zu of %zu applications, and %.0f %% of their CPU time.\n",
            ASYM_MIN(n, (size_t)ASYM_RECORD_SCENARIO_PROGRAMS), n, all > 0 ? taken / all * 100 : 0.0);
    fputs("A record does not tell: how programs use memory and what they gain from each type of core (the simulator "
          "takes the speed of the core); where threads wait for each other (a parallel phase is one step, in chunks of "
          "1 M); phases shorter than a sample; what starts when another program ends.\n",
          out);
    if (r->uneven && !other_machine)
        fputs("Some cores of the record have fewer CPUs than others of their type. In the scenario they do not.\n",
              out);
    if (r->masks)
        fputs("Some threads may not run on all CPUs. In the scenario they may.\n", out);
}

void asym_record_scenario_done(struct asym_record_scenario *s)
{
    free(s->text);
    free(s->notes);
    *s = (struct asym_record_scenario){.text = NULL};
}

static int write_scenario(struct asym_record_reader *reader, struct reading *r, const struct load *const *list,
                          size_t n, const char *machine, struct asym_record_scenario *ret)
{
    struct asym_record_scenario s = {.text = NULL};
    struct program_name names[ASYM_RECORD_SCENARIO_PROGRAMS];
    size_t notes_len;
    ASYM_AUTO_FCLOSE FILE *out = open_memstream(&s.text, &s.len);
    ASYM_AUTO_FCLOSE FILE *notes = open_memstream(&s.notes, &notes_len);
    if (!out || !notes)
        return -ENOMEM;
    if (machine)
        fputs(machine, out);
    else
        put_machine(r, out);
    fputs("[memory \"record\"]\nipc = 1\n", out);
    /* A policy can make the programs take longer than in the record. */
    fprintf(out, "[run]\nduration = %.0fus\nuntil = done\n", fmin((double)(r->last - r->first) * 4 + 1e6, 86400e6));
    for (size_t i = 0; i < ASYM_MIN(n, (size_t)ASYM_RECORD_SCENARIO_PROGRAMS); i++)
        put_program(r, list[i], name_program(names, i, list[i]), out);
    put_settings(asym_record_reader_head(reader), out);
    put_notes(r, list, n, machine != NULL, notes);
    const bool failed = asym_close_text(ASYM_TAKE(out), &s.text) < 0 || asym_close_text(ASYM_TAKE(notes), &s.notes) < 0;
    if (failed)
        asym_record_scenario_done(&s);
    else
        *ret = s;
    return failed ? -ENOMEM : 0;
}

int asym_record_scenario(struct asym_record_reader *reader, const char *machine, struct asym_record_scenario *ret,
                         struct asym_error *err)
{
    ASYM_CLEANUP(reading_done) struct reading r = {.first = 0};
    size_t n;
    asym_table_init(&r.loads, sizeof(struct load));
    int got = read_record(reader, &r, err);
    if (got < 0)
        return got;
    const struct load **list = sort_loads(&r, &n);
    if (!list)
        return asym_fail(err, -ENOMEM, "no memory");
    got = n == 0 ? asym_fail(err, -EINVAL, "no application of the record ran")
                 : write_scenario(reader, &r, list, n, machine, ret);
    free(list);
    return got == -ENOMEM ? asym_fail(err, got, "no memory") : got;
}
