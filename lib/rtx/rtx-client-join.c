/* SPDX-License-Identifier: MIT */
/* The connection: gets a page from asymd, detects that asymd has ended, and wakes asymd. */
#include "rtx-client-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * Some programs close every low descriptor and open others in their place. The kernel reuses a number this high only in a
 * program with as many open files.
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

static void set_state(struct asym_rtx_process *p, enum asym_rtx_connection state)
{
    __atomic_store_n(&p->state, state, __ATOMIC_RELAXED);
}

void asym_rtx_disconnect(struct asym_rtx_process *p)
{
    set_state(p, ASYM_RTX_APART);
    asym_rtx_fd_close(&p->socket);
    asym_rtx_fd_close(&p->event);
    asym_rtx_fd_close(&p->memfd);
}

/* With wait_ms above 0, connect(2) waits at most that long if the socket's queue is full. */
static int connect_to(const char *path, int wait_ms)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval wait = {.tv_usec = wait_ms * 1000};
    memcpy(address.sun_path, path, strnlen(path, sizeof address.sun_path - 1));
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (wait_ms > 0 ? 0 : SOCK_NONBLOCK), 0);
    if (fd >= 0 && ((wait_ms > 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) < 0) ||
                    connect(fd, (const struct sockaddr *)&address, sizeof address) < 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static size_t take_fds(struct msghdr *m, int ret_fds[2])
{
    size_t n = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(ret_fds, CMSG_DATA(c), n * sizeof(int));
    }
    return n;
}

/* The memfd is large enough and cannot shrink, and a write to the eventfd does not block. */
static bool is_good(const struct asym_rtx_process *p, const struct asym_rtx_handshake *h, const int fds[2])
{
    struct stat st;
    const int seals = fcntl(fds[0], F_GET_SEALS), want = F_SEAL_SHRINK | F_SEAL_GROW, flags = fcntl(fds[1], F_GETFL);
    return h->magic == ASYM_RTX_MAGIC && h->version >= ASYM_RTX_VERSION && seals >= 0 && (seals & want) == want &&
           fstat(fds[0], &st) == 0 && st.st_size >= 0 && (uint64_t)st.st_size >= p->size && flags >= 0 &&
           flags & O_NONBLOCK;
}

/* On failure the caller disconnects, and a later call connects again. */
static bool adopt(struct asym_rtx_process *p, const struct asym_rtx_handshake *h, const int fds[2])
{
    const uint64_t one = 1;
    if (!is_good(p, h, fds) || asym_rtx_page_move(p, fds[0]) < 0)
        return false;
    /* A new eventfd is never full. This wakes asymd, which reads the header. */
    if (write(fds[1], &one, sizeof one) != (ssize_t)sizeof one)
        return false;
    p->memfd = asym_rtx_fd_own(fds[0]);
    const struct asym_rtx_fd event = asym_rtx_fd_own(fds[1]);
    p->event.device = event.device;
    p->event.inode = event.inode;
    __atomic_store_n(&p->event.fd, event.fd, __ATOMIC_RELAXED);
    set_state(p, ASYM_RTX_JOINED);
    return true;
}

/* Receive the only message that asymd sends. */
static void take_answer(struct asym_rtx_process *p)
{
    struct asym_rtx_handshake handshake;
    int fds[2] = {-1, -1};
    struct iovec part = {&handshake, sizeof handshake};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(2 * sizeof(int))];
    } control;
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.space};
    const ssize_t n = recvmsg(p->socket.fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    const size_t n_fds = n > 0 ? take_fds(&m, fds) : 0;
    if (n == (ssize_t)sizeof handshake && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && n_fds == 2 &&
        adopt(p, &handshake, fds))
        return;
    for (size_t i = 0; i < n_fds; i++)
        close(fds[i]);
    asym_rtx_disconnect(p);
}

static void join(struct asym_rtx_process *p, int wait_ms)
{
    int fd = connect_to(p->path, wait_ms);
    if (fd < 0)
        return;
    p->socket = asym_rtx_fd_own(fd);
    set_state(p, ASYM_RTX_WAITING);
    struct pollfd answer = {.fd = p->socket.fd, .events = POLLIN};
    if (wait_ms > 0)
        poll(&answer, 1, wait_ms);
    take_answer(p);
}

/* The program may have closed the descriptors and reused their numbers. Forget these without closing them. */
static void forget_lost(struct asym_rtx_process *p)
{
    if (p->state == ASYM_RTX_JOINED && !is_ours(&p->memfd))
        __atomic_store_n(&p->event.fd, -1, __ATOMIC_RELAXED);
    if (p->state != ASYM_RTX_APART && (!is_ours(&p->socket) || (p->state == ASYM_RTX_JOINED && p->event.fd < 0)))
        asym_rtx_disconnect(p);
}

void asym_rtx_sample_after(struct asym_rtx_process *p, int wait_ms)
{
    char byte;
    const uint64_t now = asym_rtx_now();
    forget_lost(p);
    if (p->state == ASYM_RTX_WAITING)
        take_answer(p);
    /* asymd sends nothing more, so anything to read means the end of the connection. */
    if (p->state == ASYM_RTX_JOINED && (recv(p->socket.fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) >= 0 || errno != EAGAIN))
        asym_rtx_disconnect(p);
    if (p->state == ASYM_RTX_APART && !p->left && p->page && now >= p->join_at) {
        p->join_at = now + ASYM_RTX_SECOND;
        join(p, wait_ms);
    }
    __atomic_store_n(&p->update_at, now + (p->state == ASYM_RTX_WAITING ? ASYM_RTX_MSEC : ASYM_RTX_SECOND),
                     __ATOMIC_RELAXED);
}

void asym_rtx_update(struct asym_rtx_process *p, uint64_t now)
{
    __atomic_store_n(&p->update_at, now + ASYM_RTX_MSEC, __ATOMIC_RELAXED);
    if (pthread_mutex_trylock(&p->lock) != 0)
        return;
    asym_rtx_sample_after(p, 0);
    pthread_mutex_unlock(&p->lock);
}

bool asym_rtx_notify(struct asym_rtx_process *p, uint64_t now)
{
    const uint64_t one = 1;
    const int fd = __atomic_load_n(&p->event.fd, __ATOMIC_RELAXED);
    const uint64_t last = __atomic_load_n(&p->notified, __ATOMIC_RELAXED);
    if (fd < 0 || (last != 0 && now - last < p->notify_min))
        return false;
    __atomic_store_n(&p->notified, now, __ATOMIC_RELAXED);
    const int error = errno;
    /* This does not block: a write to a full eventfd fails, and asymd is not woken. */
    bool woken = write(fd, &one, sizeof one) == (ssize_t)sizeof one;
    errno = error;
    return woken;
}
