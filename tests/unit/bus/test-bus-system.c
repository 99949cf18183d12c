/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The system bus: the test is the bus daemon and its clients. It names their users when it wants, and reads when it wants. */
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>

#include "base/clock.h"
#include "bus/bus-internal.h"
#include "support/test.h"

/* The users of the clients :1.1X and :1.2X. Other clients belong to the user who runs the test. */
#define FIRST  12345
#define SECOND 23456

/* ASYM_BUS_BURST has room for five messages of that cost. */
#define COST (20 * ASYM_MSEC)

struct fixture {
    sd_event *event;
    struct asym_bus *bus;
    char dir[64], path[96], address[128];
    int listener;
    sd_bus *daemon;
    bool hides;                 /* what a method reads depends on the user */
    bool keeps_users, has_left; /* the daemon does not say yet who a client is; the client has left */
    sd_bus_message *questions[16];
    unsigned n_questions, n_answered, n_refused, n_ran, n_polkit, n_name_requests;
    bool keeps_name; /* another process has asymd's name */
    asym_usec cost;  /* CPU time of a method or property */
    char order[64], said[512];
    uid_t caller;
};

static struct fixture f;

/*
 * The clocks of the test, also those of libsystemd: time stands, so that no token bucket fills while the machine is busy, and CPU
 * time is used by burn() and by tick only.
 */
static struct {
    bool real;
    struct timespec now;
    asym_usec cpu, tick; /* tick: CPU time between two readings of the clock */
} clocks;

/* Stands before the function of the C library. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *ret)
{
    if (clocks.real || (clock != CLOCK_MONOTONIC && clock != CLOCK_THREAD_CPUTIME_ID))
        return (int)syscall(SYS_clock_gettime, clock, ret);
    clocks.cpu += clock == CLOCK_THREAD_CPUTIME_ID ? clocks.tick : 0;
    *ret = clock == CLOCK_MONOTONIC ? clocks.now
                                    : (struct timespec){.tv_sec = (time_t)(clocks.cpu / ASYM_SEC),
                                                        .tv_nsec = (long)(clocks.cpu % ASYM_SEC) * 1000};
    return 0;
}

static void burn(void)
{
    clocks.cpu += f.cost;
}

static int get_answer(sd_bus *bus, const char *path, const char *interface, const char *property, sd_bus_message *reply,
                      void *userdata, sd_bus_error *error)
{
    burn();
    return sd_bus_message_append(reply, "u", 42u);
}

static const sd_bus_vtable vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Answer", "u", get_answer, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_METHOD("Read", "s", "s", asym_bus_on_method, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Change", "s", "s", asym_bus_on_method, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Large", "", "ay", asym_bus_on_method, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

static int run_read(void *userdata, sd_bus_message *m, const struct asym_bus_caller *caller, sd_bus_error *error)
{
    const char *text;
    f.n_ran++;
    f.caller = caller->uid;
    burn();
    assert_true(sd_bus_message_read(m, "s", &text) > 0);
    strncat(f.order, text, sizeof f.order - strlen(f.order) - 1);
    return sd_bus_reply_method_return(m, "s", text);
}

/* Bytes: a text of this length would cost far more. */
static int run_large(void *userdata, sd_bus_message *m, const struct asym_bus_caller *caller, sd_bus_error *error)
{
    static const char bytes[128 * 1024];
    ASYM_CLEANUP(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    assert_true(sd_bus_message_new_method_return(m, &reply) >= 0);
    assert_true(sd_bus_message_append_array(reply, 'y', bytes, sizeof bytes) >= 0);
    const int r = sd_bus_send(NULL, reply, NULL);
    return r;
}

static bool hides(void *userdata)
{
    assert_ptr_equal(userdata, &f);
    return f.hides;
}

static const struct asym_bus_method methods[] = {
    {"Read", false, run_read},
    {"Change", true, run_read},
    {"Large", false, run_large},
    {NULL, false, NULL},
};

static void say(void *userdata, enum asym_bus_topic topic, int priority, const char *text)
{
    assert_int_equal(topic, ASYM_BUS_SYSTEM);
    snprintf(f.said, sizeof f.said, "%s", text);
}

static int answer_user(sd_bus_message *m)
{
    const char *name;
    assert_true(sd_bus_message_rewind(m, true) >= 0);
    assert_true(sd_bus_message_read(m, "s", &name) > 0);
    if (f.has_left)
        return sd_bus_reply_method_errorf(m, "org.freedesktop.DBus.Error.NameHasNoOwner", "it has left");
    /* ":1.1..." is of the first user, ":1.2..." of the second. */
    return sd_bus_reply_method_return(m, "u", name[3] == '1' ? FIRST : name[3] == '2' ? SECOND : (uint32_t)geteuid());
}

/* The daemon. It also gets what asymd sends to the clients. */
static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    if (sd_bus_message_is_method_error(m, ASYM_BUS_ERROR_REFUSED) > 0)
        f.n_refused++;
    else if (sd_bus_message_get_reply_cookie(m, &(uint64_t){0}) >= 0)
        f.n_answered++;
    if (sd_bus_message_is_method_call(m, NULL, "Hello") > 0)
        return sd_bus_reply_method_return(m, "s", ":1.99");
    if (sd_bus_message_is_method_call(m, NULL, "RequestName") > 0) {
        f.n_name_requests++;
        return sd_bus_reply_method_return(m, "u", f.keeps_name ? 3u : 1u);
    }
    f.n_polkit += sd_bus_message_is_method_call(m, NULL, "CheckAuthorization") > 0;
    if (sd_bus_message_is_method_call(m, NULL, "GetConnectionUnixUser") <= 0)
        return 1;
    if (!f.keeps_users)
        return answer_user(m);
    assert_true(f.n_questions < ASYM_LENGTH(f.questions));
    f.questions[f.n_questions++] = sd_bus_message_ref(m);
    return 1;
}

/* Lets asymd do what it can do now. */
static void turn(void)
{
    while (sd_event_run(f.event, 0) > 0)
        ;
}

/* Lets both sides work until both have nothing to do. */
static void settle(void)
{
    for (unsigned idle = 0; idle < 3;) {
        turn();
        const int r = sd_bus_process(f.daemon, NULL);
        assert_true(r >= 0);
        idle = r > 0 ? 0 : idle + 1;
    }
}

static void accept_asymd(void)
{
    sd_id128_t id;
    const int fd = accept4(f.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_true(fd >= 0);
    assert_true(sd_id128_randomize(&id) >= 0);
    assert_true(sd_bus_new(&f.daemon) >= 0);
    assert_true(sd_bus_set_fd(f.daemon, fd, fd) >= 0);
    assert_true(sd_bus_set_server(f.daemon, true, id) >= 0);
    assert_true(sd_bus_add_filter(f.daemon, NULL, on_message, NULL) >= 0);
    assert_true(sd_bus_start(f.daemon) >= 0);
    settle();
}

static void open_bus(bool keeps_name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    f = (struct fixture){.dir = "/tmp/asym-bus-XXXXXX", .keeps_name = keeps_name};
    clocks.real = false;
    clocks.tick = 0;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &clocks.now);
    assert_non_null(mkdtemp(f.dir));
    snprintf(f.path, sizeof f.path, "%s/system", f.dir);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", f.path);
    snprintf(f.address, sizeof f.address, "unix:path=%s", f.path);
    f.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(f.listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(f.listener, 4), 0);
    assert_true(sd_event_new(&f.event) >= 0);
    const struct asym_bus_config config = {
        .event = f.event,
        .system_address = f.address,
        .vtable = vtable,
        .methods = methods,
        .userdata = &f,
        .hides = hides,
        .say = say,
    };
    assert_int_equal(asym_bus_open(&config, &f.bus, NULL), 0);
    accept_asymd();
}

static int set_up(void **state)
{
    open_bus(false);
    assert_non_null(strstr(f.said, "as org.asymd"));
    return 0;
}

static int set_up_without_name(void **state)
{
    open_bus(true);
    assert_non_null(strstr(f.said, "does not give asymd the name"));
    return 0;
}

static int tear_down(void **state)
{
    asym_bus_close(f.bus);
    for (unsigned i = 0; i < f.n_questions; i++)
        sd_bus_message_unref(f.questions[i]);
    sd_bus_close_unref(f.daemon);
    sd_event_unref(f.event);
    close(f.listener);
    unlink(f.path);
    return rmdir(f.dir);
}

/* Sends a call of a client with one text. */
static void send_as(const char *sender, const char *interface, const char *member, const char *text)
{
    ASYM_CLEANUP(sd_bus_message_unrefp) sd_bus_message *m = NULL;
    uint64_t cookie; /* without one sd-bus asks for no answer */
    assert_true(sd_bus_message_new_method_call(f.daemon, &m, ":1.99", ASYM_BUS_PATH, interface, member) >= 0);
    assert_true(sd_bus_message_set_sender(m, sender) >= 0);
    if (text)
        assert_true(sd_bus_message_append(m, "s", text) >= 0);
    assert_true(sd_bus_send(f.daemon, m, &cookie) >= 0);
}

/* Sends n calls of one of asymd's methods, and lets both sides work. */
static void call(const char *sender, const char *member, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        send_as(sender, ASYM_BUS_INTERFACE, member, "x");
    settle();
}

static void get_all(const char *sender, unsigned n)
{
    f.n_answered = f.n_refused = 0;
    for (unsigned i = 0; i < n; i++)
        send_as(sender, "org.freedesktop.DBus.Properties", "GetAll", ASYM_BUS_INTERFACE);
    settle();
}

static void name_users(void)
{
    f.keeps_users = false;
    for (unsigned i = 0; i < f.n_questions; i++) {
        assert_true(answer_user(f.questions[i]) >= 0);
        sd_bus_message_unref(f.questions[i]);
    }
    f.n_questions = 0;
    settle();
}

static void pass_time(asym_usec span)
{
    clocks.now.tv_sec += (time_t)(span / ASYM_SEC);
    asym_bus_housekeeping(f.bus, asym_clock_now());
    settle();
}

/* All wait for the share: properties and introspection, which sd-bus answers by itself, methods, and unknown ones. */
TEST_WITH(what_all_ask_costs_the_share_and_no_more, set_up, tear_down)
{
    static const struct {
        const char *interface, *member, *text;
    } rows[] = {{"org.freedesktop.DBus.Properties", "GetAll", ASYM_BUS_INTERFACE},
                {ASYM_BUS_INTERFACE, "Read", "x"},
                {ASYM_BUS_INTERFACE, "Nothing", NULL},
                {"org.freedesktop.DBus.Introspectable", "Introspect", NULL}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        pass_time(100 * ASYM_SEC);
        f.n_answered = 0;
        clocks.tick = COST;
        for (unsigned k = 0; k < 20; k++)
            send_as(k % 2 ? ":1.10" : ":1.20", rows[i].interface, rows[i].member, rows[i].text);
        settle();
        clocks.tick = 0;
        assert_in_range(f.n_answered, 1, 6);
        pass_time(100 * ASYM_SEC);
        assert_int_equal(f.n_answered, 20);
    }
    assert_int_equal(f.n_refused, 0);
}

/* The CPU time before the handler of the message is that of the event loop: it waits, wakes and finds the message. */
TEST_WITH(the_turn_of_the_event_loop_counts, set_up, tear_down)
{
    const asym_usec before = asym_bus_spent(f.bus);
    asym_bus_begin_turn(f.bus);
    clocks.cpu += 6 * COST;
    get_all(":1.10", 2);
    assert_int_equal(f.n_answered, 1);
    assert_int_equal(asym_bus_spent(f.bus) - before, 6 * COST);
}

/* Returns how many of ten calls asymd runs when it wakes up once. */
static unsigned run_once(asym_usec cost)
{
    f.cost = cost;
    f.n_ran = 0;
    for (unsigned i = 0; i < 10; i++)
        send_as(":1.10", ASYM_BUS_INTERFACE, "Read", "x");
    assert_true(sd_event_run(f.event, 0) > 0);
    const unsigned n = f.n_ran;
    settle();
    assert_int_equal(f.n_ran, 10);
    return n;
}

/* To wake up costs more than a cheap message. Dear ones must not keep the samples waiting. */
TEST_WITH(one_wakeup_serves_messages_for_a_slice, set_up, tear_down)
{
    assert_int_equal(run_once(0), 10);
    assert_int_equal(run_once(ASYM_BUS_SLICE * 3 / 4), 2);
    assert_int_equal(run_once(ASYM_BUS_SLICE), 1);
}

/* asymd does not ask the bus daemon who it is. */
TEST_WITH(where_nothing_is_hidden_the_user_does_not_matter, set_up, tear_down)
{
    f.keeps_users = true;
    call(":1.10", "Read", 1);
    assert_int_equal(f.n_ran, 1);
    assert_int_equal(f.caller, ASYM_BUS_ANY_USER);
    assert_int_equal(f.n_questions, 0);
    call(":1.10", "Change", 1);
    assert_int_equal(f.n_ran, 1);
    assert_int_equal(f.n_questions, 1);
}

TEST_WITH(few_calls_of_a_connection_wait_for_its_user, set_up, tear_down)
{
    f.keeps_users = f.hides = true;
    call(":1.10", "Read", ASYM_BUS_MAX_CALLS_OF_USER + 3);
    assert_int_equal(f.n_refused, 3);
    name_users();
    assert_int_equal(f.n_ran, ASYM_BUS_MAX_CALLS_OF_USER);
}

TEST_WITH(calls_wait_for_the_user_and_keep_their_order, set_up, tear_down)
{
    f.keeps_users = f.hides = true;
    for (const char *c = "abcd"; *c; c++)
        send_as(":1.10", ASYM_BUS_INTERFACE, "Read", (char[]){*c, '\0'});
    settle();
    assert_int_equal(f.n_ran, 0);
    name_users();
    assert_string_equal(f.order, "abcd");
    assert_int_equal(f.caller, FIRST);
    assert_int_equal(f.n_answered, 4);
}

TEST_WITH(calls_of_a_client_that_has_left_are_dropped, set_up, tear_down)
{
    f.keeps_users = f.hides = true;
    call(":1.10", "Read", ASYM_BUS_MAX_CALLS_OF_USER);
    f.has_left = true;
    name_users();
    f.has_left = false;
    assert_int_equal(f.n_ran, 0);
    call(":1.10", "Read", ASYM_BUS_MAX_CALLS_OF_USER);
    assert_int_equal(f.n_ran, ASYM_BUS_MAX_CALLS_OF_USER);
}

/* Whatever it has cost, asymd serves all users again after a second or two. */
TEST_WITH(a_dear_call_stops_no_user_for_long, set_up, tear_down)
{
    f.cost = ASYM_SEC;
    get_all(":1.10", 1);
    f.cost = 0;
    get_all(":1.20", 1);
    assert_int_equal(f.n_answered, 0);
    pass_time(2 * ASYM_SEC);
    assert_int_equal(f.n_answered, 1);
}

TEST_WITH(a_bus_daemon_that_does_not_read_loses_the_connection, set_up, tear_down)
{
    struct asym_bus_totals totals = {0};
    uint64_t n_sent = 1;
    clocks.real = true;
    send_as(":1.30", ASYM_BUS_INTERFACE, "Large", NULL);
    settle();
    assert_int_equal(f.n_answered, 1);
    asym_bus_totals(f.bus, &totals);
    /* A slow machine spends the burst of the token bucket: then asymd goes on at 1 % of a CPU. */
    for (const asym_usec end = asym_clock_now() + 30 * ASYM_SEC; totals.lost == 0 && asym_clock_now() < end;) {
        if (totals.calls == n_sent) {
            send_as(":1.30", ASYM_BUS_INTERFACE, "Large", NULL);
            n_sent++;
        } else {
            usleep(1000);
        }
        turn();
        asym_bus_totals(f.bus, &totals);
    }
    assert_int_equal(totals.lost, 1);
    assert_true(totals.calls >= ASYM_BUS_MAX_QUEUED);
    assert_false(f.bus->has_name);
    assert_non_null(strstr(f.said, "does not read"));
    f.daemon = sd_bus_close_unref(f.daemon);
    asym_bus_housekeeping(f.bus, asym_clock_now() + ASYM_BUS_RETRY);
    accept_asymd();
    call(":1.30", "Read", 1);
    assert_int_equal(f.n_ran, 1);
    assert_true(f.bus->has_name);
}

TEST_WITH(a_call_that_polkit_does_not_answer_is_refused, set_up, tear_down)
{
    call(":1.10", "Change", 1);
    pass_time(ASYM_BUS_POLKIT_WITHIN - ASYM_SEC);
    assert_int_equal(f.n_answered, 0);
    pass_time(2 * ASYM_SEC);
    assert_int_equal(f.n_polkit, 1);
    assert_int_equal(f.n_answered, 1);
    assert_int_equal(f.n_ran, 0);
}

/* The bus daemon names the user of a call long after asymd has asked: asymd did not read. */
TEST_WITH(a_user_who_is_named_late_is_served, set_up, tear_down)
{
    f.keeps_users = f.hides = true;
    call(":1.10", "Read", 1);
    pass_time(100 * ASYM_SEC);
    name_users();
    assert_int_equal(f.n_ran, 1);
}

TEST_WITH(polkit_is_asked_about_a_bounded_number_of_calls_of_a_user, set_up, tear_down)
{
    for (unsigned i = 0; i < ASYM_BUS_MAX_CALLS_OF_USER + 2; i++)
        send_as(i % 2 ? ":1.10" : ":1.11", ASYM_BUS_INTERFACE, "Change", "x");
    settle();
    assert_int_equal(f.n_polkit, ASYM_BUS_MAX_CALLS_OF_USER);
    assert_int_equal(f.n_refused, 2);
    call(":1.20", "Change", 1);
    assert_int_equal(f.n_polkit, ASYM_BUS_MAX_CALLS_OF_USER + 1);
    assert_int_equal(f.n_ran, 0);
}

TEST_WITH(a_text_has_a_longest_length, set_up, tear_down)
{
    char text[ASYM_BUS_MAX_TEXT + 2];
    memset(text, 'x', sizeof text);
    text[ASYM_BUS_MAX_TEXT] = '\0';
    send_as(":1.10", ASYM_BUS_INTERFACE, "Read", text);
    settle();
    assert_int_equal(f.n_ran, 1);
    text[ASYM_BUS_MAX_TEXT] = 'x';
    text[ASYM_BUS_MAX_TEXT + 1] = '\0';
    send_as(":1.10", ASYM_BUS_INTERFACE, "Read", text);
    settle();
    assert_int_equal(f.n_ran, 1);
}

TEST_WITH(a_name_is_asked_for_again_after_a_while_and_not_at_once, set_up_without_name, tear_down)
{
    const asym_usec now = asym_clock_now() + 2 * ASYM_BUS_RETRY;
    const unsigned before = f.n_name_requests;
    asym_bus_housekeeping(f.bus, now);
    asym_bus_housekeeping(f.bus, now + ASYM_BUS_RETRY - 1);
    settle();
    assert_int_equal(f.n_name_requests, before + 1);
    asym_bus_housekeeping(f.bus, now + ASYM_BUS_RETRY);
    settle();
    assert_int_equal(f.n_name_requests, before + 2);
}

/* The bus daemon may know asymd's policy file only after asymd has asked, and another owner may end. */
TEST_WITH(a_name_that_was_refused_is_asked_for_again, set_up_without_name, tear_down)
{
    f.keeps_name = false;
    asym_bus_housekeeping(f.bus, asym_clock_now() + 2 * ASYM_BUS_RETRY);
    settle();
    assert_non_null(strstr(f.said, "as org.asymd"));
}

TEST_MAIN
