/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Helpers over jansson that every JSON report of asymd uses. */
#ifndef ASYM_REPORT_JSON_H
#define ASYM_REPORT_JSON_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include <asym/option.h>
#include <asym/types.h>

#include "base/macro.h"

static inline void asym_json_p(json_t **json)
{
    json_decref(*json);
}

#define ASYM_AUTO_JSON ASYM_CLEANUP(asym_json_p)

/*
 * Each function returns a new reference, or NULL if there is no memory. json_pack, asym_json_append and asym_json_set pass a
 * NULL on, so a caller checks only the last result.
 */

/** A string of any bytes, escaped to valid UTF-8 by asym_text_escape and cut at 4095 bytes. */
json_t *asym_json_bytes(const char *bytes, size_t len);

/** The same for a text that ends in NUL. */
json_t *asym_json_shown(const char *text);

/** A text as it is: a name that a program uses again. Bytes that are not valid UTF-8: asym_json_shown. NULL: "". */
json_t *asym_json_text(const char *text);

/** The CPUs as a string in the kernel's list format. */
json_t *asym_json_cpus(const struct asym_mask *mask);

/** The value, rounded to that many decimals; null if it is not finite, which JSON cannot express. */
json_t *asym_json_number(double value, int decimals);

/**
 * The value of an option in the struct at base. Durations are in milliseconds; "auto" is that word.
 * Writes the key with its unit to key ("amp_boost_ms").
 */
json_t *asym_json_option(const struct asym_option *row, const void *base, char *key, size_t size);

/** A copy in which each string is escaped as by asym_json_bytes: for texts that programs have chosen. json: NULL: no memory. */
json_t *asym_json_escape(const json_t *json);

/** Append item, and take over its reference. On an error *array is freed and becomes NULL. */
void asym_json_append(json_t **array, json_t *item);

/** Set a member of *object in the same way. */
void asym_json_set(json_t **object, const char *key, json_t *value);

/*
 * A member of an object that another program has written: 0, false or "" if there is none of that name and type. A text may hold
 * any characters but NUL: escape it before you print it.
 */

static inline const char *asym_json_get_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static inline int64_t asym_json_get_int(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/** NAN: null, which stands for a number that is not finite. */
static inline double asym_json_get_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? (double)NAN : json_number_value(value);
}

static inline bool asym_json_get_flag(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

/** Print json and a newline, and release json. Returns 0; -EIO; -ENOMEM if json is NULL. */
int asym_json_print(json_t *json, FILE *out);

#endif
