/* SPDX-License-Identifier: GPL-2.0-or-later */
/** For profiles*.c alone. */
#ifndef ASYM_PROFILE_INTERNAL_H
#define ASYM_PROFILE_INTERNAL_H

#include <limits.h>
#include <stdbool.h>

#include "profile/profiles.h"

/** A path with every byte escaped, and NUL. */
enum { ASYM_PROFILE_SECTION_MAX = 4 * PATH_MAX + 1 };

/** Text line by line, trimmed. */
struct asym_profile_lines {
    const char *at, *end;
    unsigned number;   /* of the line last given */
    const char *start; /* its first byte in the text */
};

/** False at the end. Comments and empty lines are given too. */
bool asym_profile_next_line(struct asym_profile_lines *l, const char **ret_line, size_t *ret_len);

/** The path in a line that begins with '['. 0; -EINVAL. */
int asym_profile_parse_section(const char *line, size_t len, char ret[PATH_MAX]);

/** -ENOENT when there is none. *ret_text: owned by the caller, NUL-terminated. */
int asym_profiles_read_file(const char *file, char **ret_text, size_t *ret_len, struct asym_error *err);

/** As asym_profiles_load, of a text. */
int asym_profiles_parse(const char *file, const char *text, size_t len, struct asym_profiles **ret,
                        struct asym_error *err);

#endif
