/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of lib/base: masks and their text formats, parsers, escaping, sort and binary search, the arena, the errno table. */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include <asym/plan.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/mask.h"
#include "base/sort.h"
#include "base/text.h"
#include "base/token-bucket.h"
#include "linux/sys/proc-parse.h"
#include "support/test.h"

static void check_list(const char *text, const char *canonical)
{
    struct asym_mask m;
    char buf[ASYM_MASK_LIST_MAX];
    assert_int_equal(asym_mask_parse_list(text, strlen(text), &m), 0);
    assert_string_equal(asym_mask_format_list(&m, buf, sizeof buf), canonical);
}

TEST(lists_are_read_and_written_as_the_kernel_does)
{
    check_list("0-3,8", "0-3,8");
    check_list(" 5\n", "5");
    check_list("", "");
    check_list("\n", "");
    check_list("3,2,1", "1-3");
    check_list("63-64,1023", "63-64,1023");
}

TEST(a_list_that_is_none_is_refused_and_changes_nothing)
{
    static const struct {
        const char *text;
        int error;
    } cases[] = {{"a", -EINVAL},   {"1,", -EINVAL},   {",1", -EINVAL},           {"3-1", -EINVAL}, {"1-", -EINVAL},
                 {"1 2", -EINVAL}, {"1024", -ERANGE}, {"0-4294967296", -ERANGE}, {"-1", -EINVAL}};
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        struct asym_mask m = {.w = {42}};
        assert_int_equal(asym_mask_parse_list(cases[i].text, strlen(cases[i].text), &m), cases[i].error);
        assert_int_equal(m.w[0], 42);
    }
}

TEST(a_short_buffer_cuts_a_list_at_a_whole_range)
{
    struct asym_mask m;
    char buf[8];
    assert_int_equal(asym_mask_parse_list("0-3,10-12,20", 12, &m), 0);
    assert_string_equal(asym_mask_format_list(&m, buf, sizeof buf), "0-3");
}

TEST(hex_masks_of_proc_status)
{
    struct asym_mask m;
    char buf[64];
    assert_int_equal(asym_mask_parse_hex("3", 1, &m), 0);
    assert_string_equal(asym_mask_format_list(&m, buf, sizeof buf), "0-1");
    assert_int_equal(asym_mask_parse_hex("00000001,80000000\n", 18, &m), 0);
    assert_string_equal(asym_mask_format_list(&m, buf, sizeof buf), "31-32");
    assert_int_equal(asym_mask_parse_hex("", 0, &m), -EINVAL);
    assert_int_equal(asym_mask_parse_hex("xyz", 3, &m), -EINVAL);
    assert_int_equal(asym_mask_parse_hex("1,2", 3, &m), -EINVAL);
    char wide[8192 / 32 * 9];
    memset(wide, 'f', sizeof wide);
    for (size_t i = 8; i < sizeof wide; i += 9)
        wide[i] = ',';
    assert_int_equal(asym_mask_parse_hex(wide, sizeof wide - 1, &m), 0);
    assert_int_equal(asym_mask_count(&m), ASYM_MAX_CPUS);
}

TEST(set_operations)
{
    struct asym_mask a = {0}, b = {0}, r;
    asym_mask_set(&a, 1);
    asym_mask_set(&a, 1000);
    asym_mask_set(&b, 1000);
    r = asym_mask_and(&a, &b);
    assert_true(asym_mask_equal(&r, &b));
    r = asym_mask_minus(&a, &b);
    assert_true(asym_mask_has(&r, 1) && !asym_mask_has(&r, 1000));
    assert_true(asym_mask_within(&b, &a) && !asym_mask_within(&a, &b));
    assert_true(asym_mask_meets(&a, &b));
    assert_false(asym_mask_has(&a, -1) || asym_mask_has(&a, 1024));
    assert_int_equal(asym_mask_next(&a, 2), 1000);
    assert_int_equal(asym_mask_next(&a, 1001), -1);
    assert_int_equal(asym_mask_next(&a, 1024), -1);
}

TEST(durations_need_a_unit)
{
    asym_usec d = 7;
    static const char *const bad[] = {"100", "ms", "", "1x", "1 ms s", "1h30", "h1", "nan s", "1e3 ms", "1..5 s"};
    for (size_t i = 0; i < ASYM_LENGTH(bad); i++)
        assert_int_equal(asym_parse_duration(bad[i], strlen(bad[i]), &d), -EINVAL);
    static const struct {
        const char *text;
        asym_usec usec;
    } good[] = {{"100ms", 100 * ASYM_MSEC},
                {" 1.5 s ", 1500 * ASYM_MSEC},
                {"20us", 20},
                {"10min", 600 * ASYM_SEC},
                {"1.5h", 5400 * ASYM_SEC},
                {"1h30min", 5400 * ASYM_SEC},
                {"2 days", 172800 * ASYM_SEC},
                {"1 h 30 m 1.5 sec", 5401500 * ASYM_MSEC},
                {"1w1d", 691200 * ASYM_SEC},
                {"2hours", 7200 * ASYM_SEC},
                {"1s500ms", 1500 * ASYM_MSEC}};
    for (size_t i = 0; i < ASYM_LENGTH(good); i++) {
        assert_int_equal(asym_parse_duration(good[i].text, strlen(good[i].text), &d), 0);
        assert_int_equal(d, good[i].usec);
    }
    assert_int_equal(asym_parse_duration("-1 s", 4, &d), -ERANGE);
    assert_int_equal(asym_parse_duration("99999999999999999 s", 19, &d), -ERANGE);
    assert_int_equal(d, 1500 * ASYM_MSEC);
}

TEST(numbers_at_the_edges)
{
    uint64_t u = 0;
    int64_t i = 0;
    double f = 0;
    assert_int_equal(asym_parse_u64("18446744073709551615", 20, &u), 0);
    assert_true(u == UINT64_MAX);
    assert_int_equal(asym_parse_u64("18446744073709551616", 20, &u), -ERANGE);
    assert_int_equal(asym_parse_u64("-1", 2, &u), -EINVAL);
    assert_int_equal(asym_parse_i64("-9223372036854775808", 20, &i), 0);
    assert_true(i == INT64_MIN);
    assert_int_equal(asym_parse_i64("9223372036854775808", 19, &i), -ERANGE);
    assert_int_equal(asym_parse_i64("-0", 2, &i), 0);
    assert_true(i == 0);
    assert_int_equal(asym_parse_i64("--1", 3, &i), -EINVAL);
    assert_int_equal(asym_parse_number("-12.25", 6, &f), 0);
    assert_true(f == -12.25);
    assert_int_equal(asym_parse_number(".", 1, &f), -EINVAL);
    assert_int_equal(asym_parse_number("inf", 3, &f), -EINVAL);
    assert_int_equal(asym_parse_number("99999999999999999999", 20, &f), -ERANGE);
}

TEST(lines_are_counted_and_trimmed)
{
    static const char text[] = "a b\r\n\n \tc \nd";
    static const struct {
        const char *line;
        size_t start;
    } want[] = {{"a b", 0}, {"", 5}, {"c", 6}, {"d", 11}};
    struct asym_lines l = {.at = text, .end = text + sizeof text - 1};
    const char *line;
    size_t n;
    for (unsigned i = 0; i < ASYM_LENGTH(want); i++) {
        assert_true(asym_lines_next(&l, &line, &n));
        assert_int_equal(n, strlen(want[i].line));
        assert_memory_equal(line, want[i].line, n);
        assert_int_equal(l.number, i + 1);
        assert_ptr_equal(l.start, text + want[i].start);
    }
    assert_false(asym_lines_next(&l, &line, &n));
    assert_true(asym_line_is_text("a\tb \xff", 5));
    assert_false(asym_line_is_text("a\rb", 3));
    assert_false(asym_line_is_text("a\x7f", 2));
    assert_false(asym_line_is_text("\0", 1));
}

TEST(hostile_names_become_printable)
{
    static const struct {
        const char *bytes, *text;
    } cases[] = {{"plain", "plain"},
                 {"a\nb", "a\\x0ab"},
                 {"\xff\xfe", "\\xff\\xfe"},
                 {"caf\xc3\xa9", "caf\xc3\xa9"},
                 {"\xc0\xaf", "\\xc0\\xaf"},          /* overlong */
                 {"\xed\xa0\x80", "\\xed\\xa0\\x80"}, /* surrogate */
                 {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
                 {"\xf0\x9f\x98", "\\xf0\\x9f\\x98"}, /* cut short */
                 {"\xc2\x9b"
                  "31m",
                  "\\xc2\\x9b31m"}, /* U+009B: one character that begins a control sequence */
                 {"\x1b[31m", "\\x1b[31m"},
                 {"a\xe2\x80\xae", "a\\xe2\\x80\\xae"},        /* U+202E: what follows runs from right to left */
                 {"\xe2\x80\xa8", "\\xe2\\x80\\xa8"},          /* U+2028: a new line */
                 {"\xe2\x80\x8b", "\\xe2\\x80\\x8b"},          /* U+200B: invisible */
                 {"\xc2\xad", "\\xc2\\xad"},                   /* U+00AD: shown at the end of a line only */
                 {"\xf3\xa0\x81\xa1", "\\xf3\\xa0\\x81\\xa1"}, /* U+E0061: a tag, invisible */
                 {"\xe2\x81\xa6", "\\xe2\\x81\\xa6"},          /* U+2066: an isolated direction */
                 {"\xef\xbb\xbf", "\\xef\\xbb\\xbf"},          /* U+FEFF: a byte order mark */
                 {"\xef\xbf\xbf", "\\xef\\xbf\\xbf"},          /* U+FFFF and U+FDD0: no characters */
                 {"\xef\xb7\x90", "\\xef\\xb7\\x90"},
                 {"\xd8\x9c", "\\xd8\\x9c"},                               /* U+061C: the Arabic letter mark */
                 {"\xe2\x80\xa7\xe2\x80\xaf", "\xe2\x80\xa7\xe2\x80\xaf"}, /* their neighbours U+2027, U+202F */
                 {"a\\b", "a\\\\b"}};
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        char buf[64];
        asym_text_escape(cases[i].bytes, strlen(cases[i].bytes), buf, sizeof buf);
        assert_string_equal(buf, cases[i].text);
    }
    char tiny[6];
    assert_string_equal(asym_text_escape("ab\xff", 3, tiny, sizeof tiny), "ab");
}

TEST(a_text_grows_by_whole_pieces)
{
    char buf[8] = "before";
    struct asym_text text = asym_text_in(buf, sizeof buf);
    assert_string_equal(buf, "");
    assert_true(asym_text_add(&text, "%s%d", "ab", 1));
    assert_false(asym_text_add(&text, "%s", "cdefg"));
    assert_string_equal(buf, "ab1");
    assert_true(asym_text_add(&text, "%s", "cdef"));
    assert_false(asym_text_add(&text, "g"));
    assert_string_equal(buf, "ab1cdef");
    assert_int_equal(text.used, 7);
}

TEST(distance_finds_the_nearest_spelling)
{
    assert_int_equal(asym_text_distance("interval", "interval"), 0);
    assert_int_equal(asym_text_distance("intervall", "interval"), 1);
    assert_int_equal(asym_text_distance("", "abc"), 3);
    assert_int_equal(asym_text_distance("kitten", "sitting"), 3);
}

static int by_tens(uint32_t a, uint32_t b, const void *ctx)
{
    return (int)(a / 10) - (int)(b / 10);
}

TEST(sort_is_stable_at_every_length)
{
    static uint32_t v[3000], scratch[3000];
    uint32_t seed = 1;
    for (size_t n = 0; n <= 3000; n = n < 70 ? n + 1 : n * 2 + 3) {
        /* The last digit counts the occurrences of a key modulo 10. In a stable order it ascends and wraps. */
        unsigned seen[100] = {0};
        for (size_t i = 0; i < n; i++) {
            seed = seed * 1664525 + 1013904223;
            unsigned key = (seed >> 16) % 100;
            v[i] = key * 10 + seen[key]++ % 10;
        }
        asym_sort_index(v, n, scratch, by_tens, NULL);
        for (size_t i = 1; i < n; i++) {
            assert_true(v[i - 1] / 10 <= v[i] / 10);
            if (v[i - 1] / 10 == v[i] / 10)
                assert_int_equal((v[i - 1] + 1) % 10, v[i] % 10);
        }
    }
}

static int by_number(uint32_t a, uint32_t b, const void *ctx)
{
    return a < b ? -1 : a > b;
}

TEST(sort_least_brings_the_first_to_the_front)
{
    static uint32_t v[700];
    uint32_t seed = 1;
    for (size_t n = 0; n <= ASYM_LENGTH(v); n = n < 20 ? n + 1 : n * 2) {
        for (size_t k = 0; k <= n; k = k < 20 ? k + 1 : k * 2) {
            bool there[ASYM_LENGTH(v)] = {false};
            for (size_t i = 0; i < n; i++)
                v[i] = (uint32_t)i;
            for (size_t i = n; i-- > 1;) {
                seed = seed * 1664525 + 1013904223;
                const size_t other = (seed >> 8) % (i + 1);
                const uint32_t x = v[i];
                v[i] = v[other];
                v[other] = x;
            }
            asym_sort_least(v, n, k, by_number, NULL);
            for (size_t i = 0; i < n; i++) {
                assert_true(i < k ? v[i] < k : v[i] >= k);
                assert_false(there[v[i]]);
                there[v[i]] = true;
            }
        }
    }
}

TEST(arena_refuses_and_says_what_would_do)
{
    _Alignas(16) unsigned char memory[64];
    struct asym_arena a = {.base = memory, .size = sizeof memory};
    memset(memory, 1, sizeof memory);
    assert_non_null(asym_arena_take(&a, 3, 16));
    assert_ptr_equal(asym_arena_take_raw(&a, 1, 16), memory + 48);
    assert_int_equal(memory[47] * 2 + memory[48], 1); /* only the first is zeroed */
    assert_false(asym_arena_is_short(&a));
    assert_null(asym_arena_take(&a, 2, 16));
    assert_int_equal(a.wanted, 96);
    assert_non_null(asym_arena_take(&a, 0, 16));
    assert_true(asym_arena_is_short(&a));
    for (size_t size = 1; size <= 2; size++) {
        a = (struct asym_arena){.base = memory, .size = sizeof memory};
        assert_null(asym_arena_take(&a, SIZE_MAX, size));
        assert_non_null(asym_arena_take(&a, 1, 16));
        assert_true(asym_arena_is_short(&a));
    }
}

TEST(errno_table)
{
    assert_int_equal(asym_outcome_of(0), ASYM_OUTCOME_DONE);
    assert_int_equal(asym_outcome_of(-ESRCH), ASYM_OUTCOME_GONE);
    assert_int_equal(asym_outcome_of(-EAGAIN), ASYM_OUTCOME_RETRY);
    assert_int_equal(asym_outcome_of(-EINVAL), ASYM_OUTCOME_RETRY);
    assert_int_equal(asym_outcome_of(-EBUSY), ASYM_OUTCOME_HANDS_OFF);
    assert_int_equal(asym_outcome_of(-ESTALE), ASYM_OUTCOME_HANDS_OFF);
    assert_int_equal(asym_outcome_of(-EPERM), ASYM_OUTCOME_HANDS_OFF);
    assert_int_equal(asym_outcome_of(-12345), ASYM_OUTCOME_HANDS_OFF);
}

struct item {
    char pad;
    struct {
        int32_t before, number, behind;
    } id;
};

TEST(the_first_that_is_not_below_is_found)
{
    static struct item items[40];
    for (size_t n = 0; n <= 40; n++) {
        /* every number occurs twice; the first are negative */
        for (size_t i = 0; i < n; i++) {
            items[i].id.number = (int32_t)(i / 2 * 3) - 20;
            items[i].id.before = INT32_MAX;
            items[i].id.behind = INT32_MIN;
        }
        for (int32_t key = -25; key < 45; key++) {
            size_t want = 0;
            while (want < n && items[want].id.number < key)
                want++;
            assert_int_equal(ASYM_LOWER_BOUND(items, n, id.number, key), want);
        }
        assert_int_equal(ASYM_LOWER_BOUND(items, n, id.number, INT32_MIN), 0);
        assert_int_equal(ASYM_LOWER_BOUND(items, n, id.number, INT32_MAX), n);
    }
}

TEST(nothing_is_searched_where_there_are_no_items)
{
    const struct item *items = NULL;
    assert_int_equal(ASYM_LOWER_BOUND(items, 0, id.number, 1), 0);
}

/* -- the clocks: their unit, and the time that each counts -- */

static uint64_t ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

TEST(a_clock_counts_microseconds)
{
    const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_THREAD_CPUTIME_ID, CLOCK_PROCESS_CPUTIME_ID};
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        const uint64_t before = ns(clocks[i]);
        const asym_usec t = asym_clock_read(clocks[i]);
        assert_in_range(t, before / 1000, ns(clocks[i]) / 1000);
    }
}

static void *use_cpu(void *arg)
{
    while (asym_clock_thread_cpu() < 20 * ASYM_MSEC) {
    }
    return NULL;
}

TEST(each_clock_counts_its_own_time)
{
    pthread_t thread;
    const asym_usec now = asym_clock_now(), cpu = asym_clock_thread_cpu(), all = asym_clock_process_cpu();
    usleep(10000);
    assert_true(asym_clock_now() - now >= 10 * ASYM_MSEC);
    assert_int_equal(pthread_create(&thread, NULL, use_cpu, NULL), 0);
    pthread_join(thread, NULL);
    assert_true(asym_clock_process_cpu() - all >= 20 * ASYM_MSEC);
    assert_true(asym_clock_thread_cpu() - cpu < 20 * ASYM_MSEC);
}

TEST(a_clock_that_is_none_reads_0)
{
    assert_int_equal(asym_clock_read(-1000), 0);
    assert_int_equal(asym_clock_read(12345), 0);
}

/* -- reads and writes that take several system calls -- */

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

/* -- the runnable time of threads by their lines of schedstat and their states -- */

#define MS       1000000ull
#define INTERVAL 100 /* ms */

/* The ms that the kernel credits in an interval, the turns that began in it, and the state at its end. */
struct interval {
    unsigned run, wait, turns;
    char state;
    unsigned counts; /* ms */
};

struct row {
    const char *name;
    char state; /* before the first interval */
    struct interval intervals[12];
};

static const struct row rows[] = {
    {"a thread that sleeps", 'S', {{0, 0, 0, 'S', 0}, {0, 0, 0, 'S', 0}}},
    {"one that spins alone: the counters lag by up to one tick",
     'R',
     {{96, 0, 0, 'R', 100}, {104, 0, 0, 'R', 100}, {100, 0, 0, 'R', 100}, {97, 0, 0, 'R', 100}, {103, 0, 0, 'R', 100}}},
    /* docs/known-limits.md */
    {"one that spins: the time that a host steals is neither run nor wait",
     'R',
     {{40, 0, 1, 'R', 40}, {40, 0, 1, 'R', 40}, {40, 0, 1, 'R', 40}}},
    {"one that waits for its turn: no credit for three samples, then all at once",
     'R',
     {{0, 0, 0, 'R', 100},
      {0, 0, 0, 'R', 100},
      {0, 0, 0, 'R', 100},
      {32, 300, 1, 'R', 100},
      {0, 0, 0, 'R', 100},
      {0, 0, 0, 'R', 100},
      {0, 0, 0, 'R', 100},
      {32, 368, 1, 'R', 100}}},
    {"one of eight that share a CPU: 4 ms each, and the wait under way is up to 28 ms",
     'R',
     {{16, 64, 3, 'R', 100},
      {12, 92, 3, 'R', 100},
      {12, 80, 3, 'R', 100},
      {12, 84, 3, 'R', 100},
      {12, 96, 3, 'R', 100}}},
    {"a frame loop of 8.7 of 10 ms, in state R at most samples",
     'R',
     {{87, 0, 10, 'R', 87}, {86, 0, 10, 'R', 86}, {88, 0, 10, 'S', 88}, {86, 0, 10, 'R', 86}, {89, 0, 10, 'R', 89}}},
    {"the same beside a hog: the waits under way come and go, and the sum stays",
     'R',
     {{60, 20, 10, 'R', 84}, {60, 20, 10, 'R', 80}, {60, 20, 10, 'S', 76}, {60, 20, 10, 'S', 80}}},
    {"one in state R at each sample by chance", 'R', {{10, 0, 1, 'R', 10}, {10, 0, 1, 'R', 10}, {10, 0, 1, 'R', 10}}},
    {"one never in state R at a sample", 'S', {{10, 5, 1, 'S', 15}, {10, 5, 1, 'S', 15}}},
    {"one that woke in the interval and waits: its wait counts when it ends",
     'S',
     {{2, 0, 0, 'R', 2}, {10, 40, 1, 'S', 50}, {0, 0, 0, 'S', 0}}},
    {"credit that was counted ahead does not count again",
     'R',
     {{0, 0, 0, 'R', 100}, {0, 0, 0, 'R', 100}, {10, 210, 1, 'S', 20}, {0, 0, 0, 'S', 0}}},
    {"time counted ahead that no credit follows is not taken back: a thread that ran was runnable",
     'R',
     {{0, 0, 0, 'R', 100}, {40, 5, 1, 'S', 40}, {40, 5, 1, 'S', 45}}},
    {"a credit of several intervals counts for at most two",
     'S',
     {{10, 500, 1, 'R', 100}, {10, 0, 1, 'R', 100}, {10, 0, 1, 'R', 20}, {10, 0, 1, 'R', 10}}},
    {"of one that sleeps no credit is left over", 'S', {{80, 500, 1, 'S', 100}, {10, 0, 1, 'S', 10}}},
    {"one that ran for longer than the interval: the clocks differ", 'S', {{104, 0, 1, 'S', 100}, {96, 0, 1, 'S', 96}}},
};

TEST(a_thread_counts_for_what_it_ran_and_waited)
{
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_schedstat before = {0}, now = {0};
        int64_t balance = 0;
        char was = rows[i].state;
        for (const struct interval *n = rows[i].intervals; n->state; n++) {
            char line[96];
            snprintf(line, sizeof line, "%llu %llu %llu\n", (unsigned long long)(now.run_ns + n->run * MS),
                     (unsigned long long)(now.wait_ns + n->wait * MS), (unsigned long long)now.slices + n->turns);
            assert_int_equal(asym_parse_schedstat(line, strlen(line), &now), 0);
            const uint64_t count = asym_runnable_credited(&before, &now, was, n->state, INTERVAL * MS, &balance);
            if (count != n->counts * MS)
                fail_msg("%s, interval %d: %.1f ms, not %u", rows[i].name, (int)(n - rows[i].intervals) + 1,
                         (double)count / (double)MS, n->counts);
            assert_true(count >= ASYM_MIN(n->run, INTERVAL) * MS);
            before = now;
            was = n->state;
        }
    }
}

/* -- the rate, the capacity, the debt and the overdraft of a token bucket -- */

/* A caller that works whenever the bucket allows it gets the rate and the capacity, and not more. */
TEST(the_rate_is_kept_in_the_long_run)
{
    struct asym_token_bucket b = asym_token_bucket_full(0.01, 100 * ASYM_MSEC, ASYM_SEC);
    asym_usec spent = 0;
    b.resume = 2 * ASYM_MSEC;
    for (asym_usec now = ASYM_SEC; now < 101 * ASYM_SEC; now += 100)
        if (asym_token_bucket_has(&b, now)) {
            asym_token_bucket_charge(&b, 90, now);
            spent += 90;
        }
    assert_in_range(spent, 1090 * ASYM_MSEC, 1101 * ASYM_MSEC);
}

/* After the overdraft the caller sleeps until the bucket holds tokens for a while, and not for each call. */
TEST(an_overdrawn_bucket_says_when_it_allows_work_again)
{
    struct asym_token_bucket b = asym_token_bucket_full(0.01, 100 * ASYM_MSEC, ASYM_SEC);
    b.resume = 2 * ASYM_MSEC;
    assert_true(asym_token_bucket_due(&b) <= ASYM_SEC);
    asym_token_bucket_charge(&b, 101 * ASYM_MSEC, ASYM_SEC);
    assert_false(asym_token_bucket_has(&b, ASYM_SEC));
    const asym_usec due = asym_token_bucket_due(&b);
    assert_in_range(due, ASYM_SEC + 299 * ASYM_MSEC, ASYM_SEC + 301 * ASYM_MSEC);
    assert_false(asym_token_bucket_has(&b, due - 10 * ASYM_MSEC));
    assert_true(b.tokens > 0);
    assert_true(asym_token_bucket_has(&b, due));
    /* A bucket that is not overdrawn allows work down to 0 tokens. */
    asym_token_bucket_add(&b, -b.tokens);
    assert_true(asym_token_bucket_has(&b, due));
    asym_token_bucket_add(&b, -1);
    assert_false(asym_token_bucket_has(&b, due));
}

TEST(without_resume_an_overdraft_ends_at_no_tokens)
{
    struct asym_token_bucket b = asym_token_bucket_full(1, 1000, 500);
    asym_token_bucket_charge(&b, 1010, 500);
    assert_in_range(asym_token_bucket_due(&b), 510, 511);
    assert_false(asym_token_bucket_has(&b, 509));
    assert_true(asym_token_bucket_has(&b, 510));
    /* The time is rounded up. */
    b.rate = 0.3;
    asym_token_bucket_charge(&b, 10, 510);
    assert_true(asym_token_bucket_has(&b, asym_token_bucket_due(&b)));
}

TEST(a_debt_has_a_bound_if_it_was_given_one)
{
    struct asym_token_bucket b = asym_token_bucket_full(0.01, 100 * ASYM_MSEC, ASYM_SEC), bounded = b;
    bounded.most_debt = 10 * ASYM_MSEC;
    asym_token_bucket_charge(&b, 10 * ASYM_SEC, ASYM_SEC);
    asym_token_bucket_charge(&bounded, 10 * ASYM_SEC, ASYM_SEC);
    assert_true(b.tokens == 100.0 * ASYM_MSEC - 10.0 * ASYM_SEC);
    assert_true(asym_token_bucket_due(&b) > 900 * ASYM_SEC);
    assert_true(bounded.tokens == -10.0 * ASYM_MSEC);
    assert_in_range(asym_token_bucket_due(&bounded), 2 * ASYM_SEC, 2300 * ASYM_MSEC);
}

/* No time helps, so the caller asks again in a second. */
TEST(a_bucket_without_a_rate_is_due_once_a_second)
{
    struct asym_token_bucket b = asym_token_bucket_full(0, 1000, 500);
    asym_token_bucket_charge(&b, 1001, 500);
    assert_int_equal(asym_token_bucket_due(&b), 500 + ASYM_SEC);
    assert_false(asym_token_bucket_has(&b, 500 + ASYM_SEC));
}

TEST(it_holds_no_more_than_its_capacity)
{
    struct asym_token_bucket b = asym_token_bucket_full(0.5, 1000, 0);
    asym_token_bucket_charge(&b, 1, 1000 * ASYM_SEC);
    asym_token_bucket_charge(&b, 1000, 1000 * ASYM_SEC);
    assert_false(asym_token_bucket_has(&b, 1000 * ASYM_SEC));
    assert_true(b.tokens == -1);
    asym_token_bucket_add(&b, 5000);
    assert_true(b.tokens == 1000);
    assert_true(asym_token_bucket_has(&b, 0));
}

/* The charge falls on the full bucket: what it earned beyond its capacity before that is lost. */
TEST(a_charge_fills_first)
{
    struct asym_token_bucket b = asym_token_bucket_full(1, 1000, 0);
    asym_token_bucket_charge(&b, 400, 300);
    assert_true(b.tokens == 600);
    asym_token_bucket_charge(&b, 50, 400);
    assert_true(b.tokens == 650);
    /* At an overdraft the tokens after the charge count. */
    b.resume = 100;
    asym_token_bucket_charge(&b, 651, 400);
    assert_true(b.is_overdrawn);
    asym_token_bucket_charge(&b, 30, 520);
    assert_true(b.tokens == 89 && b.is_overdrawn);
}

TEST(a_clock_that_stands_or_runs_backwards_earns_nothing)
{
    struct asym_token_bucket b = asym_token_bucket_full(1, 1000, 500);
    asym_token_bucket_charge(&b, 2000, 500);
    assert_false(asym_token_bucket_has(&b, 500));
    assert_false(asym_token_bucket_has(&b, 400));
    asym_token_bucket_fill(&b, 500);
    assert_true(b.tokens == -1000 && b.at == 500);
}

TEST(a_changed_rate_counts_from_the_last_time_on)
{
    struct asym_token_bucket b = asym_token_bucket_full(0, 1000, 0);
    asym_token_bucket_charge(&b, 1000, 100);
    b.rate = 2;
    asym_token_bucket_fill(&b, 150);
    assert_true(b.tokens == 100);
}

TEST_MAIN
