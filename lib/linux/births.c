/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/births.h"

#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/births-parse.h"

/* The default holds 256 events; a build forks more in one interval. */
#define SOCKET_BUFFER (8 << 20)

/* Inode of the initial PID namespace, fixed by the kernel (PROC_PID_INIT_INO). */
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCu

#define KEPT_MAX              65536
#define STACK                 65536

struct asym_births {
    int fd, stop_fd;
    bool watching;
    pthread_t thread;
    void (*hook)(void *ctx, const struct asym_birth *event);
    void *ctx;
    /* Kept by the watching thread for the next drain. */
    pthread_mutex_t lock;
    struct asym_birth *kept, *handed;
    size_t n_kept, kept_capacity, handed_capacity;
    bool lost;
};

static int subscribe(int fd, enum proc_cn_mcast_op op)
{
    _Alignas(struct nlmsghdr) char m[sizeof(struct nlmsghdr) + sizeof(struct cn_msg) + sizeof op];
    const struct nlmsghdr header = {.nlmsg_len = sizeof m, .nlmsg_type = NLMSG_DONE};
    const struct cn_msg message = {.id = {.idx = CN_IDX_PROC, .val = CN_VAL_PROC}, .len = sizeof op};
    memcpy(m, &header, sizeof header);
    memcpy(m + sizeof header, &message, sizeof message);
    memcpy(m + sizeof header + sizeof message, &op, sizeof op);
    return send(fd, m, sizeof m, 0) < 0 ? -errno : 0;
}

static bool in_initial_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == INITIAL_PID_NAMESPACE;
}

static int open_socket(struct asym_births *b, struct asym_error *err)
{
    const int size = SOCKET_BUFFER;
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
    if (!in_initial_namespace())
        return asym_fail(err, -EXDEV,
                         "inside a PID namespace the proc connector's numbers do not match: /proc is scanned instead");
    b->fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
    if (b->fd < 0)
        return asym_fail(err, -EPROTONOSUPPORT, "no proc connector in this kernel: /proc is scanned instead");
    if (bind(b->fd, (struct sockaddr *)&address, sizeof address) < 0) {
        int r = errno == EPERM || errno == EACCES ? -EPERM : -EPROTONOSUPPORT;
        return asym_fail(err, r,
                         r == -EPERM ? "the proc connector needs CAP_NET_ADMIN: /proc is scanned instead"
                                     : "no proc connector in this kernel: /proc is scanned instead");
    }
    setsockopt(b->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    int r = subscribe(b->fd, PROC_CN_MCAST_LISTEN);
    return r < 0 ? asym_fail(err, -EPERM, "the proc connector refused: %s; /proc is scanned instead", strerror(-r)) : 0;
}

int asym_births_open(struct asym_births **ret_births, struct asym_error *err)
{
    struct asym_births *b = calloc(1, sizeof *b);
    if (!b)
        return asym_fail(err, -ENOMEM, "no memory");
    b->fd = b->stop_fd = -1;
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&b->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    int r = open_socket(b, err);
    if (r < 0) {
        asym_births_close(b);
        return r;
    }
    *ret_births = b;
    return 0;
}

void asym_births_close(struct asym_births *b)
{
    if (!b)
        return;
    if (b->watching) {
        const uint64_t one = 1;
        while (write(b->stop_fd, &one, sizeof one) < 0 && errno == EINTR)
            ;
        pthread_join(b->thread, NULL);
    }
    if (b->fd >= 0) {
        subscribe(b->fd, PROC_CN_MCAST_IGNORE);
        close(b->fd);
    }
    if (b->stop_fd >= 0)
        close(b->stop_fd);
    pthread_mutex_destroy(&b->lock);
    free(b->kept);
    free(b->handed);
    free(b);
}

/* Take what is there off the socket. Returns the number of events, or -errno other than "nothing more". */
static int receive(struct asym_births *b, void (*fn)(void *, const struct asym_birth *), void *ctx)
{
    int n = 0;
    for (;;) {
        _Alignas(struct nlmsghdr) char buf[4096];
        struct sockaddr_nl from = {0};
        socklen_t from_len = sizeof from;
        struct asym_birth event;
        ssize_t len = recvfrom(b->fd, buf, sizeof buf, 0, (struct sockaddr *)&from, &from_len);
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0 && errno == ENOBUFS) {
            fn(ctx, &(struct asym_birth){.kind = ASYM_BIRTH_LOST});
            n++;
            continue;
        }
        if (len < 0)
            return errno == EAGAIN ? n : -errno;
        /* Anybody may send to a netlink socket; the kernel's address is 0. */
        if (from.nl_pid != 0 || asym_births_parse(buf, (size_t)len, &event) < 0)
            continue;
        fn(ctx, &event);
        n++;
    }
}

static void keep(struct asym_births *b, const struct asym_birth *event)
{
    pthread_mutex_lock(&b->lock);
    if (b->n_kept == b->kept_capacity && b->n_kept < KEPT_MAX) {
        size_t capacity = b->kept_capacity ? b->kept_capacity * 2 : 64;
        struct asym_birth *grown = reallocarray(b->kept, capacity, sizeof *grown);
        if (grown) {
            b->kept = grown;
            b->kept_capacity = capacity;
        }
    }
    if (b->n_kept < b->kept_capacity && event->kind != ASYM_BIRTH_LOST)
        b->kept[b->n_kept++] = *event;
    else
        b->lost = true;
    pthread_mutex_unlock(&b->lock);
}

static void on_event(void *ctx, const struct asym_birth *event)
{
    struct asym_births *b = ctx;
    b->hook(b->ctx, event);
    keep(b, event);
}

static void *watch(void *arg)
{
    struct asym_births *b = arg;
    struct pollfd fds[] = {{.fd = b->fd, .events = POLLIN}, {.fd = b->stop_fd, .events = POLLIN}};
    for (;;) {
        if (poll(fds, ASYM_LENGTH(fds), -1) < 0 && errno != EINTR)
            break;
        if (fds[1].revents)
            break;
        if (fds[0].revents && receive(b, on_event, b) < 0)
            keep(b, &(struct asym_birth){.kind = ASYM_BIRTH_LOST});
    }
    return NULL;
}

/* Real-time, so that a child is repaired before it looks; not inherited, should the process ever fork. */
static bool make_realtime(pthread_t thread)
{
    const struct sched_param param = {.sched_priority = 1};
    return pthread_setschedparam(thread, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) == 0 ||
           pthread_setschedparam(thread, SCHED_FIFO, &param) == 0;
}

int asym_births_watch(struct asym_births *b, void (*hook)(void *ctx, const struct asym_birth *event), void *ctx,
                      bool *ret_realtime)
{
    pthread_attr_t attr;
    sigset_t all, old;
    b->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (b->stop_fd < 0)
        return -errno;
    b->hook = hook;
    b->ctx = ctx;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = pthread_create(&b->thread, &attr, watch, b);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    if (r != 0)
        return -r;
    b->watching = true;
    *ret_realtime = make_realtime(b->thread);
    return 0;
}

int asym_births_drain(struct asym_births *b, void (*fn)(void *ctx, const struct asym_birth *event), void *ctx)
{
    if (!b->watching)
        return receive(b, fn, ctx);
    pthread_mutex_lock(&b->lock);
    struct asym_birth *events = b->kept;
    size_t n = b->n_kept, capacity = b->kept_capacity;
    bool lost = b->lost;
    b->kept = b->handed;
    b->kept_capacity = b->handed_capacity;
    b->n_kept = 0;
    b->lost = false;
    pthread_mutex_unlock(&b->lock);
    b->handed = events;
    b->handed_capacity = capacity;
    for (size_t i = 0; i < n; i++)
        fn(ctx, &events[i]);
    if (lost)
        fn(ctx, &(struct asym_birth){.kind = ASYM_BIRTH_LOST});
    return (int)n + lost;
}
