/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The messages to the service manager, while its queue is full and when it has room. A call that waits ends in SIGALRM. */
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "daemon/asymd/service-internal.h"
#include "support/limit-files.h"
#include "support/notify-socket.h"
#include "support/tree.h"
#include "support/test.h"

struct notify_fixture {
    struct tree tree;
    struct asym_notify n;
    int manager;
};

static void set_up(struct notify_fixture *f)
{
    tree_make(&f->tree);
    f->manager = asym_notify_socket_open(f->tree.path);
    alarm(60);
}

static void tear_down(struct notify_fixture *f)
{
    alarm(0);
    unsetenv("WATCHDOG_USEC");
    f->n.watchdog = sd_event_source_disable_unref(f->n.watchdog);
    asym_notify_socket_close(f->manager);
    tree_remove(&f->tree);
}

#define TEST_F(name) TEST_IN(name, struct notify_fixture, f, set_up, tear_down)

/* Writes all messages of the queue but those that fill it, a line each. */
static const char *received(const struct notify_fixture *f, char *ret, size_t size)
{
    char text[256];
    ssize_t n;
    *ret = '\0';
    while ((n = recv(f->manager, text, sizeof text - 1, MSG_DONTWAIT)) >= 0) {
        text[n] = '\0';
        assert_true(strlen(ret) + (size_t)n + 2 < size);
        if (strcmp(text, "full") != 0)
            strcat(strcat(ret, text), "\n");
    }
    return ret;
}

#define assert_received(f, expected)                                                                                   \
    do {                                                                                                               \
        char text[4096];                                                                                               \
        assert_string_equal(received(f, text, sizeof text), expected);                                                 \
    } while (0)

TEST_F(a_manager_that_reads_gets_each_message_at_once)
{
    asym_notify_state(&f->n, "READY=1");
    assert_received(f, "READY=1\n");
    asym_notify_status(&f->n, "policy %s, %d threads", "pa", 4);
    assert_received(f, "STATUS=policy pa, 4 threads\n");
}

TEST_F(states_wait_for_room_in_order_and_a_status_does_not)
{
    asym_notify_socket_fill();
    asym_notify_state(&f->n, "RELOADING=1\nMONOTONIC_USEC=18446744073709551615");
    asym_notify_state(&f->n, "READY=1");
    asym_notify_status(&f->n, "of old");
    assert_received(f, "");
    asym_notify_status(&f->n, "of now");
    assert_received(f, "RELOADING=1\nMONOTONIC_USEC=18446744073709551615\nREADY=1\nSTATUS=of now\n");
    asym_notify_status(&f->n, "later");
    assert_received(f, "STATUS=later\n");
}

TEST_F(of_more_states_than_places_the_newest_are_kept)
{
    char expected[256] = "", state_text[16];
    asym_notify_socket_fill();
    for (int i = 0; i < 10; i++) {
        snprintf(state_text, sizeof state_text, "X=%d", i);
        asym_notify_state(&f->n, state_text);
        if (i >= 10 - ASYM_NOTIFY_STATES)
            strcat(strcat(expected, state_text), "\n");
    }
    assert_received(f, "");
    asym_notify_status(&f->n, "now");
    strcat(expected, "STATUS=now\n");
    assert_received(f, expected);
}

TEST_F(an_abstract_socket_is_one_too)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[64], text[64];
    const int length = snprintf(name, sizeof name, "@asymd-test-notify-%d", (int)getpid());
    memcpy(address.sun_path + 1, name + 1, (size_t)length - 1);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length)),
                     0);
    setenv("NOTIFY_SOCKET", name, 1);
    asym_notify_state(&f->n, "READY=1");
    assert_int_equal(recv(fd, text, sizeof text, MSG_DONTWAIT), 7);
    assert_memory_equal(text, "READY=1", 7);
    close(fd);
}

/* A state that no manager can get must not come to a later one as if it were new. */
TEST_F(without_a_manager_nothing_waits)
{
    static const char *const values[] = {"", "x", "@", "vsock:2:1234", "/nonexistent/notify", NULL};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (values[i])
            setenv("NOTIFY_SOCKET", values[i], 1);
        else
            unsetenv("NOTIFY_SOCKET");
        asym_notify_state(&f->n, "READY=1");
        assert_int_equal(f->n.n_states, 0);
    }
}

/* asymd keeps a descriptor for each thread that it observes, so none may be left for a moment. */
TEST_F(a_state_waits_for_a_free_descriptor)
{
    const rlim_t before = limit_descriptors(0);
    asym_notify_state(&f->n, "READY=1");
    limit_descriptors(before);
    assert_received(f, "");
    asym_notify_status(&f->n, "now");
    assert_received(f, "READY=1\nSTATUS=now\n");
}

/* The loop runs until the manager has had the pings, or until the time is over. */
static void run_until_pinged(struct notify_fixture *f, sd_event *event, unsigned pings)
{
    for (unsigned n = 0; n < pings;) {
        char text[16];
        assert_true(sd_event_run(event, 30 * ASYM_SEC) >= 0);
        while (recv(f->manager, text, sizeof text, MSG_DONTWAIT) > 0)
            n += memcmp(text, "WATCHDOG=1", 10) == 0;
    }
}

static sd_event *start_pings(struct notify_fixture *f, const char *limit)
{
    sd_event *event;
    assert_int_equal(sd_event_new(&event), 0);
    setenv("WATCHDOG_USEC", limit, 1);
    assert_true(asym_notify_watchdog(&f->n, event) >= 0);
    assert_non_null(f->n.watchdog);
    return event;
}

static void stop_pings(struct notify_fixture *f, sd_event *event)
{
    f->n.watchdog = sd_event_source_disable_unref(f->n.watchdog);
    sd_event_unref(event);
}

/* A user who fills the queue again and again takes most places, but not all: the ping needs one of many attempts. */
TEST_F(a_ping_that_found_no_room_is_tried_again_soon)
{
    sd_event *event = start_pings(f, "30000000");
    asym_notify_socket_fill();
    for (int i = 0; i < 5; i++) {
        uint64_t next;
        assert_true(sd_event_run(event, 30 * ASYM_SEC) > 0);
        assert_int_equal(sd_event_source_get_time(f->n.watchdog, &next), 0);
        assert_true(next <= asym_clock_now() + 100 * ASYM_MSEC);
    }
    assert_received(f, "");
    assert_true(sd_event_run(event, 30 * ASYM_SEC) > 0);
    assert_received(f, "WATCHDOG=1\n");
    stop_pings(f, event);
}

static int count(sd_event_source *source, void *n)
{
    ++*(unsigned *)n;
    return 0;
}

/* Reports of programs have this priority, and a user may send them without a pause. */
TEST_F(pings_come_while_an_important_source_is_always_ready)
{
    sd_event *event = start_pings(f, "2000");
    sd_event_source *busy;
    unsigned n = 0;
    assert_true(sd_event_add_defer(event, &busy, count, &n) >= 0);
    assert_true(sd_event_source_set_enabled(busy, SD_EVENT_ON) >= 0);
    assert_true(sd_event_source_set_priority(busy, SD_EVENT_PRIORITY_IMPORTANT) >= 0);
    run_until_pinged(f, event, 3);
    assert_true(n > 0);
    sd_event_source_unref(busy);
    stop_pings(f, event);
}

TEST_F(without_a_watchdog_there_are_no_pings)
{
    ASYM_CLEANUP(sd_event_unrefp) sd_event *event;
    assert_int_equal(sd_event_new(&event), 0);
    assert_int_equal(asym_notify_watchdog(&f->n, event), 0);
    assert_null(f->n.watchdog);
}

TEST_F(pings_do_not_wait_and_come_again_when_there_is_room)
{
    sd_event *event = start_pings(f, "200000");
    run_until_pinged(f, event, 2);
    asym_notify_socket_fill();
    asym_notify_state(&f->n, "READY=1");
    /* Without room each turn of the loop is one more attempt. */
    for (int i = 0; i < 5; i++)
        assert_true(sd_event_run(event, 30 * ASYM_SEC) > 0);
    assert_received(f, "");
    assert_true(sd_event_run(event, 30 * ASYM_SEC) > 0);
    assert_received(f, "READY=1\nWATCHDOG=1\n");
    run_until_pinged(f, event, 2);
    stop_pings(f, event);
}

TEST_MAIN
