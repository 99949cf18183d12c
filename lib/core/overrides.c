/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/overrides.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/sort.h"

const char asym_overrides_rule_name[] = "set by the user";

struct asym_overrides {
    struct asym_source source; /* first: of() relies on it */
    struct asym_pool procs;    /* writable copies */
    bool paused;
    size_t n, n_ignored;
    struct asym_override items[ASYM_OVERRIDES_MAX]; /* sorted by tgid */
    struct asym_taskid ignored[ASYM_OVERRIDES_MAX];
};

static struct asym_overrides *overrides_of(struct asym_source *source)
{
    return (struct asym_overrides *)(void *)source;
}

static void list_ignored(struct asym_overrides *o)
{
    o->n_ignored = 0;
    for (size_t i = 0; i < o->n; i++)
        if (o->items[i].ruled && o->items[i].rule == ASYM_RULE_IGNORE)
            o->ignored[o->n_ignored++] = o->items[i].id;
}

static void apply(const struct asym_override *item, struct asym_proc *proc)
{
    proc->adopted = item->adopted;
    if (item->ruled) {
        proc->rule = item->rule;
        proc->rule_name = asym_overrides_rule_name;
        proc->rule_facts = NULL;
    }
}

static size_t position(const struct asym_overrides *o, int32_t tgid)
{
    return ASYM_LOWER_BOUND(o->items, o->n, id.tgid, tgid);
}

/*
 * The copy keeps the order of the processes. A snapshot can be older than an order: it may still have the process that had the
 * number before. That says nothing about the process that the order is for.
 */
static int apply_all(struct asym_overrides *o, struct asym_snapshot *s)
{
    struct asym_proc *procs = asym_pool_reserve(&o->procs, s->n_procs, sizeof *procs);
    if (!procs)
        return -ENOMEM;
    for (size_t i = 0; i < s->n_procs; i++) {
        procs[i] = s->procs[i];
        const size_t at = position(o, procs[i].id.tgid);
        if (at == o->n || o->items[at].id.tgid != procs[i].id.tgid)
            continue;
        if (o->items[at].id.start == procs[i].id.start) {
            apply(&o->items[at], &procs[i]);
        } else if (o->items[at].id.start < procs[i].id.start) {
            /* The kernel has reused the number of a process that has ended. */
            memmove(&o->items[at], &o->items[at + 1], (o->n - at - 1) * sizeof o->items[0]);
            o->n--;
            list_ignored(o);
        }
    }
    s->procs = procs;
    return 0;
}

static int next(struct asym_source *source, struct asym_snapshot *ret)
{
    struct asym_overrides *o = overrides_of(source);
    struct asym_snapshot s;
    int r = source->inner->next(source->inner, &s);
    if (r <= 0)
        return r;
    if (o->n > 0 && s.n_procs > 0 && apply_all(o, &s) < 0)
        return -ENOMEM;
    s.paused = o->paused;
    s.ignored = o->n_ignored > 0 ? o->ignored : NULL;
    s.n_ignored = o->n_ignored;
    *ret = s;
    return r;
}

static void close_overrides(struct asym_source *source)
{
    struct asym_overrides *o = overrides_of(source);
    asym_pool_done(&o->procs);
    free(o);
}

int asym_overrides_new(struct asym_source *inner, struct asym_overrides **ret_overrides)
{
    struct asym_overrides *o = calloc(1, sizeof *o);
    if (!o)
        return -ENOMEM;
    o->source = (struct asym_source){.inner = inner, .next = next, .close = close_overrides};
    *ret_overrides = o;
    return 0;
}

struct asym_source *asym_overrides_source(struct asym_overrides *o)
{
    return &o->source;
}

void asym_overrides_pause(struct asym_overrides *o, bool paused)
{
    o->paused = paused;
}

bool asym_overrides_is_paused(const struct asym_overrides *o)
{
    return o->paused;
}

/* The item of the process, a new one if it has none; NULL: there are too many. */
static struct asym_override *item_of(struct asym_overrides *o, const struct asym_taskid *proc)
{
    const size_t at = position(o, proc->tgid);
    struct asym_override *item = &o->items[at];
    const bool is_there = at < o->n && item->id.tgid == proc->tgid;
    if (!is_there && o->n == ASYM_OVERRIDES_MAX)
        return NULL;
    if (!is_there) {
        memmove(item + 1, item, (o->n - at) * sizeof *item);
        o->n++;
    }
    /* An item of the same number and another start is of a process that has ended. */
    if (!is_there || item->id.start != proc->start)
        *item = (struct asym_override){.id = *proc};
    return item;
}

int asym_overrides_set_rule(struct asym_overrides *o, const struct asym_taskid *proc, enum asym_rule_action rule,
                            uint32_t by)
{
    struct asym_override *item = item_of(o, proc);
    if (!item)
        return -ENOSPC;
    item->ruled = true;
    item->rule = rule;
    item->ruled_by = by;
    list_ignored(o);
    return 0;
}

int asym_overrides_unset_rule(struct asym_overrides *o, const struct asym_taskid *proc, asym_usec now)
{
    struct asym_override *item = item_of(o, proc);
    if (!item)
        return -ENOSPC;
    item->ruled = false;
    item->adopted = now;
    list_ignored(o);
    return 0;
}

const struct asym_override *asym_overrides_find(const struct asym_overrides *o, const struct asym_taskid *proc)
{
    const size_t at = position(o, proc->tgid);
    const bool is_there = at < o->n && o->items[at].id.tgid == proc->tgid && o->items[at].id.start == proc->start;
    return is_there ? &o->items[at] : NULL;
}

void asym_overrides_apply(const struct asym_overrides *o, struct asym_proc *proc)
{
    const struct asym_override *item = asym_overrides_find(o, &proc->id);
    if (item)
        apply(item, proc);
}

size_t asym_overrides_count(const struct asym_overrides *o)
{
    size_t n = 0;
    for (size_t i = 0; i < o->n; i++)
        n += o->items[i].ruled;
    return n;
}

void asym_overrides_forget(struct asym_overrides *o, bool (*has_ended)(const struct asym_taskid *proc))
{
    size_t kept = 0;
    for (size_t i = 0; i < o->n; i++)
        if (!has_ended(&o->items[i].id))
            o->items[kept++] = o->items[i];
    o->n = kept;
    list_ignored(o);
}
