/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/observe/proc-owner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/parse.h"
#include "linux/sys/proc-parse.h"

struct uids {
    uint32_t real, effective;
    bool is_costly;
};

static int parse_uid(const char **at, const char *end, uint32_t *ret)
{
    uint64_t uid;
    const char *stop = memchr(*at, '\t', (size_t)(end - *at));
    if (!stop || asym_parse_u64(*at, (size_t)(stop - *at), &uid) < 0 || uid > UINT32_MAX)
        return -EINVAL;
    *at = stop + 1;
    *ret = (uint32_t)uid;
    return 0;
}

/* "Uid:\t1000\t0\t0\t0": real, effective, saved, of the file system. The line is among the first, which fit in text. */
static int read_uids(const struct asym_root *root, int32_t pid, struct uids *ret)
{
    char path[32], text[2048];
    const char *value;
    size_t len;
    snprintf(path, sizeof path, "proc/%d/status", (int)pid);
    ssize_t n = asym_root_read(root, path, text, sizeof text);
    if (n < 0)
        return (int)n;
    if (asym_parse_status_line(text, (size_t)n, "Uid", &value, &len) < 0)
        return -EINVAL;
    const char *const end = value + len;
    /* Without its groups, the status of a process is shorter than that. */
    ret->is_costly = n == sizeof text - 1;
    const int r = parse_uid(&value, end, &ret->real);
    return r < 0 ? r : parse_uid(&value, end, &ret->effective);
}

/* The effective UID owns the directory, also where the process is not dumpable. */
int asym_proc_owner(const struct asym_root *root, int32_t pid, uint32_t *ret)
{
    char path[32];
    struct stat st;
    struct uids uids;
    if (root->live) {
        snprintf(path, sizeof path, "proc/%d", (int)pid);
        if (fstatat(root->fd, path, &st, 0) < 0)
            return -errno;
        *ret = st.st_uid;
        return 0;
    }
    const int r = read_uids(root, pid, &uids);
    if (r == 0)
        *ret = uids.effective;
    return r;
}

/*
 * The thread existed when asymd noted its start time. If it exists after asymd has read the owner, then the process had its
 * number all the time between.
 */
int asym_proc_owner_of(const struct asym_root *root, const struct asym_taskid *thread, uint32_t *ret)
{
    char path[64], text[1024];
    struct asym_stat stat;
    uint32_t uid;
    if (thread->tid <= 0 || thread->tgid <= 0)
        return -ESRCH;
    int r = asym_proc_owner(root, thread->tgid, &uid);
    if (r < 0)
        return r;
    snprintf(path, sizeof path, "proc/%d/task/%d/stat", (int)thread->tgid, (int)thread->tid);
    const ssize_t n = asym_root_read(root, path, text, sizeof text);
    r = n < 0 ? (int)n : asym_parse_stat(text, (size_t)n, &stat);
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
        return asym_proc_owner_of(root, process, ret);
    struct asym_proc_inode *known = &owners->known[(uint32_t)process->tgid % ASYM_PROC_OWNERS];
    snprintf(path, sizeof path, "proc/%d", (int)process->tgid);
    if (fstatat(root->fd, path, &st, 0) < 0)
        return -errno;
    if (is_known(known, process, &st)) {
        *ret = st.st_uid;
        return 0;
    }
    /* The start time is read after the inode: if it is right, then the inode was that of the process, too. */
    const int r = asym_proc_owner_of(root, process, ret);
    if (r == 0)
        *known = (struct asym_proc_inode){.id = *process, .device = st.st_dev, .number = st.st_ino, .made = st.st_ctim};
    return r;
}

/*
 * Returns whether the process runs a program of its own user. The kernel gives the files of /proc/PID to root when a process
 * has executed a set-user-ID program or has changed its user since its exec (it is not dumpable then).
 */
static bool is_of_one_user(const struct asym_root *root, int32_t pid, uint32_t effective)
{
    char path[32];
    struct stat st;
    snprintf(path, sizeof path, "proc/%d/stat", (int)pid);
    return effective != 0 && fstatat(root->fd, path, &st, 0) == 0 && st.st_uid == effective;
}

int asym_proc_payer(const struct asym_root *root, int32_t pid, uint32_t *ret, bool *ret_is_costly)
{
    struct uids uids = {.is_costly = false};
    uint32_t effective;
    int r = root->live ? asym_proc_owner(root, pid, &effective) : 0;
    if (r == 0 && root->live && is_of_one_user(root, pid, effective))
        uids.real = effective;
    else if (r == 0)
        r = read_uids(root, pid, &uids);
    if (r < 0)
        return r;
    *ret = uids.real != 0 ? uids.real : uids.effective;
    if (ret_is_costly)
        *ret_is_costly = uids.is_costly;
    return 0;
}
