/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The code of a record: bytes, names, the head, snapshots, and the segments of a file. */
#ifndef ASYM_RECORD_RECORD_INTERNAL_H
#define ASYM_RECORD_RECORD_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <asym/machine.h>
#include <asym/port.h>
#include <asym/snapshot.h>
#include <asym/types.h>

#include "base/hash.h"
#include "base/mask-table.h"
#include "base/grow.h"
#include "record/record.h"

/*
 * Bytes that are written or read. A function that codes a value has one body for both directions: it passes the value, and
 * takes over what the call returns. While writing, that is the same value. While reading, it is the value in the bytes.
 *
 * The first fault stays. After it, nothing is read or written, and each call returns the least accepted value. So a caller
 * checks only before it uses a number as a size.
 */

/** All zero: an empty buffer for reading. */
struct asym_record_io {
    bool writing;
    unsigned char *bytes; /* writing: owned, and grows */
    size_t used;          /* bytes written or read so far */
    size_t size;          /* writing: bytes of memory; reading: bytes of content */
    int error;            /* 0; -ENOMEM; -E2BIG: more than a record can hold; -EBADMSG: wrong bytes */
    const char *fault;    /* what is wrong; static; NULL: nothing */
    size_t fault_at;      /* its position */
};

void asym_record_io_done(struct asym_record_io *io);

/** Note a fault: -EBADMSG while reading, -E2BIG while writing. */
void asym_record_io_fail(struct asym_record_io *io, const char *fault);

static inline bool asym_record_io_ok(const struct asym_record_io *io)
{
    return io->error == 0;
}

/** The bytes that are left to read; while writing, the bytes up to the limit. */
size_t asym_record_io_left(const struct asym_record_io *io);

/** Code a number from min to max. Small numbers take few bytes. */
uint64_t asym_record_u64(struct asym_record_io *io, uint64_t value, uint64_t max);

/** Code a number from min to max as its distance from last. */
int64_t asym_record_delta(struct asym_record_io *io, int64_t value, int64_t last, int64_t min, int64_t max);

/** Code a number of items. Each of them takes a byte at least, so a count beyond the bytes that are left is a fault. */
size_t asym_record_count(struct asym_record_io *io, size_t n, size_t max);

bool asym_record_bool(struct asym_record_io *io, bool value);

/** Code 8 bytes: a finite double, or any number. */
double asym_record_double(struct asym_record_io *io, double value);
uint64_t asym_record_word(struct asym_record_io *io, uint64_t value);

/** Code n bytes at data. */
void asym_record_bytes(struct asym_record_io *io, void *data, size_t n);

void asym_record_mask(struct asym_record_io *io, struct asym_mask *mask);

/**
 * Code a text or NULL; what is longer than ASYM_RECORD_MAX_TEXT is cut in the bytes. Returns the same text while writing; while
 * reading, a text within io->bytes, or NULL.
 */
const char *asym_record_text(struct asym_record_io *io, const char *text);

/* Codes the head and machines. */

/**
 * Code the fields that asym_machine_finish derives the others from. While reading, *m gets all fields; it is not used if a
 * fault is noted.
 */
void asym_record_machine(struct asym_record_io *io, struct asym_machine *m);

/** A head with its lists. All zero: empty. */
struct asym_record_head_data {
    struct asym_record_head head; /**< its texts are borrowed: while reading, from io->bytes */
    struct asym_record_setting *settings;
    const char **notes;
};

void asym_record_head_done(struct asym_record_head_data *d);

/** Code d->head. Each text must be printable (asym_text_is_printable). While reading, the head borrows from *d. */
void asym_record_head(struct asym_record_io *io, struct asym_record_head_data *d);

/* Codes snapshots. The same functions describe both directions. */

/** The arrays of the last snapshot. All zero: none. */
struct asym_record_codec {
    struct asym_mask_table masks;
    struct asym_hash ids; /* of the list that is checked */
    struct asym_pool tasks, procs, facts, profiles, apps, samples, outcomes;
};

void asym_record_codec_done(struct asym_record_codec *c);

/**
 * Code a snapshot. Afterwards *s is, in both directions, what a reader gets: the arrays belong to the codec and are valid until
 * the next call, and shares are rounded to 1 / ASYM_RECORD_SHARE. Texts belong to the caller while writing, and to io->bytes while
 * reading. s->machine is not coded.
 */
void asym_record_snapshot(struct asym_record_io *io, struct asym_record_codec *c, struct asym_snapshot *s);

/** Code the outcomes of a snapshot's actions. While reading, *outcomes belong to the codec until the next call. */
void asym_record_outcomes(struct asym_record_io *io, struct asym_record_codec *c, const struct asym_outcome **outcomes,
                          size_t *n);

enum asym_record_item_kind {
    ASYM_RECORD_ITEM_MACHINE = 1,
    ASYM_RECORD_ITEM_SNAPSHOT = 2,
    ASYM_RECORD_ITEM_FEEDBACK = 3,
    ASYM_RECORD_ITEM_END = 4,
};

/* The file: a signature, then segments: the head, and any number with items. A segment is its length and a zstd frame. */

/** Bytes of the signature and of a segment's header. */
enum { ASYM_RECORD_SIGNATURE = 16, ASYM_RECORD_HEADER = 8 };

/** Write the signature. Returns 0; -errno. */
int asym_record_write_signature(FILE *out);

/** Compress the content, and write a segment. Returns 0; -ENOMEM; -errno of the write. */
int asym_record_write_segment(FILE *out, const void *content, size_t len);

/** Read the signature. Returns 0; -EBADMSG with err: this is no record, or one of another version. */
int asym_record_read_signature(FILE *in, const char *name, struct asym_error *err);

/** A segment that was read. All zero: none. */
struct asym_record_content {
    unsigned char *bytes; /* owned */
    size_t len;
    uint64_t at;     /* position of its header in the file */
    unsigned number; /* of the segment, from 0 */
};

/**
 * Read the next segment. *content holds the previous one, and is reused. Takes at most the memory of one segment
 * (ASYM_RECORD_MAX_CONTENT and its compressed form), whatever the file says.
 * Returns 1; 0 if the file ends where a segment could begin, or in the middle of one: then err says where; -EBADMSG with err:
 * a segment is damaged; -ENOMEM, -EIO with err.
 */
int asym_record_read_segment(FILE *in, const char *name, struct asym_record_content *content, struct asym_error *err);

#endif
