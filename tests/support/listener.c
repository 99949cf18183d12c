/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/listener.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

void asym_listener_reopen(struct asym_listener *l, int backlog)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", l->path);
    l->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_true(l->fd >= 0);
    assert_int_equal(bind(l->fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(l->fd, backlog), 0);
}

void asym_listener_open(struct asym_listener *l, int backlog)
{
    snprintf(l->dir, sizeof l->dir, "/tmp/asym-rtx-XXXXXX");
    assert_non_null(mkdtemp(l->dir));
    snprintf(l->path, sizeof l->path, "%s/rtx", l->dir);
    assert_int_equal(setenv(ASYM_RTX_SOCKET_ENV, l->path, 1), 0);
    asym_listener_reopen(l, backlog);
}

void asym_listener_close(struct asym_listener *l)
{
    close(l->fd);
    l->fd = -1;
    unlink(l->path);
}

void asym_listener_done(struct asym_listener *l)
{
    if (l->fd >= 0)
        asym_listener_close(l);
    rmdir(l->dir);
}

static void receive(struct asym_handed *h)
{
    int fds[2];
    struct iovec part = {&h->hello, sizeof h->hello};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof fds)];
    } control;
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.space};
    assert_int_equal(recvmsg(h->fd, &m, MSG_CMSG_CLOEXEC), sizeof h->hello);
    const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    assert_non_null(c);
    assert_int_equal(c->cmsg_type, SCM_RIGHTS);
    assert_int_equal(c->cmsg_len, CMSG_LEN(sizeof fds));
    memcpy(fds, CMSG_DATA(c), sizeof fds);
    h->memfd = fds[0];
    h->event = fds[1];
}

bool asym_listener_take(struct asym_listener *l, double seconds, struct asym_handed *ret)
{
    struct pollfd fd = {.fd = l->fd, .events = POLLIN};
    struct ucred peer;
    socklen_t size = sizeof peer;
    struct stat st;
    if (poll(&fd, 1, (int)(seconds * 1000)) <= 0)
        return false;
    *ret = (struct asym_handed){.fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC)};
    assert_true(ret->fd >= 0);
    assert_int_equal(getsockopt(ret->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
    ret->pid = peer.pid;
    receive(ret);
    assert_int_equal(fstat(ret->memfd, &st), 0);
    ret->size = (size_t)st.st_size;
    void *page = mmap(NULL, ret->size, PROT_READ, MAP_SHARED, ret->memfd, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    ret->page = page;
    return true;
}

void asym_handed_done(struct asym_handed *h)
{
    munmap((void *)(uintptr_t)h->page, h->size);
    close(h->memfd);
    close(h->event);
    close(h->fd);
}

static const struct asym_rtx_slot *slot_at(const struct asym_handed *h, uint32_t i)
{
    return (const void *)((const char *)h->page + h->page->header_size + (size_t)i * h->page->slot_size);
}

const struct asym_rtx_slot *asym_handed_slot(const struct asym_handed *h, pid_t tid)
{
    for (uint32_t i = 0; i < h->page->n_slots; i++)
        if (__atomic_load_n(&slot_at(h, i)->tid, __ATOMIC_ACQUIRE) == tid)
            return slot_at(h, i);
    return NULL;
}

unsigned asym_handed_used(const struct asym_handed *h)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < h->page->n_slots; i++)
        n += __atomic_load_n(&slot_at(h, i)->tid, __ATOMIC_ACQUIRE) != 0;
    return n;
}

unsigned long asym_handed_woken(const struct asym_handed *h)
{
    uint64_t n = 0;
    return read(h->event, &n, sizeof n) == (ssize_t)sizeof n ? (unsigned long)n : 0;
}
