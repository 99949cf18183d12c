/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Codes snapshots, each as its difference from the ones before it. A codec of the writer and a codec of the reader go through
 * the same states, and the same functions describe both directions.
 */
#ifndef ASYM_RECORD_RECORD_CODEC_H
#define ASYM_RECORD_RECORD_CODEC_H

#include <asym/port.h>
#include <asym/snapshot.h>

#include "base/mask-table.h"
#include "base/pool.h"
#include "record/record-io.h"
#include "record/record-known.h"

/** All zero: nothing is known. */
struct asym_record_codec {
    struct asym_record_known tasks, procs, apps; /* by identity */
    struct asym_mask_table masks;
    struct asym_record_texts texts;
    struct asym_record_profiles profiles;
    asym_usec now;     /* of the last snapshot */
    size_t named;      /* threads that the segments before this one named */
    uint64_t snapshot; /* number of the snapshot; it tells which threads it has named already */
    struct asym_pool out_tasks, out_procs, out_facts, out_apps, out_samples, refs, outcomes;
};

void asym_record_codec_done(struct asym_record_codec *c);

/** Forget what the segment has named, except how many threads. The last snapshot is no longer valid. */
void asym_record_codec_reset(struct asym_record_codec *c);

/** Returns true if a snapshot with so many threads fits into the segment. */
bool asym_record_codec_has_room(const struct asym_record_codec *c, const struct asym_snapshot *s);

/**
 * Code a snapshot. Afterwards *s is, in both directions, what a reader gets: the arrays belong to the codec and are valid until
 * the next call, and shares are rounded to 1 / ASYM_RECORD_SHARE. s->machine is not coded.
 */
void asym_record_snapshot(struct asym_record_io *io, struct asym_record_codec *c, struct asym_snapshot *s);

/**
 * Code the outcomes of a snapshot's actions: at most one for each thread that a snapshot so far has named, because an engine can
 * release threads that only an earlier segment names. While reading, *outcomes belong to the codec until the next call.
 */
void asym_record_outcomes(struct asym_record_io *io, struct asym_record_codec *c, const struct asym_outcome **outcomes,
                          size_t *n);

enum asym_record_item_kind {
    ASYM_RECORD_ITEM_MACHINE = 1,
    ASYM_RECORD_ITEM_SNAPSHOT = 2,
    ASYM_RECORD_ITEM_FEEDBACK = 3,
};

#endif
