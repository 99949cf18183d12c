/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Reads a record. The file may be damaged or hostile: the reader accepts only what a writer could have written, so that an
 * engine can run on it, and its memory has a limit. A caller that keeps something of each snapshot needs a limit of its own.
 */
#ifndef ASYM_RECORD_RECORD_READER_H
#define ASYM_RECORD_RECORD_READER_H

#include <stdio.h>

#include <asym/error.h>
#include <asym/port.h>

#include "record/record.h"

struct asym_record_reader;

/**
 * Read the head. in: seekable; borrowed. name: the file's name in messages; borrowed. Returns 0; -EBADMSG: it is no record, is
 * of another version, or damaged; -ENOMEM, -EIO. Each error sets err: "FILE: byte N, segment K: what is wrong".
 */
int asym_record_reader_new(FILE *in, const char *name, struct asym_record_reader **ret_reader, struct asym_error *err);

/** Accepts NULL. */
void asym_record_reader_free(struct asym_record_reader *r);

/** The head; the reader owns what it borrows. */
const struct asym_record_head *asym_record_reader_head(const struct asym_record_reader *r);

/** Read from the first snapshot again. Returns 0; -errno. */
int asym_record_reader_rewind(struct asym_record_reader *r);

/**
 * The snapshots, as a source that the reader owns; close does nothing. next() returns 0 at the end, and also where the file
 * has been cut off: see asym_record_reader_cut. It returns -EBADMSG where the record is damaged; asym_record_reader_error says
 * where.
 */
struct asym_source *asym_record_reader_source(struct asym_record_reader *r);

/** The message that goes with the last error of next(); "" if there was none. */
const char *asym_record_reader_error(const struct asym_record_reader *r);

/** After next() returned 0: where the file ends without the end of a record; NULL: the record is complete. */
const char *asym_record_reader_cut(const struct asym_record_reader *r);

/**
 * Refuse a record that is valid and has more than a caller keeps. Returns -EBADMSG with err: the place behind the last snapshot,
 * and why.
 */
int asym_record_reader_refuse(const struct asym_record_reader *r, const char *why, struct asym_error *err);

/** The feedback that followed the last snapshot. */
struct asym_record_result {
    bool known;                          /**< false: its plan was not enforced */
    uint64_t digest;                     /**< asym_plan_digest of its plan */
    const struct asym_outcome *outcomes; /**< valid until the next snapshot */
    size_t n_outcomes;
};

const struct asym_record_result *asym_record_reader_result(const struct asym_record_reader *r);

#endif
