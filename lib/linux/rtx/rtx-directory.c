/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The directories in which programs put their pages (rtx-server.h). Where the directory is no file system of its own, users could
 * fill the one that it is in, so asymd serves its own user alone there.
 */
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/rtx/rtx-server-internal.h"

/* Since Linux 5.12: fail where the lookup would have to take a lock of the directory. */
#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

/* Path of an open file, which leads to the file itself whatever is mounted over its name. */
#define SELF_SIZE 32

static const char *self_path(int fd, char ret[SELF_SIZE])
{
    snprintf(ret, SELF_SIZE, "/proc/self/fd/%d", fd);
    return ret;
}

/* A user may mount a file system of the user's own over a directory to which the user may write, so no mount is crossed. */
static int open_path(int dir, const char *name, uint64_t flags, uint64_t resolve)
{
    const struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC | flags,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | resolve};
    const int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof how);
    return fd < 0 ? -errno : fd;
}

int asym_rtxd_watch(const struct asym_rtxd_server *s, int fd, uint32_t events)
{
    char path[SELF_SIZE];
    const int watch = inotify_add_watch(s->inotify, self_path(fd, path), events);
    return watch < 0 ? -errno : watch;
}

static struct posix_acl_xattr_entry entry(unsigned tag, unsigned perm, uid_t id)
{
    return (struct posix_acl_xattr_entry){
        .e_tag = htole16((uint16_t)tag), .e_perm = htole16((uint16_t)perm), .e_id = htole32(id)};
}

/*
 * The user may write to the directory, and asymd still owns it: a directory of the user would need CAP_CHOWN, and a right of asymd
 * to ignore the mode that the user gives it.
 */
static int let_in(int dir, uid_t uid)
{
    const unsigned all = ACL_READ | ACL_WRITE | ACL_EXECUTE;
    const uid_t none = (uid_t)ACL_UNDEFINED_ID;
    const struct {
        struct posix_acl_xattr_header header;
        struct posix_acl_xattr_entry entries[5];
    } acl = {{htole32(POSIX_ACL_XATTR_VERSION)},
             {entry(ACL_USER_OBJ, all, none), entry(ACL_USER, all, uid), entry(ACL_GROUP_OBJ, 0, none),
              entry(ACL_MASK, all, none), entry(ACL_OTHER, 0, none)}};
    char path[SELF_SIZE];
    return setxattr(self_path(dir, path), "system.posix_acl_access", &acl, sizeof acl, 0) < 0 ? -errno : 0;
}

void asym_rtxd_heed_user(struct asym_rtxd_server *s, struct asym_rtxd_user *user, bool heed)
{
    /* The program announces its file by fchmod(2). Nothing removes the directory, so the other mask reports nothing. */
    asym_rtxd_watch(s, user->dir, heed ? IN_ATTRIB : IN_DELETE_SELF);
}

/* Only a new directory gets its ACL: the user of an old one could hold its lock. */
static int make(struct asym_rtxd_server *s, struct asym_rtxd_user *user)
{
    char name[16];
    snprintf(name, sizeof name, "%u", (unsigned)user->uid);
    const bool is_new = mkdirat(s->dir, name, 0700) == 0;
    if (!is_new && errno != EEXIST)
        return -errno;
    user->dir = open_path(s->dir, name, O_DIRECTORY, 0);
    int r = user->dir < 0 ? user->dir : 0;
    if (r == 0 && is_new && user->uid != geteuid())
        r = let_in(user->dir, user->uid);
    if (r == 0)
        r = user->watch = asym_rtxd_watch(s, user->dir, IN_ATTRIB);
    if (r >= 0)
        return 0;
    asym_close_p(&user->dir);
    if (is_new)
        unlinkat(s->dir, name, AT_REMOVEDIR);
    return r;
}

int asym_rtxd_add_user(struct asym_rtxd_server *s, uid_t uid)
{
    for (size_t i = 0; i < s->n_users; i++)
        if (s->users[i].uid == uid)
            return 0;
    if (!s->for_all && uid != geteuid())
        return -EPERM;
    if (s->n_users == ASYM_RTXD_MAX_USERS)
        return -ENOSPC;
    struct asym_rtxd_user user = {.uid = uid, .dir = -1};
    const int r = make(s, &user);
    if (r == 0)
        s->users[s->n_users++] = user;
    return r;
}

void asym_rtxd_meet(struct asym_rtxd_server *s, int32_t pid, uint64_t start)
{
    const size_t i = (uint32_t)pid % ASYM_RTXD_MAX_MET;
    char path[64];
    struct stat st;
    if ((s->met[i].pid == pid && s->met[i].start == start) || s->n_met == ASYM_RTXD_MAX_MET)
        return;
    s->met[i].pid = pid;
    s->met[i].start = start;
    s->n_met++;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    if (stat(path, &st) == 0)
        asym_rtxd_add_user(s, st.st_uid);
}

/* An older asymd may have left a socket of this name. A directory cannot be unlinked. */
static int make_directory(const char *path)
{
    if (mkdir(path, 0711) == 0)
        return 0;
    if (errno == EEXIST && unlink(path) < 0)
        return 0;
    return mkdir(path, 0711) < 0 ? -errno : 0;
}

static int open_directory(struct asym_rtxd_server *s, const char *state_dir)
{
    struct stat parent, st;
    int r = make_directory(s->path);
    if (r < 0)
        return r;
    ASYM_AUTO_CLOSE int dir = open(s->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0 || stat(state_dir, &parent) < 0)
        return -errno;
    if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
        return -EPERM;
    s->dir = dir;
    dir = -1;
    s->device = st.st_dev;
    s->for_all = st.st_dev != parent.st_dev;
    s->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    return s->inotify < 0 ? -errno : asym_rtxd_add_user(s, geteuid());
}

int asym_rtxd_directory_open(struct asym_rtxd_server *s, const char *state_dir, struct asym_error *err)
{
    const int n = snprintf(s->path, sizeof s->path, "%s/rtx", state_dir);
    const int r = n < 0 || (size_t)n >= sizeof s->path ? -ENAMETOOLONG : open_directory(s, state_dir);
    return r < 0 ? asym_fail(err, r, "%s/rtx: %s", state_dir, strerror(-r)) : 0;
}

static void remove_own(const struct asym_rtxd_server *s, const char *name)
{
    const int fd = openat(s->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            unlinkat(fd, entry->d_name, 0);
    if (dir)
        closedir(dir);
    else
        close(fd);
    unlinkat(s->dir, name, AT_REMOVEDIR);
}

void asym_rtxd_directory_close(struct asym_rtxd_server *s)
{
    char name[16];
    snprintf(name, sizeof name, "%u", (unsigned)geteuid());
    for (size_t i = 0; i < s->n_users; i++)
        close(s->users[i].dir);
    if (s->dir >= 0) {
        remove_own(s, name);
        rmdir(s->path);
    }
    asym_close_p(&s->inotify);
    asym_close_p(&s->dir);
}

/* The owner of the file cannot change, and the user alone can give it another name. */
static bool is_good(const struct asym_rtxd_server *s, const struct asym_rtxd_user *user, const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_dev == s->device && st->st_uid == user->uid && st->st_nlink == 1 &&
           st->st_size <= (off_t)ASYM_RTXD_PAGE_SIZE;
}

/* It is opened for reading only once it is known to be a regular file: open(2) of a FIFO waits for a process that writes to it. */
int asym_rtxd_open_file(const struct asym_rtxd_server *s, const struct asym_rtxd_user *user, const char *name)
{
    struct stat st;
    char path[SELF_SIZE];
    ASYM_AUTO_CLOSE int found = open_path(user->dir, name, 0, RESOLVE_CACHED);
    if (found < 0)
        return found;
    if (fstat(found, &st) < 0)
        return -errno;
    if (!is_good(s, user, &st))
        return -EPROTO;
    const int fd = open(self_path(found, path), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}
