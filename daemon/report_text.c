/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The dry run for people: machine, policy, and the summary; applications are in report_apps.c. */
#include "daemon/report_page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/mask.h"
#include "base/parse.h"
#include "daemon/attributes.h"
#include "daemon/columns.h"
#include "daemon/sight.h"

#define INDENT 2

void asym_page_heading(const struct asym_page *p, const char *title)
{
    asym_columns_cell(p->out, title, 13, p->colour ? ASYM_STYLE_HEADING : NULL);
}

void asym_page_say(const struct asym_page *p, size_t at, size_t indent, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(p->out, "%*s", (int)at, "");
    asym_columns_wrap(p->out, text, at, indent);
    fputc('\n', p->out);
}

static void say_here(const struct asym_page *p, const char *text)
{
    asym_columns_wrap(p->out, text, 13, 13);
    fputc('\n', p->out);
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static void machine_line(const struct asym_page *p, const struct asym_machine *m)
{
    char text[256], smt[48] = "";
    unsigned cpus = asym_mask_count(&m->usable);
    if (m->n_cores < cpus)
        snprintf(smt, sizeof smt, " on %u cores (SMT)", m->n_cores);
    snprintf(text, sizeof text, "%u CPU%s%s, %u last-level cache%s, %u NUMA node%s; %u fast, %u slow", cpus,
             plural(cpus), smt, m->n_llcs, plural(m->n_llcs), m->n_nodes, plural(m->n_nodes), asym_mask_count(&m->fast),
             asym_mask_count(&m->slow));
    asym_page_heading(p, "Machine");
    say_here(p, text);
}

static void type_line(const struct asym_page *p, const struct asym_core_type *type)
{
    char name[4 * sizeof type->name + 1], cut[64], cpus[64], speed[16];
    asym_text_escape(type->name, strnlen(type->name, sizeof type->name), name, sizeof name);
    fprintf(p->out, "%*s", INDENT, "");
    asym_columns_cell(p->out, asym_columns_cut(name, 16, cut, sizeof cut), 18, NULL);
    asym_columns_cell(p->out, asym_mask_count(&type->cpus) == 1 ? "CPU" : "CPUs", 5, NULL);
    asym_columns_cell(p->out, asym_columns_cpus(&type->cpus, 28, cpus, sizeof cpus), 30, NULL);
    snprintf(speed, sizeof speed, "speed %.2f", type->speed);
    asym_columns_cell(p->out, speed, 14, NULL);
    if (type->origin != ASYM_ORIGIN_NONE)
        fprintf(p->out, "from %s\n", asym_origin_name(type->origin));
    else
        fputs(p->report->assumed_slow ? "as the machine is\n" : "nothing tells its CPUs apart\n", p->out);
}

static void notes_lines(const struct asym_page *p, const struct asym_topology_notes *notes, bool all)
{
    for (size_t i = 0; notes && i < notes->n; i++) {
        char text[4 * sizeof notes->note[i].text + 1];
        const struct asym_speed_note *note = &notes->note[i];
        asym_text_escape(note->text, strnlen(note->text, sizeof note->text), text, sizeof text);
        if (note->used || (all && note->there))
            asym_page_say(p, INDENT, 2 * INDENT, "%s%s", note->used ? "" : "not used: ", text);
    }
}

static void favoured_lines(const struct asym_page *p, const struct asym_machine *m,
                           const struct asym_topology_notes *notes)
{
    char cpus[96];
    for (unsigned t = 0; t < m->n_types; t++)
        if (asym_describe_favoured(m, t, cpus, sizeof cpus))
            asym_page_say(p, INDENT, 2 * INDENT, "favoured of %s: CPUs %s%s%s", m->types[t].name, cpus,
                          notes && notes->favour ? ", by " : "", notes && notes->favour ? notes->favour : "");
}

static void machine_block(const struct asym_page *p)
{
    const struct asym_report *r = p->report;
    const struct asym_machine *m = r->snapshot->machine;
    bool alike = !asym_machine_is_asymmetric(m);
    char l3[256];
    machine_line(p, m);
    for (unsigned t = 0; t < m->n_types; t++)
        type_line(p, &m->types[t]);
    favoured_lines(p, m, r->notes);
    notes_lines(p, r->notes, alike);
    if (asym_describe_l3(m, l3, sizeof l3))
        asym_page_say(p, INDENT, 2 * INDENT, "%s (no core type by itself)", l3);
    if (asym_mask_count(&m->usable) == 1)
        asym_page_say(p, INDENT, INDENT, "There is only one CPU: nothing can be steered.");
    else if (m->n_types > 1 && alike)
        asym_page_say(p, INDENT, INDENT,
                      "No CPU is slow: all core types reach machine.fast_from of the fastest one's speed.");
    else if (alike)
        asym_page_say(p, INDENT, INDENT,
                      "All CPUs are alike: threads are only spread. --slow=N plans as if N of them were slower.");
    if (r->assumed_slow)
        asym_page_say(p, INDENT, INDENT,
                      "Some CPUs are only assumed slow, as asked for: the plan is as if, and nothing makes them so.");
    fputc('\n', p->out);
}

struct settings_of {
    const struct asym_report *report;
    char text[2048], own[64];
    size_t used;
};

static int add_setting(void *ctx, const char *section, const struct asym_option *row, const char *value,
                       const char *origin)
{
    struct settings_of *s = ctx;
    const struct asym_settings *settings = s->report->settings;
    char here[96];
    (void)origin;
    if (strcmp(section, "classify") != 0 && strcmp(section, "enforce") != 0 && strcmp(section, s->own) != 0)
        return 0;
    if (strcmp(value, "auto") == 0 && strcmp(row->key, "hp_threshold") == 0) {
        snprintf(here, sizeof here, "%u", asym_hp_threshold(&settings->classify, s->report->snapshot->machine));
        value = here;
    } else if (strcmp(value, "auto") == 0 && strcmp(row->key, "pin") == 0) {
        value = asym_pin_name(s->report->policy->pin);
    }
    int n = snprintf(s->text + s->used, sizeof s->text - s->used, "%s%s=%s", s->used ? "  " : "", row->key, value);
    if (n > 0 && (size_t)n < sizeof s->text - s->used)
        s->used += (size_t)n;
    else
        s->text[s->used] = '\0';
    return 0;
}

static void policy_block(const struct asym_page *p)
{
    const struct asym_report *r = p->report;
    struct settings_of s = {.report = r};
    char line[512], text[2 * sizeof s.text];
    snprintf(line, sizeof line, "%s: %s (%s)", r->policy->name, r->policy->summary, r->policy->source);
    asym_page_heading(p, "Policy");
    say_here(p, line);
    if (r->policy_why)
        asym_page_say(p, INDENT, INDENT, "Chosen by auto: %s.", r->policy_why);
    snprintf(s.own, sizeof s.own, "policy.%s", r->policy->name);
    asym_settings_each(r->settings, add_setting, &s);
    asym_text_escape(s.text, s.used, text, sizeof text);
    fprintf(p->out, "%*s", INDENT, "");
    asym_columns_wrap(p->out, text, INDENT, INDENT);
    fputs("\n\n", p->out);
}

static void say_sight(void *ctx, bool missed, const char *text)
{
    (void)missed;
    asym_page_say(ctx, INDENT, INDENT, "%s", text);
}

static void summary_block(const struct asym_page *p)
{
    const struct asym_report *r = p->report;
    const struct asym_sight *s = &r->snapshot->sight;
    size_t steered = 0, narrowed = 0;
    for (size_t i = 0; i < r->plan->n_tasks; i++) {
        const struct asym_plan_task *t = &r->plan->tasks[i];
        steered += t->target >= 0;
        narrowed += t->target >= 0 && !t->moves && asym_page_changes(r, i);
    }
    char text[256];
    snprintf(text, sizeof text, "%zu of %zu thread%s would move (*)", r->plan->n_moves, steered, plural(steered));
    asym_columns_cell(p->out, text, 0, p->colour ? ASYM_STYLE_HEADING : NULL);
    size_t at = asym_columns_of(text);
    text[0] = '\0';
    if (narrowed > 0)
        snprintf(text, sizeof text, ", %zu would only get another mask or nice (+)", narrowed);
    at = asym_columns_wrap(p->out, text, at, INDENT);
    asym_columns_wrap(p->out, "; nothing was changed.", at, INDENT);
    fputc('\n', p->out);
    asym_page_say(p, INDENT, INDENT,
                  "Saw %" PRIu32 " process%s and followed %" PRIu32
                  " thread%s for %.0f ms, at %.2f ms of CPU time a look.",
                  s->n_procs, s->n_procs == 1 ? "" : "es", s->n_threads, plural(s->n_threads), r->observed_ms,
                  r->scan_cpu_us / 1000);
    asym_sight_each(s, say_sight, (void *)(uintptr_t)p);
}

int asym_report_text(const struct asym_report *report, FILE *out, bool colour)
{
    const struct asym_page p = {.report = report, .out = out, .colour = colour};
    machine_block(&p);
    policy_block(&p);
    asym_page_apps(&p);
    summary_block(&p);
    return ferror(out) ? -EIO : 0;
}
