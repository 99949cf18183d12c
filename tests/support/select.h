/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Which tests of a program run. Tests that need root, or anything else that not every user has, are named in one table,
 * asym_needs in tests/CMakeLists.txt; ctest runs them apart from the others of their program, by two variables of the
 * environment with names between spaces: ASYM_TEST_ONLY and ASYM_TEST_EXCEPT. A program that is started by hand runs all.
 */
#ifndef ASYM_TESTS_SELECT_H
#define ASYM_TESTS_SELECT_H

#include <stddef.h>

#include <cmocka.h>

/**
 * Copy the tests that are wanted to ret, in their order; ret has room for n. only: names, or NULL for all; except: names, or
 * NULL for none. Returns how many, or -ENOENT when a name is no test's, so that a test that was renamed is not lost.
 */
int asym_select(const struct CMUnitTest *tests, size_t n, const char *only, const char *except, struct CMUnitTest *ret);

#endif
