/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/rtx-server-internal.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/thread.h"

#define BACKLOG 64

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

static void free_client(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    if (c->page)
        munmap((void *)(uintptr_t)c->page, c->size);
    /* The program has it open, too: what is closed here would go on waking. */
    if (c->event >= 0) {
        epoll_ctl(s->epoll, EPOLL_CTL_DEL, c->event, NULL);
        close(c->event);
    }
    asym_rtx_retire(s, c);
    close(c->fd);
    free(c->memory.readings);
    free(c->said);
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
static void drop(struct asym_rtx_server *s, struct asym_rtx_client *c, enum asym_rtx_refusal refusal)
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
    struct asym_rtx_client *c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    *c = (struct asym_rtx_client){
        .fd = fd, .event = -1, .pid = peer->pid, .uid = peer->uid, .start = start, .came = now};
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
    for (; s->pot >= 0 && s->taken < ASYM_RTX_MAX_TAKEN; s->taken++) {
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

/*
 * The eventfd is never read: whoever made it may make reading it wait. Watched for edges it wakes at every write all the
 * same, and when it is full its writer finds that out.
 */
static int watch(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    /* The lowest bit tells it from the socket of the same client. */
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = (uint64_t)(uintptr_t)c | 1};
    if (c->watched || c->muted || c->put_off)
        return 0;
    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, c->event, &event) < 0)
        return -errno;
    c->watched = true;
    /* As it is never read, it wakes now for what was written long ago. */
    c->excused = true;
    return 0;
}

static void unwatch(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    if (c->watched)
        epoll_ctl(s->epoll, EPOLL_CTL_DEL, c->event, NULL);
    c->watched = false;
}

/* One that was muted is so again after one more in vain, as long as it has told of nothing. */
static void mute(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    unwatch(s, c);
    c->muted = true;
    c->in_vain = ASYM_RTX_MAX_IN_VAIN - 1;
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
static void hear(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    int r = asym_rtx_take_page(c);
    if (r == 0)
        r = watch(s, c);
    if (r == -EAGAIN)
        return;
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

/* It is heard again when it may be answered. */
static bool put_off(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    unwatch(s, c);
    c->put_off = true;
    c->told = false;
    return false;
}

static bool is_again(const struct asym_rtx_client *c, asym_usec now)
{
    return c->again_at > 0 && now >= c->again_at;
}

/*
 * Who has woken us is looked at now, and once more when its notify_min is over: of what comes within that it does not tell.
 * Who has gone in a serial phase has ended it.
 */
static bool look_at(struct asym_rtx_server *s, struct asym_rtx_client *c, size_t most, asym_usec now)
{
    c->told = c->looked = false;
    if (c->over) {
        s->gone |= c->memory.phase != 0;
        return c->memory.phase != 0;
    }
    if (!c->page || (!c->woke && !is_again(c, now) && !c->put_off))
        return false;
    /* Being watched again wakes once: were that put off, too, there would be no end to it. */
    if ((c->put_off || !c->excused) && !asym_rtx_is_solvent(s, c))
        return put_off(s, c);
    c->looked = true;
    c->told = asym_rtx_phase(c->page, &c->layout, most) != c->memory.phase;
    if (c->told && !asym_rtx_may_answer(s, c, now))
        return put_off(s, c);
    c->put_off = false;
    c->fresh |= c->told;
    if (c->told)
        c->in_vain = 0;
    else if (c->woke && !c->excused && ++c->in_vain >= ASYM_RTX_MAX_IN_VAIN)
        mute(s, c);
    c->excused &= !c->woke;
    c->again_at = c->woke ? now + c->layout.notify_min : 0;
    c->woke = false;
    watch(s, c);
    return c->told;
}

bool asym_rtx_server_serve(struct asym_rtx_server *s, asym_usec now)
{
    struct epoll_event events[ASYM_RTX_MAX_SERVED];
    bool told = false;
    asym_rtx_settle(s, now);
    s->gone = false;
    int n = epoll_wait(s->epoll, events, ASYM_LENGTH(events), 0);
    for (int i = 0; i < n; i++) {
        struct asym_rtx_client *c = (struct asym_rtx_client *)(uintptr_t)(events[i].data.u64 & ~UINT64_C(1));
        if (!c)
            take_connections(s, now);
        else if (events[i].data.u64 & 1)
            c->woke = true;
        else if (!c->over)
            hear(s, c);
    }
    const size_t most = share_of_each(s);
    for (size_t i = 0; i < s->n; i++)
        told |= look_at(s, s->clients[i], most, now);
    sweep(s);
    return told;
}

void asym_rtx_server_tend(struct asym_rtx_server *s, asym_usec now)
{
    for (size_t i = 0; i < s->n; i++) {
        struct asym_rtx_client *c = s->clients[i];
        if (!c->page && now - c->came >= ASYM_RTX_HELLO_WITHIN)
            drop(s, c, ASYM_RTX_REFUSED_SILENT);
        /* Also who could not be watched again for want of memory. */
        c->muted = false;
        if (c->page)
            watch(s, c);
    }
    sweep(s);
    asym_rtx_settle(s, now);
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

/* What has been in a whole snapshot is no news in the ones made of it. */
static void make_old(struct asym_rtx_client *c)
{
    for (size_t i = 0; i < c->n_said; i++)
        c->said[i].news = false;
}

static void read_page(struct asym_rtx_client *c, size_t most, asym_usec now, asym_usec spin_notify, unsigned how)
{
    c->n_said = asym_rtx_read(c->page, &c->layout, most, now, spin_notify, how, &c->memory, c->said);
    c->said_at = now;
}

static size_t ask(struct asym_teller *teller, asym_usec now, unsigned how, const struct asym_told **ret_told)
{
    struct asym_rtx_server *s = (struct asym_rtx_server *)(void *)teller;
    const size_t most = share_of_each(s);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct asym_rtx_client *c = s->clients[i];
        if (!c->page)
            continue;
        if (!(how & ASYM_ASK_HURRIED) || c->fresh)
            read_page(c, most, now, s->config.spin_notify, how);
        else if (c->whole)
            make_old(c);
        c->whole = !(how & ASYM_ASK_HURRIED);
        c->fresh &= !(how & ASYM_ASK_FINAL);
        s->told[n++] = (struct asym_told){
            .pid = c->pid, .start = c->start, .at = c->said_at, .threads = c->said, .n = c->n_said};
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
    s->pot = ASYM_RTX_SAVED_MAX;
    s->settled = config->now;
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

void asym_rtx_server_set(struct asym_rtx_server *s, asym_usec spin_notify, double cpu_budget)
{
    s->config.spin_notify = spin_notify;
    s->config.cpu_budget = cpu_budget;
}

struct asym_teller *asym_rtx_server_teller(struct asym_rtx_server *s)
{
    return &s->teller;
}
