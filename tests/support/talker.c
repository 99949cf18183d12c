/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/talker.h"

#include <poll.h>
#include <signal.h>

#include <asym/rtx.h>

#include "support/live.h"
#include "support/notify-socket.h"
#include "support/service.h"
#include "support/test.h"

/* Returns the microseconds of the next serial phase. */
static double next(const struct asym_talker *t)
{
    double us;
    if (fscanf(t->said, "%lf", &us) != 1)
        fail_msg("the program has ended before the test");
    return us;
}

struct asym_talker asym_talker_start(const char *const *command)
{
    return asym_talker_start_with(command, "3", "60", "20");
}

struct asym_talker asym_talker_start_with(const char *const *command, const char *workers, const char *serial_ms,
                                          const char *parallel_ms)
{
    const char *const arguments[] = {workers, serial_ms, parallel_ms, "2000"};
    const char *argv[16] = {NULL};
    char dir[128];
    int output;
    size_t n = 0;
    for (; command[n]; n++)
        argv[n] = command[n];
    assert_true(n + ASYM_LENGTH(arguments) < ASYM_LENGTH(argv));
    for (size_t i = 0; i < ASYM_LENGTH(arguments); i++)
        argv[n++] = arguments[i];
    snprintf(dir, sizeof dir, "%s/rtx", asym_service_dir());
    setenv(ASYM_RTX_DIR_ENV, dir, 1);
    struct asym_talker t = {.manager = asym_notify_socket_open(asym_service_dir()),
                            .pid = asym_live_start_piped(argv, &output)};
    t.said = fdopen(output, "r");
    assert_non_null(t.said);
    setvbuf(t.said, NULL, _IONBF, 0); /* poll(2) sees each line that the test has not read */
    /* asymd does not steer a process just after execve(2), which asymctl run calls. That time has passed after this phase. */
    next(&t);
    return t;
}

/* Returns whether the pipe has another line. The program writes each line at once. */
static bool has_line(const struct asym_talker *t)
{
    struct pollfd said = {.fd = fileno(t->said), .events = POLLIN};
    return poll(&said, 1, 0) > 0;
}

/* Wait until asymd is ready, and skip the phases that have begun: also the one that the program is in, or the next one. */
static void await_start(struct asym_talker *t)
{
    char text[1024];
    asym_notify_socket_await(t->manager, "READY=1", text, sizeof text);
    while (has_line(t))
        next(t);
    next(t);
}

void asym_talker_await_answer(struct asym_talker *t)
{
    await_start(t);
    for (const double end = asym_live_now() + ASYM_LIVE_PATIENCE; next(t) < 0;)
        if (asym_live_now() >= end)
            fail_msg("asymd has answered no serial phase in %.0f s", ASYM_LIVE_PATIENCE);
}

void asym_talker_await_known(struct asym_talker *t)
{
    await_start(t);
    for (int i = 0; i < ASYM_TALKER_LAST * 3 / 4; i++)
        next(t);
}

bool asym_talker_answers(struct asym_talker *t, int least)
{
    for (;;) {
        const struct asym_live_stretch stretch = asym_live_begin();
        double worst = 0;
        int answered = 0, n = 0;
        for (; answered < least && n - answered <= ASYM_TALKER_LAST - least; n++) {
            const double us = next(t);
            answered += us >= 0;
            worst = ASYM_MAX(worst, us / 1000);
        }
        const double stolen = asym_live_stolen(&stretch);
        print_message("%d of %d serial phases, at most %.1f ms after their begin\n", answered, n, worst);
        if (stolen <= ASYM_LIVE_STOLEN_MOST)
            return answered >= least;
        print_message("the host took %.0f %% of the CPUs' time: measured again\n", 100 * stolen);
    }
}

void asym_talker_end(struct asym_talker *t)
{
    asym_live_end(t->pid, SIGKILL);
    fclose(t->said);
    asym_notify_socket_close(t->manager);
}

void asym_talker_stop(struct asym_talker *t, pid_t asymd)
{
    asym_live_signal(asymd, SIGTERM);
    assert_int_equal(asym_live_wait(asymd), 0);
    assert_int_equal(asym_live_odd_threads(t->pid, asym_live_cpus(), 0), 0);
    asym_talker_end(t);
}
