/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The status messages of the service to its manager, and reload: a bad file leaves the running configuration in force. */
#include <signal.h>

#include "support/live.h"
#include "support/notify-socket.h"
#include "support/service.h"
#include "support/test.h"

/* The manager's end of the sd_notify socket. */
static int manager = -1;

static char config[128], config_option[160];

static int set_up(void **state)
{
    asym_service_set_up(state);
    manager = asym_notify_socket_open(asym_service_dir());
    snprintf(config, sizeof config, "%s/asymd.conf", asym_service_dir());
    snprintf(config_option, sizeof config_option, "--config=%s", config);
    return 0;
}

static int tear_down(void **state)
{
    asym_notify_socket_close(manager);
    unsetenv("WATCHDOG_USEC");
    return asym_service_tear_down(state);
}

static pid_t start_asymd(pid_t load)
{
    const char *const more[] = {config_option, NULL};
    return asym_service_start(load, more);
}

static void await_message(const char *wanted, char *ret, size_t size)
{
    asym_notify_socket_await(manager, wanted, ret, size);
}

static int unpinned_threads(pid_t pid, int cpus)
{
    return asym_live_narrow_threads(pid, cpus) == 0;
}

/* unit/asymd/test-service-reload.c has what a reload changes, and test-service-notify.c has a manager that hangs. */
TEST_WITH(each_state_is_sent_to_systemd, set_up, tear_down)
{
    char text[4096];
    setenv("WATCHDOG_USEC", "400000", 1);
    file_write(config, "[asymd]\npolicy = pa\n");
    pid_t load = asym_service_spin("4"), asymd = start_asymd(load);
    await_message("READY=1", text, sizeof text);
    await_message("STATUS=policy pa on ", text, sizeof text);
    await_message(" 4 threads steered", text, sizeof text);
    await_message("WATCHDOG=1", text, sizeof text);
    /* One thread of asymd has moved to a slow CPU; the fork guard's thread may run anywhere. */
    assert_int_equal(asym_live_narrow_threads(asymd, asym_live_cpus()), 1);
    file_write(config, "[asymd]\npolicy = none\n");
    asym_live_signal(asymd, SIGHUP);
    await_message("RELOADING=1\nMONOTONIC_USEC=", text, sizeof text);
    await_message("READY=1", text, sizeof text);
    await_message("STATUS=policy none ", text, sizeof text);
    assert_true(asym_live_await(unpinned_threads, load, asym_live_cpus(), 1, ASYM_LIVE_PATIENCE));
    file_write(config, "[asymd]\npolicy = rr\ninterval = 100\n");
    asym_live_signal(asymd, SIGHUP);
    await_message("READY=1", text, sizeof text);
    await_message("STATUS=policy none ", text, sizeof text);
    assert_non_null(strstr(text, "the new configuration is bad: "));
    assert_non_null(strstr(text, "asymd.conf:3: "));
    asym_live_signal(asymd, SIGTERM);
    await_message("STOPPING=1", text, sizeof text);
    assert_int_equal(asym_live_wait(asymd), 0);
}

static pid_t leave_steered(void)
{
    const char *const more[] = {config_option, NULL};
    file_write(config, "[asymd]\npolicy = pa\n");
    return asym_service_leave_steered(more);
}

/* restore also uses the state directory that the bad file names, if that line is readable. */
TEST_WITH(restore_puts_back_whatever_the_configuration_is_like, set_up, tear_down)
{
    char text[4096];
    int cpus = asym_live_cpus();
    pid_t load = leave_steered();
    file_write(config, "junk\n[asmyd]\nx = 1\n[asymd]\npolcy = pa\nstate_dir = %s\ninterval = never\n",
               asym_service_dir());
    const char *const argv[] = {ASYM_SERVICE, "--restore", config_option, NULL};
    assert_int_equal(asym_live_run(argv, text, sizeof text), 0);
    assert_non_null(strstr(text, "asymd.conf:1: "));
    assert_non_null(strstr(text, "restored 4 threads"));
    assert_true(unpinned_threads(load, cpus));
}

TEST_WITH(a_start_that_fails_puts_back_what_was_left, set_up, tear_down)
{
    static const struct {
        const char *config;
        const char *option;
    } bad[] = {
        {"[asymd]\npolcy = pa\n", "--set=asymd.policy=pa"},
        {"", "--set=asymmetry.slow=0-9999"},
        {"", "--slow=0-1023"},
    };
    int cpus = asym_live_cpus();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pid_t load = leave_steered();
        file_write(config, "%s", bad[i].config);
        const char *const more[] = {config_option, bad[i].option, NULL};
        assert_int_equal(asym_live_wait(asym_service_start(load, more)), 2);
        assert_true(unpinned_threads(load, cpus));
        asym_live_end(load, SIGKILL);
    }
}

TEST_MAIN
