/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl record: observes this machine, steers nothing, and writes a record of what it sees, or a trace for Perfetto. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "app/command-line.h"
#include "base/clock.h"
#include "base/macro.h"
#include "client/client.h"
#include "daemon/asymctl/observation.h"
#include "daemon/asymctl/record-files.h"
#include "daemon/asymctl/verb.h"
#include "daemon/asymctl/wording.h"
#include "experiment/traces.h"
#include "record/record.h"
#include "report/json.h"

struct arguments {
    struct asym_observation_arguments of;
    bool trace, json;
};

static const struct asym_arg args[] = {
    ASYM_ARG("--trace", BOOL, NULL, trace, .help = "write a trace for Perfetto instead of a record"),
    ASYM_ARG("--time", DURATION, "TIME", of.time, .def = "60s", .min = 100e3, .max = 86400e6,
             .help = "end after that long, such as 10s; 60 s by default"),
    ASYM_ARG("--pid", STRING, "PID,...", of.pids, .help = "plan only for these processes and their descendants"),
    ASYM_ARG("--policy", STRING, "NAME", of.policy, .help = "the policy to plan with; by default that of asymd"),
    ASYM_ARG("--config", STRING, "FILE", of.config, .help = "a configuration, instead of that of the running asymd"),
    ASYM_ARG("--json", BOOL, NULL, json, .help = "print the report at the end as JSON"),
    {.option = {.key = NULL}},
};

struct recording {
    struct asym_part_file file;
    struct asym_observation observation;
    json_t *notes; /* which decisions a trace lacks */
    /* These belong to a record. */
    struct asym_record_writer *writer;
    struct asym_source *source;
    size_t most_threads;
    /* These belong to a trace. */
    struct asym_seen_trace trace;
    struct asym_client *client; /* of a running service; NULL: none, or it has ended */
    struct asym_client_since since;
    uint64_t lost; /* decisions that the trace lacks */
};

static void recording_done(struct recording *c)
{
    if (c->source)
        c->source->close(c->source);
    asym_record_writer_free(c->writer);
    asym_client_close(c->client);
    json_decref(c->notes);
    asym_observation_done(&c->observation);
    asym_fclose_p(&c->file.out);
}

/* A record */

static int fail_record(const struct recording *c, int r, struct asym_error *err)
{
    return asym_fail(err, r, "%.1000s: %s", c->file.part,
                     c->writer ? asym_record_writer_fault(c->writer) : strerror(-r));
}

static int begin_record(struct recording *c, struct asym_error *err)
{
    int r = asym_record_writer_new(c->file.out, &c->observation.head, &c->writer);
    if (r < 0)
        return fail_record(c, r, err);
    r = asym_record_source_new(c->observation.source, c->writer, &c->source);
    if (r < 0)
        return asym_fail(err, r, "no memory");
    c->observation.source = c->source;
    return 0;
}

static int add_to_record(void *ctx, const struct asym_cycle *cycle)
{
    struct recording *c = ctx;
    c->most_threads = ASYM_MAX(c->most_threads, cycle->snapshot.n_tasks);
    return 0;
}

/* A full disk ends the source's next(): the writer knows why. */
static int end_record(struct recording *c, int r, struct asym_error *err)
{
    if (r < 0)
        return asym_record_writer_fault(c->writer) ? fail_record(c, r, err) : r;
    r = asym_record_writer_finish(c->writer);
    return r < 0 ? fail_record(c, r, err) : 0;
}

static void print_record(const struct recording *c, uint64_t size)
{
    char text[ASYM_UNITS_SIZE];
    printf("recorded %.1f s: %" PRIu64 " snapshots of up to %zu threads, %s in %s\n",
           (double)c->observation.took / ASYM_SEC, asym_record_writer_count(c->writer), c->most_threads,
           asym_units_bytes(size, text), c->file.path);
}

static json_t *record_json(const struct recording *c, uint64_t size)
{
    return json_pack("{s:s, s:I, s:I, s:I}", "schema", "asymctl.record/1", "size_bytes", (json_int_t)size, "snapshots",
                     (json_int_t)asym_record_writer_count(c->writer), "most_threads", (json_int_t)c->most_threads);
}

/* A trace */

/* The time of a decision is one of day. A file that cannot be written ends the trace at the next sample. */
static void on_decision(void *ctx, const json_t *e)
{
    struct recording *c = ctx;
    const asym_usec now = asym_clock_now(), today = asym_clock_read(CLOCK_REALTIME);
    const asym_usec time = (asym_usec)asym_json_get_int(e, "time_us");
    const asym_usec ago = today > time ? ASYM_MIN(today - time, now) : 0;
    asym_seen_trace_decide(&c->trace, now - ago, e);
}

/* Says at once what the trace will lack, and keeps it for the JSON: a script may not read stderr. */
static __attribute__((format(printf, 2, 3))) void note(struct recording *c, const char *format, ...)
{
    char text[1280];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    fprintf(stderr, "asymctl: %s\n", text);
    asym_json_append(&c->notes, asym_json_text(text));
}

/* A sample waits no longer for decisions. The last ones may take longer: no call comes after it that takes a late answer. */
#define DECISIONS_WAIT (50 * ASYM_MSEC)
#define LAST_WAIT      ASYM_SEC

/* Finds out where the decisions of a running service begin. The trace goes on without them. */
static int begin_trace(struct recording *c, struct asym_error *err)
{
    struct asym_error unanswered = {""};
    asym_seen_trace_begin(&c->trace, c->file.out);
    int r = asym_client_open(&c->client, &unanswered);
    if (r >= 0)
        r = asym_client_get_decisions(c->client, &c->since, DECISIONS_WAIT, on_decision, c, &unanswered);
    c->trace.has_service = r >= 0;
    if (r >= 0)
        return 0;
    asym_client_close(ASYM_TAKE(c->client));
    if (r != -ENOTCONN)
        note(c, "the instants are what asymctl plans, not what asymd decides: %s", unanswered.text);
    return 0;
}

/* The time is that of the trace, as Perfetto shows it. */
static void take_decisions(struct recording *c, asym_usec wait)
{
    struct asym_error err = {""};
    if (!c->client)
        return;
    const int r = asym_client_get_decisions(c->client, &c->since, wait, on_decision, c, &err);
    c->lost += c->since.lost;
    if (r >= 0)
        return;
    asym_client_close(ASYM_TAKE(c->client));
    note(c, "the trace has no decisions of asymd after %.1f s: %s",
         (double)(asym_clock_now() - c->trace.first) / ASYM_SEC, err.text);
}

static int add_to_trace(void *ctx, const struct asym_cycle *cycle)
{
    struct recording *c = ctx;
    const int r = asym_seen_trace_add(&c->trace, &cycle->snapshot, cycle->plan);
    take_decisions(c, DECISIONS_WAIT);
    return r;
}

/* The last decisions come after the last sample. The end is written in any case: it makes the file valid. */
static int end_trace(struct recording *c, int r, struct asym_error *err)
{
    take_decisions(c, LAST_WAIT);
    if (c->lost > 0)
        note(c, "%" PRIu64 " decision%s missing in the trace: a shorter [asymd] interval finds more", c->lost,
             c->lost == 1 ? " is" : "s are");
    const int ended = asym_seen_trace_end(&c->trace);
    return ended < 0 || r == -EIO ? asym_fail(err, -EIO, "%.1000s: cannot be written", c->file.part) : r;
}

static void print_trace(const struct recording *c, uint64_t size)
{
    const struct asym_seen_trace *t = &c->trace;
    printf("%" PRIu64 " slice%s and %" PRIu64 " %s%s%s in %s: open it in Perfetto\n", t->slices,
           t->slices == 1 ? "" : "s", t->decisions, t->has_service ? "" : "planned ",
           t->decisions == 1 ? "decision" : "decisions", t->has_service ? " of asymd" : "", c->file.path);
}

static json_t *trace_json(const struct recording *c, uint64_t size)
{
    return json_pack("{s:s, s:I, s:I, s:s}", "schema", "asymctl.trace/1", "slices", (json_int_t)c->trace.slices,
                     "decisions", (json_int_t)c->trace.decisions, "decisions_of",
                     c->trace.has_service ? "asymd" : "asymctl");
}

/* The file is open at begin. end gets the result of the observation. */
static const struct kind {
    int (*begin)(struct recording *c, struct asym_error *err);
    int (*cycle)(void *ctx, const struct asym_cycle *cycle);
    int (*end)(struct recording *c, int r, struct asym_error *err);
    void (*print)(const struct recording *c, uint64_t size);
    json_t *(*json)(const struct recording *c, uint64_t size);
} kinds[] = {
    {begin_record, add_to_record, end_record, print_record, record_json},
    {begin_trace, add_to_trace, end_trace, print_trace, trace_json},
};

static int begin(struct recording *c, const struct kind *kind, const struct arguments *a, const char *path,
                 struct asym_error *err)
{
    int r = asym_observation_open(&c->observation, &a->of, err);
    if (r >= 0)
        r = asym_part_file_open(&c->file, path, err);
    if (r >= 0)
        r = kind->begin(c, err);
    return r < 0 ? r : asym_observation_begin(&c->observation, err);
}

static void print_text(const struct recording *c, const struct kind *kind, uint64_t size)
{
    kind->print(c, size);
    if (c->file.kept)
        printf("the file that was there is %s.old\n", c->file.path);
    for (size_t i = 0; i < c->observation.head.n_notes; i++)
        printf("%s\n", c->observation.head.notes[i]);
}

static int print_json(struct recording *c, const struct kind *kind, uint64_t size)
{
    char old[sizeof c->file.part];
    json_t *json = kind->json(c, size);
    snprintf(old, sizeof old, "%s.old", c->file.path);
    for (size_t i = 0; i < c->observation.head.n_notes; i++)
        asym_json_append(&c->notes, asym_json_text(c->observation.head.notes[i]));
    asym_json_set(&json, "file", asym_json_text(c->file.path));
    asym_json_set(&json, "earlier_file", c->file.kept ? asym_json_text(old) : json_null());
    asym_json_set(&json, "duration_us", json_integer((json_int_t)c->observation.took));
    asym_json_set(&json, "notes", json_incref(c->notes));
    return asym_json_print(json, stdout);
}

static int record(const void *parsed, char **operands)
{
    const struct arguments *a = parsed;
    const struct kind *kind = &kinds[a->trace];
    ASYM_CLEANUP(recording_done) struct recording c = {.notes = json_array()};
    struct asym_error err = {""};
    struct stat st = {.st_size = 0};
    int r = begin(&c, kind, a, operands[0], &err);
    if (r >= 0)
        r = kind->end(&c, asym_observation_run(&c.observation, kind->cycle, &c, &err), &err);
    if (r >= 0)
        r = asym_part_file_finish(&c.file, &err);
    if (r < 0)
        return asym_verb_fail(c.observation.usage ? ASYM_EXIT_USAGE : asym_exit_status(r), "%s", err.text);
    fstat(fileno(c.file.out), &st);
    if (a->json)
        return asym_verb_reported(print_json(&c, kind, (uint64_t)st.st_size));
    print_text(&c, kind, (uint64_t)st.st_size);
    return ASYM_EXIT_DONE;
}

const struct asym_verb asym_verb_record = {
    .name = "record",
    .args = args,
    .operands = ASYM_OPERANDS_MUST,
    .usage = "FILE",
    .needs = "a file to write",
    .summary = "record what asymd sees, for asymctl replay, or trace it for Perfetto",
    .help = "Observes this machine as asymd does, steers nothing, and writes the machine, the settings and the\n"
            "snapshots to FILE. A record has the names, numbers and times of processes and threads, and the CPUs\n"
            "on which they ran. It has no command line, no path of a program and no environment. The names of\n"
            "rules and the paths of cgroups are in it. Only its owner can read the file.\n"
            "\n"
            "asymd plans while it records, with the policy of the configuration, and the record keeps a digest of\n"
            "each plan. Beside a running service the record shows the masks that the threads had before that\n"
            "service set others.\n"
            "\n"
            "With --trace it writes a trace in the Chrome JSON format, which Perfetto opens: a track for each CPU, a\n"
            "slice for each thread that ran there, with its class, and instants. If asymd runs, the instants are its\n"
            "decisions, as asymctl watch prints them. Else they are what asymctl plans: where the plan for a thread\n"
            "changes. A sample says how long a thread ran and on which CPU it was last, not when: the slices of a\n"
            "sample follow each other, and shrink if they do not fit.\n"
            "\n"
            "Ctrl-C ends it properly. asymctl writes to FILE.part, and renames it at the end; an earlier FILE\n"
            "becomes FILE.old. If asymctl is killed, FILE.part of a record has all but the last 5 s, and asymctl\n"
            "replay reads it. docs/record-format.md describes the format.\n",
    .file_option = "--config",
    .file = ASYM_PATH_CONFIG,
    .run = record,
};
