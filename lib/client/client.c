/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/client.h"

#include <asym/manager.h>

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"

#define READ_TIMEOUT   (5 * ASYM_SEC)
#define CHANGE_TIMEOUT (60 * ASYM_SEC)
/* For a change on the system bus, during which polkit may ask for a password (asym/manager.h). */
#define POLKIT_TIMEOUT (ASYM_BUS_POLKIT_WITHIN + CHANGE_TIMEOUT)

#define AUTO_MESSAGE   ASYM_CLEANUP(sd_bus_message_unrefp)

struct asym_client {
    sd_bus *bus;
    const char *destination; /* NULL: a direct connection, on which only asymd can answer */
    int direct;              /* on the system bus: why the socket could not be used, -errno */
    bool may_ask;            /* polkit may ask the user for a password */
    bool is_asked;           /* for decisions, and the answer was not taken */
    sd_bus_message *answer;  /* the answer to that; NULL: it has not come */
};

#define AUTO_BUS ASYM_CLEANUP(sd_bus_unrefp)

/* Returns whether the result of a connection to the socket was that only root may use it. */
static bool is_reserved(int direct)
{
    return direct == -EACCES || direct == -EPERM;
}

/*
 * direct: the result for the socket. A refused user cannot know whether asymd runs: a socket stays behind if asymd is killed, and
 * an asymd that runs has no name if the bus daemon has not read its policy.
 */
static int no_service(int direct, struct asym_error *err)
{
    if (is_reserved(direct))
        return asym_fail(err, -EACCES,
                         "asymd has no name on the system bus, and only root may use " ASYM_CLIENT_SOCKET
                         ": asymd is not running, "
                         "or the bus daemon has not read its policy (systemctl reload dbus; see FILES in "
                         "org.asymd.Manager(5)). Run this as root to see which");
    return asym_fail(err, -ENOTCONN,
                     "asymd is not running. Start it: systemctl start asymd (as root), or asymd --service (another "
                     "socket: " ASYM_CLIENT_SOCKET_VARIABLE ")");
}

static int no_answer(asym_usec timeout, struct asym_error *err)
{
    return asym_fail(err, -ETIMEDOUT, "asymd did not answer within %u s", (unsigned)(timeout / ASYM_SEC));
}

/* Returns a connected socket; -errno. A full backlog is -EAGAIN, because the socket does not block. */
static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);
    ASYM_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) < 0)
        return -errno;
    const int connected = fd;
    fd = -1;
    return connected;
}

static int open_direct(const char *path, sd_bus **ret)
{
    AUTO_BUS sd_bus *bus = NULL;
    int r = sd_bus_new(&bus);
    if (r < 0)
        return r;
    const int fd = connect_to(path);
    if (fd < 0)
        return fd;
    /* The bus closes the descriptor from here on. */
    r = sd_bus_set_fd(bus, fd, fd);
    if (r < 0)
        close(fd);
    if (r >= 0)
        r = sd_bus_start(bus);
    if (r >= 0)
        *ret = ASYM_TAKE(bus);
    return r;
}

/* The timeout of a call does not cover the handshake, in which a server that hangs could keep the client for much longer. */
static int wait_ready(sd_bus *bus)
{
    const asym_usec end = asym_clock_now() + READ_TIMEOUT;
    int r = 0;
    while (r >= 0 && sd_bus_is_ready(bus) == 0) {
        const asym_usec now = asym_clock_now();
        if (now >= end)
            return -ETIMEDOUT;
        r = sd_bus_process(bus, NULL);
        if (r == 0 && sd_bus_is_ready(bus) == 0)
            r = sd_bus_wait(bus, end - now);
        if (r == -EINTR)
            r = 0;
    }
    return r;
}

static bool is_absent(int r)
{
    return r == -ENOENT || r == -ECONNREFUSED || r == -ENOTDIR;
}

/* direct: the result for the socket. */
static int cannot_connect(int direct, int r, const char *path, struct asym_error *err)
{
    char text[256];
    asym_text_show(path, text, sizeof text);
    if (r == -ETIMEDOUT)
        return no_answer(READ_TIMEOUT, err);
    if (r == -EACCES)
        return asym_fail(err, r, "cannot connect to %s: %s; only root and the user who runs that asymd may use it",
                         text, strerror(-r));
    if (!is_absent(r))
        return asym_fail(err, -EIO, "cannot connect to asymd: %s", strerror(-r));
    if (is_reserved(direct))
        return asym_fail(err, -EACCES, "only root may use %s, and this machine has no system bus: run it as root",
                         text);
    return no_service(0, err);
}

static int open_bus(struct asym_client *client, const char *path, bool then_system, struct asym_error *err)
{
    int r = open_direct(path, &client->bus);
    if (r < 0 && then_system) {
        client->direct = r;
        r = sd_bus_open_system(&client->bus);
        client->destination = ASYM_BUS_NAME;
    }
    if (r >= 0)
        r = wait_ready(client->bus);
    return r < 0 ? cannot_connect(client->direct, r, path, err) : 0;
}

int client_open(const char *path, bool then_system, struct asym_client **ret, struct asym_error *err)
{
    ASYM_CLEANUP(asym_client_close_p) struct asym_client *client = calloc(1, sizeof *client);
    if (!client)
        return asym_fail(err, -ENOMEM, "%s", strerror(ENOMEM));
    int r = open_bus(client, path, then_system, err);
    if (r < 0)
        return r;
    *ret = ASYM_TAKE(client);
    return 0;
}

int asym_client_open(struct asym_client **ret, struct asym_error *err)
{
    const char *given = getenv(ASYM_CLIENT_SOCKET_VARIABLE);
    const bool is_given = given && *given;
    return client_open(is_given ? given : ASYM_CLIENT_SOCKET, !is_given, ret, err);
}

void asym_client_close(struct asym_client *client)
{
    if (!client)
        return;
    sd_bus_message_unref(client->answer);
    sd_bus_close_unref(client->bus); /* nothing waits for what is on its way */
    free(client);
}

void asym_client_let_polkit_ask(struct asym_client *client)
{
    sd_bus_set_allow_interactive_authorization(client->bus, 1);
    client->may_ask = true;
}

static const struct {
    const char *name;
    int error;
} errors[] = {
    {ASYM_BUS_ERROR_NO_SUCH_PROCESS, -ESRCH},    {ASYM_BUS_ERROR_NOT_POSSIBLE, -ENOTSUP},
    {ASYM_BUS_ERROR_NO_SIGNAL, -ENODATA},        {ASYM_BUS_ERROR_REFUSED, -EBUSY},
    {SD_BUS_ERROR_ACCESS_DENIED, -EACCES},       {SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, -EACCES},
    {SD_BUS_ERROR_INVALID_ARGS, -EINVAL},        {SD_BUS_ERROR_SERVICE_UNKNOWN, -ENOTCONN},
    {SD_BUS_ERROR_NAME_HAS_NO_OWNER, -ENOTCONN}, {SD_BUS_ERROR_NO_REPLY, -ETIMEDOUT},
    {SD_BUS_ERROR_TIMEOUT, -ETIMEDOUT},          {SD_BUS_ERROR_UNKNOWN_METHOD, -EBADMSG},
    {SD_BUS_ERROR_UNKNOWN_OBJECT, -EBADMSG},     {SD_BUS_ERROR_UNKNOWN_INTERFACE, -EBADMSG},
    {SD_BUS_ERROR_UNKNOWN_PROPERTY, -EBADMSG},
};

static int error_of(const sd_bus_error *error)
{
    for (size_t i = 0; i < ASYM_LENGTH(errors); i++)
        if (sd_bus_error_has_name(error, errors[i].name))
            return errors[i].error;
    return -sd_bus_error_get_errno(error);
}

static int not_understood(struct asym_error *err)
{
    return asym_fail(err, -EBADMSG,
                     "the running asymd and this asymctl do not understand each other: use the same version of both");
}

/* Writes the error of a call as one sentence. timeout: READ_TIMEOUT unless it changes something. Returns its -errno. */
static int failed(const struct asym_client *c, const sd_bus_error *error, asym_usec timeout, struct asym_error *err)
{
    const int r = error_of(error);
    const char *message = error->message ? error->message : "";
    char text[512];
    asym_text_show(message, text, sizeof text);
    switch (r) {
    case -ENOTCONN:
        return no_service(c->direct, err);
    case -ETIMEDOUT:
        return no_answer(timeout, err);
    case -EBADMSG:
        return not_understood(err);
    case -EACCES:
        return asym_fail(err, r, "not permitted%s%s: run it as root (sudo asymctl ...)%s", *text ? ": " : "", text,
                         timeout != READ_TIMEOUT ? ", or with polkit's permission " ASYM_BUS_POLKIT : "");
    case -ECONNRESET:
        return asym_fail(err, r, "asymd ended before it answered");
    default:
        return asym_fail(err, r, "%s", *text ? text : strerror(-r));
    }
}

static int new_call(struct asym_client *c, const char *member, sd_bus_message **ret)
{
    int r = sd_bus_message_new_method_call(c->bus, ret, c->destination, ASYM_BUS_PATH, ASYM_BUS_INTERFACE, member);
    /* A user who asks for the state of asymd must not start it. */
    return r < 0 ? r : sd_bus_message_set_auto_start(*ret, 0);
}

/* Makes a call, and waits for its answer. timeout: one of the three above. */
static int call_with(struct asym_client *c, asym_usec timeout, sd_bus_message **ret, struct asym_error *err,
                     const char *member, const char *types, va_list args)
{
    ASYM_CLEANUP(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
    AUTO_MESSAGE sd_bus_message *m = NULL;
    int r = new_call(c, member, &m);
    if (r >= 0 && types)
        r = sd_bus_message_appendv(m, types, args);
    if (r < 0)
        return asym_fail(err, r, "cannot make a message: %s", strerror(-r));
    r = sd_bus_call(c->bus, m, timeout, &error, ret);
    if (r >= 0)
        return 0;
    if (!sd_bus_error_is_set(&error))
        sd_bus_error_set_errno(&error, r);
    return failed(c, &error, timeout, err);
}

static int call(struct asym_client *c, asym_usec timeout, sd_bus_message **ret, struct asym_error *err,
                const char *member, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    const int r = call_with(c, timeout, ret, err, member, types, args);
    va_end(args);
    return r;
}

int asym_client_get_configuration(struct asym_client *client, char **ret, size_t *ret_len, struct asym_error *err)
{
    AUTO_MESSAGE sd_bus_message *answer = NULL;
    const void *bytes;
    size_t len;
    const int r = call(client, READ_TIMEOUT, &answer, err, "GetConfiguration", NULL);
    if (r < 0)
        return r;
    if (sd_bus_message_read_array(answer, 'y', &bytes, &len) < 0)
        return not_understood(err);
    char *copy = malloc(len + 1);
    if (!copy)
        return asym_fail(err, -ENOMEM, "no memory");
    memcpy(copy, bytes, len);
    copy[len] = '\0';
    *ret = copy;
    *ret_len = len;
    return 0;
}

/* Only root can use the socket, and asymd does not ask polkit about root. */
static asym_usec change_timeout(const struct asym_client *c)
{
    return !c->may_ask ? READ_TIMEOUT : c->destination ? POLKIT_TIMEOUT : CHANGE_TIMEOUT;
}

int asym_client_change(struct asym_client *client, struct asym_error *err, const char *member, const char *types, ...)
{
    AUTO_MESSAGE sd_bus_message *answer = NULL;
    va_list args;
    va_start(args, types);
    const int r = call_with(client, change_timeout(client), &answer, err, member, types, args);
    va_end(args);
    return r;
}

int asym_client_set_rule(struct asym_client *client, uint32_t pid, const char *action, char **ret_file,
                         char **ret_before, struct asym_error *err)
{
    AUTO_MESSAGE sd_bus_message *answer = NULL;
    const char *file, *before;
    const int r = call(client, change_timeout(client), &answer, err, "SetRule", "us", pid, action);
    if (r < 0)
        return r;
    if (sd_bus_message_read(answer, "ss", &file, &before) < 0)
        return not_understood(err);
    *ret_file = strdup(file);
    *ret_before = strdup(before);
    if (*ret_file && *ret_before)
        return 0;
    free(*ret_file);
    free(*ret_before);
    return asym_fail(err, -ENOMEM, "no memory");
}

/* The reports. */

/* The part of a schema behind its name: later versions of asymd may write other reports. */
#define VERSION "/1"

static int read_report(sd_bus_message *answer, json_t **ret, struct asym_error *err)
{
    const char *text;
    json_t *json = sd_bus_message_read(answer, "s", &text) < 0 ? NULL : json_loads(text, 0, NULL);
    const char *schema = json_string_value(json_object_get(json, "schema")),
               *version = schema ? strchr(schema, '/') : NULL;
    if (!version || strcmp(version, VERSION) != 0) {
        json_decref(json);
        return not_understood(err);
    }
    *ret = json;
    return 0;
}

int asym_client_get_report(struct asym_client *client, const char *topic, uint64_t argument, json_t **ret,
                           struct asym_error *err)
{
    AUTO_MESSAGE sd_bus_message *answer = NULL;
    const int r = call(client, READ_TIMEOUT, &answer, err, "GetReport", "st", topic, argument);
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
    AUTO_MESSAGE sd_bus_message *m = NULL;
    int r = new_call(c, "GetReport", &m);
    if (r >= 0)
        r = sd_bus_message_append(m, "st", "decisions", since->start ? since->number : UINT64_MAX);
    if (r >= 0)
        r = sd_bus_call_async(c->bus, NULL, m, on_answer, c, READ_TIMEOUT);
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
    AUTO_MESSAGE sd_bus_message *answer = ASYM_TAKE(c->answer);
    c->is_asked = false;
    if (sd_bus_is_open(c->bus) <= 0)
        return -ECONNRESET;
    const int r = sd_bus_message_is_method_error(answer, NULL)
                      ? failed(c, sd_bus_message_get_error(answer), READ_TIMEOUT, err)
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
    json_auto_t *found = NULL;
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
