/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reports of asymd: JSON, which becomes plain structs. */
#include <errno.h>
#include <string.h>

#include "client/client-internal.h"

static void free_json(json_t **json)
{
    json_decref(*json);
}

#define AUTO_JSON ASYM_CLEANUP(free_json)

int asym_client_get_report(struct asym_client *client, const char *topic, uint64_t argument, json_t **ret,
                           struct asym_error *err)
{
    CLIENT_AUTO_MESSAGE sd_bus_message *m = NULL;
    CLIENT_AUTO_MESSAGE sd_bus_message *answer = NULL;
    const char *text;
    int r = client_new_call(client, CLIENT_INTERFACE, "GetReport", &m);
    if (r >= 0)
        r = sd_bus_message_append(m, "st", topic, argument);
    r = r < 0 ? client_made(r, err) : client_send(client, m, CLIENT_READ_TIMEOUT, &answer, err);
    if (r < 0)
        return r;
    json_t *json = sd_bus_message_read(answer, "s", &text) < 0 ? NULL : json_loads(text, 0, NULL);
    if (!json_is_object(json)) {
        json_decref(json);
        return client_not_understood(err);
    }
    *ret = json;
    return 0;
}

/* Reads a record into *ret, which may be uninitialised. */
static int read_record(const json_t *json, const struct client_record *record, void *ret, struct asym_error *err)
{
    memset(ret, 0, record->size);
    const int r = json_is_object(json) ? client_read_record(json, record, ret) : -EBADMSG;
    return r == -EBADMSG ? client_not_understood(err) : r < 0 ? asym_fail(err, r, "%s", strerror(-r)) : 0;
}

static int ask_record(struct asym_client *c, const char *topic, uint64_t argument, const struct client_record *record,
                      void *ret, struct asym_error *err)
{
    AUTO_JSON json_t *report = NULL;
    const int r = asym_client_get_report(c, topic, argument, &report, err);
    return r < 0 ? r : read_record(report, record, ret, err);
}

int asym_client_get_status(struct asym_client *client, struct asym_client_status *ret, struct asym_error *err)
{
    return ask_record(client, "status", 0, &client_record_status, ret, err);
}

int asym_client_get_application(struct asym_client *client, uint32_t pid, struct asym_client_app *ret,
                                struct asym_error *err)
{
    return ask_record(client, "program", pid, &client_record_app, ret, err);
}

int asym_client_get_counters(struct asym_client *client, struct asym_client_counters *ret, struct asym_error *err)
{
    return ask_record(client, "counters", 0, &client_record_counters, ret, err);
}

int asym_client_explain(struct asym_client *client, uint32_t id, struct asym_client_explanation *ret,
                        struct asym_error *err)
{
    AUTO_JSON json_t *report = NULL;
    const int r = asym_client_get_report(client, "why", id, &report, err);
    return r < 0 ? r
                 : read_record(json_array_get(json_object_get(report, "explanations"), 0), &client_record_explanation,
                               ret, err);
}

int asym_client_get_decisions(struct asym_client *client, uint64_t *since,
                              void (*on_decision)(void *ctx, const struct asym_client_decision *decision), void *ctx,
                              struct asym_error *err)
{
    const bool is_first = *since == ASYM_CLIENT_FROM_NOW;
    struct asym_client_decisions found;
    const int r = ask_record(client, "decisions", *since, &client_record_decisions, &found, err);
    if (!is_first && (r == -ENOTCONN || r == -ECONNRESET))
        return asym_fail(err, -ENOTCONN, "asymd has ended");
    if (r < 0)
        return r;
    /* Another asymd counts from 1. */
    const bool is_other = !is_first && found.next < *since;
    *since = found.next;
    for (size_t i = 0; !is_other && i < found.n_decisions; i++)
        on_decision(ctx, &found.decisions[i]);
    client_record_done(&client_record_decisions, &found);
    return is_other ? asym_fail(err, -ENOTCONN, "asymd has ended, and another one runs") : 0;
}

void asym_client_status_done(struct asym_client_status *status)
{
    client_record_done(&client_record_status, status);
}

void asym_client_app_done(struct asym_client_app *app)
{
    client_record_done(&client_record_app, app);
}

void asym_client_counters_done(struct asym_client_counters *counters)
{
    client_record_done(&client_record_counters, counters);
}

void asym_client_explanation_done(struct asym_client_explanation *e)
{
    client_record_done(&client_record_explanation, e);
}
