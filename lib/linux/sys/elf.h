/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Reads from the file of a program whether libraries can be loaded into it, which OpenMP runtime it needs, and its build id. */
#ifndef ASYM_LINUX_SYS_ELF_H
#define ASYM_LINUX_SYS_ELF_H

#include <stdbool.h>

#include <asym/types.h>

struct asym_elf {
    bool is_elf; /**< an ELF file of this machine's word size; if not, of the fields below only privileged is valid */
    bool is_static;  /**< it has no interpreter: no library can be loaded into it */
    bool privileged; /**< set-user-ID, set-group-ID or with capabilities: the loader ignores the environment */
    bool has_gomp;   /**< it needs GCC's OpenMP runtime */
    bool has_omp;    /**< it needs LLVM's or Intel's OpenMP runtime */
};

/** Read a file of any kind. 0; -errno when it cannot be opened. */
int asym_elf_read(const char *path, struct asym_elf *ret);

/**
 * Reads the note NT_GNU_BUILD_ID of a program of this machine's word size as lower-case hexadecimal digits. It reads only the
 * headers and at most 64 KiB of each note segment, and keeps the file position of fd.
 * Returns 0; -ENODATA: a program without the note; -ENOEXEC: no such program, or a malformed one; -ENOMEM; -errno.
 */
int asym_elf_build_id(int fd, char ret[ASYM_BUILD_ID_MAX]);

#endif
