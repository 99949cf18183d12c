/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sentences on which thread waits for which, and the end of the measurement. */

#include "base/text.h"
#include "daemon/asymd/service-internal.h"
#include "report/json.h"
#include "support/test.h"

static char said[4096];

/* Takes the list. */
static const char *sentences(json_t *list, int32_t tid)
{
    struct asym_text t = asym_text_in(said, sizeof said);
    ASYM_AUTO_JSON json_t *threads = list, *of = asym_service_waits_sentences(list, 8e6, tid);
    json_t *sentence;
    size_t i;
    assert_non_null(threads);
    json_array_foreach(of, i, sentence) asym_text_add(&t, "%s\n", json_string_value(sentence));
    return said;
}

/* A thread that has slept for 6 s, 1.1 s of them for the kernel, and waited for two others. */
static json_t *render(int outside, int other, int asleep)
{
    return json_pack("{s:i, s:s, s:i, s:i, s:i, s:i, s:i, s:[{s:i, s:s, s:i}, {s:i, s:s, s:i}]}", "tid", 12, "comm",
                     "render", "slept_us", 6000000, "kernel_us", 1100000, "outside_us", outside, "other_us", other,
                     "asleep_us", asleep, "waits_for", "tid", 13, "comm", "gamelogic", "time_us", 4500000, "tid", 14,
                     "comm", "audio", "time_us", 100000);
}

static json_t *thread(int tid, const char *comm, int slept, int kernel, int asleep)
{
    return json_pack("{s:i, s:s, s:i, s:i, s:i, s:[]}", "tid", tid, "comm", comm, "slept_us", slept, "kernel_us",
                     kernel, "asleep_us", asleep, "waits_for");
}

TEST(a_thread_says_for_whom_it_waited_the_longest_first)
{
    assert_string_equal(sentences(json_pack("[o]", render(0, 0, 0)), 0),
                        "render (12) waited 4.5 of 8.0 s for gamelogic (13) and 1.1 s for a timer, a device or the "
                        "kernel.\n");
    assert_string_equal(sentences(json_pack("[o]", render(500000, 5000000, 170000)), 0),
                        "render (12) waited 5.0 of 8.0 s for other threads of the program, 4.5 s for gamelogic (13), "
                        "1.1 s for a timer, a device or the kernel and 0.50 s for other programs.\n");
}

TEST(a_program_whose_threads_wait_for_timers_only_says_so)
{
    static const char none[] = "No thread of the program waited for another one for more than 2 % of 8.0 s.\n";
    assert_string_equal(sentences(json_pack("[o, o]", thread(2, "a", 0, 7000000, 0), thread(3, "b", 0, 0, 8000000)), 0),
                        none);
    assert_string_equal(sentences(json_array(), 0), none);
}

TEST(a_thread_that_is_asked_for_comes_first_and_then_those_that_waited_for_it)
{
    for (int tid = 13; tid <= 15; tid += 2)
        assert_string_equal(
            sentences(json_pack("[o, o, o]", render(0, 0, 0), thread(13, "gamelogic", 40000, 40000, 0),
                                thread(15, "io\x1b", 8000000, 0, 8000000)),
                      tid),
            tid == 13 ? "gamelogic (13) slept for 0.04 of 8.0 s, and waited for no thread.\n"
                        "render (12) waited 4.5 of 8.0 s for gamelogic (13) and 1.1 s for a timer, a device or the "
                        "kernel.\n"
                      : "io\\x1b (15) waited 8.0 of 8.0 s for something that has not come yet.\n"
                        "No other thread of the program waited for this one for more than 2 % of 8.0 s.\n");
}

TEST(of_many_threads_the_rest_is_counted)
{
    json_t *list = json_array();
    for (int i = 0; i < 10; i++)
        json_array_append_new(list, json_pack("{s:i, s:s, s:[{s:i, s:s, s:i}]}", "tid", i + 20, "comm", "w",
                                              "waits_for", "tid", 13, "comm", "main", "time_us", 1000000));
    assert_non_null(strstr(sentences(list, 0), "w (25) waited 1.0 of 8.0 s for main (13).\n4 more threads waited for "
                                               "another one.\n"));
    assert_null(strstr(said, "w (26)"));
}

static int n_stopped;

WRAPPED(void, asym_waits_stop, struct asym_waits *w)
{
    n_stopped++;
}

/* A client asks twice, 2 s apart. */
TEST(the_measurement_ends_5_s_after_the_last_question)
{
    static struct asym_service s = {.waits = {.begun = ASYM_SEC, .asked = 3 * ASYM_SEC}};
    asym_service_waits_housekeeping(&s, 8 * ASYM_SEC);
    assert_int_equal(n_stopped, 0);
    for (int look = 0; look < 2; look++)
        asym_service_waits_housekeeping(&s, 8 * ASYM_SEC + 1);
    assert_int_equal(n_stopped, 1);
    assert_int_equal(s.waits.begun, 0);
}

TEST_MAIN
