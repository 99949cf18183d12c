/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Restores all threads, and those with an inherited affinity. A machine may have many threads with the same mask, in
 * processes of any descent, and the ledger may have many entries. So each process is looked up once, and creator-index.c finds
 * the entry that a thread has inherited its mask from without reading all entries.
 */
#include "linux/enforce/restore.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/parse.h"
#include "base/text.h"
#include "linux/enforce/creator-index.h"
#include "linux/enforce/ancestry.h"
#include "linux/enforce/ledger-internal.h"
#include "linux/sys/thread.h"

#define PF_KTHREAD 0x00200000u

/* Passes over all threads. A thread with an inherited mask may fork during a pass, so one pass may miss its child. */
#define PASSES_MAX 4

struct search {
    struct asym_ledger *ledger;
    struct asym_creator_index *creators;
    struct asym_ancestry *ancestry;
    int32_t ancestors_of; /* the process that is selected in creators; 0: none yet */
    size_t found;
    asym_usec begun; /* monotonic: a thread born just before it may have its creator's transit CPU alone */
};

static void close_dir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}

static const struct asym_ledger_entry *find_creator(struct search *s, const struct asym_taskid *id,
                                                    const struct asym_mask *found, int8_t nice)
{
    struct asym_ancestors ancestors;
    if (s->ancestors_of != id->tgid) {
        asym_ancestry_of(s->ancestry, id->tgid, &ancestors);
        asym_creator_index_set_ancestors(s->creators, &ancestors);
        s->ancestors_of = id->tgid;
    }
    return asym_creator_index_find(s->creators, id, found, nice);
}

static void check_thread(struct search *s, int32_t tgid, int32_t tid)
{
    struct asym_ledger *l = s->ledger;
    struct asym_mask found;
    struct asym_stat stat;
    if (asym_thread_get_mask(tid, &found) < 0 || !asym_creator_index_has_mask(s->creators, &found) ||
        asym_thread_get_stat(tgid, tid, &stat) < 0 || stat.flags & PF_KTHREAD)
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

static void check_process(struct search *s, int32_t tgid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)tgid);
    ASYM_CLEANUP(close_dir_p) DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (number(e->d_name) > 0)
            check_thread(s, tgid, number(e->d_name));
}

/* Each pass looks the processes up anew: a process may have a new parent by now, and the kernel may have reused a PID. */
static void check_all(struct search *s)
{
    ASYM_CLEANUP(close_dir_p) DIR *d = opendir("/proc");
    asym_ancestry_forget(s->ancestry);
    s->ancestors_of = 0;
    s->found = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        if (number(e->d_name) > 0)
            check_process(s, number(e->d_name));
}

static void search_done(struct search *s)
{
    asym_ancestry_free(s->ancestry);
    asym_creator_index_free(s->creators);
}

static size_t restore_inherited(struct asym_ledger *l)
{
    size_t n = 0;
    ASYM_CLEANUP(search_done) struct search s = {.ledger = l, .begun = asym_clock_now()};
    if (asym_creator_index_new(l, s.begun, &s.creators) <= 0 || asym_ancestry_new(&s.ancestry) < 0)
        return 0;
    for (int pass = 0; pass < PASSES_MAX && (pass == 0 || s.found > 0); pass++) {
        check_all(&s);
        n += s.found;
    }
    return n;
}

static void count(struct asym_restore_report *report, int r)
{
    bool failed = r < 0 && r != -ESRCH && r != -EBUSY;
    report->restored += r >= 0;
    report->nice_kept += r > 0;
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
    /* Restore the creators first: while a thread has a narrowed mask, each new child inherits it. */
    for (size_t i = 0; i < l->n; i++) {
        int r = asym_ledger_give_back(l, &l->entries[i]);
        count(report, r);
        failed[i] = r < 0 && r != -ESRCH && r != -EBUSY;
    }
    report->inherited = restore_inherited(l);
    for (size_t i = l->n; i-- > 0;) {
        if (failed[i])
            continue;
        /* The last entry moves to this place, so its flag moves too. */
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
        /* A failed write is no error: a later restore compares before it writes, so records that are too old do no harm. */
        asym_ledger_flush(l);
    }
    asym_ledger_unlock(l);
    if (r < 0)
        return r;
    *ret_report = report;
    return 0;
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

const char *asym_restore_text(const struct asym_restore_report *report, char *buf, size_t size)
{
    struct asym_text text = asym_text_in(buf, size);
    asym_text_add(&text, "restored %zu thread%s", report->restored, plural(report->restored));
    if (report->inherited > 0)
        asym_text_add(&text, " and %zu that had inherited a mask", report->inherited);
    if (report->nice_kept > 0 && report->restored == 1)
        asym_text_add(&text, "; its nice value was changed by others and stays");
    else if (report->nice_kept > 0)
        asym_text_add(&text, "; the nice value of %zu of them was changed by others and stays", report->nice_kept);
    if (report->gone > 0)
        asym_text_add(&text, "; %zu ha%s ended", report->gone, report->gone == 1 ? "s" : "ve");
    if (report->foreign > 0)
        asym_text_add(&text, "; skipped %zu: another program has changed %s affinity", report->foreign,
                      report->foreign == 1 ? "its" : "their");
    if (report->failed > 0)
        asym_text_add(&text, "; %zu failed: %s", report->failed, strerror(-report->error));
    return buf;
}
