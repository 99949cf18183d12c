/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl watch. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <unistd.h>

#include "app/command-line.h"
#include "base/macro.h"
#include "daemon/asymctl/long-verb.h"
#include "daemon/asymctl/process-name.h"
#include "daemon/asymctl/wording.h"
#include "linux/sys/thread.h"
#include "report/json.h"

/* The time between two questions. */
#define PAUSE (250 * ASYM_MSEC)

/* Ctrl-C waits no longer for an answer. */
#define DECISIONS_WAIT (50 * ASYM_MSEC)

/* The column where a reason begins, if no number is longer than usual. */
#define REASON_INDENT 46

static const struct asym_arg args[] = {
    ASYM_ARG_OF(struct asym_verb_json, "--json", BOOL, NULL, json, .help = "print a JSON object a line"),
    {.option = {.key = NULL}},
};

struct watch {
    struct asym_terminal terminal;
    bool json;
    uint32_t id; /* of a process or a thread; 0: all */
    uint64_t n;  /* decisions printed */
};

static void print_text(const struct asym_terminal *terminal, const json_t *e)
{
    char time[ASYM_UNITS_SIZE], comm[64], shown[64], cpus[ASYM_DECISION_CPUS], text[600];
    const int at = fprintf(terminal->out, "%s %7" PRId64 " %-15s %s ",
                           asym_units_time_ms((asym_usec)asym_json_get_int(e, "time_us"), time),
                           asym_json_get_int(e, "tid"),
                           asym_columns_cut(asym_name_member(e, "comm", comm, sizeof comm), 15, shown, sizeof shown),
                           asym_decision_cpus(e, cpus));
    asym_decision_what(e, text, sizeof text);
    /* A program that reads the output gets a decision a line. */
    if (isatty(fileno(terminal->out)))
        asym_columns_wrap(terminal, text, (size_t)ASYM_MAX(at, 0), REASON_INDENT);
    else
        fputs(text, terminal->out);
    fputc('\n', terminal->out);
}

static void print_json(FILE *out, const json_t *e)
{
    ASYM_AUTO_JSON json_t *json = json_pack("{s:s}", "schema", "asymctl.decision/1");
    ASYM_AUTO_JSON json_t *decision = asym_json_escape(e);
    if (json && decision && json_object_update(json, decision) == 0 && json_dumpf(json, out, JSON_COMPACT) == 0)
        fputc('\n', out);
}

static void on_event(void *ctx, const json_t *e)
{
    struct watch *w = ctx;
    if (w->id != 0 && asym_json_get_int(e, "pid") != w->id && asym_json_get_int(e, "tid") != w->id)
        return;
    if (w->json)
        print_json(w->terminal.out, e);
    else
        print_text(&w->terminal, e);
    w->n++;
}

/*
 * Fails if there will be no decisions because there is no such process or thread. If asymd does not know it, it may come to know it
 * when it runs: tells the user why the wait may be long.
 */
static int check_subject(struct asym_client *client, uint32_t id, struct asym_error *err)
{
    ASYM_AUTO_JSON json_t *why = NULL;
    struct asym_thread_sched sched;
    const int r = asym_client_get_report(client, "why", id, &why, err);
    if (r == -ESRCH && asym_thread_get_sched((int32_t)id, &sched) == -ESRCH)
        return asym_fail(err, -ESRCH, "watch: there is no process or thread %" PRIu32, id);
    if (r == -ESRCH)
        asym_verb_fail(ASYM_EXIT_DONE, "%s", err->text);
    return r == -ESRCH ? 0 : r;
}

static int watch_until_signal(struct asym_client *client, struct watch *w, struct asym_error *err)
{
    const struct timespec pause = {.tv_nsec = PAUSE * 1000L};
    struct asym_client_since since = {.number = 0};
    sigset_t waiting;
    asym_interruption_block(false, &waiting);
    int r = asym_client_get_decisions(client, &since, DECISIONS_WAIT, on_event, w, err);
    if (r >= 0 && isatty(STDERR_FILENO))
        fputs("asymctl: waiting for decisions; Ctrl-C ends\n", stderr);
    /* A program that reads the output knows the columns. */
    if (r >= 0 && !w->json && isatty(fileno(w->terminal.out)))
        fputs("TIME             TID THREAD          " ASYM_DECISION_HEADINGS "\n", w->terminal.out);
    while (r >= 0 && !asym_interrupted && fflush(stdout) == 0) {
        ppoll(NULL, 0, &pause, &waiting);
        r = asym_client_get_decisions(client, &since, DECISIONS_WAIT, on_event, w, err);
        if (since.lost > 0)
            fprintf(stderr, "asymctl: %" PRIu64 " decision%s missing here: asymd does not remember them\n", since.lost,
                    since.lost == 1 ? " is" : "s are");
    }
    return r;
}

static int watch(const void *parsed, char **operands)
{
    ASYM_CLEANUP(asym_client_close_p) struct asym_client *client = NULL;
    const struct asym_verb_json *a = parsed;
    struct watch w = {.terminal = asym_terminal_of(stdout), .json = a->json};
    struct asym_error err = {""};
    struct asym_process_operand process = {.pid = 0};
    const int status = operands[0] ? asym_verb_process_and_connect("watch", operands[0], &process, &client)
                                   : asym_verb_connect(&client);
    if (status != ASYM_EXIT_DONE)
        return status;
    w.id = process.pid;
    int r = w.id > 0 ? check_subject(client, w.id, &err) : 0;
    if (r < 0)
        return asym_verb_call_failed(r, &err);
    r = watch_until_signal(client, &w, &err);
    fflush(stdout);
    /* In JSON each line is a decision. */
    fprintf(a->json ? stderr : stdout, "%" PRIu64 " decision%s\n", w.n, w.n == 1 ? "" : "s");
    fflush(stdout);
    return r < 0 ? asym_verb_call_failed(r, &err) : ASYM_EXIT_DONE;
}

const struct asym_verb asym_verb_watch = {
    .name = "watch",
    .args = args,
    .operands = ASYM_OPERANDS_MAY,
    .usage = "[PID|NAME]",
    .summary = "print each decision of asymd as it happens, until Ctrl-C",
    .help = "A line for each change of a thread: the time, the TID and name of the thread, the CPU where it ran\n"
            "and the one that asymd gives it (-: none), what asymd does, and why in brackets. A terminal gets a line\n"
            "of headings first. With PID or NAME only the threads of that process, or the thread of that number. On\n"
            "Ctrl-C it prints how many decisions there were.\n",
    .run = watch,
};
