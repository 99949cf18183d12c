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
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/births-parse.h"

/* The default holds 256 events; a build forks more in one interval. */
#define SOCKET_BUFFER (8 << 20)

/* Inode of the initial PID namespace, fixed by the kernel (PROC_PID_INIT_INO). */
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCu

/* Events kept for the next drain: some seconds of a machine that does nothing but fork. */
#define KEPT_MAX 65536

/* What a quiet machine needs; more is given back after the storm. */
#define KEPT_QUIET 1024

/* Datagrams taken in one call. One is of 80 bytes; none that asymd wants is longer than a slot. */
#define BATCH 64
#define SLOT  128

/* Batches between two looks at whether to stop. */
#define ROUNDS 64

#define STACK  (256 * 1024) /* what is not touched takes no memory */

/* How long the kernel's answer to the subscription may take: it comes before send returns. */
#define ANSWER_MS 200

/* What it may spend at once before it has to sleep, and how long it sleeps at most. */
#define SPEND_MOST (20 * ASYM_MSEC)
#define SLEEP_MOST (250 * ASYM_MSEC)

/* What the watching thread has left to spend, in us of CPU time. Its own, but for the rate. */
struct pace {
    double left;
    asym_usec at, cpu;
    bool is_slow; /* without real-time priority */
};

struct asym_births {
    int fd, stop_fd;
    bool watching;
    atomic_bool realtime;
    atomic_uint limit; /* CPU time that it may cost, in millionths of a CPU */
    clockid_t clock;   /* of the watching thread */
    pthread_t thread;
    void (*hook)(void *ctx, const struct asym_birth *event);
    void *ctx;
    /* Kept by the watching thread for the next drain. */
    pthread_mutex_t lock;
    struct asym_birth *kept, *handed;
    size_t n_kept, kept_capacity, handed_capacity;
    bool lost, ended; /* ended: the watching thread is no more, though nobody has asked for that */
    /* Of the one reader. */
    _Alignas(struct nlmsghdr) char slots[BATCH][SLOT];
};

static int subscribe(int fd, enum proc_cn_mcast_op op, uint32_t ack)
{
    _Alignas(struct nlmsghdr) char m[sizeof(struct nlmsghdr) + sizeof(struct cn_msg) + sizeof op];
    const struct nlmsghdr header = {.nlmsg_len = sizeof m, .nlmsg_type = NLMSG_DONE};
    const struct cn_msg message = {.id = {.idx = CN_IDX_PROC, .val = CN_VAL_PROC}, .ack = ack, .len = sizeof op};
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

/*
 * The kernel answers every subscription with an event of its own, to all subscribers; without an answer it does not take
 * us for one of the initial namespaces.
 */
static int await_answer(struct asym_births *b, uint32_t asked)
{
    struct pollfd fd = {.fd = b->fd, .events = POLLIN};
    for (int tries = 0; tries < KEPT_MAX; tries++) {
        char buf[SLOT];
        int status;
        ssize_t len = recv(b->fd, buf, sizeof buf, 0);
        if (len < 0 && errno == EAGAIN && poll(&fd, 1, ANSWER_MS) == 0)
            return -ENOMSG;
        if (len < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
            return -errno;
        if (len >= 0 && asym_births_parse_answer(buf, (size_t)len, asked, &status) == 0)
            return -status;
    }
    return -ENOMSG;
}

static int join_group(struct asym_births *b)
{
    const int size = SOCKET_BUFFER;
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
    b->fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
    if (b->fd < 0 || bind(b->fd, (struct sockaddr *)&address, sizeof address) < 0)
        return -errno;
    if (setsockopt(b->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) < 0)
        setsockopt(b->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    const uint32_t ask = (uint32_t)getpid();
    int r = subscribe(b->fd, PROC_CN_MCAST_LISTEN, ask);
    return r < 0 ? r : await_answer(b, ask);
}

/* What the kernel's refusal means. */
static const struct {
    int said, means;
    const char *text;
} refusals[] = {
    {-EPERM, -EPERM, "the proc connector needs CAP_NET_ADMIN"},
    {-EACCES, -EPERM, "the proc connector needs CAP_NET_ADMIN"},
    {-ENOMSG, -EPERM, "the proc connector does not answer: not the initial user namespace"},
    {-EPROTONOSUPPORT, -EPROTONOSUPPORT, "no proc connector in this kernel (CONFIG_PROC_EVENTS)"},
    {-ECONNREFUSED, -EPROTONOSUPPORT, "no proc connector in this kernel (CONFIG_PROC_EVENTS)"},
    {-ENOENT, -EPROTONOSUPPORT, "no proc connector in this kernel (CONFIG_PROC_EVENTS)"},
    {-EAFNOSUPPORT, -EPERM, "netlink sockets are forbidden here"},
};

static int open_socket(struct asym_births *b, struct asym_error *err)
{
    if (!in_initial_namespace())
        return asym_fail(err, -EXDEV,
                         "inside a PID namespace the proc connector's numbers do not match: /proc is scanned instead");
    int r = join_group(b);
    for (size_t i = 0; r < 0 && i < ASYM_LENGTH(refusals); i++)
        if (refusals[i].said == r)
            return asym_fail(err, refusals[i].means, "%s: /proc is scanned instead", refusals[i].text);
    return r < 0 ? asym_fail(err, r, "the proc connector: %s; /proc is scanned instead", strerror(-r)) : 0;
}

int asym_births_open(struct asym_births **ret_births, struct asym_error *err)
{
    struct asym_births *b = calloc(1, sizeof *b);
    if (!b)
        return asym_fail(err, -ENOMEM, "no memory");
    b->fd = b->stop_fd = -1;
    b->limit = 20000;
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
        subscribe(b->fd, PROC_CN_MCAST_IGNORE, 0);
        close(b->fd);
    }
    if (b->stop_fd >= 0)
        close(b->stop_fd);
    pthread_mutex_destroy(&b->lock);
    free(b->kept);
    free(b->handed);
    free(b);
}

static asym_usec read_clock(clockid_t clock)
{
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return (asym_usec)t.tv_sec * ASYM_SEC + (asym_usec)t.tv_nsec / 1000;
}

static void report_lost(void (*fn)(void *, const struct asym_birth *), void *ctx)
{
    fn(ctx, &(struct asym_birth){.kind = ASYM_BIRTH_LOST, .when = read_clock(CLOCK_MONOTONIC)});
}

/* One batch off the socket. Returns how many datagrams, 0 when there are none; *events counts what was told. -errno. */
static int receive_batch(struct asym_births *b, void (*fn)(void *, const struct asym_birth *), void *ctx, int *events)
{
    struct sockaddr_nl from[BATCH] = {0};
    struct iovec parts[BATCH];
    struct mmsghdr messages[BATCH];
    for (size_t i = 0; i < BATCH; i++) {
        parts[i] = (struct iovec){b->slots[i], SLOT};
        messages[i] = (struct mmsghdr){
            .msg_hdr = {.msg_name = &from[i], .msg_namelen = sizeof from[i], .msg_iov = &parts[i], .msg_iovlen = 1}};
    }
    int n = recvmmsg(b->fd, messages, BATCH, MSG_DONTWAIT, NULL);
    if (n < 0 && errno == ENOBUFS) {
        report_lost(fn, ctx);
        (*events)++;
        return 1;
    }
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    for (int i = 0; i < n; i++) {
        struct asym_birth event;
        /* Anybody may send to a netlink socket; the kernel's address is 0. */
        if (from[i].nl_pid != 0 || asym_births_parse(b->slots[i], messages[i].msg_len, &event) < 0)
            continue;
        fn(ctx, &event);
        (*events)++;
    }
    return n;
}

/* At most rounds batches. Returns the number of events; -errno. */
static int receive(struct asym_births *b, void (*fn)(void *, const struct asym_birth *), void *ctx, int rounds)
{
    int events = 0, n = 1;
    for (int i = 0; n > 0 && i < rounds; i++)
        n = receive_batch(b, fn, ctx, &events);
    return n < 0 ? n : events;
}

static void keep(struct asym_births *b, const struct asym_birth *event)
{
    pthread_mutex_lock(&b->lock);
    if (b->n_kept == b->kept_capacity && b->n_kept < KEPT_MAX) {
        size_t capacity = b->kept_capacity ? b->kept_capacity * 2 : KEPT_QUIET;
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

static bool set_priority(pthread_t thread, int priority)
{
    const struct sched_param param = {.sched_priority = priority};
    const int policy = priority > 0 ? SCHED_FIFO : SCHED_OTHER;
    return pthread_setschedparam(thread, policy | SCHED_RESET_ON_FORK, &param) == 0 ||
           pthread_setschedparam(thread, policy, &param) == 0;
}

/*
 * What has been spent is taken off, and what has come in since is put in. Returns for how many ms to sleep. Events that wait
 * come in one batch, which is several times cheaper than a wakeup each.
 */
static int pace(struct asym_births *b, struct pace *p)
{
    const double rate = (double)b->limit / 1e6;
    const asym_usec now = read_clock(CLOCK_MONOTONIC), cpu = read_clock(CLOCK_THREAD_CPUTIME_ID);
    p->left = ASYM_MIN(p->left + rate * (double)(now - p->at), (double)SPEND_MOST) - (double)(cpu - p->cpu);
    p->at = now;
    p->cpu = cpu;
    const bool slow = p->is_slow ? p->left < SPEND_MOST / 2.0 : p->left < 0;
    if (slow != p->is_slow && b->realtime)
        set_priority(pthread_self(), slow ? 0 : 1);
    p->is_slow = slow;
    if (p->left >= 0)
        return 0;
    return (int)ASYM_MIN(1 - p->left / ASYM_MAX(rate, 1e-4) / 1000, (double)SLEEP_MOST / 1000);
}

static void *watch(void *arg)
{
    struct asym_births *b = arg;
    struct pollfd fds[] = {{.fd = b->stop_fd, .events = POLLIN}, {.fd = b->fd, .events = POLLIN}};
    struct pace p = {.left = SPEND_MOST, .at = read_clock(CLOCK_MONOTONIC)};
    for (;;) {
        const int sleep_ms = pace(b, &p);
        /* The real-time priority comes back when there is enough left, not with the next event, which would come too late. */
        const int wait_ms = p.is_slow ? (int)(SLEEP_MOST / 1000) : -1;
        if (poll(fds, sleep_ms > 0 ? 1 : ASYM_LENGTH(fds), sleep_ms > 0 ? sleep_ms : wait_ms) < 0 && errno != EINTR)
            break;
        if (fds[0].revents)
            return NULL;
        if (receive(b, on_event, b, ROUNDS) < 0)
            break;
    }
    pthread_mutex_lock(&b->lock);
    b->ended = true;
    pthread_mutex_unlock(&b->lock);
    return NULL;
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
    pthread_getcpuclockid(b->thread, &b->clock);
    /* Real-time, so that a child is repaired before it looks; not inherited, should the process ever fork. */
    b->realtime = set_priority(b->thread, 1);
    *ret_realtime = b->realtime;
    return 0;
}

void asym_births_limit(struct asym_births *b, double percent)
{
    b->limit = (unsigned)(percent * 1e4);
}

asym_usec asym_births_spent(const struct asym_births *b)
{
    return b->watching ? read_clock(b->clock) : 0;
}

int asym_births_drain(struct asym_births *b, void (*fn)(void *ctx, const struct asym_birth *event), void *ctx)
{
    if (!b->watching)
        return receive(b, fn, ctx, KEPT_MAX / BATCH);
    pthread_mutex_lock(&b->lock);
    struct asym_birth *events = b->kept;
    size_t n = b->n_kept, capacity = b->kept_capacity;
    bool lost = b->lost, ended = b->ended;
    b->kept = b->handed;
    b->kept_capacity = b->handed_capacity;
    b->n_kept = 0;
    b->lost = false;
    pthread_mutex_unlock(&b->lock);
    for (size_t i = 0; i < n; i++)
        fn(ctx, &events[i]);
    if (lost)
        report_lost(fn, ctx);
    if (capacity > KEPT_QUIET) {
        free(events);
        events = NULL;
        capacity = 0;
    }
    b->handed = events;
    b->handed_capacity = capacity;
    return ended ? -EIO : (int)n + lost;
}
