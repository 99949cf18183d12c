/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Parsers over the caller's buffers: no locale, no allocation. Output only on success. */
#ifndef ASYM_BASE_PARSE_H
#define ASYM_BASE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

/** A decimal number and nothing else (surrounding white space allowed). 0; -EINVAL, -ERANGE. */
int asym_parse_u64(const char *text, size_t len, uint64_t *ret);

/** As above, signed. */
int asym_parse_i64(const char *text, size_t len, int64_t *ret);

/** A decimal fraction: 1, 0.5, 12.25. No exponent, nan or inf. 0; -EINVAL, -ERANGE. */
int asym_parse_number(const char *text, size_t len, double *ret);

/** A number with us, ms, or s: "100ms", "1.5 s". A bare number is not accepted (which unit?). 0; -EINVAL, -ERANGE. */
int asym_parse_duration(const char *text, size_t len, asym_usec *ret);

/** yes/no, true/false, on/off, 1/0. 0; -EINVAL. */
int asym_parse_bool(const char *text, size_t len, bool *ret);

/** Edit distance (Levenshtein) for "did you mean", of at most 64 bytes each; longer ones are cut. */
unsigned asym_text_distance(const char *a, const char *b);

/**
 * Make bytes printable: valid UTF-8 is copied, control characters and bytes that are not UTF-8 become
 * \xNN, backslash becomes \\. Ends in NUL, never inside an escape or a character. Returns buf.
 */
const char *asym_text_escape(const char *bytes, size_t len, char *buf, size_t size);

#endif
