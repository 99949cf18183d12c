/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads narrow their own masks as soon as asymd steers them. asymd logs each change, but must not fill the log. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <fcntl.h>

#include "support/attack.h"
#include "support/live.h"
#include "support/must.h"
#include "support/process.h"
#include "support/service.h"
#include "support/test.h"

#define SECONDS 60

/* Waits until asymd steers the thread, and goes on as long as it does. */
static void *change_own_mask(void *none)
{
    cpu_set_t set;
    asym_attack_run(1150);
    for (int i = 0; i < 40; i++) {
        if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) < asym_live_cpus())
            break;
        asym_attack_run(20);
        usleep(50000);
    }
    /* The thread sets the same mask again. asymd must take that for the thread's own choice. */
    const size_t cpu = CPU_ISSET(0, &set) ? 1 : 0;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
    /* asymd believes a change of a mask after three samples, and within its CPU budget these are some 0.2 s apart here. */
    for (int i = 0; i < 40; i++) {
        asym_attack_run(20);
        usleep(60000);
    }
    return none;
}

static void spam(void)
{
    pthread_attr_t attr;
    asym_attack_become_stranger(SECONDS);
    MUST(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, 16384) == 0 &&
         pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0);
    for (;;) {
        pthread_t t;
        pthread_create(&t, &attr, change_own_mask, NULL);
        usleep(10000);
    }
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        n++;
    return n;
}

TEST(messages_of_one_kind_are_limited)
{
    static char text[1 << 20];
    char path[160];
    snprintf(path, sizeof path, "%s/log", asym_service_dir());
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    pid_t attacker = asym_process_fork();
    assert_true(attacker >= 0);
    if (attacker == 0)
        spam();
    pid_t asymd = asym_service_start_to(attacker, NULL, fd);
    asym_live_sleep(12);
    const double stop = asym_attack_stop(asymd, 20);
    asym_live_end(attacker, SIGKILL);
    assert_true(stop >= 0);
    const ssize_t n = pread(fd, text, sizeof text - 1, 0);
    close(fd);
    assert_true(n > 0);
    text[n] = '\0';
    const size_t lines = count(text, "\n"), alone = count(text, "left alone");
    printf("%zu lines in 12 s, %zu of them about threads that are left alone\n", lines, alone);
    /* asymd left messages out, and said so. */
    assert_true(count(text, "more messages like this were left out") > 0 || alone > 6);
    assert_true(alone > 0 && alone <= 6);
    assert_true(lines < 20);
}

TEST_MAIN_WITH(asym_service_set_up, asym_service_tear_down)
