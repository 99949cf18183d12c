/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a program hands over, before any of it is believed. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/rtx-server-internal.h"

/* More than the two that belong there, so that who sends more is found out and they are closed. */
#define FDS_MOST 8

/* Of any other kind a descriptor could make us wait, or wake us as it likes. */
static bool is_eventfd(int fd)
{
    static const char name[] = "anon_inode:[eventfd]";
    char path[64], target[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, target, sizeof target);
    return n == (ssize_t)strlen(name) && memcmp(target, name, strlen(name)) == 0;
}

/*
 * Of memory that cannot shrink under us, and that is there to be read: huge pages may be wanting, and so may be memory for a
 * hole, with vm.overcommit_memory = 2: then reading it is a SIGBUS. Sealed against writing nobody can make one later.
 */
static int check_memfd(int fd, size_t *ret_size)
{
    struct stat st;
    struct statfs fs;
    const int seals = fcntl(fd, F_GET_SEALS), want = F_SEAL_SHRINK | F_SEAL_GROW,
              either = F_SEAL_WRITE | F_SEAL_FUTURE_WRITE;
    if (seals < 0 || (seals & want) != want || !(seals & either) || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
        fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC || st.st_size <= 0 ||
        (uint64_t)st.st_size > ASYM_RTX_MAX_PAGE || lseek(fd, 0, SEEK_HOLE) < st.st_size)
        return -EPROTO;
    *ret_size = (size_t)st.st_size;
    return 0;
}

/* What is not used is not there: the kernel gives memory of this size when it is written to. */
static int reserve(struct asym_rtx_client *c)
{
    struct asym_rtx_reading *readings = calloc(c->layout.n_slots, sizeof *readings);
    struct asym_told_thread *said = calloc(c->layout.n_slots, sizeof *said);
    if (!readings || !said) {
        free(readings);
        free(said);
        return -ENOMEM;
    }
    c->memory.readings = readings;
    c->said = said;
    return 0;
}

static int map_page(struct asym_rtx_client *c, int memfd)
{
    size_t size;
    int r = check_memfd(memfd, &size);
    if (r < 0)
        return r;
    void *page = mmap(NULL, size, PROT_READ, MAP_SHARED, memfd, 0);
    if (page == MAP_FAILED)
        return -ENOMEM;
    r = asym_rtx_check_page(page, size, &c->layout);
    if (r == 0)
        r = reserve(c);
    if (r < 0) {
        munmap(page, size);
        return r;
    }
    c->page = page;
    c->size = size;
    return 0;
}

/* The descriptors of a message; those beyond FDS_MOST the kernel has closed. */
static size_t take_fds(struct msghdr *m, int fds[FDS_MOST])
{
    size_t n = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        const size_t here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < here && n < FDS_MOST; i++)
            memcpy(&fds[n++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
    }
    return n;
}

/* One message. Its length, its flags and its descriptors; 0: the other side has ended; -errno. */
static ssize_t receive(int fd, void *buf, size_t size, int fds[FDS_MOST], size_t *ret_n, int *ret_flags)
{
    struct iovec part = {buf, size};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(FDS_MOST * sizeof(int))];
    } control;
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.space};
    ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return -errno;
    *ret_n = take_fds(&m, fds);
    *ret_flags = m.msg_flags;
    return n;
}

static int adopt(struct asym_rtx_client *c, const void *message, size_t size, int flags, int fds[FDS_MOST],
                 size_t n_fds)
{
    /* One message is all there is to say. */
    if (c->page || flags & (MSG_TRUNC | MSG_CTRUNC) || n_fds != 2)
        return -EPROTO;
    int r = asym_rtx_check_hello(message, size);
    if (r == 0)
        r = is_eventfd(fds[1]) ? map_page(c, fds[0]) : -EPROTO;
    if (r == 0) {
        c->event = fds[1];
        fds[1] = -1;
    }
    return r;
}

int asym_rtx_take_page(struct asym_rtx_client *c)
{
    char message[256];
    int fds[FDS_MOST], flags = 0;
    size_t n_fds = 0;
    ssize_t n = receive(c->fd, message, sizeof message, fds, &n_fds, &flags);
    if (n < 0)
        return n == -EAGAIN || n == -EINTR ? -EAGAIN : -ENOTCONN;
    int r = n > 0 || n_fds > 0 ? adopt(c, message, (size_t)n, flags, fds, n_fds) : -ENOTCONN;
    for (size_t i = 0; i < n_fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return r;
}
