/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fake-asymd SOCKET CPUS APPLICATIONS [DELAY]: the bus object of an asymd that steers nothing, on a socket without a bus daemon.
 * Prints a line for each call. The values are the same in each answer. The report on counters comes after DELAY milliseconds.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <jansson.h>
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

static json_t *cpu_json(unsigned cpu)
{
    const int fast = cpu < (n_cpus + 1) / 2;
    return json_pack("{s:i, s:i, s:s, s:f, s:b, s:f, s:i, s:i, s:s}", "cpu", (int)cpu, "type", !fast, "type_name",
                     fast ? "big" : "little", "speed", fast ? 2.0 : 1.0, "fast", fast, "busy", cpu % 4 / 3.0, "threads",
                     fast, "tid", (int)(1000 + cpu), "comm", "stockfish");
}

static json_t *app_json(unsigned i)
{
    static const char *const names[] = {"stockfish", "gzip\033[2J", "make", "漢字圧縮"};
    static const char *const classes[] = {"HP", "", "SP", "MP"};
    static const char *const class_names[] = {"highly parallel", "serial", "serial phase", "mildly parallel"};
    return json_pack("{s:i, s:i, s:s, s:s, s:i, s:s, s:s, s:s, s:f, s:f, s:i, s:i, s:f, s:i, s:s}", "pid",
                     (int)(1000 + i), "processes", i % 4 == 2 ? 9 : 1, "cgroup",
                     "/user.slice/user-1000.slice/session-1.scope", "comm", names[i % 4], "uid", 1000, "phase",
                     i % 4 == 1 ? "serial" : "parallel", "class", classes[i % 4], "class_name", class_names[i % 4],
                     "runnable", (double)(i % 8), "running", i % 8 / 2.0, "threads", (int)(i % 8 + 1), "steered",
                     (int)(i % 8), "fast_share", i % 4 / 4.0, "moves_per_minute", (int)(i % 16), "reason",
                     "few threads: a fast CPU each");
}

static json_t *status_json(void)
{
    json_t *cpus = json_array(), *apps = json_array();
    for (unsigned i = 0; i < n_cpus; i++)
        json_array_append_new(cpus, cpu_json(i));
    for (unsigned i = 0; i < n_apps; i++)
        json_array_append_new(apps, app_json(i));
    return json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:f, s:i, s:b, s:s, s:o, s:o}", "version",
                     "0.1.0", "start_us", (json_int_t)1000000000000000, "policy", "pa", "policy_reason",
                     "set by the configuration", "fast_cpus", "0", "slow_cpus", "1", "threads_steered", 14, "changes",
                     412, "changes_last_minute", 32, "interval_us", 100000, "cpu_usage", 0.004, "memory_bytes", 5 << 20,
                     "paused", paused, "observer", "schedstat", "cpus", cpus, "applications", apps);
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

/* A sample for each family that the exporter knows, with labels for some. */
static json_t *counters_json(void)
{
    const struct asym_metric_row *row;
    json_t *list = json_array();
    for (size_t i = 0; (row = asym_metric_row_at(i)); i++) {
        char name[128];
        snprintf(name, sizeof name, "%s%s%s", row->name, strcmp(row->kind, "counter") == 0 ? "_total" : "",
                 i % 4 == 3 ? "{kind=\"a\\\\b\",result=\"done\"}" : "");
        const int is_whole = strcmp(row->kind, "counter") == 0 && !strstr(row->name, "_seconds");
        json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", name, "kind", row->kind, "value",
                                              is_whole ? json_integer(412) : json_real(1.5)));
    }
    /* This version of the exporter does not know it. */
    json_array_append_new(list, json_pack("{s:s, s:s, s:n}", "name", "unknown_things", "kind", "gauge", "value"));
    return json_pack("{s:o}", "counters", list);
}

static json_t *why_json(int id)
{
    char text[80];
    snprintf(text, sizeof text, "gzip (%d) has one runnable thread.", id);
    return json_pack("{s:[{s:[s], s:[{s:s, s:s}]}]}", "explanations", "sentences", text, "evidence", "name", "rule",
                     "value", "none");
}

static int get_report(sd_bus_message *call, void *ctx, sd_bus_error *error)
{
    const char *topic;
    uint64_t argument;
    char said[80];
    (void)ctx;
    check(sd_bus_message_read(call, "st", &topic, &argument), "question");
    snprintf(said, sizeof said, argument > 0 ? "%s %u" : "%s", topic, (unsigned)argument);
    say(said);
    if (strcmp(topic, "why") == 0 && argument == 1000)
        return sd_bus_error_set(error, "org.asymd.Error.NoSuchProcess", "asymd does not know process 1000");
    if (strcmp(topic, "counters") == 0)
        usleep(delay * 1000);
    json_t *json = strcmp(topic, "why") == 0        ? why_json((int)argument)
                   : strcmp(topic, "counters") == 0 ? counters_json()
                                                    : status_json();
    json_object_set_new(json, "schema", json_string("asymd.fake/1"));
    char *text = json_dumps(json, JSON_COMPACT);
    check(text ? 0 : -ENOMEM, "report");
    const int r = sd_bus_reply_method_return(call, "s", text);
    free(text);
    json_decref(json);
    return r;
}

static const sd_bus_vtable vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("GetReport", "st", "s", get_report, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Pause", "t", NULL, pause_or_resume, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Resume", NULL, NULL, pause_or_resume, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("SetProgram", "us", NULL, order, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("SetPolicy", "sb", NULL, order, SD_BUS_VTABLE_UNPRIVILEGED),
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
