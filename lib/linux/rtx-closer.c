/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/rtx-closer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "linux/rtx-acceptor.h"

_Static_assert(ASYM_RTX_MAX_DOOMED >= ASYM_RTX_DOOMED_FULL + 3 * ASYM_RTX_MAX_CONNECTIONS, "room for all that may end");

void asym_rtx_doom(struct asym_rtx_closers *c, int fd, uid_t uid)
{
    if (fd < 0)
        return;
    /* The end of this process closes everything. */
    if (c->n_doomed == ASYM_RTX_MAX_DOOMED)
        _exit(1);
    c->doomed[c->n_doomed].fd = fd;
    c->doomed[c->n_doomed++].uid = uid;
}

static bool has_closer(const struct asym_rtx_closers *c, uid_t uid)
{
    for (size_t i = 0; i < c->n_running; i++)
        if (c->running[i].uid == uid)
            return true;
    return false;
}

bool asym_rtx_is_hung(const struct asym_rtx_closers *c, uid_t uid)
{
    for (size_t i = 0; i < c->n_running; i++)
        if (c->running[i].uid == uid && c->running[i].hung)
            return true;
    return false;
}

bool asym_rtx_is_closing(const struct asym_rtx_closers *c)
{
    return c->n_running > 0 || c->n_doomed > 0;
}

bool asym_rtx_may_doom(const struct asym_rtx_closers *c)
{
    return c->n_doomed < ASYM_RTX_DOOMED_FULL;
}

const struct asym_rtx_closer *asym_rtx_newly_hung(struct asym_rtx_closers *c, long long now)
{
    for (size_t i = 0; i < c->n_running; i++) {
        if (c->running[i].hung || now - c->running[i].since < ASYM_RTX_HUNG_MS)
            continue;
        c->running[i].hung = true;
        return &c->running[i];
    }
    return NULL;
}

static void collect(struct asym_rtx_closers *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->n_running; i++) {
        const pid_t r = waitpid(c->running[i].pid, NULL, WNOHANG);
        if (r == 0 || (r < 0 && errno == EINTR))
            c->running[kept++] = c->running[i];
    }
    c->n_running = kept;
}

static int compare(const void *a, const void *b)
{
    const int *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* Close every other descriptor: a closer that sleeps must hold nothing else, the channels to asymd least of all. */
static void keep_only(int fds[], size_t n)
{
    unsigned from = 0;
    qsort(fds, n, sizeof fds[0], compare);
    for (size_t i = 0; i < n; i++) {
        if ((unsigned)fds[i] > from)
            close_range(from, (unsigned)fds[i] - 1, 0);
        from = (unsigned)fds[i] + 1;
    }
    close_range(from, UINT_MAX, 0);
}

/*
 * The child waits until the parent has closed its descriptors, so that the child's are the last ones, and ends: its
 * descriptors are closed by its end.
 */
static pid_t start(int fds[], size_t n, int gate[2])
{
    const pid_t pid = fork();
    if (pid != 0)
        return pid;
    char byte;
    fds[n] = gate[0];
    keep_only(fds, n + 1);
    while (read(gate[0], &byte, 1) < 0 && errno == EINTR)
        ;
    _exit(0);
}

/* Take what is doomed for this user out of the list. How many. */
static size_t take(struct asym_rtx_closers *c, uid_t uid, int ret_fds[])
{
    size_t kept = 0, n = 0;
    for (size_t i = 0; i < c->n_doomed; i++) {
        if (c->doomed[i].uid == uid)
            ret_fds[n++] = c->doomed[i].fd;
        else
            c->doomed[kept++] = c->doomed[i];
    }
    c->n_doomed = kept;
    return n;
}

static bool close_for(struct asym_rtx_closers *c, uid_t uid, long long now)
{
    int fds[ASYM_RTX_MAX_DOOMED + 1], gate[2];
    if (pipe2(gate, O_CLOEXEC) < 0)
        return false;
    const size_t n = take(c, uid, fds);
    const pid_t pid = start(fds, n, gate);
    close(gate[0]);
    for (size_t i = 0; i < n; i++) {
        if (pid < 0)
            asym_rtx_doom(c, fds[i], uid);
        else
            close(fds[i]);
    }
    close(gate[1]);
    if (pid > 0)
        c->running[c->n_running++] = (struct asym_rtx_closer){.pid = pid, .uid = uid, .since = now};
    return pid > 0;
}

void asym_rtx_close_doomed(struct asym_rtx_closers *c, long long now)
{
    bool started = true;
    collect(c);
    while (started) {
        started = false;
        for (size_t i = 0; i < c->n_doomed && !started && c->n_running < ASYM_RTX_MAX_CLOSERS; i++)
            if (!has_closer(c, c->doomed[i].uid))
                started = close_for(c, c->doomed[i].uid, now);
    }
}
