/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

void file_write(const char *path, const char *format, ...)
{
    va_list args;
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    va_start(args, format);
    assert_true(vfprintf(f, format, args) >= 0);
    va_end(args);
    assert_int_equal(fclose(f), 0);
}

ssize_t file_read(const char *path, char *ret, size_t size)
{
    FILE *f = fopen(path, "re");
    const size_t n = f ? fread(ret, 1, size - 1, f) : 0;
    ret[n] = '\0';
    return f && fclose(f) == 0 ? (ssize_t)n : -1;
}

enum { MOST_TESTS = 256 };

static struct CMUnitTest tests[MOST_TESTS];
static int lines[MOST_TESTS];
static size_t n_tests;

/* A compiler calls constructors in an order of its own. */
void test_add(const struct CMUnitTest *test, int line)
{
    size_t i = n_tests;
    if (n_tests == MOST_TESTS)
        abort();
    for (; i > 0 && lines[i - 1] > line; i--) {
        tests[i] = tests[i - 1];
        lines[i] = lines[i - 1];
    }
    tests[i] = *test;
    lines[i] = line;
    n_tests++;
}

/* Returns the next name of a list and its length; NULL at the end. */
static const char *next_name(const char *list, size_t *ret_length)
{
    list += strspn(list, " ");
    *ret_length = strcspn(list, " ");
    return *ret_length > 0 ? list : NULL;
}

static bool is_in(const char *list, const char *name)
{
    size_t length;
    for (const char *at = next_name(list, &length); at; at = next_name(at + length, &length))
        if (strlen(name) == length && memcmp(at, name, length) == 0)
            return true;
    return false;
}

static bool are_all_known(const char *list, const struct CMUnitTest *known, size_t n)
{
    size_t length;
    for (const char *at = next_name(list, &length); at; at = next_name(at + length, &length)) {
        size_t i = 0;
        while (i < n && (strlen(known[i].name) != length || memcmp(at, known[i].name, length) != 0))
            i++;
        if (i == n) {
            fprintf(stderr, "%.*s: no test of this program\n", (int)length, at);
            return false;
        }
    }
    return true;
}

int test_select(const struct CMUnitTest *from, size_t n, const char *only, const char *except, struct CMUnitTest *ret)
{
    int chosen = 0;
    if ((only && !are_all_known(only, from, n)) || (except && !are_all_known(except, from, n)))
        return -ENOENT;
    for (size_t i = 0; i < n; i++)
        if ((!only || is_in(only, from[i].name)) && (!except || !is_in(except, from[i].name)))
            ret[chosen++] = from[i];
    return chosen;
}

int test_run(CMFixtureFunction setup, CMFixtureFunction teardown)
{
    static struct CMUnitTest chosen[MOST_TESTS];
    const int n = test_select(tests, n_tests, getenv("ASYM_TEST_ONLY"), getenv("ASYM_TEST_EXCEPT"), chosen);
    /* A sanitizer that ends the process, or ctest at its limit, must not take the last words with it. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (n > 0)
        return _cmocka_run_group_tests("tests", chosen, (size_t)n, setup, teardown);
    fputs("no test is left to run\n", stderr);
    return 1;
}
