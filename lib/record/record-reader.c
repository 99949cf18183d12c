/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record-internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

struct asym_record_reader {
    struct asym_source source;
    FILE *in;
    const char *name;
    off_t first; /* position of the first segment of snapshots */
    struct asym_record_head_data head;
    unsigned char *head_bytes; /* owned; has the texts of the head */
    struct asym_record_content content;
    struct asym_record_io io; /* over content */
    struct asym_record_codec codec;
    struct asym_machine machine;
    struct asym_record_result result;
    asym_usec now; /* of the last snapshot */
    uint64_t n;    /* snapshots */
    bool ended, cut;
    struct asym_error error;
};

static int faulty(const struct asym_record_reader *r, struct asym_error *err)
{
    return asym_fail(
        err, r->io.error, "%.200s: byte %" PRIu64 ", segment %u, byte %zu of its content: %s; the record is damaged",
        r->name, r->content.at, r->content.number, r->io.fault_at, r->io.fault ? r->io.fault : "no memory");
}

static int read_segment(struct asym_record_reader *r, struct asym_error *err)
{
    const int got = asym_record_read_segment(r->in, r->name, &r->content, err);
    r->io = (struct asym_record_io){.bytes = r->content.bytes, .size = got > 0 ? r->content.len : 0};
    return got;
}

static int read_head(struct asym_record_reader *r, struct asym_error *err)
{
    int got = asym_record_read_signature(r->in, r->name, err);
    if (got >= 0)
        got = read_segment(r, err);
    if (got < 0)
        return got;
    if (got == 0)
        return -EBADMSG;
    asym_record_head(&r->io, &r->head);
    if (asym_record_io_ok(&r->io) && asym_record_io_left(&r->io) > 0)
        asym_record_io_fail(&r->io, "bytes follow the head");
    r->first = ftello(r->in);
    r->head_bytes = ASYM_TAKE(r->content.bytes);
    return r->io.error < 0 ? faulty(r, err) : 0;
}

const struct asym_record_head *asym_record_reader_head(const struct asym_record_reader *r)
{
    return &r->head.head;
}

int asym_record_reader_rewind(struct asym_record_reader *r)
{
    if (fseeko(r->in, r->first, SEEK_SET) != 0)
        return -errno;
    r->io = (struct asym_record_io){.writing = false};
    r->content.at = 1; /* the head was segment 0 */
    r->content.number = 0;
    r->ended = r->cut = false;
    r->now = 0;
    r->n = 0;
    r->error.text[0] = '\0';
    return 0;
}

static void read_end(struct asym_record_reader *r)
{
    if (asym_record_u64(&r->io, 0, UINT64_MAX) != r->n)
        asym_record_io_fail(&r->io, "the number of snapshots is another");
    if (asym_record_io_ok(&r->io) && asym_record_io_left(&r->io) > 0)
        asym_record_io_fail(&r->io, "bytes follow the end");
    if (asym_record_io_ok(&r->io) && fgetc(r->in) != EOF)
        asym_record_io_fail(&r->io, "the file goes on after the end of the record");
    r->ended = true;
}

/* Goes on to the next segment of snapshots. Returns 1; 0 at the end; -errno. */
static int next_segment(struct asym_record_reader *r)
{
    struct asym_error where = {""};
    int got = read_segment(r, &where);
    if (got <= 0) {
        r->ended = true;
        r->cut = got == 0;
        r->error = where;
        return got;
    }
    return 1;
}

static void read_snapshot(struct asym_record_reader *r, struct asym_snapshot *s)
{
    *s = (struct asym_snapshot){.machine = &r->machine};
    if (r->machine.n_cpus == 0)
        asym_record_io_fail(&r->io, "a snapshot comes before the machine");
    asym_record_snapshot(&r->io, &r->codec, s);
    if (s->now < r->now)
        asym_record_io_fail(&r->io, "the time goes back");
    r->now = s->now;
    r->n++;
}

/* Reads the feedback, if one follows. */
static void read_result(struct asym_record_reader *r)
{
    r->result = (struct asym_record_result){.known = false};
    if (!asym_record_io_ok(&r->io) || asym_record_io_left(&r->io) == 0 ||
        r->io.bytes[r->io.used] != ASYM_RECORD_ITEM_FEEDBACK)
        return;
    asym_record_u64(&r->io, 0, ASYM_RECORD_ITEM_FEEDBACK);
    r->result.digest = asym_record_word(&r->io, 0);
    asym_record_outcomes(&r->io, &r->codec, &r->result.outcomes, &r->result.n_outcomes);
    r->result.known = true;
}

/* Reads the next item of the segment. Returns true if it was a snapshot. */
static bool read_item(struct asym_record_reader *r, struct asym_snapshot *s)
{
    const uint64_t kind = asym_record_u64(&r->io, 0, ASYM_RECORD_ITEM_END);
    if (kind == ASYM_RECORD_ITEM_MACHINE) {
        asym_record_machine(&r->io, &r->machine);
    } else if (kind == ASYM_RECORD_ITEM_SNAPSHOT) {
        read_snapshot(r, s);
        read_result(r);
        return true;
    } else if (kind == ASYM_RECORD_ITEM_END) {
        read_end(r);
    } else {
        asym_record_io_fail(&r->io, "unknown kind of item, or feedback without a snapshot before it");
    }
    return false;
}

static int source_next(struct asym_source *source, struct asym_snapshot *ret)
{
    struct asym_record_reader *r = (struct asym_record_reader *)(void *)source;
    struct asym_snapshot s;
    bool found = false;
    while (!found && !r->ended && asym_record_io_ok(&r->io)) {
        if (asym_record_io_left(&r->io) == 0) {
            const int got = next_segment(r);
            if (got < 0)
                return got;
            continue;
        }
        found = read_item(r, &s);
    }
    if (r->io.error < 0) {
        r->ended = true;
        return faulty(r, &r->error);
    }
    if (!found)
        return 0;
    *ret = s;
    return 1;
}

struct asym_source *asym_record_reader_source(struct asym_record_reader *r)
{
    return &r->source;
}

const char *asym_record_reader_error(const struct asym_record_reader *r)
{
    return r->cut ? "" : r->error.text;
}

const char *asym_record_reader_cut(const struct asym_record_reader *r)
{
    return r->cut ? r->error.text : NULL;
}

const struct asym_record_result *asym_record_reader_result(const struct asym_record_reader *r)
{
    return &r->result;
}

int asym_record_reader_refuse(const struct asym_record_reader *r, const char *why, struct asym_error *err)
{
    return asym_fail(err, -EBADMSG, "%.200s: byte %" PRIu64 ", segment %u, byte %zu of its content: %s", r->name,
                     r->content.at, r->content.number, r->io.used, why);
}

int asym_record_reader_new(FILE *in, const char *name, struct asym_record_reader **ret_reader, struct asym_error *err)
{
    struct asym_record_reader *r = calloc(1, sizeof *r);
    if (!r)
        return asym_fail(err, -ENOMEM, "no memory");
    r->source = (struct asym_source){.next = source_next};
    r->in = in;
    r->name = name;
    int got = read_head(r, err);
    if (got >= 0 && (got = asym_record_reader_rewind(r)) < 0)
        asym_fail(err, got, "%.200s: cannot be read twice: %s", name, strerror(-got));
    if (got < 0) {
        asym_record_reader_free(r);
        return got;
    }
    *ret_reader = r;
    return 0;
}

void asym_record_reader_free(struct asym_record_reader *r)
{
    if (!r)
        return;
    asym_record_head_done(&r->head);
    asym_record_codec_done(&r->codec);
    free(r->content.bytes);
    free(r->head_bytes);
    free(r);
}
