/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * polkitd itself decides whether an ordinary user may change what a running asymd does. It runs on a bus of the test, with
 * asymd's policy file alone and with rules of the test. Needs root and the package polkitd.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

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
    file_write(hidden, "%s", text);
    /* polkitd reads a file of rules at once: it must not find half of one. */
    assert_int_equal(rename(hidden, path), 0);
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
    static char text[8192];
    assert_true(file_read(ASYM_TEST_SOURCE "/dbus/org.asymd.policy", text, sizeof text) > 0);
    write_file("actions/org.asymd.policy", text);
    return 0;
}

static int set_up_directories(void **state)
{
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
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

/* polkitd reads a change of the rules by itself, a moment later. */
static void write_rule(const char *rule)
{
    write_file("rules/" RULE, rule);
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

static int set_up(void **state)
{
    asym_bus_daemon_prepare();
    if (asym_service_set_up(state) < 0)
        return -1;
    asym_bus_daemon_start();
    char path[128];
    snprintf(path, sizeof path, "%s/rules/" RULE, dir);
    assert_true(unlink(path) == 0 || errno == ENOENT);
    start_polkitd();
    load = asym_service_spin("3");
    asymd = asym_service_start(load, (const char *const[]){"--policy=pa", NULL});
    ASYM_CLEANUP(sd_bus_close_unrefp) sd_bus *bus = asym_bus_daemon_await_asymd();
    await_polkitd(bus);
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
    ASYM_AUTO_FREE char *policy = NULL;
    ASYM_CLEANUP(sd_bus_close_unrefp) sd_bus *bus = asym_bus_daemon_direct(asym_service_dir());
    assert_true(
        sd_bus_get_property_string(bus, NULL, "/org/asymd/Manager", "org.asymd.Manager", "Policy", NULL, &policy) >= 0);
    assert_string_equal(policy, wanted);
}

TEST_WITH(without_a_rule_an_ordinary_user_is_refused, set_up, tear_down)
{
    char error[128];
    assert_refused("no polkit agent runs in this session");
    assert_refused("sudo asymctl");
    assert_policy("pa");
    /* Root needs no permission. */
    sd_bus *bus = asym_bus_daemon_connect();
    assert_int_equal(asym_bus_daemon_call(bus, "SetPolicy", error, "sb", "rr", 0), 0);
    sd_bus_close_unref(bus);
    assert_policy("rr");
}

/* A call that does not let polkit ask gets the D-Bus error that says so. */
static void set_policy_without_asking(void *arg)
{
    char error[128];
    sd_bus *bus = asym_bus_daemon_connect();
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
