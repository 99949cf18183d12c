/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of lib/base: masks and their text formats, parsers, escaping, sort and binary search, the arena, the errno table. */

#include <asym/plan.h>

#include "base/arena.h"
#include "base/mask.h"
#include "base/parse.h"
#include "base/sort.h"
#include "base/text.h"
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
    assert_non_null(asym_arena_take(&a, 3, 16));
    assert_false(asym_arena_is_short(&a));
    assert_null(asym_arena_take(&a, 2, 16));
    assert_int_equal(a.wanted, 80);
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

TEST_MAIN
