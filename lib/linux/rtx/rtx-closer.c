/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/rtx/rtx-closer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "linux/rtx/rtx-orders.h"

_Static_assert(ASYM_RTXD_MAX_DOOMED - ASYM_RTXD_DOOMED_FULL >= 4 * ASYM_RTXD_MAX_CONNECTIONS,
               "room for all that may end");
/*
 * Worst case: all programs of root end at once, with two references to each eventfd and the connections. Connections whose page
 * is unread may add a duplicate: at most so many of one user.
 */
#define MAX_EMPTIED (ASYM_RTXD_MAX_UNREAD_OF_USER + ASYM_RTXD_MAX_UNANSWERED_OF_USER - 1)
_Static_assert(ASYM_RTXD_STOCK > 3 * ASYM_RTXD_MAX_CONNECTIONS + MAX_EMPTIED, "no user is refused for leaving");
/* Descriptors in one message: SCM_MAX_FD of the kernel. */
#define FILES_IN_MESSAGE 253

int asym_rtxd_closers_init(struct asym_rtxd_closers *c)
{
    void *own = mmap(NULL, sizeof *c->own, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (own == MAP_FAILED)
        return -errno;
    c->own = own;
    return 0;
}

void asym_rtxd_closers_done(struct asym_rtxd_closers *c)
{
    munmap((void *)(uintptr_t)c->own, sizeof *c->own);
    c->own = NULL;
}

static struct asym_rtxd_account *find(struct asym_rtxd_closers *c, uid_t uid)
{
    for (size_t i = 0; i < c->n_accounts; i++)
        if (c->accounts[i].uid == uid)
            return &c->accounts[i];
    return NULL;
}

static struct asym_rtxd_account *open_account(struct asym_rtxd_closers *c, uid_t uid)
{
    struct asym_rtxd_account *account = find(c, uid);
    if (account)
        return account;
    c->shared.uid = ASYM_RTXD_UNKNOWN_USER;
    if (uid == ASYM_RTXD_UNKNOWN_USER || c->n_accounts == ASYM_RTXD_MAX_ACCOUNTS)
        return &c->shared;
    account = &c->accounts[c->n_accounts++];
    *account = (struct asym_rtxd_account){.uid = uid};
    return account;
}

/* Returns the index of a free place, plus 1. It prefers used places, so that unused ones take no memory. */
static size_t new_place(struct asym_rtxd_closers *c)
{
    /* The exit of this process closes all its descriptors. */
    if (c->n_doomed == ASYM_RTXD_MAX_DOOMED)
        _exit(1);
    c->n_doomed++;
    const size_t place = c->first_free;
    if (place == 0)
        return ++c->n_touched;
    c->first_free = c->doomed[place - 1].next;
    return place;
}

static void enqueue(struct asym_rtxd_closers *c, struct asym_rtxd_doomed doomed, uid_t uid)
{
    if (doomed.fd < 0)
        return;
    struct asym_rtxd_account *account = open_account(c, uid);
    const size_t place = new_place(c);
    c->doomed[place - 1].of = doomed;
    c->doomed[place - 1].next = account->first;
    account->first = place;
    account->n++;
}

void asym_rtxd_doom(struct asym_rtxd_closers *c, int fd, uid_t uid)
{
    enqueue(c, (struct asym_rtxd_doomed){.fd = fd}, uid);
}

void asym_rtxd_empty(struct asym_rtxd_closers *c, int fd, uid_t uid)
{
    enqueue(c, (struct asym_rtxd_doomed){.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0), .is_emptied = true}, uid);
}

static size_t count_closers(const struct asym_rtxd_closers *c, uid_t uid)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_running; i++)
        n += c->running[i].uid == uid;
    return n;
}

static bool hangs(const struct asym_rtxd_closers *c, uid_t uid)
{
    for (size_t i = 0; i < c->n_running; i++)
        if (c->running[i].uid == uid &&
            (c->running[i].idle >= ASYM_RTXD_HUNG_MS || c->running[i].age >= ASYM_RTXD_LONGEST_MS))
            return true;
    return false;
}

bool asym_rtxd_is_refused(const struct asym_rtxd_closers *c, uid_t uid)
{
    for (size_t i = 0; i < c->n_accounts; i++)
        if (c->accounts[i].uid == uid)
            return c->accounts[i].refused_at > 0;
    return false;
}

bool asym_rtxd_is_closing(const struct asym_rtxd_closers *c)
{
    return c->n_running > 0 || c->n_doomed > 0 || c->n_accounts > 0;
}

bool asym_rtxd_may_doom(const struct asym_rtxd_closers *c)
{
    return c->n_doomed < ASYM_RTXD_DOOMED_FULL;
}

static bool is_settled(const struct asym_rtxd_closers *c, const struct asym_rtxd_account *account)
{
    return account->n == 0 && count_closers(c, account->uid) == 0;
}

/* Returns whether the standing has changed. */
static bool update_standing(const struct asym_rtxd_closers *c, struct asym_rtxd_account *account, long long now)
{
    if (account->refused_at == 0) {
        if (account->n < ASYM_RTXD_STOCK && !hangs(c, account->uid))
            return false;
        account->refused_at = now;
        return true;
    }
    if (!is_settled(c, account) || now - account->refused_at < ASYM_RTXD_REFUSED_MS)
        return false;
    account->refused_at = 0;
    return true;
}

bool asym_rtxd_next_standing(struct asym_rtxd_closers *c, long long now, struct asym_rtxd_standing *ret)
{
    for (size_t i = 0; i < c->n_accounts; i++) {
        struct asym_rtxd_account *account = &c->accounts[i];
        if (!update_standing(c, account, now))
            continue;
        *ret = (struct asym_rtxd_standing){.uid = account->uid, .refused = account->refused_at > 0};
        return true;
    }
    return false;
}

static void collect(struct asym_rtxd_closers *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->n_running; i++) {
        const pid_t r = waitpid(c->running[i].pid, NULL, WNOHANG);
        if (r == 0 || (r < 0 && errno == EINTR))
            c->running[kept++] = c->running[i];
    }
    c->n_running = kept;
}

/* The kernel answers for a child that has not been reaped, also while it exits. */
static long long cpu_of(pid_t pid)
{
    clockid_t clock;
    return clock_getcpuclockid(pid, &clock) == 0 ? (long long)asym_clock_read(clock) : 0;
}

static void age(struct asym_rtxd_closers *c, long long now)
{
    const long long step = c->passed_at > 0 ? ASYM_MIN(ASYM_MAX(now - c->passed_at, 0LL), ASYM_RTXD_STEP_MS) : 0;
    c->passed_at = now;
    for (size_t i = 0; i < c->n_running; i++) {
        struct asym_rtxd_closer *closer = &c->running[i];
        const long long cpu = cpu_of(closer->pid);
        closer->age += step;
        closer->idle = cpu > closer->cpu ? 0 : closer->idle + step;
        closer->cpu = cpu;
    }
}

static int compare(const void *a, const void *b)
{
    const struct asym_rtxd_doomed *x = a, *y = b;
    return x->fd < y->fd ? -1 : x->fd > y->fd;
}

/* Close every other descriptor: a closer that sleeps must not hold the channels to asymd or any other file. */
static void keep_only(struct asym_rtxd_doomed batch[], size_t n)
{
    unsigned from = 0;
    qsort(batch, n, sizeof batch[0], compare);
    for (size_t i = 0; i < n; i++) {
        const unsigned fd = (unsigned)batch[i].fd;
        if (fd > from)
            close_range(from, fd - 1, 0);
        from = fd + 1;
    }
    close_range(from, UINT_MAX, 0);
}

/* until: on CLOCK_MONOTONIC, for FUTEX_WAIT_BITSET */
static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *until)
{
    return syscall(SYS_futex, word, op, value, until, NULL, FUTEX_BITSET_MATCH_ANY);
}

/* The wait cannot be a deadlock: the parent holds every descriptor, so that no close of the child is a last one. */
static bool wait_for_copies(struct asym_rtxd_closers *c)
{
    while (atomic_load(c->own) == 0)
        if (futex(c->own, FUTEX_WAIT_BITSET, 0, &c->until) < 0 && errno != EAGAIN && errno != EINTR)
            return atomic_load(c->own) != 0;
    return true;
}

/*
 * The files become descriptors of this process. A message that is dropped would close its files in recvmsg(2), where a TCP
 * socket lingers.
 */
static bool receive_files(int fd)
{
    char byte;
    struct iovec part = {&byte, 1};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(FILES_IN_MESSAGE * sizeof(int))];
    } control;
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.space};
    return recvmsg(fd, &m, MSG_DONTWAIT) >= 0 && m.msg_controllen > 0;
}

static void empty_queues(const struct asym_rtxd_doomed batch[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        while (batch[i].is_emptied && receive_files(batch[i].fd))
            ;
}

/*
 * The child closes its copies of all other descriptors. Then it waits until the parent has closed its own fds, so that the
 * child holds the last references. Then it exits, and the kernel closes them, and the files that were in the queues. Neither
 * wait needs a descriptor: none may be left. The parent ends the second one by a signal, and the kernel sends the same signal
 * when the parent has ended.
 */
static pid_t fork_closer(struct asym_rtxd_closers *c, struct asym_rtxd_doomed batch[], size_t n)
{
    sigset_t go, before;
    int signal;
    sigemptyset(&go);
    sigaddset(&go, SIGUSR1);
    sigprocmask(SIG_BLOCK, &go, &before);
    const pid_t parent = getpid(), pid = fork();
    if (pid != 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        return pid;
    }
    keep_only(batch, n);
    atomic_store(c->own, 1);
    futex(c->own, FUTEX_WAKE, 1, NULL);
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    if (getppid() == parent)
        sigwait(&go, &signal);
    empty_queues(batch, n);
    _exit(0);
}

/* Returns the closer, which holds these descriptors and no other ones; -1: there is none. */
static pid_t start(struct asym_rtxd_closers *c, struct asym_rtxd_doomed batch[], size_t n)
{
    atomic_store(c->own, 0);
    const pid_t pid = fork_closer(c, batch, n);
    if (pid < 0 || wait_for_copies(c))
        return pid;
    /* It has got no CPU, or was killed. The parent must not go on before all its copies are closed. */
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return -1;
}

/* Move all descriptors of the account from the list to ret_batch. Returns their number. */
static size_t take(struct asym_rtxd_closers *c, struct asym_rtxd_account *account, struct asym_rtxd_doomed ret_batch[])
{
    size_t n = 0;
    while (account->first > 0) {
        const size_t place = account->first;
        ret_batch[n++] = c->doomed[place - 1].of;
        account->first = c->doomed[place - 1].next;
        c->doomed[place - 1].next = c->first_free;
        c->first_free = place;
    }
    account->n = 0;
    c->n_doomed -= n;
    return n;
}

/* Returns whether a closer has started. */
static bool close_for(struct asym_rtxd_closers *c, struct asym_rtxd_account *account)
{
    const size_t n = take(c, account, c->batch);
    const pid_t pid = start(c, c->batch, n);
    for (size_t i = 0; i < n; i++) {
        if (pid < 0)
            enqueue(c, c->batch[i], account->uid);
        else
            close(c->batch[i].fd);
    }
    if (pid < 0)
        return false;
    kill(pid, SIGUSR1);
    c->running[c->n_running++] = (struct asym_rtxd_closer){.pid = pid, .uid = account->uid};
    return true;
}

static bool may_start(const struct asym_rtxd_closers *c, const struct asym_rtxd_account *account, long long now)
{
    const size_t of_user = count_closers(c, account->uid);
    if (account->n == 0 || of_user >= ASYM_RTXD_MAX_CLOSERS_OF_USER)
        return false;
    if (of_user == 0)
        return c->n_running < ASYM_RTXD_MAX_CLOSERS;
    return c->n_running < ASYM_RTXD_MAX_CLOSERS / 2 && account->refused_at > 0 &&
           now - account->refused_at >= ASYM_RTXD_SECOND_MS;
}

static void forget_settled(struct asym_rtxd_closers *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->n_accounts; i++)
        if (c->accounts[i].refused_at > 0 || !is_settled(c, &c->accounts[i]))
            c->accounts[kept++] = c->accounts[i];
    c->n_accounts = kept;
}

void asym_rtxd_close_doomed(struct asym_rtxd_closers *c, long long now)
{
    collect(c);
    age(c, now);
    forget_settled(c);
    const asym_usec until = asym_clock_now() + ASYM_RTXD_COPIES_SEC * ASYM_SEC;
    c->until = (struct timespec){.tv_sec = (time_t)(until / ASYM_SEC), .tv_nsec = (long)(until % ASYM_SEC) * 1000};
    /* After a failure the next call tries again: the system is short of CPU time or processes, and asymd waits for answers. */
    if (may_start(c, &c->shared, now) && !close_for(c, &c->shared))
        return;
    for (size_t i = 0; i < c->n_accounts; i++)
        if (may_start(c, &c->accounts[i], now) && !close_for(c, &c->accounts[i]))
            return;
}
