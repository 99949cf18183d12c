/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * polkitd itself decides whether an ordinary user may change what a running asymd does. It runs on a bus of the test, with
 * asymd's policy file alone and with rules of the test. pkttyagent and PAM take the password of root, which is the test's own in
 * its namespace. Needs root and the package polkitd.
 */
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/macro.h"
#include "support/bus-daemon.h"
#include "support/live.h"
#include "support/namespace.h"
#include "support/service.h"
#include "support/stranger.h"
#include "support/test.h"

#define POLKITD "/usr/lib/polkit-1/polkitd"
#define RULE    "50-asymd.rules"

#define ALLOW                                                                                                          \
    "polkit.addRule(function(action, subject) {\n"                                                                     \
    "    if (action.id == 'org.asymd.manage' && subject.user == 'nobody')\n"                                           \
    "        return polkit.Result.YES;\n"                                                                              \
    "});\n"
#define DENY "polkit.addRule(function(action, subject) { return polkit.Result.NO; });\n"

/* The passwords of the namespace: root's is PASSWORD. */
#define SHADOW   "/etc/shadow"
#define PASSWORD "correct horse"
#define HASH     "$6$asymd$eNj2TEnNfAhamuR7JXaEvwNoMyCR7m2GOdzIb4fIpN2nTjlqpYoO/hQsqQ75o5tIcdpdZLGGnxymX9UlXIQHO."

/*
 * The directories that polkitd reads, and the one with the socket of the system bus. In the test's namespace each shows a directory
 * of the test. No session of logind is in /run then.
 */
static const struct {
    const char *name, *path;
} covers[] = {
    {"run", "/run"},
    {"rules", "/etc/polkit-1/rules.d"},
    {"vendor-rules", "/usr/share/polkit-1/rules.d"},
    {"actions", "/usr/share/polkit-1/actions"},
};

static char dir[64];
static pid_t load, asymd, polkitd;

static void write_file(const char *name, const char *text)
{
    char path[128], hidden[160];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    snprintf(hidden, sizeof hidden, "%s~", path);
    FILE *f = fopen(hidden, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    /* polkitd reads a file of rules at once: it must not find half of one. */
    assert_int_equal(rename(hidden, path), 0);
}

static void copy_actions(void)
{
    static char text[8192];
    FILE *f = fopen(ASYM_TEST_SOURCE "/dbus/org.asymd.policy", "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    write_file("actions/org.asymd.policy", text);
}

/* PAM refuses a user without a line in this file. */
static int cover_passwords(void)
{
    char path[96];
    snprintf(path, sizeof path, "%s/shadow", dir);
    write_file("shadow", "root:" HASH ":20000:0:99999:7:::\nnobody:*:20000:0:99999:7:::\n");
    return chmod(path, 0600) < 0 ? -1 : asym_namespace_cover(path, SHADOW);
}

/* polkitd runs as a user of its own, and reads these directories as this user. */
static int cover_directories(void)
{
    snprintf(dir, sizeof dir, "/tmp/asymd-polkit-XXXXXX");
    if (!mkdtemp(dir) || chmod(dir, 0755) < 0 || asym_namespace_enter() < 0)
        return -1;
    for (size_t i = 0; i < ASYM_LENGTH(covers); i++) {
        char source[96];
        snprintf(source, sizeof source, "%s/%s", dir, covers[i].name);
        if (mkdir(source, 0755) < 0 || asym_namespace_cover(source, covers[i].path) < 0)
            return -1;
    }
    copy_actions();
    return mkdir("/run/dbus", 0755) < 0 ? -1 : cover_passwords();
}

static int set_up_directories(void **state)
{
    (void)state;
    umask(022);
    if (access(POLKITD, X_OK) < 0) {
        print_error(POLKITD ": %s: install the package polkitd\n", strerror(errno));
        return -1;
    }
    return cover_directories();
}

static int tear_down_directories(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

/* polkitd reads a change of the rules by itself, a moment later. */
static void write_rule(const char *rule)
{
    write_file("rules/" RULE, rule);
}

static void forget_rule(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/rules/" RULE, dir);
    assert_true(unlink(path) == 0 || errno == ENOENT);
}

static void start_polkitd(void)
{
    const char *const argv[] = {POLKITD, "--no-debug", NULL};
    const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    polkitd = asym_live_start(argv, nothing);
    close(nothing);
}

static void await_polkitd(sd_bus *bus)
{
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; asym_live_now() < end; asym_live_sleep(0.05))
        if (sd_bus_call_method(bus, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                               "GetNameOwner", NULL, NULL, "s", "org.freedesktop.PolicyKit1") >= 0)
            return;
    fail_msg("polkitd has no name on the bus");
}

/* PAM's helper of polkit has the privileges of root, so it does not heed DBUS_SYSTEM_BUS_ADDRESS. */
static void link_bus(void)
{
    static const char socket[] = "/run/dbus/system_bus_socket";
    assert_true(unlink(socket) == 0 || errno == ENOENT);
    assert_int_equal(symlink(getenv("DBUS_SYSTEM_BUS_ADDRESS") + strlen("unix:path="), socket), 0);
}

static int set_up(void **state)
{
    asym_bus_daemon_prepare();
    link_bus();
    if (asym_service_set_up(state) < 0)
        return -1;
    asym_bus_daemon_start();
    forget_rule();
    start_polkitd();
    load = asym_service_spin("3");
    asymd = asym_service_start(load, (const char *const[]){"--policy=pa", NULL});
    sd_bus *bus = asym_bus_daemon_await_asymd();
    await_polkitd(bus);
    sd_bus_close_unref(bus);
    return 0;
}

/* polkitd ends with its bus, if it still runs. */
static int tear_down(void **state)
{
    asym_live_end(asymd, SIGTERM);
    asym_live_end(load, SIGKILL);
    asym_bus_daemon_stop();
    if (polkitd > 0)
        asym_live_wait(polkitd);
    return asym_service_tear_down(state);
}

/* Runs asymctl policy NAME as an ordinary user. Returns its exit status; text gets its output, cut to size. */
static int set_policy(const char *name, char *text, size_t size)
{
    const char *const argv[] = {"daemon/asymctl", "policy", name, NULL};
    int out[2];
    size_t n = 0;
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    const pid_t pid = asym_stranger_exec(argv, out[1]);
    close(out[1]);
    for (ssize_t got; n < size - 1 && (got = read(out[0], text + n, size - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = '\0';
    close(out[0]);
    return asym_live_wait(pid);
}

static void assert_refused(const char *why)
{
    char text[1024];
    const int status = set_policy("rr", text, sizeof text);
    if (status != 4 || !strstr(text, why))
        fail_msg("asymctl ends with %d, and says: %s", status, text);
}

/* Sets the policy until asymctl ends with this status: not too often, because a user has a share of asymd's CPU time. */
static void await_set(const char *name, int wanted)
{
    char text[1024] = "";
    int status = -1;
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; asym_live_now() < end; asym_live_sleep(0.3)) {
        status = set_policy(name, text, sizeof text);
        if (status == wanted)
            return;
    }
    fail_msg("asymctl ends with %d, and says: %s", status, text);
}

static void assert_policy(const char *wanted)
{
    char *policy = NULL;
    sd_bus *bus = asym_bus_daemon_direct(asym_service_dir());
    assert_true(
        sd_bus_get_property_string(bus, NULL, "/org/asymd/Manager", "org.asymd.Manager", "Policy", NULL, &policy) >= 0);
    assert_string_equal(policy, wanted);
    free(policy);
    sd_bus_close_unref(bus);
}

/* The first line of a file; NULL: it is empty. */
static char *read_line(const char *path, char *line, int size)
{
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *first = fgets(line, size, f);
    fclose(f);
    return first;
}

TEST_WITH(without_a_rule_an_ordinary_user_is_refused, set_up, tear_down)
{
    char error[128];
    assert_refused("no polkit agent runs in this session");
    assert_policy("pa");
    /* Root needs no permission. */
    sd_bus *bus = asym_bus_daemon_connect();
    assert_int_equal(asym_bus_daemon_call(bus, "SetPolicy", error, "sb", "rr", 0), 0);
    sd_bus_close_unref(bus);
    assert_policy("rr");
}

/* Runs asymctl on a terminal of its own, where its output is lost. */
static void set_policy_on_terminal(void *arg)
{
    char *const argv[] = {(char[]){"asymctl"}, (char[]){"policy"}, (char[]){"rr"}, NULL};
    int terminal, status;
    setenv("PATH", dir, 1);
    const pid_t pid = forkpty(&terminal, NULL, NULL, NULL);
    if (pid == 0) {
        fexecve(*(const int *)arg, argv, environ);
        _exit(127);
    }
    _exit(pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ? 127 : WEXITSTATUS(status));
}

/* This agent writes down how it was started, and does not register. */
TEST_WITH(on_a_terminal_asymctl_starts_an_agent_before_it_asks, set_up, tear_down)
{
    char path[128], said[128] = "", text[192];
    snprintf(path, sizeof path, "%s/said", dir);
    snprintf(text, sizeof text, "#!/bin/sh\necho \"$@\" > %s\n", path);
    write_file("pkttyagent", text);
    write_file("said", "");
    snprintf(text, sizeof text, "%s/pkttyagent", dir);
    assert_int_equal(chmod(text, 0755), 0);
    assert_int_equal(chmod(path, 0666), 0);
    assert_refused("sudo asymctl");
    assert_null(read_line(path, said, sizeof said));
    int program = open(ASYM_TEST_BIN "/daemon/asymctl", O_PATH | O_CLOEXEC);
    assert_true(program >= 0);
    assert_int_equal(asym_live_wait(asym_stranger_start(set_policy_on_terminal, &program)), 4);
    close(program);
    assert_non_null(read_line(path, said, sizeof said));
    assert_non_null(strstr(said, "--process "));
    assert_policy("pa");
}

/* A user who types. The file descriptors are of asymctl and of a pipe for what was on the terminal. */
struct typist {
    int program, seen;
    const char *password;
};

/* Reads from the terminal until text has come, or until its other side has ended: text NULL. Returns whether that happened. */
static bool read_terminal(int terminal, char *seen, size_t size, const char *text)
{
    size_t n = strlen(seen);
    for (ssize_t got; n < size - 1 && (!text || !strstr(seen, text)); seen[n += (size_t)got] = '\0')
        if ((got = read(terminal, seen + n, size - 1 - n)) <= 0)
            return !text;
    return text != NULL;
}

/*
 * pkttyagent first asks, then turns the echo off (TCSAFLUSH). The kernel then discards what was typed before: a password that is
 * typed between the two is lost.
 */
static bool await_no_echo(int terminal)
{
    struct termios settings;
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; asym_live_now() < end; asym_live_sleep(0.01))
        if (tcgetattr(terminal, &settings) == 0 && !(settings.c_lflag & ECHO))
            return true;
    return false;
}

/* Runs asymctl on a terminal of its own, and types the password when pkttyagent asks for one. */
static void set_policy_with_password(void *arg)
{
    const struct typist *typist = arg;
    char *const argv[] = {(char[]){"asymctl"}, (char[]){"policy"}, (char[]){"rr"}, NULL};
    char seen[4096] = "";
    int terminal = -1, status;
    const pid_t pid = forkpty(&terminal, NULL, NULL, NULL);
    if (pid == 0) {
        fexecve(typist->program, argv, environ);
        _exit(127);
    }
    const bool typed = pid >= 0 && read_terminal(terminal, seen, sizeof seen, "Password: ") &&
                       await_no_echo(terminal) && dprintf(terminal, "%s\n", typist->password) > 0;
    read_terminal(terminal, seen, sizeof seen, NULL);
    dprintf(typist->seen, "%s%s", seen, typed ? "" : "(nothing typed)");
    _exit(waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ? 127 : WEXITSTATUS(status));
}

/* Returns the exit status of asymctl; seen gets what was on the terminal. */
static int type_password(const char *password, char *seen, size_t size)
{
    struct typist typist = {.password = password};
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    typist.seen = ends[1];
    typist.program = open(ASYM_TEST_BIN "/daemon/asymctl", O_PATH | O_CLOEXEC);
    assert_true(typist.program >= 0);
    const pid_t pid = asym_stranger_start(set_policy_with_password, &typist);
    close(ends[1]);
    seen[0] = '\0';
    read_terminal(ends[0], seen, size, NULL);
    close(ends[0]);
    close(typist.program);
    return asym_live_wait(pid);
}

TEST_WITH(pkttyagent_asks_for_a_password_and_pam_checks_it, set_up, tear_down)
{
    char seen[4096];
    int status = type_password("wrong horse", seen, sizeof seen);
    if (status != 4 || !strstr(seen, "AUTHENTICATION FAILED"))
        fail_msg("after a wrong password asymctl ends with %d: %s", status, seen);
    assert_policy("pa");
    status = type_password(PASSWORD, seen, sizeof seen);
    if (status != 0 || !strstr(seen, "Password: "))
        fail_msg("after the password asymctl ends with %d: %s", status, seen);
    assert_policy("rr");
    assert_null(strstr(seen, PASSWORD));
}

/* A call that does not let polkit ask gets the D-Bus error that says so. */
static void set_policy_without_asking(void *arg)
{
    char error[128];
    sd_bus *bus = asym_bus_daemon_connect();
    (void)arg;
    asym_bus_daemon_call(bus, "SetPolicy", error, "sb", "rr", 0);
    _exit(strcmp(error, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED) != 0);
}

TEST_WITH(a_call_that_forbids_questions_is_told_so, set_up, tear_down)
{
    assert_int_equal(asym_live_wait(asym_stranger_start(set_policy_without_asking, NULL)), 0);
    assert_policy("pa");
}

TEST_WITH(a_rule_allows_a_user_while_it_is_there, set_up, tear_down)
{
    write_rule(ALLOW);
    await_set("rr", 0);
    assert_policy("rr");
    write_rule(DENY);
    await_set("pa", 4);
    assert_refused("polkit has not authorized this user");
    assert_policy("rr");
}

TEST_WITH(without_polkitd_only_root_changes_something, set_up, tear_down)
{
    write_rule(ALLOW);
    await_set("rr", 0);
    asym_live_end(polkitd, SIGKILL);
    polkitd = -1;
    await_set("pa", 4);
    assert_refused("polkit does not answer");
    assert_policy("rr");
    start_polkitd();
    await_set("pa", 0);
    assert_policy("pa");
}

TEST_MAIN_WITH(set_up_directories, tear_down_directories)
