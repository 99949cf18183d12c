/* SPDX-License-Identifier: MIT */
/* The file of the page: announces it to asymd, detects that asymd has ended, and wakes asymd. */
#include "rtx-client-internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Some programs close every low descriptor and open others in their place. The kernel reuses a number this high only in a
 * program with as many open files.
 */
#define HIGH_FD 900
/* Lookups, one after another, that another process's mount may make fail. */
#define TRIES 16
/* Files of processes that have ended which one call removes at most. */
#define REMOVED_AT_ONCE 64

static struct asym_rtx_fd own(int fd)
{
    struct asym_rtx_fd f = {.fd = fd};
    struct rlimit limit;
    struct stat st;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > HIGH_FD + 64) {
        int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
        if (high >= 0) {
            close(fd);
            f.fd = high;
        }
    }
    if (fstat(f.fd, &st) == 0) {
        f.device = st.st_dev;
        f.inode = st.st_ino;
    }
    return f;
}

static bool is_same(const struct asym_rtx_fd *f, const struct stat *st)
{
    return st->st_dev == f->device && st->st_ino == f->inode;
}

/* Programs also close descriptors that they did not open: the number may be another file's by now. */
static bool has_fd(const struct asym_rtx_fd *f)
{
    struct stat st;
    return f->fd >= 0 && fstat(f->fd, &st) == 0 && is_same(f, &st);
}

/*
 * The lookup waits for no lock of a directory, which another user may hold: it fails instead, also while any process mounts
 * something.
 */
static int open_cached(int dir, const char *path, uint64_t flags)
{
    const struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_CACHED};
    int fd = -1;
    errno = EAGAIN;
    for (int i = 0; i < TRIES && fd < 0 && errno == EAGAIN; i++)
        fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
    return fd;
}

static int open_dir(const struct asym_rtx_process *p)
{
    return open_cached(AT_FDCWD, p->dir, O_PATH | O_DIRECTORY);
}

/*
 * Put the row of this user in the table of users into ret. A row that asymd writes meanwhile may lead nowhere: the next try finds
 * the directory.
 */
static bool find_user(int dir, struct asym_rtx_user *ret)
{
    struct asym_rtx_user rows[32];
    bool found = false, end = false;
    const int fd = open_cached(dir, ASYM_RTX_USERS, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    for (off_t at = 0; fd >= 0 && !found && !end; at += (off_t)sizeof rows) {
        const ssize_t n = pread(fd, rows, sizeof rows, at);
        end = n < (ssize_t)sizeof rows;
        for (size_t i = 0; !found && !end && i < sizeof rows / sizeof rows[0]; i++) {
            end = rows[i].is_used == 0;
            found = !end && rows[i].uid == geteuid();
            *ret = rows[i];
        }
    }
    if (fd >= 0)
        close(fd);
    return found;
}

/* Open the directory of this user. Returns its descriptor; -1. */
static int open_home(struct asym_rtx_process *p)
{
    struct asym_rtx_user user;
    int home = -1;
    const int dir = open_dir(p);
    if (dir >= 0 && find_user(dir, &user)) {
        snprintf(p->home, sizeof p->home, ASYM_RTX_HOME, user.pool, user.number);
        home = open_cached(dir, p->home, O_PATH | O_DIRECTORY | O_NOFOLLOW);
    }
    if (dir >= 0)
        close(dir);
    return home;
}

/* When asymd starts, its directory is another file system, or it has removed the file. */
static bool is_current(const struct asym_rtx_process *p)
{
    struct stat file, dir;
    const int fd = open_dir(p);
    const bool is = (fd < 0 ? errno == EAGAIN : fstat(fd, &dir) == 0 && dir.st_dev == p->file.device) &&
                    fstat(p->file.fd, &file) == 0 && file.st_nlink > 0;
    if (fd >= 0)
        close(fd);
    return is;
}

/* A write behind RLIMIT_FSIZE, which the program may have lowered, would raise SIGXFSZ. */
static bool wake(struct asym_rtx_process *p, int fd)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur < sizeof(struct asym_rtx_header))
        return false;
    const uint32_t n = __atomic_add_fetch(&p->rung, 1, __ATOMIC_RELAXED);
    return pwrite(fd, &n, sizeof n, offsetof(struct asym_rtx_header, rung)) == (ssize_t)sizeof n;
}

void asym_rtx_forget(struct asym_rtx_process *p)
{
    const int fd = p->file.fd;
    const bool ours = has_fd(&p->file);
    __atomic_store_n(&p->file.fd, -1, __ATOMIC_RELAXED);
    if (ours)
        close(fd);
}

/* The mapping keeps the file open, so asymd learns of the end by the page. */
void asym_rtx_disconnect(struct asym_rtx_process *p)
{
    if (p->file.fd < 0)
        return;
    __atomic_store_n(&p->page->magic, 0, __ATOMIC_RELEASE);
    if (has_fd(&p->file))
        wake(p, p->file.fd);
    const int dir = open_dir(p), home = dir < 0 ? -1 : open_cached(dir, p->home, O_PATH | O_DIRECTORY);
    if (home >= 0) {
        unlinkat(home, p->name, 0);
        close(home);
    }
    if (dir >= 0)
        close(dir);
    asym_rtx_forget(p);
}

/* Returns the process of a file's name; 0: it is none of the library's. */
static pid_t process_of(const char *name)
{
    const size_t n = strlen(ASYM_RTX_FILE);
    return strncmp(name, ASYM_RTX_FILE, n) == 0 ? (pid_t)strtol(name + n, NULL, 10) : 0;
}

static bool remove_if_left(int dir, const char *name)
{
    const pid_t pid = process_of(name);
    return pid > 0 && kill(pid, 0) < 0 && errno == ESRCH && unlinkat(dir, name, 0) == 0;
}

/*
 * Remove the files that programs of this user have left. Only this user can put something into the directory. opendir(3) would
 * allocate memory, and a program may report from within its malloc(3).
 */
static void remove_left(int home)
{
    _Alignas(struct dirent64) char entries[2048];
    const int fd = openat(home, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long n;
    for (int removed = 0; fd >= 0 && removed < REMOVED_AT_ONCE && (n = getdents64(fd, entries, sizeof entries)) > 0;)
        for (long at = 0; at < n;) {
            const struct dirent64 *entry = (const void *)(entries + at);
            removed += remove_if_left(fd, entry->d_name);
            at += entry->d_reclen;
        }
    if (fd >= 0)
        close(fd);
}

static void keep(struct asym_rtx_process *p, int fd)
{
    const struct asym_rtx_fd file = own(fd);
    p->rung = 0;
    p->file.device = file.device;
    p->file.inode = file.inode;
    __atomic_store_n(&p->file.fd, file.fd, __ATOMIC_RELAXED);
}

/* The files of ended programs go last: if the directory is full now, the next try has room. */
static void join(struct asym_rtx_process *p, uint64_t now)
{
    const int home = open_home(p);
    if (home < 0)
        return;
    snprintf(p->name, sizeof p->name, ASYM_RTX_FILE "%d.%" PRIu64, (int)p->pid, now);
    const int fd = openat(home, p->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd >= 0 && asym_rtx_page_move(p, fd) == 0) {
        keep(p, fd);
    } else if (fd >= 0) {
        unlinkat(home, p->name, 0);
        close(fd);
    }
    remove_left(home);
    close(home);
}

void asym_rtx_check(struct asym_rtx_process *p)
{
    const uint64_t now = asym_rtx_now();
    if (p->file.fd >= 0 && !(has_fd(&p->file) && is_current(p)))
        asym_rtx_disconnect(p);
    if (p->file.fd < 0 && !p->left && p->page && now >= p->join_at) {
        p->join_at = now + ASYM_RTX_SECOND;
        join(p, now);
    }
    /* This announces the file. asymd answers nothing: if it has no place for it now, a later announcement finds one. */
    if (p->file.fd >= 0)
        fchmod(p->file.fd, 0644);
    __atomic_store_n(&p->update_at, now + ASYM_RTX_SECOND, __ATOMIC_RELAXED);
}

void asym_rtx_update(struct asym_rtx_process *p, uint64_t now)
{
    __atomic_store_n(&p->update_at, now + ASYM_RTX_SECOND, __ATOMIC_RELAXED);
    if (pthread_mutex_trylock(&p->lock) != 0)
        return;
    asym_rtx_check(p);
    pthread_mutex_unlock(&p->lock);
}

bool asym_rtx_notify(struct asym_rtx_process *p, uint64_t now)
{
    const struct asym_rtx_fd file = {__atomic_load_n(&p->file.fd, __ATOMIC_RELAXED), p->file.device, p->file.inode};
    const uint64_t last = __atomic_load_n(&p->notified, __ATOMIC_RELAXED);
    if (file.fd < 0 || (last != 0 && now - last < p->notify_min))
        return false;
    __atomic_store_n(&p->notified, now, __ATOMIC_RELAXED);
    const int error = errno;
    const bool woken = has_fd(&file) && wake(p, file.fd);
    errno = error;
    return woken;
}
