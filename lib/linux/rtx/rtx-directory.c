/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The directories in which programs put their pages (include/asym/rtx.h). Where the directory is no file system of its own, users
 * could fill the one that it is in, so asymd serves its own user alone there.
 *
 * A user can hold the lock of any directory that the user can look up: by mount(2) in a user namespace, by a rename(2) from the own
 * directory, by a listing. The first two need no right to write. So asymd makes the directories of a pool before it lends the first
 * of them, and lets a user in by the ACL before it publishes the name, with a store to a mapped table. At its start it takes the
 * lock of the common one, whose name is known, twice. It learns names by inotify(7), and opens them by openat2(2) with
 * RESOLVE_CACHED, which fails instead of waiting.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/openat2.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/rtx/rtx-server-internal.h"
#include "linux/sys/root.h"

/* All others are below it; its name is the version of the layout. */
#define TOP       "2"
#define HOME_SIZE 64

/* A cached lookup also fails while any process mounts something. */
#define TRIES 16

/*
 * Returns a path that leads to this open file, whatever is mounted over its name, until release(); "" if it cannot. A lookup of a
 * new number in /proc/self/fd would need the lock of that directory, which users can hold: so it is always the same number, and the
 * directory entry of it stays in memory as long as s->entry is open.
 */
static const char *borrow(const struct asym_rtxd_server *s, int fd)
{
    return dup3(fd, s->slot, O_CLOEXEC) < 0 ? "" : s->slot_path;
}

/* A file that stays open would be asymd's to free. */
static void release(const struct asym_rtxd_server *s)
{
    const int error = errno;
    dup3(s->dir, s->slot, O_CLOEXEC);
    errno = error;
}

/* A user may mount a file system of the user's own over a directory to which the user may write, so no mount is crossed. */
static int open_path(int dir, const char *name, uint64_t flags, uint64_t resolve)
{
    const struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC | flags,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | resolve};
    return asym_openat2(dir, name, &how, TRIES);
}

int asym_rtxd_watch(const struct asym_rtxd_server *s, int fd, uint32_t events)
{
    const int watch = inotify_add_watch(s->inotify, borrow(s, fd), events);
    release(s);
    return watch < 0 ? -errno : watch;
}

static struct posix_acl_xattr_entry entry(unsigned tag, unsigned perm, uid_t id)
{
    return (struct posix_acl_xattr_entry){
        .e_tag = htole16((uint16_t)tag), .e_perm = htole16((uint16_t)perm), .e_id = htole32(id)};
}

/* The user may look up the directory of the pages in it. asymd still owns both: it has no right to ignore their modes. */
static int let_in(const struct asym_rtxd_server *s, int dir, uid_t uid)
{
    const uid_t none = (uid_t)ACL_UNDEFINED_ID;
    const struct {
        struct posix_acl_xattr_header header;
        struct posix_acl_xattr_entry entries[5];
    } acl = {{htole32(POSIX_ACL_XATTR_VERSION)},
             {entry(ACL_USER_OBJ, ACL_READ | ACL_WRITE | ACL_EXECUTE, none), entry(ACL_USER, ACL_EXECUTE, uid),
              entry(ACL_GROUP_OBJ, 0, none), entry(ACL_MASK, ACL_EXECUTE, none), entry(ACL_OTHER, 0, none)}};
    const int r = setxattr(borrow(s, dir), "system.posix_acl_access", &acl, sizeof acl, 0) < 0 ? -errno : 0;
    release(s);
    return r;
}

void asym_rtxd_heed_user(struct asym_rtxd_server *s, struct asym_rtxd_user *user, bool heed)
{
    /* The program announces its file by fchmod(2). Nothing removes the directory, so the other mask reports nothing. */
    asym_rtxd_watch(s, user->dir, heed ? IN_ATTRIB : IN_DELETE_SELF);
}

static int make(const struct asym_rtxd_server *s, const char *path, mode_t mode)
{
    return mkdirat(s->dir, path, mode) < 0 || fchmodat(s->dir, path, mode, 0) < 0 ? -errno : 0;
}

static int make_home(struct asym_rtxd_server *s, uint64_t pool, uint64_t *ret)
{
    char path[HOME_SIZE];
    if (getentropy(ret, sizeof *ret) < 0)
        return -errno;
    const int n = snprintf(path, sizeof path, ASYM_RTX_HOME, pool, *ret);
    path[n - 2] = '\0';
    int r = make(s, path, 0700);
    path[n - 2] = '/';
    return r < 0 ? r : make(s, path, 0777);
}

static int fill_pool(struct asym_rtxd_server *s, size_t pool)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < (s->for_all ? ASYM_RTXD_OF_POOL : 1); i++)
        r = make_home(s, s->pools[pool], &s->numbers[i]);
    return r;
}

/* The watch comes first: the user whose directory is not watched would write to a file that asymd never sees. */
static int lend(struct asym_rtxd_server *s, struct asym_rtxd_user *user, const struct asym_rtx_user *row)
{
    char path[HOME_SIZE];
    const int n = snprintf(path, sizeof path, ASYM_RTX_HOME, row->pool, row->number);
    ASYM_AUTO_CLOSE int pages = open_path(s->dir, path, O_DIRECTORY, 0);
    path[n - 2] = '\0';
    ASYM_AUTO_CLOSE int dir = open_path(s->dir, path, O_DIRECTORY, 0);
    if (dir < 0 || pages < 0)
        return dir < 0 ? dir : pages;
    const int watch = asym_rtxd_watch(s, pages, IN_ATTRIB);
    int r = watch;
    if (watch >= 0 && user->uid != geteuid())
        r = let_in(s, dir, user->uid);
    if (r < 0) {
        inotify_rm_watch(s->inotify, watch);
        return r;
    }
    user->watch = watch;
    user->dir = pages;
    pages = -1;
    return 0;
}

int asym_rtxd_add_user(struct asym_rtxd_server *s, uid_t uid)
{
    const size_t pool = s->n_users / ASYM_RTXD_OF_POOL, i = s->n_users % ASYM_RTXD_OF_POOL;
    for (size_t k = 0; k < s->n_users; k++)
        if (s->users[k].uid == uid)
            return 0;
    if (!s->for_all && uid != geteuid())
        return -EPERM;
    if (s->n_users == ASYM_RTX_MAX_USERS)
        return -ENOSPC;
    int r = pool == s->n_filled ? fill_pool(s, pool) : 0;
    if (r < 0)
        return r;
    s->n_filled = pool + 1;
    const struct asym_rtx_user row = {.uid = uid, .pool = s->pools[pool], .number = s->numbers[i]};
    struct asym_rtxd_user user = {.uid = uid, .dir = -1};
    r = lend(s, &user, &row);
    if (r < 0)
        return r;
    s->table[s->n_users] = row;
    __atomic_store_n(&s->table[s->n_users].is_used, 1, __ATOMIC_RELEASE);
    s->users[s->n_users++] = user;
    return 0;
}

int asym_rtxd_open_process(pid_t pid)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/ns", (int)pid);
    const int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/*
 * The effective user owns this directory, or root if the process is not dumpable (prctl(2)): it has changed its users since the
 * last execve(2), as a daemon that acts for a user, or the program is set-user-ID. Root also owns that of a process that has ended.
 */
bool asym_rtxd_is_of_user(const struct asym_rtxd_client *c)
{
    struct stat st;
    return fstat(c->process, &st) == 0 && st.st_uid == c->uid;
}

/* An older asymd may have left a socket of this name. A directory cannot be unlinked. */
static int make_directory(const char *path)
{
    if (mkdir(path, 0700) == 0)
        return 0;
    if (errno == EEXIST && unlink(path) < 0)
        return 0;
    return mkdir(path, 0700) < 0 ? -errno : 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    return at->level > 0 ? remove(path) : 0;
}

/* For all users the directory must be empty: users of an earlier asymd could hold its locks. The lookup takes none. */
static int check_empty(const struct asym_rtxd_server *s)
{
    ASYM_AUTO_CLOSE int earlier = open_path(s->dir, TOP, 0, RESOLVE_CACHED);
    if (earlier < 0)
        return 0;
    return s->for_all ? -ENOTEMPTY : nftw(s->path, remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* Its memory is allocated, so that no store to it can fail. */
static int make_table(struct asym_rtxd_server *s)
{
    const size_t size = ASYM_RTX_MAX_USERS * sizeof *s->table;
    ASYM_AUTO_CLOSE int fd = openat(s->dir, ASYM_RTX_USERS, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0 || fchmod(fd, 0644) < 0)
        return -errno;
    const int r = posix_fallocate(fd, 0, (off_t)size);
    if (r != 0)
        return -r;
    void *table = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (table == MAP_FAILED)
        return -errno;
    s->table = table;
    return 0;
}

/* As long as no other user may search the common directory, all names are secret. */
static int make_directories(struct asym_rtxd_server *s)
{
    char path[HOME_SIZE];
    int r = make(s, TOP, 0711);
    if (r == 0)
        r = make_table(s);
    for (size_t i = 0; r == 0 && i < (s->for_all ? ASYM_RTXD_POOLS : 1); i++) {
        if (getentropy(&s->pools[i], sizeof s->pools[i]) < 0)
            return -errno;
        snprintf(path, sizeof path, TOP "/%016" PRIx64, s->pools[i]);
        r = make(s, path, 0711);
    }
    return r;
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
    r = check_empty(s);
    if (r == 0)
        r = make_directories(s);
    if (r < 0)
        return r;
    s->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    s->slot = s->inotify < 0 ? -1 : fcntl(s->dir, F_DUPFD_CLOEXEC, 0);
    snprintf(s->slot_path, sizeof s->slot_path, "/proc/self/fd/%d", s->slot);
    s->entry = s->slot < 0 ? -1 : open(s->slot_path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    r = s->entry < 0 ? -errno : asym_rtxd_add_user(s, geteuid());
    if (r == 0 && chmod(s->slot_path, s->for_all ? 0711 : 0700) < 0)
        r = -errno;
    return r;
}

int asym_rtxd_directory_open(struct asym_rtxd_server *s, const char *state_dir, struct asym_error *err)
{
    const int n = snprintf(s->path, sizeof s->path, "%s/rtx", state_dir);
    const int r = n < 0 || (size_t)n >= sizeof s->path ? -ENAMETOOLONG : open_directory(s, state_dir);
    return r < 0 ? asym_fail(err, r, "%s/rtx: %s", state_dir,
                             r == -ENOTEMPTY
                                 ? "it has the pages of an earlier asymd: unmount it, and mount it anew (asymd(8))"
                                 : strerror(-r))
                 : 0;
}

void asym_rtxd_directory_close(struct asym_rtxd_server *s)
{
    for (size_t i = 0; i < s->n_users; i++)
        close(s->users[i].dir);
    if (s->table)
        munmap(s->table, ASYM_RTX_MAX_USERS * sizeof *s->table);
    if (s->dir >= 0 && !s->for_all) {
        nftw(s->path, remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
        rmdir(s->path);
    }
    asym_close_p(&s->inotify);
    asym_close_p(&s->entry);
    asym_close_p(&s->slot);
    asym_close_p(&s->dir);
}

/*
 * The user alone can give the file another name. The mode is one that asymd can read, so that it can also stop to hear it. A file
 * with more memory than a page is refused, because asymd may have to free it: the user can close it while asymd has it open.
 */
static bool is_good(const struct asym_rtxd_server *s, const struct asym_rtxd_client *c, const struct stat *st)
{
    return st->st_mode == (S_IFREG | 0644) && st->st_dev == s->device && st->st_uid == c->uid && st->st_nlink == 1 &&
           st->st_size <= (off_t)ASYM_RTXD_PAGE_SIZE && st->st_blocks <= (blkcnt_t)ASYM_RTXD_PAGE_SIZE / 512 &&
           (c->inode == 0 || st->st_ino == c->inode);
}

/* It is opened for reading only once it is known to be a regular file: open(2) of a FIFO waits for a process that writes to it. */
int asym_rtxd_open_page(const struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    struct stat st;
    char name[64];
    snprintf(name, sizeof name, ASYM_RTX_FILE "%d.%" PRIu64, (int)c->pid, c->number);
    ASYM_AUTO_CLOSE int found = open_path(c->dir, name, 0, RESOLVE_CACHED);
    if (found < 0)
        return found;
    if (fstat(found, &st) < 0)
        return -errno;
    if (!is_good(s, c, &st))
        return -EPROTO;
    /* EAGAIN: the user has a lease. */
    const int fd = open(borrow(s, found), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    release(s);
    if (fd < 0)
        return errno == EAGAIN ? -EPROTO : -errno;
    c->inode = st.st_ino;
    return fd;
}
