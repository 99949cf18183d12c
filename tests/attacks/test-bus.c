/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attacks by clients of the system bus: they flood asymd, and pass it descriptors. */
#include <fcntl.h>
#include <signal.h>

#include "support/attack.h"
#include "support/bus-daemon.h"
#include "support/live.h"
#include "support/must.h"
#include "support/process.h"
#include "support/service.h"
#include "support/stranger.h"
#include "support/test.h"

#define PATH      "/org/asymd/Manager"
#define INTERFACE "org.asymd.Manager"

/* docs/threat-model.md promises 1 % of one CPU for messages, and 1 % for samples: the test fails from twice the sum. */
#define MOST 0.04

static int set_up(void **state)
{
    asym_bus_daemon_prepare();
    asym_service_set_up(state);
    asym_bus_daemon_start();
    return 0;
}

static int tear_down(void **state)
{
    asym_bus_daemon_stop();
    return asym_service_tear_down(state);
}

static void run_attack(void *arg)
{
    void (*const *attack)(sd_bus * bus) = arg;
    (*attack)(asym_bus_daemon_connect());
}

/* Starts an ordinary user's process with a connection to the bus. The bus daemon serves no user without a passwd entry. */
static pid_t start_attacker(void (*attack)(sd_bus *bus))
{
    return asym_stranger_start(run_attack, &attack);
}

/* Without a cookie sd-bus asks for no reply, of which the bus daemon lets a client await 128 only. */
static void send_call(sd_bus *bus, unsigned i)
{
    static const char *const topics[] = {"status", "counters", "decisions", "why", "program", "waits"};
    const bool has_argument = i % 6 > 1;
    ASYM_CLEANUP(sd_bus_message_unrefp) sd_bus_message *m = NULL;
    MUST(sd_bus_message_new_method_call(bus, &m, "org.asymd", PATH, INTERFACE, "GetReport") >= 0);
    MUST(sd_bus_message_append(m, "st", topics[i % 6], (uint64_t)(has_argument ? i : 0)) >= 0);
    MUST(sd_bus_send(bus, m, NULL) >= 0);
}

/* Keeps many calls on the way. */
static void flood(sd_bus *bus)
{
    uint64_t queued;
    for (unsigned i = 0;; i++) {
        MUST(sd_bus_get_n_queued_write(bus, &queued) >= 0);
        if (queued < 64)
            send_call(bus, i);
        else
            MUST(sd_bus_wait(bus, 10000) >= 0);
        for (int r; (r = sd_bus_process(bus, NULL)) != 0;)
            MUST(r > 0);
    }
}

/* The same with what sd-bus answers by itself. */
static void flood_properties(sd_bus *bus)
{
    for (;;) {
        sd_bus_message *m = NULL;
        uint64_t cookie, queued;
        MUST(sd_bus_message_new_method_call(bus, &m, "org.asymd", PATH, "org.freedesktop.DBus.Properties", "GetAll") >=
             0);
        MUST(sd_bus_message_append(m, "s", INTERFACE) >= 0);
        MUST(sd_bus_send(bus, m, &cookie) >= 0);
        sd_bus_message_unref(m);
        MUST(sd_bus_get_n_queued_write(bus, &queued) >= 0);
        if (queued >= 64)
            MUST(sd_bus_wait(bus, 10000) >= 0);
        for (int r; (r = sd_bus_process(bus, NULL)) != 0;)
            MUST(r > 0);
    }
}

TEST_WITH(floods_use_their_share_and_root_is_answered, set_up, tear_down)
{
    static void (*const floods[])(sd_bus *) = {flood, flood, flood_properties, flood_properties};
    enum { N = sizeof floods / sizeof floods[0] };
    pid_t attackers[N];
    const pid_t load = asym_service_spin("2"), asymd = asym_service_start(load, NULL);
    ASYM_CLEANUP(sd_bus_close_unrefp) sd_bus *root = asym_bus_daemon_direct(asym_service_dir());
    sd_bus_close_unref(asym_bus_daemon_await_asymd());
    for (size_t i = 0; i < N; i++)
        attackers[i] = start_attacker(floods[i]);
    asym_attack_settle(asymd, MOST, 3);
    const double share = asym_attack_share(asymd, 3, MOST);
    printf("asymd uses %.2f %% of a CPU under a flood\n", share * 100);
    assert_int_equal(asym_bus_daemon_call(root, "GetReport", NULL, "st", "counters", (uint64_t)0), 0);
    assert_int_equal(asym_bus_daemon_call(root, "Pause", NULL, "t", (uint64_t)1), 0);
    assert_true(share < MOST);
    for (size_t i = 0; i < N; i++) {
        assert_int_not_equal(asym_process_state(attackers[i]), 'Z');
        asym_live_end(attackers[i], SIGKILL);
    }
}

/* A call that carries a descriptor: the bus daemon refuses it, because asymd has not asked for any. */
static void pass_descriptor(sd_bus *bus)
{
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *m = NULL;
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    MUST(sd_bus_message_new_method_call(bus, &m, "org.asymd", PATH, INTERFACE, "GetReport") >= 0);
    MUST(sd_bus_message_append(m, "h", fd) >= 0);
    MUST(sd_bus_call(bus, m, 0, &error, NULL) < 0);
    if (!sd_bus_error_has_name(&error, SD_BUS_ERROR_NOT_SUPPORTED))
        fprintf(stderr, "%s: %s\n", error.name, error.message);
    MUST(sd_bus_error_has_name(&error, SD_BUS_ERROR_NOT_SUPPORTED));
}

TEST_WITH(a_descriptor_does_not_reach_asymd, set_up, tear_down)
{
    asym_service_steer("2", NULL);
    sd_bus_close_unref(asym_bus_daemon_await_asymd());
    assert_int_equal(asym_live_wait(start_attacker(pass_descriptor)), 0);
    sd_bus_close_unref(asym_bus_daemon_await_asymd());
}

TEST_MAIN
