/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The service against a program that wakes it as often as possible without any change: asymd still answers another program, and
 * its sampling interval stays the same.
 */
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
#include <unistd.h>

#include <cmocka.h>

#include <asym/rtx.h>

#include "base/macro.h"
#include "support/live.h"
#include "support/process.h"
#include "support/service.h"
#include "support/rtx-raw.h"

/* Connections of one process, and slots of a page: the maximum that asymd accepts. */
enum { PAGES = 4, SLOTS = 4096 };

enum { ROUNDS = 40, LAST = 20 };

/* The manager's end of the sd_notify socket: the status line contains the interval. */
static int manager = -1;

static FILE *said;

static int set_up(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char socket_path[128];
    asym_service_set_up(state);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/notify", asym_service_dir());
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(manager, (const struct sockaddr *)&address, sizeof address), 0);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    snprintf(socket_path, sizeof socket_path, "%s/rtx", asym_service_dir());
    setenv(ASYM_RTX_SOCKET_ENV, socket_path, 1);
    return 0;
}

static int tear_down(void **state)
{
    close(manager);
    unsetenv("NOTIFY_SOCKET");
    unsetenv(ASYM_RTX_SOCKET_ENV);
    return asym_service_tear_down(state);
}

/* Returns the longest interval in ms of all status lines since the last call; *ret_percent: the last CPU share. */
static double longest_interval(double *ret_percent)
{
    char text[1024];
    ssize_t n;
    double longest = 0;
    while ((n = recv(manager, text, sizeof text - 1, 0)) > 0) {
        double percent, ms;
        text[n] = '\0';
        const char *reports = strstr(text, " report"), *figures = reports ? strchr(reports, ';') : NULL;
        if (!figures || sscanf(figures, "; %lf %% CPU every %lf ms", &percent, &ms) != 2)
            continue;
        longest = ASYM_MAX(longest, ms);
        *ret_percent = percent;
    }
    return longest;
}

static const char *socket_path(void)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/rtx", asym_service_dir());
    return path;
}

/* Fills a page: every slot is in use, by tids that do not exist, in no order. *ret: the slots. Returns the eventfd. */
static int join_with_full_page(struct asym_rtx_slot **ret)
{
    const size_t size = sizeof(struct asym_rtx_header) + SLOTS * sizeof(struct asym_rtx_slot);
    int fd = asym_raw_connect(socket_path()), memfd, event;
    if (fd < 0 || !asym_raw_receive(fd, 10000, &memfd, &event))
        _exit(1);
    struct asym_rtx_header *h = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
    if (h == MAP_FAILED)
        _exit(1);
    struct asym_rtx_slot *slots = *ret = (void *)(h + 1);
    for (uint32_t i = 0; i < SLOTS; i++) {
        slots[i].tid = (int32_t)((i * UINT32_C(2654435761)) >> 8) + 1;
        slots[i].word = ASYM_RTX_SPINNING;
    }
    *h = (struct asym_rtx_header){.magic = ASYM_RTX_MAGIC,
                                  .version = ASYM_RTX_VERSION,
                                  .header_size = sizeof *h,
                                  .slot_size = sizeof(struct asym_rtx_slot),
                                  .n_slots = SLOTS,
                                  .n_used = SLOTS};
    eventfd_write(event, 1);
    return event;
}

static pid_t start_flood(void (*flood)(void))
{
    fflush(NULL);
    pid_t pid = asym_process_fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(250);
        flood();
        _exit(0);
    }
    return pid;
}

static void flood_of_events(void)
{
    struct asym_rtx_slot *slots;
    int events[PAGES];
    for (int i = 0; i < PAGES; i++)
        events[i] = join_with_full_page(&slots);
    for (int i = 0;; i = (i + 1) % PAGES)
        eventfd_write(events[i], 1);
}

/* Reports a serial phase that begins and ends all the time. */
static void flood_of_phases(void)
{
    struct asym_rtx_slot *slots[PAGES];
    int events[PAGES];
    for (int i = 0; i < PAGES; i++)
        events[i] = join_with_full_page(&slots[i]);
    for (int i = 0;; i = (i + 1) % PAGES) {
        const uint64_t serial = ~__atomic_load_n(&slots[i]->word, __ATOMIC_RELAXED) & ASYM_RTX_SERIAL;
        __atomic_store_n(&slots[i]->word, ASYM_RTX_WORKING | ASYM_RTX_MASTER | ASYM_RTX_PHASES | serial,
                         __ATOMIC_RELAXED);
        eventfd_write(events[i], 1);
    }
}

static void flood_of_connections(void)
{
    for (;;) {
        int fd = asym_raw_connect(socket_path());
        if (fd >= 0)
            close(fd);
    }
}

/* Returns in how many of n serial phases the master had CPUs to itself. */
static int count_reactions(int n)
{
    int reactions = 0;
    for (int i = 0; i < n; i++) {
        double us;
        if (fscanf(said, "%lf", &us) != 1)
            fail_msg("the host took CPU time from each stretch of %d serial phases", LAST);
        reactions += us >= 0;
    }
    return reactions;
}

struct outcome {
    int reactions;
    double interval, percent;
};

/* Measures a stretch of phases, after a first one that is not judged, and another one when the host took CPU time from it. */
static struct outcome measure(void)
{
    struct outcome o = {0};
    double taken = 1;
    count_reactions(ROUNDS - LAST);
    while (taken > ASYM_LIVE_STOLEN_MOST) {
        longest_interval(&o.percent);
        const struct asym_live_stretch stretch = asym_live_begin();
        o.reactions = count_reactions(LAST);
        o.interval = longest_interval(&o.percent);
        taken = asym_live_stolen(&stretch);
        if (taken > ASYM_LIVE_STOLEN_MOST)
            print_message("the host took %.0f %% of the CPUs' time: measured again\n", 100 * taken);
    }
    return o;
}

/* Serial and parallel phases of 60 ms each; four threads that wait by spinning. */
static pid_t start_talker(void)
{
    int fds[2];
    const char *const argv[] = {"tests/load-talker", "3", "60", "60", "1000", NULL};
    assert_int_equal(pipe(fds), 0);
    pid_t pid = asym_live_start(argv, fds[1]);
    close(fds[1]);
    said = fdopen(fds[0], "r");
    assert_non_null(said);
    return pid;
}

static void check_flood(void (*flood)(void))
{
    /* The test does not measure how fast the machine reacts: the CPU budget is ample for an honest program. */
    const char *const options[] = {"--interval=1s", "--set=asymd.cpu_budget=10", NULL};
    pid_t talker = start_talker(), asymd = asym_service_start(talker, options);
    const struct outcome before = measure();
    print_message("before: %d of %d serial phases, %.2f %% of a CPU\n", before.reactions, LAST, before.percent);
    pid_t flooder = start_flood(flood);
    const struct outcome during = measure();
    print_message("%d of %d serial phases, %.2f %% of a CPU every %.0f ms\n", during.reactions, LAST, during.percent,
                  during.interval);
    asym_live_end(flooder, SIGKILL);
    asym_live_signal(asymd, SIGTERM);
    assert_int_equal(asym_live_wait(asymd), 0);
    asym_live_end(talker, SIGKILL);
    fclose(said);
    assert_true(before.reactions > 0);
    assert_true(during.reactions >= LAST * 3 / 4);
    assert_true(during.interval > 0 && during.interval <= 1000);
}

static void a_flood_of_events_delays_no_other_program(void **state)
{
    (void)state;
    check_flood(flood_of_events);
}

static void a_flood_of_phases_delays_no_other_program(void **state)
{
    (void)state;
    check_flood(flood_of_phases);
}

static void a_flood_of_connections_delays_no_other_program(void **state)
{
    (void)state;
    check_flood(flood_of_connections);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_flood_of_events_delays_no_other_program, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_flood_of_phases_delays_no_other_program, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_flood_of_connections_delays_no_other_program, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
