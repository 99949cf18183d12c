/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/observe/proc-owner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "linux/sys/proc-parse.h"

/* "Uid:\t1000\t0\t0\t0": real, effective, saved, of the file system. The line is among the first, which fit in text. */
static int read_effective_uid(const struct asym_root *root, int32_t pid, uint32_t *ret)
{
    char path[32], text[2048];
    const char *value;
    size_t len;
    uint64_t uid;
    snprintf(path, sizeof path, "proc/%d/status", (int)pid);
    ssize_t n = asym_root_read(root, path, text, sizeof text);
    if (n < 0)
        return (int)n;
    if (asym_parse_status_line(text, (size_t)n, "Uid", &value, &len) < 0)
        return -EINVAL;
    const char *at = memchr(value, '\t', len);
    const char *stop = at ? memchr(at + 1, '\t', (size_t)(value + len - at - 1)) : NULL;
    if (!stop || asym_parse_u64(at + 1, (size_t)(stop - at - 1), &uid) < 0 || uid > UINT32_MAX)
        return -EINVAL;
    *ret = (uint32_t)uid;
    return 0;
}

/* The effective UID owns the directory, also where the process is not dumpable. */
int asym_proc_owner(const struct asym_root *root, int32_t pid, uint32_t *ret)
{
    char path[32];
    struct stat st;
    if (!root->live)
        return read_effective_uid(root, pid, ret);
    snprintf(path, sizeof path, "proc/%d", (int)pid);
    if (fstatat(root->fd, path, &st, 0) < 0)
        return -errno;
    *ret = st.st_uid;
    return 0;
}

/*
 * The thread existed when asymd noted its start time. If it exists after asymd has read the owner, then the process had its
 * number all the time between.
 */
static int owner_of(const struct asym_root *root, const struct asym_taskid *thread, uint32_t *ret)
{
    struct asym_stat stat;
    uint32_t uid;
    if (thread->tid <= 0 || thread->tgid <= 0)
        return -ESRCH;
    int r = asym_proc_owner(root, thread->tgid, &uid);
    if (r < 0)
        return r;
    r = asym_read_stat(root, thread->tgid, thread->tid, &stat);
    if (r < 0)
        return r;
    if (stat.start != thread->start)
        return -ESRCH;
    *ret = uid;
    return 0;
}

static bool is_known(const struct asym_proc_inode *known, const struct asym_taskid *process, const struct stat *st)
{
    return known->id.tid == process->tid && known->id.tgid == process->tgid && known->id.start == process->start &&
           known->number == st->st_ino && known->device == st->st_dev && known->made.tv_sec == st->st_ctim.tv_sec &&
           known->made.tv_nsec == st->st_ctim.tv_nsec;
}

int asym_proc_owner_known(struct asym_proc_owners *owners, const struct asym_root *root,
                          const struct asym_taskid *process, uint32_t *ret)
{
    char path[32];
    struct stat st;
    if (!owners || !root->live || process->tgid <= 0 || process->tid != process->tgid)
        return owner_of(root, process, ret);
    struct asym_proc_inode *known = &owners->known[(uint32_t)process->tgid % ASYM_PROC_OWNERS];
    snprintf(path, sizeof path, "proc/%d", (int)process->tgid);
    if (fstatat(root->fd, path, &st, 0) < 0)
        return -errno;
    if (is_known(known, process, &st)) {
        *ret = st.st_uid;
        return 0;
    }
    /* The start time is read after the inode: if it is right, then the inode was that of the process, too. */
    const int r = owner_of(root, process, ret);
    if (r == 0)
        *known = (struct asym_proc_inode){.id = *process, .device = st.st_dev, .number = st.st_ino, .made = st.st_ctim};
    return r;
}
