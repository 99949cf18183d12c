/* SPDX-License-Identifier: GPL-2.0-or-later */
/** All option rows as one sequence: the general ones, then those of each policy. */
#ifndef ASYM_SETTINGS_ROWS_H
#define ASYM_SETTINGS_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include <asym/settings.h>

struct asym_row {
    const struct asym_option *option;
    void *base; /**< its offset is into this */
    char section[64];
};

/** Row i of s; false behind the last. */
bool asym_row_at(const struct asym_settings *s, size_t i, struct asym_row *ret);

/** 0 when there is such a section (rules are not asked for here); -EINVAL with err, without a place. */
int asym_section_check(const struct asym_settings *s, const char *section, struct asym_error *err);

/** Set a key; *ret_row: its number. -EINVAL with err, without a place. */
int asym_settings_assign(struct asym_settings *s, const char *section, const char *key, const char *value,
                         const char *origin, size_t *ret_row, struct asym_error *err);

int asym_settings_copy(const struct asym_settings *from, struct asym_settings **ret_copy);
void asym_settings_swap(struct asym_settings *a, struct asym_settings *b);

#endif
