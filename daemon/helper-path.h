/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Where the program of the helpers is (linux/helper.h). */
#ifndef ASYM_DAEMON_HELPER_PATH_H
#define ASYM_DAEMON_HELPER_PATH_H

#include <stddef.h>

/**
 * Of the installation or build tree that the running program belongs to (daemon/paths.h).
 * 0; -ENAMETOOLONG; -errno of access(2): -ENOENT: it is not there; -EACCES: it cannot be executed.
 */
int asym_helper_path(char *ret, size_t size);

#endif
