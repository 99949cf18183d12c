/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * In this test the test program acts as the kernel's proc connector: lib/linux/observe/process-events.c calls the functions
 * __wrap_... below (the linker's --wrap, tests/CMakeLists.txt). Its socket is one end of a pair, and the test writes datagrams
 * to the other end.
 */
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "linux/observe/process-events.h"
#include "support/test.h"
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCu

/* The most events that lib/linux/observe/process-events.c keeps for the next drain, and receives with one call. */
#define KEPT_MAX 65536
#define BATCH    64

/* The CPU time that the watching thread may spend at once, and that it saves in a sleep (us); its longest sleep (us). */
#define SPEND_MOST 20000
#define SAVINGS    1000
#define SLEEP_MOST 250000

#define START      1000000000ull /* us: the clock when a test begins */

/* struct cn_msg ends in a flexible array, which ISO C allows only at the end of a struct. */
struct message {
    struct cb_id id;
    uint32_t seq, ack;
    uint16_t len, flags;
};
_Static_assert(sizeof(struct message) == sizeof(struct cn_msg), "as the kernel has it");

struct datagram {
    struct nlmsghdr header;
    struct message message;
    struct proc_event event;
} __attribute__((packed));

/* The next results of the fake kernel. An error is an errno; 0: none. */
static struct {
    int fd; /* the kernel's end of the pair; -1: there is no socket */
    ino_t namespace;
    int socket, bind, send, status;
    bool silent;                      /* the kernel does not answer the subscription */
    bool busy;                        /* a process ends 50 ms after each begin of a wait */
    bool others_before;               /* answers to other subscribers come first */
    atomic_int receive, receive_then; /* errors of the next call and of the one after it */
    atomic_int priority;
    atomic_ullong now, cpu; /* us: the clock, and the CPU time of the watching thread */
    atomic_int paces;       /* how often the watching thread has read its CPU time: once before each sleep or batch */
    bool listens;
    atomic_bool skips_sleeps;    /* a sleep in debt moves the clock and the CPU time, and takes no time */
    atomic_int wakeup, sleeps;   /* us of CPU time that waking up costs; the number of sleeps */
    atomic_int least_sleep;      /* ms; 0: none */
    atomic_uint limit;           /* millionths of a CPU */
    atomic_llong most_overspent; /* us: the most CPU time beyond the limit at the begin of a sleep */
} kernel;

static struct datagram make(uint32_t what)
{
    struct datagram d = {.header = {.nlmsg_len = sizeof d, .nlmsg_type = NLMSG_DONE},
                         .message = {.id = {.idx = CN_IDX_PROC, .val = CN_VAL_PROC}, .len = sizeof d.event}};
    memcpy((char *)&d + offsetof(struct datagram, event) + offsetof(struct proc_event, what), &what, sizeof what);
    return d;
}

static int refuse(int error)
{
    errno = error;
    return error ? -1 : 0;
}

/* Whatever fails, the watching thread stops: tear_down hangs if it waits for a write of process-events.c. */
WRAPPED(ssize_t, write, int fd, const void *buf, size_t size)
{
    return fd == kernel.fd ? __real_write(fd, buf, size) : refuse(EIO);
}

static void put(const struct datagram *d)
{
    assert_int_equal(write(kernel.fd, d, sizeof *d), sizeof *d);
}

static void put_exit(int32_t pid, uint32_t sender)
{
    struct datagram d = make(PROC_EVENT_EXIT);
    struct proc_event e = d.event;
    e.event_data.exit.process_pid = pid;
    e.event_data.exit.process_tgid = pid;
    d.event = e;
    d.header.nlmsg_pid = sender; /* __wrap_recvmmsg returns it as the address */
    put(&d);
}

static void answer(uint32_t ack, int status)
{
    struct datagram d = make(PROC_EVENT_NONE);
    struct proc_event e = d.event;
    e.event_data.ack.err = (uint32_t)status;
    d.event = e;
    d.message.ack = ack;
    put(&d);
}

WRAPPED(int, socket, int domain, int type, int protocol)
{
    int ends[2];
    assert_true(domain == AF_NETLINK && protocol == NETLINK_CONNECTOR && type & SOCK_NONBLOCK && type & SOCK_CLOEXEC);
    if (refuse(kernel.socket) < 0)
        return -1;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    kernel.fd = ends[1];
    return ends[0];
}

WRAPPED(int, bind, int fd, const struct sockaddr *address, socklen_t size)
{
    struct sockaddr_nl nl;
    assert_int_equal(size, sizeof nl);
    memcpy(&nl, address, sizeof nl);
    assert_int_equal(nl.nl_groups, CN_IDX_PROC);
    return refuse(kernel.bind);
}

WRAPPED(ssize_t, send, int fd, const void *buf, size_t size, int flags)
{
    struct message message;
    enum proc_cn_mcast_op op;
    assert_int_equal(size, sizeof(struct nlmsghdr) + sizeof message + sizeof op);
    memcpy(&message, (const char *)buf + sizeof(struct nlmsghdr), sizeof message);
    memcpy(&op, (const char *)buf + size - sizeof op, sizeof op);
    if (refuse(kernel.send) < 0)
        return -1;
    kernel.listens = op == PROC_CN_MCAST_LISTEN;
    if (!kernel.listens || kernel.silent)
        return (ssize_t)size;
    if (kernel.others_before) {
        answer(message.ack + 2, EPERM);
        put_exit(77, 0);
    }
    answer(message.ack + 1, kernel.status);
    return (ssize_t)size;
}

WRAPPED(int, recvmmsg, int fd, struct mmsghdr *messages, unsigned n, int flags, struct timespec *timeout)
{
    struct nlmsghdr header;
    if (refuse(atomic_exchange(&kernel.receive, atomic_exchange(&kernel.receive_then, 0))) < 0)
        return -1;
    const int r = __real_recvmmsg(fd, messages, n, flags, timeout);
    for (int i = 0; i < r && messages[i].msg_hdr.msg_iovlen > 0; i++) {
        memcpy(&header, messages[i].msg_hdr.msg_iov->iov_base, sizeof header);
        const struct sockaddr_nl from = {.nl_family = AF_NETLINK, .nl_pid = header.nlmsg_pid};
        memcpy(messages[i].msg_hdr.msg_name, &from, sizeof from);
    }
    return r;
}

WRAPPED(int, stat, const char *path, struct stat *ret)
{
    assert_string_equal(path, "/proc/self/ns/pid");
    *ret = (struct stat){.st_ino = kernel.namespace};
    return 0;
}

WRAPPED(int, pthread_setschedparam, pthread_t thread, int policy, const struct sched_param *param)
{
    assert_true(policy & SCHED_RESET_ON_FORK); /* children do not inherit the priority */
    assert_int_equal((policy & ~SCHED_RESET_ON_FORK) == SCHED_FIFO, param->sched_priority > 0);
    kernel.priority = param->sched_priority;
    return 0;
}

WRAPPED(int, clock_gettime, clockid_t clock, struct timespec *ret)
{
    const unsigned long long t = clock == CLOCK_MONOTONIC ? kernel.now : kernel.cpu;
    kernel.paces += clock != CLOCK_MONOTONIC;
    *ret = (struct timespec){.tv_sec = (time_t)(t / 1000000), .tv_nsec = (long)(t % 1000000 * 1000)};
    return 0;
}

/* The watching thread sleeps in debt: it waits for one descriptor, which tells it to stop. */
WRAPPED(int, poll, struct pollfd *fds, nfds_t n, int ms)
{
    if (kernel.busy) {
        kernel.now += (unsigned long long)ASYM_MIN(ms, 50) * 1000;
        put_exit(77, 0);
    }
    if (!kernel.skips_sleeps || n != 1 || ms <= 0)
        return __real_poll(fds, n, ms);
    const int r = __real_poll(fds, n, 0);
    /* At the begin of a sleep nothing runs that the watching thread has not accounted for. */
    const long long earned = (long long)((kernel.now - START) * kernel.limit / 1000000);
    const long long overspent = (long long)kernel.cpu - earned;
    if (overspent > kernel.most_overspent)
        kernel.most_overspent = overspent;
    kernel.now += (unsigned long long)ms * 1000 + 60; /* a timer is late */
    kernel.cpu += (unsigned)kernel.wakeup;
    if (kernel.least_sleep == 0 || ms < kernel.least_sleep)
        kernel.least_sleep = ms;
    kernel.sleeps++;
    return r;
}

/* The events in their order: from the hook in the watching thread, and from drain. */
enum { RECEIVED_MAX = KEPT_MAX + 1024 };

struct received {
    struct asym_process_event events[RECEIVED_MAX];
    atomic_int n;
};

static struct received hooked, drained, peeked;
static struct asym_process_events *process_events;

static void note(void *ctx, const struct asym_process_event *event)
{
    struct received *received = ctx;
    received->events[received->n] = *event;
    received->n++; /* set after the event, as another thread reads it */
}

static int set_up(void **state)
{
    alarm(120); /* ends the test if a thread does not end */
    memset(&kernel, 0, sizeof kernel);
    kernel.namespace = INITIAL_PID_NAMESPACE;
    kernel.fd = -1;
    kernel.now = START;
    hooked.n = drained.n = 0;
    process_events = NULL;
    return 0;
}

static int tear_down(void **state)
{
    asym_process_events_close(process_events);
    process_events = NULL;
    if (kernel.fd >= 0)
        close(kernel.fd);
    kernel.fd = -1;
    return 0;
}

static void begin(void)
{
    assert_int_equal(asym_process_events_open(&process_events, NULL), 0);
    assert_true(kernel.listens);
}

static void watch(void)
{
    bool realtime = false;
    begin();
    assert_int_equal(asym_process_events_watch(process_events, note, &hooked, &realtime), 0);
    assert_true(realtime);
    assert_int_equal(kernel.priority, 1);
}

static int drain(void)
{
    return asym_process_events_drain(process_events, note, &drained);
}

static void wait_for(const atomic_int *value, int wanted)
{
    for (int i = 0; i < 10000 && *value != wanted; i++)
        usleep(1000);
    assert_int_equal(*value, wanted);
}

/* The watching thread reads the clock again, receives if it may, and has gone on after that. */
static void wait_for_a_pass(void)
{
    const int before = kernel.paces;
    for (int i = 0; i < 10000 && kernel.paces < before + 3; i++)
        usleep(1000);
    assert_true(kernel.paces >= before + 3);
}

static void assert_exits(const struct received *received, int first, int n)
{
    assert_int_equal(received->n, n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(received->events[i].kind, ASYM_PROCESS_EVENT_EXIT);
        assert_int_equal(received->events[i].pid, first + i);
    }
}

TEST_WITH(a_refusal_says_which_and_what_is_done_instead, set_up, tear_down)
{
    static const struct {
        int socket, bind, send, status;
        bool silent;
        int want;
        const char *part;
    } rows[] = {
        {.socket = EPROTONOSUPPORT, .want = -EPROTONOSUPPORT, .part = "CONFIG_PROC_EVENTS"},
        {.socket = EAFNOSUPPORT, .want = -EPERM, .part = "may not create netlink sockets"},
        {.socket = EMFILE, .want = -EMFILE, .part = "Too many open files"},
        {.bind = EPERM, .want = -EPERM, .part = "CAP_NET_ADMIN"},
        {.bind = ENOENT, .want = -EPROTONOSUPPORT, .part = "CONFIG_PROC_EVENTS"},
        {.send = ECONNREFUSED, .want = -EPERM, .part = "only in the initial network namespace"},
        {.send = EACCES, .want = -EPERM, .part = "CAP_NET_ADMIN"},
        {.status = EPERM, .want = -EPERM, .part = "CAP_NET_ADMIN"},
        {.silent = true, .want = -EPERM, .part = "only in the initial user namespace"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_error err = {""};
        kernel.socket = rows[i].socket;
        kernel.bind = rows[i].bind;
        kernel.send = rows[i].send;
        kernel.status = rows[i].status;
        kernel.silent = rows[i].silent;
        const int r = asym_process_events_open(&process_events, &err);
        if (r != rows[i].want || !strstr(err.text, rows[i].part) || !strstr(err.text, "asymd scans /proc instead"))
            fail_msg("row %zu: %d, '%s'", i, r, err.text);
        assert_null(process_events);
        if (kernel.fd >= 0)
            close(kernel.fd);
        kernel.fd = -1;
    }
}

/* A container of an ordinary user hears the events of the machine, and no answer. */
TEST_WITH(the_wait_for_the_answer_ends_while_events_come, set_up, tear_down)
{
    kernel.silent = kernel.busy = true;
    assert_int_equal(asym_process_events_open(&process_events, NULL), -EPERM);
    assert_in_range(kernel.now - START, 200000, 250000);
}

TEST_WITH(in_a_pid_namespace_nothing_is_opened, set_up, tear_down)
{
    struct asym_error err = {""};
    kernel.namespace = 4026532000u;
    assert_int_equal(asym_process_events_open(&process_events, &err), -EXDEV);
    assert_non_null(strstr(err.text, "PID namespace"));
    assert_int_equal(kernel.fd, -1);
}

TEST_WITH(the_answer_to_others_is_not_ours, set_up, tear_down)
{
    kernel.others_before = true;
    begin();
    asym_process_events_close(process_events);
    process_events = NULL;
    assert_false(kernel.listens);
}

/* These are more than one batch of 64. */
TEST_WITH(events_are_drained_in_order, set_up, tear_down)
{
    begin();
    assert_int_equal(drain(), 0);
    for (int i = 0; i < 150; i++)
        put_exit(100 + i, 0);
    assert_int_equal(drain(), 150);
    assert_exits(&drained, 100, 150);
    assert_int_equal(drain(), 0);
    assert_int_equal(asym_process_events_spent(process_events), 0);
}

TEST_WITH(what_is_not_the_kernels_is_passed_over, set_up, tear_down)
{
    begin();
    const struct datagram other = make(PROC_EVENT_UID);
    put_exit(100, 4711); /* another process sent this one */
    put(&other);
    assert_int_equal(write(kernel.fd, "rubbish", 7), 7);
    put_exit(200, 0);
    assert_int_equal(drain(), 1);
    assert_exits(&drained, 200, 1);
}

static void assert_lost(const struct received *received, int n)
{
    assert_int_equal(received->n, n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(received->events[i].kind, ASYM_PROCESS_EVENT_LOST);
        assert_int_equal(received->events[i].when, START);
    }
}

/* The rest of the buffer is older than the loss: asymd throws it away, and LOST comes again after the last of it. */
TEST_WITH(events_that_were_lost_are_reported, set_up, tear_down)
{
    begin();
    for (int i = 0; i < 150; i++)
        put_exit(100 + i, 0);
    kernel.receive = ENOBUFS;
    assert_int_equal(drain(), 2);
    assert_lost(&drained, 2);
    drained.n = 0;
    put_exit(300, 0);
    assert_int_equal(drain(), 1);
    assert_exits(&drained, 300, 1);
    kernel.receive = EIO;
    assert_int_equal(drain(), -EIO);
}

TEST_WITH(an_error_while_the_buffer_is_emptied_is_reported, set_up, tear_down)
{
    begin();
    kernel.receive = ENOBUFS;
    kernel.receive_then = EIO;
    assert_int_equal(drain(), -EIO);
    assert_lost(&drained, 1);
}

/* The kernel drops events again before the buffer is empty. */
TEST_WITH(a_second_loss_changes_nothing, set_up, tear_down)
{
    begin();
    put_exit(100, 0);
    kernel.receive = kernel.receive_then = ENOBUFS;
    assert_int_equal(drain(), 2);
    assert_lost(&drained, 2);
    assert_int_equal(drain(), 0);
}

/* The watching thread calls the hook at once, and keeps each event for drain. */
TEST_WITH(a_watched_event_is_reported_at_once_and_drained_later, set_up, tear_down)
{
    watch();
    for (int round = 0; round < 3; round++) {
        hooked.n = drained.n = peeked.n = 0;
        for (int i = 0; i < 100; i++)
            put_exit(1000 * round + 100 + i, 0);
        wait_for(&hooked.n, 100);
        assert_exits(&hooked, 1000 * round + 100, 100);
        /* A peek takes nothing from the drain, and comes to each once. */
        for (int i = 0; i < 10000 && peeked.n < 100; i++, usleep(1000))
            asym_process_events_peek(process_events, note, &peeked);
        asym_process_events_peek(process_events, note, &peeked);
        assert_exits(&peeked, 1000 * round + 100, 100);
        /* The thread keeps the last event after it has called the hook. */
        for (int i = 0; i < 10000 && drained.n < 100; i++, usleep(1000))
            assert_true(drain() >= 0);
        assert_exits(&drained, 1000 * round + 100, 100);
        assert_int_equal(drain(), 0);
    }
    kernel.cpu = 1234;
    assert_int_equal(asym_process_events_spent(process_events), 1234);
}

TEST_WITH(a_watch_ends_when_it_is_closed, set_up, tear_down)
{
    watch();
    asym_process_events_close(process_events);
    process_events = NULL;
    assert_false(kernel.listens);
}

TEST_WITH(a_watch_that_has_ended_by_itself_says_so, set_up, tear_down)
{
    watch();
    put_exit(100, 0);
    wait_for(&hooked.n, 1);
    kernel.receive = EIO;
    put_exit(101, 0);
    int r = 0;
    for (int i = 0; i < 10000 && r >= 0; i++) {
        r = drain();
        usleep(r >= 0 ? 1000 : 0);
    }
    assert_int_equal(r, -EIO);
    assert_int_equal(drain(), -EIO);
    assert_exits(&drained, 100, 1); /* earlier events are not lost */
}

/* The thread keeps a bounded number of events, and reports LOST when there are more. */
TEST_WITH(what_is_kept_is_bounded, set_up, tear_down)
{
    watch();
    for (int i = 0; i < KEPT_MAX + 100; i++) {
        struct timespec soon = {.tv_nsec = 100000};
        while (i - hooked.n > 100)
            nanosleep(&soon, NULL);
        put_exit(1 + i, 0);
    }
    wait_for(&hooked.n, KEPT_MAX + 100);
    put_exit(99, 0);
    wait_for(&hooked.n, KEPT_MAX + 101); /* all earlier events are kept now */
    assert_int_equal(drain(), KEPT_MAX + 1);
    assert_int_equal(drained.events[KEPT_MAX].kind, ASYM_PROCESS_EVENT_LOST);
    drained.n--;
    assert_exits(&drained, 1, KEPT_MAX);
    drained.n = 0;
    put_exit(98, 0);
    wait_for(&hooked.n, KEPT_MAX + 102);
    assert_int_equal(drain(), 1);
    assert_exits(&drained, 98, 1);
}

/*
 * After 100 ms of CPU time at 2 %, the thread owes 80 ms, which is 4 s of the limit. It receives nothing in debt, and has no
 * real-time priority until its bucket is half full again.
 */
TEST_WITH(a_watch_that_costs_too_much_loses_its_priority_and_gets_it_back, set_up, tear_down)
{
    watch();
    put_exit(100, 0);
    wait_for(&hooked.n, 1);
    kernel.cpu = 100000;
    put_exit(101, 0);
    wait_for(&hooked.n, 2);
    wait_for(&kernel.priority, 0);
    put_exit(102, 0);
    kernel.now += 3 * ASYM_SEC;
    wait_for_a_pass();
    assert_int_equal(hooked.n, 2);
    kernel.now += ASYM_SEC + ASYM_SEC / 10;
    wait_for(&hooked.n, 3);
    assert_int_equal(kernel.priority, 0);
    kernel.now += 10 * ASYM_SEC;
    wait_for(&kernel.priority, 1);
    asym_process_events_limit(process_events, 50);
    kernel.cpu += 15000; /* the bucket holds 20 ms */
    put_exit(103, 0);
    wait_for(&hooked.n, 4);
    assert_int_equal(kernel.priority, 1);
}

/* The thread sleeps until it has saved 1 ms. At 2 % that takes 50 ms. To wake up may cost a part of it, or more. */
TEST_WITH(the_cost_of_waking_up_does_not_keep_a_watch_asleep, set_up, tear_down)
{
    watch();
    put_exit(100, 0);
    wait_for(&hooked.n, 1);
    kernel.cpu = 100000; /* it owes 80 ms */
    put_exit(101, 0);
    wait_for(&hooked.n, 2);
    put_exit(102, 0);
    wait_for_a_pass();
    assert_int_equal(hooked.n, 2);
    kernel.now += 81 * ASYM_MSEC * 50 + ASYM_MSEC;
    kernel.cpu += 500;
    wait_for(&hooked.n, 3);
    kernel.cpu += 20000;
    put_exit(103, 0);
    wait_for(&hooked.n, 4);
    put_exit(104, 0);
    wait_for_a_pass();
    assert_int_equal(hooked.n, 4);
    /* The longest sleep is 250 ms, and earns 5 ms. */
    for (int i = 0; i < 20 && hooked.n < 5; i++) {
        const int before = kernel.paces;
        kernel.cpu += 6000;
        kernel.now += 250 * ASYM_MSEC;
        while (kernel.paces == before)
            usleep(1000);
    }
    wait_for(&hooked.n, 5);
}

/* Begin again, with a thread that has received one event and may use so many percent of a CPU. Its sleeps take no time. */
static void watch_with(double limit, int wakeup, void (*hook)(void *ctx, const struct asym_process_event *event))
{
    bool realtime;
    tear_down(NULL);
    set_up(NULL);
    begin();
    assert_int_equal(asym_process_events_watch(process_events, hook, &hooked, &realtime), 0);
    asym_process_events_limit(process_events, limit);
    put_exit(100, 0);
    wait_for(&hooked.n, 1);
    kernel.limit = (unsigned)(limit * 1e4);
    kernel.wakeup = wakeup;
    kernel.skips_sleeps = true;
}

/* The limit is twice asymd.cpu_budget (0.01 to 100). Half of what a sleep earns counts, whatever it costs to wake up. */
static void assert_recovers(double limit, int wakeup)
{
    watch_with(limit, wakeup, note);
    kernel.cpu += SPEND_MOST + 5000;
    const double most = 2 * (5000 + SAVINGS) / (limit / 100) + 2 * SLEEP_MOST;
    const unsigned long long begin = kernel.now, end = begin + (unsigned long long)most;
    put_exit(101, 0);
    wait_for(&hooked.n, 2);
    put_exit(102, 0);
    while (hooked.n < 3 && kernel.now < end)
        usleep(1000);
    if (hooked.n < 3 || kernel.now == begin)
        fail_msg("limit %g %%, wakeup %d us: %d events after %.1f s", limit, wakeup, (int)hooked.n,
                 (double)(kernel.now - begin) / 1e6);
}

TEST_WITH(after_a_storm_the_watch_goes_on_at_every_limit, set_up, tear_down)
{
    static const double limits[] = {200, 2, 0.2, 0.02};
    static const int wakeups[] = {23, 300, 1100, 2300};
    for (size_t i = 0; i < ASYM_LENGTH(limits) * ASYM_LENGTH(wakeups); i++)
        assert_recovers(limits[i / ASYM_LENGTH(wakeups)], wakeups[i % ASYM_LENGTH(wakeups)]);
}

/*
 * A debt that takes a little longer than the longest sleep must leave no sleep of 1 ms: of a wakeup from it only what it earns
 * counts, so that the rest would go beyond the limit.
 */
TEST_WITH(no_sleep_is_too_short_for_its_wakeup, set_up, tear_down)
{
    for (unsigned debt = 4000; debt <= 4100; debt += 10) {
        watch_with(2, 300, note);
        kernel.cpu += SPEND_MOST + debt;
        put_exit(101, 0);
        wait_for(&hooked.n, 2);
        put_exit(102, 0);
        wait_for(&hooked.n, 3);
        assert_true(kernel.least_sleep >= SAVINGS / 20); /* what a sleep saves, at 2 % of a CPU */
    }
}

static atomic_int event_us; /* what an event costs in spend() */

static void spend(void *ctx, const struct asym_process_event *event)
{
    struct received *received = ctx;
    kernel.cpu += (unsigned)event_us;
    received->n++;
}

/* Send as many events as the thread receives, until it has slept so often. */
static void storm(int sleeps)
{
    const int most = 200000; /* a thread without a limit does not sleep */
    for (int sent = 1; kernel.sleeps < sleeps && sent < most; sent++) {
        const struct timespec soon = {.tv_nsec = 50000};
        while (sent - hooked.n >= 2 * BATCH && kernel.sleeps < sleeps)
            nanosleep(&soon, NULL);
        put_exit(100 + sent, 0);
    }
    assert_true(kernel.sleeps >= sleeps);
}

/* However much an event or a wakeup costs: the limit, what the thread may spend at once, and one batch. */
TEST_WITH(what_a_watch_costs_is_bounded, set_up, tear_down)
{
    static const struct {
        double limit;
        int event, wakeup;
        bool is_dear; /* a wakeup costs more than half of what the shortest sleep earns: these are on top */
    } rows[] = {
        {.limit = 200, .event = 20, .wakeup = 23},
        {.limit = 2, .event = 20, .wakeup = 23},
        {.limit = 2, .event = 200, .wakeup = 23},
        {.limit = 2, .event = 200, .wakeup = 300},
        {.limit = 1, .event = 2, .wakeup = 100},
        {.limit = 0.02, .event = 20, .wakeup = 23},
        {.limit = 2, .event = 20, .wakeup = 1100, .is_dear = true},
        {.limit = 0.02, .event = 20, .wakeup = 300, .is_dear = true},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        event_us = rows[i].event;
        watch_with(rows[i].limit, rows[i].wakeup, spend);
        storm(200);
        asym_process_events_close(process_events);
        process_events = NULL;
        const long long dear = rows[i].is_dear ? (long long)kernel.sleeps * rows[i].wakeup : 0;
        const long long most = SPEND_MOST + BATCH * rows[i].event + dear;
        const double earned = (double)(kernel.now - START) * rows[i].limit / 100;
        /* It uses what it may, so that the bound says something. */
        if (kernel.most_overspent > most || kernel.most_overspent <= 0 || (double)kernel.cpu < earned / 2)
            fail_msg("row %zu: %lld us beyond the limit, of %lld; %lld of %.0f us used", i,
                     (long long)kernel.most_overspent, most, (long long)kernel.cpu, earned);
    }
}

/* Well-formed and malformed datagrams are parsed. */
#define BEFORE (sizeof(struct nlmsghdr) + sizeof(struct cn_msg))

static struct datagram make_event(const struct proc_event *e)
{
    struct datagram d = make(PROC_EVENT_NONE);
    memcpy((char *)&d + BEFORE, e, sizeof *e);
    return d;
}

static struct proc_event fork_event(int child_pid, int child_tgid)
{
    struct proc_event e;
    memset(&e, 0, sizeof e);
    e.what = PROC_EVENT_FORK;
    e.timestamp_ns = UINT64_C(12345678901);
    e.event_data.fork.parent_pid = 11;
    e.event_data.fork.parent_tgid = 10;
    e.event_data.fork.child_pid = child_pid;
    e.event_data.fork.child_tgid = child_tgid;
    return e;
}

/* The buffer has exactly that size, so that a sanitiser detects a read past its end. */
static int parse(const struct datagram *d, size_t len, struct asym_process_event *ret)
{
    ASYM_AUTO_FREE char *exact = malloc(len ? len : 1);
    assert_non_null(exact);
    memcpy(exact, d, len);
    int r = asym_process_events_parse(exact, len, ret);
    return r;
}

/* That of a process names its creator, that of a thread its process only. */
TEST(fork_events_are_of_processes_or_of_threads)
{
    static const struct {
        int child;
        enum asym_process_event_kind kind;
        int parent_pid, parent_tgid;
    } rows[] = {{20, ASYM_PROCESS_EVENT_FORK, 11, 10}, {21, ASYM_PROCESS_EVENT_CLONE, 0, 20}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct proc_event e = fork_event(rows[i].child, 20);
        const struct datagram d = make_event(&e);
        struct asym_process_event b;
        assert_int_equal(parse(&d, sizeof d, &b), 0);
        assert_int_equal(b.kind, rows[i].kind);
        assert_true(b.pid == rows[i].child && b.tgid == 20 && b.when == 12345678);
        assert_true(b.parent_pid == rows[i].parent_pid && b.parent_tgid == rows[i].parent_tgid);
    }
}

TEST(exec_and_exit)
{
    struct proc_event e = {.what = PROC_EVENT_EXEC};
    struct asym_process_event b;
    e.event_data.exec.process_pid = e.event_data.exec.process_tgid = 30;
    struct datagram d = make_event(&e);
    assert_int_equal(parse(&d, sizeof d, &b), 0);
    assert_true(b.kind == ASYM_PROCESS_EVENT_EXEC && b.pid == 30 && b.tgid == 30 && b.parent_pid == 0);
    memset(&e, 0, sizeof e);
    e.what = PROC_EVENT_EXIT;
    e.event_data.exit.process_pid = 31;
    e.event_data.exit.process_tgid = 30;
    d = make_event(&e);
    assert_int_equal(parse(&d, sizeof d, &b), 0);
    assert_true(b.kind == ASYM_PROCESS_EVENT_EXIT && b.pid == 31 && b.tgid == 30);
    /* Kernels before 4.18 send the event without the parents. */
    d.message.len = (uint16_t)(offsetof(struct proc_event, event_data) + offsetof(struct exit_proc_event, parent_pid));
    d.header.nlmsg_len = (uint32_t)(BEFORE + d.message.len);
    assert_int_equal(parse(&d, d.header.nlmsg_len, &b), 0);
    assert_true(b.pid == 31 && b.tgid == 30);
}

TEST(other_events_are_passed_over)
{
    static const unsigned others[] = {PROC_EVENT_NONE, PROC_EVENT_UID, PROC_EVENT_GID, PROC_EVENT_SID,
                                      PROC_EVENT_COMM, 0x40000000,     UINT32_MAX};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct proc_event e = fork_event(20, 20);
        struct asym_process_event b = {.pid = -5};
        memcpy(&e, &others[i], sizeof others[i]);
        const struct datagram d = make_event(&e);
        assert_int_equal(parse(&d, sizeof d, &b), -ENOMSG);
        assert_int_equal(b.pid, -5);
    }
}

TEST(every_length_that_is_too_short_is_refused)
{
    struct proc_event e = fork_event(20, 20);
    const size_t needed = BEFORE + offsetof(struct proc_event, event_data) + sizeof e.event_data.fork;
    for (size_t len = 0; len < needed; len++) {
        struct datagram d = make_event(&e);
        struct asym_process_event b = {.pid = -5};
        /* The datagram is shorter than its headers say. */
        assert_int_equal(parse(&d, len, &b), -EINVAL);
        /* The netlink header has a shorter length. */
        d.header.nlmsg_len = (uint32_t)len;
        assert_int_equal(parse(&d, sizeof d, &b), -EINVAL);
        /* The connector header has a shorter length. */
        d = make_event(&e);
        if (len >= BEFORE) {
            d.message.len = (uint16_t)(len - BEFORE);
            assert_int_equal(parse(&d, sizeof d, &b), -EINVAL);
        }
        assert_int_equal(b.pid, -5);
    }
}

TEST(headers_that_lie_or_are_of_another_connector_are_refused)
{
    struct proc_event e = fork_event(20, 20);
    struct asym_process_event b;
    for (int what = 0; what < 4; what++) {
        struct datagram d = make_event(&e);
        d.message.len = what == 0 ? UINT16_MAX : d.message.len;
        d.header.nlmsg_len = what == 1 ? UINT32_MAX : d.header.nlmsg_len;
        d.message.id.idx += what == 2;
        d.message.id.val += what == 3;
        assert_int_equal(parse(&d, sizeof d, &b), -EINVAL);
    }
}

TEST(numbers_that_are_no_threads_are_refused)
{
    static const int bad[][2] = {{0, 20}, {20, 0}, {-1, -1}, {INT32_MIN, 5}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct proc_event e = fork_event(bad[i][0], bad[i][1]);
        const struct datagram d = make_event(&e);
        struct asym_process_event b;
        assert_int_equal(parse(&d, sizeof d, &b), -EINVAL);
    }
}

TEST(an_answer_is_known_by_what_was_asked)
{
    struct proc_event e = {.what = PROC_EVENT_NONE};
    int status = -1;
    e.event_data.ack.err = EPERM;
    struct datagram d = make_event(&e);
    d.message.ack = 78;
    assert_int_equal(asym_process_events_parse_answer(&d, sizeof d, 76, &status), -ENOMSG);
    assert_int_equal(asym_process_events_parse_answer(&d, 20, 77, &status), -EINVAL);
    assert_int_equal(status, -1);
    assert_int_equal(asym_process_events_parse_answer(&d, sizeof d, 77, &status), 0);
    assert_int_equal(status, EPERM);
    e = fork_event(20, 20);
    d = make_event(&e);
    d.message.ack = 78;
    assert_int_equal(asym_process_events_parse_answer(&d, sizeof d, 77, &status), -ENOMSG);
}

TEST_MAIN
