/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/clock.h"
#include "support/rtx-alone.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "linux/rtx/rtx-fair-share.h"
#include "linux/rtx/rtx-server.h"
#include "linux/sys/thread.h"
#include "support/process.h"

static void housekeeping(struct asym_rtxd_server *server, asym_usec now, int notify)
{
    static const char alive[] = "WATCHDOG=1";
    struct asym_rtxd_provider *provider = asym_rtxd_server_provider(server);
    const struct asym_rtxd_program_report *program_reports;
    provider->ask(provider, now, ASYM_ASK_FINAL, &program_reports);
    asym_rtxd_server_housekeeping(server, now);
    if (notify >= 0)
        send(notify, alive, sizeof alive - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void serve(struct asym_rtxd_server *server, asym_usec now)
{
    struct asym_rtxd_provider *provider = asym_rtxd_server_provider(server);
    const struct asym_rtxd_program_report *program_reports;
    if (asym_rtxd_server_serve(server, now))
        provider->ask(provider, now, ASYM_ASK_FINAL | ASYM_ASK_REFRESH, &program_reports);
    asym_rtxd_server_charge(server, 50);
}

static _Noreturn void run(const char *dir, int notify)
{
    const struct asym_rtxd_server_config config = {.dir = dir,
                                                   .helper = ASYM_LIVE_BIN "/daemon/asymd-helper",
                                                   .files_may_be_passed = true,
                                                   .spin_notify = 20,
                                                   .cpu_budget = 100,
                                                   .now = asym_clock_now()};
    struct asym_rtxd_server *server;
    asym_usec kept_house = 0;
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    if (asym_rtxd_server_open(&config, &server, NULL) < 0)
        _exit(1);
    while (sigtimedwait(&stop, NULL, &(struct timespec){0}) != SIGTERM) {
        struct pollfd ready = {.fd = asym_rtxd_server_fd(server), .events = POLLIN};
        poll(&ready, 1, 100);
        const asym_usec now = asym_clock_now();
        serve(server, now);
        /* asymd waits like this after it has served. */
        usleep(1000);
        if (now - kept_house < ASYM_SEC)
            continue;
        kept_house = now;
        housekeeping(server, now, notify);
    }
    asym_rtxd_server_close(server);
    _exit(0);
}

pid_t asym_rtx_alone_start(const char *dir, int notify)
{
    sigset_t stop, before;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    fflush(NULL);
    /* A SIGTERM that arrives at once must not be lost. */
    sigprocmask(SIG_BLOCK, &stop, &before);
    const pid_t pid = asym_process_fork();
    if (pid == 0)
        run(dir, notify);
    const int error = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid < 0 ? -error : pid;
}
