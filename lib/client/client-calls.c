/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The methods and properties of org.asymd.Manager. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/client-internal.h"

static int ask_id(struct asym_client *c, const char *member, const uint32_t *id, sd_bus_message **ret,
                  struct asym_error *err)
{
    CLIENT_AUTO_MESSAGE sd_bus_message *m = NULL;
    int r = client_new_call(c, CLIENT_INTERFACE, member, &m);
    if (r >= 0 && id)
        r = sd_bus_message_append_basic(m, 'u', id);
    return r < 0 ? client_made(r, err) : client_send(c, m, CLIENT_READ_TIMEOUT, ret, err);
}

static int understood(int r, struct asym_error *err)
{
    return r == -EBADMSG ? client_not_understood(err) : r < 0 ? asym_fail(err, r, "%s", strerror(-r)) : 0;
}

/* Asks for a record into *ret, which may be uninitialised. */
static int ask_record(struct asym_client *c, const char *member, uint32_t id, const struct client_record *record,
                      void *ret, struct asym_error *err)
{
    CLIENT_AUTO_MESSAGE sd_bus_message *answer = NULL;
    int r = ask_id(c, member, &id, &answer, err);
    if (r < 0)
        return r;
    memset(ret, 0, record->size);
    return understood(client_read_record(answer, record, ret), err);
}

static int ask_array(struct asym_client *c, const char *member, const struct client_record *record, void *ret_items,
                     size_t *ret_n, struct asym_error *err)
{
    CLIENT_AUTO_MESSAGE sd_bus_message *answer = NULL;
    int r = ask_id(c, member, NULL, &answer, err);
    return r < 0 ? r : understood(client_read_array(answer, record, ret_items, ret_n), err);
}

int asym_client_get_state(struct asym_client *client, struct asym_client_state *ret, struct asym_error *err)
{
    CLIENT_AUTO_MESSAGE sd_bus_message *m = NULL;
    CLIENT_AUTO_MESSAGE sd_bus_message *answer = NULL;
    int r = client_new_call(client, "org.freedesktop.DBus.Properties", "GetAll", &m);
    if (r >= 0)
        r = sd_bus_message_append(m, "s", CLIENT_INTERFACE);
    r = r < 0 ? client_made(r, err) : client_send(client, m, CLIENT_READ_TIMEOUT, &answer, err);
    if (r < 0)
        return r;
    memset(ret, 0, sizeof *ret);
    return understood(client_read_record(answer, &client_record_state, ret), err);
}

int asym_client_list_cpus(struct asym_client *client, struct asym_client_cpus *ret, struct asym_error *err)
{
    return ask_array(client, "ListCPUs", &client_record_cpu, &ret->cpu, &ret->n, err);
}

int asym_client_list_applications(struct asym_client *client, struct asym_client_apps *ret, struct asym_error *err)
{
    return ask_array(client, "ListApplications", &client_record_app, &ret->app, &ret->n, err);
}

int asym_client_get_counters(struct asym_client *client, struct asym_client_counters *ret, struct asym_error *err)
{
    return ask_array(client, "Counters", &client_record_counter, &ret->counter, &ret->n, err);
}

int asym_client_get_application(struct asym_client *client, uint32_t pid, struct asym_client_app *ret,
                                struct asym_error *err)
{
    return ask_record(client, "GetApplication", pid, &client_record_app, ret, err);
}

int asym_client_get_thread(struct asym_client *client, uint32_t tid, struct asym_client_thread *ret,
                           struct asym_error *err)
{
    return ask_record(client, "GetThread", tid, &client_record_thread, ret, err);
}

int asym_client_explain(struct asym_client *client, uint32_t id, struct asym_client_explanation *ret,
                        struct asym_error *err)
{
    CLIENT_AUTO_MESSAGE sd_bus_message *answer = NULL;
    struct asym_client_explanation e = {.n_sentences = 0};
    int r = ask_id(client, "Explain", &id, &answer, err);
    if (r < 0)
        return r;
    r = client_read_array(answer, NULL, &e.sentences, &e.n_sentences);
    if (r >= 0)
        r = client_read_array(answer, &client_record_evidence, &e.evidence, &e.n_evidence);
    if (r < 0)
        asym_client_explanation_done(&e);
    else
        *ret = e;
    return understood(r, err);
}

int asym_client_get_configuration(struct asym_client *client, char **ret, size_t *ret_len, struct asym_error *err)
{
    CLIENT_AUTO_MESSAGE sd_bus_message *m = NULL;
    CLIENT_AUTO_MESSAGE sd_bus_message *answer = NULL;
    const void *bytes;
    size_t len;
    int r = client_new_call(client, CLIENT_INTERFACE, "GetConfiguration", &m);
    if (r < 0)
        return client_made(r, err);
    r = client_send(client, m, CLIENT_READ_TIMEOUT, &answer, err);
    if (r < 0)
        return r;
    if (sd_bus_message_read_array(answer, 'y', &bytes, &len) < 0)
        return client_not_understood(err);
    char *copy = malloc(len + 1);
    if (!copy)
        return asym_fail(err, -ENOMEM, "no memory");
    memcpy(copy, bytes, len);
    copy[len] = '\0';
    *ret = copy;
    *ret_len = len;
    return 0;
}

void asym_client_state_done(struct asym_client_state *state)
{
    client_record_done(&client_record_state, state);
}

void asym_client_cpus_done(struct asym_client_cpus *cpus)
{
    client_array_done(&client_record_cpu, cpus->cpu, cpus->n);
    *cpus = (struct asym_client_cpus){.n = 0};
}

void asym_client_apps_done(struct asym_client_apps *apps)
{
    client_array_done(&client_record_app, apps->app, apps->n);
    *apps = (struct asym_client_apps){.n = 0};
}

void asym_client_counters_done(struct asym_client_counters *counters)
{
    client_array_done(&client_record_counter, counters->counter, counters->n);
    *counters = (struct asym_client_counters){.n = 0};
}

void asym_client_app_done(struct asym_client_app *app)
{
    client_record_done(&client_record_app, app);
}

void asym_client_thread_done(struct asym_client_thread *thread)
{
    client_record_done(&client_record_thread, thread);
}

void asym_client_explanation_done(struct asym_client_explanation *e)
{
    client_array_done(NULL, e->sentences, e->n_sentences);
    client_array_done(&client_record_evidence, e->evidence, e->n_evidence);
    *e = (struct asym_client_explanation){.n_sentences = 0};
}

/* Sends a call that changes something. r: the result of making it. */
static int send_change(struct asym_client *c, sd_bus_message *m, int r, sd_bus_message **ret, struct asym_error *err)
{
    if (r < 0)
        return client_made(r, err);
    /* Only root can use the socket, and asymd does not ask polkit about root. */
    const bool may_be_asked = c->destination && c->before_change;
    void *ctx = may_be_asked ? c->before_change() : NULL;
    r = client_send(c, m,
                    may_be_asked       ? CLIENT_POLKIT_TIMEOUT
                    : c->before_change ? CLIENT_CHANGE_TIMEOUT
                                       : CLIENT_READ_TIMEOUT,
                    ret, err);
    if (may_be_asked)
        c->after_change(ctx);
    return r;
}

/* types: of the arguments; NULL: none. */
static int change(struct asym_client *c, struct asym_error *err, const char *member, const char *types, ...)
{
    CLIENT_AUTO_MESSAGE sd_bus_message *m = NULL;
    CLIENT_AUTO_MESSAGE sd_bus_message *answer = NULL;
    va_list args;
    int r = client_new_call(c, CLIENT_INTERFACE, member, &m);
    if (r >= 0 && types) {
        va_start(args, types);
        r = sd_bus_message_appendv(m, types, args);
        va_end(args);
    }
    return send_change(c, m, r, &answer, err);
}

int asym_client_set_rule(struct asym_client *client, uint32_t pid, const char *action, char **ret_file,
                         char **ret_before, struct asym_error *err)
{
    CLIENT_AUTO_MESSAGE sd_bus_message *m = NULL;
    CLIENT_AUTO_MESSAGE sd_bus_message *answer = NULL;
    const char *file, *before;
    int r = client_new_call(client, CLIENT_INTERFACE, "SetRule", &m);
    if (r >= 0)
        r = sd_bus_message_append(m, "us", pid, action);
    r = send_change(client, m, r, &answer, err);
    if (r < 0)
        return r;
    if (sd_bus_message_read(answer, "ss", &file, &before) < 0)
        return client_not_understood(err);
    *ret_file = strdup(file);
    *ret_before = strdup(before);
    if (*ret_file && *ret_before)
        return 0;
    free(*ret_file);
    free(*ret_before);
    return asym_fail(err, -ENOMEM, "no memory");
}

int asym_client_set_policy(struct asym_client *client, const char *name, bool permanent, struct asym_error *err)
{
    return change(client, err, "SetPolicy", "sb", name, (int)permanent);
}

int asym_client_pause(struct asym_client *client, uint64_t seconds, struct asym_error *err)
{
    return change(client, err, "Pause", "t", seconds);
}

int asym_client_resume(struct asym_client *client, struct asym_error *err)
{
    return change(client, err, "Resume", NULL);
}

int asym_client_reload(struct asym_client *client, struct asym_error *err)
{
    return change(client, err, "Reload", NULL);
}

int asym_client_release(struct asym_client *client, uint32_t pid, struct asym_error *err)
{
    return change(client, err, "Release", "u", pid);
}

int asym_client_adopt(struct asym_client *client, uint32_t pid, struct asym_error *err)
{
    return change(client, err, "Adopt", "u", pid);
}

int asym_client_set_program(struct asym_client *client, uint32_t pid, const char *action, struct asym_error *err)
{
    return change(client, err, "SetProgram", "us", pid, action);
}
