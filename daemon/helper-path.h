/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Where the program of the helpers is (linux/helper.h). */
#ifndef ASYM_DAEMON_HELPER_PATH_H
#define ASYM_DAEMON_HELPER_PATH_H

#include <stddef.h>

/**
 * Beside the running program, as in a build tree, or where an installation has put it: it is found from the running program's
 * own path, so that an installation may be moved as a whole.
 * 0; -ENOENT: in neither place; -ENAMETOOLONG; -errno: the running program's path cannot be read.
 */
int asym_helper_path(char *ret, size_t size);

#endif
