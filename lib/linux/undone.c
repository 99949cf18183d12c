/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/undone.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "linux/ledger.h"
#include "linux/masks.h"

struct undone_source {
    struct asym_source source;
    struct asym_source *inner; /* borrowed */
    char *dir;
    struct asym_ledger *ledger, *earlier; /* after the last snapshot, and after the one before; NULL: not readable */
    struct asym_mask_pool masks; /* all of the last snapshot: the inner source's own are not equal by address */
    struct asym_task *tasks;     /* copies that may be written to */
    size_t capacity;
};

/* The last mask that was looked for: threads that stand together mostly have the same. */
struct interned {
    const struct asym_mask *from, *to;
};

static struct undone_source *of(struct asym_source *source)
{
    return (struct undone_source *)(void *)((char *)source - offsetof(struct undone_source, source));
}

static void read_ledger(struct undone_source *u, struct asym_error *err)
{
    asym_ledger_close(u->earlier);
    u->earlier = ASYM_TAKE(u->ledger);
    if (asym_ledger_peek(u->dir, &u->ledger, err) < 0)
        u->ledger = NULL;
}

static bool holds_any(struct asym_ledger *l)
{
    return l && asym_ledger_count(l) > 0;
}

static bool find_own(const struct undone_source *u, const struct asym_task *task, struct asym_ledger_own *ret)
{
    struct asym_ledger *const ledgers[] = {u->ledger, u->earlier};
    for (size_t i = 0; i < ASYM_LENGTH(ledgers); i++)
        if (ledgers[i] && asym_ledger_own(ledgers[i], &task->id, task->mask, task->nice, ret))
            return true;
    return false;
}

static const struct asym_mask *intern(struct undone_source *u, const struct asym_mask *m, struct interned *last)
{
    if (m != last->from)
        *last = (struct interned){m, asym_mask_pool_get(&u->masks, m)};
    return last->to;
}

static int undo(struct undone_source *u, struct asym_task *task, struct interned last[2])
{
    struct asym_ledger_own own;
    if (find_own(u, task, &own)) {
        /* As it is given back: who had all of a cpuset has what that has grown by. */
        const bool grown = own.whole && !asym_mask_within(task->cpuset, &own.mask);
        task->mask = asym_mask_pool_get(&u->masks, grown ? task->cpuset : &own.mask);
        task->nice = own.nice;
    } else {
        task->mask = intern(u, task->mask, &last[0]);
    }
    task->cpuset = intern(u, task->cpuset, &last[1]);
    return task->mask && task->cpuset ? 0 : -ENOMEM;
}

static int overlay(struct undone_source *u, struct asym_snapshot *s)
{
    struct interned last[2] = {{NULL, NULL}, {NULL, NULL}};
    if (s->n_tasks > u->capacity) {
        struct asym_task *grown = reallocarray(u->tasks, s->n_tasks, sizeof *grown);
        if (!grown)
            return -ENOMEM;
        u->tasks = grown;
        u->capacity = s->n_tasks;
    }
    memcpy(u->tasks, s->tasks, s->n_tasks * sizeof *u->tasks);
    for (size_t i = 0; i < s->n_tasks; i++)
        if (undo(u, &u->tasks[i], last) < 0)
            return -ENOMEM;
    s->tasks = u->tasks;
    return 0;
}

static int undone_next(struct asym_source *source, struct asym_snapshot *ret)
{
    struct undone_source *u = of(source);
    struct asym_snapshot s;
    int r = u->inner->next(u->inner, &s);
    if (r <= 0)
        return r;
    read_ledger(u, NULL);
    asym_mask_pool_done(&u->masks);
    if (s.n_tasks > 0 && (holds_any(u->ledger) || holds_any(u->earlier)) && overlay(u, &s) < 0)
        return -ENOMEM;
    *ret = s;
    return 1;
}

static void undone_close(struct asym_source *source)
{
    struct undone_source *u = of(source);
    asym_ledger_close(u->ledger);
    asym_ledger_close(u->earlier);
    asym_mask_pool_done(&u->masks);
    free(u->tasks);
    free(u->dir);
    free(u);
}

int asym_undone_source_new(struct asym_source *inner, const char *dir, struct asym_source **ret_source,
                           struct asym_error *err)
{
    struct undone_source *u = calloc(1, sizeof *u);
    char *copy = strdup(dir);
    if (!u || !copy) {
        free(u);
        free(copy);
        return -ENOMEM;
    }
    u->source = (struct asym_source){.next = undone_next, .close = undone_close};
    u->inner = inner;
    u->dir = copy;
    read_ledger(u, err);
    *ret_source = &u->source;
    return 0;
}
