/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reading of JSON into structs, by tables of their fields. */
#include "client/client-internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct client_record string_record = {.size = sizeof(char *),
                                                   .fields = (const struct client_field[]){{.type = 's'}, {.type = 0}}};

static void *field_at(void *base, size_t offset)
{
    return (char *)base + offset;
}

/* The tables name pointers of several types, so that they are copied as bytes. */
static void *pointer_at(void *base, size_t offset)
{
    void *p;
    memcpy(&p, field_at(base, offset), sizeof p);
    return p;
}

static void array_done(const struct client_record *record, void *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        client_record_done(record, field_at(items, i * record->size));
    free(items);
}

void client_record_done(const struct client_record *record, void *base)
{
    for (const struct client_field *f = record->fields; f->type; f++) {
        if (f->type == 'a')
            array_done(f->record ? f->record : &string_record, pointer_at(base, f->offset),
                       *(size_t *)field_at(base, f->count));
        else if (f->type == 's')
            free(pointer_at(base, f->offset));
    }
    memset(base, 0, record->size);
}

static int read_text(const json_t *value, void *at)
{
    char *copy = strdup(value ? json_string_value(value) : "");
    if (!copy)
        return -ENOMEM;
    memcpy(at, &copy, sizeof copy);
    return 0;
}

static int read_array(const json_t *list, const struct client_field *f, void *base)
{
    const struct client_record *record = f->record ? f->record : &string_record;
    const size_t n = json_array_size(list);
    char *items = calloc(n + 1, record->size);
    int r = items ? 0 : -ENOMEM;
    for (size_t i = 0; r >= 0 && i < n; i++)
        r = client_read_record(json_array_get(list, i), record, items + i * record->size);
    if (r < 0) {
        array_done(record, items, items ? n : 0);
        return r;
    }
    memcpy(field_at(base, f->offset), &items, sizeof items);
    *(size_t *)field_at(base, f->count) = n;
    return 0;
}

static bool has_type(const json_t *value, char type)
{
    switch (type) {
    case 's':
        return json_is_string(value);
    case 'b':
        return json_is_boolean(value);
    case 'a':
        return json_is_array(value);
    case 'd': /* null: no finite number */
        return json_is_number(value) || json_is_null(value);
    default:
        return json_is_integer(value);
    }
}

static int read_field(const json_t *value, const struct client_field *f, void *base)
{
    void *at = field_at(base, f->offset);
    if (value && !has_type(value, f->type))
        return -EBADMSG;
    if (f->type == 's')
        return read_text(value, at);
    if (f->type == 'a')
        return read_array(value, f, base);
    if (f->type == 'b')
        *(bool *)at = json_is_true(value);
    else if (f->type == 'd')
        *(double *)at = json_is_null(value) ? NAN : json_number_value(value);
    else if (f->type == 't')
        *(uint64_t *)at = (uint64_t)json_integer_value(value);
    else
        *(uint32_t *)at = (uint32_t)json_integer_value(value);
    return 0;
}

int client_read_record(const json_t *json, const struct client_record *record, void *base)
{
    int r = 0;
    for (const struct client_field *f = record->fields; r >= 0 && f->type; f++)
        r = read_field(f->key ? json_object_get(json, f->key) : json, f, base);
    if (r < 0)
        client_record_done(record, base);
    return r;
}
