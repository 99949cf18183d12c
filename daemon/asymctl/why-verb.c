/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl why. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "app/command-line.h"
#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"
#include "daemon/asymctl/process-name.h"
#include "daemon/asymctl/wording.h"
#include "report/json.h"
#include "report/columns.h"

/* The time for which asymd measures who waits for whom, before asymctl shows it. */
#define WAITS_MEASURED (2 * ASYM_SEC)

/* The most processes of a name that are explained as JSON, and of which asymctl asks to which application they belong. */
enum { MOST_EXPLAINED = 10, MOST_ASKED = 64 };

static void print_sentences(json_t *sentences, const struct asym_terminal *terminal)
{
    char buf[8192];
    struct asym_text all = asym_text_in(buf, sizeof buf);
    json_t *sentence;
    size_t i;
    json_array_foreach(sentences, i, sentence)
    {
        const char *said = json_string_value(sentence);
        char named[2048], text[2048];
        asym_name_user_of_rule(said ? said : "", named, sizeof named);
        asym_text_add(&all, "%s%s", i > 0 ? " " : "", asym_text_show(named, text, sizeof text));
    }
    asym_columns_line(terminal, buf, 0, 0);
}

static void print_evidence(json_t *evidence, const struct asym_terminal *terminal)
{
    size_t width = 0, i;
    json_t *pair;
    char name[256], value[2048];
    json_array_foreach(evidence, i, pair)
        width = asym_columns_wider(width, asym_name_member(pair, "name", name, sizeof name));
    width = ASYM_MIN(width, (size_t)30) + 2;
    fputs(json_array_size(evidence) > 0 ? "\n" : "", terminal->out);
    json_array_foreach(evidence, i, pair)
    {
        char cut[256];
        asym_name_member(pair, "name", name, sizeof name);
        fputs("  ", terminal->out);
        asym_columns_cell(terminal->out, asym_columns_cut(name, width - 2, cut, sizeof cut), width, NULL);
        asym_columns_line(terminal, asym_name_member(pair, "value", value, sizeof value), width + 2, width + 2);
    }
}

static void print_decision(const json_t *d, const struct asym_terminal *terminal)
{
    char time[ASYM_UNITS_SIZE], cpus[ASYM_DECISION_CPUS], line[800];
    const int indent = snprintf(line, sizeof line, "  %s %7" PRId64 " %s ",
                                asym_units_time_ms((asym_usec)asym_json_get_int(d, "time_us"), time),
                                asym_json_get_int(d, "tid"), asym_decision_cpus(d, cpus));
    fputs(line, terminal->out);
    asym_decision_what(d, line, sizeof line);
    asym_columns_line(terminal, line, (size_t)indent, (size_t)indent);
}

static int print_why(const json_t *why, const struct asym_terminal *terminal)
{
    json_t *decisions = json_object_get(why, "decisions"), *decision;
    size_t i;
    print_sentences(json_object_get(why, "sentences"), terminal);
    print_evidence(json_object_get(why, "evidence"), terminal);
    if (json_array_size(decisions) > 0)
        fprintf(terminal->out,
                "\nThe last decision%s, the newest first:\n  TIME             TID " ASYM_DECISION_HEADINGS "\n",
                json_array_size(decisions) == 1 ? "" : "s");
    json_array_foreach(decisions, i, decision) print_decision(decision, terminal);
    return ferror(terminal->out) ? -EIO : 0;
}

/*
 * Ask who waits for whom, which asymd measures from the first question on. *ret: NULL where asymd does not say. Returns the time
 * after which the next question has an answer; 0: this one has.
 */
static asym_usec ask_waits(struct asym_client *client, uint32_t id, json_t **ret)
{
    struct asym_error err;
    *ret = NULL;
    if (asym_client_get_report(client, "waits", id, ret, &err) < 0 || !asym_json_get_flag(*ret, "measuring"))
        return 0;
    const asym_usec measured = (asym_usec)asym_json_get_int(*ret, "measured_us");
    return measured < WAITS_MEASURED ? WAITS_MEASURED - measured : 0;
}

/* The rest is on the screen already: the user reads it while asymd measures. */
static int print_waits(struct asym_client *client, uint32_t id, const struct asym_terminal *terminal)
{
    ASYM_AUTO_JSON json_t *waits = NULL;
    const asym_usec left = ask_waits(client, id, &waits);
    if (left > 0) {
        fputs("\nasymd measures for 2 s who waits for whom ...\n", terminal->out);
        fflush(terminal->out);
        asym_clock_sleep(left);
        json_decref(ASYM_TAKE(waits));
        ask_waits(client, id, &waits);
    }
    json_t *sentences = json_object_get(waits, "sentences"), *sentence;
    size_t i;
    fputs(left == 0 && json_array_size(sentences) > 0 ? "\n" : "", terminal->out);
    json_array_foreach(sentences, i, sentence)
    {
        const char *said = json_string_value(sentence);
        char text[2048];
        asym_columns_line(terminal, asym_text_show(said ? said : "", text, sizeof text), 0, 2);
    }
    return ferror(terminal->out) ? -EIO : 0;
}

static int explain(struct asym_client *client, uint32_t id, struct asym_error *err)
{
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    ASYM_AUTO_JSON json_t *why = NULL;
    int r = asym_client_get_report(client, "why", id, &why, err);
    if (r < 0)
        return asym_verb_call_failed(r, err);
    r = print_why(json_array_get(json_object_get(why, "explanations"), 0), &terminal);
    return asym_verb_reported(r < 0 ? r : print_waits(client, id, &terminal));
}

/* Adds to each explanation who waits for whom. asymd measures all of them in the same two seconds. */
static void add_waits(struct asym_client *client, json_t *explanations)
{
    asym_usec longest = 0;
    json_t *why, *waits;
    size_t i;
    json_array_foreach(explanations, i, why)
    {
        const asym_usec left = ask_waits(client, (uint32_t)asym_json_get_int(why, "id"), &waits);
        longest = ASYM_MAX(longest, left);
        json_decref(waits);
    }
    if (longest > 0)
        asym_clock_sleep(longest);
    json_array_foreach(explanations, i, why)
    {
        ask_waits(client, (uint32_t)asym_json_get_int(why, "id"), &waits);
        json_object_del(waits, "schema");
        if (json_array_size(json_object_get(waits, "sentences")) > 0)
            json_object_set_new(why, "waits", asym_json_escape(waits));
        json_decref(waits);
    }
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
    if (r >= 0) {
        add_waits(client, list);
        return asym_verb_reported(
            asym_json_print(json_pack("{s:s, s:o}", "schema", "asymctl.why/1", "explanations", list), stdout));
    }
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
    ASYM_AUTO_JSON json_t *first = NULL;
    struct asym_error err;
    for (size_t i = 0; named->n > 1 && i < ASYM_MIN(named->n, (size_t)MOST_ASKED); i++) {
        ASYM_AUTO_JSON json_t *app = NULL;
        if (asym_client_get_report(client, "program", named->process[i].pid, &app, &err) < 0)
            continue;
        if (!one) {
            one = &named->process[i];
            first = ASYM_TAKE(app);
        } else if (asym_json_get_int(app, "pid") != asym_json_get_int(first, "pid") ||
                   strcmp(asym_json_get_text(app, "cgroup"), asym_json_get_text(first, "cgroup")) != 0) {
            return NULL;
        }
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

static int why(const void *parsed, char **operands)
{
    ASYM_CLEANUP(asym_client_close_p) struct asym_client *client = NULL;
    ASYM_CLEANUP(asym_named_processes_done) struct asym_named_processes named = {.process = NULL};
    const struct asym_verb_json *a = parsed;
    struct asym_error err = {""};
    uint32_t id;
    const bool by_name = !asym_verb_is_pid(operands[0], &id);
    int status = by_name ? asym_verb_named_processes("why", operands[0], &named) : ASYM_EXIT_DONE;
    if (status == ASYM_EXIT_DONE)
        status = asym_verb_connect(&client);
    if (status != ASYM_EXIT_DONE)
        return status;
    if (by_name)
        return explain_named(client, &named, operands[0], a->json, &err);
    return a->json ? explain_json(client, &id, 1, &err) : explain(client, id, &err);
}

const struct asym_verb asym_verb_why = {
    .name = "why",
    .args = asym_verb_json_args,
    .operands = ASYM_OPERANDS_MUST,
    .usage = "PID|NAME",
    .needs = "a PID or the name of a program",
    .summary = "explain why a program or thread runs where it does",
    .help = "Says in sentences how asymd sees the process or thread: its class, where it may run, and what would\n"
            "change that; then the evidence, and the last ten decisions. A NAME is that of a program, or a\n"
            "part of a command line. If several processes that run have it, the verb lists them with their PIDs;\n"
            "with --json it explains ten of them.\n"
            "Then asymd measures for 2 s which thread of the program waits for which.\n",
    .run = why,
};
