/* SPDX-License-Identifier: MIT */
/* The connection: handing the page over, noticing that nobody is there any more, waking the daemon. Nothing blocks. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * Out of the way of programs that close every low descriptor and open others in their place: a number this high comes
 * into use again only in a program that has as many open.
 */
#define HIGH_FD 900

struct asym_rtx_fd asym_rtx_fd_own(int fd)
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

static bool is_ours(const struct asym_rtx_fd *f)
{
    struct stat st;
    return f->fd >= 0 && fstat(f->fd, &st) == 0 && st.st_dev == f->device && st.st_ino == f->inode;
}

void asym_rtx_fd_close(struct asym_rtx_fd *f)
{
    const int fd = f->fd;
    const bool ours = is_ours(f);
    __atomic_store_n(&f->fd, -1, __ATOMIC_RELAXED);
    if (ours)
        close(fd);
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strnlen(path, sizeof address.sun_path - 1));
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool send_hello(int fd, int memfd, int event)
{
    struct asym_rtx_hello hello = {.magic = ASYM_RTX_MAGIC, .version = ASYM_RTX_VERSION, .size = sizeof hello};
    const int fds[] = {memfd, event};
    struct iovec part = {&hello, sizeof hello};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof fds)];
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.space};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fds);
    memcpy(CMSG_DATA(c), fds, sizeof fds);
    return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof hello;
}

static void offer(struct asym_rtx_process *p)
{
    if (p->socket.fd >= 0 || p->left || !p->page || asym_rtx_page_publish(p) < 0)
        return;
    if (p->event.fd < 0) {
        int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd < 0)
            return;
        struct asym_rtx_fd own = asym_rtx_fd_own(fd);
        p->event.device = own.device;
        p->event.inode = own.inode;
        __atomic_store_n(&p->event.fd, own.fd, __ATOMIC_RELAXED);
    }
    int fd = connect_to(p->path);
    if (fd >= 0 && !send_hello(fd, p->memfd.fd, p->event.fd)) {
        close(fd);
        fd = -1;
    }
    if (fd < 0)
        return;
    struct asym_rtx_fd own = asym_rtx_fd_own(fd);
    p->socket.device = own.device;
    p->socket.inode = own.inode;
    __atomic_store_n(&p->socket.fd, own.fd, __ATOMIC_RELAXED);
}

/* Somebody has closed them, and others may have their numbers by now: they are let go without touching them. */
static void forget_lost(struct asym_rtx_process *p)
{
    if (p->published && !is_ours(&p->memfd)) {
        p->published = false;
        asym_rtx_fd_close(&p->memfd);
        asym_rtx_fd_close(&p->event);
        asym_rtx_fd_close(&p->socket);
    }
    if (p->socket.fd >= 0 && !is_ours(&p->socket))
        asym_rtx_fd_close(&p->socket);
}

void asym_rtx_look_after(struct asym_rtx_process *p)
{
    char byte;
    forget_lost(p);
    /* The daemon says nothing, ever: what can be read is the end. */
    if (p->socket.fd >= 0) {
        ssize_t n = recv(p->socket.fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            asym_rtx_fd_close(&p->socket);
    }
    offer(p);
}

void asym_rtx_mind(struct asym_rtx_process *p, uint64_t now)
{
    __atomic_store_n(&p->mind_at, now + ASYM_RTX_SECOND, __ATOMIC_RELAXED);
    if (pthread_mutex_trylock(&p->lock) != 0)
        return;
    asym_rtx_look_after(p);
    pthread_mutex_unlock(&p->lock);
}

bool asym_rtx_notify(struct asym_rtx_process *p, uint64_t now)
{
    const uint64_t one = 1;
    const int fd = __atomic_load_n(&p->event.fd, __ATOMIC_RELAXED);
    const uint64_t last = __atomic_load_n(&p->notified, __ATOMIC_RELAXED);
    if (fd < 0 || __atomic_load_n(&p->socket.fd, __ATOMIC_RELAXED) < 0 || (last != 0 && now - last < p->notify_min))
        return false;
    __atomic_store_n(&p->notified, now, __ATOMIC_RELAXED);
    const int error = errno;
    /* It does not block, and when nobody reads it for long enough to be full, nobody has to be woken. */
    bool woken = write(fd, &one, sizeof one) == (ssize_t)sizeof one;
    errno = error;
    return woken;
}
