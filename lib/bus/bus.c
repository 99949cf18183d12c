/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bus/bus.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "bus/bus-internal.h"

void asym_bus_say(const struct asym_bus *bus, enum asym_bus_topic topic, int priority, const char *format, ...)
{
    char text[512];
    va_list args;
    if (!bus->config.say)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    bus->config.say(bus->config.userdata, topic, priority, text);
}

int asym_bus_open(const struct asym_bus_config *config, struct asym_bus **ret_bus, struct asym_error *err)
{
    struct asym_bus *bus = calloc(1, sizeof *bus);
    if (!bus)
        return asym_fail(err, -ENOMEM, "no memory for the bus");
    bus->config = *config;
    bus->listener = -1;
    bus->cpu_time = asym_token_bucket_full(config->share > 0 ? config->share : ASYM_BUS_SHARE, ASYM_BUS_BURST,
                                           asym_clock_now());
    bus->cpu_time.resume = ASYM_BUS_BURST * ASYM_BUS_RESUME;
    /* The other users must not wait until a dear call is paid for. */
    bus->cpu_time.most_debt = ASYM_BUS_BURST * ASYM_BUS_DEBT;
    int r = config->dir ? asym_bus_listen(bus, config->dir, err) : 0;
    if (r < 0) {
        asym_bus_close(bus);
        return r;
    }
    asym_bus_connect_system(bus, asym_clock_now());
    *ret_bus = bus;
    return 0;
}

void asym_bus_close(struct asym_bus *bus)
{
    if (!bus)
        return;
    asym_bus_unlisten(bus);
    asym_bus_forget_callers(bus);
    for (size_t i = 0; i < ASYM_LENGTH(bus->direct); i++)
        if (bus->direct[i])
            asym_bus_link_free(bus->direct[i]);
    if (bus->system)
        asym_bus_link_free(bus->system);
    free(bus);
}

void asym_bus_begin_turn(struct asym_bus *bus)
{
    if (bus)
        bus->turn_begun = asym_clock_thread_cpu();
}

void asym_bus_housekeeping(struct asym_bus *bus, asym_usec now)
{
    if (bus->listen)
        sd_event_source_set_enabled(bus->listen, SD_EVENT_ON);
    asym_bus_connect_system(bus, now);
    if (!bus->is_dispatching)
        asym_bus_sweep(bus);
}

void *asym_bus_userdata(void *link)
{
    return ((struct asym_bus_link *)link)->owner->config.userdata;
}

void asym_bus_emit_changed(struct asym_bus *bus, char *const *names)
{
    const asym_usec begun = asym_clock_thread_cpu();
    if (bus->system && !bus->system->ended)
        sd_bus_emit_properties_changed_strv(bus->system->bus, ASYM_BUS_PATH, ASYM_BUS_INTERFACE, (char **)names);
    /* The dispatch of a message counts its whole time, and sweeps at its end. */
    if (bus->is_dispatching)
        return;
    bus->spent += asym_clock_thread_cpu() - begun;
    asym_bus_sweep(bus);
}

asym_usec asym_bus_spent(const struct asym_bus *bus)
{
    return bus ? bus->spent : 0;
}

void asym_bus_totals(const struct asym_bus *bus, struct asym_bus_totals *ret)
{
    *ret = bus ? bus->totals : (struct asym_bus_totals){.calls = 0};
    if (!bus)
        return;
    for (size_t i = 0; i < ASYM_LENGTH(bus->direct); i++)
        ret->direct += bus->direct[i] != NULL;
    ret->on_system_bus = bus->has_name;
}
