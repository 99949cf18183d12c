/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/rtx-acceptor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <asym/rtx.h>

#include "base/macro.h"
#include "linux/helper.h"
#include "linux/rtx-closer.h"
#include "linux/rtx-rate.h"

/* Since Linux 6.5 and 6.16; the same on all machines that this is built for but parisc and sparc. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/* Connections in the queue; the kernel cuts it to net.core.somaxconn. */
#define BACKLOG 4096
/* Connections taken before asymd's orders are looked at again. */
#define TAKE_AT_ONCE 64
/* Milliseconds between two looks at closers, and at the listening socket while it is not watched. */
#define CLOSERS_EVERY 10
/* For asymd to end with all its descriptors, which takes this process with it. */
#define OUTLIVE_MS 10000
/* Of the pipe of reports. */
#define REPORTS_SIZE (1 << 20)

enum state {
    UNANSWERED,
    GRANTED,
    ENDED, /* asymd was told, and will say when its own descriptors are no longer in use */
};

/* A close on behalf of a user that is not known: if it hangs, no user is refused for it. */
#define UNKNOWN_USER ((uid_t)-1)

struct connection {
    uint32_t id;
    enum state state;
    int fd, pidfd, event; /* -1: none */
    uid_t uid;
};

struct acceptor {
    int orders, reports, epoll;
    int asymd;         /* a pidfd; -1: none, then the signal ends this process */
    int listener;      /* -1: none yet */
    int spare;         /* given up for a moment where there is no descriptor left */
    bool files_barred; /* no connection can have a file in its queue */
    bool deaf;         /* the listener is not watched for a while */
    struct connection *connections[ASYM_RTX_MAX_CONNECTIONS];
    size_t n, n_unanswered;
    struct {
        int fd;
        uint32_t id;
    } held[ASYM_RTX_MAX_DOOMED];
    size_t n_held;
    uint32_t last_id;
    uint32_t n_turned_away;
    struct asym_rtx_rate rate;
    struct asym_rtx_closers closers;
};

static long long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/*
 * asymd is ending. It is not to close its descriptors last: this process waits until all threads of asymd have ended, and
 * their descriptors with them. PR_SET_PDEATHSIG comes when the first one does.
 */
static _Noreturn void outlive(const struct acceptor *a)
{
    struct pollfd ended = {.fd = a->asymd, .events = POLLIN};
    poll(&ended, 1, OUTLIVE_MS);
    exit(0);
}

static void say(const struct acceptor *a, struct asym_rtx_report report)
{
    if (asym_helper_say(a->reports, &report, sizeof report) < 0)
        outlive(a);
}

static int watch(struct acceptor *a, int fd, void *of)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = of};
    return epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/*
 * Nothing can arrive after this, so that what is not there now never will be. A message of no bytes is told from the end by
 * the credentials that go with it, for which there is no room here. No file that it carries is taken out.
 */
static bool has_message(int fd)
{
    const int on = 1;
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (shutdown(fd, SHUT_RDWR) < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0)
        return true;
    const ssize_t n = recvmsg(fd, &m, MSG_PEEK | MSG_DONTWAIT);
    return n > 0 || (n == 0 && m.msg_flags & MSG_CTRUNC);
}

/* A closer that hangs may hold it, too: its program is to see the end all the same. */
static void close_connection(struct acceptor *a, int fd, uid_t uid)
{
    if (!a->files_barred && has_message(fd)) {
        asym_rtx_doom(&a->closers, fd, uid);
        return;
    }
    shutdown(fd, SHUT_RDWR);
    close(fd);
}

static struct connection **find(struct acceptor *a, uint32_t id)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->connections[i]->id == id)
            return &a->connections[i];
    return NULL;
}

static void set_state(struct acceptor *a, struct connection *c, enum state state)
{
    a->n_unanswered -= c->state == UNANSWERED;
    c->state = state;
}

static void drop_pidfd(struct connection *c)
{
    asym_close_p(&c->pidfd);
    c->pidfd = -1;
}

static void forget(struct acceptor *a, struct connection **at)
{
    struct connection *c = *at;
    set_state(a, c, ENDED);
    drop_pidfd(c);
    /* A closer may hold the file for long, and epoll would report it as long. */
    epoll_ctl(a->epoll, EPOLL_CTL_DEL, c->fd, NULL);
    close_connection(a, c->fd, c->uid);
    asym_rtx_doom(&a->closers, c->event, c->uid);
    *at = a->connections[--a->n];
    free(c);
}

/* asymd closes its end of the page first. */
static void end(struct acceptor *a, struct connection *c, enum asym_rtx_report_kind kind)
{
    epoll_ctl(a->epoll, EPOLL_CTL_DEL, c->fd, NULL);
    shutdown(c->fd, SHUT_RDWR);
    set_state(a, c, ENDED);
    say(a, (struct asym_rtx_report){.kind = kind, .id = c->id});
}

/* Whatever comes is a breach; it is not taken out of the queue. */
static void hear(struct acceptor *a, struct connection *c)
{
    char byte;
    const ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    end(a, c, n > 0 ? ASYM_RTX_REPORT_BREACH : ASYM_RTX_REPORT_GONE);
}

static int add(struct acceptor *a, int fd, const struct ucred *peer)
{
    struct connection *c = malloc(sizeof *c);
    socklen_t size = sizeof c->pidfd;
    if (!c)
        return -ENOMEM;
    *c = (struct connection){.fd = fd, .pidfd = -1, .event = -1, .uid = peer->uid, .id = ++a->last_id};
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &c->pidfd, &size) < 0)
        c->pidfd = -1;
    int r = watch(a, fd, c);
    if (r < 0) {
        drop_pidfd(c);
        free(c);
        return r;
    }
    a->connections[a->n++] = c;
    a->n_unanswered++;
    say(a, (struct asym_rtx_report){.kind = ASYM_RTX_REPORT_CAME,
                                    .id = c->id,
                                    .pid = peer->pid,
                                    .uid = peer->uid,
                                    .is_certain = c->pidfd >= 0});
    return 0;
}

static bool may_ask(struct acceptor *a, uid_t uid, long long now)
{
    size_t of_user = 0;
    if (!asym_rtx_rate_take(&a->rate, uid, now) || asym_rtx_is_hung(&a->closers, uid))
        return false;
    for (size_t i = 0; i < a->n; i++)
        of_user += a->connections[i]->state == UNANSWERED && a->connections[i]->uid == uid;
    return a->n < ASYM_RTX_MAX_CONNECTIONS && a->n_unanswered < ASYM_RTX_MAX_UNANSWERED &&
           of_user < ASYM_RTX_MAX_UNANSWERED_OF_USER;
}

static bool get_peer(int fd, struct ucred *ret)
{
    socklen_t size = sizeof *ret;
    *ret = (struct ucred){.pid = 0, .uid = UNKNOWN_USER};
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &size) == 0;
}

static void greet(struct acceptor *a, int fd, long long now)
{
    struct ucred peer;
    if (get_peer(fd, &peer) && may_ask(a, peer.uid, now)) {
        if (peer.pid > 0 && add(a, fd, &peer) == 0)
            return;
        if (peer.pid <= 0)
            say(a, (struct asym_rtx_report){.kind = ASYM_RTX_REPORT_FOREIGN, .uid = peer.uid});
    } else {
        a->n_turned_away++;
    }
    close_connection(a, fd, peer.uid);
}

static void set_deaf(struct acceptor *a, bool deaf)
{
    if (a->deaf == deaf)
        return;
    if (deaf)
        epoll_ctl(a->epoll, EPOLL_CTL_DEL, a->listener, NULL);
    else if (watch(a, a->listener, &a->listener) < 0)
        return;
    a->deaf = deaf;
}

/* With a descriptor kept for that, one that waits can be turned away though none is left. */
static void accept_one_to_close(struct acceptor *a)
{
    struct ucred peer;
    close(a->spare);
    const int fd = accept4(a->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
        get_peer(fd, &peer);
        close_connection(a, fd, peer.uid);
    }
    a->spare = fcntl(a->orders, F_DUPFD_CLOEXEC, 0);
    a->n_turned_away++;
}

static void take_connections(struct acceptor *a)
{
    const long long now = now_ms();
    for (int i = 0; i < TAKE_AT_ONCE; i++) {
        if (!asym_rtx_may_doom(&a->closers)) {
            set_deaf(a, true);
            return;
        }
        const int fd = accept4(a->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            greet(a, fd, now);
        else if (errno == EMFILE || errno == ENFILE)
            accept_one_to_close(a);
        else if (errno == EAGAIN || errno == EINTR)
            return;
    }
}

static void start_listening(struct acceptor *a, int fd, uint32_t flags)
{
    const int off = 0;
    if (a->listener >= 0 || fd < 0)
        exit(1);
    a->files_barred = !(flags & ASYM_RTX_FILES_MAY_BE_PASSED) &&
                      setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off) == 0;
    a->listener = fd;
    if (listen(fd, BACKLOG) < 0 || watch(a, fd, &a->listener) < 0)
        exit(1);
}

/* Then its number was its own all the time, and asymd has asked for its start time meanwhile. */
static bool is_alive(const struct connection *c)
{
    struct pollfd ended = {.fd = c->pidfd, .events = POLLIN};
    return c->pidfd < 0 || poll(&ended, 1, 0) == 0;
}

static bool send_page(int fd, uint32_t page_size, const int fds[2])
{
    struct asym_rtx_handshake handshake = {
        .magic = ASYM_RTX_MAGIC, .version = ASYM_RTX_VERSION, .size = sizeof handshake, .page_size = page_size};
    struct iovec part = {&handshake, sizeof handshake};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(2 * sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.space};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(2 * sizeof(int));
    memcpy(CMSG_DATA(c), fds, 2 * sizeof(int));
    return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof handshake;
}

/* The eventfd is kept, see the header; of the memfd asymd may drop the last reference. */
static void grant(struct acceptor *a, struct connection **at, const struct asym_rtx_order *order, const int fds[2])
{
    struct connection *c = at ? *at : NULL;
    if (!c || c->state != UNANSWERED) {
        asym_rtx_doom(&a->closers, fds[1], c ? c->uid : UNKNOWN_USER);
    } else {
        c->event = fds[1];
        set_state(a, c, GRANTED);
        if (!is_alive(c) || !send_page(c->fd, order->page_size, fds))
            end(a, c, ASYM_RTX_REPORT_GONE);
        drop_pidfd(c);
    }
    close(fds[0]);
}

static void answer_ping(const struct acceptor *a, uint32_t id)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    say(a, (struct asym_rtx_report){.kind = ASYM_RTX_REPORT_ALIVE,
                                    .id = id,
                                    .turned_away = a->n_turned_away,
                                    .cpu_usec = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000});
}

static void hold(struct acceptor *a, uint32_t id, const int *fds, size_t n)
{
    if (n > ASYM_LENGTH(a->held) - a->n_held)
        exit(1);
    for (size_t i = 0; i < n; i++) {
        a->held[a->n_held].fd = fds[i];
        a->held[a->n_held++].id = id;
    }
}

static void give_up_held(struct acceptor *a, uint32_t id, uid_t uid)
{
    size_t kept = 0;
    for (size_t i = 0; i < a->n_held; i++) {
        if (a->held[i].id == id)
            asym_rtx_doom(&a->closers, a->held[i].fd, uid);
        else
            a->held[kept++] = a->held[i];
    }
    a->n_held = kept;
}

static void obey(struct acceptor *a, const struct asym_rtx_order *order, const int *fds, size_t n_fds)
{
    struct connection **at = find(a, order->id);
    if (order->kind == ASYM_RTX_ORDER_LISTEN && n_fds == 1) {
        start_listening(a, fds[0], order->flags);
    } else if (order->kind == ASYM_RTX_ORDER_GRANT && n_fds == 2) {
        grant(a, at, order, fds);
    } else if (order->kind == ASYM_RTX_ORDER_HOLD && n_fds > 0) {
        hold(a, order->id, fds, n_fds);
    } else if (order->kind == ASYM_RTX_ORDER_CLOSE && n_fds == 0) {
        give_up_held(a, order->id, at ? (*at)->uid : UNKNOWN_USER);
        if (at)
            forget(a, at);
    } else if (order->kind == ASYM_RTX_ORDER_PING && n_fds == 0) {
        answer_ping(a, order->id);
    } else {
        exit(1);
    }
}

static void take_order(struct acceptor *a)
{
    struct asym_rtx_order order;
    int fds[ASYM_HELPER_MAX_FDS];
    size_t n_fds = 0;
    const ssize_t n = asym_helper_next_order(a->orders, &order, sizeof order, fds, &n_fds);
    if (n == 0)
        outlive(a);
    if (n != (ssize_t)sizeof order)
        exit(1);
    obey(a, &order, fds, n_fds);
}

/* All that wait: they are few, and a flood of connections holds none of them up. */
static void take_orders(struct acceptor *a)
{
    struct pollfd more = {.fd = a->orders, .events = POLLIN};
    do
        take_order(a);
    while (poll(&more, 1, 0) == 1);
}

static void mind_closers(struct acceptor *a)
{
    const long long now = now_ms();
    const struct asym_rtx_closer *hung;
    asym_rtx_close_doomed(&a->closers, now);
    while ((hung = asym_rtx_newly_hung(&a->closers, now)))
        say(a, (struct asym_rtx_report){.kind = ASYM_RTX_REPORT_HUNG, .uid = hung->uid});
    if (a->listener >= 0)
        set_deaf(a, !asym_rtx_may_doom(&a->closers));
}

static bool is_connected(const struct acceptor *a, const struct connection *c)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->connections[i] == c)
            return c->state != ENDED;
    return false;
}

/* A connection may be gone by the time that its event comes up. */
static void handle(struct acceptor *a, void *of)
{
    if (of == &a->asymd)
        exit(0);
    if (of == &a->orders)
        take_orders(a);
    else if (of == &a->listener)
        take_connections(a);
    else if (is_connected(a, of))
        hear(a, of);
}

static void raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static struct acceptor *prepare(int orders, int reports)
{
    struct acceptor *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    raise_limit();
    signal(SIGPIPE, SIG_IGN);
    /* A pipe in packet mode holds as many packets as pages, 16 by itself; where there are no more it is waited for. */
    fcntl(reports, F_SETPIPE_SZ, REPORTS_SIZE);
    a->orders = orders;
    a->reports = reports;
    a->listener = -1;
    a->epoll = epoll_create1(EPOLL_CLOEXEC);
    a->spare = fcntl(orders, F_DUPFD_CLOEXEC, 0);
    a->asymd = (int)syscall(SYS_pidfd_open, getppid(), 0);
    if (a->epoll >= 0 && a->asymd >= 0 && watch(a, a->asymd, &a->asymd) == 0)
        prctl(PR_SET_PDEATHSIG, 0);
    if (a->epoll >= 0 && a->spare >= 0 && watch(a, orders, &a->orders) == 0)
        return a;
    free(a);
    return NULL;
}

int asym_rtx_acceptor_run(int orders, int reports)
{
    struct acceptor *a = prepare(orders, reports);
    struct epoll_event events[64];
    while (a) {
        const int n = epoll_wait(a->epoll, events, ASYM_LENGTH(events),
                                 asym_rtx_is_closing(&a->closers) ? CLOSERS_EVERY : -1);
        for (int i = 0; i < n; i++)
            handle(a, events[i].data.ptr);
        mind_closers(a);
    }
    return 1;
}
