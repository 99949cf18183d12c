/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/json.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/mask.h"
#include "base/text.h"

json_t *asym_json_bytes(const char *bytes, size_t len)
{
    char text[4096];
    return json_string(asym_text_escape(bytes, len, text, sizeof text));
}

json_t *asym_json_shown(const char *text)
{
    return asym_json_bytes(text, strlen(text));
}

json_t *asym_json_text(const char *text)
{
    json_t *string = json_string(text ? text : "");
    return string ? string : asym_json_shown(text ? text : "");
}

json_t *asym_json_cpus(const struct asym_mask *mask)
{
    char text[ASYM_MASK_LIST_MAX];
    return json_string(asym_mask_format_list(mask, text, sizeof text));
}

json_t *asym_json_number(double value, int decimals)
{
    double scale = pow(10, decimals), rounded = round(value * scale) / scale;
    if (!isfinite(rounded))
        return json_null();
    /* Avoids -0.0, which looks like a mistake. */
    return json_real(rounded == 0 ? 0 : rounded);
}

static json_t *duration(asym_usec t)
{
    return t % ASYM_MSEC == 0 ? json_integer((json_int_t)(t / ASYM_MSEC))
                              : asym_json_number((double)t / (double)ASYM_MSEC, 3);
}

json_t *asym_json_option(const struct asym_option *row, const void *base, char *key, size_t size)
{
    const void *field = (const char *)base + row->offset;
    int chosen;
    snprintf(key, size, "%s%s", row->key, row->type == ASYM_OPTION_DURATION ? "_ms" : "");
    switch (row->type) {
    case ASYM_OPTION_BOOL:
        return json_boolean(*(const bool *)field);
    case ASYM_OPTION_COUNT:
        if (row->keyword && *(const unsigned *)field == UINT_MAX)
            return json_string(row->keyword);
        return json_integer(*(const unsigned *)field);
    case ASYM_OPTION_NUMBER:
        if (isnan(*(const double *)field))
            return json_string(row->keyword);
        return asym_json_number(*(const double *)field, 6);
    case ASYM_OPTION_SHARE:
        return asym_json_number(*(const double *)field, 6);
    case ASYM_OPTION_DURATION:
        return duration(*(const asym_usec *)field);
    case ASYM_OPTION_NICE:
        return json_integer(*(const int *)field);
    case ASYM_OPTION_ENUM:
        chosen = *(const int *)field;
        return json_string(chosen < 0 ? row->keyword : row->values[chosen]);
    case ASYM_OPTION_TEXT:
        if (!*(char *const *)field)
            return json_string("");
        return asym_json_shown(*(char *const *)field);
    /* Only scenarios and command lines have these types. */
    case ASYM_OPTION_WHOLE:
    case ASYM_OPTION_NS:
    case ASYM_OPTION_STRING:
    case ASYM_OPTION_CUSTOM:
        break;
    }
    return NULL;
}

json_t *asym_json_escape(const json_t *json)
{
    /* jansson reads only. */
    json_t *from = (json_t *)(uintptr_t)json, *to, *value;
    const char *key;
    size_t i;
    if (json_is_string(json))
        return asym_json_bytes(json_string_value(json), json_string_length(json));
    if (!json_is_array(json) && !json_is_object(json))
        return json_deep_copy(json);
    to = json_is_array(json) ? json_array() : json_object();
    json_array_foreach(from, i, value) asym_json_append(&to, asym_json_escape(value));
    json_object_foreach(from, key, value) asym_json_set(&to, key, asym_json_escape(value));
    return to;
}

/* An incomplete array or object is freed: a caller sees NULL rather than missing items. */
static void drop_unless(bool complete, json_t **json)
{
    if (complete)
        return;
    json_decref(*json);
    *json = NULL;
}

void asym_json_append(json_t **array, json_t *item)
{
    drop_unless(json_array_append_new(*array, item) == 0, array);
}

void asym_json_set(json_t **object, const char *key, json_t *value)
{
    drop_unless(json_object_set_new(*object, key, value) == 0, object);
}

int asym_json_print(json_t *json, FILE *out)
{
    ASYM_AUTO_JSON json_t *owned = json;
    if (!owned)
        return -ENOMEM;
    if (json_dumpf(owned, out, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) < 0 || fputc('\n', out) == EOF || ferror(out))
        return -EIO;
    return 0;
}
