/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/talker.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include <asym/rtx.h>

#include "base/macro.h"
#include "support/live.h"
#include "support/service.h"

enum { ROUNDS = 40 };

/* Returns the microseconds of the next serial phase. */
static double next(const struct asym_talker *t)
{
    double us;
    assert_int_equal(fscanf(t->said, "%lf", &us), 1);
    return us;
}

struct asym_talker asym_talker_start(const char *const *command)
{
    return asym_talker_start_with(command, "60", "60");
}

struct asym_talker asym_talker_start_with(const char *const *command, const char *serial_ms, const char *parallel_ms)
{
    const char *const arguments[] = {"3", serial_ms, parallel_ms, "100"};
    const char *argv[16] = {NULL};
    char socket[128];
    int fds[2];
    size_t n = 0;
    for (; command[n]; n++)
        argv[n] = command[n];
    assert_true(n + ASYM_LENGTH(arguments) < ASYM_LENGTH(argv));
    for (size_t i = 0; i < ASYM_LENGTH(arguments); i++)
        argv[n++] = arguments[i];
    snprintf(socket, sizeof socket, "%s/rtx", asym_service_dir());
    setenv(ASYM_RTX_SOCKET_ENV, socket, 1);
    assert_int_equal(pipe(fds), 0);
    struct asym_talker t = {.pid = asym_live_start(argv, fds[1])};
    close(fds[1]);
    t.said = fdopen(fds[0], "r");
    assert_non_null(t.said);
    /* asymd does not steer a process just after execve(2), which asymctl run calls. That time has passed after this phase. */
    next(&t);
    return t;
}

int asym_talker_answered(struct asym_talker *t, double *ret_worst_ms)
{
    int answered = 0;
    *ret_worst_ms = 0;
    for (int i = 0; i < ROUNDS; i++) {
        const double us = next(t);
        if (i < ROUNDS - ASYM_TALKER_LAST || us < 0)
            continue;
        answered++;
        *ret_worst_ms = us / 1000 > *ret_worst_ms ? us / 1000 : *ret_worst_ms;
    }
    return answered;
}

void asym_talker_end(struct asym_talker *t)
{
    asym_live_end(t->pid, SIGKILL);
    fclose(t->said);
}
