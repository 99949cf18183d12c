/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/listener.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/process.h"
#include "support/rtx-raw.h"

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

enum { PAGE_SIZE = 4096 * 64 + 65536, KEPT = 32 };

static void hand_out(struct asym_handed *h)
{
    const struct asym_rtx_handshake handshake = {
        .magic = ASYM_RTX_MAGIC, .version = ASYM_RTX_VERSION, .size = sizeof handshake, .page_size = PAGE_SIZE};
    h->memfd = memfd_create("asym-rtx", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    h->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_int_equal(ftruncate(h->memfd, PAGE_SIZE), 0);
    assert_int_equal(fcntl(h->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    const int fds[] = {h->memfd, h->event};
    /* The send fails if the client has ended. The caller finds that out later. */
    asym_raw_send(h->fd, &handshake, sizeof handshake, fds, 2);
    h->size = PAGE_SIZE;
    void *page = mmap(NULL, h->size, PROT_READ, MAP_SHARED, h->memfd, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    h->page = page;
}

bool asym_listener_accept(struct asym_listener *l, double seconds, struct asym_handed *ret)
{
    struct pollfd fd = {.fd = l->fd, .events = POLLIN};
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (poll(&fd, 1, (int)(seconds * 1000)) <= 0)
        return false;
    *ret = (struct asym_handed){.fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC)};
    assert_true(ret->fd >= 0);
    assert_int_equal(getsockopt(ret->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
    ret->pid = peer.pid;
    hand_out(ret);
    return true;
}

/* The client writes the header before the first wakeup. */
bool asym_handed_is_filled(struct asym_handed *h, double seconds)
{
    struct pollfd filled = {.fd = h->event, .events = POLLIN};
    if (poll(&filled, 1, (int)(seconds * 1000)) != 1)
        return false;
    h->woken = asym_handed_woken(h) - 1;
    return true;
}

bool asym_listener_take(struct asym_listener *l, double seconds, struct asym_handed *ret)
{
    if (!asym_listener_accept(l, seconds, ret))
        return false;
    if (asym_handed_is_filled(ret, seconds))
        return true;
    asym_handed_done(ret);
    return false;
}

pid_t asym_listener_serve(struct asym_listener *l)
{
    fflush(NULL);
    const pid_t pid = asym_process_fork();
    assert_true(pid >= 0);
    if (pid != 0)
        return pid;
    struct asym_handed kept[KEPT] = {{0}};
    for (size_t i = 0;; i = (i + 1) % KEPT) {
        if (kept[i].page)
            asym_handed_done(&kept[i]);
        kept[i] = (struct asym_handed){.fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC)};
        if (kept[i].fd < 0)
            _exit(1);
        hand_out(&kept[i]);
    }
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

unsigned long asym_handed_woken(struct asym_handed *h)
{
    uint64_t n = 0;
    if (read(h->event, &n, sizeof n) != (ssize_t)sizeof n)
        n = 0;
    n += h->woken;
    h->woken = 0;
    return (unsigned long)n;
}
