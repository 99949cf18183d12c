/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The log: its readers, which cost lines but no time when they are full; lines about threads; its levels; and its limits. */
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>

#include "app/log.h"
#include "base/mask.h"
#include "support/captured-log.h"
#include "support/test.h" /* More lines than a socket or a pipe takes. */
#define MANY 5000

static char dir[] = "/tmp/asymd-log-XXXXXX", path[64];

static int open_journal(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(path, sizeof path, "%s/socket", dir);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    unlink(path);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static bool put_text(struct asym_log_sink *sink, const char *text)
{
    const struct iovec field = {(void *)(uintptr_t)text, strlen(text)};
    return asym_log_sink_put(sink, LOG_NOTICE, &field, 1);
}

/* Returns how many of them were lost. */
static unsigned put_many(struct asym_log_sink *sink)
{
    unsigned n = 0;
    for (int i = 0; i < MANY; i++)
        n += !put_text(sink, "MESSAGE=a line of the log");
    return n;
}

/* Takes all messages or bytes, and returns how many there were. */
static int drain(int fd)
{
    char bytes[4096];
    int n = 0;
    while (read(fd, bytes, sizeof bytes) > 0)
        n++;
    return n;
}

static void assert_next(int fd, const char *text, size_t size)
{
    char bytes[4096];
    const ssize_t n = read(fd, bytes, sizeof bytes);
    assert_int_equal(n, size);
    assert_memory_equal(bytes, text, size);
}

#define OF_JOURNAL(level) "\nPRIORITY=" level "\nSYSLOG_IDENTIFIER=unit-log\n"

static void assert_next_is_of_lost(int fd, unsigned n_lost)
{
    char lost[128];
    const int n = snprintf(lost, sizeof lost,
                           "MESSAGE=%u messages were lost: the reader of the log did not take them%s", n_lost,
                           OF_JOURNAL("4"));
    assert_next(fd, lost, (size_t)n);
}

/* Those that are lost to the end are counted at the end. */
TEST(a_journal_that_does_not_read_costs_lines_and_no_time)
{
    struct asym_log_sink *sink = asym_log_sink_journal("/nonexistent/socket");
    assert_non_null(sink);
    assert_false(put_text(sink, "MESSAGE=no journal"));
    asym_log_sink_free(sink);
    const int fd = open_journal();
    sink = asym_log_sink_journal(path);
    assert_non_null(sink);
    unsigned n_lost = put_many(sink);
    assert_in_range(n_lost, 1, MANY - 1);
    assert_int_equal(drain(fd), MANY - n_lost);
    assert_true(put_text(sink, "MESSAGE=again"));
    assert_next_is_of_lost(fd, n_lost);
    assert_next(fd, "MESSAGE=again" OF_JOURNAL("5"), strlen("MESSAGE=again" OF_JOURNAL("5")));
    assert_true(put_text(sink, "MESSAGE=more"));
    assert_next(fd, "MESSAGE=more" OF_JOURNAL("5"), strlen("MESSAGE=more" OF_JOURNAL("5")));
    n_lost = put_many(sink);
    assert_int_equal(drain(fd), MANY - n_lost);
    asym_log_sink_free(sink);
    assert_next_is_of_lost(fd, n_lost);
    close(fd);
}

/* A line break in a value must not start another field. */
TEST(a_value_with_a_line_break_is_one_field)
{
    static const char want[] = "MESSAGE=x\nASYM_REASON\n\x0e\0\0\0\0\0\0\0two\nPRIORITY=0" OF_JOURNAL("6");
    struct iovec fields[] = {{(void *)(uintptr_t) "MESSAGE=x", 9},
                             {(void *)(uintptr_t) "ASYM_REASON=two\nPRIORITY=0", 26}};
    const int fd = open_journal();
    struct asym_log_sink *sink = asym_log_sink_journal(path);
    assert_non_null(sink);
    assert_true(asym_log_sink_put(sink, LOG_INFO, fields, ASYM_LENGTH(fields)));
    assert_next(fd, want, sizeof want - 1);
    asym_log_sink_free(sink);
    close(fd);
}

/* Puts fd in the place of stderr until the end, and closes it. run closes the reader. */
static void with_stderr(int fd, void (*run)(int reader), int reader)
{
    fflush(NULL);
    const int own = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    assert_true(own >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    run(reader);
    fflush(NULL);
    dup2(own, STDERR_FILENO);
    close(own);
    close(fd);
}

static void write_a_long_line(int reader)
{
    char message[2 * PIPE_BUF] = "MESSAGE=", text[2 * PIPE_BUF];
    struct asym_log_sink *sink = asym_log_sink_stderr();
    assert_non_null(sink);
    memset(message + 8, 'x', sizeof message - 9);
    assert_true(put_text(sink, message));
    const ssize_t n = read(reader, text, sizeof text);
    assert_in_range(n, PIPE_BUF - 16, PIPE_BUF);
    assert_null(memchr(text, '\0', (size_t)n));
    assert_int_equal(text[n - 1], '\n');
    asym_log_sink_free(sink);
    close(reader);
}

TEST(a_line_is_cut_to_what_a_pipe_takes_at_once)
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    with_stderr(fds[1], write_a_long_line, fds[0]);
}

static void lose_some(int reader)
{
    static const char again[] = "messages were lost: the reader of the log did not take them\nasymd: again\n";
    char text[4096];
    struct asym_log_sink *sink = asym_log_sink_stderr();
    assert_non_null(sink);
    assert_true(put_text(sink, "MESSAGE=first"));
    assert_next(reader, "asymd: first\n", 13);
    asym_log_sink_nonblocking(sink);
    assert_in_range(put_many(sink), 1, MANY - 1);
    assert_false(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK);
    drain(reader);
    assert_true(put_text(sink, "MESSAGE=again"));
    const ssize_t n = read(reader, text, sizeof text - 1);
    assert_true(n > 0);
    text[n] = '\0';
    const int more = (int)read(reader, text + n, sizeof text - 1 - (size_t)n); /* a socket may give each line apart */
    text[n + (more > 0 ? more : 0)] = '\0';
    assert_non_null(strstr(text, again));
    asym_log_sink_free(sink);
    close(reader);
}

static void lose_to_no_reader(int reader)
{
    struct asym_log_sink *sink = asym_log_sink_stderr();
    assert_non_null(sink);
    signal(SIGPIPE, SIG_DFL);
    asym_log_sink_nonblocking(sink);
    close(reader);
    assert_false(asym_log_sink_put(sink, LOG_INFO, &(struct iovec){(void *)(uintptr_t) "MESSAGE=lost", 12}, 1));
    asym_log_sink_free(sink);
}

/* The pipe is as after the end of tee in "asymd 2>&1 | tee": SIGPIPE would end asymd before it has put everything back. */
TEST(a_pipe_without_a_reader_costs_a_line_and_not_the_process)
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    with_stderr(fds[1], lose_to_no_reader, fds[0]);
}

TEST(a_stderr_that_is_not_read_costs_lines_and_no_time)
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    with_stderr(fds[1], lose_some, fds[0]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    with_stderr(fds[1], lose_some, fds[0]);
}

static int make_dir(void **state)
{
    alarm(60); /* a write that waits would wait for ever */
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    unlink(path);
    return rmdir(dir);
}

static const struct asym_reason why = {.text = "because of %g"};

/* Users can provoke lines about threads. For classes, the limit for messages of one kind would be one for all applications. */
TEST(the_log_limits_lines_about_threads_and_writes_each_about_a_class)
{
    struct asym_task task = {.id = {.tid = 12, .tgid = 11}};
    const struct asym_log_thread line = {.task = &task, .reason = &why, .cpu = -1};
    struct asym_log log;
    static char text[8192];
    asym_log_init(&log);
    captured_log_begin();
    for (int i = 0; i < 2 * ASYM_LOG_LIMIT_MESSAGES; i++) {
        asym_log_event(&log, LOG_INFO, &line, "program %d is serial", i);
        asym_log_thread(&log, LOG_INFO, &line, "left alone");
    }
    asym_log_done(&log);
    captured_log_end(text, sizeof text);
    assert_int_equal(captured_log_count(text, "asymd: program"), 2 * ASYM_LOG_LIMIT_MESSAGES);
    assert_int_equal(captured_log_count(text, "asymd: left alone"), ASYM_LOG_LIMIT_MESSAGES);
    assert_int_equal(captured_log_count(text, "more messages like this were left out"), 1);
}

TEST(a_line_about_a_thread_has_the_fields_that_are_known)
{
    char fields[ASYM_LOG_FIELDS][ASYM_LOG_FIELD_SIZE];
    struct asym_task task = {.id = {.tid = 12, .tgid = 11}, .comm = "a\nb"};
    struct asym_mask mask = {.w = {0xf0}};
    struct asym_log_thread line = {.task = &task, .class = ASYM_CLASS_SP, .cpu = -1};
    static const char *const least[] = {"ASYM_PID=11", "ASYM_TID=12", "ASYM_COMM=a\\x0ab", "ASYM_CLASS=SP"};
    static const char *const more[] = {"ASYM_POLICY=pa", "ASYM_REASON=because of 3", "ASYM_CPU=5", "ASYM_MASK=4-7"};
    assert_int_equal(asym_log_fields(&line, fields), ASYM_LENGTH(least));
    for (size_t i = 0; i < ASYM_LENGTH(least); i++)
        assert_string_equal(fields[i], least[i]);
    line.policy = "pa";
    line.reason = &why;
    line.figure[0] = 3;
    line.cpu = 5;
    line.mask = &mask;
    assert_int_equal(asym_log_fields(&line, fields), ASYM_LENGTH(least) + ASYM_LENGTH(more));
    for (size_t i = 0; i < ASYM_LENGTH(more); i++)
        assert_string_equal(fields[ASYM_LENGTH(least) + i], more[i]);
}

/* The level is the position of the word in the row of asymd.log_level. */
TEST(the_levels_are_those_of_syslog)
{
    static const int levels[] = {LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG};
    struct asym_log log = {.level = 0};
    for (int i = 0; i < (int)ASYM_LENGTH(levels); i++) {
        asym_log_set_level(&log, i);
        assert_int_equal(log.level, levels[i]);
    }
}

static const char one[] = "one", other[] = "other";

/* Sends n messages of a kind at one moment. Returns how many the limit lets through. */
static unsigned write_many(struct asym_log_limit *l, const char *kind, unsigned n, asym_usec now)
{
    unsigned written = 0;
    for (unsigned i = 0; i < n; i++) {
        bool write;
        assert_non_null(asym_log_limit_count(l, kind, 5, now, &write));
        written += write;
    }
    return written;
}

TEST(a_few_are_written_and_the_others_counted)
{
    struct asym_log_limit l = {.kinds = {{.kind = NULL}}};
    unsigned n = 0;
    assert_int_equal(write_many(&l, one, 128, ASYM_SEC), ASYM_LOG_LIMIT_MESSAGES);
    assert_int_equal(write_many(&l, other, 1, ASYM_SEC), 1);
    assert_null(asym_log_limit_due(&l, 60 * ASYM_SEC, false, &n));
    const struct asym_log_kind *k = asym_log_limit_due(&l, 61 * ASYM_SEC, false, &n);
    assert_ptr_equal(k->kind, one);
    assert_int_equal(n, 128 - ASYM_LOG_LIMIT_MESSAGES);
    assert_null(asym_log_limit_due(&l, 61 * ASYM_SEC, false, &n));
    assert_int_equal(write_many(&l, one, 128, 61 * ASYM_SEC), ASYM_LOG_LIMIT_MESSAGES);
}

/* The limit never drops messages that come seldom. */
TEST(those_that_come_seldom_are_all_written)
{
    struct asym_log_limit l = {.kinds = {{.kind = NULL}}};
    unsigned n = 0;
    for (asym_usec t = 1; t < 1000; t += 13) {
        assert_int_equal(write_many(&l, one, 1, t * ASYM_SEC), 1);
        assert_null(asym_log_limit_due(&l, t * ASYM_SEC, false, &n));
    }
}

TEST(at_the_end_every_suppressed_message_is_due)
{
    struct asym_log_limit l = {.kinds = {{.kind = NULL}}};
    unsigned n = 0;
    write_many(&l, one, 6, ASYM_SEC);
    assert_null(asym_log_limit_due(&l, 2 * ASYM_SEC, false, &n));
    assert_non_null(asym_log_limit_due(&l, 2 * ASYM_SEC, true, &n));
    assert_int_equal(n, 1);
    assert_null(asym_log_limit_due(&l, 2 * ASYM_SEC, true, &n));
}

TEST(more_kinds_than_places_are_limited_too)
{
    static const char kinds[2 * ASYM_LOG_LIMIT_KINDS];
    struct asym_log_limit l = {.kinds = {{.kind = NULL}}};
    unsigned written = 0;
    for (size_t i = 0; i < sizeof kinds; i++)
        written += write_many(&l, &kinds[i], 100, ASYM_SEC);
    assert_int_equal(written, ASYM_LOG_LIMIT_KINDS * ASYM_LOG_LIMIT_MESSAGES);
}

TEST_MAIN_WITH(make_dir, remove_dir)
