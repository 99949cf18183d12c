/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl record: observes this machine, steers nothing, and writes what it sees to a file. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "app/command-line.h"
#include "app/cycle.h"
#include "base/macro.h"
#include "daemon/asymctl/observation.h"
#include "daemon/asymctl/record-files.h"
#include "daemon/asymctl/verb.h"
#include "daemon/asymctl/wording.h"
#include "experiment/replay.h"
#include "record/record-writer.h"
#include "report/json.h"

/* A record while it is written. */
struct recording {
    struct asym_part_file file;
    struct asym_record_writer *writer;
    struct asym_source *source;
    struct asym_observation observation;
    struct asym_observation_head head;
    size_t most_threads;
};

static void recording_done(struct recording *c)
{
    if (c->source)
        c->source->close(c->source);
    asym_record_writer_free(c->writer);
    asym_observation_head_done(&c->head);
    asym_observation_done(&c->observation);
    asym_part_file_done(&c->file);
}

static int failed(const struct recording *c, int r, struct asym_error *err)
{
    return asym_fail(err, r, "%.1000s: %s", c->file.part,
                     c->writer ? asym_record_writer_fault(c->writer) : strerror(-r));
}

static int on_cycle(void *ctx, const struct asym_cycle *cycle)
{
    struct recording *c = ctx;
    c->most_threads = ASYM_MAX(c->most_threads, cycle->snapshot.n_tasks);
    return 0;
}

static int begin(struct recording *c, const struct asym_observation_arguments *a, const char *path,
                 struct asym_error *err)
{
    int r = asym_observation_open(&c->observation, a, err);
    if (r >= 0)
        r = asym_observation_head_fill(&c->head, &c->observation, err);
    if (r >= 0)
        r = asym_part_file_open(&c->file, path, err);
    if (r < 0)
        return r;
    r = asym_record_writer_new(c->file.out, &c->head.head, &c->writer);
    if (r < 0)
        return failed(c, r, err);
    r = asym_record_source_new(c->observation.source, c->writer, &c->source);
    if (r < 0)
        return asym_fail(err, r, "no memory");
    c->observation.source = c->source;
    return asym_observation_plan_with(&c->observation, &c->head.head, err);
}

static int finish(struct recording *c, struct asym_error *err)
{
    const int r = asym_record_writer_finish(c->writer);
    return r < 0 ? failed(c, r, err) : asym_part_file_finish(&c->file, err);
}

static void print_text(const struct recording *c, uint64_t size)
{
    char text[ASYM_UNITS_SIZE];
    printf("recorded %.1f s: %llu snapshots of up to %zu threads, %s in %s\n", (double)c->observation.took / ASYM_SEC,
           (unsigned long long)asym_record_writer_count(c->writer), c->most_threads, asym_units_bytes(size, text),
           c->file.path);
    if (c->file.kept)
        printf("the file that was there is %s.old\n", c->file.path);
    for (size_t i = 0; i < c->head.head.n_notes; i++)
        printf("%s\n", c->head.head.notes[i]);
}

static int print_json(const struct recording *c, uint64_t size)
{
    json_t *json = asym_observation_json(&c->observation, "asymctl.record/1", &c->file), *notes = json_array();
    for (size_t i = 0; i < c->head.head.n_notes; i++)
        asym_json_append(&notes, asym_json_text(c->head.head.notes[i], strlen(c->head.head.notes[i])));
    asym_json_set(&json, "size_bytes", json_integer((json_int_t)size));
    asym_json_set(&json, "snapshots", json_integer((json_int_t)asym_record_writer_count(c->writer)));
    asym_json_set(&json, "most_threads", json_integer((json_int_t)c->most_threads));
    asym_json_set(&json, "notes", notes);
    return asym_json_print(json, stdout);
}

static int report(const struct recording *c, bool json)
{
    struct stat st = {.st_size = 0};
    fstat(fileno(c->file.out), &st);
    if (json)
        return asym_verb_reported(print_json(c, (uint64_t)st.st_size));
    print_text(c, (uint64_t)st.st_size);
    return ASYM_EXIT_DONE;
}

static int record(const void *parsed, char **operands)
{
    ASYM_CLEANUP(recording_done) struct recording c = {.most_threads = 0};
    const struct asym_observation_watch watch = {.cycle = on_cycle, .ctx = &c};
    const struct asym_observation_arguments *a = parsed;
    struct asym_error err = {""};
    int r = begin(&c, a, operands[0], &err);
    if (r >= 0)
        r = asym_observation_run(&c.observation, &watch, &err);
    /* A full disk ends the source's next(): the writer knows why. */
    if (r < 0 && c.writer && asym_record_writer_fault(c.writer))
        failed(&c, r, &err);
    if (r >= 0)
        r = finish(&c, &err);
    return r < 0 ? asym_verb_fail(asym_observation_exit(&c.observation, r), err.text) : report(&c, a->json);
}

const struct asym_verb asym_verb_record = {
    .name = "record",
    .args = asym_observation_args,
    .args_size = sizeof(struct asym_observation_arguments),
    .operands = ASYM_OPERANDS_MUST,
    .usage = "FILE",
    .needs = "a file to write",
    .summary = "record what asymd sees, for asymctl replay",
    .help = "Observes this machine as asymd does, steers nothing, and writes the machine, the settings and the\n"
            "snapshots to FILE. A record has the names, numbers and times of processes and threads, and the CPUs\n"
            "on which they ran. It has no command line, no path of a program and no environment. The names of\n"
            "rules and the paths of cgroups are in it. Only its owner can read the file.\n"
            "\n"
            "asymd plans while it records, with the policy of the configuration, and the record keeps a digest of\n"
            "each plan. Beside a running service the record shows the masks that the threads had before that\n"
            "service set others.\n"
            "\n"
            "Ctrl-C ends a record properly. asymctl writes to FILE.part, and renames it at the end; an earlier FILE\n"
            "becomes FILE.old. If asymctl is killed, FILE.part has all but the last 5 s, and asymctl replay reads\n"
            "it. docs/record-format.md describes the format.\n",
    .file_option = "--config",
    .file = ASYM_PATH_CONFIG,
    .run = record,
};
