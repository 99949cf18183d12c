/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/rtx-server.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/rtx-page.h"
#include "linux/thread.h"

#define BACKLOG 64

/* More than the two that belong there, so that who sends more is found out and they are closed. */
#define FDS_MOST 8

struct client {
    int fd, event;
    pid_t pid;
    uid_t uid;
    uint64_t start; /* of the process */
    asym_usec came;
    const void *page; /* NULL: not handed over yet */
    size_t size;
    struct asym_rtx_layout layout;
    struct asym_rtx_memory memory;
    unsigned in_vain; /* how often in a row it has woken us for nothing */
    bool woke, woke_before;
    bool muted; /* its eventfd is not watched until the next tend */
    bool over;  /* to be taken out */
};

struct asym_rtx_server {
    struct asym_teller teller;
    struct asym_rtx_server_config config;
    char path[108]; /* as long as sun_path */
    int fd, epoll;
    unsigned taken; /* connections since the last tend */
    bool deaf;      /* for want of descriptors, or after too many connections: listens again later */
    struct client *clients[ASYM_RTX_MAX_CLIENTS]; /* by pid, rising */
    size_t n;
    /* What ask hands out. */
    struct asym_told told[ASYM_RTX_MAX_CLIENTS];
    struct asym_told_thread threads[ASYM_RTX_MAX_READ + ASYM_RTX_MAX_CLIENTS];
};

const char *asym_rtx_refusal_text(enum asym_rtx_refusal refusal)
{
    static const char *const texts[] = {
        [ASYM_RTX_REFUSED_FULL] = "too many programs speak already",
        [ASYM_RTX_REFUSED_NO_FD] = "no descriptor or memory is left for it",
        [ASYM_RTX_REFUSED_SILENT] = "it has connected and handed nothing over",
        [ASYM_RTX_REFUSED_GARBAGE] = "what it handed over is not what the protocol has",
        [ASYM_RTX_REFUSED_VERSION] = "it speaks a later version of the protocol",
        [ASYM_RTX_REFUSED_NAMESPACE] = "it is in a PID namespace of its own, and calls its threads by other numbers",
    };
    _Static_assert(ASYM_LENGTH(texts) == ASYM_RTX_N_REFUSALS, "one each");
    return texts[refusal];
}

static void refuse(struct asym_rtx_server *s, enum asym_rtx_refusal refusal, pid_t pid)
{
    if (s->config.refused)
        s->config.refused(s->config.ctx, refusal, pid);
}

static void free_client(struct asym_rtx_server *s, struct client *c)
{
    if (c->page)
        munmap((void *)(uintptr_t)c->page, c->size);
    /* The program has it open, too: what is closed here would go on waking. */
    if (c->event >= 0) {
        epoll_ctl(s->epoll, EPOLL_CTL_DEL, c->event, NULL);
        close(c->event);
    }
    close(c->fd);
    free(c->memory.readings);
    free(c);
}

static void sweep(struct asym_rtx_server *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->clients[i]->over)
            free_client(s, s->clients[i]);
        else
            s->clients[kept++] = s->clients[i];
    }
    s->n = kept;
}

/* What is refused is dropped; the caller sweeps. */
static void drop(struct asym_rtx_server *s, struct client *c, enum asym_rtx_refusal refusal)
{
    refuse(s, refusal, c->pid);
    c->over = true;
}

static bool has_room(const struct asym_rtx_server *s, const struct ucred *peer)
{
    size_t of_user = 0, of_pid = 0;
    for (size_t i = 0; i < s->n; i++) {
        of_user += s->clients[i]->uid == peer->uid;
        of_pid += s->clients[i]->pid == peer->pid;
    }
    return s->n < ASYM_RTX_MAX_CLIENTS && of_pid < ASYM_RTX_MAX_OF_PID &&
           (peer->uid == 0 || of_user < ASYM_RTX_MAX_OF_USER);
}

/* Its numbers are ours only in our PID namespace; where that cannot be seen they are looked up, and come to nothing. */
static bool is_elsewhere(pid_t pid)
{
    char path[64];
    struct stat ours, its;
    snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
    return stat("/proc/self/ns/pid", &ours) == 0 && stat(path, &its) == 0 && ours.st_ino != its.st_ino;
}

static int insert(struct asym_rtx_server *s, int fd, const struct ucred *peer, uint64_t start, asym_usec now)
{
    struct client *c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    *c = (struct client){.fd = fd, .event = -1, .pid = peer->pid, .uid = peer->uid, .start = start, .came = now};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) < 0) {
        free(c);
        return -errno;
    }
    size_t i = s->n++;
    for (; i > 0 && s->clients[i - 1]->pid > c->pid; i--)
        s->clients[i] = s->clients[i - 1];
    s->clients[i] = c;
    return 0;
}

static void greet(struct asym_rtx_server *s, int fd, asym_usec now)
{
    struct ucred peer = {0};
    struct asym_stat stat;
    socklen_t size = sizeof peer;
    int r = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.pid <= 0 ? -EPROTO : 0;
    if (r < 0)
        refuse(s, ASYM_RTX_REFUSED_NAMESPACE, 0);
    else if (!has_room(s, &peer))
        refuse(s, ASYM_RTX_REFUSED_FULL, peer.pid);
    else if (is_elsewhere(peer.pid))
        refuse(s, ASYM_RTX_REFUSED_NAMESPACE, peer.pid);
    else if ((r = asym_thread_get_stat(peer.pid, peer.pid, &stat)) == 0 &&
             (r = insert(s, fd, &peer, stat.start, now)) == 0)
        return;
    else if (r != -ESRCH)
        refuse(s, ASYM_RTX_REFUSED_NO_FD, peer.pid);
    close(fd);
}

static void listen_again(struct asym_rtx_server *s, bool on)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(s->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, s->fd, &event);
    s->deaf = !on;
}

static void take_connections(struct asym_rtx_server *s, asym_usec now)
{
    for (; s->taken < ASYM_RTX_MAX_TAKEN; s->taken++) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            greet(s, fd, now);
            continue;
        }
        /* What waits in the queue would wake us again and again. */
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            refuse(s, ASYM_RTX_REFUSED_NO_FD, 0);
            listen_again(s, false);
        }
        return;
    }
    listen_again(s, false);
}

/* Of any other kind a descriptor could make us wait, or wake us as it likes. */
static bool is_eventfd(int fd)
{
    static const char name[] = "anon_inode:[eventfd]";
    char path[64], target[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, target, sizeof target);
    return n == (ssize_t)strlen(name) && memcmp(target, name, strlen(name)) == 0;
}

/*
 * Of memory that cannot shrink under us, and that is there to be read: huge pages may be wanting, and so may be memory for a
 * hole, with vm.overcommit_memory = 2: then reading it is a SIGBUS. Sealed against writing nobody can make one later.
 */
static int check_memfd(int fd, size_t *ret_size)
{
    struct stat st;
    struct statfs fs;
    const int seals = fcntl(fd, F_GET_SEALS), want = F_SEAL_SHRINK | F_SEAL_GROW,
              either = F_SEAL_WRITE | F_SEAL_FUTURE_WRITE;
    if (seals < 0 || (seals & want) != want || !(seals & either) || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
        fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC || st.st_size <= 0 ||
        (uint64_t)st.st_size > ASYM_RTX_MAX_PAGE || lseek(fd, 0, SEEK_HOLE) < st.st_size)
        return -EPROTO;
    *ret_size = (size_t)st.st_size;
    return 0;
}

static int map_page(struct client *c, int memfd)
{
    size_t size;
    int r = check_memfd(memfd, &size);
    if (r < 0)
        return r;
    void *page = mmap(NULL, size, PROT_READ, MAP_SHARED, memfd, 0);
    if (page == MAP_FAILED)
        return -ENOMEM;
    r = asym_rtx_check_page(page, size, &c->layout);
    if (r == 0 && !(c->memory.readings = calloc(c->layout.n_slots, sizeof *c->memory.readings)))
        r = -ENOMEM;
    if (r < 0) {
        munmap(page, size);
        return r;
    }
    c->page = page;
    c->size = size;
    return 0;
}

/*
 * The eventfd is never read: whoever made it may make reading it wait. Watched for edges it wakes at every write all the
 * same, and when it is full its writer finds that out.
 */
static int watch_event(struct asym_rtx_server *s, struct client *c, int fd)
{
    /* The lowest bit tells it from the socket of the same client. */
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = (uint64_t)(uintptr_t)c | 1};
    return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* One that was muted is so again after one more in vain, as long as it has told of nothing. */
static void mute(struct asym_rtx_server *s, struct client *c)
{
    c->muted = epoll_ctl(s->epoll, EPOLL_CTL_DEL, c->event, NULL) == 0;
    c->in_vain = ASYM_RTX_MAX_IN_VAIN - 1;
}

/* The descriptors of a message; those beyond FDS_MOST the kernel has closed. */
static size_t take_fds(struct msghdr *m, int fds[FDS_MOST])
{
    size_t n = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        const size_t here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < here && n < FDS_MOST; i++)
            memcpy(&fds[n++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
    }
    return n;
}

/* One message. Its length, its flags and its descriptors; 0: the other side has ended; -errno. */
static ssize_t receive(int fd, void *buf, size_t size, int fds[FDS_MOST], size_t *ret_n, int *ret_flags)
{
    struct iovec part = {buf, size};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(FDS_MOST * sizeof(int))];
    } control;
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.space};
    ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return -errno;
    *ret_n = take_fds(&m, fds);
    *ret_flags = m.msg_flags;
    return n;
}

static int adopt(struct asym_rtx_server *s, struct client *c, const void *message, size_t size, int flags,
                 int fds[FDS_MOST], size_t n_fds)
{
    /* One message is all there is to say. */
    if (c->page || flags & (MSG_TRUNC | MSG_CTRUNC) || n_fds != 2)
        return -EPROTO;
    int r = asym_rtx_check_hello(message, size);
    if (r == 0)
        r = map_page(c, fds[0]);
    if (r == 0)
        r = is_eventfd(fds[1]) ? watch_event(s, c, fds[1]) : -EPROTO;
    if (r == 0) {
        c->event = fds[1];
        fds[1] = -1;
    }
    return r;
}

static enum asym_rtx_refusal refusal_of(int error)
{
    static const struct {
        int error;
        enum asym_rtx_refusal refusal;
    } rows[] = {
        {-EPROTONOSUPPORT, ASYM_RTX_REFUSED_VERSION},
        {-ENOMEM, ASYM_RTX_REFUSED_NO_FD},
        {-EMFILE, ASYM_RTX_REFUSED_NO_FD},
        {-ENFILE, ASYM_RTX_REFUSED_NO_FD},
        {-ENOSPC, ASYM_RTX_REFUSED_NO_FD},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        if (rows[i].error == error)
            return rows[i].refusal;
    return ASYM_RTX_REFUSED_GARBAGE;
}

/* Something came from a client: its page, its end, or what is not to come. */
static void hear(struct asym_rtx_server *s, struct client *c)
{
    char message[256];
    int fds[FDS_MOST], flags = 0;
    size_t n_fds = 0;
    ssize_t n = receive(c->fd, message, sizeof message, fds, &n_fds, &flags);
    if (n == -EAGAIN || n == -EINTR)
        return;
    int r = n > 0 || n_fds > 0 ? adopt(s, c, message, (size_t)n, flags, fds, n_fds) : -ENOTCONN;
    for (size_t i = 0; i < n_fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (r == -ENOTCONN)
        c->over = true;
    else if (r < 0)
        drop(s, c, refusal_of(r));
    else
        c->woke = true;
}

static size_t share_of_each(const struct asym_rtx_server *s)
{
    return ASYM_RTX_MAX_READ / ASYM_MAX(asym_rtx_server_count(s), (size_t)1);
}

/*
 * Who has woken us is looked at now and at the next call once more: what comes soon after it has told of a phase it does not
 * tell (notify_min). Who has gone in a serial phase has ended it.
 */
static bool look_at(struct asym_rtx_server *s, struct client *c, size_t most)
{
    if (c->over)
        return c->memory.phase != 0;
    if (!c->page || (!c->woke && !c->woke_before))
        return false;
    const bool told = asym_rtx_phase(c->page, &c->layout, most) != c->memory.phase;
    if (told)
        c->in_vain = 0;
    else if (c->woke && ++c->in_vain >= ASYM_RTX_MAX_IN_VAIN)
        mute(s, c);
    c->woke_before = c->woke;
    c->woke = false;
    return told;
}

bool asym_rtx_server_serve(struct asym_rtx_server *s, asym_usec now)
{
    struct epoll_event events[ASYM_RTX_MAX_SERVED];
    bool told = false;
    int n = epoll_wait(s->epoll, events, ASYM_LENGTH(events), 0);
    for (int i = 0; i < n; i++) {
        struct client *c = (struct client *)(uintptr_t)(events[i].data.u64 & ~UINT64_C(1));
        if (!c)
            take_connections(s, now);
        else if (events[i].data.u64 & 1)
            c->woke = true;
        else if (!c->over)
            hear(s, c);
    }
    const size_t most = share_of_each(s);
    for (size_t i = 0; i < s->n; i++)
        told |= look_at(s, s->clients[i], most);
    sweep(s);
    return told;
}

void asym_rtx_server_tend(struct asym_rtx_server *s, asym_usec now)
{
    for (size_t i = 0; i < s->n; i++) {
        struct client *c = s->clients[i];
        if (!c->page && now - c->came >= ASYM_RTX_HELLO_WITHIN)
            drop(s, c, ASYM_RTX_REFUSED_SILENT);
        else if (c->muted && watch_event(s, c, c->event) == 0)
            c->muted = false;
    }
    sweep(s);
    s->taken = 0;
    if (s->deaf)
        listen_again(s, true);
}

size_t asym_rtx_server_count(const struct asym_rtx_server *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->clients[i]->page != NULL;
    return n;
}

static size_t ask(struct asym_teller *teller, asym_usec now, bool final, const struct asym_told **ret_told)
{
    struct asym_rtx_server *s = (struct asym_rtx_server *)(void *)teller;
    const size_t share = share_of_each(s);
    struct asym_told_thread *next = s->threads;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct client *c = s->clients[i];
        if (!c->page)
            continue;
        const size_t said = asym_rtx_read(c->page, &c->layout, share, now, s->config.spin_notify, final, &c->memory,
                                          next);
        s->told[n++] = (struct asym_told){.pid = c->pid, .start = c->start, .threads = next, .n = said};
        next += said;
    }
    *ret_told = s->told;
    return n;
}

static int open_socket(struct asym_rtx_server *s)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, s->path, sizeof address.sun_path);
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->epoll < 0 || s->fd < 0)
        return -errno;
    /* One that was killed has left it behind; there is no other, as the ledger is locked. */
    if (unlink(s->path) < 0 && errno != ENOENT)
        return -errno;
    /* Anybody may speak. */
    if (bind(s->fd, (struct sockaddr *)&address, sizeof address) < 0 || chmod(s->path, 0666) < 0 ||
        listen(s->fd, BACKLOG) < 0)
        return -errno;
    listen_again(s, true);
    return s->deaf ? -errno : 0;
}

int asym_rtx_server_open(const struct asym_rtx_server_config *config, struct asym_rtx_server **ret,
                         struct asym_error *err)
{
    struct asym_rtx_server *s = calloc(1, sizeof *s);
    if (!s)
        return asym_fail(err, -ENOMEM, "no memory to listen to programs");
    s->teller.ask = ask;
    s->config = *config;
    s->fd = s->epoll = -1;
    int n = snprintf(s->path, sizeof s->path, "%s/rtx", config->dir);
    int r = n < 0 || (size_t)n >= sizeof s->path ? -ENAMETOOLONG : open_socket(s);
    if (r < 0) {
        asym_fail(err, r, "%s/rtx: %s", config->dir, strerror(-r));
        asym_rtx_server_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

void asym_rtx_server_close(struct asym_rtx_server *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++)
        free_client(s, s->clients[i]);
    if (s->fd >= 0) {
        close(s->fd);
        unlink(s->path);
    }
    if (s->epoll >= 0)
        close(s->epoll);
    free(s);
}

int asym_rtx_server_fd(const struct asym_rtx_server *s)
{
    return s->epoll;
}

void asym_rtx_server_set_spin_notify(struct asym_rtx_server *s, asym_usec spin_notify)
{
    s->config.spin_notify = spin_notify;
}

struct asym_teller *asym_rtx_server_teller(struct asym_rtx_server *s)
{
    return &s->teller;
}
