/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The files of records: written beside the old one, and opened for reading. */
#ifndef ASYM_DAEMON_ASYMCTL_RECORD_FILES_H
#define ASYM_DAEMON_ASYMCTL_RECORD_FILES_H

#include <stdbool.h>
#include <stdio.h>

#include <asym/types.h>

#include "record/record.h"

/** All zero: no file. */
struct asym_part_file {
    const char *path; /**< of the complete file; borrowed */
    char part[4096];  /**< of the file while it is written */
    bool kept;        /**< there was a FILE: it is FILE.old now */
    FILE *out;        /**< the caller closes it. FILE.part stays if it was not finished */
};

/**
 * Create FILE.part, with mode 0600. An older FILE.part is removed first: another user may have made it, or linked it elsewhere.
 * Returns 0; -EINVAL with err: path exists and is no regular file; -errno with err.
 */
int asym_part_file_open(struct asym_part_file *f, const char *path, struct asym_error *err);

/**
 * Flush the file, and rename it to FILE; an earlier FILE becomes FILE.old. f->out stays open. Returns 0; -errno with err, and
 * FILE.part stays.
 */
int asym_part_file_finish(struct asym_part_file *f, struct asym_error *err);

/**
 * Open a record and read its head. path: borrowed for the life of the reader. Returns 0, and the caller closes both; -EINVAL with
 * err: the file is missing, cannot be read, is no record, or is damaged; -ENOMEM with err.
 */
int asym_record_input_open(const char *path, FILE **ret_in, struct asym_record_reader **ret_reader,
                           struct asym_error *err);

/**
 * If the record was cut off, says on standard error where it ends. Call this after the last snapshot. The verb has used the
 * snapshots before that place.
 */
void asym_record_input_say_cut(const struct asym_record_reader *reader);

/** Returns -EINVAL for an error that comes from the content of a record or from its file; else r. */
int asym_record_input_result(int r);

#endif
