/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bus on socket pairs: one process is the server and its clients, which take turns on one event loop. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/clock.h"
#include "bus/bus-internal.h"
#include "support/count.h"
#include "support/limit-files.h"
#include "support/test.h"

struct fixture {
    sd_event *event;
    struct asym_bus *bus;
    char dir[64];
    unsigned n_ran;
    struct asym_bus_caller caller;
    int fails;
    char said[512];
};

static struct fixture f;

static unsigned count_direct(void)
{
    unsigned n = 0;
    for (size_t i = 0; i < ASYM_BUS_MAX_DIRECT; i++)
        n += f.bus->direct[i] != NULL;
    return n;
}

static int get_answer(sd_bus *bus, const char *path, const char *interface, const char *property, sd_bus_message *reply,
                      void *userdata, sd_bus_error *error)
{
    assert_ptr_equal(asym_bus_userdata(userdata), &f);
    return sd_bus_message_append(reply, "u", 42u);
}

static const sd_bus_vtable vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Answer", "u", get_answer, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_METHOD("Ask", "s", "s", asym_bus_on_method, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

static int run_ask(void *userdata, sd_bus_message *m, const struct asym_bus_caller *caller, sd_bus_error *error)
{
    const char *text;
    assert_ptr_equal(userdata, &f);
    f.n_ran++;
    f.caller = *caller;
    if (f.fails)
        return sd_bus_error_set(error, ASYM_BUS_ERROR_NOT_POSSIBLE, "no");
    assert_true(sd_bus_message_read(m, "s", &text) > 0);
    return sd_bus_reply_method_return(m, "s", text);
}

static const struct asym_bus_method methods[] = {
    {"Ask", true, run_ask},
    {NULL, false, NULL},
};

static void say(void *userdata, enum asym_bus_topic topic, int priority, const char *text)
{
    snprintf(f.said, sizeof f.said, "%s", text);
}

static int set_up(void **state)
{
    f = (struct fixture){.dir = "/tmp/asym-bus-XXXXXX"};
    assert_non_null(mkdtemp(f.dir));
    assert_true(sd_event_new(&f.event) >= 0);
    const struct asym_bus_config config = {
        .event = f.event,
        .dir = f.dir,
        .no_system_bus = true,
        .vtable = vtable,
        .methods = methods,
        .userdata = &f,
        .say = say,
    };
    assert_int_equal(asym_bus_open(&config, &f.bus, NULL), 0);
    return 0;
}

static int tear_down(void **state)
{
    char path[96];
    asym_bus_close(f.bus);
    sd_event_unref(f.event);
    snprintf(path, sizeof path, "%s/bus", f.dir);
    assert_int_equal(access(path, F_OK), -1);
    return rmdir(f.dir);
}

/* Lets the server do what it can do now. */
static void turn(void)
{
    while (sd_event_run(f.event, 0) > 0)
        ;
}

static int connect_socket(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/bus", f.dir);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static sd_bus *start_client(void)
{
    sd_bus *client = NULL;
    const int fd = connect_socket();
    assert_true(sd_bus_new(&client) >= 0);
    assert_true(sd_bus_set_fd(client, fd, fd) >= 0);
    assert_true(sd_bus_start(client) >= 0);
    return client;
}

/* Lets the client and the server work until the answer is there. Returns 0; -errno of the answer. */
static int call(sd_bus *client, const char *member, const char *text, sd_bus_message **ret)
{
    sd_bus_message *m = NULL, *reply = NULL;
    uint64_t cookie, answered;
    assert_true(sd_bus_message_new_method_call(client, &m, NULL, ASYM_BUS_PATH, ASYM_BUS_INTERFACE, member) >= 0);
    if (text)
        assert_true(sd_bus_message_append(m, "s", text) >= 0);
    assert_true(sd_bus_send(client, m, &cookie) >= 0);
    sd_bus_message_unref(m);
    for (unsigned i = 0; i < 10000; i++) {
        turn();
        const int r = sd_bus_process(client, &reply);
        if (r < 0)
            return r;
        if (reply && sd_bus_message_get_reply_cookie(reply, &answered) >= 0 && answered == cookie) {
            const sd_bus_error *error = sd_bus_message_get_error(reply);
            const int code = error ? -sd_bus_message_get_errno(reply) : 0;
            if (ret)
                *ret = reply;
            else
                sd_bus_message_unref(reply);
            return code;
        }
        reply = sd_bus_message_unref(reply);
    }
    return -ETIMEDOUT;
}

TEST_WITH(the_socket_is_for_its_owner_alone, set_up, tear_down)
{
    char path[96];
    struct stat s;
    snprintf(path, sizeof path, "%s/bus", f.dir);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 07777, 0600);
    assert_int_equal(s.st_uid, geteuid());
}

TEST_WITH(a_method_knows_its_caller_and_answers, set_up, tear_down)
{
    ASYM_CLEANUP(sd_bus_close_unrefp) sd_bus *client = start_client();
    ASYM_CLEANUP(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    const char *text;
    assert_int_equal(call(client, "Ask", "how", &reply), 0);
    assert_true(sd_bus_message_read(reply, "s", &text) > 0);
    assert_string_equal(text, "how");
    assert_int_equal(f.caller.uid, geteuid());
    assert_true(f.caller.is_root);
}

TEST_WITH(an_error_of_a_method_reaches_the_client, set_up, tear_down)
{
    ASYM_CLEANUP(sd_bus_close_unrefp) sd_bus *client = start_client();
    sd_bus_message *reply = NULL;
    f.fails = 1;
    assert_true(call(client, "Ask", "how", &reply) < 0);
    assert_string_equal(sd_bus_message_get_error(reply)->name, ASYM_BUS_ERROR_NOT_POSSIBLE);
    sd_bus_message_unref(reply);
    assert_true(call(client, "Nothing", NULL, &reply) < 0);
    assert_string_equal(sd_bus_message_get_error(reply)->name, SD_BUS_ERROR_UNKNOWN_METHOD);
    sd_bus_message_unref(reply);
}

/* Sends a call, and returns the number of events that the server handles for it. */
static unsigned count_events_of_call(sd_bus *client)
{
    sd_bus_message *m = NULL;
    unsigned n = 0;
    assert_true(sd_bus_message_new_method_call(client, &m, NULL, ASYM_BUS_PATH, ASYM_BUS_INTERFACE, "Ask") >= 0);
    assert_true(sd_bus_message_append(m, "s", "x") >= 0);
    assert_true(sd_bus_send(client, m, &(uint64_t){0}) >= 0);
    sd_bus_message_unref(m);
    while (sd_event_run(f.event, 0) > 0)
        n++;
    return n;
}

/* A turn of the event loop without a message costs as much as a quarter of one with a message. */
TEST_WITH(a_call_costs_one_event, set_up, tear_down)
{
    ASYM_CLEANUP(sd_bus_close_unrefp) sd_bus *client = start_client();
    assert_int_equal(call(client, "Ask", "x", NULL), 0);
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(count_events_of_call(client), 1);
        assert_int_equal(f.n_ran, 1 + i);
    }
}

/* A client may send its first calls together with the end of the handshake. asymd reads all of it at once. */
TEST_WITH(calls_behind_the_handshake_are_answered, set_up, tear_down)
{
    static const char call[] = "l\1\0\1\6\0\0\0\1\0\0\0\x57\0\0\0"
                               "\1\1o\0\x12\0\0\0/org/asymd/Manager\0\0\0\0\0\0"
                               "\2\1s\0\x11\0\0\0org.asymd.Manager\0\0\0\0\0\0\0"
                               "\3\1s\0\3\0\0\0Ask\0\0\0\0\0"
                               "\x8\1g\0\1s\0\0"
                               "\1\0\0\0x\0";
    char bytes[1024] = "", uid[16];
    const int fd = connect_socket();
    snprintf(uid, sizeof uid, "%u", (unsigned)geteuid());
    size_t n = 1 + (size_t)snprintf(bytes + 1, sizeof bytes - 1, "AUTH EXTERNAL ");
    for (const char *c = uid; *c; c++)
        n += (size_t)snprintf(bytes + n, sizeof bytes - n, "%02x", *c);
    n += (size_t)snprintf(bytes + n, sizeof bytes - n, "\r\nBEGIN\r\n");
    for (unsigned i = 0; i < 2; i++, n += sizeof call - 1)
        memcpy(bytes + n, call, sizeof call - 1);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    turn();
    assert_int_equal(f.n_ran, 2);
    close(fd);
    turn();
}

TEST_WITH(a_client_that_never_reads_its_answers_loses_its_connection, set_up, tear_down)
{
    ASYM_CLEANUP(sd_bus_close_unrefp) sd_bus *client = start_client(), *other = start_client();
    struct asym_bus_totals totals = {0};
    uint64_t cookie; /* without one sd-bus asks for no answer */
    static char text[64 * 1024];
    assert_int_equal(call(client, "Ask", "x", NULL), 0);
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    for (unsigned i = 0; i < 4096 && totals.lost == 0; i++) {
        sd_bus_message *m = NULL;
        assert_true(sd_bus_message_new_method_call(client, &m, NULL, ASYM_BUS_PATH, ASYM_BUS_INTERFACE, "Ask") >= 0);
        assert_true(sd_bus_message_append(m, "s", text) >= 0);
        sd_bus_send(client, m, &cookie);
        sd_bus_message_unref(m);
        turn();
        asym_bus_totals(f.bus, &totals);
    }

    assert_int_equal(totals.lost, 1);
    assert_int_equal(call(other, "Ask", "x", NULL), 0);
}

TEST_WITH(connections_are_bounded, set_up, tear_down)
{
    sd_bus *clients[ASYM_BUS_MAX_DIRECT + 1];
    for (size_t i = 0; i < ASYM_LENGTH(clients); i++) {
        clients[i] = start_client();
        const int r = call(clients[i], "Ask", "x", NULL);
        assert_int_equal(r < 0, i == ASYM_BUS_MAX_DIRECT);
    }
    sd_bus_close_unref(clients[0]);
    turn();
    clients[0] = start_client();
    assert_int_equal(call(clients[0], "Ask", "x", NULL), 0);
    assert_int_equal(count_direct(), ASYM_BUS_MAX_DIRECT);
    for (size_t i = 0; i < ASYM_LENGTH(clients); i++)
        sd_bus_close_unref(clients[i]);
}

/* A direct connection has no match rules: a client that only asks would get signals that it never reads. */
TEST_WITH(a_direct_client_gets_no_signal, set_up, tear_down)
{
    ASYM_CLEANUP(sd_bus_close_unrefp) sd_bus *client = start_client();
    sd_bus_message *m = NULL;
    assert_int_equal(call(client, "Ask", "x", NULL), 0);
    asym_bus_emit_changed(f.bus, (char *[]){"Answer", NULL});
    for (unsigned i = 0; i < 10; i++) {
        turn();
        assert_true(sd_bus_process(client, &m) >= 0);
        assert_null(m);
    }
}

/* A descriptor is refused with the connection, whether the client has asked for the right to pass some or not. */
TEST_WITH(a_descriptor_ends_the_connection, set_up, tear_down)
{
    char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
    struct iovec iov = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    const int fd = connect_socket(), passed = open("/dev/null", O_RDONLY | O_CLOEXEC);
    *header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(header), &passed, sizeof passed);
    turn();
    const ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL);
    assert_true(n == 1 || errno == EPERM);
    turn();
    assert_int_equal(count_direct(), n == 1 ? 0 : 1);
    close(passed);
    close(fd);
    turn();
}

TEST_WITH(a_client_that_asks_to_pass_descriptors_is_told_no, set_up, tear_down)
{
    ASYM_CLEANUP(sd_bus_close_unrefp) sd_bus *client = NULL;
    const int fd = connect_socket();
    assert_true(sd_bus_new(&client) >= 0);
    assert_true(sd_bus_set_fd(client, fd, fd) >= 0);
    assert_true(sd_bus_negotiate_fds(client, true) >= 0);
    assert_true(sd_bus_start(client) >= 0);
    assert_int_equal(call(client, "Ask", "x", NULL), 0);
    assert_true(sd_bus_can_send(client, SD_BUS_TYPE_UNIX_FD) <= 0);
}

TEST_WITH(garbage_ends_the_connection_only, set_up, tear_down)
{
    ASYM_CLEANUP(sd_bus_close_unrefp) sd_bus *client = start_client();
    char garbage[128] = "", uid[16];
    const int fd = connect_socket();
    snprintf(uid, sizeof uid, "%u", (unsigned)geteuid());
    size_t n = 1 + (size_t)snprintf(garbage + 1, sizeof garbage - 1, "AUTH EXTERNAL ");
    for (const char *c = uid; *c; c++)
        n += (size_t)snprintf(garbage + n, sizeof garbage - n, "%02x", *c);
    n += (size_t)snprintf(garbage + n, sizeof garbage - n, "\r\nBEGIN\r\n");
    memset(garbage + n, 0xff, sizeof garbage - n);
    turn();
    assert_int_equal(write(fd, garbage, sizeof garbage), sizeof garbage);
    turn();
    assert_int_equal(call(client, "Ask", "x", NULL), 0);
    assert_int_equal(count_direct(), 1);
    close(fd);
}

/* The client waits in the backlog, where its socket stays readable: asymd would wake for it again and again. */
TEST_WITH(without_descriptors_a_client_waits_for_the_housekeeping, set_up, tear_down)
{
    ASYM_CLEANUP(sd_bus_close_unrefp) sd_bus *client = start_client();
    const rlim_t before = limit_descriptors(0);
    const int first = sd_event_run(f.event, 0), second = sd_event_run(f.event, 0);
    limit_descriptors(before);
    assert_true(first > 0);
    assert_int_equal(second, 0);
    asym_bus_housekeeping(f.bus, asym_clock_now());
    assert_int_equal(call(client, "Ask", "x", NULL), 0);
}

/* Each allocation of a connection fails in turn, until none does: the client is lost, and asymd serves the next one. */
TEST_WITH(a_failed_allocation_ends_a_connection_at_most, set_up, tear_down)
{
    size_t k = 0;
    count_begin();
    const int free_before = dup(STDERR_FILENO);
    close(free_before);
    for (bool failed = true; failed; k++) {
        const int fd = connect_socket();
        count_fails_at = count_allocations + 1 + k;
        turn();
        failed = count_allocations >= count_fails_at;
        count_fails_at = 0;
        close(fd);
        turn();
    }
    assert_true(k > 20);
    const int free_after = dup(STDERR_FILENO);
    close(free_after);
    assert_int_equal(free_after, free_before);
    ASYM_CLEANUP(sd_bus_close_unrefp) sd_bus *client = start_client();
    assert_int_equal(call(client, "Ask", "x", NULL), 0);
}

TEST_MAIN
