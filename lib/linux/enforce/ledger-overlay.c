/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/enforce/enforce.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/mask-table.h"

struct ledger_overlay {
    struct asym_source source;
    char *dir;
    struct asym_ledger *ledger, *earlier; /* read after the last snapshot and the one before; NULL: not readable */
    struct asym_mask_table masks;         /* of the last snapshot: the inner source may hold equal masks twice */
    struct asym_task *tasks;              /* copies of the inner source's tasks, which may be changed */
    size_t capacity;
};

/* The last mask that was looked up: neighbours in the list of threads mostly have the same mask. */
struct shared_mask {
    const struct asym_mask *from, *to;
};

static struct ledger_overlay *overlay_of(struct asym_source *source)
{
    return (struct ledger_overlay *)(void *)((char *)source - offsetof(struct ledger_overlay, source));
}

static void read_ledger(struct ledger_overlay *u, struct asym_error *err)
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

static bool find_own(const struct ledger_overlay *u, const struct asym_task *task, struct asym_ledger_own *ret)
{
    struct asym_ledger *const ledgers[] = {u->ledger, u->earlier};
    for (size_t i = 0; i < ASYM_LENGTH(ledgers); i++)
        if (ledgers[i] && asym_ledger_own(ledgers[i], &task->id, task->mask, task->nice, ret))
            return true;
    return false;
}

static const struct asym_mask *share_mask(struct ledger_overlay *u, const struct asym_mask *m, struct shared_mask *last)
{
    if (m != last->from)
        *last = (struct shared_mask){m, asym_mask_table_get(&u->masks, m)};
    return last->to;
}

static int show_original(struct ledger_overlay *u, struct asym_task *task, struct shared_mask last[2])
{
    struct asym_ledger_own own;
    if (find_own(u, task, &own)) {
        /* A release would do the same: a thread that had its full cpuset also gets the CPUs that were added to it. */
        const bool grown = own.full_cpuset && !asym_mask_within(task->cpuset, &own.mask);
        task->mask = asym_mask_table_get(&u->masks, grown ? task->cpuset : &own.mask);
        task->nice = own.nice;
    } else {
        task->mask = share_mask(u, task->mask, &last[0]);
    }
    task->cpuset = share_mask(u, task->cpuset, &last[1]);
    return task->mask && task->cpuset ? 0 : -ENOMEM;
}

static int overlay(struct ledger_overlay *u, struct asym_snapshot *s)
{
    struct shared_mask last[2] = {{NULL, NULL}, {NULL, NULL}};
    if (asym_copy(&u->tasks, &u->capacity, s->tasks, s->n_tasks, sizeof *u->tasks) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < s->n_tasks; i++)
        if (show_original(u, &u->tasks[i], last) < 0)
            return -ENOMEM;
    s->tasks = u->tasks;
    return 0;
}

static int ledger_overlay_next(struct asym_source *source, struct asym_snapshot *ret)
{
    struct ledger_overlay *u = overlay_of(source);
    struct asym_snapshot s;
    int r = source->inner->next(source->inner, &s);
    if (r <= 0)
        return r;
    read_ledger(u, NULL);
    asym_mask_table_done(&u->masks);
    if (s.n_tasks > 0 && (holds_any(u->ledger) || holds_any(u->earlier)) && overlay(u, &s) < 0)
        return -ENOMEM;
    *ret = s;
    return 1;
}

static void ledger_overlay_close(struct asym_source *source)
{
    struct ledger_overlay *u = overlay_of(source);
    asym_ledger_close(u->ledger);
    asym_ledger_close(u->earlier);
    asym_mask_table_done(&u->masks);
    free(u->tasks);
    free(u->dir);
    free(u);
}

int asym_ledger_overlay_new(struct asym_source *inner, const char *dir, struct asym_source **ret_source,
                            struct asym_error *err)
{
    struct ledger_overlay *u = calloc(1, sizeof *u);
    char *copy = strdup(dir);
    if (!u || !copy) {
        free(u);
        free(copy);
        return -ENOMEM;
    }
    u->source = (struct asym_source){.inner = inner, .next = ledger_overlay_next, .close = ledger_overlay_close};
    u->dir = copy;
    read_ledger(u, err);
    *ret_source = &u->source;
    return 0;
}
