/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Goes through all options of the settings by index: first those of the sections, then those of each policy. */
#ifndef ASYM_CONFIG_SETTINGS_ROWS_H
#define ASYM_CONFIG_SETTINGS_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include <asym/settings.h>

struct asym_row {
    const struct asym_option *option;
    void *base; /**< the offset of option is into base */
    char section[64];
};

/** Get row i of s. Returns false after the last row. */
bool asym_row_at(const struct asym_settings *s, size_t i, struct asym_row *ret);

/** Returns 0 when the section exists; -EINVAL with err, without FILE:LINE. Does not know the sections of rules. */
int asym_section_check(const struct asym_settings *s, const char *section, struct asym_error *err);

/** Set a key. *ret_row is its row; ret_row may be NULL. Returns 0; -EINVAL, -ENOMEM with err, without FILE:LINE. */
int asym_settings_assign(struct asym_settings *s, const char *section, const char *key, const char *value,
                         const char *origin, size_t *ret_row, struct asym_error *err);

#endif
