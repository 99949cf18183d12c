/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The frame of the file: a signature, then segments. Each segment is a header and a zstd frame, both with a checksum. */
#ifndef ASYM_RECORD_RECORD_FILE_H
#define ASYM_RECORD_RECORD_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <asym/error.h>

enum asym_record_segment {
    ASYM_RECORD_HEAD = 1,      /**< struct asym_record_head; the first segment */
    ASYM_RECORD_SNAPSHOTS = 2, /**< any number of them */
    ASYM_RECORD_END = 3,       /**< the last segment */
};

/** Bytes of the signature and of a segment's header. */
enum { ASYM_RECORD_SIGNATURE = 16, ASYM_RECORD_HEADER = 20 };

/** Write the signature. Returns 0; -errno. */
int asym_record_write_signature(FILE *out);

/** Compress the content, and write a segment. Returns 0; -ENOMEM; -errno of the write. */
int asym_record_write_segment(FILE *out, enum asym_record_segment type, const void *content, size_t len);

/** Read the signature. Returns 0; -EBADMSG with err: this is no record, or one of another version. */
int asym_record_read_signature(FILE *in, const char *name, struct asym_error *err);

/** A segment that was read. All zero: none. */
struct asym_record_content {
    enum asym_record_segment type;
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
