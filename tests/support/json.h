/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Asserts on JSON, written as JSON. */
#ifndef ASYM_TESTS_SUPPORT_JSON_H
#define ASYM_TESTS_SUPPORT_JSON_H

#include <stdbool.h>

#include <jansson.h>

/** Parse a text; members that stand twice are an error. Asserts. The caller frees the result. */
json_t *json_of(const char *text);

/** Returns what stands at a path of keys and indexes: "policies.1.name". Asserts that it is there. Borrowed. */
json_t *json_at(const json_t *json, const char *path);

/**
 * Returns whether json has all of wanted. An object may have more members, and an array has as many items. A whole number is equal
 * only to a whole number; one with a point to any number. {} stands for anything.
 */
bool json_has(const json_t *json, const json_t *wanted);

/** Assert that it has what wanted says: a format, and then JSON with ' in place of ". */
void assert_json(const json_t *json, const char *wanted, ...) __attribute__((format(printf, 2, 3)));

#endif
