/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Reads from the file of a program whether libraries can be loaded into it, and which OpenMP runtime it needs. */
#ifndef ASYM_LINUX_SYS_ELF_H
#define ASYM_LINUX_SYS_ELF_H

#include <stdbool.h>

struct asym_elf {
    bool is_elf; /**< an ELF file of this machine's word size; if not, of the fields below only privileged is valid */
    bool is_static;  /**< it has no interpreter: no library can be loaded into it */
    bool privileged; /**< set-user-ID, set-group-ID or with capabilities: the loader ignores the environment */
    bool has_gomp;   /**< it needs GCC's OpenMP runtime */
    bool has_omp;    /**< it needs LLVM's or Intel's OpenMP runtime */
};

/** Read a file of any kind. 0; -errno when it cannot be opened. */
int asym_elf_read(const char *path, struct asym_elf *ret);

#endif
