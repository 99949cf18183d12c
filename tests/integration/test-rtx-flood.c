/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The service against a program that wakes it as often as possible without any change: asymd still answers another program, and
 * its sampling interval stays the same.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <asym/rtx.h>

#include "base/macro.h"
#include "support/live.h"
#include "support/process.h"
#include "support/rtx-raw.h"
#include "support/service.h"
#include "support/talker.h"
#include "support/test.h"

/* Connections of one process, and slots of a page: the maximum that asymd accepts. */
enum { PAGES = 4, SLOTS = 4096 };

/* The phases in which asymd gets used to a flood: they are not judged. */
enum { FIRST = 20, LAST = ASYM_TALKER_LAST };

/* Returns the longest interval in ms of all status lines since the last call; *ret_percent: the last CPU share. */
static double longest_interval(int manager, double *ret_percent)
{
    char text[1024];
    ssize_t n;
    double longest = 0;
    while ((n = recv(manager, text, sizeof text - 1, MSG_DONTWAIT)) > 0) {
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

/* The flooder writes to it when the flood begins: before that, it may wait for asymd to accept its pages. */
static int begun = -1;

/* Returns after the flood has begun. */
static pid_t start_flood(void (*flood)(void))
{
    fflush(NULL);
    begun = eventfd(0, EFD_CLOEXEC);
    assert_true(begun >= 0);
    pid_t pid = asym_process_fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(250);
        flood();
        _exit(0);
    }
    struct pollfd waits = {.fd = begun, .events = POLLIN};
    assert_int_equal(poll(&waits, 1, (int)(ASYM_LIVE_PATIENCE * 1000)), 1);
    close(begun);
    return pid;
}

static void flood_of_events(void)
{
    struct asym_rtx_slot *slots;
    int events[PAGES];
    for (int i = 0; i < PAGES; i++)
        events[i] = join_with_full_page(&slots);
    eventfd_write(begun, 1);
    for (int i = 0;; i = (i + 1) % PAGES)
        eventfd_write(events[i], 1);
}

/* The kernel reports such a count as an error whatever asymd polls for. */
static void flood_of_overfilled_counts(void)
{
    struct asym_rtx_slot *slots;
    int events[PAGES];
    for (int i = 0; i < PAGES; i++) {
        events[i] = join_with_full_page(&slots);
        if (asym_raw_overfill(events[i]) < 0)
            _exit(1);
    }
    eventfd_write(begun, 1);
    for (int i = 0;; i = (i + 1) % PAGES)
        if (asym_raw_post(events[i]) < 0)
            _exit(1);
}

/* Reports a serial phase that begins and ends all the time. */
static void flood_of_phases(void)
{
    struct asym_rtx_slot *slots[PAGES];
    int events[PAGES];
    for (int i = 0; i < PAGES; i++)
        events[i] = join_with_full_page(&slots[i]);
    eventfd_write(begun, 1);
    for (int i = 0;; i = (i + 1) % PAGES) {
        const uint64_t serial = ~__atomic_load_n(&slots[i]->word, __ATOMIC_RELAXED) & ASYM_RTX_SERIAL;
        __atomic_store_n(&slots[i]->word, ASYM_RTX_WORKING | ASYM_RTX_MASTER | ASYM_RTX_PHASES | serial,
                         __ATOMIC_RELAXED);
        eventfd_write(events[i], 1);
    }
}

static void flood_of_connections(void)
{
    eventfd_write(begun, 1);
    for (;;) {
        int fd = asym_raw_connect(socket_path());
        if (fd >= 0)
            close(fd);
    }
}

struct outcome {
    int reactions;
    long sleeps; /* how often asymd went to sleep: as often as something woke it */
    double interval, percent;
};

static long sleeps_of(pid_t pid)
{
    char path[64], line[128];
    long n = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (n < 0 && fgets(line, sizeof line, f))
        sscanf(line, "voluntary_ctxt_switches: %ld", &n);
    fclose(f);
    assert_true(n >= 0);
    return n;
}

/* One program and one asymd for all floods: each begins after the one before has ended. */
static struct asym_talker talker;
static pid_t asymd;

/* Measures a stretch of phases, and another one when the host took CPU time from it. */
static struct outcome measure(void)
{
    struct outcome o = {0};
    double taken = 1, worst;
    while (taken > ASYM_LIVE_STOLEN_MOST) {
        longest_interval(talker.manager, &o.percent);
        const struct asym_live_stretch stretch = asym_live_begin();
        const long slept = sleeps_of(asymd);
        o.reactions = asym_talker_count(&talker, LAST, &worst);
        o.interval = longest_interval(talker.manager, &o.percent);
        o.sleeps = sleeps_of(asymd) - slept;
        taken = asym_live_stolen(&stretch);
        if (taken > ASYM_LIVE_STOLEN_MOST)
            print_message("the host took %.0f %% of the CPUs' time: measured again\n", 100 * taken);
    }
    return o;
}

static struct outcome before; /* the floods */

static int set_up(void **state)
{
    /* The test does not measure how fast the machine reacts: the CPU budget is ample for an honest program. */
    static const char *const command[] = {"tests/load-talker", NULL};
    const char *const options[] = {"--interval=1s", "--set=asymd.cpu_budget=10", NULL};
    asym_service_set_up(state);
    talker = asym_talker_start(command);
    asymd = asym_service_start(talker.pid, options);
    asym_talker_await_answer(&talker);
    before = measure();
    print_message("before: %d of %d serial phases, %.2f %% of a CPU\n", before.reactions, LAST, before.percent);
    assert_true(before.reactions > 0);
    return 0;
}

static int tear_down(void **state)
{
    asym_live_signal(asymd, SIGTERM);
    assert_int_equal(asym_live_wait(asymd), 0);
    asym_talker_end(&talker);
    return asym_service_tear_down(state);
}

/* Returns how many more times something woke asymd than without the flood, for each phase of the other program. */
static double check_flood(void (*flood)(void))
{
    double worst;
    pid_t flooder = start_flood(flood);
    asym_talker_count(&talker, FIRST, &worst);
    const struct outcome during = measure();
    const double wakeups = (double)(during.sleeps - before.sleeps) / LAST;
    print_message("%d of %d serial phases, %.2f %% of a CPU every %.0f ms, %.1f more wakeups in a phase\n",
                  during.reactions, LAST, during.percent, during.interval, wakeups);
    assert_int_equal(waitpid(flooder, NULL, WNOHANG), 0);
    asym_live_end(flooder, SIGKILL);
    assert_true(during.reactions >= LAST * 3 / 4);
    assert_true(during.interval > 0 && during.interval <= 1000);
    return wakeups;
}

TEST(a_flood_of_events_delays_no_other_program)
{
    check_flood(flood_of_events);
}

TEST(a_flood_of_phases_delays_no_other_program)
{
    check_flood(flood_of_phases);
}

TEST(a_flood_of_overfilled_counts_delays_no_other_program)
{
    /* 1 was measured, and 120 where such a count wakes asymd as long as it is full. */
    assert_true(check_flood(flood_of_overfilled_counts) < 20);
}

TEST(a_flood_of_connections_delays_no_other_program)
{
    check_flood(flood_of_connections);
}

TEST_MAIN_WITH(set_up, tear_down)
