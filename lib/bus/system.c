/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The system bus: connect, own the name, and try again while there is no bus. */
#include "bus/bus-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/clock.h"

#define USUAL_ADDRESS "unix:path=/run/dbus/system_bus_socket"

/* Answers of RequestName. */
enum { NAME_OWNED = 1, NAME_IS_MINE = 4 };

/* How asymd stands to the system bus, as last logged: it tries again every few seconds, and logs a change only. */
static void tell(struct asym_bus *bus, enum asym_bus_system_state state, const char *why)
{
    if (bus->system_state == state)
        return;
    bus->system_state = state;
    switch (state) {
    case ASYM_BUS_SYSTEM_OWNED:
        asym_bus_say(bus, ASYM_BUS_SYSTEM, LOG_INFO, "users can ask asymd, as " ASYM_BUS_NAME);
        break;
    case ASYM_BUS_SYSTEM_REFUSED:
        asym_bus_say(bus, ASYM_BUS_SYSTEM, LOG_NOTICE,
                     "it does not give asymd the name " ASYM_BUS_NAME
                     ": %s; only root and the user who runs asymd can ask it",
                     why);
        break;
    case ASYM_BUS_SYSTEM_ABSENT:
        asym_bus_say(bus, ASYM_BUS_SYSTEM, LOG_NOTICE,
                     "no connection: %s; only root and the user who runs asymd can ask it", why);
        break;
    case ASYM_BUS_SYSTEM_UNKNOWN:
        break;
    }
}

static int on_name(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    struct asym_bus *bus = userdata;
    uint32_t answer = 0;
    if (sd_bus_message_is_method_error(m, NULL)) {
        tell(bus, ASYM_BUS_SYSTEM_REFUSED, sd_bus_message_get_error(m)->message);
    } else if (sd_bus_message_read(m, "u", &answer) < 0 || (answer != NAME_OWNED && answer != NAME_IS_MINE)) {
        tell(bus, ASYM_BUS_SYSTEM_REFUSED, "another process has it");
    } else {
        bus->has_name = true;
        tell(bus, ASYM_BUS_SYSTEM_OWNED, NULL);
    }
    return 0;
}

static int start(struct asym_bus *bus, sd_bus **ret)
{
    const char *set = bus->config.system_address ? bus->config.system_address : getenv("DBUS_SYSTEM_BUS_ADDRESS");
    sd_bus *b = NULL;
    int r = sd_bus_new(&b);
    if (r >= 0)
        r = sd_bus_set_address(b, set ? set : USUAL_ADDRESS);
    if (r >= 0)
        r = sd_bus_set_bus_client(b, true);
    if (r >= 0)
        r = sd_bus_negotiate_fds(b, false);
    if (r >= 0)
        r = sd_bus_set_description(b, "asymd-system");
    if (r >= 0)
        r = sd_bus_start(b); /* makes the first call, which keeps the timeout of sd-bus: the bus daemon may hang */
    if (r >= 0)
        r = sd_bus_set_method_call_timeout(b, ASYM_BUS_NO_TIMEOUT);
    if (r < 0)
        sd_bus_close_unref(b);
    else
        *ret = b;
    return r;
}

/* The request waits in the queue of the connection until the bus daemon has answered Hello. */
static int request_name(struct asym_bus *bus, sd_bus *b)
{
    return sd_bus_request_name_async(b, NULL, ASYM_BUS_NAME, 0, on_name, bus);
}

/* The bus daemon may read asymd's policy file, or lose the other owner, only after asymd has asked. */
static void ask_again(struct asym_bus *bus)
{
    if (bus->system_state == ASYM_BUS_SYSTEM_REFUSED && !bus->has_name)
        request_name(bus, bus->system->bus);
}

void asym_bus_connect_system(struct asym_bus *bus, asym_usec now)
{
    sd_bus *b;
    if (bus->config.no_system_bus || now < bus->retry_at)
        return;
    bus->retry_at = now + ASYM_BUS_RETRY;
    if (bus->system) {
        ask_again(bus);
        return;
    }
    int r = start(bus, &b);
    if (r >= 0)
        r = asym_bus_link_new(bus, b, true, 0, &bus->system);
    if (r >= 0) {
        r = request_name(bus, b);
        bus->system->ended = r < 0;
        asym_bus_sweep(bus);
    }
    if (r < 0)
        tell(bus, ASYM_BUS_SYSTEM_ABSENT, strerror(-r));
}

void asym_bus_lose_system(struct asym_bus *bus, asym_usec now)
{
    const char *why = bus->system->why_end;
    bus->totals.lost += why != NULL;
    asym_bus_forget_callers(bus);
    asym_bus_link_free(bus->system);
    bus->system = NULL;
    bus->has_name = false;
    bus->retry_at = now + ASYM_BUS_RETRY;
    tell(bus, ASYM_BUS_SYSTEM_ABSENT, why ? why : "the bus daemon has closed the connection");
}
