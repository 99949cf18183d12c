/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that share one memory of very many mappings, whose size changes all the time: reading their maps is dear. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <asym/rtx.h>

#include "support/attack.h"
#include "support/live.h"
#include "support/must.h"
#include "support/process.h"
#include "support/service.h"

#define MAPPINGS 65000
/* So many look as if each had maps of its own. Few, for the share of a CPU; many, for the time of a look. */
#define FEW        100
#define MANY       1000
#define STACK_SIZE 16384
#define SECONDS    60

/* Runs a little, so that it is looked at. */
static int copy(void *arg)
{
    MUST(signal(SIGALRM, SIG_DFL) != SIG_ERR);
    alarm(SECONDS);
    for (;;) {
        asym_attack_run(20);
        usleep(200000 + (useconds_t)(uintptr_t)arg % 1000 * 100);
    }
    return 0;
}

static void map_much(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, MAPPINGS * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    MUST(p != MAP_FAILED);
    for (size_t i = 0; i < MAPPINGS; i += 2)
        if (mprotect(p + i * page, page, PROT_READ) < 0)
            break;
}

static void bomb(unsigned n)
{
    asym_attack_become_stranger(SECONDS);
    map_much();
    for (unsigned i = 0; i < n; i++) {
        char *stack = malloc(STACK_SIZE);
        MUST(stack != NULL);
        MUST(clone(copy, stack + STACK_SIZE, CLONE_VM | SIGCHLD, (void *)(uintptr_t)i) > 0);
    }
    for (size_t size = 4096;; size = size % 262144 + 4096) {
        char *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        usleep(20000);
        if (p != MAP_FAILED)
            munmap(p, size);
    }
}

/* It is a process group, as the copies do not end with it. */
static pid_t start(unsigned n)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setpgid(0, 0);
        bomb(n);
    }
    setpgid(pid, pid);
    asym_live_sleep(2);
    return pid;
}

static void end(pid_t attacker)
{
    assert_true(attacker > 1);
    assert_int_equal(asym_process_signal_group(attacker, SIGKILL), 0);
    asym_live_wait(attacker);
}

/* 52 % before; what reading may cost is a quarter of the budget of 1 %, after a first second. */
static void reading_maps_costs_little(void **state)
{
    (void)state;
    pid_t attacker = start(FEW), asymd = asym_service_start(attacker, NULL);
    asym_live_sleep(3);
    const double share = asym_attack_share(asymd, 4), stop = asym_attack_stop(asymd, 20);
    printf("%.1f %% of a CPU, stopped in %.2f s\n", 100 * share, stop);
    end(attacker);
    assert_true(stop >= 0);
    assert_true(share < 0.15);
}

/* A look took as long as it takes to read all that; signals and the watchdog waited. */
static void a_signal_does_not_wait_for_the_end_of_a_look(void **state)
{
    (void)state;
    pid_t attacker = start(MANY), asymd = asym_service_start(attacker, NULL);
    asym_live_sleep(3);
    const double stop = asym_attack_stop(asymd, 30);
    printf("stopped in %.2f s\n", stop);
    end(attacker);
    assert_true(stop >= 0 && stop < 2);
}

/* A program that says what it does, for which asymd takes a real-time priority. */
static pid_t start_speaker(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/rtx", asym_service_dir());
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    asym_attack_begin(SECONDS);
    setenv(ASYM_RTX_SOCKET_ENV, path, 1);
    while (asym_rtx_join(NULL) < 0 || !asym_rtx_is_joined())
        usleep(10000);
    asym_rtx_set(asym_rtx_thread(), ASYM_RTX_WORKING);
    for (;;)
        pause();
}

/* Of its first thread, in one reading: does it run, and with SCHED_FIFO? */
static void sample(pid_t pid, unsigned *ret_runs, unsigned *ret_realtime)
{
    char path[64], text[1024], state;
    unsigned policy;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    const size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    const char *at = strrchr(text, ')');
    assert_non_null(at);
    assert_int_equal(sscanf(at,
                            ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %*u %*u %*d "
                            "%*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %*d %*u %u",
                            &state, &policy),
                     2);
    *ret_runs += state == 'R';
    *ret_realtime += policy == SCHED_FIFO && state == 'R';
}

static int is_realtime(pid_t pid, int none)
{
    (void)none;
    return (sched_getscheduler(pid) & ~SCHED_RESET_ON_FORK) == SCHED_FIFO;
}

/* A program that speaks and hostile ones: a normal task got 1.17 s of 8 before. */
static void whole_looks_are_not_made_in_real_time(void **state)
{
    enum { SAMPLES = 2000 };
    unsigned runs = 0, realtime = 0;
    (void)state;
    const char *const more[] = {"--set=asymd.cpu_budget=50", NULL};
    pid_t attacker = start(FEW), asymd = asym_service_start(attacker, more), speaker = start_speaker();
    const int has_priority = asym_live_await(is_realtime, asymd, 0, 1, 20);
    asym_live_sleep(1);
    for (int i = 0; i < SAMPLES; i++) {
        sample(asymd, &runs, &realtime);
        usleep(1000);
    }
    printf("ran at %u of %d moments, at %u of them in real time\n", runs, SAMPLES, realtime);
    const double stop = asym_attack_stop(asymd, 20);
    end(attacker);
    asym_live_end(speaker, SIGKILL);
    if (!has_priority)
        fail_msg("asymd has no real-time priority: sched_setscheduler(SCHED_FIFO) needs CAP_SYS_NICE");
    assert_true(stop >= 0);
    assert_true(realtime < SAMPLES / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_maps_costs_little),
        cmocka_unit_test(whole_looks_are_not_made_in_real_time),
        cmocka_unit_test(a_signal_does_not_wait_for_the_end_of_a_look),
    };
    return cmocka_run_group_tests(tests, asym_service_set_up, asym_service_tear_down);
}
