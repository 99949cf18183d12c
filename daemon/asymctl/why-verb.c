/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl why. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "app/terminal.h"
#include "base/macro.h"
#include "base/text.h"
#include "daemon/asymctl/service-verb.h"
#include "daemon/asymctl/why.h"
#include "report/json.h"
#include "report/report-table.h"

/* The most applications of a name that are listed, or explained as JSON. */
#define MOST_MATCHES 10

struct arguments {
    bool json;
};

static const struct asym_arg args[] = {
    ASYM_ARG("--json", BOOL, NULL, json, .help = "print JSON"),
    {.option = {.key = NULL}},
};

/* The applications of a name. */
struct matches {
    struct asym_client_apps apps; /* of which app borrows */
    const struct asym_client_app *app[MOST_MATCHES];
    size_t n, n_all;
};

static void matches_done(struct matches *m)
{
    asym_client_apps_done(&m->apps);
}

static int find(struct asym_client *client, const char *name, struct matches *m, struct asym_error *err)
{
    char text[128];
    const int r = asym_client_list_applications(client, &m->apps, err);
    for (size_t i = 0; r >= 0 && i < m->apps.n; i++) {
        /* The kernel cuts the name of a program to 15 bytes. */
        if (strncmp(m->apps.app[i].comm, name, 15) != 0)
            continue;
        if (m->n < MOST_MATCHES)
            m->app[m->n++] = &m->apps.app[i];
        m->n_all++;
    }
    if (r < 0 || m->n > 0)
        return r;
    return asym_fail(err, -ESRCH, "no program %s has threads that run now: give the PID of the process",
                     asym_text_escape(name, strlen(name), text, sizeof text));
}

static int add_match(struct asym_report_table *table, const struct asym_client_app *app)
{
    char pid[16], uid[16], runnable[32], text[1024], what[1100];
    snprintf(pid, sizeof pid, "%" PRIu32, app->pid);
    snprintf(uid, sizeof uid, "%" PRIu32, app->uid);
    snprintf(runnable, sizeof runnable, "%.1f", app->runnable);
    const char *why = app->pid > 0 ? app->reason : app->cgroup;
    snprintf(what, sizeof what, "%s%s", app->pid > 0 ? "" : "cgroup ",
             asym_text_escape(why, strlen(why), text, sizeof text));
    const char *const cells[] = {app->pid > 0 ? pid : "-", uid, runnable, what};
    return asym_report_table_add(table, cells);
}

/* An application that is a cgroup has no PID of its own, but its processes have. */
static void print_next(const struct matches *m, const struct asym_terminal *terminal)
{
    const struct asym_client_app *process = NULL, *cgroup = NULL;
    char text[1200], path[1024];
    for (size_t i = 0; i < m->n; i++)
        *(m->app[i]->pid > 0 ? &process : &cgroup) = m->app[i];
    if (process) {
        snprintf(text, sizeof text, "Give the PID of one: asymctl why %" PRIu32, process->pid);
        asym_columns_wrap(terminal, text, 0, 2);
        fputc('\n', terminal->out);
    }
    if (cgroup) {
        snprintf(text, sizeof text,
                 "asymd treats a cgroup as one program. Give the PID of a process of it, from the file "
                 "/sys/fs/cgroup%s/cgroup.procs",
                 asym_text_escape(cgroup->cgroup, strlen(cgroup->cgroup), path, sizeof path));
        asym_columns_wrap(terminal, text, 0, 2);
        fputc('\n', terminal->out);
    }
}

/* Says which programs have the name, and what to type next. */
static int list_matches(const struct matches *m, const char *name)
{
    static const struct asym_report_table_column columns[] = {{.heading = "PID", .right = true},
                                                              {.heading = "UID", .right = true, .drop = 1},
                                                              {.heading = "RUNNABLE", .right = true, .drop = 2},
                                                              {.heading = "REASON", .cut = 12}};
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    ASYM_CLEANUP(asym_report_table_done)
    struct asym_report_table table = {.columns = columns, .n_columns = ASYM_LENGTH(columns)};
    char text[128];
    int r = 0;
    for (size_t i = 0; r >= 0 && i < m->n; i++)
        r = add_match(&table, m->app[i]);
    if (r < 0)
        return r;
    printf("%zu program%s the name %s:\n", m->n_all, m->n_all == 1 ? " has" : "s have",
           asym_text_escape(name, strlen(name), text, sizeof text));
    r = asym_report_table_print(&table, &terminal, 0, 0, true);
    if (m->n_all > m->n)
        printf("and %zu more: asymctl top shows them all\n", m->n_all - m->n);
    print_next(m, &terminal);
    return r;
}

static int explain(struct asym_client *client, uint32_t id, struct asym_error *err)
{
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    ASYM_CLEANUP(asym_why_done) struct asym_why why = {.id = 0};
    const int r = asym_why_ask(client, id, &why, err);
    return r < 0 ? asym_verb_call_failed(r, err) : asym_verb_reported(asym_why_text(&why, &terminal));
}

/* Explains the processes; one that has ended since asymd listed them is left out, if there are others. */
static int explain_json(struct asym_client *client, const uint32_t *ids, size_t n, struct asym_error *err)
{
    json_t *list = json_array();
    int r = 0;
    for (size_t i = 0; i < n; i++) {
        ASYM_CLEANUP(asym_why_done) struct asym_why why = {.id = 0};
        r = asym_why_ask(client, ids[i], &why, err);
        if (r < 0 && (r != -ESRCH || n == 1))
            break;
        if (r >= 0)
            asym_json_append(&list, asym_why_json(&why));
        r = 0;
    }
    if (r >= 0)
        return asym_verb_reported(
            asym_json_print(json_pack("{s:s, s:o}", "schema", "asymctl.why/1", "explanations", list), stdout));
    json_decref(list);
    return asym_verb_call_failed(r, err);
}

static int explain_name(struct asym_client *client, const char *name, bool json, struct asym_error *err)
{
    ASYM_CLEANUP(matches_done) struct matches m = {.n = 0};
    uint32_t ids[MOST_MATCHES];
    size_t n = 0;
    const int r = find(client, name, &m, err);
    if (r < 0)
        return asym_verb_call_failed(r, err);
    for (size_t i = 0; i < m.n; i++)
        if (m.app[i]->pid > 0)
            ids[n++] = m.app[i]->pid;
    if (json)
        return explain_json(client, ids, n, err);
    return m.n_all == 1 && n == 1 ? explain(client, ids[0], err) : asym_verb_reported(list_matches(&m, name));
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
            "change that; then the evidence, and the last ten decisions. A NAME stands for the program of that name\n"
            "with threads that run now. If several have it, the verb lists them with their PIDs; with --json it\n"
            "explains ten of them.\n",
    .run = why,
};
