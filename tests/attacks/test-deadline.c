/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel refuses SCHED_DEADLINE to a thread that may not run on every CPU, so also to a steered thread. asymd does not
 * learn of the refusal. asymd(8) names two solutions: the thread sets a mask of every CPU just before, or a rule exempts
 * the program, so that asymd steers none of its threads. The test needs root, because SCHED_DEADLINE does.
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "support/live.h"
#include "support/process.h"
#include "support/service.h"
#include "support/test.h"

enum { IDLE, PLAINLY, WITH_EVERY_CPU, BACK };

struct shared {
    atomic_int wish;
    atomic_int result; /* errno + 1; 0: not yet */
};

static struct shared *shared;

static int become(bool deadline)
{
    struct asym_process_attr a = {.size = sizeof a, .policy = SCHED_OTHER};
    if (deadline)
        a = (struct asym_process_attr){
            .size = sizeof a, .policy = SCHED_DEADLINE, .runtime = 1000000, .deadline = 20000000, .period = 20000000};
    return syscall(SYS_sched_setattr, 0, &a, 0u) < 0 ? errno : 0;
}

static int set_up(void **state)
{
    const int error = become(true);
    if (error != 0)
        fail_msg("sched_setattr(SCHED_DEADLINE): %s (run as root)", strerror(error));
    assert_int_equal(become(false), 0);
    shared = asym_live_share(sizeof *shared);
    return asym_service_set_up(state);
}

static int fulfil(int wish)
{
    unsigned char every[1024];
    memset(every, 0xff, sizeof every);
    int r = wish == WITH_EVERY_CPU ? EPERM : become(wish != BACK);
    /* Try again if asymd has set the mask in between. */
    for (int i = 0; wish == WITH_EVERY_CPU && r == EPERM && i < 10; i++)
        r = sched_setaffinity(0, sizeof every, (const cpu_set_t *)(const void *)every) < 0 ? errno : become(true);
    return r;
}

static pid_t start_victim(void)
{
    pid_t pid = asym_process_fork();
    if (pid > 0)
        return pid;
    for (alarm(60);;) {
        for (volatile int i = 0; i < 100000; i++)
            ;
        const int wish = atomic_exchange(&shared->wish, IDLE);
        if (wish != IDLE)
            shared->result = fulfil(wish) + 1;
    }
}

static int ask(int wish)
{
    shared->result = 0;
    shared->wish = wish;
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; shared->result == 0; asym_live_sleep(0.001))
        assert_true(asym_live_now() < end);
    return shared->result - 1;
}

TEST_WITH(a_steered_thread_is_refused_until_it_asks_for_every_cpu, set_up, asym_service_tear_down)
{
    const int cpus = asym_live_cpus();
    pid_t victim = start_victim(), asymd = asym_service_start(victim, NULL);
    assert_true(asym_live_await(asym_live_narrow_threads, victim, cpus, 1, ASYM_LIVE_PATIENCE));
    assert_int_equal(ask(PLAINLY), EPERM); /* the rule of the kernel: without it, asymd(8) needs no such caveat */
    assert_int_equal(ask(WITH_EVERY_CPU), 0);
    asym_live_sleep(0.5);
    assert_int_equal(sched_getscheduler(victim), SCHED_DEADLINE);
    assert_int_equal(asym_live_narrow_threads(victim, cpus), 0);
    /* asymd may steer an ordinary thread again. Then the thread must set its mask again. */
    assert_int_equal(ask(BACK), 0);
    asym_live_await(asym_live_narrow_threads, victim, cpus, 1, 2);
    assert_int_equal(ask(WITH_EVERY_CPU), 0);
    asym_live_signal(asymd, SIGTERM);
    assert_int_equal(asym_live_wait(asymd), 0);
    assert_int_equal(sched_getscheduler(victim), SCHED_DEADLINE);
    asym_live_end(victim, SIGKILL);
}

TEST_MAIN
