/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of the ledger in memory. */
#include <errno.h>
#include <stdlib.h>

#include "base/macro.h"
#include "linux/enforce/ledger-internal.h"

struct asym_ledger_entry *asym_ledger_find(struct asym_ledger *l, int32_t tid)
{
    const uint32_t hash = asym_hash_of_id(tid);
    ASYM_HASH_FOREACH (i, &l->index, hash)
        if (l->entries[i].id.tid == tid)
            return &l->entries[i];
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
    int r = asym_hash_reserve(&l->index, capacity - l->n);
    if (r == 0)
        l->capacity = capacity;
    return r;
}

struct asym_ledger_entry *asym_ledger_add(struct asym_ledger *l, const struct asym_taskid *id)
{
    if (l->n == l->capacity && grow(l) < 0)
        return NULL;
    struct asym_ledger_entry *e = &l->entries[l->n];
    *e = (struct asym_ledger_entry){.id = *id};
    l->tgids[l->n] = id->tgid;
    asym_hash_add(&l->index, asym_hash_of_id(id->tid), l->n++);
    return e;
}

void asym_ledger_remove(struct asym_ledger *l, struct asym_ledger_entry *e)
{
    size_t i = (size_t)(e - l->entries), last = l->n - 1;
    asym_hash_remove(&l->index, asym_hash_of_id(e->id.tid), i);
    if (i != last) {
        asym_hash_renumber(&l->index, asym_hash_of_id(l->entries[last].id.tid), last, i);
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

void asym_ledger_add_pending(struct asym_ledger *l, const struct asym_ledger_entry *from, int32_t tid, int32_t tgid,
                             asym_usec until)
{
    /* from may be the pending inheritance that this one overwrites. */
    struct asym_ledger_entry copy = *from;
    copy.id.tid = tid;
    copy.id.tgid = tgid;
    l->pending[l->next_pending++ % ASYM_LEDGER_PENDING_MAX] = (struct asym_ledger_pending){.from = copy,
                                                                                           .until = until};
    l->pending_until = ASYM_MAX(l->pending_until, until);
}

const struct asym_ledger_entry *asym_ledger_find_pending(const struct asym_ledger *l, int32_t tid, int32_t tgid,
                                                         asym_usec when)
{
    if (when > l->pending_until)
        return NULL;
    for (size_t k = 1; k <= ASYM_LEDGER_PENDING_MAX && k <= l->next_pending; k++) {
        const struct asym_ledger_pending *g = &l->pending[(l->next_pending - k) % ASYM_LEDGER_PENDING_MAX];
        if (g->from.id.tid == tid && g->from.id.tgid == tgid && when <= g->until)
            return &g->from;
    }
    return NULL;
}
