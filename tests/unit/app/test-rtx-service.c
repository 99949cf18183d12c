/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The daemon's use of the RTX server: its log lines and its CPU time. */
#include <sched.h>
#include <signal.h>
#include <time.h>

#include <asym/rtx.h>

#include "base/clock.h"
#include "app/rtx-service.h"
#include "linux/rtx/rtx-server.h"
#include "linux/sys/realtime.h"
#include "support/captured-log.h"
#include "support/rtx-raw.h"
#include "support/pretended-cpu.h"
#include "support/test.h"

static char dir[64];
static struct asym_run run;
static struct asym_rtx_service *rtx;
static sd_event *event;
static unsigned cycles;

/* The linker puts the functions __wrap_... in the place of others (--wrap, tests/CMakeLists.txt). */

/* CPU time that a cycle and a call of asym_rtxd_server_receive() seem to take; others pay a part of the cycle. */
static asym_usec cycle_takes, others_pay, receive_takes;

static asym_usec others_have_paid;

static int run_cycle(void *userdata)
{
    asym_pretended_cpu += cycle_takes;
    others_have_paid += others_pay;
    ++*(unsigned *)userdata;
    return 0;
}

static asym_usec get_others(void *userdata)
{
    return others_have_paid;
}

static unsigned n_received;

WRAPPED(void, asym_rtxd_server_receive, struct asym_rtxd_server *s, asym_usec now)
{
    asym_pretended_cpu += receive_takes;
    n_received++;
    __real_asym_rtxd_server_receive(s, now);
}

static asym_usec charged;

WRAPPED(void, asym_rtxd_server_charge, struct asym_rtxd_server *s, asym_usec cpu)
{
    charged += cpu;
    __real_asym_rtxd_server_charge(s, cpu);
}

/* The first calls of serve since the test has set n_served to 0, and the last one. */
static asym_usec served_at[8], last_served;
static size_t n_served;

WRAPPED(bool, asym_rtxd_server_serve, struct asym_rtxd_server *s, asym_usec now)
{
    last_served = now;
    if (n_served < ASYM_LENGTH(served_at))
        served_at[n_served++] = now;
    return __real_asym_rtxd_server_serve(s, now);
}

/* The server always has an answer that is due 1 us after the last call. */
static bool is_always_due;

WRAPPED(asym_usec, asym_rtxd_server_due, const struct asym_rtxd_server *s)
{
    return is_always_due ? last_served + 1 : __real_asym_rtxd_server_due(s);
}

static int set_up(void **state)
{
    char option[96];
    cycles = 0;
    cycle_takes = others_pay = receive_takes = charged = 0;
    n_received = 0;
    is_always_due = false;
    snprintf(dir, sizeof dir, "/tmp/asym-rtx-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(option, sizeof option, "asymd.state_dir=%s", dir);
    assert_int_equal(asym_settings_new(&run.settings), 0);
    assert_int_equal(asym_settings_set(run.settings, option, "test", NULL), 0);
    assert_int_equal(asym_settings_set(run.settings, "rtx.realtime=no", "test", NULL), 0);
    /* Log all levels, as to a journal. */
    run.log.level = LOG_DEBUG;
    run.prompt = (struct asym_prompt){
        .plan = run_cycle, .others_pay = get_others, .userdata = &cycles, .log = &run.log};
    assert_int_equal(asym_rtx_service_new(&run, NULL, &rtx, NULL), 0);
    assert_int_equal(sd_event_new(&event), 0);
    return asym_rtx_service_attach(rtx, event);
}

static int tear_down(void **state)
{
    asym_rtx_service_free(rtx);
    sd_event_unref(event);
    asym_settings_free(run.settings);
    return rmdir(dir);
}

static char *pages_dir(void)
{
    static char path[96];
    snprintf(path, sizeof path, "%s/rtx", dir);
    return path;
}

/* Run the loop until no event comes for a while. */
static void run_events(void)
{
    for (int quiet = 0; quiet < 3;) {
        int r = sd_event_run(event, 5000);
        assert_true(r >= 0);
        quiet = r == 0 ? quiet + 1 : 0;
    }
}

TEST_WITH(each_reason_is_logged_once_at_whatever_level, set_up, tear_down)
{
    static char text[8192];
    captured_log_begin();
    for (uint64_t i = 0; i < 20; i++) {
        /* Announce a file without a page, and remove it. */
        char path[160];
        const int file = asym_raw_create(pages_dir(), getpid(), i);
        assert_true(file >= 0);
        assert_int_equal(asym_raw_announce(file), 0);
        assert_true(sd_event_run(event, 100000) >= 0);
        close(file);
        asym_raw_path(pages_dir(), getpid(), i, path, sizeof path);
        unlink(path);
        run_events();
        asym_rtx_service_housekeeping(rtx, asym_clock_now());
    }
    captured_log_end(text, sizeof text);
    assert_int_equal(captured_log_count(text, "\n"), 1);
    assert_int_equal(captured_log_count(text, asym_rtxd_refusal_text(ASYM_RTXD_REFUSED_GARBAGE)), 1);
    /* At its end, asymd logs the number of refusals. */
    captured_log_begin();
    asym_rtx_service_free(rtx);
    rtx = NULL;
    captured_log_end(text, sizeof text);
    assert_int_equal(captured_log_count(text, "\n"), 1);
    assert_int_equal(captured_log_count(text, "20 times"), 1);
    assert_int_equal(cycles, 0);
}

/* This process is the program. A phase of a thread that is not a master wakes asymd without effect. */
TEST_WITH(a_client_that_wakes_for_nothing_spends_and_without_tokens_is_deferred, set_up, tear_down)
{
    const struct asym_rtx_options options = {.size = sizeof options, .dir = pages_dir()};
    assert_int_equal(asym_rtx_join(&options), 0);
    run_events();
    assert_int_equal(asym_rtx_service_count(rtx), 1);
    const asym_usec before = run.prompt.spent;
    for (int wakes = 0; wakes < ASYM_RTXD_MAX_VAIN_WAKEUPS - 4; wakes += 2) {
        asym_rtx_serial_begin();
        run_events();
        asym_rtx_serial_end();
        run_events();
    }
    assert_int_equal(cycles, 0);
    assert_true(run.prompt.spent > before);
    /* The server gets a new budget at the next housekeeping. From now on it earns 50 us in a second. */
    assert_int_equal(asym_settings_set(run.settings, "asymd.cpu_budget=0.01", "test", NULL), 0);
    asym_rtx_service_housekeeping(rtx, asym_clock_now());
    /* This is more than a client can save for answers. */
    cycle_takes = (asym_usec)ASYM_RTXD_SAVED_MAX + 10 * ASYM_MSEC;
    asym_rtx_master(1);
    asym_rtx_serial_begin();
    for (int i = 0; i < 100 && cycles == 0; i++)
        assert_true(sd_event_run(event, 20000) >= 0);
    assert_int_equal(cycles, 1);
    assert_true(run.prompt.spent > (asym_usec)ASYM_RTXD_SAVED_MAX);
    /* The debt takes longer to pay than this test runs. */
    for (int i = 0; i < 10; i++) {
        asym_rtx_serial_end();
        assert_true(sd_event_run(event, 20000) >= 0);
        asym_rtx_serial_begin();
        assert_true(sd_event_run(event, 20000) >= 0);
    }
    assert_int_equal(cycles, 1);
    asym_rtx_leave();
}

/* Make a page whose only thread is in a serial phase. Returns the file: the program ends when that is closed. */
static int come_with_page(uint32_t notify_min)
{
    static uint64_t number = 1000;
    const int file = asym_raw_create(pages_dir(), getpid(), ++number);
    assert_true(file >= 0);
    assert_int_equal(asym_raw_fill(file, getpid(), notify_min), 0);
    assert_int_equal(asym_raw_announce(file), 0);
    while (asym_rtx_service_count(rtx) == 0)
        assert_true(sd_event_run(event, 10000) >= 0);
    return file;
}

static unsigned run_until_cycle(unsigned n)
{
    unsigned events = 0;
    while (cycles < n) {
        const int r = sd_event_run(event, UINT64_MAX);
        assert_true(r >= 0);
        events += r > 0;
    }
    return events;
}

/*
 * Nothing asks the provider, so each sample causes a cycle: one at the wakeup, and one no sooner than notify_min after that.
 * asymd sleeps in between. It wakes for what the program has written, for the end of its pause, and when the page is due.
 */
TEST_WITH(it_is_sampled_again_in_its_time_and_not_sooner, set_up, tear_down)
{
    static const struct {
        uint32_t notify_min;
        asym_usec least;
    } rows[] = {{1, ASYM_MSEC}, {0, ASYM_MSEC}, {20000, 20 * ASYM_MSEC}, {200000, 200 * ASYM_MSEC}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        cycles = 0;
        const asym_usec before = asym_clock_now();
        const int fd = come_with_page(rows[i].notify_min);
        const unsigned events = run_until_cycle(2);
        assert_true(asym_clock_now() - before >= rows[i].least);
        assert_true(events <= 4);
        run_events();
        assert_int_equal(cycles, 2);
        close(fd);
        while (asym_rtx_service_count(rtx) > 0)
            assert_true(sd_event_run(event, UINT64_MAX) >= 0);
    }
}

/* A page decides when it is due. asymd serves it no sooner than a pause after it has served it last. */
TEST_WITH(asymd_pauses_however_soon_an_answer_is_due, set_up, tear_down)
{
    const int fd = come_with_page(ASYM_SEC);
    run_until_cycle(1);
    is_always_due = true;
    for (n_served = 0; n_served < ASYM_LENGTH(served_at);)
        assert_true(sd_event_run(event, UINT64_MAX) >= 0);
    for (size_t i = 1; i < ASYM_LENGTH(served_at); i++)
        assert_true(served_at[i] - served_at[i - 1] >= ASYM_MSEC);
    close(fd);
}

/*
 * The calls that change the priority, and the sleeps, one character each. They take effect nowhere, but for the timer of a sample:
 * until an (a)nswer, the (b)egin of a sample or (n)o such work should end; 0: it is stopped.
 */
static char calls[32];

WRAPPED(int, timer_settime, timer_t timer, int flags, const struct itimerspec *when, struct itimerspec *before)
{
    const long us = when->it_value.tv_nsec / 1000;
    strcat(calls, us == 0 ? "0" : us == ASYM_REALTIME_SAMPLE ? "b" : us == ASYM_REALTIME_ACT ? "a" : "n");
    return us <= ASYM_REALTIME_SAMPLE ? __real_timer_settime(timer, flags, when, before) : 0;
}

WRAPPED(int, sched_setscheduler, pid_t pid, int policy, const struct sched_param *param)
{
    const bool fifo = (policy & ~SCHED_RESET_ON_FORK) == SCHED_FIFO;
    assert_int_equal(pid, 0);
    assert_int_equal(param->sched_priority, fifo);
    strcat(calls, fifo ? "F" : "o");
    return 0;
}

WRAPPED(int, nanosleep, const struct timespec *duration, struct timespec *left)
{
    assert_true(duration->tv_sec == 0 && duration->tv_nsec > 0 && duration->tv_nsec < 1000000);
    strcat(calls, "s");
    return 0;
}

static bool never_ends;

/* Work that does not end while it has the priority, or ends in time. */
static int on_other_work(sd_event_source *source, void *userdata)
{
    strcat(calls, "w");
    assert_false(asym_realtime_is_over());
    while (never_ends && !strchr(calls, 'o'))
        (void)sched_yield();
    assert_int_equal(asym_realtime_is_over(), never_ends);
    return 0;
}

static void do_other_work(sd_event_source **as)
{
    sd_event_source *source = NULL;
    calls[0] = '\0';
    assert_true(sd_event_add_defer(event, &source, on_other_work, NULL) >= 0);
    *as = source;
    assert_int_equal(asym_prompt_run_event(&run.prompt, event, UINT64_MAX), 1);
    *as = sd_event_source_unref(source);
}

static void run_until_count(size_t n)
{
    while (asym_rtx_service_count(rtx) != n)
        assert_true(asym_prompt_run_event(&run.prompt, event, UINT64_MAX) >= 0);
}

/*
 * The bus and reloads are events of the loop, as other work is here. A sleep with the priority would end on the CPU where asymd
 * slept before.
 */
TEST_WITH(only_reports_and_the_begin_of_own_work_have_the_priority, set_up, tear_down)
{
    sd_event_source *other;
    assert_int_equal(asym_settings_set(run.settings, "rtx.realtime=yes", "test", NULL), 0);
    do_other_work(&run.prompt.sample);
    assert_string_equal(calls, "nw0");
    const int fd = come_with_page(0);
    run_until_count(1);
    assert_string_equal(calls, "nw0Fa");
    /* The timer of the rest after a report has to run before. */
    while (asym_prompt_run_event(&run.prompt, event, 20000) > 0)
        ;
    assert_true(strchr(calls, 'F') == strrchr(calls, 'F') && !strchr(calls, 'o'));
    do_other_work(&other);
    assert_string_equal(calls, "onswF0");
    do_other_work(&run.prompt.housekeeping);
    assert_string_equal(calls, "bw0");
    never_ends = true;
    do_other_work(&run.prompt.sample);
    never_ends = false;
    assert_string_equal(calls, "bwo0F0");
    close(fd);
    calls[0] = '\0';
    run_until_count(0);
    assert_string_equal(strchr(calls, 'o'), "o0");
}

/* The number of programs that come has a bound, and no program pays for another's. */
TEST_WITH(programs_that_come_cost_asymd_cpu_time_and_no_program, set_up, tear_down)
{
    receive_takes = 3600 * ASYM_SEC;
    const int fd = come_with_page(0);
    run_until_count(1);
    close(fd);
    run_until_count(0);
    assert_true(n_received > 0);
    assert_int_equal(run.prompt.spent / receive_takes, n_received);
    assert_true(charged < receive_takes);
}

TEST_WITH(a_program_does_not_pay_what_others_pay, set_up, tear_down)
{
    cycle_takes = 70 * ASYM_SEC;
    others_pay = 60 * ASYM_SEC;
    const int fd = come_with_page(ASYM_SEC);
    run_until_cycle(1);
    assert_in_range(charged, 10 * ASYM_SEC, 20 * ASYM_SEC);
    assert_in_range(run.prompt.spent, 10 * ASYM_SEC, 20 * ASYM_SEC);
    close(fd);
}

static int on_end(sd_event_source *source, void *userdata)
{
    strcat(calls, "e");
    return sd_event_exit(sd_event_source_get_event(source), 0);
}

/* asymd restores all threads after the loop, without the priority. */
TEST_WITH(the_loop_ends_without_the_priority, set_up, tear_down)
{
    assert_int_equal(asym_settings_set(run.settings, "rtx.realtime=yes", "test", NULL), 0);
    calls[0] = '\0';
    const int fd = come_with_page(0);
    run_until_count(1);
    while (asym_prompt_run_event(&run.prompt, event, 20000) > 0)
        ;
    calls[0] = '\0';
    assert_true(sd_event_add_defer(event, NULL, on_end, NULL) >= 0);
    while (sd_event_get_state(event) != SD_EVENT_FINISHED)
        assert_true(asym_prompt_run_event(&run.prompt, event, UINT64_MAX) >= 0);
    assert_string_equal(calls, "onseF0ons0");
    close(fd);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    alarm(60);
    return test_run(NULL, NULL);
}
