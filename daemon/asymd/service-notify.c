/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymd/service-internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

#include "base/clock.h"
#include "base/macro.h"

/*
 * A message that found no room is tried again after this time. Every user may write to the socket of systemd, so that a place
 * which the manager frees may be taken at once.
 */
#define RETRY (10 * ASYM_MSEC)

enum { MESSAGE_SIZE = 1024 };

/* A path, or "@" and an abstract name. Returns its length; -errno. */
static int find_manager(struct sockaddr_un *ret)
{
    const char *name = getenv("NOTIFY_SOCKET");
    const size_t length = name ? strlen(name) : 0;
    if (length < 2 || (*name != '/' && *name != '@'))
        return -ENOENT;
    if (length >= sizeof ret->sun_path)
        return -ENAMETOOLONG;
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret->sun_path, name, length);
    if (*name == '@')
        ret->sun_path[0] = '\0';
    return (int)(offsetof(struct sockaddr_un, sun_path) + length + (*name == '/'));
}

/* Returns 0; -EAGAIN: the queue of the manager is full; -errno. */
static int send_now(const char *text)
{
    struct sockaddr_un manager;
    const int length = find_manager(&manager);
    const int fd = length < 0 ? length : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return length < 0 ? length : -errno;
    int r = 0;
    if (sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&manager,
               (socklen_t)length) < 0)
        r = -errno;
    close(fd);
    return r;
}

/* Returns whether the next attempt can succeed. Without a manager no message ever arrives. */
static bool is_temporary(int error)
{
    return error == -EAGAIN || error == -EINTR || error == -ENOBUFS || error == -ENOMEM || error == -EMFILE ||
           error == -ENFILE;
}

/* Sends the states that wait, up to the first that has to wait on. Returns whether none waits any more. */
static bool flush(struct asym_notify *n)
{
    size_t sent = 0;
    while (sent < n->n_states && !is_temporary(send_now(n->states[sent])))
        sent++;
    n->n_states -= sent;
    memmove(n->states, n->states + sent, n->n_states * sizeof *n->states);
    return n->n_states == 0;
}

void asym_notify_state(struct asym_notify *n, const char *state)
{
    if (n->n_states == ASYM_NOTIFY_STATES)
        memmove(n->states, n->states + 1, --n->n_states * sizeof *n->states);
    snprintf(n->states[n->n_states++], sizeof *n->states, "%s", state);
    if (!flush(n) && n->watchdog)
        sd_event_source_set_time(n->watchdog, asym_clock_now() + RETRY);
}

void asym_notify_status(struct asym_notify *n, const char *format, ...)
{
    char text[MESSAGE_SIZE] = "STATUS=";
    const size_t key = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + key, sizeof text - key, format, args);
    va_end(args);
    if (flush(n))
        send_now(text);
}

/* The manager counts from the last ping. */
static int on_watchdog(sd_event_source *timer, uint64_t usec, void *userdata)
{
    struct asym_notify *n = userdata;
    const bool all_sent = flush(n) && !is_temporary(send_now("WATCHDOG=1"));
    const asym_usec delay = all_sent ? n->period : ASYM_MIN(n->period, RETRY);
    const int r = sd_event_source_set_time(timer, asym_clock_now() + delay);
    return r < 0 ? r : sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

int asym_notify_watchdog(struct asym_notify *n, sd_event *event)
{
    uint64_t limit;
    const int r = sd_watchdog_enabled(0, &limit);
    if (r <= 0)
        return r;
    /* The manager ends a service that is silent for the limit; sd-event too would leave it half of the time. */
    n->period = limit / 2;
    const int added = sd_event_add_time(event, &n->watchdog, CLOCK_MONOTONIC, asym_clock_now(), ASYM_MSEC, on_watchdog,
                                        n);
    /* sd-event's own pings depend on no priority: reports of programs, which come first, must not keep these from the manager. */
    return added < 0 ? added : sd_event_source_set_priority(n->watchdog, SD_EVENT_PRIORITY_IMPORTANT - 1);
}
