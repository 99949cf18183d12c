/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/parse.h"

/* Threads of one application that are shown one by one, movers first; the rest are counted. */
#define THREADS_SHOWN  8
#define EXAMPLES_SHOWN 4

struct page {
    FILE *out;
    bool colour;
};

/* Names and masks come from anywhere; a character may take two columns, none of them may take the line beyond its end. */
static size_t character(const char *s, size_t *ret_columns)
{
    size_t n = 1;
    while ((s[n] & 0xc0) == 0x80)
        n++;
    /* Four-byte characters (emoji and the like) and CJK take two columns on most terminals. */
    *ret_columns = n == 4 || (n == 3 && (unsigned char)s[0] >= 0xe1) ? 2 : 1;
    return n;
}

size_t asym_report_width(const char *text)
{
    size_t width = 0, columns;
    while (*text) {
        text += character(text, &columns);
        width += columns;
    }
    return width;
}

const char *asym_report_cut(const char *text, size_t columns, char *buf, size_t size)
{
    size_t used = 0, width = 0;
    bool whole = asym_report_width(text) <= columns;
    size_t room = whole || columns < 3 ? columns : columns - 3;
    while (*text) {
        size_t w, n = character(text, &w);
        if (width + w > room || used + n + 4 > size)
            break;
        memcpy(buf + used, text, n);
        used += n;
        width += w;
        text += n;
    }
    snprintf(buf + used, size - used, "%s", whole || columns < 3 ? "" : "...");
    return buf;
}

/* A line, cut at the page's width, emphasised when it tells of a change. */
__attribute__((format(printf, 3, 4))) static void line(const struct page *p, bool change, const char *format, ...)
{
    char text[2048], cut[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    asym_report_cut(text, ASYM_REPORT_COLUMNS, cut, sizeof cut);
    fprintf(p->out, "%s%s%s\n", change && p->colour ? "\033[1;33m" : "", cut, change && p->colour ? "\033[0m" : "");
}

static const char *list(const struct asym_mask *m, size_t columns, char *buf, size_t size)
{
    char text[ASYM_MASK_LIST_MAX];
    return asym_report_cut(asym_mask_format_list(m, text, sizeof text), columns, buf, size);
}

static void machine_block(const struct page *p, const struct asym_report *r)
{
    const struct asym_machine *m = r->snapshot->machine;
    char cpus[128];
    line(p, false, "machine    %u CPUs, %u cores, %u LLC, %u NUMA%s", asym_mask_count(&m->usable), m->n_cores,
         m->n_llcs, m->n_nodes, asym_machine_is_asymmetric(m) ? "" : "; all alike: there is nothing to choose between");
    for (unsigned t = 0; t < m->n_types; t++) {
        const struct asym_core_type *type = &m->types[t];
        line(p, false, "  %-8s CPUs %-24s speed %-6.2f from %s", type->name, list(&type->cpus, 24, cpus, sizeof cpus),
             type->speed, asym_origin_name(type->origin));
    }
    if (r->assumed_slow)
        line(p, false, "  some CPUs are only taken for slow, as asked: nothing has been slowed down");
}

static int setting_line(void *ctx, const char *section, const struct asym_option *row, const char *value,
                        const char *origin)
{
    FILE *text = ctx;
    (void)origin;
    if (strcmp(section, "classify") == 0 || strncmp(section, "policy.", 7) == 0 || strcmp(row->key, "pin") == 0 ||
        strcmp(row->key, "swap_period") == 0)
        fprintf(text, "%s=%s ", row->key, value);
    return 0;
}

static void policy_block(const struct page *p, const struct asym_report *r)
{
    ASYM_AUTO_FREE char *text = NULL;
    size_t size = 0, used = 0;
    line(p, false, "policy     %s: %s (%s)", r->policy->name, r->policy->summary, r->policy->source);
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return;
    asym_settings_each(r->settings, setting_line, memory);
    fprintf(memory, "[hp_threshold here %u]", asym_hp_threshold(&r->settings->classify, r->snapshot->machine));
    fclose(memory);
    /* Broken at spaces. */
    while (used < strlen(text)) {
        size_t n = strlen(text + used);
        if (n > ASYM_REPORT_COLUMNS - 2) {
            n = ASYM_REPORT_COLUMNS - 2;
            while (n > 0 && text[used + n] != ' ')
                n--;
        }
        line(p, false, "  %.*s", (int)n, text + used);
        used += n + 1;
    }
}

static const char *name_of(const char *comm, char *buf, size_t size)
{
    char text[4 * ASYM_COMM_LEN + 1];
    asym_text_escape(comm, strnlen(comm, ASYM_COMM_LEN), text, sizeof text);
    return asym_report_cut(text, 16, buf, size);
}

/* printf pads by bytes, a column counts characters. */
static int pad(const char *text, size_t columns)
{
    size_t w = asym_report_width(text);
    return w < columns ? (int)(columns - w) : 0;
}

static void thread_line(const struct page *p, const struct asym_task *t, const struct asym_plan_task *plan)
{
    char name[64], mask[64], why[192], nice[24] = "", place[32];
    asym_reason_text(plan->reason, plan->figure, why, sizeof why);
    name_of(t->comm, name, sizeof name);
    if (plan->nice != t->nice)
        snprintf(nice, sizeof nice, " nice %d->%d", t->nice, plan->nice);
    if (plan->moves)
        snprintf(place, sizeof place, "CPU %d -> %d", (int)t->cpu, (int)plan->target);
    else
        snprintf(place, sizeof place, "CPU %d", (int)t->cpu);
    bool change = plan->moves || *nice || (plan->target >= 0 && !asym_mask_equal(&plan->mask, t->mask));
    line(p, change, "    %7d %s%*s %-4s %-16s mask %-12s%s  %s", (int)t->id.tid, name, pad(name, 16), "",
         asym_class_name(plan->class), place, list(&plan->mask, 12, mask, sizeof mask), nice, why);
}

/* Two rounds, so that what changes comes first. */
static void thread_lines(const struct page *p, const struct asym_report *r, const struct asym_app *app)
{
    uint32_t shown = 0, steered = 0, moving = 0, shown_moving = 0;
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = app->first_task; i < app->first_task + app->n_tasks; i++) {
            const struct asym_plan_task *plan = &r->plan->tasks[i];
            if (plan->moves != (round == 0) || (plan->target < 0 && plan->reason == ASYM_WHY_IDLE))
                continue;
            steered++;
            moving += plan->moves;
            if (shown >= THREADS_SHOWN)
                continue;
            thread_line(p, &r->snapshot->tasks[i], plan);
            shown++;
            shown_moving += plan->moves;
        }
    }
    if (steered > shown)
        line(p, moving > shown_moving, "    and %u more, %u of which move", steered - shown, moving - shown_moving);
}

static void app_lines(const struct page *p, const struct asym_report *r)
{
    size_t n = 0, idle = 0;
    fputc('\n', p->out);
    for (size_t a = 0; a < r->plan->n_apps; a++) {
        const struct asym_app *app = &r->snapshot->apps[a];
        const struct asym_plan_app *plan = &r->plan->apps[a];
        char name[64], where[128];
        if (plan->excluded != ASYM_WHY_NONE)
            continue;
        if (plan->phase == ASYM_PHASE_IDLE) {
            idle++;
            continue;
        }
        if (app->cgroup)
            asym_report_cut(app->cgroup, 40, where, sizeof where);
        else
            snprintf(where, sizeof where, "pid %d", (int)app->id.tgid);
        name_of(app->comm, name, sizeof name);
        line(p, false, "%s%*s  %-12s %6.2f runnable  %-8s  %s", name, pad(name, 16), "", where, plan->runnable,
             asym_phase_name(plan->phase), asym_class_name(plan->class));
        thread_lines(p, r, app);
        n++;
    }
    if (n == 0)
        line(p, false, "Nothing that may be steered was busy. Try a longer --duration, or --pid of a program at work.");
    if (idle > 0)
        line(p, false, "%zu idle applications are not shown.", idle);
}

/* Excluded applications by reason: a count and a few examples, not a wall. */
static void excluded_lines(const struct page *p, const struct asym_report *r)
{
    for (int why = ASYM_WHY_NONE + 1; why <= ASYM_WHY_LAST_EXCLUSION; why++) {
        char examples[512] = "", name[64], text[192];
        size_t n = 0, used = 0;
        const double *figure = NULL;
        for (size_t a = 0; a < r->plan->n_apps; a++) {
            if ((int)r->plan->apps[a].excluded != why)
                continue;
            figure = figure ? figure : r->plan->apps[a].figure;
            if (n++ < EXAMPLES_SHOWN)
                used += (size_t)snprintf(examples + used, sizeof examples - used, "%s%s (%d)", used ? ", " : "",
                                         name_of(r->snapshot->apps[a].comm, name, sizeof name),
                                         (int)r->snapshot->apps[a].id.tgid);
        }
        if (n > 0)
            line(p, false, "not steered: %zu, %s: %s%s", n,
                 asym_reason_text((enum asym_reason)why, figure, text, sizeof text), examples,
                 n > EXAMPLES_SHOWN ? ", ..." : "");
    }
}

static void sight_lines(const struct page *p, const struct asym_report *r)
{
    const struct asym_sight *s = &r->snapshot->sight;
    line(p, r->plan->n_moves > 0, "%zu of %zu threads would move.", r->plan->n_moves, r->plan->n_tasks);
    line(p, false, "Observed %.0f ms, %.0f us of CPU a scan; %u processes, %u threads followed.", r->observed_ms,
         r->scan_cpu_us, s->n_procs, s->n_threads);
    if (s->hidepid)
        line(p, false, "not seen: processes of other users (/proc is mounted with hidepid)");
    if (s->n_denied > 0)
        line(p, false, "not seen: %u processes that may not be read", s->n_denied);
    if (s->n_foreign > 0)
        line(p, false, "not steered: %u processes of a PID namespace that cannot be mapped", s->n_foreign);
    if (s->births_why)
        line(p, false, "no events: %s", s->births_why);
    if (s->n_unkept > 0)
        line(p, false, "%u threads are read without a kept descriptor: raise the limit of open files", s->n_unkept);
}

int asym_report_text(const struct asym_report *report, FILE *out, bool colour)
{
    const struct page p = {.out = out, .colour = colour};
    machine_block(&p, report);
    policy_block(&p, report);
    app_lines(&p, report);
    fputc('\n', out);
    excluded_lines(&p, report);
    sight_lines(&p, report);
    return ferror(out) ? -EIO : 0;
}
