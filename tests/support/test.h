/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A test is a function that its definition adds to the list of its program, so that none is written and then forgotten:
 *
 *     TEST(a_full_table_refuses_a_row)
 *     {
 *         assert_int_equal(...);
 *     }
 *
 *     TEST_MAIN
 *
 * They run in the order of the file. The set-up hands each of them its void **state.
 */
#ifndef ASYM_TEST_SUPPORT_TEST_H
#define ASYM_TEST_SUPPORT_TEST_H

/* cmocka.h needs some of these, and nearly every test needs the others. No file of a test includes them again. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macro.h"

#define TEST(name) TEST_WITH(name, NULL, NULL)

/** The same with a set-up and a teardown before and after the test; NULL: none. */
#define TEST_WITH(name, setup, teardown)                                                                               \
    static void name(void **state);                                                                                    \
    __attribute__((constructor)) static void test_register_##name(void)                                                \
    {                                                                                                                  \
        test_add(&(struct CMUnitTest){#name, name, setup, teardown, NULL}, __LINE__);                                  \
    }                                                                                                                  \
    static void name(void **state __attribute__((unused)))

/** The text that a call prints to `out`, for the caller to free. The call must return 0. */
#define PRINTED(call)                                                                                                  \
    __extension__({                                                                                                    \
        char *printed_text;                                                                                            \
        size_t printed_size;                                                                                           \
        FILE *out = open_memstream(&printed_text, &printed_size);                                                      \
        assert_non_null(out);                                                                                          \
        assert_int_equal(call, 0);                                                                                     \
        assert_int_equal(fclose(out), 0);                                                                              \
        printed_text;                                                                                                  \
    })

/**
 * A test whose body has a fixture of its own, f. set_up(f) gets it zeroed, and tear_down(f) comes after the test. A file with
 * several such tests names its fixture once: #define TEST_F(name) TEST_IN(name, struct fixture, f, set_up, tear_down)
 */
#define TEST_IN(name, type, f, set_up, tear_down)                                                                      \
    static void name##_in(type *f);                                                                                    \
    static int name##_set_up(void **state)                                                                             \
    {                                                                                                                  \
        *state = calloc(1, sizeof(type));                                                                              \
        assert_non_null(*state);                                                                                       \
        set_up(*state);                                                                                                \
        return 0;                                                                                                      \
    }                                                                                                                  \
    static int name##_tear_down(void **state)                                                                          \
    {                                                                                                                  \
        tear_down(*state);                                                                                             \
        free(*state);                                                                                                  \
        return 0;                                                                                                      \
    }                                                                                                                  \
    TEST_WITH(name, name##_set_up, name##_tear_down)                                                                   \
    {                                                                                                                  \
        name##_in(*state);                                                                                             \
    }                                                                                                                  \
    static void name##_in(type *f __attribute__((unused)))

/**
 * Each row of a table is a test: one that fails is named by its .name, and the others run. test(void **state) gets the row
 * in *state.
 */
#define TEST_ROWS(test, rows)                                                                                          \
    __attribute__((constructor)) static void test_register_##rows(void)                                                \
    {                                                                                                                  \
        for (size_t i = 0; i < ASYM_LENGTH(rows); i++)                                                                 \
            test_add(&(struct CMUnitTest){(rows)[i].name, test, NULL, NULL, (void *)(uintptr_t) & (rows)[i]},          \
                     __LINE__);                                                                                        \
    }

#define TEST_MAIN TEST_MAIN_WITH(NULL, NULL)

/** The same with a set-up and a teardown before the first and after the last test; NULL: none. */
#define TEST_MAIN_WITH(setup, teardown)                                                                                \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        return test_run(setup, teardown);                                                                              \
    }

/**
 * Begins a function that the linker puts in the place of another one (--wrap, tests/CMakeLists.txt), with its parameters; its body
 * may call that one, __real_NAME.
 */
#define WRAPPED(type, name, ...)                                                                                       \
    type __real_##name(__VA_ARGS__);                                                                                   \
    type __wrap_##name(__VA_ARGS__);                                                                                   \
    type __wrap_##name(__VA_ARGS__)

/** Write a text to the file of this path, which is made or emptied. */
void file_write(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Read a file, as much as fits, as a text. Returns the number of bytes; -1, and an empty text, if it cannot be opened. */
ssize_t file_read(const char *path, char *ret, size_t size);

/** Add a test of this program, which stands in that line. For the macros. */
void test_add(const struct CMUnitTest *test, int line);

/**
 * Copy the selected tests to ret, in their order; ret has room for n. only has names, or is NULL for all; except has names, or
 * is NULL for none. Returns their number; -ENOENT if no test has one of the names, so that a renamed test is not lost.
 */
int test_select(const struct CMUnitTest *from, size_t n, const char *only, const char *except, struct CMUnitTest *ret);

/**
 * Run the tests that were added. Returns the exit status. For the macros. The table asym_needs in tests/CMakeLists.txt names the
 * tests that need root or another privilege. ctest runs these apart from the other tests of their program, by names in
 * ASYM_TEST_ONLY and ASYM_TEST_EXCEPT. A program that a user starts by hand runs all its tests.
 */
int test_run(CMFixtureFunction setup, CMFixtureFunction teardown);

#endif
