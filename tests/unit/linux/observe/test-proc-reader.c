/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading by a helper: answers come in order. A helper that hangs, ends or gives a false answer is replaced; the answer names
 * its process.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/macro.h"
#include "linux/observe/proc-read-limit.h"
#include "linux/observe/proc-reader.h"
#include "linux/sys/proc-parse.h"
#include "linux/sys/thread.h"
#include "load/helper.h"
#include "support/process.h"

#define FAKE ASYM_TEST_BIN "/tests/load-helper"
#define REAL ASYM_TEST_BIN "/daemon/asymd-helper"
/* The longest time that a test waits, in ms. */
#define PATIENCE 20000

static struct asym_proc_reader *new_reader(const char *program)
{
    struct asym_proc_reader *r;
    assert_int_equal(asym_proc_reader_new(program, asym_clock_now, &r), 0);
    return r;
}

static int ask_about(enum asym_read_limit_record record, struct asym_proc_reader *r, int32_t pid, uint32_t uid,
                     uint32_t tag)
{
    const struct asym_read_request request = {
        .pid = pid, .what = ASYM_READ_MAPS, .start = 5, .uid = uid, .tag = tag, .maps_most = 1000, .record = record};
    return r->ask(r, &request);
}

static int ask(struct asym_proc_reader *r, int32_t pid, uint32_t uid, uint32_t tag)
{
    return ask_about(ASYM_READ_LIMIT_UNREAD, r, pid, uid, tag);
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

static void answers_come_in_the_order_of_asking(void **state)
{
    (void)state;
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

static void more_than_fits_is_asked_for_later(void **state)
{
    (void)state;
    struct asym_proc_reader *r = new_reader(FAKE);
    int error = 0, n = 0;
    while (error == 0 && n < 100000)
        error = ask(r, ++n, 0, 0);
    assert_int_equal(error, -EAGAIN);
    wait_for_answer(r);
    assert_int_equal(ask(r, 1, 0, 0), 0);
    r->close(r);
}

/* The helper that was started last. The kernel lists children in the order of their start. */
static pid_t newest_helper(void)
{
    pid_t children[64];
    const size_t n = asym_process_children(getpid(), children, ASYM_LENGTH(children));
    assert_in_range(n, 1, ASYM_LENGTH(children) - 1);
    return children[n - 1];
}

/*
 * The answer names the process that the helper was reading. The new helper gets the other requests again. The helper is stopped
 * until it has all requests: it could end by the second one before the third one comes.
 */
static void expect_replaced(int32_t bad, int error, size_t hangs)
{
    struct asym_proc_reader *r = new_reader(FAKE);
    assert_int_equal(ask(r, 1, 0, 1), 0);
    const pid_t helper = newest_helper();
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
    assert_int_equal(next.error, 0);
    assert_int_equal(asym_proc_reader_hangs(r), hangs);
    r->close(r);
}

static void a_helper_that_fails_is_replaced(void **state)
{
    (void)state;
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
static void a_helper_that_ends_between_two_requests_names_the_process(void **state)
{
    (void)state;
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
        assert_int_equal(answer.error, 0);
    }
    assert_int_equal(asym_proc_reader_hangs(r), 0);
    r->close(r);
}

/* The next request finds that the helper has ended. The request after that is answered. */
static void a_helper_that_ends_when_nothing_is_asked_is_replaced(void **state)
{
    (void)state;
    struct asym_proc_reader *r = new_reader(FAKE);
    assert_int_equal(ask(r, TEST_READER_ENDS_THEN, 0, 1), 0);
    assert_int_equal(wait_for_answer(r).error, 0);
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

/* Processes of a user are not read until the helper that was killed for that user has ended. */
static int ask_until_not_later(struct asym_proc_reader *r, int32_t pid, uint32_t uid)
{
    struct asym_read_answer none;
    int error = -EAGAIN;
    for (int i = 0; i < PATIENCE && error == -EAGAIN; i++) {
        assert_int_equal(r->take(r, &none), 0);
        error = ask_about(ASYM_READ_LIMIT_HUNG, r, pid, uid, 0);
        usleep(1000);
    }
    return error;
}

/* Each of these requests could make a helper hang. */
static void others_of_a_user_whose_process_hangs_are_not_asked_about_at_once(void **state)
{
    (void)state;
    struct asym_proc_reader *r = new_reader(FAKE);
    assert_int_equal(ask(r, TEST_READER_HANGS, 2002, 1), 0);
    assert_int_equal(ask(r, TEST_READER_HANGS, 2002, 2), 0);
    assert_int_equal(ask(r, 7, 2003, 3), 0);
    assert_int_equal(wait_for_answer(r).error, -ETIME);
    const struct asym_read_answer put_off = wait_for_answer(r), other = wait_for_answer(r);
    assert_int_equal(put_off.tag, 2);
    assert_int_equal(put_off.error, -EAGAIN);
    assert_int_equal(other.tag, 3);
    assert_int_equal(other.error, 0);
    assert_int_equal(asym_proc_reader_hangs(r), 1);
    r->close(r);
}

static void a_user_whose_processes_hang_is_refused(void **state)
{
    (void)state;
    struct asym_proc_reader *r = new_reader(FAKE);
    assert_int_equal(r->refused_until(r, 2002), 0);
    const asym_usec began = asym_clock_now();
    for (int i = 0; i < ASYM_READ_LIMIT_HANGS; i++) {
        assert_int_equal(ask_until_not_later(r, TEST_READER_HANGS, 2002), 0);
        assert_int_equal(wait_for_answer(r).error, -ETIME);
    }
    /* The answer is the same while the helper that was killed last has not ended. */
    assert_int_equal(ask(r, 7, 2002, 0), -EPERM);
    assert_int_equal(ask_until_not_later(r, 7, 2002), -EPERM);
    assert_true(r->refused_until(r, 2002) >= began + ASYM_READ_LIMIT_REFUSED);
    assert_true(r->refused_until(r, 2002) <= asym_clock_now() + ASYM_READ_LIMIT_REFUSED);
    assert_int_equal(r->refused_until(r, 2003), 0);
    assert_int_equal(ask(r, 7, 2003, 0), 0);
    assert_int_equal(wait_for_answer(r).maps, 7);
    r->close(r);
}

/* A slow disk, or the kernel for want of memory, did it: neither keeps asymd from reading the others. */
static void root_and_a_user_whose_readers_end_are_not_refused(void **state)
{
    (void)state;
    struct asym_proc_reader *r = new_reader(FAKE);
    for (int i = 0; i <= ASYM_READ_LIMIT_HANGS; i++) {
        assert_int_equal(ask_until_not_later(r, TEST_READER_HANGS, 0), 0);
        assert_int_equal(wait_for_answer(r).error, -ETIME);
        assert_int_equal(ask_until_not_later(r, TEST_READER_ENDS, 2002), 0);
        assert_int_equal(wait_for_answer(r).error, -EPIPE);
    }
    assert_int_equal(ask_until_not_later(r, 7, 0), 0);
    assert_int_equal(wait_for_answer(r).maps, 7);
    assert_int_equal(ask_until_not_later(r, 8, 2002), 0);
    assert_int_equal(wait_for_answer(r).maps, 8);
    assert_int_equal(asym_proc_reader_hangs(r), ASYM_READ_LIMIT_HANGS + 1);
    r->close(r);
}

static void hang_over(struct asym_proc_reader *r, int32_t pid, enum asym_read_limit_record record)
{
    int error = -EAGAIN;
    struct asym_read_answer none;
    for (int i = 0; i < PATIENCE && error == -EAGAIN; i++) {
        assert_int_equal(r->take(r, &none), 0);
        error = ask_about(record, r, pid, 0, 0);
        usleep(1000);
    }
    assert_int_equal(error, 0);
    assert_int_equal(wait_for_answer(r).error, -ETIME);
}

static void expect_read(struct asym_proc_reader *r, enum asym_read_limit_record record, uint32_t uid)
{
    assert_int_equal(ask_about(record, r, 7, uid, 0), 0);
    assert_int_equal(wait_for_answer(r).maps, 7);
}

/* A user can make processes of root hang, too. The hangs cost root nothing but the reading of such processes. */
static void of_root_only_processes_that_may_hang_wait(void **state)
{
    (void)state;
    struct asym_proc_reader *r = new_reader(FAKE);
    const int n = (int)(ASYM_READ_LIMIT_USER_BURST / ASYM_READ_LIMIT_HANG_COST);
    for (int i = 0; i <= n; i++)
        hang_over(r, TEST_READER_HANGS, ASYM_READ_LIMIT_UNREAD);
    assert_int_equal(ask_about(ASYM_READ_LIMIT_HUNG, r, 7, 0, 0), -EAGAIN);
    expect_read(r, ASYM_READ_LIMIT_READ, 0);
    expect_read(r, ASYM_READ_LIMIT_UNREAD, 2002);
    r->close(r);
}

/* End the children of killed helpers, and reap all processes. The child of a helper becomes the test's when the helper ends. */
static void end_those_that_stay(void)
{
    pid_t children[64];
    do {
        const size_t n = asym_process_children(getpid(), children, ASYM_LENGTH(children));
        for (size_t i = 0; i < n; i++)
            assert_int_equal(asym_process_signal(children[i], SIGKILL), 0);
    } while (wait(NULL) > 0);
}

/* Two killed helpers have not ended. One more may hang over a process that was read before, and the last one over none. */
static void the_last_helper_is_not_for_root(void **state)
{
    (void)state;
    struct asym_proc_reader *r = new_reader(FAKE);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    for (int i = 0; i < 2; i++)
        hang_over(r, TEST_READER_STAYS, ASYM_READ_LIMIT_UNREAD);
    assert_int_equal(ask_about(ASYM_READ_LIMIT_UNREAD, r, 7, 0, 0), -EAGAIN);
    assert_int_equal(ask_about(ASYM_READ_LIMIT_HUNG, r, 7, 0, 0), -EAGAIN);
    expect_read(r, ASYM_READ_LIMIT_READ, 0);
    hang_over(r, TEST_READER_STAYS, ASYM_READ_LIMIT_READ);
    assert_int_equal(ask_about(ASYM_READ_LIMIT_READ, r, 7, 0, 0), -EAGAIN);
    expect_read(r, ASYM_READ_LIMIT_UNREAD, 2002);
    r->close(r);
    end_those_that_stay();
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

static void without_a_program_nothing_is_read(void **state)
{
    (void)state;
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
static void the_helper_of_asymd_reads(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_come_in_the_order_of_asking),
        cmocka_unit_test(more_than_fits_is_asked_for_later),
        cmocka_unit_test(a_helper_that_fails_is_replaced),
        cmocka_unit_test(a_helper_that_ends_between_two_requests_names_the_process),
        cmocka_unit_test(a_helper_that_ends_when_nothing_is_asked_is_replaced),
        cmocka_unit_test(others_of_a_user_whose_process_hangs_are_not_asked_about_at_once),
        cmocka_unit_test(a_user_whose_processes_hang_is_refused),
        cmocka_unit_test(root_and_a_user_whose_readers_end_are_not_refused),
        cmocka_unit_test(of_root_only_processes_that_may_hang_wait),
        cmocka_unit_test(the_last_helper_is_not_for_root),
        cmocka_unit_test(without_a_program_nothing_is_read),
        cmocka_unit_test(the_helper_of_asymd_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
