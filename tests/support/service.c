/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/service.h"

#include <signal.h>
#include <sys/wait.h>

#include "support/live.h"
#include "support/test.h"

static char state_dir[64], state_option[128], slow_option[32];

/* Processes that this test has started, and the signal that ends them. */
static struct {
    pid_t pid;
    int signal;
} started[64];
static size_t n_started;

static pid_t note_start(pid_t pid, int signal)
{
    const size_t n = n_started;
    siginfo_t info;
    n_started = 0;
    /* Those that the test has waited for are no children any more. */
    for (size_t i = 0; i < n; i++)
        if (waitid(P_PID, (id_t)started[i].pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
            started[n_started++] = started[i];
    assert_true(n_started < ASYM_LENGTH(started));
    started[n_started].pid = pid;
    started[n_started++].signal = signal;
    return pid;
}

int asym_service_set_up(void **state)
{
    n_started = 0;
    assert_true(asym_live_cpus() >= 2);
    snprintf(state_dir, sizeof state_dir, "/tmp/asymd-test-XXXXXX");
    assert_non_null(mkdtemp(state_dir));
    snprintf(state_option, sizeof state_option, "--set=asymd.state_dir=%s", state_dir);
    snprintf(slow_option, sizeof slow_option, "--slow=%d", asym_live_cpus() / 2);
    return 0;
}

int asym_service_tear_down(void **state)
{
    char command[128];
    unsetenv("ASYMD_BUS");
    while (n_started > 0) {
        n_started--;
        /* The test may have ended it: then its number is free. */
        if (waitpid(started[n_started].pid, NULL, WNOHANG) == 0)
            asym_live_end(started[n_started].pid, started[n_started].signal);
    }
    snprintf(command, sizeof command, "rm -rf %s", state_dir);
    return system(command);
}

const char *asym_service_dir(void)
{
    return state_dir;
}

const char *asym_service_dir_option(void)
{
    return state_option;
}

void asym_service_export_bus(void)
{
    assert_int_equal(setenv("ASYMD_BUS", asym_live_text("%s/bus", state_dir), 1), 0);
}

/* asym leaves threads on all CPUs when these are wanted many times over, as they are while tests run beside each other. */
static const char *policy_for(const char *const *more)
{
    for (; more && *more; more++)
        if (strncmp(*more, "--policy", 8) == 0 || strncmp(*more, "--config", 8) == 0 || strstr(*more, "asymd.policy"))
            return NULL;
    return "--policy=pa";
}

static pid_t start(pid_t target, const char *slow, const char *const *more, int out)
{
    /* A developer can name another asymd, to see an attack test fail on code that has the defect. */
    const char *other = getenv("ASYM_TEST_SERVICE");
    const char *argv[32] = {other ? other : ASYM_SERVICE, "--service", "--interval=50ms", state_option,
                            asym_live_pid_option(target)};
    size_t n = 5;
    /* tests/CMakeLists.txt says by what asymd observes in which build. */
    static char observer[64];
    if (getenv("ASYM_TEST_OBSERVER")) {
        snprintf(observer, sizeof observer, "--set=asymd.observer=%s", getenv("ASYM_TEST_OBSERVER"));
        argv[n++] = observer;
    }
    if (slow)
        argv[n++] = slow;
    if (policy_for(more))
        argv[n++] = policy_for(more);
    for (; more && *more && n < ASYM_LENGTH(argv) - 1; more++)
        argv[n++] = *more;
    return note_start(asym_live_start(argv, out), SIGTERM);
}

pid_t asym_service_start_to(pid_t target, const char *const *more, int out)
{
    return start(target, slow_option, more, out);
}

pid_t asym_service_start_alike(pid_t target, const char *const *more)
{
    return start(target, NULL, more, -1);
}

pid_t asym_service_start(pid_t target, const char *const *more)
{
    return asym_service_start_to(target, more, -1);
}

int asym_service_restore(char *text, size_t size)
{
    const char *const argv[] = {ASYM_SERVICE, "--restore", state_option, NULL};
    return asym_live_run(argv, text, size);
}

pid_t asym_service_spin(const char *threads)
{
    const char *const argv[] = {"tests/load-spin", threads, "120", NULL};
    return note_start(asym_live_start(argv, -1), SIGKILL);
}

pid_t asym_service_steer(const char *threads, const char *const *more)
{
    const pid_t load = asym_service_spin(threads);
    asym_service_start(load, more);
    return load;
}

pid_t asym_service_leave_steered(const char *const *more)
{
    const int cpus = asym_live_cpus();
    const pid_t load = asym_service_spin("4"), asymd = asym_service_start(load, more);
    assert_true(asym_live_await(asym_live_narrow_threads, load, cpus, 4, ASYM_LIVE_PATIENCE));
    asym_live_end(asymd, SIGKILL);
    assert_int_equal(asym_live_narrow_threads(load, cpus), 4);
    return load;
}
