/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The service and a program that tells nothing, end to end. Its threads sleep at a barrier, and asymd samples once a second: every
 * faster reaction comes from the observer bpf.
 */
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "support/live.h"
#include "support/process.h"
#include "support/service.h"
#include "support/talker.h"
#include "support/test.h"

/*
 * The threads run the serial phases in turn. Between two samples each keeps what it has. A plan for parallel threads leaves half of
 * them on the fast CPU, so that half of the phases look served, and a few more where a sample comes.
 */
#define ENOUGH (ASYM_TALKER_LAST * 3 / 4)

static const char *const silent[] = {"tests/load-silent", NULL};

/* The option comes last, so it may also name another observer. */
static pid_t start_service(pid_t target, const char *option)
{
    const char *const argv[] = {"--interval=1s", "--set=asymd.cpu_budget=50", "--set=asymd.observer=bpf", option, NULL};
    return asym_service_start(target, argv);
}

/* After a restart of asymd the kernel's programs are there again. */
TEST_WITH(a_serial_phase_that_nobody_tells_has_its_cpu_long_before_the_next_sample, asym_service_set_up,
          asym_service_tear_down)
{
    char text[1024];
    struct asym_talker talker = asym_talker_start(silent);
    pid_t asymd = start_service(talker.pid, "--policy=pa");
    asym_talker_await_answer(&talker);
    assert_true(asym_talker_answers(&talker, ENOUGH));
    asym_live_end(asymd, SIGKILL);
    assert_int_equal(asym_service_restore(text, sizeof text), 0);
    asymd = start_service(talker.pid, "--policy=pa");
    asym_talker_await_answer(&talker);
    assert_true(asym_talker_answers(&talker, ENOUGH));
    asym_talker_stop(&talker, asymd);
}

/* The same by samples of /proc: the reactions in the test above come from the kernel's programs. */
TEST_WITH(without_bpf_it_has_none, asym_service_set_up, asym_service_tear_down)
{
    struct asym_talker talker = asym_talker_start(silent);
    pid_t asymd = start_service(talker.pid, "--set=asymd.observer=procfs");
    asym_talker_await_known(&talker);
    assert_false(asym_talker_answers(&talker, ENOUGH));
    asym_talker_stop(&talker, asymd);
}

/* Only the last CPU is slow. */
static void serve(const char *const *command, const char *interval, const char *policy, const char *workers,
                  const char *serial_ms, const char *parallel_ms)
{
    const char *slow = asym_live_text("--slow=%d", asym_live_cpus() - 1);
    const char *const argv[] = {interval, "--set=asymd.cpu_budget=50", "--set=asymd.observer=bpf", policy, slow, NULL};
    struct asym_talker talker = asym_talker_start_with(command, workers, serial_ms, parallel_ms);
    const pid_t asymd = asym_service_start_alike(talker.pid, argv);
    asym_talker_await_answer(&talker);
    assert_true(asym_talker_answers(&talker, ENOUGH));
    asym_talker_stop(&talker, asymd);
}

/* The main thread of an OpenMP program waits for all others like this, for longer than a sample. */
static const char *const manager[] = {"tests/load-silent", "manager", NULL};

TEST_WITH(a_thread_that_slept_through_the_sample_is_served, asym_service_set_up, asym_service_tear_down)
{
    serve(manager, "--interval=50ms", "--policy=pa", "3", "20", "100");
}

/* Its threads outnumber the CPUs, so all have wide masks. asymd waits without real-time priority here: the phases are longer. */
TEST_WITH(asym_serves_a_thread_that_slept_through_the_sample, asym_service_set_up, asym_service_tear_down)
{
    serve(manager, "--interval=50ms", "--policy=asym", "2", "60", "75");
}

/* Morad 2008, 6: the newly serial thread is rescheduled at once. */
TEST_WITH(serial_first_serves_it_as_soon, asym_service_set_up, asym_service_tear_down)
{
    struct asym_talker talker = asym_talker_start(silent);
    const pid_t asymd = start_service(talker.pid, "--policy=serial-first");
    asym_talker_await_answer(&talker);
    assert_true(asym_talker_answers(&talker, ASYM_TALKER_LAST / 2));
    asym_talker_stop(&talker, asymd);
}

/*
 * The plan is a second away, and moves neither of the two threads: each exchanges CPUs with the other one, or takes that of the
 * other one if it slept when the plan was made. Only CPU 0 is fast, so that a thread with a fast CPU has that one.
 */
TEST_WITH(asym_serves_it_as_soon, asym_service_set_up, asym_service_tear_down)
{
    serve(silent, "--interval=1s", "--policy=asym", "1", "20", "40");
}

static unsigned long count_samples(void)
{
    static const char *const metrics[] = {"daemon/asymctl", "metrics", NULL};
    static const char name[] = "\nasymd_cycles_total ";
    static char text[65536];
    assert_int_equal(asym_live_run(metrics, text, sizeof text), 0);
    const char *at = strstr(text, name);
    assert_non_null(at);
    return strtoul(at + strlen(name), NULL, 10);
}

/*
 * Without a doze there would be 30 samples in the first 1.5 seconds. In another PID namespace asymd does not know who runs, and
 * does not doze. Else the program runs for a moment, again and again: the end of a doze comes with few of these moments. It has
 * one thread, of which no event tells.
 */
TEST_WITH(while_its_program_sleeps_asymd_dozes_until_it_runs, asym_service_set_up, asym_service_tear_down)
{
    enum { ROUNDS = 10, MISSES = 2 };
    const bool is_initial = asym_live_is_in_initial_pid_namespace();
    asym_service_export_bus();
    const pid_t load = asym_service_spin("1");
    start_service(load, "--interval=50ms");
    assert_true(asym_live_await(asym_live_narrow_threads, load, asym_live_cpus(), 1, ASYM_LIVE_PATIENCE));
    assert_int_equal(asym_process_stop(load), 0);
    asym_live_sleep(0.5);
    const unsigned long begin = count_samples();
    asym_live_sleep(1.5);
    const unsigned long asleep = count_samples() - begin;
    int n = 0, n_soon = 0;
    for (; is_initial && n_soon < ROUNDS - MISSES && n - n_soon <= MISSES; n++) {
        const unsigned long before = count_samples();
        bool is_soon = false;
        asym_live_signal(load, SIGCONT);
        for (const double end = asym_live_now() + 0.3; !is_soon && asym_live_now() < end;)
            is_soon = count_samples() > before;
        n_soon += is_soon;
        assert_int_equal(asym_process_stop(load), 0);
        asym_live_sleep(0.4);
    }
    print_message("%lu samples in 1.5 s of sleep; %d of %d times a sample as soon as it ran\n", asleep, n_soon, n);
    assert_true(is_initial ? asleep <= 10 && n_soon == ROUNDS - MISSES : asleep >= 5);
}

/* Two threads that spin. The first one sleeps when it is told to, and the second one ends. */
struct pair {
    _Atomic pid_t second;
    _Atomic bool sleeps, ends;
};

static struct pair *pair;

static void *be_second(void *arg)
{
    pair->second = (pid_t)syscall(SYS_gettid);
    while (!pair->ends)
        continue;
    return arg;
}

static pid_t start_pair(void)
{
    pthread_t second;
    pair = asym_live_share(sizeof *pair);
    const pid_t pid = asym_process_fork();
    if (pid > 0)
        return pid;
    if (pthread_create(&second, NULL, be_second, NULL) != 0)
        _exit(1);
    while (!pair->sleeps)
        continue;
    for (;;)
        pause();
}

static bool is_on_cpu_0_only(pid_t tid)
{
    cpu_set_t set;
    return sched_getaffinity(tid, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1 && CPU_ISSET(0, &set);
}

/* Stops asymd while the first thread has the fast CPU: it will want to move the second one there, when that is alone. */
static void stop_while_the_first_is_fast(pid_t asymd, pid_t load)
{
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; asym_live_now() < end; asym_live_sleep(0.05)) {
        if (!is_on_cpu_0_only(load))
            continue;
        assert_int_equal(asym_process_stop(asymd), 0);
        if (is_on_cpu_0_only(load) && !is_on_cpu_0_only(pair->second))
            return;
        asym_live_signal(asymd, SIGCONT);
    }
    fail_msg("the first thread does not have the fast CPU");
}

/* The second thread is alone for a moment, of which the kernel tells, and ends. Another process that sleeps gets its number. */
static pid_t replace_the_second(pid_t load)
{
    const pid_t number = pair->second, parent = getpid();
    const double end = asym_live_now() + ASYM_LIVE_PATIENCE;
    pair->sleeps = true;
    ASYM_LIVE_AWAIT(asym_process_state(load) == 'S');
    pair->ends = true;
    const struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&number, .set_tid_size = 1};
    long pid;
    while ((pid = syscall(SYS_clone3, &args, sizeof args)) < 0 && errno == EEXIST && asym_live_now() < end)
        asym_live_sleep(0.01);
    if (pid == 0) {
        asym_process_end_with(parent);
        for (;;)
            pause();
    }
    assert_int_equal(pid, number);
    return number;
}

/*
 * asymd is stopped while the kernel tells it of a thread that is alone. When it goes on, the number is that of another process:
 * asymd asks the kernel who is alone now, and plans for no serial phase.
 */
TEST_WITH(a_thread_that_dies_between_event_and_plan_is_not_steered, asym_service_set_up, asym_service_tear_down)
{
    char text[65536];
    asym_service_export_bus();
    const int out = memfd_create("said", MFD_CLOEXEC);
    assert_true(out >= 0);
    const pid_t load = start_pair();
    const char *const argv[] = {"--interval=1s", "--set=asymd.cpu_budget=50", "--set=asymd.observer=bpf", NULL};
    const pid_t asymd = asym_service_start_to(load, argv, out);
    assert_true(asym_live_await(asym_live_narrow_threads, load, asym_live_cpus(), 1, ASYM_LIVE_PATIENCE));
    stop_while_the_first_is_fast(asymd, load);
    const off_t stopped_at = lseek(out, 0, SEEK_END);
    const pid_t number = replace_the_second(load);
    asym_live_signal(asymd, SIGCONT);
    const unsigned long before = count_samples();
    ASYM_LIVE_AWAIT(count_samples() >= before + 2);
    assert_true(count_samples() >= before + 2);
    assert_int_equal(asym_live_odd_threads(number, asym_live_cpus(), 0), 0);
    const ssize_t n = pread(out, text, sizeof text - 1, stopped_at);
    assert_true(n >= 0);
    text[n] = '\0';
    assert_null(strstr(text, "serial phase"));
    close(out);
    asym_live_end(number, SIGKILL);
    asym_live_end(load, SIGKILL);
}

TEST_WITH(check_says_by_what_asymd_observes, asym_service_set_up, asym_service_tear_down)
{
    static char text[65536];
    const char *const bpf[] = {ASYM_SERVICE, "--check", "--set=asymd.observer=bpf", NULL};
    asym_live_run(bpf, text, sizeof text);
    assert_non_null(strstr(text, "bpf: the kernel counts what threads do"));
    const char *const procfs[] = {ASYM_SERVICE, "--check", "--set=asymd.observer=procfs", NULL};
    asym_live_run(procfs, text, sizeof text);
    assert_non_null(strstr(text, "procfs, as asymd.observer says"));
}

TEST_MAIN
