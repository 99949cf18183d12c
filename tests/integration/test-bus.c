/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Queries and orders to a running asymd: over its own socket without a bus daemon, and over a system bus of the test. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <jansson.h>

#include "support/bus-daemon.h"
#include "support/live.h"
#include "support/must.h"
#include "support/namespace.h"
#include "support/service.h"
#include "support/stranger.h"
#include "support/test.h"

#define PATH      "/org/asymd/Manager"
#define INTERFACE "org.asymd.Manager"

static int set_up(void **state)
{
    asym_bus_daemon_prepare();
    return asym_service_set_up(state);
}

static int tear_down(void **state)
{
    asym_bus_daemon_stop();
    return asym_service_tear_down(state);
}

/* Asks for a report, which must be there. Returns a new reference. */
static json_t *ask(sd_bus *bus, const char *topic, uint64_t argument)
{
    sd_bus_error error = SD_BUS_ERROR_NULL;
    ASYM_CLEANUP(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    const char *text;
    const int r = sd_bus_call_method(bus, sd_bus_is_bus_client(bus) > 0 ? "org.asymd" : NULL, PATH, INTERFACE,
                                     "GetReport", &error, &reply, "st", topic, argument);
    if (r < 0)
        fail_msg("%s: %s", topic, error.message ? error.message : strerror(-r));
    assert_true(sd_bus_message_read(reply, "s", &text) > 0);
    json_t *report = json_loads(text, 0, NULL);
    assert_non_null(report);
    return report;
}

/* Returns the number of items of a list of a report, and whether one of them has this number. */
static size_t count_list(const json_t *report, const char *list, const char *key, pid_t wanted, bool *ret_found)
{
    json_t *items = json_object_get(report, list), *item;
    size_t i;
    *ret_found = false;
    json_array_foreach(items, i, item) *ret_found |= json_integer_value(json_object_get(item, key)) == wanted;
    return json_array_size(items);
}

static uint32_t steered(sd_bus *bus)
{
    uint32_t n = 0;
    assert_int_equal(asym_bus_daemon_get(bus, "ThreadsSteered", 'u', &n), 0);
    return n;
}

static void await_steered(sd_bus *bus, uint32_t least, uint32_t most)
{
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; asym_live_now() < end; asym_live_sleep(0.05))
        if (steered(bus) >= least && steered(bus) <= most)
            return;
    fail_msg("asymd steers %u threads, and not %u to %u", steered(bus), least, most);
}

static void ask_about_service(sd_bus *bus, pid_t load)
{
    bool found;
    json_int_t interval, memory;
    const char *fast, *slow, *observer;
    double usage = -1;
    json_t *status = ask(bus, "status", 0);
    assert_int_equal(json_unpack(status, "{s:I, s:I, s:s, s:s, s:s, s:F}", "interval_us", &interval, "memory_bytes",
                                 &memory, "fast_cpus", &fast, "slow_cpus", &slow, "observer", &observer, "cpu_usage",
                                 &usage),
                     0);
    assert_in_range(interval, 50000, 60000000);
    assert_in_range(memory, 1 << 20, (uint64_t)1 << 30);
    assert_true(*fast && *slow && *observer && usage >= 0);
    assert_int_equal(count_list(status, "cpus", "cpu", 0, &found), asym_live_cpus());
    assert_true(count_list(status, "applications", "pid", load, &found) >= 1);
    assert_true(found);
    json_decref(status);
    json_auto_t *counters = ask(bus, "counters", 0);
    assert_true(json_array_size(json_object_get(counters, "counters")) > 10);
}

static void ask_about_program(sd_bus *bus, pid_t load)
{
    bool found;
    json_int_t pid, uid, threads;
    const char *comm, *reason, *sentence;
    json_t *program = ask(bus, "program", (uint64_t)load);
    assert_int_equal(json_unpack(program, "{s:I, s:I, s:I, s:s, s:s}", "pid", &pid, "uid", &uid, "threads", &threads,
                                 "comm", &comm, "reason", &reason),
                     0);
    assert_int_equal(pid, load);
    assert_int_equal(uid, geteuid());
    assert_true(threads >= 2 && *reason);
    assert_string_equal(comm, "load-spin");
    assert_true(count_list(program, "own_threads", "pid", load, &found) >= 1);
    assert_true(found);
    json_decref(program);
    json_auto_t *why = ask(bus, "why", (uint64_t)load);
    assert_int_equal(json_unpack(why, "{s:[{s:[s]}]}", "explanations", "sentences", &sentence), 0);
    assert_non_null(strstr(sentence, "load-spin"));
}

/* Asks everything that can be asked, of a program with busy threads. */
static void ask_everything(sd_bus *bus, pid_t load)
{
    static const char *const texts[] = {"Version", "Policy", "PolicyReason"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        ASYM_AUTO_FREE char *value = NULL;
        sd_bus_error error = SD_BUS_ERROR_NULL;
        assert_true(sd_bus_get_property_string(bus, sd_bus_is_bus_client(bus) > 0 ? "org.asymd" : NULL, PATH, INTERFACE,
                                               texts[i], &error, &value) >= 0);
        assert_true(*value);
    }
    ask_about_service(bus, load);
    ask_about_program(bus, load);
}

TEST_WITH(every_question_has_an_answer_without_a_bus, set_up, tear_down)
{
    const pid_t load = asym_service_steer("3", NULL);
    ASYM_CLEANUP(sd_bus_close_unrefp) sd_bus *bus = asym_bus_daemon_direct(asym_service_dir());
    char error[128];
    const char *own_mask;
    json_int_t pid;
    json_t *decisions;
    int nice;
    await_steered(bus, 1, 4);
    ask_everything(bus, load);
    /* A thread of the program that asymd steers. */
    json_int_t tid = 0;
    json_auto_t *program = ask(bus, "program", (uint64_t)load);
    assert_int_equal(json_unpack(program, "{s:[{s:I}]}", "own_threads", "tid", &tid), 0);
    json_t *thread = ask(bus, "thread", (uint64_t)tid);
    assert_int_equal(json_unpack(thread, "{s:I, s:s, s:i, s:o}", "pid", &pid, "own_mask", &own_mask, "own_nice", &nice,
                                 "decisions", &decisions),
                     0);
    assert_int_equal(pid, load);
    assert_true(*own_mask);
    assert_int_equal(nice, getpriority(PRIO_PROCESS, 0)); /* the program has inherited it */
    assert_true(json_is_array(decisions));
    json_decref(thread);
    assert_true(asym_bus_daemon_call(bus, "GetReport", error, "st", "why", (uint64_t)0) < 0);
    assert_string_equal(error, "org.asymd.Error.NoSuchProcess");
    assert_true(asym_bus_daemon_call(bus, "GetReport", error, "s", "status") < 0);
    assert_string_equal(error, SD_BUS_ERROR_INVALID_ARGS);
}

/* Pauses asymd and lets it go on, in turn, until asymctl watch has written a decision. */
static void await_decision(sd_bus *bus, int fd)
{
    char text[8192] = "";
    bool pause = true;
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; asym_live_now() < end; asym_live_sleep(0.5)) {
        const ssize_t n = pread(fd, text, sizeof text - 1, 0);
        assert_true(n >= 0);
        text[n] = '\0';
        if (strchr(text, '\n'))
            break;
        assert_int_equal(pause ? asym_bus_daemon_call(bus, "Pause", NULL, "t", (uint64_t)0)
                               : asym_bus_daemon_call(bus, "Resume", NULL, NULL),
                         0);
        pause = !pause;
    }
    assert_non_null(strstr(text, "->"));
}

/* Runs asymctl watch until it has shown a decision. */
static void watch_decisions(sd_bus *bus)
{
    static const char *const argv[] = {"daemon/asymctl", "watch", NULL};
    char text[65536];
    const int fd = memfd_create("watch", MFD_CLOEXEC);
    assert_true(fd >= 0);
    const pid_t watch = asym_live_start(argv, fd);
    await_decision(bus, fd);
    asym_live_signal(watch, SIGINT);
    assert_int_equal(asym_live_wait(watch), 0);
    const ssize_t n = pread(fd, text, sizeof text - 1, 0);
    assert_true(n > 0);
    text[n] = '\0';
    close(fd);
    assert_non_null(strstr(text, " decision"));
}

/* asymctl understands a real asymd. What it makes of the answers is in unit/asymctl/test-service-verbs.c. */
TEST_WITH(asymctl_shows_the_service_and_its_decisions, set_up, tear_down)
{
    static const char *const argv[] = {"daemon/asymctl", "status", NULL};
    static const char *const heads[] = {"asymd ", "\nPolicy  ", "\nMachine  ", "\nSteering  ", "\nChanges  "};
    char text[8192];
    asym_service_steer("3", NULL);
    ASYM_CLEANUP(sd_bus_close_unrefp) sd_bus *bus = asym_bus_daemon_direct(asym_service_dir());
    asym_service_export_bus();
    await_steered(bus, 1, 4);
    assert_int_equal(asym_live_run(argv, text, sizeof text), 0);
    for (size_t i = 0; i < ASYM_LENGTH(heads); i++)
        assert_non_null(strstr(text, heads[i]));
    watch_decisions(bus);
}

TEST_WITH(every_order_is_carried_out, set_up, tear_down)
{
    const pid_t load = asym_service_steer("3", NULL);
    ASYM_CLEANUP(sd_bus_close_unrefp) sd_bus *bus = asym_bus_daemon_direct(asym_service_dir());
    const uint32_t pid = (uint32_t)load;
    char error[128];
    int paused = 0;
    uint64_t until = 0;
    await_steered(bus, 1, 4);
    assert_int_equal(asym_bus_daemon_call(bus, "Pause", NULL, "t", (uint64_t)3600), 0);
    assert_int_equal(asym_bus_daemon_get(bus, "Paused", 'b', &paused), 0);
    assert_int_equal(asym_bus_daemon_get(bus, "PausedUntil", 't', &until), 0);
    assert_true(paused && until > 0);
    await_steered(bus, 0, 0);
    assert_int_equal(asym_live_odd_threads(load, asym_live_cpus(), 0), 0);
    assert_int_equal(asym_bus_daemon_call(bus, "Resume", NULL, NULL), 0);
    await_steered(bus, 1, 4);
    assert_int_equal(asym_bus_daemon_call(bus, "SetProgram", NULL, "us", pid, "ignore"), 0);
    await_steered(bus, 0, 0);
    assert_int_equal(asym_bus_daemon_call(bus, "SetProgram", NULL, "us", pid, "auto"), 0);
    await_steered(bus, 1, 4);
    /* asymd was started with --pid for the load only. */
    assert_true(asym_bus_daemon_call(bus, "SetProgram", error, "us", (uint32_t)getpid(), "auto") < 0);
    assert_string_equal(error, "org.asymd.Error.NotPossible");
    assert_true(asym_bus_daemon_call(bus, "SetPolicy", error, "sb", "no-such-policy", 0) < 0);
    assert_string_equal(error, SD_BUS_ERROR_INVALID_ARGS);
    assert_int_equal(asym_bus_daemon_call(bus, "SetPolicy", NULL, "sb", "none", 0), 0);
    await_steered(bus, 0, 0);
    assert_int_equal(asym_bus_daemon_call(bus, "Reload", NULL, NULL), 0);
}

/* Returns the report on the decisions since that one, and writes the number of the last one. */
static json_t *ask_decisions(sd_bus *bus, uint64_t *since)
{
    json_t *report = ask(bus, "decisions", *since), *list;
    json_int_t next;
    assert_int_equal(json_unpack(report, "{s:I, s:o}", "next", &next, "decisions", &list), 0);
    assert_true(*since == UINT64_MAX || (uint64_t)next - *since == json_array_size(list));
    *since = (uint64_t)next;
    return report;
}

/* Pauses asymd: it gives the threads of the load back, and says so once. */
static void each_decision_is_in_one_report(sd_bus *bus, sd_bus *orders, pid_t load)
{
    uint64_t since = UINT64_MAX;
    json_t *report = ask_decisions(bus, &since);
    const char *comm, *what;
    int pid;
    assert_int_equal(json_array_size(json_object_get(report, "decisions")), 0);
    json_decref(report);
    assert_int_equal(asym_bus_daemon_call(orders, "Pause", NULL, "t", (uint64_t)0), 0);
    report = ask_decisions(bus, &since);
    assert_int_equal(
        json_unpack(report, "{s:[{s:i, s:s, s:s}]}", "decisions", "pid", &pid, "comm", &comm, "what", &what), 0);
    assert_int_equal(pid, load);
    assert_string_equal(comm, "load-spin");
    assert_string_equal(what, "release");
    json_decref(report);
    report = ask_decisions(bus, &since);
    assert_int_equal(json_array_size(json_object_get(report, "decisions")), 0);
    json_decref(report);
    assert_int_equal(asym_bus_daemon_call(orders, "Resume", NULL, NULL), 0);
    await_steered(orders, 1, 4);
}

/* Returns whether a change of the property Paused is announced in time. */
static bool hears_of_a_pause(sd_bus *bus)
{
    const char *name;
    bool heard = false;
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; asym_live_now() < end && !heard;) {
        sd_bus_message *m = NULL;
        const int r = sd_bus_process(bus, &m);
        assert_true(r >= 0);
        if (m && sd_bus_message_is_signal(m, "org.freedesktop.DBus.Properties", "PropertiesChanged") > 0) {
            assert_true(sd_bus_message_skip(m, "s") >= 0 && sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
            while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                assert_true(sd_bus_message_read(m, "s", &name) > 0);
                heard |= strcmp(name, "Paused") == 0;
                assert_true(sd_bus_message_skip(m, "v") >= 0 && sd_bus_message_exit_container(m) >= 0);
            }
        }
        sd_bus_message_unref(m);
        if (r == 0)
            sd_bus_wait(bus, 100000);
    }
    return heard;
}

TEST_WITH(decisions_are_read_on_the_socket_and_on_the_bus, set_up, tear_down)
{
    asym_bus_daemon_start();
    const pid_t load = asym_service_steer("3", NULL);
    ASYM_CLEANUP(sd_bus_close_unrefp)
    sd_bus *direct = asym_bus_daemon_direct(asym_service_dir()), *orders = asym_bus_daemon_direct(asym_service_dir());
    await_steered(orders, 1, 4);
    each_decision_is_in_one_report(direct, orders, load);
    ASYM_CLEANUP(sd_bus_close_unrefp) sd_bus *bus = asym_bus_daemon_await_asymd();
    assert_true(sd_bus_match_signal(bus, NULL, "org.asymd", PATH, "org.freedesktop.DBus.Properties",
                                    "PropertiesChanged", NULL, NULL) >= 0);
    each_decision_is_in_one_report(bus, orders, load);
    assert_true(hears_of_a_pause(bus));
}

/* asymd looks for the bus again, and asks for its name again after the bus has ended. */
TEST_WITH(asymd_finds_a_bus_that_starts_later, set_up, tear_down)
{
    const pid_t load = asym_service_steer("3", NULL);
    sd_bus *direct = asym_bus_daemon_direct(asym_service_dir());
    await_steered(direct, 1, 4);
    asym_bus_daemon_start();
    sd_bus *bus = asym_bus_daemon_await_asymd();
    ask_everything(bus, load);
    sd_bus_close_unref(bus);
    asym_bus_daemon_stop();
    ask_everything(direct, load);
    sd_bus_close_unref(direct);
    asym_bus_daemon_prepare();
}

static void introspect_with_busctl(const char *address)
{
    static char text[32768];
    char option[256];
    snprintf(option, sizeof option, "--address=%s", address);
    const char *const argv[] = {"/usr/bin/busctl", option, "--no-pager", "introspect", "org.asymd", PATH, NULL};
    assert_int_equal(asym_live_run(argv, text, sizeof text), 0);
    assert_non_null(strstr(text, ".SetProgram"));
    assert_non_null(strstr(text, ".GetReport"));
    assert_non_null(strstr(text, ".PolicyReason"));
}

/* busctl takes asymd's own socket for a bus. */
TEST_WITH(busctl_shows_the_object_on_both_ways, set_up, tear_down)
{
    char direct[256];
    asym_bus_daemon_start();
    asym_service_steer("3", NULL);
    sd_bus_close_unref(asym_bus_daemon_await_asymd());
    introspect_with_busctl(getenv("DBUS_SYSTEM_BUS_ADDRESS"));
    snprintf(direct, sizeof direct, "unix:path=%s/bus", asym_service_dir());
    introspect_with_busctl(direct);
}

/* A client of an ordinary user. Each exit status but 0 is a failure. */
struct stranger {
    pid_t load;
    const char *wanted; /* the name of the error; "": none */
};

/* A process that is hidden is in no list, either. */
static void ask_under_hidepid(void *arg)
{
    const struct stranger *s = arg;
    sd_bus *bus = asym_bus_daemon_connect();
    char error[128] = "";
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; asym_live_now() < end; asym_live_sleep(0.1)) {
        asym_bus_daemon_call(bus, "GetReport", error, "st", "why", (uint64_t)s->load);
        if (strcmp(error, s->wanted) == 0)
            break;
    }
    MUST(strcmp(error, s->wanted) == 0);
    asym_bus_daemon_call(bus, "GetReport", error, "st", "program", (uint64_t)s->load);
    MUST(strcmp(error, s->wanted) == 0);
    asym_bus_daemon_call(bus, "GetReport", error, "st", "waits", (uint64_t)s->load);
    MUST(strcmp(error, s->wanted) == 0);
    json_auto_t *status = ask(bus, "status", 0);
    MUST((json_array_size(json_object_get(status, "applications")) == 0) == (*s->wanted != '\0'));
}

/* asymd itself sees all processes, as root. It reads the option when it starts. */
TEST_WITH(under_hidepid_an_ordinary_user_sees_no_processes_of_others, set_up, tear_down)
{
    static const char *const options[] = {"hidepid=0", "hidepid=2"}, *const wanted[] = {
                                                                         "", "org.asymd.Error.NoSuchProcess"};
    assert_int_equal(asym_namespace_enter(), 0);
    asym_bus_daemon_start();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mount("proc", "/proc", "proc", 0, options[i]), 0);
        const pid_t load = asym_service_spin("3"), asymd = asym_service_start(load, NULL);
        sd_bus *bus = asym_bus_daemon_await_asymd();
        await_steered(bus, 1, 4);
        struct stranger s = {load, wanted[i]};
        assert_int_equal(asym_live_wait(asym_stranger_start(ask_under_hidepid, &s)), 0);
        ask_about_program(bus, load);
        sd_bus_close_unref(bus);
        asym_live_end(asymd, SIGTERM);
        asym_live_end(load, SIGKILL);
        assert_int_equal(umount2("/proc", MNT_DETACH), 0);
    }
}

TEST_MAIN
