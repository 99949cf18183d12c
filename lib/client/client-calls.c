/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The orders, and the configuration. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/client-internal.h"

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

int asym_client_set_program(struct asym_client *client, uint32_t pid, const char *action, struct asym_error *err)
{
    return change(client, err, "SetProgram", "us", pid, action);
}
