/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/json.h"

#include "support/test.h"

json_t *json_of(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!json)
        fail_msg("line %d: %s in:\n%s", error.line, error.text, text);
    return json;
}

json_t *json_at(const json_t *json, const char *path)
{
    for (const char *at = path; json && *at; at += *at == '.') {
        const size_t n = strcspn(at, ".");
        json = json_is_array(json) ? json_array_get(json, strtoul(at, NULL, 10)) : json_object_getn(json, at, n);
        at += n;
    }
    if (!json)
        fail_msg("nothing at '%s'", path);
    return (json_t *)(uintptr_t)json;
}

bool json_has(const json_t *json, const json_t *wanted)
{
    const char *key;
    json_t *member;
    size_t i;
    bool all = true;
    if (json_is_real(wanted))
        return json_is_number(json) && !(json_number_value(json) < json_real_value(wanted)) &&
               !(json_number_value(json) > json_real_value(wanted));
    if (json_is_array(wanted)) {
        all = json_is_array(json) && json_array_size(json) == json_array_size(wanted);
        json_array_foreach(wanted, i, member) all = all && json_has(json_array_get(json, i), member);
        return all;
    }
    if (!json_is_object(wanted))
        return json_equal(json, wanted);
    json_object_foreach((json_t *)(uintptr_t)wanted, key, member)
        all = all && json_has(json_object_get(json, key), member);
    return all;
}

void assert_json(const json_t *json, const char *wanted, ...)
{
    char text[4096];
    va_list args;
    va_start(args, wanted);
    const int n = vsnprintf(text, sizeof text, wanted, args);
    va_end(args);
    assert_in_range(n, 1, sizeof text - 1);
    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json_error_t error;
    json_t *parsed = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    if (!parsed)
        fail_msg("column %d: %s in %s", error.column, error.text, text);
    if (!json_has(json, parsed)) {
        char *found = json ? json_dumps(json, JSON_ENCODE_ANY | JSON_INDENT(1)) : NULL;
        print_error("no %s in:\n%s\n", text, found ? found : "nothing");
        free(found);
        json_decref(parsed);
        fail();
    }
    json_decref(parsed);
}
