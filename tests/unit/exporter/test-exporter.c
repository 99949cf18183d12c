/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The exporter: its text, its socket and its answers over HTTP, against a service with fixed answers. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "daemon/exporter/exporter-http.h"
#include "support/fake-service.h"
#include "support/process.h"
#include "support/test.h"

static bool has_no_name;
static int name_error;
static uid_t own_user;

uid_t __wrap_getuid(void);
uid_t __wrap_getuid(void)
{
    return own_user;
}

struct passwd *__real_getpwuid(uid_t uid);
struct passwd *__wrap_getpwuid(uid_t uid);

struct passwd *__wrap_getpwuid(uid_t uid)
{
    errno = has_no_name ? name_error : errno;
    (void)uid;
    return has_no_name ? NULL : __real_getpwuid(0);
}

/* The text is too old, as after a second. The new one counts for a second from its arrival. */
static void read_anew(struct asym_exporter_text *t)
{
    const asym_usec before = asym_clock_now();
    t->expiry = 0;
    assert_int_equal(asym_exporter_text_read(t), 0);
    assert_in_range(t->expiry, before + ASYM_EXPORTER_FRESH, asym_clock_now() + ASYM_EXPORTER_FRESH);
}

TEST(a_text_is_openmetrics_and_counts_for_a_second)
{
    struct asym_exporter_text t = {.client = NULL};
    fake_service_start(FAKE_SERVICE_PLAIN);
    assert_int_equal(asym_exporter_text_read(&t), 0);
    assert_true(t.good);
    assert_non_null(strstr(t.text, "\nasymd_changes_total 1204\n"));
    assert_non_null(strstr(t.text, "\n# EOF\n"));
    assert_null(strstr(t.text, "bad name"));
    fake_service_stop();
    /* It does not ask again while the text is fresh. */
    const char *before = t.text;
    t.expiry = UINT64_MAX;
    assert_int_equal(asym_exporter_text_read(&t), 0);
    assert_ptr_equal(t.text, before);
    assert_true(t.good);
    asym_exporter_text_done(&t);
}

/* Without asymd: the bus daemon closes the connection of such a user in the same way. */
TEST(a_user_that_the_bus_does_not_know_is_told_the_remedy)
{
    struct asym_exporter_text t = {.client = NULL};
    assert_int_equal(asym_exporter_text_read(&t), 0);
    assert_false(t.good);
    assert_null(strstr(t.text, "systemd-sysusers"));
    has_no_name = true;
    read_anew(&t);
    assert_false(t.good);
    assert_non_null(strstr(t.text, "does not know user 0, "));
    assert_non_null(
        strstr(t.text, "&& systemd-sysusers asymd-exporter.conf && systemctl start asymd-exporter.socket\n"));
    /* A name service that fails does not show that the user has no name. */
    name_error = EIO;
    read_anew(&t);
    assert_null(strstr(t.text, "systemd-sysusers"));
    /* The exporter sees the name of a user of DynamicUser=, the bus daemon does not. */
    has_no_name = false;
    static const struct {
        uid_t user;
        bool is_told;
    } rows[] = {{61183, false}, {61184, true}, {65519, true}, {65520, false}, {0, false}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        own_user = rows[i].user;
        has_no_name = false;
        read_anew(&t);
        assert_int_equal(strstr(t.text, "systemd-sysusers") != NULL, rows[i].is_told);
    }
    asym_exporter_text_done(&t);
}

TEST(the_text_follows_asymd_over_its_end_and_its_restart)
{
    struct asym_exporter_text t = {.client = NULL};
    fake_service_start(FAKE_SERVICE_PLAIN);
    read_anew(&t);
    assert_true(t.good);
    fake_service_stop();
    setenv("ASYMD_BUS", "/nonexistent/bus", 1);
    read_anew(&t);
    assert_false(t.good);
    assert_non_null(strstr(t.text, "asymd is not running"));
    assert_null(t.client);
    fake_service_start(FAKE_SERVICE_PLAIN);
    read_anew(&t);
    assert_true(t.good);
    fake_service_stop();
    /* A restart between two scrapes: the old connection fails, and a new one answers. */
    fake_service_start(FAKE_SERVICE_PLAIN);
    assert_non_null(t.client);
    read_anew(&t);
    assert_true(t.good);
    fake_service_stop();
    asym_exporter_text_done(&t);
}

TEST(an_address_is_an_ip_and_a_port)
{
    static const char *const bad[] = {"",
                                      ":1",
                                      "127.0.0.1",
                                      "127.0.0.1:",
                                      "127.0.0.1:65536",
                                      "localhost:1",
                                      "127.0.0.1:1x",
                                      "127.0.0.1:000001",
                                      "[::1:1",
                                      "[::1]1",
                                      "::1:1",
                                      "[127.0.0.1]:1",
                                      "1.2.3:4",
                                      "127.0.0.1:-1"};
    struct asym_error err = {""};
    char address[80];
    for (size_t i = 0; i < ASYM_LENGTH(bad); i++)
        if (asym_exporter_listen(bad[i], &err) != -EINVAL || !strstr(err.text, ASYM_EXPORTER_ADDRESS))
            fail_msg("'%s': %s", bad[i], err.text);
    const int fd = asym_exporter_listen("127.0.0.1:0", &err);
    assert_true(fd >= 0);
    asym_exporter_address(fd, address, sizeof address);
    assert_int_equal(strncmp(address, "127.0.0.1:", 10), 0);
    assert_true(atoi(address + 10) > 0);
    assert_int_equal(asym_exporter_listen(address, &err), -EADDRINUSE);
    assert_non_null(strstr(err.text, address));
    assert_string_equal(asym_exporter_address(STDIN_FILENO, address, sizeof address), "an unknown address");
    close(fd);
}

/* Returns what the exporter makes of this socket as the one that systemd has handed over. fd: -1: not a number of sockets. */
static int take(int fd)
{
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", fd < 0 ? "many" : "1", 1);
    if (fd >= 0 && dup2(fd, 3) < 0)
        return -errno;
    return asym_exporter_take_socket(NULL);
}

/* A child takes the socket, because descriptor 3 may be one of the test's own. */
static int take_in_child(int fd)
{
    int status;
    const pid_t child = asym_process_fork();
    assert_true(child >= 0);
    if (child == 0) {
        const int r = take(fd);
        _exit(r < 0 ? -r : 100 + r);
    }
    assert_int_equal(asym_process_wait(child, 60, &status), 0);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(only_one_tcp_socket_of_systemd_is_taken)
{
    struct asym_error err = {""};
    unsetenv("LISTEN_FDS");
    assert_int_equal(asym_exporter_take_socket(&err), -ENOENT);
    assert_string_equal(err.text, "");
    const int local = socket(AF_UNIX, SOCK_STREAM, 0), deaf = socket(AF_INET, SOCK_STREAM, 0),
              good = asym_exporter_listen("127.0.0.1:0", NULL);
    assert_int_equal(take_in_child(-1), EINVAL);
    assert_int_equal(take_in_child(local), EINVAL);
    assert_int_equal(take_in_child(deaf), EINVAL);
    assert_int_equal(take_in_child(good), 103);
    close(local);
    close(deaf);
    close(good);
}

static int listen_port(in_port_t *ret_port)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    const int fd = asym_exporter_listen("127.0.0.1:0", NULL);
    assert_true(fd >= 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *ret_port = address.sin_port;
    return fd;
}

static int connect_port(in_port_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = port, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* The answer to a request, up to the end of the connection. */
static const char *ask(in_port_t port, const char *request)
{
    static char text[16384];
    char head[256];
    size_t n = 0;
    const int fd = connect_port(port);
    snprintf(head, sizeof head,
             "%s HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\nConnection: close\r\nContent-Length: "
             "0\r\n\r\n",
             request);
    assert_int_equal(send(fd, head, strlen(head), MSG_NOSIGNAL), strlen(head));
    for (ssize_t got = 1; got > 0 && n < sizeof text - 1; n += (size_t)got) {
        got = recv(fd, text + n, sizeof text - 1 - n, 0);
        assert_true(got >= 0);
    }
    text[n] = '\0';
    close(fd);
    return text;
}

static void expect(in_port_t port, const char *request, const char *status, const char *part)
{
    char line[32];
    const char *text = ask(port, request);
    snprintf(line, sizeof line, "HTTP/1.1 %s ", status);
    if (strncmp(text, line, strlen(line)) != 0 || !strstr(text, part))
        fail_msg("%s: no %s with '%s' in:\n%s", request, status, part, text);
}

TEST(metrics_are_at_one_path_and_can_only_be_read)
{
    struct asym_exporter_http *http = NULL;
    in_port_t port;
    fake_service_start(FAKE_SERVICE_PLAIN);
    const int fd = listen_port(&port);
    assert_int_equal(asym_exporter_http_start(fd, &http), 0);
    expect(port, "GET /metrics", "200", "application/openmetrics-text");
    expect(port, "GET /metrics", "200", "\nasymd_changes_total 1204\n");
    expect(port, "GET /metrics?x=1", "200", "# EOF");
    expect(port, "GET /", "404", "/metrics");
    expect(port, "GET /metrics/", "404", "/metrics");
    expect(port, "POST /metrics", "405", "Allow: GET, HEAD");
    expect(port, "HEAD /metrics", "200", "application/openmetrics-text");
    assert_null(strstr(ask(port, "HEAD /metrics"), "asymd_changes_total"));
    asym_exporter_http_stop(http);
    fake_service_stop();
}

TEST(without_asymd_the_answer_is_a_sentence_and_no_metrics)
{
    struct asym_exporter_http *http = NULL;
    in_port_t port;
    setenv("ASYMD_BUS", "/nonexistent/bus", 1);
    const int fd = listen_port(&port);
    assert_int_equal(asym_exporter_http_start(fd, &http), 0);
    expect(port, "GET /metrics", "503", "asymd is not running");
    assert_null(strstr(ask(port, "GET /metrics"), "openmetrics"));
    asym_exporter_http_stop(http);
    unsetenv("ASYMD_BUS");
}

/* systemd keeps the socket, and starts the exporter with it again. */
TEST(the_socket_outlives_the_server)
{
    struct asym_exporter_http *http = NULL;
    in_port_t port;
    setenv("ASYMD_BUS", "/nonexistent/bus", 1);
    const int fd = listen_port(&port), kept = dup(fd);
    for (int i = 0; i < 2; i++) {
        const int own = dup(kept);
        assert_int_equal(asym_exporter_http_start(own, &http), 0);
        expect(port, "GET /", "404", "/metrics");
        asym_exporter_http_stop(http);
    }
    close(fd);
    close(kept);
    unsetenv("ASYMD_BUS");
}

/* Clients that stay connected do not keep others out: the server ends the oldest connection. */
TEST(the_oldest_connection_ends_for_a_new_one)
{
    struct asym_exporter_http *http = NULL;
    int idle[60];
    char byte;
    in_port_t port;
    setenv("ASYMD_BUS", "/nonexistent/bus", 1);
    const int fd = listen_port(&port);
    assert_int_equal(asym_exporter_http_start(fd, &http), 0);
    for (size_t i = 0; i < ASYM_LENGTH(idle); i++)
        idle[i] = connect_port(port);
    expect(port, "GET /", "404", "/metrics");
    assert_int_equal(recv(idle[0], &byte, 1, 0), 0);
    assert_int_equal(recv(idle[59], &byte, 1, MSG_DONTWAIT), -1);
    for (size_t i = 0; i < ASYM_LENGTH(idle); i++)
        close(idle[i]);
    asym_exporter_http_stop(http);
    unsetenv("ASYMD_BUS");
}

/* Only clients that accept OpenMetrics get it, so the help does not name it. */
TEST(the_help_fits_80_columns)
{
    char text[4096];
    FILE *pipe = popen("env -u COLUMNS '" ASYM_TEST_BIN "/daemon/asymd-exporter' --help", "r");
    assert_non_null(pipe);
    text[fread(text, 1, sizeof text - 1, pipe)] = '\0';
    assert_int_equal(pclose(pipe), 0);
    assert_non_null(strstr(text, "usage: asymd-exporter "));
    assert_null(strstr(text, "OpenMetrics"));
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_in_range(strcspn(line, "\n"), 0, 80);
}

TEST_MAIN
