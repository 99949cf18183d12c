/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The paths of this installation. The prefix is known only to `cmake --install`, so the running program finds it from
 * its own path: an installed program reads the configuration that was installed with it.
 */
#ifndef ASYM_DAEMON_PATHS_H
#define ASYM_DAEMON_PATHS_H

#include <stddef.h>

enum asym_path {
    ASYM_PATH_CONFIG, /**< asymd.conf */
    ASYM_PATH_OMPT,   /**< libasym-ompt.so */
    ASYM_PATH_HELPER, /**< asymd-helper */
    ASYM_N_PATHS,
};

/** A path fits into so many bytes: PATH_MAX of the executable's, and the longest name below a prefix. */
#define ASYM_PATH_SIZE 4352

/**
 * The file of the installation that the running program belongs to. Whether the file exists is not looked at. Returns buf, of
 * ASYM_PATH_SIZE bytes.
 *
 * A program in PREFIX/bin or PREFIX/sbin has its files below PREFIX; the prefix /usr has its configuration in /etc. A program
 * in a build tree, one of its tests included, has the OMPT tool and the helper that were built with it. Any other program has the paths of the configured
 * prefix. It has them, too, where every user may write to PREFIX or to the top of the build tree: another user could have put
 * the file there.
 */
const char *asym_path(enum asym_path path, char *buf);

/** The same for an executable of that absolute path; NULL: not known. */
const char *asym_path_from(const char *executable, enum asym_path path, char *buf);

#endif
