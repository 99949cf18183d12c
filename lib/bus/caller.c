/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the user who calls, and whether that user may. On the system bus both take an answer of another process, so a call waits in
 * a table. A message of the system bus can be 32 MiB long (max_message_size), so a call with long arguments never gets into the
 * table.
 */
#include "bus/bus-internal.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

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

int asym_bus_run(struct asym_bus *bus, sd_bus_message *m, const struct asym_bus_method *method, uid_t uid)
{
    const struct asym_bus_caller caller = {.uid = uid, .is_root = asym_bus_is_root(uid)};
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
    asym_bus_run(call->owner, call->message, call->method, call->uid);
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
    (void)error;
    call->owner->payer = call->uid;
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
    struct asym_bus *bus = call->owner;
    call->slot = sd_bus_slot_unref(call->slot);
    bus->payer = call->uid;
    if (!asym_bus_user_may(bus, call->uid)) {
        asym_bus_refuse(bus, call->message, ASYM_BUS_REFUSED_COST);
        end_call(call);
        return 1;
    }
    if (!call->method->manages || asym_bus_is_root(call->uid)) {
        run_call(call);
        return 1;
    }
    if (count_calls_like(bus, call) > ASYM_BUS_MAX_CALLS_OF_USER) {
        asym_bus_refuse(bus, call->message, ASYM_BUS_REFUSED_MANY);
        end_call(call);
        return 1;
    }
    return ask_polkit(call);
}

void asym_bus_identify_calls(struct asym_bus *bus, const char *name, const uid_t *uid)
{
    for (size_t i = 0; i < ASYM_BUS_MAX_CALLS; i++) {
        struct asym_bus_call *call = &bus->calls[i];
        if (!call->message || call->is_identified || strcmp(sd_bus_message_get_sender(call->message), name) != 0)
            continue;
        if (uid) {
            call->uid = *uid;
            call->is_identified = true;
        } else {
            end_call(call);
        }
    }
}

/* Returns the oldest call whose user is known, and that polkit was not asked about. */
static struct asym_bus_call *find_ready(struct asym_bus *bus)
{
    struct asym_bus_call *oldest = NULL;
    for (size_t i = 0; i < ASYM_BUS_MAX_CALLS; i++) {
        struct asym_bus_call *call = &bus->calls[i];
        if (call->message && call->is_identified && !call->slot && (!oldest || call->number < oldest->number))
            oldest = call;
    }
    return oldest;
}

bool asym_bus_has_ready(struct asym_bus *bus)
{
    return find_ready(bus) != NULL;
}

bool asym_bus_run_ready(struct asym_bus *bus)
{
    struct asym_bus_call *call = find_ready(bus);
    if (!call)
        return false;
    const int r = proceed(call);
    if (r < 0) {
        sd_bus_reply_method_errno(call->message, r, NULL);
        end_call(call);
    }
    return true;
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

int asym_bus_call_system(struct asym_bus *bus, sd_bus_message *m, const struct asym_bus_method *method,
                         sd_bus_error *error)
{
    struct asym_bus_call *call = find_place(bus);
    if (!is_short(m))
        return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "an argument is too long");
    if (!call)
        return asym_bus_refuse(bus, m, ASYM_BUS_REFUSED_MANY);
    *call = (struct asym_bus_call){
        .owner = bus, .message = sd_bus_message_ref(m), .method = method, .number = ++bus->clock};
    if (!bus->unknown) {
        call->uid = bus->payer;
        call->is_identified = true;
    }
    const int r = bus->unknown ? 1 : proceed(call); /* asym_bus_run_ready continues with a call that waits */
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
        return asym_bus_call_system(bus, m, method, error);
    return asym_bus_run(bus, m, method, link->uid);
}

void asym_bus_forget_callers(struct asym_bus *bus)
{
    for (size_t i = 0; i < ASYM_BUS_MAX_CALLS; i++)
        if (bus->calls[i].message)
            end_call(&bus->calls[i]);
}
