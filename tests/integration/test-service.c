/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The service on a live machine, end to end: what steering must not break. Every test steers only processes that it started,
 * with half of the CPUs configured as slow. With one CPU asymd has nothing to steer, so these tests need two, and fail with a
 * message on one.
 */
#include <sched.h>
#include <signal.h>

#include "support/generate.h"
#include "support/live.h"
#include "support/rounds.h"
#include "support/service.h"
#include "support/test.h"

/* With the default policy, which leaves threads on all CPUs above flood: other tests may run. */
TEST_WITH(steers_and_puts_back_on_sigterm, asym_service_set_up, asym_service_tear_down)
{
    int cpus = asym_live_cpus();
    const char *const more[] = {"--policy=auto", "--set=policy.asym.flood=1000", NULL};
    pid_t load = asym_service_spin("4"), asymd = asym_service_start(load, more);
    assert_true(asym_live_await(asym_live_narrow_threads, load, cpus, 4, ASYM_LIVE_PATIENCE));
    asym_live_signal(asymd, SIGTERM);
    assert_int_equal(asym_live_wait(asymd), 0);
    assert_int_equal(asym_live_odd_threads(load, cpus, 0), 0);
}

TEST_WITH(a_second_asymd_is_refused_and_names_the_first, asym_service_set_up, asym_service_tear_down)
{
    char text[1024], pid[32];
    pid_t load = asym_service_spin("4"), asymd = asym_service_start(load, NULL);
    assert_true(asym_live_await(asym_live_narrow_threads, load, asym_live_cpus(), 4, ASYM_LIVE_PATIENCE));
    assert_int_equal(asym_service_restore(text, sizeof text), 1);
    snprintf(pid, sizeof pid, "PID %d", (int)asymd);
    assert_non_null(strstr(text, pid));
}

/* Returns the number of CPUs of the process's main thread. */
static int cpus_of(pid_t pid, cpu_set_t *ret)
{
    return sched_getaffinity(pid, sizeof *ret, ret) < 0 ? -1 : CPU_COUNT(ret);
}

/* Also on equal CPUs: asymd leaves the exclusive CPU of a serial thread, and uses it again after the thread has ended. */
TEST_WITH(asymd_itself_does_not_run_on_an_exclusive_cpu, asym_service_set_up, asym_service_tear_down)
{
    const int cpus = asym_live_cpus();
    cpu_set_t serial, own, both;
    const char *const more[] = {"--policy=serial-first", NULL};
    pid_t load = asym_service_spin("1"), asymd = asym_service_start_alike(load, more);
    assert_true(asym_live_await(asym_live_narrow_threads, load, cpus, 1, ASYM_LIVE_PATIENCE));
    assert_true(asym_live_await(asym_live_narrow_threads, asymd, cpus, 1, ASYM_LIVE_PATIENCE));
    assert_int_equal(cpus_of(load, &serial), 1);
    assert_int_equal(cpus_of(asymd, &own), cpus - 1);
    CPU_AND(&both, &serial, &own);
    assert_int_equal(CPU_COUNT(&both), 0);
    asym_live_end(load, SIGKILL);
    ASYM_LIVE_AWAIT(cpus_of(asymd, &own) == cpus);
    assert_int_equal(cpus_of(asymd, &own), cpus);
}

/* beside: another process that asymd follows, "": none. The children and their parent are one job. */
static void expect_children_to_see_all_cpus(unsigned n_children, const char *beside)
{
    char text[256];
    int steered, narrow, first, other_nice, restored_after, output;
    const char *children = asym_live_text("%u", asym_rounds(n_children));
    const char *const argv[] = {"tests/load-forker", children, "1", NULL};
    pid_t load = asym_live_start_piped(argv, &output);
    /* Forks of other programs on this machine use the fork guard's budget, too, and a fork guard without budget is late. */
    const char *const boosted[] = {"--set=asymd.policy=serial-first", "--set=asymd.cpu_budget=50",
                                   *beside ? beside : NULL, NULL};
    pid_t asymd = asym_service_start(load, boosted);
    ssize_t n = read(output, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    close(output);
    assert_int_equal(asym_live_wait(load), 0);
    asym_live_end(asymd, SIGTERM);
    print_message("%s children: %s", children, text);
    assert_int_equal(sscanf(text, "steered=%d narrow=%d first_narrow=%d other_nice=%d restored_after=%d", &steered,
                            &narrow, &first, &other_nice, &restored_after),
                     5);
    assert_int_equal(steered, 1);
    assert_true(narrow <= 1);
    assert_int_equal(narrow, first);
    assert_int_equal(other_nice, 0);
    /* The fork guard restores the program's mask as soon as it has forked. */
    assert_int_equal(restored_after, 1);
}

/* Item 1: inheritance. */
TEST_WITH(children_of_a_steered_process_see_all_cpus, asym_service_set_up, asym_service_tear_down)
{
    expect_children_to_see_all_cpus(1000, "");
}

TEST_WITH(children_of_a_job_see_all_cpus_beside_an_exclusive_one, asym_service_set_up, asym_service_tear_down)
{
    expect_children_to_see_all_cpus(500, asym_live_pid_option(asym_service_spin("1")));
}

/* Item 2: ownership. */
TEST_WITH(a_mask_set_by_another_process_is_never_fought, asym_service_set_up, asym_service_tear_down)
{
    int cpus = asym_live_cpus();
    cpu_set_t mine, found;
    pid_t load = asym_service_spin("1"), asymd = asym_service_start(load, NULL);
    assert_true(asym_live_await(asym_live_narrow_threads, load, cpus, 1, ASYM_LIVE_PATIENCE));
    assert_int_equal(sched_getaffinity(load, sizeof found, &found), 0);
    CPU_ZERO(&mine);
    for (size_t c = 0; c < CPU_SETSIZE && CPU_COUNT(&mine) == 0; c++)
        if (!CPU_ISSET(c, &found))
            CPU_SET(c, &mine);
    assert_int_equal(sched_setaffinity(load, sizeof mine, &mine), 0);
    asym_live_sleep(1.0);
    assert_int_equal(sched_getaffinity(load, sizeof found, &found), 0);
    assert_true(CPU_EQUAL(&found, &mine));
    asym_live_end(asymd, SIGTERM);
    assert_int_equal(sched_getaffinity(load, sizeof found, &found), 0);
    assert_true(CPU_EQUAL(&found, &mine));
}

TEST_WITH(kill_9_at_random_moments_leaves_no_thread_steered, asym_service_set_up, asym_service_tear_down)
{
    const char *const argv[] = {"tests/load-pulse", "200", "1800", NULL};
    const int rounds = (int)asym_rounds(100);
    int cpus = asym_live_cpus(), steered = 0;
    struct gen g = {.state = 2008}; /* so that a failure can be repeated */
    char text[1024];
    pid_t load = asym_live_start(argv, -1);
    asym_live_settle(load, 200);
    for (int round = 0; round < rounds; round++) {
        /* rr moves a thread in every cycle, so that a kill may fall between a ledger record and its change. */
        static const char *const more[] = {"--interval=10ms", "--policy=rr", "--set=enforce.swap_period=10ms",
                                           "--set=asymd.cpu_budget=100", NULL};
        pid_t asymd = asym_service_start(load, more);
        assert_true(asym_live_await(asym_live_narrow_threads, load, cpus, 50, ASYM_LIVE_PATIENCE));
        asym_live_sleep(gen_below(&g, 200000) / 1e6);
        asym_live_end(asymd, SIGKILL);
        steered += asym_live_narrow_threads(load, cpus);
        assert_int_equal(asym_service_restore(text, sizeof text), 0);
        assert_int_equal(asym_live_odd_threads(load, cpus, 0), 0);
    }
    print_message("%d kills with %d threads steered on average; none was left so\n", rounds, steered / rounds);
    asym_live_end(load, SIGKILL);
}

/*
 * Installs a copy of asymctl below the directory of the test, with a configuration there that names it: asymctl finds its
 * configuration from its own path. No asymd answers on its socket.
 */
static const char *install_asymctl(char *buf, size_t size)
{
    const char *dir = asym_service_dir();
    snprintf(buf, size,
             "mkdir -p %s/bin %s/etc/asymd && cp " ASYM_TEST_BIN "/daemon/asymctl %s/bin && "
             "echo '[asymd]\nstate_dir = %s' > %s/etc/asymd/asymd.conf",
             dir, dir, dir, dir, dir);
    assert_int_equal(system(buf), 0);
    snprintf(buf, size, "%s/none", dir);
    setenv("ASYMD_BUS", buf, 1);
    snprintf(buf, size, "%s/bin/asymctl", dir);
    return buf;
}

/* Returns whether the program says that the threads have masks of an asymd that died, and the command that restores them. */
static bool says_left_over(const char *const *argv, int status)
{
    static char text[65536];
    const int got = asym_live_run(argv, text, sizeof text);
    const char *left = strstr(text, "4 threads still have masks of an asymd that died");
    if (got == status && left && strstr(left, "asymd --restore"))
        return true;
    print_message("%s %s: exit %d, wanted %d:\n%s\n", argv[0], argv[1], got, status, text);
    return false;
}

TEST_WITH(what_a_killed_one_left_is_said_everywhere, asym_service_set_up, asym_service_tear_down)
{
    const char *dir = asym_service_dir_option();
    char path[512];
    const pid_t load = asym_service_leave_steered(NULL);
    const char *ctl = install_asymctl(path, sizeof path);
    const struct {
        const char *argv[4];
        int status;
    } cases[] = {
        {{ASYM_SERVICE, "--check", dir}, 0}, {{ASYM_SERVICE, "--dry-run", dir}, 0}, {{ctl, "status"}, 5},
        {{ctl, "top", "--once"}, 5},         {{ctl, "why", "load-spin"}, 5},
    };
    int silent = 0;
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++)
        silent += !says_left_over(cases[i].argv, cases[i].status);
    unsetenv("ASYMD_BUS");
    assert_int_equal(asym_service_restore(path, sizeof path), 0);
    assert_int_equal(asym_live_odd_threads(load, asym_live_cpus(), 0), 0);
    asym_live_end(load, SIGKILL);
    assert_int_equal(silent, 0);
}

TEST_MAIN
