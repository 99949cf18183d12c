/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The service against a program that wakes it as often as possible without any change: asymd still answers another program, and
 * its sampling interval stays the same.
 */
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <asym/rtx.h>

#include "support/live.h"
#include "support/process.h"
#include "support/rtx-raw.h"
#include "support/service.h"
#include "support/talker.h"
#include "support/test.h"

/* Pages of one process, and slots of a page: the maximum that asymd accepts. */
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

static const char *pages_dir(void)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/rtx", asym_service_dir());
    return path;
}

/* Makes a page: every slot is in use, by tids that do not exist, in no order. *ret: the slots. Returns the file. */
static int join_with_full_page(uint64_t number, struct asym_rtx_slot **ret)
{
    const size_t size = sizeof(struct asym_rtx_header) + SLOTS * sizeof(struct asym_rtx_slot);
    const int file = asym_raw_create(pages_dir(), getpid(), number);
    if (file < 0 || ftruncate(file, (off_t)size) < 0)
        _exit(1);
    struct asym_rtx_header *h = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
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
    if (asym_raw_announce(file) < 0)
        _exit(1);
    return file;
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
    int files[PAGES];
    for (int i = 0; i < PAGES; i++)
        files[i] = join_with_full_page((uint64_t)i, &slots);
    eventfd_write(begun, 1);
    for (int i = 0;; i = (i + 1) % PAGES)
        asym_raw_wake(files[i]);
}

/* Announces its page all the time. */
static void flood_of_announcements(void)
{
    struct asym_rtx_slot *slots;
    const int file = join_with_full_page(0, &slots);
    eventfd_write(begun, 1);
    for (;;)
        asym_raw_announce(file);
}

/* Reports a serial phase that begins and ends all the time. */
static void flood_of_phases(void)
{
    struct asym_rtx_slot *slots[PAGES];
    int files[PAGES];
    for (int i = 0; i < PAGES; i++)
        files[i] = join_with_full_page((uint64_t)i, &slots[i]);
    eventfd_write(begun, 1);
    for (int i = 0;; i = (i + 1) % PAGES) {
        const uint64_t serial = ~__atomic_load_n(&slots[i]->word, __ATOMIC_RELAXED) & ASYM_RTX_SERIAL;
        __atomic_store_n(&slots[i]->word, ASYM_RTX_WORKING | ASYM_RTX_MASTER | ASYM_RTX_PHASES | serial,
                         __ATOMIC_RELAXED);
        asym_raw_wake(files[i]);
    }
}

/* Creates files, announces them and removes them. */
static void flood_of_files(void)
{
    char path[256];
    eventfd_write(begun, 1);
    for (uint64_t i = 0;; i++) {
        const int file = asym_raw_create(pages_dir(), getpid(), i);
        asym_raw_announce(file);
        asym_raw_path(pages_dir(), getpid(), i, path, sizeof path);
        unlink(path);
        close(file);
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

static void check_flood(void (*flood)(void))
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
}

TEST(a_flood_of_events_delays_no_other_program)
{
    check_flood(flood_of_events);
}

TEST(a_flood_of_phases_delays_no_other_program)
{
    check_flood(flood_of_phases);
}

TEST(a_flood_of_announcements_delays_no_other_program)
{
    check_flood(flood_of_announcements);
}

TEST(a_flood_of_files_delays_no_other_program)
{
    check_flood(flood_of_files);
}

TEST_MAIN_WITH(set_up, tear_down)
