/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/observe/process-events.h"

#include <errno.h>
#include <fcntl.h>
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/macro.h"
#include "base/token-bucket.h"

/* The default buffer holds 256 events. A build forks more often in one interval. */
#define SOCKET_BUFFER (8 << 20)

/* Inode of the initial PID namespace, fixed by the kernel (PROC_PID_INIT_INO). */
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCu

/* The most events kept for the next drain: a machine that only forks takes some seconds for so many. */
#define KEPT_MAX 65536

/* A quiet machine needs this many. A larger array is freed after a burst. */
#define KEPT_QUIET 1024

/* Datagrams per call. One has 80 bytes; no event that asymd uses is longer than SLOT. */
#define BATCH 64
#define SLOT  128

/* Datagrams per call when they are thrown away: it copies nothing. */
#define DISCARD 512

#define STACK   (256 * 1024) /* untouched pages take no memory */

/* The longest wait for the answer to the subscription. The kernel answers before send returns. */
#define ANSWER_WAIT (200 * ASYM_MSEC)

/*
 * The CPU time that the watching thread may spend at once before it has to sleep, what it saves in a sleep, and the longest
 * sleep. Savings for many events at once cost less than a wakeup for a few.
 */
#define SPEND_MOST (20 * ASYM_MSEC)
#define SAVINGS    (1 * ASYM_MSEC)
#define SLEEP_MOST (250 * ASYM_MSEC)

/* The CPU time of the watching thread. Only that thread uses it. */
struct pace {
    struct asym_token_bucket bucket; /* in us of CPU time; while it is overdrawn, the thread sleeps */
    asym_usec cpu;                   /* used so far, and charged */
    bool is_slow;                    /* without real-time priority */
    bool sleeps;                     /* in debt: it has just slept */
};

struct asym_process_events {
    int fd;
    int stop[2]; /* a pipe: the watching thread stops when its other end is closed, which cannot fail */
    bool watching;
    atomic_bool realtime;
    atomic_uint limit; /* CPU time that the watching thread may use, in millionths of a CPU */
    clockid_t clock;   /* of the watching thread */
    pthread_t thread;
    void (*hook)(void *ctx, const struct asym_process_event *event);
    void *ctx;
    /* The watching thread keeps events here for the next drain. */
    pthread_mutex_t lock;
    struct asym_process_event *kept, *handed;
    size_t n_kept, n_peeked, kept_capacity, handed_capacity;
    bool lost, ended; /* ended: the watching thread ended because of an error */
    /* Used only by the one reader of the socket. */
    bool discards; /* throws away what is left in the socket's buffer */
    _Alignas(struct nlmsghdr) char slots[BATCH][SLOT];
};

/* Unpack both headers and an event. Other kernel versions may send a shorter or a longer event. 0; -EINVAL. */
static int unwrap(const char *datagram, size_t len, struct cn_msg *ret_message, struct proc_event *ret)
{
    struct nlmsghdr header;
    struct proc_event e = {0};
    const size_t before = sizeof header + sizeof *ret_message;
    if (len < before)
        return -EINVAL;
    memcpy(&header, datagram, sizeof header);
    memcpy(ret_message, datagram + sizeof header, sizeof *ret_message);
    if (header.nlmsg_len < before || header.nlmsg_len > len || ret_message->id.idx != CN_IDX_PROC ||
        ret_message->id.val != CN_VAL_PROC || ret_message->len > header.nlmsg_len - before ||
        ret_message->len < offsetof(struct proc_event, event_data))
        return -EINVAL;
    memcpy(&e, datagram + before, ret_message->len < sizeof e ? ret_message->len : sizeof e);
    *ret = e;
    return 0;
}

static int translate(const struct proc_event *e, size_t len, struct asym_process_event *b)
{
    size_t needed = 0;
    switch (e->what) {
    case PROC_EVENT_FORK:
        needed = sizeof e->event_data.fork;
        b->kind = e->event_data.fork.child_pid == e->event_data.fork.child_tgid ? ASYM_PROCESS_EVENT_FORK
                                                                                : ASYM_PROCESS_EVENT_CLONE;
        b->pid = e->event_data.fork.child_pid;
        b->tgid = e->event_data.fork.child_tgid;
        /* For a new thread, the kernel reports the parent of its process, not the thread that created it. */
        b->parent_pid = b->kind == ASYM_PROCESS_EVENT_FORK ? e->event_data.fork.parent_pid : 0;
        b->parent_tgid = b->kind == ASYM_PROCESS_EVENT_FORK ? e->event_data.fork.parent_tgid : b->tgid;
        break;
    case PROC_EVENT_EXEC:
        needed = sizeof e->event_data.exec;
        b->kind = ASYM_PROCESS_EVENT_EXEC;
        b->pid = e->event_data.exec.process_pid;
        b->tgid = e->event_data.exec.process_tgid;
        break;
    case PROC_EVENT_EXIT:
        needed = 2 * sizeof e->event_data.exit.process_pid; /* Linux 4.18 added the fields of parents */
        b->kind = ASYM_PROCESS_EVENT_EXIT;
        b->pid = e->event_data.exit.process_pid;
        b->tgid = e->event_data.exit.process_tgid;
        break;
    default:
        return -ENOMSG;
    }
    return len < offsetof(struct proc_event, event_data) + needed || b->pid <= 0 || b->tgid <= 0 ? -EINVAL : 0;
}

int asym_process_events_parse(const void *datagram, size_t len, struct asym_process_event *ret)
{
    struct cn_msg message;
    struct proc_event e;
    int r = unwrap(datagram, len, &message, &e);
    if (r < 0)
        return r;
    struct asym_process_event b = {.when = e.timestamp_ns / 1000};
    r = translate(&e, message.len, &b);
    if (r == 0)
        *ret = b;
    return r;
}

int asym_process_events_parse_answer(const void *datagram, size_t len, uint32_t asked, int *ret_status)
{
    struct cn_msg message;
    struct proc_event e;
    int r = unwrap(datagram, len, &message, &e);
    if (r < 0)
        return r;
    if (e.what != PROC_EVENT_NONE || message.ack != asked + 1)
        return -ENOMSG;
    *ret_status = (int)e.event_data.ack.err;
    return 0;
}

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
 * The kernel answers every subscription with an event to all subscribers. It does not answer a process outside of the initial
 * user or PID namespace.
 */
static int await_answer(struct asym_process_events *b, uint32_t asked)
{
    struct pollfd fd = {.fd = b->fd, .events = POLLIN};
    const asym_usec end = asym_clock_now() + ANSWER_WAIT;
    for (int tries = 0; tries < KEPT_MAX; tries++) {
        char buf[SLOT];
        int status;
        ssize_t len = recv(b->fd, buf, sizeof buf, 0);
        if (len < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
            return -errno;
        /* The events of others go on meanwhile. */
        const asym_usec now = asym_clock_now();
        if (len < 0 && errno == EAGAIN && (now >= end || poll(&fd, 1, (int)((end - now) / ASYM_MSEC) + 1) == 0))
            return -ENOMSG;
        if (len >= 0 && asym_process_events_parse_answer(buf, (size_t)len, asked, &status) == 0)
            return -status;
    }
    return -ENOMSG;
}

static int join_group(struct asym_process_events *b)
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

/* The meaning of each error of the subscription. */
static const struct {
    int said, means;
    const char *text;
} refusals[] = {
    {-EPERM, -EPERM, "the proc connector needs CAP_NET_ADMIN"},
    {-EACCES, -EPERM, "the proc connector needs CAP_NET_ADMIN"},
    {-ENOMSG, -EPERM, "the proc connector answers only in the initial user namespace"},
    {-EPROTONOSUPPORT, -EPROTONOSUPPORT, "this kernel has no proc connector (CONFIG_PROC_EVENTS)"},
    {-ECONNREFUSED, -EPERM, "the proc connector answers only in the initial network namespace"},
    {-ENOENT, -EPROTONOSUPPORT, "this kernel has no proc connector (CONFIG_PROC_EVENTS)"},
    {-EAFNOSUPPORT, -EPERM, "this process may not create netlink sockets"},
};

static int open_socket(struct asym_process_events *b, struct asym_error *err)
{
    if (!in_initial_namespace())
        return asym_fail(err, -EXDEV,
                         "in a PID namespace the proc connector's PIDs do not match: asymd scans /proc instead");
    int r = join_group(b);
    for (size_t i = 0; r < 0 && i < ASYM_LENGTH(refusals); i++)
        if (refusals[i].said == r)
            return asym_fail(err, refusals[i].means, "%s: asymd scans /proc instead", refusals[i].text);
    return r < 0 ? asym_fail(err, r, "the proc connector: %s; asymd scans /proc instead", strerror(-r)) : 0;
}

int asym_process_events_open(struct asym_process_events **ret_events, struct asym_error *err)
{
    struct asym_process_events *b = calloc(1, sizeof *b);
    if (!b)
        return asym_fail(err, -ENOMEM, "no memory");
    b->fd = b->stop[0] = b->stop[1] = -1;
    b->limit = 20000;
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&b->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    int r = open_socket(b, err);
    if (r < 0) {
        asym_process_events_close(b);
        return r;
    }
    *ret_events = b;
    return 0;
}

void asym_process_events_close(struct asym_process_events *b)
{
    if (!b)
        return;
    if (b->watching) {
        asym_close_p(&b->stop[1]);
        b->stop[1] = -1;
        pthread_join(b->thread, NULL);
    }
    if (b->fd >= 0) {
        subscribe(b->fd, PROC_CN_MCAST_IGNORE, 0);
        close(b->fd);
    }
    asym_close_p(&b->stop[0]);
    asym_close_p(&b->stop[1]);
    pthread_mutex_destroy(&b->lock);
    free(b->kept);
    free(b->handed);
    free(b);
}

static void report_lost(void (*fn)(void *, const struct asym_process_event *), void *ctx)
{
    fn(ctx, &(struct asym_process_event){.kind = ASYM_PROCESS_EVENT_LOST, .when = asym_clock_now()});
}

/*
 * Throw away one batch. Returns and reports as receive_batch does.
 *
 * After a loss, the kernel drops all events until the buffer is empty. At a limit of 1 %, the watching thread would need
 * seconds for the old events of a full buffer, and lose all new ones meanwhile. LOST has /proc scanned in any case.
 */
static int discard_batch(struct asym_process_events *b, void (*fn)(void *, const struct asym_process_event *),
                         void *ctx, int *events)
{
    struct mmsghdr messages[DISCARD] = {0};
    int n = recvmmsg(b->fd, messages, DISCARD, MSG_DONTWAIT, NULL);
    if (n < 0 && (errno == ENOBUFS || errno == EINTR))
        return 1;
    if (n < 0 && errno != EAGAIN)
        return -errno;
    if (n == DISCARD)
        return n;
    b->discards = false;
    report_lost(fn, ctx);
    (*events)++;
    return ASYM_MAX(n, 0);
}

/*
 * Receive one batch. Returns the number of datagrams, 0 when there are none; -errno. Adds to *events the number of calls of
 * fn.
 */
static int receive_batch(struct asym_process_events *b, void (*fn)(void *, const struct asym_process_event *),
                         void *ctx, int *events)
{
    if (b->discards)
        return discard_batch(b, fn, ctx, events);
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
        b->discards = true;
        return 1;
    }
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    for (int i = 0; i < n; i++) {
        struct asym_process_event event;
        /* Any process may send to a netlink socket. The kernel's address is 0. */
        if (from[i].nl_pid != 0 || asym_process_events_parse(b->slots[i], messages[i].msg_len, &event) < 0)
            continue;
        fn(ctx, &event);
        (*events)++;
    }
    return n;
}

/* Receive at most rounds batches. Returns the number of events; -errno. */
static int receive(struct asym_process_events *b, void (*fn)(void *, const struct asym_process_event *), void *ctx,
                   int rounds)
{
    int events = 0, n = 1;
    for (int i = 0; n > 0 && i < rounds; i++)
        n = receive_batch(b, fn, ctx, &events);
    return n < 0 ? n : events;
}

static void keep(struct asym_process_events *b, const struct asym_process_event *event)
{
    pthread_mutex_lock(&b->lock);
    if (b->n_kept < KEPT_MAX)
        (void)asym_reserve(&b->kept, ASYM_MAX(b->n_kept + 1, (size_t)KEPT_QUIET), &b->kept_capacity, sizeof *b->kept);
    if (b->n_kept < b->kept_capacity && event->kind != ASYM_PROCESS_EVENT_LOST)
        b->kept[b->n_kept++] = *event;
    else
        b->lost = true;
    pthread_mutex_unlock(&b->lock);
}

static void on_event(void *ctx, const struct asym_process_event *event)
{
    struct asym_process_events *b = ctx;
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
 * Charge the CPU time used. Returns for how many ms to sleep before the next batch; 0: go on. The bucket is checked after each
 * batch, so its debt is at most the cost of one batch, however slow the CPU or the hook is.
 */
static int pace(struct asym_process_events *b, struct pace *p)
{
    const asym_usec now = asym_clock_now(), cpu = asym_clock_thread_cpu();
    p->bucket.rate = (double)b->limit / 1e6;
    const double before = p->bucket.tokens;
    asym_token_bucket_fill(&p->bucket, now);
    const double earned = p->bucket.tokens - before, used = (double)(cpu - p->cpu);
    /* A wake-up may cost more than the sleep before it has earned. It pays half of that at most, or the sleep would never end. */
    asym_token_bucket_charge(&p->bucket, p->sleeps ? ASYM_MIN(used, earned / 2) : used, now);
    p->cpu = cpu;
    const bool slow = p->is_slow ? p->bucket.tokens < SPEND_MOST / 2.0 : p->bucket.tokens < 0;
    if (slow != p->is_slow && b->realtime)
        set_priority(pthread_self(), slow ? 0 : 1);
    p->is_slow = slow;
    p->sleeps = p->bucket.is_overdrawn;
    if (!p->sleeps)
        return 0;
    const asym_usec due = ASYM_MSEC + asym_token_bucket_due(&p->bucket) - now;
    /* No short sleep is left for the end: to wake up from it would cost more than it earns. */
    return (int)((due > SLEEP_MOST ? ASYM_MIN(due / 2, SLEEP_MOST) : due) / ASYM_MSEC);
}

/* Wait for the end of the savings (sleep_ms > 0), or for an event. Returns 0; -ECANCELED: stop; -errno. */
static int await_events(const struct asym_process_events *b, const struct pace *p, int sleep_ms)
{
    struct pollfd fds[] = {{.fd = b->stop[0]}, {.fd = b->fd, .events = POLLIN}};
    /* The thread takes its real-time priority back as soon as enough is left: the next event would be too late for that. */
    const int wait_ms = p->is_slow ? (int)(SLEEP_MOST / 1000) : -1;
    if (poll(fds, sleep_ms > 0 ? 1 : ASYM_LENGTH(fds), sleep_ms > 0 ? sleep_ms : wait_ms) < 0 && errno != EINTR)
        return -errno;
    return fds[0].revents ? -ECANCELED : 0;
}

static void *watch(void *arg)
{
    struct asym_process_events *b = arg;
    struct pace p = {.bucket = asym_token_bucket_full(0, SPEND_MOST, asym_clock_now())};
    int r = 0;
    p.bucket.resume = SAVINGS;
    while (r >= 0) {
        const int sleep_ms = pace(b, &p);
        r = await_events(b, &p, sleep_ms);
        if (r == -ECANCELED)
            return NULL;
        if (r == 0 && sleep_ms == 0)
            r = receive(b, on_event, b, 1);
    }
    pthread_mutex_lock(&b->lock);
    b->ended = true;
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

int asym_process_events_watch(struct asym_process_events *b,
                              void (*hook)(void *ctx, const struct asym_process_event *event), void *ctx,
                              bool *ret_realtime)
{
    pthread_attr_t attr;
    sigset_t all, old;
    if (pipe2(b->stop, O_CLOEXEC) < 0)
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
    /*
     * With real-time priority, asymd repairs the affinity of a child before the child reads it. The priority is reset on fork.
     */
    b->realtime = set_priority(b->thread, 1);
    *ret_realtime = b->realtime;
    return 0;
}

void asym_process_events_limit(struct asym_process_events *b, double percent)
{
    b->limit = (unsigned)(percent * 1e4);
}

asym_usec asym_process_events_spent(const struct asym_process_events *b)
{
    return b->watching ? asym_clock_read(b->clock) : 0;
}

void asym_process_events_peek(struct asym_process_events *b,
                              void (*fn)(void *ctx, const struct asym_process_event *event), void *ctx)
{
    pthread_mutex_lock(&b->lock);
    while (b->n_peeked < b->n_kept)
        fn(ctx, &b->kept[b->n_peeked++]);
    pthread_mutex_unlock(&b->lock);
}

int asym_process_events_drain(struct asym_process_events *b,
                              void (*fn)(void *ctx, const struct asym_process_event *event), void *ctx)
{
    if (!b->watching)
        return receive(b, fn, ctx, KEPT_MAX / BATCH);
    pthread_mutex_lock(&b->lock);
    struct asym_process_event *events = b->kept;
    size_t n = b->n_kept, capacity = b->kept_capacity;
    bool lost = b->lost, ended = b->ended;
    b->kept = b->handed;
    b->kept_capacity = b->handed_capacity;
    b->n_kept = b->n_peeked = 0;
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
