/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/client-internal.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct client_record string_record = {
    .type = "s", .size = sizeof(char *), .fields = (const struct client_field[]){{.type = "s"}, {.type = NULL}}};

static const struct client_record *items_of(const struct client_record *record)
{
    return record ? record : &string_record;
}

static bool is_array(const struct client_field *field)
{
    return field->type[0] == 'a';
}

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

void client_array_done(const struct client_record *record, void *items, size_t n)
{
    const struct client_record *of = items_of(record);
    for (size_t i = 0; i < n; i++)
        client_record_done(of, field_at(items, i * of->size));
    free(items);
}

void client_record_done(const struct client_record *record, void *base)
{
    for (const struct client_field *f = record->fields; f->type; f++) {
        if (is_array(f))
            client_array_done(f->record, pointer_at(base, f->offset), *(size_t *)field_at(base, f->count));
        else if (f->type[0] == 's')
            free(pointer_at(base, f->offset));
    }
    memset(base, 0, record->size);
}

static int set_string(void *at, const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    memcpy(at, &copy, sizeof copy);
    return 0;
}

/* A server may send a key twice: the first one counts, so that none is lost. */
static int read_string(sd_bus_message *m, void *at)
{
    const char *text;
    int r = sd_bus_message_read_basic(m, 's', &text);
    return r < 0 ? r : pointer_at(at, 0) ? 0 : set_string(at, text);
}

static int read_field(sd_bus_message *m, const struct client_field *field, void *base)
{
    void *at = field_at(base, field->offset), *items;
    int flag;
    if (is_array(field)) {
        size_t n;
        int r = client_read_array(m, field->record, &items, &n);
        if (r < 0)
            return r;
        client_array_done(field->record, pointer_at(base, field->offset), *(size_t *)field_at(base, field->count));
        memcpy(at, &items, sizeof items);
        *(size_t *)field_at(base, field->count) = n;
        return 0;
    }
    if (field->type[0] == 's')
        return read_string(m, at);
    if (field->type[0] != 'b')
        return sd_bus_message_read_basic(m, field->type[0], at);
    int r = sd_bus_message_read_basic(m, 'b', &flag);
    if (r >= 0)
        *(bool *)at = flag != 0;
    return r;
}

static int read_variant(sd_bus_message *m, const struct client_field *field, void *base)
{
    const char *type;
    int r = sd_bus_message_peek_type(m, NULL, &type);
    if (r >= 0 && strcmp(type, field->type) != 0)
        return -EBADMSG;
    if (r >= 0)
        r = sd_bus_message_enter_container(m, SD_BUS_TYPE_VARIANT, field->type);
    if (r >= 0)
        r = read_field(m, field, base);
    return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_entry(sd_bus_message *m, const struct client_record *record, void *base)
{
    const char *key;
    const struct client_field *f = record->fields;
    int r = sd_bus_message_read_basic(m, 's', &key);
    if (r < 0)
        return r;
    while (f->type && strcmp(f->key, key) != 0)
        f++;
    return f->type ? read_variant(m, f, base) : sd_bus_message_skip(m, "v");
}

static int read_dictionary(sd_bus_message *m, const struct client_record *record, void *base)
{
    int r = sd_bus_message_enter_container(m, SD_BUS_TYPE_ARRAY, "{sv}");
    if (r < 0)
        return r;
    while ((r = sd_bus_message_enter_container(m, SD_BUS_TYPE_DICT_ENTRY, "sv")) > 0) {
        r = read_entry(m, record, base);
        if (r >= 0)
            r = sd_bus_message_exit_container(m);
        if (r < 0)
            return r;
    }
    return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_struct(sd_bus_message *m, const struct client_record *record, void *base)
{
    char contents[32] = "";
    const bool has_frame = record->type[0] == '(';
    int r = 0;
    if (has_frame) {
        snprintf(contents, sizeof contents, "%.*s", (int)strlen(record->type) - 2, record->type + 1);
        r = sd_bus_message_enter_container(m, SD_BUS_TYPE_STRUCT, contents);
    }
    for (const struct client_field *f = record->fields; r >= 0 && f->type; f++)
        r = read_field(m, f, base);
    return r >= 0 && has_frame ? sd_bus_message_exit_container(m) : r;
}

/* Strings that the server left out become "". */
static int fill_strings(const struct client_record *record, void *base)
{
    int r = 0;
    for (const struct client_field *f = record->fields; r >= 0 && f->type; f++)
        if (f->type[0] == 's' && !pointer_at(base, f->offset))
            r = set_string(field_at(base, f->offset), "");
    return r;
}

/* sd-bus returns -ENXIO for a message with other types than those that the caller reads. */
static int read_error(int r)
{
    return r == -ENOMEM ? r : -EBADMSG;
}

int client_read_record(sd_bus_message *m, const struct client_record *record, void *base)
{
    int r = record->type[0] == 'a' ? read_dictionary(m, record, base) : read_struct(m, record, base);
    if (r >= 0)
        r = fill_strings(record, base);
    if (r >= 0)
        return 0;
    client_record_done(record, base);
    return read_error(r);
}

static int append(sd_bus_message *m, const struct client_record *record, void **items, size_t n, size_t *capacity)
{
    if (n == *capacity) {
        const size_t more = *capacity ? 2 * *capacity : 16;
        void *grown = reallocarray(*items, more, record->size);
        if (!grown)
            return -ENOMEM;
        *items = grown;
        *capacity = more;
    }
    void *item = field_at(*items, n * record->size);
    memset(item, 0, record->size);
    return client_read_record(m, record, item);
}

int client_read_array(sd_bus_message *m, const struct client_record *record, void *ret_items, size_t *ret_n)
{
    const struct client_record *of = items_of(record);
    void *items = NULL;
    size_t n = 0, capacity = 0;
    int r = sd_bus_message_enter_container(m, SD_BUS_TYPE_ARRAY, of->type);
    while (r >= 0 && (r = sd_bus_message_at_end(m, 0)) == 0) {
        r = append(m, of, &items, n, &capacity);
        if (r >= 0)
            n++;
    }
    if (r >= 0)
        r = sd_bus_message_exit_container(m);
    if (r < 0) {
        client_array_done(of, items, n);
        return read_error(r);
    }
    memcpy(ret_items, &items, sizeof items);
    *ret_n = n;
    return 0;
}
