/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Small parts of lib/core: the texts of reasons, and what is known of a thread. */
#include <asym/plan.h>
#include <asym/snapshot.h>

#include "core/thread-state.h"
#include "support/reason-text.h"
#include "support/test.h"

static const char *text(enum asym_exclusion exclusion, double a, double b, char *buf, size_t size)
{
    const double figure[2] = {a, b};
    return asym_reason_text(asym_why(exclusion), figure, buf, size);
}

TEST(every_exclusion_has_a_text_of_its_own)
{
    char one[128], other[128];
    for (int r = ASYM_WHY_NONE + 1; r < ASYM_N_EXCLUSIONS; r++) {
        const struct asym_reason *reason = asym_why((enum asym_exclusion)r);
        assert_non_null(reason);
        assert_true(why_is_sound(reason, (const double[2]){1, 2}));
        assert_int_equal(reason->kind, r == ASYM_WHY_IDLE ? ASYM_REASON_IDLE : ASYM_REASON_EXCLUDED);
        assert_null(strchr(asym_reason_several(reason), '%'));
        text((enum asym_exclusion)r, 1, 2, one, sizeof one);
        for (int k = ASYM_WHY_NONE + 1; k < r; k++)
            assert_string_not_equal(one, text((enum asym_exclusion)k, 1, 2, other, sizeof other));
    }
}

TEST(figures_stand_in_the_text)
{
    static const struct {
        enum asym_exclusion exclusion;
        double figure[2];
        const char *text, *several;
    } rows[] = {
        {ASYM_WHY_SETTLING, {0.5, 0}, "too new: waiting 0.5 s", "too new"},
        {ASYM_WHY_FORKED, {9.84, 0}, "created a process: waiting 9.8 s", "created a process a moment ago"},
        {ASYM_WHY_DENIED, {13, 0}, "the kernel refused (errno 13)", "the kernel refused"},
        {ASYM_WHY_SELF, {1, 2}, "asymd itself", "asymd itself"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        char buf[128];
        text(rows[i].exclusion, rows[i].figure[0], rows[i].figure[1], buf, sizeof buf);
        assert_string_equal(buf, rows[i].text);
        assert_string_equal(asym_reason_several(asym_why(rows[i].exclusion)), rows[i].several);
    }
}

TEST(a_reason_takes_two_figures_in_order)
{
    static const struct asym_reason reason = {.text = "%.1f of %g s, 100 %%"};
    const double figure[2] = {0.26, asym_reason_seconds(1234567)};
    char buf[64];
    assert_string_equal(asym_reason_text(&reason, figure, buf, sizeof buf), "0.3 of 1.23 s, 100 %");
    assert_true(why_is_sound(&reason, figure));
    static const char *const bad[] = {"%d", "%.1f %.1f %.1f", "%s", "%.2g", "100 %", "%.1", "a\nb"};
    for (size_t i = 0; i < ASYM_LENGTH(bad); i++)
        assert_false(why_is_well_formed(&(const struct asym_reason){.text = bad[i]}));
}

TEST(seconds_have_as_many_digits_as_are_wanted)
{
    assert_true(asym_reason_seconds(0) == 0);
    assert_true(asym_reason_seconds(ASYM_SEC) == 1);
    assert_true(asym_reason_seconds(314159) == 0.31);
    assert_true(asym_reason_seconds(995000) == 1);
    assert_true(asym_reason_seconds(994999) == 0.99);
}

TEST(a_small_buffer_is_not_overrun)
{
    char buf[8] = "#######";
    assert_ptr_equal(text(ASYM_WHY_SETTLING, 1, 1, buf, 5), buf);
    assert_int_equal(strlen(buf), 4);
    assert_int_equal(buf[5], '#');
}

TEST(no_reason_has_no_text)
{
    char buf[64] = "#";
    assert_string_equal(text(ASYM_WHY_NONE, 1, 2, buf, sizeof buf), "");
    assert_null(asym_why((enum asym_exclusion)12345));
    assert_null(asym_why((enum asym_exclusion) - 1));
}

TEST(names_are_those_of_the_command_line)
{
    assert_string_equal(asym_phase_name(ASYM_PHASE_IDLE), "idle");
    assert_string_equal(asym_phase_name(ASYM_PHASE_SERIAL), "serial");
    assert_string_equal(asym_phase_name(ASYM_PHASE_PARALLEL), "parallel");
    assert_string_equal(asym_class_name(ASYM_CLASS_MP), "MP");
    assert_string_equal(asym_class_name(ASYM_CLASS_HP), "HP");
    assert_string_equal(asym_class_name(ASYM_CLASS_SP), "SP");
    assert_string_equal(asym_pin_name(ASYM_PIN_CPU), "cpu");
    assert_string_equal(asym_pin_name(ASYM_PIN_LLC), "llc");
    assert_string_equal(asym_pin_name(ASYM_PIN_TYPE), "type");
    assert_string_equal(asym_pin_name(ASYM_PIN_ALL), "all");
    assert_string_equal(asym_pin_name(ASYM_PIN_EACH), "each");
    static const char *const signals[] = {"runnable", "ipc", "stall", "profile", "smt"};
    for (int s = 0; s < ASYM_N_SIGNALS; s++)
        assert_string_equal(asym_signal_name((enum asym_signal)s), signals[s]);
    assert_non_null(asym_phase_name((enum asym_phase)77));
    assert_non_null(asym_class_name((enum asym_class)77));
    assert_non_null(asym_pin_name((enum asym_pin)77));
    assert_non_null(asym_signal_name((enum asym_signal)77));
}

/* -- the duty of a thread: what it would run if it never waited -- */

#define TICK (100 * ASYM_MSEC)
#define FROM 0.7

/* n intervals, each with these shares of run and runnable time, after a gap in which it sleeps and no snapshot lists it. */
static void pass(struct asym_duty *d, unsigned n, double running, double runnable, asym_usec gap)
{
    static asym_usec now = 5 * ASYM_SEC;
    if (d->at == 0)
        now = 5 * ASYM_SEC;
    for (unsigned i = 0; i < n; i++)
        asym_duty_add(d, now += TICK + gap, TICK, asym_duty_decay(TICK), running, runnable, FROM);
}

TEST(a_duty_is_the_run_time_by_the_time_without_waiting)
{
    static const struct {
        double running, runnable;
        asym_usec gap;
        double duty;
    } cases[] = {
        {1, 1, 0, 1},          {0.25, 1, 0, 1},    /* computes alone, and beside three others */
        {0.4, 0.4, 0, 0.4},    {0.2, 0.7, 0, 0.4}, /* sleeps, and waits for each run */
        {0.5, 0.3, 0, 0.5},                        /* running above runnable: the kernel's clocks differ */
        {0, 1, 0, 1},                              /* has only waited so far */
        {1, 1, 9 * TICK, 0.1}, {1, 1, TICK, 0.5},  /* in one of ten samples, in each second one */
    };
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        struct asym_duty d = {.at = 0};
        pass(&d, 100, cases[i].running, cases[i].runnable, cases[i].gap);
        assert_float_equal(asym_duty_share(&d), cases[i].duty, 0.06);
        assert_int_equal(d.light, cases[i].duty < FROM);
    }
}

TEST(a_new_thread_counts_by_its_first_interval)
{
    struct asym_duty busy = {.at = 0}, light = {.at = 0};
    assert_float_equal(asym_duty_share(&busy), 1, 0);
    pass(&busy, 1, 0.75, 0.75, 0);
    assert_false(busy.light);
    pass(&light, 1, 0.6, 0.6, 0);
    assert_true(light.light);
}

/* It holds its CPU until its duty falls below 0.56, and again from 0.7 on. */
TEST(a_thread_between_the_limits_stays_what_it_was)
{
    static const struct {
        double share;
        bool light;
    } steps[] = {{1, false}, {0.6, false}, {0.5, true}, {0.65, true}, {0.75, false}, {0.6, false}};
    struct asym_duty d = {.at = 0};
    for (size_t i = 0; i < ASYM_LENGTH(steps); i++) {
        pass(&d, 60, steps[i].share, steps[i].share, 0);
        assert_int_equal(d.light, steps[i].light);
    }
}

/* A thread that begins to compute after a long sleep is not light from the second after it on; one that stops, within a second. */
TEST(the_means_are_of_about_a_second)
{
    struct asym_duty d = {.at = 0};
    pass(&d, 50, 0.1, 0.1, 0);
    pass(&d, 10, 1, 1, 0);
    assert_true(d.light);
    pass(&d, 2, 1, 1, 0);
    assert_false(d.light);
    pass(&d, 50, 1, 1, 0);
    pass(&d, 1, 1, 1, 8 * TICK);
    assert_true(d.light);
}

TEST_MAIN
