/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints plans, and the comparison of policies over a record. */
#include "experiment/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/mask.h"
#include "base/text.h"
#include "core/classify.h"
#include "report/columns.h"
#include "report/json.h"

static const char *mask_text(const struct asym_mask *m, char *buf, size_t size)
{
    return asym_mask_empty(m) ? "none" : asym_mask_format_list(m, buf, size);
}

static void print_task(FILE *out, const struct asym_snapshot *s, const struct asym_plan *plan, size_t i)
{
    const struct asym_task *task = &s->tasks[i];
    const struct asym_plan_task *p = &plan->tasks[i];
    char comm[64], cpus[ASYM_MASK_LIST_MAX], why[512];
    fprintf(out, "thread %d/%d %s: %s, ", task->id.tgid, task->id.tid, asym_text_show(task->comm, comm, sizeof comm),
            asym_classify_word(&plan->apps[s->procs[task->proc].app], p->class == ASYM_CLASS_SP));
    if (p->target >= 0)
        fprintf(out, "CPU %d%s, ", p->target, p->exclusive ? " alone" : "");
    fprintf(out, "may run on %s, nice %d%s%s: %s\n", mask_text(p->mask, cpus, sizeof cpus), p->nice,
            p->moves ? ", moves" : "", p->counted ? ", is counted" : "",
            asym_reason_text(p->reason, p->figure, why, sizeof why));
}

static void print_action(FILE *out, const struct asym_action *a)
{
    char from[ASYM_MASK_LIST_MAX], to[ASYM_MASK_LIST_MAX];
    fprintf(out, "%s %d/%d: %s -> %s%s, nice %d -> %d", asym_action_name(a->kind), a->id.tgid, a->id.tid,
            mask_text(&a->expect, from, sizeof from), mask_text(&a->mask, to, sizeof to),
            a->full_cpuset ? " (all)" : "", a->expect_nice, a->nice);
    if (a->transit_cpu > 0)
        fprintf(out, ", first on CPU %u", a->transit_cpu - 1);
    fputc('\n', out);
}

int asym_replay_print_plan(void *out, size_t number, const struct asym_snapshot *s, const struct asym_plan *plan,
                           const struct asym_action *actions, size_t n_actions)
{
    char why[512];
    fprintf(out, "plan %zu, %" PRIu64 " us: %zu applications, %zu threads, %zu moves, %zu actions\n", number, s->now,
            plan->n_apps, plan->n_tasks, plan->n_moves, n_actions);
    for (size_t i = 0; i < plan->n_apps; i++) {
        const struct asym_plan_app *a = &plan->apps[i];
        const char *excluded = a->excluded ? asym_reason_text(a->excluded, a->figure, why, sizeof why) : "";
        fprintf(out, "application %d: %s, %.4f runnable%s%s\n", s->apps[i].id.tgid, asym_classify_word(a, false),
                a->runnable, *excluded ? "; " : "", excluded);
    }
    for (size_t i = 0; i < plan->n_tasks; i++)
        print_task(out, s, plan, i);
    for (size_t i = 0; i < n_actions; i++)
        print_action(out, &actions[i]);
    return ferror(out) ? -EIO : 0;
}

/* The share of the running time on fast CPUs: of a class, or of all with class < 0. NAN: none ran. */
static double fast_share(const struct asym_replay_tally *t, int class)
{
    double running = 0, fast = 0;
    for (int c = 0; c < ASYM_REPLAY_CLASSES; c++) {
        running += class < 0 || c == class ? t->running[c] : 0;
        fast += class < 0 || c == class ? t->fast[c] : 0;
    }
    return running > 0 ? fast / running : NAN;
}

static const struct {
    int class;
    const char *key;
} shares[] = {
    {ASYM_CLASS_SP, "SP"},
    {ASYM_CLASS_MP, "MP"},
    {ASYM_CLASS_HP, "HP"},
    {-1, "all"},
};

static void add_figure(struct asym_report_table *table, const char *format, double figure)
{
    char text[32];
    snprintf(text, sizeof text, format, figure);
    asym_report_table_add(table, isnan(figure) ? "-" : text);
}

static void add_tally(struct asym_report_table *table, const struct asym_replay_tally *t)
{
    const double seconds = t->seconds > 0 ? t->seconds : NAN;
    /* The plans of none change nothing that asymd recorded. */
    asym_report_table_add(table, strcmp(t->policy->name, "none") == 0 ? "seen" : t->policy->name);
    add_figure(table, "%.0f", (double)t->steered);
    add_figure(table, "%.1f", (double)t->moves / seconds);
    add_figure(table, "%.1f", (double)t->changes / seconds);
    for (size_t i = 0; i < ASYM_LENGTH(shares); i++)
        add_figure(table, "%.1f %%", fast_share(t, shares[i].class) * 100);
}

static int print_tallies(const struct asym_replay_report *r, const struct asym_terminal *terminal)
{
    /* The last ones are in the order of shares: the share of the running time on fast CPUs, by class. */
    static const struct asym_report_table_column columns[] = {
        {.heading = "policy"},
        {.heading = "steered", .drop = 1},
        {.heading = "moves/s", .drop = 2},
        {.heading = "sets/s", .drop = 3},
        {.heading = "fast: phase"},
        {.heading = "mildly"},
        {.heading = "highly"},
        {.heading = "all"},
    };
    struct asym_report_table table = {.columns = columns, .n_columns = ASYM_LENGTH(columns)};
    for (size_t i = 0; i < r->n_tallies; i++)
        add_tally(&table, &r->tallies[i]);
    fputc('\n', terminal->out);
    const int n = asym_report_table_print(&table, terminal, 0, 0, true);
    asym_report_table_done(&table);
    return n;
}

static void print_check(const struct asym_terminal *terminal, const struct asym_replay_report *r)
{
    char text[512], version[256];
    const struct asym_replay_check *c = r->check;
    if (c->plans == 0)
        snprintf(text, sizeof text, "The record has no plans to compare with.");
    else if (c->same == c->plans)
        snprintf(text, sizeof text, "Made again under %.60s: all %zu plans are those of the record, byte for byte.",
                 r->head->policy, c->plans);
    else
        snprintf(
            text, sizeof text,
            "Made again under %.60s: %zu of %zu plans are those of the record; the first other one is plan %zu. This "
            "asymctl plans otherwise than the asymd %.60s that recorded.",
            r->head->policy, c->same, c->plans, c->first_diff,
            asym_text_show(r->head->version, version, sizeof version));
    fputc('\n', terminal->out);
    asym_columns_line(terminal, text, 0, 0);
}

static void print_sentence(const struct asym_terminal *terminal, const char *text)
{
    char shown[2048];
    asym_columns_line(terminal, asym_text_show(text, shown, sizeof shown), 0, 2);
}

int asym_replay_text(const struct asym_replay_report *r, const struct asym_terminal *terminal)
{
    const struct asym_replay_tally *first = &r->tallies[0];
    char name[512];
    asym_columns_say(
        terminal, 0, 2,
        "%.400s: %.1f s from the first of %zu snapshots to the last, %zu threads in all, recorded under %.60s",
        asym_text_show(r->name, name, sizeof name), first->seconds, first->snapshots, first->threads, r->head->policy);
    for (size_t i = 0; i < r->head->n_notes; i++)
        print_sentence(terminal, r->head->notes[i]);
    if (r->cut)
        print_sentence(terminal, r->cut);
    if (first->alike)
        print_sentence(terminal,
                       "All CPUs of the recorded machine are alike: each one counts as fast, under every policy.");
    const int n = print_tallies(r, terminal);
    if (n < 0)
        return n;
    print_check(terminal, r);
    print_sentence(terminal,
                   "The table shows what each policy would have planned for what was seen, with the running times of "
                   "the record, and the share of these on fast CPUs by class (phase: in a serial phase; mildly: "
                   "of serial and mildly parallel programs; highly: of highly parallel ones). The row seen is what ran "
                   "under the policy of the record. It does "
                   "not show how the programs would have run: on other CPUs "
                   "they would have done other work.");
    return ferror(terminal->out) ? -EIO : 0;
}

static json_t *tally_json(const struct asym_replay_tally *t)
{
    json_t *classes = json_object();
    for (size_t i = 0; i < ASYM_LENGTH(shares); i++)
        asym_json_set(&classes, shares[i].key, asym_json_number(fast_share(t, shares[i].class), 6));
    return json_pack("{s:s, s:I, s:I, s:I, s:o}", "name", t->policy->name, "steered", (json_int_t)t->steered, "moves",
                     (json_int_t)t->moves, "changes", (json_int_t)t->changes, "fast_share", classes);
}

int asym_replay_json(const struct asym_replay_report *r, FILE *out)
{
    const struct asym_replay_tally *first = &r->tallies[0];
    json_t *policies = json_array(), *notes = json_array();
    for (size_t i = 0; i < r->n_tallies; i++)
        asym_json_append(&policies, tally_json(&r->tallies[i]));
    for (size_t i = 0; i < r->head->n_notes; i++)
        asym_json_append(&notes, asym_json_text(r->head->notes[i]));
    return asym_json_print(json_pack("{s:s, s:o, s:o, s:o, s:b, s:o, s:I, s:I, s:{s:I, s:I, s:I}, s:o, s:o}", "schema",
                                     "asymctl.replay/1", "record", asym_json_shown(r->name), "recorded_under",
                                     asym_json_shown(r->head->policy), "recorded_by", asym_json_shown(r->head->version),
                                     "complete", r->cut == NULL, "seconds", asym_json_number(first->seconds, 6),
                                     "snapshots", (json_int_t)first->snapshots, "threads", (json_int_t)first->threads,
                                     "check", "plans", (json_int_t)r->check->plans, "same", (json_int_t)r->check->same,
                                     "first_different", (json_int_t)r->check->first_diff, "notes", notes, "policies",
                                     policies),
                           out);
}
