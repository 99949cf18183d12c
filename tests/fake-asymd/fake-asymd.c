/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fake-asymd SOCKET CPUS APPLICATIONS [DELAY]: the bus object of an asymd that steers nothing, on a socket without a bus daemon.
 * Prints a line for each call. The values are the same in each answer. Counters answers after DELAY milliseconds.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "report/openmetrics.h"

#define INTERFACE "org.asymd.Manager"
#define OBJECT    "/org/asymd/Manager"

/* Orders for this process need a password. */
#define DENIED 1001

static unsigned n_cpus, n_apps, delay;
static int paused;

static void check(int r, const char *what)
{
    if (r >= 0)
        return;
    fprintf(stderr, "fake-asymd: %s: %s\n", what, strerror(-r));
    exit(1);
}

static void say(const char *call)
{
    printf("%s\n", call);
    fflush(stdout);
}

static void field(sd_bus_message *m, const char *key, const char *type, const char *text, double number)
{
    check(sd_bus_message_open_container(m, 'e', "sv"), "entry");
    check(sd_bus_message_append(m, "s", key), key);
    if (*type == 's')
        check(sd_bus_message_append(m, "v", "s", text), key);
    else if (*type == 'd')
        check(sd_bus_message_append(m, "v", "d", number), key);
    else if (*type == 'b')
        check(sd_bus_message_append(m, "v", "b", (int)number), key);
    else
        check(sd_bus_message_append(m, "v", "u", (uint32_t)number), key);
    check(sd_bus_message_close_container(m), "entry");
}

static void append_cpu(sd_bus_message *m, unsigned cpu)
{
    const int fast = cpu < (n_cpus + 1) / 2;
    check(sd_bus_message_open_container(m, 'a', "{sv}"), "cpu");
    field(m, "cpu", "u", NULL, cpu);
    field(m, "type", "u", NULL, !fast);
    field(m, "type_name", "s", fast ? "big" : "little", 0);
    field(m, "speed", "d", NULL, fast ? 2 : 1);
    field(m, "fast", "b", NULL, fast);
    field(m, "busy", "d", NULL, cpu % 4 / 3.0);
    field(m, "threads", "u", NULL, fast);
    field(m, "tid", "u", NULL, 1000 + cpu);
    field(m, "comm", "s", "stockfish", 0);
    check(sd_bus_message_close_container(m), "cpu");
}

static void append_app(sd_bus_message *m, unsigned i)
{
    static const char *const names[] = {"stockfish", "gzip\033[2J", "make", "漢字圧縮"};
    static const char *const classes[] = {"HP", "", "SP", "MP"};
    static const char *const class_names[] = {"highly parallel", "serial", "serial phase", "mildly parallel"};
    check(sd_bus_message_open_container(m, 'a', "{sv}"), "application");
    field(m, "pid", "u", NULL, 1000 + i);
    field(m, "processes", "u", NULL, i % 4 == 2 ? 9 : 1);
    field(m, "cgroup", "s", "/user.slice/user-1000.slice/session-1.scope", 0);
    field(m, "comm", "s", names[i % 4], 0);
    field(m, "uid", "u", NULL, 1000);
    field(m, "phase", "s", i % 4 == 1 ? "serial" : "parallel", 0);
    field(m, "class", "s", classes[i % 4], 0);
    field(m, "class_name", "s", class_names[i % 4], 0);
    field(m, "runnable", "d", NULL, i % 8);
    field(m, "running", "d", NULL, i % 8 / 2.0);
    field(m, "threads", "u", NULL, i % 8 + 1);
    field(m, "steered", "u", NULL, i % 8);
    field(m, "fast_share", "d", NULL, i % 4 / 4.0);
    field(m, "moves_per_minute", "u", NULL, i % 16);
    field(m, "reason", "s", "few threads: a fast CPU each", 0);
    check(sd_bus_message_close_container(m), "application");
}

static int answer_list(sd_bus_message *call, unsigned n, void (*append)(sd_bus_message *m, unsigned i))
{
    sd_bus_message *m = NULL;
    say(sd_bus_message_get_member(call));
    check(sd_bus_message_new_method_return(call, &m), "answer");
    check(sd_bus_message_open_container(m, 'a', "a{sv}"), "list");
    for (unsigned i = 0; i < n; i++)
        append(m, i);
    check(sd_bus_message_close_container(m), "list");
    check(sd_bus_send(NULL, m, NULL), "send");
    sd_bus_message_unref(m);
    return 1;
}

static int list_cpus(sd_bus_message *call, void *ctx, sd_bus_error *error)
{
    (void)ctx, (void)error;
    return answer_list(call, n_cpus, append_cpu);
}

static int list_applications(sd_bus_message *call, void *ctx, sd_bus_error *error)
{
    (void)ctx, (void)error;
    return answer_list(call, n_apps, append_app);
}

static int explain(sd_bus_message *call, void *ctx, sd_bus_error *error)
{
    uint32_t id = 0;
    char text[80];
    (void)ctx;
    check(sd_bus_message_read(call, "u", &id), "id");
    snprintf(text, sizeof text, "Explain %u", id);
    say(text);
    if (id == 1000)
        return sd_bus_error_set(error, "org.asymd.Error.NoSuchProcess", "asymd does not know process 1000");
    snprintf(text, sizeof text, "gzip (%u) has one runnable thread.", id);
    return sd_bus_reply_method_return(call, "asa(ss)", 1, text, 1, "rule", "none");
}

static int pause_or_resume(sd_bus_message *call, void *ctx, sd_bus_error *error)
{
    (void)ctx, (void)error;
    say(sd_bus_message_get_member(call));
    paused = strcmp(sd_bus_message_get_member(call), "Pause") == 0;
    return sd_bus_reply_method_return(call, NULL);
}

static int order(sd_bus_message *call, void *ctx, sd_bus_error *error)
{
    const char *member = sd_bus_message_get_member(call), *word = "";
    uint32_t pid = 0;
    char text[128];
    int flag;
    (void)ctx, (void)error;
    if (strcmp(member, "SetProgram") == 0)
        check(sd_bus_message_read(call, "us", &pid, &word), "order");
    else if (strcmp(member, "SetPolicy") == 0)
        check(sd_bus_message_read(call, "sb", &word, &flag), "order");
    else
        check(sd_bus_message_read(call, "u", &pid), "order");
    snprintf(text, sizeof text, "%s %u%s%s", member, pid, *word ? " " : "", word);
    say(text);
    if (pid == DENIED)
        return sd_bus_reply_method_errorf(call, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, "polkit asks");
    return sd_bus_reply_method_return(call, NULL);
}

/* Samples that are no OpenMetrics, and one that this version of the exporter does not know. */
static const char *const strange[] = {"a name", "name{label}", "name{label=\"a\nb\"}", "", "0name", "unknown_things"};

/* A sample for each family that the exporter knows, with labels for some. */
static int counters(sd_bus_message *call, void *ctx, sd_bus_error *error)
{
    sd_bus_message *m = NULL;
    const struct asym_metric_row *row;
    (void)ctx, (void)error;
    say("Counters");
    usleep(delay * 1000);
    check(sd_bus_message_new_method_return(call, &m), "answer");
    check(sd_bus_message_open_container(m, 'a', "(sstd)"), "list");
    for (size_t i = 0; (row = asym_metric_row_at(i)); i++) {
        char name[128];
        snprintf(name, sizeof name, "%s%s%s", row->name, strcmp(row->kind, "counter") == 0 ? "_total" : "",
                 i % 4 == 3 ? "{kind=\"a\\\\b\",result=\"done\"}" : "");
        check(sd_bus_message_append(m, "(sstd)", name, row->kind, (uint64_t)412, 1.5), name);
    }
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++)
        check(sd_bus_message_append(m, "(sstd)", strange[i], "gauge", (uint64_t)0, 1e300 * 1e300), strange[i]);
    check(sd_bus_message_close_container(m), "list");
    check(sd_bus_send(NULL, m, NULL), "send");
    sd_bus_message_unref(m);
    return 1;
}

static const struct {
    const char *name, *type, *text;
    double number;
} values[] = {
    {"Version", "s", "0.1.0", 0},      {"Policy", "s", "pa", 0},
    {"FastCPUs", "s", "0", 0},         {"SlowCPUs", "s", "1", 0},
    {"Observer", "s", "schedstat", 0}, {"PolicyReason", "s", "set by the configuration", 0},
    {"Profile", "s", "", 0},           {"ThreadsSteered", "u", "", 14},
    {"Changes", "t", "", 412},         {"ChangesLastMinute", "u", "", 32},
    {"Interval", "t", "", 100000},     {"CPUUsage", "d", "", 0.004},
    {"Memory", "t", "", 5 << 20},      {"PausedUntil", "t", "", 0},
    {"StartTimestamp", "t", "", 1e15}, {"Orders", "u", "", 0},
};

static int get(sd_bus *bus, const char *path, const char *interface, const char *property, sd_bus_message *reply,
               void *ctx, sd_bus_error *error)
{
    (void)bus, (void)path, (void)interface, (void)ctx, (void)error;
    if (strcmp(property, "Paused") == 0)
        return sd_bus_message_append(reply, "b", paused);
    if (strcmp(property, "Lacks") == 0)
        return sd_bus_message_append(reply, "as", 0);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (strcmp(values[i].name, property) != 0)
            continue;
        switch (*values[i].type) {
        case 's':
            return sd_bus_message_append(reply, "s", values[i].text);
        case 'd':
            return sd_bus_message_append(reply, "d", values[i].number);
        case 't':
            return sd_bus_message_append(reply, "t", (uint64_t)values[i].number);
        default:
            return sd_bus_message_append(reply, "u", (uint32_t)values[i].number);
        }
    }
    return -ENOENT;
}

static const sd_bus_vtable vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Version", "s", get, 0, 0),
    SD_BUS_PROPERTY("StartTimestamp", "t", get, 0, 0),
    SD_BUS_PROPERTY("Policy", "s", get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("PolicyReason", "s", get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("FastCPUs", "s", get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("SlowCPUs", "s", get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("ThreadsSteered", "u", get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Changes", "t", get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("ChangesLastMinute", "u", get, 0, 0),
    SD_BUS_PROPERTY("Interval", "t", get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("CPUUsage", "d", get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Memory", "t", get, 0, 0),
    SD_BUS_PROPERTY("Paused", "b", get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("PausedUntil", "t", get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Orders", "u", get, 0, 0),
    SD_BUS_PROPERTY("Observer", "s", get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Profile", "s", get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Lacks", "as", get, 0, 0),
    SD_BUS_METHOD("ListCPUs", NULL, "aa{sv}", list_cpus, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("ListApplications", NULL, "aa{sv}", list_applications, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Explain", "u", "asa(ss)", explain, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Pause", "t", NULL, pause_or_resume, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Resume", NULL, NULL, pause_or_resume, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Release", "u", NULL, order, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("SetProgram", "us", NULL, order, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("SetPolicy", "sb", NULL, order, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Counters", NULL, "a(sstd)", counters, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

static int accept_client(sd_event_source *source, int fd, uint32_t events, void *ctx)
{
    const int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    sd_bus *bus = NULL;
    sd_id128_t id;
    (void)events, (void)ctx;
    check(client < 0 ? -errno : 0, "accept");
    check(sd_bus_new(&bus), "bus");
    check(sd_bus_set_fd(bus, client, client), "bus");
    check(sd_id128_randomize(&id), "id");
    check(sd_bus_set_server(bus, 1, id), "server");
    check(sd_bus_add_object_vtable(bus, NULL, OBJECT, INTERFACE, vtable, NULL), "object");
    check(sd_bus_start(bus), "start");
    /* The event loop holds the bus until the program ends. */
    check(sd_bus_attach_event(bus, sd_event_source_get_event(source), 0), "attach");
    return 0;
}

int main(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    sd_event *event = NULL;
    if (argc < 4 || argc > 5 || strlen(argv[1]) >= sizeof address.sun_path) {
        fprintf(stderr, "usage: fake-asymd SOCKET CPUS APPLICATIONS [DELAY]\n");
        return 2;
    }
    n_cpus = (unsigned)atoi(argv[2]);
    n_apps = (unsigned)atoi(argv[3]);
    delay = argc > 4 ? (unsigned)atoi(argv[4]) : 0;
    memcpy(address.sun_path, argv[1], strlen(argv[1]) + 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(argv[1]);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 8) < 0)
        check(-errno, argv[1]);
    check(sd_event_default(&event), "event loop");
    check(sd_event_add_io(event, NULL, fd, EPOLLIN, accept_client, NULL), "event loop");
    say("ready");
    check(sd_event_loop(event), "event loop");
    return 0;
}
