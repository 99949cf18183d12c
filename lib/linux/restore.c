/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Putting everything back, heirs included. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/parse.h"
#include "linux/ledger-internal.h"
#include "linux/thread.h"

#define PF_KTHREAD 0x00200000u

/* A chain of parents longer than this is no chain that asymd's steering has made. */
#define ANCESTORS_MAX 64

/* An heir that forks while it is looked for leaves another one: so often all threads are gone through. */
#define PASSES_MAX 4

struct search {
    struct asym_ledger *ledger;
    struct asym_mask *masks; /* that were set, each once: few, whereas the machine's threads are many */
    size_t n_masks;
    size_t found;
    asym_usec begun; /* monotonic: who was born just before it may have what threads had on the way */
};

static void close_dir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}

/*
 * Was the process created by the entry's? The chain of parents tells. Where one of them has gone, its children are
 * init's, and only their session tells; but the children of a session's live shell are no orphans, and what they carry
 * may be their own choice (a leader that reaps orphans itself looks just like a shell). Whoever was there before the
 * steering has inherited nothing of it to hand down.
 */
static bool descends(int32_t pid, const struct asym_ledger_entry *e)
{
    bool within = e->session > 0 && getsid(pid) == e->session, orphan = false;
    for (int depth = 0; pid > 1; depth++) {
        struct asym_stat stat;
        if (pid == e->id.tgid)
            return true;
        orphan = orphan || (within && getsid(pid) != e->session);
        within = within && !orphan && pid != e->session;
        if (depth == ANCESTORS_MAX || asym_thread_get_stat(pid, pid, &stat) < 0 ||
            (!orphan && stat.start + 1 < e->since))
            return false;
        pid = stat.ppid;
    }
    return orphan || within;
}

static bool handed_down(struct asym_ledger *l, const struct asym_ledger_entry *e, const struct asym_taskid *id)
{
    const struct asym_ledger_entry *known = asym_ledger_find(l, id->tid);
    /* exec gives the thread that called it the leader's number and start, and leaves it its own mask. */
    if (known && known->id.start == id->start)
        return e->id.tgid == id->tgid && id->tid == id->tgid && asym_thread_is_of(e->id.tgid, e->id.tid) == -ESRCH;
    /* The clocks are the same, but start is cut to whole ticks. */
    return id->start + 1 >= e->since && (e->id.tgid == id->tgid || descends(id->tgid, e));
}

/* Of several that may be it, one that explains the nice value as it is; of these, the one that had the most CPUs. */
static bool is_better(const struct asym_ledger_entry *e, const struct asym_ledger_entry *best, int8_t nice)
{
    bool exact = asym_ledger_nice_of_child(e) == nice;
    if (!best || exact != (asym_ledger_nice_of_child(best) == nice))
        return !best || exact;
    return asym_mask_count(&e->original) > asym_mask_count(&best->original);
}

static const struct asym_ledger_entry *find_creator(const struct search *s, const struct asym_taskid *id,
                                                    const struct asym_mask *found, int8_t nice)
{
    struct asym_ledger *l = s->ledger;
    const struct asym_ledger_entry *best = NULL;
    for (size_t i = 0; i < l->n; i++) {
        const struct asym_ledger_entry *e = &l->entries[i];
        if (e->id.tid != id->tid && asym_ledger_looks_inherited(l, e, found, nice, s->begun) &&
            is_better(e, best, nice) && handed_down(l, e, id))
            best = e;
    }
    return best;
}

static void look_at(struct search *s, int32_t tgid, int32_t tid)
{
    struct asym_ledger *l = s->ledger;
    struct asym_mask found;
    struct asym_stat stat;
    bool candidate = false;
    if (asym_thread_get_mask(tid, &found) < 0)
        return;
    for (size_t i = 0; i < s->n_masks && !candidate; i++)
        candidate = asym_ledger_same_mask(l, &found, &s->masks[i]);
    if (!candidate || asym_thread_get_stat(tgid, tid, &stat) < 0 || stat.flags & PF_KTHREAD)
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

static void add_mask(struct search *s, const struct asym_mask *m)
{
    for (size_t i = 0; i < s->n_masks; i++)
        if (asym_mask_equal(&s->masks[i], m))
            return;
    s->masks[s->n_masks++] = *m;
}

/* Everything that a thread could have inherited and would want to be rid of. */
static int collect_masks(struct search *s)
{
    const struct asym_ledger *l = s->ledger;
    s->masks = reallocarray(NULL, 3 * l->n + 1, sizeof *s->masks);
    if (!s->masks)
        return -ENOMEM;
    for (size_t i = 0; i < l->n; i++) {
        const struct asym_ledger_entry *e = &l->entries[i];
        const struct asym_mask via = asym_ledger_via(e), *had[] = {&e->set, &e->before, &via};
        for (size_t k = 0; k < ASYM_LENGTH(had); k++)
            if (!asym_mask_empty(had[k]) && (e->boosted || !asym_ledger_same_mask(l, had[k], &e->original)))
                add_mask(s, had[k]);
    }
    return 0;
}

static size_t restore_heirs(struct asym_ledger *l)
{
    size_t n = 0;
    struct search s = {.ledger = l, .begun = asym_thread_now()};
    if (collect_masks(&s) < 0 || s.n_masks == 0) {
        free(s.masks);
        return 0;
    }
    for (int pass = 0; pass < PASSES_MAX && (pass == 0 || s.found > 0); pass++) {
        ASYM_CLEANUP(close_dir_p) DIR *d = opendir("/proc");
        s.found = 0;
        for (struct dirent *e; d && (e = readdir(d));)
            if (number(e->d_name) > 0)
                look_at_process(&s, number(e->d_name));
        n += s.found;
    }
    free(s.masks);
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
