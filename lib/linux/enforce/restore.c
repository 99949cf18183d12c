/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Restores all threads, and those with an inherited affinity. Takes no memory but its stack: asymd stops when memory is short,
 * too. A machine may have many threads: only those of processes that descend from a steered one are looked at.
 */
#include "linux/enforce/ledger-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"
#include "linux/sys/root.h"
#include "linux/sys/thread.h"

/* Passes over all threads. A thread with an inherited mask may fork during a pass, so one pass may miss its child. */
#define PASSES_MAX 4

struct search {
    struct asym_creators creators;
    struct asym_ancestry ancestry;
    int32_t tgid; /* the process that is selected in creators */
    size_t found;
    int error; /* of the first directory that could not be read, or thread that could not be repaired */
};

static void note_error(struct search *s, int r)
{
    if (r < 0 && r != -ESRCH && r != -ENOENT && s->error == 0)
        s->error = r;
}

static int check_thread(void *arg, int32_t tid)
{
    struct search *s = arg;
    struct asym_ledger *l = s->creators.ledger;
    struct asym_mask found;
    struct asym_stat stat;
    int r = asym_thread_get_mask(tid, &found);
    if (r >= 0)
        r = asym_thread_get_stat(s->tgid, tid, &stat);
    note_error(s, r);
    if (r < 0 || stat.flags & ASYM_PF_KTHREAD || asym_stat_is_ending(&stat))
        return 0;
    const struct asym_ledger_entry *known = asym_ledger_find(l, tid);
    if (known && known->id.start == stat.start && asym_ledger_same_mask(l, &found, &known->original))
        return 0;
    const struct asym_taskid id = {tid, s->tgid, stat.start};
    const struct asym_ledger_entry *e = asym_creators_find(&s->creators, &id, &stat.image, &found, stat.nice);
    r = e ? asym_ledger_repair(l, e, tid, s->creators.begun) : 0;
    note_error(s, r);
    s->found += r > 0;
    return 0;
}

static void check_directory(struct search *s, const char *path, asym_dir_fn *fn)
{
    alignas(struct asym_dir_entry) char buf[8192];
    ASYM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 ? -errno : 1;
    while (r > 0)
        r = asym_dir_read(fd, buf, sizeof buf, fn, s);
    note_error(s, r);
}

static int check_process(void *arg, int32_t tgid)
{
    struct search *s = arg;
    struct asym_ancestors ancestors;
    char path[64];
    asym_ancestry_of(&s->ancestry, tgid, &ancestors);
    asym_creators_select(&s->creators, &ancestors);
    if (s->creators.n == 0)
        return 0;
    s->tgid = tgid;
    snprintf(path, sizeof path, "/proc/%d/task", (int)tgid);
    check_directory(s, path, check_thread);
    return 0;
}

/*
 * Each pass looks the processes up anew: a process may have a new parent by now, and the kernel may have reused a PID. tgid: the
 * only process to look at; 0: all. Returns the number of threads that it has repaired.
 */
static size_t restore_inherited(struct asym_ledger *l, int32_t tgid, int *ret_error)
{
    size_t n = 0;
    struct search s = {.creators = {.ledger = l, .begun = asym_clock_now()}};
    for (int pass = 0; l->n > 0 && pass < PASSES_MAX && (pass == 0 || s.found > 0); pass++) {
        memset(&s.ancestry, 0, sizeof s.ancestry);
        s.found = 0;
        if (tgid > 0)
            check_process(&s, tgid);
        else
            check_directory(&s, "/proc", check_process);
        n += s.found;
    }
    *ret_error = s.error;
    return n;
}

int asym_ledger_follow_exec(struct asym_ledger *l, const struct asym_ledger_entry *e)
{
    struct asym_stat leader;
    struct asym_mask mask;
    int r = 0;
    if (e->id.tid == e->id.tgid || asym_thread_get_stat(e->id.tgid, e->id.tgid, &leader) < 0 ||
        asym_stat_is_ending(&leader) || !asym_ledger_is_other_image(e, &leader.image) ||
        asym_thread_get_mask(e->id.tgid, &mask) < 0 ||
        !asym_ledger_looks_inherited(l, e, &mask, leader.nice, asym_clock_now()))
        return 0;
    const size_t n = restore_inherited(l, e->id.tgid, &r);
    return r < 0 ? r : (int)n;
}

/* Returns whether the thread could not be restored. */
static bool count(struct asym_restore_report *report, int r)
{
    const bool failed = r < 0 && r != -ESRCH && r != -EBUSY;
    report->restored += r >= 0;
    report->nice_kept += r > 0;
    report->gone += r == -ESRCH;
    report->foreign += r == -EBUSY;
    report->failed += failed;
    if (failed && report->error == 0)
        report->error = r;
    return failed;
}

static void restore_all(struct asym_ledger *l, struct asym_restore_report *report)
{
    /* The leader's own record may explain the mask of a thread that has called exec, and not its nice value. */
    for (size_t i = 0; i < l->n; i++) {
        const bool ended = asym_thread_is_of(l->entries[i].id.tgid, l->entries[i].id.tid) == -ESRCH;
        const int n = ended ? asym_ledger_follow_exec(l, &l->entries[i]) : 0;
        report->inherited += (size_t)ASYM_MAX(n, 0); /* after a failure the search below tries again */
    }
    /* Restore the creators first: while a thread has a narrowed mask, each new child inherits it. */
    for (size_t i = 0; i < l->n; i++)
        l->entries[i].failed = count(report, asym_ledger_restore_thread(l, &l->entries[i]));
    report->inherited += restore_inherited(l, 0, &report->search_error);
    /* A later restore finds the children that this one could not look for: the entries of their creators stay. */
    for (size_t i = l->n; report->search_error == 0 && i-- > 0;)
        if (!l->entries[i].failed)
            asym_ledger_forget(l, &l->entries[i]);
}

void asym_ledger_restore(struct asym_ledger *l, struct asym_restore_report *ret_report)
{
    *ret_report = (struct asym_restore_report){.error = 0};
    pthread_mutex_lock(&l->lock);
    asym_ledger_read_cpus(l, ASYM_CPUS_ONLINE, &l->online);
    restore_all(l, ret_report);
    /* A failed write is no error: a later restore compares before it writes, so records that are too old do no harm. */
    asym_ledger_flush(l);
    pthread_mutex_unlock(&l->lock);
}

const char *asym_restore_text(const struct asym_restore_report *report, char *buf, size_t size)
{
    struct asym_text text = asym_text_in(buf, size);
    asym_text_add(&text, "restored %zu thread%s", report->restored, report->restored == 1 ? "" : "s");
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
    if (report->search_error < 0)
        asym_text_add(&text, "; the search for inherited masks failed: %s", strerror(-report->search_error));
    return buf;
}
