/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/fake-service.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <systemd/sd-bus.h>

#include "base/macro.h"
#include "support/process.h"

#define T0 1780000000000000u /* 2026-05-28 20:26:40 UTC, in microseconds */

static char dir[64];
static pid_t child;
static enum fake_service_kind kind;
static bool ended;

static int append_app(sd_bus_message *m, uint32_t pid, const char *comm, const char *class, uint32_t steered,
                      double share)
{
    const char *const name = strcmp(class, "HP") == 0   ? "highly parallel"
                             : strcmp(class, "MP") == 0 ? "serial"
                                                        : "idle";
    return sd_bus_message_append(m, "a{sv}", 14, "pid", "u", pid, "cgroup", "s", pid > 0 ? "" : "/build.slice", "comm",
                                 "s", comm, "uid", "u", 1000u, "phase", "s", "parallel", "class", "s", class,
                                 "runnable", "d", (double)steered, "threads", "u", steered + 1, "steered", "u", steered,
                                 "fast_share", "d", share, "moves_per_minute", "u", 3u, "reason", "s", "a reason",
                                 "class_name", "s", name, "running", "d", (double)steered / 2);
}

static int get_all(sd_bus_message *m)
{
    if (kind == FAKE_SERVICE_OTHER)
        return sd_bus_message_append(m, "a{sv}", 1, "Version", "u", 7u);
    return sd_bus_message_append(
        m, "a{sv}", 19, "Version", "s", "0.1.0", "StartTimestamp", "t", (uint64_t)T0, "Policy", "s", "pa",
        "PolicyReason", "s", "auto chose it: the machine has fast and slow CPUs", "FastCPUs", "s", "0-3", "SlowCPUs",
        "s", kind == FAKE_SERVICE_ALIKE ? "" : "4-7", "ThreadsSteered", "u", 12u, "Changes", "t", (uint64_t)1204,
        "ChangesLastMinute", "u", 14u, "Interval", "t", (uint64_t)100000, "CPUUsage", "d", 0.0031, "Memory", "t",
        (uint64_t)4300000, "Paused", "b", kind == FAKE_SERVICE_PAUSED, "PausedUntil", "t",
        kind == FAKE_SERVICE_PAUSED ? (uint64_t)T0 + 90000000 : 0, "Orders", "u", 3u, "Observer", "s",
        "schedstat, process events", "Profile", "s", "", "Lacks", "as", 1,
        "asymd cannot count instructions: this machine has no PMU", "FromTheFuture", "s", "ignored");
}

static int list_cpus(sd_bus_message *m)
{
    int r = sd_bus_message_open_container(m, 'a', "a{sv}");
    for (uint32_t i = 0; r >= 0 && i < 8; i++)
        r = sd_bus_message_append(m, "a{sv}", 10, "cpu", "u", i, "type", "u", i / 4, "smt_rank", "u", i < 4 ? i % 2 : 0,
                                  "type_name", "s", i < 4 ? "P-core" : "E-core", "speed", "d", i < 4 ? 2.0 : 1.0,
                                  "fast", "b", i < 4, "busy", "d", i < 4 ? 0.525 : 0.1, "threads", "u", 1u, "tid", "u",
                                  4711u, "comm", "s", "x");
    return r < 0 ? r : sd_bus_message_close_container(m);
}

static int list_applications(sd_bus_message *m)
{
    int r = sd_bus_message_open_container(m, 'a', "a{sv}");
    if (r >= 0 && kind == FAKE_SERVICE_HOSTILE)
        r = append_app(m, 66, "\033[2J\r\nevil\\", "\033[H", 3, 1e300);
    for (uint32_t i = 0; r >= 0 && kind == FAKE_SERVICE_HOSTILE && i < 1000; i++)
        r = append_app(m, 100 + i, "same-name", "HP", 2, 0);
    if (r >= 0)
        r = append_app(m, 4711, "stockfish", "HP", 8, 0.43);
    if (r >= 0)
        r = append_app(m, 4712, "gzip", "MP", 1, 1);
    if (r >= 0)
        r = append_app(m, 4713, "idler", "", 0, 0);
    return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_thread(sd_bus_message *m, uint32_t tid)
{
    /* A key that comes twice: the first one counts. */
    return sd_bus_message_append(m, "a{sv}", 4, "tid", "u", tid, "pid", "u", 4711u, "comm", "s", "stockfish", "comm",
                                 "s", "another");
}

/* The application of process 4711 has the threads 4711 and 4720. */
static int get_application(sd_bus_message *m)
{
    int r = sd_bus_message_open_container(m, 'a', "{sv}");
    if (r >= 0)
        r = sd_bus_message_append(m, "{sv}", "pid", "u", 4711u);
    if (r >= 0)
        r = sd_bus_message_open_container(m, 'e', "sv");
    if (r >= 0)
        r = sd_bus_message_append(m, "s", "own_threads");
    if (r >= 0)
        r = sd_bus_message_open_container(m, 'v', "aa{sv}");
    if (r >= 0)
        r = sd_bus_message_open_container(m, 'a', "a{sv}");
    if (r >= 0)
        r = append_thread(m, 4711);
    if (r >= 0)
        r = append_thread(m, 4720);
    for (int i = 0; r >= 0 && i < 4; i++)
        r = sd_bus_message_close_container(m);
    return r;
}

/* Thread 4711 has ten decisions in the even seconds, 4720 two in odd ones. */
static int get_thread(sd_bus_message *m, uint32_t tid)
{
    int r = sd_bus_message_open_container(m, 'a', "{sv}");
    if (r >= 0)
        r = sd_bus_message_append(m, "{sv}", "tid", "u", tid);
    if (r >= 0)
        r = sd_bus_message_open_container(m, 'e', "sv");
    if (r >= 0)
        r = sd_bus_message_append(m, "s", "decisions");
    if (r >= 0)
        r = sd_bus_message_open_container(m, 'v', "a(tiisss)");
    if (r >= 0)
        r = sd_bus_message_open_container(m, 'a', "(tiisss)");
    for (int i = tid == 4711 ? 9 : 1; r >= 0 && i >= 0; i--)
        r = sd_bus_message_append(m, "(tiisss)", (uint64_t)T0 + (uint64_t)(2 * i + (tid != 4711)) * 1000000, 4, 0,
                                  "steer", "HP", "parallel: a spare fast CPU");
    for (int i = 0; r >= 0 && i < 4; i++)
        r = sd_bus_message_close_container(m);
    return r;
}

static int explain(sd_bus_message *m, uint32_t id)
{
    char sentence[160];
    snprintf(sentence, sizeof sentence, "%s (%u) has 8 runnable threads, so it is highly parallel. \033[31mred",
             kind == FAKE_SERVICE_HOSTILE ? "set by uid 0" : "stockfish", id);
    return sd_bus_message_append(m, "asa(ss)", 2, sentence,
                                 kind == FAKE_SERVICE_HOSTILE
                                     ? "A rule that uid 0 has set (asymctl set 4711 slow) keeps it."
                                     : "It would get fast CPUs if gzip (4712) stopped.",
                                 2, "runnable threads", "7.9", "rule", "none\nno line of its own");
}

static int counters(sd_bus_message *m)
{
    return sd_bus_message_append(m, "a(sstd)", 5, "changes_total", "counter", (uint64_t)1204, 0.0, "cpu_seconds_total",
                                 "counter", (uint64_t)0, 1.5, "threads_steered", "gauge", (uint64_t)0, 12.0,
                                 "bad name\n", "gauge", (uint64_t)0, 1.0, "from_the_future_total", "counter",
                                 UINT64_MAX, 0.0);
}

/* There were seven decisions before the client came. Two more are there at its second question. */
static int report(sd_bus_message *m)
{
#define DECISION(pid, tid, comm)                                                                                       \
    "{\"time_us\": 1780000000250000, \"pid\": " #pid ", \"tid\": " #tid ", \"comm\": \"" comm                          \
    "\", \"from\": 4, \"to\": -1, \"nice\": 0, \"class\": \"HP\", \"what\": \"release\", \"reason\": \"idle for 5 "    \
    "s\"}"
    const char *topic;
    uint64_t since;
    if (kind == FAKE_SERVICE_OTHER)
        return sd_bus_reply_method_return(m, "s", "{\"next\": 7}");
    if (sd_bus_message_read(m, "st", &topic, &since) < 0 || strcmp(topic, "decisions") != 0)
        return -EINVAL;
    ended = since == 9 && kind == FAKE_SERVICE_ENDS;
    if (ended)
        return 1;
    if (since == 9 && kind == FAKE_SERVICE_PLAIN)
        return sd_bus_reply_method_return(m, "s", "{\"next\": 9, \"decisions\": []}");
    if (since != 7)
        return sd_bus_reply_method_return(m, "s", "{\"next\": 7, \"decisions\": []}");
    return sd_bus_reply_method_return(m, "s",
                                      "{\"next\": 9, \"decisions\": [" DECISION(
                                          4711, 4720, "stock\\u001bfish") ", " DECISION(4712, 4721, "gzip") "]}");
#undef DECISION
}

/* Notes a change for fake_service_calls. */
static void note(const char *format, ...)
{
    char path[96];
    va_list args;
    snprintf(path, sizeof path, "%s/calls", dir);
    FILE *file = fopen(path, "a");
    va_start(args, format);
    if (file) {
        vfprintf(file, format, args);
        fclose(file);
    }
    va_end(args);
}

static int read_change(sd_bus_message *m, const char *member)
{
    const char *text;
    uint64_t seconds;
    uint32_t pid;
    int flag, r = 0;
    if (strcmp(member, "Pause") == 0 && (r = sd_bus_message_read(m, "t", &seconds)) >= 0)
        note("Pause %llu;", (unsigned long long)seconds);
    else if (strcmp(member, "SetPolicy") == 0 && (r = sd_bus_message_read(m, "sb", &text, &flag)) >= 0)
        note("SetPolicy %s %d;", text, flag);
    else if (strcmp(member, "SetProgram") == 0 && (r = sd_bus_message_read(m, "us", &pid, &text)) >= 0)
        note("SetProgram %u %s;", pid, text);
    else if (strcmp(member, "Release") == 0 || strcmp(member, "Adopt") == 0) {
        r = sd_bus_message_read(m, "u", &pid);
        note("%s %u;", member, pid);
    } else if (strcmp(member, "Resume") == 0 || strcmp(member, "Reload") == 0)
        note("%s;", member);
    return r;
}

static int set_rule(sd_bus_message *m)
{
    const char *action = "";
    uint32_t pid = 0;
    const int r = sd_bus_message_read(m, "us", &pid, &action);
    note("SetRule %u %s;", pid, action);
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

static int answer(sd_bus_message *m, const char *member, uint32_t id, sd_bus_message *reply)
{
    (void)m;
    return strcmp(member, "GetAll") == 0             ? get_all(reply)
           : strcmp(member, "ListCPUs") == 0         ? list_cpus(reply)
           : strcmp(member, "ListApplications") == 0 ? list_applications(reply)
           : strcmp(member, "GetApplication") == 0   ? get_application(reply)
           : strcmp(member, "GetThread") == 0        ? get_thread(reply, id)
           : strcmp(member, "Explain") == 0          ? explain(reply, id)
           : strcmp(member, "GetConfiguration") == 0 ? configuration(reply)
           : strcmp(member, "Counters") == 0         ? counters(reply)
                                                     : 0;
}

static bool is_too_busy(void)
{
    static unsigned n_calls;
    return kind == FAKE_SERVICE_FULL || (kind == FAKE_SERVICE_BUSY && ++n_calls % 3 != 0);
}

static int on_call(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    static const char *const changes[] = {"Pause", "Resume",    "Reload",     "Release",
                                          "Adopt", "SetPolicy", "SetProgram", "SetRule"};
    const char *member = sd_bus_message_get_member(m);
    sd_bus_message *reply = NULL;
    uint32_t id = 0;
    (void)userdata;
    (void)error;
    if (is_too_busy())
        return sd_bus_reply_method_errorf(m, "org.asymd.Error.Refused", "the share is spent: try again later");
    for (size_t i = 0; i < ASYM_LENGTH(changes); i++)
        if (strcmp(member, changes[i]) == 0)
            return change(m, member);
    if (sd_bus_message_has_signature(m, "u"))
        sd_bus_message_read(m, "u", &id);
    if (id == 404)
        return sd_bus_reply_method_errorf(m, "org.asymd.Error.NoSuchProcess", "asymd does not know process 404");
    if (id == 403)
        return sd_bus_reply_method_errorf(m, "org.asymd.Error.Refused", "too many calls: try again later");
    if (strcmp(member, "GetApplication") == 0 && id != 4711)
        return sd_bus_reply_method_errorf(m, "org.asymd.Error.NoSuchProcess", "no application");
    if (strcmp(member, "GetReport") == 0)
        return report(m);
    int r = sd_bus_message_new_method_return(m, &reply);
    if (r >= 0)
        r = answer(m, member, id, reply);
    if (r >= 0)
        r = sd_bus_send(NULL, reply, NULL);
    sd_bus_message_unref(reply);
    return r < 0 ? r : 1;
}

/* The bus daemon's part: a connection starts with Hello. */
static int on_bus_call(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    (void)userdata;
    (void)error;
    if (sd_bus_message_is_method_call(m, "org.freedesktop.DBus", "Hello"))
        return sd_bus_reply_method_return(m, "s", ":1.1");
    return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_SERVICE_UNKNOWN, "the name has no owner");
}

/* Serves one client until it has gone. */
static void serve(int fd)
{
    sd_bus *bus = NULL;
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
    sd_bus_flush_close_unref(bus);
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
    assert_true(child >= 0);
    if (child == 0) {
        for (;;) {
            const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
            if (fd >= 0 && kind != FAKE_SERVICE_SILENT)
                serve(fd);
        }
    }
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
    FILE *file = fopen(path, "r");
    text[file ? fread(text, 1, sizeof text - 1, file) : 0] = '\0';
    if (file)
        fclose(file);
    return text;
}
