/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "support/select.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static bool are_all_known(const char *list, const struct CMUnitTest *tests, size_t n)
{
    size_t length;
    for (const char *at = next_name(list, &length); at; at = next_name(at + length, &length)) {
        size_t i = 0;
        while (i < n && (strlen(tests[i].name) != length || memcmp(at, tests[i].name, length) != 0))
            i++;
        if (i == n) {
            fprintf(stderr, "%.*s: no test of this program\n", (int)length, at);
            return false;
        }
    }
    return true;
}

int asym_select(const struct CMUnitTest *tests, size_t n, const char *only, const char *except, struct CMUnitTest *ret)
{
    int wanted = 0;
    if ((only && !are_all_known(only, tests, n)) || (except && !are_all_known(except, tests, n)))
        return -ENOENT;
    for (size_t i = 0; i < n; i++)
        if ((!only || is_in(only, tests[i].name)) && (!except || !is_in(except, tests[i].name)))
            ret[wanted++] = tests[i];
    return wanted;
}

/* The linker replaces calls of _cmocka_run_group_tests by the __wrap function (--wrap), so that no test program changes. */
int __real__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t n, CMFixtureFunction set_up,
                                   CMFixtureFunction tear_down);
int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t n, CMFixtureFunction set_up,
                                   CMFixtureFunction tear_down);

int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t n, CMFixtureFunction set_up,
                                   CMFixtureFunction tear_down)
{
    struct CMUnitTest *wanted = calloc(n, sizeof *wanted);
    const int found = wanted ? asym_select(tests, n, getenv("ASYM_TEST_ONLY"), getenv("ASYM_TEST_EXCEPT"), wanted) : -1;
    int failed = 1;
    /* Line buffering shows the running test function even if ctest ends the program at its time limit. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (found > 0)
        failed = __real__cmocka_run_group_tests(name, wanted, (size_t)found, set_up, tear_down);
    else
        fprintf(stderr, "%s: no test is left to run\n", name);
    free(wanted);
    return failed;
}
