/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Internal to profiles*.c. */
#ifndef ASYM_PROFILE_INTERNAL_H
#define ASYM_PROFILE_INTERNAL_H

#include <limits.h>

#include "profile/profiles.h"

/** The longest path, with every byte escaped, and NUL. */
enum { ASYM_PROFILE_SECTION_MAX = 4 * PATH_MAX + 1 };

/** Parse the path from a line that begins with '['. Returns 0; -EINVAL. */
int asym_profile_parse_section(const char *line, size_t len, char ret[PATH_MAX]);

/** Read the whole file. The caller frees *ret_text, which ends with NUL. Returns 0; -ENOENT: no file; -errno with err. */
int asym_profiles_read_file(const char *file, char **ret_text, size_t *ret_len, struct asym_error *err);

/** Does what asym_profiles_load does, from a text. */
int asym_profiles_parse(const char *file, const char *text, size_t len, struct asym_profiles **ret,
                        struct asym_error *err);

#endif
