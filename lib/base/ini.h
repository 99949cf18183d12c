/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Reads INI texts. Error messages give FILE:LINE and the accepted values. */
#ifndef ASYM_BASE_INI_H
#define ASYM_BASE_INI_H

#include <stdbool.h>
#include <stddef.h>

#include <asym/types.h>

/** Callbacks for an INI text. Each returns 0; -errno with err: what is wrong and what is accepted, without FILE:LINE. */
struct asym_ini {
    const char *name; /**< the file, for messages */
    int (*section)(void *ctx, const char *section, unsigned line, struct asym_error *err);
    /** In place of section, where sections are paths. Gets the line, of any length and with its brackets; it has no comment. */
    int (*path)(void *ctx, const char *text, size_t len, unsigned line, struct asym_error *err);
    int (*key)(void *ctx, const char *section, const char *key, const char *value, unsigned line,
               struct asym_error *err);
    void *ctx;
    bool lenient; /**< skip wrong lines without a message */
};

/** Longest value, in bytes. */
#define ASYM_INI_VALUE_MAX 160

/** Longest name of a section, in bytes. */
#define ASYM_INI_SECTION_MAX 48

/**
 * Read the text and call back for each section and key, trimmed, without comments. The key's section is "" after a path.
 * Returns 0; -EINVAL, -ENOMEM with err.
 */
int asym_ini_read(const struct asym_ini *ini, const char *text, size_t len, struct asym_error *err);

/**
 * Copy NAME or "NAME" to buf, without the quotes. Returns 0; -EINVAL: it is empty, has a quote inside, or does not fit into
 * size bytes.
 */
int asym_ini_name(const char *text, char *buf, size_t size);

#endif
