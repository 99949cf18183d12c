/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Text for users: the distance of two spellings, a printable form of any bytes, a text that grows in a buffer, and parsers. */
#ifndef ASYM_BASE_TEXT_H
#define ASYM_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

/** Returns the Levenshtein distance, for "did you mean". Texts longer than 64 bytes are cut. */
unsigned asym_text_distance(const char *a, const char *b);

/**
 * Make bytes printable. Valid UTF-8 is copied. Control characters, characters that hide or reorder the text beside them, and
 * bytes that are not UTF-8 become \xNN; a backslash becomes \\. If size is too small, the text ends after a whole escape or
 * character. The text ends in NUL. Returns buf.
 */
const char *asym_text_escape(const char *bytes, size_t len, char *buf, size_t size);

/** The same for a text that ends in NUL. */
const char *asym_text_show(const char *text, char *buf, size_t size);

/** Returns true if all bytes are printable: valid UTF-8, and no character but a backslash that asym_text_escape escapes. */
bool asym_text_is_printable(const char *bytes, size_t len);

/** Returns text if it is printable, else its printable form in buf. A text that was made printable before keeps its backslashes. */
const char *asym_text_printable(const char *text, char *buf, size_t size);

/** A text that grows in a buffer of the caller. It ends in NUL at any time. */
struct asym_text {
    char *buf;
    size_t size, used; /**< bytes; used: without the NUL */
};

/** Returns an empty text in buf. size: above 0. */
struct asym_text asym_text_in(char *buf, size_t size);

/** Append a piece. Returns true; false if it does not fit as a whole, and then leaves the text as it was. */
bool asym_text_add(struct asym_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Parsers of text in the caller's buffer. They use no locale, do not allocate, and write *ret on success only. */

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
