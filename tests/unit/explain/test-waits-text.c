/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sentences on which thread waits for which. */
#include <string.h>

#include "base/text.h"
#include "explain/waits-text.h"
#include "support/test.h"

static char said[4096];

static int say(void *ctx, const char *sentence)
{
    struct asym_text *t = ctx;
    asym_text_add(t, "%s\n", sentence);
    return 0;
}

static const char *sentences(const struct asym_explain_wait *list, size_t n, int32_t tid)
{
    struct asym_text t = asym_text_in(said, sizeof said);
    const struct asym_explain_waits w = {.measured = 8 * ASYM_SEC, .tid = tid, .list = list, .n = n};
    *said = '\0';
    assert_int_equal(asym_explain_waits(&w, say, &t), 0);
    return said;
}

static const struct asym_explain_wait render = {
    .tid = 12,
    .comm = "render",
    .slept = 6 * ASYM_SEC,
    .kernel = 1100 * ASYM_MSEC,
    .n = 2,
    .waits = {{13, "gamelogic", 4500 * ASYM_MSEC}, {14, "audio", 100 * ASYM_MSEC}},
};

TEST(a_thread_says_for_whom_it_waited_the_longest_first)
{
    assert_string_equal(sentences(&render, 1, 0), "render (12) waited 4.5 of 8.0 s for gamelogic (13) and 1.1 s for a "
                                                  "timer, a device or the kernel.\n");
    struct asym_explain_wait all = render;
    all.outside = 500 * ASYM_MSEC;
    all.rest = 5 * ASYM_SEC;
    all.asleep = 170 * ASYM_MSEC;
    assert_string_equal(sentences(&all, 1, 0),
                        "render (12) waited 5.0 of 8.0 s for other threads of the program, 4.5 s for gamelogic (13), "
                        "1.1 s for a timer, a device or the kernel and 0.50 s for other programs.\n");
}

TEST(a_program_whose_threads_wait_for_timers_only_says_so)
{
    const struct asym_explain_wait idle[] = {{.tid = 2, .comm = "a", .kernel = 7 * ASYM_SEC},
                                             {.tid = 3, .comm = "b", .asleep = 8 * ASYM_SEC}};
    assert_string_equal(sentences(idle, 2, 0),
                        "No thread of the program waited for another one for more than 2 % of 8.0 s.\n");
    assert_string_equal(sentences(idle, 0, 0), said);
}

TEST(a_thread_that_is_asked_for_comes_first_and_then_those_that_waited_for_it)
{
    const struct asym_explain_wait list[] = {
        render,
        {.tid = 13, .comm = "gamelogic", .slept = 40 * ASYM_MSEC, .kernel = 40 * ASYM_MSEC},
        {.tid = 15, .comm = "io\x1b", .slept = 8 * ASYM_SEC, .asleep = 8 * ASYM_SEC}};
    assert_string_equal(sentences(list, 3, 13), "gamelogic (13) slept for 0.04 of 8.0 s, and waited for no thread.\n"
                                                "render (12) waited 4.5 of 8.0 s for gamelogic (13) and 1.1 s for a "
                                                "timer, a device or the kernel.\n");
    assert_string_equal(sentences(list, 3, 15),
                        "io\\x1b (15) waited 8.0 of 8.0 s for something that has not come yet.\n"
                        "No other thread of the program waited for this one for more than 2 % of 8.0 s.\n");
}

TEST(of_many_threads_the_rest_is_counted)
{
    struct asym_explain_wait list[10];
    for (size_t i = 0; i < 10; i++)
        list[i] = (struct asym_explain_wait){
            .tid = (int32_t)i + 20, .comm = "w", .n = 1, .waits = {{13, "main", ASYM_SEC}}};
    assert_non_null(strstr(sentences(list, 10, 0),
                           "w (25) waited 1.0 of 8.0 s for main (13).\n4 more threads waited for "
                           "another one.\n"));
    assert_null(strstr(said, "w (26)"));
}

TEST_MAIN
