/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/rtx-alone.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "linux/rtx-server.h"
#include "linux/thread.h"

static void tend(struct asym_rtx_server *server, asym_usec now, int notify)
{
    static const char alive[] = "WATCHDOG=1";
    struct asym_teller *teller = asym_rtx_server_teller(server);
    const struct asym_told *told;
    teller->ask(teller, now, ASYM_ASK_FINAL, &told);
    asym_rtx_server_tend(server, now);
    if (notify >= 0)
        send(notify, alive, sizeof alive - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void serve(struct asym_rtx_server *server, asym_usec now)
{
    struct asym_teller *teller = asym_rtx_server_teller(server);
    const struct asym_told *told;
    if (asym_rtx_server_serve(server, now))
        teller->ask(teller, now, ASYM_ASK_FINAL | ASYM_ASK_HURRIED, &told);
    asym_rtx_server_charge(server, 50);
}

static _Noreturn void run(const char *dir, int notify)
{
    const struct asym_rtx_server_config config = {.dir = dir,
                                                  .helper = ASYM_LIVE_BIN "/daemon/asymd-helper",
                                                  .files_may_be_passed = true,
                                                  .spin_notify = 20,
                                                  .cpu_budget = 100,
                                                  .now = asym_thread_now()};
    struct asym_rtx_server *server;
    asym_usec tended = 0;
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    if (asym_rtx_server_open(&config, &server, NULL) < 0)
        _exit(1);
    while (sigtimedwait(&stop, NULL, &(struct timespec){0}) != SIGTERM) {
        struct pollfd ready = {.fd = asym_rtx_server_fd(server), .events = POLLIN};
        poll(&ready, 1, 100);
        const asym_usec now = asym_thread_now();
        serve(server, now);
        /* As asymd rests after it has served. */
        usleep(1000);
        if (now - tended < ASYM_SEC)
            continue;
        tended = now;
        tend(server, now, notify);
    }
    asym_rtx_server_close(server);
    _exit(0);
}

pid_t asym_rtx_alone_start(const char *dir, int notify)
{
    sigset_t stop, before;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    fflush(NULL);
    /* One that comes at once is not lost. */
    sigprocmask(SIG_BLOCK, &stop, &before);
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run(dir, notify);
    }
    const int error = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid < 0 ? -error : pid;
}
