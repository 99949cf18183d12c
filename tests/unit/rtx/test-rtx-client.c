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

#include <asym/rtx.h>

#include "support/process.h"
#include "support/listener.h"
#include "support/live.h"
#include "support/must.h"
#include "support/test.h"

/* A program of a test. It and the test synchronise by a byte in each direction. */
struct program {
    pid_t pid; /* 0: none */
    int down[2], up[2];
};

static void child_says(struct program *p)
{
    MUST(write(p->up[1], "", 1) == 1);
}

static void child_waits(struct program *p)
{
    char c;
    MUST(read(p->down[0], &c, 1) == 1);
}

static void child_turn(struct program *p)
{
    child_says(p);
    child_waits(p);
}

static bool child_has_a_message(struct program *p)
{
    struct pollfd said = {.fd = p->down[0], .events = POLLIN};
    return poll(&said, 1, 0) == 1;
}

static void parent_says(struct program *p)
{
    assert_int_equal(write(p->down[1], "", 1), 1);
}

static void parent_waits(struct program *p)
{
    char c;
    assert_int_equal(read(p->up[0], &c, 1), 1);
}

static void parent_turn(struct program *p)
{
    parent_says(p);
    parent_waits(p);
}

static void start(void (*program)(struct program *), struct program *p)
{
    assert_int_equal(pipe2(p->down, O_CLOEXEC), 0);
    assert_int_equal(pipe2(p->up, O_CLOEXEC), 0);
    fflush(NULL);
    p->pid = asym_process_fork();
    if (p->pid == 0) {
        alarm(60);
        close(p->up[0]);
        close(p->down[1]);
        program(p);
        _exit(0);
    }
    close(p->up[1]);
    close(p->down[0]);
}

static void finish(struct program *p)
{
    int status;
    const pid_t pid = p->pid;
    close(p->up[0]);
    close(p->down[1]);
    p->pid = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

struct fixture {
    struct asym_listener l;
    struct program p;
    struct asym_handed pages[32]; /* those that the test has taken */
    size_t n_pages;
};

static void set_up(struct fixture *f)
{
    asym_listener_open(&f->l);
}

static void tear_down(struct fixture *f)
{
    if (f->p.pid > 0)
        finish(&f->p);
    for (size_t i = 0; i < f->n_pages; i++)
        asym_handed_done(&f->pages[i]);
    asym_listener_done(&f->l);
}

#define TEST_F(name) TEST_IN(name, struct fixture, f, set_up, tear_down)

/* The next page that a program announces. */
static struct asym_handed *take(struct fixture *f)
{
    assert_in_range(f->n_pages, 0, ASYM_LENGTH(f->pages) - 1);
    assert_true(asym_listener_take(&f->l, 10, &f->pages[f->n_pages]));
    return &f->pages[f->n_pages++];
}

/* Starts the program. Returns the page that it announces before it says something. */
static struct asym_handed *take_of(struct fixture *f, void (*program)(struct program *))
{
    start(program, &f->p);
    struct asym_handed *h = take(f);
    parent_waits(&f->p);
    return h;
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
        asym_live_sleep(0.005);
        MUST(asym_rtx_join(NULL) == 0);
    }
    MUST(asym_rtx_is_joined());
}

static void serial_phase(long ms)
{
    asym_rtx_serial_begin();
    if (ms > 0)
        asym_live_sleep((double)ms / 1e3);
    asym_rtx_serial_end();
}

static void changes(struct program *p)
{
    join_in_time(NULL);
    struct asym_rtx_slot *slot = asym_rtx_thread();
    MUST(slot && asym_rtx_thread() == slot);
    child_turn(p);
    asym_rtx_set(slot, ASYM_RTX_SPINNING);
    child_turn(p);
    asym_rtx_master(1);
    asym_rtx_serial_begin();
    child_turn(p);
    asym_rtx_serial_end();
    asym_rtx_set(slot, ASYM_RTX_SLEEPING);
    child_turn(p);
}

TEST_F(what_a_thread_says_is_on_the_page)
{
    struct asym_handed *h = take_of(f, changes);
    assert_int_equal(h->pid, f->p.pid);
    assert_int_equal(h->page->version, ASYM_RTX_VERSION);
    assert_int_equal(h->page->magic, ASYM_RTX_MAGIC);
    assert_int_equal(h->page->header_size, ASYM_RTX_LINE);
    assert_int_equal(h->page->slot_size, ASYM_RTX_LINE);
    const size_t line = (size_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(h->size, (ASYM_RTX_LINE * 513 + line - 1) / line * line);
    const struct asym_rtx_slot *slot = asym_handed_slot(h, f->p.pid);
    uint64_t before = word_of(slot);
    assert_int_equal(before & ASYM_RTX_STATE, ASYM_RTX_WORKING);
    parent_turn(&f->p);
    assert_int_equal(word_of(slot) & ASYM_RTX_STATE, ASYM_RTX_SPINNING);
    assert_int_equal((word_of(slot) - before) / ASYM_RTX_CHANGE, 1);
    parent_turn(&f->p);
    assert_int_equal(word_of(slot) & (ASYM_RTX_STATE | ASYM_RTX_MARKS), ASYM_RTX_WORKING | ASYM_RTX_MARKS);
    parent_turn(&f->p);
    assert_int_equal(word_of(slot) & (ASYM_RTX_STATE | ASYM_RTX_MARKS),
                     ASYM_RTX_SLEEPING | ASYM_RTX_MASTER | ASYM_RTX_PHASES);
    parent_says(&f->p);
}

static void joins_late(struct program *p)
{
    MUST(asym_rtx_join(NULL) == 0);
    MUST(!asym_rtx_is_joined());
    asym_rtx_set(asym_rtx_thread(), ASYM_RTX_SPINNING);
    serial_phase(0);
    child_says(p);
    for (int i = 0; i < 2000 && !asym_rtx_is_joined(); i++) {
        serial_phase(0);
        asym_live_sleep(0.01);
    }
    MUST(asym_rtx_is_joined());
    child_waits(p);
    /* The daemon restarts, and the program joins again: then the parent says so. */
    while (!child_has_a_message(p)) {
        serial_phase(0);
        asym_live_sleep(0.01);
    }
    child_waits(p);
    child_turn(p);
}

TEST_F(joins_when_the_daemon_comes_and_comes_again)
{
    asym_listener_close(&f->l);
    start(joins_late, &f->p);
    parent_waits(&f->p);
    asym_listener_reopen(&f->l);
    struct asym_handed *h = take(f);
    assert_non_null(asym_handed_slot(h, f->p.pid));
    asym_listener_close(&f->l);
    parent_says(&f->p);
    asym_live_sleep(0.2);
    asym_listener_reopen(&f->l);
    h = take(f);
    parent_turn(&f->p);
    assert_int_equal(h->pid, f->p.pid);
    assert_non_null(asym_handed_slot(h, f->p.pid));
    parent_says(&f->p);
}

/* A thread pool: it reports waits, but no phases. */
static void joins_and_tells_of_no_phases(struct program *p)
{
    join_in_time(NULL);
    asym_rtx_set(asym_rtx_thread(), ASYM_RTX_SPINNING);
    child_turn(p);
    /* The daemon has ended: the library detects that and goes on. */
    MUST(asym_rtx_join(NULL) == 0);
    MUST(!asym_rtx_is_joined());
    child_turn(p);
    join_in_time(NULL);
    child_turn(p);
}

TEST_F(a_program_that_reports_no_phases_joins_again_by_joining)
{
    struct asym_handed *h = take_of(f, joins_and_tells_of_no_phases);
    asym_listener_close(&f->l);
    parent_turn(&f->p);
    asym_listener_reopen(&f->l);
    parent_says(&f->p);
    h = take(f);
    parent_waits(&f->p);
    assert_int_equal(h->pid, f->p.pid);
    assert_int_equal(word_of(asym_handed_slot(h, f->p.pid)) & ASYM_RTX_STATE, ASYM_RTX_SPINNING);
    parent_says(&f->p);
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

static void fills_the_table(struct program *p)
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
        asym_live_sleep(0.001);
    child_turn(p);
    /* The library detects that the owner of the slot has ended. */
    MUST(in_thread());
    asym_rtx_thread_leave();
    MUST(asym_rtx_thread());
}

/* Options without the last field, as in a program that was built with an older header. */
static void has_fewer_options(struct program *p)
{
    const struct asym_rtx_options options = {
        .size = offsetof(struct asym_rtx_options, notify_min_usec), .n_slots = 3, .notify_min_usec = UINT32_MAX};
    join_in_time(&options);
    asym_rtx_master(1);
    serial_phase(20);
    child_says(p);
}

/* Options with more fields than this library knows. */
static void has_more_options(struct program *p)
{
    const struct {
        struct asym_rtx_options known;
        char more[64];
    } options = {.known = {.size = sizeof options, .n_slots = 3}, .more = "?"};
    join_in_time(&options.known);
    asym_rtx_master(1);
    serial_phase(20);
    child_says(p);
}

TEST_F(options_of_another_version_are_heeded_as_far_as_they_go)
{
    void (*const programs[])(struct program *) = {has_fewer_options, has_more_options};
    for (size_t i = 0; i < ASYM_LENGTH(programs); i++) {
        struct asym_handed *h = take_of(f, programs[i]);
        assert_int_equal(h->page->n_slots, 3);
        /* The begin and the end, 20 ms later, both wake: notify_min is the default. */
        assert_int_equal(asym_handed_woken(h), 2);
        finish(&f->p);
    }
}

static void *hold_slot(void *program)
{
    child_says(program);
    asym_live_sleep(0.5);
    asym_rtx_set(asym_rtx_thread(), ASYM_RTX_WORKING);
    return NULL;
}

static void has_one_thread_too_many(struct program *p)
{
    const struct asym_rtx_options options = {.size = sizeof options, .n_slots = 1};
    pthread_t thread;
    join_in_time(&options);
    MUST(asym_rtx_thread());
    MUST(pthread_create(&thread, NULL, hold_slot, p) == 0);
    MUST(!in_thread());
    MUST(pthread_join(thread, NULL) == 0);
    MUST(!in_thread());
}

TEST_F(slots_are_freed_and_a_full_table_is_harmless)
{
    struct asym_handed *h = take_of(f, fills_the_table);
    assert_int_equal(h->page->n_slots, 2);
    assert_int_equal(asym_handed_used(h), 2);
    parent_says(&f->p);
    finish(&f->p);
    h = take_of(f, has_one_thread_too_many);
    assert_int_equal(asym_handed_used(h), 1);
}

static void fork_handlers(struct program *p)
{
    join_in_time(NULL);
    asym_rtx_set(asym_rtx_thread(), ASYM_RTX_SPINNING);
    child_turn(p);
    pid_t pid = asym_process_fork();
    if (pid == 0) {
        MUST(!asym_rtx_is_joined());
        asym_rtx_set(asym_rtx_thread(), ASYM_RTX_SLEEPING);
        for (int i = 0; i < 2000 && !asym_rtx_is_joined(); i++)
            serial_phase(5);
        MUST(asym_rtx_is_joined());
        child_turn(p);
        _exit(0);
    }
    int status;
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
    /* The parent's page and file are unchanged. */
    MUST(asym_rtx_is_joined());
    asym_rtx_set(asym_rtx_thread(), ASYM_RTX_WORKING);
    child_turn(p);
}

TEST_F(a_child_reports_for_itself)
{
    struct asym_handed *parent = take_of(f, fork_handlers);
    parent_says(&f->p);
    struct asym_handed *child = take(f);
    parent_waits(&f->p);
    assert_int_not_equal(child->pid, f->p.pid);
    assert_int_equal(word_of(asym_handed_slot(parent, f->p.pid)) & ASYM_RTX_STATE, ASYM_RTX_SPINNING);
    assert_int_equal(asym_handed_used(parent), 1);
    assert_int_equal(asym_handed_used(child), 1);
    assert_int_equal(word_of(asym_handed_slot(child, child->pid)) & ASYM_RTX_STATE, ASYM_RTX_WORKING);
    assert_int_not_equal(word_of(asym_handed_slot(child, child->pid)) & ASYM_RTX_PHASES, 0);
    parent_turn(&f->p);
    assert_int_equal(word_of(asym_handed_slot(parent, f->p.pid)) & ASYM_RTX_STATE, ASYM_RTX_WORKING);
    parent_says(&f->p);
}

static void raw_forks(struct program *p)
{
    int status;
    join_in_time(NULL);
    MUST(asym_rtx_thread());
    pid_t pid = _Fork();
    if (pid == 0) {
        asym_rtx_set(asym_rtx_thread(), ASYM_RTX_SPINNING);
        for (int i = 0; i < 150; i++) {
            serial_phase(0);
            asym_live_sleep(0.01);
        }
        _exit(0);
    }
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
    child_says(p);
}

TEST_F(a_fork_without_handlers_crashes_no_process)
{
    start(raw_forks, &f->p);
    struct asym_handed *parent = take(f);
    struct asym_handed *child = take(f);
    assert_int_not_equal(parent->pid, child->pid);
    parent_waits(&f->p);
}

/* The environment of the child, and a phase of 20 ms: notify_min decides whether that is short. */
static const char *notify_min_said;

static void goes_by_its_environment(struct program *p)
{
    MUST(setenv(ASYM_RTX_NOTIFY_MIN_ENV, notify_min_said, 1) == 0);
    join_in_time(NULL);
    asym_rtx_master(1);
    serial_phase(20);
    child_says(p);
}

TEST_F(notify_min_is_that_of_the_environment)
{
    static const struct {
        const char *said;
        unsigned woken;
        uint32_t written;
    } rows[] = {{"1000000", 1, 1000000}, {"1000", 2, 1000},    {"700", 2, 700},       {"", 2, 1000},
                {"0", 2, 1000},          {"1000001", 2, 1000}, {"900000us", 2, 1000}, {"-1", 2, 1000}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        notify_min_said = rows[i].said;
        struct asym_handed *h = take_of(f, goes_by_its_environment);
        assert_int_equal(asym_handed_woken(h), rows[i].woken);
        assert_int_equal(h->page->notify_min_usec, rows[i].written);
        finish(&f->p);
    }
}

static uint32_t notify_min_chosen;

/* Moves its page, moves it again, and forks children with and without handlers. */
static void goes_on(struct program *p)
{
    const struct asym_rtx_options options = {.size = sizeof options, .notify_min_usec = notify_min_chosen};
    pid_t (*const forks[])(void) = {fork, _Fork};
    int status;
    join_in_time(&options);
    child_waits(p);
    asym_rtx_leave();
    join_in_time(NULL);
    for (size_t i = 0; i < ASYM_LENGTH(forks); i++) {
        child_waits(p);
        const pid_t pid = forks[i]();
        if (pid == 0) {
            join_in_time(NULL);
            _exit(0);
        }
        MUST(waitpid(pid, &status, 0) == pid && status == 0);
    }
    child_waits(p);
}

TEST_F(the_page_says_its_notify_min_wherever_it_goes)
{
    static const struct {
        uint32_t chosen, written;
    } rows[] = {{20000, 20000}, {1, 1}, {UINT32_MAX, ASYM_RTX_NOTIFY_MIN_MAX}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        notify_min_chosen = rows[i].chosen;
        start(goes_on, &f->p);
        for (int k = 0; k < 4; k++) {
            struct asym_handed *h = take(f);
            assert_int_equal(h->pid == f->p.pid, k < 2);
            assert_int_equal(h->page->notify_min_usec, rows[i].written);
            for (size_t r = 0; r < sizeof h->page->reserved / sizeof *h->page->reserved; r++)
                assert_int_equal(h->page->reserved[r], 0);
            parent_says(&f->p);
        }
        finish(&f->p);
    }
}

/* One phase wakes the daemon. The next begins within notify_min of its end, and lasts longer than that. */
static void has_a_phase_across(struct program *p)
{
    const struct asym_rtx_options options = {.size = sizeof options, .notify_min_usec = 200000};
    join_in_time(&options);
    asym_rtx_master(1);
    serial_phase(250);
    child_turn(p);
    asym_live_sleep(0.1);
    serial_phase(150);
    child_says(p);
}

/* asymd samples after notify_min and sees the phase. If the test ran late, the begin wakes asymd instead. */
TEST_F(the_end_of_a_phase_that_asymd_can_have_seen_is_reported)
{
    struct asym_handed *h = take_of(f, has_a_phase_across);
    assert_int_equal(asym_handed_woken(h), 2);
    parent_turn(&f->p);
    assert_true(asym_handed_woken(h) >= 1);
}

/* Phases of the child that were long because it had no CPU; shared with the parent. */
static atomic_int *n_interrupted;

static void short_phases(void)
{
    const double end = asym_live_now() + 0.5;
    for (double begin = asym_live_now(); begin < end; begin = asym_live_now()) {
        serial_phase(0);
        *n_interrupted += asym_live_now() - begin >= 0.1; /* notify_min */
    }
}

/* The end of a long phase wakes the daemon, and so do the eight phases after it. */
static unsigned long most_wakes(void)
{
    return 9 * (unsigned long)*n_interrupted;
}

static void has_phases(struct program *p)
{
    const struct asym_rtx_options options = {.size = sizeof options, .notify_min_usec = 100000};
    join_in_time(&options);
    asym_rtx_master(1);
    for (int i = 0; i < 5; i++) {
        serial_phase(120);
        asym_live_sleep(0.12);
    }
    child_turn(p);
    short_phases();
    child_turn(p);
    short_phases();
    child_turn(p);
    /* A long phase after many short ones: its end wakes the daemon. */
    serial_phase(120);
    child_says(p);
}

TEST_F(phases_wake_and_barriers_do_not)
{
    n_interrupted = mmap(NULL, sizeof *n_interrupted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(n_interrupted != MAP_FAILED);
    struct asym_handed *h = take_of(f, has_phases);
    assert_int_equal(asym_handed_woken(h), 10);
    parent_turn(&f->p);
    /* This stops after at most eight short phases. */
    assert_true(asym_handed_woken(h) <= 8 + most_wakes());
    *n_interrupted = 0;
    parent_turn(&f->p);
    assert_true(asym_handed_woken(h) <= most_wakes());
    parent_turn(&f->p);
    assert_int_equal(asym_handed_woken(h), 1);
    munmap(n_interrupted, sizeof *n_interrupted);
}

static void closes_everything(struct program *p)
{
    int up = p->up[1];
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
    double end = asym_live_now() + 1.5;
    while (asym_live_now() < end || (asym_live_now() < end + 10 && !asym_rtx_is_joined()))
        serial_phase(2);
    for (size_t i = 0; i < 64; i++) {
        struct stat st;
        MUST(fstat(fileno(files[i]), &st) == 0 && st.st_size == 0);
    }
    MUST(asym_rtx_is_joined());
    child_says(p);
}

TEST_F(a_program_that_closes_everything_loses_nothing)
{
    start(closes_everything, &f->p);
    (void)take(f);
    struct asym_handed *second = take(f);
    parent_waits(&f->p);
    /* The program writes its words to the new page. */
    assert_non_null(asym_handed_slot(second, f->p.pid));
}

static void has_no_descriptors(struct program *p)
{
    const struct rlimit none = {3, 3};
    MUST(setrlimit(RLIMIT_NOFILE, &none) == 0);
    MUST(asym_rtx_join(NULL) == 0);
    serial_phase(0);
    MUST(asym_rtx_thread() && !asym_rtx_is_joined());
    child_says(p);
}

TEST_F(without_descriptors_a_program_reports_nothing)
{
    start(has_no_descriptors, &f->p);
    parent_waits(&f->p);
}

/* Each call checks the file: the program keeps it. */
static void joins_often(struct program *p)
{
    const int before = asym_process_descriptors(getpid());
    join_in_time(NULL);
    const int joined = asym_process_descriptors(getpid());
    MUST(joined == before + 1);
    for (int i = 0; i < 24; i++) {
        MUST(asym_rtx_join(NULL) == 0);
        MUST(asym_rtx_is_joined());
        MUST(asym_process_descriptors(getpid()) == joined);
        asym_live_sleep(0.05); /* more than a second in all: the library may create a file once a second */
    }
    asym_rtx_leave();
    MUST(asym_process_descriptors(getpid()) == before);
    child_says(p);
}

TEST_F(a_program_that_joins_often_has_one_file)
{
    struct asym_handed other;
    take_of(f, joins_often);
    assert_false(asym_listener_take(&f->l, 0, &other));
}

static void says_goodbye(struct program *p)
{
    join_in_time(NULL);
    child_waits(p);
    asym_rtx_leave();
    MUST(!asym_rtx_is_joined());
    asym_rtx_set(asym_rtx_thread(), ASYM_RTX_WORKING);
    join_in_time(NULL);
    child_says(p);
}

TEST_F(a_program_that_leaves_can_join_again)
{
    struct stat st;
    start(says_goodbye, &f->p);
    struct asym_handed *first = take(f);
    parent_says(&f->p);
    struct asym_handed *second = take(f);
    parent_waits(&f->p);
    /* The page that it has left has no magic, and no name; a wakeup said so. */
    assert_int_equal(first->page->magic, 0);
    assert_true(asym_handed_woken(first) > 0);
    assert_int_equal(fstat(first->file, &st), 0);
    assert_int_equal(st.st_nlink, 0);
    assert_int_equal(second->page->magic, ASYM_RTX_MAGIC);
    assert_non_null(asym_handed_slot(second, f->p.pid));
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
static void calls_everything(struct program *p)
{
    void (*const calls[])(void) = {
        call_join,           call_thread,           call_master,    asym_rtx_serial_begin,
        asym_rtx_serial_end, asym_rtx_thread_leave, asym_rtx_leave,
    };
    const int up = p->up[1];
    MUST(asym_rtx_join(NULL) == 0);
    for (int closed = 0; closed < 2; closed++) {
        for (size_t i = 0; i < ASYM_LENGTH(calls); i++)
            MUST(keeps_errno(calls[i]));
        MUST(asym_rtx_join(NULL) == 0);
        for (int fd = 3; fd < 1100; fd++)
            if (fd != up)
                close(fd);
    }
    MUST(keeps_errno(asym_rtx_leave));
    child_says(p);
}

TEST_F(no_call_changes_errno)
{
    start(calls_everything, &f->p);
    parent_waits(&f->p);
}

/* _exit(2) runs no destructors. */
static void leaves_a_file(struct program *p)
{
    join_in_time(NULL);
    child_turn(p);
}

static void exits(struct program *p)
{
    join_in_time(NULL);
    child_says(p);
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
TEST_F(files_that_programs_leave_go)
{
    struct program dies, leaves;
    char other[192];
    snprintf(other, sizeof other, "%s/other", f->l.user);
    close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    start(leaves_a_file, &f->p);
    parent_waits(&f->p);
    start(leaves_a_file, &dies);
    parent_waits(&dies);
    parent_says(&dies);
    finish(&dies);
    assert_int_equal(count_files(&f->l), 3);
    start(exits, &leaves);
    parent_waits(&leaves);
    finish(&leaves);
    assert_int_equal(count_files(&f->l), 2);
    parent_says(&f->p);
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
static void has_many_pages(struct program *p)
{
    const struct asym_rtx_options options = {.size = sizeof options, .n_slots = TABLE};
    pthread_t threads[COMERS];
    int pages = 0;
    join_in_time(&options);
    void *first = asym_rtx_thread();
    asym_rtx_thread_leave();
    for (int i = 0; i < COMERS; i++)
        MUST(pthread_create(&threads[i], NULL, come_and_go, first) == 0);
    for (const double end = asym_live_now() + 3; asym_live_now() < end; pages++) {
        asym_rtx_leave();
        join_in_time(NULL);
    }
    MUST(pages > 20);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < COMERS; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    child_turn(p);
}

TEST_F(no_slot_is_given_to_two_threads_while_the_page_is_exchanged)
{
    start(has_many_pages, &f->p);
    parent_waits(&f->p);
    parent_says(&f->p);
}

TEST(before_anything_every_call_is_harmless)
{
    assert_null(asym_rtx_thread());
    asym_rtx_set(NULL, ASYM_RTX_WORKING);
    asym_rtx_master(1);
    serial_phase(0);
    asym_rtx_thread_leave();
    assert_int_equal(asym_rtx_is_joined(), 0);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    return test_run(NULL, NULL);
}
