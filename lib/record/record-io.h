/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Bytes that are written or read. A function that codes a value has one body for both directions: it passes the value, and
 * takes over what the call returns. While writing, that is the same value. While reading, it is the value in the bytes.
 *
 * The first fault stays. After it, nothing is read or written, and each call returns the least accepted value. So a caller
 * checks only before it uses a number as a size.
 */
#ifndef ASYM_RECORD_RECORD_IO_H
#define ASYM_RECORD_RECORD_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

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

#endif
