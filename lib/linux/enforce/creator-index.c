/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/enforce/creator-index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "linux/sys/thread.h"

/* A child may have one of three masks from its creator: set, before, or the transit CPU alone. */
#define MASKS_MAX 3

/* One row for each pair of an entry and a mask that a child may have inherited from it. */
struct row {
    int32_t number; /* the entry's PID, or the session ID of its process when it was first steered */
    uint32_t mask;  /* index in masks */
    const struct asym_ledger_entry *e;
    unsigned n_cpus;  /* of the thread's original mask */
    bool is_original; /* the mask is also the thread's original one: only the nice value shows a child */
    bool had_transit; /* children that are born at begun may have the transit CPU alone */
    size_t n_group;   /* rows from this one on for which asym_ledger_looks_inherited gives the same answer */
    /*
     * Over the rows of the group up to this one: the least since, the tid of its entry, and the least since of all entries
     * of other threads.
     */
    uint64_t least, least_other;
    int32_t least_tid;
    uint64_t counted_from; /* in the first row of a number: least leaves out threads that started earlier */
    bool counted;
};

/* Sorted by number, mask and group; in a group by CPUs (most first), then by content, then by since. */
struct table {
    struct row *rows;
    size_t n;
};

/* The rows of one ancestor, or of the session, of the selected process. */
struct kin {
    const struct row *rows;
    size_t n;
    struct asym_ancestor origin;
};

struct asym_creator_index {
    struct asym_ledger *ledger;
    struct asym_mask *masks; /* online CPUs only; sorted, without duplicates */
    size_t n_masks;
    asym_usec begun;
    struct table by_tgid, by_session;
    struct kin kin[ASYM_ANCESTORS_MAX + 2];
    size_t n_kin;
    uint64_t steps;
};

static int compare_masks(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct asym_mask));
}

/* Compares the numbers that asym_ledger_looks_inherited and asym_ledger_nice_of_child read. */
static int compare_nice(const struct row *x, const struct row *y)
{
    const struct asym_ledger_entry *a = x->e, *b = y->e;
    const int numbers[][2] = {
        {a->original_nice, b->original_nice},   {a->set_nice, b->set_nice}, {a->before_nice, b->before_nice},
        {a->original_reset, b->original_reset}, {a->boosted, b->boosted},
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < ASYM_LENGTH(numbers); i++)
        r = numbers[i][0] - numbers[i][1];
    return r;
}

/* Entries that compare equal give a child the same mask and nice value. */
static int compare_content(const struct row *x, const struct row *y)
{
    const struct asym_ledger_entry *a = x->e, *b = y->e;
    const int numbers[][2] = {
        {a->full_cpuset, b->full_cpuset},
        {a->under_way, b->under_way},
        {x->had_transit, y->had_transit},
        {(int)a->transit_cpu, (int)b->transit_cpu},
    };
    const struct asym_mask *masks[][2] = {{&a->original, &b->original}, {&a->set, &b->set}, {&a->before, &b->before}};
    int r = compare_nice(x, y);
    for (size_t i = 0; r == 0 && i < ASYM_LENGTH(numbers); i++)
        r = numbers[i][0] - numbers[i][1];
    for (size_t i = 0; r == 0 && i < ASYM_LENGTH(masks); i++)
        r = compare_masks(masks[i][0], masks[i][1]);
    return r;
}

static int compare_groups(const struct row *x, const struct row *y)
{
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    if (x->mask != y->mask)
        return x->mask < y->mask ? -1 : 1;
    const int r = compare_nice(x, y);
    return r != 0 ? r : x->is_original - y->is_original;
}

static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int r = compare_groups(x, y);
    if (r == 0 && x->n_cpus != y->n_cpus)
        return x->n_cpus > y->n_cpus ? -1 : 1;
    r = r != 0 ? r : compare_content(x, y);
    return r != 0 ? r : x->e->since < y->e->since ? -1 : x->e->since > y->e->since;
}

/* The masks that a child may have inherited from the entry, online CPUs only. */
static size_t masks_of(const struct asym_creator_index *c, const struct asym_ledger_entry *e,
                       struct asym_mask ret[static MASKS_MAX])
{
    const struct asym_mask transit_cpu = asym_ledger_transit(e), *had[MASKS_MAX] = {&e->set, &e->before, &transit_cpu};
    const size_t n_had = e->under_way || c->begun <= e->transit_until ? MASKS_MAX : MASKS_MAX - 1;
    size_t n = 0;
    for (size_t i = 0; i < n_had; i++) {
        const struct asym_mask m = asym_mask_and(had[i], &c->ledger->online);
        bool is_new = !asym_mask_empty(&m);
        for (size_t k = 0; k < n; k++)
            is_new = is_new && !asym_mask_equal(&m, &ret[k]);
        if (is_new && (e->boosted || !asym_ledger_same_mask(c->ledger, &m, &e->original)))
            ret[n++] = m;
    }
    return n;
}

static int collect_masks(struct asym_creator_index *c)
{
    const struct asym_ledger *l = c->ledger;
    size_t n = 0;
    c->masks = reallocarray(NULL, MASKS_MAX * l->n + 1, sizeof *c->masks);
    if (!c->masks)
        return -ENOMEM;
    for (size_t i = 0; i < l->n; i++)
        n += masks_of(c, &l->entries[i], &c->masks[n]);
    qsort(c->masks, n, sizeof *c->masks, compare_masks);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || compare_masks(&c->masks[i], &c->masks[c->n_masks - 1]) != 0)
            c->masks[c->n_masks++] = c->masks[i];
    return 0;
}

static const struct asym_mask *find_mask(const struct asym_creator_index *c, const struct asym_mask *found)
{
    const struct asym_mask online = asym_mask_and(found, &c->ledger->online);
    return bsearch(&online, c->masks, c->n_masks, sizeof online, compare_masks);
}

static void add_rows(const struct asym_creator_index *c, struct table *t, const struct asym_ledger_entry *e,
                     int32_t number)
{
    struct asym_mask masks[MASKS_MAX];
    const size_t n = masks_of(c, e, masks);
    for (size_t i = 0; i < n; i++)
        t->rows[t->n++] = (struct row){
            .number = number,
            .mask = (uint32_t)(find_mask(c, &masks[i]) - c->masks),
            .e = e,
            .n_cpus = asym_mask_count(&e->original),
            .is_original = asym_ledger_same_mask(c->ledger, &masks[i], &e->original),
            .had_transit = c->begun <= e->transit_until,
        };
}

static int make_table(const struct asym_creator_index *c, bool by_session, struct table *ret)
{
    const struct asym_ledger *l = c->ledger;
    ret->rows = reallocarray(NULL, MASKS_MAX * l->n + 1, sizeof *ret->rows);
    if (!ret->rows)
        return -ENOMEM;
    for (size_t i = 0; i < l->n; i++)
        add_rows(c, ret, &l->entries[i], by_session ? l->entries[i].session : l->entries[i].id.tgid);
    qsort(ret->rows, ret->n, sizeof *ret->rows, compare_rows);
    for (size_t i = ret->n; i-- > 0;) {
        struct row *row = &ret->rows[i];
        row->n_group = i + 1 < ret->n && compare_groups(row, row + 1) == 0 ? row[1].n_group + 1 : 1;
    }
    return 0;
}

int asym_creator_index_new(struct asym_ledger *l, asym_usec begun, struct asym_creator_index **ret_index)
{
    struct asym_creator_index *c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    c->ledger = l;
    c->begun = begun;
    if (collect_masks(c) < 0 || make_table(c, false, &c->by_tgid) < 0 || make_table(c, true, &c->by_session) < 0) {
        asym_creator_index_free(c);
        return -ENOMEM;
    }
    *ret_index = c;
    return (int)c->n_masks;
}

void asym_creator_index_free(struct asym_creator_index *c)
{
    if (!c)
        return;
    free(c->masks);
    free(c->by_tgid.rows);
    free(c->by_session.rows);
    free(c);
}

bool asym_creator_index_has_mask(const struct asym_creator_index *c, const struct asym_mask *found)
{
    return find_mask(c, found) != NULL;
}

/* The index of the first row that is not below that number and mask. */
static size_t lower_bound(struct asym_creator_index *c, const struct row *rows, size_t n, int32_t number, uint32_t mask)
{
    size_t from = 0, to = n;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        const struct row *row = &rows[middle];
        c->steps++;
        if (row->number < number || (row->number == number && row->mask < mask))
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* An entry may stand in a group twice, so the tid is compared. */
static void add_least(struct row *row, uint64_t since)
{
    const int32_t tid = row->e->id.tid;
    if (since < row->least) {
        row->least_other = row->least;
        row->least = since;
        row->least_tid = tid;
    } else if (tid != row->least_tid) {
        row->least_other = ASYM_MIN(row->least_other, since);
    }
}

/*
 * Computes least for the rows of one number. The kernel reuses numbers. An entry belongs to this origin only if the origin
 * started before the entry's thread did: a later process with the same number may have set the mask itself.
 */
static void count_from(struct asym_creator_index *c, struct row *rows, size_t n, uint64_t start)
{
    if (rows->counted && rows->counted_from == start)
        return;
    size_t left = 0;
    for (struct row *row = rows; row < rows + n; row++, left--) {
        const struct row none = {.least = UINT64_MAX, .least_other = UINT64_MAX};
        const struct row *before = left > 0 ? row - 1 : &none;
        left = left > 0 ? left : row->n_group;
        row->least = before->least;
        row->least_other = before->least_other;
        row->least_tid = before->least_tid;
        if (row->e->id.start >= start)
            add_least(row, row->e->since);
        c->steps++;
    }
    rows->counted = true;
    rows->counted_from = start;
}

static void add_kin(struct asym_creator_index *c, const struct table *t, const struct asym_ancestor *origin)
{
    const size_t from = lower_bound(c, t->rows, t->n, origin->number, 0);
    if (from == t->n || t->rows[from].number != origin->number)
        return;
    const size_t n = lower_bound(c, t->rows + from, t->n - from, origin->number, UINT32_MAX);
    count_from(c, t->rows + from, n, origin->start);
    c->kin[c->n_kin++] = (struct kin){t->rows + from, n, *origin};
}

/*
 * Collects the rows of all ancestors: a thread may have inherited from each of them. If an ancestor has exited, init
 * adopts its children, and only the session connects them.
 */
void asym_creator_index_set_ancestors(struct asym_creator_index *c, const struct asym_ancestors *ancestors)
{
    c->n_kin = 0;
    for (size_t i = 0; i < ancestors->n; i++)
        add_kin(c, &c->by_tgid, &ancestors->processes[i]);
    if (ancestors->session.number > 0)
        add_kin(c, &c->by_session, &ancestors->session);
}

/* An entry that explains the exact nice value ranks first, then the one with the most CPUs. Above 0: row beats best. */
static int rank(const struct row *row, const struct row *best, int8_t nice)
{
    if (!best)
        return 1;
    const bool exact = asym_ledger_nice_of_child(row->e) == nice,
               best_exact = asym_ledger_nice_of_child(best->e) == nice;
    if (exact != best_exact)
        return exact - best_exact;
    return row->n_cpus == best->n_cpus ? 0 : row->n_cpus > best->n_cpus ? 1 : -1;
}

/* The first row of the group whose entry is of another thread that was steered by that time; NULL: none. */
static const struct row *first_since(struct asym_creator_index *c, const struct row *group, uint64_t when, int32_t tid)
{
    size_t from = 0, to = group->n_group;
    bool other = false;
    for (;;) {
        while (from < to) {
            const size_t middle = from + (to - from) / 2;
            c->steps++;
            if ((other ? group[middle].least_other : group[middle].least) > when)
                from = middle + 1;
            else
                to = middle;
        }
        if (from == group->n_group)
            return NULL;
        if (other || group[from].e->id.tid != tid)
            return &group[from];
        other = true;
        to = group->n_group;
    }
}

/*
 * The earliest start between the ancestor and the thread counts, the thread's own included. A process in between that
 * started before the steering did not inherit from it, and so cannot pass it on. The kernel rounds starts down to whole
 * clock ticks, the unit of since; hence + 1.
 */
static const struct row *find_in_group(struct asym_creator_index *c, const struct kin *kin, const struct row *group,
                                       const struct asym_taskid *id)
{
    return first_since(c, group, ASYM_MIN(kin->origin.oldest, id->start) + 1, id->tid);
}

/* A thread that calls exec takes the leader's TID and start, and keeps its own mask. */
static const struct row *find_by_exec(struct asym_creator_index *c, const struct kin *kin, const struct row *group,
                                      const struct asym_taskid *id)
{
    for (const struct row *row = group; row < group + group->n_group; row++) {
        const struct asym_taskid *former = &row->e->id;
        c->steps++;
        if (former->tid != id->tid && former->tgid == id->tgid && former->start >= kin->origin.start &&
            asym_thread_is_of(former->tgid, former->tid) == -ESRCH)
            return row;
    }
    return NULL;
}

typedef const struct row *find_fn(struct asym_creator_index *c, const struct kin *kin, const struct row *group,
                                  const struct asym_taskid *id);

static const struct row *find_in_kin(struct asym_creator_index *c, const struct kin *kin, uint32_t mask,
                                     find_fn *find_row, const struct asym_taskid *id, int8_t nice)
{
    const struct row *best = NULL;
    size_t n = 0;
    for (size_t i = lower_bound(c, kin->rows, kin->n, kin->origin.number, mask); i < kin->n; i += n) {
        const struct row *group = &kin->rows[i];
        n = group->n_group;
        c->steps++;
        if (group->mask != mask)
            break;
        if (!asym_ledger_looks_inherited(c->ledger, group->e, &c->masks[mask], nice, c->begun))
            continue;
        const struct row *row = find_row(c, kin, group, id);
        const int r = row ? rank(row, best, nice) : -1;
        if (r > 0 || (r == 0 && compare_content(row, best) < 0))
            best = row;
    }
    return best;
}

const struct asym_ledger_entry *asym_creator_index_find(struct asym_creator_index *c, const struct asym_taskid *id,
                                                        const struct asym_mask *found, int8_t nice)
{
    const struct asym_ledger_entry *known = asym_ledger_find(c->ledger, id->tid);
    const struct asym_mask *mask = find_mask(c, found);
    const bool itself = known && known->id.start == id->start;
    const struct row *best = NULL;
    if (!mask || (itself && id->tid != id->tgid))
        return NULL;
    for (size_t i = 0; i < c->n_kin; i++) {
        const struct kin *kin = &c->kin[i];
        /* A thread that called exec was a thread of this very process. */
        if (itself && kin->origin.oldest != UINT64_MAX)
            continue;
        const struct row *row = find_in_kin(c, kin, (uint32_t)(mask - c->masks), itself ? find_by_exec : find_in_group,
                                            id, nice);
        if (row && rank(row, best, nice) > 0)
            best = row;
    }
    return best ? best->e : NULL;
}

uint64_t asym_creator_index_steps(const struct asym_creator_index *c)
{
    return c->steps;
}
