/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <asym/plan.h>
#include <asym/snapshot.h>

#include "base/macro.h"

static const char *text(enum asym_reason reason, double a, double b, char *buf, size_t size)
{
    const double figure[2] = {a, b};
    return asym_reason_text(reason, figure, buf, size);
}

static void every_reason_has_a_text_of_its_own(void **state)
{
    (void)state;
    char one[128], other[128];
    for (int r = ASYM_WHY_NONE + 1; r < ASYM_N_REASONS; r++) {
        assert_true(strlen(text((enum asym_reason)r, 1, 2, one, sizeof one)) > 0);
        assert_null(strstr(one, "%.")); /* a figure that was not filled in */
        assert_null(strstr(one, "%%"));
        assert_null(strchr(one, '\n'));
        for (int k = ASYM_WHY_NONE + 1; k < r; k++)
            assert_string_not_equal(one, text((enum asym_reason)k, 1, 2, other, sizeof other));
    }
}

static void figures_stand_in_the_text(void **state)
{
    (void)state;
    static const struct {
        enum asym_reason reason;
        double figure[2];
        const char *words[2];
    } rows[] = {
        {ASYM_WHY_SP, {0.314, 1}, {"SP: 0.31 s", "1.00 s"}},
        {ASYM_WHY_HP, {5.23, 3}, {"HP: 5.2 runnable", "above 3"}},
        {ASYM_WHY_SETTLING, {0.123, 0.5}, {"0.12 s", "0.50 s"}},
        {ASYM_WHY_FORKED, {9.84, 0}, {"created a process", "9.8 s"}},
        {ASYM_WHY_DENIED, {13, 0}, {"refused", "13"}},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        char buf[128];
        text(rows[i].reason, rows[i].figure[0], rows[i].figure[1], buf, sizeof buf);
        assert_non_null(strstr(buf, rows[i].words[0]));
        assert_non_null(strstr(buf, rows[i].words[1]));
    }
}

static void a_small_buffer_is_not_overrun(void **state)
{
    (void)state;
    char buf[8] = "#######";
    assert_ptr_equal(text(ASYM_WHY_SP, 1, 1, buf, 5), buf);
    assert_int_equal(strlen(buf), 4);
    assert_int_equal(buf[5], '#');
}

static void an_unknown_reason_is_not_a_crash(void **state)
{
    (void)state;
    char buf[64];
    assert_true(strlen(text((enum asym_reason)12345, 0, 0, buf, sizeof buf)) > 0);
    assert_true(strlen(text((enum asym_reason) - 1, 0, 0, buf, sizeof buf)) > 0);
}

static void names_are_those_of_the_command_line(void **state)
{
    (void)state;
    assert_string_equal(asym_phase_name(ASYM_PHASE_IDLE), "idle");
    assert_string_equal(asym_phase_name(ASYM_PHASE_SERIAL), "serial");
    assert_string_equal(asym_phase_name(ASYM_PHASE_PARALLEL), "parallel");
    assert_string_equal(asym_class_name(ASYM_CLASS_MP), "MP");
    assert_string_equal(asym_class_name(ASYM_CLASS_HP), "HP");
    assert_string_equal(asym_class_name(ASYM_CLASS_SP), "SP");
    assert_string_equal(asym_pin_name(ASYM_PIN_CPU), "cpu");
    assert_string_equal(asym_pin_name(ASYM_PIN_LLC), "llc");
    assert_string_equal(asym_pin_name(ASYM_PIN_TYPE), "type");
    static const char *const signals[] = {"runnable", "ipc", "stall", "profile", "smt"};
    for (int s = 0; s < ASYM_N_SIGNALS; s++)
        assert_string_equal(asym_signal_name((enum asym_signal)s), signals[s]);
    assert_non_null(asym_phase_name((enum asym_phase)77));
    assert_non_null(asym_class_name((enum asym_class)77));
    assert_non_null(asym_pin_name((enum asym_pin)77));
    assert_non_null(asym_signal_name((enum asym_signal)77));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reason_has_a_text_of_its_own),  cmocka_unit_test(figures_stand_in_the_text),
        cmocka_unit_test(a_small_buffer_is_not_overrun),       cmocka_unit_test(an_unknown_reason_is_not_a_crash),
        cmocka_unit_test(names_are_those_of_the_command_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
