/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The few things that all of our JSON has in common, over jansson. */
#ifndef ASYM_DAEMON_JSON_H
#define ASYM_DAEMON_JSON_H

#include <stddef.h>
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
 * Each returns a new reference, NULL when out of memory. json_pack passes a NULL on, and so do asym_json_append and
 * asym_json_set: only the last result is looked at.
 */

/** A string of any bytes, made valid UTF-8 as asym_text_escape does. At most 4095 bytes of it. */
json_t *asym_json_bytes(const char *bytes, size_t len);

/** The kernel's list format. */
json_t *asym_json_cpus(const struct asym_mask *mask);

/** Rounded to so many decimals; null when it is not finite, which JSON cannot say. */
json_t *asym_json_number(double value, int decimals);

/**
 * The value of an option in the struct at base; durations in milliseconds, "auto" as that word.
 * The key it belongs under, unit included, is written to key ("amp_boost_ms").
 */
json_t *asym_json_option(const struct asym_option *row, const void *base, char *key, size_t size);

/** Append item, whose reference is given up. Where that fails, *array is freed and NULL from then on. */
void asym_json_append(json_t **array, json_t *item);

/** Likewise for a member. */
void asym_json_set(json_t **object, const char *key, json_t *value);

/** Print it and a newline, and give up the reference. NULL: -ENOMEM. Returns 0; -EIO, -ENOMEM. */
int asym_json_print(json_t *json, FILE *out);

#endif
