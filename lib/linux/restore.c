/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Putting everything back, heirs included. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/parse.h"
#include "linux/ledger-internal.h"
#include "linux/procparse.h"
#include "linux/thread.h"

#define PF_KTHREAD 0x00200000u

/* A chain of parents longer than this is no chain that asymd's steering has made. */
#define ANCESTORS_MAX 64

static int read_stat(const char *path, struct asym_stat *ret)
{
    char text[1024];
    ASYM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : -1;
    return n < 0 ? -errno : asym_parse_stat(text, (size_t)n, ret);
}

static int32_t parent_of(int32_t pid)
{
    char path[64];
    struct asym_stat stat;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return read_stat(path, &stat) < 0 ? 0 : stat.ppid;
}

static bool has_ancestor(int32_t pid, int32_t ancestor)
{
    for (int depth = 0; pid > 1 && depth < ANCESTORS_MAX; depth++, pid = parent_of(pid))
        if (pid == ancestor)
            return true;
    return false;
}

/* Is it or an ancestor of its session no child of that session any more? The session's leader and its children are not. */
static bool orphaned(int32_t pid, pid_t session)
{
    int32_t top = pid;
    for (int depth = 0; depth < ANCESTORS_MAX; depth++) {
        int32_t parent = parent_of(top);
        if (parent <= 1 || getsid(parent) != session)
            break;
        top = parent;
    }
    return top != session;
}

/*
 * Was the process created by the entry's, directly or not? When one between them is gone the session still tells; but
 * what a shell has started in the same session beside the steered one is not its child.
 */
static bool descends(int32_t pid, const struct asym_ledger_entry *e)
{
    if (has_ancestor(pid, e->id.tgid))
        return true;
    pid_t session = getsid(pid);
    return session > 0 && (session == getsid(e->id.tgid) || session == e->id.tgid) && orphaned(pid, session);
}

/*
 * The entry whose mask or nice the thread has inherited: born since its creator was steered, and carrying exactly what
 * that was given. The leader may be a steered thread under another number: by exec it takes the leader's, and its age.
 */
static const struct asym_ledger_entry *find_creator(struct asym_ledger *l, int32_t pid, int32_t tid,
                                                    const struct asym_mask *found, const struct asym_stat *stat)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct asym_ledger_entry *e = &l->entries[i];
        const bool leader = tid == e->id.tgid && asym_ledger_find(l, tid) == NULL;
        if (stat->start < e->since && !(leader && stat->start <= e->id.start))
            continue;
        if (!asym_ledger_inherited_mask(l, e, found) && !asym_ledger_inherited_nice(e, stat->nice))
            continue;
        if (e->id.tgid == pid || descends(pid, e))
            return e;
    }
    return NULL;
}

static bool may_be_heir(const struct asym_ledger *l, const struct asym_mask *found, bool boosts)
{
    return boosts || !asym_ledger_same_mask(l, found, &l->online);
}

static void restore_heir(struct asym_ledger *l, int32_t pid, int32_t tid, bool boosts,
                         struct asym_restore_report *report)
{
    char path[64];
    struct asym_mask found;
    struct asym_stat stat;
    if (asym_thread_get_mask(tid, &found) < 0 || !may_be_heir(l, &found, boosts))
        return;
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    if (read_stat(path, &stat) < 0 || stat.flags & PF_KTHREAD)
        return;
    const struct asym_ledger_entry *known = asym_ledger_find(l, tid);
    if (known && known->id.start == stat.start)
        return;
    const struct asym_ledger_entry *e = find_creator(l, pid, tid, &found, &stat);
    if (e && asym_ledger_widen(l, e, tid) > 0)
        report->heirs++;
}

static int32_t number(const char *name)
{
    uint64_t n;
    return asym_parse_u64(name, strlen(name), &n) == 0 && n <= INT32_MAX ? (int32_t)n : 0;
}

static void restore_heirs_of(struct asym_ledger *l, int32_t pid, bool boosts, struct asym_restore_report *report)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (number(e->d_name) > 0)
            restore_heir(l, pid, number(e->d_name), boosts, report);
    if (d)
        closedir(d);
}

static void restore_heirs(struct asym_ledger *l, struct asym_restore_report *report)
{
    bool boosts = false;
    for (size_t i = 0; i < l->n; i++)
        boosts = boosts || l->entries[i].boosted;
    DIR *d = l->n > 0 ? opendir("/proc") : NULL;
    for (struct dirent *e; d && (e = readdir(d));)
        if (number(e->d_name) > 0)
            restore_heirs_of(l, number(e->d_name), boosts, report);
    if (d)
        closedir(d);
}

int asym_ledger_restore(struct asym_ledger *l, struct asym_restore_report *ret_report)
{
    struct asym_restore_report report = {0};
    asym_ledger_lock(l);
    asym_ledger_renew_online(l);
    /* Creators first: as long as one carries a narrowed mask, it gives birth to more heirs. */
    bool *failed = calloc(l->n + 1, sizeof *failed);
    if (!failed) {
        asym_ledger_unlock(l);
        return -ENOMEM;
    }
    for (size_t i = 0; i < l->n; i++) {
        int r = asym_ledger_give_back(l, &l->entries[i]);
        report.restored += r == 0;
        report.gone += r == -ESRCH;
        report.foreign += r == -EBUSY;
        failed[i] = r < 0 && r != -ESRCH && r != -EBUSY;
        report.failed += failed[i];
        if (failed[i] && report.error == 0)
            report.error = r;
    }
    restore_heirs(l, &report);
    for (size_t i = l->n; i-- > 0;) {
        if (failed[i])
            continue;
        /* A removal moves the last entry here, and with it goes its mark. */
        failed[i] = failed[l->n - 1];
        asym_ledger_note_gone(l, &l->entries[i].id);
        asym_ledger_remove(l, &l->entries[i]);
    }
    free(failed);
    int r = asym_ledger_flush(l);
    asym_ledger_unlock(l);
    if (r < 0)
        return r;
    *ret_report = report;
    return 0;
}
