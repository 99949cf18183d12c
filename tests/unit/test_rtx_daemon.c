/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the daemon makes of what its server tells it: what it logs, and what it spends. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <asym/rtx.h>

#include "base/macro.h"
#include "daemon/rtx.h"
#include "linux/rtx-server.h"
#include "support/rtx-raw.h"

static char dir[64];
static struct asym_run run;
static struct asym_rtx *rtx;
static sd_event *event;
static unsigned turns;

static asym_usec cpu_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (asym_usec)t.tv_sec * ASYM_SEC + (asym_usec)t.tv_nsec / 1000;
}

/* As much CPU time as a turn takes. */
static asym_usec turn_takes;

static int turn(void *userdata)
{
    const asym_usec end = cpu_time() + turn_takes;
    while (cpu_time() < end)
        ;
    ++*(unsigned *)userdata;
    return 0;
}

static int set_up(void **state)
{
    char option[96];
    (void)state;
    turns = 0;
    turn_takes = 0;
    snprintf(dir, sizeof dir, "/tmp/asym-rtx-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(option, sizeof option, "asymd.state_dir=%s", dir);
    assert_int_equal(asym_settings_new(&run.settings), 0);
    assert_int_equal(asym_settings_set(run.settings, option, "test", NULL), 0);
    assert_int_equal(asym_settings_set(run.settings, "rtx.realtime=no", "test", NULL), 0);
    /* All of it, as a journal gets it. */
    run.log.level = LOG_DEBUG;
    assert_int_equal(asym_rtx_new(&run, NULL, &rtx, NULL), 0);
    assert_int_equal(sd_event_new(&event), 0);
    return asym_rtx_attach(rtx, event, turn, &turns);
}

static int tear_down(void **state)
{
    (void)state;
    asym_rtx_free(rtx);
    sd_event_unref(event);
    asym_settings_free(run.settings);
    return rmdir(dir);
}

/* A client that says what nobody understands. */
static void come_with_garbage(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/rtx", dir);
    int fd = -1;
    while ((fd = asym_raw_connect(address.sun_path)) < 0)
        assert_true(sd_event_run(event, 10000) >= 0);
    assert_int_equal(send(fd, "garbage", 7, MSG_NOSIGNAL), 7);
    char c;
    for (int i = 0; i < 1000 && recv(fd, &c, 1, MSG_DONTWAIT) != 0; i++)
        assert_true(sd_event_run(event, 100000) >= 0);
    close(fd);
}

/* What goes to standard error until take_said. */
static int saved, file;

static void hear_what_is_said(void)
{
    fflush(NULL);
    saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    file = memfd_create("said", MFD_CLOEXEC);
    assert_true(saved >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
}

static void take_said(char *text, size_t size)
{
    fflush(NULL);
    dup2(saved, STDERR_FILENO);
    const ssize_t n = pread(file, text, size - 1, 0);
    close(saved);
    close(file);
    assert_true(n >= 0);
    text[n] = '\0';
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        n++;
    return n;
}

/* As long as something happens, and a while longer. */
static void run_events(void)
{
    for (int quiet = 0; quiet < 3;) {
        int r = sd_event_run(event, 5000);
        assert_true(r >= 0);
        quiet = r == 0 ? quiet + 1 : 0;
    }
}

static void each_reason_is_said_once_at_whatever_level(void **state)
{
    (void)state;
    static char text[8192];
    hear_what_is_said();
    for (int i = 0; i < 20; i++)
        come_with_garbage();
    /* The program sees the end of the last one before asymd does. */
    run_events();
    take_said(text, sizeof text);
    assert_int_equal(count(text, "\n"), 1);
    assert_int_equal(count(text, asym_rtx_refusal_text(ASYM_RTX_REFUSED_GARBAGE)), 1);
    /* How often it was so is said at the end. */
    hear_what_is_said();
    asym_rtx_free(rtx);
    rtx = NULL;
    take_said(text, sizeof text);
    assert_int_equal(count(text, "\n"), 1);
    assert_int_equal(count(text, "20 times"), 1);
    assert_int_equal(turns, 0);
}

/* The program is this one. A phase of who is no master is none: it wakes, and nothing comes of it. */
static void who_wakes_for_nothing_spends_and_who_has_spent_all_is_put_off(void **state)
{
    (void)state;
    char path[96];
    snprintf(path, sizeof path, "%s/rtx", dir);
    const struct asym_rtx_options options = {.size = sizeof options, .socket = path};
    assert_int_equal(asym_settings_set(run.settings, "asymd.cpu_budget=0.01", "test", NULL), 0);
    for (int i = 0; i < 1000 && !asym_rtx_is_joined(); i++) {
        assert_int_equal(asym_rtx_join(&options), 0);
        run_events();
    }
    assert_int_equal(asym_rtx_count(rtx), 1);
    const asym_usec before = asym_rtx_spent(rtx);
    for (int wakes = 0; wakes < ASYM_RTX_MAX_IN_VAIN - 4; wakes += 2) {
        asym_rtx_serial_begin();
        run_events();
        asym_rtx_serial_end();
        run_events();
    }
    assert_int_equal(turns, 0);
    assert_true(asym_rtx_spent(rtx) > before);
    /* More than may be saved up for reactions. */
    turn_takes = (asym_usec)ASYM_RTX_SAVED_MAX + 10 * ASYM_MSEC;
    asym_rtx_master(1);
    asym_rtx_serial_begin();
    for (int i = 0; i < 100 && turns == 0; i++)
        assert_true(sd_event_run(event, 20000) >= 0);
    assert_int_equal(turns, 1);
    assert_true(asym_rtx_spent(rtx) > (asym_usec)ASYM_RTX_SAVED_MAX);
    /* It has spent what it has for longer than this takes. */
    for (int i = 0; i < 10; i++) {
        asym_rtx_serial_end();
        assert_true(sd_event_run(event, 20000) >= 0);
        asym_rtx_serial_begin();
        assert_true(sd_event_run(event, 20000) >= 0);
    }
    assert_int_equal(turns, 1);
    asym_rtx_leave();
}

/* A page whose one thread is in a serial phase. Its socket. */
static int come_with_page(uint32_t notify_min)
{
    const struct {
        struct asym_rtx_header header;
        struct asym_rtx_slot slot;
    } page = {.header = {.magic = ASYM_RTX_MAGIC,
                         .version = ASYM_RTX_VERSION,
                         .header_size = sizeof page.header,
                         .slot_size = sizeof page.slot,
                         .n_slots = 1,
                         .n_used = 1,
                         .notify_min_usec = notify_min},
              .slot = {.tid = getpid(), .word = ASYM_RTX_WORKING | ASYM_RTX_MASTER}};
    char path[96];
    int fd = -1, memfd = -1, event_fd = -1;
    snprintf(path, sizeof path, "%s/rtx", dir);
    /* The helper may not listen yet. */
    while ((fd = asym_raw_connect(path)) < 0)
        assert_true(sd_event_run(event, 10000) >= 0);
    while (!asym_raw_receive(fd, 0, &memfd, &event_fd))
        assert_true(sd_event_run(event, 10000) >= 0);
    assert_int_equal(pwrite(memfd, &page, sizeof page, 0), sizeof page);
    assert_int_equal(eventfd_write(event_fd, 1), 0);
    close(memfd);
    close(event_fd);
    return fd;
}

/* Nothing asks what it says, so that each look at it makes a turn: when it came, and no sooner than its time after that. */
static void it_is_looked_at_again_in_its_time_and_no_sooner_than_anybody(void **state)
{
    (void)state;
    static const struct {
        uint32_t notify_min;
        asym_usec least;
    } rows[] = {{1, ASYM_MSEC}, {0, ASYM_MSEC}, {20000, 20 * ASYM_MSEC}, {50000, 50 * ASYM_MSEC}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        turns = 0;
        const int fd = come_with_page(rows[i].notify_min);
        const asym_usec before = asym_run_now();
        while (turns < 2)
            assert_true(sd_event_run(event, UINT64_MAX) >= 0);
        assert_true(asym_run_now() - before >= rows[i].least);
        run_events();
        assert_int_equal(turns, 2);
        close(fd);
        while (asym_rtx_count(rtx) > 0)
            assert_true(sd_event_run(event, UINT64_MAX) >= 0);
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(who_wakes_for_nothing_spends_and_who_has_spent_all_is_put_off),
        T(each_reason_is_said_once_at_whatever_level),
        T(it_is_looked_at_again_in_its_time_and_no_sooner_than_anybody),
    };
    signal(SIGPIPE, SIG_IGN);
    alarm(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
