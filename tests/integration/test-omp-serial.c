/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The service and an OpenMP program without any knowledge of asymd, end to end, like test-rtx.c for a program that uses RTX.
 * Threads wait by spinning, and asymd samples once a second: every faster reaction comes from a report of the OMPT tool.
 */
#include "support/service.h"
#include "support/talker.h"
#include "support/test.h"

#define TALKER ASYM_TEST_BIN "/tests/omp/talker-"
#define RUN    "daemon/asymctl", "run", "--tool=" ASYM_TEST_OMPT

/* Returns whether asymd answers at least so many of ASYM_TALKER_LAST serial phases, after `await` has returned. */
static bool answers(const char *const *command, void (*await)(struct asym_talker *), int least)
{
    static const char *const more[] = {"--interval=1s", "--set=asymd.cpu_budget=50", NULL};
    setenv("KMP_BLOCKTIME", "infinite", 1);
    struct asym_talker talker = asym_talker_start_with(command, "3", "60", "60");
    unsetenv("KMP_BLOCKTIME");
    pid_t asymd = asym_service_start(talker.pid, more);
    await(&talker);
    const bool ret = asym_talker_answers(&talker, least);
    asym_talker_stop(&talker, asymd);
    return ret;
}

TEST_WITH(a_program_of_clang_is_answered_in_its_serial_phases, asym_service_set_up, asym_service_tear_down)
{
    static const char *const command[] = {RUN, "--", TALKER "clang", NULL};
    assert_true(answers(command, asym_talker_await_answer, ASYM_TALKER_LAST / 2));
}

TEST_WITH(a_program_of_gcc_is_as_well, asym_service_set_up, asym_service_tear_down)
{
    static const char *const command[] = {RUN, "--gcc", "--", TALKER "gcc", NULL};
    assert_true(answers(command, asym_talker_await_answer, ASYM_TALKER_LAST / 2));
}

/* The reactions in the tests above come from the tool. */
TEST_WITH(without_the_tool_it_is_not, asym_service_set_up, asym_service_tear_down)
{
    static const char *const command[] = {TALKER "clang", NULL};
    assert_false(answers(command, asym_talker_await_known, ASYM_TALKER_LAST / 4 + 1));
}

TEST_MAIN
