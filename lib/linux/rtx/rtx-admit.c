/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Admits a program that has connected: checks its place and its identity, and makes its memory. */
#include "linux/rtx/rtx-admit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/rtx/rtx-channel.h"
#include "linux/rtx/rtx-fair-share.h"
#include "linux/rtx/rtx-server-internal.h"
#include "linux/sys/thread.h"

/* The end of a client, and the report of a refusal. */

void asym_rtxd_refuse(const struct asym_rtxd_server *s, enum asym_rtxd_refusal refusal, pid_t pid, uid_t uid)
{
    if (s->config.refused)
        s->config.refused(s->config.ctx, refusal, pid, uid);
}

void asym_rtxd_drop(struct asym_rtxd_server *s, struct asym_rtxd_client *c, enum asym_rtxd_refusal refusal)
{
    asym_rtxd_refuse(s, refusal, c->pid, c->uid);
    asym_rtxd_end(s, c);
}

/* The program and the helper still hold the eventfd: without EPOLL_CTL_DEL it would go on waking asymd. */
static void free_client(struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    epoll_ctl(s->epoll, EPOLL_CTL_DEL, c->event, NULL);
    asym_rtxd_close_connection(s, c->id, c->event);
    asym_rtxd_retire(s, c);
    close(c->memfd);
    free(c->page_state.readings);
    free(c->said);
    free(c);
}

void asym_rtxd_sweep(struct asym_rtxd_server *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->clients[i]->state == ASYM_RTXD_CLIENT_ENDED)
            free_client(s, s->clients[i]);
        else
            s->clients[kept++] = s->clients[i];
    }
    s->n = kept;
}

/* The page of a program: a memfd, of which the server reads copies. */

/* Makes the memory of pages and copies it. asymd never maps it (rtx-server.h). */

/* Since Linux 6.3; older ones refuse the flag. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* Slots that fit into one page of memory with the header. Reading fewer is no cheaper. */
#define FEW 63
/* A first slot up to this offset is read together with the header, bytes. */
#define NEAR 4096

_Static_assert(ASYM_RTXD_PAGE_SIZE <= ASYM_RTXD_MAX_PAGE, "it is read");

/* Create the memfd of a page. Returns its descriptor; -errno. */
static int rtxd_make_memfd(void)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    int fd = memfd_create("asym-rtx", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("asym-rtx", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, ASYM_RTXD_PAGE_SIZE) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0) {
        const int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

/* Bytes that pread(2) does not return count as zero. */
static void copy(const struct asym_rtxd_client *c, char *to, size_t from, size_t end)
{
    const ssize_t n = pread(c->memfd, to + from, end - from, (off_t)from);
    const size_t got = n > 0 ? (size_t)n : 0;
    memset(to + from + got, 0, end - from - got);
}

/*
 * Copy the header and what is between the first slot and end. One pread(2) copies the gap before the first slot, too, if that
 * is cheaper than a second call. A program can make the gap as large as the page.
 */
static void copy_header_and_slots(const struct asym_rtxd_client *c, char *to, size_t end)
{
    const size_t slots = c->layout.header_size > NEAR ? c->layout.header_size : 0;
    if (slots > 0)
        copy(c, to, 0, sizeof(struct asym_rtx_header));
    copy(c, to, slots, end);
}

int asym_rtxd_read_header(struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    struct asym_rtx_header h;
    copy(c, s->copy, 0, sizeof h);
    memcpy(&h, s->copy, sizeof h);
    if (h.magic == 0)
        return -EAGAIN;
    return asym_rtxd_check_page(s->copy, ASYM_RTXD_PAGE_SIZE, &c->layout);
}

/* One pread(2) suffices for pages of the library in most cases, because the number of used slots only grows. */
size_t asym_rtxd_copy_page(struct asym_rtxd_server *s, struct asym_rtxd_client *c, size_t most)
{
    const struct asym_rtxd_layout *l = &c->layout;
    struct asym_rtx_header h;
    most = ASYM_MIN(most, (size_t)l->n_slots);
    const size_t guess = ASYM_MIN(ASYM_MAX(c->n_known, (size_t)FEW * 64 / l->slot_size), most);
    const size_t first = l->header_size + guess * l->slot_size;
    copy_header_and_slots(c, s->copy, first);
    memcpy(&h, s->copy, sizeof h);
    const size_t used = ASYM_MIN((size_t)h.n_used, most);
    if (used > guess)
        copy(c, s->copy, first, l->header_size + used * l->slot_size);
    c->n_known = used;
    return used;
}

static size_t count_of_user(const struct asym_rtxd_server *s, uid_t uid)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->clients[i]->uid == uid;
    return n;
}

/* Returns the latest client of the user, other than root, with the most clients. *ret_n: their number. */
static struct asym_rtxd_client *find_richest(const struct asym_rtxd_server *s, size_t *ret_n)
{
    struct asym_rtxd_client *found = NULL;
    *ret_n = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct asym_rtxd_client *c = s->clients[i];
        if (c->uid == 0)
            continue;
        const size_t n = count_of_user(s, c->uid);
        if (n < *ret_n || (n == *ret_n && found && (c->uid != found->uid || c->id < found->id)))
            continue;
        found = c;
        *ret_n = n;
    }
    return found;
}

/* If no place is free, drop a client of the user with the most places. Clients that have ended leave their places first. */
static bool find_place(struct asym_rtxd_server *s, pid_t pid, uid_t uid)
{
    size_t of_pid = 0, most;
    asym_rtxd_sweep(s);
    const size_t mine = count_of_user(s, uid), of_root = count_of_user(s, 0);
    for (size_t i = 0; i < s->n; i++)
        of_pid += s->clients[i]->pid == pid;
    if (of_pid >= ASYM_RTXD_MAX_OF_PID || (uid != 0 && mine >= ASYM_RTXD_MAX_OF_USER))
        return false;
    if (s->n < ASYM_RTXD_MAX_CLIENTS && (uid == 0 || s->n - of_root < ASYM_RTXD_MAX_OF_USERS))
        return true;
    struct asym_rtxd_client *richest = find_richest(s, &most);
    if (!richest || (uid != 0 && most < mine + 2))
        return false;
    asym_rtxd_drop(s, richest, ASYM_RTXD_REFUSED_YIELDS);
    asym_rtxd_sweep(s);
    return true;
}

/* Thread IDs are valid only in asymd's PID namespace. If asymd cannot see the namespace, the lookup of the IDs fails later. */
static bool is_elsewhere(pid_t pid)
{
    char path[64];
    struct stat ours, its;
    snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
    return stat("/proc/self/ns/pid", &ours) == 0 && stat(path, &its) == 0 && ours.st_ino != its.st_ino;
}

/*
 * Without SO_PEERPIDFD the pid may belong to a later process by now. One of the same user gains nothing by that. asymd reads
 * the user after the start time, so that both are of one process, or the user is that of a later process. The kernel gives
 * /proc/PID to the effective user of the process, also if it is not dumpable. Only its files then belong to root.
 */
static bool is_of_user(pid_t pid, uid_t uid)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return stat(path, &st) == 0 && st.st_uid == uid;
}

/* asymd adds the eventfd to epoll before the program has it, see rtx-server.h. */
static int open_files(struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = c};
    c->memfd = rtxd_make_memfd();
    if (c->memfd < 0)
        return c->memfd;
    c->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->event < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, c->event, &event) < 0)
        return -errno;
    c->polling = ASYM_RTXD_POLLED;
    return 0;
}

static void insert(struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    size_t i = s->n++;
    for (; i > 0 && s->clients[i - 1]->pid > c->pid; i--)
        s->clients[i] = s->clients[i - 1];
    s->clients[i] = c;
}

static int add(struct asym_rtxd_server *s, const struct asym_rtxd_report *came, uint64_t start, asym_usec now)
{
    const struct asym_rtxd_order grant = {
        .kind = ASYM_RTXD_ORDER_GRANT, .id = came->id, .page_size = ASYM_RTXD_PAGE_SIZE};
    struct asym_rtxd_client *c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    *c = (struct asym_rtxd_client){
        .id = came->id, .memfd = -1, .event = -1, .pid = came->pid, .uid = came->uid, .start = start, .came = now};
    int r = open_files(s, c);
    if (r == 0)
        r = asym_rtxd_order(s, &grant, (const int[]){c->memfd, c->event}, 2);
    if (r == 0) {
        insert(s, c);
        return 0;
    }
    /* The program holds neither of them, so asymd may close them. */
    asym_close_p(&c->event);
    asym_close_p(&c->memfd);
    free(c);
    return r;
}

/* A user that connects again and again does not keep out another user's first connection. */
static bool may_be_considered(struct asym_rtxd_server *s, uid_t uid)
{
    bool first = true;
    for (size_t i = 0; i < s->n_takers; i++)
        first &= s->takers[i] != uid;
    if (first && s->n_takers < ASYM_RTXD_MAX_TAKEN_USERS)
        s->takers[s->n_takers++] = uid;
    else
        first = false;
    return s->taken++ < ASYM_RTXD_MAX_TAKEN || first;
}

/* 0: the program is admitted; -errno: it is not, and *ret is the reason. */
static int check(struct asym_rtxd_server *s, const struct asym_rtxd_report *came, asym_usec now,
                 enum asym_rtxd_refusal *ret)
{
    struct asym_stat stat;
    *ret = ASYM_RTXD_REFUSED_BUSY;
    if (!may_be_considered(s, came->uid) || s->n + s->n_orphans >= 2 * ASYM_RTXD_MAX_CLIENTS)
        return -EBUSY;
    *ret = ASYM_RTXD_REFUSED_NAMESPACE;
    if (is_elsewhere(came->pid))
        return -EPROTO;
    int r = asym_thread_get_stat(came->pid, came->pid, &stat);
    if (r == -ESRCH)
        return r;
    *ret = ASYM_RTXD_REFUSED_NO_FD;
    if (r < 0)
        return r;
    *ret = ASYM_RTXD_REFUSED_OTHER;
    if (!came->is_certain && !is_of_user(came->pid, came->uid))
        return -EPROTO;
    *ret = ASYM_RTXD_REFUSED_FULL;
    if (!find_place(s, came->pid, came->uid))
        return -EBUSY;
    r = add(s, came, stat.start, now);
    *ret = r == -EAGAIN ? ASYM_RTXD_REFUSED_BUSY : ASYM_RTXD_REFUSED_NO_FD;
    return r;
}

/* The process or the helper has ended. The server reports a lost helper once, not for each connection. */
static bool has_ended(int r)
{
    return r == -ESRCH || r == -ENOTCONN;
}

void asym_rtxd_admit(struct asym_rtxd_server *s, const struct asym_rtxd_report *came, asym_usec now)
{
    enum asym_rtxd_refusal refusal;
    int r = check(s, came, now, &refusal);
    if (r == 0)
        return;
    if (!has_ended(r))
        asym_rtxd_refuse(s, refusal, came->pid, came->uid);
    asym_rtxd_close_connection(s, came->id, -1);
}
