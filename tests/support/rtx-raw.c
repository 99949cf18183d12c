/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/rtx-raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/aio_abi.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <asym/rtx.h>

#include "support/process.h"

int asym_raw_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) < 0) {
        const int error = errno;
        close(fd);
        return -error;
    }
    return fd < 0 ? -errno : fd;
}

int asym_raw_send(int fd, const void *message, size_t size, const int *fds, size_t n)
{
    struct iovec part = {(void *)(uintptr_t)message, size};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(253 * sizeof(int))];
    } control;
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    memset(&control, 0, sizeof control);
    if (n > 0) {
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE(n * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n * sizeof(int));
    }
    return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

bool asym_raw_receive(int fd, int wait_ms, int *ret_memfd, int *ret_event)
{
    struct asym_rtx_handshake handshake;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    struct iovec part = {&handshake, sizeof handshake};
    int fds[2];
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof fds)];
    } control;
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.space};
    if (poll(&ready, 1, wait_ms) <= 0 || recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != (ssize_t)sizeof handshake)
        return false;
    const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (!c || c->cmsg_len != CMSG_LEN(sizeof fds))
        return false;
    memcpy(fds, CMSG_DATA(c), sizeof fds);
    *ret_memfd = fds[0];
    *ret_event = fds[1];
    return true;
}

bool asym_raw_is_closed(int fd, int wait_ms)
{
    const long long end = asym_raw_ms() + wait_ms;
    char text[64];
    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        const long long left = end - asym_raw_ms();
        if (poll(&ready, 1, left > 0 ? (int)left : 0) <= 0)
            return false;
        const ssize_t n = recv(fd, text, sizeof text, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return true;
    }
}

int asym_raw_fill(int memfd, int event, pid_t tid)
{
    const struct {
        struct asym_rtx_header header;
        struct asym_rtx_slot slot;
    } page = {.header = {.magic = ASYM_RTX_MAGIC,
                         .version = ASYM_RTX_VERSION,
                         .header_size = sizeof page.header,
                         .slot_size = sizeof page.slot,
                         .n_slots = 1,
                         .n_used = 1},
              .slot = {.tid = tid, .word = ASYM_RTX_WORKING | ASYM_RTX_MASTER}};
    return pwrite(memfd, &page, sizeof page, 0) == (ssize_t)sizeof page && eventfd_write(event, 1) == 0 ? 0 : -errno;
}

/* This process keeps the other end open and never reads it. */
static int fill(int fd)
{
    static const char zeroes[65536];
    const struct linger linger = {.l_onoff = 1, .l_linger = 600};
    for (int i = 0; i < 3; i++) {
        while (send(fd, zeroes, sizeof zeroes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
            ;
        poll(NULL, 0, 20);
    }
    return setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

static int submit_and_wait(aio_context_t context, int event, int file)
{
    char byte;
    struct iocb request = {
        .aio_lio_opcode = IOCB_CMD_PREAD,
        .aio_fildes = (uint32_t)file,
        .aio_buf = (uint64_t)(uintptr_t)&byte,
        .aio_nbytes = 1,
        .aio_flags = IOCB_FLAG_RESFD,
        .aio_resfd = (uint32_t)event,
    };
    struct iocb *requests[] = {&request};
    struct io_event done;
    const bool ok = syscall(SYS_io_submit, context, 1, requests) == 1 &&
                    syscall(SYS_io_getevents, context, 1, 1, &done, NULL) == 1;
    return ok ? 0 : -errno;
}

int asym_raw_post(int event)
{
    aio_context_t context = 0;
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int r = file < 0 || syscall(SYS_io_setup, 1, &context) < 0 ? -errno : submit_and_wait(context, event, file);
    if (context)
        syscall(SYS_io_destroy, context);
    if (file >= 0)
        close(file);
    return r;
}

int asym_raw_overfill(int event)
{
    eventfd_t count;
    if ((eventfd_read(event, &count) < 0 && errno != EAGAIN) || eventfd_write(event, UINT64_MAX - 1) < 0)
        return -errno;
    return asym_raw_post(event);
}

int asym_raw_lingering(void)
{
    const int small = 4096;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
              fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0 || fd < 0 || setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small) < 0 ||
        bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 4) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) < 0 ||
        (connect(fd, (struct sockaddr *)&address, size) < 0 && errno != EINPROGRESS) ||
        accept4(listener, NULL, NULL, SOCK_CLOEXEC) < 0 || fill(fd) < 0)
        return -1;
    close(listener);
    return fd;
}

int asym_raw_become(uid_t uid)
{
    const pid_t parent = getppid();
    if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
        return -errno;
    asym_process_end_with(parent);
    return 0;
}

long long asym_raw_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
