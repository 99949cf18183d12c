/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program has connected: has it a place, is it what it says, and the memory that it gets. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/rtx-server-internal.h"
#include "linux/thread.h"

static size_t count_of_user(const struct asym_rtx_server *s, uid_t uid)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->clients[i]->uid == uid && !s->clients[i]->over;
    return n;
}

/* The latest of the user other than root that has the most. *ret_n: how many that has. */
static struct asym_rtx_client *find_richest(const struct asym_rtx_server *s, size_t *ret_n)
{
    struct asym_rtx_client *found = NULL;
    *ret_n = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct asym_rtx_client *c = s->clients[i];
        if (c->uid == 0 || c->over)
            continue;
        const size_t n = count_of_user(s, c->uid);
        if (n < *ret_n || (n == *ret_n && found && (c->uid != found->uid || c->id < found->id)))
            continue;
        found = c;
        *ret_n = n;
    }
    return found;
}

/* Where it takes a place, that is the other one's that is dropped for it. */
static bool find_place(struct asym_rtx_server *s, pid_t pid, uid_t uid)
{
    const size_t mine = count_of_user(s, uid), of_root = count_of_user(s, 0);
    size_t n = 0, of_pid = 0, most;
    for (size_t i = 0; i < s->n; i++) {
        n += !s->clients[i]->over;
        of_pid += s->clients[i]->pid == pid && !s->clients[i]->over;
    }
    if (of_pid >= ASYM_RTX_MAX_OF_PID || (uid != 0 && mine >= ASYM_RTX_MAX_OF_USER))
        return false;
    if (s->n < ASYM_RTX_MAX_CLIENTS && (uid == 0 || n - of_root < ASYM_RTX_MAX_OF_USERS))
        return true;
    struct asym_rtx_client *richest = find_richest(s, &most);
    if (!richest || (uid != 0 && most < mine + 2))
        return false;
    asym_rtx_drop(s, richest, ASYM_RTX_REFUSED_YIELDS);
    asym_rtx_sweep(s);
    return true;
}

/* Its numbers are ours only in our PID namespace; where that cannot be seen they are looked up, and come to nothing. */
static bool is_elsewhere(pid_t pid)
{
    char path[64];
    struct stat ours, its;
    snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
    return stat("/proc/self/ns/pid", &ours) == 0 && stat(path, &its) == 0 && ours.st_ino != its.st_ino;
}

/*
 * Without SO_PEERPIDFD the number may be a successor's by now. One of the same user gains nothing by that. The user is looked
 * up after the start time, so that both are of one process or the user is that of a later one.
 */
static bool is_of_user(pid_t pid, uid_t uid)
{
    char path[64], text[4096];
    const char *value;
    size_t len;
    unsigned real, effective;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    ASYM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0 || asym_parse_status_line(text, (size_t)n, "Uid", &value, &len) < 0)
        return false;
    text[n] = '\0';
    return sscanf(value, "%u %u", &real, &effective) == 2 && effective == uid;
}

/* Watched before the program has it, see rtx-server.h. */
static int open_files(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = c};
    c->memfd = asym_rtx_make_memfd();
    if (c->memfd < 0)
        return c->memfd;
    c->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->event < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, c->event, &event) < 0)
        return -errno;
    c->watched = true;
    return 0;
}

static void insert(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    size_t i = s->n++;
    for (; i > 0 && s->clients[i - 1]->pid > c->pid; i--)
        s->clients[i] = s->clients[i - 1];
    s->clients[i] = c;
}

static int add(struct asym_rtx_server *s, const struct asym_rtx_report *came, uint64_t start, asym_usec now)
{
    const struct asym_rtx_order grant = {.kind = ASYM_RTX_ORDER_GRANT, .id = came->id, .page_size = ASYM_RTX_PAGE_SIZE};
    struct asym_rtx_client *c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    *c = (struct asym_rtx_client){
        .id = came->id, .memfd = -1, .event = -1, .pid = came->pid, .uid = came->uid, .start = start, .came = now};
    int r = open_files(s, c);
    if (r == 0 && !asym_rtx_order(s, &grant, (const int[]){c->memfd, c->event}, 2))
        r = -EAGAIN;
    if (r == 0) {
        insert(s, c);
        return 0;
    }
    /* The program has neither. */
    asym_close_p(&c->event);
    asym_close_p(&c->memfd);
    free(c);
    return r;
}

/* A user that connects again and again does not keep out one that has just come. */
static bool may_be_considered(struct asym_rtx_server *s, uid_t uid)
{
    bool first = true;
    for (size_t i = 0; i < s->n_takers; i++)
        first &= s->takers[i] != uid;
    if (first && s->n_takers < ASYM_RTX_MAX_TAKEN_USERS)
        s->takers[s->n_takers++] = uid;
    else
        first = false;
    return s->taken++ < ASYM_RTX_MAX_TAKEN || first;
}

/* 0: it is in; else why not. */
static int check(struct asym_rtx_server *s, const struct asym_rtx_report *came, asym_usec now,
                 enum asym_rtx_refusal *ret)
{
    struct asym_stat stat;
    *ret = ASYM_RTX_REFUSED_BUSY;
    if (!may_be_considered(s, came->uid) || s->n_orphans > ASYM_RTX_MAX_CLIENTS)
        return -EBUSY;
    *ret = ASYM_RTX_REFUSED_NAMESPACE;
    if (is_elsewhere(came->pid))
        return -EPROTO;
    /* One that has ended is not worth a word. */
    int r = asym_thread_get_stat(came->pid, came->pid, &stat);
    if (r == -ESRCH)
        return r;
    *ret = ASYM_RTX_REFUSED_NO_FD;
    if (r < 0)
        return r;
    *ret = ASYM_RTX_REFUSED_OTHER;
    if (!came->is_certain && !is_of_user(came->pid, came->uid))
        return -EPROTO;
    *ret = ASYM_RTX_REFUSED_FULL;
    if (!find_place(s, came->pid, came->uid))
        return -EBUSY;
    *ret = ASYM_RTX_REFUSED_NO_FD;
    return add(s, came, stat.start, now);
}

void asym_rtx_admit(struct asym_rtx_server *s, const struct asym_rtx_report *came, asym_usec now)
{
    enum asym_rtx_refusal refusal;
    int r = check(s, came, now, &refusal);
    if (r == 0)
        return;
    if (r != -ESRCH)
        asym_rtx_refuse(s, refusal, came->pid, came->uid);
    asym_rtx_close_connection(s, came->id, -1);
}
