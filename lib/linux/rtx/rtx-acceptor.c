/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/rtx/rtx-acceptor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <asym/rtx.h>

#include "base/clock.h"
#include "base/macro.h"
#include "linux/rtx/rtx-closer.h"
#include "linux/rtx/rtx-rate.h"
#include "linux/sys/helper-process.h"

/* Since Linux 6.5 and 6.16. The values are those of all architectures except parisc and sparc. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/* Length of the queue of listen(2); the kernel limits it to net.core.somaxconn. */
#define BACKLOG 4096
/* Connections accepted before the helper checks for orders of asymd again. */
#define TAKE_AT_ONCE 64
/* Milliseconds between two checks of the closers, and of the listening socket while epoll does not watch it. */
#define CLOSERS_EVERY 10
/* Longest wait, milliseconds, for asymd to end with all its descriptors. */
#define OUTLIVE_MS 10000
/* Size of the pipe of reports, bytes. */
#define REPORTS_SIZE (1 << 20)

enum state {
    UNANSWERED,
    GRANTED,
    ENDED,  /* reported to asymd, which orders CLOSE once it has closed its own descriptors */
    UNREAD, /* asymd has ordered CLOSE, and the program has not read the page: see has_unread_page() */
};

struct connection {
    uint32_t id;
    enum state state;
    int fd, pidfd, event; /* -1: none */
    uid_t uid;
    bool unread; /* the page was sent, and was unread at the last check */
};

struct acceptor {
    int orders, reports, epoll;
    int asymd;         /* a pidfd; -1: none, then PR_SET_PDEATHSIG ends this process */
    int listener;      /* -1: none yet */
    int spare;         /* closed for a moment when no other descriptor is left */
    bool files_barred; /* SO_PASSRIGHTS is off: no queue can hold a file */
    bool deaf;         /* epoll does not watch the listener for a while */
    struct connection *connections[ASYM_RTXD_MAX_CONNECTIONS];
    size_t n;
    struct {
        int fd;
        uint32_t id;
    } held[ASYM_RTXD_MAX_DOOMED];
    size_t n_held;
    uint32_t last_id;
    uint32_t n_turned_away;
    struct asym_rtxd_rate rate;
    struct asym_rtxd_closers closers;
};

static long long now_ms(void)
{
    return (long long)(asym_clock_now() / 1000);
}

/*
 * asymd is ending and must not close its descriptors last. So this process waits until all threads of asymd have ended, which
 * closes their descriptors. PR_SET_PDEATHSIG would come when the first thread ends.
 */
static _Noreturn void outlive(const struct acceptor *a)
{
    struct pollfd ended = {.fd = a->asymd, .events = POLLIN};
    poll(&ended, 1, OUTLIVE_MS);
    exit(0);
}

static void say(const struct acceptor *a, struct asym_rtxd_report report)
{
    if (asym_helper_say(a->reports, &report, sizeof report) < 0)
        outlive(a);
}

static int watch(struct acceptor *a, int fd, void *of)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = of};
    return epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

enum found {
    FOUND_NOTHING,
    FOUND_BYTES,
    FOUND_FILES,
};

/*
 * Peek at the next message, which stays in the queue. The kernel adds the credentials of the sender to each message, so that an
 * empty message differs from the end of the queue. The buffer has room for the credentials only: for a message with files the
 * kernel sets MSG_CTRUNC and creates no descriptors.
 */
static enum found peek(int fd)
{
    char byte;
    struct iovec part = {&byte, 1};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.space};
    const ssize_t n = recvmsg(fd, &m, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 || m.msg_flags & MSG_CTRUNC)
        return FOUND_FILES;
    return n > 0 || m.msg_controllen > 0 ? FOUND_BYTES : FOUND_NOTHING;
}

/*
 * Nothing can arrive after the shutdown. Receive and drop messages without files: this closes no file, so it cannot sleep. A
 * message with files stays in the queue.
 */
static bool has_files(int fd)
{
    const int on = 1;
    char byte;
    if (shutdown(fd, SHUT_RDWR) < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0)
        return true;
    enum found found = peek(fd);
    while (found == FOUND_BYTES)
        found = recv(fd, &byte, sizeof byte, MSG_DONTWAIT) < 0 ? FOUND_FILES : peek(fd);
    return found == FOUND_FILES;
}

/* A hanging closer may hold the socket, too. The shutdown shows the program the end all the same. */
static void close_connection(struct acceptor *a, int fd, uid_t uid)
{
    if (!a->files_barred && has_files(fd)) {
        asym_rtxd_doom(&a->closers, fd, uid);
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

static void drop_pidfd(struct connection *c)
{
    asym_close_p(&c->pidfd);
    c->pidfd = -1;
}

/*
 * The kernel frees the message, and drops its references to the memfd and the eventfd, when the program reads it or closes its
 * socket. A close on this side leaves it in the program's queue. Until then the kernel counts both as in flight, for the user
 * of this process.
 */
static bool has_unread_page(struct connection *c)
{
    int bytes;
    c->unread = c->unread && ioctl(c->fd, SIOCOUTQ, &bytes) == 0 && bytes > 0;
    return c->unread;
}

/*
 * A connection with an unread page stays open, because only its socket shows whether the program has read the page. A program
 * may have sent its own end and have ended: then only the message holds that end, and the end holds the page.
 */
static void keep_unread(struct acceptor *a, struct connection *c)
{
    shutdown(c->fd, SHUT_RDWR);
    c->state = UNREAD;
    if (!a->files_barred && has_files(c->fd))
        asym_rtxd_empty(&a->closers, c->fd, c->uid);
}

static void forget(struct acceptor *a, struct connection **at)
{
    struct connection *c = *at;
    drop_pidfd(c);
    /* A closer may hold the file for long, and epoll would go on reporting it. */
    epoll_ctl(a->epoll, EPOLL_CTL_DEL, c->fd, NULL);
    asym_rtxd_doom(&a->closers, c->event, c->uid);
    c->event = -1;
    if (has_unread_page(c)) {
        keep_unread(a, c);
        return;
    }
    close_connection(a, c->fd, c->uid);
    *at = a->connections[--a->n];
    free(c);
}

static void forget_read(struct acceptor *a)
{
    for (size_t i = a->n; i-- > 0;)
        if (a->connections[i]->state == UNREAD && !has_unread_page(a->connections[i]))
            forget(a, &a->connections[i]);
}

/* The connection stays open until asymd orders CLOSE: asymd closes its descriptors first. */
static void end(struct acceptor *a, struct connection *c, enum asym_rtxd_report_kind kind)
{
    epoll_ctl(a->epoll, EPOLL_CTL_DEL, c->fd, NULL);
    shutdown(c->fd, SHUT_RDWR);
    c->state = ENDED;
    say(a, (struct asym_rtxd_report){.kind = kind, .id = c->id});
}

/* Any data is a breach of the protocol. It stays in the queue. */
static void receive(struct acceptor *a, struct connection *c)
{
    char byte;
    const ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    end(a, c, n > 0 ? ASYM_RTXD_REPORT_BREACH : ASYM_RTXD_REPORT_GONE);
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
    say(a, (struct asym_rtxd_report){.kind = ASYM_RTXD_REPORT_CAME,
                                     .id = c->id,
                                     .pid = peer->pid,
                                     .uid = peer->uid,
                                     .is_certain = c->pidfd >= 0});
    return 0;
}

static bool may_ask(struct acceptor *a, uid_t uid, long long now)
{
    size_t of_user = 0, of_others = 0, unread = 0, unread_of_others = 0;
    if (!asym_rtxd_rate_take(&a->rate, uid, (asym_usec)now * ASYM_MSEC) || asym_rtxd_is_refused(&a->closers, uid))
        return false;
    for (size_t i = 0; i < a->n; i++) {
        struct connection *c = a->connections[i];
        of_user += c->state == UNANSWERED && c->uid == uid;
        of_others += c->state == UNANSWERED && c->uid != 0;
        const bool is_unread = has_unread_page(c);
        unread += is_unread && c->uid == uid;
        unread_of_others += is_unread && c->uid != 0;
    }
    if (of_user >= ASYM_RTXD_MAX_UNANSWERED_OF_USER || unread >= ASYM_RTXD_MAX_UNREAD_OF_USER)
        return false;
    /* A user with many user ids must not keep root out. */
    if (uid == 0)
        return a->n < ASYM_RTXD_MAX_CONNECTIONS;
    if (unread > 0 && unread_of_others >= ASYM_RTXD_MAX_UNREAD)
        return false;
    return a->n < ASYM_RTXD_MAX_CONNECTIONS - ASYM_RTXD_MAX_UNANSWERED_OF_USER && of_others < ASYM_RTXD_MAX_UNANSWERED;
}

static bool get_peer(int fd, struct ucred *ret)
{
    socklen_t size = sizeof *ret;
    *ret = (struct ucred){.pid = 0, .uid = ASYM_RTXD_UNKNOWN_USER};
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &size) == 0;
}

static void welcome(struct acceptor *a, int fd, long long now)
{
    struct ucred peer;
    if (get_peer(fd, &peer) && may_ask(a, peer.uid, now)) {
        if (peer.pid > 0 && add(a, fd, &peer) == 0)
            return;
        if (peer.pid <= 0)
            say(a, (struct asym_rtxd_report){.kind = ASYM_RTXD_REPORT_FOREIGN, .uid = peer.uid});
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

/*
 * The spare descriptor allows to accept and close a waiting connection when no other descriptor is left. A connection that must
 * not be closed here stays open in place of the spare.
 */
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

static bool may_accept(struct acceptor *a)
{
    if (a->spare < 0)
        a->spare = fcntl(a->orders, F_DUPFD_CLOEXEC, 0);
    return a->spare >= 0 && asym_rtxd_may_doom(&a->closers);
}

static void take_connections(struct acceptor *a)
{
    const long long now = now_ms();
    for (int i = 0; i < TAKE_AT_ONCE; i++) {
        if (!may_accept(a)) {
            set_deaf(a, true);
            return;
        }
        const int fd = accept4(a->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            welcome(a, fd, now);
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
    a->files_barred = !(flags & ASYM_RTXD_FILES_MAY_BE_PASSED) &&
                      setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off) == 0;
    a->listener = fd;
    if (listen(fd, BACKLOG) < 0 || watch(a, fd, &a->listener) < 0)
        exit(1);
}

/* If it still runs, the pid was its own all the time, also when asymd read its start time. */
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

/* Keep the eventfd, see rtx-acceptor.h. asymd may drop the last reference to the memfd. */
static void grant(struct acceptor *a, struct connection **at, const struct asym_rtxd_order *order, const int fds[2])
{
    struct connection *c = at ? *at : NULL;
    if (!c || c->state != UNANSWERED) {
        asym_rtxd_doom(&a->closers, fds[1], c ? c->uid : ASYM_RTXD_UNKNOWN_USER);
    } else {
        c->event = fds[1];
        c->state = GRANTED;
        c->unread = is_alive(c) && send_page(c->fd, order->page_size, fds);
        if (!c->unread)
            end(a, c, ASYM_RTXD_REPORT_GONE);
        drop_pidfd(c);
    }
    close(fds[0]);
}

/* asymd pings about once a second. */
static void answer_ping(struct acceptor *a, uint32_t id)
{
    forget_read(a);
    say(a, (struct asym_rtxd_report){.kind = ASYM_RTXD_REPORT_ALIVE,
                                     .id = id,
                                     .turned_away = a->n_turned_away,
                                     .cpu_usec = asym_clock_process_cpu()});
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
            asym_rtxd_doom(&a->closers, a->held[i].fd, uid);
        else
            a->held[kept++] = a->held[i];
    }
    a->n_held = kept;
}

static void obey(struct acceptor *a, const struct asym_rtxd_order *order, const int *fds, size_t n_fds)
{
    struct connection **at = find(a, order->id);
    if (order->kind == ASYM_RTXD_ORDER_LISTEN && n_fds == 1) {
        start_listening(a, fds[0], order->flags);
    } else if (order->kind == ASYM_RTXD_ORDER_GRANT && n_fds == 2) {
        grant(a, at, order, fds);
    } else if (order->kind == ASYM_RTXD_ORDER_HOLD && n_fds > 0) {
        hold(a, order->id, fds, n_fds);
    } else if (order->kind == ASYM_RTXD_ORDER_CLOSE && n_fds == 0) {
        give_up_held(a, order->id, at ? (*at)->uid : ASYM_RTXD_UNKNOWN_USER);
        if (at)
            forget(a, at);
    } else if (order->kind == ASYM_RTXD_ORDER_PING && n_fds == 0) {
        answer_ping(a, order->id);
    } else {
        exit(1);
    }
}

static void take_order(struct acceptor *a)
{
    struct asym_rtxd_order order;
    int fds[ASYM_HELPER_MAX_FDS];
    size_t n_fds = 0;
    const ssize_t n = asym_helper_next_order(a->orders, &order, sizeof order, fds, &n_fds);
    if (n == 0)
        outlive(a);
    if (n != (ssize_t)sizeof order)
        exit(1);
    obey(a, &order, fds, n_fds);
}

/* Take all waiting orders: they are few, and a flood of connections must not delay them. */
static void take_orders(struct acceptor *a)
{
    struct pollfd more = {.fd = a->orders, .events = POLLIN};
    do
        take_order(a);
    while (poll(&more, 1, 0) == 1);
}

static void update_closers(struct acceptor *a)
{
    const long long now = now_ms();
    struct asym_rtxd_standing standing;
    asym_rtxd_close_doomed(&a->closers, now);
    while (asym_rtxd_next_standing(&a->closers, now, &standing))
        say(a, (struct asym_rtxd_report){.kind = standing.refused ? ASYM_RTXD_REPORT_HUNG : ASYM_RTXD_REPORT_FREED,
                                         .uid = standing.uid});
    if (a->listener >= 0)
        set_deaf(a, !may_accept(a));
}

static bool is_connected(const struct acceptor *a, const struct connection *c)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->connections[i] == c)
            return c->state < ENDED;
    return false;
}

/* An earlier event of the same batch may have freed the connection. */
static void handle(struct acceptor *a, void *of)
{
    if (of == &a->asymd)
        exit(0);
    if (of == &a->orders)
        take_orders(a);
    else if (of == &a->listener)
        take_connections(a);
    else if (is_connected(a, of))
        receive(a, of);
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
    if (!a || asym_rtxd_closers_init(&a->closers) < 0) {
        free(a);
        return NULL;
    }
    raise_limit();
    signal(SIGPIPE, SIG_IGN);
    /* A pipe in packet mode holds one packet a page, 16 pages by default. With a full pipe this process waits. */
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

int asym_rtxd_acceptor_run(int orders, int reports)
{
    struct acceptor *a = prepare(orders, reports);
    struct epoll_event events[64];
    while (a) {
        const int n = epoll_wait(a->epoll, events, ASYM_LENGTH(events),
                                 asym_rtxd_is_closing(&a->closers) ? CLOSERS_EVERY : -1);
        for (int i = 0; i < n; i++)
            handle(a, events[i].data.ptr);
        update_closers(a);
    }
    return 1;
}
