/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The directories in which programs put their pages (rtx-server.h). Where the directory is no file system of its own, users could
 * fill the one that it is in, so asymd serves its own user alone there.
 *
 * A user who may search a directory can hold its lock, also without a right to write to it: rename(2) from the own directory locks
 * both, the common one first, and waits for the lock of the own one, which the user holds by a write(2) from memory that never
 * comes. So asymd makes all directories before the first user may write to one. Later it takes no lock of the common one: it lets
 * a user in by the ACL of a directory that no other user could search until then.
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

#include "base/io.h"
#include "base/macro.h"
#include "linux/rtx/rtx-server-internal.h"
#include "linux/sys/proc-parse.h"

/* Since Linux 5.12: fail where the lookup would have to take a lock of the directory. */
#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

/* A cached lookup also fails while any process mounts something. */
#define TRIES 16

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
    int fd = -1;
    errno = EAGAIN;
    for (int i = 0; i < TRIES && fd < 0 && errno == EAGAIN; i++)
        fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof how);
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

static const char *directory_name(unsigned i, char ret[16])
{
    snprintf(ret, 16, "%u", i % ASYM_RTX_DIRS);
    return ret;
}

/* The watch comes first: the user whose directory is not watched would write to a file that asymd never sees. */
static int lend(struct asym_rtxd_server *s, struct asym_rtxd_user *user, unsigned i)
{
    char name[16];
    ASYM_AUTO_CLOSE int dir = open_path(s->dir, directory_name(i, name), O_DIRECTORY, RESOLVE_CACHED);
    if (dir < 0)
        return dir;
    const int watch = asym_rtxd_watch(s, dir, IN_ATTRIB);
    int r = watch;
    if (watch >= 0 && user->uid != geteuid())
        r = let_in(dir, user->uid);
    if (r < 0) {
        inotify_rm_watch(s->inotify, watch);
        return r;
    }
    user->watch = watch;
    user->dir = dir;
    dir = -1;
    s->is_lent[i % ASYM_RTX_DIRS] = true;
    return 0;
}

int asym_rtxd_add_user(struct asym_rtxd_server *s, uid_t uid)
{
    unsigned i = uid % ASYM_RTX_DIRS;
    for (size_t k = 0; k < s->n_users; k++)
        if (s->users[k].uid == uid)
            return 0;
    if (!s->for_all && uid != geteuid())
        return -EPERM;
    if (s->n_users == ASYM_RTX_DIRS)
        return -ENOSPC;
    while (s->is_lent[i % ASYM_RTX_DIRS])
        i++;
    struct asym_rtxd_user user = {.uid = uid, .dir = -1};
    const int r = lend(s, &user, i);
    if (r == 0)
        s->users[s->n_users++] = user;
    return r;
}

/* "Uid:\t1000\t1000\t1000\t1000": real, effective, saved, of the file system. A daemon of root may act for a user for a while. */
bool asym_rtxd_is_of_user(pid_t pid, uid_t uid)
{
    char path[64], text[2048], want[64];
    const char *value;
    size_t len;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    const unsigned id = uid;
    const int want_len = snprintf(want, sizeof want, "%u\t%u\t%u\t%u", id, id, id, id);
    ASYM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : asym_read_all(fd, text, sizeof text);
    return n > 0 && asym_parse_status_line(text, (size_t)n, "Uid", &value, &len) == 0 && len == (size_t)want_len &&
           memcmp(value, want, len) == 0;
}

void asym_rtxd_meet(struct asym_rtxd_server *s, int32_t pid, uint64_t start)
{
    const size_t i = (uint32_t)pid % ASYM_RTXD_MAX_MET;
    char path[64];
    struct stat st;
    if ((s->met[i].pid == pid && s->met[i].start == start) || s->n_met == ASYM_RTXD_MAX_MET)
        return;
    s->n_met++;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    if (stat(path, &st) < 0 || asym_rtxd_add_user(s, st.st_uid) == -EAGAIN)
        return;
    s->met[i].pid = pid;
    s->met[i].start = start;
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

/* For all users the directory must be empty: users of an earlier asymd could hold its lock. This takes none. */
static int check_empty(const struct asym_rtxd_server *s)
{
    ASYM_AUTO_CLOSE int first = open_path(s->dir, "0", 0, RESOLVE_CACHED);
    if (first == -ENOSYS || first == -EINVAL)
        return -ENOSYS;
    return first >= 0 && s->for_all ? -ENOTEMPTY : 0;
}

static int make_directories(const struct asym_rtxd_server *s)
{
    const unsigned own = geteuid() % ASYM_RTX_DIRS, n = s->for_all ? ASYM_RTX_DIRS : 1;
    char name[16];
    int r = 0;
    for (unsigned i = own; r == 0 && i < own + n; i++)
        if (mkdirat(s->dir, directory_name(i, name), 0700) < 0 && (s->for_all || errno != EEXIST))
            r = -errno;
    return r;
}

static int open_directory(struct asym_rtxd_server *s, const char *state_dir)
{
    struct stat parent, st;
    char path[SELF_SIZE];
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
    r = check_empty(s);
    if (r < 0)
        return r;
    if (chmod(self_path(s->dir, path), s->for_all ? 0711 : 0700) < 0)
        return -errno;
    r = make_directories(s);
    if (r < 0)
        return r;
    s->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    return s->inotify < 0 ? -errno : asym_rtxd_add_user(s, geteuid());
}

static const char *text_of(int r)
{
    switch (r) {
    case -ENOSYS:
        return "this kernel cannot open a file without a wait (Linux 5.12 can)";
    case -ENOTEMPTY:
        return "it has the pages of an earlier asymd: unmount it, and mount it anew";
    default:
        return strerror(-r);
    }
}

int asym_rtxd_directory_open(struct asym_rtxd_server *s, const char *state_dir, struct asym_error *err)
{
    const int n = snprintf(s->path, sizeof s->path, "%s/rtx", state_dir);
    const int r = n < 0 || (size_t)n >= sizeof s->path ? -ENAMETOOLONG : open_directory(s, state_dir);
    return r < 0 ? asym_fail(err, r, "%s/rtx: %s", state_dir, text_of(r)) : 0;
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
    for (size_t i = 0; i < s->n_users; i++)
        close(s->users[i].dir);
    if (s->dir >= 0 && !s->for_all) {
        remove_own(s, directory_name(geteuid(), name));
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
