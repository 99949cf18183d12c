/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Writes a record, and the source that records what another source returns. */
#ifndef ASYM_RECORD_RECORD_WRITER_H
#define ASYM_RECORD_RECORD_WRITER_H

#include <stdio.h>

#include <asym/error.h>
#include <asym/port.h>

#include "record/record.h"

struct asym_record_writer;

/** A segment ends when its snapshots span this time. A recorder that is killed loses at most this much. */
#define ASYM_RECORD_SEGMENT_TIME (5 * ASYM_SEC)

/** Write the signature and the head to out, which is borrowed. Returns 0; -errno. */
int asym_record_writer_new(FILE *out, const struct asym_record_head *head, struct asym_record_writer **ret_writer);

/** Free it, and write nothing. Accepts NULL. */
void asym_record_writer_free(struct asym_record_writer *w);

/**
 * Add a snapshot. Afterwards *s is what a reader gets: shares are rounded to 1 / ASYM_RECORD_SHARE. Its arrays belong to the
 * writer, and are valid until the next call.
 * Returns 0; -E2BIG: it has more threads than a record can hold, or does not list them by application; -ENOMEM; -errno of the
 * write. After an error the writer adds nothing more.
 */
int asym_record_writer_add(struct asym_record_writer *w, struct asym_snapshot *s);

/** Add what the plan for the last snapshot was, and what became of its actions. Returns as asym_record_writer_add. */
int asym_record_writer_feedback(struct asym_record_writer *w, const struct asym_feedback *feedback);

/** Write the snapshots that are not written yet, and the end. Returns 0; -errno. */
int asym_record_writer_finish(struct asym_record_writer *w);

/** The number of snapshots that were added. */
uint64_t asym_record_writer_count(const struct asym_record_writer *w);

/** The first error of a call, as text for the user; NULL: none. Static. */
const char *asym_record_writer_fault(const struct asym_record_writer *w);

/**
 * A source that records the snapshots of inner and their feedback. It hands on each snapshot as a reader of the record gets it,
 * so that an engine makes the same plan from both. Borrows both. next() returns the writer's error, too. Returns 0; -ENOMEM.
 */
int asym_record_source_new(struct asym_source *inner, struct asym_record_writer *w, struct asym_source **ret_source);

#endif
