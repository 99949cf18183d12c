/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <asym/plan.h>
#include <asym/snapshot.h>

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

TEST_MAIN
