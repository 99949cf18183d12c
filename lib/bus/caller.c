/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the user who calls, where the answer depends on the user, and whether that user may change asymd. On the system bus both
 * take an answer of another process, so a call waits in a table. A message of the system bus can be 32 MiB long
 * (max_message_size), so a call with long arguments never gets into the table.
 */
#include "bus/bus-internal.h"

#include <string.h>
#include <unistd.h>

#define REFUSED "asymd has too many unanswered calls: try again later"

static void end_call(struct asym_bus_call *call)
{
    sd_bus_slot_unref(call->slot);
    sd_bus_message_unref(call->message);
    *call = (struct asym_bus_call){.owner = call->owner};
}

static bool is_of(const struct asym_bus_call *call, const struct asym_bus_call *other)
{
    if (call->is_identified && other->is_identified)
        return call->uid == other->uid;
    return strcmp(sd_bus_message_get_sender(call->message), sd_bus_message_get_sender(other->message)) == 0;
}

/* Returns how many waiting calls come from the same user or the same connection. */
static unsigned count_calls_like(const struct asym_bus *bus, const struct asym_bus_call *call)
{
    unsigned n = 0;
    for (size_t i = 0; i < ASYM_BUS_MAX_CALLS; i++)
        n += bus->calls[i].message && is_of(&bus->calls[i], call);
    return n;
}

/* Ends the call. */
static int refuse_many(struct asym_bus_call *call)
{
    call->owner->totals.refused++;
    sd_bus_reply_method_errorf(call->message, ASYM_BUS_ERROR_REFUSED, REFUSED);
    end_call(call);
    return 1;
}

static bool is_root(uid_t uid)
{
    return uid == 0 || uid == geteuid();
}

/* Replies with the error of the method. Returns 1. */
static int run_method(struct asym_bus *bus, sd_bus_message *m, const struct asym_bus_method *method, uid_t uid)
{
    const struct asym_bus_caller caller = {.uid = uid, .is_root = is_root(uid)};
    sd_bus_error error = SD_BUS_ERROR_NULL;
    bus->totals.calls++;
    const int r = method->run(bus->config.userdata, m, &caller, &error);
    if (r < 0 || sd_bus_error_is_set(&error))
        sd_bus_reply_method_errno(m, r, &error);
    sd_bus_error_free(&error);
    return 1;
}

static void run_call(struct asym_bus_call *call)
{
    run_method(call->owner, call->message, call->method, call->uid);
    end_call(call);
}

/*
 * The D-Bus error tells a client that it may call again and let polkit ask. polkit's answer is the same if a rule refuses and if
 * the password was wrong.
 */
static void refuse(struct asym_bus_call *call, bool has_answer, bool is_challenge)
{
    if (!has_answer)
        sd_bus_reply_method_errorf(call->message, SD_BUS_ERROR_ACCESS_DENIED,
                                   "polkit does not answer here, so only root may change asymd");
    else if (!is_challenge)
        sd_bus_reply_method_errorf(call->message, SD_BUS_ERROR_ACCESS_DENIED,
                                   "polkit has not authorized this user to change asymd (" ASYM_BUS_POLKIT ")");
    else if (sd_bus_message_get_allow_interactive_authorization(call->message) > 0)
        sd_bus_reply_method_errorf(call->message, SD_BUS_ERROR_ACCESS_DENIED,
                                   "polkit asks for a password (" ASYM_BUS_POLKIT
                                   "), and no polkit agent runs in this session to ask the user");
    else
        sd_bus_reply_method_errorf(call->message, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                                   "polkit asks for a password (" ASYM_BUS_POLKIT
                                   "), and the call does not let it ask");
}

static int on_polkit(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    struct asym_bus_call *call = userdata;
    const bool has_answer = !sd_bus_message_is_method_error(m, NULL);
    int is_authorized = 0, is_challenge = 0;
    if (has_answer && sd_bus_message_enter_container(m, 'r', "bba{ss}") > 0)
        sd_bus_message_read(m, "bb", &is_authorized, &is_challenge);
    if (is_authorized) {
        run_call(call);
        return 1;
    }
    refuse(call, has_answer, is_challenge);
    end_call(call);
    return 1;
}

static int ask_polkit(struct asym_bus_call *call)
{
    sd_bus *b = sd_bus_message_get_bus(call->message);
    sd_bus_message *question = NULL;
    const bool may_ask = sd_bus_message_get_allow_interactive_authorization(call->message) > 0;
    int r = sd_bus_message_new_method_call(b, &question, "org.freedesktop.PolicyKit1",
                                           "/org/freedesktop/PolicyKit1/Authority",
                                           "org.freedesktop.PolicyKit1.Authority", "CheckAuthorization");
    if (r >= 0)
        r = sd_bus_message_append(question, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name", "s",
                                  sd_bus_message_get_sender(call->message), ASYM_BUS_POLKIT, 0, (uint32_t)may_ask, "");
    if (r >= 0)
        r = sd_bus_call_async(b, &call->slot, question, on_polkit, call, ASYM_BUS_POLKIT_WITHIN);
    sd_bus_message_unref(question);
    return r;
}

/* The user is known: run the method, ask polkit, or refuse. Returns 0 or more; -errno: the caller ends the call. */
static int proceed(struct asym_bus_call *call)
{
    if (!call->method->manages || is_root(call->uid)) {
        run_call(call);
        return 1;
    }
    return count_calls_like(call->owner, call) > ASYM_BUS_MAX_CALLS_OF_USER ? refuse_many(call) : ask_polkit(call);
}

static int on_user(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    struct asym_bus_call *call = userdata;
    uint32_t uid;
    call->slot = sd_bus_slot_unref(call->slot);
    if (sd_bus_message_is_method_error(m, NULL) || sd_bus_message_read(m, "u", &uid) < 0) {
        end_call(call); /* the sender has left, and waits for no answer */
        return 1;
    }
    call->uid = uid;
    call->is_identified = true;
    const int r = proceed(call);
    if (r < 0) {
        sd_bus_reply_method_errno(call->message, r, NULL);
        end_call(call);
    }
    return 1;
}

static int ask_user(struct asym_bus_call *call)
{
    return sd_bus_call_method_async(sd_bus_message_get_bus(call->message), &call->slot, "org.freedesktop.DBus",
                                    "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetConnectionUnixUser", on_user,
                                    call, "s", sd_bus_message_get_sender(call->message));
}

/* Returns whether each text among the arguments is short. sd-bus has checked the signature, which has basic types only. */
static bool is_short(sd_bus_message *m)
{
    char type;
    const char *text;
    union {
        const char *text;
        uint64_t number;
    } value;
    while (sd_bus_message_peek_type(m, &type, &text) > 0) {
        if (sd_bus_message_read_basic(m, type, &value) <= 0)
            return false;
        if (type == SD_BUS_TYPE_STRING && strlen(value.text) > ASYM_BUS_MAX_TEXT)
            return false;
    }
    return sd_bus_message_rewind(m, true) >= 0;
}

static struct asym_bus_call *find_place(struct asym_bus *bus)
{
    for (size_t i = 0; i < ASYM_BUS_MAX_CALLS; i++)
        if (!bus->calls[i].message)
            return &bus->calls[i];
    return NULL;
}

/* Runs the method once its user is known, where that matters, and allowed. Returns 1; -errno. */
static int call_on_system_bus(struct asym_bus *bus, sd_bus_message *m, const struct asym_bus_method *method,
                              sd_bus_error *error)
{
    struct asym_bus_call *call = find_place(bus);
    if (!is_short(m))
        return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "an argument is too long");
    if (!method->manages && !(bus->config.hides && bus->config.hides(bus->config.userdata)))
        return run_method(bus, m, method, ASYM_BUS_ANY_USER);
    if (!call) {
        bus->totals.refused++;
        return sd_bus_error_set(error, ASYM_BUS_ERROR_REFUSED, REFUSED);
    }
    *call = (struct asym_bus_call){.owner = bus, .message = sd_bus_message_ref(m), .method = method};
    if (count_calls_like(bus, call) > ASYM_BUS_MAX_CALLS_OF_USER)
        return refuse_many(call);
    const int r = ask_user(call);
    if (r < 0)
        end_call(call);
    return r < 0 ? r : 1;
}

int asym_bus_on_method(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    struct asym_bus_link *link = userdata;
    struct asym_bus *bus = link->owner;
    const char *name = sd_bus_message_get_member(m);
    const struct asym_bus_method *method = bus->config.methods;
    while (method->name && strcmp(method->name, name) != 0)
        method++;
    if (!method->name)
        return sd_bus_error_setf(error, SD_BUS_ERROR_UNKNOWN_METHOD, "no method %s", name);
    if (link->is_system)
        return call_on_system_bus(bus, m, method, error);
    return run_method(bus, m, method, link->uid);
}

void asym_bus_forget_callers(struct asym_bus *bus)
{
    for (size_t i = 0; i < ASYM_BUS_MAX_CALLS; i++)
        if (bus->calls[i].message)
            end_call(&bus->calls[i]);
}
