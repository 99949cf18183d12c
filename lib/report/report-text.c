/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The dry run as text: the machine, the policy and the summary. report-apps.c prints the applications. */
#include "report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"

#define INDENT 2

static void say_here(const struct asym_page *p, const char *text)
{
    asym_columns_line(p->terminal, text, 13, 13);
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static void machine_line(const struct asym_page *p, const struct asym_machine *m)
{
    char text[400], smt[48] = "", list[96], isolated[112] = "";
    unsigned cpus = asym_mask_count(&m->usable);
    if (m->n_cores < cpus)
        snprintf(smt, sizeof smt, " on %u cores (SMT)", m->n_cores);
    if (!asym_mask_empty(&m->isolated))
        snprintf(isolated, sizeof isolated, "; isolated %s", asym_mask_format_list(&m->isolated, list, sizeof list));
    snprintf(text, sizeof text, "%u CPU%s%s, %u last-level cache%s, %u NUMA node%s; %u fast, %u slow%s", cpus,
             plural(cpus), smt, m->n_llcs, plural(m->n_llcs), m->n_nodes, plural(m->n_nodes), asym_mask_count(&m->fast),
             asym_mask_count(&m->slow), isolated);
    asym_page_heading(p, "Machine");
    say_here(p, text);
}

/* The cells of the line of a core type. */
struct type_cells {
    char name[64], cpus[64], speed[16], origin[64];
};

static void fill_type(const struct asym_page *p, const struct asym_core_type *type, size_t columns,
                      struct type_cells *c)
{
    char name[4 * sizeof type->name + 1];
    asym_text_escape(type->name, strnlen(type->name, sizeof type->name), name, sizeof name);
    asym_columns_cut(name, 16, c->name, sizeof c->name);
    asym_columns_cpus(&type->cpus, columns, c->cpus, sizeof c->cpus);
    snprintf(c->speed, sizeof c->speed, "speed %.2f", type->speed);
    const bool is_assumed = type->origin == ASYM_ORIGIN_CONFIG && p->report->assumed_slow;
    if (type->origin != ASYM_ORIGIN_NONE)
        snprintf(c->origin, sizeof c->origin, "from %s",
                 is_assumed ? "--slow or the configuration" : asym_origin_name(type->origin));
    else
        snprintf(c->origin, sizeof c->origin, "%s",
                 p->report->assumed_slow ? "not slowed" : "no source tells its CPUs apart");
}

/* Prints a line for each core type. A list of CPUs that has no room is cut. */
static void type_lines(const struct asym_page *p, const struct asym_machine *m)
{
    enum { CPUS_LEAST = 12, CPUS_MOST = 28, GAP = 2 };
    struct type_cells c;
    size_t name = 0, speed = 0, origin = 0, cpus = 0;
    for (unsigned t = 0; t < m->n_types; t++) {
        fill_type(p, &m->types[t], CPUS_LEAST, &c);
        name = asym_columns_wider(name, c.name);
        speed = asym_columns_wider(speed, c.speed);
        origin = asym_columns_wider(origin, c.origin);
    }
    const size_t head = INDENT + name + GAP + strlen("CPUs "), rest = head + 2 * GAP + speed + origin;
    const size_t room = p->terminal->columns > rest ? p->terminal->columns - rest : 0;
    const size_t most = ASYM_MIN(ASYM_MAX(room, (size_t)CPUS_LEAST), (size_t)CPUS_MOST);
    for (unsigned t = 0; t < m->n_types; t++) {
        fill_type(p, &m->types[t], most, &c);
        cpus = asym_columns_wider(cpus, c.cpus);
    }
    for (unsigned t = 0; t < m->n_types; t++) {
        fill_type(p, &m->types[t], most, &c);
        fprintf(p->out, "%*s", INDENT, "");
        asym_columns_cell(p->out, c.name, name + GAP, NULL);
        asym_columns_cell(p->out, asym_mask_count(&m->types[t].cpus) == 1 ? "CPU" : "CPUs", strlen("CPUs "), NULL);
        asym_columns_cell(p->out, c.cpus, cpus + GAP, NULL);
        asym_columns_cell(p->out, c.speed, speed + GAP, NULL);
        asym_columns_line(p->terminal, c.origin, head + cpus + speed + 2 * GAP, 2 * INDENT);
    }
}

static void notes_lines(const struct asym_page *p, const struct asym_topology_notes *notes, bool all)
{
    for (size_t i = 0; notes && i < notes->n; i++) {
        char text[4 * sizeof notes->note[i].text + 1];
        const struct asym_speed_note *note = &notes->note[i];
        asym_text_escape(note->text, strnlen(note->text, sizeof note->text), text, sizeof text);
        if (note->used || (all && note->there))
            asym_columns_say(p->terminal, INDENT, 2 * INDENT, "%s%s", note->used ? "" : "not used: ", text);
    }
}

static void favoured_lines(const struct asym_page *p, const struct asym_machine *m,
                           const struct asym_topology_notes *notes)
{
    char cpus[96];
    for (unsigned t = 0; t < m->n_types; t++)
        if (asym_describe_favoured(m, t, cpus, sizeof cpus))
            asym_columns_say(p->terminal, INDENT, 2 * INDENT, "favoured CPUs of type %s: %s%s%s", m->types[t].name,
                             cpus, notes && notes->favour ? ", by " : "", notes && notes->favour ? notes->favour : "");
}

static void machine_block(const struct asym_page *p)
{
    const struct asym_report *r = p->report;
    const struct asym_machine *m = r->snapshot->machine;
    const struct asym_alike *alike = asym_describe_alike(m, r->notes);
    const bool is_asymmetric = asym_machine_is_asymmetric(m);
    char l3[256];
    machine_line(p, m);
    type_lines(p, m);
    favoured_lines(p, m, r->notes);
    notes_lines(p, r->notes, !is_asymmetric);
    if (asym_describe_l3(m, l3, sizeof l3))
        asym_columns_say(p->terminal, INDENT, 2 * INDENT, "%s (this makes no other core type)", l3);
    if (alike)
        asym_columns_say(p->terminal, INDENT, INDENT, "asymd prefers no CPU: %s.%s%s%s", alike->why,
                         *alike->remedy ? " Remedy: " : "", alike->remedy, *alike->remedy ? "." : "");
    else if (!is_asymmetric)
        asym_columns_say(p->terminal, INDENT, INDENT, "asymd can choose, but %s.", ASYM_NO_SLOW_CPU);
    if (r->assumed_slow)
        asym_columns_say(p->terminal, INDENT, INDENT, "This is a what-if: no CPU was slowed.");
    fputc('\n', p->out);
}

struct settings_of {
    const struct asym_report *report;
    struct asym_text text;
    char own[64]; /* the section of the policy */
};

static int add_setting(void *ctx, const char *section, const struct asym_option *row, const char *value,
                       const char *origin)
{
    struct settings_of *s = ctx;
    const struct asym_settings *settings = s->report->settings;
    char here[96];
    if (strcmp(section, "classify") != 0 && strcmp(section, "enforce") != 0 && strcmp(section, s->own) != 0)
        return 0;
    if (strcmp(value, "auto") == 0 && strcmp(row->key, "hp_threshold") == 0) {
        snprintf(here, sizeof here, "%u", asym_hp_threshold(&settings->classify, s->report->snapshot->machine));
        value = here;
    } else if (strcmp(value, "auto") == 0 && strcmp(row->key, "pin") == 0) {
        value = asym_pin_name(s->report->policy->pin);
    }
    asym_text_add(&s->text, "%s%s=%s", s->text.used ? "  " : "", row->key, value);
    return 0;
}

static void policy_block(const struct asym_page *p)
{
    const struct asym_report *r = p->report;
    char line[512], settings[2048], text[2 * sizeof settings];
    struct settings_of s = {.report = r, .text = asym_text_in(settings, sizeof settings)};
    snprintf(line, sizeof line, "%s: %s (%s)", r->policy->name, r->policy->summary, r->policy->source);
    asym_page_heading(p, "Policy");
    say_here(p, line);
    if (r->policy_why)
        asym_columns_say(p->terminal, INDENT, INDENT, "Chosen by auto: %s.", r->policy_why);
    snprintf(s.own, sizeof s.own, "policy.%s", r->policy->name);
    asym_settings_each(r->settings, add_setting, &s);
    asym_text_escape(settings, s.text.used, text, sizeof text);
    fprintf(p->out, "%*s", INDENT, "");
    asym_columns_wrap(p->terminal, text, INDENT, INDENT);
    fputs("\n\n", p->out);
}

static void say_coverage(void *ctx, bool missed, const char *text)
{
    asym_columns_say(((const struct asym_page *)ctx)->terminal, INDENT, INDENT, "%s", text);
}

static void summary_block(const struct asym_page *p)
{
    const struct asym_report *r = p->report;
    const struct asym_coverage *s = &r->snapshot->coverage;
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
        snprintf(text, sizeof text, ", %zu %s, with other allowed CPUs or nice (+)", narrowed,
                 narrowed == 1 ? "stays where it is" : "stay where they are");
    at = asym_columns_wrap(p->terminal, text, at, INDENT);
    asym_columns_wrap(p->terminal, "; asymd changed nothing.", at, INDENT);
    fputc('\n', p->out);
    asym_columns_say(p->terminal, INDENT, INDENT,
                     "Saw %" PRIu32 " process%s and followed %" PRIu32
                     " thread%s for %.0f ms, with %.2f ms of CPU time for each sample.",
                     s->n_procs, s->n_procs == 1 ? "" : "es", s->n_threads, plural(s->n_threads), r->observed_ms,
                     r->scan_cpu_us / 1000);
    asym_coverage_each(s, say_coverage, (void *)(uintptr_t)p);
}

int asym_report_text(const struct asym_report *report, const struct asym_terminal *terminal)
{
    const struct asym_page p = {
        .report = report, .terminal = terminal, .out = terminal->out, .colour = terminal->colour};
    machine_block(&p);
    policy_block(&p);
    asym_page_apps(&p);
    summary_block(&p);
    return ferror(p.out) ? -EIO : 0;
}
