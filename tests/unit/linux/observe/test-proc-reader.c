/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading by a helper: answers come in order. A helper that hangs, ends or gives a false answer is replaced; the answer names
 * its process.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "linux/observe/proc-reader.h"
#include "linux/sys/proc-parse.h"
#include "linux/sys/thread.h"
#include "load/helper.h"
#include "support/process.h"
#include "support/test.h"

#define FAKE ASYM_TEST_BIN "/tests/load-helper"
#define REAL ASYM_TEST_BIN "/daemon/asymd-helper"
/* The longest time that a test waits, in ms. */
#define PATIENCE 20000

/* The clock of the readers: it goes ahead of the kernel's, or stands. */
static struct {
    asym_usec ahead, stands;
} clocks;

static asym_usec now(void)
{
    return clocks.stands ? clocks.stands : asym_clock_now() + clocks.ahead;
}

static struct asym_proc_reader *new_reader(const char *program)
{
    struct asym_proc_reader *r;
    assert_int_equal(asym_proc_reader_new(program, now, &r), 0);
    return r;
}

static int ask(struct asym_proc_reader *r, int32_t pid, uint32_t uid, uint32_t tag)
{
    const struct asym_read_request request = {
        .pid = pid, .what = ASYM_READ_MAPS, .start = 5, .uid = uid, .tag = tag, .maps_most = 1000};
    return r->ask(r, &request);
}

static struct asym_read_answer wait_for_answer(struct asym_proc_reader *r)
{
    struct asym_read_answer answer = {.pid = 0};
    for (int i = 0; i < PATIENCE; i++) {
        if (r->take(r, &answer) > 0)
            return answer;
        usleep(1000);
    }
    fail_msg("no answer");
    return answer;
}

TEST(answers_come_in_the_order_of_asking)
{
    struct asym_read_answer a;
    struct asym_proc_reader *r = new_reader(FAKE);
    assert_int_equal(r->take(r, &a), 0);
    for (uint32_t i = 1; i <= 100; i++)
        assert_int_equal(ask(r, (int32_t)i, 0, i), 0);
    for (uint32_t i = 1; i <= 100; i++) {
        a = wait_for_answer(r);
        assert_int_equal(a.error, 0);
        assert_int_equal(a.tag, i);
        assert_int_equal(a.maps, i);
    }
    assert_int_equal(r->take(r, &a), 0);
    assert_true(asym_proc_reader_spent(r) > 0);
    assert_int_equal(asym_proc_reader_hangs(r), 0);
    r->close(r);
}

TEST(more_than_fits_is_asked_for_later)
{
    struct asym_proc_reader *r = new_reader(FAKE);
    int error = 0, n = 0;
    while (error == 0 && n < 100000)
        error = ask(r, ++n, 0, 0);
    assert_int_equal(error, -EAGAIN);
    wait_for_answer(r);
    assert_int_equal(ask(r, 1, 0, 0), 0);
    r->close(r);
}

/*
 * The answer names the process that the helper was reading. The caller asks a new helper the other requests again. The helper is
 * stopped until it has all requests: it could end by the second one before the third one comes.
 */
static void expect_replaced(int32_t bad, int error, size_t hangs)
{
    struct asym_proc_reader *r = new_reader(FAKE);
    assert_int_equal(ask(r, 1, 0, 1), 0);
    /* The helper that was started last. The kernel lists children in the order of their start. */
    pid_t children[64];
    const size_t n = asym_process_children(getpid(), children, ASYM_LENGTH(children));
    assert_in_range(n, 1, ASYM_LENGTH(children) - 1);
    const pid_t helper = children[n - 1];
    assert_int_equal(asym_process_stop(helper), 0);
    assert_int_equal(ask(r, bad, 2002, 2), 0);
    assert_int_equal(ask(r, 3, 0, 3), 0);
    assert_int_equal(asym_process_signal(helper, SIGCONT), 0);
    assert_int_equal(wait_for_answer(r).tag, 1);
    const struct asym_read_answer hung = wait_for_answer(r), next = wait_for_answer(r);
    assert_int_equal(hung.tag, 2);
    assert_int_equal(hung.pid, bad);
    assert_int_equal(hung.error, error);
    assert_int_equal(next.tag, 3);
    assert_int_equal(next.error, -EAGAIN);
    assert_int_equal(asym_proc_reader_hangs(r), hangs);
    assert_int_equal(ask(r, 3, 0, 4), 0);
    assert_int_equal(wait_for_answer(r).error, 0);
    r->close(r);
}

TEST(a_helper_that_fails_is_replaced)
{
    expect_replaced(TEST_READER_HANGS, -ETIME, 1);
    expect_replaced(TEST_READER_ENDS, -EPIPE, 0);
    expect_replaced(TEST_READER_LIES, -ETIME, 1);
}

/* The helpers of earlier tests have ended, too: no child of this process runs. */
static bool all_helpers_have_ended(void)
{
    pid_t children[64];
    const size_t n = asym_process_children(getpid(), children, ASYM_LENGTH(children));
    assert_in_range(n, 1, ASYM_LENGTH(children) - 1);
    for (size_t i = 0; i < n; i++)
        if (asym_process_state(children[i]) != 'Z')
            return false;
    return true;
}

static void wait_for_end_of_helper(void)
{
    for (int i = 0; i < PATIENCE && !all_helpers_have_ended(); i++)
        usleep(1000);
    assert_true(all_helpers_have_ended());
}

/* Requests find that the helper has ended. No new helper starts before the process over which it ended has its answer. */
TEST(a_helper_that_ends_between_two_requests_names_the_process)
{
    struct asym_proc_reader *r = new_reader(FAKE);
    uint32_t tag = 1;
    assert_int_equal(ask(r, TEST_READER_ENDS, 2002, tag), 0);
    while (tag < 4 && ask(r, 3, 0, tag + 1) == 0)
        tag++;
    wait_for_end_of_helper();
    assert_int_equal(ask(r, 3, 0, 0), -EAGAIN);
    const struct asym_read_answer ended = wait_for_answer(r);
    assert_int_equal(ended.tag, 1);
    assert_int_equal(ended.error, -EPIPE);
    for (uint32_t next = 2; next <= tag; next++) {
        const struct asym_read_answer answer = wait_for_answer(r);
        assert_int_equal(answer.tag, next);
        assert_int_equal(answer.error, -EAGAIN);
    }
    assert_int_equal(asym_proc_reader_hangs(r), 0);
    r->close(r);
}

/* The next request finds that the helper has ended. The request after that is answered. */
TEST(a_helper_that_ends_when_nothing_is_asked_is_replaced)
{
    struct asym_proc_reader *r = new_reader(FAKE);
    assert_int_equal(ask(r, TEST_READER_ENDS_THEN, 0, 1), 0);
    assert_int_equal(wait_for_answer(r).error, 0);
    wait_for_end_of_helper(); /* a request that it still got would have ended it */
    struct asym_read_answer a = {.error = -EAGAIN};
    for (int i = 0; i < PATIENCE && a.error != 0; i++) {
        if (ask(r, 5, 0, 2) == 0)
            a = wait_for_answer(r);
        usleep(1000);
    }
    assert_int_equal(a.error, 0);
    assert_int_equal(a.maps, 5);
    r->close(r);
}

/* Each of these requests could make a helper hang. */
TEST(others_of_a_user_whose_process_hangs_are_not_asked_about_at_once)
{
    struct asym_proc_reader *r = new_reader(FAKE);
    assert_int_equal(ask(r, TEST_READER_HANGS, 2002, 1), 0);
    assert_int_equal(ask(r, TEST_READER_HANGS, 2002, 2), 0);
    assert_int_equal(ask(r, 7, 2003, 3), 0);
    assert_int_equal(wait_for_answer(r).error, -ETIME);
    const struct asym_read_answer put_off = wait_for_answer(r), other = wait_for_answer(r);
    assert_int_equal(put_off.tag, 2);
    assert_int_equal(put_off.error, -EAGAIN);
    assert_int_equal(other.tag, 3);
    assert_int_equal(other.error, -EAGAIN);
    assert_int_equal(asym_proc_reader_hangs(r), 1);
    assert_int_equal(ask(r, 7, 2002, 4), -EAGAIN);
    assert_int_equal(ask(r, 7, 2003, 5), 0);
    assert_int_equal(wait_for_answer(r).error, 0);
    r->close(r);
}

/* Waits until the reader accepts the request: the helper that was killed last has ended. */
static void expect_read_soon(struct asym_proc_reader *r, uint32_t uid)
{
    struct asym_read_answer none;
    int error = -EAGAIN;
    for (int i = 0; i < PATIENCE && error == -EAGAIN; i++) {
        assert_int_equal(r->take(r, &none), 0);
        error = ask(r, 7, uid, 0);
        usleep(1000);
    }
    assert_int_equal(error, 0);
    assert_int_equal(wait_for_answer(r).maps, 7);
}

/*
 * Root, too: a user can start a program of root, and make it hang. Others are read at once. The clock stands from before the wait
 * begins: however long a machine takes to end a helper and to start the next, that is no part of the wait.
 */
TEST(a_user_whose_process_ends_a_helper_waits)
{
    static const struct {
        int32_t pid;
        uint32_t uid;
        int error;
    } rows[] = {{TEST_READER_HANGS, 2002, -ETIME}, {TEST_READER_ENDS, 2002, -EPIPE}, {TEST_READER_HANGS, 0, -ETIME}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_proc_reader *r = new_reader(FAKE);
        assert_int_equal(ask(r, rows[i].pid, rows[i].uid, 0), 0);
        clocks.stands = asym_clock_now() + (rows[i].error == -ETIME ? ASYM_SEC : 0);
        assert_int_equal(wait_for_answer(r).error, rows[i].error);
        expect_read_soon(r, 2003);
        assert_int_equal(ask(r, 7, rows[i].uid, 0), -EAGAIN);
        clocks.stands += ASYM_READ_WAIT - 1;
        assert_int_equal(ask(r, 7, rows[i].uid, 0), -EAGAIN);
        clocks.stands++;
        expect_read_soon(r, rows[i].uid);
        r->close(r);
        clocks.stands = 0;
    }
}

/* Another helper is paid from the budget of all users: 5 ms of 200, and what it used. A 400th of the time pays it back. */
TEST(a_helper_costs_all_users)
{
    clocks.stands = asym_clock_now();
    struct asym_proc_reader *r = new_reader(FAKE);
    uint32_t n = 0;
    while (n < 1000 && ask(r, TEST_READER_ENDS, 2000 + n, 0) == 0) {
        assert_int_equal(wait_for_answer(r).error, -EPIPE);
        n++;
    }
    assert_in_range(n, 1, 41);
    assert_int_equal(ask(r, 7, 0, 0), -EAGAIN);
    clocks.stands += 400 * (n * 5000 + asym_proc_reader_spent(r) - 200000) + 1;
    expect_read_soon(r, 0);
    r->close(r);
    clocks.stands = 0;
}

/* A reading is charged what it may cost, and then what it has cost. */
TEST(readings_have_one_budget)
{
    const struct asym_read_request much = {
        .pid = 7, .what = ASYM_READ_MAPS, .uid = 2002, .maps_most = ASYM_READ_MAPS_MOST};
    clocks.stands = asym_clock_now();
    struct asym_proc_reader *r = new_reader(FAKE);
    for (int round = 0; round < 3; round++) {
        int n = 0;
        while (n < 100 && r->ask(r, &much) == 0)
            n++;
        assert_in_range(n, 4, 5);
        assert_int_equal(ask(r, 7, 0, 0), -EAGAIN);
        while (n-- > 0)
            assert_int_equal(wait_for_answer(r).error, 0);
    }
    r->close(r);
    clocks.stands = 0;
}

/* However long that takes, and root, too. The other helpers are for other users. */
TEST(a_user_waits_while_the_killed_helper_sleeps)
{
    static const uint32_t uids[] = {2002, 0};
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    for (size_t i = 0; i < ASYM_LENGTH(uids); i++) {
        struct asym_proc_reader *r = new_reader(FAKE);
        assert_int_equal(ask(r, TEST_READER_STAYS, uids[i], 0), 0);
        assert_int_equal(wait_for_answer(r).error, -ETIME);
        clocks.ahead += 100 * ASYM_READ_WAIT;
        assert_int_equal(ask(r, 7, uids[i], 0), -EAGAIN);
        expect_read_soon(r, 2003);
        r->close(r);
    }
    /* End the children of killed helpers, and reap all processes. The child of a helper becomes the test's when the helper ends. */
    pid_t children[64];
    do {
        const size_t n = asym_process_children(getpid(), children, ASYM_LENGTH(children));
        for (size_t i = 0; i < n; i++)
            assert_int_equal(asym_process_signal(children[i], SIGKILL), 0);
    } while (wait(NULL) > 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

TEST(without_a_program_nothing_is_read)
{
    struct asym_read_answer a;
    struct asym_proc_reader *r = new_reader(NULL);
    assert_int_equal(ask(r, 1, 0, 0), -ENOENT);
    assert_int_equal(r->take(r, &a), 0);
    r->close(r);
    r = new_reader("/nonexistent/asymd-helper");
    assert_int_equal(ask(r, 1, 0, 0), -ENOENT);
    r->close(r);
}

static struct asym_read_request about_us(uint32_t what)
{
    struct asym_stat stat;
    assert_int_equal(asym_thread_get_stat(getpid(), getpid(), &stat), 0);
    return (struct asym_read_request){
        .pid = getpid(), .what = what, .start = stat.start, .tag = 9, .maps_most = ASYM_READ_MAPS_FIRST};
}

/* Let asymd-helper read this process: it finds an RTX page by its name, and the command line. */
TEST(the_helper_of_asymd_reads)
{
    struct asym_proc_reader *r = new_reader(REAL);
    struct asym_read_request request = about_us(ASYM_READ_MAPS | ASYM_READ_CMDLINE | ASYM_READ_BUILD_ID);
    int fd = memfd_create("asym-rtx", MFD_CLOEXEC);
    assert_true(fd >= 0 && ftruncate(fd, 4096) == 0);
    void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    assert_int_equal(r->ask(r, &request), 0);
    struct asym_read_answer a = wait_for_answer(r);
    assert_int_equal(a.error, 0);
    assert_int_equal(a.maps & ASYM_MAPS_PAGE, ASYM_MAPS_PAGE);
    assert_int_equal(a.maps_cut, 0);
    assert_non_null(strstr(a.cmdline, "proc-reader"));
    assert_true(a.build_id[0] == '\0' || strspn(a.build_id, "0123456789abcdef") == strlen(a.build_id));
    /* The limit is below the size of the maps. */
    request.maps_most = 1;
    assert_int_equal(r->ask(r, &request), 0);
    assert_int_equal(wait_for_answer(r).maps_cut, 1);
    /* The request names another process that had this PID. */
    request.start--;
    assert_int_equal(r->ask(r, &request), 0);
    assert_int_equal(wait_for_answer(r).error, -ESRCH);
    munmap(page, 4096);
    close(fd);
    r->close(r);
}

TEST_MAIN
