/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads and writes that take several system calls. */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "base/io.h"
#include "support/test.h"

/* More than a pipe holds, so that a blocking write needs a reader. */
enum { SIZE = 1 << 18 };

static char sent[SIZE], got[SIZE + 1];

/* Sends in two parts: one read returns no more than the first. */
static void *send_all(void *fd)
{
    const int r = asym_write_all(*(int *)fd, sent, SIZE / 2);
    usleep(1000);
    const int second = asym_write_all(*(int *)fd, sent + SIZE / 2, SIZE / 2);
    close(*(int *)fd);
    return (void *)(intptr_t)(r | second);
}

TEST(all_bytes_arrive_in_order)
{
    static const size_t sizes[] = {SIZE - 1, SIZE, SIZE + 1};
    for (size_t i = 0; i < SIZE; i++)
        sent[i] = (char)(i * 7 + i / 251);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int ends[2];
        pthread_t sender;
        void *r;
        memset(got, 0, sizeof got);
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(pthread_create(&sender, NULL, send_all, &ends[1]), 0);
        assert_int_equal(asym_read_all(ends[0], got, sizes[i]), sizes[i] < SIZE ? sizes[i] : SIZE);
        assert_memory_equal(got, sent, sizes[i] < SIZE ? sizes[i] : SIZE);
        while (asym_read_all(ends[0], got, sizeof got) > 0)
            ;
        pthread_join(sender, &r);
        assert_null(r);
        close(ends[0]);
    }
}

static void on_alarm(int signal)
{
}

/* A signal ends a system call early, with a part of the bytes or with EINTR. */
TEST(signals_lose_no_bytes)
{
    const struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART */
    struct sigaction before;
    const struct itimerval often = {.it_interval = {.tv_usec = 100}, .it_value = {.tv_usec = 100}}, never = {0};
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    for (int i = 0; i < 5; i++)
        all_bytes_arrive_in_order(state);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
}

TEST(errors_are_returned)
{
    char c = 0;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(asym_read_all(ends[1], &c, 1), -EBADF);
    assert_int_equal(asym_write_all(ends[0], &c, 1), -EBADF);
    assert_int_equal(asym_write_synced(ends[0], &c, 1), -EBADF);
    /* A pipe cannot be on a disk. */
    assert_int_equal(asym_write_synced(ends[1], &c, 1), -EINVAL);
    assert_int_equal(asym_write_all(ends[1], &c, 0), 0);
    close(ends[0]);
    close(ends[1]);
}

TEST_MAIN
