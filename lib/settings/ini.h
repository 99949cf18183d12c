/* SPDX-License-Identifier: GPL-2.0-or-later */
/** INI texts through inih, with messages that say FILE:LINE and what is accepted. */
#ifndef ASYM_SETTINGS_INI_H
#define ASYM_SETTINGS_INI_H

#include <stdbool.h>
#include <stddef.h>

#include <asym/error.h>

/** What to do with what is read. Each returns 0, or -errno with err, which says what is wrong and what is accepted, without a place. */
struct asym_ini {
    const char *name; /**< of the file, for messages */
    int (*section)(void *ctx, const char *section, unsigned line, struct asym_error *err);
    int (*key)(void *ctx, const char *section, const char *key, const char *value, unsigned line,
               struct asym_error *err);
    void *ctx;
    bool salvage; /**< what is wrong is left out, without a word */
};

/** Longest value, in bytes. inih cuts lines of 200 bytes without a word. */
#define ASYM_INI_VALUE_MAX 160

/** Section, key and value are trimmed; comments are left out. 0; -EINVAL, -ENOMEM with err. */
int asym_ini_read(const struct asym_ini *ini, const char *text, size_t len, struct asym_error *err);

/** The whole of a file of at most 1 MiB; *ret_text is the caller's to free. 0; -EINVAL, -errno with err. */
int asym_ini_file(const char *path, char **ret_text, size_t *ret_len, struct asym_error *err);

#endif
