/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Opens the record that a verb reads. A record that cannot be read is wrong usage, as every other input file. */
#ifndef ASYM_DAEMON_ASYMCTL_RECORD_INPUT_H
#define ASYM_DAEMON_ASYMCTL_RECORD_INPUT_H

#include <stdio.h>

#include <asym/error.h>

#include "record/record-reader.h"

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
