/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A record: the machine, the settings and the snapshots of an observation, in a file. docs/record-format.md describes the
 * bytes. The limits below bound the memory that a reader needs, whatever the file says.
 */
#ifndef ASYM_RECORD_RECORD_H
#define ASYM_RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <asym/plan.h>
#include <asym/port.h>
#include <asym/types.h>

/** The version of the format. A reader refuses every other one. */
#define ASYM_RECORD_VERSION 5u

/** The most threads, processes and applications of a snapshot, and the most actions on them. */
#define ASYM_RECORD_MAX_TASKS   (1u << 18)
#define ASYM_RECORD_MAX_ACTIONS (1u << 19)

/** The most different masks of a snapshot. */
#define ASYM_RECORD_MAX_MASKS (1u << 17)

/** The most threads and applications of a whole record, and the most phases of its applications, that a program keeps. */
#define ASYM_RECORD_MAX_THREADS      (1u << 20)
#define ASYM_RECORD_MAX_APPLICATIONS (1u << 19)
#define ASYM_RECORD_MAX_PHASES       (1u << 20)

/** The most bytes of a segment's content, and of a text. */
#define ASYM_RECORD_MAX_CONTENT ((size_t)32 << 20)
#define ASYM_RECORD_MAX_TEXT    4096u

/** A record keeps shares of an interval as whole numbers of this part. */
#define ASYM_RECORD_SHARE 16384

/** An option of the configuration that was in force: "classify.amp_boost", "1s". */
struct asym_record_setting {
    const char *name, *value;
};

/** The facts about a whole record. All texts are borrowed, and are UTF-8 without control characters. */
struct asym_record_head {
    const char *version; /**< of the asymd that made it */
    const char *policy;  /**< the policy that planned while asymd recorded */
    bool keep_nice;      /**< asym_engine_config.keep_nice */
    uint64_t began;      /**< seconds since 1970 */
    asym_usec interval;  /**< microseconds between two samples, as configured */
    const struct asym_record_setting *settings;
    const char *const *notes; /**< sentences on what affects a plan and is not in the snapshots */
    size_t n_settings, n_notes;
};

enum { ASYM_RECORD_MAX_SETTINGS = 4096, ASYM_RECORD_MAX_NOTES = 64 };

/* A number that stands for a plan with its actions: a replay compares it to learn whether it has made the same plan. */

/** The same plan and actions give the same number on every machine. Reasons count by their texts. */
uint64_t asym_plan_digest(const struct asym_plan *plan, const struct asym_action *actions, size_t n_actions);

/* Writes a record, and the source that records what another source returns. */

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

/*
 * Reads a record. The file may be damaged or hostile: the reader accepts only what a writer could have written, so that an
 * engine can run on it, and its memory has a limit. A caller that keeps something of each snapshot needs a limit of its own.
 */

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
