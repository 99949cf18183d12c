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

/* The characters of one, two, three and four bytes: their first byte, and the least that such a character may be. */
static const struct {
    unsigned char mask, lead;
    uint32_t least;
} forms[] = {{0x80, 0x00, 0x01}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};

/* sd-bus refuses surrogates and what Unicode calls noncharacters. */
static bool is_character(uint32_t c)
{
    return c < 0x110000 && (c & 0xfffff800) != 0xd800 && !(c >= 0xfdd0 && c <= 0xfdef) && (c & 0xfffe) != 0xfffe;
}

/* Returns the length of the character at s; 0: there is no valid one. */
static size_t character(const unsigned char *s)
{
    size_t more = 0;
    while (more < ASYM_LENGTH(forms) && (s[0] & forms[more].mask) != forms[more].lead)
        more++;
    if (more == ASYM_LENGTH(forms))
        return 0;
    uint32_t c = s[0] & (unsigned char)~forms[more].mask;
    for (size_t i = 1; i <= more; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    return c >= forms[more].least && is_character(c) ? more + 1 : 0;
}

const char *asym_bus_text(const char *text, char *buf, size_t size)
{
    size_t used = 0;
    while (*text) {
        const size_t n = character((const unsigned char *)text), copied = n ? n : 1;
        if (used + copied >= size)
            break;
        memcpy(buf + used, n ? text : "?", copied);
        used += copied;
        text += copied;
    }
    buf[used] = '\0';
    return buf;
}
