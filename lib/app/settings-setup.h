/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Loads the settings of a run from the configuration files and the command line. Knows where this installation has its files. */
#ifndef ASYM_APP_SETTINGS_SETUP_H
#define ASYM_APP_SETTINGS_SETUP_H

#include <stdbool.h>
#include <stddef.h>

#include <asym/types.h>

#include "app/run.h"
#include "config/settings.h"

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

/** Returns the path of the configuration that the command line names, or of the installed one. buf has ASYM_PATH_SIZE bytes. */
const char *asym_run_config_path(const struct asym_invocation *cli, char *buf);

/**
 * Write a file to rules.d beside the configuration: it is there as a whole or not at all, also after a crash. Creates rules.d.
 * text NULL: remove the file; -ENOENT if there is none.
 * Returns 0, and its path in ret_path, of ASYM_PATH_SIZE bytes; -errno with err.
 */
int asym_run_write_drop_in(const struct asym_invocation *cli, const char *name, const char *text, char *ret_path,
                           struct asym_error *err);

/**
 * Read such a file as a text, which is "" if there is none. Returns 0, and its path in ret_path; -EFBIG: it has size bytes or more;
 * -errno; with err.
 */
int asym_run_read_drop_in(const struct asym_invocation *cli, const char *name, char *buf, size_t size, char *ret_path,
                          struct asym_error *err);

/** Add the process of --pid. Returns 0; -EINVAL: the text is no process id; -ENOMEM. */
int asym_run_add_pid(struct asym_invocation *cli, const char *text);

/**
 * Load the files, then apply --set and the like in their order. lenient: skip lines and assignments that are wrong. Returns 0;
 * -EINVAL or -errno with err.
 */
int asym_run_settings(const struct asym_invocation *cli, bool lenient, struct asym_settings **ret_settings,
                      struct asym_error *err);

#endif
