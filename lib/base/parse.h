/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Parsers of text in the caller's buffer. They use no locale, do not allocate, and write *ret on success only. */
#ifndef ASYM_BASE_PARSE_H
#define ASYM_BASE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

/** Remove white space (space, tab, CR, LF) from both ends. */
void asym_parse_trim(const char **text, size_t *len);

/** A text that is read line by line. */
struct asym_lines {
    const char *at, *end; /**< the text still to read */
    const char *start;    /**< first byte of the current line */
    unsigned number;      /**< of the current line, from 1 */
};

/** Get the next line, trimmed. Returns empty lines too; false at the end. */
bool asym_lines_next(struct asym_lines *l, const char **ret_line, size_t *ret_len);

/** Returns true if the line has no control character except tabs. */
bool asym_line_is_text(const char *line, size_t len);

/** Parse a decimal number. Surrounding white space is allowed, other text is not. Returns 0; -EINVAL, -ERANGE. */
int asym_parse_u64(const char *text, size_t len, uint64_t *ret);

/** Parse a decimal number that may have a minus sign. Returns 0; -EINVAL, -ERANGE. */
int asym_parse_i64(const char *text, size_t len, int64_t *ret);

/** Parse a decimal fraction: 1, 0.5, 12.25. No exponent, nan or inf. Returns 0; -EINVAL, -ERANGE. */
int asym_parse_number(const char *text, size_t len, double *ret);

/**
 * Parse a time as systemd.time(7) has them: "100ms", "1h30min", "2 days"; the units are us to weeks, and each number needs one.
 * Returns 0; -EINVAL, -ERANGE.
 */
int asym_parse_duration(const char *text, size_t len, asym_usec *ret);

/** Parse yes/no, true/false, on/off, or 1/0, in any case. Returns 0; -EINVAL. */
int asym_parse_bool(const char *text, size_t len, bool *ret);

#endif
