/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Text for users: the distance of two spellings, a printable form of any bytes, and a text that grows in a buffer. */
#ifndef ASYM_BASE_TEXT_H
#define ASYM_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
