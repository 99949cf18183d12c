/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The environment names the tests of a program that run. */
#include <sys/wait.h>

#include "support/test.h"

static const struct CMUnitTest some[] = {{.name = "one"}, {.name = "one_more"}, {.name = "two"}};

TEST(the_tests_that_are_named_are_chosen_in_their_order)
{
    static const struct {
        const char *only, *except, *chosen;
        int n;
    } rows[] = {
        {NULL, NULL, "one one_more two ", 3},  {"two one", NULL, "one two ", 2},   {NULL, "one_more", "one two ", 2},
        {"  one_more ", NULL, "one_more ", 1}, {"one two", "one", "two ", 1},      {"", NULL, "", 0},
        {NULL, "one one_more two", "", 0},     {NULL, "", "one one_more two ", 3}, {"on", NULL, NULL, -ENOENT},
        {NULL, "three", NULL, -ENOENT},        {"one, two", NULL, NULL, -ENOENT},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct CMUnitTest chosen[ASYM_LENGTH(some)];
        char names[64] = "";
        const int n = test_select(some, ASYM_LENGTH(some), rows[i].only, rows[i].except, chosen);
        assert_int_equal(n, rows[i].n);
        for (int k = 0; k < n; k++)
            strcat(strcat(names, chosen[k].name), " ");
        if (n >= 0)
            assert_string_equal(names, rows[i].chosen);
    }
}

/* This program has two tests. When ctest selects only the other one, or none, this one must not run. */
TEST(a_program_runs_what_its_environment_says)
{
    const char *const program = ASYM_TEST_BIN "/tests/unit-select";
    char command[512];
    static const struct {
        const char *environment;
        int status;
    } rows[] = {
        {"ASYM_TEST_ONLY=the_tests_that_are_named_are_chosen_in_their_order", 0},
        {"ASYM_TEST_EXCEPT=a_program_runs_what_its_environment_says", 0},
        {"ASYM_TEST_ONLY=a_test_that_was_renamed", 1},
        {"ASYM_TEST_ONLY=", 1},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        snprintf(command, sizeof command, "env %s %s >/dev/null 2>&1", rows[i].environment, program);
        const int status = system(command);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), rows[i].status);
    }
}

TEST_MAIN
