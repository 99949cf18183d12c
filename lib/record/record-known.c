/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/record.h"

static void no_memory(struct asym_record_io *io)
{
    if (io->error == 0) {
        io->error = -ENOMEM;
        io->fault = "no memory";
    }
}

void asym_record_known_reset(struct asym_record_known *k)
{
    asym_hash_clear(&k->index);
    k->n = 0;
    k->next = 0;
}

void asym_record_known_done(struct asym_record_known *k)
{
    asym_pool_done(&k->items);
    asym_hash_done(&k->index);
    *k = (struct asym_record_known){.n = 0};
}

struct asym_record_item *asym_record_item_at(const struct asym_record_known *k, uint32_t i)
{
    return (struct asym_record_item *)k->items.items + i;
}

/* Returns the number of the item with this id; k->n: there is none. */
static uint32_t find(const struct asym_record_known *k, const struct asym_taskid *id)
{
    if (k->next < k->n && asym_taskid_equal(&asym_record_item_at(k, k->next)->id, id))
        return k->next;
    ASYM_HASH_FOREACH (i, &k->index, asym_hash_of_id(id->tid))
        if (asym_taskid_equal(&asym_record_item_at(k, (uint32_t)i)->id, id))
            return (uint32_t)i;
    return k->n;
}

static struct asym_record_item *add(struct asym_record_io *io, struct asym_record_known *k)
{
    if (k->n == ASYM_RECORD_MAX_KNOWN) {
        asym_record_io_fail(io, "a segment names too many threads, processes or applications");
        return NULL;
    }
    if (k->n == k->items.capacity &&
        !asym_pool_grow(&k->items, (size_t)k->n * 2 + 64, sizeof(struct asym_record_item))) {
        no_memory(io);
        return NULL;
    }
    if (asym_hash_reserve(&k->index, 1) < 0) {
        no_memory(io);
        return NULL;
    }
    struct asym_record_item *item = asym_record_item_at(k, k->n);
    *item = (struct asym_record_item){.snapshot = 0};
    return item;
}

/* Ids of new items follow those of the last new item, mostly. */
static struct asym_record_item *name(struct asym_record_io *io, struct asym_record_known *k, struct asym_taskid id)
{
    static const struct asym_taskid none;
    const struct asym_taskid last = k->n > 0 ? asym_record_item_at(k, k->n - 1)->id : none;
    struct asym_record_item *item = add(io, k);
    if (!item)
        return NULL;
    id.tid = (int32_t)asym_record_delta(io, id.tid, last.tid, 0, INT32_MAX);
    id.tgid = (int32_t)asym_record_delta(io, id.tgid, last.tgid, 0, INT32_MAX);
    id.start = (uint64_t)asym_record_delta(io, (int64_t)id.start, (int64_t)last.start, INT64_MIN, INT64_MAX);
    if (!asym_record_io_ok(io))
        return NULL;
    if (!io->writing && find(k, &id) < k->n) {
        asym_record_io_fail(io, "an identity has two numbers");
        return NULL;
    }
    item->id = id;
    asym_hash_add(&k->index, asym_hash_of_id(id.tid), k->n++);
    return item;
}

struct asym_record_item *asym_record_item(struct asym_record_io *io, struct asym_record_known *k,
                                          struct asym_taskid *id, uint64_t snapshot)
{
    uint32_t number = io->writing ? find(k, id) : 0;
    number = (uint32_t)asym_record_delta(io, number, k->next, 0, k->n);
    if (!asym_record_io_ok(io))
        return NULL;
    struct asym_record_item *item = number < k->n ? asym_record_item_at(k, number) : name(io, k, *id);
    if (!item)
        return NULL;
    if (item->snapshot == snapshot) {
        asym_record_io_fail(io, "a snapshot names a thread, a process or an application twice");
        return NULL;
    }
    item->snapshot = snapshot;
    k->next = number + 1;
    *id = item->id;
    return item;
}

static uint32_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return asym_hash_of_u64(hash);
}

void asym_record_texts_reset(struct asym_record_texts *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        free(((char **)t->items.items)[i]);
    asym_hash_clear(&t->index);
    t->n = 0;
}

void asym_record_texts_done(struct asym_record_texts *t)
{
    asym_record_texts_reset(t);
    asym_pool_done(&t->items);
    asym_hash_done(&t->index);
}

static uint32_t find_text(const struct asym_record_texts *t, const char *text)
{
    ASYM_HASH_FOREACH (i, &t->index, hash_of(text))
        if (strcmp(((char **)t->items.items)[i], text) == 0)
            return (uint32_t)i;
    return t->n;
}

/* Returns the copy, added to the table. */
static const char *add_text(struct asym_record_io *io, struct asym_record_texts *t, const char *text)
{
    const size_t len = io->writing ? strnlen(text, ASYM_RECORD_MAX_TEXT) : 0;
    const size_t n = asym_record_count(io, len, ASYM_RECORD_MAX_TEXT);
    if (t->n == ASYM_RECORD_MAX_TEXTS)
        asym_record_io_fail(io, "a segment has too many texts");
    if (!asym_record_io_ok(io))
        return NULL;
    if ((t->n == t->items.capacity && !asym_pool_grow(&t->items, (size_t)t->n * 2 + 16, sizeof(char *))) ||
        asym_hash_reserve(&t->index, 1) < 0) {
        no_memory(io);
        return NULL;
    }
    char *copy = calloc(1, n + 1);
    if (!copy) {
        no_memory(io);
        return NULL;
    }
    if (io->writing)
        memcpy(copy, text, n);
    asym_record_bytes(io, copy, n);
    if (strlen(copy) != n || (!io->writing && find_text(t, copy) < t->n))
        asym_record_io_fail(io, "a text has a NUL, or two numbers");
    if (!asym_record_io_ok(io)) {
        free(copy);
        return NULL;
    }
    ((char **)t->items.items)[t->n] = copy;
    asym_hash_add(&t->index, hash_of(copy), t->n++);
    return copy;
}

const char *asym_record_text(struct asym_record_io *io, struct asym_record_texts *t, const char *text)
{
    char cut[ASYM_RECORD_MAX_TEXT + 1];
    /* A text that is longer than the limit is cut. */
    if (io->writing && text && strlen(text) > ASYM_RECORD_MAX_TEXT) {
        memcpy(cut, text, ASYM_RECORD_MAX_TEXT);
        cut[ASYM_RECORD_MAX_TEXT] = '\0';
        text = cut;
    }
    const uint64_t number = asym_record_u64(io, io->writing && text ? find_text(t, text) + 1 : 0, (uint64_t)t->n + 1);
    if (number == 0 || !asym_record_io_ok(io))
        return NULL;
    return number <= t->n ? ((char **)t->items.items)[number - 1] : add_text(io, t, text);
}

void asym_record_profiles_reset(struct asym_record_profiles *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        free(((struct asym_profile **)p->items.items)[i]);
    p->n = 0;
}

void asym_record_profiles_done(struct asym_record_profiles *p)
{
    asym_record_profiles_reset(p);
    asym_pool_done(&p->items);
}

static bool differs(double a, double b)
{
    return a < b || a > b;
}

static bool is_equal(const struct asym_profile *a, const struct asym_profile *b)
{
    for (unsigned i = 0; i < ASYM_MAX_TYPES; i++)
        if (differs(a->ips[i], b->ips[i]) || differs(a->mpki[i], b->mpki[i]))
            return false;
    return true;
}

/* A change of the core types changes the content of a profile, not its address: so the content decides. */
static uint32_t find_profile(const struct asym_record_profiles *p, const struct asym_profile *profile)
{
    uint32_t i = 0;
    while (i < p->n && !is_equal(((struct asym_profile **)p->items.items)[i], profile))
        i++;
    return i;
}

static const struct asym_profile *add_profile(struct asym_record_io *io, struct asym_record_profiles *p,
                                              const struct asym_profile *profile)
{
    if (p->n == ASYM_RECORD_MAX_PROFILES) {
        asym_record_io_fail(io, "a segment has too many profiles");
        return NULL;
    }
    struct asym_profile *copy = calloc(1, sizeof *copy);
    if (!copy || (p->n == p->items.capacity && !asym_pool_grow(&p->items, (size_t)p->n * 2 + 16, sizeof copy))) {
        free(copy);
        no_memory(io);
        return NULL;
    }
    if (io->writing)
        *copy = *profile;
    for (unsigned i = 0; i < ASYM_MAX_TYPES; i++) {
        copy->ips[i] = asym_record_double(io, copy->ips[i]);
        copy->mpki[i] = asym_record_double(io, copy->mpki[i]);
    }
    ((struct asym_profile **)p->items.items)[p->n++] = copy;
    return copy;
}

const struct asym_profile *asym_record_profile(struct asym_record_io *io, struct asym_record_profiles *p,
                                               const struct asym_profile *profile)
{
    const uint64_t number = asym_record_u64(io, io->writing && profile ? find_profile(p, profile) + 1 : 0,
                                            (uint64_t)p->n + 1);
    if (number == 0 || !asym_record_io_ok(io))
        return NULL;
    return number <= p->n ? ((struct asym_profile **)p->items.items)[number - 1] : add_profile(io, p, profile);
}
