/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Loads the settings of a run from the configuration files and the command line. */
#ifndef ASYM_APP_SETTINGS_SETUP_H
#define ASYM_APP_SETTINGS_SETUP_H

#include <asym/error.h>
#include <asym/settings.h>

#include "app/invocation.h"

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

/** Load the files, then apply --set and the like in their order. Returns 0; -EINVAL or -errno with err. */
int asym_run_settings(const struct asym_invocation *cli, struct asym_settings **ret_settings, struct asym_error *err);

/** Do the same, but skip lines and assignments that are wrong. Returns 0; -errno with err. */
int asym_run_load_lenient(const struct asym_invocation *cli, struct asym_settings **ret_settings,
                          struct asym_error *err);

#endif
