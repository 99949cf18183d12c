/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record-internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"

void asym_record_io_done(struct asym_record_io *io)
{
    if (io->writing)
        free(io->bytes);
    *io = (struct asym_record_io){.writing = io->writing};
}

static void fail(struct asym_record_io *io, int error, const char *fault)
{
    if (io->error < 0)
        return;
    io->error = error;
    io->fault = fault;
    io->fault_at = io->used;
}

void asym_record_io_fail(struct asym_record_io *io, const char *fault)
{
    fail(io, io->writing ? -E2BIG : -EBADMSG, fault);
}

size_t asym_record_io_left(const struct asym_record_io *io)
{
    return (io->writing ? ASYM_RECORD_MAX_CONTENT : io->size) - io->used;
}

/* Make room for n more bytes to write. */
static bool make_room(struct asym_record_io *io, size_t n)
{
    if (n > asym_record_io_left(io)) {
        fail(io, -E2BIG, "a snapshot is too large for a record");
        return false;
    }
    if (n <= io->size - io->used)
        return true;
    const size_t larger = ASYM_MAX(io->size * 2, io->used + n + 4096);
    unsigned char *grown = realloc(io->bytes, larger);
    if (!grown) {
        fail(io, -ENOMEM, "no memory");
        return false;
    }
    io->bytes = grown;
    io->size = larger;
    return true;
}

void asym_record_bytes(struct asym_record_io *io, void *data, size_t n)
{
    if (io->error < 0) {
        if (!io->writing)
            memset(data, 0, n);
        return;
    }
    if (io->writing) {
        if (make_room(io, n)) {
            memcpy(io->bytes + io->used, data, n);
            io->used += n;
        }
        return;
    }
    if (n > asym_record_io_left(io)) {
        memset(data, 0, n);
        fail(io, -EBADMSG, "the content ends in the middle of a value");
        return;
    }
    memcpy(data, io->bytes + io->used, n);
    io->used += n;
}

/* Most numbers take one byte, and a record has many: that one needs no call of memcpy. */
static bool has_byte(const struct asym_record_io *io)
{
    return io->error == 0 && io->used < ASYM_MIN(io->size, ASYM_RECORD_MAX_CONTENT);
}

/* LEB128: seven bits a byte, the lowest first; the top bit says that another byte follows. */
static void write_varint(struct asym_record_io *io, uint64_t value)
{
    unsigned char bytes[10];
    size_t n = 0;
    if (value <= 0x7f && has_byte(io)) {
        io->bytes[io->used++] = (unsigned char)value;
        return;
    }
    do {
        bytes[n] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
        n++;
    } while (value > 0);
    asym_record_bytes(io, bytes, n);
}

static uint64_t read_varint(struct asym_record_io *io)
{
    uint64_t value = 0;
    if (has_byte(io) && io->bytes[io->used] <= 0x7f)
        return io->bytes[io->used++];
    for (unsigned shift = 0; shift < 64; shift += 7) {
        unsigned char byte;
        asym_record_bytes(io, &byte, 1);
        /* The tenth byte has room for one bit. */
        if (shift == 63 && byte > 1)
            break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte <= 0x7f)
            return value;
    }
    asym_record_io_fail(io, "a number has more than 64 bits");
    return 0;
}

static uint64_t code_varint(struct asym_record_io *io, uint64_t value)
{
    if (io->writing)
        write_varint(io, value);
    else
        value = read_varint(io);
    return value;
}

uint64_t asym_record_u64(struct asym_record_io *io, uint64_t value, uint64_t max)
{
    value = code_varint(io, value);
    if (value > max) {
        asym_record_io_fail(io, "a number is too large");
        return 0;
    }
    return value;
}

int64_t asym_record_delta(struct asym_record_io *io, int64_t value, int64_t last, int64_t min, int64_t max)
{
    /* Zigzag: 0, -1, 1, -2 become 0, 1, 2, 3. The difference may wrap, and wraps back when it is read. */
    const uint64_t difference = (uint64_t)value - (uint64_t)last;
    const uint64_t coded = code_varint(io, difference << 1 ^ (0 - (difference >> 63)));
    value = (int64_t)((uint64_t)last + (coded >> 1 ^ (0 - (coded & 1))));
    if (io->error == 0 && value >= min && value <= max)
        return value;
    asym_record_io_fail(io, "a number is out of range");
    return min;
}

size_t asym_record_count(struct asym_record_io *io, size_t n, size_t max)
{
    n = (size_t)asym_record_u64(io, n, max);
    if (!io->writing && n > asym_record_io_left(io)) {
        asym_record_io_fail(io, "there are more items than bytes");
        return 0;
    }
    return n;
}

bool asym_record_bool(struct asym_record_io *io, bool value)
{
    return asym_record_u64(io, value, 1) != 0;
}

uint64_t asym_record_word(struct asym_record_io *io, uint64_t value)
{
    unsigned char bytes[8];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
    asym_record_bytes(io, bytes, sizeof bytes);
    value = 0;
    for (unsigned i = 0; i < 8; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

double asym_record_double(struct asym_record_io *io, double value)
{
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    word = asym_record_word(io, word);
    memcpy(&value, &word, sizeof value);
    if (isfinite(value))
        return value;
    asym_record_io_fail(io, "a figure is not finite");
    return 0;
}

/* The number of words up to the last that is not zero, then these words. */
void asym_record_mask(struct asym_record_io *io, struct asym_mask *mask)
{
    uint64_t n = ASYM_MASK_WORDS;
    while (io->writing && n > 0 && mask->w[n - 1] == 0)
        n--;
    n = asym_record_u64(io, n, ASYM_MASK_WORDS);
    for (uint64_t i = 0; i < ASYM_MASK_WORDS; i++)
        mask->w[i] = i < n ? asym_record_word(io, mask->w[i]) : 0;
}

const char *asym_record_text(struct asym_record_io *io, const char *text)
{
    char end = '\0';
    const size_t len = io->writing && text ? strnlen(text, ASYM_RECORD_MAX_TEXT) : 0;
    const size_t size = asym_record_count(io, text ? len + 1 : 0, ASYM_RECORD_MAX_TEXT + 1);
    if (size == 0 || !asym_record_io_ok(io))
        return NULL;
    if (io->writing) {
        asym_record_bytes(io, (void *)(uintptr_t)text, len);
        asym_record_bytes(io, &end, 1);
        return text;
    }
    text = (const char *)io->bytes + io->used;
    if (memchr(text, '\0', size) != text + size - 1) {
        asym_record_io_fail(io, "a text has no end, or more than one");
        return NULL;
    }
    io->used += size;
    return text;
}
