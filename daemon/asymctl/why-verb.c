/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl why. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "app/command-line.h"
#include "base/macro.h"
#include "base/text.h"
#include "daemon/asymctl/process-name.h"
#include "daemon/asymctl/wording.h"
#include "report/json.h"
#include "report/report-table.h"

/* The most processes of a name that are explained as JSON, and of which asymctl asks to which application they belong. */
enum { MOST_EXPLAINED = 10, MOST_ASKED = 64 };

struct arguments {
    bool json;
};

static const struct asym_arg args[] = {
    ASYM_ARG("--json", BOOL, NULL, json, .help = "print JSON"),
    {.option = {.key = NULL}},
};

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

static void print_decision(const struct asym_client_decision *d, const struct asym_terminal *terminal)
{
    char time[ASYM_UNITS_SIZE], cpus[ASYM_DECISION_CPUS], line[800];
    const int indent = snprintf(line, sizeof line, "  %s %7" PRIu32 " %s ", asym_units_time_ms(d->time, time), d->tid,
                                asym_decision_cpus(d->from, d->to, cpus));
    fputs(line, terminal->out);
    asym_decision_what(d->what, d->reason, line, sizeof line);
    asym_columns_wrap(terminal, line, (size_t)indent, (size_t)indent);
    fputc('\n', terminal->out);
}

static int print_why(const struct asym_client_explanation *why, const struct asym_terminal *terminal)
{
    print_sentences(why, terminal);
    print_evidence(why, terminal);
    if (why->n_decisions > 0)
        fprintf(terminal->out,
                "\nThe last decision%s, the newest first:\n  TIME             TID " ASYM_DECISION_HEADINGS "\n",
                why->n_decisions == 1 ? "" : "s");
    for (size_t i = 0; i < why->n_decisions; i++)
        print_decision(&why->decisions[i], terminal);
    return ferror(terminal->out) ? -EIO : 0;
}

static int explain(struct asym_client *client, uint32_t id, struct asym_error *err)
{
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    ASYM_CLEANUP(asym_client_explanation_done) struct asym_client_explanation why = {.n_sentences = 0};
    const int r = asym_client_explain(client, id, &why, err);
    return r < 0 ? asym_verb_call_failed(r, err) : asym_verb_reported(print_why(&why, &terminal));
}

/* Explains the processes; one that has ended since asymd listed them is left out, if there are others. */
static int explain_json(struct asym_client *client, const uint32_t *ids, size_t n, struct asym_error *err)
{
    json_t *list = json_array();
    int r = 0;
    for (size_t i = 0; i < n; i++) {
        ASYM_AUTO_JSON json_t *why = NULL;
        r = asym_client_get_report(client, "why", ids[i], &why, err);
        if (r < 0 && (r != -ESRCH || n == 1))
            break;
        if (r >= 0)
            asym_json_append(&list, asym_json_escape(json_array_get(json_object_get(why, "explanations"), 0)));
        r = 0;
    }
    if (r >= 0)
        return asym_verb_reported(
            asym_json_print(json_pack("{s:s, s:o}", "schema", "asymctl.why/1", "explanations", list), stdout));
    json_decref(list);
    return asym_verb_call_failed(r, err);
}

/*
 * Returns the one process to explain: the processes may all be of one application, or asymd may know one of them only, because the
 * others sleep. NULL: there is no such process.
 */
static const struct asym_named_process *find_single(struct asym_client *client,
                                                    const struct asym_named_processes *named)
{
    const struct asym_named_process *one = named->n == 1 ? &named->process[0] : NULL;
    ASYM_CLEANUP(asym_client_app_done) struct asym_client_app first = {.pid = 0};
    struct asym_error err;
    for (size_t i = 0; named->n > 1 && i < ASYM_MIN(named->n, (size_t)MOST_ASKED); i++) {
        ASYM_CLEANUP(asym_client_app_done) struct asym_client_app app = {.pid = 0};
        if (asym_client_get_application(client, named->process[i].pid, &app, &err) < 0)
            continue;
        if (one && (app.pid != first.pid || strcmp(app.cgroup, first.cgroup) != 0))
            return NULL;
        if (one)
            continue;
        one = &named->process[i];
        first = app;
        app = (struct asym_client_app){.pid = 0};
    }
    return one;
}

static int explain_named(struct asym_client *client, const struct asym_named_processes *named, const char *name,
                         bool json, struct asym_error *err)
{
    const struct asym_named_process *one = find_single(client, named);
    uint32_t ids[MOST_EXPLAINED];
    size_t n = 0;
    if (!json)
        return one ? explain(client, one->pid, err)
                   : asym_verb_reported(asym_named_processes_list(named, name, "why", stdout));
    for (size_t i = 0; !one && i < ASYM_MIN(named->n, (size_t)MOST_EXPLAINED); i++)
        ids[n++] = named->process[i].pid;
    if (one)
        ids[n++] = one->pid;
    return explain_json(client, ids, n, err);
}

static int explain_name(struct asym_client *client, const char *name, bool json, struct asym_error *err)
{
    ASYM_CLEANUP(asym_named_processes_done) struct asym_named_processes named = {.process = NULL};
    const int status = asym_verb_named_processes("why", name, &named);
    return status == ASYM_EXIT_DONE ? explain_named(client, &named, name, json, err) : status;
}

static int why(const void *parsed, char **operands)
{
    ASYM_CLEANUP(asym_client_close_p) struct asym_client *client = NULL;
    const struct arguments *a = parsed;
    struct asym_error err = {""};
    uint32_t id;
    const int status = asym_verb_connect(&client);
    if (status != ASYM_EXIT_DONE)
        return status;
    if (!asym_verb_is_pid(operands[0], &id))
        return explain_name(client, operands[0], a->json, &err);
    return a->json ? explain_json(client, &id, 1, &err) : explain(client, id, &err);
}

const struct asym_verb asym_verb_why = {
    .name = "why",
    .args = args,
    .args_size = sizeof(struct arguments),
    .operands = ASYM_OPERANDS_MUST,
    .usage = "PID|NAME",
    .needs = "a PID or the name of a program",
    .summary = "explain why a program or thread runs where it does",
    .help = "Says in sentences how asymd sees the process or thread: its class, where it may run, and what would\n"
            "change that; then the evidence, and the last ten decisions. A NAME is that of a program, or a\n"
            "part of a command line. If several processes that run have it, the verb lists them with their PIDs;\n"
            "with --json it explains ten of them.\n",
    .run = why,
};
