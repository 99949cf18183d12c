/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The verbs of asymctl that ask a running asymd, against a service with fixed answers. */
#include <math.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <jansson.h>

#include "base/clock.h"
#include "client/client.h"
#include "daemon/asymctl/status.h"
#include "report/columns.h"
#include "report/json.h"
#include "report/openmetrics.h"
#include "support/fake-service.h"
#include "support/shell.h"
#include "support/test.h"

/* Both outputs of the last asymctl. */
static char output[1 << 20];

/* Returns the exit status of asymctl with these arguments. */
static int run(const char *arguments)
{
    return shell_run(output, sizeof output, "env -u COLUMNS TZ=UTC LC_ALL=C '%s/daemon/asymctl' %s 2>&1", ASYM_TEST_BIN,
                     arguments);
}

/* Runs asymctl against a service of that kind. */
static int run_with(enum fake_service_kind kind, const char *arguments)
{
    fake_service_start(kind);
    const int status = run(arguments);
    fake_service_stop();
    return status;
}

/* The same, and it must end in status. What it said is in output. */
static void expect(enum fake_service_kind kind, const char *arguments, int status)
{
    const int r = run_with(kind, arguments);
    if (r != status)
        fail_msg("asymctl %s ended in %d and said: %s", arguments, r, output);
}

/* No control character but a newline, and no line wider than that. */
static void assert_tame(const char *text, size_t columns)
{
    for (const char *c = text; *c; c++)
        assert_true(*c == '\n' || ((unsigned char)*c >= ' ' && *c != 0x7f));
    assert_fits_in(text, columns);
}

static const char *const verbs[] = {"status",          "why 4711",  "policy",  "policy pa",  "pause",
                                    "resume",          "release 1", "adopt 1", "set 1 fast", "watch",
                                    "metrics --table", "metrics",   "reload",  "watch 4711"};

TEST(without_a_service_each_verb_ends_in_5_and_says_how_to_start_it)
{
    setenv("ASYMD_BUS", "/nonexistent/bus", 1);
    for (size_t i = 0; i < ASYM_LENGTH(verbs); i++) {
        assert_int_equal(run(verbs[i]), 5);
        assert_has(
            output,
            "asymctl: asymd is not running. Start it: systemctl start asymd (as root), or asymd --service (another "
            "socket: ASYMD_BUS)");
    }
    unsetenv("ASYMD_BUS");
}

TEST(without_a_service_status_says_what_asymd_could_do_here)
{
    char verdict[4096];
    run("check");
    /* Its verdict: its lines up to the first empty one. */
    *strstr(output, "\n\n") = '\0';
    snprintf(verdict, sizeof verdict, "%.4000s", output);
    for (char *c = verdict; *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    setenv("ASYMD_BUS", "/nonexistent/bus", 1);
    assert_int_equal(run("status"), 5);
    unsetenv("ASYMD_BUS");
    assert_has(output, verdict);
    /* It is one message, on one line. */
    assert_ptr_equal(strchr(output, '\n'), output + strlen(output) - 1);
    assert_true(strstr(output, "Start it") < strstr(output, verdict));
}

TEST(without_asymd_on_the_system_bus_it_ends_in_5_too)
{
    unsetenv("ASYMD_BUS");
    setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/system_bus_socket", 1);
    /* A root whose machine runs an asymd reaches that. */
    if (access(ASYM_CLIENT_SOCKET, F_OK) < 0)
        assert_int_equal(run("policy"), 5);
    unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
}

#define DECISION(seconds, tid) "  20:26:" seconds ".000    " tid "   4->0   steer (parallel: a spare fast CPU)\n"

struct answer {
    enum fake_service_kind kind;
    const char *arguments;
    int status;
    const char *said;
};

TEST(an_answer_is_said_to_the_letter)
{
    static const struct answer rows[] = {
        {FAKE_SERVICE_FULL, "policy", 1, "asymctl: too many unanswered calls: try again later\n"},
        {FAKE_SERVICE_SILENT, "policy", 1, "asymctl: asymd did not answer within 5 s\n"},
        {FAKE_SERVICE_REFUSES, "policy hass", 3, "asymctl: the policy needs ipc, and \\x1b[0m no PMU\n"},
        {FAKE_SERVICE_DENIED, "pause", 4,
         "asymctl: not permitted: Pause changes asymd: run it as root (sudo asymctl ...), or with "
         "polkit's permission org.asymd.manage\n"},
        {FAKE_SERVICE_ALIKE, "set 12 fast", 0, "the rule fast for process 12 has no effect, because no CPU is slow\n"},
        {FAKE_SERVICE_ALIKE, "set 12 slow", 0, "the rule slow for process 12 has no effect, because no CPU is slow\n"},
        {FAKE_SERVICE_ALIKE, "set 12 ignore", 0, "asymd leaves process 12 alone until it ends\n"},
        {FAKE_SERVICE_PLAIN, "why 404", 1, "asymctl: asymd does not know process 404\n"},
        {FAKE_SERVICE_PLAIN, "why 4711", 0,
         "stockfish (4711) has 8 runnable threads, so it is highly parallel. \\x1b[31mred\n"
         "It would get fast CPUs if gzip (4712) stopped.\n"
         "\n"
         "  runnable threads  7.9\n"
         "  rule              none\\x0ano line of its own\n"
         "\n"
         "The last decisions, the newest first:\n"
         "  TIME             TID   CPU    WHAT (WHY)\n" DECISION("58", "4711") DECISION("56", "4711")
             DECISION("54", "4711") DECISION("52", "4711") DECISION("50", "4711") DECISION("48", "4711")
                 DECISION("46", "4711") DECISION("44", "4711") DECISION("43", "4720")
                     DECISION("42", "4711") "\n"
                                            "render (12) waited 4.5 of 8.0 s for game\\x1b[31mlogic (13).\n"},
        {FAKE_SERVICE_PLAIN, "metrics --table", 0,
         "COUNTER                               VALUE  MEANING\n"
         "changes_total                          1204  Changes to threads that the kern...\n"
         "cpu_seconds_total                       1.5  CPU time of asymd.\n"
         "threads_steered                          12  Threads that asymd steers now.\n"
         "from_the_future_total  18446744073709551616\n"},
        {FAKE_SERVICE_PLAIN, "metrics", 0,
         "# HELP asymd_changes Changes to threads that the kernel has accepted.\n"
         "# TYPE asymd_changes counter\n"
         "asymd_changes_total 1204\n"
         "# HELP asymd_cpu_seconds CPU time of asymd.\n"
         "# TYPE asymd_cpu_seconds counter\n"
         "# UNIT asymd_cpu_seconds seconds\n"
         "asymd_cpu_seconds_total 1.5\n"
         "# HELP asymd_threads_steered Threads that asymd steers now.\n"
         "# TYPE asymd_threads_steered gauge\n"
         "asymd_threads_steered 12\n"
         "# TYPE asymd_from_the_future counter\n"
         "asymd_from_the_future_total 18446744073709551616\n"
         "# EOF\n"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        expect(rows[i].kind, rows[i].arguments, rows[i].status);
        if (strcmp(output, rows[i].said) != 0)
            fail_msg("asymctl %s said: %s\nand not: %s", rows[i].arguments, output, rows[i].said);
    }
}

TEST(an_answer_has_these_words)
{
    static const struct answer rows[] = {
        {FAKE_SERVICE_PAUSED, "status", 0,
         "asymd 0.1.0 is paused until 2026-05-28 20:28:10; it has been running since\n"
         "           2026-05-28 20:26:40 ("},
        {FAKE_SERVICE_PAUSED, "status", 0, "Steering   nothing while asymd is paused\n"},
        {FAKE_SERVICE_OTHER, "status", 1, "do not understand each other: use the same version of both\n"},
        /* A name that looks like a user is none; the user who has set a rule is named. */
        {FAKE_SERVICE_HOSTILE, "why 4711", 0, "set by uid 0 (4711) has 8 runnable threads"},
        {FAKE_SERVICE_HOSTILE, "why 4711", 0, "A rule that root (uid 0) has set"},
        {FAKE_SERVICE_PLAIN, "watch 2>&1 >/dev/full #", 1, "asymctl: cannot write to standard output: "},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        expect(rows[i].kind, rows[i].arguments, rows[i].status);
        assert_has(output, rows[i].said);
    }
}

TEST(status_is_one_screen)
{
    assert_int_equal(run_with(FAKE_SERVICE_PLAIN, "status"), 0);
    /* The age depends on the clock. */
    static const char head[] = "asymd 0.1.0 has been running since 2026-05-28 20:26:40 (";
    assert_int_equal(strncmp(output, head, strlen(head)), 0);
    assert_string_equal(strchr(output, '\n'),
                        "\n\n"
                        "Policy     pa (auto chose it: the machine has fast and slow CPUs)\n"
                        "Machine    P-core  4 fast CPUs at 2.00x  0-3 on 2 cores  ####----  52 % busy\n"
                        "           E-core  4 slow CPUs at 1.00x  4-7             #-------  10 % busy\n"
                        "Steering   12 threads: 9 of 2 programs (1 highly parallel, 1 serial), 3 asleep\n"
                        "           stockfish  4711  highly parallel  8 threads   43 % on fast\n"
                        "           gzip       4712  serial            1 thread  100 % on fast\n"
                        "Changes    14 to threads in the last minute, 1204 since the start\n"
                        "Costs      0.31 % of one CPU, 4.1 MiB of memory, a sample every 100 ms\n"
                        "Reads      schedstat, process events\n"
                        "Limits     asymd cannot count instructions: this machine has no PMU\n");
}

/* Prints the status of the fake service in that width. */
static void print_status(size_t columns, bool unicode, char *ret, size_t size)
{
    struct asym_client *client = NULL;
    ASYM_AUTO_JSON json_t *state = NULL;
    FILE *out = fmemopen(ret, size, "w");
    const struct asym_terminal terminal = {.out = out, .columns = columns};
    assert_int_equal(asym_client_open(&client, NULL), 0);
    assert_int_equal(asym_client_get_report(client, "status", 0, &state, NULL), 0);
    assert_int_equal(asym_status_text(&(struct asym_status){.of = state, .unicode = unicode}, &terminal), 0);
    fclose(out);
    asym_client_close(client);
}

TEST(status_fits_every_width_and_uses_blocks_in_utf_8)
{
    static const enum fake_service_kind kinds[] = {FAKE_SERVICE_PLAIN, FAKE_SERVICE_HOSTILE};
    for (size_t k = 0; k < ASYM_LENGTH(kinds); k++) {
        fake_service_start(kinds[k]);
        for (size_t columns = 60; columns <= 200; columns += 10) {
            print_status(columns, true, output, sizeof output);
            assert_tame(output, columns);
            assert_null(strchr(output, '#'));
            /* 0.525 of 20 columns are ten blocks and a half. */
            if (columns == 100)
                assert_has(output, "\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u258c\u2591");
        }
        fake_service_stop();
    }
}

/* A type of core in a line of the machine: CPUs from first on, all alike. */
struct core_type_row {
    const char *name;
    uint32_t first, n;
    double speed;
    bool fast;
    uint32_t threads; /* of a core */
};

static void add_cpus(json_t *cpus, int type, const struct core_type_row *row)
{
    for (uint32_t i = 0; i < row->n; i++)
        json_array_append_new(cpus, json_pack("{s:i, s:i, s:i, s:s, s:f, s:b, s:f}", "cpu", (int)(row->first + i),
                                              "type", type, "smt_rank", (int)(i % row->threads), "type_name", row->name,
                                              "speed", row->speed, "fast", (int)row->fast, "busy", 0.5));
}

static void print_types(const struct core_type_row *rows, size_t n, char *ret, size_t size)
{
    const char *slow = "";
    json_t *cpus = json_array();
    FILE *out = fmemopen(ret, size, "w");
    const struct asym_terminal terminal = {.out = out, .columns = 80};
    for (size_t i = 0; i < n && rows[i].n > 0; i++) {
        add_cpus(cpus, (int)i, &rows[i]);
        slow = rows[i].fast ? slow : "1";
    }
    ASYM_AUTO_JSON json_t *state = json_pack("{s:s, s:o}", "slow_cpus", slow, "cpus", cpus);
    assert_int_equal(asym_status_text(&(struct asym_status){.of = state}, &terminal), 0);
    fclose(out);
}

/* A machine that names no types of core once had the line "fast  1 fast CPU". */
TEST(status_says_which_cpus_are_fast_and_how_fast)
{
    static const struct {
        struct core_type_row types[3];
        const char *said;
    } rows[] = {
        {{{"fast", 0, 1, 2, true, 1}, {"slow", 1, 1, 1, false, 1}},
         "Machine    1 fast CPU at 2.00x  0  ########--------  50 % busy\n"
         "           1 slow CPU at 1.00x  1  ########--------  50 % busy\n"},
        {{{"P-core", 0, 8, 1.52, true, 1}, {"E-core", 8, 16, 1.13, false, 1}, {"LP E-core", 24, 2, 1, false, 1}},
         "Machine    P-core     8 fast CPUs at 1.52x   0-7    ########--------  50 % busy\n"
         "           E-core     16 slow CPUs at 1.13x  8-23   ########--------  50 % busy\n"
         "           LP E-core  2 slow CPUs at 1.00x   24-25  ########--------  50 % busy\n"},
        {{{"P-core", 0, 16, 1.6, true, 2}, {"E-core", 16, 8, 1, false, 1}},
         "Machine    P-core  16 fast CPUs at 1.60x  0-15 on 8 cores  ####----  50 % busy\n"
         "           E-core  8 slow CPUs at 1.00x   16-23            ####----  50 % busy\n"},
        {{{"all", 0, 2, 1, true, 2}}, "Machine    2 CPUs alike  0-1 on 1 core  ####----  50 % busy\n"},
        {{{"all", 0, 8, 1, true, 1}}, "Machine    8 CPUs alike  0-7  ########--------  50 % busy\n"},
        {{{"all", 0, 1, 1, true, 1}}, "Machine    1 CPU  0  ########--------  50 % busy\n"},
        {{{"fast", 0, 2, 1.1, true, 1}, {"slow", 2, 2, 1, true, 1}},
         "Machine    2 CPUs at 1.10x  0-1  ########--------  50 % busy\n"
         "           2 CPUs at 1.00x  2-3  ########--------  50 % busy\n"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        print_types(rows[i].types, ASYM_LENGTH(rows[i].types), output, sizeof output);
        assert_has(output, rows[i].said);
        assert_has(output, "\nSteering   no thread now\n");
    }
}

TEST(hostile_names_are_escaped_and_do_not_fill_the_screen)
{
    size_t lines = 0;
    assert_int_equal(run_with(FAKE_SERVICE_HOSTILE, "status"), 0);
    assert_tame(output, 80);
    assert_has(output, "\\x1b[2J\\x0d\\x0aevil\\\\");
    assert_has(output, "and 997 more with 1993 threads: asymctl top\n");
    for (const char *at = output; (at = strchr(at, '\n')); at++)
        lines++;
    assert_true(lines <= 24);
    assert_int_equal(run_with(FAKE_SERVICE_HOSTILE, "status --json"), 0);
    ASYM_AUTO_JSON json_t *json = json_loads(output, 0, NULL);
    assert_non_null(json);
    assert_int_equal(json_array_size(json_object_get(json, "applications")), 1004);
}

TEST(status_as_json_has_all_that_asymd_said)
{
    assert_int_equal(run_with(FAKE_SERVICE_PLAIN, "status --json"), 0);
    ASYM_AUTO_JSON json_t *json = json_loads(output, 0, NULL);
    const char *schema, *policy, *reason, *lack, *comm;
    json_int_t start, changes;
    double busy;
    int paused;
    assert_non_null(json);
    assert_int_equal(json_unpack(json, "{s:s, s:s, s:s, s:[s], s:I, s:I, s:b, s:[{s:F}], s:[{s:s}]}", "schema", &schema,
                                 "policy", &policy, "policy_reason", &reason, "lacks", &lack, "start_us", &start,
                                 "changes", &changes, "paused", &paused, "cpus", "busy", &busy, "applications", "comm",
                                 &comm),
                     0);
    assert_string_equal(schema, "asymctl.status/1");
    assert_string_equal(policy, "pa");
    assert_string_equal(lack, "asymd cannot count instructions: this machine has no PMU");
    assert_true(start == 1780000000000000 && changes == 1204 && !paused && busy == 0.525);
    assert_string_equal(comm, "stockfish");
}

TEST(why_as_json_has_the_same)
{
    const char *first, *name, *value;
    json_int_t id;
    assert_int_equal(run_with(FAKE_SERVICE_PLAIN, "why 4711 --json"), 0);
    ASYM_AUTO_JSON json_t *json = json_loads(output, 0, NULL);
    assert_non_null(json);
    assert_int_equal(json_unpack(json, "{s:[{s:I, s:[s], s:[{s:s, s:s}]}]}", "explanations", "id", &id, "sentences",
                                 &first, "evidence", "name", &name, "value", &value),
                     0);
    assert_int_equal(id, 4711);
    assert_string_equal(value, "7.9");
    json_t *one = json_array_get(json_object_get(json, "explanations"), 0);
    assert_int_equal(json_array_size(json_object_get(one, "decisions")), 10);
    json_t *waits = json_object_get(one, "waits");
    assert_int_equal(json_integer_value(json_object_get(waits, "measured_us")), 8000000);
    assert_string_equal(json_string_value(json_array_get(json_object_get(waits, "sentences"), 0)),
                        "render (12) waited 4.5 of 8.0 s for game\\x1b[31mlogic (13).");
    assert_int_equal(json_array_size(json_object_get(waits, "threads")), 1);
}

TEST(policy_prints_and_switches)
{
    fake_service_start(FAKE_SERVICE_PLAIN);
    assert_int_equal(run("policy"), 0);
    assert_string_equal(output, "pa (auto chose it: the machine has fast and slow CPUs)\n");
    assert_string_equal(fake_service_calls(), "");
    assert_int_equal(run("policy rr"), 0);
    assert_int_equal(run("policy eshmp --permanent"), 0);
    assert_string_equal(fake_service_calls(), "SetPolicy rr 0;SetPolicy eshmp 1;");
    assert_int_equal(run("policy --permanent"), 2);
    assert_int_equal(run("policy --json"), 0);
    assert_has(output, "\"schema\": \"asymctl.policy/1\"");
    fake_service_stop();
}

TEST(changes_reach_the_service_and_are_confirmed)
{
    static const struct {
        const char *arguments, *calls, *said;
    } rows[] = {
        {"pause", "Pause 0;", "steers nothing until 2026-05-28 20:28:10, or until asymctl resume\n"},
        {"pause 90s", "Pause 90;", "steers nothing until 2026-05-28 20:28:10, or until asymctl resume\n"},
        {"pause 10min", "Pause 600;", "asymd has restored all masks and nice values"},
        {"pause 1h30min", "Pause 5400;", "asymd has restored all masks and nice values"},
        {"pause '2 days'", "Pause 172800;", "asymd has restored all masks and nice values"},
        {"pause 1ms", "Pause 1;", "asymd has restored all masks and nice values"},
        {"resume", "Resume;", "asymd steers again\n"},
        {"release 12", "SetProgram 12 ignore;", "asymd leaves process 12 alone until it ends\n"},
        {"adopt 12", "SetProgram 12 auto;", "the rules of the configuration decide about process 12 again"},
        {"set 12 fast", "SetProgram 12 fast;", "asymd keeps process 12 on fast CPUs until it ends\n"},
        {"set 12 fast --permanent", "SetRule 12 fast;",
         "the rule fast for the program of process 12 stands in /etc/asymd/rules.d/50-set-x.conf\n"},
        {"set 12 slow --permanent", "SetRule 12 slow;",
         "50-set-x.conf; but the rule \"games\" matches it, too, and comes first\n"},
        {"set 12 auto --permanent", "SetRule 12 auto;", "the rule for the program of process 12 is gone: /etc/"},
        {"set 12 slow", "SetProgram 12 slow;", "asymd keeps process 12 on slow CPUs until it ends\n"},
        {"set 12 ignore", "SetProgram 12 ignore;", "asymd leaves process 12 alone until it ends\n"},
        {"set 12 steer", "SetProgram 12 steer;", "asymd steers process 12, whatever"},
        {"set 12 auto", "SetProgram 12 auto;", "about process 12 again, whatever affinity it has now\n"},
        {"reload", "Reload;", "asymd has read its configuration again: policy "},
        {"reload", "Reload;", "; rules of asymctl set for 3 processes still hold; it is still paused\n"},
        {"resume --json", "Resume;", "\"schema\": \"asymctl.change/1\""},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        fake_service_start(FAKE_SERVICE_PAUSED);
        const int r = run(rows[i].arguments);
        if (r != 0 || !strstr(output, rows[i].said) || strcmp(fake_service_calls(), rows[i].calls) != 0)
            fail_msg("asymctl %s ended in %d, called %s and said: %s", rows[i].arguments, r, fake_service_calls(),
                     output);
        fake_service_stop();
    }
}

/* The service may run with other files and options than the installed ones: --config, --slow, --set. */
TEST(verbs_about_the_configuration_ask_the_service)
{
    static const struct {
        const char *arguments, *said;
    } rows[] = {
        {"rules", "of the service              slow\n    match_comm = spinner\n    /etc/of-the-service.conf:7\n"},
        {"rules", "/usr/games.conf:9 (library)\n"},
        {"rules test spinner", "Rule \"of the service\" applies: slow; /etc/of-the-service.conf:7"},
        {"rules 'of the library'", "of the library              steer, nice 3\n"},
        {"rules game", "Rule \"of the library\" applies: steer, nice 3;"},
        {"check", "rr: this machine gives every signal that it needs"},
        {"run --slow grep Cpus_allowed_list /proc/self/status", "Cpus_allowed_list:"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        expect(FAKE_SERVICE_PLAIN, rows[i].arguments, 0);
        assert_has(output, rows[i].said);
        assert_null(strstr(output, "no asymd answers"));
        if (i < 3) {
            run(rows[i].arguments);
            assert_has(output, "asymctl: no asymd answers: asymctl uses the configuration in /");
        }
    }
}

#define DECIDED "20:26:40.250    4720 stock\\x1bfish     4->-   release (idle for 5 s)\n"
#define OTHER   "20:26:40.250    4721 gzip              4->-   release (idle for 5 s)\n"

#define MISSING "asymctl: 2 decisions are missing here: asymd does not remember them\n"

TEST(watch_prints_decisions_until_asymd_ends)
{
    assert_int_equal(run_with(FAKE_SERVICE_ENDS, "watch"), 5);
    assert_has(output, DECIDED OTHER "2 decisions\n");
    assert_has(output, "asymctl: asymd has ended\n");
    assert_int_equal(run_with(FAKE_SERVICE_ENDS, "watch 4721"), 5);
    assert_null(strstr(output, "fish"));
    assert_has(output, OTHER "1 decision\n");
}

TEST(watch_has_headings_on_a_terminal_only)
{
    static const char wanted[] = "TIME             TID THREAD            CPU    WHAT (WHY)\r\n"
                                 "20:26:40.250    4720 stock\\x1bfish     4->-   release (idle for 5 s)\r\n";
    fake_service_start(FAKE_SERVICE_ENDS);
    assert_int_equal(shell_run_in_terminal("watch", output, sizeof output), 5);
    fake_service_stop();
    assert_has(output, wanted);
    assert_int_equal(run_with(FAKE_SERVICE_ENDS, "watch"), 5);
    assert_null(strstr(output, "TIME"));
}

/* It does not wait for the answer of an asymd that leaves a question unread. */
TEST(ctrl_c_ends_watch_with_the_count)
{
    static const struct {
        enum fake_service_kind kind;
        const char *text;
    } rows[] = {{FAKE_SERVICE_PLAIN, DECIDED OTHER "2 decisions\n"},
                {FAKE_SERVICE_STUCK, DECIDED OTHER "2 decisions\n"},
                {FAKE_SERVICE_BEHIND, MISSING DECIDED OTHER "2 decisions\n"}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        fake_service_start(rows[i].kind);
        assert_int_equal(
            run("watch >\"${ASYMD_BUS%/bus}/out\" 2>&1 & p=$!; i=0; while [ $i -lt 1000 ] && ! grep -q gzip "
                "\"${ASYMD_BUS%/bus}/out\"; do sleep 0.01; i=$((i+1)); done; kill -TERM $p; wait $p; s=$?; cat "
                "\"${ASYMD_BUS%/bus}/out\"; (exit $s)"),
            0);
        assert_string_equal(output, rows[i].text);
        fake_service_stop();
    }
}

TEST(watch_as_json_prints_an_object_a_line)
{
    const char *comm, *what;
    int to;
    assert_int_equal(run_with(FAKE_SERVICE_ENDS, "watch --json"), 5);
    const char *second = strchr(output, '\n') + 1;
    assert_int_equal(second[0], '{');
    assert_has(second, "\n2 decisions\n");
    ASYM_AUTO_JSON json_t *json = json_loads(output, JSON_DISABLE_EOF_CHECK, NULL);
    assert_int_equal(json_unpack(json, "{s:s, s:s, s:i}", "comm", &comm, "what", &what, "to", &to), 0);
    assert_string_equal(comm, "stock\\x1bfish");
    assert_string_equal(what, "release");
    assert_int_equal(to, -1);
}

#define TRACE "record --trace \"${ASYMD_BUS%/bus}/t.json\" --time=300ms --pid=$$ --config=/dev/null"

TEST(a_trace_has_the_decisions_of_a_running_asymd)
{
    assert_int_equal(run_with(FAKE_SERVICE_PLAIN, TRACE " && cat \"${ASYMD_BUS%/bus}/t.json\""), 0);
    assert_has(output, " and 2 decisions of asymd in ");
    assert_has(output, "\"name\":\"release stock\\\\x1bfish\",\"cat\":\"asymd\"");
    assert_has(output, "\"why\":\"idle for 5 s\"");
    /* The trace goes on without them. */
    assert_int_equal(run_with(FAKE_SERVICE_ENDS, TRACE), 0);
    assert_has(output, "asymctl: the trace has no decisions of asymd after ");
    assert_has(output, " s: asymd has ended\n");
    assert_has(output, " and 2 decisions of asymd in ");
    setenv("ASYMD_BUS", "/nonexistent/bus", 1);
    assert_int_equal(run("record --trace /tmp/asym-no-service.$$ --time=300ms --pid=$$ --config=/dev/null; s=$?; rm "
                         "/tmp/asym-no-service.$$; (exit $s)"),
                     0);
    unsetenv("ASYMD_BUS");
    assert_has(output, " planned decision");
    assert_null(strstr(output, "decisions of asymd"));
}

#define TRACE_JSON "record --trace \"${ASYMD_BUS%/bus}/t.json\" --json --time=300ms --pid=$$ --config=/dev/null"

/* Traces beside a service of that kind. Returns the notes; ret_json owns them. */
static json_t *trace_as_json(enum fake_service_kind kind, json_t **ret_json)
{
    const char *schema, *file, *whose;
    json_int_t duration, slices, decisions;
    json_t *earlier, *notes;
    assert_int_equal(run_with(kind, TRACE_JSON), 0);
    /* The line of stderr comes before the report. */
    assert_has(output, "{");
    *ret_json = json_loads(strchr(output, '{'), 0, NULL);
    assert_int_equal(json_unpack(*ret_json, "{s:s, s:s, s:o, s:I, s:I, s:I, s:s, s:o !}", "schema", &schema, "file",
                                 &file, "earlier_file", &earlier, "duration_us", &duration, "slices", &slices,
                                 "decisions", &decisions, "decisions_of", &whose, "notes", &notes),
                     0);
    assert_string_equal(schema, "asymctl.trace/1");
    assert_has(file, "/t.json");
    assert_true(json_is_null(earlier));
    assert_true(duration >= 300000 && slices >= 0);
    assert_int_equal(decisions, 2);
    assert_string_equal(whose, "asymd");
    return notes;
}

TEST(a_trace_reports_the_same_as_json)
{
    ASYM_AUTO_JSON json_t *json = NULL;
    assert_int_equal(json_array_size(trace_as_json(FAKE_SERVICE_PLAIN, &json)), 0);
}

/* A script that reads no stderr must not take such a trace for a whole one. */
TEST(a_trace_notes_in_json_which_decisions_it_lacks)
{
    ASYM_AUTO_JSON json_t *json = NULL;
    json_t *notes = trace_as_json(FAKE_SERVICE_ENDS, &json);
    assert_int_equal(json_array_size(notes), 1);
    const char *note = json_string_value(json_array_get(notes, 0));
    assert_has(note, "the trace has no decisions of asymd after ");
    assert_has(note, " s: asymd has ended");
    json_decref(json);
    notes = trace_as_json(FAKE_SERVICE_BEHIND, &json);
    assert_int_equal(json_array_size(notes), 1);
    note = json_string_value(json_array_get(notes, 0));
    assert_string_equal(note, "2 decisions are missing in the trace: a shorter [asymd] interval finds more");
}

/* The objects have what the lines of the output have. */
TEST(metrics_as_json_have_the_names_of_the_text)
{
    static const char *const wanted[] = {
        "{\"name\":\"asymd_changes\",\"type\":\"counter\",\"unit\":null,"
        "\"help\":\"Changes to threads that the kernel has accepted.\","
        "\"samples\":[{\"name\":\"asymd_changes_total\",\"labels\":{},\"value\":1204}]}",
        "{\"name\":\"asymd_cpu_seconds\",\"type\":\"counter\",\"unit\":\"seconds\",\"help\":\"CPU time of asymd.\","
        "\"samples\":[{\"name\":\"asymd_cpu_seconds_total\",\"labels\":{},\"value\":1.5}]}",
        "{\"name\":\"asymd_threads_steered\",\"type\":\"gauge\",\"unit\":null,\"help\":\"Threads that asymd steers "
        "now.\","
        "\"samples\":[{\"name\":\"asymd_threads_steered\",\"labels\":{},\"value\":12}]}",
        "{\"name\":\"asymd_from_the_future\",\"type\":\"counter\",\"unit\":null,\"help\":null,"
        "\"samples\":[{\"name\":\"asymd_from_the_future_total\",\"labels\":{},\"value\":1.84467440737096e19}]}",
    };
    assert_int_equal(run_with(FAKE_SERVICE_PLAIN, "metrics --json"), 0);
    ASYM_AUTO_JSON json_t *json = json_loads(output, 0, NULL);
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json, "schema")), "asymctl.metrics/1");
    json_t *families = json_object_get(json, "families");
    assert_int_equal(json_array_size(families), ASYM_LENGTH(wanted));
    for (size_t i = 0; i < ASYM_LENGTH(wanted); i++) {
        ASYM_AUTO_FREE char *said = json_dumps(json_array_get(families, i), JSON_COMPACT | JSON_REAL_PRECISION(15));
        assert_string_equal(said, wanted[i]);
    }
}

TEST(labels_as_json_are_objects)
{
    static const struct {
        const char *name, *labels;
    } rows[] = {
        {"a", "{}"},
        {"a{kind=\"steer\",outcome=\"hands_off\"}", "{\"kind\":\"steer\",\"outcome\":\"hands_off\"}"},
        {"a{x=\"\",y=\"b=\\\"c,d}\\\"\"}", "{\"x\":\"\",\"y\":\"b=\\\"c,d}\\\"\"}"},
        {"a{x=\"1\\n2\"}", "{\"x\":\"1\\n2\"}"},
        {"a{x=\"1\\\\\"}", "{\"x\":\"1\\\\\"}"},
        {"a{x=\"\xc3\xa4\"}", "{\"x\":\"\xc3\xa4\"}"},
        {"a{x=\"\xff\"}", "{\"x\":\"\\\\xff\"}"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const struct asym_metric metric = {.name = rows[i].name};
        ASYM_AUTO_JSON json_t *families = asym_openmetrics_json(&metric, 1);
        json_t *sample = json_array_get(json_object_get(json_array_get(families, 0), "samples"), 0);
        ASYM_AUTO_FREE char *said = json_dumps(json_object_get(sample, "labels"), JSON_COMPACT);
        assert_string_equal(said, rows[i].labels);
    }
}

/* JSON cannot express what is not finite. */
TEST(a_value_as_json_is_a_number_or_null)
{
    static const struct {
        double value;
        const char *json;
    } rows[] = {{7, "7"}, {0.1, "0.1"}, {-3, "-3.0"}, {INFINITY, "null"}, {NAN, "null"}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ASYM_AUTO_JSON json_t *list = json_array();
        asym_metric_add(&list, ASYM_METRIC_PAUSED, NULL, rows[i].value);
        ASYM_AUTO_FREE char *said = json_dumps(json_object_get(json_array_get(list, 0), "value"),
                                               JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
        assert_string_equal(said, rows[i].json);
    }
}

TEST(samples_of_a_family_stand_together)
{
    size_t n;
    FILE *out = fmemopen(output, sizeof output, "w");
    json_t *list = json_pack("[{s:s, s:s, s:i}, {s:s, s:s, s:i}]", "name", "odd", "kind", "gauge", "value", 3, "name",
                             "odd_b_total", "kind", "counter", "value", 4);
    asym_metric_add(&list, ASYM_METRIC_PAUSED, NULL, 0);
    asym_metric_add(&list, ASYM_METRIC_ACTIONS, "{kind=\"steer\"}", 1);
    json_array_append_new(list, json_pack("{s:s, s:s, s:i}", "name", "odd{a=\"b\"}", "kind", "gauge", "value", 5));
    asym_metric_add(&list, ASYM_METRIC_CYCLES, NULL, 6);
    asym_metric_add(&list, ASYM_METRIC_ACTIONS, "{kind=\"a\\\"b\",x=\"\"}", 2);
    ASYM_AUTO_JSON json_t *report = json_pack("{s:o}", "counters", list);
    ASYM_AUTO_FREE struct asym_metric *metrics = asym_metrics_read(report, &n);
    assert_int_equal(n, 7);
    assert_int_equal(asym_openmetrics_print(metrics, n, true, out), 0);
    fclose(out);
    assert_string_equal(output, "# HELP asymd_cycles Samples of the threads that asymd has taken and enforced.\n"
                                "# TYPE asymd_cycles counter\n"
                                "asymd_cycles_total 6\n"
                                "# HELP asymd_actions Changes to threads that asymd has tried, by kind and outcome.\n"
                                "# TYPE asymd_actions counter\n"
                                "asymd_actions_total{kind=\"steer\"} 1\n"
                                "asymd_actions_total{kind=\"a\\\"b\",x=\"\"} 2\n"
                                "# HELP asymd_paused 1 while asymd is paused, else 0.\n"
                                "# TYPE asymd_paused gauge\n"
                                "asymd_paused 0\n"
                                "# TYPE asymd_odd gauge\n"
                                "asymd_odd 3\n"
                                "asymd_odd{a=\"b\"} 5\n"
                                "# TYPE asymd_odd_b counter\n"
                                "asymd_odd_b_total 4\n"
                                "# EOF\n");
    ASYM_AUTO_JSON json_t *families = asym_openmetrics_json(metrics, n);
    assert_int_equal(json_array_size(families), 5);
    assert_int_equal(json_array_size(json_object_get(json_array_get(families, 1), "samples")), 2);
    assert_int_equal(json_array_size(json_object_get(json_array_get(families, 2), "samples")), 1);
}

TEST(each_family_has_a_unit_that_ends_its_name)
{
    const struct asym_metric_row *row;
    for (size_t i = 0; (row = asym_metric_row_at(i)); i++) {
        const size_t n = strlen(row->name), m = strlen(row->unit);
        assert_true(strcmp(row->kind, "counter") == 0 || strcmp(row->kind, "gauge") == 0);
        const char *last = strrchr(row->name, '_') ? strrchr(row->name, '_') + 1 : "";
        assert_int_equal(m > 0, strcmp(last, "seconds") == 0 || strcmp(last, "bytes") == 0);
        assert_true(m == 0 || (n > m + 1 && row->name[n - m - 1] == '_' && strcmp(row->name + n - m, row->unit) == 0));
        assert_null(strpbrk(row->help, "\\\n"));
        assert_true(row->help[0] != '\0' && row->help[strlen(row->help) - 1] == '.');
    }
}

/* A column without a value is not there at all. */
TEST(tables_cut_columns_then_drop_them_and_name_those)
{
    static const struct asym_report_table_column columns[] = {{.heading = "NAME", .cut = 12},
                                                              {.heading = "N", .right = true, .drop = 1},
                                                              {.heading = "EMPTY", .drop = 1},
                                                              {.heading = "\xc3\xa9", .drop = 2}};
    static const char *const cells[] = {"a name that is thirty columns.", "7", "-", "word"};
    static const struct {
        size_t columns;
        const char *lost, *text;
    } rows[] = {
        {41, "", "NAME                            N  \xc3\xa9\na name that is thirty columns.  7  word\n"},
        {30, "", "NAME                   N  \xc3\xa9\na name that is thi...  7  word\n"},
        {21, "", "NAME          N  \xc3\xa9\na name th...  7  word\n"},
        {20, "\xc3\xa9", "NAME               N\na name that is...  7\n"},
        {12, "\xc3\xa9, N", "NAME\na name th...\n"},
    };
    ASYM_CLEANUP(asym_report_table_done)
    struct asym_report_table table = {.columns = columns, .n_columns = ASYM_LENGTH(columns)};
    asym_report_table_row(&table, cells);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        FILE *out = fmemopen(output, sizeof output, "w");
        const struct asym_terminal terminal = {.out = out, .columns = rows[i].columns};
        assert_int_equal(asym_report_table_print(&table, &terminal, 0, 0, true), 0);
        fclose(out);
        assert_string_equal(output, rows[i].text);
        assert_string_equal(table.lost, rows[i].lost);
    }
}

/* Runs asymctl metrics --table as if the terminal had so many columns. */
static void print_table(unsigned columns)
{
    fake_service_start(FAKE_SERVICE_PLAIN);
    assert_int_equal(shell_run(output, sizeof output, "COLUMNS=%u LC_ALL=C '%s/daemon/asymctl' metrics --table 2>&1",
                               columns, ASYM_TEST_BIN),
                     0);
    fake_service_stop();
}

/* In a terminal that is too narrow the verb says how wide it has to be; in one as wide as that, the column is there. */
TEST(the_table_says_which_width_its_last_column_needs)
{
    static const char notice[] = "asymctl: the column MEANING needs a terminal of ";
    unsigned columns = 0, given = 0;
    print_table(60);
    assert_has(output, notice);
    assert_int_equal(sscanf(strstr(output, notice) + strlen(notice), "%u columns, or COLUMNS=%u", &columns, &given), 2);
    assert_int_equal(columns, given);
    assert_true(columns > 60);
    for (unsigned less = 0; less < 2; less++) {
        print_table(columns - less);
        assert_int_equal(strstr(output, notice) != NULL, less);
        assert_int_equal(strstr(output, "VALUE  MEANING\n") != NULL, !less);
    }
}

TEST_MAIN
