/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Admits a program that has announced a file, reads its page, and lets it go. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/rtx/rtx-server-internal.h"
#include "linux/sys/thread.h"

static void refuse(const struct asym_rtxd_server *s, enum asym_rtxd_refusal refusal, pid_t pid, uid_t uid)
{
    if (s->config.refused)
        s->config.refused(s->config.ctx, refusal, pid, uid);
}

/* A user for whom there is no directory is looked up again with each of the user's processes, and asymd logs it. */
void asym_rtxd_meet(struct asym_rtxd_provider *provider, int32_t pid, uint64_t start)
{
    struct asym_rtxd_server *s = (struct asym_rtxd_server *)(void *)provider;
    const size_t i = (uint32_t)pid % ASYM_RTXD_MAX_MET;
    char path[64];
    struct stat st;
    if ((s->met[i].pid == pid && s->met[i].start == start) || s->n_met == ASYM_RTXD_MAX_MET)
        return;
    s->n_met++;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    if (stat(path, &st) < 0)
        return;
    const int r = asym_rtxd_add_user(s, st.st_uid);
    if (r < 0 && r != -EPERM)
        refuse(s, ASYM_RTXD_REFUSED_FULL, pid, st.st_uid);
    s->met[i].pid = pid;
    s->met[i].start = start;
}

/* Failed openings of a page, one after another, that end its client. */
#define MAX_MISSED 8

/* asymd may be able to open the page later. EAGAIN: a process mounts something, or the name has gone. */
static bool is_passing(int r)
{
    return r == -EAGAIN || r == -EMFILE || r == -ENFILE || r == -ENOMEM;
}

/* Returns a descriptor for reading, which the caller closes at once: the last close of a file frees its memory. */
static int open_page(struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    const int fd = asym_rtxd_is_of_user(c) ? asym_rtxd_open_page(s, c) : -EPERM;
    c->n_missed = fd < 0 ? c->n_missed + 1 : 0;
    if (fd < 0 && (!is_passing(fd) || c->n_missed == MAX_MISSED))
        asym_rtxd_end(s, c);
    return fd;
}

/* A file that cannot be silenced ends its program. */
void asym_rtxd_hear(struct asym_rtxd_server *s, struct asym_rtxd_client *c, enum asym_rtxd_client_hearing how)
{
    const bool hears = how == ASYM_RTXD_HEARD;
    if (hears != (c->hearing == ASYM_RTXD_HEARD)) {
        ASYM_AUTO_CLOSE int fd = open_page(s, c);
        if (is_passing(fd))
            return;
        if (fd < 0 || asym_rtxd_watch(s, fd, hears ? IN_MODIFY | IN_CLOSE_WRITE : IN_CLOSE_WRITE) < 0)
            asym_rtxd_end(s, c);
    }
    c->hearing = how;
}

static void free_client(struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    inotify_rm_watch(s->inotify, c->watch);
    asym_rtxd_retire(s, c);
    close(c->process);
    free(c->page_state.readings);
    free(c->said);
    free(c);
}

void asym_rtxd_sweep(struct asym_rtxd_server *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->clients[i]->ended)
            free_client(s, s->clients[i]);
        else
            s->clients[kept++] = s->clients[i];
    }
    s->n = kept;
}

/* Slots that fit into one page of memory with the header. Reading fewer is no cheaper. */
#define FEW 63
/* A first slot up to this offset is read together with the header, bytes. */
#define NEAR 4096

_Static_assert(ASYM_RTXD_PAGE_SIZE <= ASYM_RTXD_MAX_PAGE, "it is read");

/* Bytes that pread(2) does not return count as zero. */
static void copy(int fd, char *to, size_t from, size_t end)
{
    const ssize_t n = pread(fd, to + from, end - from, (off_t)from);
    const size_t got = n > 0 ? (size_t)n : 0;
    memset(to + from + got, 0, end - from - got);
}

/*
 * Copy the header and what is between the first slot and end. One pread(2) copies the gap before the first slot, too, if that
 * is cheaper than a second call. A program can make the gap as large as the page.
 */
static void copy_header_and_slots(int fd, size_t header_size, char *to, size_t end)
{
    const size_t slots = header_size > NEAR ? header_size : 0;
    if (slots > 0)
        copy(fd, to, 0, sizeof(struct asym_rtx_header));
    copy(fd, to, slots, end);
}

/* One pread(2) suffices for pages of the library in most cases, because the number of used slots only grows. */
ssize_t asym_rtxd_copy_page(struct asym_rtxd_server *s, struct asym_rtxd_client *c, size_t most)
{
    const struct asym_rtxd_layout *l = &c->layout;
    struct asym_rtx_header h;
    most = ASYM_MIN(most, (size_t)l->n_slots);
    const size_t guess = ASYM_MIN(ASYM_MAX(c->n_known, (size_t)FEW * 64 / l->slot_size), most);
    const size_t first = l->header_size + guess * l->slot_size;
    ASYM_AUTO_CLOSE int fd = open_page(s, c);
    if (fd < 0)
        return fd;
    copy_header_and_slots(fd, l->header_size, s->copy, first);
    memcpy(&h, s->copy, sizeof h);
    if (h.magic != ASYM_RTX_MAGIC) {
        asym_rtxd_end(s, c);
        return -EPROTO;
    }
    const size_t used = ASYM_MIN((size_t)h.n_used, most);
    if (used > guess)
        copy(fd, s->copy, first, l->header_size + used * l->slot_size);
    c->n_known = used;
    return (ssize_t)used;
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
        if (n < *ret_n || (n == *ret_n && found && (c->uid != found->uid || c->order < found->order)))
            continue;
        found = c;
        *ret_n = n;
    }
    return found;
}

/* If no place is free, drop a client of the user with the most places. */
static bool find_place(struct asym_rtxd_server *s, pid_t pid, uid_t uid)
{
    size_t of_pid = 0, most;
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
    refuse(s, ASYM_RTXD_REFUSED_YIELDS, richest->pid, richest->uid);
    asym_rtxd_end(s, richest);
    asym_rtxd_sweep(s);
    return true;
}

static int insert(struct asym_rtxd_server *s, const struct asym_rtxd_client *found)
{
    struct asym_rtxd_client *c = malloc(sizeof *c);
    if (!c)
        return -ENOMEM;
    *c = *found;
    size_t i = s->n++;
    for (; i > 0 && s->clients[i - 1]->pid > c->pid; i--)
        s->clients[i] = s->clients[i - 1];
    c->order = ++s->order;
    c->n_wakeups = 1; /* it may have woken asymd before the watch */
    s->clients[i] = c;
    return 0;
}

/* A user that announces files again and again does not keep out another user's first one. */
static bool may_be_considered(struct asym_rtxd_server *s, struct asym_rtxd_user *user)
{
    if (user->uid == 0)
        return true;
    if (user->taken == ASYM_RTXD_MAX_TAKEN_OF_USER || (user->taken > 0 && s->taken >= ASYM_RTXD_MAX_TAKEN))
        return false;
    user->taken++;
    s->taken++;
    return true;
}

/* One file has one watch, whatever its name. That of another client stays as it is: asymd may not hear it for a while. */
static int take_page(struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    ASYM_AUTO_CLOSE int fd = asym_rtxd_open_page(s, c);
    if (fd < 0)
        return fd;
    copy(fd, s->copy, 0, sizeof(struct asym_rtx_header));
    const int r = asym_rtxd_check_page(s->copy, ASYM_RTXD_PAGE_SIZE, &c->layout);
    if (r < 0)
        return r == -EPROTONOSUPPORT ? r : -EBADMSG;
    c->watch = asym_rtxd_watch(s, fd, IN_MODIFY | IN_CLOSE_WRITE | IN_MASK_CREATE);
    return c->watch < 0 ? c->watch : 0;
}

/* Unused entries take no memory: the kernel allocates pages of so large an array at the first write. */
static int allocate(struct asym_rtxd_client *c)
{
    c->page_state.readings = calloc(c->layout.n_slots, sizeof *c->page_state.readings);
    c->said = calloc(c->layout.n_slots, sizeof *c->said);
    return c->page_state.readings && c->said ? 0 : -ENOMEM;
}

/* If the process still lives in the end, the start time is its own. 0; -EACCES: not the user's; -errno. */
static int identify(struct asym_rtxd_client *c)
{
    struct asym_stat stat;
    c->process = asym_rtxd_open_process(c->pid);
    if (c->process < 0)
        return c->process == -ENOENT ? -ESRCH : c->process;
    const int r = asym_thread_get_stat(c->pid, c->pid, &stat);
    if (r < 0)
        return r;
    c->start = stat.start;
    return asym_rtxd_is_of_user(c) ? 0 : -EACCES;
}

/* Clients that have ended leave their places first. 0: the program is admitted; -errno: it is not. */
static int check(struct asym_rtxd_server *s, struct asym_rtxd_user *user, struct asym_rtxd_client *c)
{
    asym_rtxd_sweep(s);
    if (c->uid != 0 && count_of_user(s, c->uid) >= ASYM_RTXD_MAX_OF_USER)
        return -EDQUOT;
    if (!may_be_considered(s, user))
        return -EBUSY;
    int r = identify(c);
    if (r == 0)
        r = take_page(s, c);
    if (r == 0)
        r = allocate(c);
    if (r < 0)
        return r;
    return find_place(s, c->pid, c->uid) ? insert(s, c) : -EDQUOT;
}

/* Returns whether this is the name of a page, and no client's yet. */
static bool is_new(const struct asym_rtxd_server *s, const char *name, struct asym_rtxd_client *ret)
{
    char canonical[64];
    if (sscanf(name, ASYM_RTX_FILE "%d.%" SCNu64, &ret->pid, &ret->number) != 2 || ret->pid <= 0)
        return false;
    snprintf(canonical, sizeof canonical, ASYM_RTX_FILE "%d.%" PRIu64, (int)ret->pid, ret->number);
    if (strcmp(name, canonical) != 0)
        return false;
    for (size_t i = 0; i < s->n; i++)
        if (s->clients[i]->pid == ret->pid && s->clients[i]->number == ret->number && s->clients[i]->uid == ret->uid)
            return false;
    return true;
}

static enum asym_rtxd_refusal reason_of(int r)
{
    switch (r) {
    case -EDQUOT:
        return ASYM_RTXD_REFUSED_FULL;
    case -EBUSY:
        return ASYM_RTXD_REFUSED_BUSY;
    case -EACCES:
        return ASYM_RTXD_REFUSED_OTHER;
    case -EBADMSG:
        return ASYM_RTXD_REFUSED_GARBAGE;
    case -EPROTONOSUPPORT:
        return ASYM_RTXD_REFUSED_VERSION;
    case -EMFILE:
    case -ENFILE:
    case -ENOMEM:
    case -ENOSPC:
        return ASYM_RTXD_REFUSED_NO_FD;
    default:
        return ASYM_RTXD_REFUSED_FILE;
    }
}

void asym_rtxd_admit(struct asym_rtxd_server *s, struct asym_rtxd_user *user, const char *name, asym_usec now)
{
    struct asym_rtxd_client c = {.dir = user->dir, .process = -1, .watch = -1, .uid = user->uid, .reported_at = now};
    if (!is_new(s, name, &c))
        return;
    const int r = check(s, user, &c);
    if (r == 0)
        return;
    if (c.watch >= 0)
        inotify_rm_watch(s->inotify, c.watch);
    asym_close_p(&c.process);
    free(c.page_state.readings);
    free(c.said);
    /* A file or a process that has ended is no fault of the program. -EAGAIN: the user moves its files. */
    if (r != -ESRCH && r != -ENOENT && r != -EAGAIN)
        refuse(s, reason_of(r), c.pid, c.uid);
}
