/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starts, pings and replaces the server's helper. */
#include "linux/rtx/rtx-channel.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/rtx/rtx-server-internal.h"
#include "linux/sys/helper-process.h"

/*
 * A full channel (-EAGAIN) is no fault of the helper: asymd may end all clients at once. The caller tries again in the next
 * housekeeping. A helper that does not read its orders answers no ping, either, and is replaced for that.
 */
int asym_rtxd_order(struct asym_rtxd_server *s, const struct asym_rtxd_order *order, const int *fds, size_t n_fds)
{
    const int r = s->link->order(s->link, order, fds, n_fds);
    s->broken |= r < 0 && r != -EAGAIN;
    return r;
}

/* Pass these descriptors to the helper, which holds them until id is closed, and close them here. */
static bool give_away(struct asym_rtxd_server *s, uint32_t id, const int *fds, size_t n)
{
    const struct asym_rtxd_order hold = {.kind = ASYM_RTXD_ORDER_HOLD, .id = id};
    if (asym_rtxd_order(s, &hold, fds, n) < 0)
        return false;
    for (size_t i = 0; i < n; i++)
        close(fds[i]);
    return true;
}

/* A helper has at most ASYM_RTXD_MAX_CONNECTIONS connections to close. */
static void close_id(struct asym_rtxd_server *s, uint32_t id)
{
    if (asym_rtxd_order(s, &(struct asym_rtxd_order){.kind = ASYM_RTXD_ORDER_CLOSE, .id = id}, NULL, 0) == 0)
        return;
    if (s->n_unclosed < ASYM_LENGTH(s->unclosed))
        s->unclosed[s->n_unclosed++] = id;
    else
        s->broken = true;
}

/* Without room for the eventfd, catch_up() gives both orders: after a CLOSE the helper does not know the user any more. */
void asym_rtxd_close_connection(struct asym_rtxd_server *s, uint32_t id, int event)
{
    if (event >= 0 && !give_away(s, id, &event, 1))
        s->orphans[s->n_orphans++] = (struct asym_rtxd_orphan){.id = id, .fd = event};
    else
        close_id(s, id);
}

/* Copy the last orphans, as many as have one id and fit into one order. Returns their number. */
static size_t last_orphans(const struct asym_rtxd_server *s, int ret_fds[ASYM_HELPER_MAX_FDS])
{
    const uint32_t id = s->orphans[s->n_orphans - 1].id;
    size_t n = 0;
    while (n < ASYM_MIN(s->n_orphans, (size_t)ASYM_HELPER_MAX_FDS) && s->orphans[s->n_orphans - 1 - n].id == id) {
        ret_fds[n] = s->orphans[s->n_orphans - 1 - n].fd;
        n++;
    }
    return n;
}

/* Give the orders for which the channel was full. */
static void catch_up(struct asym_rtxd_server *s)
{
    const size_t n = s->n_unclosed;
    s->n_unclosed = 0;
    for (size_t i = 0; i < n; i++)
        close_id(s, s->unclosed[i]);
    while (s->n_orphans > 0) {
        int fds[ASYM_HELPER_MAX_FDS];
        const uint32_t id = s->orphans[s->n_orphans - 1].id;
        const size_t some = last_orphans(s, fds);
        if (!give_away(s, id, fds, some))
            return;
        s->n_orphans -= some;
        close_id(s, id);
    }
}

/* A new helper counts its connections from 1 again, so an id of the earlier one would name another connection. */
static void forget_ids(struct asym_rtxd_server *s)
{
    s->n_unclosed = 0;
    for (size_t i = 0; i < s->n_orphans; i++)
        s->orphans[i].id = 0;
}

/* Bind the socket only: the helper calls listen(2). */
static int bind_socket(struct asym_rtxd_server *s)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, s->path, sizeof address.sun_path);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    /* The ACL belonged to the old socket, and a new helper refuses no user yet. */
    s->n_barred = 0;
    /* A killed asymd leaves its socket behind. No other asymd runs here: this one holds the lock of the ledger. */
    if ((unlink(s->path) == 0 || errno == ENOENT) && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        chmod(s->path, 0666) == 0)
        return fd;
    const int error = errno;
    close(fd);
    return -error;
}

static int give_socket(struct asym_rtxd_server *s)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    const struct asym_rtxd_order listen = {.kind = ASYM_RTXD_ORDER_LISTEN,
                                           .flags = s->config.files_may_be_passed ? ASYM_RTXD_FILES_MAY_BE_PASSED : 0};
    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->link->fd(s->link), &event) < 0)
        return -errno;
    ASYM_AUTO_CLOSE int fd = bind_socket(s);
    if (fd < 0)
        return fd;
    return asym_rtxd_order(s, &listen, &fd, 1);
}

int asym_rtxd_start_helper(struct asym_rtxd_server *s, asym_usec now, struct asym_error *err)
{
    s->silent_calls = 0;
    s->pinged = s->broken = false;
    s->retry_after = ASYM_MIN(ASYM_MAX(s->retry_after * 2, ASYM_RTXD_RETRY_MIN), ASYM_RTXD_RETRY_MAX);
    s->retry_at = now + s->retry_after;
    int r = s->link->start(s->link, err);
    if (r < 0)
        return r;
    forget_ids(s);
    catch_up(s);
    r = give_socket(s);
    if (r == 0)
        return 0;
    s->link->kill(s->link);
    return asym_fail(err, r, "%s: %s", s->path, strerror(-r));
}

void asym_rtxd_lose_helper(struct asym_rtxd_server *s, asym_usec now, const char *why)
{
    s->link->kill(s->link);
    for (size_t i = 0; i < s->n; i++)
        asym_rtxd_end(s, s->clients[i]);
    s->use_before.cpu += s->use.cpu;
    s->use_before.turned_away += s->use.turned_away;
    s->use = (struct asym_rtxd_helper_use){0};
    s->retry_at = ASYM_MAX(s->retry_at, now);
    if (s->config.lost)
        s->config.lost(s->config.ctx, why);
}

static bool is_silent(const struct asym_rtxd_server *s)
{
    if (s->silent_calls < ASYM_RTXD_MAX_SILENT)
        return false;
    return s->silent_calls >= ASYM_RTXD_MAX_SILENT_RUNNABLE || !s->link->is_runnable(s->link);
}

void asym_rtxd_check_helper(struct asym_rtxd_server *s, asym_usec now)
{
    s->link->reap(s->link);
    if (s->link->fd(s->link) >= 0 && (s->broken || is_silent(s)))
        asym_rtxd_lose_helper(s, now, "it does not answer");
}

void asym_rtxd_update_helper(struct asym_rtxd_server *s, asym_usec now)
{
    struct asym_error err = {""};
    if (s->link->fd(s->link) < 0) {
        if (now >= s->retry_at && asym_rtxd_start_helper(s, now, &err) < 0 && s->config.lost)
            s->config.lost(s->config.ctx, err.text);
        return;
    }
    catch_up(s);
    if (s->silent_calls++ == 0) {
        s->ping++;
        s->pinged = false;
    }
    if (!s->pinged)
        s->pinged = asym_rtxd_order(s, &(struct asym_rtxd_order){.kind = ASYM_RTXD_ORDER_PING, .id = s->ping}, NULL,
                                    0) == 0;
    /* The helper has lived longer than the delay before its start: the next delay is the shortest again. */
    if (now >= s->retry_at)
        s->retry_after = 0;
}

struct asym_rtxd_helper_use asym_rtxd_server_helper_use(const struct asym_rtxd_server *s)
{
    return (struct asym_rtxd_helper_use){.cpu = s->use_before.cpu + s->use.cpu,
                                         .turned_away = s->use_before.turned_away + s->use.turned_away};
}
