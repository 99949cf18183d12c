/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reports of asymd. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "client/client-internal.h"

static void free_json(json_t **json)
{
    json_decref(*json);
}

#define AUTO_JSON ASYM_CLEANUP(free_json)

/* The part of a schema behind its name: later versions of asymd may write other reports. */
#define VERSION "/1"

static int new_question(struct asym_client *c, const char *topic, uint64_t argument, sd_bus_message **ret)
{
    const int r = client_new_call(c, "GetReport", ret);
    return r < 0 ? r : sd_bus_message_append(*ret, "st", topic, argument);
}

static int read_report(sd_bus_message *answer, json_t **ret, struct asym_error *err)
{
    const char *text;
    json_t *json = sd_bus_message_read(answer, "s", &text) < 0 ? NULL : json_loads(text, 0, NULL);
    const char *schema = json_string_value(json_object_get(json, "schema")),
               *version = schema ? strchr(schema, '/') : NULL;
    if (!version || strcmp(version, VERSION) != 0) {
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
    r = client_send(client, m, r, CLIENT_READ_TIMEOUT, &answer, err);
    return r < 0 ? r : read_report(answer, ret, err);
}

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    struct asym_client *c = userdata;
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
static int read_decisions(struct asym_client *c, json_t **ret, struct asym_error *err)
{
    CLIENT_AUTO_MESSAGE sd_bus_message *answer = ASYM_TAKE(c->answer);
    c->is_asked = false;
    if (sd_bus_is_open(c->bus) <= 0)
        return -ECONNRESET;
    const int r = sd_bus_message_is_method_error(answer, NULL)
                      ? client_failed(c, sd_bus_message_get_error(answer), CLIENT_READ_TIMEOUT, err)
                      : read_report(answer, ret, err);
    return r == -EBUSY ? 0 : r < 0 ? r : 1;
}

static uint64_t number(const json_t *report, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(report, key));
}

/* Returns 1: asymd has more of them; 0: it has not, or the answer comes later; an error of client.h. */
static int take_decisions(struct asym_client *c, struct asym_client_since *since, asym_usec until,
                          void (*on_decision)(void *ctx, const json_t *decision), void *ctx, struct asym_error *err)
{
    AUTO_JSON json_t *found = NULL;
    json_t *decision;
    size_t i;
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
    const asym_usec start = number(found, "start_us");
    const bool is_other = since->start && start != since->start, has_more = number(found, "left") > 0 || is_late;
    *since = (struct asym_client_since){number(found, "next"), start, since->lost + number(found, "lost")};
    if (is_other)
        return asym_fail(err, -ENOTCONN, "asymd has ended, and another one runs");
    json_array_foreach(json_object_get(found, "decisions"), i, decision) on_decision(ctx, decision);
    return has_more;
}

int asym_client_get_decisions(struct asym_client *client, struct asym_client_since *since, asym_usec wait,
                              void (*on_decision)(void *ctx, const json_t *decision), void *ctx, struct asym_error *err)
{
    const asym_usec until = asym_clock_now() + wait;
    int r = 1;
    since->lost = 0;
    while (r > 0)
        r = take_decisions(client, since, until, on_decision, ctx, err);
    return r;
}
