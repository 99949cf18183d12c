/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Selects the tests of a program that run. The table asym_needs in tests/CMakeLists.txt names the tests that need root or
 * another privilege. ctest runs these apart from the other tests of their program. It sets two environment variables with names
 * separated by spaces: ASYM_TEST_ONLY and ASYM_TEST_EXCEPT. A program that a user starts by hand runs all its tests.
 */
#ifndef ASYM_TESTS_SUPPORT_SELECT_H
#define ASYM_TESTS_SUPPORT_SELECT_H

#include <stddef.h>

#include <cmocka.h>

/**
 * Copy the selected tests to ret, in their order; ret has room for n. only has names, or is NULL for all; except has names, or
 * is NULL for none. Returns their number; -ENOENT if no test has one of the names, so that a renamed test is not lost.
 */
int asym_select(const struct CMUnitTest *tests, size_t n, const char *only, const char *except, struct CMUnitTest *ret);

#endif
