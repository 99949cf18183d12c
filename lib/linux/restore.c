/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Putting everything back, heirs included. A machine may have as many threads of the same mask as it likes, in processes
 * of any descent, and the ledger many entries: each process is looked up once, and each thread is held against the few
 * different things that entries of its ancestors say.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/parse.h"
#include "linux/descent.h"
#include "linux/ledger-internal.h"
#include "linux/thread.h"

#define PF_KTHREAD 0x00200000u

/* An heir that forks while it is looked for leaves another one: so often all threads are gone through. */
#define PASSES_MAX 4

/* An entry as a process finds it: by the number of its process, or of the session that it had then. */
struct ref {
    int32_t key;
    bool had_via; /* children that are born now may have what it had on the way */
    const struct asym_ledger_entry *e;
    size_t alike; /* so many from here on have the key and say the same of a child, in the order of since */
};

/* Entries that say the same, and from which a process may have inherited. */
struct kin {
    const struct ref *refs;
    size_t n;
};

struct search {
    struct asym_ledger *ledger;
    struct asym_mask *masks; /* what was set, as far as it is online; in order, each once */
    size_t n_masks;
    struct ref *by_tgid, *by_session; /* in order of key, content, since */
    struct asym_descent *descent;
    struct kin *kin; /* of the process that is looked at; room for all */
    size_t n_kin;
    int32_t kin_of; /* 0: of none yet */
    size_t found;
    asym_usec begun; /* monotonic: a thread born just before it may have the CPU that its creator had on the way */
};

static void close_dir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}

static int compare_masks(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct asym_mask));
}

/* Compare the fields that asym_ledger_looks_inherited and asym_ledger_repair read. */
static int compare_content(const struct ref *x, const struct ref *y)
{
    const struct asym_ledger_entry *a = x->e, *b = y->e;
    const int numbers[][2] = {
        {a->original_nice, b->original_nice},   {a->set_nice, b->set_nice}, {a->before_nice, b->before_nice},
        {a->original_reset, b->original_reset}, {a->boosted, b->boosted},   {a->whole, b->whole},
        {a->under_way, b->under_way},           {x->had_via, y->had_via},   {(int)a->via, (int)b->via},
    };
    const struct asym_mask *masks[][2] = {{&a->original, &b->original}, {&a->set, &b->set}, {&a->before, &b->before}};
    int r = 0;
    for (size_t i = 0; r == 0 && i < ASYM_LENGTH(numbers); i++)
        r = numbers[i][0] - numbers[i][1];
    for (size_t i = 0; r == 0 && i < ASYM_LENGTH(masks); i++)
        r = compare_masks(masks[i][0], masks[i][1]);
    return r;
}

static int compare_refs(const void *a, const void *b)
{
    const struct ref *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    const int r = compare_content(x, y);
    return r != 0 ? r : x->e->since < y->e->since ? -1 : x->e->since > y->e->since;
}

/* The first ref of that key, or of a higher one. */
static size_t lower_bound(const struct ref *refs, size_t n, int32_t key)
{
    size_t from = 0, to = n;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (refs[middle].key < key)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/*
 * Entries are of a process or session that had the origin's number: of this one where it began before their threads did.
 * Numbers are used again, and what a later process has set for itself is its own. And what was there before the steering,
 * anywhere on the way, has inherited nothing of it to hand down; start times are cut to whole ticks.
 */
static void add_kin(struct search *s, const struct ref *refs, const struct asym_origin *origin)
{
    const size_t n = s->ledger->n;
    for (size_t i = lower_bound(refs, n, origin->number); i < n && refs[i].key == origin->number;) {
        const size_t end = i + refs[i].alike;
        while (i < end && refs[i].e->id.start < origin->start)
            i++;
        if (i < end && (origin->oldest >= refs[i].e->since || origin->oldest + 1 == refs[i].e->since))
            s->kin[s->n_kin++] = (struct kin){&refs[i], end - i};
        i = end;
    }
}

/*
 * All that threads of this process may have inherited, by way of whichever ancestor. Where one of them has gone, its
 * children are init's, and only their session tells.
 */
static void find_kin(struct search *s, int32_t tgid)
{
    struct asym_line line;
    if (s->kin_of == tgid)
        return;
    s->kin_of = tgid;
    s->n_kin = 0;
    asym_descent_of(s->descent, tgid, &line);
    for (size_t i = 0; i < line.n; i++)
        add_kin(s, s->by_tgid, &line.processes[i]);
    if (line.session.number > 0)
        add_kin(s, s->by_session, &line.session);
}

/* One of the kind that the thread may have it from; NULL: none. */
static const struct asym_ledger_entry *handed_down(struct asym_ledger *l, const struct kin *kin,
                                                   const struct asym_taskid *id)
{
    const struct asym_ledger_entry *known = asym_ledger_find(l, id->tid);
    const bool itself = known && known->id.start == id->start;
    for (size_t i = 0; i < kin->n; i++) {
        const struct asym_ledger_entry *e = kin->refs[i].e;
        if (e->id.tid == id->tid)
            continue;
        if (!itself) /* start is cut to whole ticks of the same clock. Those behind it were steered later still */
            return id->start + 1 >= e->since ? e : NULL;
        /* exec gives the thread that called it the leader's number and start, and leaves it its own mask. */
        if (e->id.tgid == id->tgid && id->tid == id->tgid && asym_thread_is_of(e->id.tgid, e->id.tid) == -ESRCH)
            return e;
    }
    return NULL;
}

/* Of several that may be it, one that explains the nice value as it is; of these, the one that had the most CPUs. */
static bool is_better(const struct asym_ledger_entry *e, const struct asym_ledger_entry *best, int8_t nice)
{
    bool exact = asym_ledger_nice_of_child(e) == nice;
    if (!best || exact != (asym_ledger_nice_of_child(best) == nice))
        return !best || exact;
    return asym_mask_count(&e->original) > asym_mask_count(&best->original);
}

static const struct asym_ledger_entry *find_creator(struct search *s, const struct asym_taskid *id,
                                                    const struct asym_mask *found, int8_t nice)
{
    const struct asym_ledger_entry *best = NULL;
    find_kin(s, id->tgid);
    for (size_t i = 0; i < s->n_kin; i++) {
        const struct asym_ledger_entry *first = s->kin[i].refs->e;
        if (!asym_ledger_looks_inherited(s->ledger, first, found, nice, s->begun) || !is_better(first, best, nice))
            continue;
        const struct asym_ledger_entry *e = handed_down(s->ledger, &s->kin[i], id);
        best = e ? e : best;
    }
    return best;
}

static bool was_set(const struct search *s, const struct asym_mask *found)
{
    const struct asym_mask online = asym_mask_and(found, &s->ledger->online);
    return bsearch(&online, s->masks, s->n_masks, sizeof online, compare_masks) != NULL;
}

static void look_at(struct search *s, int32_t tgid, int32_t tid)
{
    struct asym_ledger *l = s->ledger;
    struct asym_mask found;
    struct asym_stat stat;
    if (asym_thread_get_mask(tid, &found) < 0 || !was_set(s, &found) || asym_thread_get_stat(tgid, tid, &stat) < 0 ||
        stat.flags & PF_KTHREAD)
        return;
    const struct asym_ledger_entry *known = asym_ledger_find(l, tid);
    if (known && known->id.start == stat.start && asym_ledger_same_mask(l, &found, &known->original))
        return;
    const struct asym_taskid id = {tid, tgid, stat.start};
    const struct asym_ledger_entry *e = find_creator(s, &id, &found, stat.nice);
    if (e && asym_ledger_repair(l, e, tid, s->begun) > 0)
        s->found++;
}

static int32_t number(const char *name)
{
    uint64_t n;
    return asym_parse_u64(name, strlen(name), &n) == 0 && n <= INT32_MAX ? (int32_t)n : 0;
}

static void look_at_process(struct search *s, int32_t tgid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)tgid);
    ASYM_CLEANUP(close_dir_p) DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (number(e->d_name) > 0)
            look_at(s, tgid, number(e->d_name));
}

/* Each pass looks processes up anew: their parents may have changed, and numbers may have been used again. */
static void look_at_all(struct search *s)
{
    ASYM_CLEANUP(close_dir_p) DIR *d = opendir("/proc");
    asym_descent_forget(s->descent);
    s->kin_of = 0;
    s->found = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        if (number(e->d_name) > 0)
            look_at_process(s, number(e->d_name));
}

/* Everything that a thread could have inherited and would want to be rid of. */
static int collect_masks(struct search *s)
{
    const struct asym_ledger *l = s->ledger;
    size_t n = 0;
    s->masks = reallocarray(NULL, 3 * l->n + 1, sizeof *s->masks);
    if (!s->masks)
        return -ENOMEM;
    for (size_t i = 0; i < l->n; i++) {
        const struct asym_ledger_entry *e = &l->entries[i];
        const struct asym_mask via = asym_ledger_via(e), *had[] = {&e->set, &e->before, &via};
        for (size_t k = 0; k < ASYM_LENGTH(had); k++)
            if (!asym_mask_empty(had[k]) && (e->boosted || !asym_ledger_same_mask(l, had[k], &e->original)))
                s->masks[n++] = asym_mask_and(had[k], &l->online);
    }
    qsort(s->masks, n, sizeof *s->masks, compare_masks);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || compare_masks(&s->masks[i], &s->masks[s->n_masks - 1]) != 0)
            s->masks[s->n_masks++] = s->masks[i];
    return 0;
}

static struct ref *sort_refs(const struct search *s, bool by_session)
{
    const struct asym_ledger *l = s->ledger;
    struct ref *refs = reallocarray(NULL, l->n + 1, sizeof *refs);
    for (size_t i = 0; refs && i < l->n; i++) {
        const struct asym_ledger_entry *e = &l->entries[i];
        refs[i] = (struct ref){
            .key = by_session ? e->session : e->id.tgid, .had_via = s->begun <= e->via_until, .e = e};
    }
    if (refs)
        qsort(refs, l->n, sizeof *refs, compare_refs);
    for (size_t i = l->n; refs && i-- > 0;) {
        const bool alike = i + 1 < l->n && refs[i].key == refs[i + 1].key &&
                           compare_content(&refs[i], &refs[i + 1]) == 0;
        refs[i].alike = alike ? refs[i + 1].alike + 1 : 1;
    }
    return refs;
}

static void search_done(struct search *s)
{
    asym_descent_free(s->descent);
    free(s->masks);
    free(s->by_tgid);
    free(s->by_session);
    free(s->kin);
}

static size_t restore_heirs(struct asym_ledger *l)
{
    size_t n = 0;
    ASYM_CLEANUP(search_done) struct search s = {.ledger = l, .begun = asym_thread_now()};
    if (collect_masks(&s) < 0 || s.n_masks == 0)
        return 0;
    s.by_tgid = sort_refs(&s, false);
    s.by_session = sort_refs(&s, true);
    s.kin = reallocarray(NULL, 2 * l->n + 1, sizeof *s.kin);
    if (!s.by_tgid || !s.by_session || !s.kin || asym_descent_new(&s.descent) < 0)
        return 0;
    for (int pass = 0; pass < PASSES_MAX && (pass == 0 || s.found > 0); pass++) {
        look_at_all(&s);
        n += s.found;
    }
    return n;
}

static void count(struct asym_restore_report *report, int r)
{
    bool failed = r < 0 && r != -ESRCH && r != -EBUSY;
    report->restored += r == 0;
    report->gone += r == -ESRCH;
    report->foreign += r == -EBUSY;
    report->failed += failed;
    if (failed && report->error == 0)
        report->error = r;
}

static int restore_all(struct asym_ledger *l, struct asym_restore_report *report)
{
    ASYM_AUTO_FREE bool *failed = calloc(l->n + 1, sizeof *failed);
    if (!failed)
        return -ENOMEM;
    /* Creators first: as long as one carries a narrowed mask, it gives birth to more heirs. */
    for (size_t i = 0; i < l->n; i++) {
        int r = asym_ledger_give_back(l, &l->entries[i]);
        count(report, r);
        failed[i] = r < 0 && r != -ESRCH && r != -EBUSY;
    }
    report->heirs = restore_heirs(l);
    for (size_t i = l->n; i-- > 0;) {
        if (failed[i])
            continue;
        /* The last entry takes its place, and with it goes its mark. */
        failed[i] = failed[l->n - 1];
        asym_ledger_forget(l, &l->entries[i]);
    }
    return 0;
}

int asym_ledger_restore(struct asym_ledger *l, struct asym_restore_report *ret_report)
{
    struct asym_restore_report report = {0};
    asym_ledger_lock(l);
    asym_ledger_renew_online(l);
    int r = restore_all(l, &report);
    if (r >= 0) {
        /* A file that says too much is compared with before anything is written again: no reason to fail. */
        asym_ledger_flush(l);
    }
    asym_ledger_unlock(l);
    if (r < 0)
        return r;
    *ret_report = report;
    return 0;
}
