/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/test.h"

#include <stdlib.h>

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

int test_run(CMFixtureFunction setup, CMFixtureFunction teardown)
{
    /* A sanitizer that ends the process must not take the last words with it. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    return _cmocka_run_group_tests("tests", tests, n_tests, setup, teardown);
}
