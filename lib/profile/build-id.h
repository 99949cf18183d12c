/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Which build of a program a file is, from its ELF note. */
#ifndef ASYM_PROFILE_BUILD_ID_H
#define ASYM_PROFILE_BUILD_ID_H

/** Hexadecimal digits of the longest build id that is accepted (64 bytes; linkers write 8 to 20), and NUL. */
#define ASYM_BUILD_ID_MAX 129

/**
 * The note NT_GNU_BUILD_ID of the file, of either class and byte order, in lower-case hexadecimal digits. Reads the headers and
 * at most 64 KiB of each segment of notes, whatever is in the file; the descriptor's position stays.
 * Returns 0; -ENODATA: an ELF file without one; -ENOEXEC: no ELF file, or junk; -errno.
 */
int asym_build_id_read(int fd, char ret[ASYM_BUILD_ID_MAX]);

#endif
