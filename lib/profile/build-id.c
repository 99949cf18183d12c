/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/build-id.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"

/* Real programs have about a dozen program headers and some hundred bytes of notes. */
enum { HEADERS_MAX = 512, NOTES_MAX = 65536, ID_MAX = (ASYM_BUILD_ID_MAX - 1) / 2 };

struct elf {
    int fd;
    bool wide, swap; /* wide: 64 bits; swap: not the byte order of this machine */
    uint64_t at;     /* offset of the program headers */
    unsigned n;
};

static uint64_t take(const struct elf *e, const unsigned char *bytes, size_t offset, size_t size)
{
    uint64_t value = 0;
    const bool little = (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) != e->swap;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)bytes[offset + i] << 8 * (little ? i : size - 1 - i);
    return value;
}

#define FIELD(e, bytes, type, field)                                                                                   \
    ((e)->wide ? take((e), (bytes), offsetof(Elf64_##type, field), sizeof(((Elf64_##type *)0)->field))                 \
               : take((e), (bytes), offsetof(Elf32_##type, field), sizeof(((Elf32_##type *)0)->field)))

/* Read up to size bytes. Returns their number, less than size at the end of the file; -errno. */
static ssize_t read_at(int fd, uint64_t offset, void *buf, size_t size)
{
    size_t len = 0;
    while (len < size && offset + len <= INT64_MAX) {
        ssize_t n = pread(fd, (char *)buf + len, size - len, (off_t)(offset + len));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    return (ssize_t)len;
}

static int read_header(int fd, struct elf *ret)
{
    unsigned char head[sizeof(Elf64_Ehdr)] = {0};
    ssize_t len = read_at(fd, 0, head, sizeof head);
    if (len < 0)
        return (int)len;
    const unsigned char class = head[EI_CLASS], data = head[EI_DATA];
    if (len < (ssize_t)sizeof(Elf32_Ehdr) || memcmp(head, ELFMAG, SELFMAG) != 0 ||
        (class != ELFCLASS32 && class != ELFCLASS64) || (data != ELFDATA2LSB && data != ELFDATA2MSB))
        return -ENOEXEC;
    struct elf e = {.fd = fd, .wide = class == ELFCLASS64};
    e.swap = (data == ELFDATA2LSB) != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    if (e.wide && len < (ssize_t)sizeof(Elf64_Ehdr))
        return -ENOEXEC;
    e.at = FIELD(&e, head, Ehdr, e_phoff);
    e.n = (unsigned)FIELD(&e, head, Ehdr, e_phnum);
    if (FIELD(&e, head, Ehdr, e_phentsize) != (e.wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)) || e.n > HEADERS_MAX ||
        e.at > INT64_MAX / 2)
        return e.n == 0 ? -ENODATA : -ENOEXEC;
    *ret = e;
    return 0;
}

static void print_hex(const unsigned char *bytes, size_t n, char *ret)
{
    for (size_t i = 0; i < n; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

/* All sums add 32-bit numbers in 64 bits: they cannot overflow. */
static int find_note(const struct elf *e, const unsigned char *notes, size_t len, uint64_t align, char *ret)
{
    const uint64_t mask = align == 8 ? 7 : 3;
    for (uint64_t at = 0; at + sizeof(Elf32_Nhdr) <= len;) {
        const uint64_t name_size = take(e, notes + at, 0, 4), size = take(e, notes + at, 4, 4);
        const uint64_t type = take(e, notes + at, 8, 4), name = at + sizeof(Elf32_Nhdr);
        const uint64_t desc = (name + name_size + mask) & ~mask;
        if (desc > len || size > len - desc)
            return -ENODATA;
        if (type == NT_GNU_BUILD_ID && name_size == sizeof ELF_NOTE_GNU && size > 0 && size <= ID_MAX &&
            memcmp(notes + name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0) {
            print_hex(notes + desc, (size_t)size, ret);
            return 0;
        }
        at = (desc + size + mask) & ~mask;
    }
    return -ENODATA;
}

int asym_build_id_read(int fd, char ret[ASYM_BUILD_ID_MAX])
{
    struct elf e = {.fd = fd};
    int r = read_header(fd, &e);
    if (r < 0)
        return r;
    ASYM_AUTO_FREE unsigned char *notes = malloc(NOTES_MAX);
    if (!notes)
        return -ENOMEM;
    const size_t size = e.wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    for (unsigned i = 0; i < e.n; i++) {
        unsigned char head[sizeof(Elf64_Phdr)];
        ssize_t len = read_at(fd, e.at + i * size, head, size);
        if (len < (ssize_t)size)
            return len < 0 ? (int)len : -ENOEXEC;
        if (FIELD(&e, head, Phdr, p_type) != PT_NOTE)
            continue;
        const uint64_t file_size = FIELD(&e, head, Phdr, p_filesz);
        len = read_at(fd, FIELD(&e, head, Phdr, p_offset), notes, (size_t)ASYM_MIN(file_size, (uint64_t)NOTES_MAX));
        if (len < 0)
            return (int)len;
        r = find_note(&e, notes, (size_t)len, FIELD(&e, head, Phdr, p_align), ret);
        if (r != -ENODATA)
            return r;
    }
    return -ENODATA;
}
