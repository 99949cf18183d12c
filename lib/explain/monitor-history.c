/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "explain/monitor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

struct asym_history {
    struct asym_taskid id;
    uint32_t newer, older; /* neighbours in the list; slot + 1, 0: none */
    uint32_t n;            /* decisions so far; the last one is at (n - 1) % ASYM_MONITOR_DECISIONS */
    struct asym_monitor_decision decisions[ASYM_MONITOR_DECISIONS];
};

int asym_histories_init(struct asym_histories *h, uint32_t n)
{
    *h = (struct asym_histories){.slots = calloc(n, sizeof *h->slots), .n = n};
    return h->slots ? 0 : -ENOMEM;
}

void asym_histories_done(struct asym_histories *h)
{
    free(h->slots);
    *h = (struct asym_histories){0};
}

static struct asym_history *at(const struct asym_histories *h, uint32_t slot)
{
    return &h->slots[slot - 1];
}

static void take_out(struct asym_histories *h, uint32_t slot)
{
    const struct asym_history *history = at(h, slot);
    if (history->newer)
        at(h, history->newer)->older = history->older;
    else
        h->newest = history->older;
    if (history->older)
        at(h, history->older)->newer = history->newer;
    else
        h->oldest = history->newer;
}

static void put_first(struct asym_histories *h, uint32_t slot)
{
    at(h, slot)->newer = 0;
    at(h, slot)->older = h->newest;
    if (h->newest)
        at(h, h->newest)->newer = slot;
    else
        h->oldest = slot;
    h->newest = slot;
}

static bool is_of(const struct asym_histories *h, uint32_t slot, const struct asym_taskid *id)
{
    return slot != 0 && at(h, slot)->id.tid == id->tid && at(h, slot)->id.start == id->start;
}

uint32_t asym_histories_add(struct asym_histories *h, uint32_t slot, const struct asym_monitor_decision *decision)
{
    const bool has_one = is_of(h, slot, &decision->id);
    if (!has_one)
        slot = h->n_used < h->n ? ++h->n_used : h->oldest;
    if (has_one || slot == h->oldest)
        take_out(h, slot);
    put_first(h, slot);
    struct asym_history *history = at(h, slot);
    if (!has_one) {
        history->id = decision->id;
        history->n = 0;
    }
    history->decisions[history->n++ % ASYM_MONITOR_DECISIONS] = *decision;
    return slot;
}

size_t asym_histories_read(const struct asym_histories *h, uint32_t slot, const struct asym_taskid *id,
                           struct asym_monitor_decision ret[ASYM_MONITOR_DECISIONS])
{
    if (!is_of(h, slot, id))
        return 0;
    const struct asym_history *history = at(h, slot);
    const uint32_t n = ASYM_MIN(history->n, (uint32_t)ASYM_MONITOR_DECISIONS);
    for (uint32_t i = 0; i < n; i++)
        ret[i] = history->decisions[(history->n - 1 - i) % ASYM_MONITOR_DECISIONS];
    return n;
}

static int compare_numbers(const void *a, const void *b)
{
    const struct asym_monitor_decision *const *x = a, *const *y = b;
    return ((*x)->number > (*y)->number) - ((*x)->number < (*y)->number);
}

/* Writes those of a thread, whose history keeps the newest ones. Returns their number. */
static size_t take_since(const struct asym_history *history, uint64_t since, const struct asym_monitor_decision **ret)
{
    const uint32_t most = ASYM_MIN(history->n, (uint32_t)ASYM_MONITOR_DECISIONS);
    size_t n = 0;
    while (n < most) {
        const struct asym_monitor_decision *d = &history->decisions[(history->n - 1 - n) % ASYM_MONITOR_DECISIONS];
        if (d->number <= since)
            break;
        ret[n++] = d;
    }
    return n;
}

/* The threads are in the order of their last decision. */
int asym_histories_since(const struct asym_histories *h, uint64_t since, const struct asym_monitor_decision ***ret,
                         size_t *ret_n)
{
    const struct asym_monitor_decision *of_thread[ASYM_MONITOR_DECISIONS], **all = NULL;
    size_t n = 0, found;
    for (uint32_t slot = h->newest; slot && (found = take_since(at(h, slot), since, of_thread)) > 0;
         slot = at(h, slot)->older) {
        const struct asym_monitor_decision **more = reallocarray(all, n + found, sizeof *all);
        if (!more) {
            free(all);
            return -ENOMEM;
        }
        all = more;
        memcpy(all + n, of_thread, found * sizeof *all);
        n += found;
    }
    if (n > 1)
        qsort(all, n, sizeof *all, compare_numbers);
    *ret = all;
    *ret_n = n;
    return 0;
}
