/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading by a helper: answers in order, and one that does not answer, ends or lies is replaced and its process is named. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macro.h"
#include "linux/maps.h"
#include "linux/proc-ration.h"
#include "linux/proc-reader.h"
#include "linux/thread.h"
#include "load/helper.h"

#define FAKE ASYM_TEST_BIN "/tests/load-helper"
#define REAL ASYM_TEST_BIN "/daemon/asymd-helper"
/* So long a test waits for what has to come, in ms. */
#define PATIENCE 20000

static struct asym_proc_reader *new_reader(const char *program)
{
    struct asym_proc_reader *r;
    assert_int_equal(asym_proc_reader_new(program, asym_thread_now, &r), 0);
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

/* The process that it was at is named; the others are asked about once more. */
static void expect_replaced(int32_t bad)
{
    struct asym_proc_reader *r = new_reader(FAKE);
    assert_int_equal(ask(r, 1, 0, 1), 0);
    assert_int_equal(ask(r, bad, 2002, 2), 0);
    assert_int_equal(ask(r, 3, 0, 3), 0);
    assert_int_equal(wait_for_answer(r).tag, 1);
    const struct asym_read_answer hung = wait_for_answer(r), next = wait_for_answer(r);
    assert_int_equal(hung.tag, 2);
    assert_int_equal(hung.pid, bad);
    assert_int_equal(hung.error, -ETIME);
    assert_int_equal(next.tag, 3);
    assert_int_equal(next.error, 0);
    assert_int_equal(asym_proc_reader_hangs(r), 1);
    r->close(r);
}

static void a_helper_that_fails_is_replaced(void **state)
{
    (void)state;
    expect_replaced(TEST_READER_HANGS);
    expect_replaced(TEST_READER_ENDS);
    expect_replaced(TEST_READER_LIES);
}

/* It is missed with the next question, and the one after that is answered. */
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

/* A user is not asked about until the helper that was killed for it is gone. */
static int ask_until_not_later(struct asym_proc_reader *r, int32_t pid, uint32_t uid)
{
    struct asym_read_answer none;
    int error = -EAGAIN;
    for (int i = 0; i < PATIENCE && error == -EAGAIN; i++) {
        assert_int_equal(r->take(r, &none), 0);
        error = ask(r, pid, uid, 0);
        usleep(1000);
    }
    return error;
}

/* Each of them could cost a helper. */
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
    for (int i = 0; i < ASYM_RATION_HANGS; i++) {
        assert_int_equal(ask_until_not_later(r, TEST_READER_HANGS, 2002), 0);
        assert_int_equal(wait_for_answer(r).error, -ETIME);
    }
    assert_int_equal(ask_until_not_later(r, 7, 2002), -EPERM);
    assert_int_equal(ask(r, 7, 2003, 0), 0);
    assert_int_equal(wait_for_answer(r).maps, 7);
    r->close(r);
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

/* asymd-helper itself, about this process: a page of runtime extensions by its name, and its command line. */
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
    assert_non_null(strstr(a.cmdline, "proc_reader"));
    assert_true(a.build_id[0] == '\0' || strspn(a.build_id, "0123456789abcdef") == strlen(a.build_id));
    /* Fewer bytes than there are. */
    request.maps_most = 1;
    assert_int_equal(r->ask(r, &request), 0);
    assert_int_equal(wait_for_answer(r).maps_cut, 1);
    /* Another process had the number. */
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
        cmocka_unit_test(a_helper_that_ends_when_nothing_is_asked_is_replaced),
        cmocka_unit_test(others_of_a_user_whose_process_hangs_are_not_asked_about_at_once),
        cmocka_unit_test(a_user_whose_processes_hang_is_refused),
        cmocka_unit_test(without_a_program_nothing_is_read),
        cmocka_unit_test(the_helper_of_asymd_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
