/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reports of asymd: JSON, which becomes plain structs. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <jansson.h>

#include "client/client-internal.h"

static void free_json(json_t **json)
{
    json_decref(*json);
}

/* Asks for the report on a topic. *ret is a new reference. */
static int ask_report(struct asym_client *c, const char *topic, uint64_t argument, json_t **ret, struct asym_error *err)
{
    CLIENT_AUTO_MESSAGE sd_bus_message *m = NULL;
    CLIENT_AUTO_MESSAGE sd_bus_message *answer = NULL;
    const char *text;
    int r = client_new_call(c, CLIENT_INTERFACE, "GetReport", &m);
    if (r >= 0)
        r = sd_bus_message_append(m, "st", topic, argument);
    r = r < 0 ? client_made(r, err) : client_send(c, m, CLIENT_READ_TIMEOUT, &answer, err);
    if (r < 0)
        return r;
    json_t *json = sd_bus_message_read(answer, "s", &text) < 0 ? NULL : json_loads(text, 0, NULL);
    if (!json)
        return client_not_understood(err);
    *ret = json;
    return 0;
}

static bool read_decision(json_t *json, struct asym_client_event *ret)
{
    json_int_t time, pid, tid;
    int from, to, nice;
    if (json_unpack(json, "{s:I, s:I, s:I, s:s, s:i, s:i, s:i, s:s, s:s, s:s}", "time_us", &time, "pid", &pid, "tid",
                    &tid, "comm", &ret->comm, "from", &from, "to", &to, "nice", &nice, "class", &ret->class, "what",
                    &ret->what, "reason", &ret->reason) < 0)
        return false;
    ret->time = (asym_usec)time;
    ret->pid = (uint32_t)pid;
    ret->tid = (uint32_t)tid;
    ret->from = from;
    ret->to = to;
    ret->nice = nice;
    return true;
}

int asym_client_get_decisions(struct asym_client *client, uint64_t *since,
                              void (*on_event)(void *ctx, const struct asym_client_event *event), void *ctx,
                              struct asym_error *err)
{
    ASYM_CLEANUP(free_json) json_t *report = NULL;
    const bool is_first = *since == ASYM_CLIENT_FROM_NOW;
    struct asym_client_event event;
    json_t *list, *item;
    json_int_t next;
    size_t i;
    int r = ask_report(client, "decisions", *since, &report, err);
    if (!is_first && (r == -ENOTCONN || r == -ECONNRESET))
        return asym_fail(err, -ENOTCONN, "asymd has ended");
    if (r < 0)
        return r;
    if (json_unpack(report, "{s:I, s:o}", "next", &next, "decisions", &list) < 0)
        return client_not_understood(err);
    /* Another asymd counts from 1. */
    if (!is_first && (uint64_t)next < *since)
        return asym_fail(err, -ENOTCONN, "asymd has ended, and another one runs");
    *since = (uint64_t)next;
    json_array_foreach(list, i, item)
    {
        if (!read_decision(item, &event))
            return client_not_understood(err);
        on_event(ctx, &event);
    }
    return 0;
}
