/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/fake-service.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <jansson.h>
#include <systemd/sd-bus.h>

#include "report/openmetrics.h"
#include "support/process.h"
#include "support/test.h"

/* Processes that asymd does not know, and for which orders need a password. */
#define UNKNOWN 1000
#define DENIED  1001

#define T0      1780000000000000u /* 2026-05-28 20:26:40 UTC, in microseconds */

static char dir[64];
static pid_t child;
static enum fake_service_kind kind;
static bool ended, paused;
static struct fake_machine machine = {.cpus = 8};

static json_t *app_json(uint32_t pid, const char *comm, const char *class, int steered, double share)
{
    const char *const name = strcmp(class, "HP") == 0   ? "highly parallel"
                             : strcmp(class, "MP") == 0 ? "serial"
                             : strcmp(class, "SP") == 0 ? "serial phase"
                                                        : "idle";
    return json_pack("{s:I, s:s, s:s, s:i, s:s, s:s, s:f, s:i, s:i, s:f, s:i, s:s, s:s, s:f}", "pid", (json_int_t)pid,
                     "cgroup", pid > 0 ? "" : "/build.slice", "comm", comm, "uid", 1000, "phase", "parallel", "class",
                     class, "runnable", (double)steered, "threads", steered + 1, "steered", steered, "fast_share",
                     share, "moves_per_minute", 3, "reason", "a reason", "class_name", name, "running",
                     (double)steered / 2);
}

static json_t *apps_json(void)
{
    static const char *const names[] = {"stockfish", "gzip\033[2J", "make", "漢字圧縮"};
    static const char *const classes[] = {"HP", "", "SP", "MP"};
    json_t *list = json_array();
    for (uint32_t i = 0; i < machine.apps; i++)
        json_array_append_new(list, app_json(1000 + i, names[i % 4], classes[i % 4], (int)(i % 8), i % 4 / 4.0));
    if (kind == FAKE_SERVICE_MACHINE)
        return list;
    if (kind == FAKE_SERVICE_HOSTILE)
        json_array_append_new(list, app_json(66, "\033[2J\r\nevil\\", "\033[H", 3, 1e300));
    for (uint32_t i = 0; kind == FAKE_SERVICE_HOSTILE && i < 1000; i++)
        json_array_append_new(list, app_json(100 + i, "same-name", "HP", 2, 0));
    json_array_append_new(list, app_json(4711, "stockfish", "HP", 8, 0.43));
    json_array_append_new(list, app_json(4712, "gzip", "MP", 1, 1));
    json_array_append_new(list, app_json(4713, "idler", "", 0, 0));
    return list;
}

static json_t *cpus_json(void)
{
    json_t *list = json_array();
    const bool is_smt = kind != FAKE_SERVICE_MACHINE;
    for (int i = 0; i < (int)machine.cpus; i++) {
        const int fast = i < (int)(machine.cpus + 1) / 2;
        json_array_append_new(list,
                              json_pack("{s:i, s:i, s:i, s:s, s:f, s:b, s:f, s:i, s:i, s:s}", "cpu", i, "type", !fast,
                                        "smt_rank", fast && is_smt ? i % 2 : 0, "type_name", fast ? "P-core" : "E-core",
                                        "speed", fast ? 2.0 : 1.0, "fast", fast, "busy", fast ? 0.525 : 0.1, "threads",
                                        1, "tid", 4711, "comm", "stockfish"));
    }
    return list;
}

static json_t *status_json(void)
{
    if (kind == FAKE_SERVICE_OTHER)
        return json_pack("{s:s}", "schema", "asymctl.status/2");
    return json_pack(
        "{s:s, s:s, s:I, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:f, s:i, s:b, s:I, s:i, s:s, s:s, s:[s], s:s, s:o, "
        "s:o}",
        "schema", "asymctl.status/1", "version", "0.1.0", "start_us", (json_int_t)T0, "policy", "pa", "policy_reason",
        "auto chose it: the machine has fast and slow CPUs", "fast_cpus", "0-3", "slow_cpus",
        kind == FAKE_SERVICE_ALIKE ? "" : "4-7", "threads_steered", 12, "changes", 1204, "changes_last_minute", 14,
        "interval_us", 100000, "cpu_usage", 0.0031, "memory_bytes", 4300000, "paused",
        kind == FAKE_SERVICE_PAUSED || paused, "paused_until_us",
        (json_int_t)(kind == FAKE_SERVICE_PAUSED ? T0 + 90000000 : 0), "orders", 3, "observer",
        "schedstat, process events", "profile", "", "lacks", "asymd cannot count instructions: this machine has no PMU",
        "from_the_future", "ignored", "cpus", cpus_json(), "applications", apps_json());
}

/* Thread 4711 has ten decisions in the even seconds, 4720 two in odd ones. These are the last ten of both. */
static json_t *last_decisions_json(void)
{
    static const int seconds[] = {18, 16, 14, 12, 10, 8, 6, 4, 3, 2};
    json_t *list = json_array();
    for (size_t i = 0; i < ASYM_LENGTH(seconds); i++)
        json_array_append_new(list, json_pack("{s:I, s:i, s:i, s:i, s:s, s:s, s:s}", "time_us",
                                              (json_int_t)T0 + seconds[i] * 1000000, "tid",
                                              seconds[i] % 2 ? 4720 : 4711, "from", 4, "to", 0, "what", "steer",
                                              "class", "HP", "reason", "parallel: a spare fast CPU"));
    return list;
}

static json_t *why_json(uint32_t id)
{
    const bool hostile = kind == FAKE_SERVICE_HOSTILE;
    char sentence[160];
    snprintf(sentence, sizeof sentence, "%s (%u) has 8 runnable threads, so it is highly parallel. \033[31mred",
             hostile ? "set by uid 0" : "stockfish", id);
    return json_pack("{s:s, s:[{s:I, s:[s, s], s:[{s:s, s:s}, {s:s, s:s}], s:o}]}", "schema", "asymctl.why/1",
                     "explanations", "id", (json_int_t)id, "sentences", sentence,
                     hostile ? "A rule that uid 0 has set (asymctl set 4711 slow) keeps it."
                             : "It would get fast CPUs if gzip (4712) stopped.",
                     "evidence", "name", "runnable threads", "value", "7.9", "name", "rule", "value",
                     "none\nno line of its own", "decisions", last_decisions_json());
}

static json_t *waits_json(void)
{
    return json_pack("{s:b, s:i, s:[s], s:[{s:i, s:s}]}", "measuring", 1, "measured_us", 8000000, "sentences",
                     "render (12) waited 4.5 of 8.0 s for game\033[31mlogic (13).", "threads", "tid", 12, "comm",
                     "render");
}

/* A sample for each family that the exporter knows, with labels for some, and one that this version does not know. */
static json_t *all_counters_json(void)
{
    const struct asym_metric_row *row;
    json_t *list = json_array();
    for (size_t i = 0; (row = asym_metric_row_at(i)); i++) {
        char name[128];
        const bool is_counter = strcmp(row->kind, "counter") == 0;
        snprintf(name, sizeof name, "%s%s%s", row->name, is_counter ? "_total" : "",
                 i % 4 == 3 ? "{kind=\"a\\\\b\",result=\"done\"}" : "");
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:o}", "name", name, "kind", row->kind, "value",
                            is_counter && !strstr(row->name, "_seconds") ? json_integer(412) : json_real(1.5)));
    }
    json_array_append_new(list, json_pack("{s:s, s:s, s:n}", "name", "unknown_things", "kind", "gauge", "value"));
    return json_pack("{s:o}", "counters", list);
}

static json_t *counters_json(void)
{
    if (kind == FAKE_SERVICE_MACHINE) {
        usleep(machine.delay * 1000);
        return all_counters_json();
    }
    return json_pack("{s:s, s:[{s:s, s:s, s:i}, {s:s, s:s, s:f}, {s:s, s:s, s:i}, {s:s, s:s, s:f}]}", "schema",
                     "asymctl.stats/1", "counters", "name", "changes_total", "kind", "counter", "value", 1204, "name",
                     "cpu_seconds_total", "kind", "counter", "value", 1.5, "name", "threads_steered", "kind", "gauge",
                     "value", 12, "name", "from_the_future_total", "kind", "counter", "value", 0x1p64);
}

/* There were seven decisions before the client came. Two more are there at its second question. */
static json_t *decisions_json(uint64_t since)
{
    json_t *list = json_array();
    const bool is_behind = kind == FAKE_SERVICE_BEHIND, is_first = since == 7;
    const int begin = is_first ? 0 : is_behind && since == 10 ? 1 : 2, end = is_first && is_behind ? 1 : 2;
    const uint64_t next = since == UINT64_MAX ? 7 : is_first ? (is_behind ? 10 : 9) : since + (uint64_t)(end - begin);
    for (int i = begin; i < end; i++)
        json_array_append_new(list, json_pack("{s:I, s:i, s:i, s:s, s:i, s:i, s:i, s:s, s:s, s:s}", "time_us",
                                              (json_int_t)T0 + 250000, "pid", 4711 + i, "tid", 4720 + i, "comm",
                                              i == 0 ? "stock\033fish" : "gzip", "from", 4, "to", -1, "nice", 0,
                                              "class", "HP", "what", "release", "reason", "idle for 5 s"));
    if (since == 9 && kind == FAKE_SERVICE_AGAIN)
        return json_pack("{s:I, s:i, s:o}", "start_us", (json_int_t)T0 + 1, "next", 20, "decisions", list);
    return json_pack("{s:I, s:I, s:i, s:i, s:o}", "start_us", (json_int_t)T0, "next", (json_int_t)next, "lost",
                     is_first && is_behind ? 2 : 0, "left", is_first && is_behind, "decisions", list);
}

static json_t *report_json(const char *topic, uint64_t argument)
{
    return strcmp(topic, "status") == 0     ? status_json()
           : strcmp(topic, "program") == 0  ? app_json(4711, "stockfish", "HP", 8, 0.43)
           : strcmp(topic, "why") == 0      ? why_json((uint32_t)argument)
           : strcmp(topic, "waits") == 0    ? waits_json()
           : strcmp(topic, "counters") == 0 ? counters_json()
                                            : decisions_json(argument);
}

/* Notes a call for fake_service_calls, or prints it. */
static void note(const char *format, ...)
{
    char path[96];
    va_list args;
    snprintf(path, sizeof path, "%s/calls", dir);
    FILE *file = kind == FAKE_SERVICE_MACHINE ? stdout : fopen(path, "a");
    va_start(args, format);
    if (file) {
        vfprintf(file, format, args);
        fputs(file == stdout ? "\n" : ";", file);
        fflush(file);
    }
    va_end(args);
    if (file && file != stdout)
        fclose(file);
}

static int report(sd_bus_message *m)
{
    const char *topic;
    uint64_t argument;
    int r = sd_bus_message_read(m, "st", &topic, &argument);
    if (r < 0)
        return r;
    if (kind == FAKE_SERVICE_MACHINE)
        note(argument > 0 ? "%s %u" : "%s", topic, (unsigned)argument);
    if (argument == 404 || argument == 4194305 || argument == UNKNOWN ||
        (kind != FAKE_SERVICE_MACHINE && strcmp(topic, "program") == 0 && argument != 4711))
        return sd_bus_reply_method_errorf(m, "org.asymd.Error.NoSuchProcess", "asymd does not know process %u",
                                          (unsigned)argument);
    if (argument == 403)
        return sd_bus_reply_method_errorf(m, "org.asymd.Error.Refused", "too many calls: try again later");
    if (argument == 408)
        return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_NO_REPLY, "no reply");
    const bool is_last = strcmp(topic, "decisions") == 0 && argument == 9;
    ended = is_last && kind == FAKE_SERVICE_ENDS;
    if (ended || (is_last && kind == FAKE_SERVICE_STUCK))
        return 1;
    json_auto_t *json = report_json(topic, argument);
    if (!json_object_get(json, "schema"))
        json_object_set_new(json, "schema", json_string("asymd.fake/1"));
    ASYM_AUTO_FREE char *text = json_dumps(json, JSON_COMPACT);
    r = sd_bus_reply_method_return(m, "s", text);
    return r;
}

static int read_change(sd_bus_message *m, const char *member)
{
    const char *text;
    uint64_t seconds;
    uint32_t pid = 0;
    int flag, r = 0;
    if (strcmp(member, "Pause") == 0 && (r = sd_bus_message_read(m, "t", &seconds)) >= 0)
        note("Pause %llu", (unsigned long long)seconds);
    else if (strcmp(member, "SetPolicy") == 0 && (r = sd_bus_message_read(m, "sb", &text, &flag)) >= 0)
        note("SetPolicy %s %d", text, flag);
    else if (strcmp(member, "SetProgram") == 0 && (r = sd_bus_message_read(m, "us", &pid, &text)) >= 0)
        note("SetProgram %u %s", pid, text);
    if (pid == DENIED)
        return -EACCES;
    else if (strcmp(member, "Resume") == 0 || strcmp(member, "Reload") == 0)
        note("%s", member);
    return r;
}

static int set_rule(sd_bus_message *m)
{
    const char *action = "";
    uint32_t pid = 0;
    const int r = sd_bus_message_read(m, "us", &pid, &action);
    note("SetRule %u %s", pid, action);
    return r < 0 ? r
                 : sd_bus_reply_method_return(m, "ss", "/etc/asymd/rules.d/50-set-x.conf",
                                              strcmp(action, "slow") == 0 ? "games" : "");
}

static int change(sd_bus_message *m, const char *member)
{
    if (kind == FAKE_SERVICE_DENIED)
        return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_ACCESS_DENIED, "%s changes asymd", member);
    if (kind == FAKE_SERVICE_REFUSES)
        return sd_bus_reply_method_errorf(m, "org.asymd.Error.NoSignal", "the policy needs ipc, and \033[0m no PMU");
    if (strcmp(member, "SetRule") == 0)
        return set_rule(m);
    const int r = read_change(m, member);
    if (r == -EACCES)
        return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, "polkit asks");
    paused = kind == FAKE_SERVICE_MACHINE &&
             (strcmp(member, "Pause") == 0 || (paused && strcmp(member, "Resume") != 0));
    return r < 0 ? r : sd_bus_reply_method_return(m, NULL);
}

static int configuration(sd_bus_message *reply)
{
    static const char ini[] =
        "[asymd]\npolicy = rr ; /etc/of-the-service.conf:3\ninterval = 100ms ; default\n"
        "[asymmetry]\nslow = 1 ; --slow\n"
        "\n[rule \"of the service\"]  ; /etc/of-the-service.conf:7\nmatch_comm = spinner\naction = slow\n"
        "\n[rule \"of the library\"]  ; /usr/games.conf:9 (library)\nmatch_comm = game\nnice = 3\n";
    return sd_bus_message_append_array(reply, 'y', ini, strlen(ini));
}

static int on_call(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    static const char *const changes[] = {"Pause", "Resume", "Reload", "SetPolicy", "SetProgram", "SetRule"};
    const char *member = sd_bus_message_get_member(m);
    ASYM_CLEANUP(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    if (kind == FAKE_SERVICE_FULL)
        return sd_bus_reply_method_errorf(m, "org.asymd.Error.Refused", "too many unanswered calls: try again later");
    for (size_t i = 0; i < ASYM_LENGTH(changes); i++)
        if (strcmp(member, changes[i]) == 0)
            return change(m, member);
    if (strcmp(member, "GetReport") == 0)
        return report(m);
    int r = sd_bus_message_new_method_return(m, &reply);
    if (r >= 0)
        r = configuration(reply);
    if (r >= 0)
        r = sd_bus_send(NULL, reply, NULL);
    return r < 0 ? r : 1;
}

/* The bus daemon's part: a connection starts with Hello. */
static int on_bus_call(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    if (sd_bus_message_is_method_call(m, "org.freedesktop.DBus", "Hello"))
        return sd_bus_reply_method_return(m, "s", ":1.1");
    return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_SERVICE_UNKNOWN, "the name has no owner");
}

/* Serves one client until it has gone. */
static void serve(int fd)
{
    ASYM_CLEANUP(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
    sd_id128_t id = SD_ID128_MAKE(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, a, b, c, d, e, f);
    ended = false;
    int r = sd_bus_new(&bus);
    if (r >= 0)
        r = sd_bus_set_fd(bus, fd, fd);
    if (r >= 0)
        r = sd_bus_set_server(bus, 1, id);
    if (r >= 0)
        r = sd_bus_start(bus);
    if (r >= 0)
        r = kind == FAKE_SERVICE_NO_NAME ? sd_bus_add_filter(bus, NULL, on_bus_call, NULL)
                                         : sd_bus_add_object(bus, NULL, "/org/asymd/Manager", on_call, NULL);
    while (r >= 0 && !ended) {
        r = sd_bus_process(bus, NULL);
        if (r == 0)
            r = sd_bus_wait(bus, UINT64_MAX);
    }
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path) + 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

static _Noreturn void serve_all(int listener)
{
    for (;;) {
        const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0 && kind != FAKE_SERVICE_SILENT)
            serve(fd);
    }
}

void fake_service_run(const char *path, const struct fake_machine *of)
{
    kind = FAKE_SERVICE_MACHINE;
    machine = *of;
    unlink(path);
    const int listener = listen_at(path);
    note("ready");
    serve_all(listener);
}

void fake_service_start(enum fake_service_kind wanted)
{
    char path[96];
    kind = wanted;
    snprintf(dir, sizeof dir, "/tmp/asymd-fake-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/bus", dir);
    const int listener = listen_at(path);
    setenv("ASYMD_BUS", path, 1);
    if (kind == FAKE_SERVICE_NO_NAME) {
        assert_int_equal(chmod(dir, 0755), 0);
        assert_int_equal(chmod(path, 0666), 0);
    }
    child = asym_process_fork();
    if (child == 0)
        serve_all(listener);
    close(listener);
}

void fake_service_stop(void)
{
    char command[128];
    int status;
    assert_int_equal(asym_process_signal(child, SIGKILL), 0);
    assert_int_equal(asym_process_wait(child, 10, &status), 0);
    unsetenv("ASYMD_BUS");
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
}

const char *fake_service_calls(void)
{
    static char text[512];
    char path[96];
    snprintf(path, sizeof path, "%s/calls", dir);
    file_read(path, text, sizeof text);
    return text;
}
