/* SPDX-License-Identifier: GPL-2.0-or-later */
/** What the file of a program tells of whether and how libraries can be loaded into it. */
#ifndef ASYM_LINUX_ELF_H
#define ASYM_LINUX_ELF_H

#include <stdbool.h>

struct asym_elf {
    bool is_elf;     /**< of this machine's word size; else nothing below is known */
    bool is_static;  /**< no interpreter: nothing can be loaded into it */
    bool privileged; /**< set-user-ID, set-group-ID or with capabilities: the loader heeds no environment */
    bool has_gomp;   /**< needs GCC's OpenMP runtime ... */
    bool has_omp;    /**< ... or LLVM's (or Intel's) */
};

/** Read a file, which may be anything. 0; -errno where it cannot be opened or read. */
int asym_elf_read(const char *path, struct asym_elf *ret);

#endif
