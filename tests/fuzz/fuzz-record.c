/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target: any bytes as the content of a segment give an error with its position, or snapshots that an engine of each
 * policy takes.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <asym/engine.h>

#include "base/macro.h"
#include "base/text.h"
#include "config/settings.h"
#include "record/record-internal.h"
#include "record/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes a head without the checks of a writer. */
static void put_head(FILE *out, const char *version)
{
    ASYM_CLEANUP(asym_record_io_done) struct asym_record_io io = {.writing = true};
    asym_record_text(&io, version);
    asym_record_text(&io, "pa");
    for (unsigned i = 0; i < 5; i++)
        asym_record_u64(&io, 0, 0);
    if (asym_record_write_signature(out) < 0 || asym_record_write_segment(out, io.bytes, io.used) < 0)
        abort();
}

/*
 * Makes a record with right checksums: a change of any bit would fail on these alone. The first byte says whether there is a
 * machine, and how many bytes after it are the version.
 */
static FILE *forge(const uint8_t *data, size_t size, char version[64], char **ret_bytes, size_t *ret_len)
{
    ASYM_CLEANUP(asym_record_io_done) struct asym_record_io io = {.writing = true};
    size_t at = size > 0;
    for (const size_t end = 1 + (size > 0 ? data[0] / 4 : 0); at < size && at < end; at++)
        version[at - 1] = (char)data[at];
    FILE *out = open_memstream(ret_bytes, ret_len);
    if (!out)
        abort();
    put_head(out, version);
    if (size > 0 && data[0] % 2 == 0) {
        /* Random bytes make no valid machine, so the content begins with one. */
        struct asym_machine m = {.generation = 1, .n_cpus = 4, .online = {{0xf}}, .usable = {{0xf}}};
        for (unsigned c = 0; c < 4; c++)
            m.cpus[c] = (struct asym_cpu){.speed = c < 2 ? 2 : 1, .core = (int16_t)c, .freq_domain = (int16_t)c};
        if (asym_machine_finish(&m) < 0)
            abort();
        asym_record_u64(&io, ASYM_RECORD_ITEM_MACHINE, ASYM_RECORD_ITEM_END);
        asym_record_machine(&io, &m);
    }
    for (size_t i = at; i < size; i++)
        asym_record_bytes(&io, (void *)(uintptr_t)&data[i], 1);
    if (asym_record_write_segment(out, io.bytes, io.used) < 0 || fclose(out) != 0)
        abort();
    return fmemopen(*ret_bytes, *ret_len, "rb");
}

enum { MOST_POLICIES = 64 };

/* An engine for each policy; NULL ends them. */
static void make_engines(const struct asym_settings *settings, struct asym_engine *ret[MOST_POLICIES + 1])
{
    size_t n = 0;
    for (const struct asym_policy *policy; n < MOST_POLICIES && (policy = asym_policy_at(n)); n++) {
        const struct asym_engine_config config = asym_settings_engine_config(settings, policy);
        if (asym_engine_new(&config, &ret[n]) < 0)
            abort();
    }
    ret[n] = NULL;
}

static void step(struct asym_engine *engine, const struct asym_snapshot *s)
{
    const struct asym_plan *plan;
    const struct asym_action *actions;
    size_t n;
    if (asym_engine_step(engine, s, &plan, &actions, &n) < 0)
        abort();
    ASYM_AUTO_FREE struct asym_outcome *outcomes = calloc(n + 1, sizeof *outcomes);
    if (!outcomes)
        abort();
    asym_engine_outcomes(engine, outcomes, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct asym_record_reader *reader;
    struct asym_settings *settings;
    struct asym_engine *engines[MOST_POLICIES + 1];
    struct asym_snapshot s;
    struct asym_error err = {""};
    char *bytes = NULL;
    size_t len = 0;
    char version[64] = "";
    FILE *in = forge(data, size, version, &bytes, &len);
    if (!in)
        abort();
    const int got = asym_record_reader_new(in, "f", &reader, &err);
    if ((got >= 0) != asym_text_is_printable(version, strlen(version)) ||
        !asym_text_is_printable(err.text, strlen(err.text)))
        abort();
    if (got < 0) {
        fclose(in);
        free(bytes);
        return 0;
    }
    if (asym_settings_new(&settings) < 0)
        abort();
    make_engines(settings, engines);
    struct asym_source *source = asym_record_reader_source(reader);
    int r;
    while ((r = source->next(source, &s)) > 0)
        for (size_t i = 0; engines[i]; i++)
            step(engines[i], &s);
    if (r < 0 && (r != -EBADMSG || strncmp(asym_record_reader_error(reader), "f: byte ", 8) != 0))
        abort();
    for (size_t i = 0; engines[i]; i++)
        asym_engine_free(engines[i]);
    asym_settings_free(settings);
    asym_record_reader_free(reader);
    fclose(in);
    free(bytes);
    return 0;
}
