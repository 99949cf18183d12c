/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The client library against a daemon that only listens. The library's state belongs to a process, so each test runs in its own
 * process: the test forks, the child is the program, and the parent is the daemon.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <asym/rtx.h>

#include "support/process.h"
#include "support/listener.h"
#include "support/must.h"
#include "support/test.h"

static void pause_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&t, &t) < 0)
        ;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The two processes synchronise by a byte in each direction. */
struct turns {
    int down[2], up[2];
};

static void child_says(struct turns *t)
{
    MUST(write(t->up[1], "", 1) == 1);
}

static void child_waits(struct turns *t)
{
    char c;
    MUST(read(t->down[0], &c, 1) == 1);
}

static bool child_has_a_message(struct turns *t)
{
    struct pollfd said = {.fd = t->down[0], .events = POLLIN};
    return poll(&said, 1, 0) == 1;
}

static void parent_says(struct turns *t)
{
    assert_int_equal(write(t->down[1], "", 1), 1);
}

static void parent_waits(struct turns *t)
{
    char c;
    assert_int_equal(read(t->up[0], &c, 1), 1);
}

static pid_t start(void (*program)(struct turns *), struct turns *t)
{
    assert_int_equal(pipe2(t->down, O_CLOEXEC), 0);
    assert_int_equal(pipe2(t->up, O_CLOEXEC), 0);
    fflush(NULL);
    pid_t pid = asym_process_fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(60);
        close(t->up[0]);
        close(t->down[1]);
        program(t);
        _exit(0);
    }
    close(t->up[1]);
    close(t->down[0]);
    return pid;
}

static void finish(pid_t pid, struct turns *t)
{
    int status;
    close(t->up[0]);
    close(t->down[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static uint64_t word_of(const struct asym_rtx_slot *slot)
{
    assert_non_null(slot);
    return __atomic_load_n(&slot->word, __ATOMIC_RELAXED);
}

/* The library creates a file at most once a second. */
static void join_in_time(const struct asym_rtx_options *options)
{
    MUST(asym_rtx_join(options) == 0);
    for (int i = 0; i < 2000 && !asym_rtx_is_joined(); i++) {
        pause_ms(5);
        MUST(asym_rtx_join(NULL) == 0);
    }
    MUST(asym_rtx_is_joined());
}

static void changes(struct turns *t)
{
    join_in_time(NULL);
    struct asym_rtx_slot *slot = asym_rtx_thread();
    MUST(slot && asym_rtx_thread() == slot);
    child_says(t);
    child_waits(t);
    asym_rtx_set(slot, ASYM_RTX_SPINNING);
    child_says(t);
    child_waits(t);
    asym_rtx_master(1);
    asym_rtx_serial_begin();
    child_says(t);
    child_waits(t);
    asym_rtx_serial_end();
    asym_rtx_set(slot, ASYM_RTX_SLEEPING);
    child_says(t);
    child_waits(t);
}

TEST(what_a_thread_says_is_on_the_page)
{
    struct asym_listener l;
    struct asym_handed h;
    struct turns t;
    asym_listener_open(&l);
    pid_t pid = start(changes, &t);
    assert_true(asym_listener_take(&l, 10, &h));
    parent_waits(&t);
    assert_int_equal(h.pid, pid);
    assert_int_equal(h.page->version, ASYM_RTX_VERSION);
    assert_int_equal(h.page->magic, ASYM_RTX_MAGIC);
    assert_int_equal(h.page->header_size, ASYM_RTX_LINE);
    assert_int_equal(h.page->slot_size, ASYM_RTX_LINE);
    const size_t line = (size_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(h.size, (ASYM_RTX_LINE * 513 + line - 1) / line * line);
    const struct asym_rtx_slot *slot = asym_handed_slot(&h, pid);
    uint64_t before = word_of(slot);
    assert_int_equal(before & ASYM_RTX_STATE, ASYM_RTX_WORKING);
    parent_says(&t);
    parent_waits(&t);
    assert_int_equal(word_of(slot) & ASYM_RTX_STATE, ASYM_RTX_SPINNING);
    assert_int_equal((word_of(slot) - before) / ASYM_RTX_CHANGE, 1);
    parent_says(&t);
    parent_waits(&t);
    assert_int_equal(word_of(slot) & (ASYM_RTX_STATE | ASYM_RTX_MARKS), ASYM_RTX_WORKING | ASYM_RTX_MARKS);
    parent_says(&t);
    parent_waits(&t);
    assert_int_equal(word_of(slot) & (ASYM_RTX_STATE | ASYM_RTX_MARKS),
                     ASYM_RTX_SLEEPING | ASYM_RTX_MASTER | ASYM_RTX_PHASES);
    parent_says(&t);
    finish(pid, &t);
    asym_handed_done(&h);
    asym_listener_done(&l);
}

static void joins_late(struct turns *t)
{
    MUST(asym_rtx_join(NULL) == 0);
    MUST(!asym_rtx_is_joined());
    asym_rtx_set(asym_rtx_thread(), ASYM_RTX_SPINNING);
    asym_rtx_serial_begin();
    asym_rtx_serial_end();
    child_says(t);
    for (int i = 0; i < 2000 && !asym_rtx_is_joined(); i++) {
        asym_rtx_serial_begin();
        asym_rtx_serial_end();
        pause_ms(10);
    }
    MUST(asym_rtx_is_joined());
    child_waits(t);
    /* The daemon restarts, and the program joins again: then the parent says so. */
    while (!child_has_a_message(t)) {
        asym_rtx_serial_begin();
        asym_rtx_serial_end();
        pause_ms(10);
    }
    child_waits(t);
    child_says(t);
    child_waits(t);
}

TEST(joins_when_the_daemon_comes_and_comes_again)
{
    struct asym_listener l;
    struct asym_handed h;
    struct turns t;
    asym_listener_open(&l);
    asym_listener_close(&l);
    pid_t pid = start(joins_late, &t);
    parent_waits(&t);
    asym_listener_reopen(&l);
    assert_true(asym_listener_take(&l, 10, &h));
    assert_non_null(asym_handed_slot(&h, pid));
    asym_listener_close(&l);
    asym_handed_done(&h);
    parent_says(&t);
    pause_ms(200);
    asym_listener_reopen(&l);
    assert_true(asym_listener_take(&l, 10, &h));
    parent_says(&t);
    parent_waits(&t);
    assert_int_equal(h.pid, pid);
    assert_non_null(asym_handed_slot(&h, pid));
    parent_says(&t);
    finish(pid, &t);
    asym_handed_done(&h);
    asym_listener_done(&l);
}

/* A thread pool: it reports waits, but no phases. */
static void joins_and_tells_of_no_phases(struct turns *t)
{
    join_in_time(NULL);
    asym_rtx_set(asym_rtx_thread(), ASYM_RTX_SPINNING);
    child_says(t);
    child_waits(t);
    /* The daemon has ended: the library detects that and goes on. */
    MUST(asym_rtx_join(NULL) == 0);
    MUST(!asym_rtx_is_joined());
    child_says(t);
    child_waits(t);
    join_in_time(NULL);
    child_says(t);
    child_waits(t);
}

TEST(a_program_that_reports_no_phases_joins_again_by_joining)
{
    struct asym_listener l;
    struct asym_handed h;
    struct turns t;
    asym_listener_open(&l);
    pid_t pid = start(joins_and_tells_of_no_phases, &t);
    assert_true(asym_listener_take(&l, 10, &h));
    parent_waits(&t);
    asym_listener_close(&l);
    asym_handed_done(&h);
    parent_says(&t);
    parent_waits(&t);
    asym_listener_reopen(&l);
    parent_says(&t);
    assert_true(asym_listener_take(&l, 10, &h));
    parent_waits(&t);
    assert_int_equal(h.pid, pid);
    assert_int_equal(word_of(asym_handed_slot(&h, pid)) & ASYM_RTX_STATE, ASYM_RTX_SPINNING);
    parent_says(&t);
    finish(pid, &t);
    asym_handed_done(&h);
    asym_listener_done(&l);
}

static void *take_and_end(void *ret)
{
    *(struct asym_rtx_slot **)ret = asym_rtx_thread();
    asym_rtx_set(asym_rtx_thread(), ASYM_RTX_SPINNING);
    return NULL;
}

static struct asym_rtx_slot *in_thread(void)
{
    struct asym_rtx_slot *slot = NULL;
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, take_and_end, &slot) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    return slot;
}

static void *vanish(void *ret_tid)
{
    MUST(asym_rtx_thread());
    atomic_store((atomic_int *)ret_tid, (int)gettid());
    /* This ends the thread without any destructor. */
    syscall(SYS_exit, 0);
    return NULL;
}

static void fills_the_table(struct turns *t)
{
    const struct asym_rtx_options options = {.size = sizeof options, .n_slots = 2};
    pthread_t thread;
    atomic_int tid = 0;
    join_in_time(&options);
    struct asym_rtx_slot *first = in_thread(), *mine;
    MUST(first);
    MUST(in_thread() == first);
    mine = asym_rtx_thread();
    MUST(mine == first);
    MUST(pthread_create(&thread, NULL, vanish, &tid) == 0);
    while (atomic_load(&tid) == 0 || tgkill(getpid(), atomic_load(&tid), 0) == 0)
        pause_ms(1);
    child_says(t);
    child_waits(t);
    /* The library detects that the owner of the slot has ended. */
    MUST(in_thread());
    asym_rtx_thread_leave();
    MUST(asym_rtx_thread());
}

/* Options without the last field, as in a program that was built with an older header. */
static void has_fewer_options(struct turns *t)
{
    const struct asym_rtx_options options = {
        .size = offsetof(struct asym_rtx_options, notify_min_usec), .n_slots = 3, .notify_min_usec = UINT32_MAX};
    join_in_time(&options);
    asym_rtx_master(1);
    asym_rtx_serial_begin();
    pause_ms(20);
    asym_rtx_serial_end();
    child_says(t);
}

/* Options with more fields than this library knows. */
static void has_more_options(struct turns *t)
{
    const struct {
        struct asym_rtx_options known;
        char more[64];
    } options = {.known = {.size = sizeof options, .n_slots = 3}, .more = "?"};
    join_in_time(&options.known);
    asym_rtx_master(1);
    asym_rtx_serial_begin();
    pause_ms(20);
    asym_rtx_serial_end();
    child_says(t);
}

TEST(options_of_another_version_are_heeded_as_far_as_they_go)
{
    void (*const programs[])(struct turns *) = {has_fewer_options, has_more_options};
    struct asym_listener l;
    struct asym_handed h;
    struct turns t;
    asym_listener_open(&l);
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        pid_t pid = start(programs[i], &t);
        assert_true(asym_listener_take(&l, 10, &h));
        parent_waits(&t);
        assert_int_equal(h.page->n_slots, 3);
        /* The begin and the end, 20 ms later, both wake: notify_min is the default. */
        assert_int_equal(asym_handed_woken(&h), 2);
        finish(pid, &t);
        asym_handed_done(&h);
    }
    asym_listener_done(&l);
}

static void *hold_slot(void *turns)
{
    child_says(turns);
    pause_ms(500);
    asym_rtx_set(asym_rtx_thread(), ASYM_RTX_WORKING);
    return NULL;
}

static void has_one_thread_too_many(struct turns *t)
{
    const struct asym_rtx_options options = {.size = sizeof options, .n_slots = 1};
    pthread_t thread;
    join_in_time(&options);
    MUST(asym_rtx_thread());
    MUST(pthread_create(&thread, NULL, hold_slot, t) == 0);
    MUST(!in_thread());
    MUST(pthread_join(thread, NULL) == 0);
    MUST(!in_thread());
}

TEST(slots_are_freed_and_a_full_table_is_harmless)
{
    struct asym_listener l;
    struct asym_handed h;
    struct turns t;
    asym_listener_open(&l);
    pid_t pid = start(fills_the_table, &t);
    assert_true(asym_listener_take(&l, 10, &h));
    parent_waits(&t);
    assert_int_equal(h.page->n_slots, 2);
    assert_int_equal(asym_handed_used(&h), 2);
    parent_says(&t);
    finish(pid, &t);
    asym_handed_done(&h);
    pid = start(has_one_thread_too_many, &t);
    assert_true(asym_listener_take(&l, 10, &h));
    parent_waits(&t);
    assert_int_equal(asym_handed_used(&h), 1);
    finish(pid, &t);
    asym_handed_done(&h);
    asym_listener_done(&l);
}

static void fork_handlers(struct turns *t)
{
    join_in_time(NULL);
    asym_rtx_set(asym_rtx_thread(), ASYM_RTX_SPINNING);
    child_says(t);
    child_waits(t);
    pid_t pid = asym_process_fork();
    if (pid == 0) {
        MUST(!asym_rtx_is_joined());
        asym_rtx_set(asym_rtx_thread(), ASYM_RTX_SLEEPING);
        for (int i = 0; i < 2000 && !asym_rtx_is_joined(); i++) {
            asym_rtx_serial_begin();
            pause_ms(5);
            asym_rtx_serial_end();
        }
        MUST(asym_rtx_is_joined());
        child_says(t);
        child_waits(t);
        _exit(0);
    }
    int status;
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
    /* The parent's page and file are unchanged. */
    MUST(asym_rtx_is_joined());
    asym_rtx_set(asym_rtx_thread(), ASYM_RTX_WORKING);
    child_says(t);
    child_waits(t);
}

TEST(a_child_reports_for_itself)
{
    struct asym_listener l;
    struct asym_handed parent, child;
    struct turns t;
    asym_listener_open(&l);
    pid_t pid = start(fork_handlers, &t);
    assert_true(asym_listener_take(&l, 10, &parent));
    parent_waits(&t);
    parent_says(&t);
    assert_true(asym_listener_take(&l, 10, &child));
    parent_waits(&t);
    assert_int_not_equal(child.pid, pid);
    assert_int_equal(word_of(asym_handed_slot(&parent, pid)) & ASYM_RTX_STATE, ASYM_RTX_SPINNING);
    assert_int_equal(asym_handed_used(&parent), 1);
    assert_int_equal(asym_handed_used(&child), 1);
    assert_int_equal(word_of(asym_handed_slot(&child, child.pid)) & ASYM_RTX_STATE, ASYM_RTX_WORKING);
    assert_int_not_equal(word_of(asym_handed_slot(&child, child.pid)) & ASYM_RTX_PHASES, 0);
    parent_says(&t);
    parent_waits(&t);
    assert_int_equal(word_of(asym_handed_slot(&parent, pid)) & ASYM_RTX_STATE, ASYM_RTX_WORKING);
    parent_says(&t);
    finish(pid, &t);
    asym_handed_done(&parent);
    asym_handed_done(&child);
    asym_listener_done(&l);
}

static void raw_forks(struct turns *t)
{
    int status;
    join_in_time(NULL);
    MUST(asym_rtx_thread());
    pid_t pid = _Fork();
    if (pid == 0) {
        asym_rtx_set(asym_rtx_thread(), ASYM_RTX_SPINNING);
        for (int i = 0; i < 150; i++) {
            asym_rtx_serial_begin();
            asym_rtx_serial_end();
            pause_ms(10);
        }
        _exit(0);
    }
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
    child_says(t);
}

TEST(a_fork_without_handlers_crashes_no_process)
{
    struct asym_listener l;
    struct asym_handed parent, child;
    struct turns t;
    asym_listener_open(&l);
    pid_t pid = start(raw_forks, &t);
    assert_true(asym_listener_take(&l, 10, &parent));
    assert_true(asym_listener_take(&l, 10, &child));
    assert_int_not_equal(parent.pid, child.pid);
    parent_waits(&t);
    finish(pid, &t);
    asym_handed_done(&parent);
    asym_handed_done(&child);
    asym_listener_done(&l);
}

/* The environment of the child, and a phase of 20 ms: notify_min decides whether that is short. */
static const char *notify_min_said;

static void goes_by_its_environment(struct turns *t)
{
    MUST(setenv(ASYM_RTX_NOTIFY_MIN_ENV, notify_min_said, 1) == 0);
    join_in_time(NULL);
    asym_rtx_master(1);
    asym_rtx_serial_begin();
    pause_ms(20);
    asym_rtx_serial_end();
    child_says(t);
}

TEST(notify_min_is_that_of_the_environment)
{
    static const struct {
        const char *said;
        unsigned woken;
        uint32_t written;
    } rows[] = {{"1000000", 1, 1000000}, {"1000", 2, 1000},    {"700", 2, 700},       {"", 2, 1000},
                {"0", 2, 1000},          {"1000001", 2, 1000}, {"900000us", 2, 1000}, {"-1", 2, 1000}};
    struct asym_listener l;
    struct asym_handed h;
    struct turns t;
    asym_listener_open(&l);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        notify_min_said = rows[i].said;
        pid_t pid = start(goes_by_its_environment, &t);
        assert_true(asym_listener_take(&l, 10, &h));
        parent_waits(&t);
        assert_int_equal(asym_handed_woken(&h), rows[i].woken);
        assert_int_equal(h.page->notify_min_usec, rows[i].written);
        finish(pid, &t);
        asym_handed_done(&h);
    }
    asym_listener_done(&l);
}

static uint32_t notify_min_chosen;

/* Moves its page, moves it again, and forks children with and without handlers. */
static void goes_on(struct turns *t)
{
    const struct asym_rtx_options options = {.size = sizeof options, .notify_min_usec = notify_min_chosen};
    pid_t (*const forks[])(void) = {fork, _Fork};
    int status;
    join_in_time(&options);
    child_waits(t);
    asym_rtx_leave();
    join_in_time(NULL);
    for (size_t i = 0; i < sizeof forks / sizeof forks[0]; i++) {
        child_waits(t);
        const pid_t pid = forks[i]();
        if (pid == 0) {
            join_in_time(NULL);
            _exit(0);
        }
        MUST(waitpid(pid, &status, 0) == pid && status == 0);
    }
    child_waits(t);
}

TEST(the_page_says_its_notify_min_wherever_it_goes)
{
    static const struct {
        uint32_t chosen, written;
    } rows[] = {{20000, 20000}, {1, 1}, {UINT32_MAX, ASYM_RTX_NOTIFY_MIN_MAX}};
    struct asym_listener l;
    struct asym_handed h;
    struct turns t;
    asym_listener_open(&l);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        notify_min_chosen = rows[i].chosen;
        pid_t pid = start(goes_on, &t);
        for (int k = 0; k < 4; k++) {
            assert_true(asym_listener_take(&l, 10, &h));
            assert_int_equal(h.pid == pid, k < 2);
            assert_int_equal(h.page->notify_min_usec, rows[i].written);
            for (size_t r = 0; r < sizeof h.page->reserved / sizeof *h.page->reserved; r++)
                assert_int_equal(h.page->reserved[r], 0);
            asym_handed_done(&h);
            parent_says(&t);
        }
        finish(pid, &t);
    }
    asym_listener_done(&l);
}

/* One phase wakes the daemon. The next begins within notify_min of its end, and lasts longer than that. */
static void has_a_phase_across(struct turns *t)
{
    const struct asym_rtx_options options = {.size = sizeof options, .notify_min_usec = 200000};
    join_in_time(&options);
    asym_rtx_master(1);
    asym_rtx_serial_begin();
    pause_ms(250);
    asym_rtx_serial_end();
    child_says(t);
    child_waits(t);
    pause_ms(100);
    asym_rtx_serial_begin();
    pause_ms(150);
    asym_rtx_serial_end();
    child_says(t);
}

/* asymd samples after notify_min and sees the phase. If the test ran late, the begin wakes asymd instead. */
TEST(the_end_of_a_phase_that_asymd_can_have_seen_is_reported)
{
    struct asym_listener l;
    struct asym_handed h;
    struct turns t;
    asym_listener_open(&l);
    pid_t pid = start(has_a_phase_across, &t);
    assert_true(asym_listener_take(&l, 10, &h));
    parent_waits(&t);
    assert_int_equal(asym_handed_woken(&h), 2);
    parent_says(&t);
    parent_waits(&t);
    assert_true(asym_handed_woken(&h) >= 1);
    finish(pid, &t);
    asym_handed_done(&h);
    asym_listener_done(&l);
}

/* Phases of the child that were long because it had no CPU; shared with the parent. */
static atomic_int *n_interrupted;

static void short_phases(void)
{
    const double end = now() + 0.5;
    for (double begin = now(); begin < end; begin = now()) {
        asym_rtx_serial_begin();
        asym_rtx_serial_end();
        *n_interrupted += now() - begin >= 0.1; /* notify_min */
    }
}

/* The end of a long phase wakes the daemon, and so do the eight phases after it. */
static unsigned long most_wakes(void)
{
    return 9 * (unsigned long)*n_interrupted;
}

static void has_phases(struct turns *t)
{
    const struct asym_rtx_options options = {.size = sizeof options, .notify_min_usec = 100000};
    join_in_time(&options);
    asym_rtx_master(1);
    for (int i = 0; i < 5; i++) {
        asym_rtx_serial_begin();
        pause_ms(120);
        asym_rtx_serial_end();
        pause_ms(120);
    }
    child_says(t);
    child_waits(t);
    short_phases();
    child_says(t);
    child_waits(t);
    short_phases();
    child_says(t);
    child_waits(t);
    /* A long phase after many short ones: its end wakes the daemon. */
    asym_rtx_serial_begin();
    pause_ms(120);
    asym_rtx_serial_end();
    child_says(t);
}

TEST(phases_wake_and_barriers_do_not)
{
    struct asym_listener l;
    struct asym_handed h;
    struct turns t;
    n_interrupted = mmap(NULL, sizeof *n_interrupted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(n_interrupted != MAP_FAILED);
    asym_listener_open(&l);
    pid_t pid = start(has_phases, &t);
    assert_true(asym_listener_take(&l, 10, &h));
    parent_waits(&t);
    unsigned long woken = asym_handed_woken(&h);
    assert_int_equal(woken, 10);
    parent_says(&t);
    parent_waits(&t);
    /* This stops after at most eight short phases. */
    woken = asym_handed_woken(&h);
    assert_true(woken <= 8 + most_wakes());
    *n_interrupted = 0;
    parent_says(&t);
    parent_waits(&t);
    assert_true(asym_handed_woken(&h) <= most_wakes());
    parent_says(&t);
    parent_waits(&t);
    assert_int_equal(asym_handed_woken(&h), 1);
    finish(pid, &t);
    asym_handed_done(&h);
    asym_listener_done(&l);
    munmap(n_interrupted, sizeof *n_interrupted);
}

static void closes_everything(struct turns *t)
{
    int up = t->up[1];
    join_in_time(NULL);
    asym_rtx_serial_begin();
    for (int fd = 3; fd < 1100; fd++)
        if (fd != up)
            close(fd);
    FILE *files[64];
    for (size_t i = 0; i < 64; i++) {
        files[i] = tmpfile();
        MUST(files[i]);
    }
    /* One has the number of the library's file, and no byte of it is the library's. */
    MUST(dup2(fileno(files[0]), 900) == 900);
    double end = now() + 1.5;
    while (now() < end || (now() < end + 10 && !asym_rtx_is_joined())) {
        asym_rtx_serial_begin();
        pause_ms(2);
        asym_rtx_serial_end();
    }
    for (size_t i = 0; i < 64; i++) {
        struct stat st;
        MUST(fstat(fileno(files[i]), &st) == 0 && st.st_size == 0);
    }
    MUST(asym_rtx_is_joined());
    child_says(t);
}

TEST(a_program_that_closes_everything_loses_nothing)
{
    struct asym_listener l;
    struct asym_handed first, second;
    struct turns t;
    asym_listener_open(&l);
    pid_t pid = start(closes_everything, &t);
    assert_true(asym_listener_take(&l, 10, &first));
    assert_true(asym_listener_take(&l, 10, &second));
    parent_waits(&t);
    /* The program writes its words to the new page. */
    assert_non_null(asym_handed_slot(&second, pid));
    finish(pid, &t);
    asym_handed_done(&first);
    asym_handed_done(&second);
    asym_listener_done(&l);
}

static void has_no_descriptors(struct turns *t)
{
    const struct rlimit none = {3, 3};
    MUST(setrlimit(RLIMIT_NOFILE, &none) == 0);
    MUST(asym_rtx_join(NULL) == 0);
    asym_rtx_serial_begin();
    asym_rtx_serial_end();
    MUST(asym_rtx_thread() && !asym_rtx_is_joined());
    child_says(t);
}

TEST(without_descriptors_a_program_reports_nothing)
{
    struct asym_listener l;
    struct turns t;
    asym_listener_open(&l);
    pid_t pid = start(has_no_descriptors, &t);
    parent_waits(&t);
    finish(pid, &t);
    asym_listener_done(&l);
}

static int count_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 4096; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Each call checks the file: the program keeps it. */
static void joins_often(struct turns *t)
{
    const int before = count_fds();
    join_in_time(NULL);
    const int joined = count_fds();
    MUST(joined == before + 1);
    for (int i = 0; i < 24; i++) {
        MUST(asym_rtx_join(NULL) == 0);
        MUST(asym_rtx_is_joined());
        MUST(count_fds() == joined);
        pause_ms(50); /* more than a second in all: the library may create a file once a second */
    }
    asym_rtx_leave();
    MUST(count_fds() == before);
    child_says(t);
}

TEST(a_program_that_joins_often_has_one_file)
{
    struct asym_listener l;
    struct asym_handed h, other;
    struct turns t;
    asym_listener_open(&l);
    pid_t pid = start(joins_often, &t);
    assert_true(asym_listener_take(&l, 10, &h));
    parent_waits(&t);
    assert_false(asym_listener_take(&l, 0, &other));
    finish(pid, &t);
    asym_handed_done(&h);
    asym_listener_done(&l);
}

static void says_goodbye(struct turns *t)
{
    join_in_time(NULL);
    child_waits(t);
    asym_rtx_leave();
    MUST(!asym_rtx_is_joined());
    asym_rtx_set(asym_rtx_thread(), ASYM_RTX_WORKING);
    join_in_time(NULL);
    child_says(t);
}

TEST(a_program_that_leaves_can_join_again)
{
    struct asym_listener l;
    struct asym_handed first, second;
    struct turns t;
    struct stat st;
    asym_listener_open(&l);
    pid_t pid = start(says_goodbye, &t);
    assert_true(asym_listener_take(&l, 10, &first));
    parent_says(&t);
    assert_true(asym_listener_take(&l, 10, &second));
    parent_waits(&t);
    /* The page that it has left has no magic, and no name; a wakeup said so. */
    assert_int_equal(first.page->magic, 0);
    assert_true(asym_handed_woken(&first) > 0);
    assert_int_equal(fstat(first.file, &st), 0);
    assert_int_equal(st.st_nlink, 0);
    assert_int_equal(second.page->magic, ASYM_RTX_MAGIC);
    assert_non_null(asym_handed_slot(&second, pid));
    finish(pid, &t);
    asym_handed_done(&first);
    asym_handed_done(&second);
    asym_listener_done(&l);
}

static bool keeps_errno(void (*call)(void))
{
    errno = EDOM;
    call();
    return errno == EDOM;
}

static void call_join(void)
{
    asym_rtx_join(NULL);
}

static void call_thread(void)
{
    asym_rtx_thread();
}

static void call_master(void)
{
    asym_rtx_master(1);
}

/* The program has left, and has closed its descriptors: every system call fails. */
static void calls_everything(struct turns *t)
{
    void (*const calls[])(void) = {
        call_join,           call_thread,           call_master,    asym_rtx_serial_begin,
        asym_rtx_serial_end, asym_rtx_thread_leave, asym_rtx_leave,
    };
    const int up = t->up[1];
    MUST(asym_rtx_join(NULL) == 0);
    for (int closed = 0; closed < 2; closed++) {
        for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
            MUST(keeps_errno(calls[i]));
        MUST(asym_rtx_join(NULL) == 0);
        for (int fd = 3; fd < 1100; fd++)
            if (fd != up)
                close(fd);
    }
    MUST(keeps_errno(asym_rtx_leave));
    child_says(t);
}

TEST(no_call_changes_errno)
{
    struct asym_listener l;
    struct turns t;
    asym_listener_open(&l);
    pid_t pid = start(calls_everything, &t);
    parent_waits(&t);
    finish(pid, &t);
    asym_listener_done(&l);
}

/* _exit(2) runs no destructors. */
static void leaves_a_file(struct turns *t)
{
    join_in_time(NULL);
    child_says(t);
    child_waits(t);
}

static void exits(struct turns *t)
{
    join_in_time(NULL);
    child_says(t);
    exit(0);
}

static int count_files(const struct asym_listener *l)
{
    DIR *dir = opendir(l->user);
    int n = 0;
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* A program that is killed leaves its file. The next one removes it, with neither that of a living program nor another file. */
TEST(files_that_programs_leave_go)
{
    struct asym_listener l;
    struct turns lives, dies, leaves;
    char other[192];
    asym_listener_open(&l);
    snprintf(other, sizeof other, "%s/other", l.user);
    close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    const pid_t living = start(leaves_a_file, &lives);
    parent_waits(&lives);
    const pid_t dead = start(leaves_a_file, &dies);
    parent_waits(&dies);
    parent_says(&dies);
    finish(dead, &dies);
    assert_int_equal(count_files(&l), 3);
    const pid_t leaving = start(exits, &leaves);
    parent_waits(&leaves);
    finish(leaving, &leaves);
    assert_int_equal(count_files(&l), 2);
    parent_says(&lives);
    finish(living, &lives);
    asym_listener_done(&l);
}

enum { COMERS = 6, TABLE = 4 };

static int held[TABLE]; /* number of threads that have each slot; atomic */
static int stop;        /* atomic */

/* Threads begin and end; each writes only its own word. */
static void *come_and_go(void *first)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        struct asym_rtx_slot *slot = asym_rtx_thread();
        if (!slot)
            continue;
        int *mine = &held[slot - (struct asym_rtx_slot *)first];
        MUST(__atomic_fetch_add(mine, 1, __ATOMIC_SEQ_CST) == 0);
        asym_rtx_set(slot, ASYM_RTX_SPINNING);
        MUST(__atomic_fetch_sub(mine, 1, __ATOMIC_SEQ_CST) == 1);
        asym_rtx_thread_leave();
    }
    return NULL;
}

/* asymd restarts as fast as the library connects again, with a new page each time. */
static void has_many_pages(struct turns *t)
{
    const struct asym_rtx_options options = {.size = sizeof options, .n_slots = TABLE};
    pthread_t threads[COMERS];
    int pages = 0;
    join_in_time(&options);
    void *first = asym_rtx_thread();
    asym_rtx_thread_leave();
    for (int i = 0; i < COMERS; i++)
        MUST(pthread_create(&threads[i], NULL, come_and_go, first) == 0);
    for (const double end = now() + 3; now() < end; pages++) {
        asym_rtx_leave();
        join_in_time(NULL);
    }
    MUST(pages > 20);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < COMERS; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    child_says(t);
    child_waits(t);
}

TEST(no_slot_is_given_to_two_threads_while_the_page_is_exchanged)
{
    struct asym_listener l;
    struct turns t;
    asym_listener_open(&l);
    const pid_t pid = start(has_many_pages, &t);
    parent_waits(&t);
    parent_says(&t);
    finish(pid, &t);
    asym_listener_done(&l);
}

TEST(before_anything_every_call_is_harmless)
{
    assert_null(asym_rtx_thread());
    asym_rtx_set(NULL, ASYM_RTX_WORKING);
    asym_rtx_master(1);
    asym_rtx_serial_begin();
    asym_rtx_serial_end();
    asym_rtx_thread_leave();
    assert_int_equal(asym_rtx_is_joined(), 0);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    return test_run(NULL, NULL);
}
