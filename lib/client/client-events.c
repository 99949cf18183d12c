/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The decisions of asymd as they happen. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "client/client-internal.h"

/* The most messages of one wait, so that a stream of them cannot keep the caller. */
#define MOST_MESSAGES 256

static int on_decision(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    struct asym_client *c = userdata;
    struct asym_client_event e;
    (void)error;
    int r = sd_bus_message_read(m, "tuusiiisss", &e.time, &e.pid, &e.tid, &e.comm, &e.from, &e.to, &e.nice, &e.class,
                                &e.what, &e.reason);
    if (r >= 0)
        c->on_event(c->ctx, &e);
    return 0;
}

static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    struct asym_client *c = userdata;
    const char *name, *old, *new;
    (void)error;
    if (sd_bus_message_read(m, "sss", &name, &old, &new) >= 0 && !*new)
        c->ended = true;
    return 0;
}

static int match(struct asym_client *c)
{
    int r = sd_bus_set_method_call_timeout(c->bus, CLIENT_READ_TIMEOUT);
    if (r >= 0)
        r = sd_bus_match_signal(c->bus, NULL, c->destination, CLIENT_OBJECT, CLIENT_INTERFACE, "Decision", on_decision,
                                c);
    if (r < 0 || !c->destination)
        return r;
    return sd_bus_add_match(c->bus, NULL,
                            "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
                            "member='NameOwnerChanged',arg0='" CLIENT_NAME "'",
                            on_owner, c);
}

int asym_client_subscribe(struct asym_client *client,
                          void (*on_event)(void *ctx, const struct asym_client_event *event), void *ctx,
                          struct asym_error *err)
{
    CLIENT_AUTO_MESSAGE sd_bus_message *m = NULL;
    CLIENT_AUTO_MESSAGE sd_bus_message *answer = NULL;
    client->on_event = on_event;
    client->ctx = ctx;
    int r = match(client);
    if (r < 0)
        return asym_fail(err, r, "the bus does not let asymctl listen: %s", strerror(-r));
    r = client_new_call(client, CLIENT_INTERFACE, "Subscribe", &m);
    return r < 0 ? client_made(r, err) : client_send(client, m, CLIENT_READ_TIMEOUT, &answer, err);
}

/* Returns how many messages it has processed; -errno. */
static int process(struct asym_client *c)
{
    int n = 0, r = 1;
    while (r > 0 && n < MOST_MESSAGES) {
        r = sd_bus_process(c->bus, NULL);
        n += r > 0;
    }
    return r < 0 ? r : n;
}

/* Returns how many file descriptors are ready; -EINTR: a signal; -errno. */
static int poll_bus(struct asym_client *c, asym_usec timeout, const sigset_t *mask)
{
    const struct timespec t = {.tv_sec = (time_t)(timeout / ASYM_SEC), .tv_nsec = (long)(timeout % ASYM_SEC) * 1000};
    const struct timespec at_once = {.tv_sec = 0};
    const int events = sd_bus_get_events(c->bus);
    struct pollfd fd = {.fd = sd_bus_get_fd(c->bus), .events = (short)events};
    if (events < 0 || fd.fd < 0)
        return events < 0 ? events : fd.fd;
    const int n = ppoll(&fd, 1, &t, mask);
    /* The kernel delivers a signal of mask only if ppoll finds no event, which a stream of decisions would prevent for ever. */
    return n < 0 || (n > 0 && ppoll(NULL, 0, &at_once, mask) < 0) ? -errno : n;
}

int asym_client_wait(struct asym_client *client, asym_usec timeout, const sigset_t *mask, struct asym_error *err)
{
    const int before = process(client);
    /* Poll even if messages were there: the kernel delivers a signal of mask during the poll only. */
    int r = before < 0 ? before : poll_bus(client, before > 0 ? 0 : timeout, mask);
    if (r == -EINTR)
        return r;
    if (r >= 0)
        r = process(client);
    if (r < 0 || client->ended)
        return asym_fail(err, -ENOTCONN, "asymd has ended");
    return before + r > 0;
}
