/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Reads the build id of a program from its ELF note. */
#ifndef ASYM_PROFILE_BUILD_ID_H
#define ASYM_PROFILE_BUILD_ID_H

/** Hexadecimal digits of the longest build id that is accepted (64 bytes; linkers write 8 to 20), and NUL. */
#define ASYM_BUILD_ID_MAX 129

/**
 * Reads the note NT_GNU_BUILD_ID of the file, of either class and byte order, as lower-case hexadecimal digits. It reads only
 * the headers and at most 64 KiB of each note segment, and keeps the file position of fd.
 * Returns 0; -ENODATA: an ELF file without the note; -ENOEXEC: no ELF file, or a malformed one; -ENOMEM; -errno.
 */
int asym_build_id_read(int fd, char ret[ASYM_BUILD_ID_MAX]);

#endif
