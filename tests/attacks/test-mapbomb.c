/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes share one memory with very many mappings, and its size changes all the time: their maps are expensive to read. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#include <asym/rtx.h>

#include "linux/sys/thread.h"
#include "support/attack.h"
#include "support/live.h"
#include "support/must.h"
#include "support/process.h"
#include "support/service.h"
#include "support/test.h"

#define MAPPINGS 65000
/* Number of processes, each with its own /proc/PID/maps: FEW for the share of a CPU, MANY for the time of a sample. */
#define FEW        100
#define MANY       1000
#define STACK_SIZE 16384

/* The budget of 1 % for samples, and a quarter of it for maps. asymd needs the first seconds to lengthen its interval. */
#define PROMISED 0.0125
#define SETTLE   6
#define PERIOD   4
#define SECONDS  ASYM_ATTACK_LIFETIME(SETTLE, PERIOD)

static pid_t creator; /* of the copies */

/* Runs a little, so that asymd samples it. */
static int copy(void *arg)
{
    asym_process_end_with(creator);
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
    size_t made = 0;
    while (made < MAPPINGS && mprotect(p + made * page, page, PROT_READ) == 0)
        made += 2;
    /* The kernel ends it at vm.max_map_count, which is 65530 unless the administrator changes it. */
    MUST(made > MAPPINGS / 2);
}

/*
 * Has so many copies, and writes a byte to the pipe when they are there. It leads a process group, because the test must kill the
 * copies before it may go on.
 */
static void bomb(void *n, int ready)
{
    MUST(setpgid(0, 0) == 0);
    asym_attack_become_stranger(SECONDS);
    map_much();
    creator = getpid();
    for (uintptr_t i = 0; i < (uintptr_t)n; i++) {
        char *stack = malloc(STACK_SIZE);
        MUST(stack != NULL);
        MUST(clone(copy, stack + STACK_SIZE, CLONE_VM | SIGCHLD, (void *)i) > 0);
    }
    MUST(write(ready, "", 1) == 1);
    for (size_t size = 4096;; size = size % 262144 + 4096) {
        char *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        usleep(20000);
        if (p != MAP_FAILED)
            munmap(p, size);
    }
}

static pid_t start(unsigned n)
{
    return asym_attack_start(bomb, (void *)(uintptr_t)n);
}

static void end(pid_t attacker)
{
    assert_true(attacker > 1);
    assert_int_equal(asym_process_signal_group(attacker, SIGKILL), 0);
    /* The attack went on until now. */
    assert_int_equal(asym_live_wait(attacker), 128 + SIGKILL);
}

/*
 * 52 % of a CPU before the fix. Now maps may take a quarter of the budget of 1 %, after a first second. They use up all that asymd
 * may spend on reading: it steers a program of one thread without having read its maps.
 */
TEST(reading_maps_costs_little_and_the_programs_of_others_are_steered)
{
    pid_t attacker = start(FEW), asymd = asym_service_start(getpid(), NULL);
    asym_attack_settle(asymd, 2 * PROMISED, SETTLE);
    const pid_t spin = asym_service_spin("1");
    const double share = asym_attack_share(asymd, PERIOD, 2 * PROMISED);
    const int steered = asym_live_await(asym_live_narrow_threads, spin, asym_live_cpus(), 1, 2 * ASYM_LIVE_PATIENCE);
    const double stop = asym_attack_stop(asymd, 20);
    printf("%.1f %% of a CPU, %s, stopped in %.2f s\n", 100 * share, steered ? "steered" : "not steered", stop);
    end(attacker);
    asym_live_end(spin, SIGKILL);
    assert_true(stop >= 0);
    assert_true(share < 2 * PROMISED);
    assert_true(steered);
}

/* Returns the seconds that one read of these maps takes on this machine now. */
static double time_of_maps(pid_t pid)
{
    char path[64];
    static char text[65536];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    const double begin = asym_live_now();
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    while (read(fd, text, sizeof text) > 0)
        ;
    close(fd);
    return asym_live_now() - begin;
}

/* Before the fix a sample read all maps. Signals and the watchdog waited that long. The bound is 2 s on a fast machine. */
TEST(a_signal_does_not_wait_for_the_end_of_a_sample)
{
    const char *const more[] = {"--set=asymd.cpu_budget=100", NULL};
    pid_t attacker = start(MANY), asymd = asym_service_start(attacker, more);
    /* Soon after the start, in the first sample that could read all maps. */
    asym_live_sleep(1);
    const double all = MANY * time_of_maps(attacker), stop = asym_attack_stop(asymd, 30);
    printf("stopped in %.2f s; to read all maps takes %.1f s\n", stop, all);
    end(attacker);
    assert_true(stop >= 0 && stop < ASYM_MAX(2, all / 10));
}

/* A program that reports its phases over RTX, for which asymd takes a real-time priority. */
static pid_t start_speaker(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/rtx", asym_service_dir());
    pid_t pid = asym_process_fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    alarm(SECONDS);
    setenv(ASYM_RTX_DIR_ENV, path, 1);
    while (asym_rtx_join(NULL) < 0 || !asym_rtx_is_joined())
        usleep(10000);
    asym_rtx_set(asym_rtx_thread(), ASYM_RTX_WORKING);
    for (;;)
        pause();
}

/* Reads from one stat of the first thread whether it runs, and whether with SCHED_FIFO. */
static void sample(pid_t pid, unsigned *ret_runs, unsigned *ret_realtime)
{
    struct asym_stat stat;
    assert_int_equal(asym_thread_get_stat(pid, pid, &stat), 0);
    *ret_runs += stat.state == 'R';
    *ret_realtime += stat.state == 'R' && stat.sched == SCHED_FIFO;
}

static int is_realtime(pid_t pid, int none)
{
    return (sched_getscheduler(pid) & ~SCHED_RESET_ON_FORK) == SCHED_FIFO;
}

/* An RTX program and a hostile one, whose samples keep asymd busy. */
static void expect_little_real_time(pid_t attacker)
{
    enum { RUNS = 120 };
    unsigned runs = 0, realtime = 0;
    const char *const more[] = {"--set=asymd.cpu_budget=50", NULL};
    pid_t asymd = asym_service_start(attacker, more), speaker = start_speaker();
    const int has_priority = asym_live_await(is_realtime, asymd, 0, 1, ASYM_LIVE_PATIENCE);
    asym_live_sleep(1);
    for (const double until = asym_live_now() + ASYM_LIVE_PATIENCE; runs < RUNS && asym_live_now() < until;) {
        sample(asymd, &runs, &realtime);
        usleep(1000);
    }
    printf("ran at %u moments, at %u of them in real time\n", runs, realtime);
    const double stop = asym_attack_stop(asymd, 20);
    end(attacker);
    asym_live_end(speaker, SIGKILL);
    if (!has_priority)
        fail_msg("asymd has no real-time priority: sched_setscheduler(SCHED_FIFO) needs CAP_SYS_NICE");
    assert_true(stop >= 0);
    assert_int_equal(runs, RUNS);
    assert_true(realtime < RUNS / 2);
}

/* Before the fix a normal task got 1.17 s of 8. */
TEST(full_samples_are_not_made_in_real_time)
{
    expect_little_real_time(start(FEW));
}

static void give_birth(void *arg, int ready)
{
    MUST(setpgid(0, 0) == 0);
    asym_attack_become_stranger(SECONDS);
    MUST(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    MUST(write(ready, "", 1) == 1);
    for (;;)
        if (vfork() == 0)
            _exit(0);
}

/* A sample takes the thousands of events before it looks at its time. */
TEST(a_storm_of_forks_is_not_read_in_real_time)
{
    expect_little_real_time(asym_attack_start(give_birth, NULL));
}

TEST_MAIN_WITH(asym_service_set_up, asym_service_tear_down)
