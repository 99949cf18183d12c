/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Codes the first and the last segment of a record. */
#ifndef ASYM_RECORD_RECORD_HEAD_H
#define ASYM_RECORD_RECORD_HEAD_H

#include <asym/machine.h>

#include "record/record-io.h"
#include "record/record-known.h"
#include "record/record.h"

/**
 * Code the fields that asym_machine_finish derives the others from. While reading, *m gets all fields; it is not used if a
 * fault is noted.
 */
void asym_record_machine(struct asym_record_io *io, struct asym_machine *m);

/** A head with the memory that it borrows. All zero: empty. */
struct asym_record_head_data {
    struct asym_record_head head;
    struct asym_record_setting *settings;
    const char **notes;
    struct asym_record_texts texts;
};

void asym_record_head_done(struct asym_record_head_data *d);

/** Code d->head. Each text must be printable (asym_text_is_printable). While reading, the head borrows from *d. */
void asym_record_head(struct asym_record_io *io, struct asym_record_head_data *d);

#endif
