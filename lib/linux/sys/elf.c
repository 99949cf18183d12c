/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/sys/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/macro.h"

/* No program has more headers or entries. A file that claims more is not read as a program. */
#define HEADERS_MOST 128
#define DYNAMIC_MOST 4096
/* Real programs have some hundred bytes of notes. */
#define NOTES_MOST 65536

static bool read_at(int fd, void *buf, size_t size, uint64_t offset)
{
    return offset <= INT64_MAX - size && pread(fd, buf, size, (off_t)offset) == (ssize_t)size;
}

/* Reads the program headers of a program of this machine's word size and byte order. Returns their number; -ENOEXEC; -errno. */
static int read_headers(int fd, ElfW(Phdr) ret[HEADERS_MOST])
{
    ElfW(Ehdr) e;
    const unsigned char class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    const unsigned char data = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    const ssize_t n = pread(fd, &e, sizeof e, 0);
    if (n < 0)
        return -errno;
    if (n < (ssize_t)sizeof e || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_ident[EI_CLASS] != class ||
        e.e_ident[EI_DATA] != data || e.e_phentsize != sizeof ret[0] || e.e_phnum == 0 || e.e_phnum > HEADERS_MOST ||
        !read_at(fd, ret, e.e_phnum * sizeof ret[0], e.e_phoff))
        return -ENOEXEC;
    return e.e_phnum;
}

static const ElfW(Phdr) * find_header(const ElfW(Phdr) * headers, size_t n, uint32_t type)
{
    for (size_t i = 0; i < n; i++)
        if (headers[i].p_type == type)
            return &headers[i];
    return NULL;
}

/* The file offset of an address of the program; 0: the file does not contain it. */
static uint64_t offset_of(const ElfW(Phdr) * headers, size_t n, uint64_t address)
{
    for (size_t i = 0; i < n; i++)
        if (headers[i].p_type == PT_LOAD && address >= headers[i].p_vaddr &&
            address - headers[i].p_vaddr < headers[i].p_filesz)
            return address - headers[i].p_vaddr + headers[i].p_offset;
    return 0;
}

static void note_needed(int fd, uint64_t offset, struct asym_elf *elf)
{
    static const struct {
        const char *prefix;
        bool is_gomp;
    } rows[] = {{"libgomp.so", true}, {"libomp.so", false}, {"libomp5.so", false}, {"libiomp5.so", false}};
    char name[32] = "";
    /* The last string of a file may be shorter than the buffer. */
    ssize_t n = offset <= INT64_MAX ? pread(fd, name, sizeof name - 1, (off_t)offset) : -1;
    for (size_t i = 0; n > 0 && i < ASYM_LENGTH(rows); i++) {
        if (strncmp(name, rows[i].prefix, strlen(rows[i].prefix)) != 0)
            continue;
        elf->has_gomp |= rows[i].is_gomp;
        elf->has_omp |= !rows[i].is_gomp;
    }
}

static void read_dynamic(int fd, const ElfW(Phdr) * headers, size_t n, struct asym_elf *elf)
{
    const ElfW(Phdr) *dynamic = find_header(headers, n, PT_DYNAMIC);
    const size_t entries = dynamic ? ASYM_MIN(dynamic->p_filesz / sizeof(ElfW(Dyn)), (uint64_t)DYNAMIC_MOST) : 0;
    ElfW(Dyn) d;
    uint64_t strings = 0;
    for (size_t i = 0; i < entries; i++)
        if (read_at(fd, &d, sizeof d, dynamic->p_offset + i * sizeof d) && d.d_tag == DT_STRTAB)
            strings = offset_of(headers, n, d.d_un.d_ptr);
    for (size_t i = 0; strings > 0 && i < entries; i++)
        if (read_at(fd, &d, sizeof d, dynamic->p_offset + i * sizeof d) && d.d_tag == DT_NEEDED)
            note_needed(fd, strings + d.d_un.d_val, elf);
}

int asym_elf_read(const char *path, struct asym_elf *ret)
{
    ElfW(Phdr) headers[HEADERS_MOST];
    struct stat st;
    struct asym_elf elf = {.is_elf = false};
    ASYM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    elf.privileged = (st.st_mode & (S_ISUID | S_ISGID)) != 0 || fgetxattr(fd, "security.capability", NULL, 0) > 0;
    const int n = read_headers(fd, headers);
    if (n > 0) {
        elf.is_elf = true;
        elf.is_static = !find_header(headers, (size_t)n, PT_INTERP);
        read_dynamic(fd, headers, (size_t)n, &elf);
    }
    *ret = elf;
    return 0;
}

/* All sums add 32-bit numbers in 64 bits: they cannot overflow. */
static int find_build_id(const unsigned char *notes, size_t len, uint64_t align, char ret[ASYM_BUILD_ID_MAX])
{
    const uint64_t mask = align == 8 ? 7 : 3;
    ElfW(Nhdr) note;
    for (uint64_t at = 0; at + sizeof note <= len;) {
        memcpy(&note, notes + at, sizeof note);
        const uint64_t name = at + sizeof note, desc = (name + note.n_namesz + mask) & ~mask;
        if (desc > len || note.n_descsz > len - desc)
            return -ENODATA;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU && note.n_descsz > 0 &&
            note.n_descsz <= (ASYM_BUILD_ID_MAX - 1) / 2 &&
            memcmp(notes + name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0) {
            for (size_t i = 0; i < note.n_descsz; i++)
                snprintf(ret + 2 * i, 3, "%02x", notes[desc + i]);
            return 0;
        }
        at = (desc + note.n_descsz + mask) & ~mask;
    }
    return -ENODATA;
}

int asym_elf_build_id(int fd, char ret[ASYM_BUILD_ID_MAX])
{
    ElfW(Phdr) headers[HEADERS_MOST];
    const int n = read_headers(fd, headers);
    if (n < 0)
        return n;
    ASYM_AUTO_FREE unsigned char *notes = malloc(NOTES_MOST);
    int r = notes ? -ENODATA : -ENOMEM;
    for (int i = 0; r == -ENODATA && i < n; i++) {
        const ElfW(Phdr) *h = &headers[i];
        if (h->p_type != PT_NOTE || h->p_offset > INT64_MAX)
            continue;
        const ssize_t len = pread(fd, notes, ASYM_MIN(h->p_filesz, (uint64_t)NOTES_MOST), (off_t)h->p_offset);
        r = len < 0 ? -errno : find_build_id(notes, (size_t)len, h->p_align, ret);
    }
    return r;
}
