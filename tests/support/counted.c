/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/counted.h"

#include "support/test.h"

/* Returns the thread's newest row up to now; NULL if the thread has not begun or has ended. */
static const struct counted_row *row_of(const struct counted *c, int32_t tid)
{
    const struct counted_row *row = NULL;
    for (size_t i = 0; i < c->n; i++)
        if (c->rows[i].tid == tid && c->rows[i].time <= c->now)
            row = &c->rows[i];
    return row && row->on_cpu_ns != COUNTED_NONE ? row : NULL;
}

/* Returns the thread's place in watched; n_watched if it has none. */
static unsigned place_of(const struct counted *c, const struct asym_taskid *id)
{
    unsigned i = 0;
    while (i < c->n_watched && !asym_taskid_equal(&c->watched[i].id, id))
        i++;
    return i;
}

static int watch(struct asym_counters *port, const struct asym_taskid *id)
{
    struct counted *c = (struct counted *)port;
    const struct counted_row *row = row_of(c, id->tid);
    if (place_of(c, id) < c->n_watched)
        return 0;
    if ((c->n_watched + 1) * COUNTED_FIGURES > c->max_fds)
        return -EDQUOT;
    if (!row)
        return -ESRCH;
    assert_true(c->n_watched < COUNTED_THREADS);
    c->watched[c->n_watched].id = *id;
    c->watched[c->n_watched++].base = row;
    return 0;
}

static int unwatch(struct asym_counters *port, const struct asym_taskid *id)
{
    struct counted *c = (struct counted *)port;
    const unsigned i = place_of(c, id);
    if (i == c->n_watched)
        return -ENOENT;
    c->watched[i] = c->watched[--c->n_watched];
    return 0;
}

static int read_counts(struct asym_counters *port, const struct asym_taskid *id, struct asym_counts *ret)
{
    struct counted *c = (struct counted *)port;
    const struct counted_row *row = row_of(c, id->tid);
    const unsigned i = place_of(c, id);
    if (i == c->n_watched)
        return -ENOENT;
    if (!row)
        return unwatch(port, id) < 0 ? -EIO : -ESRCH;
    const struct counted_row *base = c->watched[i].base;
    *ret = (struct asym_counts){.running_share = 1, .on_cpu_ns = row->on_cpu_ns - base->on_cpu_ns};
    for (unsigned k = 0; k < COUNTED_FIGURES; k++) {
        if (row->figure[k] == COUNTED_NONE || base->figure[k] == COUNTED_NONE)
            continue;
        ret->valid |= 1u << k;
        ret->value[k] = row->figure[k] - base->figure[k];
    }
    return 0;
}

static void close_nothing(struct asym_counters *port)
{
}

struct counted counted_of(const struct counted_row *rows, size_t n, unsigned max_fds)
{
    return (struct counted){.port = {.watch = watch, .unwatch = unwatch, .read = read_counts, .close = close_nothing},
                            .rows = rows,
                            .n = n,
                            .max_fds = max_fds};
}
