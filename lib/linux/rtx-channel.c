/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The server's dealings with its helper: started, asked whether it is there, replaced. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/helper.h"
#include "linux/rtx-server-internal.h"

bool asym_rtx_order(struct asym_rtx_server *s, const struct asym_rtx_order *order, const int *fds, size_t n_fds)
{
    const bool taken = s->link->order(s->link, order, fds, n_fds) == 0;
    s->broken |= !taken;
    return taken;
}

/* Give these to the helper, and close them here: it has others of the same, which it keeps until id is closed. */
static bool give_away(struct asym_rtx_server *s, uint32_t id, const int *fds, size_t n)
{
    const struct asym_rtx_order hold = {.kind = ASYM_RTX_ORDER_HOLD, .id = id};
    if (!asym_rtx_order(s, &hold, fds, n))
        return false;
    for (size_t i = 0; i < n; i++)
        close(fds[i]);
    return true;
}

void asym_rtx_close_connection(struct asym_rtx_server *s, uint32_t id, int event)
{
    const struct asym_rtx_order order = {.kind = ASYM_RTX_ORDER_CLOSE, .id = id};
    if (event >= 0 && !give_away(s, id, &event, 1))
        s->orphans[s->n_orphans++] = event;
    asym_rtx_order(s, &order, NULL, 0);
}

static void hand_over_orphans(struct asym_rtx_server *s)
{
    while (s->n_orphans > 0) {
        const size_t n = ASYM_MIN(s->n_orphans, (size_t)ASYM_HELPER_MAX_FDS);
        if (!give_away(s, 0, &s->orphans[s->n_orphans - n], n))
            return;
        s->n_orphans -= n;
        asym_rtx_close_connection(s, 0, -1);
    }
}

/* Bound and no more: the helper listens. */
static int bind_socket(const struct asym_rtx_server *s)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, s->path, sizeof address.sun_path);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    /* One that was killed has left it behind; there is no other, as the ledger is locked. */
    if ((unlink(s->path) == 0 || errno == ENOENT) && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        chmod(s->path, 0666) == 0)
        return fd;
    const int error = errno;
    close(fd);
    return -error;
}

static int give_socket(struct asym_rtx_server *s)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    const struct asym_rtx_order listen = {.kind = ASYM_RTX_ORDER_LISTEN,
                                          .flags = s->config.files_may_be_passed ? ASYM_RTX_FILES_MAY_BE_PASSED : 0};
    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->link->fd(s->link), &event) < 0)
        return -errno;
    ASYM_AUTO_CLOSE int fd = bind_socket(s);
    if (fd < 0)
        return fd;
    return asym_rtx_order(s, &listen, &fd, 1) ? 0 : -ENOTCONN;
}

int asym_rtx_start_helper(struct asym_rtx_server *s, asym_usec now, struct asym_error *err)
{
    s->unheard = 0;
    s->broken = false;
    s->retry_after = ASYM_MIN(ASYM_MAX(s->retry_after * 2, ASYM_RTX_RETRY_MIN), ASYM_RTX_RETRY_MAX);
    s->retry_at = now + s->retry_after;
    int r = s->link->start(s->link, err);
    if (r < 0)
        return r;
    hand_over_orphans(s);
    r = give_socket(s);
    if (r == 0)
        return 0;
    s->link->kill(s->link);
    return asym_fail(err, r, "%s: %s", s->path, strerror(-r));
}

void asym_rtx_lose_helper(struct asym_rtx_server *s, asym_usec now, const char *why)
{
    s->link->kill(s->link);
    for (size_t i = 0; i < s->n; i++)
        asym_rtx_end(s, s->clients[i]);
    s->use_before.cpu += s->use.cpu;
    s->use_before.turned_away += s->use.turned_away;
    s->use = (struct asym_rtx_helper_use){0};
    s->retry_at = ASYM_MAX(s->retry_at, now);
    if (s->config.lost)
        s->config.lost(s->config.ctx, why);
}

void asym_rtx_mind_helper(struct asym_rtx_server *s, asym_usec now)
{
    struct asym_error err = {""};
    s->link->reap(s->link);
    if (s->link->fd(s->link) >= 0 && (s->broken || s->unheard >= ASYM_RTX_MAX_UNHEARD)) {
        asym_rtx_lose_helper(s, now, "it does not answer");
        asym_rtx_sweep(s);
    }
    if (s->link->fd(s->link) < 0) {
        if (now >= s->retry_at && asym_rtx_start_helper(s, now, &err) < 0 && s->config.lost)
            s->config.lost(s->config.ctx, err.text);
        return;
    }
    hand_over_orphans(s);
    if (s->unheard++ == 0)
        s->ping++;
    if (s->unheard == 1)
        asym_rtx_order(s, &(struct asym_rtx_order){.kind = ASYM_RTX_ORDER_PING, .id = s->ping}, NULL, 0);
    /* It has lived for as long as was waited for it. */
    if (now >= s->retry_at)
        s->retry_after = 0;
}

struct asym_rtx_helper_use asym_rtx_server_helper_use(const struct asym_rtx_server *s)
{
    return (struct asym_rtx_helper_use){.cpu = s->use_before.cpu + s->use.cpu,
                                        .turned_away = s->use_before.turned_away + s->use.turned_away};
}
