/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The paths of this installation. Only `cmake --install` knows the prefix, so the running program derives it from its own path:
 * an installed program reads the configuration that was installed with it.
 */
#ifndef ASYM_APP_INSTALL_PATHS_H
#define ASYM_APP_INSTALL_PATHS_H

#include <stddef.h>

enum asym_path {
    ASYM_PATH_CONFIG, /**< asymd.conf */
    ASYM_PATH_OMPT,   /**< libasym-ompt.so */
    ASYM_PATH_HELPER, /**< asymd-helper */
    ASYM_PATH_RULES,  /**< the directory of the library of rules */
    ASYM_N_PATHS,
};

/** The bytes of a path: PATH_MAX for the executable, and the longest name below a prefix. */
#define ASYM_PATH_SIZE 4352

/**
 * Write the path of a file of the installation that the running program belongs to. The file may not exist. Returns buf, of
 * ASYM_PATH_SIZE bytes.
 *
 * A program in PREFIX/bin or PREFIX/sbin uses the files below PREFIX; the prefix /usr has its configuration in /etc. A program
 * in a build tree, including its tests, uses the OMPT tool, the helper and the library of rules of that build. Any other program
 * uses the paths of the configured prefix. So does a program if every user may write to PREFIX or to the top of the build tree:
 * another user could have put the file there.
 */
const char *asym_path(enum asym_path path, char *buf);

/** Do the same for the executable with that absolute path; NULL: unknown. */
const char *asym_path_from(const char *executable, enum asym_path path, char *buf);

/** Find the file that execvp runs for this name. A name with a slash is a path; PATH finds any other. Returns 0; -ENOENT. */
int asym_path_find_program(const char *name, char *path, size_t size);

#endif
