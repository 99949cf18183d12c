/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reports of asymd: JSON, which becomes plain structs. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "client/client-internal.h"

static void free_json(json_t **json)
{
    json_decref(*json);
}

#define AUTO_JSON ASYM_CLEANUP(free_json)

static int new_question(struct asym_client *c, const char *topic, uint64_t argument, sd_bus_message **ret)
{
    const int r = client_new_call(c, CLIENT_INTERFACE, "GetReport", ret);
    return r < 0 ? r : sd_bus_message_append(*ret, "st", topic, argument);
}

static int read_report(sd_bus_message *answer, json_t **ret, struct asym_error *err)
{
    const char *text;
    json_t *json = sd_bus_message_read(answer, "s", &text) < 0 ? NULL : json_loads(text, 0, NULL);
    if (!json_is_object(json)) {
        json_decref(json);
        return client_not_understood(err);
    }
    *ret = json;
    return 0;
}

int asym_client_get_report(struct asym_client *client, const char *topic, uint64_t argument, json_t **ret,
                           struct asym_error *err)
{
    CLIENT_AUTO_MESSAGE sd_bus_message *m = NULL;
    CLIENT_AUTO_MESSAGE sd_bus_message *answer = NULL;
    int r = new_question(client, topic, argument, &m);
    r = r < 0 ? client_made(r, err) : client_send(client, m, CLIENT_READ_TIMEOUT, &answer, err);
    return r < 0 ? r : read_report(answer, ret, err);
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

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    struct asym_client *c = userdata;
    (void)error;
    c->answer = sd_bus_message_ref(m);
    return 1;
}

static int ask_decisions(struct asym_client *c, const struct asym_client_since *since)
{
    CLIENT_AUTO_MESSAGE sd_bus_message *m = NULL;
    int r = new_question(c, "decisions", since->start ? since->number : UINT64_MAX, &m);
    if (r >= 0)
        r = sd_bus_call_async(c->bus, NULL, m, on_answer, c, CLIENT_READ_TIMEOUT);
    c->is_asked = r >= 0;
    return r;
}

/* Returns 1: the answer is here; 0: it comes later; -errno. */
static int await_answer(struct asym_client *c, asym_usec until)
{
    while (!c->answer) {
        int r = sd_bus_process(c->bus, NULL);
        const asym_usec now = asym_clock_now();
        if (r < 0 || (r == 0 && now >= until))
            return r;
        if (r == 0)
            r = sd_bus_wait(c->bus, until - now);
        if (r < 0 && r != -EINTR)
            return r;
    }
    return 1;
}

/* Reads the answer into *ret. Returns 1; 0: asymd has refused the call; an error of client.h. */
static int read_decisions(struct asym_client *c, struct asym_client_decisions *ret, struct asym_error *err)
{
    CLIENT_AUTO_MESSAGE sd_bus_message *answer = ASYM_TAKE(c->answer);
    AUTO_JSON json_t *report = NULL;
    c->is_asked = false;
    if (sd_bus_is_open(c->bus) <= 0)
        return -ECONNRESET;
    int r = sd_bus_message_is_method_error(answer, NULL)
                ? client_failed(c, sd_bus_message_get_error(answer), CLIENT_READ_TIMEOUT, err)
                : read_report(answer, &report, err);
    if (r >= 0)
        r = read_record(report, &client_record_decisions, ret, err);
    return r == -EBUSY ? 0 : r < 0 ? r : 1;
}

/* Returns 1: asymd has more of them; 0: it has not, or the answer comes later; an error of client.h. */
static int take_decisions(struct asym_client *c, struct asym_client_since *since, asym_usec until,
                          void (*on_decision)(void *ctx, const struct asym_client_decision *decision), void *ctx,
                          struct asym_error *err)
{
    struct asym_client_decisions found;
    const bool is_late = c->is_asked; /* there may be more since that question */
    int r = is_late ? 0 : ask_decisions(c, since);
    if (r >= 0)
        r = await_answer(c, until);
    if (r < 0)
        asym_fail(err, r, "%s", strerror(-r));
    if (r > 0)
        r = read_decisions(c, &found, err);
    if (r == -ECONNRESET || (r == -ENOTCONN && since->start))
        return asym_fail(err, -ENOTCONN, "asymd has ended");
    if (r <= 0)
        return r;
    const bool is_other = since->start && found.start != since->start, has_more = found.left > 0 || is_late;
    for (size_t i = 0; !is_other && i < found.n_decisions; i++)
        on_decision(ctx, &found.decisions[i]);
    *since = (struct asym_client_since){found.next, found.start, since->lost + found.lost};
    client_record_done(&client_record_decisions, &found);
    return is_other ? asym_fail(err, -ENOTCONN, "asymd has ended, and another one runs") : has_more;
}

int asym_client_get_decisions(struct asym_client *client, struct asym_client_since *since, asym_usec wait,
                              void (*on_decision)(void *ctx, const struct asym_client_decision *decision), void *ctx,
                              struct asym_error *err)
{
    const asym_usec until = asym_clock_now() + wait;
    int r = 1;
    since->lost = 0;
    while (r > 0)
        r = take_decisions(client, since, until, on_decision, ctx, err);
    return r;
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
