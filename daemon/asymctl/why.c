/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/why.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "daemon/asymctl/decision-text.h"
#include "daemon/asymctl/units.h"
#include "daemon/asymctl/user-name.h"
#include "report/json.h"

/* asymctl asks for the decisions of at most this many threads of a process, because each is a call. */
#define MOST_THREADS 16

/* Inserts a decision in the order of time; the oldest falls off the end. */
static void insert(struct asym_why *w, uint32_t tid, const struct asym_client_decision *d)
{
    size_t at = w->n_last;
    while (at > 0 && w->last[at - 1].decision->time < d->time)
        at--;
    if (at == ASYM_WHY_DECISIONS)
        return;
    const size_t behind = ASYM_MIN(w->n_last, ASYM_WHY_DECISIONS - 1) - at;
    memmove(&w->last[at + 1], &w->last[at], behind * sizeof *w->last);
    w->last[at] = (struct asym_why_decision){tid, d};
    w->n_last = ASYM_MIN(w->n_last + 1, (size_t)ASYM_WHY_DECISIONS);
}

/* A thread that has ended meanwhile has no decisions. */
static int ask_thread(struct asym_client *client, uint32_t tid, struct asym_why *w, struct asym_error *err)
{
    struct asym_client_thread *t = &w->threads[w->n_threads];
    const int r = asym_client_get_thread(client, tid, t, err);
    if (r < 0)
        return r == -ESRCH ? 0 : r;
    w->n_threads++;
    for (size_t i = 0; i < t->n_decisions; i++)
        insert(w, tid, &t->decisions[i]);
    return 0;
}

/* id may be a thread, of which asymd knows no application of that number. */
static int ask_threads(struct asym_client *client, struct asym_why *w, struct asym_error *err)
{
    ASYM_CLEANUP(asym_client_app_done) struct asym_client_app app = {.pid = 0};
    int r = asym_client_get_application(client, w->id, &app, err);
    if (r < 0 && r != -ESRCH)
        return r;
    if (r < 0 || app.n_own_threads == 0)
        return ask_thread(client, w->id, w, err);
    r = 0;
    for (size_t i = 0; r >= 0 && i < ASYM_MIN(app.n_own_threads, (size_t)MOST_THREADS); i++)
        r = ask_thread(client, app.own_threads[i].tid, w, err);
    return r;
}

int asym_why_ask(struct asym_client *client, uint32_t id, struct asym_why *ret, struct asym_error *err)
{
    struct asym_why w = {.id = id, .threads = calloc(MOST_THREADS, sizeof *w.threads)};
    int r = w.threads ? asym_client_explain(client, id, &w.explanation, err) : asym_fail(err, -ENOMEM, "no memory");
    if (r >= 0)
        r = ask_threads(client, &w, err);
    if (r < 0)
        asym_why_done(&w);
    else
        *ret = w;
    return r;
}

void asym_why_done(struct asym_why *why)
{
    asym_client_explanation_done(&why->explanation);
    for (size_t i = 0; i < why->n_threads; i++)
        asym_client_thread_done(&why->threads[i]);
    free(why->threads);
    *why = (struct asym_why){.id = 0};
}

static void print_sentences(const struct asym_client_explanation *e, const struct asym_terminal *terminal)
{
    char buf[8192];
    struct asym_text all = asym_text_in(buf, sizeof buf);
    for (size_t i = 0; i < e->n_sentences; i++) {
        char named[2048], text[2048];
        asym_name_user_of_rule(e->sentences[i], named, sizeof named);
        asym_text_add(&all, "%s%s", i > 0 ? " " : "", asym_text_escape(named, strlen(named), text, sizeof text));
    }
    asym_columns_wrap(terminal, buf, 0, 0);
    fputc('\n', terminal->out);
}

static void print_evidence(const struct asym_client_explanation *e, const struct asym_terminal *terminal)
{
    size_t width = 0;
    char name[256], value[2048];
    for (size_t i = 0; i < e->n_evidence; i++)
        width = asym_columns_wider(
            width, asym_text_escape(e->evidence[i].name, strlen(e->evidence[i].name), name, sizeof name));
    width = ASYM_MIN(width, (size_t)30) + 2;
    fputs(e->n_evidence > 0 ? "\n" : "", terminal->out);
    for (size_t i = 0; i < e->n_evidence; i++) {
        const struct asym_client_evidence *p = &e->evidence[i];
        char cut[256];
        asym_text_escape(p->name, strlen(p->name), name, sizeof name);
        asym_text_escape(p->value, strlen(p->value), value, sizeof value);
        fputs("  ", terminal->out);
        asym_columns_cell(terminal->out, asym_columns_cut(name, width - 2, cut, sizeof cut), width, NULL);
        asym_columns_wrap(terminal, value, width + 2, width + 2);
        fputc('\n', terminal->out);
    }
}

static void print_decision(const struct asym_why_decision *last, const struct asym_terminal *terminal)
{
    const struct asym_client_decision *d = last->decision;
    char time[ASYM_UNITS_SIZE], cpus[ASYM_DECISION_CPUS], line[800];
    const int indent = snprintf(line, sizeof line, "  %s %7" PRIu32 " %s ", asym_units_time_ms(d->time, time),
                                last->tid, asym_decision_cpus(d->from, d->to, cpus));
    fputs(line, terminal->out);
    asym_decision_what(d->what, d->reason, line, sizeof line);
    asym_columns_wrap(terminal, line, (size_t)indent, (size_t)indent);
    fputc('\n', terminal->out);
}

int asym_why_text(const struct asym_why *why, const struct asym_terminal *terminal)
{
    print_sentences(&why->explanation, terminal);
    print_evidence(&why->explanation, terminal);
    if (why->n_last > 0)
        fprintf(terminal->out,
                "\nThe last decision%s, the newest first:\n  TIME             TID " ASYM_DECISION_HEADINGS "\n",
                why->n_last == 1 ? "" : "s");
    for (size_t i = 0; i < why->n_last; i++)
        print_decision(&why->last[i], terminal);
    return ferror(terminal->out) ? -EIO : 0;
}

static json_t *text_json(const char *text)
{
    return asym_json_bytes(text, strlen(text));
}

json_t *asym_why_json(const struct asym_why *why)
{
    json_t *sentences = json_array(), *evidence = json_array(), *decisions = json_array();
    for (size_t i = 0; i < why->explanation.n_sentences; i++)
        asym_json_append(&sentences, text_json(why->explanation.sentences[i]));
    for (size_t i = 0; i < why->explanation.n_evidence; i++)
        asym_json_append(&evidence, json_pack("{s:o, s:o}", "name", text_json(why->explanation.evidence[i].name),
                                              "value", text_json(why->explanation.evidence[i].value)));
    for (size_t i = 0; i < why->n_last; i++) {
        const struct asym_client_decision *d = why->last[i].decision;
        asym_json_append(&decisions,
                         json_pack("{s:I, s:I, s:i, s:i, s:o, s:o, s:o}", "time_us", (json_int_t)d->time, "tid",
                                   (json_int_t)why->last[i].tid, "from", (int)d->from, "to", (int)d->to, "what",
                                   text_json(d->what), "class", text_json(d->class), "reason", text_json(d->reason)));
    }
    return json_pack("{s:I, s:o, s:o, s:o}", "id", (json_int_t)why->id, "sentences", sentences, "evidence", evidence,
                     "decisions", decisions);
}
