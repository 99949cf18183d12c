/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl trace: observes this machine, steers nothing, and writes a trace for Perfetto. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "client/client.h"
#include "daemon/asymctl/observation.h"
#include "daemon/asymctl/record-files.h"
#include "daemon/asymctl/verb.h"
#include "experiment/traces.h"
#include "report/json.h"

struct tracing {
    struct asym_client *client; /* of a running service; NULL: none, or it has ended */
    struct asym_client_since since;
    uint64_t lost; /* decisions that the trace lacks */
    struct asym_observation observation;
    struct asym_observation_head head;
    struct asym_seen_trace trace;
    struct asym_part_file file;
    json_t *notes; /* which decisions are missing */
};

static void tracing_done(struct tracing *t)
{
    asym_client_close(t->client);
    json_decref(t->notes);
    asym_observation_head_done(&t->head);
    asym_observation_done(&t->observation);
    asym_part_file_done(&t->file);
}

/* The time of a decision is one of day. A file that cannot be written ends the trace at the next sample. */
static void on_event(void *ctx, const struct asym_client_decision *e)
{
    struct tracing *t = ctx;
    const asym_usec now = asym_clock_now(), today = asym_clock_read(CLOCK_REALTIME);
    const asym_usec ago = today > e->time ? ASYM_MIN(today - e->time, now) : 0;
    asym_seen_trace_decide(&t->trace, &(struct asym_seen_decision){.at = now - ago,
                                                                   .tid = e->tid,
                                                                   .from = e->from,
                                                                   .to = e->to,
                                                                   .nice = e->nice,
                                                                   .comm = e->comm,
                                                                   .class = e->class,
                                                                   .what = e->what,
                                                                   .reason = e->reason});
}

/* Says at once what the trace will lack, and keeps it for the JSON: a script may not read stderr. */
static __attribute__((format(printf, 2, 3))) void note(struct tracing *t, const char *format, ...)
{
    char text[1280];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    fprintf(stderr, "asymctl: %s\n", text);
    asym_json_append(&t->notes, asym_json_text(text, strlen(text)));
}

/* Finds out where the decisions of a running service begin. The trace goes on without them. */
static void find_service(struct tracing *t)
{
    struct asym_error err = {""};
    int r = asym_client_open(&t->client, &err);
    if (r >= 0)
        r = asym_client_get_decisions(t->client, &t->since, on_event, t, &err);
    t->trace.has_service = r >= 0;
    if (r >= 0)
        return;
    asym_client_close(ASYM_TAKE(t->client));
    if (r != -ENOTCONN)
        note(t, "the instants are what asymctl plans, not what asymd decides: %s", err.text);
}

/* The time is that of the trace, as Perfetto shows it. */
static void take_decisions(struct tracing *t)
{
    struct asym_error err = {""};
    if (!t->client)
        return;
    const int r = asym_client_get_decisions(t->client, &t->since, on_event, t, &err);
    t->lost += t->since.lost;
    if (r >= 0)
        return;
    asym_client_close(ASYM_TAKE(t->client));
    note(t, "the trace has no decisions of asymd after %.1f s: %s",
         (double)(asym_clock_now() - t->trace.first) / ASYM_SEC, err.text);
}

/* The last decisions come after the last sample. The end is written in any case: it makes the file valid. */
static int end_trace(struct tracing *t)
{
    take_decisions(t);
    if (t->lost > 0)
        note(t, "%" PRIu64 " decision%s missing in the trace: a shorter --interval finds more", t->lost,
             t->lost == 1 ? " is" : "s are");
    return asym_seen_trace_end(&t->trace);
}

static int on_cycle(void *ctx, const struct asym_cycle *cycle)
{
    struct tracing *t = ctx;
    const int r = asym_seen_trace_add(&t->trace, &cycle->snapshot, cycle->plan);
    take_decisions(t);
    return r;
}

static int begin(struct tracing *t, const struct asym_observation_arguments *a, const char *path,
                 struct asym_error *err)
{
    int r = asym_observation_open(&t->observation, a, err);
    if (r >= 0)
        r = asym_observation_head_fill(&t->head, &t->observation, err);
    if (r >= 0)
        r = asym_observation_plan_with(&t->observation, &t->head.head, err);
    return r < 0 ? r : asym_part_file_open(&t->file, path, err);
}

static void print_text(const struct tracing *t)
{
    printf("%" PRIu64 " slice%s and %" PRIu64 " %s%s%s in %s: open it in Perfetto\n", t->trace.slices,
           t->trace.slices == 1 ? "" : "s", t->trace.decisions, t->trace.has_service ? "" : "planned ",
           t->trace.decisions == 1 ? "decision" : "decisions", t->trace.has_service ? " of asymd" : "", t->file.path);
    if (t->file.kept)
        printf("the file that was there is %s.old\n", t->file.path);
}

static int print_json(const struct tracing *t)
{
    json_t *json = asym_observation_json(&t->observation, "asymctl.trace/1", &t->file);
    asym_json_set(&json, "slices", json_integer((json_int_t)t->trace.slices));
    asym_json_set(&json, "decisions", json_integer((json_int_t)t->trace.decisions));
    asym_json_set(&json, "decisions_of", json_string(t->trace.has_service ? "asymd" : "asymctl"));
    asym_json_set(&json, "notes", json_incref(t->notes));
    return asym_json_print(json, stdout);
}

static int trace(const void *parsed, char **operands)
{
    ASYM_CLEANUP(tracing_done) struct tracing t = {.notes = json_array()};
    const struct asym_observation_watch watch = {.cycle = on_cycle, .ctx = &t};
    const struct asym_observation_arguments *a = parsed;
    struct asym_error err = {""};
    int r = begin(&t, a, operands[0], &err);
    if (r < 0)
        return asym_verb_fail(asym_observation_exit(&t.observation, r), err.text);
    asym_seen_trace_begin(&t.trace, t.file.out);
    find_service(&t);
    r = asym_observation_run(&t.observation, &watch, &err);
    const int ended = end_trace(&t);
    if (ended < 0 || r == -EIO)
        r = asym_fail(&err, -EIO, "%.1000s: cannot be written", t.file.part);
    if (r >= 0)
        r = asym_part_file_finish(&t.file, &err);
    if (r < 0)
        return asym_verb_fail(asym_exit_status(r), err.text);
    if (a->json)
        return asym_verb_reported(print_json(&t));
    print_text(&t);
    return ASYM_EXIT_DONE;
}

const struct asym_verb asym_verb_trace = {
    .name = "trace",
    .args = asym_observation_args,
    .args_size = sizeof(struct asym_observation_arguments),
    .operands = ASYM_OPERANDS_MUST,
    .usage = "FILE",
    .needs = "a file to write",
    .summary = "write a trace of this machine for Perfetto",
    .help = "Observes this machine as asymd does, steers nothing, and writes a trace in the Chrome JSON format,\n"
            "which Perfetto opens: a track for each CPU, a slice for each thread that ran there, with its class,\n"
            "and instants. If asymd runs, the instants are its decisions, as asymctl watch prints them. Else they are\n"
            "what asymctl plans: where the plan for a thread changes.\n"
            "\n"
            "A sample says how long a thread ran and on which CPU it was last, not when. The slices of a sample\n"
            "follow each other, and shrink if they do not fit. Ctrl-C ends the trace. asymctl writes to FILE.part,\n"
            "which only its owner can read, and renames it at the end; an earlier FILE becomes FILE.old.\n",
    .file_option = "--config",
    .file = ASYM_PATH_CONFIG,
    .run = trace,
};
