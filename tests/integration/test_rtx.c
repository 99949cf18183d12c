/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The service and a program that says what its threads do, end to end. The program waits by spinning, so that the kernel
 * alone cannot tell its serial phases, and the service looks once a second: whatever happens sooner it was told.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <asym/rtx.h>

#include "base/macro.h"
#include "support/live.h"
#include "support/service.h"

enum { ROUNDS = 40, LAST = 20 };

static FILE *said;

/* Serial and parallel phases of 60 ms each; four threads. */
static pid_t start_talker(void)
{
    char socket[128];
    int fds[2];
    const char *const argv[] = {"tests/load-talker", "3", "60", "60", "100", NULL};
    snprintf(socket, sizeof socket, "%s/rtx", asym_service_dir());
    setenv(ASYM_RTX_SOCKET_ENV, socket, 1);
    assert_int_equal(pipe(fds), 0);
    pid_t pid = asym_live_start(argv, fds[1]);
    close(fds[1]);
    said = fdopen(fds[0], "r");
    assert_non_null(said);
    return pid;
}

/* Of the last serial phases those in which the master had CPUs to itself, and how soon. */
static int count_reactions(double *ret_worst_ms)
{
    int reactions = 0;
    *ret_worst_ms = 0;
    for (int i = 0; i < ROUNDS; i++) {
        double us;
        assert_int_equal(fscanf(said, "%lf", &us), 1);
        if (i < ROUNDS - LAST || us < 0)
            continue;
        reactions++;
        *ret_worst_ms = us / 1000 > *ret_worst_ms ? us / 1000 : *ret_worst_ms;
    }
    return reactions;
}

static pid_t start_service(pid_t target, const char *more)
{
    const char *const argv[] = {"--interval=1s", "--set=asymd.cpu_budget=50", more, NULL};
    return asym_service_start(target, argv);
}

static void end(pid_t talker, pid_t asymd)
{
    kill(asymd, SIGTERM);
    assert_int_equal(asym_live_wait(asymd), 0);
    assert_int_equal(asym_live_odd_threads(talker, asym_live_cpus(), 0), 0);
    asym_live_end(talker, SIGKILL);
    fclose(said);
}

static void a_serial_phase_has_its_cpu_long_before_the_next_look(void **state)
{
    (void)state;
    double worst;
    pid_t talker = start_talker(), asymd = start_service(talker, NULL);
    int reactions = count_reactions(&worst);
    print_message("%d of %d serial phases, at most %.1f ms after their begin\n", reactions, LAST, worst);
    assert_true(reactions >= LAST * 3 / 4);
    end(talker, asymd);
}

/* The same without listening: what the test above sees comes from being told. */
static void whom_nobody_listens_to_gets_none(void **state)
{
    (void)state;
    double worst;
    pid_t talker = start_talker(), asymd = start_service(talker, "--set=rtx.listen=no");
    assert_true(count_reactions(&worst) <= LAST / 4);
    end(talker, asymd);
}

static void after_a_restart_it_is_told_again(void **state)
{
    (void)state;
    double worst;
    pid_t talker = start_talker(), asymd = start_service(talker, NULL);
    asym_live_sleep(1);
    asym_live_end(asymd, SIGKILL);
    char text[1024];
    assert_int_equal(asym_service_restore(text, sizeof text), 0);
    asymd = start_service(talker, NULL);
    int reactions = count_reactions(&worst);
    print_message("%d of %d serial phases\n", reactions, LAST);
    assert_true(reactions >= LAST / 2);
    end(talker, asymd);
}

static void the_dry_run_and_check_name_it(void **state)
{
    (void)state;
    static char text[262144];
    char pid[32], named[64];
    pid_t talker = start_talker();
    snprintf(pid, sizeof pid, "--pid=%d", (int)talker);
    snprintf(named, sizeof named, "load-talker (%d)", (int)talker);
    asym_live_sleep(0.7);
    const char *const dry[] = {ASYM_SERVICE, "--dry-run", "--json", pid, NULL};
    assert_int_equal(asym_live_run(dry, text, sizeof text), 0);
    assert_non_null(strstr(text, "\"rtx\": \"speaks\""));
    const char *const check[] = {ASYM_SERVICE, "--check", "--json", pid, NULL};
    assert_int_equal(asym_live_run(check, text, sizeof text), 0);
    assert_non_null(strstr(text, named));
    asym_live_end(talker, SIGKILL);
    fclose(said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_serial_phase_has_its_cpu_long_before_the_next_look, asym_service_set_up,
                                        asym_service_tear_down),
        cmocka_unit_test_setup_teardown(whom_nobody_listens_to_gets_none, asym_service_set_up, asym_service_tear_down),
        cmocka_unit_test_setup_teardown(the_dry_run_and_check_name_it, asym_service_set_up, asym_service_tear_down),
        cmocka_unit_test_setup_teardown(after_a_restart_it_is_told_again, asym_service_set_up, asym_service_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
