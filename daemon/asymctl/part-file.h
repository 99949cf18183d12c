/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A file that has another name until it is complete: FILE.part. Only its owner can read it, because it can name others' processes.
 */
#ifndef ASYM_DAEMON_ASYMCTL_PART_FILE_H
#define ASYM_DAEMON_ASYMCTL_PART_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include <asym/error.h>

/** All zero: no file. */
struct asym_part_file {
    const char *path; /**< of the complete file; borrowed */
    char part[4096];  /**< of the file while it is written */
    bool kept;        /**< there was a FILE: it is FILE.old now */
    FILE *out;
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

/** Close the file. FILE.part stays if it was not finished. */
void asym_part_file_done(struct asym_part_file *f);

#endif
