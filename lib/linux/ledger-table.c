/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ledger in memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "linux/ledger-internal.h"

static size_t slot_of(const struct asym_ledger *l, int32_t tid)
{
    return (uint32_t)tid * 2654435769u & (l->n_buckets - 1);
}

static void index_entry(struct asym_ledger *l, size_t i)
{
    size_t s = slot_of(l, l->entries[i].id.tid);
    while (l->buckets[s] != 0)
        s = (s + 1) & (l->n_buckets - 1);
    l->buckets[s] = (uint32_t)i + 1;
}

struct asym_ledger_entry *asym_ledger_find(struct asym_ledger *l, int32_t tid)
{
    if (l->n == 0)
        return NULL;
    for (size_t s = slot_of(l, tid); l->buckets[s] != 0; s = (s + 1) & (l->n_buckets - 1))
        if (l->entries[l->buckets[s] - 1].id.tid == tid)
            return &l->entries[l->buckets[s] - 1];
    return NULL;
}

static int grow(struct asym_ledger *l)
{
    size_t capacity = l->capacity ? l->capacity * 2 : 64;
    struct asym_ledger_entry *entries = reallocarray(l->entries, capacity, sizeof *entries);
    if (!entries)
        return -ENOMEM;
    l->entries = entries;
    int32_t *tgids = reallocarray(l->tgids, capacity, sizeof *tgids);
    if (!tgids)
        return -ENOMEM;
    l->tgids = tgids;
    uint32_t *buckets = calloc(capacity * 2, sizeof *buckets);
    if (!buckets)
        return -ENOMEM;
    free(l->buckets);
    l->buckets = buckets;
    l->capacity = capacity;
    l->n_buckets = capacity * 2;
    for (size_t i = 0; i < l->n; i++)
        index_entry(l, i);
    return 0;
}

struct asym_ledger_entry *asym_ledger_add(struct asym_ledger *l, const struct asym_taskid *id)
{
    if (l->n == l->capacity && grow(l) < 0)
        return NULL;
    struct asym_ledger_entry *e = &l->entries[l->n];
    *e = (struct asym_ledger_entry){.id = *id};
    l->tgids[l->n] = id->tgid;
    index_entry(l, l->n++);
    return e;
}

/* Empty the slot, and move up what probing would no longer find behind the gap. */
static void unlink_slot(struct asym_ledger *l, size_t gap)
{
    size_t mask = l->n_buckets - 1;
    l->buckets[gap] = 0;
    for (size_t s = (gap + 1) & mask; l->buckets[s] != 0; s = (s + 1) & mask) {
        size_t home = slot_of(l, l->entries[l->buckets[s] - 1].id.tid);
        if (((s - home) & mask) < ((s - gap) & mask))
            continue;
        l->buckets[gap] = l->buckets[s];
        l->buckets[s] = 0;
        gap = s;
    }
}

static size_t slot_holding(const struct asym_ledger *l, size_t i)
{
    size_t s = slot_of(l, l->entries[i].id.tid);
    while (l->buckets[s] != (uint32_t)i + 1)
        s = (s + 1) & (l->n_buckets - 1);
    return s;
}

void asym_ledger_remove(struct asym_ledger *l, struct asym_ledger_entry *e)
{
    size_t i = (size_t)(e - l->entries), last = l->n - 1;
    unlink_slot(l, slot_holding(l, i));
    if (i != last) {
        l->buckets[slot_holding(l, last)] = (uint32_t)i + 1;
        l->entries[i] = l->entries[last];
        l->tgids[i] = l->tgids[last];
    }
    l->n--;
}

void asym_ledger_note_release(struct asym_ledger *l, int32_t tgid, asym_usec when)
{
    struct asym_ledger_release *ways = l->releases[(uint32_t)tgid % ASYM_LEDGER_RELEASE_SETS], *slot = ways;
    for (size_t i = 0; i < ASYM_LEDGER_RELEASE_WAYS; i++) {
        if (ways[i].tgid == tgid) {
            slot = &ways[i];
            break;
        }
        if (ways[i].when < slot->when)
            slot = &ways[i];
    }
    *slot = (struct asym_ledger_release){tgid, when};
}

bool asym_ledger_was_released(const struct asym_ledger *l, int32_t tgid, asym_usec since)
{
    const struct asym_ledger_release *ways = l->releases[(uint32_t)tgid % ASYM_LEDGER_RELEASE_SETS];
    for (size_t i = 0; i < ASYM_LEDGER_RELEASE_WAYS; i++)
        if (ways[i].tgid == tgid && ways[i].when >= since)
            return true;
    return false;
}

void asym_ledger_add_legacy(struct asym_ledger *l, const struct asym_ledger_entry *from, int32_t tid, int32_t tgid,
                            asym_usec until)
{
    /* from may be the very legacy that this one takes the place of. */
    struct asym_ledger_entry copy = *from;
    copy.id.tid = tid;
    copy.id.tgid = tgid;
    l->legacies[l->next_legacy++ % ASYM_LEDGER_LEGACIES] = (struct asym_ledger_legacy){.from = copy, .until = until};
    l->legacies_until = ASYM_MAX(l->legacies_until, until);
}

const struct asym_ledger_entry *asym_ledger_find_legacy(const struct asym_ledger *l, int32_t tid, int32_t tgid,
                                                        asym_usec when)
{
    if (when > l->legacies_until)
        return NULL;
    for (size_t k = 1; k <= ASYM_LEDGER_LEGACIES && k <= l->next_legacy; k++) {
        const struct asym_ledger_legacy *g = &l->legacies[(l->next_legacy - k) % ASYM_LEDGER_LEGACIES];
        if (g->from.id.tid == tid && g->from.id.tgid == tgid && when <= g->until)
            return &g->from;
    }
    return NULL;
}
