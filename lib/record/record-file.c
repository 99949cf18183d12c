/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record-internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "base/macro.h"

/* Level 5 takes about the time of level 3, and a tenth less space (docs/record-format.md). */
enum { LEVEL = 5 };

/* The first byte is not ASCII, and the line ends differ: a transfer as text does not go unnoticed. */
static const unsigned char magic[12] = {0x89, 'A', 'S', 'Y', 'M', 'R', 'E', 'C', '\r', '\n', 0x1a, '\n'};

static void put32(unsigned char *bytes, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
}

static uint32_t get32(const unsigned char *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static int write_all(FILE *out, const void *bytes, size_t n)
{
    errno = 0;
    return fwrite(bytes, 1, n, out) == n ? 0 : errno > 0 ? -errno : -EIO;
}

int asym_record_write_signature(FILE *out)
{
    unsigned char bytes[ASYM_RECORD_SIGNATURE];
    memcpy(bytes, magic, sizeof magic);
    put32(bytes + sizeof magic, ASYM_RECORD_VERSION);
    return write_all(out, bytes, sizeof bytes);
}

static void free_context(ZSTD_CCtx **context)
{
    ZSTD_freeCCtx(*context);
}

int asym_record_write_segment(FILE *out, const void *content, size_t len)
{
    const size_t bound = ZSTD_compressBound(len);
    ASYM_AUTO_FREE unsigned char *packed = malloc(bound);
    ASYM_CLEANUP(free_context) ZSTD_CCtx *context = ZSTD_createCCtx();
    if (!packed || !context)
        return -ENOMEM;
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    const size_t n = ZSTD_compress2(context, packed, bound, content, len);
    if (ZSTD_isError(n))
        return -ENOMEM;
    unsigned char header[ASYM_RECORD_HEADER];
    put32(header, (uint32_t)n);
    put32(header + 4, ~(uint32_t)n);
    int r = write_all(out, header, sizeof header);
    if (r >= 0)
        r = write_all(out, packed, n);
    return r >= 0 && fflush(out) != 0 ? -errno : r;
}

int asym_record_read_signature(FILE *in, const char *name, struct asym_error *err)
{
    unsigned char bytes[ASYM_RECORD_SIGNATURE];
    const size_t n = fread(bytes, 1, sizeof bytes, in);
    if (ferror(in))
        return asym_fail(err, -EIO, "%.200s: cannot be read: %s", name, strerror(errno));
    if (n < sizeof bytes || memcmp(bytes, magic, sizeof magic) != 0)
        return asym_fail(err, -EBADMSG, "%.200s: byte 0: this is not a record of asymctl record", name);
    const uint32_t version = get32(bytes + sizeof magic);
    if (version != ASYM_RECORD_VERSION)
        return asym_fail(err, -EBADMSG, "%.200s: byte %zu: the record has version %" PRIu32 "; this asymctl reads %u",
                         name, sizeof magic, version, ASYM_RECORD_VERSION);
    return 0;
}

static int damaged(const char *name, const struct asym_record_content *c, const char *what, struct asym_error *err)
{
    return asym_fail(err, -EBADMSG, "%.200s: byte %" PRIu64 ", segment %u: %s; the record is damaged", name, c->at,
                     c->number, what);
}

/* Returns 1; 0 if the file ends first; -EIO with err. */
static int read_exactly(FILE *in, const char *name, void *bytes, size_t n, struct asym_error *err)
{
    if (fread(bytes, 1, n, in) == n)
        return 1;
    return ferror(in) ? asym_fail(err, -EIO, "%.200s: cannot be read", name) : 0;
}

static int unpack(const char *name, struct asym_record_content *c, const unsigned char *packed, size_t n,
                  struct asym_error *err)
{
    const unsigned long long len = ZSTD_getFrameContentSize(packed, n);
    if (len > ASYM_RECORD_MAX_CONTENT)
        return damaged(name, c, "its frame gives no length, or more than a segment can have", err);
    unsigned char *bytes = realloc(c->bytes, (size_t)len + 1);
    if (!bytes)
        return asym_fail(err, -ENOMEM, "no memory");
    c->bytes = bytes;
    c->len = (size_t)len;
    return ZSTD_decompress(bytes, c->len, packed, n) == len
               ? 1
               : damaged(name, c, "its content cannot be decompressed, or its checksum is wrong", err);
}

static int read_body(FILE *in, const char *name, size_t n, struct asym_record_content *c, struct asym_error *err)
{
    ASYM_AUTO_FREE unsigned char *packed = malloc(n + 1);
    if (!packed)
        return asym_fail(err, -ENOMEM, "no memory");
    const int r = read_exactly(in, name, packed, n, err);
    if (r == 0)
        return asym_fail(err, 0, "%.200s: byte %" PRIu64 ", segment %u: the file ends inside it", name, c->at,
                         c->number);
    return r < 0 ? r : unpack(name, c, packed, n, err);
}

int asym_record_read_segment(FILE *in, const char *name, struct asym_record_content *content, struct asym_error *err)
{
    unsigned char header[ASYM_RECORD_HEADER];
    const off_t at = ftello(in);
    struct asym_record_content c = *content;
    c.number = content->at > 0 ? content->number + 1 : 0;
    c.at = at > 0 ? (uint64_t)at : 0;
    int r = read_exactly(in, name, header, sizeof header, err);
    if (r == 0)
        asym_fail(err, 0, "%.200s: byte %" PRIu64 ": the file ends without the segment that ends a record", name, c.at);
    if (r <= 0)
        return r;
    const size_t n = get32(header);
    if (n != (uint32_t)~get32(header + 4) || n > ZSTD_compressBound(ASYM_RECORD_MAX_CONTENT))
        return damaged(name, &c, "its length is wrong", err);
    r = read_body(in, name, n, &c, err);
    *content = c;
    return r;
}
